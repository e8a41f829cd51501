#!/usr/bin/env bats
# Contenders that are killed all the time, and many breakers of one dead holder's lock.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"

TORTURE=${TORTURE:-$SOURCE/build/tests/torture/torture}
METHODS="excl link mkdir symlink rename"

# in_a_room METHOD CMD...: in a directory of its own
in_a_room() {
	local method=$1
	shift
	mkdir "room.$method"
	cd "room.$method" || return
	[ "$method" != rename ] || "$SEMLOCK" -m rename --init lock true
	expect_status "$@"
	cd ..
}

@test "400 acquisitions by 8 with 40 kills: nothing overlaps, is lost, stuck, or left" {
	for method in $METHODS; do
		in_a_room "$method" 0 sh -c 'cd "$(mktemp -d -p .)" && if [ -e ../lock ]; then cp ../lock .; fi && exec "$@"' sh \
			"$TORTURE" "$method" "$SEMLOCK" 400 40 8 11
	done
}

@test "8 breakers of a dead holder's lock: exactly one winner, each time" {
	for method in $METHODS; do
		in_a_room "$method" 0 "$TORTURE" breakers "$method" "$SEMLOCK" 5 8
	done
}

# A hole is found by chance, and sooner or later: one seed will do of many.  (naive-break, which
# looks and then unlinks, takes too many: the model of it fails for certain.)
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
