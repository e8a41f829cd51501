# SPDX-License-Identifier: MIT
# slots.bash - the slots of one lock on two machines; a lock on the disk of the server itself.
# shellcheck shell=bash

# Three slots on two machines; the fourth command is refused.
slots() { # LOCK METHOD KEY
	local holders=() key machine
	on a ": >$1"
	on b "ls $(dirname "$1") >/dev/null"
	for key in "$3-1 a" "$3-2 b" "$3-3 a"; do
		machine=${key#* } key=${key% *}
		on "$machine" "semlock -n -j 3 -m $2 $1 inside $key wait" & holders+=($!)
		until_entered "$key" "$machine"
	done
	expect 1 on b "semlock -n -j 3 -m $2 $1 true"
	let_go "$3-1" a
	let_go "$3-2" b
	let_go "$3-3" a
	wait "${holders[@]}"
}

# One job on the server, by the path on its own disk, and one over the network.
server_and_client() { # METHOD KEY
	local holder lock=/n4.2/slots/server-$1
	new_lock "$lock"
	on a "semlock -m $1 $lock inside $2 wait" & holder=$!
	until_entered "$2" a
	expect 1 on server "semlock -n -m $1 /keep/export/slots/server-$1 true"
	let_go "$2" a
	expect_end 0 "$holder"
}

topic_slots() {
	local method version
	for version in 3 4.2; do
		on a "mkdir -p /n$version/slots"
		for method in ofd posix; do
			check "NFS $version, $method: three slots on two machines" slots "/n$version/slots/$version-$method" \
				"$method" "slots-$version-$method"
		done
	done
	for method in ofd posix $file_methods; do
		check "NFS 4.2, $method: a job on the server itself and a client's exclude each other" \
			server_and_client "$method" "server-$method"
	done
}
