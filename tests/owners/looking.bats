#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What it costs others that somebody looks: each read of /proc/locks stops all calls that lock a file.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

prepare() {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	# Each stop for strace is processor time of the traced one, and a look has a budget of that: where strace can,
	# nothing stops but the calls that it is to show.
	strace=(strace -f -qq)
	if strace -f --seccomp-bpf -e trace=open,openat -o /dev/null true 2>/dev/null; then strace+=(--seccomp-bpf); fi
}

# reads_list COUNT STATUS CMD...: CMD, by the user AS, ends with STATUS, and opens /proc/locks COUNT times; if a
# lock is held, and CMD was refused a look into a process (as an ordinary user always is), once at most.
reads_list() {
	local count=$1 opened
	shift
	# shellcheck disable=SC2086 # a word or none
	expect_status "$1" ${AS-} "${strace[@]}" -e trace=open,openat -o trace "${@:2}" || return
	opened=$(grep -c '"/proc/locks"' trace || :)
	[ "$opened" -eq "$count" ] || { [ "$1$opened" -eq 11 ] && grep -q '"/proc/[0-9]*/fd".* EACCES ' trace; } ||
		complain "not $count times: $(grep '"/proc/locks"' trace)"
}

@test "a holder and waiters with tickets are found without the list of locks" {
	for method in flock ofd excl mkdir symlink; do
		rm -rf l
		hold_lock -m $method l
		queue_as one -m $method l
		queue_as two -m $method l
		reads_list 0 1 "$SEMLOCK" --who -m $method l
		grep -q "^l: held, 2 waiting" .out || complain "$method: $out"
		grep -q "^held *${COMMAND[holder]} " .out || complain "$method: $out"
		[ "$(awk '$1 ~ /^[12]\.$/ { print $2 }' .out | paste -sd' ')" = "${PID[one]} ${PID[two]}" ] || complain "$method: $out"
		let_go
		for name in one two; do
			ready $name
			let_go $name
		done
		rm ./*.up ./*.down
	done
}

# asked: how often the last command opened /proc/locks
asked() {
	grep -c '"/proc/locks"' trace || :
}

# seen_without_list METHOD: a refusal names the holder, and has not opened /proc/locks.  If there are so many processes
# that 50 ms, under strace, are over before them all, it has opened it once at most, and may say that it was cut short.
seen_without_list() {
	local most=0
	expect_status 1 "${strace[@]}" -e trace=open,openat -o trace "$SEMLOCK" -v -n -m "$1" l true || return
	if [ "$(find /proc -maxdepth 1 -name '[1-9]*' | wc -l)" -gt 300 ]; then most=1; fi
	[ "$(asked)" -le $most ] || complain "$1: $(asked) times" || return
	case $most$err in
	*"held by ${COMMAND[holder]} "* | 1*"was not looked for in all processes"*) ;;
	*) complain "$1: $err" ;;
	esac
}

# Other tests beside this one have processes that come and go.
@test "a refusal finds the holder without that list, or reads it once at most" {
	for method in flock ofd posix excl mkdir; do
		rm -rf l
		hold_lock -m $method l
		eventually seen_without_list $method
		let_go
		rm ./*.up ./*.down
	done
}

# opened_by_waiter TRACE: the files in /proc that the process which has drawn a ticket has opened
opened_by_waiter() {
	local waiter
	waiter=$(sed -n 's/^\([0-9]*\) .*F_SETLK, {l_type=F_WRLCK.*/\1/p' "$1" | head -n 1)
	[ -n "$waiter" ] || complain "it has drawn no ticket" || return
	sed -n "s,^$waiter .*open[at]*(.*\"\(/proc[^\"]*\)\".*,\1,p" "$1"
}

@test "a waiter never reads that list, neither in the queue nor when late" {
	for method in flock ofd posix excl mkdir; do
		for way in "" -v --log=log; do
			rm -rf l
			hold_lock -m $method l
			time=.3
			case $way in -v) time=1 ;; esac # half of it is for its observer's first look
			# shellcheck disable=SC2086 # a word or none
			expect_status 1 "${strace[@]}" -e trace=open,openat,fcntl -o late "$SEMLOCK" $way -w $time -m $method l true
			for name in one two; do
				fifos $name
				# shellcheck disable=SC2086 # a word or none
				start $name "${strace[@]}" -e trace=open,openat,fcntl -o $name.trace "$SEMLOCK" $way -m $method l \
					"$PROBE" hold $name.up $name.down
				eventually waits "$name"
			done
			let_go
			for name in one two; do
				ready $name
				let_go $name
			done
			for trace in late one.trace two.trace; do
				opened_by_waiter $trace >opened
				! grep -x /proc/locks opened || complain "$method $way: $trace"
				# what draws its line may miss an owner while the lock changes hands: once a minute
				[ "$(grep -c '"/proc/locks"' $trace)" -le 1 ] || complain "$method $way: $trace, not by itself"
			done
			rm ./*.up ./*.down
		done
	done
}

# reads_looks COUNT STATUS CMD...: as reads_list; where the list has more than a page, in which a line can be missing, a
# read that shows no waiter may be repeated.
reads_looks() {
	local most=$1 size
	size=$(wc -c </proc/locks)
	expect_status "$2" "${strace[@]}" -e trace=open,openat -o trace "${@:3}" || return
	if [ "$size" -gt 2048 ] || [ "$(wc -c </proc/locks)" -gt 2048 ]; then most=$((2 * $1)); fi
	[ "$(asked)" -ge "$1" ] || complain "read $(asked) times, not $1" || return
	[ "$(asked)" -le "$most" ] || complain "read $(asked) times, not $1 to $most"
}

# One that wants a part of what the first waiter wants may find the lock free: does that waiter sleep before it?
@test "passing a waiter reads no list, except for readers, slots and bytes" {
	for way in "" "-m ofd" "-m excl"; do
		rm -f l
		# shellcheck disable=SC2086 # words
		hold_lock $way l
		# shellcheck disable=SC2086 # words
		queue_as stopped $way l
		kill -STOP "${PID[stopped]}"
		"$PROBE" state "${PID[stopped]}" T
		let_go
		# shellcheck disable=SC2086 # words
		reads_list 0 0 "$SEMLOCK" $way -n l true
		# shellcheck disable=SC2086 # words
		reads_list 0 0 "$SEMLOCK" $way -w 20 l true
		kill -CONT "${PID[stopped]}"
		ready stopped
		let_go stopped
		rm ./*.up ./*.down
	done
	for way in "-s" "-j 2" "-s -m ofd" "--start 5 --length 5 -m ofd"; do
		case $way in
		--start*) hold_lock --start 100 -m ofd l ;;
		*) # shellcheck disable=SC2086 # words
			hold_lock $way l ;;
		esac
		case $way in
		*ofd) queue_as writer -m ofd l ;;
		*) queue_as writer l ;;
		esac
		# shellcheck disable=SC2086 # words
		reads_looks 1 1 "$SEMLOCK" $way -n l true
		# after one second, after three, and when its time is up
		# shellcheck disable=SC2086 # words
		reads_looks 3 1 "$SEMLOCK" $way -w 5 l true
		kill -STOP "${PID[writer]}"
		"$PROBE" state "${PID[writer]}" T
		# shellcheck disable=SC2086 # words
		reads_list 0 0 "$SEMLOCK" $way -n l true
		kill -KILL "${PID[writer]}"
		ended writer 137
		rm ./writer.*
		case $way in
		*ofd) hang_as writer -m ofd l ;;
		*) hang_as writer l ;;
		esac
		# half-way, and at the end
		# shellcheck disable=SC2086 # words
		reads_list 2 0 "$SEMLOCK" $way -n l true
		kill -CONT "${PID[writer]}"
		let_go
		ready writer
		let_go writer
		rm ./*.up ./*.down
	done
}

# A lock made of files names a process: does that live, and of which boot is it?
expected_of() {
	case $1 in excl | mkdir) echo '^/proc/([0-9]+/stat|sys/kernel/random/boot_id|sys/kernel/pid_max)$' ;; esac
	if grep -q NLMSG_ERROR trace; then echo '^/proc/net/unix$'; fi # a kernel without unix_diag
}

@test "a waiter opens nothing in /proc, not even with -v and --log" {
	namespaces --net # else a hold in the background, of any test, is asked whether it is an ancestor's
	for method in flock ofd posix excl mkdir; do
		for way in "" -v --log=log "-w 60 -v --log=log"; do
			rm -rf l
			hold_lock -m $method l
			fifos waiter
			# shellcheck disable=SC2086 # words
			start waiter unshare --net strace -f -qq -e trace=open,openat,fcntl,recvfrom -o trace \
				"$SEMLOCK" $way -m $method l "$PROBE" hold waiter.up waiter.down
			eventually sh -c '"$0" --who -m "$1" l | grep -q " 1 waiting"' "$SEMLOCK" $method
			let_go
			ready waiter
			let_go waiter
			opened_by_waiter trace >opened
			expected_of $method >expected
			! grep -vE -f expected opened >unexpected || complain "$method $way: $(cat unexpected)"
			rm ./*.up ./*.down
		done
	done
}

# looked_into TRACE: the processes into whose descriptors the traced one has looked
looked_into() {
	sed -n 's,.*"/proc/\([0-9]*\)/fd".*,\1,p' "$1" | sort -un
}

# shown_and_late METHOD: a wait has its holder shown before its time is up, and names it then
shown_and_late() {
	capture strace -qq -e trace=open,openat -o trace "$SEMLOCK" -v -w "${room}ms" -m "$1" l true
	[ "$status" -eq 1 ] || return
	grep -q "^semlock: l: waiting: held by ${COMMAND[holder]} " .err || return
	grep -q "^semlock: l: held by ${COMMAND[holder]} (probe hold.*; the time is up; semlock --who l says more$" .err
}

# is_holders PROCESS: it has the lock from the holder, or is gone
is_holders() {
	case $1 in
	"${PID[holder]}" | "${COMMAND[holder]}") ;;
	*) [ ! -e "/proc/$1" ] || [ "$(sed -n 's/^PPid:\t//p' "/proc/$1/status")" = "${PID[holder]}" ] ;;
	esac
}

# Sixty refusals that search all processes at once are late, each.
@test "at the time-out the shown holder is proven; no other process is examined" {
	for method in flock ofd posix excl mkdir symlink; do
		rm -rf l
		hold_lock -m $method l
		with_room shown_and_late $method
		[ "$(asked)" -eq 0 ] || complain "$method: it has read the list of all locks"
		for process in $(looked_into trace); do
			is_holders "$process" || complain "$method: it has looked into process $process"
		done
		let_go
		rm ./*.up ./*.down
	done
}

# passed_on METHOD: a waiter has its holder shown, which lives on without the lock, and another one has it when the
# time is up.  (Only a descriptor of its own can be let go of by a process.)
passed_on() {
	rm -f ./*.up ./*.down held
	# shellcheck disable=SC2016 # $0 is that shell's
	start first bash -c 'exec 8<>l && "$0" -m "$1" 8 || exit; trap "exec 8>&-" USR1; : >held; while :; do sleep .01 8>&-; done' \
		"$SEMLOCK" "$1"
	eventually test -e held
	queue_as holder -m "$1" l
	start waiter "$SEMLOCK" -v -w "$((3 * room))ms" -m "$1" l true
	"$PROBE" pause "$room"
	kill -USR1 "${PID[first]}"
	ready holder
	ended waiter 1
	kill "${PID[first]}"
	ended first 143
	let_go
	grep -q "waiting: held by ${PID[first]} " waiter.err || return
	[ "$(grep -c "waiting:" waiter.err)" -eq 1 ] || return # after 10 seconds it would have been shown anew
	grep -q "^semlock: l: held by ${COMMAND[holder]} (probe hold.*; the time is up; semlock --who l says more$" waiter.err
}

@test "a refusal names the successor of a holder that lives without the lock" {
	for method in flock ofd; do
		with_room passed_on $method
	done
}

@test "a wait over before the first look examines some processes, and no list" {
	local all
	[ -x "$CRASHABLE_SEMLOCK" ] || complain "no $CRASHABLE_SEMLOCK" || return
	starts_many
	crowd
	hold_lock l
	expect_status 1 strace -qq -e trace=open,openat -o trace "$CRASHABLE_SEMLOCK" -v -n l true
	all=$(looked_into trace | wc -l)
	SEMLOCK_CRASH=observer.looks:stop expect_status 1 strace -qq -e trace=open,openat -o trace "$CRASHABLE_SEMLOCK" -v -w 1 l true
	[ "$(looked_into trace | wc -l)" -le $((all / 2)) ] || complain "$(looked_into trace | wc -l) of $all processes"
	[ "$(asked)" -eq 0 ] || complain "it has read the list of all locks"
	grep -qE "^semlock: l: (held by ${COMMAND[holder]} .*|still busy; its holder was not looked for in all processes); the time is up; semlock --who l says more$" .err || complain "$err"
	let_go
}

# waits NAME: its semlock, a child of strace, sleeps in a lock call
waits() {
	local child
	child=$(pgrep -o -P "${PID[$1]}") && "$PROBE" blocked "$child"
}

# crowd: 600 processes, and 5,000 record locks, one of which comes and goes
crowd() {
	mkfifo many.up
	mkfifo never
	start crowd sh -c 'i=0; while [ $i -lt 600 ]; do read -r _ <>never & i=$((i + 1)); done; : >there; wait'
	start many "$PROBE" tickets database 5000 many.up
	ready many
	eventually test -e there
}

# sixty TERMINAL OPTIONS...: the microseconds that 60 waiters take whose time is up after a second, in $took
sixty() {
	local terminal=$1 began
	shift
	began=${EPOCHREALTIME/[.,]/}
	for ((i = 0; i < 60; i++)); do
		# shellcheck disable=SC2086 # words
		TERM=xterm start "waiter$i" $terminal "$SEMLOCK" "$@" -w 1 l true
	done
	for ((i = 0; i < 60; i++)); do ended "waiter$i" 1 || return; done
	took=$((${EPOCHREALTIME/[.,]/} - began))
}

# Two looks of 50 ms of processor time at most for each waiter are six seconds, more for a machine that is slow, or does
# other things as well; reading /proc/locks for each took a minute.
@test "beside 5,000 locks, sixty waiters that report time out in time" {
	starts_many
	crowd
	hold_lock l
	sixty ""
	plain=$took
	for way in --log=log -v pty; do
		case $way in
		pty) sixty "$PROBE pty" ;;
		*) sixty "" $way ;;
		esac
		if [ -n "${SHOW_TIMES-}" ]; then echo "# sixty waiters, $way: $took microseconds; without: $plain" >&3; fi
		[ "$took" -le $((6 * plain + SLOWNESS * 12000000)) ] || complain "$way: $took microseconds; without it $plain"
	done
	let_go
}

@test "a refusal looks for the holder for 50 ms of CPU time at most" {
	[ "$(ulimit -Hn)" -ge 1200 ] || skip "a process may not have 1,200 descriptors here"
	starts_many
	mkfifo never
	start others bash -c 'ulimit -n 1200; for ((i = 100; i < 1100; i++)); do eval "exec $i</dev/null"; done
		for ((i = 0; i < 300; i++)); do read -r _ <>never & done; jobs -p >pids; : >there; wait'
	eventually test -e there
	hold_lock l
	expect_status 1 "${strace[@]}" -e trace=open,openat -o trace "$SEMLOCK" -v -n l true
	[ "$(sort pids | uniq | wc -l)" -eq 300 ]
	[ "$(looked_into trace | sort | comm -12 - <(sort pids) | wc -l)" -lt 290 ] || complain "it looked into all of them"
	[[ $err == "semlock: l: held by ${COMMAND[holder]} "* || $err == *"its holder was not looked for in all processes"* ]] ||
		complain "$err"
	let_go
}

@test "what only the list of locks shows takes one reading of it" {
	reads_list 0 0 "$SEMLOCK" --who none
	: >l
	# A list that is empty, or longer than a page, is read twice before a lock is called free: other tests have theirs.
	hold_as other other
	eventually reads_list 1 0 "$SEMLOCK" --who l
	hold_lock l
	start barger "$PROBE" until-free l
	"$PROBE" blocked "${PID[barger]}"
	reads_list 1 1 "$SEMLOCK" --who l
	grep -q "^ *1\. *${PID[barger]} " .out || complain "$out"
	cp l m
	eventually reads_list 1 1 "$SEMLOCK" --who l m none
	let_go
	ended barger 0
}

@test "another user's lock: once" {
	root_only "to be two users"
	as_nobody strace -o /dev/null true 2>/dev/null || skip "strace cannot trace here"
	hold_lock l
	queue_as one l
	chmod 644 l
	: >trace
	chmod 666 trace
	AS=as_nobody reads_list 1 1 "$SEMLOCK" --who l
	grep -q '^l: held, 1 waiting$' .out || complain "$out"
	let_go
	ready one
	let_go one
}

@test "a descriptor with thousands of locks: all of them are shown" {
	mkfifo many.up
	start many "$PROBE" tickets l 2000 many.up
	ready many
	expect_status 1 "$SEMLOCK" --who -m ofd --json l
	[ "$(jq '.[0].holders | length' <.out)" -ge 1999 ] # one is let go of for a moment, time and again
}

@test "a look cut short finds the holder by the list, or reports what is left" {
	namespaces --mount
	export SEMLOCK_CRASH=open_fds.cut:fail=1
	hold_lock l
	refused 1 "l: held by ${COMMAND[holder]} (probe hold" "$CRASHABLE_SEMLOCK" -v -n l true
	refused 1 "l: busy; its holder was not looked for in all processes" unshare --mount sh -c \
		'mount --bind /dev/null /proc/locks && exec "$0" -v -n l true' "$CRASHABLE_SEMLOCK"
	# in a PID namespace, too, where it might be one from outside
	refused 1 "l: busy; its holder was not looked for in all processes" unshare --mount --pid --fork --mount-proc \
		sh -c 'mount --bind /dev/null /proc/locks && "$0" -v -n l true' "$CRASHABLE_SEMLOCK"
	let_go
	hold_as ofd -m ofd l
	refused 1 "l: held; its holder was not looked for in all processes" "$CRASHABLE_SEMLOCK" -v -n -m ofd l true
	let_go ofd
}
