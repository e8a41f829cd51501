# SPDX-License-Identifier: MIT
# A test works in a directory of its own; every process that works there is killed after TEST_LIMIT seconds, so
# that a hang is a failure.  Loaded by helpers.bash and locksmith.bash, which have set SOURCE.
# shellcheck shell=bash

PROBE=${PROBE:-$SOURCE/build/tests/probe}
TEST_LIMIT=${TEST_LIMIT:-600}

# For setup: enters the test's directory, and starts the watchdog.
watch_over() {
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
