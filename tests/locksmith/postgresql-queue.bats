#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks on PostgreSQL: who waits, in which order, and what that costs the server.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote-postgresql

@test "a waiter that is told to end ends, and leaves the queue" {
	hold_as reader -s "$URL"
	waiter one "$URL"
	waiter two -s "$URL"
	waits_for two "waiting: for the waiters in front"
	for name in two one; do
		kill -TERM "${PID[$name]}"
		ended "$name" 143
	done
	eventually waiting 0
	expect_status 0 "$SEMLOCK" -n -s "$URL" true
}

@test "first come, first served; a killed waiter costs the others nothing" {
	hold_lock "$URL"
	for i in {1..5}; do
		start "$i" "$SEMLOCK" "$URL" sh -c "echo $i >>order"
		eventually waiting "$i"
	done
	kill -KILL "$(helper_of 2)" "$(inner 2)" "${PID[2]}"
	start reader "$SEMLOCK" -v -s "$URL" sh -c 'echo reader >>order'
	waits_for reader "waiting: "
	release holder
	ended holder 0
	for i in 1 3 4 5 reader; do ended "$i" 0; done
	[ "$(tr '\n' ' ' <order)" = "1 3 4 5 reader " ] || complain "$(cat order)"
}

# next_look PID: in how many seconds the helper's timer ends
next_look() {
	local key value seconds=0
	while read -r key value; do
		[ "$key" != it_value: ] || seconds=${value//[^0-9 ]/}
	done < <(cat "/proc/$1/fdinfo/"* 2>/dev/null)
	echo "${seconds% *}"
}
looks_after() { [ "$(next_look "$1")" -ge "$2" ]; }

# handed_over COMMAND...: five waiters are served, after COMMAND was run while they wait.  None of them looks by itself
# before the test has failed.
handed_over() {
	local lease=6000 i
	hold_lock --ttl=$lease "$URL"
	for i in {1..5}; do
		start "$i" "$SEMLOCK" --ttl=$lease "$URL" true
		eventually waiting "$i" || return
	done
	"$@" || return
	for i in {1..5}; do
		eventually looks_after "$(helper_of "$i")" 1000 || return
	done
	let_go holder
	for i in {1..5}; do ended "$i" 0 || return; done
}

@test "the first in the queue hears of a release at once, without polling" {
	handed_over true
}

@test "waiters hear of their turn at once after their sessions have ended, too" {
	lost() { end_sessions && eventually sessions 'semlock nightly waits' 5; }
	handed_over lost
}

@test "a waiter stopped by Ctrl-Z delays others by one lease and keeps its turn" {
	with_lease 2 stopped_waiter 1
}

# What a pooled session is like, for the application beside.
pooled_session() { SQL_PORT=${PG_PORT[pooler]} sql "SHOW ALL"; SQL_PORT=${PG_PORT[pooler]} sql "SELECT pg_listening_channels()"; }

@test "a pooler keeps the order beside other clients, its session unchanged" {
	pooler transaction
	pooled_session >before
	[ "$(wc -l <before)" -gt 300 ]
	expect_status 0 "$SEMLOCK" "$POOLED" true
	hold_lock "$POOLED"
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" -n "$POOLED" touch ran
	expect_status 1 "$SEMLOCK" --who "$POOLED"
	queue_up 3 "$POOLED"
	expect_status 1 "$SEMLOCK" -w 0.5 "$POOLED" touch ran
	let_go
	served 3
	expect_status 0 "$SEMLOCK" -n "$POOLED" true
	[ ! -e ran ]
	rm holder.up holder.down
	hold_lock --ttl=600 "$POOLED"
	start 1 "$SEMLOCK" --ttl=600 "$POOLED" true
	eventually waiting 1
	pauses 1 3
	awk '$1 > 1.3 { exit 1 }' pauses.1 || complain "$(cat pauses.1)" # each second
	let_go
	ended 1 0
	pooled_session >after
	cmp before after || complain "$(diff before after)"
}

@test "through a pooler the third in the queue looks every second or two" {
	pooler transaction 10
	hold_lock --ttl=600 "$POOLED"
	queue_up 3 --ttl=60 "$POOLED"
	pauses 3 4
	# A slow answer shortens the pause that follows.
	awk '{ sum += $1; bad = bad || $1 < .8 || $1 > 1.9 } END { exit bad || sum / NR < 1.2 }' pauses.3 || complain "$(cat pauses.3)"
	let_go
	served 3
}

@test "through a pooler thirty waiters ask the server fifteen times a second" {
	pooler transaction 10
	hold_lock --ttl=600 "$POOLED"
	queue_up 30 --ttl=$((60 * PACE)) "$POOLED"
	for i in {1..30}; do
		pauses "$i" 1 3>&- &
		tracers+=($!)
	done
	wait "${tracers[@]}"
	# The expected value is 15.8, and nearly all are within one of it.
	cat pauses.* | awk '{ rate += 1 / $1 } END { print rate, NR; exit NR != 30 || rate < 11 || rate > 20 }' >rate ||
		complain "$(cat rate)" "$(cat pauses.*)"
	let_go
	served 30
}

@test "through a pooler, a waiter that saw the queue move looks again soon" {
	local i
	pooler transaction 10
	hold_lock --ttl=60 "$POOLED"
	waiter first --ttl=$((60 * PACE)) "$POOLED"
	for i in {2..7}; do
		start "$i" "$SEMLOCK" --ttl=$((60 * PACE)) "$POOLED" true
		eventually waiting "$i"
	done
	pauses 7 12 3>&- &
	tracer=$!
	let_go
	ready first
	wait $tracer
	# The first short pause begins when it sees the move.  Then each is half of the halt so far, or a fifth of a second, with
	# a quarter of spread.
	awk -v slow="$SLOWNESS" '
		$1 < 0.5 && !moved { moved = $2 - $1 }
		moved { halt = $2 - $1 - moved; if (halt < 2 * slow && ($1 < 0.3 || $1 < 0.75 * halt)) soon++ }
		END { exit soon < 4 }' pauses.7 || complain "$(cat pauses.7)"
	let_go first
	for i in {2..7}; do ended "$i" 0; done
}

# drain URL: $took is in how many milliseconds a hundred waiters with nothing to do are through.
drain() {
	local before
	rm -f holder.up holder.down
	hold_lock "$1" && queue_up 100 --ttl=60 "$1" || return
	before=$(now)
	let_go && served 100 || return
	took=$((($(now) - before) / 1000000))
}

not_much_slower() {
	local direct
	drain "$URL" || return
	direct=$took
	drain "$POOLED" || return
	echo "direct $direct ms, through the pooler $took ms"
	[ "$took" -le $((direct * 3 / 2)) ]
}

@test "through a pooler a hundred waiters take at most half as long again" {
	[ -n "${THOROUGH-}" ] || skip "a minute: THOROUGH=1"
	sql "ALTER SYSTEM SET max_connections = 150"
	postgresql_restart one
	pooler transaction 10
	PATIENCE=60 eventually not_much_slower
}

@test "and in session mode" {
	pooler session 9
	hold_lock "$POOLED"
	expect_status 1 "$SEMLOCK" -n "$URL" true
	queue_up 3 "$POOLED"
	let_go
	served 3
}

@test "a stopped waiter delays others by its lease, a killed one by a moment" {
	hold_lock "$URL"
	fifos one
	start one "$SEMLOCK" --ttl=$((4 * PACE)) "$URL" "$PROBE" hold one.up one.down
	eventually waiting 1
	start two "$SEMLOCK" "$URL" true
	eventually waiting 2
	stopped=("${PID[one]}" "$(inner one)" "$(helper_of one)")
	kill -STOP "${stopped[@]}"
	let_go
	ended two 0
	kill -CONT "${stopped[@]}"
	ready one
	let_go one
	# A lease of ten minutes does not count for a session that has ended.
	rm holder.up holder.down
	hold_lock "$URL"
	start one "$SEMLOCK" --ttl=600 "$URL" true
	eventually waiting 1
	start two "$SEMLOCK" --ttl=4 "$URL" true
	eventually waiting 2
	kill -KILL "$(helper_of one)" "$(inner one)" "${PID[one]}"
	let_go
	ended two 0
}

@test "the lease of a waiter is a whole one from when it enters" {
	hold_lock "$URL"
	waiter one --ttl=600 "$URL"
	freed=$(sql "SELECT clock_timestamp()")
	let_go
	ready one
	[ "$(sql "SELECT until - lease >= '$freed' FROM semlock.place WHERE token IS NOT NULL")" = t ]
	let_go one
}

@test "a waiter asks no more than six times a minute" {
	hold_lock --ttl=600 "$URL"
	queue_up 6 "$URL"
	for i in {1..6}; do
		pauses "$i" 1 3>&- &
		tracers+=($!)
	done
	# Each of them looks again soon, and then has a pause.
	end_sessions >ended
	wait "${tracers[@]}"
	cat pauses.* | awk '$1 < 10 { exit 1 } END { exit NR != 6 }' || complain "$(cat pauses.*)"
}

@test "while ten wait, VACUUM removes dead rows" {
	hold_lock "$URL"
	queue_up 10 "$URL"
	sql "CREATE TABLE t AS SELECT generate_series(1, 1000)"
	sql "DELETE FROM t"
	vacuumed() { sql "VACUUM t" && [ "$(sql "SELECT pg_relation_size('t')")" -eq 0 ]; }
	PATIENCE=$((5 * SLOWNESS)) eventually vacuumed
	let_go
	served 10
}

@test "other sessions see who waits and holds, unless the user names his own" {
	hold_lock "$URL"
	waiter one "$URL"
	eventually sessions 'semlock nightly holds' 1
	eventually sessions 'semlock nightly waits' 1
	let_go
	ready one
	eventually sessions 'semlock nightly holds' 1
	let_go one
	PGAPPNAME=mine hold_as mine "$URL"
	eventually sessions mine 1
	let_go mine
	hold_as url "$URL&application_name=yours"
	eventually sessions yours 1
}
