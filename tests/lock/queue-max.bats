#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --queue-max: more than not waiting at all, less than waiting in a queue of any length.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

# patiently CMD...: if CMD waits in spite of --queue-max, it is killed: the status is 137.
patiently() {
	timeout -s KILL "$PATIENCE" "$@"
}

@test "--queue-max: when enough wait, the next is refused; else it waits" {
	local method
	for method in flock ofd posix excl mkdir symlink "flock -j1"; do
		read -ra way <<<"-m $method l.${method%% *}"
		hold_lock "${way[@]}"
		fifos waiter
		start waiter "$SEMLOCK" --queue-max=1 "${way[@]}" "$PROBE" hold waiter.up waiter.down
		"$PROBE" blocked "${PID[waiter]}"
		refused_at_once "${way[@]}"
		expect_silent
		expect_status 1 "$SEMLOCK" --queue-max=1 -w 60 --status-fd=1 "${way[@]}" touch ran
		expect_out busy
		fifos third
		start third "$SEMLOCK" --queue-max=2 "${way[@]}" "$PROBE" hold third.up third.down
		"$PROBE" blocked "${PID[third]}"
		let_go
		ready waiter
		let_go waiter
		ready third
		let_go third
		rm ./*.up ./*.down
	done
	[ ! -e ran ]
}

# refused_in_ns ARGS...: sets $took
refused_in_ns() {
	local began
	began=$(date +%s%N)
	expect_status 9 patiently "$SEMLOCK" -E 9 "$@" touch ran || return
	took=$(($(date +%s%N) - began))
}

# At most 100 ms later than with -n.  A busy machine may be late, again and again; a built-in wait is late each time.
refused_at_once() {
	local tries took with_n
	for tries in {1..100}; do
		refused_in_ns -n "$@" && with_n=$took || return
		refused_in_ns --queue-max=1 "$@" || return
		[ "$took" -ge $((with_n + 100000000)) ] || return 0
	done
	complain "$*: refused after $took ns, and with -n after $with_n ns, the last of $tries times"
}

@test "0 is like -n" {
	hold_lock l
	expect_status 1 patiently "$SEMLOCK" --queue-max=0 l true
	let_go
	expect_status 0 "$SEMLOCK" --queue-max=0 l true
}

@test "200 that start at once: one runs, 5 wait, 194 are refused" {
	starts_many
	mkfifo gate
	for i in {1..200}; do
		"$SEMLOCK" --queue-max=5 -E 75 l sh -c 'echo ran >>runs; read -r line <gate' 3>&- &
		all[i]=$!
	done
	eventually leaves 6
	eventually [ -s runs ]
	[ "$(wc -l <runs)" -eq 1 ] || complain "$(wc -l <runs) ran at once"
	exec 7<>gate
	printf '\n\n\n\n\n\n' >&7
	refused=0 done=0
	for pid in "${all[@]}"; do
		status=0
		wait "$pid" || status=$?
		case $status in
		0) done=$((done + 1)) ;;
		75) refused=$((refused + 1)) ;;
		esac
	done
	exec 7>&-
	[ "$(wc -l <runs)" -eq 6 ] || complain "$(wc -l <runs) ran"
	[ "$done $refused" = "6 194" ] || complain "$done ran and $refused were refused"
}

# leaves N: at most N of the started processes are left
leaves() {
	local pid left=0
	for pid in "${all[@]}"; do
		if kill -0 "$pid" 2>/dev/null; then left=$((left + 1)); fi
	done
	[ $left -le "$1" ]
}

@test "a process that has many bytes of the queue has one place" {
	hold_lock l
	queue_as first l
	fifos range
	start range "$PROBE" fcntl-hold "$(queue_of l)" ofd write 1000 100000 range.up range.down
	ready range
	fifos third
	start third "$SEMLOCK" --queue-max=3 l "$PROBE" hold third.up third.down
	"$PROBE" blocked "${PID[third]}"
	let_go
	let_go range
	ready first
	let_go first
	ready third
	let_go third
}

@test "without a queue, --queue-max waits in the kernel's order, and warns once" {
	root_only "to be two users"
	local place
	place=$(mktemp -d /tmp/semlock-users.XXXXXX)
	chmod 755 "$place"
	: >"$place/l"
	chmod 666 "$place/l"
	fifos holder
	start holder "$SEMLOCK" -n "$place/l" "$PROBE" hold holder.up holder.down
	ready holder
	mkdir "$(queue_of "$place/l")"
	start other setpriv --reuid=65534 --regid=65534 --clear-groups "$SEMLOCK" --queue-max=1 "$place/l" true
	"$PROBE" blocked "${PID[other]}"
	let_go
	ended other 0
	[ "$(grep -c "$place/l: its queue cannot be used, so --queue-max is not kept" other.err)" -eq 1 ] || complain "$(cat other.err)"
	rm -rf "$place" "$(queue_of "$place/l")"
}

@test "a stopped waiter has a place, and a deserted lock is had all the same" {
	hold_lock l
	queue_as waiter l
	kill -STOP "${PID[waiter]}"
	"$PROBE" state "${PID[waiter]}" T
	expect_status 1 patiently "$SEMLOCK" --queue-max=1 l true
	let_go
	expect_status 0 "$SEMLOCK" --queue-max=1 l true
	kill -CONT "${PID[waiter]}"
	ready waiter
	let_go waiter
}

@test "a waiter stopped while it counts others delays them by two seconds" {
	hold_lock l
	SEMLOCK_CRASH=queue.admitting:stop start late "$CRASHABLE_SEMLOCK" --queue-max=1 l touch ran
	"$PROBE" state "${PID[late]}" T
	expect_status 1 patiently "$SEMLOCK" --queue-max=1 -w .2 l true
	fifos waiter
	start waiter "$SEMLOCK" --queue-max=1 l "$PROBE" hold waiter.up waiter.down
	"$PROBE" blocked "${PID[waiter]}"
	eventually has_ticket
	kill -CONT "${PID[late]}"
	ended late 1
	let_go
	ready waiter
	let_go waiter
	[ ! -e ran ]
	[ ! -e "$(queue_of l)" ]
}

has_ticket() {
	"$SEMLOCK" --who l | grep -qx "l: held, 1 waiting"
}

@test "one that is refused has no place: no other is refused for its sake" {
	hold_lock l
	queue_as first l
	SEMLOCK_CRASH=queue.full:stop start refused "$CRASHABLE_SEMLOCK" --queue-max=1 l touch ran
	"$PROBE" state "${PID[refused]}" T
	kill -TERM "${PID[first]}"
	ended first 143
	fifos second
	start second "$SEMLOCK" --queue-max=1 l "$PROBE" hold second.up second.down
	"$PROBE" blocked "${PID[second]}"
	kill -CONT "${PID[refused]}"
	ended refused 1
	let_go
	ready second
	let_go second
	[ ! -e ran ]
}

@test "refused where there is no queue to count" {
	refused 64 --queue-max "$SEMLOCK" --queue-max=1 -f m l touch ran
	refused 64 --queue-max "$SEMLOCK" --queue-max=1 --replace l touch ran
	refused 64 --queue-max "$SEMLOCK" --queue-max=1 --toggle l touch ran
	refused 64 --queue-max "$SEMLOCK" --queue-max=-1 l touch ran
	refused 64 --queue-max "$SEMLOCK" --queue-max=x l touch ran
	[ ! -e ran ]
}
