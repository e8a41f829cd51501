# takeover.bash - a dead holder's lock, and machines that take it over late, or see its age late.
# shellcheck shell=bash

# --stale may be refused with a method.
is_allowed() { # METHOD DIRECTORY
	local status=0
	new_lock "$1" "$2/allowed-$1"
	on a "semlock -m $1 --stale=2 $2/allowed-$1 true" || status=$?
	echo "status $status"
	[[ $status != 69 ]]
}

# The lock of a third machine's dead holder: made on the server's own disk, and old.
leave_dead_lock() { # DIRECTORY METHOD NAME KEY
	on server "mkdir -p /keep/export/$1 && cd /keep/export/$1 && case $2 in rename) semlock -m rename --init $3 true;; esac
		hold $4 semlock -m $2 $3 sleep 99 & until semlock -m $2 --who $3 | grep -q sleep; do sleep 0.1; done
		slay $4; wait; touch -h -d '1 hour ago' $3*" || :
}

# b has judged the lock and is held up before it takes it away; a takes it over in the meantime.
late_breaker() { # VERSION METHOD CALLS KEY
	local early late at=/n$1/takeover$1 lock=/n$1/takeover$1/$4
	is_allowed "$2" "$at" || return 0
	leave_dead_lock "takeover$1" "$2" "$4" "$4"
	on a "ls $at"
	on b "ls $at"
	on b "strace -qq -o /tmp/$4 -e trace=$3 -e inject=$3:delay_enter=8000000:when=1 semlock -m $2 --stale=2 -n $lock inside $4 wait" & late=$!
	eventually 300 on b "grep -q . /tmp/$4"
	on a "semlock -m $2 --stale=2 -n $lock inside $4 wait" & early=$!
	eventually 600 entered_or_ended "$4" b "$late"
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
	new_lock "$2" "$lock"
	on a "semlock -m $2 --stale=6 $lock inside $3 wait" & holder=$!
	until_entered "$3" a
	on b "cd /n$1-cached/takeover$1; ls -la >/dev/null; stat $3* >/dev/null"
	expect 1 on b "semlock -m $2 --stale=6 -w 14 /n$1-cached/takeover$1/$3 inside $3 10"
	let_go "$3" a
	expect_end 0 "$holder"
	never_two "$3"
}

topic_takeover() {
	local method version calls='unlinkat,unlink,rename,renameat,renameat2,rmdir,linkat'
	for version in 3 4.2; do
		mount_on b $version nocto,actimeo=600
		on server "mkdir -p /keep/export/takeover$version"
		for method in $file_methods; do
			check "NFS $version, $method: who takes a dead lock over late does not take the new holder's" \
				late_breaker $version "$method" "$calls" "late-$version-$method"
		done
		for method in $file_methods; do
			check "NFS $version, $method: a living holder's lock is not old on a machine that caches attributes" \
				cached_ages $version "$method" "cached-$version-$method" &
		done
		wait
	done
}
