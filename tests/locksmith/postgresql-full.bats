#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks on PostgreSQL: a server, or a role, that has fewer sessions than there are holders and waiters.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote-postgresql

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
