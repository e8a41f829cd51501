# takeover.bash - a dead holder's lock, and machines that take it over late, or see its age late.
# shellcheck shell=bash

# --stale may be refused with a method.
is_allowed() { # METHOD DIRECTORY
	local status=0
	new_lock "$2/allowed-$1"
	on a "semlock -m $1 --stale=2 $2/allowed-$1 true" || status=$?
	echo "status $status"
	[[ $status != 69 ]]
}

# a's command was killed, and its lock is old for the clock of the server.
leave_dead_lock() { # LOCK METHOD KEY
	local holder
	new_lock "$1"
	on a "hold $3-dead semlock -m $2 --stale=2 $1 inside $3-dead wait" & holder=$!
	until_entered "$3-dead" a
	on a "slay $3-dead"
	expect_end 9 "$holder"
	on server "touch -h -d '1 hour ago' /keep/export/${1#/n*/}*"
}

# b is held up before the call that takes the lock away, after it has judged it; a takes it over in the
# meantime, if it can.  strace(1) does not tell when the delay begins.
late_breaker() { # VERSION METHOD CALLS KEY
	local early late at=/n$1/takeover$1 lock=/n$1/takeover$1/$4
	is_allowed "$2" "$at" || return 0
	leave_dead_lock "$lock" "$2" "$4"
	on a "ls $at"
	on b "ls $at"
	on b "strace -qq -o /tmp/$4 -e trace=$3 -e inject=$3:delay_enter=15000000:when=1 semlock -m $2 --stale=2 -n $lock inside $4 wait" & late=$!
	sleep 5
	on a "semlock -m $2 --stale=2 -n $lock inside $4 wait" & early=$!
	eventually 600 entered_or_ended "$4" b "$late"
	eventually 600 entered_or_ended "$4" a "$early"
	never_two "$4"
	let_go "$4" a
	let_go "$4" b
	wait "$early" || :
	expect_end 0,1,76 "$late"
}

# A mount that never looks at a changed time again does not make a living holder old.
cached_ages() { # VERSION METHOD KEY
	local holder lock=/n$1/takeover$1/$3
	is_allowed "$2" "/n$1/takeover$1" || return 0
	new_lock "$lock"
	on a "semlock -m $2 --stale=6 $lock inside $3 wait" & holder=$!
	until_entered "$3" a
	on b "cd /n$1-cached/takeover$1; ls -la >/dev/null; stat $3* >/dev/null || :"
	expect 1 on b "semlock -m $2 --stale=6 -w 14 /n$1-cached/takeover$1/$3 inside $3 10"
	let_go "$3" a
	expect_end 0 "$holder"
	never_two "$3"
}

# The call by which a method takes a dead one's lock away.
removing_call() { # METHOD
	case $1 in mkdir) echo renameat ;; *) echo unlinkat ;; esac
}

topic_takeover() {
	local method version
	for version in 3 4.2; do
		mount_on b $version nocto,actimeo=600
		on server "mkdir -p /keep/export/takeover$version"
		for method in $file_methods; do
			check "NFS $version, $method: who takes a dead lock over late does not take the new holder's" \
				late_breaker $version "$method" "$(removing_call "$method")" "late-$version-$method"
		done
		for method in $file_methods; do
			check "NFS $version, $method: a living holder's lock is not old on a machine that caches attributes" \
				cached_ages $version "$method" "cached-$version-$method" &
		done
		wait
	done
}
