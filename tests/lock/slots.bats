#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -j N: up to N at once, each in a slot of its own.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
CROWD=${CROWD:-$SOURCE/build/tests/crowd}
export SEMLOCK PROBE

slot_of() {
	tr '\0' '\n' <"/proc/${COMMAND[$1]}/environ" | sed -n 's/^SEMLOCK_SLOT=//p'
}

# each_method CHECK ARGS...: runs CHECK for each method; $OPTS is the method's option.
each_method() {
	local method check=$1
	shift
	for method in flock ofd posix; do
		OPTS="-m$method"
		echo "with $OPTS:"
		"$check" "l.$method" "$@" # and no "||": any failure inside of the check fails the test
	done
}

three_fit() {
	hold_as a "$OPTS" -j 3 "$1" &&
		hold_as b "$OPTS" -j 3 "$1" &&
		hold_as c "$OPTS" -j 3 "$1" &&
		[ "$(slot_of a)$(slot_of b)$(slot_of c)" = 012 ] &&
		expect_status 1 "$SEMLOCK" "$OPTS" -n -j 3 "$1" true &&
		expect_silent &&
		expect_status 1 "$SEMLOCK" "$OPTS" -w .05 -j 3 "$1" true &&
		let_go b &&
		hold_as d "$OPTS" -j 3 "$1" &&
		[ "$(slot_of d)" = 1 ] &&
		let_go a && let_go c && let_go d &&
		rm -f ./*.up ./*.down
}

@test "as many as there are slots, and no more" {
	each_method three_fit
}

waits_for_any() {
	hold_as a "$OPTS" -j 2 "$1" &&
		hold_as b "$OPTS" -j 2 "$1" &&
		fifos w &&
		start w "$SEMLOCK" "$OPTS" -j 2 "$1" "$PROBE" hold w.up w.down &&
		"$PROBE" blocked "${PID[w]}" &&
		let_go "$2" &&
		ready w &&
		[ "$(slot_of w)" = "$3" ] &&
		let_go w && let_go "$4" &&
		rm -f ./*.up ./*.down
}

@test "a waiter gets whichever slot comes free first" {
	each_method waits_for_any a 0 b
	each_method waits_for_any b 1 a
}

frees_the_dead() {
	hold_as a "$OPTS" -j 2 "$1" &&
		hold_as b "$OPTS" -j 2 "$1" &&
		kill -KILL "${PID[a]}" "${COMMAND[a]}" &&
		ended a 137 &&
		expect_status 0 "$SEMLOCK" "$OPTS" -w 60 -j 2 "$1" true &&
		hold_as c "$OPTS" -j 2 "$1" &&
		[ "$(slot_of c)" = 0 ] &&
		expect_status 1 "$SEMLOCK" "$OPTS" -n -j 2 "$1" true &&
		let_go b && let_go c &&
		rm -f ./*.up ./*.down
}

@test "the slot of a killed holder is free" {
	each_method frees_the_dead
}

@test "a killed semlock leaves the slot to its command" {
	hold_as a -j 1 l
	kill -KILL "${PID[a]}"
	ended a 137
	expect_status 1 "$SEMLOCK" -n -j 1 l true
	release a
	expect_status 0 "$SEMLOCK" -w 60 -j 1 l true
}

plain_waits_for_all() {
	hold_as a "$OPTS" -j 3 "$1" &&
		hold_as b "$OPTS" -j 3 "$1" &&
		expect_status 1 "$SEMLOCK" "$OPTS" -n "$1" true &&
		queue_as plain "$OPTS" "$1" &&
		let_go a &&
		"$PROBE" blocked "${PID[plain]}" &&
		let_go b &&
		ready plain &&
		expect_status 1 "$SEMLOCK" "$OPTS" -n -j 3 "$1" true &&
		let_go plain &&
		rm -f ./*.up ./*.down
}

@test "a plain holder waits for all slots, and keeps all slots out" {
	each_method plain_waits_for_all
}

@test "flock(1) keeps slots out, and slots keep flock(1) out" {
	FLOCK=$(system_flock)
	[ -n "$FLOCK" ]
	hold_as a -j 3 l
	expect_status 1 "$FLOCK" -n l true
	let_go a
	expect_status 1 "$FLOCK" l "$SEMLOCK" -n -j 3 l true
	expect_status 0 "$FLOCK" l true
}

byte_and_slot() {
	: >"$1"
	fifos other
	start other "$PROBE" fcntl-hold "$1" posix write 1 1 other.up other.down
	ready other
	hold_as a "$OPTS" -j 3 "$1"
	hold_as b "$OPTS" -j 3 "$1"
	[ "$(slot_of a)$(slot_of b)" = 02 ]
	expect_status 1 "$SEMLOCK" "$OPTS" -n -j 3 "$1" true
	let_go other
	expect_status 0 "$SEMLOCK" "$OPTS" -n -j 3 "$1" true
	let_go a
	let_go b
	rm -f ./*.up ./*.down
}

@test "a waiter for fewer slots is not overtaken by one that could use another" {
	hold_as a -j 1 l
	queue_as b -j 1 l
	queue_as c -j 2 l
	among_few_locks expect_status 1 "$SEMLOCK" -n -j 2 l true
	# The waiter looks after a second, and again a quarter of a second later.
	! read -r -t 3 <>c.up || complain "it went past"
	let_go a
	ready b
	ready c # slot 1 was free all the time
	let_go b
	let_go c
}

@test "a program that locks a byte takes the slot of that number" {
	for method in ofd posix; do
		OPTS="-m$method"
		byte_and_slot "l.$method"
	done
}

those_who_disagree() {
	hold_as a "$OPTS" -j 1 "$1"
	expect_status 1 "$SEMLOCK" "$OPTS" -n -j 1 "$1" true
	hold_as b "$OPTS" -j 3 "$1"
	[ "$(slot_of b)" = 1 ]
	expect_status 1 "$SEMLOCK" "$OPTS" -n -j 2 "$1" true
	hold_as c "$OPTS" -j 3 "$1"
	[ "$(slot_of c)" = 2 ]
	expect_status 1 "$SEMLOCK" "$OPTS" -n -j 3 "$1" true
	let_go a
	let_go b
	let_go c
	rm -f ./*.up ./*.down
}

@test "holders that disagree on the number of slots each see that many" {
	each_method those_who_disagree
}

@test "slots of a part of the file are refused: 64" {
	for range in "--start 100" "--length 2" "--start 0 --length 10"; do
		# shellcheck disable=SC2086 # a list of words
		refused 64 "-j and --start" "$SEMLOCK" -m ofd -j 2 $range l true
	done
	[ ! -e l ]
}

@test "a descriptor can be one of several holders" {
	exec 7>l 8>l 9>l
	expect_status 0 "$SEMLOCK" -n -j 2 7
	expect_status 0 "$SEMLOCK" -n -j 2 8
	expect_status 1 "$SEMLOCK" -n -j 2 9
	exec 7>&-
	expect_status 0 "$SEMLOCK" -n -j 2 9
	exec 8>&- 9>&-
}

@test "a descriptor that cannot have slots is refused with 65 and the reason" {
	touch l
	for method in flock ofd; do
		refused 65 "a slot, needs a descriptor open for writing" "$SEMLOCK" -m $method -j 2 8 8<l
		refused 65 "a directory can have no fcntl lock and no slots" "$SEMLOCK" -m $method -j 2 8 8<.
	done
}

@test "a descriptor that asks again for its slot has it, also with -n" {
	exec 8<>l
	expect_status 0 "$SEMLOCK" -j 2 8
	expect_status 0 "$SEMLOCK" -n -j 2 8
	hold_as other -n -j 2 l
	expect_status 1 "$SEMLOCK" -n -j 2 l true
	let_go other
	exec 8>&-
}

@test "-x with -j: a slot is its holder's alone in any case" {
	for method in flock ofd posix; do
		hold_as one -m "$method" -x -j 2 l
		expect_status 0 "$SEMLOCK" -n -m "$method" -j 2 -x l sh -c 'echo "$SEMLOCK_SLOT $SEMLOCK_MODE"'
		expect_out "1 slot"
		let_go one
		rm one.up one.down
	done
}

@test "-u releases a descriptor's slot; a repeated request gets the same slot" {
	local method way
	for method in flock ofd posix; do
		[ "$method" != posix ] || continue
		case $method in ofd) way=--fcntl ;; *) way= ;; esac
		hold_as first -m "$method" -j 2 l
		exec 8>>l
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" $way -j 2 8
		let_go first
		rm ./*.up ./*.down
		expect_status 0 "$SEMLOCK" -m "$method" -j 2 8
		hold_as first -m "$method" -j 2 l
		expect_status 1 "$SEMLOCK" -m "$method" -n -j 2 l true
		expect_status 0 "$SEMLOCK" -m "$method" -u 8
		expect_silent
		hold_as second -m "$method" -j 2 l
		let_go first
		let_go second
		exec 8>&-
		rm ./*.up ./*.down
	done
}

@test "a descriptor keeps its slot while it asks for another, in vain or not" {
	local method way wait
	for method in flock ofd; do
		case $method in ofd) way=--fcntl ;; *) way= ;; esac
		rm -f wrote
		hold_as first -m $method -j 1 l
		exec 8<>l
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" $way -j 2 8
		for wait in -n "-w .2"; do
			# shellcheck disable=SC2086
			expect_status 1 "$SEMLOCK" $way $wait -j 1 8
			expect_status 1 "$SEMLOCK" -m $method -n -j 2 l true
		done
		# A writer waits for all slots: the descriptor's, too.
		start writer "$SEMLOCK" -m $method l touch wrote 8>&-
		"$PROBE" blocked "${PID[writer]}"
		# shellcheck disable=SC2086
		start other "$SEMLOCK" $way -j 1 8
		"$PROBE" blocked "${PID[other]}"
		let_go first
		ended other 0
		[ ! -e wrote ]
		exec 8>&-
		ended writer 0
		[ -e wrote ]
		rm ./*.up ./*.down
	done
}

@test "a descriptor's other bytes stay locked while it waits for a slot" {
	: >l
	exec 8<>l
	expect_status 0 "$SEMLOCK" --fcntl --start 100 --length 10 8
	hold_as slots --fcntl --length 2 l
	expect_status 1 "$SEMLOCK" --fcntl -n -j 2 8
	expect_status 1 "$SEMLOCK" --fcntl -w .01 -j 2 8
	expect_held l ofd 100 10
	let_go slots
	queue_as other --fcntl --start 100 --length 10 l 8>&-
	expect_status 0 "$SEMLOCK" --fcntl -n -j 2 8
	expect_status 1 "$SEMLOCK" --fcntl -n -j 1 l true
	exec 8>&-
	ready other
	let_go other
}

@test "two descriptors that share all bytes do not wait for each other's slots" {
	: >l
	exec 7<>l 8<>l
	expect_status 0 "$SEMLOCK" --fcntl -s 7
	expect_status 0 "$SEMLOCK" --fcntl -s 8
	start first "$SEMLOCK" --fcntl -j 2 7 8>&-
	"$PROBE" blocked "${PID[first]}"
	expect_status 0 "$SEMLOCK" --fcntl -w 60 -j 2 8 7>&-
	ended first 0
	exec 7>&- 8>&-
}

@test "what makes no sense is refused" {
	refused 64 -j "$SEMLOCK" -j 0 l true
	refused 64 -j "$SEMLOCK" -j x l true
	refused 64 -j "$SEMLOCK" -j -1 l true
	refused 64 -j "$SEMLOCK" -j 5000 l true
	refused 64 -j "$SEMLOCK" -j 2 -s l true
	refused 64 -j "$SEMLOCK" -s -j 2 l true
	refused 64 -j "$SEMLOCK" -j 2 -f k l true
	[ ! -e l ]
	[ ! -e k ]
}

@test "a file that cannot be written has no slots, and says so" {
	: >l
	chmod 444 l
	for method in flock ofd posix; do
		expect_status 66 as_nobody "$SEMLOCK" -m "$method" -n -j 2 l true
		[[ $err == *"l: cannot open for writing"* ]] || complain "$err"
		expect_status 65 "$SEMLOCK" -m "$method" -n -j 2 . true
	done
}

@test "an inner lock's command does not see the outer lock's slot" {
	expect_status 0 "$SEMLOCK" -m posix -j 2 l "$SEMLOCK" k sh -c 'echo "${SEMLOCK_SLOT-none}"'
	expect_out none
}

@test "slots are waited for in order of arrival" {
	starts_many
	expect_status 0 "$CROWD" line 40 10 5 log "$SEMLOCK" -j 1 l
	[[ $out == "waiters 40 killed 10 served 30 inversions 0 held-up "* ]] || complain "$out"
}

@test "a waiter for a slot wakes twice a second at most, and takes any slot" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hold_as first -j2 l
	hold_as second -j2 l
	start waiter strace -f -qq -e 'trace=/^(timer_settime(64)?|execve)$' -e signal=none -o calls "$SEMLOCK" -j2 l true
	eventually grep -qs 'tv_sec=1,' calls
	fifos never
	# Each wake-up is two calls. Another process that looks at the file (--who) may close it meanwhile: then not now.
	seldom_woken() {
		local before
		before=$(wc -l <calls)
		! read -r -t 4 <>never.up || complain never
		[ $(($(wc -l <calls) - before)) -le 16 ]
	}
	eventually seldom_woken || complain "$(cat calls)"
	let_go second
	ended waiter 0
	let_go first
}

@test "never more than three inside, even with kills; all slots stay in use" {
	starts_many
	local method seconds=${THOROUGH:+4}
	for method in flock ofd posix; do
		mkdir $method
		expect_status 0 "$CROWD" kills 20 "${seconds:-2}" 1 3 $method "$SEMLOCK" -m $method -j 3 "$method/l"
		[[ $out == "visits "*" overlaps 0 places-used 3" ]] || complain "$out"
		expect_status 0 "$SEMLOCK" -m $method "$method/l" true # until then a killed semlock's command may run
		hold_as a -m $method -j 3 "$method/l"
		hold_as b -m $method -j 3 "$method/l"
		hold_as c -m $method -j 3 "$method/l"
		[ "$(slot_of a)$(slot_of b)$(slot_of c)" = 012 ]
		let_go a
		let_go b
		let_go c
		rm -f ./*.up ./*.down
	done
}

@test "the overlap check of these tests can fail" {
	mkdir d
	for seed in {1..20}; do # two meet by chance, rarely on a busy machine
		capture "$CROWD" kills 8 1 "$seed" 1 d env SEMLOCK_SLOT=0
		if [[ $out != *"overlaps 0 "* ]]; then break; fi
	done
	[ "$status" -eq 1 ] && [[ $out != *"overlaps 0 "* ]] || complain "$out"
}
