# SPDX-License-Identifier: MIT
# PostgreSQL servers on free ports of 127.0.0.1, for the tests.  A server is known by a NAME.
#
# postgresql_server [SETTING...]   starts the server "one"; sets PG (its host:port) and URL, a lock's
# postgresql_of_file [SETTING...]  the same, but all tests of a file share it: as new, or as good as new
# postgresql_end_file              for teardown_file: ends and removes the server of the file
# postgresql_standby               starts "two", a standby of "one"; sets PG2
# postgresql_start NAME            starts NAME again
# postgresql_crash NAME            ends it at once, with no message to its clients
# postgresql_kill NAME             the same by kill -9 of all its processes
# postgresql_restart NAME          as an administrator restarts it: "fast"
# postgresql_stop_all              ends all servers, and removes them, but for one that the tests of a file share
# sql TEXT                         asks "one", and prints the answer; SQL_PORT: the port of another
# sql_is CONDITION                 is this SELECT true?  It waits in the server for a second to become true.
#
# shellcheck shell=bash disable=SC2034

declare -gA PG_PID=() PG_PORT=()
PG_HOME='' PG_BIN='' PG_SHARED=''

# Sets PG_BIN, the directory of the server's programs.  (In PATH, Debian has wrappers in Perl.)
pg_find() {
	local bin
	[ -z "$PG_BIN" ] || return 0
	for bin in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV) "$(dirname "$(command -v postgres)" 2>/dev/null)"; do
		if [ -x "$bin/postgres" ]; then PG_BIN=$bin && return; fi
	done
	return 1
}

pg_program() { pg_find && printf '%s\n' "$PG_BIN/$1"; }

# The server refuses to run as root.
pg_as() {
	if [ "$EUID" -eq 0 ]; then
		apart setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$PG_HOME" "$@"
	else
		apart env HOME="$PG_HOME" "$@"
	fi
}

# pg_answers NAME: it has written that it is ready.
pg_answers() {
	local lines
	mapfile -t lines 2>/dev/null <"$PG_HOME/$1/postmaster.pid" && [[ ${lines[7]-} == ready* ]]
}

postgresql_start() {
	local name=$1 lines end=$((SECONDS + ${LINE_SECONDS:-60}))
	rm -f "$PG_HOME/$name/postmaster.pid" # what an earlier server has written would be read
	mapfile -t lines <"$PG_HOME/$name/postgresql.auto.conf"
	[[ ${lines[*]} != *=* ]] || : >"$PG_HOME/$name.set" # a setting of ALTER SYSTEM
	(cd "$PG_HOME" && pg_as "$PG_BIN/postgres" -D "$PG_HOME/$name" -p "${PG_PORT[$name]}") >>"$PG_HOME/$name.log" 2>&1 </dev/null &
	PG_PID[$name]=$!
	echo $! >"$PG_HOME/$name.pid"
	until pg_answers "$name"; do
		if [ $SECONDS -gt $end ] || ! kill -0 "${PG_PID[$name]}" 2>/dev/null; then cat "$PG_HOME/$name.log" >&2; return 1; fi
		nap 20
	done
	sql_open "${PG_PORT[$name]}"
}

pg_settings() {
	local setting
	for setting in listen_addresses=127.0.0.1 "unix_socket_directories=$PG_HOME" fsync=off "$@"; do
		printf "%s = '%s'\n" "${setting%%=*}" "${setting#*=}"
	done >>"$PG_HOME/one/postgresql.conf"
}

postgresql_server() {
	pg_find || skip "no PostgreSQL server here"
	# The server's user must reach the files; bats' directories are closed to other users.
	PG_HOME=$(mktemp -d /tmp/semlock-postgresql.XXXXXX)
	chmod 755 "$PG_HOME"
	[ "$EUID" -ne 0 ] || chown nobody "$PG_HOME"
	(cd "$PG_HOME" && pg_as "$PG_BIN/initdb" -D "$PG_HOME/one" -A trust -U lock --no-sync --wal-segsize=1 -E UTF8 --locale=C) \
		>"$PG_HOME/initdb.log" 2>&1 || { cat "$PG_HOME/initdb.log"; return 1; }
	pg_settings "$@"
	cp -p "$PG_HOME/one/pg_hba.conf" "$PG_HOME/hba"
	free_ports 3
	pg_names
	postgresql_start one
}

pg_names() {
	PG_PORT[one]=${PORTS[0]} PG_PORT[two]=${PORTS[1]} PG_PORT[pooler]=${PORTS[2]}
	PG=127.0.0.1:${PG_PORT[one]} PG2=127.0.0.1:${PG_PORT[two]}
	URL="postgresql://lock@$PG/nightly?dbname=postgres"
}

# pg_of_file STATE: the ports and the directory that the tests of a file share
pg_of_file() {
	read -ra PORTS <"$1"
	PG_HOME=${PORTS[3]}
	pg_names
}

# A test may have left anything: what cannot be mended is made anew.
postgresql_of_file() {
	local state=${BATS_FILE_TMPDIR-}/postgresql
	pg_find || skip "no PostgreSQL server here"
	if [ -z "${BATS_FILE_TMPDIR-}" ]; then
		postgresql_server "$@"
		return
	fi
	if [ -e "$state" ]; then
		pg_of_file "$state"
		PG_SHARED=yes
		if pg_as_new; then return; fi
		postgresql_end_file
	fi
	postgresql_server "$@" && PG_SHARED=yes && echo "${PORTS[*]:0:3} $PG_HOME" >"$state"
}

postgresql_end_file() {
	local state=${BATS_FILE_TMPDIR-}/postgresql
	[ -e "$state" ] || return 0
	pg_of_file "$state" # by its port sql_close finds the psql
	rm "$state"
	PG_SHARED=''
	[ ! -e "$PG_HOME/one.pid" ] || read -r "PG_PID[one]" <"$PG_HOME/one.pid"
	postgresql_stop_all
}

# The server as the first test found it: its settings, roles, data bases, sessions and log.
pg_as_new() {
	read -r "PG_PID[one]" <"$PG_HOME/one.pid" || return
	cp -p "$PG_HOME/hba" "$PG_HOME/one/pg_hba.conf"
	if [ -e "$PG_HOME/one.set" ]; then
		pg_signal one INT
		rm "$PG_HOME/one.set" "$PG_HOME/one/postgresql.auto.conf"
		: >"$PG_HOME/one/postgresql.auto.conf"
		[ "$EUID" -ne 0 ] || chown nobody "$PG_HOME/one/postgresql.auto.conf"
	fi
	pg_runs one || postgresql_start one || return
	sql "ALTER SYSTEM RESET ALL" && sql "SELECT pg_reload_conf()" >/dev/null || return
	sql "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'" >/dev/null || return
	sql "SELECT format('DROP DATABASE %I WITH (FORCE)', datname) FROM pg_database WHERE datname NOT IN ('postgres', 'template0', 'template1')
\\gexec
SELECT format('DROP OWNED BY %I CASCADE', rolname), format('DROP ROLE %I', rolname) FROM pg_roles WHERE oid >= 16384
\\gexec
DROP SCHEMA IF EXISTS semlock CASCADE; DROP TABLE IF EXISTS t; ALTER ROLE lock RESET ALL" || return
	: >"$PG_HOME/one.log"
}

# pg_state NAME: the letter of /proc for its first process; "-" if that has gone
pg_state() {
	local state
	read -r _ _ state _ 2>/dev/null <"/proc/${PG_PID[$1]}/stat" || state=-
	printf %s "$state"
}

pg_runs() { case $(pg_state "$1") in - | Z | X) return 1 ;; esac; }

postgresql_standby() {
	(cd "$PG_HOME" && pg_as "$PG_BIN/pg_basebackup" -h 127.0.0.1 -p "${PG_PORT[one]}" -U lock -D "$PG_HOME/two" -R -c fast --no-sync) \
		>"$PG_HOME/basebackup.log" 2>&1 || { cat "$PG_HOME/basebackup.log"; return 1; }
	sed -i "s/^primary_conninfo = '/&application_name=two /" "$PG_HOME/two/postgresql.auto.conf"
	postgresql_start two
}

# pg_ended NAME: waits for its first process, which another test's shell may have started.
pg_ended() {
	wait "${PG_PID[$1]}" 2>/dev/null || [ $? -ne 127 ] || "$PROBE" gone "${PG_PID[$1]}" || true
}

pg_signal() {
	kill "-$2" "${PG_PID[$1]}" 2>/dev/null
	pg_ended "$1"
}

postgresql_crash() { pg_signal "$1" QUIT; }

# Its processes outlive the first one for a moment, and would keep the next server from starting.
postgresql_kill() {
	local sessions
	kill -STOP "${PG_PID[$1]}"
	read -ra sessions 2>/dev/null <"/proc/${PG_PID[$1]}/task/${PG_PID[$1]}/children" || true # it has no newline
	kill -KILL "${sessions[@]}" "${PG_PID[$1]}" 2>/dev/null
	pg_ended "$1"
}

postgresql_restart() {
	pg_signal "$1" INT
	postgresql_start "$1"
}

# A stopped server of the file is killed: the next test starts it again.
postgresql_stop_all() {
	local name
	for name in "${!PG_PID[@]}"; do
		if [ "$name" = one ] && [ -n "$PG_SHARED" ]; then
			[ "$(pg_state one)" != T ] || postgresql_kill one
			continue
		fi
		kill -CONT "${PG_PID[$name]}" 2>/dev/null || true # it may have ended
		kill -QUIT "${PG_PID[$name]}" 2>/dev/null || true
		[ "$name" != pooler ] || kill -KILL "${PG_PID[$name]}" 2>/dev/null # QUIT may be ignored, from its parent
		pg_ended "$name"
		sql_close "${PG_PORT[$name]}"
	done
	if [ -n "$PG_SHARED" ]; then
		rm -rf "$PG_HOME"/two* "$PG_HOME"/pgbouncer.*
	elif [ -n "$PG_HOME" ]; then
		rm -rf "$PG_HOME"
	fi
	return 0
}

# A psql at the port answers all questions of the tests.  It has both ends of its FIFOs, so that no test need have one
# open: semlock looks at each pipe that it inherits.
sql_open() {
	local at=$PG_HOME/sql.$1 in out
	sql_close "$1"
	mkfifo "$at.in" "$at.out"
	: >"$at.err"
	# Open before psql runs: a question that nobody has open for reading would be lost.
	exec {in}<>"$at.in" {out}<>"$at.out"
	# The standby may be away: a commit of the tests' own does not wait for it.
	(cd / && PGOPTIONS='-c client_min_messages=warning -c synchronous_commit=local' apart "$PG_BIN/psql" -X -q -t -A -h 127.0.0.1 -p "$1" -U lock -d postgres <&"$in" >&"$out" 2>>"$at.err" {in}>&- {out}>&-) &
	echo $! >"$at.pid"
	disown
	exec {in}>&- {out}>&-
}

sql_close() {
	local at=$PG_HOME/sql.$1 pid
	[ -e "$at.pid" ] || return 0
	read -r pid <"$at.pid"
	kill -KILL "$pid" 2>/dev/null || true
	rm -f "$at".*
}

# sql_ask TEXT: the answer is in ANSWER; no process is started.
sql_ask() {
	local port=${SQL_PORT:-${PG_PORT[one]}} pid part line='' wrong end=$((SECONDS + 2 * ${LINE_SECONDS:-60}))
	local at=$PG_HOME/sql.$port
	ANSWER=
	if [ ! -e "$at.pid" ]; then # no server's port, but a pooler's
		ANSWER=$("$PG_BIN/psql" -X -q -t -A -h 127.0.0.1 -p "$port" -U lock -d postgres -c "$1")
		return
	fi
	read -r pid <"$at.pid"
	: >"$at.err"
	printf '%s\n;\n%s\n' "${1%;}" '\echo .' 1<>"$at.in"
	while :; do
		if IFS= read -r -t 1 part; then
			line+=$part
			[ "$line" != . ] || break
			ANSWER+=${ANSWER:+$'\n'}$line line=
		else
			line+=$part
			if [ $SECONDS -gt $end ] || ! kill -0 "$pid" 2>/dev/null; then cat "$at.err" >&2; return 1; fi
		fi
	done <>"$at.out"
	mapfile -t wrong <"$at.err"
	[ ${#wrong[@]} -eq 0 ] || printf '%s\n' "${wrong[@]}" >&2
	[[ ${wrong[*]} != *ERROR:* ]]
}

sql() { sql_ask "$1" && { [ -z "$ANSWER" ] || printf '%s\n' "$ANSWER"; }; }

# A process for each look would cost more than what is looked at.
sql_is() {
	local at=$PG_HOME/sql.${SQL_PORT:-${PG_PORT[one]}}
	if [ ! -e "$at.waits" ]; then
		sql_ask "CREATE FUNCTION pg_temp.becomes(condition text) RETURNS boolean LANGUAGE plpgsql AS \$\$
			DECLARE met boolean; BEGIN
				FOR i IN 1 .. 50 LOOP
					BEGIN EXECUTE condition INTO met; EXCEPTION WHEN undefined_table THEN met := false; END;
					IF met THEN RETURN true; END IF;
					PERFORM pg_sleep(.02), pg_stat_clear_snapshot();
				END LOOP;
				RETURN false;
			END \$\$" || return
		: >"$at.waits"
	fi
	sql_ask "SELECT pg_temp.becomes('${1//\'/\'\'}')" && [ "$ANSWER" = t ]
}
