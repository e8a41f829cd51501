# others.bash - file systems beside NFS that two machines can share: 9p, CIFS, sshfs.
# shellcheck shell=bash

# A method that is not refused excludes the other machine, and its holder ends well.
excludes_or_refused() { # LOCK METHOD KEY
	local holder
	case $2 in rename) on a "semlock -m rename --init $1 true" || : ;; esac
	on a "semlock -m $2 $1 inside $3 wait" & holder=$!
	eventually 300 entered_or_ended "$3" a "$holder"
	if ! entered "$3" a; then expect_end 64,65,69 "$holder"; return; fi
	on b "ls $(dirname "$1") >/dev/null"
	expect 1,69 on b "semlock -n -m $2 $1 inside $3 wait"
	let_go "$3" a
	expect_end 0 "$holder"
	never_two "$3"
}

# The same, where the machines cannot be told apart.
same_name() {
	local status=0
	on b "hostname a"
	( set -e; excludes_or_refused "$@" )
	status=$?
	on b "hostname b"
	return $status
}

# The dead one's lock goes to one of two, who come at the same time.
one_takes_over() { # LOCK METHOD KEY
	local machine pids=()
	on a "hold $3-dead semlock -m $2 $1 inside $3-dead wait" & pids=($!)
	eventually 300 entered_or_ended "$3-dead" a $!
	if ! entered "$3-dead" a; then expect_end 64,65,69 $!; return; fi
	on a "slay $3-dead"
	wait "${pids[@]}" || :
	pids=()
	for machine in a a b b; do
		on "$machine" "semlock --stale=4 -w 30 -m $2 $1 inside $3 1500" & pids+=($!)
	done
	for machine in "${pids[@]}"; do expect_end 0 "$machine"; done
	never_two "$3"
}

topic_others() {
	local method
	mkdir -p "$WORK/shared/9p"
	for method in $file_methods; do
		check "9p, $method: another machine is refused, or the method is" excludes_or_refused "/shared/9p/$method" "$method" "9p-$method"
		check "9p, $method: so is one of the same name" same_name "/shared/9p/same-$method" "$method" "9p-same-$method"
	done
	on server "modprobe ksmbd; mkdir -p /keep/smb /run/ksmbd; printf '[global]\nmap to guest = bad user\n[share]\npath = /keep/smb\nread only = no\nguest ok = yes\n' >/etc/ksmbd/ksmbd.conf
		ksmbd.adduser -a root -p root 2>/dev/null; ksmbd.mountd"
	for machine in a b; do
		on $machine "mkdir -p /smb; modprobe cifs; mount -i -t cifs //server/share /smb -o ip=10.9.0.1,user=root,pass=root,vers=3.1.1"
	done
	for method in $kernel_methods $file_methods; do
		check "CIFS, $method: another machine is refused, or the method is" excludes_or_refused "/smb/$method" "$method" "cifs-$method"
	done
	for method in $file_methods; do
		check "CIFS, $method: a dead one's lock goes to one" one_takes_over "/smb/dead-$method" "$method" "cifs-dead-$method"
	done
	for machine in a b; do on $machine "mkdir -p /sshfs; sshfs server:/keep/export /sshfs"; done
	for method in $kernel_methods $file_methods; do
		check "sshfs, $method: another machine is refused, or the method is" \
			excludes_or_refused "/sshfs/sshfs-$method" "$method" "sshfs-$method"
	done
}
