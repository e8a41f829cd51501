#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --hold=NAME, --die-with-parent=NAME: the nearest ancestor of that name.
# shellcheck disable=SC2016 # the shell that is started expands it
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	export SEMLOCK
	mkfifo never
}

# copy_bash NAME: bash is also the program NAME
copy_bash() {
	cp "$(command -v bash)" "$1"
}

# holder LOCK: the process for which it is held
holder() {
	"$SEMLOCK" --who --json "$1" | jq '.[0].holders[0].pid'
}

# holds NAME FILE: a hold that asked for NAME (its output is out) is for the process in FILE, and ends with it
holds() {
	local pid
	eventually grep -q ^OK out || complain "$(cat out err)" || return
	pid=$(cat "$2")
	[ "$(holder l)" = "$pid" ] || complain "$1: held by $(holder l), and not by $pid" || return
	kill -KILL "$pid"
	eventually "$SEMLOCK" -n l true
	rm out
}

# below CMD...: runs CMD, a script that runs its arguments, with semlock --hold=$name among them
below() {
	"$@" "$SEMLOCK" --hold="$name" --detach l >out 2>err </dev/null 3>&- 4>&- &
	disown
}

@test "its comm, its program, or its interpreter's script, over a shell" {
	local name between=(sh -c '"$@"; exit $?' -)
	name=claude # the program and its comm
	copy_bash claude
	below ./claude -c 'echo $$ >pid; "$@"; read -r _ <never' - "${between[@]}"
	holds claude pid

	name=agent # comm alone
	below bash -c 'printf agent >/proc/self/comm; echo $$ >pid; "$@"; read -r _ <never' - "${between[@]}"
	holds agent pid

	name=claude # the program alone
	below ./claude -c 'printf agent >/proc/self/comm; echo $$ >pid; "$@"; read -r _ <never' - "${between[@]}"
	holds claude pid

	name=job.sh # a script of which comm is the interpreter's
	echo 'echo $$ >pid; "$@"; read -r _ <never' >job.sh
	below bash --norc -eo pipefail ./job.sh "${between[@]}"
	holds job.sh pid

	name=job.py
	echo 'import os, subprocess, sys; open("pid", "w").write(str(os.getpid())); subprocess.run(sys.argv[1:]); open("never").read()' >job.py
	below /usr/bin/python3 -u "$PWD/job.py" "${between[@]}"
	holds job.py pid
}

@test "the nearest of several; of a shell and its subshell, the shell" {
	local name=outer
	echo 'echo $$ >pid.$1; shift; "$@"; read -r _ <never' >outer
	below bash ./outer 1 bash ./outer 2
	holds outer pid.2
	kill -KILL "$(cat pid.1)"
	echo 'echo $$ >pid; (:; ("$@"; :) | cat); read -r _ <never' >outer
	below bash ./outer
	holds outer pid
}

@test "a number is a PID, and what is no ancestor is refused with the list" {
	local name
	sleep 600 3>&- 4>&- &
	for name in sleep no-such "sh -c" -5 4x; do
		refused 64 "--hold=$name: no ancestor of this process has that name (ancestors: $$ " "$SEMLOCK" --hold="$name" --detach l
		refused 64 "--die-with-parent=$name: no ancestor" "$SEMLOCK" --die-with-parent="$name" l true
	done
	[[ $err == *", 1 "* || $err == *", ..."* ]] || complain "not all of them: $err"
	refused 64 "--hold : invalid process ID" "$SEMLOCK" --hold= --detach l
	refused 64 "--hold 99999999999: invalid process ID" "$SEMLOCK" --hold=99999999999 --detach l
	expect_status 0 "$SEMLOCK" --hold=$$ --detach l
	expect_status 0 "$SEMLOCK" --release="$out" l
}

@test "the names of ancestors reach a terminal without control characters" {
	capture /usr/bin/python3 -c 'import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(15, b"x\x1b[31m\nsemlck: y", 0, 0, 0)
sys.exit(subprocess.run(sys.argv[1:]).returncode)' "$SEMLOCK" --hold=nobody --detach l
	[ "$status" -eq 64 ] && [ "$(wc -l <.err)" -eq 1 ] || complain "$status: $err"
	! grep -q $'\e' .err || complain "$err"
	[[ $err == *"x?[31m?semlck: "* ]] || complain "$err"
}

@test "--die-with-parent=NAME: the command ends with that ancestor" {
	copy_bash runner
	fifos work
	start runner ./runner -c 'sh -c "\"\$@\"; exit" - "$@" & wait; read -r _ <never' - \
		"$SEMLOCK" --die-with-parent=runner l "$PROBE" hold work.up work.down
	PID[work]=${PID[runner]}
	ready work
	kill -KILL "${PID[runner]}"
	"$PROBE" gone "${COMMAND[work]}"
	expect_status 0 "$SEMLOCK" -w "$PATIENCE" l true
}

@test "--who shows the name of the process that a lock is held for" {
	local name=Runner.Worker
	copy_bash Runner.Worker
	below ./Runner.Worker -c 'echo $$ >pid; "$@"; read -r _ <never' -
	eventually grep -q ^OK out
	capture "$SEMLOCK" --who l
	grep -q "^held *$(cat pid) .* Runner.Worker " .out || complain "$out"
	[ "$("$SEMLOCK" --who --json l | jq -r '.[0].holders[0].name')" = Runner.Worker ] || complain "$("$SEMLOCK" --who --json l)"
	kill -KILL "$(cat pid)"
}

@test "outside of this PID namespace, no ancestor is named" {
	namespaces --pid --fork
	refused 64 "(ancestors: none that can be seen)" unshare --pid --fork --kill-child "$SEMLOCK" --hold=bash --detach l
}
