#!/usr/bin/env bats
# --check: does a lock exclude here?  And how semlock reads /proc for the answer.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}
PARSE=${PARSE:-${PROBE%/*}/parse}

@test "a file on a local file system: every kernel method excludes, a line each" {
	expect_status 0 "$SEMLOCK" --check l
	for method in flock ofd posix; do grep -qE "^$method +excludes" .out; done
	# In a chroot, mountinfo does not say what "/" is mounted from.
	if findmnt -nT . >/dev/null; then grep -q "^on " .out; else grep -q "not known" .out; fi
	[ ! -e l ]
	[ -z "$(find . -name '.semlock*')" ]
}

@test "locks made of files: they exclude as well, and nothing is left of the trial" {
	expect_status 0 "$SEMLOCK" --check l
	for method in excl link mkdir rename symlink; do grep -qE "^$method +excludes" .out; done
	rm .out .err
	[ "$(ls -A)" = bin ]
}

@test "-m METHOD: that one alone, and its exit status" {
	for method in flock ofd posix excl link mkdir rename symlink; do
		expect_status 0 "$SEMLOCK" --check -m $method l
		[ "$(grep -cv '^on ' .out)" -eq 1 ]
		grep -qE "^$method +excludes" .out
	done
}

@test "-m METHOD, held: the lock is no trouble, and stays held" {
	for method in excl mkdir symlink; do
		hold_lock -m $method l
		expect_status 0 "$SEMLOCK" --check -m $method l
		expect_status 1 "$SEMLOCK" -n -m $method l true
		let_go
		rm ./*.up ./*.down
	done
}

@test "where two processes get in, --check says so: 69" {
	for method in flock excl mkdir symlink; do
		SEMLOCK_CRASH=check.lost:fail=1 expect_status 69 "$CRASHABLE_SEMLOCK" --check -m $method l
		grep -qE "^$method +does not exclude: two at the same time" .out
	done
	rm .out .err
	[ "$(ls -A)" = bin ]
}

@test "killed in the middle by TERM: nothing is left behind" {
	SEMLOCK_CRASH=check.tried:stop start check "$CRASHABLE_SEMLOCK" --check -m excl l
	"$PROBE" state "${PID[check]}" T
	[ -n "$(find . -name '.semlock*')" ]
	kill -TERM "${PID[check]}"
	kill -CONT "${PID[check]}"
	ended check 143
	[ -z "$(find . -name '.semlock*')" ]
}

@test "--check takes nothing: a held lock stays held, and is no trouble" {
	hold_lock l
	expect_status 0 "$SEMLOCK" --check l
	expect_held l
	let_go
}

@test "a directory: flock yes, fcntl no: 69; a lock made of files would be in it" {
	mkdir d
	expect_status 0 "$SEMLOCK" --check d
	grep -qE '^mkdir +excludes' .out
	grep -qE '^flock +excludes' .out
	grep -qE '^ofd +cannot lock a directory' .out
	expect_status 69 "$SEMLOCK" --check -m ofd d
	expect_status 69 "$SEMLOCK" --check --fcntl d
	[ -z "$(ls -A d)" ]
}

@test "/dev/shm and /proc/self/cwd: other file systems, and paths through links" {
	expect_status 0 "$SEMLOCK" --check /dev/shm/semlock-check-test
	grep -q '^on  *tmpfs ' .out
	expect_status 0 "$SEMLOCK" --check /proc/self/cwd/l
}

@test "where no file can be made, --check says so" {
	refused 66 "/nonexistent/l" "$SEMLOCK" --check /nonexistent/l
	root_only "to be two users"
	mkdir -m 755 closed
	refused 73 closed/l as_nobody "$SEMLOCK" --check closed/l
}

@test "a fault is no answer: --check says that it cannot tell, and why; its status is the fault's" {
	root_only "mounts"
	mkdir full
	mount -t tmpfs -o size=16k,nr_inodes=2 none full || skip "cannot mount here"
	expect_status 0 "$SEMLOCK" --check full/l
	grep -qx "flock    excludes" .out
	for method in excl link mkdir rename symlink; do
		expect_status 73 "$SEMLOCK" --check -m $method full/l
		grep -q "^$method *cannot tell: .*: No space left on device" .out
	done
	umount full
	expect_status 71 prlimit --nofile=6 "$SEMLOCK" --check -m mkdir l
	grep -q '^mkdir    cannot tell: .*Too many open files' .out
	[ -z "$(find . -name '.semlock*')" ]
}

@test "a FIFO and a socket: no kernel lock can be had" {
	mkfifo fifo
	"$PROBE" socket socket
	for object in fifo socket; do
		expect_status 69 "$SEMLOCK" --check $object
		for method in flock ofd posix; do grep -qx "$method *cannot lock a $object" <<<"${out,,}"; done
		expect_status 66 "$SEMLOCK" -n $object true
	done
}

@test "options that take or run make no sense together with --check" {
	refused 64 --check "$SEMLOCK" --check
	refused 64 --check "$SEMLOCK" --check a b
	refused 64 --check "$SEMLOCK" --check -n l
	refused 64 --check "$SEMLOCK" --check --who l
}

# reads KIND LINE: sets $out to what the parser makes of LINE
reads() {
	printf '%s\n' "$2" >.line
	out=$("$PARSE" "$1" <.line)
}

@test "NFS, CIFS and others: which machines see the locks, by the mount options" {
	while IFS='|' read -r want type options; do
		reads mounts "42 1 0:50 / /mnt rw,relatime shared:1 - $type server:/x rw,vers=4$options"
		[ "${out#42 0:50 /mnt "$type" server:/x }" = "$want" ] || complain "$type $options: $out"
	done <<-'END'
		flock=everywhere fcntl=everywhere names=everywhere|nfs4|,local_lock=none
		flock=here-only fcntl=everywhere names=everywhere|nfs|,local_lock=flock,addr=1.2.3.4
		flock=everywhere fcntl=here-only names=everywhere|nfs|,local_lock=posix
		flock=here-only fcntl=here-only names=everywhere|nfs|,local_lock=all
		flock=here-only fcntl=here-only names=everywhere|nfs|,nolock
		flock=everywhere fcntl=everywhere names=everywhere|cifs|
		flock=here-only fcntl=here-only names=everywhere|cifs|,nobrl
		flock=here-only fcntl=here-only names=everywhere|lustre|,localflock
		flock=everywhere fcntl=everywhere names=everywhere|lustre|,flock
		flock=here-only fcntl=everywhere names=everywhere|ocfs2|,localflocks
		flock=here-only fcntl=here-only names=unknown|fuse.sshfs|
		flock=here-only fcntl=here-only names=unknown|9p|
		flock=here-only fcntl=here-only names=unknown|virtiofs|
		flock=unknown fcntl=unknown names=unknown|fuse.bindfs|
		flock=machine fcntl=machine names=machine|ext4|
		flock=machine fcntl=machine names=machine|btrfs|
	END
}

@test "lines of /proc/locks: holders, waiters, waiters of waiters, and what is no lock" {
	reads locks '7: FLOCK  ADVISORY  WRITE 4711 fe:00:262402 0 EOF'
	[ "$out" = "1 holds write 4711 fe:0:262402 0 end" ]
	reads locks '7: -> FLOCK  ADVISORY  READ 4712 fe:00:262402 0 EOF'
	[ "$out" = "1 waits read 4712 fe:0:262402 0 end" ]
	reads locks '7:    -> OFDLCK ADVISORY  WRITE -1 00:1b:6216 8845511834722 8845511834722'
	[ "$out" = "2 waits write -1 0:1b:6216 8845511834722 8845511834722" ]
	reads locks $'lock:\t1: POSIX  ADVISORY  WRITE 3912 fe:00:10980181 0 9'
	[ "$out" = "4 holds write 3912 fe:0:10980181 0 9" ]
	reads locks '9: LEASE  ACTIVE    READ 4711 fe:00:262402 0 EOF'
	[ "$out" = none ]
	reads locks 'pos:	0'
	[ "$out" = none ]
	reads locks ''
	[ "$out" = none ]
}

@test "/proc/PID/stat: a program's name may hold anything" {
	reads stat '4711 (a) R 1 (b) S 4710 4711 4711 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 9'
	[ "$out" = "a) R 1 (b S 4710 123456" ]
	reads stat '4711 (cut'
	[ "$out" = none ]
}

@test "mountinfo: blanks in paths, and options before the dash" {
	reads mounts '36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 shared:2 - ext3 /dev/my\040disk rw,errors=continue'
	[ "$out" = "36 98:0 /mnt 2 ext3 /dev/my disk flock=machine fcntl=machine names=machine" ]
	reads mounts 'nonsense'
	[ "$out" = none ]
}
