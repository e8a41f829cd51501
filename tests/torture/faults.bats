#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# System calls that fail under semlock: a sample of what "make faults" tries in full.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

TORTURE=${TORTURE:-$SOURCE/build/tests/torture/torture}
CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

tracing() {
	[ -z "${SANITIZED-}" ] || skip "the sanitizers' own calls must not fail, and LeakSanitizer cannot work under strace"
	command -v strace >/dev/null || skip "no strace here"
	strace -o /dev/null true 2>strace.err || skip "strace cannot trace here: $(tail -1 strace.err)"
}

# injected HOW...: a run of faults.py that finds nothing bad
injected() {
	tracing
	# shellcheck disable=SC2086 # a list
	expect_status 0 ${alone-} /usr/bin/python3 "$SOURCE/tests/torture/faults.py" "$@" "$SEMLOCK" "$TORTURE" || return
	[[ $out == *" 0 bad" ]]
}

@test "no memory, descriptors or boot id: no living holder is taken for dead" {
	injected --only="symlink: -n, held"
}

@test "-F: no command runs that has not inherited the lock" {
	injected --only="flock: -F"
}

@test "a call that a signal interrupts is made again, without other effect" {
	for method in excl mkdir ${THOROUGH:+link symlink rename}; do
		injected --error=EINTR --only="$method: free"
		injected --error=EINTR --only="$method: -n"
	done
}

@test "any call fails in any way: the command runs locked, or one line why not" {
	if [ -n "${THOROUGH-}" ]; then injected --sample=300 --seed=1; else injected --sample=60 --seed=1; fi
}

@test "a call interrupted or refused: no hang, no orphan, no silent loss" {
	injected --each --only="flock: --re" --call=sendmsg
	injected --each --error=EPERM --only="flock: --detach, PID" --call=dup2,fcntl,sendmsg,read,clone,clone3
	injected --each --error=ENOSYS --only="flock: --detach, -n, held" --call=wait4
	injected --each --error=EPERM --only="flock: --detach, waits" --call=getcwd,read
	injected --each --error=ENOSYS --only="flock: --keep-place, PID ends" --call=kill,poll,sendmsg
	injected --each --error=EPERM --only="flock: --die-with-parent" --call=prctl,write,clone,clone3
	injected --each --error=ENOSYS --only="flock: --hold" --call=write,read
	injected --each --error=EINTR --only="flock: -o" --call=write,rt_sigtimedwait,waitid
	injected --each --error=EPERM --only="flock: --run-timeout, is over" --call=setpgid
	injected --each --error=ENOSYS --only="flock: -w .05" --call=timer_settime
	injected --each --error=EPERM --only="excl: far away, stale" --call=uname
}

@test "a call that fails for ever: no hang, and no busy loop" {
	export FAULTS_SLACK=20
	injected --for-ever --only="flock: by a link" --call=newfstatat,fstat,stat,lstat
	injected --for-ever --only="flock: --detach, waits" --call=accept4,poll,ppoll
	injected --for-ever --only="flock: waits" --call=fcntl,timer_settime,timer_create
	injected --for-ever --only="flock: --run-timeout" --call=rt_sigtimedwait,waitid
	injected --for-ever --only="symlink: stale" --call=kill,newfstatat
	injected --for-ever --only="excl: waits" --call=poll,flock,clock_nanosleep
}

@test "--who: nothing that cannot be read makes a held lock a free one" {
	tracing
	strace -k -o trace true 2>strace.err || skip "strace shows no stacks here: $(tail -1 strace.err)"
	# in a PID namespace there are few processes to look at
	alone="unshare --pid --fork --kill-child --mount-proc"
	$alone true 2>/dev/null || alone=
	injected --places --error=EIO --only=": --who, held"
}

@test "--hold whose placeholder cannot start: one line, the lock is free" {
	tracing
	mkfifo open
	exec {open}<>open
	refused 71 "cannot start a process" strace -f -qq -o trace -e trace=clone,fork,vfork \
		-e inject=clone,fork,vfork:error=EAGAIN:when=1 "$SEMLOCK" --hold L <&"$open"
	expect_free L
}

# The file is looked for a thousand times, as no name may show while it is renamed: the last look is as good as the first.
@test "-m rename --init: an interrupted lookup is not a failure to open" {
	tracing
	expect_status 0 strace -f -qq -o trace -P L -P L.held -e trace=openat,?open \
		-e inject=openat,?open:error=EINTR:when=1000 "$SEMLOCK" -m rename --init L true
	grep -q "EINTR.*INJECTED" trace
	expect_status 0 "$SEMLOCK" -n -m rename L true
}

# The process at the barrier counts as ended before it is let go.
@test "--hold with an unreadable barrier: one line, and not a KILL's status" {
	tracing
	mkfifo open
	exec {open}<>open
	# shellcheck disable=SC2016 # the inner shell's
	SEMLOCK_CRASH=lock.taken:stop start hold sh -c 'exec "$0" -m flock --hold L <open' "$CRASHABLE_SEMLOCK"
	"$PROBE" state "${PID[hold]}" T
	start tracer strace -f -qq -o trace -p "${PID[hold]}" -e trace=read,write \
		-e inject=write:error=EPIPE:when=1 -e inject=read:error=ENOSYS:when=1
	eventually grep -q "^TracerPid:.[1-9]" "/proc/${PID[hold]}/status"
	kill -CONT "${PID[hold]}"
	ended hold 71
	grep -q "cannot fork the process that holds it" hold.err && [ "$(wc -l <hold.err)" -eq 1 ] || complain "$(cat hold.err)"
	[ "$(grep -c INJECTED trace)" -ge 3 ] || complain "$(cat trace)"
	expect_free L
}

@test "--hold that may not examine its input reports that, not an end of it" {
	tracing
	mkfifo open
	exec {open}<>open
	refused 71 "cannot examine standard input" strace -f -qq -o trace -P "$PWD/open" -e trace=%%stat \
		-e inject=%%stat:error=EPERM "$SEMLOCK" --hold L <&"$open"
	[ ! -e L ] # refused before the lock is opened
}

@test "--hold that may not poll or read its input: a line, 71, and a release" {
	local refusing="strace -f -qq -o trace -P $PWD/open -e trace=poll,ppoll,read"
	tracing
	mkfifo open
	exec {open}<>open
	# shellcheck disable=SC2086 # a list; the first one of each process asks whether the input has ended already
	expect_status 71 $refusing -e inject=poll,ppoll:error=EPERM:when=2 "$SEMLOCK" --hold L <&"$open"
	[[ $out == OK && $err == "semlock: --hold: cannot wait for the end of standard input: "* ]]
	expect_free L
	echo >&"$open"
	# shellcheck disable=SC2086 # a list
	expect_status 71 $refusing -e inject=read:error=EPERM "$SEMLOCK" --hold L <&"$open"
	[[ $out == OK && $err == "semlock: --hold: cannot read standard input: "* ]]
	expect_free L
}
