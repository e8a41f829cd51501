#!/usr/bin/env bats
# tests/PROMISES: what it names is there. And the names of tests are sentences.
load "${HELPERS:-$BATS_TEST_DIRNAME/lib/helpers.bash}"

# Of a file in the format of tests/PROMISES: what it names and is not there, a line each.
missing() {
	local line file
	while IFS= read -r line; do
		line=${line#?} file=${line%%: *}
		case $line in
		*": "*) grep -qxF "@test \"${line#*: }\" {" "$SOURCE/tests/$file" 2>/dev/null ;;
		*) [ -f "$SOURCE/tests/$file" ] ;;
		esac || echo "$line"
	done < <(grep $'^\t' "$1")
}

# Promises without anything that would fail.
empty() {
	awk '/^== / { under = 1 } !under || /^(== .*)?$/ { next }
		/^\t/ { promise = ""; next }
		{ if (promise != "") print promise; promise = $0 }
		END { if (promise != "") print promise }' "$1"
}

@test "every test, model and part of the torture that PROMISES names is there, and each promise names one" {
	[ "$(grep -c $'^\t' "$SOURCE/tests/PROMISES")" -ge 80 ]
	[ -z "$(missing "$SOURCE/tests/PROMISES")" ] || complain "not there: $(missing "$SOURCE/tests/PROMISES")"
	[ -z "$(empty "$SOURCE/tests/PROMISES")" ] || complain "only promised: $(empty "$SOURCE/tests/PROMISES")"
}

@test "a name that is not there, and a promise without any, are found" {
	printf '%s\n' '== All' 'Kept.' $'\tlock/queue.bats: no two commands are ever inside at once' 'Empty.' 'Broken.' \
		$'\tlock/queue.bats: no two' $'\tmodels/none.pml' 'Empty at the end.' >promises
	[ "$(missing promises)" = $'lock/queue.bats: no two\nmodels/none.pml' ]
	[ "$(empty promises)" = $'Empty.\nEmpty at the end.' ]
}

# Of bats files: names of tests whose subject is no noun.
vague() {
	grep -hE '^@test "([^"]*[:;] )?(who|whom|whoever) |^@test ".*\b(he|him|his|whoever [a-z]+)\b' "$@"
}

@test "the name of each test has a noun for its subject" {
	find "$SOURCE/tests" -name '*.bats' >files
	mapfile -t files <files
	[ "${#files[@]}" -gt 60 ] || complain "only ${#files[@]} files"
	! vague "${files[@]}" || complain "these have not"
	printf '@test "%s" {\n' "-n: who waits is served" "whoever waits" "a lock that he holds" "a vsftpd, whose words" \
		"--who names holders" >names
	[ "$(vague names | wc -l)" -eq 3 ]
}
