#!/usr/bin/env bats
# -o: what the command leaves behind does not keep the lock.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"

daemon_under() {
	fifos daemon
	PID[daemon]=$$
	expect_status 0 "$SEMLOCK" "$@" l "$PROBE" leave-behind daemon.up daemon.down
	: >daemon.out
	: >daemon.err
	ready daemon
}

@test "without -o a daemon that the command leaves behind keeps the lock" {
	daemon_under
	expect_held l
	expect_status 1 "$SEMLOCK" -n l true
	release daemon
	"$PROBE" until-free l
}

@test "with -o it does not" {
	daemon_under -o
	kill -0 "${COMMAND[daemon]}"
	expect_free l
	expect_status 0 "$SEMLOCK" -n l true
	release daemon
}

@test "with --close the lock is held while the command runs" {
	hold_lock --close l
	expect_held l
	expect_status 1 "$SEMLOCK" -n l true
	let_go
	expect_free l
}

@test "with -o the command does not get the descriptor, without it does" {
	expect_status 0 "$SEMLOCK" l "$PROBE" fds list
	grep -q "$PWD/l\$" list
	expect_status 0 "$SEMLOCK" -o l "$PROBE" fds list
	! grep -q "$PWD/l\$" list || complain "$(cat list)"
}

@test "the command gets no descriptor beside the lock's, not even after a wait" {
	"$PROBE" fds bare 3>&- 4>&-
	expect_status 0 "$SEMLOCK" -o l "$PROBE" fds list
	diff <(cut -d' ' -f1 bare) <(cut -d' ' -f1 list)
	expect_status 0 "$SEMLOCK" -v -w 5 l "$PROBE" fds list
	[ "$(wc -l <list)" -eq $(($(wc -l <bare) + 1)) ]
	hold_lock l
	start second "$SEMLOCK" -w 60 l "$PROBE" fds list
	"$PROBE" blocked "${PID[second]}"
	let_go
	ended second 0
	[ "$(wc -l <list)" -eq $(($(wc -l <bare) + 1)) ] || complain "$(cat list)"
}

@test "with -o the command dies with a semlock that was killed" {
	hold_lock -o l
	kill -KILL "${PID[holder]}"
	ended holder 137
	"$PROBE" gone "${COMMAND[holder]}"
	"$PROBE" until-free l
}

@test "with -o the command runs in a PID namespace of its own, too, and dies with its semlock there" {
	namespaces --pid
	for way in -o "-m posix" "-o -m excl"; do
		# shellcheck disable=SC2086 # words
		expect_status 5 unshare --pid "$SEMLOCK" $way l sh -c 'exit 5'
		fifos holder
		# shellcheck disable=SC2086 # words
		start holder unshare --pid "$SEMLOCK" $way l "$PROBE" hold holder.up holder.down
		next_line holder
		inside=$(pgrep -P "${PID[holder]}")
		kill -KILL "${PID[holder]}"
		wait "${PID[holder]}" || true
		"$PROBE" gone "$inside"
		rm -f ./*.up ./*.down l
	done
}

@test "with -o the command's status is its own" {
	expect_status 6 "$SEMLOCK" -o l sh -c 'exit 6'
	expect_status 143 "$PROBE" with-default TERM -- "$SEMLOCK" -o l sh -c 'kill -TERM $$'
	expect_status 127 "$SEMLOCK" -o l nosuch
	expect_free l
}
