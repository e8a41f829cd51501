#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The tests that tests/PROMISES names exist, and the name of each test has a noun for its subject.
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
	done < <(grep $'^\t' "$1")
}

# empty FILE: the promises without a test.
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
