#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Our engines keep the rules of semlock-locksmith(7), as contrib/locksmith-test asks them; redis.bats has one more.
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

@test "the engine for etcd keeps each rule" {
	prepare_remote
	etcd_single
	conforms --away=etcd://127.0.0.1:1/nightly --stop="kill -STOP ${ETCD_PID[s1]}" --cont="kill -CONT ${ETCD_PID[s1]}" \
		--remove="ETCDCTL_API=3 etcdctl --endpoints=$ETCD del --prefix nightly/" "$LOCKSMITH_DIR/semlock-locksmith-etcd" "etcd://$ETCD/nightly"
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
	python_server ready server.err ftp.py "$DIR"
	export SEMLOCK_USER=lock SEMLOCK_PASSWORD=secret
	conforms --away=ftp://127.0.0.1:1/nightly --stop="kill -STOP $SERVER" --cont="kill -CONT $SERVER" \
		--remove="rm -r $PWD/root/nightly" "$LOCKSMITH_DIR/semlock-locksmith-ftp" "ftp://127.0.0.1:$PORT/nightly"
}
