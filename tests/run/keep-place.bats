#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --keep-place and --resume: a place in the queue that outlives a call.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/holds

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

# $owner is the process for which they are kept: its end is the end of each.
prepare() {
	holds_prepare
	new_owner
}
tidy() { holds_tidy; }

# place OPTION... LOCK, which is busy: one call, by a shell that ends; sets $id
place() {
	expect_status 1 sh -c '"$@"; exit $?' - "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0 "$@"
	[[ $out =~ ^WAITING\ id=[0-9]+-[0-9]+-[0-9a-f]{8}$ ]] || complain "it said '$out'" "$err"
	id=${out#WAITING id=}
}

# resume OPTION... LOCK: place $id is waited for, by another shell
resume() {
	capture sh -c '"$@"; exit $?' - "$SEMLOCK" --resume="$id" "$@"
}

# resume_in_background LOCK: the same, as far as the wait, in PID[call]
resume_in_background() {
	start call "$SEMLOCK" -v --resume="$id" "$1"
	eventually test -s call.err # the first word of what it waits for
}

# resumed PREFIX OPTION... LOCK: and it is held, which is said by a line that begins with PREFIX
resumed() {
	resume "${@:2}"
	[ "$status" -eq 0 ] || complain "status $status" "$err"
	[[ $out == "$1"* ]] || complain "it said '$out'"
}

# waiting LOCK COUNT: so many wait for it
waiting() {
	eventually sh -c '"$0" --who "$1" | grep -q "$2 waiting"' "$SEMLOCK" "$1" "$2"
}

@test "a time-out keeps the place, and a later call waits on, for each method" {
	local method options
	for method in flock ofd posix excl link mkdir symlink rename; do
		options="-m $method"
		[ "$method" != rename ] || options="--init $options"
		# shellcheck disable=SC2086 # several words
		start holder "$SEMLOCK" $options $method.lock sleep infinity
		# shellcheck disable=SC2086
		eventually sh -c '! "$@" true' - "$SEMLOCK" -n $options $method.lock
		# shellcheck disable=SC2086
		place $options $method.lock
		resume -n -m $method $method.lock
		[ "$status $out" = "1 WAITING id=$id" ] || complain "$method: $status $out" "$err"
		resume -w 0.1 -E 9 -m $method $method.lock
		[ "$status $out" = "9 WAITING id=$id" ] || complain "$method: $status $out" "$err"
		kill "${PID[holder]}"
		wait "${PID[holder]}" || true
		resumed "OK id=$id" -w 60 -m $method $method.lock
		expect_status 1 "$SEMLOCK" -n -m $method $method.lock true
		expect_status 0 "$SEMLOCK" --release="$id" $method.lock
		expect_silent
		expect_status 0 "$SEMLOCK" -n -m $method $method.lock true
	done
}

@test "a free lock is taken, also with -w 0; a kept place exits with -E" {
	expect_status 0 "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0 l
	[[ $out == "OK id="* ]] || complain "it said '$out'"
	id=${out#OK id=}
	expect_status 7 "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0.1 -E 7 l
	[[ $out == "WAITING id="* ]] || complain "it said '$out'"
	resumed "OK id=$id" -n l
	expect_status 0 "$SEMLOCK" --release="$id" l
}

@test "a slot, shared, several locks, a name, a relative name elsewhere" {
	start all "$SEMLOCK" -f b -f s -f j a sleep infinity
	eventually sh -c '! "$0" -n a true' "$SEMLOCK"
	place -s s && shared=$id
	place -j 2 j && slot=$id
	place -f b a && several=$id
	mkdir below
	kill "${PID[all]}"
	wait "${PID[all]}" || true
	id=$shared; resumed "OK id=$id" -w 60 s
	expect_status 0 "$SEMLOCK" -n -s s true
	id=$slot; resumed "OK id=$id slot=0" -w 60 j
	id=$several; resumed "OK id=$id" -w 60 a
	expect_status 1 "$SEMLOCK" -n a true
	expect_status 1 "$SEMLOCK" -n b true
	(cd below && "$SEMLOCK" --resume="$id" ../a) >said
	grep -qx "OK id=$id" said
	expect_status 0 "$SEMLOCK" --resume="$id" b
	expect_out "OK id=$id"
	(cd below && "$SEMLOCK" --release="$id" ../a)
	expect_status 0 "$SEMLOCK" -n b true
}

@test "the place exists before the caller's output ends, and keeps none of it" {
	local pid
	hold_lock l
	"$SEMLOCK" --hold="$owner" --detach --keep-place -w 0.1 l 9>&1 2>&1 3>&- 4>&- | cat >said
	id=$(sed -n 's/^WAITING id=//p' said)
	for pid in $(keeper) $(holder); do
		[ "$(readlink "/proc/$pid/cwd")" = / ] || complain "$pid works in $(readlink "/proc/$pid/cwd")"
		[ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$(keeper)" ] || complain "$pid is in another session"
	done
	let_go
	resumed "OK id=$id" -w 60 l
}

@test "--who shows the place with its ID, and the process that waits in it" {
	hold_lock l
	place l
	expect_status 1 "$SEMLOCK" --who l
	[[ $out == *"1 waiting"*"  1.  "*" $(holder) "*"--release=$id"* ]] || complain "it said:" "$out"
	expect_status 1 "$SEMLOCK" --who --json l
	[[ $out == *"\"pid\": $(holder), "*"\"id\": \"$id\""* ]] || complain "it said:" "$out"
	let_go
}

@test "a place that gets its turn holds the lock until PID ends" {
	local pids method
	for method in flock excl; do
		start other sleep infinity
		start first "$SEMLOCK" -m $method $method.lock sleep infinity
		eventually sh -c '! "$0" -n -m "$1" "$1.lock" true' "$SEMLOCK" $method
		expect_status 1 "$SEMLOCK" --hold="${PID[other]}" --detach --keep-place -w 0 -m $method $method.lock
		id=${out#WAITING id=}
		start third "$SEMLOCK" -m $method $method.lock touch $method.ran
		waiting $method.lock 2
		kill "${PID[first]}"
		wait "${PID[first]}" || true
		eventually sh -c '"$0" --who "$2" | grep "held" | grep -q " $1 "' "$SEMLOCK" "${PID[other]}" $method.lock
		[ ! -e $method.ran ]
		pids="$(keeper) $(holder)"
		kill -KILL "${PID[other]}"
		ended third 0
		# shellcheck disable=SC2086 # several words
		gone $pids
		resume $method.lock
		[ "$status" -eq 76 ] || complain "status $status"
	done
}

@test "PID killed while its place waits: nothing left, and the others go on" {
	start other sleep infinity
	hold_lock l
	expect_status 1 "$SEMLOCK" --hold="${PID[other]}" --detach --keep-place -w 0 l
	id=${out#WAITING id=}
	start third "$SEMLOCK" l touch ran
	waiting l 2
	pids="$(keeper) $(holder)"
	resume_in_background l
	kill -KILL "${PID[other]}"
	ended call 76
	grep -q "the process that it was for has ended" call.err || complain "$(cat call.err)"
	# shellcheck disable=SC2086 # several words
	gone $pids
	waiting l 1
	let_go
	ended third 0
	expect_free l
}

@test "--run-timeout counts from the turn, not from the call" {
	hold_lock l
	place --run-timeout=0.5 l
	"$PROBE" pause 700
	resume -n l
	[ "$status" -eq 1 ] || complain "status $status" "$err"
	let_go
	resumed "OK id=$id" -w 60 l
	expect_status 0 "$SEMLOCK" -w 60 l true
	# the lock is free a moment before its holder has ended
	ended_before() { resume l && [ "$status" -eq 76 ]; }
	eventually ended_before
	[[ $err == *"--run-timeout"* ]] || complain "it said '$err'"
}

@test "--release of a waiting place is 0; a call that waits there gets 76" {
	hold_lock l
	place l
	resume_in_background l
	refused 69 "another call waits" "$SEMLOCK" --resume="$id" -n l
	pids="$(keeper) $(holder)"
	expect_status 0 "$SEMLOCK" --release="$id" l
	[[ $err == "semlock: l: --release=$id: "*"nothing was held" ]] || complain "it said '$err'"
	ended call 76
	# shellcheck disable=SC2086 # several words
	gone $pids
	place l
	expect_status 0 "$SEMLOCK" -q --release="$id" l
	expect_silent
	refused 76 "ended" "$SEMLOCK" --release="$id" l
	waiting l 0
	let_go
	expect_free l
}

@test "of two calls that resume one place, one waits and the other gets 69" {
	local calls
	hold_lock l
	place l
	for calls in 1 2 3 4 5 6; do start "call$calls" "$SEMLOCK" --resume="$id" -w 60 l; done
	eventually sh -c '[ "$(cat call?.err | grep -c "another call waits with this ID")" -eq 5 ]'
	let_go
	eventually sh -c '[ "$(cat call?.out | wc -l)" -eq 1 ]'
	grep -qx "OK id=$id" call?.out
	for calls in 1 2 3 4 5 6; do wait "${PID[call$calls]}" || echo $? >>statuses; done
	[ "$(sort statuses | uniq -c | tr -s ' ')" = " 5 69" ] || complain "$(cat statuses)"
	# an answer that was lost is given again
	resumed "OK id=$id" l
	expect_status 0 "$SEMLOCK" --release="$id" l
}

@test "a call that is killed while it resumes a place leaves it as it was" {
	local signal
	hold_lock l
	place l
	start later "$SEMLOCK" l touch ran
	waiting l 2
	for signal in KILL TERM INT; do
		resume_in_background l
		kill -$signal "${PID[call]}"
		wait "${PID[call]}" || true
		eventually sh -c '[ "$("$0" --resume="$1" -n l)" = "WAITING id=$1" ]' "$SEMLOCK" "$id"
	done
	waiting l 2
	let_go
	resumed "OK id=$id" -w 60 l
	[ ! -e ran ]
	expect_status 0 "$SEMLOCK" --release="$id" l
	ended later 0
}

@test "a first call that is killed before it has said WAITING leaves no place" {
	hold_lock l
	start call "$SEMLOCK" --hold="$owner" --detach --keep-place -w 60 l
	waiting l 1
	kill -KILL "${PID[call]}"
	ended call 137
	waiting l 0
	let_go
	expect_free l
}

@test "if WAITING cannot be printed: 71, no place; with --resume it stays" {
	hold_lock l
	expect_status 71 sh -c '"$0" --hold="$1" --detach --keep-place -w 0.1 l >/dev/full' "$SEMLOCK" "$owner"
	waiting l 0
	place l
	expect_status 71 sh -c '"$0" --resume="$1" -n l >/dev/full' "$SEMLOCK" "$id"
	resume -n l
	[ "$status" -eq 1 ]
	let_go
	expect_status 71 sh -c '"$0" --resume="$1" l >/dev/full' "$SEMLOCK" "$id"
	resumed "OK id=$id" l
}

# Points: waited, before WAITING is printed; placed, it is printed; acknowledged, the keeper has heard that; held, the call
# has heard that.
@test "killed at any step of a time-out: no place is left that nobody knows" {
	local point
	[ -x "$CRASHABLE_SEMLOCK" ] || skip "needs $CRASHABLE_SEMLOCK"
	hold_lock l
	for point in detach.keeper detach.waited detach.placed detach.acknowledged detach.held; do
		capture env SEMLOCK_CRASH=$point:kill "$CRASHABLE_SEMLOCK" --hold="$owner" --detach --keep-place -w 0.1 l
		waiting l 0
	done
	let_go
	expect_free l
}

@test "a killed process of a place ends the place, and the next enters" {
	local which
	hold_lock l
	start later "$SEMLOCK" l touch ran
	for which in keeper holder; do
		place l
		waiting l 2
		kill -KILL "$($which)"
		waiting l 1
		resume l
		[ "$status" -eq 76 ] || complain "$which: status $status"
	done
	let_go
	ended later 0
}

@test "a bad ID, or another lock's or user's: one line, and the place stays" {
	local word
	hold_lock l
	place l
	for word in "" 1 "$owner" "${id%-*}" "$id-" "x$id" ../l; do
		refused 64 "not the ID of a hold" "$SEMLOCK" --resume="$word" l
	done
	: >other
	refused 64 "another lock" "$SEMLOCK" --resume="$id" other
	refused 76 "ended" "$SEMLOCK" --resume="${id%-*}-00000000" l
	if [ "$(id -u)" -eq 0 ]; then
		refused 77 "user 0" as_nobody "$SEMLOCK" --resume="$id" /l
	fi
	resume -n l
	[ "$status $out" = "1 WAITING id=$id" ] || complain "$status $out" "$err"
	let_go
}

@test "a place has to be asked for with --detach and -w" {
	refused 64 "--keep-place requires" "$SEMLOCK" --keep-place -w 1 l true
	refused 64 "how long" "$SEMLOCK" --hold=1 --detach --keep-place l
	refused 64 "-n or --replace" "$SEMLOCK" --hold=1 --detach --keep-place -w 1 -n l
	refused 64 "-n or --replace" "$SEMLOCK" --hold=1 --detach --keep-place -w 1 --replace l
	refused 64 "only with -w" "$SEMLOCK" --resume=1-2-3 -s l
	refused 64 "no command" "$SEMLOCK" --resume=1-2-3 l true
	refused 64 "--resume=ID LOCK" "$SEMLOCK" --resume=1-2-3
	[ ! -e l ]
}

@test "a full queue gives 1 and no place; an inherited lock is refused" {
	hold_lock l
	place l
	expect_status 1 "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0.1 --queue-max=1 l
	expect_out ""
	let_go
	exec 8>>own
	expect_status 0 "$SEMLOCK" -n 8
	refused 64 "inherited" "$SEMLOCK" --hold="$owner" --detach --keep-place -w 1 own
	exec 8>&-
}

@test "-v and --status-fd report the time-out of the first call and --resume" {
	hold_lock l
	capture "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0.1 -v --status-fd=1 l
	[ "$status" -eq 1 ]
	[[ $out == *"WAITING id="* && $out == *timeout* ]] || complain "it said '$out'"
	[[ $err == *"; the time is up"* ]] || complain "it said '$err'"
	id=${out#*WAITING id=}
	id=${id%%$'\n'*}
	resume -v -w 0.1 --status-fd=1 l
	[[ $out == *"WAITING id=$id"* && $out == *timeout* ]] || complain "it said '$out'"
	[[ $err == *"; the time is up"* ]] || complain "it said '$err'"
	let_go
}

@test "twenty waiters, ten in kept places, are served in order of first calls" {
	local i
	starts_many
	export SEMLOCK owner
	cat >agent <<-'END'
		said=$("$SEMLOCK" --hold=$owner --detach --keep-place -w 0 l)
		id=${said#WAITING id=}
		echo $id >$1.place
		for round in $2; do "$SEMLOCK" --resume=$id -w $round l && break; done >/dev/null
		echo $1 >>order
		"$SEMLOCK" --release=$id l
	END
	hold_lock l
	for i in $(seq 10 29); do
		case $((i % 4)) in
		0) start "w$i" sh agent "$i" "60" ;;
		2) start "w$i" sh agent "$i" "0.05 0.1 60" ;;
		*) start "w$i" "$SEMLOCK" l sh -c "echo $i >>order" ;;
		esac
		waiting l $((i - 9))
	done
	"$PROBE" pause 300
	let_go
	for i in $(seq 10 29); do ended "w$i" 0; done
	seq 10 29 | cmp - order || complain "$(tr '\n' ' ' <order)"
	expect_free l
}
