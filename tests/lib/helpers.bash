# SPDX-License-Identifier: MIT
# What every bats file loads first.  By hand, after a build in ./build:
#	HELPERS=$PWD/tests/lib/helpers.bash bats tests/lock/queue.bats      (or: bats -r tests)
#
# A test works in a directory of its own.  "start" and its like run a command in the background under a
# NAME: its output is in NAME.out and NAME.err.  No process outlives the test: teardown, or after
# TEST_LIMIT seconds a watchdog, kills every process that works in the directory.
# shellcheck shell=bash disable=SC2034 # used by the tests

SOURCE=${SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
SEMLOCK=${SEMLOCK:-$SOURCE/build/semlock}
CONFIG=${CONFIG:-$SOURCE/build/config.h}
CRASHABLE=${CRASHABLE:-no}
CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}
declare -gA PID=() COMMAND=()
# make's own, whatever it was called with: semlock heeds MAKEFLAGS.
unset MAKEFLAGS MFLAGS MAKELEVEL
# shellcheck source=tests/lib/watchdog.bash
source "$SOURCE/tests/lib/watchdog.bash"
PATIENCE=$((60 * (SLOWNESS < 5 ? SLOWNESS : 5))) # seconds that a test waits for an event

setup() {
	watch_over || return
	exec </dev/null # with -j, make gives all jobs but one a standard input that is hung up
	"$PROBE" room "$SEMLOCK"
	FLOCK=$PWD/bin/flock
	[ -s "$CONFIG" ] || complain "no $CONFIG: what this build can do is not known" || return
	if declare -F prepare >/dev/null; then prepare; fi
}

teardown() {
	if declare -F tidy >/dev/null; then tidy; fi
	watched
}

queue_directory() {
	local line
	while read -r line; do
		case $line in
		'#define QUEUE_DIRECTORY '*) line=${line#*\"} && echo "${line%\"*}" && return ;;
		esac
	done <"$CONFIG"
	complain "$CONFIG does not say where the queues are"
}

# id_of FILE: prints its device and inode, as they stand in the name of a queue.
id_of() {
	local device inode
	read -r device inode < <(stat -c '%d %i' "$1") && printf '%x-%x\n' "$device" "$inode"
}

# Prints the directory of --name, for the user that runs the test.
name_directory() {
	if [ "$(id -u)" -eq 0 ]; then echo /run/semlock; else echo "$(getent passwd "$(id -u)" | cut -d: -f6)/.local/state/semlock"; fi
}

# Prints the path of the queue of lock file $1.
queue_of() {
	printf '%s/semlock-%s\n' "$(queue_directory)" "$(id_of "$1")"
}

# has_tickets QUEUE N: N tickets at least are drawn from that file
has_tickets() {
	[ -e "$1" ] && [ "$(grep -c "POSIX .* WRITE .*:$(stat -c %i "$1") " /proc/locks)" -ge "$2" ]
}

# util-linux's own flock, to compare with; empty if it is not installed.
system_flock() {
	local path
	path=$(PATH=/usr/bin:/bin command -v flock) || return 0
	case $("$path" --version 2>&1) in *util-linux*) echo "$path" ;; esac
}

# LeakSanitizer stops a process that ends by ptrace(2), from a child of that process, and reads its /proc.  The
# process hangs if the test sends a SIGCONT just then, or kills all children; it fails without a child, or /proc.
without_leak_check() {
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
}

# capture CMD...: sets $status, and $out and $err to what CMD printed.  (bash warns of a NUL there.)
# (Descriptor 3 is bats' own: bats waits for every process that keeps it open.)
capture() {
	status=0
	"$@" >.out 2>.err 3>&- 4>&- || status=$?
	{ out=$(<.out) err=$(<.err); } 2>/dev/null
}

# expect_status N CMD...: if a library defines too_busy WANT, and it succeeds, CMD is tried again.
expect_status() {
	local want=$1 end=$((SECONDS + PATIENCE))
	shift
	capture "$@"
	while declare -F too_busy >/dev/null && too_busy "$want" && [ $SECONDS -lt $end ]; do capture "$@"; done
	[ "$status" -eq "$want" ] ||
		complain "$*" "ended with $status instead of $want" "stdout: $out" "stderr: $err"
}

expect_out() {
	[ "$out" = "$1" ] || complain "standard output is '$out'" "instead of '$1'" "stderr: $err"
}

expect_silent() {
	if [ -s .out ] || [ -s .err ]; then complain "not silent:" "stdout: $out" "stderr: $err"; fi
}

# refused N THING CMD...: status N, nothing on standard output, and one line on standard
# error that begins with the program's name and names THING.
refused() {
	local want=$1 thing=$2
	shift 2
	expect_status "$want" "$@" || return
	[ ! -s .out ] || complain "$*" "printed on standard output: $out" || return
	[ "$(wc -l <.err)" -eq 1 ] || complain "$*" "not one line on standard error:" "$err" || return
	case $err in
	"semlock: "*"$thing"*) ;;
	*) complain "$*" "the message does not name '$thing': $err" ;;
	esac
}

# delayed OPTION... -- CMD...: under strace, whose own words are in strace.err.  (It has one at times when a process that
# it delays is killed.)
delayed() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	strace -f -qq -o trace "${options[@]}" sh -c 'exec "$@" 2>&5 5>&-' sh "$@" 5>&2 2>strace.err
}

# page_text FILE: a manual page without its typography; its requests stay.
page_text() {
	sed -e 's/\\-/-/g; s/\\f[A-Z]//g; s/\\&//g; s/\\e/\\/g; s/\\(dq/"/g; s/\\(ti/~/g' -e "s/\\\\(aq/'/g" "$1"
}

# locks_here: a manual's examples, with the locks of /tmp, of /run and of a --name in this directory; a line of a crontab is its
# command alone.
locks_here() {
	sed -e "s#/tmp/#$PWD/#g; s#/run/#$PWD/#g; s#--name=\([a-z0-9-]*\)#$PWD/\1.lock#g" -e 's#^[*0-9/]* [*0-9]* [*] [*] [*] *##'
}

# program FILE TEXT: FILE is a shell script that can be run.
program() {
	printf '#!/bin/sh\n%s\n' "$2" >"$1"
	chmod +x "$1"
}

# runs PID NAME: the process runs a program of that name.
runs() {
	[ "$(cat "/proc/$1/comm")" = "$2" ]
}

# start NAME CMD...: in the background; PID[NAME] is CMD's own.
# (A shell's "&" and nohup ignore signals, and an ignored signal stays ignored: undo that.)
start() {
	local name=$1
	shift
	: >"$name.out" 2>"$name.err" # now: what an earlier process of this name has said is not this one's
	"$PROBE" with-default INT QUIT HUP TERM -- "$@" </dev/null >"$name.out" 2>"$name.err" 3>&- 4>&- &
	PID[$name]=$!
}

# eventually CMD...: repeats CMD until it succeeds, after pauses (ms) of a tenth of the time that it has waited.
eventually() {
	local end=$((SECONDS + PATIENCE)) pause=5
	until "$@"; do
		[ $SECONDS -lt $end ] || complain "this never came true: $*" || return
		nap $pause
		[ $pause -ge 200 ] || pause=$((pause + 1 + pause / 10))
	done
}

# none_runs PID...: a condition in the words of sh(1): none of these processes runs.  A zombie does not: it has ended,
# and has closed its files; kill -0 finds it until its parent has waited for it.
none_runs() {
	printf "! grep -qs '^State:.[^Z]' /proc/%s/status && " "$@"
	echo true
}

# with_room CMD...: tries CMD with a $room of 200 milliseconds, and if it fails with more and more.
# For what has to happen before a time limit of semlock's has passed: a busy machine may be late for a
# short one, and a fault of semlock fails with any.  (In CMD, "||" is needed.)
with_room() {
	for room in 200 800 3200 12800; do
		if "$@"; then return; fi
	done
	complain "this failed with each limit, up to $room ms: $*"
}

# few_locks: the machine's list of locks is read in less time than semlock spends on it, to find a waiter that sleeps in
# front of a lock that others may have.  Twenty thousand, which another test may have just now, are too many, and
# semlock takes such a lock out of turn.
few_locks() {
	[ "$(wc -l </proc/locks)" -lt 2000 ]
}

# among_few_locks CMD...: CMD is tried again if it has failed while there were many locks.
among_few_locks() {
	local end=$((SECONDS + TEST_LIMIT)) few
	while [ $SECONDS -lt $end ]; do
		few=yes
		few_locks || few=no
		if "$@"; then return; fi
		few_locks || few=no
		[ $few = no ] || return 1
		nap 200
	done
	complain "there are too many locks on this machine: $*"
}

# show_processes: the state of each process that start() has begun, and where it sleeps.
show_processes() {
	local name
	for name in "${!PID[@]}"; do
		echo "$name: ${PID[$name]} $(sed -n 's/^State:[[:blank:]]*//p' "/proc/${PID[$name]}/status" 2>&1)" \
			"$(cat "/proc/${PID[$name]}/syscall" 2>&1)"
	done
}

# next_line NAME: the next line on the FIFO NAME.up, in $line.  (At its timeout, read may have the
# beginning of a line.)
next_line() {
	local part tries=0
	line=
	until IFS= read -r -t 1 part; do
		line=$line$part
		tries=$((tries + 1))
		if [ $tries -ge $PATIENCE ] || ! kill -0 "${PID[$1]}" 2>/dev/null; then
			complain "$1 said nothing" "$(cat "$1.out" "$1.err")" "$(show_processes)" || return
		fi
	done <>"$1.up" # opened once: between two opens, the line of a writer that closes the FIFO would be lost
	line=$line$part
}

# ready NAME: returns when the probe under NAME's lock runs; COMMAND[NAME] is its pid.
ready() {
	next_line "$1" || return
	case $line in
	"ready "*) COMMAND[$1]=${line#ready } ;;
	*) complain "$1 said '$line' instead of 'ready'" ;;
	esac
}

# untimed: the lines of --status-fd, without the figures that each of these has to have
untimed() {
	sed -E 's/^(acquired|(exit|signal) [0-9]+)$/& without a time/
		s/^(acquired) waited=[0-9]+\.[0-9]{3}$/\1/; s/^((exit|signal) [0-9]+) held=[0-9]+\.[0-9]{3}$/\1/'
}

fifos() {
	mkfifo "$1.up" "$1.down"
}

# hold_as NAME ARGS...: semlock ARGS with a command that waits for release; returns when the command runs.
hold_as() {
	local name=$1
	shift
	fifos "$name"
	start "$name" "$SEMLOCK" "$@" "$PROBE" hold "$name.up" "$name.down"
	ready "$name"
}

hold_lock() {
	hold_as holder "$@"
}

# hold_by_flock NAME FILE: the same by the system's flock(1); without one the test is skipped.
hold_by_flock() {
	system=$(system_flock)
	[ -n "$system" ] || skip "no util-linux flock on this machine"
	fifos "$1"
	start "$1" "$system" "$2" "$PROBE" hold "$1.up" "$1.down"
	ready "$1"
}

# foreign_lock METHOD CONTENT: makes l, as another program makes a lock of METHOD, with CONTENT in it.
foreign_lock() {
	rm -rf l l.held
	case $1 in
	mkdir) mkdir l && printf '%s' "$2" >l/pid ;;
	symlink) ln -s "$2" l ;;
	rename) printf '%s' "$2" >l.held ;;
	*) printf '%s' "$2" >l ;;
	esac
}

# queue_as NAME ARGS...: the same, but returns when semlock sleeps in the kernel, waiting.
queue_as() {
	local name=$1
	shift
	fifos "$name"
	start "$name" "$SEMLOCK" "$@" "$PROBE" hold "$name.up" "$name.down"
	"$PROBE" blocked "${PID[$name]}"
}

# settle_as NAME ARGS...: the same, but returns when semlock, which looks for the holder after 50 ms, sleeps again.
settle_as() {
	queue_as "$1" -v "${@:2}"
	eventually grep -q "waiting: held by" "$1.err"
	"$PROBE" blocked "${PID[$1]}"
}

# hang_as NAME ARGS...: a waiter, the first in its queue, that hangs when its turn has come, until SIGCONT.  It does not
# take the lock, and is not seen to be stopped: as one whose control group is frozen.
hang_as() {
	local name=$1
	shift
	fifos "$name"
	rm -f "$name.passed"
	SEMLOCK_CRASH=lock.head:hang SEMLOCK_CRASH_LOG=$name.passed \
		start "$name" "$CRASHABLE_SEMLOCK" "$@" "$PROBE" hold "$name.up" "$name.down"
	eventually grep -qs ' hangs$' "$name.passed"
}

# report_as NAME ARGS...: semlock ARGS with a command that reports its signals on NAME.up.
report_as() {
	local name=$1
	shift
	fifos "$name"
	start "$name" "$SEMLOCK" "$@" "$PROBE" signals "$name.up" "$name.down"
	ready "$name"
}

# reports NAME WORD...: the next lines on NAME.up are these.
reports() {
	local name=$1 word
	shift
	for word; do
		next_line "$name" || return
		[ "$line" = "$word" ] || complain "$name reports '$line' instead of '$word'" || return
	done
}

# release NAME: lets its command end; returns at once.
release() {
	printf . 1<>"$1.down"
}

# ended NAME N: waits for NAME to end; its status must be N.
ended() {
	status=0
	wait "${PID[$1]}" || status=$?
	[ "$status" -eq "$2" ] ||
		complain "$1 ended with $status instead of $2" "$(cat "$1.out" "$1.err")"
}

# let_go [NAME]: lets its command end, and waits for semlock.
let_go() {
	release "${1:-holder}"
	ended "${1:-holder}" 0
}

expect_free() {
	local said
	said=$("$PROBE" free "$@") || complain "$1 is $said instead of free"
}

expect_held() {
	local said
	said=$("$PROBE" free "$@") || true
	[ "$said" = held ] || complain "$1 is $said instead of held"
}

expect_shared() {
	local said
	said=$("$PROBE" free "$@") || true
	[ "$said" = shared ] || complain "$1 is $said instead of shared"
}

# shows LOCK PID WAITING [PID]: the list of --who in .out has LOCK once, held by PID, with WAITING waiters; the first of them
# is the second PID
shows() {
	[ "$(grep -c "^$1: " .out)" -eq 1 ] || complain "$1 is not there once:" "$out" || return
	grep -A2 "^$1: held, $3 waiting" .out | grep -q "^held  *$2 " || complain "$1:" "$out" || return
	[ $# -lt 4 ] || grep -A3 "^$1: held" .out | grep -q "^ *1\. *$4 " || complain "$1:" "$out"
}

# held_by_four: the locks become (by -F), descriptor (by a script's own), hold (by --hold, until descriptor 9 is closed) and
# orphan (its semlock was killed)
held_by_four() {
	hold_as become -F become
	fifos script
	start script bash -c 'exec 8>descriptor; "$0" 8 && exec "$1" hold script.up script.down' "$SEMLOCK" "$PROBE"
	ready script
	mkfifo in
	start hold sh -c 'exec "$0" --hold hold <in' "$SEMLOCK"
	exec 9>in
	eventually grep -q OK hold.out
	hold_as orphan orphan
	kill -KILL "${PID[orphan]}"
	ended orphan 137
}

wait_for_four() {
	local lock
	for lock in become descriptor hold orphan; do queue_as "waits-$lock" $lock 9>&-; done
}

# shows_four N: --who has shown each of them, with N waiters (0, or 1 after wait_for_four)
shows_four() {
	local lock holder
	for lock in become descriptor hold orphan; do
		case $lock in
		descriptor) holder=${COMMAND[script]} ;;
		hold) holder=$$ ;;
		*) holder=${COMMAND[$lock]} ;;
		esac
		shows "$PWD/$lock" "$holder" "$1" ${PID[waits-$lock]+"${PID[waits-$lock]}"} || return
	done
}

# until_ok: the input of a semlock --hold whose output is .out, emptied before: it ends when that has said OK.
until_ok() {
	until grep -q ^OK .out; do :; done
}

# as_nobody CMD...: as a user without rights.  If the tests do not run as root, their user has none.
as_nobody() {
	if [ "$(id -u)" -eq 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		"$@"
	fi
}

root_only() {
	[ "$(id -u)" -eq 0 ] || skip "needs root: $1"
}

# others_may_run: skips the test if no other user can reach semlock and the probe, as below a directory of mode 0700.
others_may_run() {
	root_only "to be another user"
	as_nobody test -x "$SEMLOCK" -a -x "$PROBE" || skip "no other user can reach $SEMLOCK"
}

# namespaces OPTIONS: skips the test if unshare(1) cannot make them, as in a chroot or a container.
namespaces() {
	root_only "makes namespaces"
	unshare "$@" true 2>/dev/null || skip "no namespaces to be had here (unshare $*)"
}

under_valgrind() {
	case $SEMLOCK in */under-valgrind) ;; *) return 1 ;; esac
}

# often N: sets $often, how many times to do what only repeats, so that processes meet by chance: N with THOROUGH=1, a
# third of it without.
often() {
	often=$(($1 / 3))
	[ -z "${THOROUGH-}" ] || often=$1
}

# starts_many: skips the test if each start of semlock takes half a second.
starts_many() {
	if under_valgrind; then skip "hundreds of starts, half a second each under valgrind"; fi
}

