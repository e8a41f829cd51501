#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --run-timeout: how long the command may run, in timeout(1)'s ways.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# overdue N ARGS...: semlock --run-timeout ARGS ends with N.  The command makes the file "came" when it is prepared for
# its signal: a limit that has passed before proves nothing, and a longer limit is tried.
# (A shell with a trap loses a signal that comes while the shell forks: its child is there before.)
overdue() {
	local want=$1
	shift
	with_room came_before_the_end "$@"
	[ "$status" -eq "$want" ] || complain "$*" "ended with $status instead of $want" "stdout: $out" "stderr: $err"
}

came_before_the_end() {
	rm -f came
	capture "$PROBE" with-default INT -- "$SEMLOCK" --run-timeout "${room}ms" "$@"
	[ -e came ]
}

@test "a command that takes too long is ended by TERM: 124" {
	mkfifo never
	overdue 124 l sh -c 'read -r _ <>never & trap "echo TERM; exit 5" TERM; : >came; wait'
	expect_out TERM
	"$PROBE" until-free l # the background process of the shell has been told to end as well
}

@test "a command that ends in time keeps its own status" {
	expect_status 7 "$SEMLOCK" --run-timeout 1m l sh -c 'exit 7'
	expect_status 137 "$SEMLOCK" --run-timeout 1m l sh -c 'kill -KILL $$'
	expect_status 127 "$SEMLOCK" --run-timeout 1m l nosuch
}

@test "0 is no limit, as with timeout(1)" {
	expect_status 3 "$SEMLOCK" --run-timeout 0 l sh -c 'exit 3'
}

@test "--signal: another signal, by name or number" {
	mkfifo never
	for signal in INT SIGINT int 2; do
		overdue 124 --signal "$signal" "l.$signal" sh -c 'read -r _ <>never & trap "echo INT; exit" INT; : >came; wait'
		expect_out INT
	done
}

@test "a command that ignores TERM gets KILL after --kill-after: 137" {
	mkfifo never
	overdue 137 --kill-after .1 l sh -c 'trap "" TERM; : >came; read -r _ <>never'
	expect_free l
}

@test "--signal KILL: 137" {
	mkfifo never
	expect_status 137 "$SEMLOCK" --run-timeout .1 --signal KILL l sh -c 'read -r _ <>never'
}

@test "a command that obeys is not killed after all" {
	expect_status 124 "$SEMLOCK" --run-timeout .1 --kill-after 1m l sh -c 'kill -STOP $$'
}

# A command that stops only after the limit has passed stays stopped, which proves nothing.
continued_by_the_limit() {
	local end=$((SECONDS + 10 + room / 500))
	rm -f came
	start one "$SEMLOCK" --run-timeout "${room}ms" l \
		sh -c 'trap "echo obeys; exit" TERM; echo $$ >number; mv number came; kill -STOP $$; :'
	while kill -0 "${PID[one]}" 2>/dev/null; do
		if [ $SECONDS -ge $end ] && [ -e came ]; then
			kill -CONT "$(cat came)"
			wait "${PID[one]}"
			return 1
		fi
		"$PROBE" pause 5
	done
	ended one 124 && [ "$(cat one.out)" = obeys ]
}

@test "a stopped command is continued, so that it can obey" {
	with_room continued_by_the_limit
}

ends_with_it() {
	local up pid
	rm -f one.up one.down
	fifos one
	exec {up}<>one.up # the probe's line stays in the FIFO
	start one "$SEMLOCK" --run-timeout "${room}ms" l sh -c '"$0" hold one.up one.down & wait' "$PROBE"
	ended one 124 && read -r -t 1 _ pid <&"$up" && "$PROBE" gone "$pid"
}

@test "what the command has started ends with it, and the lock is free" {
	with_room ends_with_it
	expect_free l
}

@test "-o, -m posix: the same" {
	mkfifo never
	expect_status 124 "$SEMLOCK" -o --run-timeout .1 l sh -c 'read -r _ <>never'
	expect_status 124 "$SEMLOCK" -m posix --run-timeout .1 l sh -c 'read -r _ <>never'
	expect_free l
}

@test "TERM to semlock starts --kill-after, too" {
	fifos one
	start one "$SEMLOCK" --run-timeout 1h --kill-after .1 l "$PROBE" with-ignored TERM -- "$PROBE" hold one.up one.down
	ready one
	kill -TERM "${PID[one]}"
	ended one 137
}

@test "a signal that is ignored starts no --kill-after: nohup" {
	fifos one
	start one "$PROBE" with-ignored HUP -- "$SEMLOCK" --run-timeout 1h --kill-after .1 l "$PROBE" hold one.up one.down
	ready one
	kill -HUP "${PID[one]}"
	"$PROBE" pause 300
	let_go one
}

# waits_longer: after a wait of twice the limit, the command still has all of its time.
waits_longer() {
	rm -f holder.up holder.down
	hold_lock l
	start one "$SEMLOCK" --run-timeout "${room}ms" l true
	"$PROBE" blocked "${PID[one]}" || return
	"$PROBE" pause $((2 * room))
	let_go
	ended one 0
}

@test "the time counts from the start of the command, not of the wait" {
	with_room waits_longer
}

@test "a command that ends just at its limit: its status or 124, never a hang" {
	for _ in $(seq 20); do
		capture "$SEMLOCK" --run-timeout .02 l sleep .02
		[ "$status" -eq 0 ] || [ "$status" -eq 124 ] || complain "status $status"
	done
	expect_free l
}

@test "in the foreground of a terminal the keys still reach the command" {
	printf 'expect started\nsend ^C\n' >script
	status=0
	"$PROBE" pty "$SEMLOCK" --run-timeout 1m l sh -c 'trap "echo INT; exit 6" INT; echo started; while :; do sleep 1; done' \
		<script >.out 3>&- || status=$?
	[ "$status" -eq 6 ]
	grep -q INT .out
}

@test "what makes no sense is refused" {
	refused 64 --run-timeout "$SEMLOCK" -F --run-timeout 1 l true
	refused 64 --run-timeout "$SEMLOCK" --run-timeout x l true
	refused 64 --run-timeout "$SEMLOCK" --run-timeout -1 l true
	refused 64 --run-timeout "$SEMLOCK" --run-timeout 1 8
	refused 64 --signal "$SEMLOCK" --signal TERM l true
	refused 64 --signal "$SEMLOCK" --run-timeout 1 --signal NOSUCH l true
	refused 64 --signal "$SEMLOCK" --run-timeout 1 --signal 999 l true
	refused 64 --kill-after "$SEMLOCK" --kill-after 1 l true
}

@test "semlock says that the limit has ended the command, but not with -q" {
	mkfifo never
	refused 124 "l: the command has run for longer than --run-timeout, and was sent TERM" \
		"$SEMLOCK" --run-timeout .1 l sh -c 'read -r _ <>never'
	refused 137 "and was sent KILL" "$SEMLOCK" --run-timeout .1 --signal KILL l sh -c 'read -r _ <>never'
	refused 137 "and was sent a signal, and then KILL" \
		"$SEMLOCK" --run-timeout .1 --kill-after .1 l sh -c 'trap "" TERM; read -r _ <>never'
	expect_status 124 "$SEMLOCK" -q --run-timeout .1 l sh -c 'read -r _ <>never'
	expect_silent
}
