# SPDX-License-Identifier: MIT
# coverage.awk - prints contrib/coverage's figures.
#
#	awk -v top=SOURCE/ -v wanted=90 -f coverage.awk lcov.tests lcov
#
# The first file counts what the tests run, the second that and the faults as well.  Writes:
#	standard output	a table: lines and branches by the tests, and by both
#	by-faults	FILE FUNCTION: what faults alone have run
#	left		FILE FUNCTION LINE...: what neither has, a line's branches as LINE(2/4)
# Ends with 1 if the tests run less than WANTED per cent of the lines of src/.
FNR == 1 { run++ }
/^SF:/ {
	file = substr($0, 4)
	sub(top, "", file)
	sub(/^src\//, "", file)
	ours = substr($0, 4) ~ /\/src\//
	if (ours && !(file in known)) {
		known[file] = 1
		files[++nfiles] = file
	}
	delete begins
}
!ours { next }
/^FN:/ {
	split(substr($0, 4), at, ",")
	sub(/.*:/, "", at[2])
	begins[at[1]] = at[2]
}
/^DA:/ {
	split(substr($0, 4), at, ",")
	count(file, "line")
	if (at[2] > 0)
		hit(file, "line")
	else
		miss(at[1], "")
}
/^BRDA:/ {
	n = split(substr($0, 6), at, ",")
	ways[file, at[1], run]++
	count(file, "branch")
	if (at[n] != "-" && at[n] > 0)
		hit(file, "branch")
	else
		miss(at[1], "branch")
}

function count(name, what) { all[run, name, what]++; all[run, "src/", what]++ }
function hit(name, what) { got[run, name, what]++; got[run, "src/", what]++ }

# Notes that LINE was not run, or one of its branches not taken.
function miss(line, branch,	begin)
{
	for (begin = line; begin > 0 && !(begin in begins); )
		begin--
	key = file " " (begin > 0 ? begins[begin] : "-")
	if (!((key, line) in missed)) {
		missed[key, line] = 1
		lines[key] = lines[key] " " line
		if (!(key in seen)) {
			seen[key] = 1
			functions[++nfunctions] = key
		}
	}
	if (branch == "")
		unrun[key, line, run] = 1
	else
		untaken[key, line, run]++
}

# The lines of KEY in RUN that are left.
function rest(key, run,	list, n, i, text)
{
	n = split(lines[key], list, " ")
	split(key, part, " ")
	for (i = 1; i <= n; i++) {
		if ((key, list[i], run) in untaken)
			text = text " " list[i] "(" untaken[key, list[i], run] "/" ways[part[1], list[i], run] ")"
		else if ((key, list[i], run) in unrun)
			text = text " " list[i]
	}
	return text
}

function share(run, name, what)
{
	if (!all[run, name, what])
		return "      -"
	return sprintf("%5.1f %%", 100 * got[run, name, what] / all[run, name, what])
}

function row(name)
{
	printf "%-30s %5d lines %s %s %6d branches %s %s\n", name, all[1, name, "line"],
		share(1, name, "line"), share(2, name, "line"), all[1, name, "branch"],
		share(1, name, "branch"), share(2, name, "branch")
}

END {
	print "Run by the tests, and by the tests and faults together:"
	for (i = 1; i <= nfiles; i++)
		row(files[i])
	row("src/")
	for (i = 1; i <= nfunctions; i++) {
		if (rest(functions[i], 2) != "")
			print functions[i] rest(functions[i], 2) >"left"
		if (rest(functions[i], 1) != rest(functions[i], 2))
			print functions[i] >"by-faults"
	}
	exit 100 * got[1, "src/", "line"] < wanted * all[1, "src/", "line"] || !all[1, "src/", "line"]
}
