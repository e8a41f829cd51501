# SPDX-License-Identifier: MIT
# failures.bash - a machine is cut off, or loses its power, while it holds a lock by each method.
# shellcheck shell=bash

STALE=12	# seconds without a heartbeat

# A case is VERSION-METHOD.
failure_cases() { # METHODS
	local version method
	for version in 3 4.2; do
		for method in $1; do echo "$version-$method"; done
	done
}

is_kernel() { # CASE
	[[ " $kernel_methods " == *" ${1#*-} "* ]]
}

# The arguments of semlock for a case: its lock, and --stale if the method is made of files.
arguments() { # TOPIC CASE [STALE]
	echo "-m ${2#*-} $(is_kernel "$2" || echo "${3:+--stale=$3}") /n${2%-*}/$1/$2"
}

# Starts the command of MACHINE for a case, in the background; its status will be in a file.
case_start() { # MACHINE TOPIC CASE [STALE]
	{
		on "$1" "semlock $(arguments "${@:2}") inside $2-$3 wait" 2>"$WORK/$2-$3.$1.errors"
		echo $? >"$WORK/$2-$3.$1"
	} &
}

expect_case_end() { # STATUS[,STATUS...] MACHINE TOPIC CASE
	eventually 600 test -s "$WORK/$3-$4.$2"
	cat "$WORK/$3-$4.$2.errors"
	expect "$1" case_status "${@:2}"
}

case_status() { # MACHINE TOPIC CASE
	return "$(<"$WORK/$2-$3.$1")"
}

all_entered() { # TOPIC
	local case
	for case in $cases; do until_entered "$1-$case" a; done
}

# a holds the lock of each of the cases, and b waits for it.
cases_start() { # TOPIC [STALE]
	local version case looks=
	for version in 3 4.2; do
		on a "mkdir -p /n$version/$1"
		on b "ls /n$version/$1" >/dev/null
	done
	for case in $cases; do case_start a "$1" "$case" "${2-}"; done
	check "NFS: one machine takes the locks, for $1" all_entered "$1"
	for case in $cases; do
		case_start b "$1" "$case" "${2-}"
		looks+="until semlock --who -m ${case#*-} /n${case%-*}/$1/$case | grep -q waiting; do sleep 0.3; done;"
	done
	on b "$looks"
}

cases_end() { # TOPIC
	local case
	for case in $cases; do
		if until_entered "$1-$case" b 300 >/dev/null; then let_go "$1-$case" b; else note "$case: b never came"; fi
	done
	on b 'pkill semlock'
}

# True if b's command entered within LIMIT seconds of EPOCH, after a's had ended.
came_within() { # KEY EPOCH LIMIT
	local came
	eventually "$((10 * ($2 + $3 - EPOCHSECONDS) + 20))" entered "$1" b
	came=$(events "$1" b: '(in|overlap)' | cut -d. -f1)
	echo "in after $((came - $2)) s"
	never_two "$1"
	((came <= $2 + $3))
}

not_yet() { # KEY
	expect 1 entered "$1" b
	never_two "$1"
}

came_after_reboot() { # KEY
	until_entered "$1" b 900
	never_two "$1"
}

# NFS 3 has no leases: the server frees a dead machine's kernel locks when that machine is up again.
power_cut() {
	local case off cases
	cases=$(failure_cases "$kernel_methods $stale_methods")
	cases_start power "$STALE"
	power_off a
	off=$EPOCHSECONDS
	for case in $cases; do
		if ! is_kernel "$case"; then
			check "NFS ${case/-/, }: the holder's power is cut: with --stale the other machine is in" \
				came_within "power-$case" "$off" $((4 * STALE))
		elif [[ $case == 4* ]]; then
			check "NFS ${case/-/, }: the holder's power is cut: the other machine is in after the lease" \
				came_within "power-$case" "$off" $((4 * LEASE))
		fi
	done
	for case in 3-flock 3-ofd 3-posix; do
		check "NFS ${case/-/, }: the holder's power is cut: the other machine waits" not_yet "power-$case"
	done
	machines_up a
	for case in 3-flock 3-ofd 3-posix; do
		check "NFS ${case/-/, }: the holder's machine is up again: the other one is in" came_after_reboot "power-$case"
	done
	cases_end power
	for version in 3 4.0 4.2; do mount_on a "$version"; done
}

# The loser's command runs on, and its semlock reports 76.
lost() { # CASE
	entered "cut-$1" b
	expect_case_end 76 a cut "$1"
}

kept() { # CASE
	expect_case_end 0 a cut "$1"
	never_two "cut-$1"
}

cut_off() {
	local case cases
	cases=$(failure_cases "$kernel_methods $file_methods")
	cases_start cut
	link a off
	sleep $((2 * LEASE + LEASE / 2))	# the test is that nothing happens in the meantime
	link a on
	eventually 900 on a "timeout 20 stat /n3/cut /n4.2/cut >/dev/null"
	for case in $cases; do
		let_go "cut-$case" a
		if is_kernel "$case" && [[ $case == 4* ]]; then
			check "NFS ${case/-/, }: the holder is cut off for two leases, another one is in: status 76" lost "$case"
		else
			check "NFS ${case/-/, }: the holder is cut off for two leases, and keeps the lock" kept "$case"
		fi
	done
	cases_end cut
}

topic_failures() {
	cut_off
	power_cut
}
