#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock s3://BUCKET/NAME COMMAND, with a server in memory that honours conditions, or does not, and fails when it is told
# to; contrib/check s3 has a real one.
# shellcheck disable=SC2030,SC2031 # each test has a server of its own
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote
load ../lib/servers/others
load ../lib/servers/s3

prepare() {
	prepare_remote
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-s3" ] || skip "this build has no locks on S3"
	s3_server
}

tidy() { [ -z "${SERVER-}" ] || kill -KILL "$SERVER" 2>/dev/null || true; }

# writes STATUS: how many writes were answered so
writes() { grep -c "^PUT .* $1 " requests || true; }

# free_at_the_end: the object says so
free_at_the_end() {
	s3 GET nightly | grep -q '^semlock 1 state=free ' || complain "$(s3 GET nightly)" "$(tail requests)"
}

@test "the engine for S3 keeps each rule" {
	printf '#!/bin/sh\ncase $* in *s3://away/*) export AWS_ENDPOINT_URL_S3=http://127.0.0.1:1 ;; esac\nexec "%s" "$@"\n' \
		"$LOCKSMITH_DIR/semlock-locksmith-s3" >engine
	chmod 755 engine
	unset SEMLOCK_LOOK_EVERY
	conforms --away=s3://away/nightly ./engine "$URL"
}

@test "the command has its status and its input; others are excluded, waited for, and named" {
	runs_a_command
	holds_against_others
	expect_status 1 "$SEMLOCK" --who "$URL"
	grep -Eq "^held +${COMMAND[holder]} .* exclusive .*: probe hold" .out || complain "$out"
	waiter_gets_it "$URL"
	expect_status 0 "$SEMLOCK" --who "$URL"
	free_at_the_end
}

@test "the tokens rise, over a deletion too" {
	last=0
	for try in 1 2 3 4 5 6; do
		expect_status 0 "$SEMLOCK" "$URL" sh -c 'echo $SEMLOCK_TOKEN'
		[ "$out" -gt "$last" ] || complain "token $out after $last"
		last=$out
		[ "$try" -ne 3 ] || { s3 DELETE nightly; s3_fault ahead 10; } # not more than one holder a second
	done
}

@test "an ETag counts with its quotes or without: the form is found out, and remembered" {
	for kind in honours bare; do
		s3_fault kind $kind
		s3 DELETE nightly
		expect_status 0 "$SEMLOCK" "$URL" true
		: >requests
		expect_status 0 "$SEMLOCK" "$URL" true
		# take and release; the guard alone is refused
		[ "$(writes 200)" -eq 2 ] && [ "$(writes 412)" -eq 1 ] && [ "$(grep -c ^GET requests)" -eq 1 ] ||
			complain "$kind" "$(cat requests)"
		hold_lock "$URL"
		expect_status 1 "$SEMLOCK" -n "$URL" touch ran
		let_go
		rm -f holder.*
	done
	[ ! -e ran ]
}

@test "a server that ignores conditions, or refuses them, is 69, and the command does not run" {
	for made in no yes; do
		for kind in ignores creates versioned refuses; do
			case $made,$kind in
			yes,creates) continue ;; # what it ignores is not asked
			yes,versioned) words="refuses its own ETag" ;;
			*,refuses) words="cannot write with a condition" ;;
			*,ignores) words="ignores If-Match, and so cannot lock" ;;
			*) words="ignores If-None-Match, and so cannot lock" ;;
			esac
			for wait in -w60 -n; do
				s3_fault kind -
				s3 DELETE nightly
				[ $made = no ] || expect_status 0 "$SEMLOCK" "$URL" true
				s3_fault kind $kind
				refused 69 "$words" "$SEMLOCK" $wait "$URL" touch ran
				[ ! -e ran ] || complain "made: $made, kind: $kind"
			done
		done
	done
}

@test "an answer that is lost, or a 500, at any request: the command runs once, and the lock is free at the end" {
	for kind in honours bare loses; do
		s3_fault kind -
		expect_status 0 "$SEMLOCK" "$URL" true
		s3_fault kind $kind
		for fault in before after cut; do
			for count in 1 1w 2w 3w; do
				: >runs
				s3_fault $fault $count
				expect_status 0 "$SEMLOCK" --ttl=20 "$URL" sh -c 'echo run >>runs'
				s3_fault $fault -
				[ "$(wc -l <runs)" -eq 1 ] || complain "$kind, $fault $count: $(wc -l <runs) runs"
				free_at_the_end || complain "$kind, $fault $count"
			done
		done
	done
}

@test "the answers to renewals are lost, or are 500: the command runs on, and nobody else gets in" {
	for fault in after cut before; do
		rm -f holder.*
		hold_lock --ttl=6 "$URL"
		s3_fault $fault 2w
			eventually [ ! -e "faults/$fault" ] || complain "not renewed"
		sent=$(grep -c "^PUT.* 200" requests)
		eventually more_writes_than "$sent"
		expect_status 1 "$SEMLOCK" -n "$URL" touch ran
		let_go
		free_at_the_end
	done
	[ ! -e ran ]
}

@test "let go behind a renewal whose answer was lost: the lock is free" {
	expect_status 0 "$SEMLOCK" "$URL" true
	hold_lock --ttl=9 "$URL"
	s3_fault after 1w
	eventually [ ! -e faults/after ]
	let_go
	free_at_the_end
}

more_writes_than() { [ "$(grep -c '^PUT.* 200' requests)" -gt "$1" ]; }

ended_before_the_next() {
	rm -f holder.* next.*
	s3_fault hole -
	hold_lock --ttl="$ttl" "$URL$ttl" || return
	s3_fault hole
	ended holder 76 || return
	s3_fault hole -
	expect_status 0 "$SEMLOCK" -w 60 --ttl="$ttl" "$URL$ttl" sh -c "$(none_runs "${COMMAND[holder]}")"
}

@test "a server that falls silent: the command is ended, 76, before the next one begins" {
	with_lease 3 ended_before_the_next
}

@test "the server is killed for good: 76; it is waited for with -w, and 69 without" {
	hold_lock --ttl=3 "$URL"
	kill -KILL "$SERVER"
	ended holder 76
	refused 69 "$URL: " "$SEMLOCK" "$URL" touch ran
	start waiter "$SEMLOCK" -v -w 60 "$URL" touch later
	waits_for waiter "waiting: for the server"
	old=$PORT
	s3_server --port="$old"
	ended waiter 0
	[ -e later ] && [ ! -e ran ]
}

@test "its object deleted or overwritten behind its back: 76, and what stands there is left alone" {
	hold_lock --ttl=3 "$URL"
	s3 DELETE nightly
	ended holder 76
	grep -q "its object was deleted" holder.err || complain "$(cat holder.err)"
	rm -f holder.*
	hold_lock --ttl=3 "$URL"
	s3 PUT nightly -d 'a report of our own'
	ended holder 76
	grep -q "its object was overwritten" holder.err || complain "$(cat holder.err)"
	refused 73 "the object is there, and is no lock: take another name" "$SEMLOCK" "$URL" touch ran
	head -c 100000 /dev/zero >large
	s3 PUT nightly -T large
	refused 73 "the object is there, and is no lock" "$SEMLOCK" "$URL" touch ran
	[ ! -e ran ]
	[ "$(s3 GET nightly | wc -c)" -eq 100000 ]
}

@test "taken over by another while its renewals did not arrive: 76" {
	hold_lock --ttl=3 "$URL"
	s3 GET nightly | sed 's/tag=[0-9a-f]*/tag=0123456789abcdef0123456789abcdef/' >other
	s3 PUT nightly -H 'Content-Type: text/plain' --data-binary @other
	ended holder 76
	grep -q "it was taken over by another" holder.err || complain "$(cat holder.err)"
}

# A holder whose every process is gone, and whose lock nobody has released.
crash() {
	hold_lock --ttl="$1" "$URL"
	kill -STOP "${PID[holder]}" "$(inner holder)"
	kill -KILL "$(helper_of holder)" "${PID[holder]}" "$(inner holder)" "${COMMAND[holder]}"
}

@test "after a crash a waiter gets it when it has seen it unchanged for a lease; with -n the server's dates count" {
	crash 4
	began=$(now)
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" -w 1 "$URL" touch ran
	expect_status 0 "$SEMLOCK" -w 120 "$URL" true
	[ $(($(now) - began)) -ge 4000000000 ] || complain "after $(($(now) - began)) ns"
	rm -f holder.*
	crash 60
	s3_fault ahead 100
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" --who "$URL"
	s3_fault ahead 200
	expect_status 0 "$SEMLOCK" --who "$URL"
	expect_status 0 "$SEMLOCK" -n "$URL" true
	[ ! -e ran ]
}

@test "a waiter that can watch does not go by the server's dates" {
	hold_lock --ttl=60 "$URL"
	start waiter "$SEMLOCK" -v -w 600 "$URL" touch ran
	waits_for waiter "waiting: held by"
	s3_fault ahead 800
	sent=$(wc -l <requests)
	eventually sh -c "[ \$(wc -l <requests) -gt $((sent + 5)) ]"
	[ ! -e ran ]
	let_go
	ended waiter 0
}

@test "sixteen ask with -n at once: one of them gets it, whether the losers are told 412 or 500" {
	for kind in honours loses; do
		s3_fault kind $kind
		for round in 1 2 3; do sixteen_at_once "$URL$kind$round"; done
	done
}

@test "waiters all look with the same interval, and a request each" {
	hold_lock "$URL"
	start waiter "$SEMLOCK" -v -w 60 "$URL" true
	waits_for waiter "waiting: held by"
	: >requests
	eventually sh -c '[ $(wc -l <requests) -ge 10 ]'
	none -v '^GET .* 304' requests
	let_go
	ended waiter 0
}

# asked TIMES ARG...: the lock is taken, after so many looks
asked() {
	local times=$1
	shift
	s3 PUT nightly -H 'Content-Type: text/plain' --data-binary @waited
	: >requests
	s3_fault ahead "${AHEAD:--}"
	expect_status 0 "$SEMLOCK" "$@" "$URL" true
	[ "$(grep -c ^GET requests)" -eq "$times" ] || complain "$*" "$(cat requests)"
	s3_fault ahead -
	s3 GET nightly | grep -q '^semlock 1 state=free .* waited=no ' || complain "$(s3 GET nightly)"
}

@test "one that comes right after a holder that had waited lets the waiters look first; not with -n, nor later" {
	export SEMLOCK_LOOK_EVERY=3
	hold_lock "$URL"
	start waiter "$SEMLOCK" -v -w 60 "$URL" true
	waits_for waiter "waiting: held by"
	let_go
	ended waiter 0
	s3 GET nightly >waited
	grep -q '^semlock 1 state=free .* waited=yes ' waited || complain "$(cat waited)"
	start late "$SEMLOCK" -v -w 60 "$URL" true
	waits_for late "waiting: for those that wait already"
	ended late 0
	asked 2
	asked 2 -w 0.2
	asked 1 -n
	AHEAD=20 asked 1
	sed -i 's/waited=yes/waited=no/' waited
	asked 1
}

@test "the login: variables, then SEMLOCK_USER, a profile, a container's role, an instance's role" {
	unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
	refused 77 "no login: set AWS_ACCESS_KEY_ID" "$SEMLOCK" "$URL" touch ran
	SEMLOCK_USER=AKTEST SEMLOCK_PASSWORD=sk/test+4711 expect_status 0 "$SEMLOCK" "$URL" sh -c 'echo ${SEMLOCK_PASSWORD-none}'
	expect_out none
	mkdir .aws
	printf '[default]\naws_access_key_id = AKTEST\naws_secret_access_key = wrong\n\n[lock]\naws_access_key_id=AKTEST\naws_secret_access_key = sk/test+4711 \n' \
		>.aws/credentials
	refused 77 "SignatureDoesNotMatch" "$SEMLOCK" "$URL" touch ran
	AWS_PROFILE=lock expect_status 0 "$SEMLOCK" "$URL" true
	printf '[profile two]\naws_access_key_id=AKTEST\naws_secret_access_key=sk/test+4711\nendpoint_url = %s/\nregion = there-2\n' \
		"$AWS_ENDPOINT_URL_S3" >config
	AWS_CONFIG_FILE=config AWS_PROFILE=two AWS_REGION="" AWS_ENDPOINT_URL_S3="" expect_status 0 "$SEMLOCK" "$URL" true
	printf '[default]\nsso_session = corp\n' >config
	rm .aws/credentials
	AWS_CONFIG_FILE=config refused 77 "has sso_session, which this program cannot use" "$SEMLOCK" "$URL" touch ran
	AWS_CONTAINER_CREDENTIALS_FULL_URI=$AWS_ENDPOINT_URL_S3/container AWS_CONTAINER_AUTHORIZATION_TOKEN=pod-token \
		expect_status 0 "$SEMLOCK" "$URL" true
	echo pod-token >token
	AWS_CONTAINER_CREDENTIALS_FULL_URI=$AWS_ENDPOINT_URL_S3/container AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=token \
		expect_status 0 "$SEMLOCK" "$URL" true
	AWS_CONTAINER_CREDENTIALS_FULL_URI=http://198.51.100.1/container AWS_CONTAINER_AUTHORIZATION_TOKEN=pod-token \
		refused 64 "is neither https:// nor this machine's" "$SEMLOCK" "$URL" touch ran
	AWS_EC2_METADATA_DISABLED=false AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_ENDPOINT_URL_S3/ expect_status 0 "$SEMLOCK" "$URL" true
	AWS_EC2_METADATA_DISABLED=false AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1 \
		refused 77 "no login: set" "$SEMLOCK" "$URL" touch ran
	[ ! -e ran ]
}

@test "a role's login that has expired is fetched anew, while the command runs" {
	unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_EC2_METADATA_DISABLED
	export AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_ENDPOINT_URL_S3
	hold_lock --ttl=6 "$URL"
	taken=$(grep -c 'security-credentials/lock-role' requests)
	s3_fault expired "session" && s3_fault expired "$(sed -n 's/.*\(session[0-9]*\).*/\1/p' requests | tail -n 1)"
	s3_fault expired session3
	eventually sh -c "[ \$(grep -c security-credentials/lock-role requests) -gt $taken ]"
	sent=$(grep -c "^PUT /locks.* 200" requests)
	eventually sh -c "[ \$(grep -c '^PUT /locks.* 200' requests) -gt $sent ]"
	let_go
}

@test "the secret is in no command line" {
	hold_lock "$URL"
	in_no_command_line 4711
	let_go
}

@test "a clock that is hours off, here or there, is mended by the server's" {
	for ahead in 10800 -200000; do
		s3_fault ahead $ahead
		s3 DELETE nightly
		rm -f holder.*
		hold_lock "$URL"
		expect_status 1 "$SEMLOCK" -n "$URL" touch ran
		let_go
	done
	[ ! -e ran ]
}

@test "https: the server's certificate must be in order" {
	certificates
	kill -KILL "$SERVER"
	s3_server --cert="$DIR/server.pem"
	export AWS_ENDPOINT_URL_S3=https://127.0.0.1:$PORT
	refused 69 "SEMLOCK_CACERT names its authority" "$SEMLOCK" "$URL" touch ran
	SEMLOCK_CACERT=$DIR/ca.pem expect_status 0 "$SEMLOCK" "$URL" true
	AWS_CA_BUNDLE=$DIR/ca.pem expect_status 0 "$SEMLOCK" "$URL" true
	[ ! -e ran ]
}

@test "what is no lock on S3 is refused: 64; no bucket: 73" {
	refused 64 "no bucket's name" "$SEMLOCK" s3://Locks/n touch ran
	refused 64 "no bucket's name" "$SEMLOCK" s3://host:9000/n touch ran
	refused 64 "the login is AWS_ACCESS_KEY_ID" "$SEMLOCK" s3://me@locks/n touch ran
	refused 64 "a password in a URL" "$SEMLOCK" s3://me:pw@locks/n touch ran
	refused 64 "lock's name" "$SEMLOCK" s3://locks/ touch ran
	for name in ../other/n a/../n ./n; do
		refused 64 "cannot have a part . or .." "$SEMLOCK" "s3://locks/$name" touch ran || complain "$name" || return
	done
	refused 64 "" "$SEMLOCK" -s "$URL" touch ran
	refused 64 "" "$SEMLOCK" -j 2 "$URL" touch ran
	refused 64 "" "$SEMLOCK" --queue-max=2 "$URL" touch ran
	refused 64 "--stale is not for S3" "$SEMLOCK" --stale=5 "$URL" touch ran
	AWS_ENDPOINT_URL_S3=ftp://x refused 64 "the endpoint must be http" "$SEMLOCK" "$URL" touch ran
	AWS_ENDPOINT_URL_S3=http://x/path refused 64 "the endpoint must be http" "$SEMLOCK" "$URL" touch ran
	AWS_REGION=us_east refused 64 "no region of AWS" "$SEMLOCK" "$URL" touch ran
	refused 73 "there is no bucket none" "$SEMLOCK" s3://none/n touch ran
	expect_status 0 "$SEMLOCK" "s3://locks/a%20name/with~-_.,+=%25@:&/.../.x/y..//" true
	[ ! -e ran ]
}

@test "a server that says nothing is 69 as fast as promised" {
	s3_fault hole
	no_answer_in_time
	s3_fault hole -
}
