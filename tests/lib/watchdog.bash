# SPDX-License-Identifier: MIT
# A test works in a directory of its own; every process that works there is killed after TEST_LIMIT seconds, so
# that a hang is a failure.  Loaded by helpers.bash and locksmith.bash, which have set SOURCE.
# shellcheck shell=bash

PROBE=${PROBE:-$SOURCE/build/tests/probe}
# SLOWNESS: how many times longer a fork and an exec take here than on a fast, quiet machine.  make check measures it.
SLOWNESS=${SLOWNESS:-1}
TEST_LIMIT=${TEST_LIMIT:-$((600 * (SLOWNESS < 5 ? SLOWNESS : 5)))}

# stretched SECONDS: prints SECONDS, multiplied by SLOWNESS.
stretched() {
	echo $(($1 * SLOWNESS))
}

# bats records each command in a DEBUG trap, to show the one that fails, which costs a quarter of a test's processor time.
# The ERR trap knows that command, too.
note_failures() {
	declare -F bats_capture_stack_trace bats_error_trap >/dev/null || return 0
	trap - DEBUG
	trap 'note_failure $?' ERR
}

note_failure() {
	bats_capture_stack_trace
	with_status "$1" || bats_error_trap
}

with_status() {
	return "$1"
}

# nap MILLISECONDS: sleeps without a process of its own: nothing is ever written to that FIFO.
nap() {
	local seconds never=${BATS_FILE_TMPDIR:-$DIR}/never
	[ -p "$never" ] || mkfifo "$never" 2>/dev/null || [ -p "$never" ] || return
	printf -v seconds '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
	read -r -t "$seconds" <>"$never" || true
}

# For setup: enters the test's directory, and starts the watchdog.
watch_over() {
	note_failures
	cd "$BATS_TEST_TMPDIR" || return
	"$PROBE" watchdog "$TEST_LIMIT" "$BATS_TEST_TMPDIR" </dev/null >/dev/null 2>&1 3>&- 4>&- &
	WATCHDOG=$!
	disown
}

# For teardown: ends the watchdog, and all processes that the test has left.
watched() {
	kill -KILL "$WATCHDOG"
	if [ -e "$BATS_TEST_TMPDIR/time-is-up" ]; then echo "killed after $TEST_LIMIT seconds: something hung"; fi
	"$PROBE" sweep "$BATS_TEST_TMPDIR" >/dev/null
	# vsftpd serves no directory that its user may write to; nor may its user remove files there.
	[ -z "${BARE-}" ] || { chmod -R u+w "$BARE" && rm -rf "$BARE"; }
}

complain() {
	printf '%s\n' "$@" >&2
	return 1
}
