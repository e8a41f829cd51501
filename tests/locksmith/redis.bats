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

tidy() { kill -KILL ${SERVER:+"$SERVER"} ${BETWEEN:+"$BETWEEN"} 2>/dev/null || true; }

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
	refused 77 "$URL: the server requires a password: set REDISCLI_AUTH or SEMLOCK_PASSWORD" "$SEMLOCK" -n "$URL" touch ran
	SEMLOCK_PASSWORD=wrong refused 77 "$URL: WRONGPASS" "$SEMLOCK" -n "$URL" touch ran
	REDISCLI_AUTH=Sesame4711 expect_status 0 "$SEMLOCK" -n "$URL" sh -c 'echo ${SEMLOCK_PASSWORD-none}'
	SEMLOCK_PASSWORD=Sesame4711 expect_status 0 "$SEMLOCK" -n "$URL" sh -c 'echo ${SEMLOCK_PASSWORD-none}'
	expect_out none
	[ ! -e ran ]
}

@test "the connection is cut or the server restarts: the command runs on" {
	hold_lock --ttl=60 "$URL"
	redis client kill type normal
	redis_kill
	redis_start
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	let_go
	expect_status 0 "$SEMLOCK" -n "$URL" true
	[ ! -e ran ]
}

@test "a server killed or stopped for good: 76, and the next begins after it" {
	hold_lock --ttl=$((3 * PACE)) "$URL"
	redis_kill
	ended holder 76
	redis_start
	rm -f holder.up holder.down
	hold_lock --ttl=$((3 * PACE)) "${URL}2"
	kill -STOP "$SERVER"
	ended holder 76
	kill -CONT "$SERVER"
	expect_status 0 "$SEMLOCK" -w 60 "${URL}2" sh -c "$(none_runs "${COMMAND[holder]}")"
}

@test "the key removed behind its back: the command is ended, 76" {
	hold_lock --ttl=$((3 * PACE)) "$URL"
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

woken() {
	rm -f ./*.up ./*.down
	hold_lock --ttl=$((60 * PACE)) "$URL" || return
	fifos waiter
	start waiter "$SEMLOCK" -v "$URL" "$PROBE" hold waiter.up waiter.down
	waits_for waiter "waiting: held by" || return
	eventually sh -c "redis-cli -p $PORT client list | grep -q 'cmd=blpop'" || return
	"$PROBE" pause 8000 # while its pauses grow
	before=$(wakes "$(helper_of waiter)")
	"$PROBE" pause 12000
	[ $(($(wakes "$(helper_of waiter)") - before)) -le 12 ] || complain "$(($(wakes "$(helper_of waiter)") - before)) times in 12 s" || return
	eventually sleeps_anew || return # for 3.75 s at least, if nothing wakes it
	began=$(now)
	let_go && ready waiter || return
	took=$(($(now) - began))
	let_go waiter
	[ $took -lt 2500000000 ] || complain "after $took ns"
}

@test "a waiter sleeps in BLPOP: its turn comes at once, with few wake-ups" {
	woken || woken || woken # a busy machine may be late
	[ "$(redis exists nightly)" = 0 ]
}

@test "a user without BLPOP waits with pauses; one without the key gets 77" {
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
	for right in get set; do
		redis acl setuser less reset on '>Sesame4711' '~nightly' '~{nightly}:*' +@all "-$right"
		refused 77 "can't run" "$SEMLOCK" "${URL/127/less@127}" touch never
	done
	SEMLOCK_USER=lock expect_status 0 "$SEMLOCK" "$URL" true
	unset SEMLOCK_PASSWORD
	refused 77 "the user lock has no password" "$SEMLOCK" "${URL/127/lock@127}" touch never
	refused 64 "set a password in REDISCLI_AUTH" "$SEMLOCK" "${URL/127/lock:Sesame4711@127}" touch never
	[ ! -e never ]
}

@test "the helper ignores the signals of a terminal, and of pkill(1)" {
	hold_lock "$URL"
	helper=$(pgrep -f "semlock-locksmith-redis.*$URL\$")
	ignored=$(sed -n 's/^SigIgn:.//p' "/proc/$helper/status")
	for signal in HUP INT QUIT PIPE TERM TSTP TTIN TTOU; do
		[ $((0x$ignored >> ($(kill -l $signal) - 1) & 1)) -eq 1 ] || complain "$signal: $ignored" || return
	done
	let_go
}

@test "rediss: the server's certificate must be in order" {
	redis_kill
	certificates
	rm -r data && mkdir data
	on_a_port redis_on
	URL=rediss://127.0.0.1:$PORT/nightly
	refused 69 "name its authority: SEMLOCK_CACERT" "$SEMLOCK" "$URL" touch ran
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
	hold_lock --ttl=$((3 * PACE)) "$URL"
	kill -STOP "${PID[holder]}" "$(inner holder)"
	kill -KILL "$(helper_of holder)" "${PID[holder]}" "$(inner holder)" "${COMMAND[holder]}"
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 0 "$SEMLOCK" -w 60 "$URL" true
	[ ! -e ran ]
}

@test "a lost answer to the look that took the lock: the lock is ours" {
	redis_between
	between lose
	start holder "$SEMLOCK" --ttl=600 -w 60 "$URL" touch ran # as another's, it would be in the way for ten minutes
	ended holder 0
	[ -e ran ]
	[ ! -e between/lose ]
	[ "$(redis exists nightly)" = 0 ]
}

# After a failover the name may lead to another server; a full server hangs up.
@test "after an error that may pass, the next look is by a new connection" {
	redis_between
	between say '-READONLY it is a replica.\r\n'
	start waiter "$SEMLOCK" -w 300 "$URL" touch ran
	eventually sh -c '[ "$(wc -l <accepted)" -ge 3 ]'
	between say -
	ended waiter 0
	[ -e ran ]
}

@test "an invalid, endless or slow answer is 69, and no helper is left" {
	redis_between
	for answer in '*2\r\n$-1\r\n$1\r\nx\r\n' '*2\r\n' '*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n' '\r\n' ':x\r\n' '$99999999\r\nx' '+x\r\n' \
		'*-1\r\n' ':\xb2\r\n'; do
		between say "$answer"
		refused 69 "the server does not answer" "$SEMLOCK" -n "$URL" touch ran
	done
	between endless
	between say '+xxxxxxxxxxxxxxxx'
	refused 69 "the answer is too long" "$SEMLOCK" -n "$URL" touch ran
	refused 69 "the answer is too long" "$SEMLOCK" --who "$URL"
	between endless -
	between slow
	between say '$5000\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'
	refused 69 "the server does not answer: timed out" "$SEMLOCK" --who "$URL"
	refused 69 "the server does not answer" "$SEMLOCK" -n "$URL" touch ran
	[ ! -e ran ]
	eventually sh -c "! pgrep -f '[s]emlock-locksmith-redis.*$URL' >/dev/null"
}

# unblocked: a client that slept in BLPOP has had an error for it
unblocked() { [ "$(redis client unblock "$(redis client list | sed -n 's/^id=\([0-9]*\) .* flags=b .*cmd=blpop.*/\1/p')" error)" = 1 ]; }

@test "a waiter that the server unblocks sleeps in BLPOP again" {
	hold_lock --ttl=60 "$URL"
	start waiter "$SEMLOCK" -v "$URL" touch ran
	waits_for waiter "waiting: held by"
	for _ in 1 2; do eventually unblocked; done
	eventually sh -c "redis-cli -p $PORT client list | grep -q ' flags=b .*cmd=blpop'"
	let_go
	ended waiter 0
	[ -e ran ]
}

@test "a server without memory: the holder keeps its lock, and a waiter waits" {
	hold_lock --ttl=3 "$URL"
	redis config set maxmemory 1
	start waiter "$SEMLOCK" -v -w 60 "${URL}2" touch ran
	waits_for waiter "for the server: OOM"
	sends=$(redis info commandstats | sed -n 's/^cmdstat_pexpire:calls=\([0-9]*\),.*/\1/p')
	eventually sh -c "[ \"\$(redis-cli -p $PORT info commandstats | sed -n 's/^cmdstat_pexpire:calls=\([0-9]*\),.*/\1/p')\" -gt $((${sends:-0} + 3)) ]"
	[ ! -e ran ]
	redis config set maxmemory 0
	ended waiter 0
	let_go
}

@test "the token rises although the counter was lost" {
	expect_status 0 "$SEMLOCK" "$URL" sh -c 'echo $SEMLOCK_TOKEN'
	last=$out
	redis flushall
	"$PROBE" pause 1100
	expect_status 0 "$SEMLOCK" "$URL" sh -c 'echo $SEMLOCK_TOKEN'
	[ "$out" -gt "$last" ] || complain "token $out after $last"
}

@test "PYTHONPATH and the caller's directory are not searched for modules" {
	mkdir modules
	for module in secrets socket re semlock_locksmith; do echo "open('$PWD/obeyed', 'w')" >modules/$module.py; done
	cp modules/*.py .
	PYTHONPATH=$PWD/modules PYTHONHOME=/none expect_status 0 "$SEMLOCK" "$URL" true
	[ ! -e obeyed ]
}

@test "a port beyond 65535 is refused: 64" {
	refused 64 "such a lock is redis://" "$SEMLOCK" "redis://127.0.0.1:99999/nightly" touch ran
	refused 64 "such a lock is redis://" "$SEMLOCK" "redis://127.0.0.1:0/nightly" touch ran
	[ ! -e ran ]
}
