#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock is killed, stopped, or refused a call between any two steps of taking, taking over, waiting and releasing.
# Then two waiters want the lock: one gets the lock, the other waits for the first; no other program's file is
# touched, and no file stays behind.
#
# The points are those of the source: a run that logs them tells which points are on the way.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}
ERRORS=(5 23 24 28 37)	# EIO ENFILE EMFILE ENOSPC ENOLCK
BYSTANDERS=(l.other .l l.held.other .l.semlock.1 l.guard)

# ---- ways to the lock l: scene METHOD WAY prepares one; ways METHOD lists them ----

ways() {
	case $1 in
	flock | ofd | posix) echo free wait rm slots ;;
	excl | mkdir) echo stale free wait fallback fallback-stale ;;
	link | rename) echo stale free wait fallback ;;
	symlink) echo stale free wait ;;
	esac
}

# failing METHOD WAY: sets $failing to the calls that fail on the way, so that semlock has to take the long one.
failing() {
	case $1-$2 in
	excl-fallback*) failing="lockdir.tmpfile:fail=95 plainfile.link:fail=95 publish.rename:fail=22" ;;
	link-fallback*) failing="lockdir.tmpfile:fail=95" ;;
	mkdir-fallback*) failing="publish.rename:fail=22" ;;
	rename-fallback*) failing="rename.rename:fail=22" ;;
	*) failing= ;;
	esac
}

# A command that has not ended yet keeps the token's flock: the next semlock would wait, and pass points that no
# other run passes.
stale() {
	capture "$SEMLOCK" -w 60 -m "$1" l sh -c 'echo $$ && kill -KILL $PPID $$'
	"$PROBE" gone "$out"
}

scene() {
	METHOD=$1
	rm -rf l l.held .l.semlock.*.* room
	[ "$1" != rename ] || "$SEMLOCK" -m rename --init l true
	for file in "${BYSTANDERS[@]}"; do echo "not to be touched" >"$file"; done
	case $2 in
	*stale) stale "$1" ;;
	wait) start holder "$SEMLOCK" -m "$1" l "$PROBE" hold own.up holder.down && first_in holder ;;
	esac
}

# crash WAY METHOD WHAT CMD...: starts semlock in the background, with WHAT at a crash point
crash() {
	local way=$1 method=$2 what=$3 options=()
	shift 3
	case $way in
	rm) options=(--rm) ;;
	slots) options=(-j 2) ;;
	esac
	failing "$method" "$way"
	exec 6<>own.alive # the FIFO is open in "crashed" and its children
	exec 7<own.alive
	SEMLOCK_CRASH="$what $failing" start crashed "$CRASHABLE_SEMLOCK" \
		-m "$method" "${options[@]}" l "$@"
	exec 6>&-
}

# all_gone: semlock and its children have ended: a child at the start barrier has the locks, too, and may live on.
all_gone() {
	local status=0
	read -r -t "$PATIENCE" -u 7 || status=$?
	[ "$status" -eq 1 ] || complain "a child of the killed one lives on"
}

# inner NAME: sets $inner to the semlock that does the work: with -m posix, the child of the one that was started
# (src/run/subreaper.h).
inner() {
	local child='' program=''
	inner=${PID[$1]}
	[ "$METHOD" = posix ] || return 0
	{ read -r child _ <"/proc/$inner/task/$inner/children"; } 2>/dev/null || true # no line: read returns 1
	{ read -r -d '' program <"/proc/$child/cmdline"; } 2>/dev/null || true
	if [[ -n $child && $program == *semlock* ]]; then inner=$child; fi
}

# state_of NAME: sets $state to the state of that semlock.  Returns 1 if the process has ended.
state_of() {
	inner "$1"
	read -r _ _ state _ 2>/dev/null <"/proc/$inner/stat"
}

a_moment() {
	! read -r -t .002 -u 9
}

# sleeps_on PID: the process is asleep, and stays asleep for a while: it waits for something, and not only in passing
sleeps_on() {
	local before now
	# The last two lines count how often the process has given up a processor, or lost one.
	mapfile -t before <"/proc/$1/status"
	[[ "${before[*]:2:2}" == *"State:"*"S (sleeping)"* && ${before[-1]} == *ctxt* ]] || return
	nap 10
	mapfile -t now <"/proc/$1/status"
	[[ "${before[*]:2:2} ${before[*]: -2}" == "${now[*]:2:2} ${now[*]: -2}" ]]
}

# come_to_rest NAME: waits until the process sleeps, is stopped, or has ended.
come_to_rest() {
	local state inner end=$((SECONDS + PATIENCE))
	while state_of "$1" && [[ $state != [TZ] ]] && ! sleeps_on "$inner"; do
		a_moment
		[ $SECONDS -lt $end ] || complain "$1 does not come to rest" || return
	done 2>/dev/null
}

# end_of_wait WAY METHOD: on the way "wait" the holder still has the lock, and releases it.  Only holder_ended waits
# for the holder's end: a waiter that is stopped during a takeover keeps the lock from the holder, too.
end_of_wait() {
	[ "$1" = wait ] || return 0
	come_to_rest crashed
	[ -e "/proc/${PID[holder]}" ] && expect_status 1 "$SEMLOCK" -n -m "$2" l true || return
	release holder
}

holder_ended() {
	[ "$1" != wait ] || ended holder 0
}

# ---- afterwards ----

# first_in NAME...: one of these semlocks has the lock, and the others have not; its name is in $first.
first_in() {
	local name parent inner
	read -r -t "$PATIENCE" _ line <own.up || complain "nobody gets in" || return
	read -r _ _ _ parent _ <"/proc/$line/stat"
	first=
	for name; do
		inner "$name"
		if [ "$inner" = "$parent" ]; then first=$name; fi
	done
	[ -n "$first" ] || complain "somebody else got in: $line"
}

# two_waiters METHOD [POINT]: two waiters get the lock, one after the other.  A process that dies at a point called
# ".empty" leaves a lock without a record, which only --stale takes over: that is documented.
two_waiters() {
	local one two patience=()
	case $2 in *.empty) patience=(--stale .3) ;; esac
	start w1 "$SEMLOCK" -m "$1" "${patience[@]}" l "$PROBE" hold own.up w1.down
	start w2 "$SEMLOCK" -m "$1" "${patience[@]}" l "$PROBE" hold own.up w2.down
	first_in w1 w2 || return
	one=$first
	two=w1
	if [ "$one" = w1 ]; then two=w2; fi
	come_to_rest $two
	if read -r -t 0 <own.up; then complain "both are in" || return; fi
	let_go "$one" || return
	first_in $two || return
	let_go $two
}

clean() {
	local file left text
	stale "$1"
	expect_status 0 "$SEMLOCK" -w 60 -m "$1" l true || return
	for file in "${BYSTANDERS[@]}"; do
		read -r text <"$file" && [ "$text" = "not to be touched" ] || complain "$file has been touched" || return
	done
	left=$(shopt -s dotglob nullglob && for file in *; do is_known "$1" "$file" || echo "$file"; done)
	[ -z "$left" ] || complain "left: $left" || return
	left=$(shopt -s nullglob && echo "$QUEUES/semlock-$HERE"-*)
	case $1 in flock | ofd | posix) [ ! -e l ] || [ ! -e "$(queue_of l)" ] || left=$(queue_of l) ;; esac
	[ -z "$left" ] || complain "a queue is left: $left"
}

# is_known METHOD FILE: FILE is the test's own, or the file of a free lock.
is_known() {
	case $2 in
	bin | own.* | room | .out | .err | holder.* | crashed.* | w1.* | w2.*) ;;
	l) case $1 in flock | ofd | posix | rename) ;; *) return 1 ;; esac ;;
	*) [[ " ${BYSTANDERS[*]} " == *" $2 "* ]] ;;
	esac
}

# ---- what is done to semlock ----

# passed_once WAY METHOD: sets $passed to the points that one run passes
passed_once() {
	rm -f own.log
	scene "$2" "$1"
	SEMLOCK_CRASH_LOG=$PWD/own.log crash "$1" "$2" "" true
	end_of_wait "$1" "$2" || return
	ended crashed 0 && holder_ended "$1" || return
	passed=$(sort -u own.log)
	echo "$passed" >"$BATS_FILE_TMPDIR/passed.$2.$1"
}

# passed WAY METHOD: sets $passed to the points on that way.  A queue has the number of its lock's inode.  If a waiter
# of another test was killed, and its lock's file removed, the file l may get that number, and the queue that is left:
# then one run, which removes that queue, passes the points of a waiter.
passed() {
	local end=$((SECONDS + PATIENCE))
	passed_once "$@" || return
	case $1-$2 in
	wait-* | *-excl | *-link | *-mkdir | *-symlink | *-rename) return ;;
	esac
	while grep -qx queue.opened <<<"$passed"; do
		[ $SECONDS -lt $end ] || complain "there is a queue each time" || return
		passed_once "$@" || return
	done
}

# killed_at POINT WAY METHOD: a waiter may end without passing the point: whether the waiter finds the holder just
# dead, or the lock released, is a matter of moments.
killed_at() {
	scene "$3" "$2" && crash "$2" "$3" "$1:kill" true && end_of_wait "$2" "$3" || return
	status=0
	wait "${PID[crashed]}" || status=$?
	case $2-$status in
	*-137 | wait-0) ;;
	*) complain "ended with $status instead of being killed: $(cat crashed.err)" || return ;;
	esac
	all_gone && holder_ended "$2" && two_waiters "$3" "$1" && clean "$3"
}

# stopped_or_over NAME WAY: semlock is stopped at the point; on the way "wait" it may have ended without passing that.
stopped_or_over() {
	local state='' inner end=$((SECONDS + PATIENCE))
	while state_of "$1" && [[ $state != T && ($2 != wait || $state != Z) ]]; do
		a_moment
		[ $SECONDS -lt $end ] || complain "$1 is neither stopped nor over" || return
	done 2>/dev/null
}

# go_on NAME: continues semlock, which may pass the point again, and stop again.
go_on() {
	local state inner
	while state_of "$1" && [ "$state" != Z ]; do
		if [ "$state" = T ]; then kill -CONT "$inner"; fi
		a_moment
	done 2>/dev/null
}

# stopped_at POINT WAY METHOD: all three commands run, in whatever order they came.
stopped_at() {
	scene "$3" "$2" && crash "$2" "$3" "$1:stop" "$PROBE" inside room 3 && end_of_wait "$2" "$3" &&
		stopped_or_over crashed "$2" || return
	start w1 "$SEMLOCK" -m "$3" l "$PROBE" inside room 3
	start w2 "$SEMLOCK" -m "$3" l "$PROBE" inside room 3
	come_to_rest w1
	come_to_rest w2
	go_on crashed
	ended crashed 0 && holder_ended "$2" && ended w1 0 && ended w2 0 && expect_status 0 "$PROBE" verdict room 9 && clean "$3"
}

# refused_at POINT WAY METHOD ERRNO: the command runs, or semlock says in one line why not; EINTR is no reason.
refused_at() {
	scene "$3" "$2" && crash "$2" "$3" "$1:fail=$4" touch room && end_of_wait "$2" "$3" || return
	status=0
	wait "${PID[crashed]}" || status=$?
	case $4-$status in
	*-0) [ -e room ] ;;
	4-69) [[ $3-$1 = rename-file_system.* ]] && [ ! -e room ] ;; # no call failed: another file system
	4-*) false ;;
	*-65 | *-66 | *-69 | *-71 | *-73) [ ! -e room ] && [ "$(grep -c '^semlock: ' crashed.err)" -eq 1 ] ;;
	*) false ;;
	esac || complain "ended with $status: $(cat crashed.err)" || return
	two_waiters "$3" && clean "$3"
}

prepare() {
	QUEUES=$(queue_directory) HERE=$(id_of .) || return
	rm -f "$QUEUES/semlock-$HERE"-* # of another directory that had this one's number: see "passed"
	mkfifo own.up own.quiet own.alive holder.down w1.down w2.down
	exec 8<>own.up	# the FIFO stays open, and keeps what is in it
	exec 9<>own.quiet
	points_of_the_source '(CRASH|FAULT)_POINT' >own.all
	points_of_the_source CRASH_POINT >own.crash
}

points_of_the_source() {
	grep -rhoE "$1"'\("[^"]*"\)' "$SOURCE/src" | cut -d'"' -f2 | sort -u
}

# tried POINT: each point is tried once, on the first way that passes it; with CRASH_EVERYWHERE=1, on every way.
tried() {
	[ -z "$CRASH_EVERYWHERE" ] && [[ $TRIED == *" $1 "* ]] && return
	TRIED+="$1 "
	return 1
}

everywhere() {
	local way point points passed
	TRIED=' '
	for way in $(ways "$1"); do
		passed "$way" "$1" || complain "$1, $way" || return
		mapfile -t points < <(grep -xFf own.crash <<<"$passed")
		for point in "${points[@]}"; do
			if tried "$point"; then continue; fi
			killed_at "$point" "$way" "$1" || complain "$1, $way: killed at $point" || return
			case $way in fallback*) continue ;; esac
			stopped_at "$point" "$way" "$1" || complain "$1, $way: stopped at $point" || return
		done
	done
	refused_everywhere "$1"
}

# EINTR, and one of the others by turns; THOROUGH: all of them.
refused_everywhere() {
	local point points error errors passed turn=0
	passed free "$1"
	mapfile -t points < <(grep -vxFf own.crash <<<"$passed")
	for point in "${points[@]}"; do
		errors=(4 "${ERRORS[turn++ % ${#ERRORS[@]}]}")
		[ -z "${THOROUGH-}" ] || errors=(4 "${ERRORS[@]}")
		for error in "${errors[@]}"; do
			refused_at "$point" free "$1" "$error" || complain "$1: error $error at $point" || return
		done
	done
}

@test "flock: killed and stopped between any two steps" {
	everywhere flock
}

@test "ofd: killed and stopped between any two steps" {
	everywhere ofd
}

@test "posix: killed and stopped between any two steps" {
	everywhere posix
}

@test "excl: killed and stopped between any two steps, and refused any call" {
	everywhere excl
}

@test "link: killed and stopped between any two steps, and refused any call" {
	everywhere link
}

@test "mkdir: killed and stopped between any two steps, and refused any call" {
	everywhere mkdir
}

@test "symlink: killed and stopped between any two steps, and refused any call" {
	everywhere symlink
}

@test "rename: killed and stopped between any two steps, and refused any call" {
	everywhere rename
}

# No way above passes these points: a token that cannot be emptied, --replace (replace.bats), the overtaking of a
# stopped waiter (order.bats), --queue-max (queue-max.bats), the parent's end (die-with-parent.bats), --detach (detach.bats), the pieces of a search (replace.bats), and a file that counts as another one
# (network-file-systems.bats); a look that is cut off (looking.bats); a helper that does not end (engine.bats).
@test "every point of the source is on one of these ways" {
	local method way passed
	: >own.reached
	for method in flock ofd posix excl link mkdir symlink rename; do
		for way in $(ways $method); do
			# The tests above have left the points that they found.
			[ -e "$BATS_FILE_TMPDIR/passed.$method.$way" ] || passed "$way" $method
			cat "$BATS_FILE_TMPDIR/passed.$method.$way" >>own.reached
		done
	done
	left=$(grep -vxFf own.reached own.all | grep -vE '^(rename\.not-erased|replace\.|lock\.(given-back|superseded)|attempt\.(free|sleeper|deserted)|observer\.looks|heartbeat\.beats|queue\.admitting|queue\.full|check\.|parent\.|supervise\.stops|detach\.|publish\.identity|lease\.slept|server\.who|log\.half|queue\.followed|open_fds\.(cut|walk)|snapshot\.listed|name$)' || true)
	[ -z "$left" ] || complain "on no way: $left"
}
