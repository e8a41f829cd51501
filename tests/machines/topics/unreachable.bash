# SPDX-License-Identifier: MIT
# unreachable.bash - the server is unreachable; holders on another machine; the order of waiters.
# shellcheck shell=bash

# timeout(1) ends with 124 if its signal ended semlock, with 137 if only KILL could.
signal_ends() { # LOCK SIGNAL OPTIONS
	local status=0
	link b off
	on b "timeout -s $2 -k 20 4 semlock $3 $1 true" || status=$?
	link b on
	echo "status $status"
	((status == 124 || status == 69 || status == 1))
	eventually 600 on b "stat $(dirname "$1") >/dev/null"
}

held_elsewhere() { # LOCK METHOD KEY
	local holder status=0
	new_lock "$1"
	on a "semlock -m $2 $1 inside $3 wait" & holder=$!
	until_entered "$3" a
	on b "ls $(dirname "$1") >/dev/null; semlock -m $2 --who $1" || status=$?
	let_go "$3" a
	expect_end 0 "$holder"
	((status != 0))
}

# Three waiters of one machine are served in order of arrival.
in_order() { # LOCK METHOD KEY
	local holder number pids=()
	new_lock "$1"
	on a "semlock -m $2 $1 inside $3 wait" & holder=$!
	until_entered "$3" a
	for number in 1 2 3; do
		on b "semlock -m $2 $1 sh -c 'echo $number >>$1.order'" & pids+=($!)
		until_waits b "$2" "$1" "$number"
	done
	let_go "$3" a
	wait "$holder" "${pids[@]}"
	on b "cat $1.order"
	[[ $(on b "cat $1.order") == $'1\n2\n3' ]]
}

topic_unreachable() {
	local version method at
	for version in 3 4.2; do
		at=/n$version/unreachable$version
		on a "mkdir -p $at; touch $at/lock"
		on b "cat $at/lock"
		check "NFS $version: the server is away: TERM ends semlock -n" signal_ends "$at/lock" TERM -n
		check "NFS $version: the server is away: INT ends semlock -w 2" signal_ends "$at/lock" INT '-w 2'
		check "NFS $version: the server is away: TERM ends semlock --who" signal_ends "$at/lock" TERM '--who'
		for method in $kernel_methods $file_methods; do
			check "NFS $version, $method: --who does not call free what another machine holds" \
				held_elsewhere "$at/who-$method" "$method" "who-$version-$method"
		done
	done
	for method in ofd excl mkdir; do # flock: no order is promised
		check "NFS 4.2, $method: waiters on one machine are served in the order in which they came" \
			in_order "/n4.2/unreachable4.2/order-$method" "$method" "order-$method"
	done
}
