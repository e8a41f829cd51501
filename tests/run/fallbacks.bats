#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# File systems that cannot do what most can, and say so by their calls; and kernels, or the filters of containers,
# that refuse newer calls.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}
FAILING=(
	"lockdir.tmpfile:fail=95"
	"plainfile.linkat:fail=2"
	"lockdir.tmpfile:fail=21 plainfile.link:fail=1"
	"lockdir.tmpfile:fail=95 plainfile.link:fail=95 publish.rename:fail=22"
	"file_system.shared:fail=5"
	"file_system.shared:fail=5 lockdir.tmpfile:fail=95"
)

works() {
	echo "$1 with ${SEMLOCK_CRASH-}:"
	hold_lock -m "$1" l
	expect_status 1 "$SEMLOCK" -n -m "$1" l true
	expect_status 1 "$CRASHABLE_SEMLOCK" -n -m "$1" l true
	kill -KILL "${PID[holder]}"
	ended holder 137
	expect_status 1 env -u SEMLOCK_CRASH "$SEMLOCK" -n -m "$1" l true
	kill -KILL "${COMMAND[holder]}"
	"$PROBE" gone "${COMMAND[holder]}"
	expect_status 0 env -u SEMLOCK_CRASH "$SEMLOCK" -n -m "$1" l true
	expect_status 0 "$CRASHABLE_SEMLOCK" -m "$1" l true
	rm -f room ./*.up ./*.down ./*.out ./*.err
	often 80
	expect_status 0 "$PROBE" storm "$often" 8 "$CRASHABLE_SEMLOCK" -m "$1" l "$PROBE" inside room 20
	expect_out "0 x $often"
	expect_status 0 "$PROBE" verdict room $((20 * often))
	left=$(find . -mindepth 1 -maxdepth 1 -printf '%f\n' | grep -vxE 'bin|\.out|\.err|room' || true)
	[ -z "$left" ] || [ "$left $1" = "l rename" ] || complain "left: $left"
}

@test "no O_TMPFILE, /proc, hard links or RENAME_NOREPLACE, and not local" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	for failing in "${FAILING[@]}"; do
		export SEMLOCK_CRASH=$failing
		for method in excl link; do works $method; done
	done
}

@test "a hard link to what a waiter has made, as a backup makes it, is no lock" {
	for method in excl link; do
		hold_lock -m $method l
		SEMLOCK_CRASH="lockdir.tmpfile:fail=95 publish.flocked:stop" start waiter "$CRASHABLE_SEMLOCK" -m $method l touch ran
		"$PROBE" state "${PID[waiter]}" T
		ln .l.semlock.* backup
		kill -CONT "${PID[waiter]}"
		"$PROBE" blocked "${PID[waiter]}"
		[ ! -e ran ]
		let_go
		ended waiter 0
		rm ran backup ./*.up ./*.down
	done
}

@test "a taker that cannot flock its own file removes it, and no other's" {
	for other in none file; do
		SEMLOCK_CRASH="lockdir.tmpfile:fail=95 plainfile.link:fail=1 publish.rename:fail=22 plainfile.empty:stop" \
			start maker "$CRASHABLE_SEMLOCK" -m excl l true
		"$PROBE" state "${PID[maker]}" T
		hold_as keeper -m flock l # the inode, whatever name it has
		[ $other = none ] || { mv l aside && echo 1 >l; }
		kill -CONT "${PID[maker]}"
		ended maker 73
		if [ $other = none ]; then [ ! -e l ]; else [ "$(cat l)" = 1 ]; fi
		let_go keeper
		rm -f l aside ./*.up ./*.down
	done
}

@test "a taker whose own directory is removed leaves a new one alone" {
	for other in semlock script; do
		SEMLOCK_CRASH="publish.rename:fail=22 mkdir.empty:stop" start maker "$CRASHABLE_SEMLOCK" -m mkdir l true
		"$PROBE" state "${PID[maker]}" T
		rmdir l
		if [ $other = semlock ]; then hold_as keeper -m mkdir l; else mkdir l && echo "$$" >l/pid; fi
		kill -CONT "${PID[maker]}"
		ended maker 73
		expect_status 1 "$SEMLOCK" -n -m mkdir l touch ran
		if [ $other = semlock ]; then let_go keeper; else rm l/pid; fi
		rm -rf l ./*.up ./*.down
	done
	[ ! -e ran ]
}

@test "a file's mode cannot be set: 73; a lock made of files leaves no file" {
	local crashable=$CRASHABLE_SEMLOCK method
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	under_valgrind && skip "valgrind cannot work under strace"
	export SEMLOCK_CRASH="lockdir.tmpfile:fail=95 plainfile.link:fail=95 publish.rename:fail=22"
	for method in excl mkdir; do # the first call is for the file that could not be renamed
		refused 73 "Input/output error" strace -qq -o /dev/null -e inject=/^fchmod:error=EIO:when=2 \
			"$crashable" --mode=600 -n -m $method l touch ran
		[ -z "$(find . -name 'l' -o -name '.l*')" ]
	done
	refused 73 "cannot set the mode: Input/output error" strace -qq -o /dev/null -e inject=/^fchmod:error=EIO \
		"$SEMLOCK" --mode=600 -n l touch ran
	[ ! -e ran ]
}

@test "mkdir on a full disk: a lock is released, and a dead one taken over" {
	refusing ENOSPC renameat
	expect_status 0 "$SEMLOCK" -m mkdir l test -d l
	[ -z "$(find . -name 'l' -o -name '.l*')" ]
	expect_status 137 "$(readlink -f bin/semlock)" -m mkdir l sh -c 'kill -KILL $PPID $$'
	expect_status 0 "$SEMLOCK" -w 60 -m mkdir l test -d l
	[ -z "$(find . -name 'l' -o -name '.l*')" ]
}

@test "mkdir without renaming without replacing" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	export SEMLOCK_CRASH=publish.rename:fail=22
	works mkdir
}

@test "rename without renaming without replacing" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	"$SEMLOCK" -m rename --init l true
	export SEMLOCK_CRASH=rename.rename:fail=22
	works rename
	: >l.held
	refused 66 "two lock files" "$SEMLOCK" -m rename l true
}

@test "rename where its file cannot be flocked fails with 69, leaves nothing" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	export SEMLOCK_CRASH=rename.flock:fail=37
	for options in "" -n "-w 5"; do
		# shellcheck disable=SC2086 # a list of words
		refused 69 "use -m link or excl" "$SEMLOCK" $options -m rename --init l touch ran
		[ ! -e l ]
		: >l
		# shellcheck disable=SC2086
		refused 69 "No locks available" "$SEMLOCK" $options -m rename l touch ran
		rm l
	done
	[ ! -e ran ]
	[ -z "$(find . -name '*l.*' -o -name '.semlock*')" ]
}

@test "a lock file that cannot be written: 73, and nothing is left" {
	export SEMLOCK_CRASH=plainfile.write:fail=28
	refused 73 "No space" "$CRASHABLE_SEMLOCK" -m excl l touch ran
	refused 73 "No space" "$CRASHABLE_SEMLOCK" -m link l touch ran
	refused 73 "No space" "$CRASHABLE_SEMLOCK" -m mkdir l touch ran
	unset SEMLOCK_CRASH
	refused 73 "No space" prlimit --fsize=100 "$SEMLOCK" -m mkdir l touch ran # half a record
	[ -z "$(find . -name '*l' -o -name '.l*')" ] && [ ! -e ran ]
}

@test "a read-only and a full file system: 73" {
	root_only "mounts"
	mkdir full readonly
	mount -t tmpfs -o size=4k,nr_inodes=1 none full || skip "cannot mount here"
	mount -t tmpfs -o ro none readonly
	for method in excl link mkdir symlink; do
		refused 73 full "$SEMLOCK" -m $method full/l touch ran
		refused 73 readonly "$SEMLOCK" -m $method readonly/l touch ran
	done
	umount full readonly
	[ ! -e ran ]
}

NEWER=statx,kcmp,pidfd_open,pidfd_send_signal,getrandom,close_range,inotify_init1

# refusing ERROR CALLS: from now on $SEMLOCK is a semlock whose CALLS fail with ERROR.
refusing() {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	under_valgrind && skip "valgrind cannot work under strace"
	printf '#!/bin/sh\nexec strace -qqf -o /dev/null -e "inject=%s:error=%s" "%s" "$@"\n' "$2" "$1" "$(readlink -f bin/semlock)" >refusing
	chmod +x refusing
	SEMLOCK=$PWD/refusing
}

@test "without newer calls each method excludes, waits and releases" {
	local whole=$SEMLOCK
	"$SEMLOCK" -m rename --init token true
	for error in ENOSYS EPERM; do
		calls=$NEWER
		[ $error = EPERM ] || calls=$calls,renameat2 # of renameat2, EPERM may be the directory's own word
		for method in flock ofd posix excl link mkdir symlink rename; do
			lock=l
			[ $method != rename ] || lock=token
			SEMLOCK=$whole
			hold_lock -m $method "$lock"
			refusing $error $calls
			expect_status 1 "$SEMLOCK" -n -m $method "$lock" true
			expect_status 1 "$SEMLOCK" --who -m $method "$lock"
			grep -q "^held *${COMMAND[holder]} " .out || complain "$error, $method: $out"
			start waiter "$SEMLOCK" -m $method "$lock" touch ran
			until pid=$(pgrep -P "${PID[waiter]}" semlock); do # strace's child, once it is semlock
				kill -0 "${PID[waiter]}" || complain "$error, $method: $(cat waiter.err)" || return
				"$PROBE" pause 5
			done
			"$PROBE" blocked "$pid"
			[ ! -e ran ]
			let_go
			ended waiter 0
			expect_status 3 "$SEMLOCK" -m $method "$lock" sh -c "[ -e ran ] && ! '$whole' -n -m $method $lock true && exit 3"
			rm -rf ran l holder.up holder.down
		done
	done
}

@test "a waiter that makes its queue too late joins the one that exists" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	local denied=(strace -D -qq -o trace -e inject=/^readlink:error=ENOENT -e)
	hold_lock l
	fifos first
	start late "${denied[@]}" inject=linkat:error=ENOENT:signal=STOP "$SEMLOCK" --queue-max=2 l touch ran
	"$PROBE" state "${PID[late]}" Tt
	start first "${denied[@]}" inject=linkat:error=ENOENT "$SEMLOCK" l "$PROBE" hold first.up first.down
	"$PROBE" blocked "${PID[first]}"
	kill -CONT "${PID[late]}"
	"$PROBE" blocked "${PID[late]}"
	let_go
	ready first
	[ ! -e ran ]
	let_go first
	ended late 0
}

@test "without pidfds --toggle stops nothing; limits and --hold work" {
	mkfifo never
	hold_as on l
	for error in ENOSYS EPERM; do
		refusing $error pidfd_open,pidfd_send_signal
		capture "$SEMLOCK" --toggle l touch ran
		[ "$status" -eq 69 ] || [ "$error $status" = "EPERM 77" ] || complain "$error: $status, $err"
		kill -0 "${COMMAND[on]}"
		expect_status 124 "$SEMLOCK" --run-timeout .1 other sleep 60
		expect_status 76 "$SEMLOCK" -m mkdir --on-lost=term d sh -c 'rm -r d; read -r line <>never; touch ran'
		: >.out
		expect_status 0 "$SEMLOCK" --hold h < <(until_ok)
		expect_out OK
	done
	[ ! -e ran ]
}

@test "without pidfds a killed semlock still ends all its command started" {
	for error in ENOSYS EPERM; do
		rm -f child
		refusing $error pidfd_open,pidfd_send_signal
		start traced "$SEMLOCK" -o l sh -c 'sleep 1000 & echo $! >new; mv new child; wait'
		eventually [ -e child ]
		kill -KILL "$(pgrep -P "${PID[traced]}" semlock)"
		"$PROBE" gone "$(cat child)" || complain "$error"
	done
}

@test "without close_range a helper inherits none of the caller's descriptors" {
	mkdir helpers
	printf '#!/bin/sh\nls -l /proc/$$/fd >fds\nexit 1\n' >helpers/semlock-locksmith-demo
	chmod +x helpers/semlock-locksmith-demo
	for error in ENOSYS EPERM; do
		refusing $error close_range
		SEMLOCK_LOCKSMITH_DIR=$PWD/helpers capture "$SEMLOCK" -n demo://host/l true 9>theirs
		[ -s fds ]
		! grep theirs fds || complain "$error"
		rm fds
	done
}

@test "without kcmp semlock and its command count as one holder" {
	hold_lock l
	for error in ENOSYS EPERM; do
		refusing $error kcmp
		expect_status 1 "$SEMLOCK" --who l
		[ "$(grep -c "^held" .out)" -eq 1 ] || complain "$error: $out"
	done
	let_go
}

@test "without waitid the command's end is seen, and signals are passed on" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	under_valgrind && skip "valgrind cannot work under strace"
	for way in "" -o "-m excl" "-m symlink" "--run-timeout 60"; do
		for failure in EINTR:when=1 EINTR:when=2 EPERM ENOSYS; do
			# shellcheck disable=SC2086 # words
			expect_status 5 timeout "$PATIENCE" strace -f -qq -o /dev/null -e trace=waitid -e inject=waitid:error=$failure \
				"$SEMLOCK" $way l sh -c 'exit 5'
			# shellcheck disable=SC2086 # words
			expect_status 0 "$SEMLOCK" -n $way l true || complain "$way: $failure"
			fifos w
			# shellcheck disable=SC2086 # words
			start w strace -f -qq -o /dev/null -e trace=waitid -e inject=waitid:error=$failure \
				"$SEMLOCK" $way l "$PROBE" signals w.up w.down
			ready w
			kill -TERM "$(pgrep -P "${PID[w]}" semlock)"
			reports w TERM
			release w
			ended w 0
			rm -rf l w.up w.down
		done
	done
}

@test "without waitid a lost lock is noticed, and its command is signalled" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	under_valgrind && skip "valgrind cannot work under strace"
	for failure in EINTR:when=1 EPERM ENOSYS; do
		fifos w
		start w strace -f -qq -o /dev/null -e trace=waitid -e inject=waitid:error=$failure \
			"$SEMLOCK" -m excl --on-lost=TERM l "$PROBE" signals w.up w.down
		ready w
		rm l
		reports w TERM
		release w
		ended w 76
		rm w.up w.down
	done
}

@test "without OFD locks there are no tickets, and no queue in shared memory" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hold_lock l
	expect_status 1 strace -f -qq -o trace -e trace=fcntl,linkat,openat -e inject=fcntl:error=EINVAL "$SEMLOCK" -w .3 l true
	grep -qE '(linkat|O_CREAT).*= [0-9]' trace && grep -q '/dev/shm/semlock' trace || complain "no queue was made: $(cat trace)"
	left=$(grep -oE '/dev/shm/semlock[^"]*' trace | sort -u)
	for name in $left; do [ ! -e "$name" ] || complain "$name is left"; done
	let_go
}

@test "without /proc, -m rename --init makes its file" {
	[ -z "${SANITIZED-}" ] || skip "AddressSanitizer reads its options in /proc"
	namespaces --mount
	expect_status 0 unshare --mount sh -c 'umount -l /proc && exec "$0" -m rename --init l true' "$SEMLOCK"
	[ -f l ]
	[ "$(find . -name '.l.*' | wc -l)" -eq 0 ] || complain "$(ls -A)"
	expect_status 0 "$SEMLOCK" -n -m rename l true
}
