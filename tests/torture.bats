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

@test "the torture finds the holes of the naive" {
	for method in naive-unchecked naive-empty naive-break naive-swap; do
		in_a_room $method 1 timeout 55 "$TORTURE" $method "$SEMLOCK" 3000 150 8 7
		[[ $out == *STUCK* || $out != *" 0 overlaps"* ]] || complain "$out"
	done
}
