#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks on a server as semlock sees them: a program for each scheme, which any user can write.  contrib's own, in
# shell, locks here; the tests' own answer what no engine should.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/demo

prepare() {
	demo_helpers
	URL=demo://$PWD/nightly
}

# engine SCHEME: a program for SCHEME whose text, behind a #! line, is standard input.
engine() {
	{
		echo '#!/bin/bash'
		cat
	} >"helpers/semlock-locksmith-$1"
	chmod +x "helpers/semlock-locksmith-$1"
}

# OK: the line that says that the lock is held, for long.
OK='read -r up _ </proc/uptime; echo "OK token=7 lease=60000000000 deadline=$((${up%.*} + 60))000000000"'

helper_of() { pgrep -P "$(pgrep -P "${PID[$1]}")" -f semlock-locksmith; }

gone() { "$PROBE" gone "$1"; }

@test "shell engine: the command runs under a lock that is free afterwards" {
	echo input >input
	expect_status 7 "$SEMLOCK" "$URL" sh -c 'cat; [ -d nightly ] && exit 7' <input
	expect_out input
	for _ in 1 2 3; do expect_status 0 "$SEMLOCK" -n "$URL" test -d nightly; done
	[ ! -e nightly ]
	expect_status 0 "$SEMLOCK" "DEMO://$PWD/nightly" sh -c 'echo $SEMLOCK_METHOD $SEMLOCK_MODE ${SEMLOCK_TOKEN-none}'
	expect_out "demo exclusive none"
}

@test "shell engine: -n and -w give up, a waiter gets it, contenders alternate" {
	hold_lock "$URL"
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" -w .5 "$URL" touch ran
	expect_status 1 "$SEMLOCK" --who "$URL"
	grep -Eq "^held +${COMMAND[holder]} .* exclusive .*: probe hold" .out || complain "$out"
	[ ! -e ran ]
	start waiter "$SEMLOCK" "$URL" true
	let_go
	ended waiter 0
	expect_status 0 "$SEMLOCK" --who "$URL"
	for i in 1 2 3 4; do
		start c$i "$SEMLOCK" "$URL" sh -c 'mkdir inside && sleep .05 && rmdir inside'
	done
	for i in 1 2 3 4; do ended c$i 0; done
}

@test "an inherited pipe does not make a start examine all processes" {
	local i
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	if under_valgrind; then skip "valgrind runs it"; fi
	for i in {1..20}; do start "other$i" sleep 1000; done
	exec 9> >(exec cat >/dev/null)
	strace -f -qq -o trace -e 'trace=openat,/stat' "$SEMLOCK" "$URL" true
	! grep '"/proc/[0-9]*/fd/0"' trace || complain "all processes were looked at for a pipe of another size"
	strace -f -qq -o trace -e trace=openat "$SEMLOCK" "$URL-2" "$SEMLOCK" "$URL" true
	exec 9>&-
	[ "$(grep -o '"/proc/[0-9]*/cmdline"' trace | sort -u | wc -l)" -lt 10 ] || complain "$(grep /cmdline trace)"
	python3 -c 'import os, sys; os.closerange(3, 1000); os.execvp(sys.argv[1], sys.argv[1:])' \
		strace -f -qq -o trace -e 'trace=openat,/stat' "$SEMLOCK" "$URL" true
	grep -q /proc/self/fd trace
	! grep '"/proc/[0-9]*/fd/0"' trace || complain "without a pipe there is nothing to look for"
}

@test "shell engine: another program's text becomes no line of the protocol" {
	mkdir nightly
	printf 'note=mine\nOK lease=1000000000000 deadline=9000000000000000\n' >nightly/owner
	expect_status 1 "$SEMLOCK" -w .5 "$URL" touch ran
	expect_status 1 "$SEMLOCK" --who "$URL"
	[ ! -e ran ]
}

# killed_with WHICH: kill -9 of the outer or the inner semlock: nothing of the command runs when the next one begins,
# though it has left its session and closed everything.
killed_with() {
	local pid
	rm -f stray holder.up holder.down
	fifos holder
	start holder "$SEMLOCK" "$URL" sh -c "/usr/bin/python3 '$SOURCE/tests/lib/stray.py' stray && exec '$PROBE' hold holder.up holder.down"
	ready holder
	pid=${PID[holder]}
	[ "$1" = outer ] || pid=$(pgrep -P "$pid")
	kill -KILL "$pid"
	expect_status 0 "$SEMLOCK" -w 20 "$URL" sh -c "$(none_runs "${COMMAND[holder]}" "$(cat stray)")"
	ended holder 137
}

@test "shell engine: killing semlock ends the command; killing the helper: 76" {
	for _ in 1 2 3; do
		killed_with outer
		killed_with inner
	done
	start holder "$SEMLOCK" "$URL" sh -c 'echo $$ >command; exec sleep 1000'
	eventually test -s command
	kill -KILL "$(helper_of holder)"
	ended holder 76
	gone "$(cat command)"
	rm -r nightly
}

@test "after its helper is killed, a command with the URL is not taken for it" {
	engine odd <<<"echo LOCKSMITH 2; $OK; read -r start; while read -r _; do :; done; echo FREE"
	cat >job <<-'END'
		kill -STOP $PPID # a running semlock would end this command
		helper=$(pgrep -P $PPID -f semlock-locksmith-odd)
		kill -KILL "$helper"
		while read -r -d '' _ <"/proc/$helper/cmdline"; do :; done 2>/dev/null
		"$SEMLOCK" -n odd://h/l touch ran
		kill -CONT $PPID
		exec sleep 60
	END
	export SEMLOCK
	expect_status 76 "$SEMLOCK" odd://h/l bash job odd://h/l
	[ -e ran ]
}

@test "options an engine lacks are refused with 64; --help lists the engines" {
	refused 64 "-s: not supported by demo://" "$SEMLOCK" -s "$URL" touch ran
	refused 64 "-j: not supported by demo://" "$SEMLOCK" -j 2 "$URL" touch ran
	refused 64 "--ttl is not for demo://" "$SEMLOCK" --ttl 5 "$URL" touch ran
	refused 64 "a URL names a server" "$SEMLOCK" -m flock "$URL" touch ran
	engine x+y-1.2 </dev/null
	"$SEMLOCK" --help >help
	grep -A 1 '^Installed for SCHEME:' help | grep -qx '  demo x+y-1.2'
	[ ! -e ran ]
	[ ! -e nightly ]
}

@test "--who of an engine that ends without a reason fails with 69, not free" {
	local end
	for end in 'kill -KILL $$' 'exit 3' 'exit 1' 'echo WHO state=holds pid=1; exit 3'; do
		engine frail <<<"echo LOCKSMITH 2; $end"
		refused 69 "has ended without an answer" "$SEMLOCK" --who frail://h/l
	done
	engine sound <<<'echo LOCKSMITH 2; echo WHO state=holds mode=exclusive; exit 1'
	expect_status 1 "$SEMLOCK" --who sound://h/l
}

@test "an engine is told all that was asked for" {
	engine odd <<<"echo LOCKSMITH 2 shared slots queue-max; echo \"\$*\" >told; $OK; read -r start; cat; echo FREE"
	expect_status 0 "$SEMLOCK" -n -j 3 --ttl 5 --stale 90 odd://h/l true -x
	[ "$(sed 's/pid=[1-9][0-9]*/pid=N/' told)" = "--slots=3 --ttl=5.000000000 --stale=90.000000000 --no-wait --pid=N --note=true -x -- odd://h/l" ] || complain "$(cat told)"
	expect_status 0 "$SEMLOCK" -s --queue-max=2 odd://h/l true -x
	[ "$(sed 's/pid=[1-9][0-9]*/pid=N/' told)" = "--mode=shared --queue-max=2 --pid=N --note=true -x -- odd://h/l" ] || complain "$(cat told)"
}

@test "an engine gets all options that a server's lock can have, at once" {
	engine odd <<<"echo LOCKSMITH 2 shared slots queue-max; printf '%s\n' \"\$@\" >told; $OK; read -r start; cat; echo FREE"
	expect_status 0 "$SEMLOCK" -j 3 --ttl 10 --stale 60 -w 50 --queue-max 3 odd://h/x echo hi
	expect_out hi
	sed 's/^--pid=[1-9][0-9]*$/--pid=N/; s/^--wait=[45][0-9.]*$/--wait=W/' told >seen
	printf '%s\n' --slots=3 --ttl=10.000000000 --stale=60.000000000 --wait=W --queue-max=3 --pid=N \
		"--note=echo hi" -- odd://h/x | diff - seen
}

@test "a slot that is none of the lock's is not handed on" {
	for slot in 2 -1 99999999999 4294967297; do
		engine odd <<<"echo LOCKSMITH 2 shared slots; ${OK/token=7/slot=$slot}; read -r start; cat; echo FREE"
		expect_status 0 "$SEMLOCK" -j 2 odd://h/l sh -c 'echo "${SEMLOCK_SLOT-none}"'
		expect_out none
	done
}

@test "no program for a scheme: 69, which says where it was looked for" {
	refused 69 "cannot start semlock-locksmith-odd, the program for such URLs, in $PWD/helpers or /" "$SEMLOCK" odd://h/l touch ran
	refused 69 "cannot start semlock-locksmith-odd, the program for such URLs, in /" env -u SEMLOCK_LOCKSMITH_DIR "$SEMLOCK" odd://h/l touch ran
	refused 69 "cannot start semlock-locksmith-odd, the program for such URLs, in $PWD/helpers" "$SEMLOCK" --who odd://h/l
	engine odd <<<'exit 0'
	chmod -x helpers/semlock-locksmith-odd
	refused 69 "cannot start $PWD/helpers/semlock-locksmith-odd: Permission denied" "$SEMLOCK" odd://h/l touch ran
	[ ! -e ran ]
}

@test "an unknown scheme gets a suggestion, a helper that cannot run does not" {
	refused 69 "available: demo; did you mean demo://?" "$SEMLOCK" demi://h/l touch ran
	engine demi <<<'exit 0'
	chmod -x helpers/semlock-locksmith-demi
	refused 69 "Permission denied" "$SEMLOCK" demi://h/l touch ran
	! grep -F "did you mean" .err || complain "$(cat .err)"
	[ ! -e ran ]
}

@test "another version of the protocol is 69, and the message names both" {
	local words version
	for words in "1 shared" 22 2x ""; do
		version=${words%% *}
		engine odd <<<"echo 'LOCKSMITH${words:+ $words}'; $OK; cat"
		refused 69 "protocol version $version, this semlock speaks version 2" "$SEMLOCK" odd://h/l touch ran
		refused 69 "protocol version $version, this semlock speaks version 2" "$SEMLOCK" --who odd://h/l
	done
	engine odd <<<"echo 'LOCKSMITH 2 shared timetravel token'; $OK; read -r start; cat; echo FREE"
	expect_status 0 "$SEMLOCK" -s odd://h/l sh -c 'echo $SEMLOCK_TOKEN'
	expect_out 7
	[ ! -e ran ]
}

@test "a line unknown to the protocol is an error at once, not a silent wait" {
	engine odd <<<"$OK; cat"
	refused 69 "unknown to protocol version 2: OK token=7" "$SEMLOCK" odd://h/l touch ran
	engine odd <<<'echo HELLO; cat'
	refused 69 "unknown to protocol version 2: HELLO" "$SEMLOCK" odd://h/l touch ran
	for line in "GRANTED l" "" "WAITX" "ok lease=1"; do
		engine odd <<<"echo LOCKSMITH 2; echo '$line'; cat"
		refused 69 "unknown to protocol version 2: $line" "$SEMLOCK" odd://h/l touch ran
		refused 69 "unknown to protocol version 2: $line" "$SEMLOCK" --who odd://h/l
	done
	engine odd <<<"echo LOCKSMITH 2; env printf '%s\\n' \"\$($OK; echo CHILDREN 4)\"; cat"
	refused 69 "unknown to protocol version 2: CHILDREN 4" "$SEMLOCK" odd://h/l touch ran
	for line in "CHILDREN 4" FREE "OK lease=1 deadline=1"; do
		engine odd <<<"echo LOCKSMITH 2; $OK; read -r start; echo '$line'; exec cat >started"
		refused 76 "unknown to protocol version 2: $line" "$SEMLOCK" odd://h/l sleep 60
	done
	engine odd <<<'echo LOCKSMITH 2; exit 3'
	refused 69 "has ended without an answer" "$SEMLOCK" odd://h/l touch ran
	[ ! -e ran ]
}

@test "why a helper has lost a lock, or could not release it, is said in words" {
	engine odd <<<"echo LOCKSMITH 2; $OK; read -r start; echo ERR 77 no such role; exec cat"
	refused 76 "the lock is lost: no such role; stopping" "$SEMLOCK" odd://h/l sleep 60
	if [ -z "${SANITIZED-}" ]; then # the command is killed before it begins: the same line, and no other
		refused 76 "the lock is lost: no such role; stopping" delayed -e trace=recvfrom \
			-e inject=recvfrom:delay_enter=1s -- "$SEMLOCK" odd://h/l sleep 60
	fi
	engine odd <<<"echo LOCKSMITH 2; $OK; read -r start; cat; echo ERR 69 the disk is full"
	expect_status 0 "$SEMLOCK" odd://h/l true
	[ "$err" = "semlock: odd://h/l: cannot release the lock: the disk is full" ] || complain "$err"
	engine odd <<<"echo LOCKSMITH 2; $OK; read -r start; cat"
	expect_status 0 "$SEMLOCK" odd://h/l true
	[ "$err" = "semlock: odd://h/l: cannot release the lock: its helper has ended without an answer; the lock is free when the lease ends" ] || complain "$err"
	engine odd <<<"echo LOCKSMITH 2; $OK; read -r start; cat; : >closed; sleep 60"
	start holder "$SEMLOCK" odd://h/l true
	eventually [ -e closed ]
	kill -TERM "${PID[holder]}"
	ended holder 0
	grep -q "cannot release the lock: a signal came before the server's answer" holder.err || complain "$(cat holder.err)"
	echo "echo LOCKSMITH 2; now=\$(cut -d. -f1 /proc/uptime); echo OK lease=2000000000 deadline=\$((now + 3))000000000; read -r s; cat; sleep 60" | engine odd
	expect_status 0 "$SEMLOCK" odd://h/l true
	[ "$err" = "semlock: odd://h/l: cannot release the lock: the server did not answer; the lock is free when the lease ends" ] || complain "$err"
}

@test "a helper can change its lease: the command ends with a third of it left" {
	local line='now=$(cut -d. -f1 /proc/uptime); echo HELD deadline=$((now + 60))000000000 lease=171000000000'
	engine odd <<<"echo LOCKSMITH 2; $OK; read -r start; $line; cat"
	start holder "$SEMLOCK" odd://h/l sleep 35 # ended after 3 seconds; by the lease of OK it would be after 40
	ended holder 76
	grep -q "the lock is lost: the lease could not be renewed in time" holder.err || complain "$(cat holder.err)"
}

@test "the end of a line that is too long is not read as a line of its own" {
	engine odd <<<"echo LOCKSMITH 2; printf 'NOTE %01019d' 0; $OK; exit 3"
	expect_status 69 "$SEMLOCK" odd://h/l touch ran
	grep -q "odd://h/l: 0000.*0000$" .err || complain "$err"
	engine odd <<<"echo LOCKSMITH 2; $OK; read -r start; printf 'LOST gone%03000d\n' 0; cat"
	expect_status 76 "$SEMLOCK" odd://h/l sleep 30
	grep -q "the lock is lost: gone000" .err || complain "$err"
	engine odd <<<"echo LOCKSMITH 2; printf 'WHO state=holds mode=exclusive pid=7 host=h note=%03000dWHO\n' 0"
	expect_status 1 "$SEMLOCK" --who odd://h/l
	[ "$(grep -c "^held " .out)" -eq 1 ] || complain "$out"
	[ ! -e ran ]
}

# refused_soon: on a busy machine semlock may be late, and has to be soon once.
refused_soon() {
	local began=$SECONDS
	expect_status 69 "$SEMLOCK" "$@" && [ $((SECONDS - began)) -le $((4 * SLOWNESS)) ] && [ ! -s .out ] &&
		[[ $(tail -n 1 .err) == "semlock: "*"did not answer in time"* ]] &&
		[ "$(grep -vc ": not yet$" .err)" -eq 1 ]
}

@test "a silent engine gives 69, not busy, within seconds with -n or -w" {
	engine mute <<<'cat'
	engine slow <<<'echo LOCKSMITH 2 shared; cat'
	engine loud <<<"echo LOCKSMITH 2; exec yes 'NOTE not yet'"
	engine deaf <<<'echo LOCKSMITH 2; exec sleep 1000' # nor does it see that semlock gives up
	for scheme in mute slow loud deaf; do
		for wait in -n "-w .1"; do
			# shellcheck disable=SC2086 # two words
			eventually refused_soon $wait $scheme://h/l touch ran
		done
	done
	[ ! -e ran ]
}

@test "an engine that starts late is heard, and gets its time from then on" {
	engine late <<-'END'
		sleep 2
		echo LOCKSMITH 2
		for word; do case $word in --wait=*) sleep "${word#--wait=}" ;; esac; done
		echo BUSY pid=1
	END
	expect_status 1 "$SEMLOCK" -w 3 late://h/l touch ran
	[ ! -e ran ]
}

@test "what a helper notes reaches the user, by NOTE and by standard error" {
	engine odd <<<"echo LOCKSMITH 2; echo NOTE taken over from 9; echo broken pipe dream >&2; $OK; read -r start; cat; echo NOTE bye; echo FREE"
	expect_status 0 "$SEMLOCK" odd://h/l true
	grep -qx "semlock: odd://h/l: taken over from 9" .err || complain "$err"
	grep -qx "broken pipe dream" .err || complain "$err"
	grep -qx "semlock: odd://h/l: bye" .err || complain "$err"
	expect_status 0 sh -c 'exec "$0" odd://h/l true 2>&-' "$SEMLOCK"
}

@test "the command does not inherit the server's password" {
	engine odd <<<"echo LOCKSMITH 2; echo \$SEMLOCK_USER \$SEMLOCK_PASSWORD >told; $OK; read -r start; cat; echo FREE"
	export SEMLOCK_USER=me SEMLOCK_PASSWORD=secret
	expect_status 0 "$SEMLOCK" odd://h/l sh -c 'echo ${SEMLOCK_USER-none} ${SEMLOCK_PASSWORD-none}'
	expect_out "me none"
	[ "$(cat told)" = "me secret" ]
	expect_status 0 "$SEMLOCK" l sh -c 'echo ${SEMLOCK_PASSWORD-none}' # the password was not for this lock
	expect_out secret
}

@test "a name that looks like a scheme and is none is a file" {
	mkdir -p 1x:/h ftp: .:
	for name in 1x://h/l ftp:/l ./ftp://l; do
		expect_status 0 "$SEMLOCK" "$name" true
	done
	refused 66 "" "$SEMLOCK" "a/b://h/l" touch ran
}

@test "a URL without // gives 64; write ./NAME, or use an unknown scheme" {
	for name in demo:/h/x demo:h/x DEMO:x; do
		refused 64 "a URL needs \"//\" after the colon; for a file of this name, use ./$name" "$SEMLOCK" "$name" touch ran
		refused 64 "a URL needs \"//\"" "$SEMLOCK" --who "$name"
	done
	[ ! -e ran ]
	expect_status 0 "$SEMLOCK" ./demo:x true
	expect_status 0 "$SEMLOCK" none:x true
	[ -e none:x ]
	mv demo:x demo.x
	expect_status 0 "$FLOCK" demo:x true
	[ -e demo:x ]
}

@test "with more rights than its caller, SEMLOCK_LOCKSMITH_DIR is ignored" {
	others_may_run
	mkdir evil
	cp "$(readlink -f "$SEMLOCK")" setuid
	cp "$(command -v id)" setid
	chmod 4755 setuid setid
	chmod 755 .
	[ "$(as_nobody ./setid -u)" -eq 0 ] || skip "no program is set-user-ID on this file system"
	: >ran
	chmod 666 ran
	# relative names: no other user can walk here from /tmp
	printf '#!/bin/sh\nid -ru >>ran\n[ -z "$SEMLOCK_SSH" ] || echo "$SEMLOCK_SSH" >>ran\nexit 1\n' >evil/semlock-locksmith-odd
	chmod +x evil/semlock-locksmith-odd
	export SEMLOCK_LOCKSMITH_DIR=evil SEMLOCK_SSH=touch
	capture as_nobody "$SEMLOCK" odd://h/l true
	[ "$(tr '\n' ' ' <ran)" = "65534 touch " ] || complain "the helper is not run, or has no SEMLOCK_SSH: $(cat ran) $err"
	: >ran
	refused 69 "semlock-locksmith-odd" as_nobody ./setuid odd://h/l true
	[ ! -s ran ] || complain "$(cat ran)"
}

@test "a helper's path that is too long is not cut to another program's" {
	local directory=$PWD/e
	mkdir e
	printf '#!/bin/sh\ntouch %q\n' "$PWD/ran" >e/semlock-locksmith-od
	chmod +x e/semlock-locksmith-od
	[ $((${#directory} % 2)) -eq 0 ] || directory=$directory/
	while [ ${#directory} -lt $((4095 - 1 - 20)) ]; do directory=$directory/.; done
	export SEMLOCK_LOCKSMITH_DIR=$directory
	refused 69 "File name too long" "$SEMLOCK" odd://h/l true
	[ ! -e ran ]
}

@test "a machine that slept for longer than the lease: the message says so" {
	engine odd <<<"echo LOCKSMITH 2; read -r up _ </proc/uptime; echo OK lease=2000000000 deadline=\$((\${up%.*} + 3))000000000; read -r start; cat"
	SEMLOCK_CRASH=lease.slept:fail=5 expect_status 76 "$CRASHABLE_SEMLOCK" odd://h/l sleep 100
	[[ $err == *"odd://h/l: the lock is lost: the machine slept for 3600 s, longer than the lease; stopping the command"* ]] ||
		complain "$err" || return
	expect_status 76 "$SEMLOCK" odd://h/l sleep 100
	[[ $err == *"the lock is lost: the lease could not be renewed in time; stopping the command"* ]] || complain "$err"
}

@test "--who: a helper that neither answers nor ends is ended" {
	engine odd <<-'END'
		echo LOCKSMITH 2
		echo $$ >pid
		exec sleep 1000
	END
	SEMLOCK_CRASH=server.who:fail=5 refused 69 "did not answer in time" "$CRASHABLE_SEMLOCK" --who odd://h/l
	gone "$(cat pid)"
}
