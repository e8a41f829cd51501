#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -F: semlock becomes the command.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "the command is the process that semlock was" {
	hold_lock -F l
	[ "${COMMAND[holder]}" = "${PID[holder]}" ]
	expect_held l
	expect_status 1 "$SEMLOCK" -n l true
	let_go
	expect_free l
}

@test "--no-fork, after having waited" {
	hold_lock l
	queue_as second --no-fork -w 60 l
	let_go
	ready second
	[ "${COMMAND[second]}" = "${PID[second]}" ]
	expect_held l
	let_go second
	expect_free l
}

@test "with the methods ofd and posix the lock stays too" {
	for method in ofd posix; do
		hold_as "$method" -F -m "$method" l
		[ "${COMMAND[$method]}" = "${PID[$method]}" ]
		expect_held l "$method" 0 0
		let_go "$method"
		expect_free l "$method" 0 0
	done
}

@test "-m posix: --status-fd may be the very file that is locked" {
	: >l
	fifos holder
	start holder sh -c 'exec "$0" -F -m posix --status-fd=9 l "$@" 9>>l' "$SEMLOCK" "$PROBE" hold holder.up holder.down
	ready holder
	expect_held l posix 0 0
	let_go
}

@test "a signal ends it as it would without semlock" {
	hold_lock -F l
	kill -TERM "${PID[holder]}"
	ended holder 143
	expect_free l
}

# outlives: a command whose lock came within the time limit still runs when the limit has passed.
outlives() {
	rm -f ./*.up ./*.down
	hold_lock l
	if ! queue_as second -F -w "${room}ms" l; then # the waiter's time was up
		let_go
		return 1
	fi
	let_go
	ready second || return
	"$PROBE" pause $((room + 200)) # the limit passes while the command runs
	kill -0 "${COMMAND[second]}" && expect_held l && let_go second
}

@test "no timer comes after the command" {
	with_room outlives
}

@test "signal mask and dispositions are the caller's" {
	"$PROBE" with-mask USR1 -- "$PROBE" with-ignored HUP -- grep '^Sig[BIC]' /proc/self/status >bare
	expect_status 0 "$PROBE" with-mask USR1 -- "$PROBE" with-ignored HUP -- \
		"$SEMLOCK" -F -w 5 l grep '^Sig[BIC]' /proc/self/status
	expect_out "$(cat bare)"
}

@test "what is verbose is not lost" {
	expect_status 0 "$SEMLOCK" -v -F l echo hi
	expect_out hi
	[[ $err == "semlock: "* ]]
}

@test "a command that cannot start" {
	refused 127 nosuch "$SEMLOCK" -F l nosuch
	refused 126 /etc/passwd "$SEMLOCK" -F l /etc/passwd
	expect_status 69 "$FLOCK" -F l nosuch
	expect_free l
}

@test "what needs semlock afterwards is refused together with it" {
	refused 64 -o "$SEMLOCK" -F -o l touch ran
	refused 64 -F "$SEMLOCK" -o --no-fork l touch ran
	refused 64 rm "$SEMLOCK" -F --rm l touch ran
	[ ! -e ran ]
	[ ! -e l ]
}
