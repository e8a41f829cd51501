# SPDX-License-Identifier: MIT
# checks.bash - TAP, and the referee's log; to be sourced after machines.bash.
# shellcheck shell=bash

kernel_methods='flock ofd posix'
file_methods='excl link mkdir symlink'	# rename is refused: topics/refused.bash
stale_methods='excl link symlink'

# check SENTENCE FUNCTION ARG... - one test, which may run beside others.  As in bats, the function ends at
# the first command that fails; then its output is shown.
check() {
	local log status
	log=$(mktemp "$WORK/check.XXXXXX")
	(set -e; "${@:2}") >"$log" 2>&1
	status=$?
	echo "$status" >>"$WORK/statuses"
	if ((status == 0)); then
		echo "ok - $1"
	else
		printf 'not ok - %s\n%s\n' "$1" "$(tail -n 15 "$log" | sed 's/^/#   /')"
	fi
}

note() {
	echo "# $*"
}

# eventually TENTHS COMMAND... - repeats the command until it succeeds within that time, at least once.
eventually() {
	local end=$((EPOCHSECONDS + 1 + $1 / 10))
	until "${@:2}"; do
		((EPOCHSECONDS < end)) || { echo "not within $1 tenths of a second: ${*:2}"; return 1; }
		sleep 0.1
	done
}

# expect STATUS[,STATUS...] COMMAND... - the command ends with one of them.
expect() {
	local status=0
	"${@:2}" || status=$?
	[[ ,$1, == *,$status,* ]] || { echo "status $status instead of $1: ${*:2}"; return 1; }
}

# expect_end STATUS[,STATUS...] PID - the same of a process that was started before.
expect_end() {
	expect "$1" wait "$2"
}

events() { # KEY [HOST [in|overlap|out|gone]]
	grep -E "^[0-9.]+ ${3:-[a-z]+} $1 ${2:-}" "$WORK/referee.log"
}

# True if a command of HOST is inside, or was: entered KEY HOST
entered() {
	events "$1" "$2:" '(in|overlap)' >/dev/null
}

until_entered() { # KEY HOST [TENTHS]
	eventually "${3:-600}" entered "$1" "$2" || { events "$1"; return 1; }
}

# A command that is refused never enters.
entered_or_ended() { # KEY HOST PID
	entered "$1" "$2" || ! kill -0 "$3" 2>/dev/null
}

never_two() { # KEY
	! events "$1" '' overlap || { events "$1"; return 1; }
}

# Ends the command of HOST that waits inside.
let_go() { # KEY HOST
	local referee
	exec {referee}<>"/dev/tcp/127.0.0.1/$referee_port"
	echo "go $1 $2" >&"$referee"
	exec {referee}>&-
}

until_waits() { # HOST METHOD LOCK [NUMBER]
	eventually 600 on "$1" "semlock --who -m $2 $3 | grep -q '[^0-9]${4:-1} waiting'"
}

# The release of a lock made of files is no event for another machine: its cache drops the name when it reads
# the directory.
new_lock() { # LOCK
	on b "ls $(dirname "$1")" >/dev/null
}

mount_on() { # MACHINE VERSION [OPTION] - at /nVERSION, or /nVERSION-OPTION
	local at=/n$2${3:+-cached}
	on "$1" "mkdir -p $at && mountpoint -q $at || mount -t nfs -o vers=$2,proto=tcp${3:+,$3} server:/keep/export $at"
}
