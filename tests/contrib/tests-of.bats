#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/tests-of: which tests touch an option, a message or a promise.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# a_tree: a small source tree with tests of its own
a_tree() {
	mkdir -p tree/contrib tree/src/cli tree/tests/lib/servers tree/tests/lock
	cp "$SOURCE/contrib/tests-of" tree/contrib
	cp "$SOURCE/src/cli/options.def" tree/src/cli
	printf '%s\n' 'Head' '== Order' 'Waiters are served in order.' $'\tlock/a.bats: uses a helper' $'\tmodels/queue.py' \
		'Another.' $'\tlock/a.bats: short options' >tree/tests/PROMISES
	printf '%s\n' 'helper() {' '	inner' '}' 'inner() { "$SEMLOCK" --stale=5 l true; }' 'refused() { :; }' \
		>tree/tests/lib/helpers.bash
	printf '%s\n' 'elsewhere() {' '	"$SEMLOCK" --rm l true' '}' >tree/tests/lib/servers/none.bash
	cat >tree/tests/all.bats <<-'END'
		@@test "says --no-fork" {
			# --rm, in a comment
			refused 1 "held by another process" sh -c 'exit 1'
		}
		@@test "loads nothing" {
			elsewhere
			helper
		}
	END
	cat >tree/tests/lock/a.bats <<-'END'
		load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
		prepared() { sh -n script; }
		@@test "uses a helper" {
			helper # --rm
		}
		@@test "short options" {
			for way in "" "-sw 10"; do prepared; done
			expect_status 0 "$SEMLOCK" \
				-m excl -j2 l sh -c 'touch ran'
		}
		@@test "a list of -o" {
			prepared -F x
			way=-u
			[ -e x ] || grep -n y z
		}
	END
	sed -i 's/^@@/@/' tree/tests/*.bats tree/tests/*/*.bats # bats would take them for tests of this file
}

# finds WORD... -- NAME...: contrib/tests-of lists these tests of lock/a.bats, and no others
finds() {
	local words=() wanted
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	wanted=$(for name; do echo "tests/lock/a.bats: $name"; done)
	expect_status 0 tree/contrib/tests-of "${words[@]}"
	[ "$out" = "$wanted" ] || complain "${words[*]}: found" "$out" "instead of" "$wanted"
}

@test "an option is found by each of its names, and through helpers" {
	a_tree
	finds --stale -- "uses a helper"
	finds -w -- "short options"
	finds --wait -- "short options"
	finds --timeout -- "short options"
	finds --slots -- "short options"
	finds -u -- "a list of -o"
	finds --close -- "a list of -o"
	finds --shared -m -- "short options"
	expect_status 0 tree/contrib/tests-of -F
	expect_out $'tests/all.bats: says --no-fork\ntests/lock/a.bats: a list of -o'
}

@test "an option of another program, in a comment, or elsewhere is not found" {
	a_tree
	for option in -n -c -e --rm; do
		expect_status 1 tree/contrib/tests-of $option
		expect_out ""
	done
	expect_status 1 tree/contrib/tests-of --stale --shared
}

@test "the words of a message or a promise find its tests" {
	a_tree
	expect_status 0 tree/contrib/tests-of BY another
	expect_out "tests/all.bats: says --no-fork"
	finds served in -- "uses a helper"
	[[ $err == *tests/models/queue.py* ]] || complain "$err"
	finds served in --stale -- "uses a helper"
	expect_status 1 tree/contrib/tests-of served in --shared
	expect_status 1 tree/contrib/tests-of by no process
	expect_status 64 tree/contrib/tests-of
	expect_status 0 tree/contrib/tests-of --help
}

@test "every test listed exists, and the command printed runs one" {
	expect_status 0 "$SOURCE/contrib/tests-of" --stale
	while IFS= read -r line; do
		grep -qxF "@test \"${line#*: }\" {" "$SOURCE/${line%%: *}" || complain "not there: $line"
	done <.out
	grep -q '^tests/methods/stale\.bats: ' .out
	command=$(tail -n 1 .err)
	[[ $command == *"make check TESTS=tests/"*" AM_BATS_LOG_FLAGS='--tap -f ^"*"\$\$'" ]] || complain "$command"
	file=${command#*TESTS=} filter=${command#* -f }
	filter=${filter%"\$\$'"}\$
	[ "$(PATH=${PATH#"$BATS_LIBEXEC":} bats --count -f "$filter" "$SOURCE/${file%% *}")" -eq 1 ]
}
