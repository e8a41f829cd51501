#!/usr/bin/env bats
# The layers of the source: includes only go down, and nothing below main ends the program.
load "${HELPERS:-$BATS_TEST_DIRNAME/lib/helpers.bash}"

# clean WHAT: standard input, the list of the findings, is empty.
clean() {
	local found
	found=$(cat)
	[ -z "$found" ] || complain "$1" "$found"
}

prepare() {
	cd "$SOURCE/src" || return
	[ -f main.c ]
}

# includes: "FILE INCLUDED" for each include of a header of src/.
includes() {
	find . -name '*.[ch]' -printf '%P\n' | xargs grep -oE '^#include "[^"]+"' |
		sed -E 's/^([^:]+):#include "(.*)"/\1 \2/'
}

# forbidden: the includes that LAYERS does not allow.
forbidden() {
	includes | awk '
		function folder(path) { return path == "main.c" ? "main" : path ~ "/" ? substr(path, 1, index(path, "/") - 1) : "" }
		NR == FNR { if (/^[a-z]/) { name = $1; sub(":", "", name); known[name]; for (i = 2; i <= NF; i++) may[name, $i] } next }
		{ from = folder($1); to = folder($2) }
		!(from in known) || !(to in known) || (from != to && !((from, to) in may)) { print $1 " includes " $2 }' LAYERS -
}

@test "includes only go where LAYERS allows it" {
	[ "$(includes | wc -l)" -gt 300 ]
	forbidden | clean "these go up:"
}

@test "an include that goes up is found, in each folder" {
	cp -R "$SOURCE/src" "$BATS_TEST_TMPDIR/src"
	cd "$BATS_TEST_TMPDIR/src"
	for pair in preempt:run owners:preempt cli:owners methods:cli lock:methods sys:lock report:sys locksmith:methods run:locksmith; do
		into=$(find "${pair%:*}" -name '*.c' | head -1)
		header=$(find "${pair#*:}" -name '*.h' | head -1)
		cp "$into" saved
		echo "#include \"$header\"" >>"$into"
		[ "$(forbidden)" = "$into includes $header" ] || complain "not found: $header in $into"
		mv saved "$into"
	done
}

# A module is a header and the file of its functions.
@test "no modules include each other in a circle" {
	includes | sed -E 's/\.[ch]\b//g' | awk '$1 != $2' | tsort 2>&1 >/dev/null | clean "a circle:"
}

@test "the same check finds a circle" {
	printf 'a b\nb c\nc a\n' | tsort 2>&1 >/dev/null | grep -q loop
}

@test "config.h comes first in every .c file" {
	find . ../tests -name '*.c' | while read -r file; do
		[ "$(grep -m1 '^#include' "$file")" = '#include <config.h>' ] || echo "$file"
	done | clean "these begin with something else:"
}

@test "every header has the guard of its path, and is included" {
	find . -name '*.h' -printf '%P\n' | while read -r header; do
		guard=SEMLOCK_$(printf %s "${header%.h}" | tr 'a-z/' 'A-Z_')_H
		grep -q "^#ifndef $guard\$" "$header" || echo "$header has not the guard $guard"
		grep -rq --include='*.[ch]' "include \"$header\"" . ../tests || echo "$header is not included"
	done | clean "headers:"
}

@test "every folder says in a README what it is for" {
	sed -n 's/^\([a-z]*\):.*/\1/p' LAYERS | while read -r folder; do
		[ "$folder" = main ] || [ -s "$folder/README" ] || echo "$folder/README is missing"
	done | clean "folders:"
}

# Lines of HACKING's table "Where is it?": a question, a file of src/, and what it defines.
answers() {
	sed -n '/^Where is it?/,/^To add/p' "$SOURCE/HACKING" | grep -oE 'src/[a-z_/]+\.c +[a-z_]+$'
}

@test "each answer of HACKING's table is a file that defines the function" {
	[ "$(answers | wc -l)" -eq 8 ]
	answers | while read -r file function; do
		grep -qsE "^[a-z].*[ *]$function\(.*[^;]\$" "$SOURCE/$file" || echo "$file does not define $function"
	done | clean "HACKING:"
}

@test "getopt is known to the command line's files alone" {
	grep -rlE --include='*.[ch]' 'getopt|optarg|optind' . | grep -vE '^\./(cli/((lock_)?options|reading|usage)|locksmith/common/options)\.[ch]$' |
		clean "these know getopt:"
}

# A child whose exec failed, and a handler of a signal that ends, can only call _exit.
@test "only the command line, --who and --check may end the program; all else returns a status" {
	grep -rnE '\b(die|exit)\(' --include='*.c' --exclude=who.c --exclude=check.c main.c run preempt owners methods lock sys | clean "these end the program:"
	grep -rlE '\b_exit\(' --include='*.c' . |
		grep -vE '^\./(run/(acquire|hold|relay|start)|methods/server/locksmith|sys/start_barrier|locksmith/.*)\.c$' |
		clean "these end a process:"
}

@test "methods print nothing and end nothing" {
	grep -rnE '\b(printf|fprintf|puts|complain|die|exit|_exit|err|warn)\(' --include='*.c' methods/kernel methods/file |
		clean "methods:"
}

@test "no file is longer than 500 lines" {
	find . -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total" && $1 > 500' | clean "too long:"
}

# A definition is a name at the beginning of a line, and its parameters up to the brace.
@test "no function has more than five parameters" {
	find . -name '*.c' | while read -r file; do
		awk -v file="$file" '
			function parameters(text, i, c, depth, commas) {
				gsub(/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)/, "", text)
				for (i = 1; i <= length(text); i++) {
					c = substr(text, i, 1)
					depth += (c == "(") - (c == ")")
					commas += c == "," && depth == 1
				}
				return commas + 1
			}
			/^[a-z].*\(/ && !/;$/ { signature = ""; open = 1 }
			open { signature = signature $0 }
			/^\{/ && open { open = 0; if (parameters(signature) > 5) print file ": " signature }
			/;$|^\}/ { open = 0 }' "$file"
	done | clean "more than five:"
}

@test "the exit statuses are numbers in one place" {
	grep -rnE --include='*.c' '\b(exit|return|die)\(? *(6[4-9]|7[0-9]|12[4-7])\b' . | clean "numbers instead of names:"
}

@test "no structure has the name of another" {
	grep -rhoE --include='*.h' '^(struct|enum) [a-z_0-9]+ \{' . | sort | uniq -d | clean "twice:"
}

# Names that mean nothing outside of this project, or two things: the field's own have replaced them.
@test "no identifier is one of the names that were replaced" {
	old='why|grips?|scene|sight|peek|view|stranger|bearer|steer|hunt(er)?|occupants?|proof|sentence|reach|keeper'
	old="$old|NEEDS_AN_EYE|lifeline|gate|ending|obtain|MERCY|deaf|condemn(ed)?|sightings|dice|several|liveness|trouble"
	find . ../tests -name '*.[ch]' -exec sed -zE 's,/\*[^*]*\*+([^/*][^*]*\*+)*/,,g; s/"([^"\\]|\\.)*"//g' {} + |
		grep -aowE "($old|patience|here|calls)(_[a-z_]*)?" | sort | uniq -c | clean "old names:"
}

# Of "[ a ] && [ b ]" only b fails a test, unless the line is the last: write two lines.
@test "no condition in a test is lost" {
	find ../tests \( -name '*.bats' -o -name '*.bash' \) -print0 | xargs -0 awk 'lost != "" && $0 != "}" { print lost }
		{ lost = "" }
		/^\t+(\[|!).* && (\[|!|grep|cmp|diff|test)/ && !/\|\||&& return$/ { lost = FILENAME ": " FNR ": " $0 }' |
		clean "the first of two conditions:"
}
