# SPDX-License-Identifier: MIT
# others.bash - file systems beside NFS that machines can share: CIFS, 9p and sshfs.
# shellcheck shell=bash

excludes() { # LOCK METHOD KEY
	local holder
	on a "semlock -m $2 $1 inside $3 wait" & holder=$!
	until_entered "$3" a
	on b "ls $(dirname "$1") >/dev/null"
	expect 1 on b "semlock -n -m $2 $1 true"
	let_go "$3" a
	expect_end 0 "$holder"
}

# The same, with one host name for both machines.
same_name() {
	on b "hostname a"
	trap 'on b "hostname b"' EXIT
	excludes "$@"
}

# a's command is killed: when the lock is old, b takes its holder for dead.
taken_over() { # LOCK METHOD KEY
	local holder waiter
	on a "hold $3 semlock -m $2 --stale=4 $1 inside $3 wait" & holder=$!
	until_entered "$3" a
	expect 1 on b "semlock -n -m $2 --stale=4 $1 true"
	on b "semlock -w 300 -m $2 --stale=4 $1 inside $3 wait" & waiter=$!
	until_waits b "$2" "$1"
	on a "slay $3"
	expect_end 9 "$holder"
	until_entered "$3" b
	never_two "$3"
	let_go "$3" b
	expect_end 0 "$waiter"
}

names() { # FILE-SYSTEM DIRECTORY METHOD...
	local method
	for method in "${@:3}"; do
		check "$1, $method: another machine is refused, waits, and is next" one_waits "$2/$method" "$method" "$1-$method"
		check "$1, $method: one of the same name is refused" same_name "$2/same-$method" "$method" "$1-same-$method"
		[[ $method == link ]] || check "$1, $method: the machine of the dead holder takes over, another one does not" \
			one_dies "$2/dead-$method" "$method" "$1-dead-$method"
	done
	rename_refused "$1" "$2"
}

# Other machines see neither the kernel's locks, nor a flock that would guard a takeover.
no_kernel_locks() { # FILE-SYSTEM DIRECTORY METHOD...
	local method
	for method in $kernel_methods; do
		check "$1, $method: is refused" refused 69 "-m $method $2/kernel-$method"
	done
	for method in "${@:3}"; do
		check "$1, $method: --stale is refused" refused 69 "--stale=4 -m $method $2/stale-$method"
	done
}

sshfs_start() {
	for machine in a b; do on "$machine" "mkdir -p /sshfs; sshfs server:/keep/export /sshfs"; done
}

cifs_start() {
	on server "smbd -D"
	for machine in a b; do
		on "$machine" "mkdir -p /cifs; modprobe cifs"
		eventually 300 on "$machine" "mount -i -t cifs //10.9.0.1/export /cifs -o ip=10.9.0.1,sec=none"
	done
}

cifs() {
	local method
	check 'CIFS: two machines share a directory' cifs_start
	on a "mkdir -p /cifs/cifs"
	for method in $kernel_methods; do
		check "CIFS, $method: another machine is refused, waits, and is next" one_waits "/cifs/cifs/$method" "$method" "cifs-$method"
		check "CIFS, $method: --rm is refused" refused 69 "--rm -m $method /cifs/cifs/rm-$method"
	done
	check "CIFS: a directory is refused" refused 65 "/cifs/cifs"
	check "CIFS, flock: -j is refused" refused 69 "-j 3 /cifs/cifs/slots"
	names CIFS /cifs/cifs excl link mkdir
	check 'CIFS, symlink: is refused' refused 73 "-m symlink /cifs/cifs/symlink"
	check 'CIFS, mkdir: --stale is refused' refused 69 "--stale=4 -m mkdir /cifs/cifs/stale-mkdir"
	for method in excl link; do
		check "CIFS, $method: another machine takes an old lock over" taken_over "/cifs/cifs/old-$method" "$method" "cifs-old-$method"
	done
}

topic_others() {
	local method
	mkdir -p "$WORK/shared/9p"
	no_kernel_locks 9p /shared/9p excl link symlink mkdir
	names 9p /shared/9p excl link symlink mkdir
	check 'sshfs: two machines share a directory' sshfs_start
	on a "mkdir -p /sshfs/sshfs"
	no_kernel_locks sshfs /sshfs/sshfs symlink mkdir
	names sshfs /sshfs/sshfs mkdir symlink
	for method in excl link; do
		check "sshfs, $method: is refused" refused 69 "-m $method /sshfs/sshfs/refused-$method"
	done
	cifs
}
