#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A terminal that is stopped (Ctrl-S), narrow, or given to a job that was started in the background.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/terminal

export SEMLOCK PROBE WAY=

prepare() {
	fifos never
	mkdir locks
}

# on_stopped_terminal BEFORE CMD...: CMD on a terminal in the background, as "waiter"; the line BEFORE of the script,
# then Ctrl-S; the file "stopped" says so, and when there is a file "seen", the terminal goes on.
on_stopped_terminal() {
	local before=$1
	shift
	rm -f stopped seen ran status
	printf '%s\n' "$before" stop "make stopped" "until seen" "send ^Q" >script
	# shellcheck disable=SC2016 # for that sh
	TERM=xterm start waiter sh -c '"$PROBE" pty "$@" <script' sh "$@"
	eventually [ -e stopped ] || complain "$(cat waiter.err)"
}

# goes_on STATUS: the terminal goes on, and CMD ends with STATUS.
goes_on() {
	touch seen
	ended waiter "$1"
}

# command_starts_on_a_stopped_terminal MOMENT METHOD...: the lock's turn comes while the terminal is stopped.
command_starts_on_a_stopped_terminal() {
	local moment=$1
	shift
	hold_lock "$@" &&
		on_stopped_terminal "$moment" "$SEMLOCK" "$@" touch ran || return
	"$PROBE" pause 1000 # the observer looks after 50 ms, and has something to draw
	let_go || return
	eventually [ -e ran ] || complain "after '$moment': $*" || return
	goes_on 0 || return
	rm -f ./holder.*
}

each_method() {
	local method
	for method in "-m flock" --fcntl "-m posix" "-m excl" "-m mkdir"; do
		# shellcheck disable=SC2086 # words
		"$@" $method "locks/l${method//[ -]/}" || complain "$method" || return
	done
}

@test "the terminal of these tests can be stopped, and goes on" {
	on_stopped_terminal "pause 0" sh -c 'until [ -e stopped ]; do sleep .05; done; echo words; touch written'
	"$PROBE" pause 200
	[ ! -e written ]
	goes_on 0
	[ -e written ]
	grep -q words waiter.out
}

@test "Ctrl-S while the line is shown: the command starts in its turn" {
	each_method command_starts_on_a_stopped_terminal "expect held by"
}

@test "Ctrl-S before the line is shown: the command starts in its turn" {
	each_method command_starts_on_a_stopped_terminal "pause 0"
}

# The queue moves: there is another line to be drawn, on a terminal that takes none.
@test "Ctrl-S before the line is redrawn: the command starts in its turn" {
	hold_lock l
	queue_as one l
	on_stopped_terminal "expect 2nd of 2" "$SEMLOCK" l touch ran
	let_go
	ready one
	"$PROBE" pause 1500
	let_go one
	eventually [ -e ran ]
	goes_on 0
	grep -q "2nd of 2" waiter.out
}

# ends_on_a_stopped_terminal STATUS SCRIPT MOMENT METHOD...: SCRIPT, for sh, runs semlock with METHOD, and gets STATUS from it
# while the terminal is stopped.  If it writes "pid", that process gets TERM.
ends_on_a_stopped_terminal() {
	local expected=$1 script=$2 moment=$3
	shift 3
	rm -f pid
	hold_lock "$@" || return
	on_stopped_terminal "$moment" sh -c "$script; echo \$? >status.new; mv status.new status" sh "$@" || return
	if [[ $script == *">pid;"* ]]; then
		eventually [ -s pid ] || return
		kill -TERM "$(cat pid)"
	fi
	eventually [ -e status ] || return
	[ "$(cat status)" -eq "$expected" ] || complain "after '$moment': $(cat status)" || return
	goes_on 0 && let_go || return
	rm -f ./holder.*
}

# shellcheck disable=SC2016 # for that sh
time_ends_on_a_stopped_terminal() {
	ends_on_a_stopped_terminal 1 '"$SEMLOCK" -w 2 "$@" true' "$@"
}

# shellcheck disable=SC2016 # for that sh
term_ends_on_a_stopped_terminal() {
	ends_on_a_stopped_terminal 143 '"$SEMLOCK" "$@" true & echo $! >pid; exec 2>sh.err; wait $!' "$@"
}

@test "Ctrl-S: -w ends in time" {
	time_ends_on_a_stopped_terminal "expect held by" l
}

@test "Ctrl-S: TERM ends the wait" {
	term_ends_on_a_stopped_terminal "expect held by" l
}

# stopped_at_random_moments METHOD...: CTRL_S_ROUNDS times each
stopped_at_random_moments() {
	local round end
	for ((round = 0; round < ${CTRL_S_ROUNDS:-1}; round++)); do
		for end in command_starts time_ends term_ends; do
			"${end}_on_a_stopped_terminal" "pause $((RANDOM % 400))" "$@" || return
		done
	done
}

@test "Ctrl-S at any moment: the turn comes, -w ends, TERM ends the wait" {
	each_method stopped_at_random_moments
}

@test "Ctrl-S: a call that waits for a background hold gets it in its turn" {
	hold_lock l
	# shellcheck disable=SC2016 # for that sh
	on_stopped_terminal "expect held by" sh -c '"$SEMLOCK" --hold=$$ --detach l >held; echo $? >status.new; mv status.new status; read -r _ <>never.up'
	let_go
	eventually [ -e status ]
	[ "$(cat status)" -eq 0 ]
	grep -q OK held
	touch seen
	echo >never.up
	ended waiter 0
}

@test "when the terminal goes on, a wait that goes on draws its line" {
	hold_lock l
	on_stopped_terminal "pause 0" "$SEMLOCK" l touch ran
	touch seen
	eventually grep -q "1st of 1" waiter.out
	let_go
	ended waiter 0
}

@test "a waiter that is killed while it is stopped leaves no observer behind" {
	hold_lock l
	# Between the two is a subreaper, as the user manager of systemd is: it adopts the observer.
	cat >adopts.py <<-'END'
		import ctypes, os, signal, sys
		ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
		pid = os.fork()
		if pid == 0:
		    os.setpgid(0, 0)
		    while os.tcgetpgrp(0) != os.getpid():
		        pass
		    os.execv(sys.argv[1], sys.argv[1:])
		signal.signal(signal.SIGTTOU, signal.SIG_IGN)
		while os.tcgetpgrp(0) != pid:
		    try:
		        os.tcsetpgrp(0, pid)
		    except PermissionError: # not yet
		        pass
		open("pid.new", "w").write(str(pid))
		os.rename("pid.new", "pid")
		while True:
		    try:
		        os.wait()
		    except ChildProcessError:
		        break
		open("alone", "w").close()
	END
	printf '%s\n' "expect held by" "make shown" "until seen" >script
	# shellcheck disable=SC2016 # for that sh
	TERM=xterm start waiter sh -c '"$PROBE" pty python3 adopts.py "$SEMLOCK" l true <script'
	eventually [ -e shown ]
	kill -TSTP "$(cat pid)"
	"$PROBE" state "$(cat pid)" T
	kill -KILL "$(cat pid)"
	eventually [ -e alone ]
	touch seen
	ended waiter 0
	let_go
}

# ---- fg ----

@test "fg: a command that was started in the background reads from the terminal" {
	for WAY in l "-o l" "-m posix l" "-m mkdir d" "--die-with-parent l" "--run-timeout=60 l" "--die-with-parent --run-timeout=60 -o l"; do
		export WAY
		for shell in bash dash; do
			reads_after_fg $shell || complain "$shell: $WAY" || return
		done
	done
}

@test "fg: with a lock on a server, the command reads from the terminal" {
	load ../lib/remote
	load ../lib/servers/etcd
	prepare_remote
	command -v etcd >/dev/null || skip "no etcd"
	etcd_single
	export WAY=etcd://$ETCD/nightly
	reads_after_fg bash
	etcd_stop_all || true # it reports the server's end
}

@test "fg with a limit: keys reach the command and the rest of its job" {
	for WAY in "" --die-with-parent --run-timeout=60; do
		export WAY
		in_terminal bash <<-'END' || complain "$WAY" || return
			line "$SEMLOCK" $WAY l sh -c 'read -r words; echo "got $words"; read -r more; echo "more $more"' | cat &
			line "$PROBE" state $(jobs -p) T && "$PROBE" state $! T && echo "it is stopped"
			expect it is stopped
			line fg
			line hello
			expect got hello
			send ^Z
			expect Stopped
			line bg
			line "$PROBE" state $(jobs -p) T && "$PROBE" state $! T && echo "stopped once more"
			expect stopped once more
			line fg
			line again
			expect more again
			line echo "status ${PIPESTATUS[0]}"
			expect status 0
			line "$SEMLOCK" $WAY l sh -c 'read -r words; echo "in $words"; exec cat' &
			line "$PROBE" state $! T && echo "stopped at last"
			expect stopped at last
			line fg
			line there
			expect in there
			send ^C
			expect $
			line echo "status $?"
			expect status 130
			line exit
		END
	done
}

@test "fg with a limit: what comes after the command has the terminal again" {
	for WAY in "" --die-with-parent --run-timeout=60; do
		export WAY
		in_terminal bash <<-'END' || complain "$WAY" || return
			line bash -c '"$SEMLOCK" $WAY l sh -c "read -r x; echo in \$x"; read -r y; echo after $y' &
			line "$PROBE" state $! T && echo "it is stopped"
			expect it is stopped
			line fg
			line one
			expect in one
			line two
			expect after two
			line exit
		END
	done
}

# A shell may wait for another process of the job, and continue all of them while semlock is about to stop.
@test "fg just before semlock stops: semlock runs on" {
	export SEMLOCK_CRASH=supervise.stops:wait=1500 SEMLOCK_CRASH_LOG=passed
	for WAY in "" --die-with-parent --run-timeout=60; do
		export WAY
		in_terminal bash <<-'END' || complain "$WAY" || return
			line bash -c '"$CRASHABLE_SEMLOCK" $WAY l sh -c "read -r x; echo in \$x"; read -r y; echo after $y' &
			line "$PROBE" state $! T && echo "it is stopped"
			expect it is stopped
			line fg
			line one
			expect in one
			line two
			expect after two
			line exit
		END
		grep -qx supervise.stops passed || complain "$WAY: it was not about to stop" || return
		rm passed
	done
}

# ---- narrow terminals ----

# line_at COLUMNS ARGS...: the waiting line of semlock ARGS, without the last one's name, on a terminal of that width
line_at() {
	local columns=$1
	shift
	printf 'expect \033[K\nsend ^C\n' >script
	status=0
	TERM=xterm "$PROBE" pty -w "$columns" "$SEMLOCK" "$@" true >.shown 2>.err <script 3>&- 4>&- || status=$?
	[ "$status" -eq 130 ] || complain "$(cat -v .shown .err)" || return
	shown=$(tr '\r' '\n' <.shown | grep -m 1 . | sed 's/\x1b.*//')
}

@test "the waiting line keeps the place at every width" {
	hold_lock --note="a reason that takes many words" l
	for columns in 200 120 100 80 60 50 40 30 20 10; do
		line_at $columns l
		[ ${#shown} -le $((columns - 2)) ] || complain "$columns: $shown"
		[[ $shown == *"1st of 1"* ]] || complain "$columns: $shown"
	done
	let_go
}

@test "a narrow line loses note, command, and the middle of the name" {
	name=directory/with/a/long/name/and/another/one.lock
	mkdir -p "${name%/*}"
	hold_lock --note="a reason" "$name"
	line_at 200 "$name"
	[[ $shown == "semlock: $name: held by ${COMMAND[holder]} (probe hold "*") since "*", \"a reason\"; 1st of 1" ]] || complain "$shown"
	line_at 132 "$name"
	[[ $shown == "semlock: $name: held by ${COMMAND[holder]} (probe"*") since "*"; 1st of 1" && $shown != *"a reason"* ]] || complain "$shown"
	line_at 80 "$name"
	[[ $shown == "semlock: dir"*...*".lock: held by ${COMMAND[holder]} "*"; 1st of 1" ]] || complain "$shown"
	line_at $((39 + ${#COMMAND[holder]})) "$name"
	[[ $shown == "semlock: "*"...ock: held by ${COMMAND[holder]}; 1st of 1" ]] || complain "$shown"
	let_go
}

@test "the first in the queue sees that a second one comes" {
	hold_lock l
	TERM=xterm start waiter "$PROBE" pty "$SEMLOCK" l true
	eventually grep -q "1st of 1" waiter.out
	queue_as one l
	eventually grep -q "1st of 2" waiter.out
	let_go
	ended waiter 0
	ready one
	let_go one
}

@test "sh -c STRING: the string is shown, on a narrow terminal alone" {
	fifos one
	start one "$SEMLOCK" l sh -c '"$0" hold one.up one.down; : and the rest' "$PROBE"
	ready one
	line_at 200 l
	[[ $shown == *" (sh -c '\"\$0\" hold one.up one.down; : and the rest' "*") since "* ]] || complain "$shown"
	line_at 72 l
	[[ $shown == *" ('\"\$0\""*") since "* ]] || complain "$shown"
	expect_status 1 "$SEMLOCK" --who l
	[[ $out == *" sh -c '\"\$0\" hold "* ]] || complain "$out"
	let_go one
}

@test "--who fits a terminal of any width" {
	hold_lock --note="a reason that takes many words" l
	queue_as one l
	for columns in 120 80 70 60 50 40 30 20; do
		"$PROBE" pty -w $columns "$SEMLOCK" --who l >.shown 2>.err </dev/null 3>&- 4>&- || [ $? -eq 1 ]
		[ "$(wc -l <.shown)" -eq 5 ] || complain "$columns: $(cat .shown)"
		[ "$(awk 'NR > 1 && length > most { most = length } END { print most }' .shown)" -lt $columns ] ||
			complain "$columns: $(cat .shown)"
		grep -q "^held *${COMMAND[holder]} " .shown || complain "$columns: $(cat .shown)"
	done
	let_go
	ready one
	let_go one
}
