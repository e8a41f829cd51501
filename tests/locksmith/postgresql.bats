#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock postgresql://SERVER/NAME COMMAND; the server is started here.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/group-kill
load ../lib/remote-postgresql

@test "the command has its input, its status and the lock's variables" {
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
	# The session's name is cut, here within a character.
	expect_status 0 "$SEMLOCK" "postgresql://lock@$PG/x$(printf '%%C3%%A4%.0s' {1..40})?dbname=postgres" true
	refused 64 "must be UTF-8" "$SEMLOCK" "postgresql://lock@$PG/n%E4chtlich?dbname=postgres" touch ran
	sql "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
	expect_status 0 "$SEMLOCK" "postgresql://lock@$PG/n%C3%A4chtlich?dbname=latin" ./$'b\xe4'
	refused 64 "cannot hold the lock's name" "$SEMLOCK" "postgresql://lock@$PG/10%E2%82%AC?dbname=latin" touch ran
	[ ! -e ran ]
}

@test "a place in the queue outlives the call, and keeps its turn" {
	load ../lib/holds
	keeps_a_place_on_a_server "$URL"
}

@test "when semlock has ended the next -n gets the lock, with a higher token" {
	last=0
	for _ in 1 2 3 ${THOROUGH:+4 5 6 7 8 9 10}; do
		expect_status 0 "$SEMLOCK" -n "$URL" sh -c 'echo $SEMLOCK_TOKEN'
		[ "$out" -gt "$last" ] || complain "token $out after $last"
		last=$out
	done
}

@test "one at a time: -n and -w leave nothing behind, a waiter gets the lock" {
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

@test "a clock that was set back makes a lease no longer" {
	hold_lock --ttl=$((4 * PACE)) "$URL"
	start one "$SEMLOCK" --ttl=$((4 * PACE)) "$URL" true
	eventually waiting 1
	kill -KILL "$(helper_of holder)" "$(inner holder)" "${PID[holder]}"
	sql "UPDATE semlock.place SET until = until + interval '1 hour' WHERE token IS NOT NULL"
	ended one 0
	kill -KILL "${COMMAND[holder]}" || true
}

@test "a role that may only connect keeps others out, which fail with 69" {
	expect_status 0 "$SEMLOCK" "$URL" true
	mkfifo in
	exec {in}<>in
	apart psql -X -q -t -A -h 127.0.0.1 -p "${PG_PORT[one]}" -U lock -d postgres <in >said 2>&1 {in}>&- &
	echo "SELECT pg_advisory_lock(hashtextextended('nightly', 7302)); SELECT 'taken';" >&"$in"
	in_file said taken
	eventually refused 69 "another session keeps" "$SEMLOCK" -n "$URL" touch ran # a busy machine may be late
	refused 69 "another session keeps" "$SEMLOCK" -w 3 "$URL" touch ran
	start one "$SEMLOCK" -v "$URL" true
	waits_for one "waiting: for the server: another session"
	echo '\q' >&"$in"
	wait $! || true
	ended one 0
	[ ! -e ran ]
}

@test "a URL that may lead to a standby is refused" {
	refused 64 "target_session_attrs=any" "$SEMLOCK" -n "$URL&target_session_attrs=any" true
	PGTARGETSESSIONATTRS=prefer-standby refused 64 "prefer-standby" "$SEMLOCK" -n "$URL" true
	expect_status 0 "$SEMLOCK" -n "$URL&target_session_attrs=read-write" true
}

# server_with_tls: the server has the certificate leaf.pem from now on, and believes the authority ca.pem.
server_with_tls() {
	cp ca.pem leaf.pem leaf.key "$PG_HOME/one/"
	chmod 600 "$PG_HOME/one/leaf.key"
	[ "$(id -u)" -ne 0 ] || chown nobody "$PG_HOME"/one/{ca.pem,leaf.key,leaf.pem}
	sql "ALTER SYSTEM SET ssl_ca_file = 'ca.pem'"
	sql "ALTER SYSTEM SET ssl_cert_file = 'leaf.pem'"
	sql "ALTER SYSTEM SET ssl_key_file = 'leaf.key'"
	sql "ALTER SYSTEM SET ssl = on"
	postgresql_restart one
}

@test "SEMLOCK_CACERT: a server it does not vouch for hears no password" {
	certificates
	SEMLOCK_CACERT=$DIR/ca.pem refused 69 "SSL" "$SEMLOCK" -n "$URL" true
	server_with_tls
	SEMLOCK_CACERT=$DIR/ca.pem expect_status 0 "$SEMLOCK" -n "$URL" true
	cp ca.pem mine.pem
	certificates
	SEMLOCK_CACERT=$DIR/ca.pem refused 69 "certificate verify failed" "$SEMLOCK" -n "$URL" true
	PGSSLROOTCERT=$DIR/mine.pem SEMLOCK_CACERT=$DIR/ca.pem expect_status 0 "$SEMLOCK" -n "$URL" true
}

# certificate_of NAME: NAME.pem and NAME.key, vouched for by ca.pem.
certificate_of() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2>/dev/null &&
		openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out "$1.pem" 2>/dev/null &&
		chmod 600 "$1.key"
}

@test "client certificates: SEMLOCK_CERT, or libpq's; without a valid one, 77" {
	certificates
	certificate_of cron
	certificate_of other
	sql "CREATE ROLE cron LOGIN"
	sql "CREATE DATABASE locks OWNER cron"
	sed -i '1i hostssl all cron all cert' "$PG_HOME/one/pg_hba.conf"
	server_with_tls
	url="postgresql://cron@$PG/nightly?dbname=locks"
	export SEMLOCK_CACERT=$DIR/ca.pem
	refused 77 "certificate" "$SEMLOCK" -n "$url" true
	SEMLOCK_CERT=$DIR/other.pem SEMLOCK_KEY=$DIR/other.key \
		refused 77 'certificate authentication failed for user "cron"' "$SEMLOCK" -n "$url" true
	SEMLOCK_CERT=$DIR/cron.pem SEMLOCK_KEY=$DIR/cron.key expect_status 0 "$SEMLOCK" -n "$url" true
	PGSSLCERT=$DIR/cron.pem PGSSLKEY=$DIR/cron.key SEMLOCK_CERT=$DIR/other.pem SEMLOCK_KEY=$DIR/other.key \
		expect_status 0 "$SEMLOCK" -n "$url" true
	SEMLOCK_CERT=$DIR/other.pem SEMLOCK_KEY=$DIR/other.key \
		expect_status 0 "$SEMLOCK" -n "$url&sslcert=$DIR/cron.pem&sslkey=$DIR/cron.key" true
	export SEMLOCK_CERT=$DIR/cron.pem SEMLOCK_KEY=$DIR/cron.key
	hold_lock "$url"
	# Another authority's, for the same name: the server ends the connection.
	mkdir theirs
	(cd theirs && DIR=$PWD certificates && certificate_of cron)
	SEMLOCK_CERT=$DIR/theirs/cron.pem SEMLOCK_KEY=$DIR/theirs/cron.key \
		refused 69 "SSL error: tlsv1 alert" "$SEMLOCK" -n "$url" true
}

@test "a password is refused in the URL, hidden elsewhere; a wrong one gives 77" {
	secret=Sesame$RANDOM$RANDOM
	sql "CREATE ROLE cron LOGIN PASSWORD '$secret'"
	sql "CREATE DATABASE locks OWNER cron"
	sed -i '1i host all cron all scram-sha-256' "$PG_HOME/one/pg_hba.conf"
	sql "SELECT pg_reload_conf()"
	url="postgresql://cron@$PG/nightly?dbname=locks"
	eventually refused 77 "use ~/.pgpass" "$SEMLOCK" -n "$url" true
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

@test "libpq's own ways to name a server work: PGHOST, service, socket, hosts" {
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

# may RIGHTS: URL is that of the role cron, which has these rights to the table, and all others.
may() {
	expect_status 0 "$SEMLOCK" "$URL" true
	sql "CREATE ROLE cron LOGIN; GRANT USAGE ON SCHEMA semlock TO cron; GRANT USAGE ON SEQUENCE semlock.token TO cron;
		GRANT $1 ON semlock.place TO cron"
	URL=${URL/lock@/cron@}
}

@test "a role that may not renew or release is refused before the command" {
	may "SELECT, INSERT"
	for right in UPDATE DELETE; do
		for mode in -x -s "-j 2"; do
			# shellcheck disable=SC2086 # two words
			refused 77 "GRANT SELECT, INSERT, UPDATE, DELETE ON semlock.place TO cron" "$SEMLOCK" $mode "$URL" touch ran
		done
		sql "GRANT $right ON semlock.place TO cron"
	done
	[ ! -e ran ]
	hold_lock --ttl=$((9 * PACE)) "$URL"
	sql "REVOKE UPDATE ON semlock.place FROM cron"
	ended holder 76
	grep -q "the lock is lost: permission denied for table place" holder.err
}

@test "row security on the table is refused: it would hide others' rows" {
	local url=$URL
	may "SELECT, INSERT, UPDATE, DELETE"
	hold_lock "$url"
	sql "CREATE POLICY own ON semlock.place USING (client LIKE '%note=cron%') WITH CHECK (true)"
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	sql "ALTER TABLE semlock.place ENABLE ROW LEVEL SECURITY"
	refused 77 "ALTER TABLE semlock.place DISABLE ROW LEVEL SECURITY" "$SEMLOCK" -n "$URL" touch ran
	refused 77 "ALTER TABLE semlock.place DISABLE ROW LEVEL SECURITY" "$SEMLOCK" --who "$URL"
	[ ! -e ran ]
}

@test "a table of another version of semlock is refused" {
	expect_status 0 "$SEMLOCK" "$URL" true
	sql "ALTER TABLE semlock.place DROP CONSTRAINT place_version_check, ALTER version SET DEFAULT 2, ADD CHECK (version = 2)"
	for mode in -n "-w 60" "-j 2"; do
		# shellcheck disable=SC2086 # two words
		refused 69 "of another version of semlock (2; this one knows 1)" "$SEMLOCK" $mode "$URL" touch ran
	done
	sql "ALTER TABLE semlock.place DROP COLUMN version" # as before there were versions
	refused 69 "of another version of semlock (0; this one knows 1)" "$SEMLOCK" -n "$URL" touch ran
	[ ! -e ran ]
	sql "DROP SCHEMA semlock CASCADE"
	expect_status 0 "$SEMLOCK" -n "$URL" true
}

# removed_by SQL WORDS...: while a lock is held, and another is waited for, the table goes.
removed_by() {
	rm -f holder.* other.* waiter.*
	hold_lock --ttl=600 "$URL"
	start waiter "$SEMLOCK" -v --ttl=600 "$URL" touch ran
	eventually waiting 1
	sql "$1" || return
	for mode in -n "-w 60" "-s -n"; do
		# shellcheck disable=SC2086 # two words
		refused 69 "the table semlock.place has been removed after locks were taken: $2" "$SEMLOCK" $mode "${URL/nightly/$3}" touch ran || return
	done
	refused 69 "the table semlock.place has been removed" "$SEMLOCK" --who "$URL" || return
	kill -0 "${COMMAND[holder]}"
	sql "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name LIKE 'semlock % waits'" >/dev/null
	ended waiter 69
	grep -q "semlock.place" waiter.err
	kill -0 "${COMMAND[holder]}"
	[ ! -e ran ]
}

@test "the table is removed under a lock: no other is made beside the holder" {
	removed_by "ALTER SCHEMA semlock RENAME TO kept" "the schema kept looks like it, rename it back" nightly
	sql "ALTER SCHEMA kept RENAME TO semlock"
	let_go
	removed_by "ALTER TABLE semlock.place RENAME TO kept" "if it was renamed, rename it back" nightly
	sql "ALTER TABLE semlock.kept RENAME TO place"
	let_go
	removed_by "DROP TABLE semlock.place" "if it was renamed, rename it back; if it was dropped, DROP SCHEMA semlock CASCADE" other
	let_go # and its row goes with the schema
	sql "DROP SCHEMA semlock CASCADE"
	removed_by "DROP SCHEMA semlock CASCADE" "a session still holds a lock (semlock nightly holds)" other
	let_go
	eventually sessions 'semlock % holds' 0
	expect_status 0 "$SEMLOCK" "$URL" sh -c 'echo $SEMLOCK_TOKEN'
	[ "$out" -ge "$(date +%s -d '-1 hour')" ] || complain "token $out"
}

@test "a server, database or role that only reads is refused in so many words" {
	may "SELECT, INSERT, UPDATE, DELETE"
	sql "ALTER ROLE cron SET default_transaction_read_only = on"
	refused 69 "default_transaction_read_only is on, for the server, the database or the role cron" "$SEMLOCK" -n "$URL" true
}

@test "settings of the role do not end a wait, nor a lock" {
	# The timeouts are long enough for a busy machine to connect.
	sql "ALTER ROLE lock SET statement_timeout = '1s'"
	sql "ALTER ROLE lock SET lock_timeout = '1s'"
	sql "ALTER ROLE lock SET idle_session_timeout = '1s'"
	sql "ALTER ROLE lock SET default_transaction_isolation = 'serializable'"
	hold_lock --ttl=$((9 * PACE)) "$URL"
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

@test "a lock_timeout of the role does no harm while the table is locked" {
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

@test "--who shows command, PID, slot and start time, here and elsewhere" {
	began=$(date +%s)
	hold_lock --ttl=$((9 * PACE)) -j 3 "$URL"
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

@test "a background hold lasts over several calls, and ends with its owner" {
	load ../lib/holds
	holds_on_a_server "$URL"
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
	python_server hostile hostile.err hostile_postgresql.py "$@"
	HOSTILE=$SERVER
	FAKE=postgresql://lock@127.0.0.1:$PORT/nightly
}

# costs CMD...: its status; KB, the most memory that it had; and CPU, the whole seconds of processor time.  It has no input.
costs() {
	/usr/bin/python3 -c 'import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, used.ru_maxrss, int(used.ru_utime + used.ru_stime))' "$@" >measured
	read -r status KB CPU <measured
}

@test "a server that answers nonsense, or endlessly, gives 69 in time, cheaply" {
	local mode helper=$LOCKSMITH_DIR/semlock-locksmith-postgresql usual
	[ -z "${SANITIZED-}" ] || skip "AddressSanitizer cannot work where memory is limited"
	costs "$helper" --no-wait postgresql://127.0.0.1:1/nightly
	usual=$KB
	for mode in copy-in copy-out copy-both shape null nothing rows row notify notice settings results; do
		hostile "$mode"
		refused_within 3000 "" "$SEMLOCK" -n "$FAKE" touch ran || complain "$mode"
		costs "$helper" --who "$FAKE"
		[ "$status" -eq 69 ] && [ "$KB" -lt $((usual + 20000)) ] && [ "$CPU" -lt $((4 * SLOWNESS)) ] ||
			complain "$mode: $status, $KB kB, $CPU s; $usual kB at least"
	done
	[ ! -e ran ]
}

@test "and 76 under a lock" {
	local mode
	[ -z "${SANITIZED-}" ] || skip "AddressSanitizer cannot work where memory is limited"
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

@test "KILL to the caller's process group ends the command and frees the lock" {
	ends_with_group "" "$URL"
	[ "$(rows)" -eq 0 ]
}
