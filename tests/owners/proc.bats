#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# How semlock reads the lines of /proc.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

PARSE=${PARSE:-${PROBE%/*}/parse}

# reads KIND LINE: sets $out to what the parser makes of LINE
reads() {
	printf '%s\n' "$2" >.line
	out=$("$PARSE" "$1" <.line)
}

@test "mount options tell which kernel locks other machines cannot see" {
	while IFS='|' read -r want type options; do
		reads mounts "42 1 0:50 / /mnt rw,relatime shared:1 - $type server:/x rw,vers=4$options"
		[ "$out" = "42 0:50 /mnt $type server:/x${want:+ $want}" ] || complain "$type $options: $out"
	done <<-'END'
		|nfs4|,local_lock=none
		flock=here-only|nfs|,local_lock=flock,addr=1.2.3.4
		fcntl=here-only|nfs|,local_lock=posix
		flock=here-only fcntl=here-only|nfs|,local_lock=all
		flock=here-only fcntl=here-only|nfs|,nolock
		|cifs|
		flock=here-only fcntl=here-only|cifs|,nobrl
		flock=here-only fcntl=here-only|lustre|,localflock
		|lustre|,flock
		flock=here-only|ocfs2|,localflocks
		flock=here-only fcntl=here-only maybe-this-mount-only|fuse.sshfs|
		flock=here-only fcntl=here-only|9p|
		flock=here-only fcntl=here-only|virtiofs|
		maybe-this-mount-only|fuse.bindfs|
		maybe-this-mount-only|fuse|
		|fuse.glusterfs|
		|fuseblk|
		|ext4|
		|btrfs|
	END
}

@test "lines of /proc/locks: holders, waiters, their waiters, and other lines" {
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
	[ "$out" = "36 98:0 /mnt 2 ext3 /dev/my disk" ]
	reads mounts 'nonsense'
	[ "$out" = none ]
}
