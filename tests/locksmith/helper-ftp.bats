#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks on an FTP server, held by semlock-locksmith alone; the server is started here.

load ../lib/helper-ftp

# break_token LOCK: removes the token, which a heartbeat may rename at the same moment.
break_token() {
	local end=$((SECONDS + LINE_SECONDS))
	until rmdir "$ROOT/$1"/* 2>/dev/null; do ((SECONDS < end)) || return; done
}

@test "one holds, another waits and is told by whom, and gets it at release" {
	server
	smith a "$URL/L"
	expect a OK
	[ "$(field "$LINE" lease)" = 60000000000 ]
	[ "$(field "$LINE" deadline)" -gt "$(now)" ]
	smith b "$URL/L"
	expect b WAIT
	[ "$(field "$LINE" pid)" = "$$" ]
	[ "$(field "$LINE" mode)" = exclusive ]
	unlock a
	[ "$STATUS" -eq 0 ]
	expect a FREE
	until_line b OK # b may see the directory whose token is gone, and say so
	unlock b
	[ -z "$(ls "$ROOT")" ]
}

@test "UNLOCK lets go like the end of input" {
	server
	smith a "$URL/L"
	expect a OK
	tell a UNLOCK
	expect a FREE
	smith_ended a
	[ "$STATUS" -eq 0 ]
	[ ! -e "$ROOT/L" ]
}

# beats: how often the holder's token in L has been renamed.
beats() { find "$ROOT/L" -mindepth 1 -printf '%f\n' | cut -d. -f4 | grep . || echo 0; }

@test "FREE and LOST are the last word, also to a reader that had no room" {
	server
	local word in beaten
	for word in FREE LOST; do
		smith a --ttl=6 "$URL/L"
		expect a OK
		fill a
		# The helper has renewed its lock, and could not say so.
		beaten=$(beats)
		until [ "$(beats)" -gt "$beaten" ]; do nap 20; done
		in=${SMITH_IN[a]}
		if [ $word = FREE ]; then
			exec {in}>&-
			until [ ! -e "$ROOT/L" ]; do nap 20; done
		else
			break_token L
			in_file "$DIR/log" "^RNFR .* 550"
		fi
		"$PROBE" pause 200
		drain a
		until_line a $word
		smith_ended a
		if IFS= read -r -t 0.1 -u "${SMITH_OUT[a]}" LINE; then
			echo "after $word: $LINE"
			return 1
		fi
		rm -rf "${ROOT:?}/L"
	done
}

@test "--no-wait and --wait=SECS end with BUSY and 1, naming the holder" {
	server
	smith a "$URL/L"
	expect a OK
	run_smith --no-wait "$URL/L"
	[ "$status" -eq 1 ]
	[[ $output == "BUSY pid=$$ host="* ]]
	smith b --wait=0.3 "$URL/L"
	until_line b BUSY
	smith_ended b
	[ "$STATUS" -eq 1 ]
	[ "$(find "$ROOT/L" -mindepth 1 | wc -l)" -eq 1 ]
}

@test "an input without end keeps no helper from waiting, nor from giving up" {
	server
	smith a "$URL/L"
	expect a OK
	run timeout -s KILL 60 "$(locksmith_of "$URL")" --wait=0.3 "$URL/L" </dev/zero
	[ "$status" -eq 1 ]
	[[ ${lines[-1]} == "BUSY "* ]]
}

@test "--who names the holder, and is 0 when the lock is free" {
	server
	run_smith --who "$URL/L"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	smith a --pid=4242 "$URL/L"
	expect a OK
	run_smith --who "$URL/L"
	[ "$status" -eq 1 ]
	[[ $output == "WHO state=holds pid=4242 host="*" mode=exclusive" ]]
}

@test "a plain MKD client is excluded, and its reaper does no harm" {
	server
	smith a "$URL/L"
	expect a OK
	run curl -s -u lock:secret "$URL/" -Q "MKD L" -I
	[ "$status" -eq 21 ]
	run curl -s -u lock:secret "$URL/" -Q "RMD L" -I
	[ "$status" -eq 21 ]
	unlock a
	[ "$STATUS" -eq 0 ]
	curl -s -u lock:secret "$URL/" -Q "MKD L" -I
}

@test "a plain MKD client excludes" {
	server
	curl -s -u lock:secret "$URL/" -Q "MKD L" -I
	run_smith --no-wait "$URL/L"
	[ "$status" -eq 1 ]
	[ "$output" = "BUSY mode=exclusive since=$(stat -c %Y "$ROOT/L") note=a directory without a sign of its holder" ]
	run_smith --who "$URL/L"
	[ "$output" = "WHO state=holds mode=exclusive since=$(stat -c %Y "$ROOT/L") note=a directory without a sign of its holder" ]
	smith a "$URL/L"
	expect a WAIT
	curl -s -u lock:secret "$URL/" -Q "RMD L" -I
	after_waits a OK
}

@test "the heartbeat renames the sign and moves the deadline" {
	server
	smith a --ttl=4 "$URL/L"
	expect a OK
	local first
	first=$(field "$LINE" deadline)
	expect a HELD
	[ "$(field "$LINE" deadline)" -gt "$first" ]
	expect a HELD
	[[ $(ls "$ROOT/L") == sl1.x.4.@([2-9]|[1-9][0-9]).* ]]
}

@test "a killed holder is taken over after its ttl, a living one never" {
	server
	smith a --ttl=4 "$URL/L"
	expect a OK
	smith b --ttl=6 "$URL/L"
	expect b WAIT
	local i
	for i in 1 2 3 4 5 6 7 8; do expect a HELD; done
	kill -KILL "${SMITH_PID[a]}"
	expect b NOTE
	[[ $LINE == *"taken over from $$"* ]]
	expect b OK
	[ "$(field "$LINE" deadline)" -gt "$(now)" ]
}

@test "a holder frozen past a takeover finds it, and leaves the new lock alone" {
	server
	smith a --ttl=2 "$URL/L"
	expect a OK
	kill -STOP "${SMITH_PID[a]}"
	smith b --ttl=6 "$URL/L"
	until_line b OK
	[ "$(field "$LINE" deadline)" -gt "$(now)" ]
	kill -CONT "${SMITH_PID[a]}"
	until_line a LOST
	unlock a
	[ "$STATUS" -eq 76 ]
	expect b HELD
	unlock b
	[ "$STATUS" -eq 0 ]
}

@test "a sign broken behind its owner's back is noticed at the next heartbeat" {
	server
	smith a --ttl=6 "$URL/L"
	expect a OK
	break_token L
	until_line a LOST
	[[ $LINE == *"taken over"* ]]
	unlock a
	[ "$STATUS" -eq 76 ]
}

@test "-n tells a dead holder by the server's clock" {
	server
	mkdir -p "$ROOT/L/sl1.x.6.5.0123456789abcdef.99.elsewhere"
	run_smith --no-wait "$URL/L"
	[ "$status" -eq 1 ]
	touch -d '-63 seconds' "$ROOT/L"
	smith a --no-wait "$URL/L"
	until_line a OK
	[[ $PASSED == *"taken over from 99 on elsewhere"* ]]
	unlock a
	[ "$STATUS" -eq 0 ]
}

nothing_taken() {
	smith a --ttl=8 "$URL/$1" && expect a OK && expect a HELD || return
	touch -d '-1 hour' "$ROOT/$1"
	run_smith --no-wait "$URL/$1"
	[ "$status" -eq 1 ] && expect a HELD || return
	unlock a
	[ "$STATUS" -eq 0 ]
}

@test "the server's clock is set forward: -n takes nothing from a holder" {
	server
	# On a busy machine, a renewal that is a second late does not count.
	nothing_taken one || nothing_taken two || nothing_taken three
}

@test "a directory with other things in it is never taken" {
	server
	mkdir -p "$ROOT/L/something"
	with_wait --stale=0.2 "$URL/L"
	[ -d "$ROOT/L/something" ]
}

@test "a server that names no login directory: 69, and nothing is made" {
	server
	fault no-home.always
	smith a --no-wait "$URL/L"
	expect_line a ERR
	[[ $LINE == "ERR 69 "*"the server names no login directory"* ]] || complain "$LINE"
	[ -z "$(ls "$ROOT")" ]
}

@test "an acquirer asleep before its sign meets the new holder, and steps back" {
	server
	# The second MKD, the token's, is to be stopped: the fault is set while the first is known to be under way.
	fault stop-PWD
	smith a --stale=0.3 "$URL/L"
	in_file "$DIR/log" "stop PWD"
	fault skip-one-MKD
	fault stop-MKD
	mend stop-PWD
	in_file "$DIR/log" "stop MKD $ROOT/L/\|stop MKD /L/"
	# While the helper sleeps, another takes the empty directory for a dead holder's, and holds.
	rmdir "$ROOT/L"
	mkdir -p "$ROOT/L/sl1.x.60.0.0123456789abcdef.1.other"
	mend stop-MKD
	expect a WAIT
	[ "$(field "$LINE" host)" = other ]
	[ "$(ls "$ROOT/L")" = sl1.x.60.0.0123456789abcdef.1.other ]
}

@test "an acquirer asleep before its sign takes nothing from a plain client" {
	server
	fault stop-PWD
	smith a --stale=0.3 --wait=600 "$URL/L"
	in_file "$DIR/log" "stop PWD"
	fault skip-one-MKD
	fault stop-MKD
	mend stop-PWD
	in_file "$DIR/log" "stop MKD $ROOT/L/\|stop MKD /L/"
	# The helper sleeps for longer than --stale; another takes the empty directory for a dead holder's and releases it,
	# and a plain client comes.
	"$PROBE" pause 500
	rmdir "$ROOT/L"
	mkdir "$ROOT/L"
	fault stop-RMD
	mend stop-MKD
	in_file "$DIR/log" "stop RMD $ROOT/L/sl1\|stop RMD /L/sl1" # the lock is not held: the helper removes its token
	fault stop-MKD
	mend stop-RMD
	in_file "$DIR/log" "stop MKD [^ ]*/L\$" # the helper's next attempt
	none -q "^RMD [^ ]*/L 250" "$DIR/log" # the directory stays
}

@test "an acquirer that looks late, after its sign, is not too late for --stale" {
	server
	fault stop-STAT
	smith a --stale=0.3 "$URL/L"
	in_file "$DIR/log" "stop STAT"
	"$PROBE" pause 500
	mend stop-STAT
	expect a OK
	none -q "^RMD" "$DIR/log"
}

@test "two signs in one directory: the later one goes back" {
	server
	fault stop-STAT
	smith a "$URL/L"
	in_file "$DIR/log" "stop STAT"
	mkdir "$ROOT/L/sl1.x.60.0.0123456789abcdef.1.other"
	mend stop-STAT
	expect a WAIT
	[ "$(field "$LINE" host)" = other ]
	[ "$(ls "$ROOT/L")" = sl1.x.60.0.0123456789abcdef.1.other ]
}

@test "no listing after the sign: --no-wait answers, and then removes the sign" {
	server
	fault stop-STAT
	fault stop-RMD
	smith a --no-wait "$URL/L"
	until_line a ERR
	[[ $LINE == "ERR 69 "* ]]
	mend stop-STAT
	mend stop-RMD
	smith_ended a
	[ -z "$(ls "$ROOT")" ]
}

@test "no listing after the sign: a waiter removes it, and gets the lock" {
	server
	fault miss-STAT
	smith a "$URL/L"
	until_line a OK
	unlock a
	[ "$(grep -c "^RMD [^ ]*/sl1" "$DIR/log")" -eq 2 ]
	[ -z "$(ls "$ROOT")" ]
}

@test "lost replies: sign, heartbeat, release" {
	server
	fault lose-RNTO
	smith a --ttl=9 "$URL/L"
	expect a OK
	expect a HELD
	grep -q "lost 250" "$DIR/log"
	fault lose-RMD
	unlock a
	[ "$STATUS" -eq 0 ]
	expect a FREE
	[ -z "$(ls "$ROOT")" ]
}

@test "the reply to the sign's MKD is lost: the listing tells that it was made" {
	server
	fault stop-PWD
	smith a "$URL/L"
	in_file "$DIR/log" "stop PWD"
	fault skip-one-MKD
	fault stop-MKD
	mend stop-PWD
	in_file "$DIR/log" "stop MKD [^ ]*/sl1"
	fault lose-MKD
	mend stop-MKD
	expect a OK
	grep -q "lost 257" "$DIR/log"
}

@test "a request that never arrived is sent again" {
	server
	local fault
	for fault in miss 421; do
		fault $fault-RNFR
		smith a --ttl=9 "$URL/L"
		expect a OK
		expect a HELD
		grep -q "^$fault RNFR" "$DIR/log"
		unlock a
	done
}

@test "the server is restarted while the lock is held: held on" {
	server
	smith a --ttl=12 "$URL/L"
	expect a OK
	restart
	expect a HELD
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
	[ ! -e "$ROOT/L" ]
}

# lost_before_the_deadline SIGNAL LINE: the server gets SIGNAL, and the helper says LINE before the deadline.
lost_before_the_deadline() {
	local deadline lost
	[ -z "${SERVER-}" ] || server_kill
	rm -rf "$DIR/root"
	server || return
	smith a --ttl="$ttl" "$URL/L" && expect a OK || return
	deadline=$(field "$LINE" deadline)
	kill "-$1" "$SERVER"
	while next_word a LOST && [[ $LINE == HELD* ]]; do
		deadline=$(field "$LINE" deadline)
	done
	lost=$(now)
	# shellcheck disable=SC2053 # a pattern
	[[ $LINE == $2 ]] || complain "$LINE" || return
	unlock a
	[ "$STATUS" -eq 76 ] && [ "$lost" -lt "$deadline" ]
}

@test "the server goes for good: LOST before the deadline" {
	with_lease 9 lost_before_the_deadline KILL "LOST the server did not answer in time: *onnect*"
}

@test "a server that stops answering is not waited for beyond the lease" {
	with_lease 9 lost_before_the_deadline STOP "LOST*"
}

@test "521 for a directory that exists, a long greeting, no STAT" {
	mkdir -p "$DIR/faults"
	fault banner
	server
	fault 521.always
	fault nostat.always
	smith a "$URL/L"
	until_line a OK # a busy machine's server may not be in time: WAIT comes first then
	smith b "$URL/L"
	expect b WAIT
	unlock a
	until_line b OK
}

@test "a server without STAT: free is free, an unwritable directory gives 73" {
	server
	fault nostat.always
	run_smith --who "$URL/L"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	SEMLOCK_USER=guest run_smith --no-wait "$URL/L"
	[ "$status" -eq 73 ]
}

@test "names that matter to FTP: absolute, relative, spaces" {
	server
	mkdir "$ROOT/sub"
	smith a "$URL//sub/L%20ock"
	expect a OK
	[ -d "$ROOT/sub/L ock" ]
	run_smith --no-wait "$URL/sub/L%20ock"
	[ "$status" -eq 1 ]
}

@test "wrong password is 77, no credentials are 77, never anonymous" {
	server
	SEMLOCK_PASSWORD=wrong run_smith "$URL/L"
	[ "$status" -eq 77 ]
	[[ $output == "ERR 77 login denied: 530"* ]]
	[ "${#lines[@]}" -eq 1 ]
	unset SEMLOCK_PASSWORD
	run_smith "$URL/L"
	[ "$status" -eq 77 ]
	[[ $output == "ERR 77 login denied: 530"* ]]
	unset SEMLOCK_USER
	run_smith "$URL/L"
	[ "$status" -eq 77 ]
	[[ $output == "ERR 77 no user for 127.0.0.1:$PORT: put \"machine 127.0.0.1 login USER "* ]]
	SEMLOCK_PASSWORD=secret run_smith "$URL/L"
	[[ $output == "ERR 77 SEMLOCK_PASSWORD is set, but no user is"* ]]
	none -q "^PWD" "$DIR/log" # the helper was never logged in
}

@test "a control character in a user or password is refused with 64" {
	local bad
	server
	for bad in $'lock\r\nMKD evil' $'lock\nMKD evil' $'a\tb' $'a\177'; do
		SEMLOCK_USER=$bad run_smith "$URL/L"
		[ "$status" -eq 64 ]
		[ "$output" = "ERR 64 SEMLOCK_USER has a control character in it" ]
		SEMLOCK_PASSWORD=$bad run_smith "$URL/L"
		[ "$status" -eq 64 ]
		[ "$output" = "ERR 64 SEMLOCK_PASSWORD has a control character in it" ]
	done
	[ ! -s "$DIR/log" ]
	[ -z "$(ls "$ROOT")" ]
}

@test "a user or a password without end: 64, and no server is asked" {
	long=$(printf 'x%.0s' {1..2000})
	SEMLOCK_USER=$long run_smith ftp://127.0.0.1:1/L
	[ "$status" -eq 64 ]
	[[ $output == "ERR 64 SEMLOCK_USER is too long" ]]
	SEMLOCK_PASSWORD=$long run_smith ftp://127.0.0.1:1/L
	[ "$status" -eq 64 ]
	[[ $output == "ERR 64 SEMLOCK_PASSWORD is too long" ]]
}

@test "--who of a server that is not there: 69, and why" {
	for url in ftp://127.0.0.1:1/L sftp://lock@127.0.0.1:1/L etcd://127.0.0.1:1/L; do
		run_smith --who $url
		[ "$status" -eq 69 ]
		[[ $output == *"127.0.0.1"*"onnect"* ]]
	done
}

@test "~/.netrc and NETRC are read, and a readable one is complained of" {
	server
	unset SEMLOCK_PASSWORD SEMLOCK_USER
	printf 'machine elsewhere login x password y\nmachine 127.0.0.1 login lock password secret\n' >"$DIR/.netrc"
	chmod 600 "$DIR/.netrc"
	run_smith --who "$URL/L"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	printf 'machine 127.0.0.1 login anonymousx password secret\n' >"$DIR/theirs"
	chmod 600 "$DIR/theirs"
	NETRC=$DIR/theirs run_smith --who "$URL/L"
	[[ $output == "ERR 77 login denied: 530"* ]]
	run_smith --who "ftp://lock@127.0.0.1:$PORT/L"
	[ "$status" -eq 0 ]
	SEMLOCK_USER=lock run_smith --who "$URL/L"
	[ "$status" -eq 0 ]
	printf 'machine 127.0.0.1 login guest password wrong\n' >>"$DIR/.netrc"
	run_smith --who "ftp://guest@127.0.0.1:$PORT/L"
	[[ $output == "ERR 77 login denied: 530"* ]]
	mv "$DIR/.netrc" "$DIR/other"
	chmod 644 "$DIR/other"
	NETRC=$DIR/other run_smith --who "$URL/L"
	[ "$status" -eq 0 ]
	[[ $output == *"chmod 600"* ]]
}

@test "a password in the URL is refused, and none is ever in a command line" {
	server
	run_smith "ftp://lock:secret@127.0.0.1:$PORT/L"
	[ "$status" -eq 64 ]
	[[ $output == "ERR 64 a password in a URL"* ]]
	none -q secret <<<"$output"
	smith a "$URL/L"
	expect a OK
	none -q secret <(tr '\0' ' ' <"/proc/${SMITH_PID[a]}/cmdline")
}

@test "unreachable gives 69; unwritable, or a missing parent, 73 and why" {
	server
	run_smith ftp://127.0.0.1:1/L
	[ "$status" -eq 69 ]
	[ "${#lines[@]}" -eq 1 ]
	SEMLOCK_USER=guest run_smith --no-wait "$URL/L"
	[ "$status" -eq 73 ]
	[[ $output == "ERR 73 cannot create: 550"*"is there)" ]]
	run_smith --no-wait "$URL/none/L"
	[ "$status" -eq 73 ]
	[[ $output == *"missing, or closed to us)" ]]
}

@test "a server without room for the sign gives 73, and no directory is left" {
	server
	fault no-token.always
	run_smith --no-wait "$URL/L"
	[ "$status" -eq 73 ]
	[[ $output == "ERR 73 cannot create"*": 552 "* ]]
	[ -z "$(ls "$ROOT")" ]
}

@test "options and URLs that make no sense are 64" {
	local bad
	for bad in "ftp://h" "ftp://h/" "gopher://h/x" "x" "ftp://h/a%0d%0aDELE%20b" "ftp://h/a*" "ftp:///L" \
		"ftp://h/%zz" "ftp://a,b/L"; do
		run_smith "$bad"
		[ "$status" -eq 64 ] || { echo "$bad: $status $output" >&2; false; }
		[[ $output == "ERR 64 "* ]]
	done
	run_smith --ttl=1 ftp://h/L
	[ "$status" -eq 64 ]
	run_smith --slots=2 --mode=shared ftp://h/L
	[ "$status" -eq 64 ]
	run_smith --frobnicate ftp://h/L
	[ "$status" -eq 64 ]
}

@test "explicit TLS: verified, and refused rather than clear text" {
	certificates
	server --cert="$DIR/server.pem"
	run_smith --who "ftpes://127.0.0.1:$PORT/L"
	[ "$status" -eq 69 ]
	[[ $output == "ERR 69 TLS:"* ]]
	export SEMLOCK_CACERT=$DIR/ca.pem
	smith a --ttl=9 "ftpes://127.0.0.1:$PORT/L"
	expect a OK
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
	server_kill
	: >"$DIR/log"
	server
	run_smith --who "ftpes://127.0.0.1:$PORT/L"
	[ "$status" -eq 69 ]
	[[ $output == "ERR 69 the server does not do TLS"* ]]
	none -q "^USER" "$DIR/log"
}

@test "ftps:// speaks TLS from the first byte" {
	certificates
	server --cert="$DIR/server.pem" --implicit
	export SEMLOCK_CACERT=$DIR/ca.pem
	smith a --ttl=9 "ftps://127.0.0.1:$PORT/L"
	expect a OK
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
}

@test "a helper whose poll(2) is refused says so, and ends" {
	server
	smith a --ttl=6 "$URL/L"
	expect a OK
	prlimit --pid "${SMITH_PID[a]}" --nofile=0:0
	until_line a LOST
	[ "$LINE" = "LOST cannot wait: Invalid argument" ]
	smith_ended a
	[ "$STATUS" -eq 71 ]
}

@test "signals do not make it drop the lock" {
	server
	smith a --ttl=6 "$URL/L"
	expect a OK
	kill -TERM "${SMITH_PID[a]}"
	kill -INT "${SMITH_PID[a]}"
	kill -HUP "${SMITH_PID[a]}"
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
}

lapses_unstarted() {
	local deadline
	smith a --ttl="$ttl" "$URL/$ttl" && expect_unstarted a || return
	deadline=$(field "$LINE" deadline)
	# FTP has no clock of its own: a waiter counts a lease from its first look.
	smith b --ttl="$ttl" "$URL/$ttl" && until_line b OK || return
	[ "$(now)" -lt $((deadline + (ttl + 2) * 1000000000)) ] || complain "$(($(now) - deadline)) ns after its deadline" || return
	expect a LOST && smith_ended a
	[ "$STATUS" -eq 76 ] && unlock b
}

@test "a lock that is not begun by START lapses after one lease" {
	server
	with_lease 2 lapses_unstarted
}

unlocks_late() {
	smith a --ttl="$ttl" "$URL/$ttl" && expect a OK || return
	: >"$DIR/log"
	fault stop-RMD
	tell a UNLOCK
	in_file "$DIR/log" "stop RMD" || return
	"$PROBE" pause $((ttl * 1000 + 500))
	mend stop-RMD
	until_line a FREE || return
	smith_ended a && [ "$STATUS" -eq 0 ]
}

@test "after UNLOCK no lock is to be lost, however long the release takes" {
	server
	local ttl
	for ttl in 2 4 8; do # a release gives up after ten seconds
		if unlocks_late; then return; fi
		smiths_stop_all
	done
	complain "this failed with each lease, up to $ttl seconds"
}
