#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock redis://HOST/NAME COMMAND, with a Redis of this test's own.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote
load ../lib/servers/others
load ../lib/servers/redis

prepare() {
	prepare_remote
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-redis" ] || skip "this build has no locks on Redis"
	unset SEMLOCK_LOOK_EVERY REDISCLI_AUTH
	redis_server
}

tidy() { [ -z "${SERVER-}" ] || kill -KILL "$SERVER" 2>/dev/null || true; }

@test "the engine for Redis keeps each rule" {
	conforms --away=redis://127.0.0.1:1/l "$LOCKSMITH_DIR/semlock-locksmith-redis" "$URL"
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

# wakes PID: how often the process has slept
wakes() { awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$1/status"; }

# sleeps_anew: a client has begun its BLPOP within the last second
sleeps_anew() { redis-cli -p "$PORT" client list | grep -q ' idle=0 .*cmd=blpop'; }

@test "a waiter sleeps in BLPOP: it has its turn at once, and is awake less than sixty times a minute" {
	hold_lock --ttl=60 "$URL"
	fifos waiter
	start waiter "$SEMLOCK" -v "$URL" "$PROBE" hold waiter.up waiter.down
	waits_for waiter "waiting: held by"
	eventually sh -c "redis-cli -p $PORT client list | grep -q 'cmd=blpop'"
	"$PROBE" pause 8000 # while its pauses grow
	before=$(wakes "$(helper_of waiter)")
	"$PROBE" pause 12000
	[ $(($(wakes "$(helper_of waiter)") - before)) -le 12 ] || complain "$(($(wakes "$(helper_of waiter)") - before)) times in 12 s"
	eventually sleeps_anew # for 3.75 s at least, if nothing wakes it
	began=$(now)
	let_go
	ready waiter
	[ $(($(now) - began)) -lt 2500000000 ] || complain "after $(($(now) - began)) ns"
	let_go waiter
	[ "$(redis exists nightly)" = 0 ]
}

@test "a user without the right to BLPOP waits with pauses; without that to the key it is 77" {
	redis acl setuser lock on '>Sesame4711' '~nightly' '~{nightly}:*' +@all -blpop
	redis acl setuser other on '>Sesame4711' '~elsewhere' +@all
	hold_lock "$URL"
	export SEMLOCK_PASSWORD=Sesame4711
	start waiter "$SEMLOCK" -v -w 60 "${URL/127/lock@127}" touch ran
	waits_for waiter "waiting: held by"
	let_go
	ended waiter 0
	[ -e ran ]
	refused 77 "NOPERM" "$SEMLOCK" "${URL/127/other@127}" touch never
	SEMLOCK_USER=lock expect_status 0 "$SEMLOCK" "$URL" true
	unset SEMLOCK_PASSWORD
	refused 77 "the user lock has no password" "$SEMLOCK" "${URL/127/lock@127}" touch never
	refused 64 "a password is for REDISCLI_AUTH" "$SEMLOCK" "${URL/127/lock:Sesame4711@127}" touch never
	[ ! -e never ]
}

@test "rediss: the server's certificate must be in order" {
	redis_kill
	certificates
	rm -r data && mkdir data
	on_a_port redis_on
	URL=rediss://127.0.0.1:$PORT/nightly
	refused 69 "SEMLOCK_CACERT names its authority" "$SEMLOCK" "$URL" touch ran
	export SEMLOCK_CACERT=$DIR/ca.pem
	expect_status 7 "$SEMLOCK" "$URL" sh -c 'exit 7'
	hold_lock "$URL"
	start waiter "$SEMLOCK" -v -w 60 "$URL" touch later
	waits_for waiter "waiting: held by"
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	let_go
	ended waiter 0
	refused 69 "" "$SEMLOCK" "redis://127.0.0.1:$PORT/nightly" touch ran
	[ -e later ] && [ ! -e ran ]
}

@test "a holder that crashed: the lock is a waiter's when the key has lapsed" {
	hold_lock --ttl=3 "$URL"
	kill -STOP "${PID[holder]}" "$(inner holder)"
	kill -KILL "$(helper_of holder)" "${PID[holder]}" "$(inner holder)" "${COMMAND[holder]}"
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 0 "$SEMLOCK" -w 60 "$URL" true
	[ ! -e ran ]
}
