#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --die-with-parent: semlock, waiting or holding, ends with the process that started it.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

# child_of NAME CMD...: a shell, PID[NAME], starts CMD, whose process is in NAME.pid
child_of() {
	local name=$1
	shift
	start "$name" sh -c '"$@" & echo $! >"$0.new" && mv "$0.new" "$0.pid"; wait' "$name" "$@"
	eventually [ -e "$name.pid" ]
}

# holds NAME ARGS...: a child of NAME holds the lock with ARGS
holds() {
	local name=$1
	shift
	fifos "$name"
	child_of "$name" "$SEMLOCK" --die-with-parent "$@" "$PROBE" hold "$name.up" "$name.down"
	ready "$name"
}

# killed NAME: it is, and then semlock is gone, and its command if it has one
killed() {
	kill -KILL "${PID[$1]}"
	"$PROBE" gone "$(cat "$1.pid")"
	[ -z "${COMMAND[$1]-}" ] || "$PROBE" gone "${COMMAND[$1]}"
}

@test "a holder: the command has ended, and the next one is in, in order" {
	holds parent l
	queue_as first l
	queue_as second l
	killed parent
	ready first
	kill -0 "${PID[second]}"
	let_go first
	ready second
	let_go second
}

@test "a waiter leaves the queue: the next one is served" {
	hold_lock l
	fifos parent
	child_of parent "$SEMLOCK" --die-with-parent l touch ran
	"$PROBE" blocked "$(cat parent.pid)"
	queue_as next l
	killed parent
	expect_status 1 "$SEMLOCK" --who l
	grep -q "^l: held, 1 waiting" .out || complain "$out"
	let_go
	ready next
	let_go next
	[ ! -e ran ]
}

@test "every kind of lock, -o, -f, --hold, and a descriptor that is waited for" {
	"$SEMLOCK" -m rename --init rename true
	for how in "-o l" "-m posix l" "-m excl excl" "-m link link" "-m mkdir mkdir" "-m symlink symlink" "-m rename rename" \
		"-o -m excl both" "-f l k" "-j 2 slots"; do
		# shellcheck disable=SC2086 # words
		holds parent $how
		killed parent
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" -w 60 $how true
		rm parent.*
	done
	mkfifo input
	child_of parent sh -c 'exec "$0" --hold --die-with-parent l <input' "$SEMLOCK"
	exec 7>input
	eventually grep -q OK parent.out
	killed parent
	expect_free l
	exec 7>&-
	rm parent.*
	hold_lock l
	exec 8>l
	child_of parent "$SEMLOCK" --die-with-parent 8
	"$PROBE" blocked "$(cat parent.pid)"
	killed parent
	let_go
	expect_free l
	exec 8>&-
}

@test "what the command has started ends with it" {
	mkfifo never
	child_of parent "$SEMLOCK" --die-with-parent l sh -c 'read -r _ <>never & echo $! >inner; wait'
	eventually [ -s inner ]
	killed parent
	"$PROBE" gone "$(cat inner)"
	expect_free l
}

@test "a command that ignores TERM gets KILL with --kill-after; a stopped ends" {
	mkfifo never
	child_of parent "$SEMLOCK" --die-with-parent --kill-after .05 l sh -c 'trap "" TERM; : >ready; while :; do read -r _ <>never; done'
	eventually [ -e ready ]
	killed parent
	expect_status 0 "$SEMLOCK" -w 60 l true
	rm parent.pid
	holds parent l
	kill -STOP "${COMMAND[parent]}"
	"$PROBE" state "${COMMAND[parent]}" T
	killed parent
}

@test "a stopped semlock ends, holding or waiting" {
	holds parent l
	kill -STOP "$(cat parent.pid)"
	child_of waiter "$SEMLOCK" --die-with-parent l true
	"$PROBE" blocked "$(cat waiter.pid)"
	kill -STOP "$(cat waiter.pid)"
	killed waiter
	killed parent
	expect_status 0 "$SEMLOCK" -w 60 l true
}

@test "the wait of --min-hold ends" {
	child_of parent "$SEMLOCK" --die-with-parent --min-hold 1h l sh -c ': >ran'
	eventually [ -e ran ]
	"$PROBE" pause 20
	killed parent
	expect_free l
}

@test "also where TERM was ignored, or blocked" {
	for word in with-ignored with-mask; do
		fifos parent
		child_of parent "$PROBE" $word TERM -- "$SEMLOCK" --die-with-parent l "$PROBE" hold parent.up parent.down
		ready parent
		fifos waiter
		child_of waiter "$PROBE" $word TERM -- "$SEMLOCK" --die-with-parent l true
		"$PROBE" blocked "$(cat waiter.pid)"
		killed waiter
		killed parent
		rm parent.* waiter.*
		COMMAND=()
	done
}

# A thread that starts a process, and ends.
FROM_A_THREAD='import subprocess, sys, threading
def begin():
    global child
    child = subprocess.Popen(sys.argv[1:])
thread = threading.Thread(target=begin)
thread.start()
thread.join()
print("thread ended", flush=True)
sys.exit(child.wait())'

@test "a thread that has started it may end, and the process goes on" {
	fifos parent
	start parent python3 -c "$FROM_A_THREAD" "$SEMLOCK" --die-with-parent l "$PROBE" hold parent.up parent.down
	ready parent
	start waiter python3 -c "$FROM_A_THREAD" "$SEMLOCK" --die-with-parent l true
	eventually grep -q "thread ended" waiter.out
	eventually grep -q "thread ended" parent.out
	let_go parent
	ended waiter 0
}

@test "a parent that ended before semlock could watch it: no command runs" {
	SEMLOCK_CRASH=parent.noted:stop child_of parent "$CRASHABLE_SEMLOCK" --die-with-parent l touch ran
	"$PROBE" state "$(cat parent.pid)" T
	kill -KILL "${PID[parent]}"
	ended parent 137
	kill -CONT "$(cat parent.pid)"
	"$PROBE" gone "$(cat parent.pid)"
	[ ! -e ran ]
}

@test "under a subreaper, and as process 1 of a container" {
	start reaper python3 -c 'import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try:
        os.wait()
    except ChildProcessError:
        break' sh -c 'echo $$ >middle; "$@" & echo $! >inner; wait' sh \
		"$SEMLOCK" --die-with-parent l sh -c ': >ready; read -r _ <>never'
	mkfifo never
	eventually [ -e ready ]
	kill -KILL "$(cat middle)"
	"$PROBE" gone "$(cat inner)"
	ended reaper 0
	expect_free l
	namespaces --pid --fork
	fifos parent
	start parent unshare --pid --fork "$SEMLOCK" --die-with-parent l "$PROBE" hold parent.up parent.down
	next_line parent
	killed_parent=${PID[parent]}
	kill -KILL "$killed_parent"
	expect_status 0 "$SEMLOCK" -w "$PATIENCE" l true
}

@test "as process 1 of a container, SIGCONT does not count as a parent's end" {
	namespaces --pid --fork
	cat >inside <<-'END'
		kill -CONT $PPID
		: >continued
	END
	began=$(date +%s%N)
	expect_status 0 unshare --pid --fork "$SEMLOCK" --die-with-parent --min-hold .5 l sh inside
	[ $((($(date +%s%N) - began) / 1000000)) -ge 500 ] || complain "the lock was not kept"
	[ -e continued ]
	hold_lock l
	start waiter unshare --pid --fork "$SEMLOCK" --die-with-parent l touch ran
	eventually pgrep -P "${PID[waiter]}" >inner
	"$PROBE" blocked "$(cat inner)"
	kill -CONT "$(cat inner)"
	let_go
	ended waiter 0
	[ -e ran ]
}

@test "-F is refused" {
	refused 64 "-F and --die-with-parent" "$SEMLOCK" -F --die-with-parent l touch ran
	[ ! -e ran ]
}

@test "the end of the thread that has started it is no SIGCONT for the command" {
	cat >threads.py <<-'END'
		import os, subprocess, sys, threading, time
		def begin():
		    global child
		    child = subprocess.Popen(sys.argv[1:])
		    while not os.path.exists("go"): time.sleep(.01)
		thread = threading.Thread(target=begin)
		thread.start()
		other = threading.Thread(target=time.sleep, args=(1000,), daemon=True)
		other.start()
		thread.join()
		time.sleep(.2)
		open("gone", "w").close()
		sys.exit(child.wait())
	END
	for way in "" --run-timeout=60; do
		fifos parent
		# shellcheck disable=SC2086 # words
		start parent /usr/bin/python3 threads.py "$SEMLOCK" --die-with-parent $way l "$PROBE" signals parent.up parent.down
		ready parent
		outer=$(pgrep -P "${PID[parent]}" semlock)
		: >go
		eventually [ -e gone ]
		kill -USR1 "$outer"
		reports parent USR1
		kill -CONT "$outer"
		reports parent CONT
		release parent
		ended parent 0
		rm -f ./*.up ./*.down go gone
	done
}

@test "the end of the thread that has started it continues no stopped semlock" {
	cat >threads.py <<-'END'
		import os, subprocess, sys, threading, time
		def begin():
		    global child
		    child = subprocess.Popen(sys.argv[1:], preexec_fn=os.setpgrp)
		    open("outer", "w").write(str(child.pid))
		    while not os.path.exists("go"): time.sleep(.01)
		thread = threading.Thread(target=begin)
		thread.start()
		other = threading.Thread(target=time.sleep, args=(1000,), daemon=True)
		other.start()
		thread.join()
		time.sleep(.3)
		open("gone", "w").close()
		sys.exit(child.wait())
	END
	fifos parent
	start parent /usr/bin/python3 threads.py "$SEMLOCK" --die-with-parent l "$PROBE" hold parent.up parent.down
	ready parent
	eventually [ -s outer ]
	kill -TSTP "${COMMAND[parent]}"
	"$PROBE" state "$(cat outer)" T
	: >go
	eventually [ -e gone ]
	"$PROBE" state "$(cat outer)" T
	"$PROBE" state "${COMMAND[parent]}" T
	kill -CONT -- "-$(cat outer)" "${COMMAND[parent]}"
	let_go parent
}

# A shell that has ended by the time at which semlock asks for its parent: the file is written after that.
@test "--die-with-parent=PID: a parent that ended before the start is noticed" {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sh -c '"$0" pause 30; :' "$PROBE" &
		gone=$!
		wait "$gone"
		refused 143 "process has ended" "$SEMLOCK" --die-with-parent="$gone" l touch ran
		sh -c '"$0" --die-with-parent=$$ l sleep 1000 >/dev/null 2>&1 & exit 0' "$SEMLOCK" 3>&- 4>&-
	done
	expect_status 0 "$SEMLOCK" -w "$PATIENCE" l true
	[ ! -e ran ]
}

@test "--die-with-parent=PID: an unrelated PID's end ends holder and waiter" {
	for way in "" "-o" "-m excl" "--run-timeout 60"; do
		sleep 1000 3>&- &
		other=$!
		# shellcheck disable=SC2086 # words
		hold_as holder --die-with-parent=$other $way "l$way"
		fifos waiter
		# shellcheck disable=SC2086 # words
		start waiter "$SEMLOCK" --die-with-parent=$other ${way#--run-timeout 60} "l$way" true
		"$PROBE" pause 100
		kill -KILL $other
		ended holder 143 || complain "$way"
		ended waiter 143 || ended waiter 0 || complain "$way"
		# shellcheck disable=SC2086 # words
		expect_status 0 "$SEMLOCK" -n ${way#--run-timeout 60} "l$way" true || complain "$way"
		rm -f ./*.up ./*.down
	done
	refused 64 --die-with-parent "$SEMLOCK" --die-with-parent=0 l true
	refused 64 --die-with-parent "$SEMLOCK" --die-with-parent=x l true
}
