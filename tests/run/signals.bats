#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Signals: semlock passes them on to the command, and the lock outlives the command.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "each signal reaches the command exactly once" {
	report_as holder l
	for name in TERM HUP INT QUIT USR1 USR2 ALRM CONT WINCH TERM; do
		kill -"$name" "${PID[holder]}"
		reports holder "$name"
	done
	# a second copy of a signal would come before these
	kill -USR1 "${PID[holder]}"
	reports holder USR1
	kill -USR2 "${PID[holder]}"
	reports holder USR2
	let_go
}

@test "after TERM the lock is free only when the command has ended" {
	report_as holder l
	kill -TERM "${PID[holder]}"
	reports holder TERM
	expect_held l
	expect_status 1 "$SEMLOCK" -n l true
	kill -0 "${PID[holder]}"
	release holder
	ended holder 0
	expect_free l
}

@test "a command that a signal ends gives 128 and its number" {
	for pair in TERM:143 HUP:129 INT:130 QUIT:131 USR1:138; do
		hold_as "$pair" l
		kill -"${pair%:*}" "${PID[$pair]}"
		ended "$pair" "${pair#*:}"
		"$PROBE" gone "${COMMAND[$pair]}"
		expect_free l
	done
}

# its_end CMD...: prints how CMD ends, as its parent sees the end.  If the file "signal" is there, the parent sends CMD
# the signal that the file names, as soon as the command has written a line to its.up.
its_end() {
	"$PROBE" with-default INT QUIT HUP TERM -- perl -e '
		open my $up, "+<", "its.up" or die;
		my $pid = fork // die;
		if ($pid == 0) { exec @ARGV or die }
		if (open my $how, "<", "signal") {
			my $line = "";
			vec($line, fileno $up, 1) = 1;
			until (select(my $came = $line, undef, undef, .01)) {
				next unless waitpid $pid, 1;
				print "the end came before the line\n";
				exit;
			}
			kill scalar(<$how>) =~ s/\s//r, $pid;
		}
		waitpid $pid, 0;
		print $? & 128 ? "core" : $? & 127 ? "signal " . ($? & 127) : "exit " . ($? >> 8), "\n"' "$@" 3>&- 4>&-
}

# dies_of SIGNAL NUMBER SEMLOCK...: SIGNAL, sent to semlock, ends the command and then semlock.
dies_of() {
	local said
	echo "$1" >signal
	said=$(ulimit -c unlimited; its_end "${@:3}" sh -c 'echo running >its.up; exec cat its.down')
	[ "$said" = "signal $2" ] || complain "${*:3}: $said instead of signal $2"
}

@test "a signal that ends the command ends semlock, too, without a core file" {
	fifos its
	for way in "" -o --run-timeout=60 "-m ofd" "-m posix" "-m mkdir" "-m symlink" "-j 2"; do
		for pair in "TERM 15" "INT 2" "QUIT 3" "USR1 10"; do
			# shellcheck disable=SC2086 # words
			dies_of $pair "$SEMLOCK" $way "l${way: -1}"
		done
	done
	dies_of TERM 15 "$FLOCK" l
	dies_of TERM 15 "$SEMLOCK" l "$SEMLOCK" --nested l
	expect_free l
	[ ! -e lr ] && [ ! -L lk ]
}

@test "a signal that only the command gets is an exit of semlock" {
	fifos its
	rm -f signal
	[ "$(its_end "$SEMLOCK" l sh -c 'kill -SEGV $$')" = "exit 139" ]
	[ "$(its_end "$SEMLOCK" l sh -c 'kill -TERM $$')" = "exit 143" ]
	[ "$(its_end "$SEMLOCK" --run-timeout=.1 l sh -c 'exec cat its.down')" = "exit 124" ]
	echo INT >signal
	for status in 130 0; do
		said=$(its_end "$SEMLOCK" l perl -e '$SIG{INT} = sub { exit '$status' };
			open my $up, ">", "its.up"; print $up "running\n"; close $up; sleep 1 while 1')
		[ "$said" = "exit $status" ] || complain "$said instead of exit $status"
	done
}

limit_after_signal() {
	said=$(its_end "$SEMLOCK" --run-timeout="${room}ms" l perl -e '$SIG{USR1} = "IGNORE";
		open my $up, ">", "its.up"; print $up "running\n"; close $up; sleep 1 while 1')
	[ "$said" = "exit 124" ] || complain "$said"
}

@test "a limit's signal is 124 also where semlock got another one before" {
	fifos its
	echo USR1 >signal
	with_room limit_after_signal
}

# unshare(1) of util-linux 2.36 hands down that it ignores INT and TERM.
as_process_1=(unshare --pid --fork "$PROBE" with-default INT TERM -- "$SEMLOCK")

@test "as process 1 of a container, semlock exits with 128 and the number" {
	namespaces --pid --fork
	fifos holder
	start holder "${as_process_1[@]}" l "$PROBE" hold holder.up holder.down
	next_line holder
	kill -TERM "$(pgrep -P "${PID[holder]}")"
	ended holder 143
	expect_free l
}

@test "as process 1 of a container, a waiter dies of signals it does not ignore" {
	namespaces --pid --fork
	hold_lock l
	for signal in HUP INT QUIT TERM; do
		start waiter env --default-signal "${as_process_1[@]}" l true
		eventually pgrep -P "${PID[waiter]}"
		"$PROBE" blocked "$(pgrep -P "${PID[waiter]}")"
		kill -"$signal" "$(pgrep -P "${PID[waiter]}")"
		ended waiter $((128 + $(kill -l "$signal")))
	done
	start waiter env --ignore-signal=HUP "${as_process_1[@]}" l true
	eventually pgrep -P "${PID[waiter]}"
	"$PROBE" blocked "$(pgrep -P "${PID[waiter]}")"
	kill -HUP "$(pgrep -P "${PID[waiter]}")"
	let_go
	ended waiter 0
}

@test "KILL to semlock: the lock is not free while the command lives" {
	hold_lock l
	kill -KILL "${PID[holder]}"
	ended holder 137
	kill -0 "${COMMAND[holder]}"
	expect_held l
	expect_status 1 "$SEMLOCK" -n l true
	queue_as second l
	release holder
	ready second
	let_go second
}

@test "KILL to the command: semlock says so, and the lock is free" {
	hold_lock l
	kill -KILL "${COMMAND[holder]}"
	ended holder 137
	expect_free l
}

@test "a command that closes all descriptors keeps the lock to the end" {
	fifos holder
	start holder "$SEMLOCK" l "$PROBE" closefrom-then-hold holder.up holder.down
	ready holder
	expect_held l
	expect_status 1 "$SEMLOCK" -n l true
	let_go
	expect_free l
}

@test "signals that were ignored stay ignored" {
	"$PROBE" with-ignored INT QUIT HUP TERM USR1 PIPE TSTP -- grep '^SigIgn' /proc/self/status >bare
	expect_status 0 "$PROBE" with-ignored INT QUIT HUP TERM USR1 PIPE TSTP -- \
		"$SEMLOCK" -w 5 l grep '^SigIgn' /proc/self/status
	expect_out "$(cat bare)"
	fifos holder
	start holder "$PROBE" with-ignored INT HUP -- "$SEMLOCK" l "$PROBE" hold holder.up holder.down
	ready holder
	kill -INT "${PID[holder]}"
	kill -HUP "${PID[holder]}"
	kill -INT "${COMMAND[holder]}"
	expect_held l
	let_go
}

@test "nothing is ignored that was not" {
	grep '^Sig[IC]' /proc/self/status >bare
	expect_status 0 "$SEMLOCK" l grep '^Sig[IC]' /proc/self/status
	expect_out "$(cat bare)"
}

@test "the command's signal mask is the caller's" {
	grep '^SigBlk' /proc/self/status >bare
	expect_status 0 "$SEMLOCK" l grep '^SigBlk' /proc/self/status
	expect_out "$(cat bare)"
	"$PROBE" with-mask USR1 CHLD TERM ALRM -- grep '^SigBlk' /proc/self/status >bare
	expect_status 0 "$PROBE" with-mask USR1 CHLD TERM ALRM -- \
		"$SEMLOCK" -w 5 l grep '^SigBlk' /proc/self/status
	expect_out "$(cat bare)"
}

@test "semlock works when SIGCHLD was blocked or ignored" {
	expect_status 3 "$PROBE" with-mask CHLD -- "$SEMLOCK" l sh -c 'exit 3'
	expect_status 3 "$PROBE" with-ignored CHLD -- "$SEMLOCK" l sh -c 'exit 3'
	expect_status 3 "$PROBE" with-mask CHLD -- "$SEMLOCK" -o l sh -c 'exit 3'
}

@test "an ignored SIGCHLD is not passed on to the command, whatever the way" {
	for way in "" -o -F "-m posix" "-m mkdir" "-m excl"; do
		# shellcheck disable=SC2086 # words
		expect_status 0 "$PROBE" with-ignored CHLD USR1 -- "$SEMLOCK" $way "l${way: -1}" grep '^SigIgn' /proc/self/status
		[ $((0x${out##*[[:space:]]} & (1 << 16 | 1 << 9))) -eq $((1 << 9)) ] || complain "$way: $out"
	done
	expect_status 0 "$PROBE" with-ignored CHLD -- "$FLOCK" l grep '^SigIgn.*[02468ace]....$' /proc/self/status
}

@test "without sigwaitinfo signals are passed on, and the CPU stays idle" {
	command -v strace >/dev/null || skip "no strace here"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	fifos holder
	began=$SECONDS
	start holder strace -D -qq -o trace -e trace=rt_sigtimedwait -e inject=rt_sigtimedwait:error=EPERM \
		"$SEMLOCK" l "$PROBE" signals holder.up holder.down
	ready holder
	for name in USR1 TERM USR1; do
		kill -"$name" "${PID[holder]}"
		reports holder "$name"
	done
	"$PROBE" pause 500
	let_go
	[ "$(grep -c EPERM trace)" -lt $((1000 + 100 * (SECONDS - began))) ] || complain "$(wc -l <trace) calls"
	start holder strace -D -qq -o trace -e trace=rt_sigtimedwait -e inject=rt_sigtimedwait:error=EPERM \
		"$SEMLOCK" --run-timeout=.1 l "$PROBE" hold holder.up holder.down
	ended holder 124
}

@test "without sigwaitinfo a waiter with -v gets its lock" {
	command -v strace >/dev/null || skip "no strace here"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hold_lock l
	start waiter strace -D -qqf -o trace -e trace=rt_sigtimedwait -e inject=rt_sigtimedwait:error=EPERM \
		"$SEMLOCK" -v l touch ran
	"$PROBE" blocked "${PID[waiter]}"
	let_go
	eventually [ -e ran ]
	ended waiter 0
}

@test "a signal ends the wait, and the others in line are served" {
	for pair in TERM:143 HUP:129 INT:130; do
		hold_as holder l
		queue_as "$pair" l
		queue_as last l
		kill -"${pair%:*}" "${PID[$pair]}"
		ended "$pair" "${pair#*:}"
		let_go
		ready last
		let_go last
		rm ./*.up ./*.down
	done
}

@test "a command that ends at once is not missed" {
	often 1000
	expect_status 0 "$PROBE" storm "$often" 2 "$SEMLOCK" -w 60 "$PWD/l" true
	expect_out "0 x $often"
	expect_status 0 "$PROBE" storm "$often" 2 "$SEMLOCK" "$PWD/l" false
	expect_out "1 x $often"
}

@test "signals in a storm: no command is left behind, and the lock is free" {
	for n in 1 2 3 4 5 6 7 8 9 10; do
		start "run$n" "$SEMLOCK" l "$PROBE" inside room 1000000000
	done
	eventually [ -e l ]
	for n in 1 2 3 4 5 6 7 8 9 10; do
		kill -TERM "${PID[run$n]}"
		ended "run$n" 143
	done
	expect_free l
	expect_status 0 "$SEMLOCK" -n l true
}

@test "two threads write to a pipe without a reader: SIGPIPE stays as it was" {
	expect_status 0 "${PROBE%/*}/tools/two-writers"
	expect_out "wrong 0, ignored 0, pending 0, blocked 0"
}
