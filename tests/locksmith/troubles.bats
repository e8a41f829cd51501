#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a holder, a waiter and -n do when a server is in trouble: the table of semlock-servers(7).  Its other cells are in the
# files of each engine.
# shellcheck disable=SC2317 # the troubles are called by name
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote
load ../lib/servers/others
load ../lib/servers/etcd
load ../lib/servers/postgresql
load ../lib/servers/redis
load ../lib/servers/s3
load ../lib/servers/ssh

prepare() {
	prepare_remote
	unset SEMLOCK_LOOK_EVERY REDISCLI_AUTH
	export SEMLOCK_LOOK_EVERY=0.2
}

tidy() {
	etcd_stop_all
	postgresql_stop_all
	kill -KILL ${SERVER:+"$SERVER"} ${BETWEEN:+"$BETWEEN"} 2>/dev/null || true
}

need() { [ -x "$LOCKSMITH_DIR/semlock-locksmith-$1" ] || skip "this build has no $1"; }

# Each sets URL.
redis_up() {
	need redis
	redis_server
}

postgresql_up() {
	need postgresql
	unset PGUSER PGPASSWORD PGHOST PGPORT PGDATABASE PGSERVICE PGPASSFILE
	postgresql_server max_connections=20 shared_buffers=8MB
	LEAD=lock@ PORT=${PG_PORT[one]}
}

etcd_up() {
	etcd_single
	PORT=${ETCD#*:} URL=etcd://$ETCD/nightly
}

ftp_up() {
	export SEMLOCK_USER=lock SEMLOCK_PASSWORD=secret
	python_server ready server.err ftp.py "$DIR"
	URL=ftp://127.0.0.1:$PORT/nightly
}

# through_proxy: PROXIED is URL through between.py.
through_proxy() {
	local server=${SERVER-} port=$PORT
	python_server between between.err between.py "127.0.0.1:$port" "$DIR"
	BETWEEN=$SERVER SERVER=$server PROXIED=${URL/:$port/:$PORT} PORT=$port
}

# lose N [TIMES]: the server's N-th answer from now on is lost, and TIMES - 1 after it
lose() { echo "$1 ${2-1}" >faults/lose.new && mv faults/lose.new faults/cut-reply; }
is_lost() { [ ! -e faults/cut-reply ]; }

# each_answer_lost MOST [OPTION]: of a life, one after the other, also twice and four times in a row: the command runs once, and
# the lock is free after it.  A life has fewer than MOST answers.
each_answer_lost() {
	local n times
	for times in 1 2 4; do
		for ((n = 0; n < $1; n++)); do
			: >runs
			lose "$n" "$times"
			expect_status 0 "$SEMLOCK" --ttl=60 -w 120 ${2+"$2"} "$PROXIED" sh -c 'echo run >>runs' || complain "answer $n, $times times" || return
			[ "$(wc -l <runs)" -eq 1 ] || complain "answer $n, $times times: $(wc -l <runs) runs" || return
			expect_status 0 "$SEMLOCK" -n "$URL" true || complain "answer $n, $times times: not free" || return
			is_lost || break
		done
		[ $n -gt 1 ] && [ $n -lt "$1" ] || complain "$n answers" || return
		rm faults/cut-reply
	done
}

# each_answer_lost_at_once MOST: the same with -n, which is 0 or 69, never busy; a waiter comes in soon after.
each_answer_lost_at_once() {
	local n
	for ((n = 0; n < $1; n++)); do
		lose "$n"
		capture "$SEMLOCK" --ttl=60 -n "$PROXIED" true
		[ "$status" -eq 0 ] || [ "$status" -eq 69 ] || complain "answer $n: $status $err" || return
		expect_status 0 "$SEMLOCK" -w 30 "$URL" true || complain "after answer $n" || return
		is_lost || break
	done
	rm -f faults/cut-reply
}

# renewals_lost: the answers to renewals are lost, once and twice in a row: the command runs on, and nobody else comes in.
renewals_lost() {
	local n times
	hold_lock --ttl=$((6 * PACE)) "$PROXIED" || return
	for times in 1 2; do
		for n in 0 1; do
			lose $n $times
			eventually is_lost || return
			expect_status 1 "$SEMLOCK" -n "$URL" touch ran || return
		done
	done
	let_go && expect_status 0 "$SEMLOCK" -n "$URL" true && [ ! -e ran ]
}

@test "an answer is lost, or some in a row: redis" {
	redis_up
	through_proxy
	each_answer_lost 12
	each_answer_lost_at_once 12
	renewals_lost
}

@test "an answer is lost, or some in a row: postgresql" {
	postgresql_up
	through_proxy
	expect_status 0 "$SEMLOCK" "$URL" true
	each_answer_lost 20
	each_answer_lost_at_once 20
	renewals_lost
}

@test "an answer is lost, or some in a row: etcd" {
	etcd_up
	through_proxy
	each_answer_lost 40
	each_answer_lost_at_once 40
	renewals_lost
}

@test "an answer is lost, or some in a row: ftp" {
	ftp_up
	through_proxy
	each_answer_lost 60 --stale=2 # the directory that was made, and is not known to be ours
	renewals_lost
}

# waits_out WORDS TROUBLE END: TROUBLE comes, and a newcomer waits for the server, which is said, until END; the holder
# holds on, and so does a waiter that was there before.  -n is 69.
waits_out() {
	local words=$1 trouble=$2 end=$3
	hold_lock --ttl=$((60 * PACE)) "$URL"
	start before "$SEMLOCK" -v --ttl=$((60 * PACE)) "$URL" sh -c 'echo before >>order'
	waits_for before "waiting: held by"
	"$trouble"
	start newcomer "$SEMLOCK" -v -w 300 "$URL" sh -c 'echo newcomer >>order'
	waits_for newcomer "waiting: for the server: $words"
	refused 69 "" "$SEMLOCK" -n "$URL" touch ran
	kill -0 "${COMMAND[holder]}" && kill -0 "${PID[before]}"
	"$end"
	let_go
	ended before 0
	ended newcomer 0
	[ "$(sort order | tr '\n' ' ')" = "before newcomer " ] && [ ! -e ran ]
}

@test "full: redis has no connection left" {
	redis_up
	full() {
		exec 7<>"/dev/tcp/127.0.0.1/$PORT" # to be asked by, in the end
		printf 'CONFIG SET maxclients 3\r\n' >&7
		read -r -u 7 line
		[[ $line == +OK* ]]
	}
	room() { printf 'CONFIG SET maxclients 100\r\n' >&7 && read -r -u 7 line && exec 7>&-; }
	waits_out "ERR max number of clients" full room
}

@test "full: s3 says 503" {
	need s3
	s3_server
	full() { s3_fault says "503 SlowDown Please reduce your request rate."; }
	room() { s3_fault says -; }
	waits_out "the server says 503 SlowDown" full room
}

@test "slow: redis is paused for a while" {
	redis_up
	slow() { kill -STOP "$SERVER"; }
	fast() { kill -CONT "$SERVER"; }
	waits_out "timed out" slow fast
}

@test "slow: postgresql is stopped for a while" {
	postgresql_up
	stopped() { kill -STOP "${PG_PID[one]}" $(pgrep -P "${PG_PID[one]}"); }
	goes_on() { kill -CONT $(pgrep -P "${PG_PID[one]}") "${PG_PID[one]}"; }
	waits_out "the server does not answer" stopped goes_on
}

@test "slow: s3 does not answer for a while" {
	need s3
	s3_server
	slow() { s3_fault hole; }
	fast() { s3_fault hole -; }
	waits_out "" slow fast
}

@test "restarted: redis, under a holder and waiters" {
	redis_up
	again() { :; }
	waits_out "" redis_kill redis_start
}

@test "restarted: etcd, under a holder and waiters" {
	etcd_up
	down() { kill -KILL "${ETCD_PID[s1]}"; wait "${ETCD_PID[s1]}" 2>/dev/null || true; }
	up() { etcd_start s1 && etcd_wait s1; }
	waits_out "" down up
}

@test "restarted: sshd, under a holder and waiters" {
	need ssh
	ssh_server
	down() { kill -KILL "$SERVER"; "$PROBE" gone "$SERVER"; }
	up() { sshd_on && listening "$PORT"; }
	waits_out ".*Connection refused" down up
}

@test "restarted: ftp, under a holder and waiters" {
	ftp_up
	up() { python_server ready server.err ftp.py "$DIR" --port="$PORT"; }
	waits_out "" server_kill up
}

@test "restarted: s3, under a holder and waiters" {
	need s3
	s3_server
	through_proxy # what the server stores is in its memory: the proxy restarts
	AWS_ENDPOINT_URL_S3=http://127.0.0.1:$(awk '{ print $2 }' between)
	down() { kill -KILL "$BETWEEN"; "$PROBE" gone "$BETWEEN"; }
	up() {
		local port=${AWS_ENDPOINT_URL_S3##*:}
		python_server between between.err between.py "127.0.0.1:$PORT" "$DIR" "$port"
	}
	waits_out "" down up
}

# loses_by TROUBLE WORDS: the holder's command is ended, and what is said of it has WORDS in it; who asks now, gets 77.
loses_by() {
	hold_lock --ttl=$((3 * PACE)) "$1" || return
	"$2"
	ended holder 76 || return
	grep -q "$3" holder.err || complain "$(cat holder.err)" || return
	refused 77 "" "$SEMLOCK" -n "$1" touch ran || return
	refused 77 "" "$SEMLOCK" -w 60 "$1" touch ran
}

@test "rights changed: redis refuses the renewals" {
	redis_up
	redis acl setuser lock on '>Sesame4711' '~nightly' '~{nightly}:*' +@all >/dev/null
	export SEMLOCK_PASSWORD=Sesame4711
	change() { redis acl setuser lock resetkeys >/dev/null; }
	loses_by "${URL/127/lock@127}" change "not renewed yet: NOPERM"
}

@test "rights changed: s3 refuses the renewals" {
	need s3
	s3_server
	change() { s3_fault says "403 AccessDenied Access Denied"; }
	loses_by "$URL" change "not renewed yet: access denied"
}

@test "rights changed: the key for ssh is removed, and the session goes on" {
	need ssh
	ssh_server
	hold_lock --ttl=$((6 * PACE)) "$URL"
	mv user.pub removed.pub
	refused 77 "Permission denied" "$SEMLOCK" -n "$URL" touch ran
	refused 77 "Permission denied" "$SEMLOCK" -w 60 "$URL" touch ran
	expect_status 1 "$SEMLOCK" -w $((7 * PACE)) nightly touch ran
	kill -0 "${COMMAND[holder]}"
	let_go
	[ ! -e ran ]
}

@test "the clock is set: redis, forwards by more than a lease" {
	redis_up
	redis debug set-active-expire 0 >/dev/null || true
	hold_lock --ttl=$((9 * PACE)) "$URL"
	redis pexpire nightly 1 >/dev/null # as a clock that jumps does
	ended holder 76
	grep -q "its key has gone" holder.err
	expect_status 0 "$SEMLOCK" -n "$URL" true
}
