# SPDX-License-Identifier: MIT
# takeover.bash - a dead holder's lock, and machines that take it over late, or whose caches show an old age.
# shellcheck shell=bash

# a's command was killed, and its lock is old by the clock of the server.
leave_dead_lock() { # LOCK METHOD KEY
	local holder
	new_lock "$1"
	on a "hold $3-dead semlock -m $2 --stale=2 $1 inside $3-dead wait" & holder=$!
	until_entered "$3-dead" a
	on a "slay $3-dead"
	expect_end 9 "$holder"
	on server "touch -h -d '1 hour ago' /keep/export/${1#/n*/}*"
}

# b's call that removes the lock: 263 is unlinkat(2).
is_held_up() { # LOCK
	on b "grep -q '^263 ' /proc/\$(pgrep -f '^semlock .*$1 ')/syscall"
}

# b is stopped before the call that removes the lock, after the judgement; meanwhile a takes the lock over, if
# it can.
late_breaker() { # VERSION METHOD KEY
	local early late at=/n$1/takeover$1 lock=/n$1/takeover$1/$3
	leave_dead_lock "$lock" "$2" "$3"
	on a "ls $at"
	on b "ls $at"
	on b "strace -qq -o /tmp/$3 -e trace=unlinkat -e inject=unlinkat:delay_enter=15000000:when=1 semlock -m $2 --stale=2 -n $lock inside $3 wait" & late=$!
	eventually 600 is_held_up "$lock"
	on a "semlock -m $2 --stale=2 -n $lock inside $3 wait" & early=$!
	eventually 600 entered_or_ended "$3" b "$late"
	eventually 600 entered_or_ended "$3" a "$early"
	never_two "$3"
	let_go "$3" a
	let_go "$3" b
	wait "$early" || :
	expect_end 0,1,76 "$late"
}

# On a mount that never reads a changed time again, a living holder's lock does not become old.
cached_ages() { # VERSION METHOD KEY
	local holder lock=/n$1/takeover$1/$3
	new_lock "$lock"
	on a "semlock -m $2 --stale=6 $lock inside $3 wait" & holder=$!
	until_entered "$3" a
	on b "cd /n$1-cached/takeover$1; ls -la >/dev/null; stat $3* >/dev/null || :"
	expect 1 on b "semlock -m $2 --stale=6 -w 14 /n$1-cached/takeover$1/$3 inside $3 10"
	let_go "$3" a
	expect_end 0 "$holder"
	never_two "$3"
}

topic_takeover() {
	local method version tests=()
	for version in 3 4.2; do
		mount_on b $version nocto,actimeo=600
		on server "mkdir -p /keep/export/takeover$version"
		for method in $stale_methods; do
			check "NFS $version, $method: who takes a dead lock over late does not take the new holder's" \
				late_breaker $version "$method" "late-$version-$method" & tests+=($!)
		done
		wait "${tests[@]}"
		tests=()
	done
	for version in 3 4.2; do
		for method in $stale_methods; do
			check "NFS $version, $method: a living holder's lock is not old on a machine that caches attributes" \
				cached_ages $version "$method" "cached-$version-$method" & tests+=($!)
		done
	done
	wait "${tests[@]}"
}
