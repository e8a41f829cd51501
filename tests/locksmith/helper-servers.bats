#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks on servers that behave differently: vsftpd, which refuses everything with the same words and has no MLST, and
# sftp.  Each server is started here, on loopback, without privileges if possible.

load ../lib/locksmith
load ../lib/servers/others

setup() {
	watch_over
	have_locksmiths || skip "built without the network methods"
	export SEMLOCK_ANSWER_WITHIN=60 # --no-wait: a busy machine may need more than two and a half seconds
	DIR=$(mktemp -d "$BATS_TEST_TMPDIR/XXXXXX")
	chmod 755 "$DIR" "$BATS_TEST_TMPDIR"
	export HOME=$DIR
	unset NETRC SEMLOCK_CACERT SEMLOCK_USER SEMLOCK_PASSWORD
}

teardown() {
	smiths_stop_all
	[ -z "$SERVER" ] || { kill -KILL "$SERVER" 2>/dev/null; wait "$SERVER" 2>/dev/null; } || true
	[ -z "${BETWEEN:-}" ] || { kill -KILL "$BETWEEN"; wait "$BETWEEN"; } 2>/dev/null || true
	watched
}

# Fails, with a process of the test that lives on, for as long as the lease is short.
longer_than_eight() {
	sleep 1000 3>&- &
	SMITH_PID[a]=$!
	tried+=" $ttl"
	((ttl > 8))
}

@test "with_lease retries what fails with a short lease, and leaves nothing" {
	tried='' PACE=1 SLOWNESS=1
	with_lease 1 longer_than_eight
	[ "$tried" = " 1 3 9" ]
	[ "$(pgrep -cP $$ -x sleep)" -eq 1 ]
	run with_lease 2 false
	[ "$status" -ne 0 ]
}

# What must hold on every server.
all_of_it() {
	smith a --ttl=4 "$URL/L"
	expect a OK
	smith b --ttl=6 "$URL/L"
	expect b WAIT
	[ "$(field "$LINE" pid)" = "$$" ]
	expect a HELD
	expect a HELD
	expect a HELD
	run_smith --no-wait "$URL/L"
	[ "$status" -eq 1 ]
	run_smith --who "$URL/L"
	[ "$status" -eq 1 ]
	kill -KILL "${SMITH_PID[a]}"
	expect b NOTE
	[[ $LINE == *"taken over"* ]]
	expect b OK
	unlock b
	[ "$STATUS" -eq 0 ]
	run_smith --who "$URL/L"
	[ "$status" -eq 0 ]
	run_smith --no-wait "$URL/none/L"
	[ "$status" -eq 73 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"missing, or closed to us)" ]]
}

@test "on vsftpd a lock is taken, waited for, renewed and released" {
	vsftpd_server
	all_of_it
	run_smith --no-wait "ftp://anonymous@127.0.0.1:$PORT/L"
	[ "$status" -eq 73 ]
	[[ $output == *"is there)" ]]
}

@test "on an SFTP server a lock is taken, waited for, renewed and released" {
	sftp_server
	all_of_it
}

# handed_on STALE: plain clients hand the directory on, with no pause of half of STALE seconds.  A busy machine may make
# such a pause: if the helper then takes the lock, as it may, this fails.
handed_on() {
	local i last gap longest=0
	mkdir "$DIR/locks/$1" || return
	smith a --stale="$1" --wait=$((60 * SLOWNESS)) "$URL/$1" && expect a WAIT || return
	last=$(now)
	for ((i = 0; i < 40 * $1; i++)); do
		mkdir -p "$DIR/locks/next"
		mv -T "$DIR/locks/next" "$DIR/locks/$1" || break # removed and made anew, at once
		gap=$(($(now) - last))
		last=$((last + gap))
		[ $gap -le $longest ] || longest=$gap
		"$PROBE" pause 50
	done
	while IFS= read -r -t 0.1 -u "${SMITH_OUT[a]}" LINE; do
		[[ $LINE != "WAIT "* ]] || continue # another plain client has it since then
		[ $longest -gt $((450000000 * $1)) ] || : >"$DIR/taken"
		complain "$LINE" "the longest pause: $longest ns" || return
	done
	until_line a OK # the plain clients count as dead in the end
}

@test "sftp: a directory handed on by plain clients does not count as empty" {
	sftp_server
	handed_on 2 || handed_on 4 || handed_on 8
	[ ! -e "$DIR/taken" ]
}

@test "sftp: -n tells a dead holder by the server's clock" {
	sftp_server
	mkdir -p "$DIR/locks/L/sl1.x.6.5.0123456789abcdef.99.elsewhere"
	run_smith --no-wait "$URL/L"
	[ "$status" -eq 1 ]
	touch -d '-63 seconds' "$DIR/locks/L"
	smith a --no-wait "$URL/L"
	LINE_SECONDS=60 until_line a OK
	[[ $PASSED == *"taken over from 99 on elsewhere"* ]]
}

# between: from now on URL leads through a proxy that can swallow a reply.
between() {
	apart /usr/bin/python3 "$SOURCE/tests/lib/servers/between.py" "127.0.0.1:$PORT" "$DIR" >"$DIR/between" 2>&1 </dev/null &
	BETWEEN=$!
	in_file "$DIR/between" READY
	printf '[127.0.0.1]:%s %s\n' "$(sed 's/READY //' "$DIR/between")" "$(cut -d' ' -f1,2 "$DIR/host.pub")" >>"$DIR/known"
	URL=${URL/:$PORT/:$(sed 's/READY //' "$DIR/between")}
}

@test "sftp: a release whose reply is lost is a release, not LOST" {
	sftp_server
	between
	smith a "$URL/L"
	expect a OK
	: >"$DIR/faults/cut-reply"
	unlock a
	[ ! -e "$DIR/faults/cut-reply" ]
	[ "$STATUS" -eq 0 ]
	until_line a FREE
}

@test "sftp: a server that ends in the middle of a login has not denied it" {
	sftp_server
	between
	local said
	for said in 0 1 2 3 4 5 6 7 8; do
		echo "$said" >"$DIR/faults/cut-reply"
		run_smith --no-wait "$URL/L"
		[ "$status" -eq 0 ] || [ "$status" -eq 69 ] || { echo "after $said replies: $output"; return 1; }
	done
}

@test "sftp: an unknown host key is 69, a wrong key 77" {
	sftp_server
	: >"$DIR/nobody"
	SEMLOCK_KNOWN_HOSTS=$DIR/nobody run_smith --no-wait "$URL/L"
	[ "$status" -eq 69 ]
	[[ $output == *known_hosts* ]]
	ssh-keygen -q -t ecdsa -m PEM -N '' -f "$DIR/other"
	SEMLOCK_SSH_KEY=$DIR/other run_smith --no-wait "$URL/L"
	[ "$status" -eq 77 ]
}

@test "sftp: a server that hides the login directory gives 69, also to --who" {
	[ -x /usr/lib/openssh/sftp-server ] || skip "no sftp-server here"
	sftp_server
	kill -KILL "$SERVER"
	wait "$SERVER" || true
	printf '#!/bin/sh\nmkdir "%s" && cd "%s" && rmdir "%s" && exec /usr/lib/openssh/sftp-server\n' \
		"$DIR/gone" "$DIR/gone" "$DIR/gone" >"$DIR/homeless"
	chmod +x "$DIR/homeless"
	sed -i "s|^Subsystem.*|Subsystem sftp $DIR/homeless|" "$DIR/conf"
	on_a_port sshd_on
	printf '[127.0.0.1]:%s %s\n' "$PORT" "$(cut -d' ' -f1,2 "$DIR/host.pub")" >"$DIR/known"
	local action
	for action in --no-wait --who; do
		run_smith $action "sftp://127.0.0.1:$PORT$DIR/locks/L"
		[ "$status" -eq 69 ]
		[[ $output == "ERR 69 "* ]] # versions of libssh2 differ in what they say, and which words are ours
	done
}
