# directory.bash - what is to be locked is a directory, has slots, or is on the disk of the server itself.
# shellcheck shell=bash

# flock(2) on a directory is a lock of one machine: refused, or it excludes the other one.
directory_lock() { # DIRECTORY KEY
	local holder
	on a "mkdir -p $1"
	on a "semlock $1 inside $2 wait" & holder=$!
	eventually 600 entered_or_ended "$2" a "$holder"
	if ! entered "$2" a; then expect_end 64,65,69 "$holder"; return; fi
	on b "ls $1"
	expect 1 on b "semlock -n $1 true"
	let_go "$2" a
	expect_end 0 "$holder"
}

# It may say so only where the directory itself, not a file in it, excludes other machines.
directory_check() { # DIRECTORY
	on a "mkdir -p $1; semlock --check $1" >"$WORK/directory-check" || :
	cat "$WORK/directory-check"
	! grep -q '^flock .*other machines as well' "$WORK/directory-check"
}

# Three slots on two machines; the fourth command is refused.  -j may be refused as a whole.
slots() { # LOCK METHOD KEY
	local holders=() key machine
	on a ": >$1"
	on b "ls $(dirname "$1") >/dev/null"
	for key in "$3-1 a" "$3-2 b" "$3-3 a"; do
		machine=${key#* } key=${key% *}
		on "$machine" "semlock -n -j 3 -m $2 $1 inside $key wait" & holders+=($!)
		eventually 600 entered_or_ended "$key" "$machine" $!
		if ! entered "$key" "$machine"; then
			expect_end 64,65,69 $!
			[[ $key == *-1 ]]
			return
		fi
	done
	expect 1 on b "semlock -n -j 3 -m $2 $1 true"
	let_go "$3-1" a
	let_go "$3-2" b
	let_go "$3-3" a
	wait "${holders[@]}"
}

# A job on the server, by the path on its own disk, and one by the network.
server_and_client() { # METHOD KEY
	local holder lock=/n4.2/directory/server-$1
	new_lock "$lock"
	on a "semlock -m $1 $lock inside $2 wait" & holder=$!
	until_entered "$2" a
	expect 1 on server "semlock -n -m $1 /keep/export/directory/server-$1 true"
	let_go "$2" a
	expect_end 0 "$holder"
}

topic_directory() {
	local method version
	for version in 3 4.2; do
		on a "mkdir -p /n$version/directory"
		check "NFS $version: a directory as the lock excludes the other machine, or is refused" \
			directory_lock "/n$version/directory/self$version" "directory-$version"
		check "NFS $version: --check of a directory does not speak of other machines" directory_check "/n$version/directory/self$version"
		for method in $kernel_methods; do
			check "NFS $version, $method: three slots on two machines, or -j is refused" slots "/n$version/directory/slots$version-$method" \
				"$method" "slots-$version-$method"
		done
	done
	for method in ofd posix $file_methods; do
		check "NFS 4.2, $method: a job on the server itself and a client's exclude each other" \
			server_and_client "$method" "server-$method"
	done
}
