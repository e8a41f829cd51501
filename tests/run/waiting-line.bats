#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a waiter, or a refused semlock, prints, on a terminal and elsewhere.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# terminal ARGS... <SCRIPT: semlock ARGS on a terminal; what the terminal showed is in .shown
terminal() {
	status=0
	TERM=xterm "$PROBE" pty "$SEMLOCK" "$@" >.shown 2>.err 3>&- 4>&- || status=$?
}

# at_the_end: the terminal's line at the end: a carriage return goes back to the beginning of the line, words
# overwrite, ESC [ K removes the rest
at_the_end() {
	awk 'function put(words) {
			line = substr(line, 1, column) words substr(line, column + length(words) + 1)
			column += length(words)
		}
		BEGIN { RS = "\r" }
		{
			sub(/^\n/, "")
			column = 0
			while ((at = index($0, "\033[K")) > 0) {
				put(substr($0, 1, at - 1))
				line = substr(line, 1, column)
				$0 = substr($0, at + 3)
			}
			put($0)
		}
		END { printf "%s", line }' .shown
}

@test "the terminal of these tests can be left with a line on it" {
	printf '\rsemlock: l\033[K' >.shown
	[ "$(at_the_end)" = "semlock: l" ]
	printf '\rsemlock: l\033[K\rno\033[K' >.shown
	[ "$(at_the_end)" = no ]
	printf '\rsemlock: l\033[K\r\033[K' >.shown
	[ -z "$(at_the_end)" ]
}

# on_terminal ARGS...: semlock ARGS on a terminal in the background, as "waiter"
on_terminal() {
	TERM=xterm start waiter "$PROBE" pty "$SEMLOCK" "$@"
}

shown() {
	eventually grep -q "$1" waiter.out || complain "$(cat -v waiter.out)"
}

# until_of BEGAN SECONDS: the line showed the time of day SECONDS after BEGAN, or a little later
until_of() {
	local began=$1 at
	for at in "$began" $((began + 1)) $((began + 2)); do
		grep -qF "; until $(date -d "@$((at + $2))" +%T)" .shown && return
	done
	complain "$(cat -v .shown)"
}

drawn() {
	tr '\r' '\n' <"$1" | grep -c "semlock: $2: held by"
}

@test "as soon as it waits there is one line: holder, since when, place; and it is gone at the end" {
	hold_lock l
	on_terminal l true
	shown "semlock: l: held by ${COMMAND[holder]} (probe hold .*; 1st of 1"
	let_go
	ended waiter 0
	cp waiter.out .shown
	[ -z "$(at_the_end)" ]
	[ "$(tr -cd '\n' <.shown | wc -c)" -eq 0 ]
}

@test "until when it waits at most, and at its end the holder that still has the lock" {
	hold_lock l
	began=$(date +%s)
	terminal -w 2 l true </dev/null
	[ "$status" -eq 1 ]
	until_of "$began" 2
	case $(at_the_end) in
	"semlock: l: held by ${COMMAND[holder]} (probe hold holder.up holder.down) since "*"; the time is up"*) ;;
	*) complain "$(cat -v .shown)" ;;
	esac
	let_go
}

# The head of the queue sleeps in the lock's own call, and would lose its place there to programs that do not queue.
@test "the first in the queue is not woken for its line" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hold_lock l
	TERM=xterm start waiter "$PROBE" pty strace -f -qq -e 'trace=/^(flock|timer_settime(64)?)$' -o calls "$SEMLOCK" l true
	shown "1st of 1"
	eventually grep -q 'flock(3, LOCK_EX *$\|flock(3, LOCK_EX)* *<unf\|LOCK_EX$' calls
	cp calls before
	fifos never
	! read -r -t 3 <>never.up || complain never
	[ "$(wc -l <calls)" -eq "$(wc -l <before)" ] || complain "$(cat calls)"
	let_go
	ended waiter 0
	[ "$(drawn waiter.out l)" -eq 1 ] || complain "$(cat -v waiter.out)"
}

@test "when the queue moves, the line says so" {
	hold_lock l
	queue_as one l
	on_terminal l true
	shown "2nd of 2"
	let_go
	ready one
	shown "held by ${COMMAND[one]} .*1st of 1"
	let_go one
	ended waiter 0
}

@test "the place in the queue" {
	hold_lock l
	queue_as one l
	printf 'expect 2nd of 2\nsend ^C\n' >script
	terminal l true <script
	[ "$status" -eq 130 ]
	let_go
	ready one
	let_go one
}

@test "interrupted by a key: no trace" {
	hold_lock l
	printf 'expect held by\nsend ^C\n' >script
	terminal l true <script
	[ "$status" -eq 130 ]
	[ -z "$(at_the_end)" ]
	let_go
}

@test "a waiter that shows the line keeps its place: later ones are served later" {
	hold_lock l
	TERM=xterm start first "$PROBE" pty "$SEMLOCK" l sh -c 'echo first >>order'
	inode=$(stat -c %i l)
	eventually grep -q -e "-> FLOCK.*:$inode " /proc/locks
	start second "$SEMLOCK" l sh -c 'echo second >>order'
	"$PROBE" blocked "${PID[second]}"
	eventually grep -q "held by" first.out
	let_go
	ended first 0
	ended second 0
	[ "$(tr '\n' , <order)" = first,second, ]
}

@test "-q, a dumb terminal, and the name flock: nothing" {
	hold_lock l
	terminal -q -w .3 l true </dev/null
	[ ! -s .shown ]
	status=0
	TERM=dumb "$PROBE" pty "$SEMLOCK" -q -w .3 l true >.shown </dev/null 3>&- || status=$?
	[ ! -s .shown ]
	TERM=dumb "$PROBE" pty "$SEMLOCK" -w .3 l true >.shown </dev/null 3>&- || status=$?
	[ "$(drawn .shown l)" -eq 1 ]
	[ "$(tr -cd '\r' <.shown | wc -c)" -eq 0 ]
	grep -q "held by" .shown
	TERM=xterm "$PROBE" pty "$FLOCK" -w .3 l true >.shown </dev/null 3>&- || status=$?
	[ ! -s .shown ]
	let_go
}

@test "NO_COLOR: no colour, as ever" {
	hold_lock l
	printf 'expect held by\nsend ^C\n' >script
	NO_COLOR=1 terminal l true <script
	[ "$(tr -d '\r' <.shown | grep -c $'\e\[[0-9;]*m')" -eq 0 ]
	let_go
}

@test "in a pipe: not one byte, neither waiting nor refused" {
	hold_lock l
	for how in -n "-w .3"; do
		# shellcheck disable=SC2086
		TERM=xterm expect_status 1 "$SEMLOCK" $how l true
		expect_silent
	done
	let_go
}

@test "a lock made of files: holder, place and time as well" {
	for method in excl link mkdir symlink rename; do
		[ $method != rename ] || "$SEMLOCK" -m rename --init l true
		hold_lock -m $method l
		queue_as one -m $method l
		began=$(date +%s)
		terminal -m $method -w 2 l true </dev/null
		until_of "$began" 2
		grep -q "held by ${COMMAND[holder]} (probe.*; 2nd of 2; until" .shown || complain "$method: $(cat -v .shown)"
		case $(at_the_end) in
		"semlock: l: held by ${COMMAND[holder]} "*"; the time is up"*) ;;
		*) complain "$method: $(cat -v .shown)" ;;
		esac
		let_go
		ready one
		let_go one
		rm ./*.up ./*.down
	done
}

@test "a lock made of files: a key ends the wait, no trace on the terminal, and the command never runs" {
	for method in excl mkdir symlink; do
		hold_lock -m $method l
		printf 'expect held by\nsend ^C\n' >script
		terminal -m $method l touch ran <script
		[ "$status" -eq 130 ]
		[ -z "$(at_the_end)" ]
		let_go
		rm ./*.up ./*.down
		expect_status 0 "$SEMLOCK" -n -m $method l true
		[ ! -e ran ]
	done
}

# The command starts while the line is shown, and showing the line blocks signals.
@test "after a wait on a terminal, the command finds its signals as semlock found them" {
	for way in "" "-m excl" "-m mkdir" "-m symlink"; do
		# shellcheck disable=SC2086
		hold_lock $way l
		# shellcheck disable=SC2086
		on_terminal $way l sh -c 'exec grep SigBlk /proc/self/status >mask'
		shown "held by"
		let_go
		ended waiter 0
		grep -qx 'SigBlk:	0*' mask || complain "$way: $(cat mask)"
		rm -f ./*.up ./*.down l
	done
}

@test "a lock made of files, in a pipe: not one byte" {
	for method in excl mkdir symlink; do
		hold_lock -m $method l
		for how in -n "-w .3"; do
			# shellcheck disable=SC2086
			TERM=xterm expect_status 1 "$SEMLOCK" $how -m $method l true
			expect_silent
		done
		let_go
		rm ./*.up ./*.down
	done
}

one_waits() {
	"$SEMLOCK" --who -m excl l >.out || grep -q ' 1 waiting' .out
}

@test "a lock made of files: a waiter that shows the line keeps its place" {
	hold_lock -m excl l
	TERM=xterm start first "$PROBE" pty "$SEMLOCK" -m excl l sh -c 'echo first >>order'
	eventually one_waits
	start second "$SEMLOCK" -m excl l sh -c 'echo second >>order'
	"$PROBE" blocked "${PID[second]}"
	eventually grep -q "held by" first.out
	let_go
	ended first 0
	ended second 0
	[ "$(tr '\n' , <order)" = first,second, ]
}

# two_lines CMD...: CMD, which waits for $room ms, was in time with the line of a wait, before the one of its end.  (Another
# process writes it, and ends with the wait.)
two_lines() {
	expect_status 1 "$@" || return
	[ "$(wc -l <.err)" -eq 2 ]
}

waits_with_words() {
	two_lines "$SEMLOCK" -v -w "${room}ms" l true
}

@test "-v in a pipe: a line at once, and one when the wait was in vain" {
	hold_lock l
	with_room waits_with_words
	holder="held by ${COMMAND[holder]} (probe hold holder.up holder.down) since [0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
	sed -n 1p .err | grep -qx "semlock: l: waiting: $holder; 1st of 1; until [0-9:]*"
	sed -n 2p .err | grep -qx "semlock: l: $holder; the time is up"
	expect_status 1 "$SEMLOCK" -v -n l true
	grep -qx "semlock: l: $holder" .err
	let_go
}

@test "a descriptor's holder may be older than its lock: started, not since" {
	fifos shell
	start shell bash -c 'exec 8>l; "$0" 8; "$1" hold shell.up shell.down; :' "$SEMLOCK" "$PROBE"
	ready shell
	expect_status 1 "$SEMLOCK" -v -n l true
	grep -q "held by ${PID[shell]} (bash -c .*, started [0-9:]*)" .err
	let_go shell
}

@test "several holders are counted" {
	hold_as one -s l
	hold_as two -s l
	expect_status 1 "$SEMLOCK" -v -n l true
	grep -q "held by .* and 1 more" .err
	let_go one
	let_go two
}

descriptor_waits() {
	two_lines bash -c 'exec 8>l; exec "$0" -v -w "$1"ms 8' "$SEMLOCK" "$room"
}

@test "a descriptor: on a terminal, in a pipe, and on a terminal of no kind" {
	hold_lock l
	TERM=xterm "$PROBE" pty bash -c 'exec 8>l; exec "$0" -w .3 8' "$SEMLOCK" >.shown </dev/null 3>&- 4>&- || [ $? -eq 1 ]
	tr '\r' '\n' <.shown | grep -q "^semlock: descriptor 8: held by ${COMMAND[holder]} " || complain "$(cat -v .shown)"
	with_room descriptor_waits
	sed -n 1p .err | grep -q "^semlock: descriptor 8 ($PWD/l): waiting: held by ${COMMAND[holder]} " || complain "$err"
	for kind in "-u TERM" TERM=; do
		# shellcheck disable=SC2086 # words
		env $kind "$PROBE" pty "$SEMLOCK" -w .3 l true >.shown </dev/null 3>&- 4>&- || [ $? -eq 1 ]
		[ "$(tr -cd '\r' <.shown | wc -c)" -eq 0 ] || complain "$kind: $(cat -v .shown)"
		grep -q "held by" .shown
	done
	let_go
}

@test "-v: a log file gets the holder and the place at once, and again after 10 seconds, but not before" {
	hold_lock l
	start waiter "$SEMLOCK" -v -w 60 l true
	eventually grep -q "^semlock: l: waiting: held by ${COMMAND[holder]} .*; 1st of 1; until " waiter.err
	"$PROBE" pause 1000
	[ "$(grep -c waiting: waiter.err)" -eq 1 ]
	eventually two_messages
	let_go
	ended waiter 0
	[ "$(grep -c waiting: waiter.err)" -eq 2 ]
}

two_messages() {
	[ "$(grep -c waiting: waiter.err)" -eq 2 ]
}

@test "-v: with -w the last line names the holder that was waited for" {
	hold_lock l
	expect_status 1 "$SEMLOCK" -v -w .05 l true
	[[ $(tail -n1 .err) == "semlock: l: held by ${COMMAND[holder]} "*"; the time is up" ]] || complain "$err"
	let_go
}
