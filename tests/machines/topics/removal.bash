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

# The first of a removes the file under a waiter of b; the second one of a makes a new file.  b's wire is
# cut meanwhile, so that b is told late.
removed_under_a_waiter() { # LOCK METHOD KEY
	local first second waiter status=0
	on b ": >$1; cat $1"
	on a "semlock --rm -m $2 $1 inside $3 wait" & first=$!
	eventually 300 entered_or_ended "$3" a "$first"
	if ! entered "$3" a; then expect_end 64,69 "$first"; return; fi
	on b "semlock -w 600 -m $2 $1 inside $3 wait" & waiter=$!
	until_waits b "$2" "$1"
	sleep 1		# from its place in the line to the call that sleeps
	link b off
	let_go "$3" a
	expect_end 0 "$first"
	on a "semlock -w 5 --rm -m $2 $1 inside $3-second wait" & second=$!
	eventually 300 entered_or_ended "$3-second" a "$second"
	link b on
	# Two machines under one name: the second of a has a key of its own, to be asked for.
	if entered "$3-second" a; then
		if eventually "$((LEASE * 20))" entered "$3" b; then status=1; fi
		let_go "$3-second" a
	fi
	wait "$second" || :
	until_entered "$3" b 600
	let_go "$3" b
	expect_end 0 "$waiter"
	return "$status"
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
		for method in $kernel_methods; do
			check "NFS $version, $method: --rm under a waiter of another machine lets no two in" removed_under_a_waiter \
				"/n$version/removal$version/race-$method" "$method" "removal-$version-$method"
		done
	done
}
