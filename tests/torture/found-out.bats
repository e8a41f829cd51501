#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The torture finds a semlock that has a hole: tests/torture/broken.c.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

TORTURE=${TORTURE:-$SOURCE/build/tests/torture/torture}
BROKEN=${BROKEN:-$SOURCE/build/tests/semlock-broken}
without_leak_check

# finds_what_is BROKEN METHOD ACQUISITIONS KILLS [LOSS]: the torture finds the hole BROKEN: its log shows the overlap, or, with
# LOSS, holders have lost the lock to one that broke it.  (On a slow machine none comes in while they are inside.)
finds_what_is() {
	local room=room.$1.$2
	mkdir "$room"
	SEMLOCK_BROKEN=$1 TORTURE_SECONDS=240 capture sh -c 'cd "$0" && exec "$@"' "$room" \
		"$TORTURE" "$2" "$BROKEN" "$3" "$4" 8 7
	[ "$status" -eq 1 ] || complain "$1 $2: ended with $status: $out" "$err" || return
	[[ $out == *"came in while"*"FINDS ANOTHER INSIDE"* ]] || [[ -n ${5-} && $out =~ \ [1-9][0-9]*\ lost, ]] ||
		complain "$1 $2: no log of an overlap: $out"
}

@test "the torture finds a semlock that does not look at the name again" {
	for method in flock ofd posix; do finds_what_is unchecked $method 30000 300; done
}

@test "the torture finds a semlock that breaks stale locks by look and unlink" {
	finds_what_is uncompared excl 30000 3000 loss
	finds_what_is unguarded link 30000 3000 loss
	if [ -z "${THOROUGH-}" ]; then return; fi
	finds_what_is unguarded excl 30000 3000 loss
	finds_what_is uncompared link 30000 3000 loss # the rarest
}

@test "the torture finds a semlock that a hostile ticket keeps out forever" {
	mkdir room
	SEMLOCK_BROKEN=obedient TORTURE_STUCK=10 TORTURE_SECONDS=400 \
		capture sh -c 'cd room && exec "$@"' "" "$TORTURE" flock "$BROKEN" 1000000 1000 8 7
	[ "$status" -eq 1 ] && [[ $out == *STUCK* ]] || complain "ended with $status: $out" "$err"
}
