# SPDX-License-Identifier: MIT
# plain.bash - plain use: many contenders, one that is refused and waits, one that dies.
# shellcheck shell=bash

# Commands of link are not killed: over NFS the bare PID of a dead process is no proof.  Nor are commands of
# mkdir: a kill can leave the directory empty, without an owner.
many() { # LOCK METHOD KEY
	local rounds=${ROUNDS:-4} contenders=${CONTENDERS:-2} killed=1 machine pids=()
	case $2 in link | mkdir) killed=0 ;; esac
	new_lock "$1"
	for machine in a b; do
		on "$machine" "timeout 300 contend $3 $rounds $1.count $contenders $killed semlock -m $2 $1" & pids+=($!)
	done >"$WORK/$3"
	wait "${pids[@]}"
	cat "$WORK/$3"
	[[ ! -s $WORK/$3 ]]
	never_two "$3"
	on a "cat $1.count"
	[[ $(on a "cat $1.count") == $((2 * contenders * rounds)) ]]
}

# The kernel's locks end with the holder; a lock made of files is released.
one_waits() { # LOCK METHOD KEY
	local holder waiter
	new_lock "$1"
	on a "hold $3 semlock -m $2 $1 inside $3 wait" & holder=$!
	until_entered "$3" a
	expect 1 on b "semlock -n -m $2 $1 true"
	on b "semlock -w 600 -m $2 $1 inside $3 wait" & waiter=$!
	until_waits b "$2" "$1"
	case " $kernel_methods " in
	*" $2 "*) on a "slay $3"; expect_end 9 "$holder" ;;
	*) let_go "$3" a; expect_end 0 "$holder" ;;
	esac
	until_entered "$3" b
	let_go "$3" b
	expect_end 0 "$waiter"
	never_two "$3"
}

one_dies() { # LOCK METHOD KEY
	local holder
	new_lock "$1"
	on a "hold $3 semlock -m $2 $1 inside $3 wait" & holder=$!
	until_entered "$3" a
	on a "slay $3"
	expect_end 9 "$holder"
	expect 1 on b "semlock -n -m $2 $1 true"
	expect 0 on a "semlock -n -m $2 $1 true"
}

plain() { # VERSION
	local at=/n$1/plain$1 method
	on a "mkdir -p $at"
	for method in $kernel_methods $file_methods; do
		check "NFS $1, $method: two machines, some killed: one at a time" many "$at/many-$method" "$method" "many-$1-$method"
		check "NFS $1, $method: another machine is refused, waits, and is next" one_waits "$at/one-$method" "$method" "one-$1-$method"
		case $method in flock | ofd | posix | link) continue ;; esac
		check "NFS $1, $method: the machine of the dead holder takes over, another one does not" \
			one_dies "$at/dead-$method" "$method" "dead-$1-$method"
	done
}

topic_plain() {
	plain 3 &
	plain 4.2
	wait $!
}
