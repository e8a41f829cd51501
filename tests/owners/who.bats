#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --who: the holders of a lock, and its waiters.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
CROWD=${CROWD:-$SOURCE/build/tests/crowd}

# table ARGS...: the output of --who ARGS, in $out and .out; the lock must be held.
table() {
	expect_status 1 "$SEMLOCK" --who "$@" || return
	[ -z "$err" ] || complain "--who $*:" "$err"
}

# column N WHO: the N-th column of the lines that begin with WHO: "held", or the turn "1." and so on
column() {
	awk -v column="$1" -v who="$2" '$1 == who { print $column }' .out
}

# shows PID FILE COMMAND: PID, whose command line contains COMMAND, is the only holder of FILE
shows() {
	table "$2" || return
	[ "$(column 2 held)" = "$1" ] || complain "$1 holds $2, and --who says" "$out" || return
	case $(grep '^held' .out) in
	*"$3"*) ;;
	*) complain "the command should be like '$3':" "$out" ;;
	esac
}

# next NAME: waits until NAME has the lock, and lets the lock go.
next() {
	ready "$1" && let_go "$1"
}

json() {
	"$SEMLOCK" --who --json "$@" >.json || [ $? -eq 1 ] || return
	"$PROBE" json <.json >.flat || complain "$(cat .json)"
}

@test "a free lock: says so, 0, and makes nothing" {
	expect_status 0 "$SEMLOCK" --who nothing
	expect_out "nothing: free (no such file)"
	[ ! -e nothing ]
	: >l
	expect_status 0 "$SEMLOCK" --who l
	expect_out "l: free"
}

@test "another program's PID file is free, and --who shows the PID in its text" {
	start one sleep 100
	echo "${PID[one]}" >l
	expect_status 0 "$SEMLOCK" --who l
	expect_out "l: free as a kernel lock; its text names process ${PID[one]}: see --who -m link"
	expect_status 1 "$SEMLOCK" --who -m link l
	kill "${PID[one]}"
	ended one 143
	expect_status 0 "$SEMLOCK" --who l # it is dead
	expect_out "l: free"
	echo 'not a number' >l
	expect_status 0 "$SEMLOCK" --who l
	expect_out "l: free"
}

@test "many locks: with few descriptors as well, no look leaves one open" {
	touch l{1..40}
	expect_status 0 bash -c 'ulimit -n 16; exec "$0" --who l{1..40}' "$SEMLOCK"
	[ "$(grep -c '^l[0-9]*: free$' .out)" -eq 40 ] || complain "$out"
}

@test "several locks: each is shown, and 1 if one is held" {
	hold_as one a
	expect_status 1 "$SEMLOCK" --who a b
	grep -q '^a: held, 0 waiting$' .out
	grep -q '^b: free (no such file)$' .out
	expect_status 1 "$SEMLOCK" --who b a
	let_go one
	expect_status 0 "$SEMLOCK" --who b a
}

@test "a watched command: its own pid, command line and start" {
	TZ="NOON$((10#$(date -u +%H) - 12))" # a start on the day before is printed with its date
	export TZ
	hold_as one l
	shows "${COMMAND[one]}" l "probe hold one.up one.down"
	[[ "$(column 5 held)" =~ ^[0-2][0-9]:[0-5][0-9]:[0-6][0-9]$ ]]
	[ "$(column 3 held)" = "$(id -un)" ]
	[ "$(column 4 held)" = exclusive ]
	let_go one
}

@test "-o, -F, -s, -m ofd, -m posix: the command's pid" {
	for way in -o -F -s "-m ofd" "-m posix" "-F -m posix" "-o -m ofd"; do
		# shellcheck disable=SC2086
		hold_as way $way l
		shows "${COMMAND[way]}" l "probe hold way.up way.down"
		let_go way
		rm way.up way.down
	done
}

@test "-j: each holder and its slot, and the waiter" {
	for method in flock ofd posix; do
		hold_as one -m "$method" -j 2 l
		hold_as two -m "$method" -j 2 l
		queue_as three -m "$method" -j 2 l
		table -m "$method" l
		[ "$(column 2 held | sort)" = "$(printf '%s\n' "${COMMAND[one]}" "${COMMAND[two]}" | sort)" ]
		waiter=${PID[three]}
		if [ "$method" = posix ]; then waiter=$(pgrep -P "$waiter"); fi # see src/run/subreaper.h
		[ "$(column 2 1.)" = "$waiter" ]
		if [ "$method" = flock ]; then grep -q "^held *${COMMAND[two]} .* slot 1 " .out; fi
		let_go one
		let_go two
		next three
		rm ./*.up ./*.down
	done
}

@test "-j: in the order of the slots, not of arrival" {
	hold_as one -j 3 l
	hold_as two -j 3 l
	let_go one
	hold_as three -j 3 l
	hold_as four -j 3 l
	table l
	[ "$(column 2 held | tr '\n' ' ')" = "${COMMAND[three]} ${COMMAND[two]} ${COMMAND[four]} " ] || complain "$out"
	for name in two three four; do let_go $name; done
}

@test "what cannot be locked, or be made, is not free: 66" {
	mkfifo fifo
	perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "socket", Listen => 1) or die'
	: >file
	refused 66 "fifo: is a FIFO" "$SEMLOCK" --who fifo
	refused 66 "socket: is a socket" "$SEMLOCK" --who socket
	refused 66 "no/such: cannot examine it: No such file" "$SEMLOCK" --who no/such
	refused 66 "file/x: cannot examine it: Not a directory" "$SEMLOCK" --who file/x
	ln -s nowhere link
	expect_status 0 "$SEMLOCK" --who nothing link . file
}

@test "--hold: the program that the lock is held for, and not the helper" {
	for method in flock posix mkdir symlink; do
		fifos script
		# shellcheck disable=SC2016 # the second is not the script's child
		case $method in
		flock | mkdir) hold='"$0" --hold -m $1 l <script.down >said & wait' ;;
		*) hold='sh -c "\"\$0\" --hold=$$ -m $1 l <script.down >said; :" "$0" & wait' ;;
		esac
		start script bash -c "$hold" "$SEMLOCK" $method
		exec {down}>script.down
		eventually grep -q OK said
		table -m $method l
		[ "$(column 2 held)" = "${PID[script]}" ] || complain "$out"
		# of the processes that have semlock's words, one says for which process it stands
		pgrep -f -- "--hold.* -m $method l" | xargs -I{} cat /proc/{}/comm >names 2>/dev/null || :
		[ "$(grep -cx "semlock>${PID[script]}" names)" -eq 1 ] || complain "$(cat names)"
		refused 1 "held by ${PID[script]} (bash -c " "$SEMLOCK" -v -n -m $method l true
		json -m $method l
		grep -qx "\[0\].holders\[0\].pid number ${PID[script]}" .flat
		exec {down}>&-
		ended script 0
		expect_status 0 "$SEMLOCK" -n -m $method l true
		rm -f l said names script.*
	done
}

@test "a command with words as long as semlock's is not taken for --hold" {
	fifos holder
	start holder "$SEMLOCK" l bash -c 'length=$(wc -c <"/proc/$PPID/cmdline")
		name=$(printf "%*s" $((length - 1 - 5 - 10 - 12)) "" | tr " " x)
		exec -a "$name" "$0" hold holder.up holder.down' "$PROBE"
	ready holder
	[ "$(wc -c <"/proc/${COMMAND[holder]}/cmdline")" -eq "$(wc -c <"/proc/${PID[holder]}/cmdline")" ]
	expect_status 1 "$SEMLOCK" --who l
	grep -q "^held  *${COMMAND[holder]} " .out || complain "$out"
	let_go
}

@test "flock(1): the command, not the process that waits for it" {
	hold_by_flock one l
	shows "${COMMAND[one]}" l "probe hold one.up one.down"
	let_go one
}

@test "a script's descriptor belongs to the shell, not to its ended locker" {
	for shell in dash bash; do
		fifos shell
		start shell "$(command -v $shell)" -c 'exec 8>l; "$0" 8; "$1" hold shell.up shell.down; :' "$SEMLOCK" "$PROBE"
		ready shell
		shows "${PID[shell]}" l "$shell -c 'exec 8>l"
		[[ "$(column 5 held)" == ">"* ]]
		let_go shell
		rm shell.up shell.down
	done
}

@test "what a command leaves behind with the lock is the holder then" {
	fifos one
	start one "$SEMLOCK" l "$PROBE" leave-behind one.up one.down
	ended one 0
	ready one
	shows "${COMMAND[one]}" l "probe leave-behind one.up"
	release one
	"$PROBE" gone "${COMMAND[one]}"
	expect_status 0 "$SEMLOCK" --who l
}

@test "a killed semlock: its command is the holder" {
	hold_as one l
	kill -KILL "${PID[one]}"
	ended one 137
	shows "${COMMAND[one]}" l "probe hold"
	release one
}

@test "another program's fcntl lock, a process's own" {
	fifos one
	: >l
	start one "$PROBE" fcntl-hold l posix write 0 0 one.up one.down
	ready one
	shows "${PID[one]}" l "probe fcntl-hold"
	table -m posix l
	expect_status 0 "$SEMLOCK" --who -m flock l
	let_go one
}

@test "a Python program's fcntl lock" {
	command -v python3 >/dev/null || skip "no python3 on this machine"
	fifos one
	cat >holder.py <<-'END'
		import fcntl, os
		f = open("l", "w")
		fcntl.lockf(f, fcntl.LOCK_EX)
		up, down = os.open("one.up", os.O_RDWR), os.open("one.down", os.O_RDWR)
		os.write(up, b"ready %d\n" % os.getpid())
		os.read(down, 1)
	END
	start one python3 holder.py
	ready one
	shows "${PID[one]}" l "python3 holder.py"
	expect_status 1 "$SEMLOCK" -v -n -m posix l true
	grep -q "held by ${PID[one]} (python3 holder.py, started " .err
	release one
	ended one 0
}

@test "a lock on a directory, and by a path that is a link" {
	mkdir d
	ln -s d link
	hold_as one d
	shows "${COMMAND[one]}" link "probe hold"
	let_go one
}

@test "a file that no user may read" {
	hold_as one l
	chmod 0 l
	expect_status 1 as_nobody "$SEMLOCK" --who l
	let_go one
}

# unreadable_lock: l is held, and known to user nobody by the list of all locks alone
unreadable_lock() {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	as_nobody strace -o /dev/null true 2>/dev/null || skip "strace cannot trace here"
	hold_as one l
	chmod 0 l
}

# held_though_cut_off: whichever read of that list gives nothing, that user is told that l is held
held_though_cut_off() {
	local read
	for read in 1 2 3; do
		expect_status 1 as_nobody strace -qq -o /dev/null -P /proc/locks -e inject=read:retval=0:when=$read "$SEMLOCK" --who l
	done
	let_go one
}

@test "a read of /proc/locks that misses the line makes no lock free" {
	unreadable_lock
	held_though_cut_off
}

@test "the same with a list of several pages, which the kernel gives in parts" {
	unreadable_lock
	# The list is one of each processor's after the other, the newest first: l is behind a page of these.
	for processor in $(python3 -c "import os; print(*os.sched_getaffinity(0))"); do
		fifos "many-$processor"
		start "many-$processor" taskset -c "$processor" "$PROBE" tickets "m.$processor" 100 "many-$processor.up"
		ready "many-$processor"
		kill -STOP "${PID[many-$processor]}"
	done
	held_though_cut_off
}

# Another lock's coming or going can leave a lock out of this read, too, or give it twice.
list_lock() {
	grep ":$(stat -c %i l) 0 EOF" /proc/locks >lines
	[ "$(wc -l <lines)" -eq 2 ]
}

@test "a lock that /proc/locks gives twice counts once, and its waiter, too" {
	namespaces --mount
	hold_lock l
	queue_as waiter l
	eventually list_lock
	cat lines lines >twice
	expect_status 1 unshare --mount sh -c 'mount --bind twice /proc/locks && exec "$0" --who l' "$SEMLOCK"
	[ "$(sed 1q .out)" = "l: held, 1 waiting" ] || complain "$out"
	[ "$(grep -c '^held' .out)" -eq 1 ]
	[ "$(column 2 1.)" = "${PID[waiter]}" ]
	let_go
	next waiter
}

# Its first thread has ended, and /proc shows the descriptors of the other one alone.
@test "-F: a program whose first thread has ended is the holder" {
	: >l
	start holder "$SEMLOCK" -F l /usr/bin/python3 -c '
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "i686": 1}.get(os.uname().machine, 93), 0)'
	"$PROBE" state "${PID[holder]}" Z
	refused 1 "held by ${PID[holder]} " "$SEMLOCK" -v -n l true
	expect_status 1 "$SEMLOCK" --who l
	[[ $out == *" ${PID[holder]} "* ]] || complain "$out"
	expect_status 1 "$SEMLOCK" --who
	[[ $out == *"$PWD/l: held"* ]] || complain "$out"
	expect_status 0 "$SEMLOCK" --replace=KILL l true
}

@test "a holder whose user has no name: by the number" {
	others_may_run
	: >l
	chmod 666 l
	for user in 54321 4294967294; do
		! getent passwd $user || skip "user $user has a name here"
		fifos holder
		chmod 666 holder.up holder.down
		start holder setpriv --reuid=$user --regid=$user --clear-groups "$SEMLOCK" l "$PROBE" hold holder.up holder.down
		ready holder
		table l
		[ "$(column 3 held)" = $user ]
		[ "$(awk 'length > 80' .out)" = "" ]
		json l
		grep -qx "\[0\].holders\[0\].uid number $user" .flat
		let_go holder
		rm holder.up holder.down
	done
}

@test "50 waiters, in the order in which they are served" {
	hold_lock l
	for i in {1..50}; do
		start "w$i" "$SEMLOCK" l "$CROWD" number order "$i"
		"$PROBE" blocked "${PID[w$i]}"
	done
	table l
	grep -q '^l: held, 50 waiting$' .out
	awk '$1 ~ /^[0-9]+\.$/ { print $2 }' .out >said
	for i in {1..50}; do echo "${PID[w$i]}"; done >came
	diff came said
	let_go
	for i in {1..50}; do ended "w$i" 0; done
	# A waiter that a busy machine is slow to wake may be passed by: the count leaves that out.
	expect_status 0 "$CROWD" judge order
	[[ $out == "served 50 "* ]] || complain "$out" "$(cat order)"
}

# looks_into N ARGS...: beside a holder by semlock ARGS, --who looks into the descriptors of N of two waiters
looks_into() {
	local want=$1 name looked=0
	shift
	hold_as holder "$@"
	queue_as one l
	queue_as two l
	capture strace -o trace -e trace=open,openat "$SEMLOCK" --who l
	printf '%s\n' "$out" >.out
	[ "$(column 2 1.) $(column 2 2.)" = "${PID[one]} ${PID[two]}" ] || complain "$out $err" || return
	for name in one two; do
		! grep -q "\"/proc/${PID[$name]}/fd\"" trace || looked=$((looked + 1))
	done
	[ "$looked" = "$want" ] || complain "$* and $looked:" "$(cat trace)" || return
	let_go && next one && next two && rm ./*.up ./*.down
}

@test "--who looks into waiters only if one may hold a part of the lock" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	looks_into 0 l
	looks_into 2 -s l
}

@test "a waiter that gets the lock while --who looks is its holder" {
	hold_lock l
	queue_as one l
	queue_as two l
	SEMLOCK_CRASH=snapshot.listed:hang SEMLOCK_CRASH_LOG=passed start look "$CRASHABLE_SEMLOCK" --who l
	eventually grep -qs ' hangs$' passed
	let_go
	ready one
	kill -CONT "${PID[look]}"
	ended look 1
	mv look.out .out
	[ "$(column 2 held)" = "${COMMAND[one]}" ] || complain "$(cat .out)"
	[ "$(column 2 1.)" = "${PID[two]}" ] || complain "$(cat .out)"
	grep -q '^l: held, 1 waiting$' .out || complain "$(cat .out)"
	# ">": its semlock, which has begun to hold when the command started, was not found
	[[ $(column 5 held) != ">"* ]] || complain "$(cat .out)"
	let_go one
	next two
}

@test "a waiter that does not queue is listed in the kernel's order" {
	hold_lock l
	start one "$SEMLOCK" l true
	"$PROBE" blocked "${PID[one]}"
	start two "$PROBE" until-free l
	"$PROBE" blocked "${PID[two]}"
	start three "$SEMLOCK" -s l true
	"$PROBE" blocked "${PID[three]}"
	table l
	[ "$(column 2 1.)" = "${PID[one]}" ]
	[ "$(column 2 2.)" = "${PID[two]}" ]
	[ "$(column 2 3.)" = "${PID[three]}" ]
	let_go
	for name in one two three; do ended $name 0; done
}

@test "another user's waiters are named; its holder is not guessed" {
	root_only "to be two users"
	hold_lock l
	queue_as one l
	queue_as two l
	chmod 644 l
	expect_status 1 as_nobody "$SEMLOCK" --who l
	grep -q "^held *? .*(cannot be seen; ${PID[holder]} took it)" .out
	grep -q '^l: held, 2 waiting$' .out
	grep -q "may not be looked into" .out
	[ "$(column 2 1.) $(column 2 2.)" = "${PID[one]} ${PID[two]}" ] || complain "$out"
	[ "$(grep -c "${COMMAND[holder]}" .out)" -eq 0 ]
	expect_status 1 as_nobody "$SEMLOCK" --who --json l
	"$PROBE" json <.out >.flat
	grep -qx '\[0\].unseen boolean true' .flat
	grep -qx '\[0\].holders\[0\].pid null' .flat
	let_go
	next one
	next two
}

@test "another user's slots: each is one holder, without the shared lock beside" {
	root_only "to be two users"
	hold_as one -j 3 l
	hold_as two -j 3 l
	chmod 644 l
	expect_status 1 as_nobody "$SEMLOCK" --who --json l
	jq -e '.[0].unseen and (.[0].holders | map(.mode) == ["slot", "slot"])' <.out >/dev/null || complain "$out"
	let_go one
	let_go two
}

@test "a process that took a lock and has ended is not named as its holder" {
	fifos shell
	start shell bash -c 'exec 8>l; "$0" 8; exec "$1" hold shell.up shell.down' "$SEMLOCK" "$PROBE"
	ready shell
	taker=$(awk '$1 == "lock:" { print $6 }' "/proc/${PID[shell]}/fdinfo/8") # 0 in a PID namespace
	[ -n "$taker" ]
	[ "$taker" != "${PID[shell]}" ]
	shows "${PID[shell]}" l "probe hold"
	let_go shell
}

@test "in a PID namespace, a lock whose taker has ended is held" {
	namespaces --pid --fork --mount-proc
	expect_status 1 unshare --pid --fork --mount-proc bash -c 'exec 8>l; "$0" 8; "$0" --who l; exit $?' "$SEMLOCK"
	grep -q '^held *1 ' <<<"$out" || complain "$out"
}

@test "too little memory for all holders: 71, and not some of them" {
	[ -z "${SANITIZED-}" ] || skip "needs more memory itself"
	if under_valgrind; then skip "needs more memory itself"; fi
	command -v prlimit >/dev/null || skip "no prlimit"
	mkfifo up
	start many /usr/bin/python3 -c 'if True:
		import fcntl, time
		files = [open("l", "w") for _ in range(200)]
		for file in files:
		    fcntl.flock(file, fcntl.LOCK_SH)
		print(file=open("up", "w"))
		time.sleep(1000)'
	read -r _ <up
	expect_status 1 "$SEMLOCK" --who l
	refused 71 "out of memory" prlimit --data=800000 "$SEMLOCK" --who l
}

@test "a waiter in a time namespace shows no wrong waiting time" {
	namespaces --time
	hold_lock l
	for offset in 1000000 -10; do
		fifos waiter$offset
		start waiter$offset unshare --time --monotonic=$offset "$SEMLOCK" l "$PROBE" hold waiter$offset.up waiter$offset.down
		"$PROBE" blocked "${PID[waiter$offset]}"
		expect_status 1 "$SEMLOCK" --who --json l
		jq -e '.[0].waiters | map(.since) | unique == [null]' <.out >/dev/null || complain "$out"
	done
	release holder
}

@test "where statx(2) is unknown, holders are found all the same" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hold_lock l
	for error in ENOSYS EPERM; do
		expect_status 1 strace -qq -o trace -e inject=statx:error=$error "$SEMLOCK" --who l
		grep -q "^held *${COMMAND[holder]} " .out || complain "$error: $out"
	done
	let_go
}

@test "the table fits 80 columns, and other people's words cannot steer it" {
	fifos one
	start one "$SEMLOCK" l bash -c 'exec -a "$0" "$1" hold one.up one.down' \
		$'evil \e[31m\nname '"$(printf 'x%.0s' {1..300})" "$PROBE"
	ready one
	table l
	[ "$(awk 'length > 80' .out)" = "" ]
	[ "$(wc -l <.out)" -eq 3 ]
	grep -q 'evil ?\[31m?name' .out
	[ "$(grep -c $'\e' .out)" -eq 0 ]
	let_go one
}

# at_width COLUMNS: the table on a terminal of that width.
at_width() {
	script -qec "stty cols $1; exec '$SEMLOCK' --who l" /dev/null </dev/null | tr -d '\r' >.out
}

@test "wide terminals show commands in full; COLUMNS sets this for a pipe" {
	command -v script >/dev/null || skip "no script(1)"
	words=$(printf 'word%s ' {1..16})
	fifos one
	# shellcheck disable=SC2086 # words
	start one "$SEMLOCK" l sh -c '"$0" hold one.up one.down; :' "$PROBE" $words
	ready one
	at_width 300
	grep -q " sh -c .* ${words% }$" .out || complain "$(cat .out)"
	at_width 100
	[ "$(awk '/^held/ { print length }' .out)" -eq 99 ] || complain "$(cat .out)"
	COLUMNS=300 capture "$SEMLOCK" --who l
	[[ $out == *" sh -c "*" ${words% }" ]] || complain "$out"
	let_go one
}

# held_since SECONDS: the record in l says that it was taken so long ago.
held_since() {
	record=$(sed "s/since=[0-9]*/since=$(($(date +%s) - $1))/" l)
	printf '%s\n' "$record" >l
}

@test "how long it is held is beside the time; the date, if another day's" {
	hold_lock -m excl l
	table -m excl l
	[[ $(column 6 held) =~ ^[0-9]+s$ ]] || complain "$out"
	while read -r seconds want; do
		held_since "$seconds"
		table -m excl l
		[[ " $(column 6 held) $(column 7 held)" == *" $want"* ]] || complain "$seconds: $out"
	done <<-'END'
		720 12m
		18010 5h
		259210 3d
	END
	[ "$(column 5 held)" = "$(date -d '3 days ago' +%m-%d)" ] || complain "$out"
	let_go
}

@test "a waiter is shown by its own command, mode and directory" {
	mkdir -p "$BATS_TEST_TMPDIR/w"
	lock=$PWD/l
	hold_lock l
	cd "$BATS_TEST_TMPDIR/w"
	queue_as one -E 7 -w 1000 -s "$lock"
	queue_as two -j 3 -E 5 "$lock" --
	cd "$OLDPWD"
	system=$(system_flock)
	[ -z "$system" ] || start three "$system" -s -w 1000 l true
	[ -z "$system" ] || "$PROBE" blocked "${PID[three]}"
	COLUMNS=200 capture "$SEMLOCK" --who l
	grep -q " ${PID[one]} .* shared .* probe hold one.up one.down  in $BATS_TEST_TMPDIR/w$" .out || complain "$out"
	grep -q " ${PID[two]} .* slot .* probe hold two.up two.down  in $BATS_TEST_TMPDIR/w$" .out || complain "$out"
	# since when flock(1) has waited is not known: since later than it was started
	[ -z "$system" ] || grep -qE " ${PID[three]} .* shared +>[0-9:]+ +<[0-9]+s .*true$" .out || complain "$out"
	capture "$SEMLOCK" --who l
	grep -qE " ${PID[one]} .* shared .* probe hold.*\.\.\.  in \.\.\..*/w$" .out || complain "$out"
	[ "$(awk 'length > 80' .out)" = "" ]
	expect_status 1 "$SEMLOCK" --who --json l
	jq -e --arg cwd "$BATS_TEST_TMPDIR/w" --arg here "$PWD" '.[0] | .exists and .holders[0].cwd == $here and
		([.waiters[] | select(.cwd == $cwd) | .mode] | sort) == ["shared", "slot"]' <.out >/dev/null || complain "$out"
	expect_status 0 "$SEMLOCK" --who --json nothing
	jq -e '.[0].exists == false' <.out >/dev/null || complain "$out"
	let_go
	cd "$BATS_TEST_TMPDIR/w"
	ready one
	let_go one
	ready two
	let_go two
}

@test "JSON: what is in it, and of which type" {
	hold_lock l
	queue_as one l
	json l free
	sed -E 's/^\[0\]/L/; s/ (number|string|boolean|array) .*/ \1/; s/\[[0-9]+\]/[]/g' .flat |
		sort -u >types
	cat >schema <<-'END'
		L.deleted null
		L.exists boolean
		L.held boolean
		L.holders array
		L.holders[].alive boolean
		L.holders[].command array
		L.holders[].command[] string
		L.holders[].cwd string
		L.holders[].host string
		L.holders[].id null
		L.holders[].last_slot null
		L.holders[].length null
		L.holders[].method string
		L.holders[].mode string
		L.holders[].name string
		L.holders[].note null
		L.holders[].pid number
		L.holders[].since string
		L.holders[].slot null
		L.holders[].start number
		L.holders[].started string
		L.holders[].taker number
		L.holders[].touched null
		L.holders[].uid number
		L.holders[].user string
		L.holders[].watcher number
		L.lock string
		L.unseen boolean
		L.waiters array
		L.waiters[].alive boolean
		L.waiters[].command array
		L.waiters[].command[] string
		L.waiters[].cwd string
		L.waiters[].host string
		L.waiters[].id null
		L.waiters[].last_slot null
		L.waiters[].length null
		L.waiters[].method string
		L.waiters[].mode string
		L.waiters[].name string
		L.waiters[].note null
		L.waiters[].pid number
		L.waiters[].since string
		L.waiters[].slot null
		L.waiters[].start number
		L.waiters[].started string
		L.waiters[].taker null
		L.waiters[].touched null
		L.waiters[].uid number
		L.waiters[].user string
		L.waiters[].watcher null
	END
	grep '^L' types | diff schema -
	grep -qx '\[0\].held boolean true' .flat
	grep -qx '\[1\].held boolean false' .flat
	grep -qx '\[1\].waiters array 0' .flat
	grep -qx "\[0\].holders\[0\].pid number ${COMMAND[holder]}" .flat
	grep -qx "\[0\].holders\[0\].watcher number ${PID[holder]}" .flat
	grep -qx "\[0\].holders\[0\].command\[1\] string hold" .flat
	grep -qx "\[0\].waiters\[0\].pid number ${PID[one]}" .flat
	grep -qE '^\[0\].holders\[0\].since string 20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9:]{8}Z$' .flat
	let_go
	next one
}

# C0, DEL, C1 as UTF-8 and as a byte, every bidi control, line separators.
@test "no control character of a command line gets into the table or the JSON" {
	local evil=$'\a\x7f\xc2\x9b31m\x9b\xd8\x9c' mark
	for mark in 200e 200f 2028 2029 202a 202b 202c 202d 202e 2066 2067 2068 2069; do
		# shellcheck disable=SC2059 # \u stands in the format
		evil=$evil$(LC_ALL=C.UTF-8 printf "\\u$mark")
	done
	fifos one
	start one "$SEMLOCK" l bash -c 'exec -a "$0" "$1" hold one.up one.down' "$evil"$'\u20ac' "$PROBE"
	ready one
	table l
	grep -qF '???31m????????' .out || complain "$out"
	"$SEMLOCK" --who --json l >json || [ $? -eq 1 ]
	grep -qF '"\u0007\u007f\u009b31m\ufffd\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069' json ||
		complain "$(cat json)"
	python3 - "$evil" .out json <<-'END'
		import sys, unicodedata
		for path in sys.argv[2:]:
		    text = open(path, encoding="utf-8").read()
		    bad = [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n"]
		    assert not bad, (path, bad)
	END
	let_go one
}

@test "JSON: quotes, newlines and what is not UTF-8 in a command line" {
	fifos one
	start one "$SEMLOCK" l bash -c 'exec -a "$0" "$1" hold one.up one.down' \
		$'a"b\\c\n\td\xff\xc3\xa9\x7f' "$PROBE"
	ready one
	json l
	grep -qxF '[0].holders[0].command[0] string a\"b\\c\u000a\u0009d\ufffd'$'\xc3\xa9''\u007f' .flat
	let_go one
}

@test "--who takes nothing: the lock can be had at every moment" {
	: >l
	for _ in 1 2 3 4 5; do "$SEMLOCK" --who l || :; done >/dev/null &
	for _ in 1 2 3 4 5 6 7 8 9 10; do expect_status 0 "$SEMLOCK" -n l true; done
	wait $!
	[ ! -e "/dev/shm/semlock-$(printf '%x' "$(stat -c %d l)")-$(printf '%x' "$(stat -c %i l)")" ]
}

@test "options that take or run make no sense together with --who" {
	for option in -n -s -x -o -F -u "-w 1" "-j 2" --rm; do
		# shellcheck disable=SC2086
		refused 64 --who "$SEMLOCK" --who $option l
	done
	refused 64 --json "$SEMLOCK" --json l true
}

@test "a lock that cannot be looked at: 66, and the others are shown" {
	root_only "to be two users"
	mkdir -m 700 closed
	: >l
	expect_status 66 as_nobody "$SEMLOCK" --who closed/l l
	case $err in "semlock: closed/l: cannot examine it"*) ;; *) complain "$err" ;; esac
	expect_out "l: free"
}

# is_of USER PID
is_of() {
	[ "$(stat -c %u "/proc/$2")" = "$1" ]
}

# barge_as NAME: a probe waits for an ofd lock on l without a ticket.
barge_as() {
	fifos "$1"
	start "$1" "$PROBE" fcntl-hold l ofd write 0 0 "$1.up" "$1.down"
	"$PROBE" blocked "${PID[$1]}"
}

@test "an unqueued waiter for an ofd lock has no name, and none is invented" {
	root_only "is another user"
	: >l
	chmod 666 l
	hold_lock -m ofd l
	barge_as barger
	start looker setpriv --reuid=54321 --regid=54321 --clear-groups sleep 1000 7<l
	eventually is_of 54321 "${PID[looker]}"
	expect_status 1 setpriv --reuid=54321 --regid=54321 --clear-groups "$SEMLOCK" -m ofd --who --json l
	jq -e '.[0].waiters | map(.pid) == [null]' <.out >/dev/null || complain "$out"
	let_go
	ready barger
	let_go barger
}

@test "two such waiters, and processes with the file open: two unnamed waiters" {
	hold_lock -m ofd l
	barge_as one
	barge_as two
	fifos looker
	start looker "$PROBE" hold looker.up looker.down 7<l
	ready looker
	expect_status 1 "$SEMLOCK" -m ofd --who --json l
	[ "$(jq '.[0].waiters | length' <.out 2>/dev/null || true)" = 2 ] || complain "$out"
	let_go looker
}

@test "a lock held by a process outside our PID namespace is not free" {
	namespaces --pid --fork --mount-proc
	for way in "-m flock" "-m flock -s" "-m ofd" "-m posix"; do
		# shellcheck disable=SC2086 # words
		hold_lock $way l
		expect_status 1 unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" --who l
		case $way in
		*ofd) [[ $out == "l: held, 0 waiting"*"(cannot be seen)"* ]] || complain "$way: $out" ;;
		*) [[ $out == "l: held; its holder cannot be seen from here, 0 waiting"* ]] || complain "$way: $out" ;;
		esac
		expect_status 1 unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" --who --json l
		[[ $out == *'"held": true'* ]] || complain "$way: $out"
		[ "$way" != "-m flock" ] ||
			refused 1 "l: held; its holder cannot be seen from here" unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" -v -n l true
		let_go
		rm -f ./*.up ./*.down
		expect_status 0 unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" --who l
	done
}
