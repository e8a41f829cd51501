# others.bash - file systems beside NFS that two machines can share: 9p and sshfs.
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

# The same, where the machines cannot be told apart.
same_name() {
	on b "hostname a"
	trap 'on b "hostname b"' EXIT
	excludes "$@"
}

sshfs_start() {
	for machine in a b; do on "$machine" "mkdir -p /sshfs; sshfs server:/keep/export /sshfs"; done
}

topic_others() {
	local method
	mkdir -p "$WORK/shared/9p"
	for method in $file_methods; do
		check "9p, $method: another machine is refused" excludes "/shared/9p/$method" "$method" "9p-$method"
		check "9p, $method: so is one of the same name" same_name "/shared/9p/same-$method" "$method" "9p-same-$method"
	done
	rename_refused 9p /shared/9p
	check 'sshfs: two machines share a directory' sshfs_start
	for method in mkdir symlink; do
		check "sshfs, $method: another machine is refused" excludes "/sshfs/sshfs-$method" "$method" "sshfs-$method"
	done
	for method in excl link; do
		check "sshfs, $method: is refused" refused 69 "-m $method /sshfs/sshfs-$method"
	done
	rename_refused sshfs /sshfs
}
