#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --status-fd: tells scripts what happened, without exit statuses.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# events ARGS...: sets $events to what semlock ARGS writes to --status-fd, in one line
events() {
	capture "$SEMLOCK" --status-fd 7 "$@" 7>.events
	events=$(untimed <.events | tr '\n' ,)
}

# says EVENTS ARGS...: semlock ARGS writes these events
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

@test "a wait that is over writes timeout, not busy" {
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

# came_in_time ARGS...: the command made the file "came" before its time was up
came_in_time() {
	rm -f came
	events --run-timeout "${room}ms" "$@"
	[ -e came ]
}

@test "run-timeout, and how the command ended then" {
	mkfifo never
	says "acquired,run-timeout,signal 15," --run-timeout .05 l sh -c 'read -r _ <>never'
	with_room came_in_time l sh -c 'read -r _ <>never & trap "exit 9" TERM; : >came; wait'
	[ "$events" = "acquired,run-timeout,exit 9," ] || complain "$events"
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

@test "stopped, once for each holder, and for a command whose semlock disobeys" {
	hold_as one -s l
	hold_as two -s l
	expect_status 0 "$SEMLOCK" -v --status-fd 7 --replace l true 7>.events
	for pid in "${PID[one]}" "${PID[two]}"; do
		[ "$(grep -cx "stopped $pid" .events)" -eq 1 ] || complain "of $pid: $(cat .events)"
		[ "$(grep -cx "semlock: l: stopped process $pid" .err)" -eq 1 ] || complain "of $pid: $err"
	done
	[ "$(grep -c stopped .events)" -eq 2 ]
	ended one 143
	ended two 143
	fifos deaf
	start deaf "$SEMLOCK" l "$PROBE" with-ignored TERM -- "$PROBE" hold deaf.up deaf.down
	ready deaf
	says "stopped ${PID[deaf]},stopped ${COMMAND[deaf]},acquired,exit 0," --kill-after .1 --replace l true
	ended deaf 137
}

@test "a command under an inherited lock writes nested, not acquired" {
	capture "$SEMLOCK" l "$SEMLOCK" --nested --status-fd 1 l sh -c 'exit 4'
	[ "$(untimed <.out | tr '\n' ,)" = "nested,exit 4," ]
}

@test "a descriptor: acquired" {
	exec 8>l
	says "acquired," 8
	exec 8>&-
}

@test "lines come as events happen; the command does not inherit the descriptor" {
	mkfifo events
	fifos one
	exec 7<>events
	start one "$SEMLOCK" --status-fd 7 l "$PROBE" hold one.up one.down
	ready one
	read -r -t "$PATIENCE" line <&7
	[ "$(untimed <<<"$line")" = acquired ]
	[ ! -e "/proc/${COMMAND[one]}/fd/7" ]
	let_go one
	read -r -t "$PATIENCE" line <&7
	[ "$(untimed <<<"$line")" = "exit 0" ]
	exec 7>&-
}

@test "standard output may be the descriptor, and stays the command's as well" {
	expect_status 0 "$SEMLOCK" --status-fd 1 l echo hello
	[ "$(untimed <.out | tr '\n' ,)" = "acquired,hello,exit 0," ]
}

@test "a reader that has gone does no harm" {
	mkfifo pipe
	exec 6<>pipe
	exec 7>pipe 6>&-
	expect_status 3 "$SEMLOCK" --status-fd 7 l sh -c 'exit 3'
	command -v strace >/dev/null || skip "no strace here"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	expect_status 3 "$PROBE" with-default PIPE -- strace -qqf -o trace -e inject=rt_sigtimedwait:error=EPERM \
		"$SEMLOCK" --status-fd 7 l sh -c 'exit 3'
	exec 7>&-
}

# with_status N EVENTS ARGS...: causes that share the status N are told apart by their events
with_status() {
	local want=$1
	shift
	says "$@"
	[ "$status" -eq "$want" ] || complain "$*: status $status instead of $want"
}

@test "causes with the same exit status are told apart" {
	mkfifo never
	hold_lock busy
	with_status 9 "busy," -n -E 9 busy true
	with_status 9 "timeout," -w .05 -E 9 busy true
	with_status 9 "acquired,exit 9," l sh -c 'exit 9'
	with_status 124 "acquired,run-timeout,signal 15," --run-timeout .05 l sh -c 'read -r _ <>never'
	with_status 124 "acquired,exit 124," --run-timeout 60 l sh -c 'exit 124'
	with_status 143 "acquired,signal 15," l sh -c 'kill -TERM $$'
	with_status 143 "acquired,exit 143," l sh -c 'exit 143'
	with_status 127 "acquired,not-run ENOENT," l nosuch
	with_status 127 "acquired,exit 127," l sh -c 'exit 127'
	with_status 66 "failed 66," /nonexistent/l true
	with_status 66 "acquired,exit 66," l sh -c 'exit 66'
	with_status 76 "acquired,exit 0,lost," -m excl --on-lost warn file sh -c 'mv file away'
	with_status 76 "acquired,exit 76," -m excl file sh -c 'exit 76'
	let_go
}

@test "the same for locks made of files" {
	mkfifo never
	for method in excl symlink; do
		hold_lock -m $method l
		with_status 9 "busy," -n -E 9 -m $method l true
		with_status 9 "timeout," -w .05 -E 9 -m $method l true
		with_status 0 "stopped ${COMMAND[holder]}," -m $method --toggle l true ||
			with_status 0 "stopped ${PID[holder]}," -m $method --toggle l true
		rm ./*.up ./*.down
		with_status 9 "acquired,exit 9," -m $method l sh -c 'exit 9'
		with_status 137 "acquired,signal 9," -m $method l sh -c 'kill -KILL $$'
		with_status 124 "acquired,run-timeout,signal 15," -m $method --run-timeout .05 l sh -c 'read -r _ <>never'
		with_status 127 "acquired,not-run ENOENT," -m $method l nosuch
	done
}

@test "no process to be had: failed, after the lock was there" {
	root_only "sets a limit for another user"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer needs a process of its own"
	: >l
	chmod 666 l
	capture setpriv --reuid=54321 --regid=54321 --clear-groups prlimit --nproc=0:0 "$SEMLOCK" --status-fd 1 l true
	[ "$status" -eq 71 ] || complain "$status" "$err"
	[ "$(untimed <.out)" = $'acquired\nfailed 71' ] || complain "$out"
}

@test "a waiter that a later one supersedes" {
	hold_lock l
	start first "$SEMLOCK" --supersede --status-fd 7 l true 7>first.events
	"$PROBE" blocked "${PID[first]}"
	start last "$SEMLOCK" --supersede l true
	ended first 1
	events=$(untimed <first.events)
	[ "$events" = "superseded" ] || complain "$events"
	let_go
	ended last 0
}

@test "every line that the manual has comes in these tests, and no other" {
	awk '/^\.SH "?STATUS LINES/ { inside = 1; next } /^\.SH/ { inside = 0 }
		inside && /^\.TP/ { getline; sub(/\\-/, "-", $2); sub(/"/, "", $2); print $2 }' "$SOURCE/man/semlock-scripting.7" | sort -u >manual
	[ -s manual ]
	grep -oE '(says|with_status [0-9]+) "[^"]*"|acquired.nfailed|= "?[a-z-]+,.*|"(nested|lost|superseded)[^"]*"' "$BATS_TEST_FILENAME" |
		grep -oE '\b(acquired|busy|exit|failed|lost|nested|not-run|run-timeout|signal|stopped|superseded|timeout)\b' | sort -u >here
	diff manual here
	grep -ohE 'status_fd_event\("[a-z-]+|\[ENDED_[A-Z_]+\] = "[a-z-]+|\[BUSY_[A-Z]+\] = \{"[a-z]+' "$SOURCE"/src/{run,preempt}/*.c |
		grep -oE '"[a-z-]+' | tr -d '"' | grep -vx toggled | sort -u >source
	diff manual source
}

@test "how long the wait was, and how long the lock was held" {
	hold_lock l
	fifos one
	start one "$SEMLOCK" --status-fd 7 l "$PROBE" hold one.up one.down 7>events
	"$PROBE" blocked "${PID[one]}"
	sleep .3
	let_go
	ready one
	sleep .2
	let_go one
	ended one 0
	awk -F '[ =]' '$1 == "acquired" { waited = $3 } $1 == "exit" { held = $4 }
		END { exit !(waited >= .3 && waited < 30 && held >= .2 && held < 30) }' events || complain "$(cat events)"
}

@test "a descriptor that is not open is refused" {
	refused 64 --status-fd "$SEMLOCK" --status-fd 99 l true
	refused 64 x "$SEMLOCK" --status-fd x l true
}
