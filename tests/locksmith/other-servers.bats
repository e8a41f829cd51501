#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock URL COMMAND with TLS, over SSH, and on a server that gives no reasons; all started here.
# shellcheck disable=SC2030,SC2031 # each test has a server of its own
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote
load ../lib/servers/others

prepare() {
	prepare_remote
	chmod 755 "$DIR" "$BATS_TEST_TMPDIR"
}

tidy() {
	[ -z "${SERVER:-}" ] || kill -KILL "$SERVER" 2>/dev/null
}

tls_server() {
	certificates
	export SEMLOCK_USER=lock SEMLOCK_PASSWORD=secret
	python_server ready server.err ftp.py "$DIR" "$@"
}

# What must hold on every server.
all_of_it() {
	expect_status 7 "$SEMLOCK" --ttl=9 "$1" sh -c 'exit 7'
	hold_lock --ttl=10 "$1"
	expect_status 1 "$SEMLOCK" -n "$1" touch ran
	expect_status 1 "$SEMLOCK" --who "$1"
	grep -Eq "^held +${COMMAND[holder]} " .out
	waiter_gets_it "$1"
	expect_status 0 "$SEMLOCK" -n "$1" true
	[ ! -e ran ]
}

@test "ftpes: TLS on the ordinary port" {
	tls_server --cert="$DIR/server.pem"
	export SEMLOCK_CACERT=$DIR/ca.pem
	all_of_it "ftpes://127.0.0.1:$PORT/nightly"
}

@test "ftps: TLS from the first byte" {
	tls_server --cert="$DIR/server.pem" --implicit
	export SEMLOCK_CACERT=$DIR/ca.pem
	all_of_it "ftps://127.0.0.1:$PORT/nightly"
}

@test "ftpes: SEMLOCK_CACERT replaces the authorities of the system" {
	tls_server --cert="$DIR/server.pem"
	only_cacert_counts "ftpes://127.0.0.1:$PORT/nightly"
}

@test "TLS refused gives 69 in one line, and no name or password is sent" {
	tls_server
	export SEMLOCK_CACERT=$DIR/ca.pem
	refused 69 "ftpes://127.0.0.1:$PORT/nightly: the server does not do TLS" \
		"$SEMLOCK" -n "ftpes://127.0.0.1:$PORT/nightly" touch ran
	refused 69 "ftps://127.0.0.1:$PORT/nightly: " "$SEMLOCK" -n "ftps://127.0.0.1:$PORT/nightly" touch ran
	[[ $err == *"is there TLS at this port?"* ]] || complain "$err"
	if grep -E "^(USER|PASS|MKD)" log; then complain "this was said in clear text"; fi
	[ ! -e ran ]
}

@test "a certificate of an unknown authority or another host: 69, nothing sent" {
	tls_server --cert="$DIR/server.pem"
	refused 69 "TLS" "$SEMLOCK" -n "ftpes://127.0.0.1:$PORT/nightly" touch ran
	[[ $err == *"name its authority: SEMLOCK_CACERT"* ]] || complain "$err"
	SEMLOCK_CACERT=$DIR/none refused 69 "$DIR/none; name its authority: SEMLOCK_CACERT" \
		"$SEMLOCK" -n "ftpes://127.0.0.1:$PORT/nightly" touch ran
	export SEMLOCK_CACERT=$DIR/ca.pem
	refused 69 "TLS" "$SEMLOCK" -n "ftpes://127.0.0.2:$PORT/nightly" touch ran ||
		refused 69 "127.0.0.2" "$SEMLOCK" -n "ftpes://127.0.0.2:$PORT/nightly" touch ran
	if grep -E "^(USER|PASS|MKD)" log; then complain "this was said"; fi
	[ ! -e ran ]
}

@test "SFTP excludes; an unknown host and a wrong key are refused" {
	sftp_server
	all_of_it "$URL/nightly"
	refused 73 "missing/nightly" "$SEMLOCK" -n "$URL/missing/nightly" touch ran
	: >nobody
	SEMLOCK_KNOWN_HOSTS=$DIR/nobody refused 69 "$URL/nightly" "$SEMLOCK" -n "$URL/nightly" touch ran
	ssh-keygen -q -t ecdsa -m PEM -N '' -f other
	SEMLOCK_SSH_KEY=$DIR/other refused 77 "$URL/nightly" "$SEMLOCK" -n "$URL/nightly" touch ran
	[ ! -e ran ]
}

@test "sftp: killed holders are taken over" {
	sftp_server
	hold_lock --ttl=4 "$URL/nightly"
	# The helper is killed first: without the other processes it would release the lock.
	kill -KILL "$(helper_of holder)" "$(inner holder)" "${PID[holder]}" "${COMMAND[holder]}"
	ended holder 137
	expect_status 0 "$SEMLOCK" --ttl=2 -w 60 "$URL/nightly" true
}

@test "vsftpd, whose every refusal has the same words" {
	vsftpd_server
	all_of_it "$URL/nightly"
	refused 73 "missing/nightly" "$SEMLOCK" -n "$URL/missing/nightly" touch ran
	refused 73 "/nightly" "$SEMLOCK" -n "ftp://anonymous@127.0.0.1:$PORT/nightly" touch ran
	[ ! -e ran ]
}
