#!/usr/bin/env bats
# What cannot be promised where other machines use the same files.  The file system is a local one
# here, and semlock is told that it is not.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

tidy() {
	if mountpoint -q on; then umount -l on; fi
}

# mounted_as TYPE OPTIONS CMD...: CMD, which reads in /proc that on/ is mounted so.
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

@test "9p, whose files are of the server's file system by fstatfs(2): a bare PID of another machine is not dead" {
	namespaces --mount
	mkdir on
	mount -t tmpfs none on 2>mount.err || skip "cannot mount tmpfs here: $(head -1 mount.err)"
	sh -c 'echo $$' >on/l
	mounted_as 9p rw true || skip "nothing can be mounted over /proc here"
	expect_status 1 mounted_as 9p rw,trans=virtio "$SEMLOCK" -n -m link on/l true
	expect_status 0 mounted_as tmpfs rw "$SEMLOCK" -n -m link on/l true
}

on_nfs() {
	SEMLOCK_CRASH="file_system.nfs:fail=1 ${SEMLOCK_CRASH-}" "$@"
}

@test "--rm is refused where other machines may see a removed file for a while: 69, and the file stays" {
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

@test "a directory on a network file system is refused, 65, also as a descriptor; --check says the same" {
	mkdir d
	on_nfs refused 65 "lock a file" "$CRASHABLE_SEMLOCK" d touch ran
	exec 7<d
	on_nfs refused 65 "lock a file" "$CRASHABLE_SEMLOCK" 7
	exec 7<&-
	[ ! -e ran ]
	on_nfs expect_status 69 "$CRASHABLE_SEMLOCK" --check -m flock d
	grep -qx 'flock    cannot lock a directory for other machines' .out
	on_nfs expect_status 0 "$CRASHABLE_SEMLOCK" --check -m flock d/l
	expect_status 0 "$CRASHABLE_SEMLOCK" d true
}

@test "slots of flock, which exclude each other on a network file system, are refused: 69; those of ofd are not" {
	on_nfs refused 69 "-m ofd" "$CRASHABLE_SEMLOCK" -j 3 l touch ran
	[ ! -e ran ]
	on_nfs expect_status 0 "$CRASHABLE_SEMLOCK" -j 3 -m ofd l true
	on_nfs expect_status 0 "$CRASHABLE_SEMLOCK" l true
}
