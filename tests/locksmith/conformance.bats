#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/locksmith-test: does an engine keep the rules of semlock-locksmith(7)?  Ours do, and a rule that an engine
# breaks is found.  tests/lib/engine.py needs no server, and breaks the rule that it is told to.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote
load ../lib/servers/etcd
load ../lib/servers/postgresql

prepare() { unset SEMLOCK_LOOK_EVERY; }
tidy() {
	etcd_stop_all
	[ -z "${SERVER-}" ] || kill -KILL "$SERVER"
	[ -z "${PG_PID[*]-}" ] || postgresql_stop_all
}

ENGINE=$SOURCE/tests/lib/engine.py

# conforms ARG...: all rules are kept; on a busy machine with a longer lease.
conforms() {
	local ttl
	for ttl in 3 9; do
		timeout 300 "$SOURCE/contrib/locksmith-test" --ttl=$ttl "$@" >rules && return
	done
	complain "$(grep -v '^ok' rules)"
}

# What breaks which rule.  "plain": an engine that offers nothing.
broken() {
	cat <<-'END'
		greeting|LOCKSMITH 2 is its first line
		boast|OK has lease=
		keeps|at the end of input it says FREE
		no-release|at the end of input it says FREE
		unlock|UNLOCK lets the lock go
		two|a waiter says WAIT
		no-mode|a waiter says WAIT
		slow|--no-wait: BUSY
		late|--wait=1: BUSY
		outlives|a waiter whose input ends
		dead-waiter|a waiter that is killed
		renews-late|from START on it renews
		unstarted|without START it renews nothing
		never-lost|without START it renews nothing
		fields|START may have more fields
		long-line|of a line that is too long
		signals|HUP, INT, QUIT and TERM
		blocks|without room for its lines
		never-lost|a helper that was stopped
		early|a helper that was stopped
		early|the lock of a helper that was killed
		who-free|--who of a free lock
		who-pid|--who of a held lock
		who-status|--who of a held lock
		any-option|an option that it does not know
		password|a URL with a password
		two|--mode=shared: two at once
		accepts plain|--mode=shared is ERR 64
		same-slot|--slots=2: two at once
		accepts plain|--slots=2 is ERR 64
		queue-max|--queue-max=1: with one
		accepts plain|--queue-max=1 is ERR 64
		order|waiters are served in the order
		token|the token rises
		away-busy|a server that is not there: --no-wait
		away-late|a server that is not there: --wait
		control|each line is a word
	END
}

# breaks WAY RULE: with an engine that is broken so, RULE is.
breaks() {
	local name=${1// /-}-${2//[^a-zA-Z0-9]/-}
	case $1 in *plain) export ENGINE_PLAIN=yes ;; esac
	if ENGINE_BREAKS=${1% plain} "$SOURCE/contrib/locksmith-test" --ttl=2 --away=engine://away/l --only="$2" "$ENGINE" \
		"engine://$PWD/$name" >"$name.said"; then complain "not found: $1" "$(cat "$name.said")"; fi
	grep -q "^BROKEN  $2" "$name.said"
}

@test "an engine that keeps each rule passes, and so does the one in shell" {
	conforms --away=engine://away/l "$ENGINE" "engine://$PWD/queue"
	[ "$(grep -c '^ok' rules)" -ge 29 ]
	conforms "$SOURCE/contrib/locksmith-demo" "demo://$PWD/lock"
	ENGINE_PLAIN=yes conforms "$ENGINE" "engine://$PWD/plain"
}

@test "each rule is found broken with an engine that breaks it" {
	local way rule pids=() pid failed=0
	while IFS='|' read -r way rule; do
		breaks "$way" "$rule" 3>&- &
		pids+=($!)
		[ $((${#pids[@]} % 6)) -ne 0 ] || wait "${pids[-6]}" || failed=1
	done < <(broken)
	for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
	[ $failed -eq 0 ]
	sed -n 's/^@rule("\([^"]*\)".*/\1/p' "$SOURCE/contrib/locksmith-test" >all
	while read -r rule; do
		broken | cut -d'|' -f2 | while read -r words; do [[ $rule != "$words"* ]] || echo found; done | grep -q found ||
			complain "no engine breaks: $rule"
	done <all
}

@test "what locksmith-test is asked wrongly is a usage error, and --help is none" {
	expect_status 64 "$SOURCE/contrib/locksmith-test" "$ENGINE"
	expect_status 0 "$SOURCE/contrib/locksmith-test" --help
	grep -q "HELPER URL" .out
}

@test "the engine for etcd keeps each rule" {
	prepare_remote
	etcd_single
	conforms --away=etcd://127.0.0.1:1/nightly "$LOCKSMITH_DIR/semlock-locksmith-etcd" "etcd://$ETCD/nightly"
}

@test "the engine for PostgreSQL keeps each rule" {
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-postgresql" ] || skip "this build has no locks on PostgreSQL"
	prepare_remote
	unset PGUSER PGPASSWORD PGHOST PGPORT PGDATABASE PGSERVICE PGPASSFILE
	postgresql_server max_connections=40 shared_buffers=8MB
	conforms --away=postgresql://lock@127.0.0.1:1/nightly?dbname=postgres "$LOCKSMITH_DIR/semlock-locksmith-postgresql" "$URL"
}

@test "the engine for FTP keeps each rule" {
	prepare_remote
	mkdir root
	apart /usr/bin/python3 "$SOURCE/tests/lib/servers/ftp.py" "$DIR" >ready 2>server.err </dev/null &
	SERVER=$!
	in_file ready READY
	read -r _ port <ready
	export SEMLOCK_USER=lock SEMLOCK_PASSWORD=secret
	conforms --away=ftp://127.0.0.1:1/nightly "$LOCKSMITH_DIR/semlock-locksmith-ftp" "ftp://127.0.0.1:$port/nightly"
}
