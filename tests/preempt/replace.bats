#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --replace: the newest command wins, and no process but the holder is signalled.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "the holder's command is ended by TERM, and ours runs in its place" {
	for way in "" -o -F "-m ofd" "-m posix" "-F -m posix" -s; do
		method=
		case $way in *-m*) method=-m${way##*-m} ;; esac
		# shellcheck disable=SC2086
		hold_as old $way l
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" $method --replace l echo new
		expect_out new
		ended old 143
		rm old.up old.down
	done
}

@test "flock(1)'s command is ended, and not flock alone" {
	hold_by_flock old l
	expect_status 0 "$SEMLOCK" --replace l true
	ended old 143
	"$PROBE" gone "${COMMAND[old]}"
}

@test "the command of flock -o is ended, and not only flock" {
	system=$(system_flock)
	[ -n "$system" ] || skip "no util-linux flock on this machine"
	fifos old
	start old "$system" -o l "$PROBE" hold old.up old.down
	ready old
	kill -STOP "${COMMAND[old]}"
	expect_status 0 "$SEMLOCK" --replace l true
	"$PROBE" gone "${COMMAND[old]}"
	ended old 143
}

# stops HOLDER WAY: a replacer signals this process of the holder, and no other.
stops() {
	# shellcheck disable=SC2086 # a word or none
	expect_status 0 "$SEMLOCK" --status-fd=7 --replace$2 l true 7>events
	[ "$(grep stopped events)" = "stopped $1" ] || complain "it should stop $1: $(cat events)"
	rm -f old.*
}

@test "a semlock is signalled; of flock(1), or with KILL, the command is" {
	hold_as old l
	stops "${PID[old]}" ""
	ended old 143
	hold_as old -o l
	stops "$(ps -o ppid= -p "${COMMAND[old]}" | tr -d ' ')" ""
	ended old 143
	hold_as old l
	stops "${COMMAND[old]}" =KILL
	ended old 137
	system=$(system_flock)
	[ -n "$system" ] || skip "no util-linux flock on this machine"
	for way in "" -o; do
		fifos old
		# shellcheck disable=SC2086 # a word or none
		start old "$system" $way l "$PROBE" hold old.up old.down
		ready old
		stops "${COMMAND[old]}" ""
		ended old 143
	done
}

@test "a shell that has the descriptor is ended" {
	fifos shell
	start shell bash -c 'exec 8>l; "$0" 8; echo ready $$ >shell.up; read -r _ <>shell.down' "$SEMLOCK"
	ready shell
	expect_status 0 "$SEMLOCK" --replace l true
	ended shell 143
}

@test "a process that flocks a link naming another one is left alone" {
	fifos named
	start named "$PROBE" hold named.up named.down
	ready named
	printf '%10d\n' "${PID[named]}" >lock
	hold_as other -F --fd 8 8<>lock
	expect_status 69 "$SEMLOCK" -m link --replace lock true
	let_go named
	expect_status 69 "$SEMLOCK" -m link --replace lock true
	let_go other
}

@test "all shared holders are ended for an exclusive lock" {
	hold_as one -s l
	hold_as two -s l
	expect_status 0 "$SEMLOCK" -s --replace l true
	expect_status 0 "$SEMLOCK" --replace l true
	ended one 143
	ended two 143
}

@test "another signal: --replace=SIG" {
	report_as old l
	start new "$SEMLOCK" --replace=USR1 l true
	reports old USR1
	kill -KILL "${COMMAND[old]}"
	ended old 137
	ended new 0
}

@test "a free lock is taken, and no process is signalled" {
	expect_status 0 "$SEMLOCK" --status-fd 1 --replace l true
	[ "$(untimed <.out | tr '\n' ,)" = "acquired,exit 0," ]
}

# killed_after_the_limit ARGS...: semlock has signalled the holder before the limit of -w, and waits beyond the limit.
# If the limit came first, no holder has been signalled.
killed_after_the_limit() {
	capture "$SEMLOCK" -w "${room}ms" --kill-after "$((room + 200))ms" "$@" true
	[ "$status" -eq 0 ]
}

@test "a command that ignores TERM: waited for, and KILLed after --kill-after" {
	fifos old
	start old "$SEMLOCK" l "$PROBE" with-ignored TERM -- "$PROBE" hold old.up old.down
	ready old
	with_room killed_after_the_limit --replace l
	ended old 137
	for way in -o "-m posix"; do
		fifos tied
		# shellcheck disable=SC2086
		start tied "$SEMLOCK" $way l "$PROBE" with-ignored TERM -- "$PROBE" hold tied.up tied.down
		ready tied
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" ${way#-o} --kill-after .1 --replace l true
		ended tied 137
		rm tied.up tied.down
	done
}

@test "a holder that takes seconds to end is waited for, not out of reach" {
	fifos old
	start old "$SEMLOCK" l "$PROBE" with-ignored TERM -- "$PROBE" hold old.up old.down
	ready old
	fifos new
	start new "$SEMLOCK" --replace --status-fd=1 l "$PROBE" hold new.up new.down
	eventually grep -q stopped new.out
	"$PROBE" pause 2500 # ten looks, and a second, without a holder would end it
	kill -0 "${PID[new]}" || complain "$(cat new.err)"
	let_go old
	ready new
	let_go new
}

@test "the holder's end wakes semlock up" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	report_as old l
	start new strace -o trace "$SEMLOCK" --replace l true
	reports old TERM
	eventually grep -Eq '^flock\([0-9]+, LOCK_EX(\)|$)' trace # semlock sleeps, and does not only look
	kill -KILL "${COMMAND[old]}"
	ended old 137
	ended new 0
}

@test "a stopped holder is continued, so that it can obey" {
	hold_as old l
	kill -STOP "${PID[old]}" "${COMMAND[old]}"
	"$PROBE" state "${PID[old]}" T
	expect_status 0 "$SEMLOCK" --replace l true
	ended old 143
}

@test "processes that the holder has left behind are stopped, too" {
	fifos old
	start old "$SEMLOCK" l "$PROBE" leave-behind old.up old.down
	ended old 0
	PID[old]=$$ # semlock has ended, and the process left behind may become ready later
	ready old
	expect_status 0 "$SEMLOCK" --replace l true
	"$PROBE" gone "${COMMAND[old]}"
}

@test "a holder that ends by itself: the lock is taken, nobody is signalled" {
	crashable
	for point in replace.looked replace.aimed replace.proven; do
		hold_as old l
		SEMLOCK_CRASH=$point:stop start new "$SEMLOCK" --replace l touch ran
		"$PROBE" state "${PID[new]}" T
		let_go old
		kill -CONT "${PID[new]}"
		ended new 0
		rm ran old.up old.down
	done
}

# walked: processes that the last replacer has looked into, a tenth of a second each
walked() {
	grep -c '^open_fds.walk$' passed || :
}

@test "a holder that ends during the search: the lock is taken before its end" {
	crashable
	for ((i = 0; i < 100; i++)); do start "idle$i" sleep 1000; done
	for way in "" "-m ofd" "-m excl" "-m mkdir"; do
		for wish in --replace --toggle; do
			rm -rf l passed ran events
			# shellcheck disable=SC2086 # words
			hold_as old $way l
			# shellcheck disable=SC2086 # words
			SEMLOCK_CRASH=open_fds.walk:wait=100 SEMLOCK_CRASH_LOG=passed start new "$SEMLOCK" $way $wish --status-fd=1 l touch ran
			eventually grep -qs walk passed
			let_go old
			ended new 0
			[ -e ran ] || complain "$way $wish: not taken: $(cat new.out new.err)"
			if grep stopped new.out; then complain "$way $wish: a process was signalled"; fi
			[ "$(walked)" -lt 100 ] || complain "$way $wish: after $(walked) processes"
			rm old.up old.down
		done
	done
}

@test "the pause between two looks is a second at most, however long they take" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	namespaces --pid --fork --mount-proc # where few processes make a look of two seconds
	crashable
	: >l # about to be written, for all that is known: no process to stop
	cat >few <<-'END'
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 1000 & done
		SEMLOCK_CRASH=open_fds.walk:wait=100 strace -qq -e trace=poll,ppoll -o trace "$SEMLOCK" -m excl --replace -w 8 l true
		echo $? >status
	END
	SEMLOCK=$SEMLOCK unshare --pid --fork --mount-proc sh few
	[ "$(cat status)" -eq 1 ] || [ "$(cat status)" -eq 69 ] || complain "$(cat status)"
	longest=$(sed -n 's/^poll(.*, [0-9]*, \([0-9]*\)).*/\1/p' trace | sort -n | tail -1)
	[ "$longest" -eq 1000 ] || complain "the longest pause is $longest ms"
}

@test "-w holds while the processes are looked into" {
	crashable
	for ((i = 0; i < 100; i++)); do start "idle$i" sleep 1000; done
	hold_as old l
	SEMLOCK_CRASH=open_fds.walk:wait=100 SEMLOCK_CRASH_LOG=passed expect_status 1 "$SEMLOCK" -w 1 --replace l true
	[ "$(walked)" -lt 100 ] || complain "after $(walked) processes"
	let_go old
}

@test "an idle process's earlier ticket only delays --replace" {
	hold_as old l
	queue_as killed l
	kill -KILL "${PID[killed]}"
	ended killed 137
	fifos hostile
	start hostile "$PROBE" fcntl-hold "$(queue_of l)" ofd write 1 1 hostile.up hostile.down
	ready hostile
	hold_as new --replace l
	ended old 143
	let_go hostile
	let_go new
}

@test "of many at once never two run, and one is left" {
	for i in $(seq 8); do start "r$i" "$SEMLOCK" --replace l "$SEMLOCK" -n -E 99 -F -m ofd room "$PROBE" pause 20; done
	for i in $(seq 8); do
		status=0
		wait "${PID[r$i]}" || status=$?
		echo $status
	done >statuses
	! grep -qvx -e 0 -e 143 statuses || complain "$(cat statuses)"
	[ "$(grep -c '^0$' statuses)" -ge 1 ]
	expect_free l
}

@test "another user's holder: 77, and it lives on" {
	root_only "to be two users"
	hold_lock l
	chmod 666 l
	refused 77 "no permission to see its process; run semlock as its user or as root" as_nobody "$SEMLOCK" --replace l true
	let_go
}

@test "if one of two holders cannot be signalled: 77, and neither is" {
	root_only "to be two users"
	: >l
	chmod 666 l
	for order in "root nobody" "nobody root"; do
		fifos root
		fifos nobody
		chmod 666 nobody.up nobody.down
		for user in $order; do
			as=()
			[ "$user" = root ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
			start "$user" "${as[@]}" "$SEMLOCK" -s l "$PROBE" hold "$user".up "$user".down
			ready "$user"
		done
		refused 77 "belongs to another user; run semlock as that user" \
			setpriv --bounding-set=-kill --inh-caps=-kill "$SEMLOCK" --replace l touch ran
		let_go root
		let_go nobody
		rm root.* nobody.*
	done
	[ ! -e ran ]
}

@test "if two unseen holders end, the next search finds none in the way" {
	root_only "to be two users"
	hold_as one -s l
	hold_as two -s l
	chmod 666 l
	crashable
	SEMLOCK_CRASH=replace.looked:stop start new setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$SEMLOCK" --replace l true
	"$PROBE" state "${PID[new]}" T
	let_go one
	let_go two
	kill -CONT "${PID[new]}"
	ended new 0
}

# The holder ends while the replacer searches for it.  The waiter finds the lock free, time and again, and is stopped just
# before it takes the lock: the pauses between its looks are what a search may take.
@test "while a replacer looks for the holder, no waiter passes it" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	crashable
	hold_lock l
	SEMLOCK_CRASH=attempt.deserted:stop start waiter strace -D -qq -o pauses -e trace=nanosleep,clock_nanosleep \
		"$SEMLOCK" l sh -c 'echo waiter >>order'
	"$PROBE" blocked "${PID[waiter]}"
	SEMLOCK_CRASH=replace.looked:hang SEMLOCK_CRASH_LOG=$PWD/looked start new "$SEMLOCK" --replace l sh -c 'echo new >>order'
	eventually grep -qs ' hangs$' looked
	let_go
	eventually grep -q 'stopped by SIGSTOP' pauses
	ms=$(sed -n 's/.*nanosleep(.*tv_nsec=\([0-9]*\)}.*/\1/p' pauses | awk '{ ns += $1 } END { print int(ns / 1000000) }')
	[ "$ms" -ge 300 ] || complain "it takes the lock after pauses of $ms ms" "$(cat pauses)"
	kill -CONT "${PID[new]}"
	ended new 0
	kill -CONT "${PID[waiter]}"
	ended waiter 0
	[ "$(cat order)" = $'new\nwaiter' ] || complain "$(cat order)"
}

@test "a holder outside of our PID namespace: 69, and it lives on" {
	namespaces --pid --fork --mount-proc
	hold_lock l
	refused 69 "cannot stop the holder: it is on another host, in another PID namespace, or hidden by a sandbox" \
		unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" --replace l touch ran
	[ ! -e ran ]
	let_go
}

@test "our own caller is never signalled: 64" {
	expect_status 5 bash -c 'exec 8>l; "$0" 8; "$0" --replace l true; [ $? -eq 64 ] && exit 5' "$SEMLOCK"
	grep -q "an ancestor of this command, which would end with it" .err
	expect_status 64 "$SEMLOCK" l "$SEMLOCK" --replace l true
	expect_status 64 "$SEMLOCK" l "$SEMLOCK" --toggle l true
}

# three_wait METHOD: a holder, and three waiters whose jobs write to the file log
three_wait() {
	rm -f log ./*.up ./*.down
	hold_as old -m "$1" "l.$1"
	for i in 1 2 3; do
		start "w$i" "$SEMLOCK" -m "$1" "l.$1" sh -c 'echo start >>log; sleep .02; echo end >>log'
		"$PROBE" blocked "${PID[w$i]}"
	done
}

# three_run: the waiters' jobs run after the replacer, whole.
three_run() {
	[ ! -e log ] || complain "one has started: $(cat log)"
	let_go new
	for i in 1 2 3; do ended "w$i" 0; done
	[ "$(tr '\n' ' ' <log)" = "start end start end start end " ] || complain "$(cat log)"
}

@test "waiters are neither started nor stopped: they run after the replacer" {
	for method in flock ofd posix mkdir excl; do
		three_wait $method
		hold_as new -m $method --replace "l.$method"
		ended old 143
		for i in 1 2 3; do "$PROBE" blocked "${PID[w$i]}"; done
		three_run
	done
}

@test "a script that waits for its descriptor's lock is not stopped either" {
	hold_as old l
	start w1 "$SEMLOCK" l sh -c 'echo start >>log; echo end >>log'
	"$PROBE" blocked "${PID[w1]}"
	fifos w2
	# shellcheck disable=SC2016
	start w2 bash -c 'exec 8>>l; echo ready $$ >w2.up; "$0" 8 && echo start >>log && echo end >>log' "$SEMLOCK"
	ready w2
	eventually pgrep -P "${PID[w2]}" >/dev/null
	"$PROBE" blocked "$(pgrep -P "${PID[w2]}")"
	hold_as new --replace l
	ended old 143
	[ ! -e log ] || complain "one has started: $(cat log)"
	let_go new
	ended w1 0
	ended w2 0
	[ "$(tr '\n' ' ' <log)" = "start end start end " ] || complain "$(cat log)"
}

@test "of several replacers each stops the holder of its turn, once" {
	report_as old l
	fifos r1
	start r1 "$SEMLOCK" --replace l "$PROBE" hold r1.up r1.down
	reports old TERM
	queue_as r2 --replace l
	kill -KILL "${COMMAND[old]}"
	ended old 137
	ready r2
	ended r1 143
	let_go r2
}

# What has to be seen within a second is seen without processes.
has_ticket() {
	local file lines
	for file in "/proc/${PID[$1]}/fdinfo"/*; do
		mapfile -t lines <"$file"
		[[ "${lines[*]}" != *POSIX*WRITE* ]] || return 0
	done 2>/dev/null
	return 1
}

is_stopped() {
	local state
	read -r _ _ state _ <"/proc/$1/stat" && [ "$state" = T ]
}

# looked_twice: the replacer has looked at the lock, and decided, twice; or the waiter is stopped no more.
looked_twice() {
	local lines
	mapfile -t lines <looked
	[[ " ${lines[*]} " == *" replace.looked "*" replace.looked "*" replace.looked "* ]] || ! is_stopped "$taker"
}

gives_back() {
	rm -f looked
	transits "$1"
	eventually has_ticket new || return
	eventually looked_twice 2>/dev/null || return
	is_stopped "$taker" || return
	kill -CONT "$taker"
	ready new || return
	let_go new || return
	"$PROBE" state "$taker" T || return
	kill -CONT "$taker"
	ready w1 && let_go w1
}

# After a second the replacer takes the waiter for a holder (see the next test): a machine that took longer proves
# nothing.
soon_gives_back() {
	crashable
	for _ in $(seq 50); do
		rm -f l ./*.up ./*.down
		began=${EPOCHREALTIME/[.,]/}
		if gives_back "$1" 2>/dev/null; then return; fi
		[ $((${EPOCHREALTIME/[.,]/} - began)) -ge 1000000 ] || complain "within a second"
	done
	complain "the machine is too busy"
}

@test "a waiter that just took the lock gives it back, and is not signalled" {
	soon_gives_back semlock
}

@test "a script whose waiter just locked its descriptor is not signalled" {
	soon_gives_back script
}

@test "a taker stopped there for longer than a second counts as a holder" {
	crashable
	transits semlock
	ready new
	ended w1 143
	let_go new
}

# transits semlock|script: a waiter, $taker, is stopped while it has both the lock and its ticket, and then a replacer comes.
transits() {
	hold_as old l || return
	fifos w1
	export SEMLOCK_CRASH=lock.transit:stop
	if [ "$1" = script ]; then
		start w1 bash -c 'exec 8>>l; "$0" 8 && exec "$1" hold w1.up w1.down' "$SEMLOCK" "$PROBE"
		eventually pgrep -P "${PID[w1]}" >/dev/null
		taker=$(pgrep -P "${PID[w1]}")
	else
		start w1 "$SEMLOCK" l "$PROBE" hold w1.up w1.down
		taker=${PID[w1]}
	fi
	unset SEMLOCK_CRASH
	"$PROBE" blocked "$taker" || return
	let_go old || return
	"$PROBE" state "$taker" T || return
	fifos new
	SEMLOCK_CRASH_LOG=$PWD/looked start new "$SEMLOCK" --replace l "$PROBE" hold new.up new.down
}

@test "-w 0 stops no holder" {
	for way in --replace --toggle; do
		for method in flock ofd mkdir; do
			hold_as old -m $method "l.$method"
			expect_status 1 "$SEMLOCK" -w 0 -m $method $way "l.$method" true
			let_go old
			expect_status 0 "$SEMLOCK" -w 0 -m $method $way "l.$method" true
			rm old.up old.down
		done
	done
}

# stops_in_time: the replacer signals the holder before the replacer's own limit
stops_in_time() {
	rm -f events
	start new "$SEMLOCK" --status-fd=7 -w "${room}ms" --replace l echo ran 7>events
	eventually [ -s events ] || return
	[ "$(<events)" = "stopped ${PID[old]}" ]
}

@test "-w: a holder that has been stopped has not been stopped in vain" {
	report_as old l
	with_room stops_in_time
	reports old TERM
	"$PROBE" pause $((room + 200))
	kill -KILL "${COMMAND[old]}"
	ended old 137
	ended new 0
	[ "$(cat new.out)" = ran ]
}

# crashable: SEMLOCK has crash points, and the name semlock: --replace knows a semlock by its name
crashable() {
	mkdir crash
	ln -s "${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}" crash/semlock
	SEMLOCK=$PWD/crash/semlock
}

# reuse POINT [OPTIONS]: in a PID namespace of its own, another process gets the holder's PID between the moments at
# which --replace looks, opens the process, and signals.
reuse() {
	cat >reuse.sh <<-'END'
		set -eu
		mkfifo up down
		"$SEMLOCK" $METHOD l "$PROBE" hold up down &
		old=$!
		read -r _ command <>up
		SEMLOCK_CRASH=$1:stop "$SEMLOCK" $METHOD --replace l touch replaced &
		new=$!
		"$PROBE" state $new T
		"$PROBE" pause 30 # a start is known to 10 ms: no machine gets round all PIDs in that time
		kill -KILL $old $command
		wait $old || :
		"$PROBE" gone $command
		for pid in $old $command; do
			tries=0
			until [ -e "/proc/$pid/stranger" ]; do
				echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid
				sleep 1000 &
				if [ $! -eq $pid ]; then break; fi
				kill $!
				tries=$((tries + 1))
				[ $tries -lt 50 ]
			done
		done
		kill -CONT $new
		while read -r _ _ state _ <"/proc/$new/stat" && [ "$state" != Z ]; do
			if [ "$state" = T ]; then kill -CONT $new; fi
			"$PROBE" pause 1
		done
		status=0
		wait $new || status=$?
		kill -0 $old
		kill -0 $command
		[ -e replaced ] || [ "$METHOD" = "-m link" -a $status -eq 69 ]
		kill $old $command
		touch passed
	END
	SEMLOCK=$SEMLOCK PROBE=$PROBE METHOD=${2-} unshare --pid --fork --mount-proc bash reuse.sh "$1" >reuse.out 2>&1 3>&- || true
	[ -e passed ] || complain "$*" "$(cat reuse.out)"
	rm -rf passed replaced up down l
}

@test "a process that got a holder's PID is not signalled" {
	namespaces --pid --fork --mount-proc
	crashable
	reuse replace.looked
	reuse replace.aimed
	reuse replace.proven
}

@test "lock of files: a process that got its holder's PID is not signalled" {
	namespaces --pid --fork --mount-proc
	crashable
	for method in excl link mkdir symlink; do
		reuse replace.looked "-m $method"
		reuse replace.aimed "-m $method"
		reuse replace.proven "-m $method"
	done
}

# ---- locks made of files ----

METHODS="excl link mkdir symlink rename"

# token METHOD: makes the token that rename needs
token() {
	[ "$1" != rename ] || "$SEMLOCK" -m rename --init l true
}

@test "lock of files: the holder's command is ended, and ours runs" {
	for method in $METHODS; do
		token "$method"
		for way in "" -o; do
			# shellcheck disable=SC2086
			hold_as old $way -m $method l
			expect_status 0 "$SEMLOCK" -m "$method" --replace l echo new
			expect_out new
			ended old 143
			rm old.up old.down
		done
	done
	[ -f l ] && [ ! -s l ] # rename's token
}

@test "lock of files: a command that ignores TERM is KILLed, whatever -w says" {
	for method in excl symlink; do
		fifos old
		start old "$SEMLOCK" -m $method l "$PROBE" with-ignored TERM -- "$PROBE" hold old.up old.down
		ready old
		with_room killed_after_the_limit -m $method --replace l
		ended old 137
		rm old.up old.down
	done
}

@test "lock of files, semlock killed: a command that the lock proves is ended" {
	for method in $METHODS; do
		token "$method"
		hold_as old -m "$method" l
		kill -KILL "${PID[old]}"
		ended old 137
		expect_status 0 "$SEMLOCK" -m "$method" --replace l true
		"$PROBE" gone "${COMMAND[old]}"
		rm old.up old.down
	done
}

@test "a dead holder's lock is taken over; a process with its PID lives on" {
	start other sleep 1000
	"$PROBE" pause 50 # so that the sample's command is younger, by more than a clock tick
	for method in excl mkdir symlink; do
		"$SEMLOCK" -m $method sample cp -a sample whole
		case $method in
		mkdir) sed -i -e "1s/.*/${PID[other]}/" whole/pid && mv whole l ;;
		symlink) ln -s "$(readlink whole | sed "s/^[0-9]*/${PID[other]}/")" l && rm whole ;;
		*) sed -e "1s/.*/${PID[other]}/" whole >l && rm whole ;;
		esac
		expect_status 0 "$SEMLOCK" --status-fd 1 -m $method --replace l true
		[ "$(untimed <.out | tr '\n' ,)" = "acquired,exit 0," ] || complain "$method: $out"
		kill -0 "${PID[other]}"
		[ ! -e l ]
	done
}

# unproven METHOD CONTENT THING: semlock refuses, its message names THING, and no process is signalled
unproven() {
	foreign_lock "$1" "$2"
	refused 69 "cannot stop the holder: $3" "$SEMLOCK" -m "$1" --replace l touch ran
	refused 69 "cannot stop the holder: $3" "$SEMLOCK" -m "$1" --toggle l touch ran
	[ ! -e ran ]
	kill -0 "${PID[other]}"
}

@test "a record that proves nothing: refused, 69, and no process is signalled" {
	start other sleep 1000
	for method in excl link mkdir rename; do
		unproven $method "${PID[other]}" "the lock names process ${PID[other]}, and nothing proves"
		unproven $method "${PID[other]}"$'\n'elsewhere$'\n' "process ${PID[other]} on host elsewhere"
		unproven $method 0 "the lock names no process"
	done
	unproven symlink "${PID[other]}" "the lock names process"
	unproven symlink "me@$(uname -n).${PID[other]}:1" "the lock names no process"
}

@test "link: a command without its descriptor is not known by number alone" {
	fifos old
	start old "$SEMLOCK" -m link l "$PROBE" closefrom-then-hold old.up old.down
	ready old
	kill -KILL "${PID[old]}"
	ended old 137
	refused 69 "nothing proves" "$SEMLOCK" -m link --replace l true
	kill -0 "${COMMAND[old]}"
	release old
}

@test "a process that looks at a foreign lock, or waits, is not its holder" {
	start other sleep 1000
	echo "${PID[other]}" >l
	start waiter "$SEMLOCK" -m excl l true
	for _ in $(seq 20); do
		refused 69 "nothing proves" "$SEMLOCK" -m excl --replace l true
	done
	kill -0 "${PID[waiter]}"
	rm l
	ended waiter 0
}

@test "a waiter that has a dead holder's lock under flock is not its holder" {
	CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}
	true &
	pid=$!
	wait $pid
	for method in excl link mkdir; do
		if [ $method = mkdir ]; then mkdir l && echo $pid >l/pid; else echo $pid >l; fi
		SEMLOCK_CRASH=takeover.guarded:stop start waiter "$CRASHABLE_SEMLOCK" -m $method l true
		"$PROBE" state "${PID[waiter]}" T
		expect_status 1 "$SEMLOCK" -w .3 -m $method --replace l true
		"$PROBE" state "${PID[waiter]}" T
		kill -CONT "${PID[waiter]}"
		ended waiter 0
	done
}

@test "a lock made of files: of many at once never two run, and one is left" {
	for method in excl symlink; do
		for i in $(seq 8); do start "r$i" "$SEMLOCK" -m $method --replace l "$SEMLOCK" -n -E 99 -F -m ofd room "$PROBE" pause 20; done
		for i in $(seq 8); do
			status=0
			wait "${PID[r$i]}" || status=$?
			echo $status
		done >statuses
		! grep -qvx -e 0 -e 143 statuses || complain "$method" "$(cat statuses r?.err)"
		[ "$(grep -c '^0$' statuses)" -ge 1 ]
		expect_status 0 "$SEMLOCK" -n -m $method l true
	done
}

@test "a lock made of files, another user's: 77, and it lives on" {
	root_only "to be two users"
	chmod 777 .
	for method in excl mkdir symlink; do
		hold_lock -m $method l
		refused 77 "another user; run semlock as that user, or as root" as_nobody "$SEMLOCK" -m $method --replace l true
		let_go
		rm ./*.up ./*.down
	done
}

@test "a lock made of files, our own caller's: never signalled, 64" {
	for method in $METHODS; do
		token "$method"
		expect_status 64 "$SEMLOCK" -m "$method" l "$SEMLOCK" -m "$method" --replace l true
		expect_status 64 "$SEMLOCK" -m "$method" l "$SEMLOCK" -m "$method" --toggle l true
	done
}

# With its command ends the container, and whoever asked for that.
@test "lock of files: --replace inside its holder's container fails with 64" {
	namespaces --pid --fork --mount-proc
	for method in excl mkdir; do
		unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" -m $method l \
			sh -c '(setsid sh -c "\$0 -m $1 --replace l touch ran; echo \$? >status.new; mv status.new status" "$0" 2>message &)
				while [ ! -s status ]; do "$2" pause 5; done' "$SEMLOCK" $method "$PROBE"
		[ "$(cat status)" -eq 64 ] || complain "$method: $(cat status message)"
		grep -q "an ancestor of this command" message
		rm status
	done
	[ ! -e ran ]
}

@test "lock of files in another PID namespace: flock proves the holder" {
	namespaces --pid --fork --mount-proc
	for method in excl link; do
		fifos old
		start old unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" -m $method l "$PROBE" hold old.up old.down
		next_line old
		expect_status 0 "$SEMLOCK" -m $method --replace l true
		wait "${PID[old]}" || [ $? -eq 143 ]
		rm old.up old.down
	done
}

@test "a holder of other bytes of the file is not named, and lives on" {
	for method in ofd posix; do
		hold_as old -m "$method" --start 0 --length 10 l
		hold_as other -m "$method" --start 100 --length 10 l
		refused 1 "(probe hold other.up" "$SEMLOCK" -n -v -m "$method" --start 105 --length 10 l true
		case $err in *" and 1 more"*) complain "$err" ;; esac
		expect_status 0 "$SEMLOCK" -m "$method" --start 5 --length 10 --replace l true
		ended old 143
		let_go other
		rm ./*.up ./*.down
	done
}

@test "a reader of the same bytes lives on, if we read them, too" {
	for method in ofd posix; do
		hold_as writer -m "$method" --start 0 --length 10 l
		hold_as reader -m "$method" -s --start 10 l
		expect_status 0 "$SEMLOCK" -m "$method" -s --replace l true
		ended writer 143
		let_go reader
		rm ./*.up ./*.down
	done
}

@test "what makes no sense is refused" {
	refused 64 --replace "$SEMLOCK" --replace -n l true
	refused 64 --replace "$SEMLOCK" --replace -j 2 l true
	refused 64 --replace "$SEMLOCK" --replace -f a b true
	refused 64 --replace "$SEMLOCK" --replace=NOSUCH l true
	refused 64 -u "$SEMLOCK" --replace -u 8
	refused 64 --nested "$SEMLOCK" --replace --nested l true
}

# After 1.7 seconds the second waiter is about to look whether the first one lives, which has just given the lock back.
# Where the waiters take longer to queue, the holder is that much older.
@test "--older waits for a younger holder, then stops it before all waiters" {
	began=$(date +%s%N)
	hold_lock l
	for i in 1 2 3; do queue_as waiter$i l; done
	age=$((($(date +%s%N) - began) / 1000000)) # in ms; the holder is younger
	began=$(date +%s%N)
	expect_status 0 "$SEMLOCK" -v --replace --older=$((age + 1000 * SLOWNESS))ms l sh -c 'echo in >>order'
	[ $((($(date +%s%N) - began) / 1000000)) -ge $((500 * SLOWNESS)) ]
	ended holder 143
	[[ $err == *"process ${COMMAND[holder]} is left alone until it has held the lock for "*"stopped process"* ]] || complain "$err"
	ready waiter1
	[ "$(cat order)" = in ]
	for i in 1 2 3; do
		[ $i -eq 1 ] || ready waiter$i
		let_go waiter$i
	done
}

@test "--older: the age never restarts; -n is busy; a release ends the wait" {
	hold_lock l
	expect_status 1 "$SEMLOCK" -n --replace --older=1h l touch ran
	expect_status 1 "$SEMLOCK" -w .3 --replace --older=1h l touch ran
	"$PROBE" pause 1200
	expect_status 0 "$SEMLOCK" -n --replace --older=1 l true
	ended holder 143
	rm ./*.up ./*.down
	hold_lock l
	start next "$SEMLOCK" --replace --older=1h l true
	"$PROBE" pause 100
	let_go
	ended next 0
	[ ! -e ran ]
}

@test "--older goes with --replace alone" {
	refused 64 "--older requires --replace" "$SEMLOCK" --older=3 l touch ran
	refused 64 "--older requires --replace" "$SEMLOCK" --toggle --older=3 l touch ran
	[ ! -e ran ]
}
