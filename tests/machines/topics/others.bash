# others.bash - file systems beside NFS that two machines can share: 9p and sshfs.
# shellcheck shell=bash

# A method that is not refused excludes the other machine, and its holder ends well.
excludes_or_refused() { # LOCK METHOD KEY
	local holder
	on a "semlock -m $2 $1 inside $3 wait" & holder=$!
	eventually 600 entered_or_ended "$3" a "$holder"
	if ! entered "$3" a; then expect_end 64,65,69 "$holder"; return; fi
	on b "ls $(dirname "$1") >/dev/null"
	expect 1,69 on b "semlock -n -m $2 $1 inside $3 wait"
	let_go "$3" a
	expect_end 0 "$holder"
	never_two "$3"
}

# The same, where the machines cannot be told apart.
same_name() {
	on b "hostname a"
	trap 'on b "hostname b"' EXIT
	excludes_or_refused "$@"
}

# Its cache of a directory would hide for seconds that a lock has been taken.
sshfs_start() {
	for machine in a b; do on "$machine" "mkdir -p /sshfs; sshfs -o dir_cache=no server:/keep/export /sshfs"; done
}

topic_others() {
	local method
	mkdir -p "$WORK/shared/9p"
	for method in $file_methods; do
		check "9p, $method: another machine is refused, or the method is" excludes_or_refused "/shared/9p/$method" "$method" "9p-$method"
		check "9p, $method: so is one of the same name" same_name "/shared/9p/same-$method" "$method" "9p-same-$method"
	done
	check 'sshfs: two machines share a directory' sshfs_start
	for method in $file_methods; do
		check "sshfs, $method: another machine is refused, or the method is" \
			excludes_or_refused "/sshfs/sshfs-$method" "$method" "sshfs-$method"
	done
}
