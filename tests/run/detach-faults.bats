#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --detach, --release and --resume where something is in the way: long lines, calls that a sandbox refuses, holds that have
# ended, and programs of other users that pretend to keep a hold.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/holds

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

prepare() {
	holds_prepare
	new_owner
}
tidy() { holds_tidy; }

strace_works() {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	if under_valgrind; then skip "valgrind cannot work under strace"; fi
}

# ---- long lines ----

@test "--take with --detach prints every slot, and --release ends them all" {
	local count
	# 1,048: a packet of 4,160 bytes was cut; 1,200: a line of that length was never read to its end
	for count in 2 1047 1048 1049 1200 4096; do
		expect_status 0 timeout -s KILL 60 "$SEMLOCK" --hold="$owner" --detach -j 4096 --take=$count l
		[ "$out" = "${out%% *} ${out#* }" ] && [[ $out == "OK id="*" slot="* ]] || complain "it said '$out'"
		[ "${out##* slot=}" = "$(seq -s, 0 $((count - 1)))" ] || complain "$count: ${out: -30}"
		id=${out#OK id=}
		id=${id%% *}
		[ $count -lt 4096 ] || expect_status 1 "$SEMLOCK" -n -j 4096 l true
		expect_status 0 timeout -s KILL 60 "$SEMLOCK" --release="$id" l
		expect_silent
	done
	expect_status 0 "$SEMLOCK" -n l true
}

@test "--take with --keep-place: --resume prints every slot" {
	hold_lock -j 2000 l
	expect_status 1 "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0 -j 2000 --take=2000 l
	id=${out#WAITING id=}
	let_go
	expect_status 0 timeout -s KILL 60 "$SEMLOCK" --resume="$id" -w 60 l
	[ "$out" = "OK id=$id slot=$(seq -s, 0 1999)" ] || complain "${out: -30}"
	expect_status 0 "$SEMLOCK" --release="$id" l
}

# ---- calls that are refused each time ----

# refusing_always CALLS CMD...: under strace, which has CALLS refused each time; it has not called them more than 200 times.
refusing_always() {
	local calls=$1
	shift
	expect_status "$want" timeout -s KILL 60 strace -f -qq -o trace -e trace="$calls" -e inject="$calls":error=EPERM "$@" ||
		return
	[ "$(grep -c INJECTED trace)" -gt 0 ] || complain "$calls was not refused: $*" || return
	[ "$(grep -c INJECTED trace)" -le 200 ] || complain "$(grep -c INJECTED trace) calls of $calls: $*"
}

@test "a keeper that may not poll its descriptors ends the hold: 76" {
	hold l
	prlimit --pid "$(keeper)" --nofile=8:8
	expect_status 76 timeout -s KILL 60 "$SEMLOCK" --release="$id" l
	expect_status 0 "$SEMLOCK" -w 60 l true
	"$PROBE" gone "$(keeper)"
}

@test "poll(2) is always refused: each call of a hold ends, and does not spin" {
	strace_works
	want=71 refusing_always '/^p?poll$' "$SEMLOCK" --hold="$owner" --detach l
	eventually nothing_left
	expect_free l
	hold l
	want=71 refusing_always '/^p?poll$' "$SEMLOCK" --release="$id" l
	[[ $err == "semlock: l: --release=$id: cannot wait for an answer: Operation not permitted" ]] || complain "$err"
	expect_status 76 "$SEMLOCK" --release="$id" l # the first call has been heard
	hold_lock other
	expect_status 1 "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0 other
	id=${out#WAITING id=}
	want=71 refusing_always '/^p?poll$' "$SEMLOCK" --resume="$id" other
	let_go
	mkfifo input
	exec 5<>input
	want=71 refusing_always '/^p?poll$' "$SEMLOCK" --hold l <&5
}

@test "poll(2) is always refused: --die-with-parent=PID ends the command" {
	strace_works
	start call strace -f -qq -o trace -e trace='/^p?poll$' -e inject='/^p?poll$':error=EPERM \
		"$SEMLOCK" --die-with-parent="$owner" l sleep 600
	ended call 143
	grep -q "cannot wait for the end of process $owner: Operation not permitted" call.err || complain "$(cat call.err)"
	[ "$(grep -c INJECTED trace)" -le 200 ] || complain "$(grep -c INJECTED trace) calls"
}

@test "nanosleep(2) is always refused: --run-timeout beside jobs of the shell" {
	strace_works
	want=0 refusing_always '/nanosleep$' sh -c 'sleep 7 & exec "$0" --run-timeout=60 l touch ran' "$SEMLOCK"
	[ -e ran ]
}

# ---- holds that have ended ----

@test "the last eight lost holds of one process are remembered, no others" {
	local n ids=()
	for n in {1..20}; do
		hold "l$n"
		kill -KILL "$(pgrep -P "$(keeper)")"
		expect_status 0 "$SEMLOCK" -w 60 "l$n" true
		ids[n]=$id
	done
	remembering() { [ "$(pgrep -fc -- "--hold=$owner --detach")" -eq 8 ]; }
	eventually remembering
	for n in {1..12}; do refused 76 "no such hold" "$SEMLOCK" --release="${ids[n]}" "l$n"; done
	for n in {13..20}; do
		refused 76 "the process that held the lock was killed" "$SEMLOCK" --release="${ids[n]}" "l$n"
	done
	eventually nothing_left
}

@test "a lost hold is not remembered for as long as its process lives" {
	[ -x "$CRASHABLE_SEMLOCK" ] || skip "needs $CRASHABLE_SEMLOCK"
	expect_status 0 env SEMLOCK_CRASH=detach.memory:fail=1 "$CRASHABLE_SEMLOCK" --hold="$owner" --detach l
	id=${out#OK id=}
	kill -KILL "$(pgrep -P "$(keeper)")"
	eventually nothing_left
	kill -0 "$owner"
	refused 76 "no such hold" "$SEMLOCK" --release="$id" l
}

# connected COUNT: so many calls have connected to the keeper of hold $id
connected() {
	[ "$(grep -c "@semlock-hold-$id\$" /proc/net/unix)" -gt "$1" ] # and the keeper's own
}

@test "calls that meet the end are told that another call has released it" {
	local calls call
	[ -x "$CRASHABLE_SEMLOCK" ] || skip "needs $CRASHABLE_SEMLOCK"
	expect_status 0 env SEMLOCK_CRASH=detach.released:stop "$CRASHABLE_SEMLOCK" --hold="$owner" --detach l
	id=${out#OK id=}
	start first "$SEMLOCK" --release="$id" l
	"$PROBE" state "$(keeper)" T
	calls=$(grep -c "@semlock-hold-$id\$" /proc/net/unix)
	for call in 1 2; do
		start "release$call" "$SEMLOCK" --release="$id" l
		start "resume$call" "$SEMLOCK" --resume="$id" l
	done
	eventually connected $((calls + 3))
	kill -CONT "$(keeper)"
	ended first 0
	for call in release1 release2 resume1 resume2; do
		ended $call 76
		grep -q "this hold has ended: another call has released it" $call.err || complain "$call: $(cat $call.err)"
	done
}

@test "a call after one that was killed while it released is told of that one" {
	[ -x "$CRASHABLE_SEMLOCK" ] || skip "needs $CRASHABLE_SEMLOCK"
	local calls
	expect_status 0 env SEMLOCK_CRASH=symlink.release:stop "$CRASHABLE_SEMLOCK" -m symlink --hold="$owner" --detach l
	id=${out#OK id=}
	calls=$(grep -c "@semlock-hold-$id\$" /proc/net/unix)
	start killed "$SEMLOCK" -m symlink --release="$id" l
	"$PROBE" state "$(holder)" T
	kill -KILL "${PID[killed]}"
	eventually eval '! connected $calls'
	start later "$SEMLOCK" -m symlink --release="$id" l
	eventually connected "$calls"
	kill -CONT "$(holder)"
	ended later 76
	grep -q "this hold has ended: another call has released it" later.err || complain "$(cat later.err)"
}

# ---- another user's process ----

# As another user: listen on the name of the hold $1, or of this process with the digits $1 in its ID, which is printed.
# What it says to each call are the other arguments, a packet each; the last one is said again and again.
PRETENDER='
import os, socket, sys, time
name = sys.argv[1]
if "-" not in name:
    start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
    name = "%d-%s-%s" % (os.getpid(), start, name)
words = [word.replace("%ID", name) for word in sys.argv[2:]]
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\0semlock-hold-" + name)
listener.listen(0 if sys.argv[2:] == ["FULL"] else 20)
if sys.argv[2:] == ["FULL"]:
    calls = []
    try:
        while True:
            calls.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK))
            calls[-1].connect("\0semlock-hold-" + name)
    except BlockingIOError:
        pass
print(name, flush=True)
if sys.argv[2:] == ["FULL"]:
    time.sleep(600)
while True:
    call = listener.accept()[0]
    call.recv(5000)
    for said in words:
        call.send(said.encode())
    try:
        while words:
            time.sleep(.1)
            call.send(said.encode())
    except OSError:
        continue
    time.sleep(600)'

# pretend NAME ID-OR-DIGITS WORDS...: as another user; sets $forged to the ID
pretend() {
	local name=$1
	shift
	start "$name" setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 -c "$PRETENDER" "$@"
	eventually test -s "$name.out"
	forged=$(cat "$name.out")
}

@test "another user's socket that looks like one's own hold delays no wait" {
	root_only "another user listens"
	strace_works
	local way digits
	printf -v digits '%04x' $((BASHPID & 0xffff))
	pretend full "$$-1-0000$digits" FULL
	hold_lock other
	for way in told untold; do
		local injection=()
		[ $way = told ] || injection=(-e inject=socket:error=EAFNOSUPPORT:when=1)
		start waiter strace -D -qq -o calls -e trace=connect,socket "${injection[@]}" "$SEMLOCK" other true
		"$PROBE" blocked "${PID[waiter]}"
		kill -KILL "${PID[waiter]}"
		ended waiter 137
		if [ $way = told ]; then # by the kernel, from Linux 5.3 on
			! grep "connect.*$forged" calls || [ "$(uname -r | cut -d. -f1)" -lt 6 ] || complain "it was called"
		else
			grep -q "connect.*$forged.*EAGAIN" calls || complain "$(cat calls)"
		fi
	done
	let_go
}

@test "--who shows the hold's ID, not one that another user has made up" {
	root_only "another user listens"
	strace_works
	local holder
	hold l
	holder=$(pgrep -P "$(keeper)")
	pretend forger "$holder-1-deadbeef"
	expect_status 1 "$SEMLOCK" --who l
	[[ $out == *"--release=$id "* ]] || complain "$out"
	# the kernel does not tell who has made a socket
	expect_status 1 strace -f -qq -o trace -e trace=socket -e inject=socket:error=EAFNOSUPPORT:when=1 "$SEMLOCK" --who l
	grep -q INJECTED trace
	[[ $out == *"--release=$id "* ]] || complain "$out"
	expect_status 0 "$SEMLOCK" --release="$id" l
}

# foreign CALL WORDS...: root's CALL of a pretended hold that says WORDS is 69, in one line without a control character
foreign() {
	local call=$1
	shift
	pretend pretender 00000000 "$@"
	refused 69 "--$call=$forged: " timeout -s KILL 60 env SEMLOCK_CRASH=detach.mute:fail=1 "$CRASHABLE_SEMLOCK" "--$call=$forged" l
	! grep -q '[[:cntrl:]]' .err || complain "a control character"
	kill -KILL "${PID[pretender]}"
	ended pretender 137
}

@test "root's --release and --resume believe nothing that another user says" {
	root_only "another user listens"
	[ -x "$CRASHABLE_SEMLOCK" ] || skip "needs $CRASHABLE_SEMLOCK"
	local call
	for call in release resume; do
		foreign $call # mute
		foreign $call $'99 \e[31mboo\e]0;x\a'
		foreign $call "143 killed"
		foreign $call "-9"
	done
	foreign release ENDING
	foreign resume $'!\e[2Jtext'
	foreign resume "acquired waited=0"
	foreign resume $'OK id=1-1-00000000'
	foreign resume $'OK id=%ID \e[2J'
	foreign resume 0
}
