#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/semlock-check: two processes that want one lock.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/demo

CHECK=$SOURCE/contrib/semlock-check

nothing_left() {
	rm -f .out .err ./*.out ./*.err ./*.up ./*.down
	[ "$(ls -A)" = bin ] || complain "$(ls -A)"
}

@test "on a local file system every method excludes, and LOCK is left alone" {
	hold_lock l
	expect_status 0 "$CHECK" l
	let_go
	for method in flock ofd posix excl link mkdir symlink rename; do grep -qE "^$method +excludes\$" .out || complain "$out"; done
	grep -qE "^on +$(findmnt -n -o FSTYPE -T .) " .out || [ -z "$(findmnt -n -T .)" ]
	rm l
	nothing_left
	mkdir d
	expect_status 0 "$CHECK" -m link "$PWD/d"
	[ "$(grep -cv '^on ' .out)" -eq 1 ]
	[ -z "$(ls -A d)" ]
}

# as_semlock SCRIPT: semlock-check runs SCRIPT in the place of semlock.
as_semlock() {
	{ echo '#!/bin/bash'; echo "real=$SEMLOCK"; cat; } >bin/semlock-odd
	chmod +x bin/semlock-odd
	export SEMLOCK=$PWD/bin/semlock-odd
}

@test "a lock with a fencing token" {
	as_semlock <<<'"$real" "$@" | sed -u "s/^OK$/OK token=7/"; exit "${PIPESTATUS[0]}"'
	expect_status 0 "$CHECK" -m flock l
	grep -qE '^flock +excludes$' .out
}

@test "an answer that is none, without a reason: 69" {
	as_semlock <<<'[ "$1" != --hold ] || exec echo HELD; exec "$real" "$@"'
	expect_status 69 "$CHECK" -m flock l
	grep -q '^flock    cannot tell' .out
	[ ! -s .err ]
}

@test "where two processes get in, it says so: 69" {
	as_semlock <<<'[ "${*: -1}" != true ] || exec true; exec "$real" "$@"'
	expect_status 69 "$CHECK" -m flock l
	grep -qE '^flock +does not exclude: two at the same time' .out
	expect_status 69 "$CHECK" l
	nothing_left
}

@test "where the lock is not let go, it says so: 69" {
	as_semlock <<<'[ "${*: -1}" != true ] || exit 1; exec "$real" "$@"'
	expect_status 69 "$CHECK" -m excl l
	grep -qE '^excl +does not exclude: still held after its release' .out
}

@test "a fault is reported with its reason and status, not as an answer" {
	as_semlock <<<'[ "${*: -1}" != true ] || { echo "semlock: $4: cannot create it: No space left on device" >&2; exit 73; }; exec "$real" "$@"'
	expect_status 73 "$CHECK" -m mkdir l
	grep -q '^mkdir    cannot tell: .*: No space left on device' .out
	as_semlock <<<'echo "semlock: l: refused here" >&2; exit 69'
	expect_status 69 "$CHECK" -m flock l
	grep -q '^flock    refused: .*refused here' .out
	expect_status 66 "$CHECK" nowhere/l
	expect_status 64 "$CHECK"
	expect_status 64 "$CHECK" a b c
}

@test "with a host, the other semlock is asked there, under the same name" {
	# This ssh runs its words in a shell, as the real one does at HOST.
	printf '#!/bin/sh\n[ "$1 $2" = "-- far" ] || exit 255\nPATH=%s:$PATH exec sh -c "$3"\n' "${SEMLOCK%/*}" >bin/ssh
	chmod +x bin/ssh
	mkdir "it's a directory"
	PATH=$PWD/bin:$PATH expect_status 0 "$CHECK" "it's a directory/l" far
	grep -q "^between  $(uname -n) and far" .out
	[ "$(grep -c ' excludes$' .out)" -eq 8 ] || complain "$out"
	PATH=$PWD/bin:$PATH expect_status 69 "$CHECK" -m flock l elsewhere
	grep -q '^flock    cannot tell' .out
}

@test "ended in the middle, it leaves nothing behind" {
	as_semlock <<<'[ "${*: -1}" != true ] || { : >asked; read -r _ <gate; }; exec "$real" "$@"'
	mkfifo gate
	start check "$CHECK" -m flock l
	eventually [ -e asked ]
	kill -TERM "${PID[check]}"
	echo >gate
	ended check 143
	rm -f asked gate
	nothing_left
}

@test "a URL: one lock beside it" {
	demo_helpers
	expect_status 0 "$CHECK" "demo://$PWD/l"
	grep -qx 'demo     excludes' .out
	rm -r helpers
	nothing_left
}

@test "in a sandbox that forbids --detach, a line says so" {
	without_leak_check
	expect_status 0 "${PROBE%/*}/tools/sandboxed" agent "$CHECK" l
	[ "$(grep -c ' excludes$' .out)" -eq 8 ] || complain "$out"
	grep -qx 'sandbox  this sandbox: no --detach, --release, --resume' .out || complain "$out"
	expect_status 0 "$CHECK" -m flock l
	! grep -q sandbox .out || complain "$out"
	nothing_left
}
