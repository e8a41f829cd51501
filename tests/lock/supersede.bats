#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --supersede: earlier waiters that were also started with it give up.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

METHODS=("flock" "ofd" "posix" "excl" "link" "mkdir" "symlink" "rename --init" "flock -j1" "flock -s")

# waits NAME ARGS...: a waiter of today, whose command adds NAME to the file ran
waits() {
	local name=$1
	shift
	start "$name" "$SEMLOCK" -v --supersede "$@" sh -c 'echo "$0" >>ran' "$name"
}

# sleeps NAME ARGS...: the same, but returns when it sleeps in the kernel, waiting.
sleeps() {
	waits "$@"
	"$PROBE" blocked "${PID[$1]}"
}

# last_ran_alone [SCENE]: "last" has run, and no other waiter; what the scene has left is removed.
last_ran_alone() {
	ended last 0 || return
	[ "$(cat ran)" = last ] || complain "${1-}: $(cat ran)" || return
	rm ran ./*.up ./*.down
}

@test "20 come while one holds: the last one runs next, the 19 exit with 1" {
	local method way n
	for method in "${METHODS[@]}"; do
		read -ra way <<<"-m $method l.${method%% *}"
		hold_lock "${way[@]/-s/-x}"
		for ((n = 1; n <= 20; n++)); do
			sleeps $n "${way[@]}"
		done
		began=$SECONDS
		for ((n = 1; n < 20; n++)); do ended $n 1; done
		[ $((SECONDS - began)) -le "$(stretched 2)" ] || complain "$method: after $((SECONDS - began)) s"
		[ ! -e ran ] || complain "$method: $(cat ran) ran"
		grep -q "^semlock: l.*: superseded by [0-9]* (semlock" 1.err || complain "$method:" "$(cat 1.err)"
		# of a posix lock, the semlock that waits is a child of the one that was started
		[ "$method" = posix ] || grep -q "superseded by ${PID[20]} (semlock " 19.err || complain "$method:" "$(cat 19.err)"
		let_go
		ended 20 0
		[ "$(cat ran)" = 20 ]
		rm -rf ran ./*.up ./*.down l.*
	done
}

@test "20 come at once, and the lock comes free: one of them runs" {
	local n
	hold_lock l
	for ((n = 1; n <= 20; n++)); do waits $n l; done
	for ((n = 1; n <= 20; n++)); do eventually waits_or_gone $n; done
	let_go
	for ((n = 1; n <= 20; n++)); do
		status=0
		wait "${PID[$n]}" || status=$?
		[ $status -le 1 ] || complain "$n ended with $status" "$(cat $n.err)"
	done
	[ "$(wc -l <ran)" -eq 1 ] || complain "$(cat ran)"
}

# waits_or_gone N: N waits, or has given up
waits_or_gone() {
	grep -q "waiting:\|taken" "$1.err" || ! ps -o stat= -p "${PID[$1]}" | grep -q '^[^Z]'
}

# The holder ends before the earlier waiters have looked.
@test "a lock that comes free at once is the last one's" {
	local round
	often 30
	for ((round = 0; round < often; round++)); do
		hold_lock l
		sleeps first l
		sleeps last l
		let_go
		ended first 1
		last_ran_alone
	done
}

@test "nobody else is touched: other waiters keep their places, the holder runs" {
	hold_lock l
	sleeps first l
	queue_as usual l
	sleeps last l
	queue_as later l
	ended first 1
	for name in usual later last; do kill -0 "${PID[$name]}"; done
	let_go
	ready usual
	let_go usual
	ready later
	ended last 0
	let_go later
	[ "$(cat ran)" = last ]
}

@test "-E, the event, the line of --log: superseded" {
	hold_lock l
	start first "$SEMLOCK" --supersede -E 7 --status-fd=5 --log=log l true 5>event
	"$PROBE" blocked "${PID[first]}"
	waits last l
	ended first 7
	[ "$(cat event)" = superseded ] || complain "$(cat event)"
	[ "$(jq -r .outcome log)" = superseded ] || complain "$(cat log)"
	[ ! -s first.err ] || complain "$(cat first.err)"
	let_go
	ended last 0
}

@test "invoked as flock, a superseded waiter says why it ends" {
	hold_lock l
	start first "$FLOCK" --verbose --supersede l true
	"$PROBE" blocked "${PID[first]}"
	waits last l
	ended first 1
	[ "$(cat first.err)" = "flock: superseded by a later waiter" ] || complain "$(cat first.err)"
	let_go
	ended last 0
}

@test "--who lists waiters with --supersede in their order" {
	hold_lock l
	queue_as usual l
	sleeps last l
	capture "$SEMLOCK" --who l
	shows l "${COMMAND[holder]}" 2 "${PID[usual]}"
	grep -q "^ *2\. *${PID[last]} " .out || complain "$out"
	let_go
	ready usual
	let_go usual
	ended last 0
}

@test "a stopped waiter supersedes nobody until it goes on" {
	hold_lock l
	sleeps first l
	SEMLOCK_CRASH=queue.drawn:stop start last "$CRASHABLE_SEMLOCK" --supersede l true
	"$PROBE" state "${PID[last]}" T
	nap 1200 # two looks of the first one
	kill -0 "${PID[first]}"
	kill -CONT "${PID[last]}"
	ended first 1
	let_go
	ended last 0
}

@test "a superseder that is killed first leaves the others their places" {
	hold_lock l
	sleeps first l
	SEMLOCK_CRASH=queue.drawn:stop start killed "$CRASHABLE_SEMLOCK" --supersede l true
	"$PROBE" state "${PID[killed]}" T
	nap 1200 # two looks of the first one
	kill -KILL "${PID[killed]}"
	ended killed 137
	kill -0 "${PID[first]}"
	let_go
	ended first 0
}

# It has the lock in hand then, unless half a second has passed since the last one came.
@test "killed or stopped as it gives way: the last one has its turn" {
	local way
	for way in kill stop; do
		hold_lock l
		SEMLOCK_CRASH=lock.superseded:$way start first "$CRASHABLE_SEMLOCK" --supersede l true
		"$PROBE" blocked "${PID[first]}"
		sleeps last l
		let_go
		if [ $way = kill ]; then
			ended first 137
		else
			"$PROBE" state "${PID[first]}" T
			kill -CONT "${PID[first]}"
			ended first 1
		fi
		ended last 0
		rm -f ran ./*.up ./*.down
	done
}

# The last waiter of each round is not killed: it is never lost, whatever the others do.
@test "killed at random: no overlap, no waiter lost" {
	local round n early
	often 30
	SUPERSEDE_ROUNDS=${SUPERSEDE_ROUNDS:-$often}
	for ((round = 0; round < SUPERSEDE_ROUNDS; round++)); do
		hold_lock l
		for ((n = 1; n <= 8; n++)); do
			start "$n" "$SEMLOCK" -v --supersede l sh -c 'mkdir in || echo >>overlaps; rmdir in; echo "$0" >>ran' "$n"
		done
		((RANDOM % 2)) || nap $((RANDOM % 700))
		kill -KILL "${PID[$((RANDOM % 4 + 1))]}" "${PID[$((RANDOM % 4 + 5))]}" 2>/dev/null || true
		for ((n = 1; n <= 8; n++)); do eventually waits_or_gone $n; done # their tickets are before the last one's
		early=$((RANDOM % 2))
		[ $early -eq 0 ] || let_go
		start last "$SEMLOCK" --supersede l sh -c 'mkdir in || echo >>overlaps; rmdir in; echo last >>ran'
		((RANDOM % 2)) || nap $((RANDOM % 700))
		[ $early -eq 1 ] || let_go
		ended last 0
		for ((n = 1; n <= 8; n++)); do
			status=0
			wait "${PID[$n]}" || status=$?
			case $status in 0 | 1 | 137) ;; *) complain "$n ended with $status" "$(cat $n.err)" ;; esac
		done
		[ ! -e overlaps ] || complain "two at once in round $round"
		grep -qx last ran
		rm -f ran ./*.up ./*.down
	done
}

@test "a queue that is removed: a later one still ends the earlier ones" {
	local before
	for before in none one; do
		hold_lock l
		[ $before = none ] || queue_as usual l
		sleeps first l # with nobody before it, it sleeps at the lock itself
		rm "$(queue_of l)"
		sleeps last l
		ended first 1
		let_go
		if [ $before = one ]; then
			ready usual
			let_go usual
		fi
		last_ran_alone "$before before it"
	done
}

# The first one is the last to see that: it looks for the mark of a ticket that was drawn from the new file.
@test "a queue that is removed: the marks are in the new one" {
	hold_lock l
	queue_as usual l
	sleeps first l
	kill -STOP "${PID[first]}"
	"$PROBE" state "${PID[first]}" T
	sleeps last l
	rm "$(queue_of l)"
	eventually has_tickets "$(queue_of l)" 1
	kill -CONT "${PID[first]}"
	ended first 1
	let_go
	ready usual
	let_go usual
	last_ran_alone
}

@test "a queue that is removed while the second one is stopped keeps its order" {
	hold_lock l
	sleeps first l
	queue_as second l
	kill -STOP "${PID[second]}"
	"$PROBE" state "${PID[second]}" T
	rm "$(queue_of l)"
	eventually has_tickets "$(queue_of l)" 1
	nap 1200 # its timer has to wake it, not the ticket that has left the old file
	kill -CONT "${PID[second]}"
	eventually has_tickets "$(queue_of l)" 2
	let_go
	ended first 0
	ready second
	let_go second
}

@test "refused where it cannot be kept" {
	local option
	for option in -n --nonblock "-w 0" --first --replace --toggle --queue-max=3 "-f other"; do
		# shellcheck disable=SC2086 # two words
		refused 64 "--supersede" "$SEMLOCK" --supersede $option l true
	done
	refused 64 "--supersede" "$SEMLOCK" --supersede --hold=$$ --detach --keep-place -w 1 l
	refused 64 "--supersede" "$SEMLOCK" --supersede etcd://h/x true
	[ ! -s l ]
	hold_lock l
	expect_status 1 "$SEMLOCK" --supersede -w .1 l true
	let_go
}
