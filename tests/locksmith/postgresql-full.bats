#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks on PostgreSQL: a server, or a role, that has fewer sessions than there are holders and waiters.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote-postgresql

# is_back: the role has a session again
is_back() {
	[ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE usename = 'cron'")" -ge 1 ]
}

# have_lapsed COUNT: so many places are past their lease
have_lapsed() {
	[ "$(sql "SELECT count(*) FROM semlock.place WHERE until < clock_timestamp()")" -eq "$1" ]
}

@test "a server with no room is waited for" {
	sql "ALTER SYSTEM SET max_connections = 5"
	sql "ALTER SYSTEM SET superuser_reserved_connections = 2"
	sql "CREATE ROLE cron LOGIN"
	sql "CREATE DATABASE locks OWNER cron"
	sql "ALTER SYSTEM SET max_wal_senders = 1"
	postgresql_restart one
	url="postgresql://cron@$PG/nightly?dbname=locks"
	# -w: a connection that only asked whether the server is there may still have a place.
	hold_as one -s -w 60 "$url"
	hold_as two -s -w 60 "$url"
	hold_as three -s -w 60 "$url"
	refused 69 "connection slots" "$SEMLOCK" -n -s "$url" true
	start early "$SEMLOCK" -v -s -w 60 "$url" true
	waits_for early "connection slots"
	let_go one
	ended early 0
}

# cron: URL is that of a role which no reserved session is kept for.
cron() {
	sql "CREATE ROLE cron LOGIN"
	sql "GRANT CREATE ON DATABASE postgres TO cron"
	URL=${URL/lock@/cron@}
}

# back_again CMD...: after CMD, which ends the holder's session, the holder has another, long before its command would
# be ended.
back_again() {
	local before
	before=$(holders_session)
	"$@" || return
	is_back() { [[ $(holders_session) == [0-9]* && $(holders_session) != "$before" ]]; }
	eventually is_back && kill -0 "${COMMAND[holder]}"
}
holders_session() { sql "SELECT pid FROM pg_stat_activity WHERE application_name = 'semlock nightly holds'"; }

times=3
[ -z "${THOROUGH-}" ] || times=10

@test "more waiters than the server has sessions, and a restart: the command runs on, the waiters are served in their order" {
	without_leak_check
	sql "ALTER SYSTEM SET max_connections = 30"
	postgresql_restart one
	cron
	hold_lock "$URL"
	queue_up 40 --ttl=30 "$URL"
	for ((n = 0; n < times; n++)); do back_again postgresql_restart one; done
	let_go
	served 40
}

@test "more waiters than a role may have sessions, and the holder's is ended: the command runs on, nobody loses a place" {
	cron
	sql "ALTER ROLE cron CONNECTION LIMIT 5"
	hold_lock "$URL"
	queue_up 8 --ttl=30 "$URL"
	end_holders_session() { sql "SELECT pg_terminate_backend($(holders_session))"; }
	for ((n = 0; n < times; n++)); do back_again end_holders_session; done
	let_go
	served 8
}

@test "a waiter whose session is ended, and for which the server has no other, asks once a second at first, and keeps its place" {
	cron
	sql "CREATE ROLE other LOGIN IN ROLE cron"
	other=${URL/cron@/other@}
	expect_status 0 "$SEMLOCK" "$URL" true
	hold_lock "$other"
	start first "$SEMLOCK" --ttl=60 "$URL" sh -c 'echo first >>order'
	eventually waiting 1
	start second "$SEMLOCK" --ttl=60 "$other" sh -c 'echo second >>order'
	eventually waiting 2
	sql "ALTER ROLE cron CONNECTION LIMIT 0"
	: >"$PG_HOME/one.log"
	sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'cron'"
	# Five seconds between two tries, with a quarter of spread, would be 18 seconds for six.
	began=$(now)
	eventually sh -c '[ "$(grep -c "FATAL:  too many connections" "$1")" -ge 6 ]' - "$PG_HOME/one.log"
	[ $(($(now) - began)) -lt 18000000000 ] || complain "after $(($(now) - began)) ns"
	sql "ALTER ROLE cron CONNECTION LIMIT -1"
	eventually is_back
	let_go
	ended first 0
	ended second 0
	[ "$(tr '\n' ' ' <order)" = "first second " ] || complain "$(cat order)"
}

@test "waiters that the server has no session for, for longer than their lease, come back to their places" {
	cron
	sql "CREATE ROLE other LOGIN IN ROLE cron"
	other=${URL/cron@/other@}
	expect_status 0 "$SEMLOCK" "$URL" true
	hold_lock "$other"
	queue_up 2 --ttl=4 "$URL"
	sql "ALTER ROLE cron CONNECTION LIMIT 0"
	sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'cron'"
	eventually have_lapsed 2
	# They are not shown, nor counted, and one that comes later is in front of them until they are back.
	start 3 "$SEMLOCK" "$other" sh -c "echo 3 \$SEMLOCK_TOKEN >>order"
	eventually waiting 3
	expect_status 1 "$SEMLOCK" --who "$other"
	grep -q "held, 1 waiting" <<<"$out" || complain "$out"
	sql "ALTER ROLE cron CONNECTION LIMIT -1"
	back() { [ "$(sql "SELECT count(*) FROM semlock.place WHERE token IS NULL AND until > clock_timestamp()")" -eq 3 ]; }
	eventually back
	let_go
	served 3
}

@test "a place that lapsed is in nobody's way, and is removed in the end" {
	hold_lock "$URL"
	queue_up 1 --ttl=4 "$URL"
	kill -STOP "${PID[1]}" "$(inner 1)" "$(helper_of 1)"
	lapsed() { [ "$(sql "SELECT count(*) FROM semlock.place WHERE until < clock_timestamp()")" -eq 1 ]; }
	eventually lapsed
	start 2 "$SEMLOCK" "$URL" true
	eventually waiting 2
	let_go
	ended 2 0
	waiting 1
	expect_status 0 "$SEMLOCK" -n "$URL" true
	waiting 1
	sql "UPDATE semlock.place SET until = until - interval '1 min'"
	expect_status 0 "$SEMLOCK" -n "$URL" true
	waiting 0
	kill -CONT "${PID[1]}" "$(inner 1)" "$(helper_of 1)"
	ended 1 0
}

@test "a server that has no session for a waiter is told of once, and asked seldom" {
	cron
	sql "ALTER ROLE cron CONNECTION LIMIT 1"
	hold_lock "$URL"
	: >"$PG_HOME/one.log"
	start early "$SEMLOCK" -v "$URL" true
	waits_for early "too many connections for role"
	refused 69 "too many connections for role" "$SEMLOCK" -n "$URL" true
	"$PROBE" pause 9000
	[ "$(grep -c "too many connections for role" early.err)" -eq 1 ]
	[ "$(grep -c "FATAL:  too many connections" "$PG_HOME/one.log")" -le 5 ] # two or three, and that of -n
	let_go
	ended early 0
}
