# SPDX-License-Identifier: MIT
# PostgreSQL servers on free ports of 127.0.0.1, for the tests.  A server is known by a NAME.
#
# postgresql_server [SETTING...]   starts the server "one"; sets PG (its host:port) and URL, a lock's
# postgresql_standby               starts "two", a standby of "one"; sets PG2
# postgresql_start NAME            starts NAME again
# postgresql_crash NAME            ends it at once, with no message to its clients
# postgresql_kill NAME             the same by kill -9 of all its processes
# postgresql_restart NAME          as an administrator restarts it: "fast"
# postgresql_stop_all              ends and removes all servers
# sql TEXT                         asks "one"; SQL_PORT: the port of another
#
# shellcheck shell=bash disable=SC2034

declare -gA PG_PID=() PG_PORT=()
PG_HOME=''

pg_program() {
	local bin
	for bin in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV) $(dirname "$(command -v postgres)" 2>/dev/null); do
		[ -x "$bin/postgres" ] && printf '%s\n' "$bin/$1" && return
	done
	return 1
}

# The server refuses to run as root.
pg_as() {
	if [ "$(id -u)" -eq 0 ]; then
		apart setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$PG_HOME" "$@"
	else
		apart env HOME="$PG_HOME" "$@"
	fi
}

postgresql_start() {
	local name=$1 end=$((SECONDS + ${LINE_SECONDS:-60}))
	(cd "$PG_HOME" && pg_as "$(pg_program postgres)" -D "$PG_HOME/$name" -p "${PG_PORT[$name]}") >>"$PG_HOME/$name.log" 2>&1 </dev/null &
	PG_PID[$name]=$!
	# The server writes its PID there before it answers.
	until grep -q -e ready -e standby "$PG_HOME/$name/postmaster.pid" 2>/dev/null &&
		pg_isready -q -h 127.0.0.1 -p "${PG_PORT[$name]}"; do
		kill -0 "${PG_PID[$name]}" 2>/dev/null && [ $SECONDS -lt $end ] || { cat "$PG_HOME/$name.log" >&2; return 1; }
		read -r -t 0.02 <> <(:) || true
	done
}

pg_settings() {
	local setting
	for setting in listen_addresses=127.0.0.1 "unix_socket_directories=$PG_HOME" fsync=off "$@"; do
		printf "%s = '%s'\n" "${setting%%=*}" "${setting#*=}"
	done >>"$PG_HOME/one/postgresql.conf"
}

# initdb takes a second of processor time: only the first test of a file runs it, the others copy its result.
pg_new_cluster() {
	local first=${BATS_FILE_TMPDIR-}/postgresql
	if [ -n "${BATS_FILE_TMPDIR-}" ] && [ -e "$first.whole" ]; then
		cp -a "$first" "$1"
		return
	fi
	(cd "$PG_HOME" && pg_as "$(pg_program initdb)" -D "$1" -A trust -U lock --no-sync --wal-segsize=1 -E UTF8 --locale=C) \
		>"$PG_HOME/initdb.log" 2>&1 || return
	if [ -n "${BATS_FILE_TMPDIR-}" ]; then cp -a "$1" "$first" && : >"$first.whole"; fi
}

postgresql_server() {
	pg_program postgres >/dev/null || skip "no PostgreSQL server here"
	# The server's user must reach the files; bats' directories are closed to other users.
	PG_HOME=$(mktemp -d /tmp/semlock-postgresql.XXXXXX)
	chmod 755 "$PG_HOME"
	[ "$(id -u)" -ne 0 ] || chown nobody "$PG_HOME"
	pg_new_cluster "$PG_HOME/one" || { cat "$PG_HOME/initdb.log"; return 1; }
	pg_settings "$@"
	read -ra PORTS <<<"$(/usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/ports.py" 3)"
	PG_PORT[one]=${PORTS[0]} PG_PORT[two]=${PORTS[1]} PG_PORT[pooler]=${PORTS[2]}
	PG=127.0.0.1:${PG_PORT[one]} PG2=127.0.0.1:${PG_PORT[two]}
	URL="postgresql://lock@$PG/nightly?dbname=postgres"
	postgresql_start one
}

postgresql_standby() {
	(cd "$PG_HOME" && pg_as "$(pg_program pg_basebackup)" -h 127.0.0.1 -p "${PG_PORT[one]}" -U lock -D "$PG_HOME/two" -R -c fast --no-sync) \
		>"$PG_HOME/basebackup.log" 2>&1 || { cat "$PG_HOME/basebackup.log"; return 1; }
	sed -i "s/^primary_conninfo = '/&application_name=two /" "$PG_HOME/two/postgresql.auto.conf"
	postgresql_start two
}

pg_signal() {
	kill "-$2" "${PG_PID[$1]}"
	wait "${PG_PID[$1]}" 2>/dev/null
	return 0
}

postgresql_crash() { pg_signal "$1" QUIT; }

# Its processes outlive the first one for a moment, and would keep the next server from starting.
postgresql_kill() {
	local sessions
	kill -STOP "${PG_PID[$1]}"
	sessions=$(pgrep -P "${PG_PID[$1]}")
	# shellcheck disable=SC2086 # one word each
	kill -KILL $sessions "${PG_PID[$1]}" 2>/dev/null
	wait "${PG_PID[$1]}" 2>/dev/null || true
	rm -f "$PG_HOME/$1/postmaster.pid"
}

postgresql_restart() {
	pg_signal "$1" INT
	postgresql_start "$1"
}

postgresql_stop_all() {
	local name
	for name in "${!PG_PID[@]}"; do
		kill -CONT "${PG_PID[$name]}" 2>/dev/null
		kill -QUIT "${PG_PID[$name]}" 2>/dev/null
		[ "$name" != pooler ] || kill -KILL "${PG_PID[$name]}" 2>/dev/null # QUIT may be ignored, from its parent
		wait "${PG_PID[$name]}" 2>/dev/null
	done
	[ -z "$PG_HOME" ] || rm -rf "$PG_HOME"
	return 0
}

sql() { psql -X -q -t -A -h 127.0.0.1 -p "${SQL_PORT:-${PG_PORT[one]}}" -U lock -d postgres -c "$1"; }
