#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --stale: locks whose holder cannot be checked.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

old() {
	touch -h -d '1 hour ago' "$1"
}

# elsewhere METHOD: a lock l whose holder is on another host
elsewhere() {
	local record="4711
semlock/1 $1
start=5 boot=00000000-0000-0000-0000-000000000000 pidns=1 flock=1 semlock=4710
host=elsewhere machine=another since=1 uid=0"
	rm -rf l l.held
	case $1 in
	mkdir) mkdir l && echo "$record" >l/pid ;;
	symlink) ln -s "4711:5:00000000-0000-0000-0000-000000000000:1:4710@elsewhere" l ;;
	rename) echo "$record" >l.held ;;
	*) echo "$record" >l ;;
	esac
}

@test "a lock from another host is held until it is older than --stale" {
	for method in excl link mkdir symlink rename; do
		elsewhere $method
		expect_status 1 "$SEMLOCK" -n -m $method l true
		expect_status 1 "$SEMLOCK" -n --stale 30m -m $method l true
		if [ $method = rename ]; then continue; fi # touch(1) looks as if a script had renamed it
		old l
		expect_status 1 "$SEMLOCK" -n -m $method l true
		expect_status 1 "$SEMLOCK" -n --stale 2h -m $method l true
		expect_status 0 "$SEMLOCK" -n --stale 30m -m $method l true
	done
	# l.held, made for rename, is still there
	"$PROBE" pause 2100
	expect_status 1 "$SEMLOCK" -n -m rename l true
	expect_status 1 "$SEMLOCK" -n --stale 30m -m rename l true
	expect_status 0 "$SEMLOCK" -n --stale 1 -m rename l true
}

@test "rename: a record of another host, old when a script took the file" {
	elsewhere rename
	old l.held
	mv l.held l
	mv l l.held # the script's
	expect_status 1 "$SEMLOCK" -n --stale 30m -m rename l true
	expect_status 1 "$SEMLOCK" --who -m rename l
	[ -e l.held ]
}

@test "foreign locks without a PID: taken over by --stale alone" {
	for method in excl link; do
		for content in '' 0 what; do
			printf '%s' "$content" >l
			touch -d '10 seconds ago' l # an empty one from before the last boot is a dead one's
			expect_status 1 "$SEMLOCK" -n -m $method l true
			expect_status 0 "$SEMLOCK" -n --stale 5 -m $method l true
		done
	done
	mkdir l
	expect_status 1 "$SEMLOCK" -n --stale 30m -m mkdir l true
	old l
	expect_status 1 "$SEMLOCK" -n -m mkdir l true
	expect_status 0 "$SEMLOCK" -n --stale 30m -m mkdir l true
	[ ! -e l ]
}

@test "what a file was before it became the lock says nothing of the lock's age" {
	touch -d '30 years ago' l token
	mv l l.held # as a script takes a token
	expect_status 1 "$SEMLOCK" -n -m rename l true
	expect_status 1 "$SEMLOCK" -n --stale 30m -m rename l true
	expect_status 1 "$SEMLOCK" --who -m rename l
	mv l.held l
	expect_status 0 "$SEMLOCK" -n -m rename l true
	rm l
	ln token l
	for method in excl link; do
		expect_status 1 "$SEMLOCK" -n -m $method l true
		expect_status 1 "$SEMLOCK" -n --stale 30m -m $method l true
		expect_status 1 "$SEMLOCK" --who -m $method l
	done
}

@test "an empty file that may be about to be written is not taken over" {
	for method in excl link; do
		began=-9
		until [ $((SECONDS - began)) -le 1 ]; do # a slow machine makes the file older
			rm -f ran
			: >l
			began=$SECONDS
			capture "$SEMLOCK" -n --stale .0001 -m $method l touch ran
		done
		[ "$status" -eq 1 ]
		[ -e l ]
		[ ! -e ran ]
		touch -d '1 minute ago' l
		expect_status 0 "$SEMLOCK" -n --stale .0001 -m $method l true
	done
}

@test "the lock of a holder known to live is never taken over, however old" {
	for method in excl link mkdir symlink; do
		hold_lock -m $method l
		old l
		expect_status 1 "$SEMLOCK" -n --stale 1m -m $method l true
		let_go
		rm ./*.up ./*.down
	done
	start other sleep 1000
	echo "${PID[other]}" >l
	old l
	expect_status 1 "$SEMLOCK" -n --stale 1m -m excl l true
}

@test "a waiter takes over when the time has come" {
	elsewhere excl
	start waiter "$SEMLOCK" --stale .5 -m excl l true
	ended waiter 0
}

beaten() {
	[ "$(stat -c %Y "$1")" -gt "$(date -d '10 minutes ago' +%s)" ]
}

@test "holders with --stale give signs of life" {
	for method in excl link mkdir symlink rename; do
		name=l
		[ $method != rename ] || { "$SEMLOCK" -m rename --init l true && name=l.held; }
		hold_lock --stale .2 -m $method l
		old $name
		eventually beaten $name
		let_go
		rm -f ./*.up ./*.down
	done
}

# dead: a lock l whose command and whose semlock have been killed
dead() {
	capture "$SEMLOCK" -m symlink l sh -c 'kill -KILL $PPID $$'
	[ -L l ]
}

# stopped_at POINT ARGS...: semlock ARGS, stopped at POINT
stopped_at() {
	local point=$1
	shift
	SEMLOCK_CRASH=$point:stop start breaker "$CRASHABLE_SEMLOCK" -m symlink "$@"
	"$PROBE" state "${PID[breaker]}" T
}

@test "symlink: if a lock of several is lost during a wait, nothing runs" {
	namespaces --pid --fork --mount-proc
	hold_as later -m symlink l2
	fifos both
	start both "$SEMLOCK" -m symlink --stale 30m -f l1 l2 "$PROBE" hold both.up both.down
	until [ -L l1 ]; do :; done
	"$PROBE" blocked "${PID[both]}"
	old l1
	fifos robber
	start robber unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" -n -m symlink --stale 30m l1 \
		"$PROBE" hold robber.up robber.down
	next_line robber
	let_go later
	"$PROBE" blocked "${PID[both]}"
	[ "$(readlink l1 | cut -d@ -f1 | cut -d: -f1)" != "${PID[both]}" ]
	expect_status 0 "$SEMLOCK" -n -m symlink l2 true # semlock has let l2 go again
	release robber
	ended robber 0
	ready both
	release both
	ended both 0
	[ ! -L l1 ] && [ ! -L l2 ]
}

@test "symlink: a semlock stopped with the guard does not block a release" {
	dead
	stopped_at symlink.removed l touch ran
	[ -e .l.guard ]
	for i in 1 2; do expect_status 0 timeout -s KILL 20 "$SEMLOCK" -m symlink l true; done
	[ ! -e l ]
	[ ! -e ran ]
	hold_lock -m symlink l
	kill -CONT "${PID[breaker]}"
	"$PROBE" blocked "${PID[breaker]}"
	let_go
	ended breaker 0
	[ -e ran ] && [ ! -L l ] && [ ! -e .l.guard ]
}

@test "symlink: a holder that dies in its release leaves its lock to others" {
	SEMLOCK_CRASH=symlink.release:stop start holder "$CRASHABLE_SEMLOCK" -m symlink l true
	"$PROBE" state "${PID[holder]}" T
	expect_status 1 "$SEMLOCK" -n -m symlink l true
	start waiter "$SEMLOCK" -m symlink l true
	"$PROBE" blocked "${PID[waiter]}"
	kill -KILL "${PID[holder]}"
	ended holder 137
	ended waiter 0
	[ ! -L l ]
}

@test "symlink: a sign of life between age check and guard saves a lock" {
	elsewhere symlink
	old l
	stopped_at symlink.guarded --stale 30m l touch ran
	touch -h l
	kill -CONT "${PID[breaker]}"
	"$PROBE" blocked "${PID[breaker]}"
	[ -L l ]
	[ ! -e ran ]
	old l
	"$PROBE" state "${PID[breaker]}" T # semlock passes the point again
	kill -CONT "${PID[breaker]}"
	ended breaker 0
	[ -e ran ]
}

@test "an endless wait for an old file without a PID is reported, once" {
	local old='65 seconds ago' # an empty file from before the last boot is a dead one's: this machine may be new
	: >l
	touch -d "$old" l
	start waiter "$SEMLOCK" -m excl l touch ran
	"$PROBE" blocked "${PID[waiter]}"
	rm l
	ended waiter 0
	grep -q '^semlock: l: waiting: the lock names no process, and its last sign of life was .*; if nobody holds it, remove it, or use --stale$' waiter.err
	[ "$(wc -l <waiter.err)" = 1 ]
	[ -e ran ]
	# A young one is the lock of a program at work; and -q wants to hear nothing.
	for age in now "$old"; do
		touch -d "$age" l
		quiet=
		if [ "$age" != now ]; then quiet=-q; fi
		start "waiter$quiet" "$SEMLOCK" $quiet -m excl l true
		"$PROBE" blocked "${PID[waiter$quiet]}"
		rm l
		ended "waiter$quiet" 0
		[ ! -s "waiter$quiet.err" ]
	done
}

child() {
	cut -d ' ' -f 1 "/proc/$1/task/$1/children"
}

@test "symlink: a holder leaves its lock to a stopped semlock that takes over" {
	namespaces --pid --fork --mount-proc
	hold_lock --stale 1h -m symlink l
	old l
	# the namespace's first process is a shell: a first process cannot stop itself
	SEMLOCK_CRASH=symlink.guarded:stop start breaker unshare --pid --fork --mount-proc --kill-child \
		sh -c '"$@"; exit $?' sh "$CRASHABLE_SEMLOCK" --stale 30m -m symlink l touch ran
	until [ -e .l.guard ]; do kill -0 "${PID[breaker]}"; done
	breaker=$(child "$(child "${PID[breaker]}")")
	"$PROBE" state "$breaker" T
	release holder
	ended holder 0
	[ "$(grep -c '^semlock: l: cannot release the lock: another semlock was stopped' holder.err)" = 1 ]
	[ -L l ]
	[ ! -e ran ]
	kill -CONT "$breaker"
	ended breaker 0
	[ -e ran ] && [ ! -L l ] && [ ! -e .l.guard ]
}

@test "mkdir: a directory with an empty record and a file names no holder" {
	mkdir l
	: >l/pid
	: >l/other
	touch -d '1 hour ago' l/pid l
	refused 1 "l: it names no process, and cannot be removed: Directory not empty" \
		"$SEMLOCK" -m mkdir --stale 5 -w .1 l touch ran
	expect_status 1 "$SEMLOCK" --who -m mkdir l
	[ ! -e ran ]
}

# The clock was wrong when the lock was taken: its date tells no age, and a waiter counts by its own clock.
@test "a lock dated in the future is stale when a waiter has seen no sign" {
	for method in excl link mkdir rename symlink; do
		name=l
		[ $method != rename ] || name=l.held
		elsewhere $method
		touch -h -d '1 hour' $name
		expect_status 1 "$SEMLOCK" -n --stale 1 -m $method l true
		expect_status 1 "$SEMLOCK" -w .5 --stale 60 -m $method l true
		expect_status 0 "$SEMLOCK" -w "$(stretched 20)" --stale 1 -m $method l true
	done
}
