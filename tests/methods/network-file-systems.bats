#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What cannot be promised if other machines use the same files.  The file system is a local one here; a crash point,
# or a changed mountinfo, makes semlock take it for a network file system.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

tidy() {
	if mountpoint -q on; then umount -l on; fi
}

# mounted_as TYPE OPTIONS CMD...: runs CMD, for which /proc says that on/ is mounted with TYPE and OPTIONS.
mounted_as() {
	local type=$1 options=$2
	shift 2
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount sh -c '
		sed "s|\( /[^ ]*/on \)\([^ ]*\)\(.*\) - [^ ]* \([^ ]*\) .*|\1\2\3 - $0 \4 $1|" \
			/proc/self/mountinfo >mountinfo &&
		printf "nodev\t%s\n" "$0" | cat /proc/filesystems - >filesystems &&
		mount --bind filesystems /proc/filesystems && mount --bind mountinfo /proc/$$/mountinfo || exit
		shift
		exec "$@"' "$type" "$options" "$@"
}

# mount_on TYPE: makes on/, which mounted_as can call a mount of TYPE; if mounting fails, the test is skipped.
mount_on() {
	namespaces --mount
	mkdir on
	mount -t tmpfs none on 2>mount.err || skip "cannot mount tmpfs here: $(head -1 mount.err)"
	mounted_as "$1" rw true || skip "nothing can be mounted over /proc here"
}

@test "9p over a local file system: another machine's bare PID is not dead" {
	mount_on 9p
	sh -c 'echo $$' >on/l
	expect_status 1 mounted_as 9p rw,trans=virtio "$SEMLOCK" -n -m link on/l true
	expect_status 0 mounted_as tmpfs rw "$SEMLOCK" -n -m link on/l true
}

@test "a kernel lock that others cannot see (9p, virtiofs, sshfs) gives 69" {
	mount_on 9p
	: >on/l
	for type in 9p virtiofs fuse.sshfs; do
		[ $type = 9p ] || export SEMLOCK_CRASH=file_system.shared:fail=1
		for method in flock ofd; do
			refused 69 "on $type, other machines do not see a kernel lock: use -m mkdir" \
				mounted_as $type rw "$CRASHABLE_SEMLOCK" -m $method on/l touch ran
		done
		refused 69 "on $type, " mounted_as $type rw sh -c 'exec 7<>on/l; exec "$0" 7' "$CRASHABLE_SEMLOCK"
		expect_status 0 mounted_as $type rw "$CRASHABLE_SEMLOCK" -m mkdir on/m true
	done
	expect_status 0 mounted_as fuse.other rw "$CRASHABLE_SEMLOCK" on/l true
	[ ! -e ran ]
}

on_nfs() {
	SEMLOCK_CRASH="file_system.nfs:fail=1 ${SEMLOCK_CRASH-}" "$@"
}

@test "--rm fails with 69 where others may still see the file, which stays" {
	for method in flock ofd posix; do
		for elsewhere in nfs shared; do
			SEMLOCK_CRASH=file_system.$elsewhere:fail=1 refused 69 --rm \
				"$CRASHABLE_SEMLOCK" --rm -m $method l touch ran
		done
	done
	[ -e l ]
	[ ! -e ran ]
	expect_status 0 "$CRASHABLE_SEMLOCK" --rm l true
	[ ! -e l ]
}

@test "a directory on a network file system is refused with 65" {
	mkdir d
	on_nfs refused 65 "lock a file" "$CRASHABLE_SEMLOCK" d touch ran
	exec 7<d
	on_nfs refused 65 "lock a file" "$CRASHABLE_SEMLOCK" 7
	exec 7<&-
	[ ! -e ran ]
	expect_status 0 "$CRASHABLE_SEMLOCK" d true
}

@test "flock's slots on a network file system are refused with 69; ofd's work" {
	on_nfs refused 69 "-m ofd" "$CRASHABLE_SEMLOCK" -j 3 l touch ran
	[ ! -e ran ]
	on_nfs expect_status 0 "$CRASHABLE_SEMLOCK" -j 3 -m ofd l true
	on_nfs expect_status 0 "$CRASHABLE_SEMLOCK" l true
}

@test "mkdir with --stale fails with 69 where other machines could take over" {
	for elsewhere in nfs shared; do
		export SEMLOCK_CRASH=file_system.$elsewhere:fail=1
		refused 69 "-m excl or link" "$CRASHABLE_SEMLOCK" -m mkdir --stale 5 l touch ran
		expect_status 0 "$CRASHABLE_SEMLOCK" -m mkdir l true
	done
	unset SEMLOCK_CRASH
	[ ! -e ran ]
	expect_status 0 "$CRASHABLE_SEMLOCK" -m mkdir --stale 5 l true
}

@test "rename fails with 69 where others could use its file; nothing runs" {
	: >token
	for elsewhere in nfs shared; do
		export SEMLOCK_CRASH=file_system.$elsewhere:fail=1
		for options in "" -n "-w 5" --init "--stale 5"; do
			# shellcheck disable=SC2086 # a list of words
			refused 69 "use -m link or excl" "$CRASHABLE_SEMLOCK" -m rename $options l touch ran
		done
		refused 69 "use -m link or excl" "$CRASHABLE_SEMLOCK" -n -m rename token touch ran
		refused 69 "use -m link or excl" "$CRASHABLE_SEMLOCK" --who -m rename token
	done
	unset SEMLOCK_CRASH
	[ ! -e ran ]
	[ "$(find . -name '*l*' ! -path '*/bin*' ! -name '*.*')" = "" ]
	expect_status 0 "$CRASHABLE_SEMLOCK" -n -m rename token true
}

@test "--stale is refused where mount options keep flock(2) local: 69" {
	mount_on nfs
	export SEMLOCK_CRASH=file_system.nfs:fail=1
	for method in excl link symlink; do
		for options in nfs:local_lock=all nfs:local_lock=flock cifs:nobrl; do
			refused 69 "hides from other machines the flock" mounted_as "${options%:*}" "rw,${options#*:}" \
				"$CRASHABLE_SEMLOCK" -m $method --stale 5 on/l touch ran
		done
		expect_status 0 mounted_as nfs4 rw,local_lock=none "$CRASHABLE_SEMLOCK" -m $method --stale 5 on/l true
	done
	[ ! -e ran ]
}

# power STOP|CONT: stops or continues the holder and its command, as on a machine without power
power() {
	kill -"$1" "${PID[holder]}" "${COMMAND[holder]}"
}

@test "NFS: one file under two names of -f is not another machine's lock" {
	export SEMLOCK_CRASH=file_system.nfs:fail=1
	for method in flock ofd posix; do
		for words in "-f l l" "-f l -s l"; do
			# shellcheck disable=SC2086 # words
			expect_status 0 "$CRASHABLE_SEMLOCK" -m $method $words true
		done
	done
}

@test "NFS 3: --stale takes over from a machine without power, by age alone" {
	without_leak_check # of a process that gets a SIGCONT
	SEMLOCK=$CRASHABLE_SEMLOCK
	export SEMLOCK_CRASH=file_system.nfs:fail=1
	hold_lock -m link --stale .2 l
	expect_status 1 "$SEMLOCK" -w 1 -m link --stale 30 l touch ran
	expect_status 1 "$SEMLOCK" -n -m link --stale 30 l touch ran
	power STOP
	expect_status 1 "$SEMLOCK" -n -m link --stale 10m l touch ran
	expect_status 0 "$SEMLOCK" -w 60 -m link --stale .2 l touch ran
	power CONT
	release holder
	ended holder 76
	[ ! -e l ]
	[ -z "$(find . -name '.l*')" ]
}

@test "NFS 3: a holder leaves its lock to a stopped semlock that removes it" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	export SEMLOCK_CRASH=file_system.nfs:fail=1
	hold_lock -m link --stale 1h l
	touch -d '1 hour ago' l
	SEMLOCK_CRASH="$SEMLOCK_CRASH takeover.compared:stop" start breaker "$SEMLOCK" -m link --stale 30m l touch ran
	"$PROBE" state "${PID[breaker]}" T
	release holder
	ended holder 0
	[ "$(grep -c '^semlock: l: cannot release the lock' holder.err)" = 1 ]
	expect_status 1 "$SEMLOCK" -n -m link l touch second
	kill -CONT "${PID[breaker]}"
	ended breaker 0
	[ -e ran ]
	[ ! -e second ]
	[ ! -e l ]
}

@test "NFS 3: a waiter with --stale sleeps while --min-hold keeps the lock" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	export SEMLOCK_CRASH=file_system.nfs:fail=1
	for method in excl symlink; do
		start $method "$CRASHABLE_SEMLOCK" --stale 1h --min-hold 1h -m $method $method sh -c 'echo $$ >command'
		until [ -s command ]; do kill -0 "${PID[$method]}"; done
		"$PROBE" gone "$(cat command)"
		expect_status 1 strace -f -o trace "$CRASHABLE_SEMLOCK" -w .5 --stale 1h -m $method $method touch ran
		[ "$(grep -c EEXIST trace)" -lt 50 ] || complain "the waiter does not sleep"
		kill "${PID[$method]}"
		ended $method 0
		rm command
	done
	[ ! -e ran ]
}

@test "the server, not a cache, gives a lock's age; else nothing is taken over" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	export SEMLOCK_CRASH=file_system.nfs:fail=1
	for method in excl link symlink; do
		if [ $method = symlink ]; then ln -s "4711:5:x:1:1@elsewhere" l; else echo 4711 >l; fi
		touch -h -d '1 hour ago' l
		expect_status 1 strace -f -o trace -e inject=statx:error=ENOSYS "$CRASHABLE_SEMLOCK" -n -m $method --stale 30m l touch ran
		grep -q 'statx(.*AT_STATX_FORCE_SYNC' trace
		expect_status 0 "$CRASHABLE_SEMLOCK" -n -m $method --stale 30m l true
	done
	[ ! -e ran ]
}

@test "after taking a kernel lock on NFS, the directory is read, then the name" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	for method in flock ofd; do
		SEMLOCK_CRASH=file_system.nfs:fail=1 expect_status 0 strace -o trace "$CRASHABLE_SEMLOCK" -m $method l true
		sed -E '1,/^(flock|fcntl)\(.*(LOCK_EX|F_OFD_SETLK).* = 0/d; /"l", /q' trace | grep -q '^statx(.*AT_STATX_FORCE_SYNC'
		expect_status 0 strace -o trace "$CRASHABLE_SEMLOCK" -m $method l true
		if grep statx trace; then complain "a call more on a local file system"; fi
	done
}

@test "before a name on a network file system is removed, it is read anew" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	export SEMLOCK_CRASH=file_system.nfs:fail=1
	for method in excl link; do
		expect_status 0 strace -o trace "$CRASHABLE_SEMLOCK" -m $method l true
		sed '/^unlinkat(.*"l", 0)/q' trace | tail -5 | grep -q '^statx(.*AT_STATX_FORCE_SYNC'
	done
}

@test "a removed file's lingering name that cannot be opened is not ours (CIFS)" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	SEMLOCK_CRASH="lockdir.tmpfile:fail=95 publish.flocked:stop" \
		start taker strace -qq -o trace -P l -e inject=openat:error=ENOENT:when=3 "$CRASHABLE_SEMLOCK" -n -m excl l touch ran
	until grep -q 'stopped by SIGSTOP' trace 2>/dev/null; do kill -0 "${PID[taker]}"; done
	ln .l.semlock.* l
	kill -CONT "$(pgrep -P "${PID[taker]}" semlock)"
	ended taker 1
	grep -q 'linkat.*EEXIST' trace
	grep -q 'openat.*INJECTED' trace
	[ ! -e ran ]
}

@test "a flock held by another machine on CIFS (EACCES) is busy, not an error" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	on_nfs expect_status 1 strace -o trace -e inject=flock:error=EACCES "$CRASHABLE_SEMLOCK" -n l touch ran
	expect_status 65 strace -o trace -e inject=flock:error=EACCES "$CRASHABLE_SEMLOCK" -n l touch ran
	[ ! -e ran ]
}

@test "a kernel lock that the server gives away under a command exits with 76" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	export SEMLOCK_CRASH=file_system.nfs:fail=1
	hold_as first l
	hold_as second -m ofd l # on NFS this holder would wait: a flock locks the same bytes there
	release first
	ended first 76
	[ "$(cat first.err)" = "semlock: l: the lock was lost while the command ran" ]
	release second
	ended second 0
	for method in flock ofd posix; do
		for mode in -x -s; do expect_status 3 "$SEMLOCK" -m $method $mode l sh -c 'exit 3'; done
	done
	expect_status 3 "$SEMLOCK" -m ofd -j 2 l sh -c 'exit 3'
}

@test "a kernel lock whose descriptor the server refuses exits with 76" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	export SEMLOCK_CRASH=file_system.nfs:fail=1
	expect_status 76 strace -o trace -P "$PWD/l" -e inject=pread64:error=EIO "$CRASHABLE_SEMLOCK" l true
	grep -q 'F_SETFL, .*O_DIRECT' trace
	expect_status 0 strace -o trace -P "$PWD/l" "$CRASHABLE_SEMLOCK" l true
	unset SEMLOCK_CRASH
	expect_status 0 strace -o trace -P "$PWD/l" -e inject=pread64:error=EIO "$CRASHABLE_SEMLOCK" l true
}

@test "--who of a kernel lock held by another NFS machine: held, not free" {
	export SEMLOCK_CRASH=file_system.nfs:fail=1
	: >l
	expect_status 0 "$CRASHABLE_SEMLOCK" --who l
	expect_out "l: free"
	hold_lock -m ofd l # no flock: another machine's flock looks like this one
	expect_status 1 "$CRASHABLE_SEMLOCK" --who -m flock l
	[[ $out = "l: held on another machine, 0 waiting"* ]] || complain "$out"
	expect_status 1 "$CRASHABLE_SEMLOCK" --who --json -m flock l
	let_go
	expect_status 0 "$CRASHABLE_SEMLOCK" --who l
}

@test "excl and link fail with 69 where a linked file is another file (sshfs)" {
	export SEMLOCK_CRASH="file_system.shared:fail=1 publish.identity:fail=1"
	for method in excl link; do
		refused 69 "-m mkdir or symlink" "$CRASHABLE_SEMLOCK" -m $method l touch ran
		[ -z "$(find . -name '*l*' ! -path '*/bin*')" ]
	done
	[ ! -e ran ]
	for method in mkdir symlink; do expect_status 0 "$CRASHABLE_SEMLOCK" -m $method l true; done
}

@test "on an NFS server, a client's lock with a PID dead here is not taken over" {
	for method in excl link; do
		sh -c 'echo $$' >l
		hold_lock -m ofd l # a client's flock looks like this one on the server
		expect_status 1 "$SEMLOCK" -n -m $method l touch ran
		let_go
		expect_status 0 "$SEMLOCK" -n -m $method l true
		[ ! -e ran ]
		rm -f ./*.up ./*.down
	done
}
