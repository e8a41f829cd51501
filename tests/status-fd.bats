#!/usr/bin/env bats
# --status-fd: what happened, for scripts, without reading exit statuses.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"

# events ARGS...: what semlock ARGS says on --status-fd, in one line, in $events
events() {
	capture "$SEMLOCK" --status-fd 7 "$@" 7>.events
	events=$(tr '\n' , <.events)
}

# says EVENTS ARGS...
says() {
	local want=$1
	shift
	events "$@"
	[ "$events" = "$want" ] || complain "semlock $* said '$events' instead of '$want'" "$out" "$err"
}

@test "the command's end: exit N, signal N" {
	says "acquired,exit 0," l true
	says "acquired,exit 1," l false
	says "acquired,signal 9," l sh -c 'kill -KILL $$'
	says "acquired,exit 137," l sh -c 'exit 137'
}

@test "conflict and command failure with the same status are told apart" {
	hold_lock l
	says "busy," -n l true
	[ "$status" -eq 1 ]
	says "busy," -n -E 0 l true
	says "busy," -w 0 l true
	let_go
	says "acquired,exit 1," -n l false
	[ "$status" -eq 1 ]
}

@test "timeout" {
	hold_lock l
	says "timeout," -w .05 l true
	let_go
}

@test "not-run: the command is not there, or no program" {
	says "acquired,not-run ENOENT," l nosuch
	: >file
	says "acquired,not-run EACCES," l ./file
	says "acquired,not-run ENOENT," -F l nosuch
}

@test "run-timeout, and how the command ended then" {
	mkfifo never
	says "acquired,run-timeout,signal 15," --run-timeout .05 l sh -c 'read -r _ <>never'
	says "acquired,run-timeout,exit 9," --run-timeout .05 l sh -c 'trap "exit 9" TERM; read -r _ <>never & wait'
	says "acquired,run-timeout,signal 9," --run-timeout .05 --signal KILL l sh -c 'read -r _ <>never'
}

@test "failed: the lock file cannot be opened" {
	says "failed 66," /nonexistent/l true
	[ "$status" -eq 66 ]
}

@test "stopped, by --replace and --toggle" {
	hold_lock l
	says "stopped ${PID[holder]},acquired,exit 0," --replace l true
	ended holder 143
	hold_as other l
	says "stopped ${PID[other]}," --toggle l true
	ended other 143
}

@test "nested" {
	capture "$SEMLOCK" l "$SEMLOCK" --nested --status-fd 1 l sh -c 'exit 4'
	[ "$(tr '\n' , <.out)" = "nested,exit 4," ]
}

@test "a descriptor: acquired" {
	exec 8>l
	says "acquired," 8
	exec 8>&-
}

@test "the line comes when it happens, and the command does not inherit the descriptor" {
	mkfifo events
	fifos one
	exec 7<>events
	start one "$SEMLOCK" --status-fd 7 l "$PROBE" hold one.up one.down
	ready one
	read -r -t 10 line <&7
	[ "$line" = acquired ]
	[ ! -e "/proc/${COMMAND[one]}/fd/7" ]
	let_go one
	read -r -t 10 line <&7
	[ "$line" = "exit 0" ]
	exec 7>&-
}

@test "standard output may be the descriptor, and stays the command's as well" {
	expect_status 0 "$SEMLOCK" --status-fd 1 l echo hello
	[ "$(tr '\n' , <.out)" = "acquired,hello,exit 0," ]
}

@test "a reader that has gone does no harm" {
	mkfifo pipe
	exec 6<>pipe
	exec 7>pipe 6>&-
	expect_status 3 "$SEMLOCK" --status-fd 7 l sh -c 'exit 3'
	exec 7>&-
}

@test "a descriptor that is not open is refused" {
	refused 64 --status-fd "$SEMLOCK" --status-fd 99 l true
	refused 64 x "$SEMLOCK" --status-fd x l true
}
