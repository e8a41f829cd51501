#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Contenders that are killed all the time, and many breakers of one dead holder's lock.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

TORTURE=${TORTURE:-$SOURCE/build/tests/torture/torture}
BROKEN=${BROKEN:-$SOURCE/build/tests/semlock-broken}
METHODS="excl link mkdir symlink rename"
ACQUISITIONS=100 KILLS=10
[ -z "${THOROUGH-}" ] || ACQUISITIONS=1000 KILLS=100
without_leak_check

# in_a_room METHOD CMD...: runs CMD in a directory of its own, which has the method's token
in_a_room() {
	local room
	room=$(mktemp -d "$PWD/room.$1.XXXXXX")
	[ "$1" != rename ] || "$SEMLOCK" -m rename --init "$room/lock" true
	shift
	expect_status 0 sh -c 'cd "$0" && exec "$@"' "$room" "$@"
}

@test "8 contenders, one in ten killed: no overlap, nothing lost, stuck or left" {
	for method in flock ofd posix $METHODS; do
		in_a_room "$method" "$TORTURE" "$method" "$SEMLOCK" $ACQUISITIONS $KILLS 8 11
	done
}

beside() {
	TORTURE_FORMS=command,become,close,fd,shared,slots,peer \
		in_a_room "$1" "$TORTURE" "$1" "$SEMLOCK" 200 20 6 12
}

@test "beside lockers by hand, and flock(1): nothing overlaps, is lost or stuck" {
	for method in excl mkdir symlink rename; do beside $method; done
	if [ -z "$(system_flock)" ]; then skip "the rest of it: no util-linux flock"; fi
	beside flock
}

@test "beside a breaker of dead locks: it finds none, and no overlap or loss" {
	for method in excl link mkdir symlink; do
		TORTURE_FORMS=command,close,deadline,try,breaker in_a_room "$method" "$TORTURE" "$method" "$SEMLOCK" 200 20 6 13
	done
}

@test "beside lckdo: nothing overlaps, is lost or stuck" {
	if ! command -v lckdo >/dev/null; then skip "no lckdo (moreutils) here"; fi
	beside posix
	beside ofd
}

@test "beside lockfile(1): nothing overlaps, is lost or stuck" {
	if ! command -v lockfile >/dev/null; then skip "no lockfile (procmail) here"; fi
	beside link
}

# The other user must be able to reach this directory, and the build.
prepare() {
	place=$(mktemp -d /tmp/semlock-torture.XXXXXX)
}

tidy() {
	rm -rf "$place"
}

@test "two users, one hostile to the queue: no overlap, no loss, none stuck" {
	root_only "to be two users"
	as_nobody test -x "$TORTURE" -a -x "$SEMLOCK" || skip "another user cannot reach this build"
	for method in flock mkdir; do
		chmod 755 "$place"
		expect_status 0 sh -c 'cd "$0" && exec "$@"' "$place" "$TORTURE" $method "$SEMLOCK" 200 20 8 13
		[[ $out == *"two users"* ]] || complain "$out"
		rm -rf "${place:?}"/*
	done
}

@test "an unbroken semlock passes: the torture itself does not fail" {
	for method in flock excl; do in_a_room $method "$TORTURE" $method "$BROKEN" 200 20 8 7; done
}

@test "8 breakers of a dead holder's lock: exactly one winner, each time" {
	for method in $METHODS; do
		in_a_room "$method" "$TORTURE" breakers "$method" "$SEMLOCK" 5 8
	done
}

# The torture finds a hole by chance, sooner or later: one seed of many will do.  (naive-break, which looks and then
# unlinks, takes too many: its model fails for certain.)
finds_the_hole_of() {
	local seed room
	for seed in $(seq 7 36); do
		room=room.$1.$seed
		mkdir "$room"
		capture sh -c 'cd "$0" && exec "$@"' "$room" timeout 55 "$TORTURE" "$1" "$SEMLOCK" 3000 150 8 "$seed"
		if [ "$status" -eq 1 ] && [[ $out == *STUCK* || $out != *" 0 overlaps"* ]]; then return; fi
	done
	complain "30 seeds, and no hole in $1: $out"
}

@test "the torture finds the holes of the naive" {
	for method in naive-unchecked naive-empty naive-swap; do
		finds_the_hole_of "$method"
	done
}
