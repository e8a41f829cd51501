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

@test "the command has status and input; others are excluded, and named" {
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

@test "an ETag works with quotes or without: semlock finds out, and remembers" {
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

@test "a server that ignores or refuses conditions gives 69; nothing runs" {
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

@test "a lost answer or a 500 at any request: one run, and a free lock after" {
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

@test "if answers to renewals are lost, or 500, the command runs on, alone" {
	for fault in after cut before; do
		rm -f holder.*
		hold_lock --ttl=$((6 * PACE)) "$URL"
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
	hold_lock --ttl=$((9 * PACE)) "$URL"
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

@test "a server that falls silent: the command ends before the next, with 76" {
	with_lease 3 ended_before_the_next
}

@test "a server killed for good gives 76; -w waits for it, else 69" {
	hold_lock --ttl=$((3 * PACE)) "$URL"
	server_kill
	ended holder 76
	refused 69 "$URL: " "$SEMLOCK" "$URL" touch ran
	start waiter "$SEMLOCK" -v -w 60 "$URL" touch later
	waits_for waiter "waiting: for the server"
	old=$PORT
	s3_server --port="$old"
	ended waiter 0
	[ -e later ] && [ ! -e ran ]
}

@test "its object deleted or overwritten: 76, and the new one is left alone" {
	hold_lock --ttl=$((3 * PACE)) "$URL"
	s3 DELETE nightly
	ended holder 76
	grep -q "its object was deleted" holder.err || complain "$(cat holder.err)"
	rm -f holder.*
	hold_lock --ttl=$((3 * PACE)) "$URL"
	s3 PUT nightly -d 'a report of our own'
	ended holder 76
	grep -q "its object was overwritten" holder.err || complain "$(cat holder.err)"
	refused 73 "the object exists, but is not a lock: use another name" "$SEMLOCK" "$URL" touch ran
	head -c 100000 /dev/zero >large
	s3 PUT nightly -T large
	refused 73 "the object exists, but is not a lock" "$SEMLOCK" "$URL" touch ran
	[ ! -e ran ]
	[ "$(s3 GET nightly | wc -c)" -eq 100000 ]
}

@test "taken over by another while its renewals did not arrive: 76" {
	hold_lock --ttl=$((3 * PACE)) "$URL"
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

@test "after a crash a waiter watches for a lease; -n trusts the server's dates" {
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

@test "with sixteen -n at once one gets the lock; others may see 412 or 500" {
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

@test "a newcomer after a release lets waiters look first, except with -n" {
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

@test "the login: variables, SEMLOCK_USER, profile, container or instance role" {
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

@test "a profile's credential_process gives the login; if it fails, 77 or 69" {
	unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
	export AWS_CONFIG_FILE=$PWD/config
	expires=$(date -u -d '+1 hour' +%Y-%m-%dT%H:%M:%SZ)
	printf '{"Version": 1, "AccessKeyId": "AKROLE", "SecretAccessKey": "sk/role", "SessionToken": "session7", "Expiration": "%s"}\n' "$expires" >login
	printf '{"Version": 1, "AccessKeyId": "AKTEST", "SecretAccessKey": "sk/test+4711"}\n' >lasting
	printf '[default]\ncredential_process = echo run >>%s/runs; cat "%s/login"\n' "$PWD" "$PWD" >config
	hold_lock --ttl=6 "$URL"
	s3_fault expired session7
	sed -i s/session7/session8/ login
	eventually sh -c '[ "$(wc -l <runs)" -ge 2 ]'
	let_go
	printf '[default]\ncredential_process = cat "%s/lasting"\n' "$PWD" >config
	expect_status 0 "$SEMLOCK" "$URL" true
	printf '[default]\ncredential_process = exit 3\n' >config
	refused 77 "credential_process failed (status 3)" "$SEMLOCK" "$URL" touch ran
	printf '[default]\ncredential_process = echo {}\n' >config
	refused 77 "credential_process printed none" "$SEMLOCK" "$URL" touch ran
	printf '[default]\ncredential_process = yes\n' >config
	refused 77 "credential_process: output too long" "$SEMLOCK" "$URL" touch ran
	printf '[default]\ncredential_process = sleep 97531\n' >config
	refused 69 "credential_process has not ended in time" "$SEMLOCK" -n "$URL" touch ran
	[ ! -e ran ] && ! pgrep -f '[s]leep 97531' >/dev/null
}

@test "a role's login that has expired is fetched anew, while the command runs" {
	unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_EC2_METADATA_DISABLED
	export AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_ENDPOINT_URL_S3
	hold_lock --ttl=$((6 * PACE)) "$URL"
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

@test "a wrong clock that is set right: the command runs on, and a waiter waits" {
	s3_fault ahead 10800
	hold_lock --ttl=6 "$URL"
	start waiter "$SEMLOCK" -v "$URL" touch ran
	waits_for waiter "waiting: held by"
	s3_fault ahead -
	sent=$(grep -c "^PUT /locks.* 200" requests)
	eventually sh -c "[ \$(grep -c '^PUT /locks.* 200' requests) -gt $((sent + 1)) ]"
	[ ! -e ran ]
	let_go
	ended waiter 0
}

@test "a release whose answer is lost while another enters is no loss" {
	hold_lock --ttl=60 "$URL"
	hold_as other --ttl=60 s3://locks/other
	s3_fault entered /locks/other
	s3_fault cut 1w
	let_go
	grep -q "PUT /locks/nightly cut" requests
	let_go other
}

@test "a server that is late to read (RequestTimeout) is asked again" {
	s3_fault late 2
	expect_status 0 "$SEMLOCK" -w 60 "$URL" touch ran
	[ -e ran ]
}

@test "a bucket with Object Lock takes the writes, which have a checksum" {
	s3_fault locked
	long=$(printf '%0300d' 0)
	for note in '' x "$long"; do
		expect_status 7 "$SEMLOCK" ${note:+--note="$note"} "$URL" sh -c 'exit 7'
		free_at_the_end
	done
}

@test "a refusal has the server's own words; a redirect names the region" {
	s3_fault says "400 InvalidRequest The word that you sent is not one of ours"
	refused 69 "the server refuses: 400 InvalidRequest: The word that you sent is not one of ours" "$SEMLOCK" "$URL" touch ran
	for status in 301 307; do
		s3_fault says "$status TemporaryRedirect Please re-send this request to the specified temporary endpoint."
		refused 69 "the bucket is not in the region test-1: set AWS_REGION=there-9" "$SEMLOCK" "$URL" touch ran
	done
	[ ! -e ran ]
}

@test "the first renewal of a new object recognizes its own lost answer" {
	hold_lock --ttl=$((9 * PACE)) "$URL"
	: >requests
	s3_fault after 1w
	eventually sh -c 'grep -q "^GET " requests'
	eventually sh -c '[ $(grep -c "^PUT .* 200 .*If-Match" requests) -ge 2 ]'
	let_go
	# done and answered 500; refused; read; and then nothing before the next renewal
	awk '/^PUT/ && / 412 / { refused = 1 } refused && /^GET/ { read++ } read && /^PUT/ { exit } END { exit read != 1 }' requests ||
		complain "$(cat requests)"
	free_at_the_end
}

@test "the service of an instance or a container that is late is no refusal" {
	unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
	roles=/latest/meta-data/iam/security-credentials/
	export AWS_EC2_METADATA_DISABLED=false AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_ENDPOINT_URL_S3
	for path in /latest/api/token $roles ${roles}lock-role; do
		for answer in 0 503; do
			s3_fault role "$answer $path"
			refused 69 "no login" "$SEMLOCK" -w 1 "$URL" touch ran || complain "$answer $path" || return
		done
	done
	s3_fault role "404 $roles"
	refused 77 "this instance has no role" "$SEMLOCK" "$URL" touch ran
	s3_fault role "0 $roles"
	start waiter "$SEMLOCK" -v -w 60 "$URL" touch later
	waits_for waiter "waiting: for the server: no login"
	s3_fault role -
	ended waiter 0
	s3_fault role 503
	AWS_CONTAINER_CREDENTIALS_FULL_URI=$AWS_ENDPOINT_URL_S3/container AWS_CONTAINER_AUTHORIZATION_TOKEN=pod-token \
		refused 69 "status 503" "$SEMLOCK" "$URL" touch ran
	[ -e later ] && [ ! -e ran ]
}

@test "the token of a container goes to this machine alone, or by https" {
	unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
	export AWS_CONTAINER_AUTHORIZATION_TOKEN=pod-token
	for url in http://localhost:x@127.0.0.2 http://127.0.0.1:x@127.0.0.2 http://localhost@127.0.0.2 http://127.0.0.1@127.0.0.1 \
		http://127.0.0.1.example http://127.0.0.2 http://localhost.example http://127.0.0.1\\@127.0.0.2 https://me:pw@127.0.0.1 \
		ftp://127.0.0.1; do
		AWS_CONTAINER_CREDENTIALS_FULL_URI=$url:$PORT/container \
			refused 64 "is neither https:// nor this machine's, or has a user in it" "$SEMLOCK" "$URL" touch ran ||
			complain "$url" || return
	done
	AWS_CONTAINER_CREDENTIALS_FULL_URI=http://LOCALHOST:$PORT/container expect_status 0 "$SEMLOCK" "$URL" true
	none -q "^GET /container.* 401" requests
	[ ! -e ran ]
}

@test "https: the server's certificate must be in order" {
	certificates
	server_kill
	s3_server --cert="$DIR/server.pem"
	export AWS_ENDPOINT_URL_S3=https://127.0.0.1:$PORT
	refused 69 "name its authority: SEMLOCK_CACERT" "$SEMLOCK" "$URL" touch ran
	SEMLOCK_CACERT=$DIR/ca.pem expect_status 0 "$SEMLOCK" "$URL" true
	AWS_CA_BUNDLE=$DIR/ca.pem expect_status 0 "$SEMLOCK" "$URL" true
	[ ! -e ran ]
}

@test "https: SEMLOCK_CACERT replaces the authorities of the system" {
	certificates
	server_kill
	s3_server --cert="$DIR/server.pem"
	AWS_ENDPOINT_URL_S3=https://127.0.0.1:$PORT only_cacert_counts "$URL"
}

@test "what is no lock on S3 is refused: 64; no bucket: 73" {
	refused 64 "invalid bucket name" "$SEMLOCK" s3://Locks/n touch ran
	refused 64 "invalid bucket name" "$SEMLOCK" s3://host:9000/n touch ran
	refused 64 "the login is AWS_ACCESS_KEY_ID" "$SEMLOCK" s3://me@locks/n touch ran
	refused 64 "a password in a URL" "$SEMLOCK" s3://me:pw@locks/n touch ran
	refused 64 "lock's name" "$SEMLOCK" s3://locks/ touch ran
	for name in ../other/n a/../n ./n; do
		refused 64 "cannot have a part . or .." "$SEMLOCK" "s3://locks/$name" touch ran || complain "$name" || return
	done
	refused 64 "" "$SEMLOCK" -s "$URL" touch ran
	refused 64 "" "$SEMLOCK" -j 2 "$URL" touch ran
	refused 64 "" "$SEMLOCK" --queue-max=2 "$URL" touch ran
	refused 64 "--stale is not for s3" "$SEMLOCK" --stale=5 "$URL" touch ran
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
