#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -w: a wait of so long, and no longer.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

STORM=300
[ -z "${THOROUGH-}" ] || STORM=10000

# limit TEXT LOW HIGH: -w TEXT sets a timer of LOW to HIGH seconds.
limit() {
	local seconds
	seconds=$("$PROBE" timer "$SEMLOCK" -w "$1" l true 3>&-) || complain "-w $1 sets no timer" || return
	awk -v s="$seconds" -v low="$2" -v high="$3" 'BEGIN { exit !(s >= low && s <= high) }' ||
		complain "-w $1 sets a timer of $seconds s, and not of $2 to $3"
}

@test "fractions, exponents and suffixes mean what they say" {
	hold_lock l
	limit 90 85 90
	limit 1e1 5 10
	limit 1E1 5 10
	limit 1e+1 5 10
	limit 2.5e2 245 250
	limit 0.5h 1795 1800
	limit 2m 115 120
	limit 1h 3595 3600
	limit 1d 86395 86400
	limit 90s 85 90
	limit 300000ms 295 300
	limit "89.$(printf '9%.0s' {1..400})" 85 90
	let_go
}

@test "what is no number of seconds is refused with 64, and named" {
	for bad in 1ss 5x abc '' . - + 1e 1.2.3 '1 2' ms 1mm 0x nan; do
		refused 64 "$bad" "$SEMLOCK" -w "$bad" l true
	done
	refused 64 -1 "$SEMLOCK" -w -1 l true
	refused 64 -0.5 "$SEMLOCK" --timeout=-0.5 l true
	[ ! -e l ]
}

@test "a held lock is refused with 1 when the time is up, and not before" {
	hold_lock l
	for wait in .3 300ms 3e-1; do
		before=$(date +%s%N)
		expect_status 1 "$SEMLOCK" -w $wait l touch ran
		expect_silent
		[ $(($(date +%s%N) - before)) -ge 300000000 ]
	done
	[ ! -e ran ]
	let_go
}

@test "-w 0 is -n" {
	hold_lock l
	expect_status 1 "$SEMLOCK" -w 0 l true
	expect_status 1 "$SEMLOCK" -w 0.0 l true
	let_go
	expect_status 0 "$SEMLOCK" -w 0 l true
}

@test "a lock that comes free in time is taken" {
	hold_lock l
	queue_as second -w 60 l
	let_go
	ready second
	let_go second
}

@test "a lock that is free is taken whatever the time" {
	for wait in 0 1e-9 .00001 1ms 1e99 36500d; do
		expect_status 0 "$SEMLOCK" -w $wait l true
	done
}

# outlives: a command whose lock came within the time limit still runs when the limit has passed.
outlives() {
	rm -f ./*.up ./*.down
	hold_lock l
	if ! queue_as second -w "${room}ms" l; then
		let_go # the next try would wait for this holder
		return 1
	fi
	let_go
	ready second || return
	"$PROBE" pause $((room + 200)) # the limit passes while the command runs
	kill -0 "${COMMAND[second]}" && expect_held l && let_go second
}

@test "the time limit is for the wait and not for the command" {
	with_room outlives
}

@test "-E is the status when the time is up" {
	hold_lock l
	expect_status 75 "$SEMLOCK" -w .01 -E 75 l true
	expect_status 0 "$SEMLOCK" -w .01 -E 0 l true
	let_go
}

@test "a very short -w never hangs" {
	hold_lock l
	expect_status 0 "$PROBE" storm "$STORM" 2 "$SEMLOCK" -w 0.00001 l true
	expect_out "1 x $STORM"
	let_go
}

@test "a very short -w never hangs when SIGALRM was blocked" {
	hold_lock l
	expect_status 0 "$PROBE" with-mask ALRM -- \
		"$PROBE" storm "$STORM" 2 "$SEMLOCK" -w 0.00001 l true
	expect_out "1 x $STORM"
	let_go
}

@test "a very short -w never hangs when SIGALRM was ignored" {
	hold_lock l
	expect_status 0 "$PROBE" with-ignored ALRM -- \
		"$PROBE" storm "$STORM" 2 "$SEMLOCK" -w 0.00001 l true
	expect_out "1 x $STORM"
	let_go
}

@test "short waits of all lengths, deep in a queue, never hang" {
	hold_lock l
	queue_as first l
	often 200
	for wait in .000001 .0001 .001 .003; do
		expect_status 0 "$PROBE" storm "$often" 16 "$SEMLOCK" -w $wait l true
		expect_out "1 x $often"
	done
	let_go
	ready first
	let_go first
}

@test "the command's SIGALRM is as it was" {
	for how in with-mask with-ignored; do
		"$PROBE" $how ALRM -- grep '^Sig[BIC]' /proc/self/status >bare
		expect_status 0 "$PROBE" $how ALRM -- "$SEMLOCK" -w 60 l grep '^Sig[BIC]' /proc/self/status
		expect_out "$(cat bare)"
	done
}

@test "an alarm that the caller has set still arrives, and kills the waiter" {
	hold_lock l
	queue_as second -w 60 l
	kill -ALRM "${PID[second]}"
	ended second 142
	let_go
}

@test "where no timer is to be had, a wait that has an end is refused" {
	hold_lock l
	refused 71 "l: " timeout -s KILL 60 prlimit --sigpending=0 "$SEMLOCK" -w 1 l true
	let_go
}

@test "-w ends the wait of a traced semlock, however long each signal takes" {
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	strace -k -o trace true 2>strace.err || skip "strace shows no stacks here: $(tail -1 strace.err)"
	hold_lock l
	expect_status 1 timeout -s KILL 60 strace -k -o trace "$SEMLOCK" -w .2 l true
	signals=$(grep -cE -- '^--- SIG(RT|ALRM|IO)' trace)
	[ "$signals" -ge 1 ]
	[ "$signals" -le 100 ] || complain "$signals signals where some ten do"
}

# leased SECS: another process has a lease on l, and gives it up SECS after it is asked to
leased() {
	rm -f l.*
	: >l
	start lease /usr/bin/python3 "$SOURCE/tests/lib/lease.py" l "$1"
	eventually [ -e l.leased ]
}

@test "a file with a lease (Samba) is waited for; -n is busy, -w times out" {
	leased .3
	expect_status 5 "$SEMLOCK" l sh -c 'exit 5'
	[ -e l.asked ]
	kill "${PID[lease]}"
	ended lease 143
	leased 60
	expect_status 1 "$SEMLOCK" -n l touch ran
	expect_silent
	expect_status 1 "$SEMLOCK" -w .1 l touch ran
	expect_status 1 "$SEMLOCK" -w .1 -f k l touch ran
	start waiter "$SEMLOCK" -w 60 -f k l touch ran
	kill -USR1 "${PID[lease]}"
	ended waiter 0
	[ -e ran ]
	kill "${PID[lease]}"
	ended lease 143
}
