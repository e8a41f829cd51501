#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks on PostgreSQL: what a holder and its waiters do when the server, its standby or a session is gone.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote-postgresql

in_sync() { sql_is "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"; }

synchronous_standby() {
	postgresql_standby
	sql "ALTER SYSTEM SET synchronous_standby_names = 'two'"
	sql "SELECT pg_reload_conf()"
	eventually in_sync
}

# lost_by NAME CMD...: after CMD, the command of the lock NAME has ended before a waiter's begins, and its semlock's
# status is 76.  ttl: the lease, in seconds.  (The command is killed a tenth of the lease before its end, which is
# little on a busy machine.)
lost_by() {
	local name=$1$ttl
	shift
	rm -f next.* alive
	fifos "$name"
	fifos next
	start "$name" "$SEMLOCK" --ttl="$ttl" "$LOCK" sh -c "trap '' TERM; exec '$PROBE' hold $name.up $name.down"
	ready "$name" || return
	"$@" || return
	# A zombie counts as ended: the command's parent may not have waited for it.
	start next "$SEMLOCK" --ttl="$ttl" -w 60 "${NEXT:-$LOCK}" sh -c "grep -s '^State:.[^ZX]' /proc/${COMMAND[$name]}/status >alive
		exec '$PROBE' hold next.up next.down"
	ready next || return
	ended "$name" 76 && grep -q "the lock is lost: " "$name.err" && let_go next || return
	[ ! -s alive ] || complain "two at once"
}

@test "if sessions are ended, the command runs on and waiters keep their order" {
	hold_lock --ttl=$((9 * PACE)) "$URL"
	queue_up 4 --ttl=$((30 * PACE)) "$URL"
	end_sessions
	eventually sessions 'semlock nightly waits' 4
	eventually sessions 'semlock nightly holds' 1 # at the next renewal
	end_sessions
	let_go
	served 4
}

@test "if the server restarts, or is killed, the command and waiters go on" {
	without_leak_check
	hold_lock --ttl=$((30 * PACE)) "$URL"
	queue_up 10 --ttl=$((60 * PACE)) "$URL"
	postgresql_restart one
	eventually sessions 'semlock nightly waits' 10
	postgresql_crash one
	postgresql_start one
	eventually sessions 'semlock nightly waits' 10
	postgresql_kill one
	postgresql_start one
	eventually sessions 'semlock nightly waits' 10
	let_go
	served 10
}

@test "waiters keep their places for a lease from the server's restart" {
	without_leak_check
	hold_lock --ttl=$((60 * PACE)) "$URL"
	queue_up 2 --ttl=$((5 * PACE)) "$URL"
	first=$(helper_of 1)
	pg_signal one INT
	kill -STOP "$first"
	"$PROBE" pause $((5500 * PACE))
	postgresql_start one
	back() { sql_is "SELECT count(*) = 1 FROM semlock.place WHERE token IS NULL AND boot = pg_postmaster_start_time()"; }
	eventually back
	let_go
	kill -CONT "$first"
	served 2
}

kept_without_session() {
	rm -f holder.up holder.down
	hold_lock --ttl="$ttl" "${LOCK/nightly/nightly$ttl}" || return
	"$@" || return
	expect_status 1 "$SEMLOCK" -w $((2 * ttl)) "${URL/nightly/nightly$ttl}" true || return
	let_go
}

@test "the connection is cut: the lock is kept over another one" {
	proxy
	LOCK=$PROXIED
	cut() { : >faults/cut-reply; }
	with_lease 3 kept_without_session cut
}

@test "a server away for the whole lease: the command ends in time, with 76" {
	without_leak_check
	LOCK=$URL
	crash() { postgresql_crash one && "$PROBE" gone "${COMMAND[$name]}" && postgresql_start one; }
	with_lease 3 lost_by holder crash
}

@test "a server away at the release: the lock is released when it returns" {
	without_leak_check
	hold_lock --ttl=600 "$URL"
	postgresql_crash one
	release holder
	"$PROBE" gone "${COMMAND[holder]}"
	"$PROBE" pause 700 # the first tries
	postgresql_start one
	ended holder 0
	[ "$(rows)" -eq 0 ]
}

@test "helper killed or stopped: the command ends before the next begins, 76" {
	LOCK=$URL
	kill_helper() { kill -KILL "$(helper_of "$name")"; }
	with_lease 6 lost_by one kill_helper
	stop_helper() { helper=$(helper_of "$name"); kill -STOP "$helper"; }
	with_lease 6 lost_by two stop_helper
	kill -CONT "$helper"
}

# no_room: while the trigger is there no row can be changed, as on a full disk.
no_room() {
	sql "CREATE OR REPLACE FUNCTION semlock.no_room() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN RAISE \$\$the disk is full\$\$ USING ERRCODE = \$\$53100\$\$; END';
		CREATE OR REPLACE TRIGGER no_room BEFORE UPDATE ON semlock.place EXECUTE FUNCTION semlock.no_room()"
}

held_without_room() {
	rm -f holder.up holder.down
	hold_lock --ttl="$ttl" "$URL" || return
	: >"$PG_HOME/one.log"
	no_room && in_file "$PG_HOME/one.log" "ERROR:  the disk is full" || return
	sql "DROP TRIGGER no_room ON semlock.place"
	expect_status 1 "$SEMLOCK" -w "$ttl" "$URL" true || return
	let_go
}

@test "a renewal that the server has no room for is retried while time is left" {
	with_lease 9 held_without_room
}

@test "the holder's row is removed by hand: found at the next renewal, 76" {
	hold_lock --ttl=9 "$URL"
	sql "DELETE FROM semlock.place"
	ended holder 76
	grep -q "its row was removed" holder.err
}

@test "either semlock killed: all that the command started ends before the next" {
	ends_with_semlock
}

@test "both semlocks killed: what the command started keeps the lock until gone" {
	without_leak_check
	both_killed
}

standby_has() { [ "$(SQL_PORT=${PG_PORT[two]} sql "SELECT count(*) FROM semlock.place")" -eq "$1" ]; }

@test "failover to a synchronous standby: the command runs, waiters keep places" {
	synchronous_standby
	LOCK="postgresql://lock@$PG,$PG2/nightly?dbname=postgres"
	# A standby cannot lock, and is passed over.
	expect_status 0 "$SEMLOCK" "postgresql://lock@$PG2,$PG/nightly?dbname=postgres" true
	refused 69 "the server is a standby" "$SEMLOCK" -n "postgresql://lock@$PG2/nightly?dbname=postgres" true
	hold_lock --ttl=$((30 * PACE)) "$LOCK"
	queue_up 10 --ttl=$((30 * PACE)) "$LOCK"
	eventually standby_has 11 # a place is sent on with the next flush, within a second
	kill -STOP "${PG_PID[one]}" # no client is told that the server is gone
	pkill -STOP -P "${PG_PID[one]}"
	export SQL_PORT=${PG_PORT[two]}
	sql "SELECT pg_promote()"
	[ "$(rows)" -eq 1 ]
	eventually sessions 'semlock nightly waits' 10
	eventually sessions 'semlock nightly holds' 1
	let_go
	served 10
	pkill -KILL -P "${PG_PID[one]}" || true
}

@test "a standby that does not answer: what it has not got is not believed" {
	synchronous_standby
	sql "ALTER ROLE lock SET client_min_messages = 'error'"
	hold_lock --ttl=9 "$URL"
	postgresql_crash two
	# PostgreSQL warns "canceling wait for synchronous replication", and counts the statement as done.
	waits_for_standby() { [ -n "$(sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")" ]; }
	eventually waits_for_standby
	ended holder 76
	grep -q "standby" holder.err
}

@test "without its standby, locks fail with 69, never busy; --who shows why" {
	synchronous_standby
	expect_status 0 "$SEMLOCK" "$URL" true
	postgresql_crash two
	refused 69 "standby" "$SEMLOCK" -n "$URL" touch ran
	refused 69 "standby" "$SEMLOCK" -w 4 "$URL" touch ran
	start one "$SEMLOCK" -w 60 "$URL" touch ran
	eventually held 1
	refused 69 "standby" "$SEMLOCK" -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" --who "$URL"
	grep -q "^held  *[0-9]* .* exclusive " .out
	[ ! -e ran ]
	postgresql_start two
	ended one 0
	[ -e ran ]
}

@test "the server is away behind a pooler: the default lease outlasts it" {
	hold_lock "$URL"
	start waiter "$SEMLOCK" "$URL" true
	eventually waiting 1
	[ "$(sql "SELECT extract(epoch FROM lease)::int FROM semlock.place ORDER BY token" | tr '\n' ' ')" = "60 15 " ]
	let_go
	ended waiter 0
	rm holder.*
	# PgBouncer's own server_login_retry is 15 s, a quarter of the default lease.
	pooler transaction 1 "server_login_retry = $((3 * PACE))"
	hold_lock --ttl=$((12 * PACE)) "$POOLED"
	postgresql_crash one
	eventually grep -q "server login failed\|connect failed" "$PG_HOME/pgbouncer.log"
	"$PROBE" pause 1000
	postgresql_start one
	before=$(sql "SELECT until FROM semlock.place")
	eventually sql_is "SELECT until > '$before' FROM semlock.place"
	let_go
	expect_status 0 "$SEMLOCK" -n "$URL" true
}

# later URL: semlock waits for a server that is not there at first.
later() {
	local url=$1
	postgresql_crash one
	start early "$SEMLOCK" -v -w 60 "$url" true
	waits_for early "waiting: "
	refused_within 3000 "" "$SEMLOCK" -n "$url" true
	expect_status 69 "$SEMLOCK" -w 1 "$url" true
	postgresql_start one
	ended early 0
}

@test "a server not yet up is waited for; -n fails with 69 in 3 s, -w in time" {
	later "$URL"
	kill -STOP "${PG_PID[one]}" # the server accepts, and is silent
	refused_within 3000 "" "$SEMLOCK" -n "$URL" true
	start early "$SEMLOCK" -w 60 "$URL" true
	kill -CONT "${PG_PID[one]}"
	ended early 0
}

# names: the resolver of slow_names.c, for what is started from here on; LOCK is a lock's URL with a name for a host.
names() {
	command -v "${CC:-cc}" >/dev/null || skip "no compiler"
	"${CC:-cc}" -I "${CONFIG%/*}" -D_GNU_SOURCE -shared -fPIC -o names.so "$SOURCE/tests/lib/slow_names.c"
	if under_valgrind || [ "$("$SEMLOCK" --version)" != "$(LD_PRELOAD=$PWD/names.so "$SEMLOCK" --version 2>&1)" ]; then
		skip "no LD_PRELOAD with this build"
	fi
	export LD_PRELOAD=$PWD/names.so
	LOCK="postgresql://lock@db.test:${PG_PORT[one]}/nightly?dbname=postgres"
}

@test "a session lost while no name resolves: the lock is renewed and released" {
	names
	hold_lock --ttl=60 "$LOCK"
	: >no-dns
	end_sessions
	eventually sessions 'semlock nightly holds' 0
	before=$(now)
	let_go
	[ $(($(now) - before)) -lt $((5000000000 * SLOWNESS)) ] || complain "$(($(now) - before)) ns"
	[ "$(rows)" -eq 0 ]
	rm -f no-dns holder.*
	hold_lock --ttl=$((9 * PACE)) "$LOCK"
	: >no-dns
	end_sessions
	eventually sessions 'semlock nightly holds' 1
	let_go
	rm -f no-dns holder.*
	# The name may lead to another server by now.
	hold_lock --ttl=$((30 * PACE)) "$LOCK"
	postgresql_crash one
	postgresql_start one
	eventually sessions 'semlock nightly holds' 1
	let_go
}

@test "TERM ends a helper that still tries to release after semlock has gone" {
	without_leak_check
	hold_lock --ttl=600 "$URL"
	helper=$(helper_of holder)
	kill -TERM "$helper" # a running command's lock is not given up
	kill -STOP "${PG_PID[one]}"
	pkill -STOP -P "${PG_PID[one]}"
	kill -KILL "$(inner holder)" "${PID[holder]}" "${COMMAND[holder]}"
	ends() { kill -TERM "$helper" 2>/dev/null || true; ! kill -0 "$helper" 2>/dev/null; }
	PATIENCE=$((5 * SLOWNESS)) eventually ends
	pkill -CONT -P "${PG_PID[one]}"
}
