#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The helpers and semlock before servers that are none: random answers, and answers that drip or have no end.  A slice of what
# make fuzz does with the same program.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote

prepare() {
	prepare_remote
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR
}

tidy() { [ -z "${SERVER-}" ] || kill -KILL "$SERVER" 2>/dev/null || true; }

# survives ENGINE: random answers
survives() {
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-$1" ] || skip "this build has no $1"
	expect_status 0 /usr/bin/python3 -B "$SOURCE/tests/fuzz/strangers.py" "$LOCKSMITH_DIR" "$1" "${THOROUGH:+10}40" \
		"$RANDOM"
}

# in_time ENGINE: semlock with its helper ends in time, whether an answer drips or has no end
in_time() {
	local mode
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-$1" ] || skip "this build has no $1"
	for mode in drip flood; do
		apart /usr/bin/python3 -B "$SOURCE/tests/fuzz/strangers.py" serve "$DIR" "$1" $mode >"$mode.port" 2>"$mode.err" </dev/null &
		SERVER=$!
		in_file "$mode.port" READY || return
		# shellcheck disable=SC1091 # made by the server
		source "$DIR/env"
		read -r URL <"$DIR/URL"
		ends_within "$2" "$SEMLOCK" -n "$URL" true || return
		ends_within 60000 "$SEMLOCK" --who "$URL" || return
		kill -KILL "$SERVER"
	done
}

# ends_within MS CMD...: whatever it believes of what such a server says, it is no fault of its own.  One try in time is enough.
ends_within() {
	local try began took
	for try in 1 2 3; do
		began=$(now)
		capture "${@:2}"
		took=$((($(now) - began) / 1000000))
		[ "$status" -ne 70 ] && [ "$status" -lt 126 ] && [[ $err != *Traceback* ]] || complain "$*" "$status: $err" || return
		[ $took -ge $(($1 * SLOWNESS)) ] || return 0
	done
	complain "$*" "$took ms"
}

@test "random answers: redis" {
	survives redis
}

@test "random answers: ssh" {
	survives ssh
}

@test "random answers: s3" {
	survives s3
}

@test "random answers: etcd" {
	survives etcd
}

@test "random answers: ftp" {
	survives ftp
}

@test "random answers: postgresql" {
	survives postgresql
}

@test "answers that drip, or have no end: redis, s3, etcd and postgresql" {
	for engine in redis s3 etcd postgresql; do
		in_time $engine 4000 || complain "$engine" || return
	done
}

@test "answers that drip, or have no end: ftp and ssh" {
	in_time ftp 9000
	in_time ssh 4000
}
