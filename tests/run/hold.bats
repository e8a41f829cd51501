#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --hold: a lock for programs in other languages; OK on standard output, let go at end of input.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# holding NAME ARG...: starts semlock --hold, and returns at its OK; its input is the FIFO NAME.in, open as $in.
holding() {
	local name=$1
	shift
	mkfifo "$name.in" "$name.up"
	"$PROBE" with-default INT QUIT HUP TERM -- "$SEMLOCK" --hold "$@" <"$name.in" >"$name.up" 2>"$name.err" 3>&- 4>&- &
	PID["$name"]=$!
	: >"$name.out"
	exec {in}>"$name.in"
	exec {up}<"$name.up"
	read -r -t "$PATIENCE" line <&"$up"
	[ "$line" = "${OK:-OK}" ] || complain "it said '$line'" "$(cat "$name.err")"
}

@test "--hold says OK, holds, and lets go at the end of its input, whatever the method" {
	for method in flock ofd posix excl link mkdir rename symlink; do
		args="-m $method"
		[ "$method" != rename ] || args="$args --init"
		# shellcheck disable=SC2086 # several words
		holding $method $args $method.lock
		expect_status 1 "$SEMLOCK" -n -m "$method" "$method".lock true
		exec {in}>&-
		ended "$method" 0
		expect_status 0 "$SEMLOCK" -n -m "$method" "$method".lock true
	done
}

# The placeholder is forked while its semlock has a ticket, and never calls exec.
@test "a holder keeps no place in the queue" {
	local child
	hold_lock -m excl l
	mkfifo waiter.in
	exec {in}<>waiter.in
	start waiter sh -c 'exec "$1" --hold -m excl l <waiter.in' - "$SEMLOCK"
	"$PROBE" blocked "${PID[waiter]}"
	let_go
	until [ "$(cat waiter.out)" = OK ]; do kill -0 "${PID[waiter]}"; done
	child=$(pgrep -P "${PID[waiter]}")
	! grep OFDLCK "/proc/$child/fdinfo"/* || complain "it has a ticket"
	exec {in}>&-
	kill "${PID[waiter]}"
	ended waiter 143
}

@test "--hold lets go when its parent is killed, though its input stays open" {
	for method in flock posix excl; do
		mkfifo $method.in $method.up
		exec {in}<>$method.in {up}<>$method.up
		start parent sh -c '"$1" --hold -m "$2" "$2.lock" <"$2.in" >"$2.up"; :' - "$SEMLOCK" $method
		read -r -t "$PATIENCE" line <&"$up"
		[ "$line" = OK ]
		expect_status 1 "$SEMLOCK" -n -m $method $method.lock true
		kill -KILL "${PID[parent]}"
		expect_status 0 "$SEMLOCK" -w 60 -m $method $method.lock true
		exec {in}>&- {up}>&-
	done
}

@test "lines written to --hold are read and mean nothing" {
	holding one l
	printf 'a line\n' >&"$in"
	expect_status 1 "$SEMLOCK" -n l true
	exec {in}>&-
	ended one 0
}

@test "--hold says which slot it has" {
	for method in flock ofd posix; do
		OK="OK slot=0" holding "${method}0" -m "$method" -j 2 "$method".lock
		zero=$in
		OK="OK slot=1" holding "${method}1" -m "$method" -j 2 "$method".lock
		exec {in}>&-
		ended "${method}1" 0
		exec {zero}>&-
		ended "${method}0" 0
	done
}

@test "the slot and the token of an outer lock are none of its own" {
	OK=OK SEMLOCK_SLOT=3 SEMLOCK_TOKEN=4 holding inner l
	exec {in}>&-
	ended inner 0
}

@test "a busy lock is busy: no OK, status 1" {
	hold_lock l
	expect_status 1 "$SEMLOCK" --hold -n l </dev/null
	expect_out ""
	expect_status 1 "$SEMLOCK" --hold -w 0.1 l </dev/null
	expect_out ""
}

@test "TERM ends it, and the lock is free" {
	for method in flock posix excl; do
		holding $method -m $method $method.lock
		kill -TERM "${PID[$method]}"
		ended $method 143
		exec {in}>&-
		expect_status 0 "$SEMLOCK" -n -m $method $method.lock true
	done
}

@test "an output that no process reads: no lock is kept" {
	for how in '>/dev/full' '>&-'; do
		if [ "$how" = '>&-' ] && under_valgrind; then continue; fi # valgrind takes the number itself
		expect_status 71 bash -c "\"\$1\" --hold l < <(exec sleep 60) $how" - "$SEMLOCK"
		[[ $err == "semlock: cannot write to standard output"* ]] || complain "$how: $err"
		expect_free l
	done
	expect_status 0 "$SEMLOCK" -n l true
}

@test "an input that is at its end already: 64 instead of OK, and the lock is free" {
	: >file
	for input in /dev/null file; do
		expect_status 64 "$SEMLOCK" --hold l <"$input"
		expect_out ""
		[[ $err == "semlock: --hold: standard input is at its end"* ]] || complain "$input: $err"
		expect_status 0 "$SEMLOCK" -n l true
	done
	mkfifo pipe
	sh -c : >pipe &
	exec 8<pipe
	wait $!
	# hung up while it still waits, it ends as by TERM
	capture "$SEMLOCK" --hold l <&8
	[ "$status" -eq 64 ] || [ "$status" -eq 143 ] || complain "$status: $out"
	expect_out ""
	expect_status 64 "$SEMLOCK" --hold l <&-
	expect_status 0 "$SEMLOCK" -n l true
}

@test "shared, slots and several locks are held as well" {
	holding one -s l
	expect_status 0 "$SEMLOCK" -n -s l true
	expect_status 1 "$SEMLOCK" -n l true
	exec {in}>&-
	ended one 0
	holding two -f b a
	expect_status 1 "$SEMLOCK" -n a true
	expect_status 1 "$SEMLOCK" -n b true
	exec {in}>&-
	ended two 0
}

@test "what makes no sense with it is refused" {
	refused 64 "no command" "$SEMLOCK" --hold l true
	refused 64 "-F" "$SEMLOCK" --hold -F l
	refused 64 "--toggle" "$SEMLOCK" --hold --toggle l
	refused 64 "--nested" "$SEMLOCK" --hold --nested l
	refused 64 "-u" "$SEMLOCK" --hold -u l
	refused 64 "--run-timeout" "$SEMLOCK" --hold --run-timeout=1 l
	refused 64 "descriptor" "$SEMLOCK" --hold --fd=0
	[ ! -e l ]
}

@test "--hold gives up its place when its owner has gone" {
	hold_lock l
	mkfifo in
	start waiter sh -c 'exec "$1" --hold l <in' - "$SEMLOCK"
	exec {in}>in
	"$PROBE" blocked "${PID[waiter]}"
	exec {in}>&-
	ended waiter 143
	[ ! -s waiter.out ]
	let_go
	expect_free l
}

# The test's shell keeps the pipe open.
@test "--hold gives up its place also where TERM is ignored" {
	hold_lock l
	mkfifo in
	start waiter "$PROBE" with-ignored TERM -- sh -c 'exec "$0" --hold l <in' "$SEMLOCK"
	exec 9>in
	"$PROBE" blocked "${PID[waiter]}"
	exec 9>&-
	ended waiter 143
	let_go
}

@test "--hold=PID: the end of the owner is the end of the lock, whichever process has the pipe" {
	fifos owner
	start owner "$PROBE" hold owner.up owner.down
	ready owner
	for method in flock excl; do
		holding $method --hold="${PID[owner]}" -m $method $method.lock
	done
	expect_status 1 "$SEMLOCK" -n flock.lock true
	release owner
	ended owner 0
	ended flock 0
	ended excl 0
	expect_status 0 "$SEMLOCK" -n flock.lock true
	expect_status 0 "$SEMLOCK" -n -m excl excl.lock true
}

@test "--hold=PID: the end of the owner is the end of the wait" {
	hold_lock l
	fifos owner
	start owner "$PROBE" hold owner.up owner.down
	ready owner
	mkfifo in
	start waiter sh -c 'exec "$1" --hold="$2" l <in' - "$SEMLOCK" "${PID[owner]}"
	exec {in}>in
	"$PROBE" blocked "${PID[waiter]}"
	kill -KILL "${PID[owner]}"
	ended waiter 143
}

@test "--hold=PID of no process is refused" {
	refused 64 "--hold x: not a process number" "$SEMLOCK" --hold=x l
	refused 64 "--hold 0: not a process number" "$SEMLOCK" --hold=0 l
	true & gone=$!
	wait $gone
	refused 64 "no such process" "$SEMLOCK" --hold=$gone l
	[ ! -e l ]
}
