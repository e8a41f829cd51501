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
