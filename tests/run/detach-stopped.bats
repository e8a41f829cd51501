#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --detach and --resume: the call that waits in the foreground is stopped (Ctrl-Z, SIGSTOP) while its turn comes.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/holds

prepare() {
	holds_prepare
	new_owner
}
tidy() { holds_tidy; }

# busy_lock: another process has lock l
busy_lock() {
	rm -f holder.*
	hold_lock l
}

# stopped_call ARGS...: PID[call] waits for lock l, and is stopped.  (TSTP, of Ctrl-Z, is the same, but where the tests'
# process group is orphaned, the kernel discards it.)
stopped_call() {
	start call "$SEMLOCK" "$@" l
	if [[ $1 == --resume* ]]; then
		eventually test -s call.err # -v: what it waits for
	else
		eventually sh -c '"$0" --who l | grep -q "1 waiting"' "$SEMLOCK"
	fi
	kill -STOP "${PID[call]}"
	"$PROBE" state "${PID[call]}" T
}

# patient_keepers: from now on, a keeper waits ten minutes for a stopped call instead of five seconds.
patient_keepers() {
	SEMLOCK=$CRASHABLE_SEMLOCK
	export SEMLOCK_CRASH=detach.patience:fail=1
}

# its_turn: the process in the background has taken lock l
its_turn() {
	let_go
	eventually sh -c '"$0" --who l | grep -q "held .* $1 .*sleep infinity"' "$SEMLOCK" "$owner"
}

# passed_on: another waiter, who came later, enters in spite of the stopped call
passed_on() {
	expect_status 0 "$SEMLOCK" -w 60 l true
}

@test "a call that is stopped for a moment as its turn comes holds the lock: OK" {
	patient_keepers
	busy_lock
	stopped_call --hold="$owner" --detach
	its_turn
	kill -CONT "${PID[call]}"
	ended call 0
	id=$(sed -n 's/^OK id=//p' call.out)
	expect_status 1 "$SEMLOCK" -n l true
	expect_status 0 "$SEMLOCK" --release="$id" l
}

# replaced N PID: a program holds lock l, and N times replaces its file, which process PID waits for, by another one that it
# holds: each time PID waits anew.  It prints "replaced", and releases the last one at a line of its input.
replaced() {
	exec /usr/bin/python3 - "$@" 3<&0 <<-'END'
		import fcntl, os, sys, time

		def hold_new():
		    file = os.open("new", os.O_RDWR | os.O_CREAT)
		    fcntl.flock(file, fcntl.LOCK_EX)
		    os.rename("new", "l")
		    return file

		def waits_for(file):
		    inode = os.fstat(file).st_ino
		    for fd in os.listdir(f"/proc/{pid}/fd"):
		        try:
		            if os.stat(f"/proc/{pid}/fd/{fd}").st_ino == inode:
		                return True
		        except OSError:
		            pass
		    return False

		file = hold_new()
		print("held", flush=True)
		pid = os.read(3, 100).decode().strip()
		for _ in range(int(sys.argv[1])):
		    last, file = file, hold_new()
		    os.close(last)
		    while not waits_for(file):
		        time.sleep(.0005)
		    time.sleep(.001)
		print("replaced", flush=True)
		os.read(3, 100)
	END
}

@test "a call stopped while the lock changes hands 1,000 times still gets OK" {
	mkfifo in
	replaced 1000 <in >said 3>&- 4>&- &
	exec 8>in
	eventually grep -q held said
	stopped_call --hold="$owner" --detach
	keeper=$(pgrep -f -P "${PID[call]}" -- --detach)
	pgrep -P "$keeper" >&8
	eventually grep -q replaced said
	echo >&8
	eventually sh -c '"$0" --who l | grep -q "held .* $1 .*sleep infinity"' "$SEMLOCK" "$owner"
	kill -CONT "${PID[call]}"
	eventually grep -q ^OK call.out
	ended call 0
	id=$(sed -n 's/^OK id=//p' call.out)
	expect_status 0 "$SEMLOCK" --release="$id" l
}

@test "a keeper stopped while the lock changes hands 1,000 times: OK afterwards" {
	mkfifo in
	replaced 1000 <in >said 3>&- 4>&- &
	exec 8>in
	eventually grep -q held said
	start call "$SEMLOCK" --hold="$owner" --detach l
	eventually sh -c '"$0" --who l | grep -q "1 waiting"' "$SEMLOCK"
	keeper=$(pgrep -f -P "${PID[call]}" -- --detach)
	pgrep -P "$keeper" >waiter
	kill -STOP "$keeper"
	"$PROBE" state "$keeper" T
	cat waiter >&8
	eventually grep -q replaced said
	echo >&8
	eventually sh -c '"$0" --who l | grep -q "held .* $1 .*sleep infinity"' "$SEMLOCK" "$owner"
	kill -CONT "$keeper"
	ended call 0
	id=$(sed -n 's/^OK id=//p' call.out)
	expect_status 0 "$SEMLOCK" --release="$id" l
}

@test "a call stopped past its turn is passed, and exits with 76 afterwards" {
	busy_lock
	stopped_call --hold="$owner" --detach --log=log
	let_go
	passed_on
	eventually nothing_but_the_call
	grep -qF '"outcome": "abandoned"}' log || complain "$(cat log)"
	kill -CONT "${PID[call]}"
	ended call 76
	[ ! -s call.out ] || complain "it said $(cat call.out)"
	[ "$(cat call.err)" = "semlock: l: its turn came while this call was stopped, and has passed" ] ||
		complain "$(cat call.err)"
	rm log
}

# nothing_but_the_call: of the hold no process is left
nothing_but_the_call() {
	[ "$(pgrep -f -- "--hold=$owner --detach")" = "${PID[call]}" ]
}

@test "the same with a kept place: no place is left that nobody knows" {
	busy_lock
	stopped_call --hold="$owner" --detach --keep-place -w 60
	let_go
	passed_on
	kill -CONT "${PID[call]}"
	ended call 76
	[ ! -s call.out ] || complain "it said $(cat call.out)"
	eventually nothing_left
	expect_free l
}

# stopped_before_its_time: the same, with a place to be kept, and -w so long that the call can be stopped before that.
stopped_before_its_time() {
	for seconds in 0.5 2 8 32; do
		if stopped_call --hold="$owner" --detach --keep-place -w $seconds 2>/dev/null; then return; fi
		ended call 1
		"$SEMLOCK" --release="$(sed -n 's/^WAITING id=//p' call.out)" l
	done
	complain "it was never stopped in time"
}

@test "a call stopped past its time-out prints WAITING, and its place was kept" {
	busy_lock
	stopped_before_its_time
	start later "$SEMLOCK" l touch ran
	eventually sh -c '"$0" --who l | grep -q "2 waiting"' "$SEMLOCK"
	sleep "$seconds"
	kill -CONT "${PID[call]}"
	ended call 1
	id=$(sed -n 's/^WAITING id=//p' call.out)
	let_go
	expect_status 0 "$SEMLOCK" --resume="$id" -w 60 l
	[ ! -e ran ]
	expect_status 0 "$SEMLOCK" --release="$id" l
	ended later 0
}

@test "a --resume stopped at its turn leaves the lock held, and prints OK later" {
	busy_lock
	expect_status 1 "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0 l
	id=${out#WAITING id=}
	stopped_call --resume="$id" -v
	its_turn
	expect_status 1 "$SEMLOCK" -w 6 l true
	expect_status 0 "$SEMLOCK" --resume="$id" l
	kill -CONT "${PID[call]}"
	ended call 0
	[ "$(cat call.out)" = "OK id=$id" ]
	expect_status 0 "$SEMLOCK" --release="$id" l
}

@test "a call killed while stopped leaves no lock and no place, at any stage" {
	local when
	for when in waiting turn passed; do
		busy_lock
		[ $when != turn ] || patient_keepers
		stopped_call --hold="$owner" --detach
		unset SEMLOCK_CRASH
		case $when in
		turn) its_turn ;;
		passed) let_go && passed_on ;;
		esac
		kill -KILL "${PID[call]}"
		ended call 137
		eventually nothing_left
		[ $when != waiting ] || let_go
		expect_free l
	done
}

@test "a --resume killed while stopped leaves its place, or its lock, unchanged" {
	local id
	busy_lock
	expect_status 1 "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0 l
	id=${out#WAITING id=}
	stopped_call --resume="$id" -v
	kill -KILL "${PID[call]}"
	ended call 137
	eventually sh -c '[ "$("$0" --resume="$1" -n l)" = "WAITING id=$1" ]' "$SEMLOCK" "$id"
	stopped_call --resume="$id" -v
	its_turn
	kill -KILL "${PID[call]}"
	ended call 137
	expect_status 0 "$SEMLOCK" --resume="$id" l
	expect_status 0 "$SEMLOCK" --release="$id" l
}

@test "PID killed while the call is stopped at its turn: 76, nothing left" {
	patient_keepers
	busy_lock
	stopped_call --hold="$owner" --detach
	its_turn
	kill_owner
	expect_status 0 "$SEMLOCK" -w 60 l true
	kill -CONT "${PID[call]}"
	ended call 76
	[ ! -s call.out ] || complain "it said $(cat call.out)"
	[ "$(cat call.err)" = "semlock: l: the process that it was for has ended" ] || complain "$(cat call.err)"
	eventually nothing_left
}

@test "a hold released while its call is stopped at its turn: no OK, and 76" {
	patient_keepers
	busy_lock
	stopped_call --hold="$owner" --detach
	its_turn
	capture "$SEMLOCK" --who l
	[[ $out =~ --release=([0-9a-f-]+) ]] || complain "$out"
	expect_status 0 "$SEMLOCK" --release="${BASH_REMATCH[1]}" l
	expect_status 0 "$SEMLOCK" -n l true
	kill -CONT "${PID[call]}"
	ended call 76
	[ ! -s call.out ] || complain "it said $(cat call.out)"
	[ "$(cat call.err)" = "semlock: l: another call has released it" ] || complain "$(cat call.err)"
}
