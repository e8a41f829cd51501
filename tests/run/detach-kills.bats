#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Holds in the background whose calls, processes and owners are killed at any moment: how often, HOLD_KILLS says (THOROUGH=1: 50).
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/holds

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}
HOLD_KILLS=${HOLD_KILLS:-$([ -n "${THOROUGH-}" ] && echo 50 || echo 3)}
HOLD_ROUNDS=${HOLD_ROUNDS:-$([ -n "${THOROUGH-}" ] && echo 200 || echo 8)}
AT_MOST=1000000000 # ns until the next one has entered

prepare() {
	starts_many
	holds_prepare
}
tidy() { holds_tidy; }

# entered LOCK: the next one enters it; $worst is the longest time that one took, and $best the shortest
entered() {
	local began took
	began=$(date +%s%N)
	expect_status 0 "$SEMLOCK" -w 60 "$1" true
	took=$(($(date +%s%N) - began))
	[ $took -le $worst ] || worst=$took
	[ $took -ge "${best:=$took}" ] || best=$took
}

# prompt WHAT: one entrance took a second at most, where a start takes longer that much more.  A busy machine may be late;
# a wait that has no reason comes each time.  With fifty, for a machine that does nothing else, each of them took that.
# With the leak check of a sanitizer at the end of each process, it is not judged.
prompt() {
	local judged=$best
	[ "$HOLD_KILLS" -lt 50 ] || judged=$worst
	echo "# $1, $HOLD_KILLS times: the slowest next one was in after $((worst / 1000000)) ms" >&3
	[ -n "${SANITIZED-}" ] || [ "$judged" -le "$(stretched $AT_MOST)" ] || complain "$1: $((judged / 1000000)) ms"
}

@test "PID killed while the call waits: nothing left, and the next enters" {
	local n worst=0 best=
	for ((n = 0; n < HOLD_KILLS; n++)); do
		hold_as holder$n l
		new_owner
		start call$n "$SEMLOCK" --hold="$owner" --detach l
		eventually sh -c '"$0" --who l | grep -q "1 waiting"' "$SEMLOCK"
		kill_owner
		ended call$n 143
		[ ! -s call$n.out ] || complain "it said $(cat call$n.out)"
		eventually nothing_left
		let_go holder$n
		entered l
	done
	prompt "PID killed, waiting"
}

@test "PID killed around OK: nothing left, and the next enters" {
	local n point worst=0 best=
	[ -x "$CRASHABLE_SEMLOCK" ] || skip "needs $CRASHABLE_SEMLOCK"
	for point in detach.taken detach.said; do
		for ((n = 0; n < HOLD_KILLS; n++)); do
			new_owner
			SEMLOCK_CRASH=$point:stop start call "$CRASHABLE_SEMLOCK" --hold="$owner" --detach l
			eventually grep -q 'State:.T' "/proc/${PID[call]}/status"
			expect_status 1 "$SEMLOCK" -n l true
			kill_owner
			entered l
			kill -CONT "${PID[call]}"
			wait "${PID[call]}" || true
			eventually nothing_left
		done
	done
	prompt "PID killed, between the taking and OK"
}

@test "PID killed while the lock is held: nothing left, and the next enters" {
	local n worst=0 best=
	for ((n = 0; n < HOLD_KILLS; n++)); do
		new_owner
		hold l
		kill_owner
		entered l
		eventually nothing_left
		refused 76 "ended" "$SEMLOCK" --release="$id" l
	done
	prompt "PID killed, holding"
}

@test "PID killed during the release: nothing left, and the next enters" {
	local n how worst=0 best=
	for ((n = 0; n < HOLD_KILLS; n++)); do
		new_owner
		hold l
		start release$n "$SEMLOCK" --release="$id" l
		"$PROBE" pause $((n % 5))
		kill_owner
		how=0
		wait "${PID[release$n]}" || how=$?
		[ $how -eq 0 ] || [ $how -eq 76 ] || complain "--release ended with $how" "$(cat release$n.err)"
		entered l
		eventually nothing_left
	done
	prompt "PID killed, releasing"
}

@test "if a process of the hold dies, --release gives 76, and the next enters" {
	local n which worst=0 best=
	for ((n = 0; n < HOLD_KILLS; n++)); do
		for which in 1 2 3; do
			new_owner
			hold l
			kill -KILL "$(processes_of_hold | cut -d' ' -f$which)"
			entered l
			refused 76 "ended" "$SEMLOCK" --release="$id" l
			kill_owner
			eventually nothing_left
		done
	done
	prompt "a process of the hold killed"
}

# What an agent had, from OK until its call of --release or the first kill, is in "spans".
overlaps() {
	sort -g spans | awk '$1 < end && $3 != last { print last, "and", $3, "at", $1 } $2 > end { end = $2; last = $3 }'
}

@test "two agents, killed at random: no overlap, lost release or orphaned hold" {
	local agent
	for agent in 1 2; do
		start agent$agent env SEMLOCK="$SEMLOCK" ROUNDS="$HOLD_ROUNDS" AGENT=$agent bash "$SOURCE/tests/lib/agent.bash"
	done
	for agent in 1 2; do ended agent$agent 0; done
	echo "# $(cut -d' ' -f1 rounds | sort | uniq -c | tr -s ' \n' ' '); $(wc -l <spans) spans" >&3
	[ -z "$(overlaps)" ] || complain "overlaps:" "$(overlaps)"
	[ ! -s faults ] || complain "$(cat faults)"
	[ "$(wc -l <rounds)" -eq $((2 * HOLD_ROUNDS)) ] || complain "$(wc -l <rounds) rounds"
	grep -q ^released rounds || complain "no hold was ever released"
	worst=0 best=
	entered l
}

@test "an overlap of two agents would be found; spans that touch are none" {
	printf '%s\n' '1.0 2.0 1' '1.5 3.0 2' '3.1 3.2 1' >spans
	[ "$(overlaps)" = "1 and 2 at 1.5" ] || complain "$(overlaps)"
	printf '%s\n' '1.0 5.0 1' '1.5 2.0 1' '3.1 3.2 2' >spans
	[ "$(overlaps)" = "1 and 2 at 3.1" ] || complain "$(overlaps)"
	printf '%s\n' '2.0 3.0 2' '1.0 2.0 1' '3.1 3.2 1' >spans
	[ -z "$(overlaps)" ] || complain "$(overlaps)"
}
