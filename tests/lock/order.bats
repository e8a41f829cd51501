#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Waiters are served in the order in which they came; an obstacle costs that order, and no more.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
CROWD=${CROWD:-$SOURCE/build/tests/crowd}

# The inode may have been another lock's, whose killed waiters left their queue.
prepare() {
	: >l
	: >l2
	rm -rf "$(queue_of l)" "$(queue_of l2)"
}

# expect_line WORDS: the counts of crowd line; how many waiters were passed by while held up is not compared.
expect_line() {
	[[ $out == "$1 held-up "* ]] || complain "$out" "instead of $1"
}

@test "a thousand waiters are served in order, even with a quarter killed" {
	expect_status 0 "$CROWD" line 1000 250 7 log "$SEMLOCK" l
	expect_line "waiters 1000 killed 250 served 750 inversions 0"
}

@test "the same count finds flock(1)'s waiters out of order" {
	FLOCK=$(system_flock)
	[ -n "$FLOCK" ]
	capture "$CROWD" line 300 75 7 log "$FLOCK" l
	[[ $out == "waiters 300 killed 75 served 225 inversions "* && $out != *" inversions 0 held-up 0" ]] || complain "$out"
}

@test "every method queues" {
	local method
	for method in ofd posix; do
		expect_status 0 "$CROWD" line 100 25 3 "log.$method" "$SEMLOCK" -m $method "l.$method"
		expect_line "waiters 100 killed 25 served 75 inversions 0"
	done
	expect_status 0 "$CROWD" line 40 10 3 log.slot "$SEMLOCK" -j 1 l.slot
	expect_line "waiters 40 killed 10 served 30 inversions 0"
}

@test "looping commands do not overtake a waiter; flock(1)'s do" {
	local tool
	FLOCK=$(system_flock)
	[ -n "$FLOCK" ]
	expect_status 0 "$CROWD" loops 8 50 0 1000 "$SEMLOCK" l
	# The waiter that is next is slow to take the lock.  The next round of a loop finds the lock free.
	hold_lock l2
	hang_as waiter l2
	let_go
	SEMLOCK_CRASH=attempt.free:stop start round "$CRASHABLE_SEMLOCK" l2 true
	"$PROBE" state "${PID[round]}" T
	kill -CONT "${PID[waiter]}"
	ready waiter
	kill -CONT "${PID[round]}"
	"$PROBE" blocked "${PID[round]}"
	let_go waiter
	ended round 0
	rm ./*.up ./*.down
	fifos waiter
	hold_by_flock holder l2
	start waiter "$FLOCK" l2 "$PROBE" hold waiter.up waiter.down
	"$PROBE" blocked "${PID[waiter]}"
	kill -STOP "${PID[waiter]}"
	"$PROBE" state "${PID[waiter]}" T
	let_go
	expect_status 0 "$FLOCK" -n l2 true
	kill -CONT "${PID[waiter]}"
	ready waiter
	let_go waiter
}

@test "a writer gets in among readers that never cease" {
	expect_status 0 "$CROWD" writer 8 40 2000 "$SEMLOCK" l # crowd checks "overtaken by at most 8"
}

@test "a reader that comes after a writer waits behind it" {
	hold_as reader -s l
	queue_as writer l
	queue_as late -s l
	release reader
	ready writer
	"$PROBE" blocked "${PID[late]}"
	release writer
	ready late
	ended reader 0
	ended writer 0
	let_go late
}

# The waiter for a part looks after a second, and again a quarter of a second later.
@test "a waiter for a part of the lock never overtakes a waiter for all of it" {
	local less name names=()
	for less in '-s -m flock' '-s -m ofd' '-s -m posix' '-j2 -m flock' '-j2 -m ofd'; do
		name=${less// /}
		names+=("$name")
		# shellcheck disable=SC2086 # words
		hold_as "holder$name" $less "l$name"
		# shellcheck disable=SC2086
		queue_as "next$name" ${less#* } "l$name"
		# shellcheck disable=SC2086
		queue_as "behind$name" $less "l$name"
	done
	! read -r -t 3 <>"behind${names[0]}.up" || complain "it went past"
	for name in "${names[@]}"; do
		release "holder$name"
		ready "next$name"
		"$PROBE" blocked "${PID[behind$name]}"
		release "next$name"
		ready "behind$name"
		let_go "behind$name"
	done
}

@test "nor where the list of all locks is longer than -n has time for" {
	[ -n "${THOROUGH-}" ] || skip "THOROUGH=1: for its time a reader's -n passes waiters by, on the whole machine"
	local cpus
	cpus=$(sed -n 's/^Cpus_allowed_list:[[:blank:]]*//p' /proc/self/status)
	mkfifo many.up
	# The list has the locks of one processor behind those of another.
	start many taskset -c "${cpus%%[-,]*}" "$PROBE" tickets database 40000 many.up
	read -r _ <many.up
	taskset -cp "${cpus##*[-,]}" $BASHPID >/dev/null
	hold_as holder -s -m ofd l
	queue_as next -m ofd l
	queue_as behind -s -m ofd l
	! read -r -t 4 <>behind.up || complain "it went past"
	release holder
	ready next
	kill "${PID[many]}"
	let_go next
	ready behind
	let_go behind
}

# passes_stopped: "behind" enters past "stopped".  If another process continues "stopped", "behind" waits, as it should.
# So stop it again, and print the state of all processes.  A waiter that hangs for another reason still fails the test.
passes_stopped() {
	local began try PATIENCE=$((PATIENCE / 2))
	for try in 1 2 3; do
		kill -STOP "${PID[stopped]}"
		began=$SECONDS
		if ready behind; then
			[ $((SECONDS - began)) -le "$(stretched 10)" ] || complain "it took $((SECONDS - began)) seconds"
			return
		fi
		echo "# try $try: behind waits; $(show_processes | tr '\n' ';')" >&3
	done
	return 1
}

@test "among readers, too, a stopped writer is passed by" {
	hold_as reader -s l
	queue_as stopped l
	queue_as behind -s l
	passes_stopped
	kill -CONT "${PID[stopped]}"
	let_go reader
	let_go behind
	ready stopped
	let_go stopped
}

@test "a descriptor waits in the same line" {
	exec 8>>l
	hold_lock l
	queue_as first l
	start second "$SEMLOCK" 8
	"$PROBE" blocked "${PID[second]}"
	queue_as third l 8>&-
	release holder
	ready first
	"$PROBE" blocked "${PID[second]}"
	release first
	ended second 0
	"$PROBE" blocked "${PID[third]}"
	exec 8>&-
	ready third
	let_go third
}

@test "a killed descriptor waiter leaves no ticket behind in the shell" {
	exec 8>>l
	hold_lock l
	start waiter "$SEMLOCK" 8
	"$PROBE" blocked "${PID[waiter]}"
	kill -KILL "${PID[waiter]}"
	ended waiter 137
	let_go
	expect_status 0 "$SEMLOCK" -n l true
	exec 8>&-
}

# keeps_nobody_out METHOD HOW: a waiter that is stopped, or hangs, keeps no process from a free lock
keeps_nobody_out() {
	local method=$1
	hold_lock -m "$method" "l.$method"
	if [ "$2" = hangs ]; then
		hang_as waiter -m "$method" "l.$method"
	else
		queue_as waiter -m "$method" "l.$method"
		kill -STOP "${PID[waiter]}"
		"$PROBE" state "${PID[waiter]}" T
	fi
	let_go
	expect_status 0 "$PROBE" storm 100 1 "$SEMLOCK" -m "$method" -n "l.$method" true
	expect_out "0 x 100"
	expect_status 0 "$SEMLOCK" -m "$method" -w .1 "l.$method" true
	expect_status 0 "$SEMLOCK" -m "$method" -w 0 "l.$method" true
	expect_status 0 "$SEMLOCK" -m "$method" "l.$method" true
	kill -CONT "${PID[waiter]}"
	ready waiter
	expect_status 1 "$SEMLOCK" -m "$method" -n "l.$method" true
	let_go waiter
	rm ./*.up ./*.down
}

@test "a stopped waiter keeps no free lock from -n or -w, 100 times of 100" {
	starts_many
	for method in flock ofd mkdir; do keeps_nobody_out $method stopped; done
}

@test "nor does one that hangs, which the lock shows and nothing else" {
	starts_many
	for method in flock ofd mkdir; do keeps_nobody_out $method hangs; done
}

# passed_unseen ARGS...: semlock ARGS takes the lock past a stopped waiter, and does not look whether it is deserted.
passed_unseen() {
	rm -f looks ran
	SEMLOCK_CRASH_LOG=looks expect_status 0 "$CRASHABLE_SEMLOCK" "$@" l touch ran || return
	! grep '^attempt' looks || complain "$*: it has looked at the lock"
}

@test "a stopped waiter is passed at once, without a look at the lock" {
	hold_lock l
	for name in one two; do queue_as $name l; done
	fifos third
	SEMLOCK_CRASH_LOG=third.passed start third "$CRASHABLE_SEMLOCK" l "$PROBE" hold third.up third.down
	"$PROBE" blocked "${PID[third]}"
	for name in one two; do
		kill -STOP "${PID[$name]}"
		"$PROBE" state "${PID[$name]}" T
	done
	eventually grep -qs '^lock.head$' third.passed # it stands in front of the lock already
	let_go
	ready third
	let_go third
	! grep '^attempt' third.passed || complain "it has looked at the lock"
	for way in "" -n "-w 1" -s "-n -s"; do
		# shellcheck disable=SC2086 # words
		passed_unseen $way
	done
	kill -CONT "${PID[one]}"
	ready one
	kill -CONT "${PID[two]}"
	"$PROBE" blocked "${PID[two]}"
	let_go one
	ready two
	let_go two
}

# pauses NAME: for how long, in s, the waiter that strace watches has set its timer since, shortest first
pauses() {
	sed -n 's/.*timer_settime(.*it_value={tv_sec=\([0-9]*\),.*/\1/p' "$1.trace" | sort -n | uniq
}

# watched_waiter NAME: a waiter, and strace's account of its timer
watched_waiter() {
	fifos "$1"
	start "$1" strace -o "$1.trace" -e trace=timer_settime,fcntl "$SEMLOCK" l "$PROBE" hold "$1.up" "$1.down"
	eventually grep -qs F_OFD_SETLKW "$1.trace"
}

@test "the second in line looks once a second, the 26th every 25 seconds" {
	local i
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hold_lock l
	queue_as w1 l
	watched_waiter w2
	for i in {3..25}; do
		start "w$i" "$SEMLOCK" l true
		"$PROBE" blocked "${PID[w$i]}"
	done
	watched_waiter far
	eventually grep -qs 'timer_settime(.*it_value={tv_sec=\(1[5-9]\|2[0-4]\),' far.trace || complain "$(cat far.trace)"
	eventually sh -c '[ "$(grep -c timer_settime w2.trace)" -ge 4 ]'
	[ "$(pauses w2 | tail -n 1)" -le 1 ] || complain "$(cat w2.trace)"
	let_go
	ready w1
	let_go w1
	ready w2
	let_go w2
	ready far
	let_go far
}

@test "far from its turn, a waiter does not count those before it again" {
	local i
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hold_lock l
	for i in {1..101}; do
		start "w$i" "$SEMLOCK" l true
	done
	for i in {1..101}; do
		"$PROBE" blocked "${PID[w$i]}"
	done
	queue_as nearest l
	fifos far
	: >far.trace
	start far strace -o far.trace -e trace=flock,timer_settime,fcntl "$SEMLOCK" l "$PROBE" hold far.up far.down
	looked() { [ "$(grep -c '^timer_settime(.*it_value={tv_sec=9[0-9],' far.trace)" -eq "$1" ]; }
	eventually looked 1
	kill -KILL "${PID[nearest]}"
	eventually looked 2
	counts() { awk -v look="$1" '/^flock/ { n = 0 } /F_GETLK/ { n++ } /it_value=.tv_sec=9/ && ++looks == look { print n }' far.trace; }
	[ "$(counts 1)" -ge 100 ] || complain "$(counts 1) calls: $(cat far.trace)"
	[ "$(counts 2)" -le 5 ] || complain "$(counts 2) calls: $(cat far.trace)"
	kill -KILL "${PID[far]}" "$(pgrep -P "${PID[far]}")"
}

# The reader's lock is free for another reader, while a writer waits for the first one's end.
@test "-n with -s or a slot does not overtake a waiter for the whole lock" {
	local less
	for less in "-s -m flock" "-s -m ofd" "-j2 -m flock" "-j2 -m ofd"; do
		# shellcheck disable=SC2086 # words
		hold_lock $less l
		# shellcheck disable=SC2086
		settle_as writer ${less#* } l
		# shellcheck disable=SC2086
		expect_status 1 "$SEMLOCK" -n $less l true
		# shellcheck disable=SC2086
		expect_status 1 "$SEMLOCK" -w .1 $less l true
		let_go
		ready writer
		let_go writer
		rm ./*.up ./*.down l
	done
}

# took CMD...: sets $took to the milliseconds that CMD takes.
took() {
	took_to_end_with 0 "$@"
}

# took_to_end_with STATUS CMD...: likewise, and CMD ends with STATUS.
took_to_end_with() {
	local began=${EPOCHREALTIME/[.,]/}
	expect_status "$@" || return
	took=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
}

# passed SECONDS CMD...: CMD succeeds within SECONDS and one more, in one of five tries.  A slow machine gets more:
# these seconds stretched, and twenty times what CMD takes with a lock that no other process uses, just before or just after.  A waiter that the
# tickets hold up fails every try.
passed() {
	local most took free passed seconds=$1
	shift
	for _ in 1 2 3 4 5; do
		took "${@/#l./free.}" || return
		free=$took
		took "$@" || return
		passed=$took
		took "${@/#l./free.}" || return
		[ "$took" -le "$free" ] || free=$took
		most=$((SLOWNESS * 1000 * (seconds + 1) + 20 * free))
		[ "$passed" -ge "$most" ] || return 0
	done
	complain "it took $passed ms, not $most: $*"
}

@test "in a PID namespace, a writer is not overtaken after the taker's end" {
	namespaces --pid --fork --mount-proc
	for method in "flock -s" "ofd -s" "flock -j2"; do
		# shellcheck disable=SC2016,SC2086 # $0 and $@ are that shell's; words
		expect_status 0 unshare --pid --fork --mount-proc bash -c '
			exec 8<>l
			"$0" "${@:2}" 8 || exit
			"$0" "${@:2:2}" l true 8>&- &
			"$1" blocked $!
			"$0" "${@:2}" -n l true 8>&-
			[ $? -eq 1 ] || exit 3
			"$0" "${@:2}" -w 1.5 l true 8>&- # semlock looks after a second
			[ $? -eq 1 ] || exit 4
			exec 8>&-
			wait $!' "$SEMLOCK" "$PROBE" -m $method
	done
}

# /proc/locks may leave out the caller's own lock: with the lock taken, semlock must not look for other holders there.
@test "in a PID namespace, a lock taken past a stopped waiter stays taken" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	namespaces --pid --fork --mount-proc
	# shellcheck disable=SC2016 # $0 and $1 are that shell's
	expect_status 2 unshare --pid --fork --mount-proc bash -c '
		exec 8<>l
		"$0" 8
		SEMLOCK_CRASH=lock.head:hang SEMLOCK_CRASH_LOG=waiter "$2" l true 8>&- &
		until grep -qs "hangs$" waiter; do kill -0 $!; done
		exec 8>&-
		strace -qq -o trace -P /proc/locks -e inject=read:retval=0 "$0" -n -s l "$1" free l
		exit $?' "$SEMLOCK" "$PROBE" "$CRASHABLE_SEMLOCK"
	expect_out shared
	grep -q INJECTED trace
}

@test "hostile tickets delay one waiter by 2 seconds at most, ten by 5" {
	local period method
	for method in flock mkdir; do
		hold_lock -m $method "l.$method"
		queue_as waiter -m $method "l.$method"
		queue=$(queue_of "l.$method" 2>/dev/null)
		[ -e "$queue" ] || queue=$(echo "$(queue_of .)"-*)
		for period in 0 300000; do
			fifos hostile
			start hostile "$PROBE" flip "$queue" $period hostile.up
			ready hostile
			if [ -n "${PID[holder]-}" ]; then
				let_go
				ready waiter
				let_go waiter
				unset "PID[holder]"
			fi
			passed 2 "$SEMLOCK" -m $method "l.$method" true
			expect_status 0 "$SEMLOCK" -m $method -n "l.$method" true
			# shellcheck disable=SC2016 # $0 and $@ are that shell's
			passed 5 bash -c 'for _ in 1 2 3 4 5 6 7 8 9 10; do "$0" "$@" true & done; wait' \
				"$SEMLOCK" -m $method "l.$method"
			kill -KILL "${PID[hostile]}"
			ended hostile 137
			rm hostile.up hostile.down
		done
		rm ./*.up ./*.down
	done
}

has_run_or_stopped() {
	[ -e ran ] || [[ $(cat "/proc/${PID[waiter]}/stat") == *") T "* ]]
}

# hostile_tickets COUNT: another process has as many tickets for the lock l, until end_hostile.
hostile_tickets() {
	: >l
	(umask 077 && : >"$(queue_of l)") # as open as the directories above the lock: else it is not trusted, and removed
	fifos hostile
	start hostile "$PROBE" tickets "$(queue_of l)" "$1" hostile.up
	ready hostile
}

end_hostile() {
	kill -KILL "${PID[hostile]}"
	ended hostile 137
	rm -f "$(queue_of l)"
}

@test "despite 20,000 hostile tickets -n gets a free lock in 1 s, -w in 3 s" {
	hostile_tickets 20000
	for _ in 1 2 3; do
		passed 1 "$SEMLOCK" -n l true
		passed 3 "$SEMLOCK" -w 60 l true
		passed 3 "$SEMLOCK" --queue-max=3 l true
		passed 3 "$SEMLOCK" --queue-max=1000000 l true # to count them all would take a minute
	done
	[ -e "$(queue_of l)" ]
	end_hostile
}

@test "the list of all locks is read in as few pieces as the kernel gives" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hostile_tickets 1000
	for way in "-n -s l true" "--who l"; do
		# shellcheck disable=SC2086 # words
		expect_status 0 strace -y -e trace=read -o calls "$SEMLOCK" $way
		grep -q '/proc/locks>' calls
		[ "$(sed -n 's,^read(.*/proc/locks>.*\, \([0-9]*\)) .*,\1,p' calls | sort -un | head -1)" -ge 4096 ] || complain "$way: $(cat calls)"
	done
	end_hostile
}

@test "a waiter draws its ticket before it looks at anything else" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hold_lock l
	queue_as first l
	expect_status 1 strace -o calls "$SEMLOCK" -w .01 l true
	sed '1,/semlock-.*O_RDWR/d; /F_SETLK,/,$d' calls >between
	grep -q 'F_SETLK, {l_type=F_WRLCK.*l_len=1}) = 0' calls
	[ "$(wc -l <between)" -le 8 ] || complain "$(cat between)"
	let_go
	ready first
	let_go first
}

# after_ticket TRACE: strace's file of the process that has drawn a ticket.  Sets $opened and $closed to how often it has
# opened the queue's file from then on, and closed it.  (An O_PATH descriptor does not count: its close drops no lock.)
after_ticket() {
	local queue paths
	queue=$(sed -n 's,^fcntl([0-9]*<\(.*/semlock-[^>]*\)>\, F_SETLK\, {l_type=F_WRLCK.*l_len=1}) = 0$,\1,p' "$1" | head -n 1)
	[ -n "$queue" ] || complain "it has drawn no ticket: $(cat "$1")" || return
	sed '1,/F_SETLK, {l_type=F_WRLCK.*l_len=1}) = 0$/d' "$1" >after
	paths=$(grep -c "^open.*\"$queue\".*O_PATH.* = [0-9]" after || true)
	opened=$(($(grep -c "^open.*\"$queue\".* = [0-9]" after || true) - paths))
	closed=$(($(grep -c "^close([0-9]*<$queue" after || true) - paths))
}

drawn() {
	grep -qs 'F_SETLK, {l_type=F_WRLCK.*l_len=1}) = 0$' trace.*
}

# The kernel drops a process's locks on a file when the process closes any descriptor of that file.
@test "a process that has drawn a ticket closes the queue's file only once" {
	local way method
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	for way in "" -v "-w 60" --replace --first --queue-max=9 -j1 "-m excl" "-m ofd" --die-with-parent; do
		case $way in -m* | -j*) method=$way ;; *) method='' ;; esac
		rm -f l trace.* ./*.up ./*.down
		# shellcheck disable=SC2086 # words
		hold_lock $method l
		# shellcheck disable=SC2086
		queue_as first $method l
		fifos second
		# shellcheck disable=SC2086
		start second strace -ff -y -e trace=open,openat,close,fcntl -o trace \
			"$SEMLOCK" $way l "$PROBE" hold second.up second.down
		case $way in
		--replace) ended holder 143 ;;
		*) eventually drawn && let_go ;;
		esac
		case $way in
		--replace | --first) ready second && let_go second && ready first && let_go first ;;
		*) ready first && let_go first && ready second && let_go second ;;
		esac
		after_ticket "$(grep -l 'F_SETLK, {l_type=F_WRLCK.*l_len=1}) = 0$' trace.*)"
		[ "$opened $closed" = "0 1" ] || complain "$way: opened $opened times, closed $closed times" "$(cat after)"
	done
}

@test "a ticket that appears at each attempt delays a waiter, but not forever" {
	local end
	SEMLOCK=$CRASHABLE_SEMLOCK
	hold_lock l
	SEMLOCK_CRASH="lock.transit:stop lock.given-back:stop" start waiter "$SEMLOCK" l touch ran
	"$PROBE" blocked "${PID[waiter]}"
	let_go
	"$PROBE" state "${PID[waiter]}" T
	end=$((SECONDS + 20))
	until [ -e ran ]; do
		[ $SECONDS -lt $end ] || complain "it gives the lock back, again and again" || return
		fifos hostile
		start hostile "$PROBE" fcntl-hold "$(queue_of l)" ofd write 1 1 hostile.up hostile.down
		ready hostile
		kill -CONT "${PID[waiter]}"
		eventually has_run_or_stopped
		let_go hostile
		kill -CONT "${PID[waiter]}"
		eventually has_run_or_stopped
		rm hostile.up hostile.down
	done
	ended waiter 0
}

# looked TIMES: the caller is stopped, and has found the lock free TIMES times.
looked() {
	[ "$(grep -cs '^attempt.free$' passed)" = "$1" ] && "$PROBE" state "${PID[caller]}" T
}

@test "-n looks eight times before it passes a waiter, which may take the lock" {
	local looks
	SEMLOCK=$CRASHABLE_SEMLOCK
	hold_lock l
	hang_as waiter l
	let_go
	SEMLOCK_CRASH=attempt.free:stop SEMLOCK_CRASH_LOG=passed start caller "$SEMLOCK" -n l touch ran
	for looks in 1 2 3 4 5 6 7; do
		eventually looked $looks
		kill -CONT "${PID[caller]}"
	done
	eventually looked 8
	kill -CONT "${PID[waiter]}"
	ready waiter
	kill -CONT "${PID[caller]}"
	ended caller 1
	[ ! -e ran ]
	let_go waiter
}

@test "a waiter that wakes up just before the lock is taken past it goes first" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	for way in -n -w60; do
		hold_lock l
		hang_as waiter l
		let_go
		SEMLOCK_CRASH=attempt.deserted:stop start caller "$SEMLOCK" $way l touch ran
		"$PROBE" state "${PID[caller]}" T
		kill -CONT "${PID[waiter]}"
		ready waiter
		kill -CONT "${PID[caller]}"
		case $way in
		-n) ended caller 1 && let_go waiter && [ ! -e ran ] ;;
		*) "$PROBE" blocked "${PID[caller]}" && [ ! -e ran ] && let_go waiter && ended caller 0 && rm ran ;;
		esac
		rm ./*.up ./*.down
	done
}

# refused_late OPTIONS: -n with OPTIONS is refused, because a writer comes to sleep in front of the lock after its last check.
refused_late() {
	local looks
	rm -f passed ran writer.*
	hang_as writer l
	SEMLOCK_CRASH=attempt.free:stop SEMLOCK_CRASH_LOG=passed start caller "$SEMLOCK" -n "$@" l touch ran
	for looks in 1 2 3 4 5 6 7; do
		eventually looked $looks
		kill -CONT "${PID[caller]}"
	done
	eventually looked 8
	kill -CONT "${PID[writer]}"
	"$PROBE" blocked "${PID[writer]}"
	kill -CONT "${PID[caller]}"
	if ended caller 1 && [ ! -e ran ]; then return; fi
	kill -KILL "${PID[writer]}"
	ended writer 137
	return 1
}

@test "a writer that goes to sleep late in the checks is not overtaken" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	for way in -s "-j 2"; do
		# shellcheck disable=SC2086 # words
		hold_lock $way l
		# shellcheck disable=SC2086 # words
		among_few_locks refused_late $way
		let_go
		ready writer
		let_go writer
		rm ./*.up ./*.down
	done
}

# behind_looked TIMES: it is stopped, and has found the lock free TIMES times, or a sleeper before it.
behind_looked() {
	{ [ "$(grep -cs '^attempt.free$' passed)" = "$1" ] || grep -qs '^attempt.sleeper$' passed; } &&
		"$PROBE" state "${PID[behind]}" T
}

# A waiter that the kernel has woken, and that has not run yet, is in no list.  Here it is stopped before the last look.
@test "a writer that sleeps only half-way through the checks is not overtaken" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	for way in -s "-j 2" "-s -m ofd" "-j 2 -m ofd"; do
		case $way in
		*-m*) method="-m ${way##* }" ;;
		*) method= ;;
		esac
		# shellcheck disable=SC2086 # words
		hold_lock $way l
		# shellcheck disable=SC2086 # words
		queue_as writer $method l
		fifos behind
		# shellcheck disable=SC2086 # words
		SEMLOCK_CRASH="attempt.free:stop attempt.sleeper:stop" SEMLOCK_CRASH_LOG=passed \
			start behind "$SEMLOCK" $way l "$PROBE" hold behind.up behind.down
		for ((looks = 1; looks <= 50; looks++)); do
			eventually behind_looked $looks
			if grep -q '^attempt.sleeper$' passed; then break; fi
			[ $looks -lt 50 ] || kill -STOP "${PID[writer]}"
			kill -CONT "${PID[behind]}"
		done
		[ $looks -lt 50 ] || complain "$way: it has not looked half-way"
		kill -KILL "${PID[behind]}"
		ended behind 137
		let_go
		ready writer
		let_go writer
		rm ./*.up ./*.down passed l
	done
}

@test "a stopped waiter is passed by, and is next when it goes on" {
	local began
	hold_lock l
	queue_as stopped l
	queue_as behind l
	kill -STOP "${PID[stopped]}"
	"$PROBE" state "${PID[stopped]}" T # a waiter that still runs could be given the lock, and keep it
	let_go
	began=$SECONDS
	ready behind
	[ $((SECONDS - began)) -le "$(stretched 10)" ] || complain "it took $((SECONDS - began)) seconds"
	queue_as last l
	kill -CONT "${PID[stopped]}"
	release behind
	ready stopped
	"$PROBE" blocked "${PID[last]}"
	release stopped
	ready last
	let_go last
	ended stopped 0
	ended behind 0
}

@test "a waiter is given a while to run before it is passed by" {
	local looks=0
	SEMLOCK=$CRASHABLE_SEMLOCK
	hold_lock l
	hang_as slow l
	fifos behind
	SEMLOCK_CRASH=attempt.free:stop start behind "$SEMLOCK" l "$PROBE" hold behind.up behind.down
	"$PROBE" blocked "${PID[behind]}"
	let_go
	"$PROBE" state "${PID[behind]}" T # the waiter has found the lock free
	until read -r -t .005 _ <>behind.up; do
		[[ $(cat "/proc/${PID[behind]}/stat") == *") T "* ]] || continue
		looks=$((looks + 1))
		kill -CONT "${PID[behind]}"
	done
	[ $looks -ge 40 ] || complain "it has not looked again and again: $looks times"
	kill -CONT "${PID[slow]}"
	let_go behind
	ready slow
	let_go slow
}

# looked_or_taken: it is stopped after one more look that found the lock free, or has taken it
looked_or_taken() {
	grep -q '^lock.taken$' passed || [[ $(cat "/proc/${PID[second]}/stat") == *") T "* ]]
}

# Those before it have had their turn, or have ended, between two of its checks: the lock is free for as long as it does
# not take it, and one behind it that checks as well could take it first.
@test "a waiter that becomes first during its checks stops them, and is next" {
	local looks most
	SEMLOCK=$CRASHABLE_SEMLOCK
	for way in "" "-s" "-m excl"; do
		most=1
		[ "$way" != "-m excl" ] || most=2 # the command's process, which the record names, is made in between
		# shellcheck disable=SC2086 # words
		hold_lock ${way/-s/} l
		# shellcheck disable=SC2086 # words
		hang_as first ${way/-s/} l
		fifos second
		# shellcheck disable=SC2086 # words
		SEMLOCK_CRASH=attempt.free:stop SEMLOCK_CRASH_LOG=passed \
			start second "$SEMLOCK" $way l "$PROBE" hold second.up second.down
		"$PROBE" blocked "${PID[second]}"
		let_go
		"$PROBE" state "${PID[second]}" T # it has found the lock free
		kill -KILL "${PID[first]}"
		ended first 137
		until grep -q '^lock.taken$' passed; do
			kill -CONT "${PID[second]}"
			eventually looked_or_taken
		done
		looks=$(grep -c '^attempt.free$' passed)
		[ "$looks" -le $most ] || complain "$way: it looked $looks times while the lock was free"
		ready second
		let_go second
		rm -f ./*.up ./*.down passed l
	done
}

# caught NAME: the signals for which the process has a handler
caught() {
	sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/${PID[$1]}/status"
}

quiet() {
	[ "$(caught "$1")" = "$2" ]
}

@test "the next in turn sleeps: no timer wakes it to check those before it" {
	local wanted
	hold_lock l
	queue_as first l
	wanted=$(caught first) # a sanitizer may have handlers of its own
	queue_as second l
	[ "$(caught second)" != "$wanted" ] # the second waiter looks now and then whether the first is stopped
	kill -KILL "${PID[first]}"
	ended first 137
	eventually quiet second "$wanted" || complain "its timer ticks on"
	"$PROBE" blocked "${PID[second]}"
	let_go
	ready second
	let_go second
}

@test "the time limit counts in the queue, too" {
	hold_lock l
	queue_as waiter l
	expect_status 1 "$SEMLOCK" -w .2 l true
	expect_status 9 "$SEMLOCK" -E 9 -w 50ms l true
	release holder
	ready waiter
	let_go waiter
	ended holder 0
}

@test "a queue is there while a command waits, and only then" {
	: >l
	expect_status 0 "$SEMLOCK" l true
	expect_status 0 "$SEMLOCK" -n l true
	hold_lock l
	expect_status 1 "$SEMLOCK" -n l true
	[ ! -e "$(queue_of l)" ]
	queue_as first l
	queue_as second l
	[ -f "$(queue_of l)" ]
	[ "$(stat -c %s "$(queue_of l)")" -eq 8 ]
	let_go
	ready first
	[ -f "$(queue_of l)" ]
	let_go first
	ready second
	[ ! -e "$(queue_of l)" ]
	let_go second
	hold_as third l
	expect_status 1 "$SEMLOCK" -w .01 l true
	[ ! -e "$(queue_of l)" ]
	let_go third
}

@test "the queue that a killed waiter left is used, and removed, by the next" {
	hold_lock l
	queue_as killed l
	kill -KILL "${PID[killed]}"
	ended killed 137
	[ -f "$(queue_of l)" ]
	queue_as next l
	let_go
	ready next
	[ ! -e "$(queue_of l)" ]
	let_go next
}

# meets_the_next POINT [AGAIN]: the last waiter has the lock, and is about to remove the queue; a newcomer has that
# queue open, and is stopped at POINT.  The newcomer and the one after it must meet in another queue.  AGAIN: the
# newcomer passes POINT twice.
meets_the_next() {
	rm -f ./*.up ./*.down
	hold_lock l
	fifos last
	SEMLOCK_CRASH=queue.alone:stop start last "$SEMLOCK" l "$PROBE" hold last.up last.down
	"$PROBE" blocked "${PID[last]}"
	let_go
	"$PROBE" state "${PID[last]}" T
	fifos one
	SEMLOCK_CRASH=$1:stop start one "$SEMLOCK" l "$PROBE" hold one.up one.down
	"$PROBE" state "${PID[one]}" T
	kill -CONT "${PID[last]}"
	ready last
	kill -CONT "${PID[one]}"
	if [ -n "$2" ]; then "$PROBE" state "${PID[one]}" T && kill -CONT "${PID[one]}"; fi
	"$PROBE" blocked "${PID[one]}"
	[ -e "$(queue_of l)" ] || complain "it waits outside of the queue" # or in the removed queue
	queue_as two l
	let_go last
	ready one
	"$PROBE" blocked "${PID[two]}"
	let_go one
	ready two
	let_go two
}

@test "the last waiter to leave does not remove the queue under a newcomer" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	meets_the_next queue.joining
}

@test "a newcomer that finds the queue being removed waits in the next queue" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	meets_the_next queue.opened again
}

@test "a semlock that is stopped while it removes the queue delays no other" {
	SEMLOCK=$CRASHABLE_SEMLOCK
	hold_lock l
	SEMLOCK_CRASH=queue.alone:stop start stopped "$SEMLOCK" -w .01 l true
	"$PROBE" state "${PID[stopped]}" T
	queue_as next l
	let_go
	ready next
	let_go next
	kill -CONT "${PID[stopped]}"
	ended stopped 1
}

# works_all_the_same: if the queue is unusable, the lock excludes, waits, is handed on, and times out.
works_all_the_same() {
	rm -f holder.up holder.down waiter.up waiter.down
	hold_lock l
	expect_status 1 "$SEMLOCK" -n l true
	expect_silent
	expect_status 1 "$SEMLOCK" -w .05 l true
	queue_as waiter l
	release holder
	ready waiter
	expect_status 1 "$SEMLOCK" -n l true
	let_go waiter
	ended holder 0
}

@test "whatever is written in the queue, no waiter is overtaken" {
	local guess queue
	hold_lock l
	queue_as first l
	queue=$(queue_of l)
	queue_as second l
	for guess in '\0' '\1\0\0\0\0\0\0\0' '\377\377\377\377\377\377\377\377' \
		'\0\0\0\0\0\0\0\200' '\377\377\377\377\377\377\377\177' ''; do
		# shellcheck disable=SC2059 # bytes
		printf "$guess" >"$queue"
		start behind "$SEMLOCK" l true
		"$PROBE" blocked "${PID[behind]}"
		kill "${PID[behind]}"
		ended behind 143
	done
	printf '\1\0\0\0\0\0\0\0' >"$queue" # a ticket long gone: the waiter looks for the last one itself
	queue_as third l
	release holder
	ready first
	"$PROBE" blocked "${PID[third]}"
	release first
	ready second
	"$PROBE" blocked "${PID[third]}"
	release second
	ready third
	let_go third
}

@test "in the queue's place, an empty directory is removed, a full one moved" {
	: >l
	mkdir "$(queue_of l)"
	works_all_the_same
	[ ! -e "$(queue_of l)" ]
	mkdir -p "$(queue_of l)/full"
	works_all_the_same
	[ ! -e "$(queue_of l)" ]
	ls -d "$(queue_of l)".set-aside-*/full
	rm -r "$(queue_of l)".set-aside-*
}

@test "a symbolic link in the queue's place is removed, and not followed" {
	: >l
	echo precious >precious
	for target in precious made; do
		ln -s "$PWD/$target" "$(queue_of l)"
		works_all_the_same
		[ ! -L "$(queue_of l)" ]
	done
	[ "$(cat precious)" = precious ]
	[ ! -e made ]
}

@test "a FIFO or a hard link in the queue's place costs only the order" {
	: >l
	mkfifo "$(queue_of l)"
	works_all_the_same
	[ ! -p "$(queue_of l)" ] || complain "root, or its owner, has not removed it"
	: >"$(queue_of l)"
	ln "$(queue_of l)" "$(queue_of l).second"
	works_all_the_same
	rm -f "$(queue_of l).second"
}

@test "another user's file in the queue's place, of any mode, is removed" {
	root_only "to be two users"
	for mode in 666 600; do
		: >l
		as_nobody touch "$(queue_of l)"
		chmod $mode "$(queue_of l)"
		# A user that locks all bytes of the file would hold up every waiter that trusted the queue.
		fifos blocker
		chmod 666 blocker.up blocker.down
		start blocker setpriv --reuid=65534 --regid=65534 --clear-groups \
			"$PROBE" fcntl-hold "$(queue_of l)" ofd write 0 0 blocker.up blocker.down
		ready blocker
		expect_status 0 "$SEMLOCK" -n l true
		works_all_the_same
		[ ! -e "$(queue_of l)" ] || complain "it is still there, with mode $mode"
		let_go blocker
		rm blocker.up blocker.down
	done
}

@test "a queue that may not be opened costs order only" {
	root_only "to be two users"
	: >l
	chmod 644 l
	: >"$(queue_of l)"
	chmod 600 "$(queue_of l)"
	hold_lock l
	expect_status 1 as_nobody "$SEMLOCK" -w .05 l true
	let_go
	expect_status 0 as_nobody "$SEMLOCK" -n l true
}

@test "a full or missing /dev/shm costs order only" {
	namespaces -m
	cat >inside <<-'END'
		set -e
		mount -t tmpfs -o "$1" none /dev/shm
		[ -z "$2" ] || umount /dev/shm
		[ -z "$2" ] || mount --bind /proc/self/fdinfo /dev/shm
		mkfifo up down
		"$SEMLOCK" l "$PROBE" hold up down & read -r _ <up
		status=0
		"$SEMLOCK" -w .05 l true || status=$?
		[ $status -eq 1 ]
		echo . >down
		wait
		"$SEMLOCK" -w 60 l true
	END
	export SEMLOCK PROBE
	expect_status 0 unshare -m sh inside nr_inodes=1 ''
	rm up down
	expect_status 0 unshare -m sh inside size=4k missing
}

# If the name came first, another user would find a queue that it may not open, and wait beside the queue.
@test "a queue has its mode before it has its name" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	: >l
	hold_lock l
	fifos waiter
	start waiter strace -o trace -e trace=file,fchmod,desc "$SEMLOCK" l "$PROBE" hold waiter.up waiter.down
	until [ -e "$(queue_of l)" ]; do kill -0 "${PID[waiter]}"; done
	[ "$(stat -c %a "$(queue_of l)")" = 600 ]
	let_go
	ready waiter
	let_go waiter
	grep -n 'fchmod\|linkat\|O_CREAT' trace >order
	[[ $(cat order) == *fchmod*$'\n'*linkat*semlock-* ]] || complain "$(cat order)"
	! grep 'semlock-.*O_CREAT' order || complain "made in sight of all"
}

@test "a system without timers costs no waiter its place" {
	hold_as reader -s l
	queue_as writer l
	fifos late
	start late prlimit --sigpending=0 "$SEMLOCK" -s l "$PROBE" hold late.up late.down
	"$PROBE" blocked "${PID[late]}"
	release reader
	ready writer
	"$PROBE" blocked "${PID[late]}"
	let_go writer
	ready late
	let_go late
	ended reader 0
}

# The same wait where the queue is not stuck, just before, tells what a slow machine takes for it.
@test "the time limit holds also where the queue is stuck" {
	local plain tries
	hold_as other other
	SEMLOCK=$CRASHABLE_SEMLOCK
	hold_lock l
	SEMLOCK_CRASH=queue.alone:stop start stopped "$SEMLOCK" -w .01 l true
	"$PROBE" state "${PID[stopped]}" T
	for tries in {1..20}; do # a busy machine may be late; to wait for the queue takes two seconds more each time
		took_to_end_with 1 "$SEMLOCK" -w .1 other true
		plain=$took
		took_to_end_with 1 "$SEMLOCK" -w .1 l true
		[ "$took" -ge $((plain + 1400)) ] || break
	done
	[ "$took" -lt $((plain + 1400)) ] || complain "it took $took ms, and $plain without; the last of $tries times"
	kill -KILL "${PID[stopped]}"
	ended stopped 137
	let_go
}

@test "--rm of one name of a file leaves the queue of its other names alone" {
	ln -f l l2
	hold_lock --rm l
	queue_as first l2
	queue_as second l2
	for name in first second; do # if a waiter has the lock before semlock removes the file, the file stays
		kill -STOP "${PID[$name]}"
		"$PROBE" state "${PID[$name]}" T
	done
	let_go
	[ ! -e l ]
	[ -e "$(queue_of l2)" ] || complain "the queue is gone, and who comes now waits in another one"
	kill -CONT "${PID[first]}"
	ready first
	kill -CONT "${PID[second]}"
	let_go first
	ready second
	let_go second
}

@test "a command that locks the whole lock file itself does not meet the queue" {
	fifos holder
	start holder "$SEMLOCK" l "$PROBE" fcntl-hold l posix write 0 0 holder.up holder.down
	ready holder
	queue_as waiter l
	release holder
	ready waiter
	ended holder 0
	fifos second
	start second "$SEMLOCK" l "$PROBE" fcntl-hold l ofd write 0 0 second.up second.down
	"$PROBE" blocked "${PID[second]}"
	release waiter
	ready second
	let_go second
	ended waiter 0
}

@test "--rm removes the queue with the file, whichever waiter left it" {
	local queue
	hold_lock --rm l
	queue_as killed l
	queue=$(queue_of l)
	kill -KILL "${PID[killed]}"
	ended killed 137
	[ -e "$queue" ]
	let_go
	[ ! -e l ]
	[ ! -e "$queue" ]
}

# A command that inherited the queue would keep its semlock's place there.
@test "no command inherits the queue" {
	local options
	for options in '-m flock' '-m ofd' '-m excl' '-m mkdir' '-F'; do
		# shellcheck disable=SC2086 # words
		hold_lock $options "l${options#* }"
		# shellcheck disable=SC2086
		queue_as waiter $options "l${options#* }"
		release holder
		ready waiter
		! readlink "/proc/${COMMAND[waiter]}/fd"/* | grep -v "^$PWD/" | grep "^$(queue_directory)/" || complain "with $options"
		let_go waiter
		ended holder 0
		rm ./*.up ./*.down
	done
}

@test "a part of a file waits only for waiters that want some of its bytes" {
	for method in ofd posix; do
		hold_as $method -m $method --start 0 --length 1 l.$method
		queue_as $method.next -m $method --start 0 --length 2 l.$method
		for way in -n "-w 60" "-s -n"; do
			# shellcheck disable=SC2086 # words
			expect_status 0 "$SEMLOCK" $way -m $method --start 5 --length 1 l.$method true
		done
		expect_status 0 "$SEMLOCK" -w 60 -m $method --start 5 l.$method true
		expect_status 1 "$SEMLOCK" -n -m $method --start 1 --length 1 l.$method touch ran
		expect_status 1 "$SEMLOCK" -n -s -m $method --start 1 l.$method touch ran
		let_go $method
		ready $method.next
		let_go $method.next
	done
	[ ! -e ran ]
}
