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

# until_of BEGAN SECONDS: the line showed the time of day SECONDS after a moment between BEGAN and now
until_of() {
	local at time shown
	shown=$(tr -d '\0' <.shown)
	for ((at = $1; at <= EPOCHSECONDS; at++)); do
		printf -v time '%(%T)T' $((at + $2))
		[[ $shown != *"; until $time"* ]] || return 0
	done
	complain "$(cat -v .shown)"
}

# timed_on_terminal ARGS...: semlock -w SECONDS ARGS waits in vain on a terminal, which shows until when.  The slower the
# machine draws that line, the longer semlock waits.
timed_on_terminal() {
	local seconds began
	for seconds in 2 8 32; do
		began=$EPOCHSECONDS
		terminal -w $seconds "$@" </dev/null
		if until_of "$began" $seconds; then return; fi
	done
	return 1
}

drawn() {
	tr '\r' '\n' <"$1" | grep -c "semlock: $2: held by"
}

@test "a waiter shows holder, time and place at once, in a line erased later" {
	hold_lock l
	on_terminal l true
	shown "semlock: l: held by ${COMMAND[holder]} (probe hold .*; 1st of 1"
	let_go
	ended waiter 0
	cp waiter.out .shown
	[ -z "$(at_the_end)" ]
	[ "$(tr -cd '\n' <.shown | wc -c)" -eq 0 ]
}

@test "the line shows the end of the wait, and then who still holds the lock" {
	hold_lock l
	timed_on_terminal l true
	[ "$status" -eq 1 ]
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
	[ "$(drawn waiter.out l)" -eq 1 ] || complain "$(cat -v waiter.out)"
	let_go
	ended waiter 0
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

@test "a waiter that shows the line keeps its place before later ones" {
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
		timed_on_terminal -m $method l true
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

@test "lock of files: a key ends the wait without a trace, and nothing runs" {
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
@test "after a wait on a terminal, the command's signals are as at the start" {
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
	holder="held by ${COMMAND[holder]} (probe hold holder.up holder.down) since [0-2][0-9]:[0-5][0-9]:[0-6][0-9], [0-9]* s" more="; semlock --who l says more"
	sed -n 1p .err | grep -qx "semlock: l: waiting: $holder; 1st of 1; until [0-9:]*$more"
	sed -n 2p .err | grep -qx "semlock: l: $holder; the time is up$more"
	expect_status 1 "$SEMLOCK" -v -n l true
	grep -qx "semlock: l: $holder$more" .err
	let_go
}

@test "a descriptor's holder may be older than its lock: started, not since" {
	fifos shell
	start shell bash -c 'exec 8>l; "$0" 8; "$1" hold shell.up shell.down; :' "$SEMLOCK" "$PROBE"
	ready shell
	# A refusal has 50 ms of processor time to find a holder that only its descriptor tells, which a slow machine needs
	# for a part of the processes.  A wait goes on looking.
	start waiter "$SEMLOCK" -v l true
	eventually grep -q "held by ${PID[shell]} (bash -c .*, started [0-9:]*, [0-9]* s ago)" waiter.err || complain "$(cat waiter.err)"
	expect_status 1 "$SEMLOCK" -v -n l true
	[[ $err =~ "held by ${PID[shell]} (bash -c ".*", started "[0-9:]*", "[0-9]*" s ago)" || $err == *"was not looked for in all processes; semlock --who l says more" ]] ||
		complain "$err"
	let_go shell
	ended waiter 0
}

@test "several holders are counted" {
	hold_as one -s l
	hold_as two -s l
	start waiter "$SEMLOCK" -v l true # a refusal may be too brief to find both
	eventually grep -q "held by .* and 1 more" waiter.err
	let_go one
	let_go two
	ended waiter 0
}

descriptor_waits() {
	two_lines bash -c 'exec 8>l; exec "$0" -v -w "$1"ms 8' "$SEMLOCK" "$room"
}

# descriptor_shown: the line of a wait for a descriptor was there before its time was up
descriptor_shown() {
	TERM=xterm "$PROBE" pty bash -c 'exec 8>l; exec "$0" -w "$1"ms 8' "$SEMLOCK" "$room" >.shown </dev/null 3>&- 4>&- ||
		[ $? -eq 1 ] || return
	tr '\r' '\n' <.shown | grep -q "^semlock: descriptor 8: held by ${COMMAND[holder]} "
}

# held_shown: a semlock on a terminal of no kind has said in its time by what the lock is held
held_shown() {
	# shellcheck disable=SC2086 # words
	env $kind "$PROBE" pty "$SEMLOCK" -w "${room}ms" l true >.shown </dev/null 3>&- 4>&- || [ $? -eq 1 ] || return
	grep -q "held by" .shown
}

@test "a descriptor: on a terminal, in a pipe, and on a terminal of no kind" {
	hold_lock l
	with_room descriptor_shown || complain "$(cat -v .shown)"
	with_room descriptor_waits
	sed -n 1p .err | grep -q "^semlock: descriptor 8 ($PWD/l): waiting: held by ${COMMAND[holder]} " || complain "$err"
	for kind in "-u TERM" TERM=; do
		with_room held_shown
		[ "$(tr -cd '\r' <.shown | wc -c)" -eq 0 ] || complain "$kind: $(cat -v .shown)"
	done
	let_go
}

@test "-v: a log file gets holder and place at once, and again after 10 s" {
	hold_lock l
	began=${EPOCHREALTIME/[.,]/}
	start waiter "$SEMLOCK" -v -w 60 l true
	eventually grep -q "^semlock: l: waiting: held by ${COMMAND[holder]} .*; 1st of 1; until " waiter.err
	eventually two_messages
	[ $((${EPOCHREALTIME/[.,]/} - began)) -ge 9500000 ] || complain "before 10 seconds have passed: $(cat waiter.err)"
	let_go
	ended waiter 0
}

two_messages() {
	[ "$(grep -c waiting: waiter.err)" -ge 2 ]
}

# named_at_the_end: the wait was long enough to find the holder
named_at_the_end() {
	expect_status 1 "$SEMLOCK" -v -w "${room}ms" l true || return
	[[ ${err##*$'\n'} == "semlock: l: held by ${COMMAND[holder]} "*"; the time is up; semlock --who l says more" ]]
}

@test "-v: with -w the last line names the holder that was waited for" {
	hold_lock l
	with_room named_at_the_end || complain "$err"
	let_go
}
