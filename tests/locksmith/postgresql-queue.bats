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

# handed_over_soon COMMAND...: so are five waiters, after COMMAND was run while they wait.
handed_over_soon() {
	rm -f holder.up holder.down
	hold_lock "$URL" || return
	for i in {1..5}; do
		start "$i" "$SEMLOCK" "$URL" sleep 0.3
		eventually waiting "$i" || return
	done
	"$@" || return
	before=$(now)
	let_go holder || return
	for i in {1..5}; do ended "$i" 0 || return; done
	[ $(($(now) - before)) -lt 3500000000 ]
}

@test "the first in the queue hears of a release at once, and does not look once a second" {
	eventually handed_over_soon true
}

@test "waiters hear of their turn at once after their sessions have ended, too" {
	lost() { end_sessions && eventually sessions 'semlock nightly waits' 5; }
	eventually handed_over_soon lost
}

@test "a waiter that is stopped (Ctrl-Z) holds nothing up for more than a lease, and has its turn when it goes on" {
	with_lease 2 stopped_waiter 1
}

# pooler MODE: a pgbouncer with one session for all its clients; POOLED is URL through it.
pooler() {
	PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null || skip "no pgbouncer here"
	cat >"$PG_HOME/pgbouncer.ini" <<-END
		[databases]
		* = host=127.0.0.1 port=${PG_PORT[one]} user=lock
		[pgbouncer]
		listen_addr = 127.0.0.1
		listen_port = ${PG_PORT[pooler]}
		unix_socket_dir =
		auth_type = any
		auth_file = /dev/null
		max_client_conn = 1000
		pool_mode = $1
		default_pool_size = ${2:-1}
	END
	# auth_type "any" makes every client the user lock.
	(cd "$PG_HOME" && pg_as "$(PATH=$PATH:/usr/sbin command -v pgbouncer)" "$PG_HOME/pgbouncer.ini") >"$PG_HOME/pgbouncer.log" 2>&1 </dev/null &
	PG_PID[pooler]=$!
	eventually pg_isready -q -h 127.0.0.1 -p "${PG_PORT[pooler]}"
	POOLED=${URL/$PG/127.0.0.1:${PG_PORT[pooler]}}
}

# What a pooled session is like, for the application beside.
pooled_session() { SQL_PORT=${PG_PORT[pooler]} sql "SHOW ALL"; SQL_PORT=${PG_PORT[pooler]} sql "SELECT pg_listening_channels()"; }

@test "through a pooler in transaction mode: in order, beside clients without it, and the pooled session is as before" {
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
	: >"$PG_HOME/one.log"
	asked_thrice() { [ "$(grep -c 'statement: SET TRANSACTION' "$PG_HOME/one.log")" -ge 3 ]; } # each second
	sql "ALTER SYSTEM SET log_statement = 'all'"
	sql "SELECT pg_reload_conf()"
	PATIENCE=30 eventually asked_thrice
	sql "ALTER SYSTEM RESET log_statement"
	sql "SELECT pg_reload_conf()"
	let_go
	ended 1 0
	pooled_session >after
	cmp before after || complain "$(diff before after)"
}

# Makes the server log what it is asked; looks ID...: so often have the waiters of these rows looked since.
log_looks() {
	sql "ALTER SYSTEM SET log_statement = 'all'"
	sql "SELECT pg_reload_conf()"
}
looks() {
	local IFS='|'
	grep -cE "statement: SET TRANSACTION.* id = ($*) " "$PG_HOME/one.log" || true
}
has_looked() { [ "$(looks "$1")" -gt "$2" ]; }
# place_of N: the row of the Nth in the queue.
place_of() { sql "SELECT id FROM semlock.place WHERE token IS NULL ORDER BY ticket OFFSET $1 - 1 LIMIT 1"; }

# looked LEAST MOST MS ID...: within so many milliseconds these have looked so often.
looked() {
	local least=$1 most=$2 time=$3 count
	shift 3
	count=$(looks "$@")
	"$PROBE" pause "$time"
	count=$(($(looks "$@") - count))
	echo "looked $count times" >&2
	[ $count -ge "$least" ] && [ $count -le "$most" ]
}

@test "through a pooler, which tells no waiter of its turn, the third in the queue looks every second or two" {
	pooler transaction 10
	hold_lock --ttl=600 "$POOLED"
	queue_up 3 --ttl=60 "$POOLED"
	log_looks
	eventually looked 4 9 9000 "$(place_of 3)"
	let_go
	served 3
}

@test "through a pooler thirty waiters ask the server fifteen times a second" {
	pooler transaction 10
	hold_lock --ttl=600 "$POOLED"
	queue_up 30 --ttl=60 "$POOLED"
	mapfile -t rows < <(sql "SELECT id FROM semlock.place WHERE token IS NULL")
	[ ${#rows[@]} -eq 30 ]
	log_looks
	eventually looked 50 180 10000 "${rows[@]}" # fewer where there is little processor time
	let_go
	served 30
}

# looks_soon: the last of seven waiters has seen that the first has the lock, and looks five times in the three seconds after
# that; one that waited three times as long each time would look three times.
looks_soon() {
	local last seen
	rm -f holder.up holder.down first.up first.down
	hold_lock --ttl=60 "$POOLED" || return
	waiter first --ttl=60 "$POOLED"
	for i in {2..7}; do
		start "$i" "$SEMLOCK" --ttl=60 "$POOLED" true
		eventually waiting "$i" || return
	done
	last=$(place_of 7)
	let_go
	ready first
	seen=$(looks "$last")
	PATIENCE=30 eventually has_looked "$last" "$seen" || return
	looked 5 30 3000 "$last"
	seen=$?
	let_go first
	for i in {2..7}; do ended "$i" 0 || return; done
	return $seen
}

@test "through a pooler a waiter that has seen the queue move looks again while the halt is short" {
	pooler transaction 10
	log_looks
	eventually looks_soon
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

@test "a stopped waiter holds up the others for no longer than its lease, a killed one for a moment" {
	hold_lock "$URL"
	fifos one
	start one "$SEMLOCK" --ttl=4 "$URL" "$PROBE" hold one.up one.down
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

# seldom: in this time none of the six waiters asks twice.
seldom() {
	local before
	before=$(asked)
	"$PROBE" pause 10500
	[ $(($(asked) - before)) -le 6 ] && [ $(($(asked) - before)) -ge 1 ]
}

@test "a waiter asks no more than six times a minute" {
	hold_lock --ttl=600 "$URL"
	queue_up 6 "$URL"
	sql "ALTER SYSTEM SET log_statement = 'all'"
	sql "SELECT pg_reload_conf()"
	asked() { grep -c 'statement: SET TRANSACTION' "$PG_HOME/one.log" || true; }
	eventually seldom
}

@test "while ten wait, VACUUM removes dead rows" {
	hold_lock "$URL"
	queue_up 10 "$URL"
	sql "CREATE TABLE t AS SELECT generate_series(1, 1000)"
	sql "DELETE FROM t"
	vacuumed() { sql "VACUUM t" && [ "$(sql "SELECT pg_relation_size('t')")" -eq 0 ]; }
	PATIENCE=5 eventually vacuumed
	let_go
	served 10
}

@test "other sessions see who waits and who holds, unless the user has named the session" {
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
