# failures.bash - a machine loses its power, or is cut off, while it holds a lock by each method.
# shellcheck shell=bash

STALE=12	# seconds without a sign of life

cases() {
	local version method
	for version in 3 4.2; do
		for method in $kernel_methods $file_methods; do echo "$version $method"; done
	done
}

is_kernel() { # METHOD
	[[ " $kernel_methods " == *" $1 "* ]]
}

# --stale=SECS, where the method knows it
stale_option() { # METHOD SECS
	is_kernel "$1" || ((${2:-0} == 0)) || echo "--stale=$2"
}

# a holds a lock of each case, and b waits for each: holders_and_waiters TOPIC [STALE].  In holder and waiter
# are the processes, by "VERSION METHOD".
holders_and_waiters() {
	local version method key lock at options
	declare -gA holder waiter
	for version in 3 4.2; do
		on a "mkdir -p /n$version/$1; semlock -m rename --init /n$version/$1/$version-rename true"
		on b "ls /n$version/$1" >/dev/null
	done
	while read -r version method; do
		key=$1-$version-$method lock=/n$version/$1/$version-$method options="-m $method $(stale_option "$method" "${2-}")"
		on a "semlock $options $lock inside $key wait" & holder[$version $method]=$!
	done < <(cases)
	while read -r version method; do until_entered "$1-$version-$method" a 600; done < <(cases)
	while read -r version method; do
		key=$1-$version-$method lock=/n$version/$1/$version-$method options="-m $method $(stale_option "$method" "${2-}")"
		on b "semlock $options $lock inside $key wait" & waiter[$version $method]=$!
	done < <(cases)
	while read -r version method; do until_waits b "$method" "/n$version/$1/$version-$method"; done < <(cases)
}

# b's command came within LIMIT seconds of EPOCH, and no other one was inside.
came_within() { # KEY EPOCH LIMIT
	local came
	eventually "$((10 * ($2 + $3 - EPOCHSECONDS) + 20))" entered "$1" b || { events "$1"; return 1; }
	came=$(events "$1" b: '(in|overlap)' | cut -d. -f1)
	echo "$((came - $2)) s"
	never_two "$1"
	((came <= $2 + $3))
}

# NFS 3 has no lease: the server frees a dead machine's lock when that machine is up again.
waits_for_the_machine() { # KEY
	! entered "$1" b || { events "$1"; return 1; }
	never_two "$1"
}

came_after_reboot() { # KEY
	until_entered "$1" b 600
	never_two "$1"
}

power_cut() {
	local version method off key
	holders_and_waiters power "$STALE"
	power_off a
	off=$EPOCHSECONDS
	while read -r version method; do
		key=power-$version-$method
		case "$version $(is_kernel "$method" && echo kernel)" in
		'3 kernel') continue ;;
		'4.2 kernel') check "NFS $version, $method: the holder's power is cut: the other machine is in when the lease is over" \
			came_within "$key" "$off" $((4 * LEASE)) ;;
		*) check "NFS $version, $method: the holder's power is cut: with --stale the other machine is in" \
			came_within "$key" "$off" $((3 * STALE)) ;;
		esac
	done < <(cases)
	for method in $kernel_methods; do
		check "NFS 3, $method: the holder's power is cut: the other machine waits" waits_for_the_machine "power-3-$method"
	done
	machine_start a
	machine_wait a
	for method in $kernel_methods; do
		check "NFS 3, $method: the machine without power is up again: the other one is in" came_after_reboot "power-3-$method"
	done
	end_waiters power
	for version in 3 4.0 4.2; do mount_on a "$version"; done
}

end_waiters() { # TOPIC
	local version method
	while read -r version method; do
		let_go "$1-$version-$method" b
		[[ ! -e /proc/${waiter[$version $method]} ]] || entered "$1-$version-$method" b || kill "${waiter[$version $method]}"
	done < <(cases)
	wait "${holder[@]}" "${waiter[@]}" 2>/dev/null
}

# The loser's command runs on; its semlock says 76.
lost_and_said_so() { # KEY PID
	entered "$1" b
	expect_end 76 "$2"
}

kept() { # KEY PID
	never_two "$1"
	expect_end 0 "$2"
}

cut_off() {
	local version method key
	holders_and_waiters cut
	link a off
	sleep $((2 * LEASE + LEASE / 2))
	link a on
	eventually 600 on a "stat /n3/cut /n4.2/cut >/dev/null"
	while read -r version method; do
		key=cut-$version-$method
		let_go "$key" a
		case "$version $(is_kernel "$method" && echo kernel)" in
		'4.2 kernel') check "NFS 4.2, $method: the holder is cut off for two leases, another one is in: status 76" \
			lost_and_said_so "$key" "${holder[$version $method]}" ;;
		*) check "NFS $version, $method: the holder is cut off for two leases, and keeps the lock" \
			kept "$key" "${holder[$version $method]}" ;;
		esac
		until_entered "$key" b >/dev/null
	done < <(cases)
	end_waiters cut
}

topic_failures() {
	cut_off
	power_cut
}
