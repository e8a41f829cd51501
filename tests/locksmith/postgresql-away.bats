#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks on PostgreSQL: what a holder and its waiters do when the server, its standby or a session is gone.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote-postgresql

in_sync() { [ "$(sql "SELECT sync_state FROM pg_stat_replication")" = sync ]; }

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

@test "sessions are ended by pg_terminate_backend: the command runs on, the waiters wait on, in their order" {
	hold_lock --ttl=9 "$URL"
	queue_up 4 --ttl=30 "$URL"
	end_sessions
	eventually sessions 'semlock nightly waits' 4
	eventually sessions 'semlock nightly holds' 1 # at the next renewal
	end_sessions
	let_go
	served 4
}

@test "the server restarts, at once too, and by kill -9: the command runs on, ten waiters wait on, in their order" {
	without_leak_check
	hold_lock --ttl=30 "$URL"
	queue_up 10 --ttl=60 "$URL"
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

@test "a server that was away for longer than the waiters' leases: they keep their places for a lease from its start" {
	without_leak_check
	hold_lock --ttl=60 "$URL"
	queue_up 2 --ttl=10 "$URL"
	first=$(helper_of 1)
	pg_signal one INT
	kill -STOP "$first"
	"$PROBE" pause 10500
	postgresql_start one
	back() { [ "$(sql "SELECT count(*) FROM semlock.place WHERE token IS NULL AND boot = pg_postmaster_start_time()")" -eq 1 ]; }
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

@test "a server that is away for the whole lease: the command is ended before the next begins, 76" {
	without_leak_check
	LOCK=$URL
	crash() { postgresql_crash one && "$PROBE" gone "${COMMAND[$name]}" && postgresql_start one; }
	with_lease 3 lost_by holder crash
}

@test "a server that is away at the release, and comes back: the lock is released then" {
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

@test "the helper is killed, or stopped: the command is ended before the next begins, 76" {
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

@test "a renewal that the server has no room for is tried again, as long as there is time" {
	with_lease 9 held_without_room
}

@test "the holder's row is removed by hand: found at the next renewal, 76" {
	hold_lock --ttl=9 "$URL"
	sql "DELETE FROM semlock.place"
	ended holder 76
	grep -q "its row was removed" holder.err
}

@test "either semlock killed: all that the command has started is gone before the next begins" {
	ends_with_semlock
}

@test "both semlocks killed at once: the command is killed, and what it has started keeps the lock until it ends" {
	without_leak_check
	both_killed
}

standby_has() { [ "$(SQL_PORT=${PG_PORT[two]} sql "SELECT count(*) FROM semlock.place")" -eq "$1" ]; }

@test "failover to a synchronous standby: the command runs on, ten waiters keep their places" {
	synchronous_standby
	LOCK="postgresql://lock@$PG,$PG2/nightly?dbname=postgres"
	# A standby cannot lock, and is passed over.
	expect_status 0 "$SEMLOCK" "postgresql://lock@$PG2,$PG/nightly?dbname=postgres" true
	refused 69 "the server is a standby" "$SEMLOCK" -n "postgresql://lock@$PG2/nightly?dbname=postgres" true
	hold_lock --ttl=30 "$LOCK"
	queue_up 10 --ttl=30 "$LOCK"
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

@test "while the standby is away nothing is taken: 69, never busy; --who says what is in the way" {
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

@test "a server that is not there yet is waited for; -n is 69 within three seconds, -w 69 in its time" {
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

@test "no name is resolved, and the session is gone: the lock is renewed, and released at once" {
	names
	hold_lock --ttl=60 "$LOCK"
	: >no-dns
	end_sessions
	eventually sessions 'semlock nightly holds' 0
	before=$(now)
	let_go
	[ $(($(now) - before)) -lt 5000000000 ] || complain "$(($(now) - before)) ns"
	[ "$(rows)" -eq 0 ]
	rm -f no-dns holder.*
	hold_lock --ttl=9 "$LOCK"
	: >no-dns
	end_sessions
	eventually sessions 'semlock nightly holds' 1
	let_go
	rm -f no-dns holder.*
	# The name may lead to another server by now.
	hold_lock --ttl=30 "$LOCK"
	postgresql_crash one
	postgresql_start one
	eventually sessions 'semlock nightly holds' 1
	let_go
}

@test "TERM ends a helper that still tries to release a lock, when semlock is gone" {
	without_leak_check
	hold_lock --ttl=600 "$URL"
	helper=$(helper_of holder)
	kill -TERM "$helper" # a running command's lock is not given up
	kill -STOP "${PG_PID[one]}"
	pkill -STOP -P "${PG_PID[one]}"
	kill -KILL "$(inner holder)" "${PID[holder]}" "${COMMAND[holder]}"
	ends() { kill -TERM "$helper" 2>/dev/null || true; ! kill -0 "$helper" 2>/dev/null; }
	PATIENCE=5 eventually ends
	pkill -CONT -P "${PG_PID[one]}"
}
