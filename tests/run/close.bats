#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -o: what the command leaves behind does not keep the lock.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

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

# hold_with_stray ARGS...: the command runs the probe, and a process that nothing ties to the probe (see stray.py).
hold_with_stray() {
	fifos holder
	start holder "$SEMLOCK" "$@" l sh -c "/usr/bin/python3 '$SOURCE/tests/lib/stray.py' stray &&
		'$PROBE' hold holder.up holder.down; exit"
	ready holder
}

@test "semlock killed, -o or posix: all that it started ends before the next" {
	for way in -o "-m posix" "-o --fcntl" "-o -m excl" "-o -m mkdir" "-o -m symlink"; do
		# shellcheck disable=SC2086 # words
		hold_with_stray $way
		method=${way#-o}
		# shellcheck disable=SC2086 # words
		start next "$SEMLOCK" -w 60 ${method:-$way} l sh -c "$(none_runs "$(cat stray)" "${COMMAND[holder]}") && touch alone"
		"$PROBE" pause 100
		kill -KILL "${PID[holder]}"
		ended holder 137
		ended next 0 || complain "$way"
		[ -e alone ]
		rm -rf l stray alone ./*.up ./*.down
	done
}

# A program that ends as soon as it has forked, again and again, for a minute; while it does, the file "alive" comes back.
write_hopper() {
	cat >hopper <<-'END'
		import os, signal, time
		signal.signal(signal.SIGTERM, signal.SIG_IGN)
		if os.fork(): os._exit(0)
		os.setsid()
		os.closerange(0, 1024)
		end = time.time() + 60
		while time.time() < end:
		    if os.fork(): os._exit(0)
		    os.close(os.open("alive", os.O_WRONLY | os.O_CREAT))
	END
}

@test "semlock killed: processes that fork quickly are gone before the next" {
	write_hopper
	for way in -o "-m posix"; do
		# shellcheck disable=SC2086 # words
		start holder "$SEMLOCK" $way l sh -c '/usr/bin/python3 hopper; exec sleep 1000'
		eventually [ -e alive ]
		kill -KILL "${PID[holder]}"
		ended holder 137
		# shellcheck disable=SC2086 # words
		expect_status 0 "$SEMLOCK" ${way#-o} -w 60 l sh -c 'rm -f alive; "$0" pause 300; [ ! -e alive ]' "$PROBE"
		rm -f alive l
	done
}

@test "semlock killed: likewise after PIDs have wrapped around" {
	without_leak_check
	namespaces --pid --fork --mount-proc
	write_hopper
	expect_status 0 unshare --pid --fork --kill-child --mount-proc bash -ec '
		echo 30000 >/proc/sys/kernel/ns_last_pid
		for _ in {1..400}; do "$1" pause 1000000 & done
		echo 300 >/proc/sys/kernel/ns_last_pid
		"$0" -o l sh -c "/usr/bin/python3 hopper; exec sleep 1000" &
		until [ -e alive ]; do :; done
		kill -KILL $!
		"$0" l cut -d " " -f 5 /proc/loadavg >last' "$SEMLOCK" "$PROBE"
	[ "$(cat last)" -lt 20000 ] || complain "it went on to PID $(cat last)"
}

@test "semlock killed while it is stopped: likewise" {
	hold_with_stray -o
	kill -STOP "$(pgrep -P "${PID[holder]}")"
	kill -KILL "${PID[holder]}"
	ended holder 137
	expect_status 0 "$SEMLOCK" -w 60 l sh -c "$(none_runs "$(cat stray)" "${COMMAND[holder]}") && touch alone"
	[ -e alone ]
}

@test "inner semlock killed: the outer ends the rest, and no other child" {
	for way in -o "-m posix"; do
		fifos holder
		# shellcheck disable=SC2086 # words
		start holder sh -c 'sleep 1000 & echo $! >elder; exec "$@"' sh "$SEMLOCK" $way l \
			sh -c "/usr/bin/python3 '$SOURCE/tests/lib/stray.py' stray && '$PROBE' hold holder.up holder.down; exit"
		ready holder
		eventually grep -qx sleep "/proc/$(cat elder)/comm" # until its exec the process has the shell's command line
		kill -KILL "$(pgrep -P "${PID[holder]}" -f "semlock $way")"
		ended holder 137
		sh -c "$(none_runs "$(cat stray)" "${COMMAND[holder]}")" || complain "a process of the command runs"
		kill -0 "$(cat elder)"
		kill "$(cat elder)"
		expect_free l
		rm -rf l stray ./*.up ./*.down
	done
}

@test "inner semlock killed: what its command started ends, other jobs do not" {
	for way in -o "-m posix"; do
		# shellcheck disable=SC2086 # words
		start holder sh -c 'sleep 1000 & echo $! >elder; exec "$@"' sh "$SEMLOCK" $way l \
			sh -c 'sleep 1000 & echo $! >stray; echo $$ >command; wait'
		eventually [ -s command ]
		kill -KILL "$(pgrep -P "${PID[holder]}" -f "semlock $way")"
		ended holder 137
		sh -c "$(none_runs "$(cat stray)" "$(cat command)")" || complain "a process of the command runs"
		kill "$(cat elder)"
		expect_free l
		rm l stray command
	done
}

@test "killed while it waits, semlock -o leaves no process behind" {
	hold_lock l
	start waiter "$SEMLOCK" -o l touch ran
	eventually pgrep -P "${PID[waiter]}" >inner
	"$PROBE" blocked "$(cat inner)"
	kill -KILL "${PID[waiter]}"
	ended waiter 137
	"$PROBE" gone "$(cat inner)"
	let_go
	[ ! -e ran ]
}

@test "a signal that ends a waiting semlock -o ends it as without -o" {
	hold_lock l
	start waiter "$SEMLOCK" -o l true
	eventually pgrep -P "${PID[waiter]}" >inner
	"$PROBE" blocked "$(cat inner)"
	kill -TERM "${PID[waiter]}"
	ended waiter 143
}

@test "-o works in a PID namespace of its own; the command dies with semlock" {
	namespaces --pid
	without_leak_check
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
