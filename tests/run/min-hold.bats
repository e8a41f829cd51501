#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --min-hold: the lock is kept until it has been held for so long, even if the command ends sooner.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# one_is_left: two of the three have ended; the name of the third is in $left
one_is_left() {
	left=
	for one in a b c; do
		if kill -0 "${PID[$one]}" 2>/dev/null; then left+=$one; fi
	done
	[ ${#left} -eq 1 ]
}

# contenders ARGS...: three semlocks at once, each with -n and --min-hold.  One of them runs its command; the others,
# however late they come, find the lock busy until the first is told to end
contenders() {
	: >runs
	for one in a b c; do
		start $one "$SEMLOCK" -n --min-hold=1h "$@" sh -c 'echo ran >>runs'
	done
	eventually one_is_left
	for one in a b c; do
		[ "$one" = "$left" ] || ended "$one" 1
	done
	eventually [ -s runs ]
	kill -TERM "${PID[$left]}"
	wait "${PID[$left]}" || [ $? -eq 143 ] # the signal may have reached the command
	[ "$(wc -l <runs)" -eq 1 ] || complain "$*: $(wc -l <runs) runs"
}

@test "of three that start at once one runs, by each method" {
	"$SEMLOCK" --init -m rename rename true
	for method in flock ofd posix excl link mkdir symlink rename; do
		contenders -m $method $method
		expect_status 0 "$SEMLOCK" -n --min-hold=.05 -m $method $method true
		expect_status 0 "$SEMLOCK" -n -m $method $method true
	done
	contenders -o close
	contenders -f one two
}

# held_for ARGS...: sets $held to the milliseconds for which the lock was held; the status is semlock's
held_for() {
	capture "$SEMLOCK" --status-fd=7 "$@" 7>events
	held=$(sed -n 's/.* held=\([0-9]*\)\.\([0-9]*\)$/\1\2/p' events)
	held=$((10#$held))
}

# held_briefly: the lock is held for a second, and not for half a second more.  On a busy machine semlock may be late.
held_briefly() {
	held_for --min-hold=1 l true
	[ "$held" -lt 1500 ]
}

@test "the lock is held for no longer than that" {
	eventually held_briefly
}

@test "the status is the command's; a command that takes longer ends at once" {
	held_for --min-hold=.3 l sh -c 'exit 7'
	[ "$status" -eq 7 ]
	[ "$held" -ge 300 ]
	held_for --min-hold=300ms l sh -c 'kill -KILL $$'
	[ "$status" -eq 137 ]
	[ "$held" -ge 300 ]
	held_for --min-hold=.3 --run-timeout=.1 l sleep 60
	[ "$status" -eq 124 ]
	[ "$held" -ge 300 ]
	held_for --min-hold=.1 l sleep .3
	[ "$held" -lt 30000 ]
	held_for l true
	[ "$held" -lt 30000 ]
}

@test "a command that is not there is no reason to keep others from theirs" {
	expect_status 127 timeout "$PATIENCE" "$SEMLOCK" --min-hold=1h l nosuch
}

# waits_on: the command has ended, and the lock is still held
waits_on() {
	eventually [ -s runs ]
	"$PROBE" gone "$(cat runs)"
	expect_status 1 "$SEMLOCK" -n "${lock[@]}" true
}

@test "a signal ends the wait, and the status is the command's all the same" {
	for signal in TERM INT HUP QUIT; do
		for method in flock symlink posix; do
			rm -f runs
			lock=(-m "$method" "$method")
			start one "$SEMLOCK" --min-hold=1h "${lock[@]}" sh -c 'echo $$ >runs; exit 4'
			waits_on
			kill -$signal "${PID[one]}"
			ended one 4
			expect_status 0 "$SEMLOCK" -n "${lock[@]}" true
		done
	done
}

@test "one that is ignored does not: nohup" {
	lock=(l)
	start one "$PROBE" with-ignored HUP -- "$SEMLOCK" --min-hold=1h l sh -c 'echo $$ >runs'
	waits_on
	kill -HUP "${PID[one]}"
	"$PROBE" state "${PID[one]}" S
	expect_status 1 "$SEMLOCK" -n l true
	kill -TERM "${PID[one]}"
	ended one 0
	fifos two
	start two "$PROBE" with-ignored HUP -- "$SEMLOCK" --min-hold=1h l "$PROBE" hold two.up two.down
	ready two
	kill -HUP "${PID[two]}" # while the command runs
	release two
	"$PROBE" gone "${COMMAND[two]}"
	expect_status 1 "$SEMLOCK" -w .3 l true
	kill -TERM "${PID[two]}"
	ended two 0
}

@test "Ctrl-Z stops it, when the command has ended as well" {
	lock=(l)
	# The group's parent is of the same session, too: in an orphaned group the kernel drops the signal.
	# shellcheck disable=SC2016 # for the inner shell
	start one perl -e 'setpgrp(0, 0); exec @ARGV' "$SEMLOCK" --min-hold=1h l sh -c 'echo $$ >runs'
	waits_on
	eventually has_ended "$(cat runs)"
	kill -TSTP "${PID[one]}"
	"$PROBE" state "${PID[one]}" T
	kill -TERM "${PID[one]}"
	kill -CONT "${PID[one]}"
	ended one 0
}

@test "semlock that was told to end while the command ran does not wait" {
	hold_lock --min-hold=1h l
	kill -TERM "${PID[holder]}"
	ended holder 143
}

@test "-o: if the outer process is killed, the lock is let go" {
	lock=(l)
	start one "$SEMLOCK" -o --min-hold=1h l sh -c 'echo $$ >runs'
	waits_on
	kill -KILL "${PID[one]}"
	expect_status 0 "$SEMLOCK" -w 30 l true
}

# has_ended PID: of a process whose parent may not have waited for it
has_ended() {
	[ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"
}

@test "semlock holds the lock after its command: --who, --replace know it" {
	"$SEMLOCK" --init -m rename rename true
	for method in flock excl link mkdir symlink rename; do
		lock=(-m "$method" "$method")
		for preempt in --replace --toggle; do
			rm -f runs
			start one "$SEMLOCK" --min-hold=1h "${lock[@]}" sh -c 'echo $$ >runs; exit 4'
			waits_on
			eventually has_ended "$(cat runs)"
			expect_status 1 "$SEMLOCK" --who "${lock[@]}"
			grep -q "^held *${PID[one]} " .out || complain "$out"
			refused 1 "held by ${PID[one]} (semlock --min-hold" "$SEMLOCK" -v -n "${lock[@]}" true
			expect_status 0 "$SEMLOCK" $preempt "${lock[@]}" true
			ended one 4
		done
	done
	rm -f runs
	report_as one --min-hold=1h -m symlink l
	start two "$SEMLOCK" -m symlink --replace l true
	reports one TERM
	kill -KILL "${COMMAND[one]}"
	ended two 0
	ended one 137
}

@test "signs of life go on" {
	lock=(-m mkdir l)
	start one "$SEMLOCK" --stale=.4 --min-hold=1h "${lock[@]}" sh -c 'echo $$ >runs'
	waits_on
	touch -d '1 hour ago' l
	eventually [ l -nt runs ]
	kill -TERM "${PID[one]}"
	ended one 0
}

@test "--hold and --nested have it, too" {
	: >.out
	held_for --hold --min-hold=.3 l < <(until_ok)
	[ "$status" -eq 0 ]
	[ "$held" -ge 300 ]
	expect_status 0 "$SEMLOCK" --status-fd=7 l "$SEMLOCK" --nested --min-hold=.3 l true 7>events
	[ "$(sed -n 's/.* held=//p' events | tr -d .)" -ge 300 ]
}

@test "refused where semlock does not stay" {
	refused 64 --min-hold "$SEMLOCK" --min-hold=1 -F l touch ran
	refused 64 --min-hold "$SEMLOCK" --min-hold=1 8 8>l
	refused 64 --min-hold "$SEMLOCK" --min-hold=1 -u --fd=8 touch ran 8>l
	refused 64 --min-hold "$SEMLOCK" --min-hold=0 l touch ran
	refused 64 --min-hold "$SEMLOCK" --min-hold=-1 l touch ran
	[ ! -e ran ]
}
