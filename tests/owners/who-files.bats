#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --who, of locks that are made of files: by their records, and by the flock on the files.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/made-of-files
CROWD=${CROWD:-$SOURCE/build/tests/crowd}

# said STATUS LINE ARGS...: --who ARGS ends with STATUS, and LINE is its first line
said() {
	local want=$1 line=$2
	shift 2
	expect_status "$want" "$SEMLOCK" --who "$@" || return
	[ "${out%%$'\n'*}" = "$line" ] || complain "--who $* said" "$out" "instead of $line"
}

# column N WHO: the N-th column of the lines that begin with WHO: "held", or the turn "1." and so on
column() {
	awk -v column="$1" -v who="$2" '$1 == who { print $column }' .out
}

json() {
	"$SEMLOCK" --who --json "$@" >.json || [ $? -eq 1 ] || return
	"$PROBE" json <.json >.flat || complain "$(cat .json)"
}

holder_and_waiters() {
	TZ="NOON$((10#$(date -u +%H) - 12))" # a start on the day before is printed with its date
	export TZ
	hold_lock "$@" -m "$method" l
	queue_as one -m "$method" l
	queue_as two -m "$method" l
	queue_as three -m "$method" l
	for how in "-m $method" ""; do
		# shellcheck disable=SC2086
		said 1 "l: held, 3 waiting" $how l
		[ "$(column 2 held)" = "${COMMAND[holder]}" ]
		grep -q "^held .*probe hold holder.up " .out
		[[ "$(column 5 held)" =~ ^[0-2][0-9]:[0-5][0-9]:[0-6][0-9]$ ]]
		[ "$(column 3 held)" = "$(id -un)" ]
		[ "$(column 2 1.) $(column 2 2.) $(column 2 3.)" = "${PID[one]} ${PID[two]} ${PID[three]}" ]
	done
	json l
	grep -qx "\[0\].holders\[0\].method string $method" .flat
	watcher=${PID[holder]}
	if [ "${1-}" = -o ]; then watcher=$(pgrep -P "$watcher"); fi # see src/run/subreaper.h
	grep -qx "\[0\].holders\[0\].watcher number $watcher" .flat
	[ "$(grep -c "waiters\[.\].method string $method" .flat)" -eq 3 ]
	let_go
	for name in one two three; do ready $name && let_go $name; done
	if [ "$method" = rename ]; then
		said 0 "l: free" l
	else
		said 0 "l: free" -m "$method" l
		said 0 "l: free (no such file)" l
	fi
	rm ./*.up ./*.down
}

@test "each method: the command, since when, and the waiters in their order" {
	each holder_and_waiters
}

@test "each method: with -o, where the command lacks the lock's descriptor" {
	each holder_and_waiters -o
}

killed_semlock() {
	hold_lock -m "$method" l
	kill -KILL "${PID[holder]}"
	ended holder 137
	said 1 "l: held, 0 waiting" -m "$method" l
	[ "$(column 2 held)" = "${COMMAND[holder]}" ]
	kill -KILL "${COMMAND[holder]}"
	"$PROBE" gone "${COMMAND[holder]}"
	said 0 "l: left behind, and free to take, 0 waiting" -m "$method" l
	[ "$(column 2 dead)" = "${COMMAND[holder]}" ]
	case $method in
	link | symlink) [ "$(column 3 dead)" = "?" ] ;;
	*) [ "$(column 3 dead)" = "$(id -un)" ] ;;
	esac
	json -m "$method" l
	grep -qx '\[0\].held boolean false' .flat
	grep -qx '\[0\].holders\[0\].alive boolean false' .flat
	expect_status 0 "$SEMLOCK" -n -m "$method" l true
	rm ./*.up ./*.down
}

@test "semlock killed: its command holds the lock; both killed: it is free" {
	each killed_semlock
}

left_behind() {
	fifos one
	mkfifo go
	start one "$SEMLOCK" -m "$method" l sh -c '"$0" leave-behind one.up one.down; : >left; read -r _ <>go' "$PROBE"
	ready one
	eventually [ -e left ]
	kill -KILL "${PID[one]}"
	ended one 137
	pid=$("$SEMLOCK" --who -m "$method" l | awk '$1 == "held" { print $2 }')
	kill -KILL "$pid"
	"$PROBE" gone "$pid"
	said 1 "l: held, 0 waiting" -m "$method" l
	[ "$(column 2 held)" = "${COMMAND[one]}" ] || complain "$out"
	release one
	"$PROBE" gone "${COMMAND[one]}"
	said 0 "l: left behind, and free to take, 0 waiting" -m "$method" l
	rm go left one.up one.down
}

@test "a process that a killed command left behind with the flock is the holder" {
	METHODS="excl link mkdir rename" each left_behind
}

left_in_namespace() {
	expect_status 1 unshare --pid --fork --mount-proc bash -c '
		"$0" -m "$2" l sh -c '\''sleep 1000 & echo $! >left; echo $$ >command; kill -KILL $PPID $$'\''
		"$1" gone "$(cat command)"
		"$0" --who -m "$2" l
		exit $?' "$SEMLOCK" "$PROBE" "$method"
	grep -q "^held *$(cat left) .*sleep 1000" <<<"$out" || complain "$out"
}

@test "the same in a PID namespace, where the kernel names no ended taker" {
	namespaces --pid --fork --mount-proc
	METHODS="excl link mkdir rename" each left_in_namespace
}

@test "50 waiters, in the order in which they are served" {
	hold_lock -m excl l
	for i in {1..50}; do
		start "w$i" "$SEMLOCK" -m excl l "$CROWD" number order "$i"
		"$PROBE" blocked "${PID[w$i]}"
	done
	said 1 "l: held, 50 waiting" -m excl l
	awk '$1 ~ /^[0-9]+\.$/ { print $2 }' .out >listed
	for i in {1..50}; do echo "${PID[w$i]}"; done >came
	diff came listed
	let_go
	for i in {1..50}; do ended "w$i" 0; done
	# A waiter that a busy machine is slow to wake may be passed by: the count leaves that out.
	expect_status 0 "$CROWD" judge order
	[[ $out == "served 50 "* ]] || complain "$out" "$(cat order)"
}

living_stranger() {
	foreign_lock "$method" "$2"
	said 1 "l: held, 0 waiting" -m "$method" l
	[ "$(column 2 held)" = "$1" ] || complain "'$2' is $1:" "$out" || return
	grep -q "^held .*sleep 1000" .out
	[[ "$(column 5 held)" == ">"* ]]
	json -m "$method" l
	grep -qx '\[0\].holders\[0\].alive boolean true' .flat
}

@test "a living foreign holder, in the formats of other programs" {
	start other sleep 1000
	pid=${PID[other]}
	eventually runs "$pid" sleep
	for method in excl link mkdir rename; do
		living_stranger "$pid" "$pid"
		living_stranger "$pid" "$(printf '%10d\n' "$pid")"
		living_stranger "$pid" "$pid"$'\n'"$(uname -n)"$'\n'
	done
	method=symlink
	living_stranger "$pid" "$pid"
	method=excl
	foreign_lock excl 1 # in a container, any daemon's
	said 1 "l: held, 0 waiting" -m excl l
	[ "$(column 2 held)" = 1 ]
	! grep "cannot be seen" .out || complain "process 1 is there for all to see"
	printf 'pid %s\n' "$pid" >l~pid.lock # git's
	said 1 "l~pid.lock: held, 0 waiting" -m excl l~pid.lock
}

@test "a dead foreign holder: left behind, and free to take" {
	true &
	pid=$!
	wait $pid
	for method in $METHODS; do
		foreign_lock "$method" $pid
		said 0 "l: left behind, and free to take, 0 waiting" -m "$method" l
		[ "$(column 2 dead)" = $pid ]
		json -m "$method" l
		grep -qx '\[0\].held boolean false' .flat
		grep -qx '\[0\].holders\[0\].alive boolean false' .flat
	done
}

in_doubt() {
	said 1 "l: unknown: the holder cannot be checked, 0 waiting" -m "$method" l || return
	grep -q "$1" .out || complain "should say '$1':" "$out" || return
	json -m "$method" l
	grep -qx '\[0\].held boolean true' .flat
	grep -qx '\[0\].holders\[0\].alive null' .flat
	grep -qE '^\[0\].holders\[0\].touched string 20' .flat
}

@test "for a holder not known to live or to be dead, --who reports why" {
	for method in excl link mkdir rename; do
		for content in 0 hello 4294967295; do
			foreign_lock "$method" $content
			in_doubt "(not named in the lock)"
		done
		foreign_lock "$method" $(($(cat /proc/sys/kernel/pid_max) + 1))
		in_doubt "(no such number on this system)"
		grep -q "^ *? *$(($(cat /proc/sys/kernel/pid_max) + 1)) " .out
		refused 1 "the lock names process $(($(cat /proc/sys/kernel/pid_max) + 1)), which is more than" \
			"$SEMLOCK" -v -n -m "$method" l touch ran
		foreign_lock "$method" 77$'\n'elsewhere$'\n'
		in_doubt "77 .*(on host elsewhere)"
	done
	method=symlink
	for target in "user@$(uname -n).17:1700000000" "$(uname -n):17"; do
		foreign_lock symlink "$target"
		in_doubt "(not named in the lock)"
	done
	rm l
	mkdir l
	method="mkdir"
	in_doubt "(not named in the lock)"
	rmdir l
	: >l
	touch -d '10 seconds ago' l # after the last boot
	method=excl
	in_doubt "(not named in the lock)"
	[ "$(awk 'length > 80' .out)" = "" ]
}

# young: an empty file is young for three seconds.
young() {
	touch -d '1 second' l
	said 1 "l: held, 0 waiting" -m excl l && grep -q "(not named in the lock)" .out &&
		refused 1 "l: held; the lock names no holder" "$SEMLOCK" -v -n -m excl l true
}

@test "an empty file that may be about to be written is held" {
	: >l
	eventually young
	touch -d '10 seconds ago' l # after the last boot
	refused 1 "l: held, or left behind: the lock names no process" "$SEMLOCK" -v -n -m excl l true
	[[ $err == *"(--stale uses it); semlock --who l says more" ]] || complain "$err"
}

@test "locks of dotlockfile(1) and of procmail's lockfile(1)" {
	command -v dotlockfile lockfile >/dev/null || complain "apt-get install liblockfile-bin procmail"
	fifos script
	start script sh -c 'dotlockfile -r 0 -p l && "$0" hold script.up script.down; dotlockfile -u l' "$PROBE"
	ready script
	said 1 "l: held, 0 waiting" -m link l
	[ "$(column 2 held)" = "${PID[script]}" ]
	fifos one
	start one "$SEMLOCK" -m link l "$PROBE" hold one.up one.down
	until [ "$(column 2 1.)" = "${PID[one]}" ]; do
		expect_status 1 "$SEMLOCK" --who -m link l
		case $out in *' 1 waiting'*) [ "$(column 2 1.)" = "${PID[one]}" ] || complain "$out" ;; esac
	done
	let_go script
	ready one
	let_go one
	lockfile -r 0 l
	method="link"
	in_doubt "(not named in the lock)"
}

@test "a lock of no name: free; another kind of thing under the name: 66" {
	for method in excl link mkdir symlink; do
		said 0 "nothing: free" -m "$method" nothing
	done
	refused 66 "no lock file" "$SEMLOCK" --who -m rename nothing
	: >file
	mkdir dir
	refused 66 file "$SEMLOCK" --who -m mkdir file
	refused 66 file "$SEMLOCK" --who -m symlink file
	refused 66 dir "$SEMLOCK" --who -m excl dir
	ln -s file link
	refused 66 link "$SEMLOCK" --who -m excl link
	refused 66 link "$SEMLOCK" --who -m mkdir link
	refused 66 no/such "$SEMLOCK" --who -m excl no/such
	said 0 "file: free" file
}

contents() {
	find place -printf '%p %i %s %t %c\n' | sort
}

@test "nothing is made or changed, not even a time" {
	mkdir place
	for content in '' "$$" what; do
		(cd place && foreign_lock excl "$content")
		before=$(contents)
		capture "$SEMLOCK" --who -m excl place/l
		[ "$before" = "$(contents)" ]
	done
}

both_wait() {
	expect_status 1 as_nobody "$SEMLOCK" --who -m "$method" l && grep -q "^l: held, 2 waiting" .out
}

@test "another user sees the holder by its record, or that it is unreadable" {
	root_only "to be two users"
	umask 022
	for method in excl mkdir symlink; do
		hold_lock -m "$method" l
		queue_as one -m "$method" l
		queue_as two -m "$method" l
		expect_status 1 as_nobody "$SEMLOCK" --who -m "$method" l
		eventually both_wait
		[ "$(column 2 held)" = "${COMMAND[holder]}" ]
		[ "$(column 2 1.) $(column 2 2.)" = "${PID[one]} ${PID[two]}" ] || complain "$out"
		let_go
		ready one
		let_go one
		ready two
		let_go two
		rm ./*.up ./*.down
	done
	for method in excl mkdir; do
		hold_lock -m "$method" --mode 0600 l
		expect_status 1 as_nobody "$SEMLOCK" --who -m "$method" l
		grep -q "^l: held, 0 waiting" .out
		grep -q "^held  *? .*(cannot be read)" .out
		let_go
		rm ./*.up ./*.down
	done
	echo $$ >l
	chmod 600 l
	expect_status 1 as_nobody "$SEMLOCK" --who -m excl l
	grep -q "(cannot be read)" .out
}

@test "a holder in another PID namespace: by its number here, and its command" {
	namespaces --pid --fork --mount-proc
	for method in excl link "excl -o"; do
		fifos holder
		# shellcheck disable=SC2086
		start holder unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" -m $method l "$PROBE" hold holder.up holder.down
		next_line holder
		said 1 "l: held, 0 waiting" -m "${method% -o}" l
		[ "$(column 2 held)" != 2 ]
		grep -q "^held .*probe hold holder.up" .out
		release holder
		ended holder 0
		rm holder.up holder.down
	done
}

@test "a holder outside our PID namespace is not reported as dead" {
	namespaces --pid --fork --mount-proc
	for method in excl mkdir; do
		hold_as $method -m $method $method
		expect_status 1 unshare --pid --fork --mount-proc "$SEMLOCK" --who $method
		[[ $out == *"unknown: the holder cannot be checked"*"(in another PID namespace)"* ]] || complain "$out"
		refused 1 "held, or left behind: process ${COMMAND[$method]} of another PID namespace" \
			unshare --pid --fork --mount-proc "$SEMLOCK" -v -n -m $method $method true
		let_go $method
	done
	hold_as link -m link link # its record does not say in which namespace
	expect_status 1 unshare --pid --fork --mount-proc "$SEMLOCK" --who -m link link
	[[ $out == *"unknown: the holder cannot be checked"*"(in another PID namespace)"* ]] || complain "$out"
	let_go link
}

# As on a network file system, semlock does not believe flock(2).
@test "where flock(2) is not to be believed: by the record" {
	mkdir crash
	ln -s "${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}" crash/semlock
	SEMLOCK=$PWD/crash/semlock
	export SEMLOCK_CRASH=file_system.shared:fail=5
	for method in excl link mkdir symlink; do
		hold_lock -m "$method" l
		queue_as one -m "$method" l
		eventually said 1 "l: held, 1 waiting" -m "$method" l
		[ "$(column 2 held)" = "${COMMAND[holder]}" ]
		[ "$(column 2 1.)" = "${PID[one]}" ]
		expect_status 1 "$SEMLOCK" -v -n -m "$method" l true
		grep -q "held by ${COMMAND[holder]} (probe hold" .err
		expect_status 0 "$SEMLOCK" -w 60 -m "$method" --replace l true
		ended holder 143
		# The waiter is served later, or was served before, and was stopped like the holder: what the waiter is to read has
		# to stay in the FIFO.
		exec 5<>one.down
		printf . >&5
		wait "${PID[one]}" || [ $? -eq 143 ]
		exec 5>&-
		rm -f ./*.up ./*.down
		rm -rf l
	done
}

@test "JSON: the members of a kernel lock's, of the same types" {
	hold_lock -m excl l
	queue_as one -m excl l
	json -m excl l
	sed -E 's/^\[0\]/L/; s/ (number|string|boolean|array) .*/ \1/; s/\[[0-9]+\]/[]/g' .flat | sort -u >types
	for who in holders waiters; do
		grep -E "^L\.$who\[\]\." types | sed "s/^L\.$who//" | cut -d' ' -f1 >"members.$who"
	done
	diff members.holders members.waiters
	grep -qx 'L.holders\[\].touched string' types
	grep -qx 'L.waiters\[\].touched null' types
	grep -qx 'L.holders\[\].start null' types
	let_go
	ready one
	let_go one
}

refusal() {
	hold_lock -m "$method" l
	expect_status 1 "$SEMLOCK" -v -n -m "$method" l true
	grep -q "^semlock: l: held by ${COMMAND[holder]} (probe hold holder.up holder.down) since " .err || complain "$err"
	let_go
	rm ./*.up ./*.down
}

@test "a refusal names the holder" {
	each refusal
	echo 77$'\n'elsewhere >l
	expect_status 1 "$SEMLOCK" -v -n -m excl l true
	grep -q "held, or left behind: process 77 on host elsewhere is not within reach; last sign of life" .err
}

@test "a dead process's link counts as left behind only in its PID namespace" {
	namespaces --pid --fork --mount-proc
	# shellcheck disable=SC2016 # for the inner shell
	expect_status 0 unshare --pid --fork --kill-child --mount-proc sh -c '
		sh -c "echo \$\$" >l; "$0" --who -m link l && "$0" -n -m link l true' "$SEMLOCK"
	[[ $out == "l: left behind, and free to take"* ]] || complain "$out"
	hold_lock -m link l
	expect_status 1 unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" --who -m link l
	expect_status 1 unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" -n -m link l true
	let_go
}
