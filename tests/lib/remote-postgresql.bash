# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# For the tests of semlock with a lock on PostgreSQL: what all files of them need.

load ../lib/remote
load ../lib/servers/postgresql

prepare() {
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-postgresql" ] || skip "this build has no locks on PostgreSQL"
	DIR=$PWD
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR HOME=$DIR
	unset SEMLOCK_USER SEMLOCK_PASSWORD SEMLOCK_CACERT SEMLOCK_CERT SEMLOCK_KEY PGUSER PGPASSWORD PGSSLCERT PGSSLKEY PGSSLROOTCERT PGHOST PGPORT PGDATABASE PGSERVICE PGPASSFILE
	postgresql_of_file max_connections=40 shared_buffers=8MB
}

tidy() {
	postgresql_stop_all
	[ -z "${HOSTILE-}" ] || kill "$HOSTILE" || true
}

teardown_file() { postgresql_end_file; }

rows() { sql "SELECT count(*) FROM semlock.place WHERE token IS NOT NULL"; }
places() { sql "SELECT count(*) FROM semlock.place WHERE token IS NULL"; }
# For eventually: held N, N hold the lock; waiting N, N have a place in the queue; sessions NAME N, N sessions have a name
# like that.
held() { sql_is "SELECT count(*) = $1 FROM semlock.place WHERE token IS NOT NULL"; }
waiting() { sql_is "SELECT count(*) = $1 FROM semlock.place WHERE token IS NULL"; }
sessions() { sql_is "SELECT count(*) = $2 FROM pg_stat_activity WHERE application_name LIKE '$1'"; }
end_sessions() { sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'semlock%'"; }

# pauses NAME N: the file pauses.NAME has the seconds of the next N sleeps between two looks of that semlock's helper, and when.
# These are what the helper sets its timer to: a slow machine makes them no longer, nor shorter.
pauses() { "$PROBE" pauses "$(helper_of "$1")" "$2" >"pauses.$1"; }

# proxy: starts between.py; PROXIED is URL through it.
proxy() {
	python_server between between.err between.py "$PG" "$DIR"
	PROXIED=${URL/$PG/127.0.0.1:$PORT}
}

# pooler MODE [SESSIONS [SETTING]]: a pgbouncer with one session, or SESSIONS, for all its clients; POOLED is URL through it.
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
		${3-}
	END
	# auth_type "any" makes every client the user lock.
	(cd "$PG_HOME" && pg_as "$(PATH=$PATH:/usr/sbin command -v pgbouncer)" "$PG_HOME/pgbouncer.ini") >"$PG_HOME/pgbouncer.log" 2>&1 </dev/null &
	PG_PID[pooler]=$!
	eventually pooler_listens
	POOLED=${URL/$PG/127.0.0.1:${PG_PORT[pooler]}}
}

pooler_listens() { (: <>"/dev/tcp/127.0.0.1/${PG_PORT[pooler]}") 2>/dev/null; }

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
