#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --who without LOCK: every lock that a process of this machine has open.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

tidy() {
	rm -f "$(name_directory)/bats.$$"
}

@test "kernel locks, slots, locks made of files, and their waiters" {
	"$SEMLOCK" --init -m rename rename true
	for method in flock ofd posix excl link mkdir symlink rename; do
		hold_as $method -m $method $method
	done
	hold_as slot -j 2 slots
	hold_as apart -o apart
	hold_as two -f also also-too
	queue_as waiter flock
	start behind "$SEMLOCK" -m symlink symlink true
	eventually has_two symlink
	expect_status 1 "$SEMLOCK" --who
	for method in ofd posix excl link mkdir rename; do
		shows "$PWD/$method" "${COMMAND[$method]}" 0
	done
	shows "$PWD/flock" "${COMMAND[flock]}" 1 "${PID[waiter]}"
	shows "$PWD/symlink" "${COMMAND[symlink]}" 1 "${PID[behind]}"
	shows "$PWD/slots" "${COMMAND[slot]}" 0
	shows "$PWD/apart" "${COMMAND[apart]}" 0
	shows "$PWD/also" "${COMMAND[two]}" 0
	shows "$PWD/also-too" "${COMMAND[two]}" 0
}

# has_two LOCK: LOCK has a holder, and one waiter
has_two() {
	"$SEMLOCK" --who | grep -q "^$PWD/$1: held, 1 waiting"
}

@test "-F, script descriptors, --hold, orphaned commands: each with its waiter" {
	held_by_four
	hold_as link-orphan -m excl link-orphan
	kill -KILL "${PID[link-orphan]}"
	ended link-orphan 137
	expect_status 1 "$SEMLOCK" --who
	shows_four 0
	wait_for_four
	start waits-excl "$SEMLOCK" -m excl link-orphan true
	eventually has_two link-orphan
	expect_status 1 "$SEMLOCK" --who
	shows_four 1
	shows "$PWD/link-orphan" "${COMMAND[link-orphan]}" 1 "${PID[waits-excl]}"
	exec 9>&-
}

@test "--name, --fd, and a lock of another directory" {
	mkdir elsewhere
	hold_as named --name=bats.$$
	exec 8>of-fd
	hold_as descriptor --fd=8
	exec 8>&-
	fifos far
	start far sh -c 'cd elsewhere && exec "$0" far.lock "$1" hold ../far.up ../far.down' "$SEMLOCK" "$PROBE"
	ready far
	expect_status 1 "$SEMLOCK" --who
	shows "$(name_directory)/bats.$$" "${COMMAND[named]}" 0
	shows "$PWD/of-fd" "${COMMAND[descriptor]}" 0
	shows "$PWD/elsewhere/far.lock" "${COMMAND[far]}" 0
}

@test "one lock by several names and methods is shown once, with all holders" {
	mkdir sub
	ln -s ../l sub/link
	hold_as one -m ofd "sub/../l"
	hold_as two sub/link
	queue_as waiter ./l
	expect_status 1 "$SEMLOCK" --who --json
	[ "$(grep -c "^.{\"lock\": \"$PWD/" .out)" -eq 1 ] || complain "$out"
	jq -r '.[] | select(.lock | startswith(env.PWD)) | .holders[].pid, .waiters[].pid' <.out | sort >pids
	printf '%s\n' "${COMMAND[one]}" "${COMMAND[two]}" "${PID[waiter]}" | sort | diff - pids
}

@test "a lock held in a container is shown by a name that leads there" {
	namespaces --mount
	mkdir mnt
	for method in flock excl symlink; do
		fifos $method
		start $method unshare --mount sh -c 'mount -t tmpfs none mnt && exec "$@"' sh \
			"$SEMLOCK" -m $method mnt/l "$PROBE" hold $method.up $method.down
		ready $method
	done
	expect_status 1 "$SEMLOCK" --who
	for method in flock excl symlink; do
		shows "/proc/${PID[$method]}/root$PWD/mnt/l" "${COMMAND[$method]}" 0
	done
}

@test "a lock in a mount that no path leads to is shown by its descriptor" {
	namespaces --mount
	mkdir room
	fifos holder
	start holder unshare --mount bash -c 'mount -t tmpfs none room && exec 8>room/l && umount -l room && "$0" 8 &&
		exec "$1" hold holder.up holder.down' "$SEMLOCK" "$PROBE"
	ready holder
	expect_status 1 "$SEMLOCK" --who
	shows "/proc/${PID[holder]}/fd/8" "${PID[holder]}" 0
	let_go holder
}

@test "a lock whose file was deleted is shown by descriptor and former name" {
	hold_as holder l
	rm l
	hold_as second l # two hold it: that is what is to be seen
	expect_status 1 "$SEMLOCK" --who
	shows "$PWD/l" "${COMMAND[second]}" 0
	grep -A2 -B1 -Fx "     deleted: $PWD/l (a new file of that name is another lock)" .out >deleted || complain "$out" || return
	grep -Eqx "/proc/[0-9]+/fd/[0-9]+: held, 0 waiting" deleted || complain "$out" || return
	grep -q "^held  *${COMMAND[holder]} " deleted || complain "$out" || return
	expect_status 1 "$SEMLOCK" --who --json
	jq -e --arg path "$PWD/l" '[.[] | select(.deleted == $path)] | length == 1' <.out >/dev/null || complain "$out"
	jq -e --arg path "$PWD/l" '.[] | select(.lock == $path) | .deleted == null' <.out >/dev/null || complain "$out"
}

@test "a file in the root directory" {
	root_only "makes a file there"
	BARE=/semlock-who.$$ # is removed after the test
	fifos far
	start far sh -c 'cd / && exec "$1" "${0#/}" "$2" hold "$3.up" "$3.down"' "$BARE" "$SEMLOCK" "$PROBE" "$PWD/far"
	ready far
	expect_status 1 "$SEMLOCK" --who
	cp .out shown
	let_go far # it does not work in the test's directory: no process ends it after the test
	mv shown .out
	shows "$BARE" "${COMMAND[far]}" 0
}

@test "a holder that is no semlock is seen through the semlock that waits" {
	fifos holder
	start holder flock theirs "$PROBE" hold holder.up holder.down
	ready holder
	queue_as waiter theirs
	expect_status 1 "$SEMLOCK" --who
	shows "$PWD/theirs" "${COMMAND[holder]}" 1 "${PID[waiter]}"
}

@test "a lock that no process holds is left out, even if its name exists" {
	hold_lock l
	mv l moved
	: >l
	capture "$SEMLOCK" --who
	[[ $out != *"$PWD/l: "* ]] || complain "$out"
	let_go
}

@test "of many locks, each process is searched once" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	for lock in l m n; do
		hold_as $lock $lock
	done
	queue_as waiter m
	expect_status 1 strace -qq -o trace -e trace=openat "$SEMLOCK" --who l m n
	shows m "${COMMAND[m]}" 1 "${PID[waiter]}"
	[ "$(grep -c "\"/proc/$$/fd\"" trace)" -eq 1 ] || complain "$(grep "/$$/" trace)"
}

@test "locks passed on while --who looks at others are shown as they are then" {
	mkdir helpers
	cat >helpers/semlock-locksmith-pause <<-'END'
		#!/bin/sh
		echo LOCKSMITH 2
		echo >who.up
		read -r end <who.down
	END
	chmod +x helpers/semlock-locksmith-pause
	for lock in flock ofd link mkdir; do
		hold_as $lock -m $lock $lock
	done
	fifos who
	start who env SEMLOCK_LOCKSMITH_DIR="$PWD/helpers" "$SEMLOCK" --who flock pause://server flock ofd link mkdir
	next_line who
	queue_as waiter flock
	for lock in ofd link mkdir; do
		let_go $lock
		hold_as new-$lock -m $lock $lock
	done
	echo >who.down
	ended who 1
	mv who.out .out
	out=$(<.out)
	for lock in ofd link mkdir; do
		shows $lock "${COMMAND[new-$lock]}" 0
	done
	[ "$(grep -c "^flock: held, 0 waiting" .out)" -eq 1 ] || complain "$out"
	[ "$(grep -A3 "^flock: held, 1 waiting" .out | grep -c " 1\. *${PID[waiter]} ")" -eq 1 ] || complain "$out"
}

@test "JSON is what --who LOCK prints" {
	hold_lock l
	queue_as waiter l
	expect_status 1 "$SEMLOCK" --who --json "$PWD/l"
	cp .out one
	expect_status 1 "$SEMLOCK" --who --json
	/usr/bin/python3 - one .out <<-'END'
		import json, sys
		def timeless(fields): # a start on the edge of a second is printed as one second or as the next
		    return {k: v is None if k in ("since", "started", "touched") else v for k, v in fields.items()}
		one, every = (json.load(open(name), object_hook=timeless) for name in sys.argv[1:])
		assert one[0] in every, (one, every)
	END
}

@test "nothing is held: 0, and no line" {
	namespaces -p -f --mount-proc
	expect_status 0 unshare -p -f --mount-proc "$SEMLOCK" --who
	expect_silent
	expect_status 0 unshare -p -f --mount-proc "$SEMLOCK" --who --json
	expect_out "[]"
}

@test "an ordinary user sees what can be seen, and a hint that there is more" {
	root_only "is another user"
	chmod 755 .
	hold_lock relative.lock
	mkfifo their.up their.down
	chmod 666 their.up their.down
	BARE=$(mktemp -d /tmp/semlock-who.XXXXXX) # the other user can look at this directory, unlike the test's own
	chmod 755 "$BARE"
	start their setpriv --reuid=54321 --regid=54321 --clear-groups "$SEMLOCK" -s "$BARE" "$PROBE" hold their.up their.down
	ready their
	capture setpriv --reuid=54321 --regid=54321 --clear-groups "$SEMLOCK" --who
	[ "$status" -eq 1 ]
	shows "$BARE" "${COMMAND[their]}" 0
	[[ $err == *"cannot be seen"* ]]
	[[ $out != *relative.lock* ]]
}

@test "an ordinary user to whom no other process is shown (hidepid) is told so" {
	namespaces --mount --pid --fork
	expect_status 0 unshare --mount --pid --fork sh -c '
		mount -t proc -o hidepid=2 none /proc && setpriv --reuid=54321 --regid=54321 --clear-groups "$0" --who' "$SEMLOCK"
	[[ $err == *"cannot be seen"* ]] || complain "$err"
}

@test "where /proc is missing, that is said, 69: no list without a lock" {
	[ -z "${SANITIZED-}" ] || skip "AddressSanitizer reads its options in /proc"
	namespaces --mount
	hold_as one l
	refused 69 "cannot read /proc/locks" unshare --mount sh -c 'umount -l /proc && exec "$0" --who' "$SEMLOCK"
	expect_status 69 unshare --mount sh -c 'umount -l /proc && exec "$0" --who --json' "$SEMLOCK"
	expect_out "[]"
}

@test "the queue of a lock is no lock" {
	hold_as one l
	queue_as waiter l
	expect_status 1 "$SEMLOCK" --who
	shows "$PWD/l" "${COMMAND[one]}" 1 "${PID[waiter]}"
	[ "$(grep -c "^/dev/shm/semlock-" .out)" -eq 0 ] || complain "$out"
}

# processor_time CMD...: sets $used, in milliseconds
processor_time() {
	local TIMEFORMAT='%3U %3S' times
	times=$({ time "$@" >.out 2>.err; } 2>&1) || true
	read -r user system <<<"${times//./}"
	used=$((10#$user + 10#$system))
}

# A hundred descriptors of a directory with 20,000 symbolic links, each of which looks like a lock.
@test "root's look is quick, and complete for others, beside a hostile user" {
	root_only "is another user"
	chmod 755 .
	BARE=$(mktemp -d /tmp/semlock-who.XXXXXX)
	chmod 755 "$BARE"
	mkdir "$BARE/many"
	ln -s /usr/bin/python3 "$BARE/semlock"
	cat >"$BARE/hostile.py" <<-'END'
		import os, sys, time
		kept = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(100)]
		open(sys.argv[2], "w").write("open\n")
		time.sleep(1000)
	END
	/usr/bin/python3 - "$BARE/many" <<-'END'
		import os, sys
		boot, pidns = open("/proc/sys/kernel/random/boot_id").read()[:13], os.stat("/proc/self/ns/pid").st_ino
		for i in range(20000):
		    os.symlink(f"1:1:{boot}:{pidns}:1@{os.uname().nodename}", f"{sys.argv[1]}/{i}")
	END
	mkfifo hostile.up
	chmod 666 hostile.up
	exec 7<>hostile.up
	start hostile setpriv --reuid=54321 --regid=54321 --clear-groups "$BARE/semlock" "$BARE/hostile.py" "$BARE/many" hostile.up
	read -r -u 7 _
	hold_as ours l
	hold_as symlink -m symlink "$BARE/symlink"
	touch "$BARE/theirs"
	mkfifo theirs.up theirs.down
	chmod 666 theirs.up theirs.down "$BARE/theirs"
	start theirs setpriv --reuid=54322 --regid=54322 --clear-groups "$SEMLOCK" "$BARE/theirs" "$PROBE" hold theirs.up theirs.down
	ready theirs
	processor_time "$SEMLOCK" --who
	[ "$used" -lt $((1000 * SLOWNESS)) ] || complain "$used ms of processor time" || return
	shows "$PWD/l" "${COMMAND[ours]}" 0
	shows "$BARE/symlink" "${COMMAND[symlink]}" 0
	shows "$BARE/theirs" "${COMMAND[theirs]}" 0
	grep -qx "semlock: some locks of user 54321 are left out: looking at all of them takes too long" .err || complain "$(cat .err)"
}

@test "-m goes with a LOCK" {
	refused 64 "-m" "$SEMLOCK" --who -m flock
}

# demo: locks on a server, by the helper in shell; $LOCKED is one.
demo() {
	mkdir helpers
	cp "$SOURCE/contrib/locksmith-demo" helpers/semlock-locksmith-demo
	chmod +x helpers/semlock-locksmith-demo
	export SEMLOCK_LOCKSMITH_DIR=$PWD/helpers
	LOCKED=demo://$PWD/locked
}

# is_shown REGEX: so --who without LOCK shows the lock.
is_shown() {
	"$SEMLOCK" --who >.out
	grep -A3 -F "$LOCKED: " .out | grep -qE "$1"
}

@test "on a server: the holder of --min-hold is known without timerfd" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	demo
	start holder strace -qq -o /dev/null -e inject=timerfd_create:error=ENOSYS "$SEMLOCK" --min-hold=1000 "$LOCKED" true
	eventually is_shown '^held .* semlock --min-hold=1000'
	capture "$SEMLOCK" --who
	[[ $out == *"$LOCKED: held, 0 waiting"* ]] || complain "$out"
}

@test "on a server: a waiter is not a holder while its observer starts" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	demo
	hold_as holder "$LOCKED"
	# That process has the name of its kind after its second call of prctl(2), and each WAIT of the helper begins another.
	start waiter strace -f -qq -o trace -e trace=prctl -e inject=prctl:delay_enter=500ms "$SEMLOCK" -v "$LOCKED" true
	eventually is_shown '^ *1[.] '
	for _ in {1..15}; do
		"$SEMLOCK" --who >.out || [ $? -eq 1 ]
		grep -qF "$LOCKED: held, 1 waiting" .out || complain "$(cat .out)" || return
	done
	let_go holder
	ended waiter 0
}

@test "on a server: a waiter that shows its wait is a waiter" {
	demo
	hold_as holder "$LOCKED"
	start waiter "$SEMLOCK" -v "$LOCKED" touch ran
	eventually grep -q 'waiting: held by' waiter.err
	"$SEMLOCK" --who >.out || [ $? -eq 1 ]
	grep -qF "$LOCKED: held, 1 waiting" .out || complain "$(cat .out)"
	grep -A3 -F "$LOCKED: " .out | grep -qE '^ *1\. .* exclusive .* touch ran$' || complain "$(cat .out)"
	let_go holder
	ended waiter 0
}
