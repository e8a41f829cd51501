#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock postgresql://SERVER/NAME COMMAND; the server is started here.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote
load ../lib/servers/postgresql

prepare() {
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-postgresql" ] || skip "this build has no locks on PostgreSQL"
	DIR=$PWD
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR HOME=$DIR
	unset SEMLOCK_USER SEMLOCK_PASSWORD PGUSER PGPASSWORD PGHOST PGPORT PGDATABASE PGSERVICE PGPASSFILE
	postgresql_server max_connections=40 shared_buffers=8MB
}

tidy() {
	postgresql_stop_all
	[ -z "${HOSTILE-}" ] || kill "$HOSTILE" || true
}

rows() { sql "SELECT count(*) FROM semlock.place WHERE token IS NOT NULL"; }
held() { [ "$(rows)" -eq "$1" ]; }
# waiting N: N have a place in the queue.
waiting() { [ "$(sql "SELECT count(*) FROM semlock.place WHERE token IS NULL")" -eq "$1" ]; }
# sessions NAME N: N sessions have a name like that.
sessions() { [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '$1'")" -eq "$2" ]; }
end_sessions() { sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'semlock%'"; }

in_sync() { [ "$(sql "SELECT sync_state FROM pg_stat_replication")" = sync ]; }

synchronous_standby() {
	postgresql_standby
	sql "ALTER SYSTEM SET synchronous_standby_names = 'two'"
	sql "SELECT pg_reload_conf()"
	eventually in_sync
}

# proxy: starts between.py; PROXIED is URL through it.
proxy() {
	apart /usr/bin/python3 "$SOURCE/tests/lib/servers/between.py" "$PG" "$DIR" >between 2>between.err </dev/null &
	in_file between READY
	PROXIED=${URL/$PG/127.0.0.1:$(sed 's/READY //' between)}
}

# waiter NAME ARG...: starts semlock, and returns when semlock says that it waits.
waiter() {
	local name=$1
	shift
	fifos "$name"
	start "$name" "$SEMLOCK" -v "$@" "$PROBE" hold "$name.up" "$name.down"
	waits_for "$name" "waiting: "
}

# queue_up N ARG...: N waiters, one after the other; each writes its number and its token to "order".
queue_up() {
	local most=$1 i
	shift
	: >order
	for ((i = 1; i <= most; i++)); do
		start "$i" "$SEMLOCK" "$@" sh -c "echo $i \$SEMLOCK_TOKEN >>order"
		eventually waiting "$i" || return
	done
}

# served N: all of them have ended with 0, in order, and the tokens rise.
served() {
	local i
	for ((i = 1; i <= $1; i++)); do ended "$i" 0 || return; done
	# shellcheck disable=SC2015 # each of them
	sort -n -k1 -s order | cmp -s order && sort -n -k2 -u order | cmp -s order && [ "$(wc -l <order)" -eq "$1" ] ||
		complain "the order is" "$(cat order)"
}

@test "the command runs, with its input, its status, and what it is told of the lock" {
	runs_a_command
	expect_status 0 "$SEMLOCK" -s "$URL" sh -c 'echo "$SEMLOCK_LOCK $SEMLOCK_METHOD $SEMLOCK_MODE"'
	expect_out "$URL postgresql shared"
	expect_status 127 "$SEMLOCK" "$URL" ./no-such-command
	expect_status 137 "$SEMLOCK" "$URL" sh -c 'kill -KILL $$'
	[ "$(rows)" -eq 0 ]
	expect_status 0 "$SEMLOCK" "postgres${URL#postgresql}" true
}

@test "a name and a command may be in any encoding" {
	printf '#!/bin/sh\necho ran\n' >$'b\xe4'
	chmod +x $'b\xe4'
	expect_status 0 "$SEMLOCK" "postgresql://lock@$PG/n%C3%A4chtlich?dbname=postgres" ./$'b\xe4'
	expect_out ran
	refused 69 "invalid byte sequence" "$SEMLOCK" "postgresql://lock@$PG/n%E4chtlich?dbname=postgres" touch ran
	[ ! -e ran ]
}

@test "when semlock has ended the lock is free: the next -n has it, with a higher token" {
	last=0
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		expect_status 0 "$SEMLOCK" -n "$URL" sh -c 'echo $SEMLOCK_TOKEN'
		[ "$out" -gt "$last" ] || complain "token $out after $last"
		last=$out
	done
}

@test "one at a time: -n and -w give up and leave nothing behind, a waiter gets it" {
	holds_against_others
	[ "$(rows)" -eq 1 ]
	waiter one "$URL"
	waits_for one "waiting: held by ${COMMAND[holder]} on"
	# The first waiter waits for the row, the next ones for the first.
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" -w 0.3 "$URL" touch ran
	release holder
	ended holder 0
	ready one
	release one
	ended one 0
	[ ! -e ran ]
	[ "$(rows)" -eq 0 ]
	eventually waiting 0
}

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

handed_over_soon() {
	rm -f holder.up holder.down
	hold_lock "$URL" || return
	for i in {1..5}; do
		start "$i" "$SEMLOCK" "$URL" sleep 0.3
		eventually waiting "$i" || return
	done
	before=$(now)
	let_go holder || return
	for i in {1..5}; do ended "$i" 0 || return; done
	[ $(($(now) - before)) -lt 3500000000 ]
}

@test "the first in the queue hears of a release at once, and does not look once a second" {
	eventually handed_over_soon
}

@test "readers together, slots with numbers of their own, and never both" {
	hold_as one -s "$URL"
	hold_as two -s "$URL"
	expect_status 1 "$SEMLOCK" -n "$URL" true
	expect_status 1 "$SEMLOCK" -n -j 9 "$URL" true
	let_go one
	let_go two
	hold_as slot0 -j 2 "$URL"
	expect_status 0 "$SEMLOCK" -n -j 2 "$URL" sh -c 'echo "$SEMLOCK_SLOT $SEMLOCK_MODE"'
	expect_out "1 slot"
	hold_as slot1 -j 2 "$URL"
	expect_status 1 "$SEMLOCK" -n -j 2 "$URL" true
	expect_status 1 "$SEMLOCK" -n -s "$URL" true
	let_go slot0
	expect_status 0 "$SEMLOCK" -n -j 2 "$URL" sh -c 'echo "$SEMLOCK_SLOT"'
	expect_out 0
}

@test "many at once without waiting: readers are never busy" {
	hold_as reader -s "$URL"
	for i in {1..12}; do start "$i" "$SEMLOCK" -n -s "$URL" true; done
	for i in {1..12}; do ended "$i" 0; done
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

@test "a waiter that is stopped (Ctrl-Z) holds nothing up for more than a lease, and has its turn when it goes on" {
	with_lease 2 stopped_waiter 1
}

standby_has() { [ "$(SQL_PORT=${PG_PORT[two]} sql "SELECT count(*) FROM semlock.place")" -eq "$1" ]; }

@test "failover to a synchronous standby: the command runs on, ten waiters keep their places" {
	synchronous_standby
	LOCK="postgresql://lock@$PG,$PG2/nightly?dbname=postgres"
	# A standby cannot lock, and is passed over.
	expect_status 0 "$SEMLOCK" "postgresql://lock@$PG2,$PG/nightly?dbname=postgres" true
	expect_status 69 "$SEMLOCK" -n "postgresql://lock@$PG2/nightly?dbname=postgres" true
	hold_lock --ttl=60 "$LOCK"
	queue_up 10 --ttl=60 "$LOCK"
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
	hold_lock --ttl=15 "$URL"
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

@test "a clock that was set back makes a lease no longer" {
	hold_lock --ttl=4 "$URL"
	start one "$SEMLOCK" --ttl=4 "$URL" true
	eventually waiting 1
	kill -KILL "$(helper_of holder)" "$(inner holder)" "${PID[holder]}"
	sql "UPDATE semlock.place SET until = until + interval '1 hour' WHERE token IS NOT NULL"
	ended one 0
	kill -KILL "${COMMAND[holder]}" || true
}

@test "a role that may only connect keeps others out for as long as it stays, and that is 69" {
	expect_status 0 "$SEMLOCK" "$URL" true
	mkfifo in
	exec {in}<>in
	apart psql -X -q -t -A -h 127.0.0.1 -p "${PG_PORT[one]}" -U lock -d postgres <in >said 2>&1 {in}>&- &
	echo "SELECT pg_advisory_lock(hashtextextended('nightly', 7302)); SELECT 'taken';" >&"$in"
	in_file said taken
	refused 69 "" "$SEMLOCK" -n "$URL" touch ran
	refused 69 "" "$SEMLOCK" -w 3 "$URL" touch ran
	start one "$SEMLOCK" -v "$URL" true
	waits_for one "waiting: for the server: another session"
	echo '\q' >&"$in"
	wait $! || true
	ended one 0
	[ ! -e ran ]
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

@test "a URL that may lead to a standby is refused" {
	refused 64 "target_session_attrs=any" "$SEMLOCK" -n "$URL&target_session_attrs=any" true
	PGTARGETSESSIONATTRS=prefer-standby refused 64 "prefer-standby" "$SEMLOCK" -n "$URL" true
	expect_status 0 "$SEMLOCK" -n "$URL&target_session_attrs=read-write" true
}

@test "SEMLOCK_CACERT: a server that this authority does not vouch for is refused, and hears no password" {
	certificates
	SEMLOCK_CACERT=$DIR/ca.pem refused 69 "SSL" "$SEMLOCK" -n "$URL" true
	cp leaf.pem leaf.key "$PG_HOME/one/"
	chmod 600 "$PG_HOME/one/leaf.key"
	[ "$(id -u)" -ne 0 ] || chown nobody "$PG_HOME/one/leaf.key" "$PG_HOME/one/leaf.pem"
	sql "ALTER SYSTEM SET ssl_cert_file = 'leaf.pem'"
	sql "ALTER SYSTEM SET ssl_key_file = 'leaf.key'"
	sql "ALTER SYSTEM SET ssl = on"
	postgresql_restart one
	SEMLOCK_CACERT=$DIR/ca.pem expect_status 0 "$SEMLOCK" -n "$URL" true
	cp ca.pem mine.pem
	certificates
	SEMLOCK_CACERT=$DIR/ca.pem refused 69 "certificate verify failed" "$SEMLOCK" -n "$URL" true
	PGSSLROOTCERT=$DIR/mine.pem SEMLOCK_CACERT=$DIR/ca.pem expect_status 0 "$SEMLOCK" -n "$URL" true
}

@test "a password in the URL is refused; elsewhere it is in no command line; a wrong one is 77" {
	secret=Sesame$RANDOM$RANDOM
	sql "CREATE ROLE cron LOGIN PASSWORD '$secret'"
	sql "CREATE DATABASE locks OWNER cron"
	sed -i '1i host all cron all scram-sha-256' "$PG_HOME/one/pg_hba.conf"
	sql "SELECT pg_reload_conf()"
	url="postgresql://cron@$PG/nightly?dbname=locks"
	eventually refused 77 "put it into ~/.pgpass" "$SEMLOCK" -n "$url" true
	refused 64 "password" "$SEMLOCK" -n "postgresql://cron:$secret@$PG/nightly?dbname=locks" true
	refused 64 "password" "$SEMLOCK" -n "$url&password=$secret" true
	SEMLOCK_PASSWORD=wrong refused 77 "password authentication failed" "$SEMLOCK" -w 9 "$url" true
	echo "*:*:*:cron:$secret" >pass
	chmod 600 pass
	PGPASSFILE=$DIR/pass expect_status 0 "$SEMLOCK" -n "$url" true
	SEMLOCK_USER=cron PGPASSFILE=$DIR/pass expect_status 0 "$SEMLOCK" -n "postgresql://$PG/nightly?dbname=locks" true
	export SEMLOCK_PASSWORD=$secret
	hold_lock "$url"
	in_no_command_line "$secret"
}

@test "libpq's own ways to name a server: PGHOST and the like, a service, a socket, several hosts" {
	export PGHOST=127.0.0.1 PGPORT=${PG_PORT[one]} PGUSER=lock PGDATABASE=postgres
	hold_lock postgresql:///nightly
	expect_status 1 "$SEMLOCK" -n "$URL" true
	unset PGHOST PGPORT PGUSER PGDATABASE
	printf '[locks]\nhost=%s\nport=%s\nuser=lock\ndbname=postgres\n' "$PG_HOME" "${PG_PORT[one]}" >services
	PGSERVICEFILE=$DIR/services expect_status 1 "$SEMLOCK" -n "postgresql:///night%6cy?service=locks" true
	expect_status 1 "$SEMLOCK" -n "postgresql://lock@127.0.0.1:1,$PG/nightly?dbname=postgres" true
	expect_status 0 "$SEMLOCK" -n "postgresql://lock@$PG/nightly/2?dbname=postgres" true
	refused 64 "lock's name" "$SEMLOCK" -n "postgresql://lock@$PG/?dbname=postgres" true
	refused 64 "URL" "$SEMLOCK" -n "$URL&colour=red" true
	refused 69 "database" "$SEMLOCK" -n "postgresql://lock@$PG/nightly?dbname=nowhere" true
}

@test "a role without rights is told what to grant, and how" {
	sql "CREATE ROLE cron LOGIN"
	url="postgresql://cron@$PG/nightly?dbname=postgres"
	refused 77 "let the owner of the database take this lock once" "$SEMLOCK" -n "$url" true
	expect_status 0 "$SEMLOCK" "$URL" true
	refused 77 "GRANT USAGE ON SCHEMA semlock TO cron; GRANT USAGE ON SEQUENCE semlock.token TO cron" "$SEMLOCK" -n "$url" true
	sql "$(sed -n 's/.*\(GRANT USAGE ON SCHEMA.*\)/\1/p' .err)"
	expect_status 0 "$SEMLOCK" -n "$url" true
	expect_status 0 "$SEMLOCK" --who "$url"
}

@test "settings of the role do not end a wait, nor a lock" {
	# The timeouts are long enough for a busy machine to connect.
	sql "ALTER ROLE lock SET statement_timeout = '1s'"
	sql "ALTER ROLE lock SET lock_timeout = '1s'"
	sql "ALTER ROLE lock SET idle_session_timeout = '1s'"
	sql "ALTER ROLE lock SET default_transaction_isolation = 'serializable'"
	hold_lock --ttl=9 "$URL"
	waiter one "$URL"
	waiter two "$URL"
	"$PROBE" pause 3500
	let_go holder
	ready one
	let_go one
	ready two
	let_go two
}

# No server of version 17 is needed: an older one that passes for one names what it is asked to set.
@test "nor does a transaction_timeout, which servers from version 17 have" {
	if [ "$(sql "SHOW server_version_num")" -ge 170000 ]; then
		sql "ALTER ROLE lock SET transaction_timeout = '100ms'"
		hold_lock "$URL"
		waiter one "$URL"
		"$PROBE" pause 500
		let_go holder
		ready one
		let_go one
		return
	fi
	proxy
	expect_status 0 "$SEMLOCK" "$PROXIED" true
	echo 17 >faults/version
	refused 69 'parameter "transaction_timeout"' "$SEMLOCK" "$PROXIED" true
}

@test "nor does a lock_timeout of the role, while the table is locked, as by VACUUM FULL" {
	expect_status 0 "$SEMLOCK" "$URL" true # makes the table
	sql "ALTER ROLE lock SET lock_timeout = '100ms'"
	mkfifo in
	exec {in}<>in
	apart psql -X -q -t -A -h 127.0.0.1 -p "${PG_PORT[one]}" -U lock -d postgres <in >said 2>&1 {in}>&- &
	administrator=$!
	echo "BEGIN; LOCK TABLE semlock.place; SELECT 'locked';" >&"$in"
	in_file said locked
	start one "$SEMLOCK" --ttl=60 "$URL" true
	outwaited() {
		[ "$(sql "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'semlock.place'::regclass
			AND waitstart < clock_timestamp() - interval '300ms'")" -eq 1 ]
	}
	eventually outwaited
	echo '\q' >&"$in"
	wait "$administrator"
	ended one 0
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

@test "--who names holders and waiters, as a table and as JSON" {
	who_names_both
	expect_status 1 "$SEMLOCK" --who
	grep -A3 "^$URL: held, 1 waiting" .out >lines
	grep -q "^held  *${COMMAND[holder]} " lines
	grep -q "^ *1\. *$(inner waiter) " lines
	release holder
	ended holder 0
	ended waiter 0
	expect_status 0 "$SEMLOCK" --who "$URL"
}

@test "--who names the command with its words and its PID, its slot, and since when, on its host and on others" {
	began=$(date +%s)
	hold_lock --ttl=9 -j 3 "$URL"
	expect_status 1 "$SEMLOCK" --who --json "$URL"
	/usr/bin/python3 - .out "${COMMAND[holder]}" "$(inner holder)" "$began" "$PROBE" <<-'END'
		import calendar, json, sys, time
		_, out, pid, semlock, began, probe = sys.argv
		holder = json.load(open(out))[0]["holders"][0]
		since = calendar.timegm(time.strptime(holder["since"], "%Y-%m-%dT%H:%M:%SZ"))
		assert (holder["pid"], holder["watcher"], holder["slot"]) == (int(pid), int(semlock), 0), holder
		assert holder["command"] == [probe, "hold", "holder.up", "holder.down"], holder
		assert int(began) <= since <= time.time(), holder
	END
	# Another host knows what the server knows: the command's PID from the first renewal on.
	known() {
		run_smith --who "$URL"
		[[ $output =~ ^"WHO state=holds mode=slots slot=0 pid=${COMMAND[holder]} host=$(hostname) since="([0-9]+)" note=$PROBE hold holder.up holder.down"$ ]] &&
			[ "${BASH_REMATCH[1]}" -ge "$began" ]
	}
	eventually known
}

@test "--hold holds it for another program, until end of input" {
	mkfifo in
	exec {in}<>in
	apart "$SEMLOCK" --hold "$URL" <in >said 2>&1 {in}>&- &
	holder=$!
	in_file said OK
	expect_status 1 "$SEMLOCK" -n "$URL" true
	exec {in}>&-
	wait "$holder"
	expect_status 0 "$SEMLOCK" -n "$URL" true
}

# hostile MODE [SENSIBLE]: a server that lets everybody in, and then makes no sense; FAKE is a lock's URL there.
hostile() {
	[ -z "${HOSTILE-}" ] || kill "$HOSTILE"
	: >hostile
	apart /usr/bin/python3 "$SOURCE/tests/lib/servers/hostile_postgresql.py" "$@" >hostile </dev/null &
	HOSTILE=$!
	in_file hostile READY
	FAKE=postgresql://lock@127.0.0.1:$(sed 's/READY //' hostile)/nightly
}

# memory CMD...: its status, and "KB", the most that it had; it has no input.
memory() {
	/usr/bin/python3 -c 'import resource, subprocess, sys
print(subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL),
      resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$@" >measured
	read -r status KB <measured
}

@test "a server that answers nonsense, or without end: 69 in time, and little memory" {
	local mode helper=$LOCKSMITH_DIR/semlock-locksmith-postgresql usual
	memory "$helper" --no-wait postgresql://127.0.0.1:1/nightly
	usual=$KB
	for mode in copy-in copy-out copy-both shape null nothing rows row notify notice settings results; do
		hostile "$mode"
		refused_within 3000 "" "$SEMLOCK" -n "$FAKE" touch ran || complain "$mode"
		memory "$helper" --who "$FAKE"
		[ "$status" -eq 69 ] && [ "$KB" -lt $((usual + 20000)) ] || complain "$mode: $status, $KB kB; $usual at least"
	done
	[ ! -e ran ]
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

@test "and 76 under a lock" {
	local mode
	for mode in copy-both rows row notify; do
		hostile "$mode" 1
		expect_status 76 "$SEMLOCK" --ttl=2 "$FAKE" sleep 60
	done
}

@test "what PostgreSQL has nothing to do with is refused" {
	refused 64 "--stale" "$SEMLOCK" --stale=5 "$URL" touch ran
	[ ! -e ran ]
}

@test "--min-hold: hosts whose clocks differ run the job once" {
	clocks_differ
}
