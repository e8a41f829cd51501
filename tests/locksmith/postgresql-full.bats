#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks on PostgreSQL: a server, or a role, that has fewer sessions than there are holders and waiters.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote-postgresql

# is_back: the role has a session again
is_back() { sql_is "SELECT count(*) >= 1 FROM pg_stat_activity WHERE usename = 'cron'"; }

# have_lapsed COUNT: so many places are past their lease
have_lapsed() { sql_is "SELECT count(*) = $1 FROM semlock.place WHERE until < clock_timestamp()"; }

# A lease that a slow machine renews in time.
long=$((30 * PACE))

@test "a server with no room is waited for" {
	sql "ALTER SYSTEM SET max_connections = 6" # one is the session of sql, two are reserved
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
	eventually has_another "$before" && kill -0 "${COMMAND[holder]}"
}
holders_session() { sql "SELECT pid FROM pg_stat_activity WHERE application_name = 'semlock nightly holds'"; }
has_another() { sql_is "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'semlock nightly holds' AND pid <> ${1:-0}"; }

times=3 few=12 many=16
[ -z "${THOROUGH-}" ] || times=10 few=30 many=40

@test "more waiters than sessions, and a restart: all are served in order" {
	without_leak_check
	sql "ALTER SYSTEM SET max_wal_senders = 1"
	sql "ALTER SYSTEM SET max_connections = $few"
	postgresql_restart one
	cron
	hold_lock --ttl=$long "$URL"
	queue_up $many --ttl=$long "$URL"
	for ((n = 0; n < times; n++)); do back_again postgresql_restart one; done
	let_go
	served $many
}

@test "more waiters than a role's sessions, the holder's ended: no place lost" {
	cron
	sql "ALTER ROLE cron CONNECTION LIMIT 5"
	hold_lock --ttl=$long "$URL"
	queue_up 8 --ttl=$long "$URL"
	end_holders_session() { sql "SELECT pg_terminate_backend($(holders_session))"; }
	for ((n = 0; n < times; n++)); do back_again end_holders_session; done
	let_go
	served 8
}

@test "a waiter left without a session asks once a second, and keeps its place" {
	cron
	sql "CREATE ROLE other LOGIN IN ROLE cron"
	other=${URL/cron@/other@}
	expect_status 0 "$SEMLOCK" "$URL" true
	hold_lock "$other"
	start first "$SEMLOCK" --ttl=$((2 * long)) "$URL" sh -c 'echo first >>order'
	eventually waiting 1
	start second "$SEMLOCK" --ttl=$((2 * long)) "$other" sh -c 'echo second >>order'
	eventually waiting 2
	sql "ALTER ROLE cron CONNECTION LIMIT 0"
	: >"$PG_HOME/one.log"
	sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'cron'"
	in_file "$PG_HOME/one.log" "FATAL:  too many connections"
	# A second, with a quarter of spread; later, or without a place, it is five.
	pauses first 5
	awk '$1 > 1.3 { exit 1 }' pauses.first || complain "$(cat pauses.first)"
	sql "ALTER ROLE cron CONNECTION LIMIT -1"
	eventually is_back
	let_go
	ended first 0
	ended second 0
	[ "$(tr '\n' ' ' <order)" = "first second " ] || complain "$(cat order)"
}

@test "waiters without a session beyond their lease return to their places" {
	cron
	sql "CREATE ROLE other LOGIN IN ROLE cron"
	other=${URL/cron@/other@}
	expect_status 0 "$SEMLOCK" "$URL" true
	hold_lock "$other"
	queue_up 2 --ttl=$((4 * PACE)) "$URL"
	sql "ALTER ROLE cron CONNECTION LIMIT 0"
	sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'cron'"
	eventually have_lapsed 2
	# They are not shown, nor counted, and one that comes later is in front of them until they are back.
	start 3 "$SEMLOCK" "$other" sh -c "echo 3 \$SEMLOCK_TOKEN >>order"
	eventually waiting 3
	expect_status 1 "$SEMLOCK" --who "$other"
	grep -q "held, 1 waiting" <<<"$out" || complain "$out"
	sql "ALTER ROLE cron CONNECTION LIMIT -1"
	back() { sql_is "SELECT count(*) = 3 FROM semlock.place WHERE token IS NULL AND until > clock_timestamp()"; }
	eventually back
	let_go
	served 3
}

@test "a place that lapsed is in nobody's way, and is removed in the end" {
	hold_lock "$URL"
	queue_up 1 --ttl=$((4 * PACE)) "$URL"
	kill -STOP "${PID[1]}" "$(inner 1)" "$(helper_of 1)"
	eventually have_lapsed 1
	start 2 "$SEMLOCK" "$URL" true
	eventually waiting 2
	let_go
	ended 2 0
	[ "$(places)" -eq 1 ]
	expect_status 0 "$SEMLOCK" -n "$URL" true
	[ "$(places)" -eq 1 ]
	sql "UPDATE semlock.place SET until = until - interval '1 min'"
	expect_status 0 "$SEMLOCK" -n "$URL" true
	[ "$(places)" -eq 0 ]
	kill -CONT "${PID[1]}" "$(inner 1)" "$(helper_of 1)"
	ended 1 0
}

@test "a server with no session for a waiter is reported once, asked seldom" {
	cron
	sql "ALTER ROLE cron CONNECTION LIMIT 1"
	hold_lock "$URL"
	start early "$SEMLOCK" -v "$URL" true
	waits_for early "too many connections for role"
	refused 69 "too many connections for role" "$SEMLOCK" -n "$URL" true
	# The helper says it once.  (semlock -v repeats it after ten seconds.)
	smith late "$URL"
	expect late WAIT
	# Five seconds, with a quarter of spread; the server is asked between two pauses.
	"$PROBE" pauses "${SMITH_PID[late]}" 2 >slept
	awk '$1 < 3.7 { exit 1 }' slept || complain "$(cat slept)"
	if read -r -t 0 -u "${SMITH_OUT[late]}"; then complain "it has said more" || return; fi
	unlock late
	let_go
	ended early 0
}
