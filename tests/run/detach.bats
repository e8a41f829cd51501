#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --hold=PID --detach and --release: a lock over several calls.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/holds

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

# $owner is the process for which they are held: its end is the end of each.
prepare() {
	holds_prepare
	new_owner
}
tidy() { holds_tidy; }

@test "taken in one call, released in another, whatever the method" {
	for method in flock ofd posix excl link mkdir symlink rename; do
		options="-m $method"
		[ "$method" != rename ] || options="--init $options"
		# shellcheck disable=SC2086 # several words
		hold $options $method.lock
		expect_status 1 sh -c '"$@"; exit $?' - "$SEMLOCK" -n -m $method $method.lock true
		expect_status 0 sh -c '"$@"; exit $?' - "$SEMLOCK" --release="$id" $method.lock
		expect_silent
		expect_status 0 "$SEMLOCK" -n -m $method $method.lock true
	done
}

@test "shared, a slot, several locks, a name, a relative name elsewhere" {
	hold -s shared
	expect_status 0 "$SEMLOCK" -n -s shared true
	expect_status 1 "$SEMLOCK" -n shared true
	expect_status 0 "$SEMLOCK" --release="$id" shared
	hold -j 2 slots
	[[ $out == *" slot=0" ]] || complain "it said '$out'"
	expect_status 1 "$SEMLOCK" -n -j 1 slots true
	expect_status 0 "$SEMLOCK" --release="$id" slots
	hold -f a b
	expect_status 1 "$SEMLOCK" -n a true
	expect_status 1 "$SEMLOCK" -n b true
	mkdir below
	(cd below && "$SEMLOCK" --release="$id" ../b)
	expect_status 0 "$SEMLOCK" -n a true
	expect_status 0 "$SEMLOCK" -n b true
	hold -m excl --rm here
	[ -s here ]
	expect_status 0 "$SEMLOCK" --release="$id" "$PWD/here"
	[ ! -e here ]
}

@test "--release and --resume take the whole line that was printed" {
	local line
	hold -j 2 slots
	line=$out
	[ "$line" = "OK id=$id slot=0" ] || complain "$line"
	expect_status 0 "$SEMLOCK" --resume="$line" slots
	expect_out "$line"
	expect_status 0 "$SEMLOCK" --release="$line" slots
	expect_silent
	hold -j 2 slots
	echo "$out" >hold # as a script keeps it, and as read takes it apart
	expect_status 0 "$SEMLOCK" --release "$(cat hold)" slots
	hold -j 2 slots
	read -r _ line <<<"$out"
	expect_status 0 "$SEMLOCK" --release="$line" slots
	hold -j 2 slots
	expect_status 0 "$SEMLOCK" --release="$id slot=0" slots # id=${line#id=}
	hold_lock l
	capture sh -c '"$@"; exit $?' - "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0 l
	[[ $out == "WAITING id="* ]] || complain "$out"
	expect_status 0 "$SEMLOCK" --release="$out" l
	for line in OK WAITING "OK " "OK slot=0" id= "id= x"; do
		refused 64 "this is not the ID of a hold" "$SEMLOCK" --release="$line" l
	done
	let_go
}

@test "a hold of several locks is one: each names it, --release ends all" {
	local name
	: >other
	for name in b a c ./c "$PWD/a"; do
		hold -f a -s -f c -x b
		refused 64 "the ID of another lock: $PWD/b" "$SEMLOCK" --release="$id" other
		refused 69 "semlock --release=$id $name" "$SEMLOCK" --replace "$name" true
		expect_status 0 "$SEMLOCK" --release="$id" "$name"
		expect_silent
		expect_status 0 "$SEMLOCK" -n -f a -f b c true
	done
}

@test "the hold keeps nothing of the caller's: descriptor, session, directory" {
	local pid
	# an end of input says that no process has the pipe open
	"$SEMLOCK" --hold="$owner" --detach l 9>&1 2>&1 3>&- 4>&- | cat >said
	id=$(sed 's/^OK id=//' said)
	for pid in $(keeper) $(holder) $(pgrep -P "$(holder)"); do
		[ "$(readlink "/proc/$pid/cwd")" = / ] || complain "$pid works in $(readlink "/proc/$pid/cwd")"
		[ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$(keeper)" ] || complain "$pid is in another session"
		! find "/proc/$pid/fd" -lname "$PWD/*" ! -lname "$PWD/l" | grep . || complain "$pid has it open"
	done
	for number in 0 1 2; do
		[ "$(readlink "/proc/$(keeper)/fd/$number")" = /dev/null ] ||
			complain "descriptor $number is '$(readlink "/proc/$(keeper)/fd/$number")'"
	done
	expect_status 0 "$SEMLOCK" --release="$id" l
}

# asked: a wait of this shell's for the lock "other" asks hold $id whether it is its own
asked() {
	start waiter strace -D -qq -o calls -e trace=connect "$SEMLOCK" other true
	"$PROBE" blocked "${PID[waiter]}"
	kill -KILL "${PID[waiter]}"
	ended waiter 137
	grep -q "semlock-hold-$id" calls
}

@test "a hold whose process is stopped does not hold up a wait for another lock" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hold_lock other
	hold l # of another process
	! asked || complain "$(cat calls)"
	expect_status 0 "$SEMLOCK" --release="$id" l
	expect_status 0 "$SEMLOCK" --hold=$BASHPID --detach l
	id=${out#OK id=}
	asked
	kill -STOP "$(keeper)"
	"$PROBE" state "$(keeper)" T
	! asked || complain "$(cat calls)"
	kill -CONT "$(keeper)"
	eventually asked
	expect_status 0 "$SEMLOCK" --release="$id" l
	let_go
}

@test "a process lock outlives the caller's own descriptors of its file" {
	local id
	exec 8>>l
	hold -m posix -f other l
	exec 8>&-
	expect_status 1 "$SEMLOCK" -n -m posix l true
	expect_status 1 "$SEMLOCK" -n -m posix other true
	expect_status 0 "$SEMLOCK" --release="$id" l
	expect_status 0 "$SEMLOCK" -n -m posix l true
}

@test "it works without standard descriptors, under nohup, after a hangup" {
	local how
	for how in '"$@" </dev/null >said 2>&1' '"$@" <&- >said 2>&-' 'nohup "$@" >said 2>&1' 'setsid -w "$@" >said'; do
		rm -f said
		sh -c "$how" - "$SEMLOCK" --hold="$owner" --detach l 3>&- 4>&-
		id=$(sed -n 's/^OK id=//p' said)
		expect_status 1 "$SEMLOCK" -n l true
		expect_status 0 "$SEMLOCK" --release="$id" l
	done
	/usr/bin/python3 - "$SEMLOCK" "--hold=$owner" >said 3>&- 4>&- <<-'END'
		import os, pty, sys
		pid, terminal = pty.fork()
		if pid == 0:
		    os.execv(sys.argv[1], [sys.argv[1], sys.argv[2], "--detach", "l"])
		print(os.read(terminal, 1000).decode(), end="")
		os.waitpid(pid, 0)
		os.close(terminal)
	END
	id=$(tr -d '\r' <said | sed -n 's/^OK id=//p')
	expect_status 1 "$SEMLOCK" -n l true
	expect_status 0 "$SEMLOCK" --release="$id" l
	expect_status 0 "$SEMLOCK" -n l true
}

@test "a KILL to the process group of the call does not reach the hold" {
	start call setsid sh -c '"$0" --hold="$1" --detach l; kill -KILL 0' "$SEMLOCK" "$owner"
	eventually grep -q ^OK call.out
	eventually sh -c '! kill -0 "$0" 2>/dev/null || grep -q "State:.Z" "/proc/$0/status"' "${PID[call]}"
	id=$(sed 's/^OK id=//' call.out)
	expect_status 1 "$SEMLOCK" -n l true
	expect_status 0 "$SEMLOCK" --release="$id" l
}

@test "a busy lock is 1 or -E, a time-out too, and nothing waits on" {
	hold_lock l
	expect_status 1 "$SEMLOCK" --hold="$owner" --detach -n l
	expect_out ""
	expect_status 9 "$SEMLOCK" --hold="$owner" --detach -w 0.1 -E 9 l
	expect_out ""
	refused 66 "its directory" "$SEMLOCK" --hold="$owner" --detach /proc/none/lock
	capture "$SEMLOCK" --hold="$owner" --detach -n -v l
	[[ $err == "semlock: l: held by "* ]] || complain "it said '$err'"
	capture "$SEMLOCK" --hold="$owner" --detach -n --status-fd=1 l
	expect_out busy
	let_go
	expect_free l
}

@test "a call waits its turn; its place ends if the call or PID is killed" {
	hold_lock l
	start call "$SEMLOCK" --hold="$owner" --detach l
	eventually grep -q 'POSIX .*WRITE' /proc/locks
	eventually sh -c '"$0" --who l | grep -q "1 waiting"' "$SEMLOCK"
	kill -KILL "${PID[call]}"
	ended call 137
	eventually sh -c '"$0" --who l | grep -q "0 waiting"' "$SEMLOCK"
	start other sleep infinity
	start call "$SEMLOCK" --hold="${PID[other]}" --detach l
	eventually sh -c '"$0" --who l | grep -q "1 waiting"' "$SEMLOCK"
	kill -KILL "${PID[other]}"
	ended call 143
	[ ! -s call.out ]
	start call "$SEMLOCK" --hold="$owner" --detach l
	eventually sh -c '"$0" --who l | grep -q "1 waiting"' "$SEMLOCK"
	let_go
	ended call 0
	id=$(sed 's/^OK id=//' call.out)
	expect_status 1 "$SEMLOCK" -n l true
	expect_status 0 "$SEMLOCK" --release="$id" l
}

@test "the end of PID is the end of the hold, and of its processes" {
	local method pids
	for method in flock posix excl; do
		start other sleep infinity
		expect_status 0 "$SEMLOCK" --hold="${PID[other]}" --detach -m $method $method.lock
		id=${out#OK id=}
		pids="$(keeper) $(holder)"
		kill -KILL "${PID[other]}"
		expect_status 0 "$SEMLOCK" -w 60 -m $method $method.lock true
		# shellcheck disable=SC2086 # several words
		gone $pids
		refused 76 "ended" "$SEMLOCK" --release="$id" $method.lock
	done
}

@test "--run-timeout is the end of the hold, and --release says so: 76" {
	hold --run-timeout=0.2 l
	expect_status 0 "$SEMLOCK" -w 60 l true
	refused 76 "--run-timeout" "$SEMLOCK" --release="$id" l
	refused 76 "ended" "$SEMLOCK" --release="$id" l
	expect_status 0 "$PROBE" with-ignored TERM -- "$SEMLOCK" --hold --detach --run-timeout=0.2 l
	expect_status 0 "$SEMLOCK" -w 60 l true
}

@test "if a process of the hold is killed, the hold ends; --release gives 76" {
	local which pid
	for which in keeper holder placeholder; do
		hold l
		pid=$(if [ $which = placeholder ]; then pgrep -P "$(holder)"; else $which; fi)
		kill -KILL "$pid"
		expect_status 0 "$SEMLOCK" -w 60 l true
		refused 76 "ended" "$SEMLOCK" --release="$id" l
	done
}

@test "a holder that is killed while --release is on its way: 76, not 0" {
	[ -x "$CRASHABLE_SEMLOCK" ] || skip "needs $CRASHABLE_SEMLOCK"
	expect_status 0 env SEMLOCK_CRASH=detach.releasing:stop "$CRASHABLE_SEMLOCK" --hold="$owner" --detach l
	id=${out#OK id=}
	start release "$SEMLOCK" --release="$id" l
	eventually grep -q 'State:.T' "/proc/$(keeper)/status"
	kill -KILL "$(holder)"
	expect_status 0 "$SEMLOCK" -w 60 l true
	kill -CONT "$(keeper)"
	ended release 76
}

# A SIGCONT to a holder that is ending would leave a process that has just attached to it (ptrace) without its stop: the
# leak check of AddressSanitizer would never end, nor that holder.
@test "a stopped holder is continued before it ends, and holds until then" {
	[ -x "$CRASHABLE_SEMLOCK" ] || skip "needs $CRASHABLE_SEMLOCK"
	local pid
	expect_status 0 env SEMLOCK_CRASH=detach.ending:stop "$CRASHABLE_SEMLOCK" --hold="$owner" --detach l
	id=${out#OK id=}
	pid=$(holder)
	kill -STOP "$pid"
	"$PROBE" state "$pid" T
	start release "$SEMLOCK" --release="$id" l
	"$PROBE" state "$(keeper)" T
	"$PROBE" state "$pid" S
	expect_status 1 "$SEMLOCK" -n l true
	kill -CONT "$(keeper)"
	ended release 0
	expect_free l
	eventually nothing_left
}

# So many call the keeper of hold $1 that no more can be connected.
CALLERS='
import socket, sys, time
calls = []
try:
    while True:
        calls.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK))
        calls[-1].connect("\0semlock-hold-" + sys.argv[1])
except BlockingIOError:
    print(len(calls), flush=True)
time.sleep(600)'

@test "a stopped keeper: --release fails with 69 after 10 s, and works later" {
	hold l
	kill -STOP "$(keeper)"
	"$PROBE" state "$(keeper)" T
	refused 69 "process $(keeper), which keeps it, is stopped" timeout 60 "$SEMLOCK" --release="$id" l
	expect_status 1 "$SEMLOCK" -n l true
	start callers /usr/bin/python3 -c "$CALLERS" "$id"
	eventually test -s callers.out
	refused 69 "process $(keeper), which keeps it, does not answer" timeout 60 "$SEMLOCK" --release="$id" l
	kill -CONT "$(keeper)"
	expect_status 0 "$SEMLOCK" -w 60 l true
	refused 76 "ended" "$SEMLOCK" --release="$id" l
}

@test "a lock whose directory was removed is released by ID, from within, too" {
	local name
	for name in d/l "$PWD/d/l" link/l ./d/../d/l; do
		mkdir d
		ln -sf d link
		hold d/l
		rm -r d
		refused 64 "the ID of another lock" "$SEMLOCK" --release="$id" d/other
		refused 64 "the ID of another lock" "$SEMLOCK" --release="$id" l
		expect_status 0 "$SEMLOCK" --release="$id" "$name"
		expect_silent
		gone "$(keeper)"
		refused 76 "ended" "$SEMLOCK" --release="$id" "$name"
	done
	mkdir d
	hold d/l
	expect_status 0 sh -c 'cd d && rm -r ../d && "$0" --release="$1" l' "$SEMLOCK" "$id"
	gone "$(keeper)"
	mkdir d
	hold -m mkdir d/l
	rm -r d
	refused 76 "lost" "$SEMLOCK" --release="$id" d/l
}

@test "a lock made of files that was removed meanwhile: --release is 76" {
	hold -m excl l
	rm l
	refused 76 "lost" "$SEMLOCK" --release="$id" l
}

@test "a bad, ended, or foreign ID: one line, and no hold ends" {
	hold l
	expect_status 0 "$SEMLOCK" --release="$id" l
	refused 76 "ended" "$SEMLOCK" --release="$id" l
	hold l
	for word in "" 1 "$owner" "${id%-*}" "$id-" "x$id" ../l; do
		refused 64 "not the ID of a hold" "$SEMLOCK" --release="$word" l
	done
	: >other
	refused 64 "another lock" "$SEMLOCK" --release="$id" other
	refused 76 "ended" "$SEMLOCK" --release="${id%-*}-00000000" l
	if [ "$(id -u)" -eq 0 ]; then
		refused 77 "user 0" as_nobody "$SEMLOCK" --release="$id" /l
	fi
	expect_status 1 "$SEMLOCK" -n l true
	expect_status 0 "$SEMLOCK" --release="$id" l
}

@test "from another network namespace: 69, the hold goes on; other users: 77" {
	namespaces --net
	hold l
	refused 69 "process $(keeper), which keeps it, is in another network namespace" unshare --net "$SEMLOCK" --release="$id" l
	refused 69 "nsenter -t $(keeper) -n" unshare --net "$SEMLOCK" --resume="$id" l
	refused 76 "or begun outside of this container" unshare --net --pid --fork --mount-proc "$SEMLOCK" --release="$id" l
	refused 77 "belongs to user 0" unshare --net setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$SEMLOCK" --release="$id" /l
	expect_status 1 "$SEMLOCK" -n l true
	expect_status 0 nsenter -t "$(keeper)" -n "$SEMLOCK" --release="$id" l
	refused 76 "ended" unshare --net "$SEMLOCK" --release="$id" l
}

@test "--who names PID and the ID, and --replace the call that releases it" {
	hold l
	expect_status 1 "$SEMLOCK" --who l
	[[ $out == *"held  "*"$owner "*"sleep infinity"*"in the background: semlock --release=$id "*"l"* ]] || complain "it said:" "$out"
	expect_status 1 "$SEMLOCK" --who --json l
	[[ $out == *"\"pid\": $owner, \"watcher\": $(holder), \"id\": \"$id\""* ]] || complain "it said:" "$out"
	refused 69 "semlock --release=$id l" "$SEMLOCK" --replace l true
	refused 69 "semlock --release=$id l" "$SEMLOCK" --toggle l true
	expect_status 0 "$SEMLOCK" --release="$id" l
	start plain "$SEMLOCK" l sleep infinity
	eventually sh -c '"$0" --who --json l | grep -q "\"id\": null"' "$SEMLOCK"
}

@test "the call that --who shows can be pasted, whatever the lock's name is" {
	new_owner
	for name in 'a;touch ran' "it's \$(touch ran)" 'two  words' plain; do
		hold "$name"
		capture "$SEMLOCK" --who "$name"
		call=$(sed -n 's/^ *in the background: semlock //p' .out)
		(eval "\"$SEMLOCK\" $call") || complain "$call" || return
		expect_status 0 "$SEMLOCK" -n "$name" true
		[ ! -e ran ] || complain "$call"
	done
	[[ $call == *" plain" ]]
}

@test "a command that shares the lock with such a hold is not ended: 69" {
	local order
	for order in "plain hold" "hold plain"; do
		for which in $order; do
			if [ "$which" = hold ]; then hold -s l; else hold_as plain -s l; fi
		done
		for way in --replace --replace=KILL --toggle; do
			refused 69 "semlock --release=$id l" "$SEMLOCK" $way l touch ran
		done
		expect_status 0 "$SEMLOCK" --release="$id" l
		expect_status 1 "$SEMLOCK" -n l true
		let_go plain
		rm plain.*
	done
	[ ! -e ran ]
}

@test "a hold whose OK cannot be printed is none: 71" {
	expect_status 71 sh -c '"$0" --hold="$1" --detach l >/dev/full' "$SEMLOCK" "$owner"
	expect_free l
}

@test "it says when it ends, or is refused" {
	refused 64 "say when the hold ends" "$SEMLOCK" --hold --detach l
	refused 64 "--detach requires --hold" "$SEMLOCK" --detach l true
	refused 64 "--release" "$SEMLOCK" --release=1-2-3 -n l
	refused 64 "no command" "$SEMLOCK" --release=1-2-3 l true
	refused 64 "--release=ID LOCK" "$SEMLOCK" --release=1-2-3
	sleep 0 & gone=$!
	wait $gone
	refused 64 "no such process" "$SEMLOCK" --hold=$gone --detach l
	[ ! -e l ]
}

# logged OUTCOME: the log has one line more, with it
logged() {
	eventually sh -c "[ \$(wc -l <log) -eq $((logged += 1)) ]"
	tail -n 1 log | grep -qF "\"outcome\": \"$1\"}" || complain "$1:" "$(cat log)"
}

@test "--log has one line, at the end of the hold, which says why it has ended" {
	logged=0
	hold --log=log l
	[ ! -s log ]
	expect_status 0 "$SEMLOCK" --release="$id" l
	logged released
	hold --log=log --run-timeout=0.1 l
	logged run-timeout
	start other sleep infinity
	expect_status 0 "$SEMLOCK" --hold="${PID[other]}" --detach --log=log l
	kill -KILL "${PID[other]}"
	logged owner-ended
	hold --log=log l
	kill -KILL "$(keeper)"
	logged abandoned
	hold --log=log -m excl x
	rm x
	expect_status 76 "$SEMLOCK" --release="$id" x
	logged lost
	expect_status 71 sh -c '"$0" --hold="$1" --detach --log=log l >/dev/full' "$SEMLOCK" "$owner"
	logged abandoned
}

@test "a PID that is semlock's own after exec gives 64, and nothing is held" {
	refused 64 "that is this semlock, which ends now" bash -c 'exec "$0" --hold=$$ --detach l' "$SEMLOCK"
	expect_status 0 "$SEMLOCK" -n l true
}

@test "few descriptors: the limit is raised, or it is 71; nothing is left" {
	hold_with_limit() {
		capture prlimit --nofile="$1" "$SEMLOCK" --hold="$owner" --detach l
	}
	hold_with_limit 13:1024
	[[ "$status:$out" == "0:OK id="* ]] || complain "$status: $out" "$err"
	expect_status 1 "$SEMLOCK" -n l true
	kill_owner
	expect_status 0 "$SEMLOCK" -w 60 l true
	eventually nothing_left
	new_owner
	hold_with_limit 20
	[[ "$status:$err" == "71:semlock: "*"needs 32 descriptors, and no more than 20 may be open"* ]] || complain "$status: $err"
	expect_status 0 "$SEMLOCK" -n l true
	nothing_left
}

@test "too few processes: 71, with the limit that is reached; nothing is left" {
	without_leak_check
	root_only "limits another user's processes"
	: >l
	chmod 666 l
	capture setpriv --reuid=54322 --regid=54322 --clear-groups prlimit --nproc=1 "$SEMLOCK" --hold="$owner" --detach l
	[[ "$status:$err" == "71:semlock: "*"the limit of processes is reached (ulimit -u"* ]] || complain "$status: $err"
	expect_free l
	eventually nothing_left
}

@test "below a directory with too long a name: 66, and nothing is held" {
	local name
	/usr/bin/python3 - "$SEMLOCK" "$owner" >said 2>&1 <<-'END'
		import os, subprocess, sys
		for depth in range(21):
		    os.mkdir("d" * 200)
		    os.chdir("d" * 200)
		for name in "e" * 200 + "/l", "l":
		    if "/" in name:
		        os.mkdir("e" * 200)
		    for method in "excl", "flock":
		        for way in [], ["--keep-place", "-w0"]:
		            lock = ["-m", method, name]
		            call = [sys.argv[1], "--hold=" + sys.argv[2], "--detach", *way, *lock]
		            print(subprocess.run(call).returncode, flush=True)
		            print(subprocess.run([sys.argv[1], "-n", *lock, "true"]).returncode, flush=True)
	END
	cat said
	rm -rf ddd*
	[ "$(grep -c "too long for a hold in the background" said)" -eq 8 ]
	[ "$(grep -v too said | tr '\n' ' ')" = "66 0 66 0 66 0 66 0 66 0 66 0 66 0 66 0 " ]
}

@test "of a caller with thousands of descriptors none is kept open" {
	expect_status 0 timeout -s KILL 60 /usr/bin/python3 - "$SEMLOCK" "$owner" <<-'END'
		import os, subprocess, sys
		output, input = os.pipe()
		for _ in range(1500):
		    os.set_inheritable(os.dup(input), True)
		fds = [int(one) for one in os.listdir("/proc/self/fd") if int(one) > 2 and int(one) != output]
		for one in fds:
		    try:
		        os.set_inheritable(one, os.fstat(one).st_ino == os.fstat(input).st_ino)
		    except OSError:
		        pass
		subprocess.run([sys.argv[1], "--hold=" + sys.argv[2], "--detach", "l"], close_fds=False, check=True)
		os.closerange(input, input + 4000)
		sys.exit(len(os.read(output, 1)))
	END
	expect_status 1 "$SEMLOCK" -n l true
}

# A shell that holds l for itself, and then says SCRIPT.
from_within() {
	capture bash -c 'said=$("$0" --hold=$$ --detach '"$1"') || exit
		id=${said#OK id=} id=${id%% *}
		echo $$ >owner
		echo "$id" >id
		'"$2" "$SEMLOCK"
	owner=$(cat owner) id=$(cat id)
}

@test "a lock that an ancestor holds in the background gives 64 and its ID" {
	local method lock
	for method in flock ofd posix excl mkdir symlink; do
		from_within "-m $method $method.lock" "sh -c '\"\$0\" -m $method $method.lock touch ran; exit \$?' \"\$0\""
		[ "$status" -eq 64 ] || complain "$method: $status" "$err"
		[[ $err == "semlock: $method.lock: held for your own process $owner ($id), "* ]] || complain "$method: $err"
	done
	from_within l 'exec "$0" --nested l touch ran'
	[ "$status" -eq 64 ] && [[ $err == *"held for your own process $owner ($id)"* ]] || complain "$status: $err"
	from_within l '"$0" --hold=$$ --detach l; exit $?'
	[ "$status" -eq 64 ] && [[ $err == *"held for your own process $owner ($id)"* ]] || complain "$status: $err"
	for lock in first second third; do
		from_within "-f second -s -f third first" '"$0" '"$lock touch ran"
		[ "$status" -eq 64 ] && [[ $err == "semlock: $lock: held for your own process $owner ($id), "* ]] || complain "$status: $err"
		from_within "-f second -s -f third first" '"$0" -f '"$lock another touch ran"
		[ "$status" -eq 64 ] && [[ $err == *": held for your own process $owner ($id), "* ]] || complain "$status: $err"
	done
	from_within l '"$0" -n l touch ran'
	[ "$status" -eq 1 ] || complain "$status: $err"
	from_within l '"$0" -w .1 l touch ran'
	[ "$status" -eq 1 ] || complain "$status: $err"
	[ ! -e ran ]
	from_within l '"$0" -w 60 l touch ran & until "$0" --who l | grep -q "1 waiting"; do :; done
		"$0" --release="$id" l && wait $!'
	[ "$status" -eq 0 ] && [ -e ran ] || complain "$status: $err"
}

@test "an ancestor's hold is found even if a sandbox hides the kernel's sockets" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	from_within l 'timeout 60 strace -qq -o trace -e trace=socket,openat -e inject=socket:error=EAFNOSUPPORT:when=1 "$0" l touch ran'
	[ "$status" -eq 64 ] && [[ $err == *"held for your own process $owner ($id)"* ]] || complain "$status: $err"
	grep -q 'AF_NETLINK.*INJECTED' trace || complain "$(cat trace)"
}

@test "another process's lock, a part of it, or a slot is waited for" {
	hold l
	start waiter "$SEMLOCK" l true
	eventually sh -c '"$0" --who l | grep -q "1 waiting"' "$SEMLOCK"
	expect_status 0 "$SEMLOCK" --release="$id" l
	ended waiter 0
	hold_lock -j 2 s
	from_within "-j 2 s" '"$0" -j 2 s touch slot & until "$0" --who s | grep -q "1 waiting"; do :; done; printf . >holder.down; wait $!'
	[ "$status" -eq 0 ] && [ -e slot ] || complain "$status: $err"
	hold_as part --start=5 --length=1 p
	from_within "--start=1 --length=1 p" '"$0" --start=5 --length=1 p touch part & until "$0" --who p | grep -q "1 waiting"; do :; done
		printf . >part.down; wait $!'
	[ "$status" -eq 0 ] && [ -e part ] || complain "$status: $err"
}

@test "a stopped keeper, or another user's, delays a waiter only for a moment" {
	hold l
	kill -STOP "$(keeper)"
	hold_lock other
	start waiter "$SEMLOCK" other true
	eventually sh -c '"$0" --who other | grep -q "1 waiting"' "$SEMLOCK"
	let_go
	ended waiter 0
	kill -CONT "$(keeper)"
	expect_status 0 "$SEMLOCK" --release="$id" l
}

# The number of the next process in this PID namespace can be chosen.  strace refuses process descriptors: the number and
# the start tell the process then.
@test "a process that got PID's number is not taken for it: the hold ends" {
	namespaces --pid --fork --mount-proc
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	cat >inside <<-'END'
		sleep infinity & owner=$!
		strace -f -q -o trace -e trace=pidfd_open -e inject=pidfd_open:error=ENOSYS "$SEMLOCK" --hold=$owner --detach l >said &
		until grep -q ^OK said; do sleep .01; done
		"$SEMLOCK" -n l true && echo free
		kill -KILL $owner
		wait $owner
		tries=0
		until [ "${again-}" = $owner ]; do
		    [ "${again-}" ] && kill -KILL "$again"
		    [ $((tries += 1)) -le 100 ] || exit 3
		    echo $((owner - 1)) >/proc/sys/kernel/ns_last_pid
		    sleep infinity & again=$!
		done 2>/dev/null
		[ -d /proc/$owner ] || echo gone
		"$SEMLOCK" -w 30 l echo ended
		kill -0 $owner && echo lives
		"$SEMLOCK" --release=$(sed 's/^OK id=//' said) l || echo $?
		kill -KILL $owner
	END
	capture env SEMLOCK="$SEMLOCK" unshare --pid --fork --mount-proc bash inside
	[ "$status" -ne 3 ] || skip "the number was never given again"
	[ "$out" = $'ended\nlives\n76' ] || complain "$out" "$err"
}

@test "from outside its PID namespace, no wrong process is named" {
	namespaces --pid --fork --mount-proc
	cat >inside <<-'END'
		sleep infinity & owner=$!
		"$SEMLOCK" --hold=$owner --detach l
		read -r _ <over
	END
	mkfifo over
	SEMLOCK=$SEMLOCK start inside unshare --pid --fork --kill-child --mount-proc bash inside
	eventually grep -q ^OK inside.out
	expect_status 1 "$SEMLOCK" --who l
	[[ $out == *" semlock --hold="* ]] || complain "$out"
	refused 69 "a program holds the lock with semlock --hold" "$SEMLOCK" --replace l touch ran
	echo >over
	ended inside 0
}

@test "an idle hold does not wake up, and has less than 300 kB of its own" {
	if under_valgrind; then skip "its memory is valgrind's"; fi
	local pid kilobytes=0 all
	hold l
	all="$(keeper) $(holder) $(pgrep -P "$(holder)")"
	# shellcheck disable=SC2086 # several words
	wakes() { for pid in $all; do grep -h ^voluntary "/proc/$pid/status"; done; }
	# Neither by itself nor by a wait of the same user that is not that process's.  It may still be busy with
	# its begin; a wait that wakes it does so each time.
	hold_lock other
	for n in 1 2 3; do
		wakes >before
		queue_as waiter$n other
		"$PROBE" pause 2500
		wakes >after
		if cmp -s before after; then break; fi
	done
	let_go holder
	for ((i = 1; i <= n && i <= 3; i++)); do
		ready waiter$i
		let_go waiter$i
	done
	cmp before after || complain "it woke up"
	for pid in $all; do
		kilobytes=$((kilobytes + $(awk '/^Private/ { sum += $2 } END { print sum + 0 }' "/proc/$pid/smaps")))
	done
	[ -n "${SANITIZED-}" ] || [ $kilobytes -lt 300 ] || complain "it has $kilobytes kB"
	expect_status 0 "$SEMLOCK" --release="$id" l
}

# Points: keeper, before the holder is there; taken, before OK is printed; said, OK is printed; acknowledged, the keeper has
# heard that; held, the call has heard that; releasing; ending, before the holder is told; released.
@test "killed between any two steps: no unknown hold, and the next enters" {
	local point
	[ -x "$CRASHABLE_SEMLOCK" ] || skip "needs $CRASHABLE_SEMLOCK"
	for point in detach.keeper detach.taken detach.said detach.acknowledged; do
		for method in flock excl; do
			capture env SEMLOCK_CRASH=$point:kill "$CRASHABLE_SEMLOCK" --hold="$owner" --detach -m $method l
			[ "$status" -ne 0 ] || complain "$point: status 0"
			expect_status 0 "$SEMLOCK" -w 60 -m $method l true
			rm -f l
		done
	done
	for point in detach.held detach.releasing detach.ending detach.released; do
		expect_status 0 env SEMLOCK_CRASH=$point:kill "$CRASHABLE_SEMLOCK" --hold="$owner" --detach l
		id=${out#OK id=}
		refused 76 "$id" "$SEMLOCK" --release="$id" l
		expect_status 0 "$SEMLOCK" -w 60 l true
	done
}

@test "many agents, killed at random: no two hold the lock at once" {
	starts_many
	cat >agent <<-'END'
		for round in 1 2 3 4 5; do
		    sleep infinity & owner=$!
		    said=$("$SEMLOCK" --hold=$owner --detach -w 60 l) || { kill -KILL $owner; continue; }
		    id=${said#OK id=}
		    mkdir witness 2>/dev/null || echo overlap >>overlaps
		    rmdir witness
		    case $((RANDOM % 3)) in
		    0) kill -KILL $owner ;;
		    1) kill -KILL ${id%%-*} ;;
		    2) "$SEMLOCK" --release=$id l || echo lost >>overlaps ;;
		    esac
		    kill -KILL $owner
		    echo done >>rounds
		done 2>/dev/null
	END
	export SEMLOCK
	for agent in 1 2 3 4; do start "agent$agent" bash agent; done
	for agent in 1 2 3 4; do wait "${PID[agent$agent]}" || true; done
	[ ! -e overlaps ] || complain "$(cat overlaps)"
	[ "$(wc -l <rounds)" -eq 20 ] || complain "$(wc -l <rounds) rounds"
	expect_status 0 "$SEMLOCK" -w 60 l true
}
