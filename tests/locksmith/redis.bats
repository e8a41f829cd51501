#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/locksmith-redis, an engine in Python, with a Redis of this test's own.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote
load ../lib/servers/others
load ../lib/servers/redis

prepare() {
	DIR=$PWD
	unset SEMLOCK_LOOK_EVERY SEMLOCK_USER SEMLOCK_PASSWORD REDISCLI_AUTH
	redis_server
}

tidy() { [ -z "${SERVER-}" ] || kill -KILL "$SERVER" 2>/dev/null || true; }

@test "the engine for Redis keeps each rule" {
	conforms --away=redis://127.0.0.1:1/l helpers/semlock-locksmith-redis "$URL"
	[ "$(wc -l <"$SOURCE/contrib/locksmith-redis")" -le 150 ]
}

@test "the command runs, the token rises, and --who names the command" {
	expect_status 7 "$SEMLOCK" "$URL" sh -c 'exit 7'
	last=0
	for _ in 1 2 3; do
		expect_status 0 "$SEMLOCK" "$URL" sh -c 'echo $SEMLOCK_TOKEN'
		[ "$out" -gt "$last" ] || complain "token $out after $last"
		last=$out
	done
	hold_lock "$URL"
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" --who "$URL"
	grep -Eq "^held +${COMMAND[holder]} .* exclusive .*: probe hold" .out || complain "$out"
	let_go
	[ ! -e ran ]
	[ "$(redis exists nightly)" = 0 ]
}

@test "a program that locks by SET NX PX is excluded, and excludes" {
	hold_lock "$URL"
	[ -z "$(redis set nightly another nx px 60000)" ]
	let_go
	[ "$(redis set nightly another nx px 60000)" = OK ]
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	redis del nightly
	expect_status 0 "$SEMLOCK" -n "$URL" true
	[ ! -e ran ]
}

@test "a wrong password is 77, the right one is in no command line" {
	redis config set requirepass Sesame4711
	refused 77 "$URL: the server wants a password: put it into REDISCLI_AUTH or SEMLOCK_PASSWORD" "$SEMLOCK" -n "$URL" touch ran
	SEMLOCK_PASSWORD=wrong refused 77 "$URL: WRONGPASS" "$SEMLOCK" -n "$URL" touch ran
	REDISCLI_AUTH=Sesame4711 expect_status 0 "$SEMLOCK" -n "$URL" sh -c 'echo ${SEMLOCK_PASSWORD-none}'
	SEMLOCK_PASSWORD=Sesame4711 expect_status 0 "$SEMLOCK" -n "$URL" sh -c 'echo ${SEMLOCK_PASSWORD-none}'
	expect_out none
	[ ! -e ran ]
}

@test "the connection is cut, or the server killed and started again within the lease: the command runs on" {
	hold_lock --ttl=60 "$URL"
	redis client kill type normal
	redis_kill
	redis_start
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	let_go
	expect_status 0 "$SEMLOCK" -n "$URL" true
	[ ! -e ran ]
}

@test "the server is killed for good, or stopped: the command is ended, 76; the next begins after it" {
	hold_lock --ttl=3 "$URL"
	redis_kill
	ended holder 76
	redis_start
	rm -f holder.up holder.down
	hold_lock --ttl=3 "${URL}2"
	kill -STOP "$SERVER"
	ended holder 76
	kill -CONT "$SERVER"
	expect_status 0 "$SEMLOCK" -w 60 "${URL}2" sh -c "$(none_runs "${COMMAND[holder]}")"
}

@test "the key removed behind its back: the command is ended, 76" {
	hold_lock --ttl=3 "$URL"
	redis del nightly
	ended holder 76
	grep -q "its key has gone" holder.err
}

@test "a Redis that is not there yet is waited for" {
	redis_kill
	start waiter "$SEMLOCK" -v -w 60 "$URL" touch ran
	waits_for waiter "waiting: for the server"
	redis_start
	ended waiter 0
	[ -e ran ]
}
