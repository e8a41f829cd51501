# removal.bash - --rm, which removes the lock file: another machine may still know the file by its name.
# shellcheck shell=bash

# A combination that is refused is none that can go wrong.
removed() { # LOCK METHOD
	local status=0
	on b ": >$1"
	on a "ls $(dirname "$1") >/dev/null; semlock --rm -m $2 $1 true" || status=$?
	case $status in
	64 | 69) return ;;
	0) expect 1 on server "test -e /keep/export/${1#/n*/}" ;;
	*) return "$status" ;;
	esac
}

# The first command of a removes the file under a waiter of b, the second one makes it anew.  b has the old
# name in its cache, for as long as its mount options allow.
removed_under_a_waiter() { # LOCK METHOD KEY
	local first second waiter late
	late=${1/\/removal/-cached\/removal}
	on b ": >$late; cat $late"
	on a "semlock --rm -m $2 $1 inside $3 wait" & first=$!
	eventually 600 entered_or_ended "$3" a "$first"
	if ! entered "$3" a; then expect_end 64,69 "$first"; return; fi
	on b "semlock -m $2 $late inside $3 wait" & waiter=$!
	until_waits b "$2" "$late"
	let_go "$3" a
	expect_end 0 "$first"
	on a "semlock -w 5 --rm -m $2 $1 inside $3 wait" & second=$!
	until_entered "$3" b 600
	eventually 600 two_or_ended "$3" "$second"
	let_go "$3" a
	let_go "$3" b
	expect_end 0 "$waiter"
	wait "$second" || :
	never_two "$3"
}

two_or_ended() { # KEY PID
	! never_two "$1" >/dev/null || ! kill -0 "$2" 2>/dev/null
}

topic_removal() {
	local version method
	for version in 3 4.0 4.2; do
		on a "mkdir -p /n$version/removal$version"
		on b "ls /n$version/removal$version"
		for method in $kernel_methods; do
			check "NFS $version, $method: --rm removes the file, or is refused" \
				removed "/n$version/removal$version/$method" "$method"
		done
	done
	for version in 4.0 4.2; do
		mount_on b "$version" nocto,actimeo=600
		for method in $kernel_methods; do
			check "NFS $version, $method: --rm under a waiter of another machine lets no two in" removed_under_a_waiter \
				"/n$version/removal$version/race-$method" "$method" "removal-$version-$method"
		done
	done
}
