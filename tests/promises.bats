#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The tests that tests/PROMISES names exist, and no test has a name that is too long for a line of a report.
load "${HELPERS:-$BATS_TEST_DIRNAME/lib/helpers.bash}"

# missing FILE: the names in FILE, whose format is that of tests/PROMISES, that do not exist, a line each.
missing() {
	local line file
	while IFS= read -r line; do
		line=${line#?} file=${line%%: *}
		case $line in
		*": "*) grep -qxF "@test \"${line#*: }\" {" "$SOURCE/tests/$file" 2>/dev/null ;;
		*) [ -f "$SOURCE/tests/$file" ] ;;
		esac || echo "$line"
	done < <(grep $'^\t' "$1" | grep -v $'^\tsaid in ')
}

# paragraphs DIRECTORY: the pages of $SOURCE/man, a file each, a paragraph a line
paragraphs() {
	local page
	mkdir "$1"
	for page in "$SOURCE"/man/*.[17]; do
		mandoc -Tascii "$page" | col -bx | awk -v RS= '{ $1 = $1; print }' >"$1/${page##*/}"
	done
}

# unsaid FILE DIRECTORY: the lines "said in PAGE: WORDS" of FILE whose words are in no paragraph of that page, and the
# promises without such a line.
unsaid() {
	awk -v directory="$2" '
		/^== / { under = 1 }
		!under || /^(== .*)?$/ { next }
		/^[^\t]/ { if (promise != "") print "where is it said? " promise; promise = $0; next }
		!/^\tsaid in / { next }
		{ promise = "" }
		$0 == "\tsaid in no page" { next }
		{
			words = $0
			sub(/^\tsaid in [^:]*: /, "", words)
			page = substr($0, 10, length($0) - length(words) - 11)
			count = split(words, part, " [.][.][.] ")
			found = 0
			while (!found && (getline line <(directory "/" page)) > 0) {
				for (i = 1; i <= count && (at = index(line, part[i])); i++)
					line = substr(line, at + length(part[i]))
				found = i > count
			}
			close(directory "/" page)
			if (!found) print substr($0, 2)
		}
		END { if (promise != "") print "where is it said? " promise }' "$1"
}

# empty FILE: the promises without a test.
empty() {
	awk '/^== / { under = 1 } !under || /^(== .*)?$/ { next }
		/^\tsaid in / { next }
		/^\t/ { promise = ""; next }
		{ if (promise != "") print promise; promise = $0 }
		END { if (promise != "") print promise }' "$1"
}

@test "every test and model that PROMISES names exists; each promise has one" {
	grep -q $'^\t' "$SOURCE/tests/PROMISES"
	[ -z "$(missing "$SOURCE/tests/PROMISES")" ] || complain "not there: $(missing "$SOURCE/tests/PROMISES")"
	[ -z "$(empty "$SOURCE/tests/PROMISES")" ] || complain "only promised: $(empty "$SOURCE/tests/PROMISES")"
}

@test "each promise is said in the page that PROMISES names, in these words" {
	command -v mandoc >/dev/null || skip "no mandoc on this machine"
	paragraphs pages
	unsaid "$SOURCE/tests/PROMISES" pages >wrong
	[ ! -s wrong ] || complain "$(cat wrong)" || return
	printf '%s\n' '== All' 'Said.' $'\tsaid in semlock.1: While another process ... waits' 'Unsaid.' \
		$'\tsaid in semlock.1: waits, ... While another process' 'No page.' $'\tsaid in none.7: any' 'Nowhere.' >promises
	[ "$(unsaid promises pages)" = "said in semlock.1: waits, ... While another process
said in none.7: any
where is it said? Nowhere." ] || complain "$(unsaid promises pages)"
}

@test "a name that is not there, and a promise without any, are found" {
	printf '%s\n' '== All' 'Kept.' $'\tlock/queue.bats: no two commands are ever inside at once' 'Empty.' 'Broken.' \
		$'\tlock/queue.bats: no two' $'\tmodels/none.pml' 'Empty at the end.' >promises
	[ "$(missing promises)" = $'lock/queue.bats: no two\nmodels/none.pml' ]
	[ "$(empty promises)" = $'Empty.\nEmpty at the end.' ]
}

# long_names FILE...: the tests whose names are longer than 72 characters
long_names() {
	awk '/^@test ".*" \{$/ {
		name = substr($0, 8, length($0) - 10)
		if (length(name) > 72)
			print FILENAME ": " name
	}' "$@"
}

@test "no test name is longer than 72 characters" {
	local long
	long=$(cd "$SOURCE/tests" && long_names ./*.bats ./*/*.bats)
	[ -z "$long" ] || complain "too long:" "$long"
	printf '@@test "%s" {\n' "$(printf '%072d' 0)" "$(printf '%073d' 0)" | sed 's/^@//' >two.bats
	[ "$(long_names two.bats)" = "two.bats: $(printf '%073d' 0)" ]
}
