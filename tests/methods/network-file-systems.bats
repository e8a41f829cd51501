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
