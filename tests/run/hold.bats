#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --hold: a lock for programs in other languages; OK on standard output, let go at end of input.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# holding NAME ARG...: starts semlock --hold, and returns at its OK; its input is the FIFO NAME.in, open as $in.
holding() {
	local name=$1
	shift
	mkfifo "$name.in" "$name.up"
	"$PROBE" with-default INT QUIT HUP TERM -- "$SEMLOCK" --hold "$@" <"$name.in" >"$name.up" 2>"$name.err" 3>&- 4>&- &
	PID["$name"]=$!
	: >"$name.out"
	exec {in}>"$name.in"
	exec {up}<"$name.up"
	read -r -t "$PATIENCE" line <&"$up"
	[ "$line" = "${OK:-OK}" ] || complain "it said '$line'" "$(cat "$name.err")"
}

@test "--hold prints OK, holds, and releases at the end of input, any method" {
	for method in flock ofd posix excl link mkdir rename symlink; do
		args="-m $method"
		[ "$method" != rename ] || args="$args --init"
		# shellcheck disable=SC2086 # several words
		holding $method $args $method.lock
		expect_status 1 "$SEMLOCK" -n -m "$method" "$method".lock true
		exec {in}>&-
		ended "$method" 0
		expect_status 0 "$SEMLOCK" -n -m "$method" "$method".lock true
	done
}

# The placeholder is forked while its semlock has a ticket, and never calls exec.
@test "a holder keeps no place in the queue" {
	local child
	hold_lock -m excl l
	mkfifo waiter.in
	exec {in}<>waiter.in
	start waiter sh -c 'exec "$1" --hold -m excl l <waiter.in' - "$SEMLOCK"
	"$PROBE" blocked "${PID[waiter]}"
	let_go
	until [ "$(cat waiter.out)" = OK ]; do kill -0 "${PID[waiter]}"; done
	child=$(pgrep -P "${PID[waiter]}")
	! grep OFDLCK "/proc/$child/fdinfo"/* || complain "it has a ticket"
	exec {in}>&-
	kill "${PID[waiter]}"
	ended waiter 143
}

@test "--hold lets go when its parent is killed, though its input stays open" {
	for method in flock posix excl; do
		mkfifo $method.in $method.up
		exec {in}<>$method.in {up}<>$method.up
		start parent sh -c '"$1" --hold -m "$2" "$2.lock" <"$2.in" >"$2.up"; :' - "$SEMLOCK" $method
		read -r -t "$PATIENCE" line <&"$up"
		[ "$line" = OK ]
		expect_status 1 "$SEMLOCK" -n -m $method $method.lock true
		kill -KILL "${PID[parent]}"
		expect_status 0 "$SEMLOCK" -w 60 -m $method $method.lock true
		exec {in}>&- {up}>&-
	done
}

@test "lines written to --hold are read and mean nothing" {
	holding one l
	printf 'a line\n' >&"$in"
	expect_status 1 "$SEMLOCK" -n l true
	exec {in}>&-
	ended one 0
}

@test "--hold says which slot it has" {
	for method in flock ofd posix; do
		OK="OK slot=0" holding "${method}0" -m "$method" -j 2 "$method".lock
		zero=$in
		OK="OK slot=1" holding "${method}1" -m "$method" -j 2 "$method".lock
		exec {in}>&-
		ended "${method}1" 0
		exec {zero}>&-
		ended "${method}0" 0
	done
}

@test "the slot and the token of an outer lock are none of its own" {
	OK=OK SEMLOCK_SLOT=3 SEMLOCK_TOKEN=4 holding inner l
	exec {in}>&-
	ended inner 0
}

@test "a busy lock is busy: no OK, status 1" {
	hold_lock l
	mkfifo pipe
	exec 8<>pipe
	expect_status 1 "$SEMLOCK" --hold -n l <&8
	expect_out ""
	expect_status 1 "$SEMLOCK" --hold -w 0.1 l <&8
	expect_out ""
	exec 8>&-
}

@test "TERM ends it, and the lock is free" {
	for method in flock posix excl; do
		holding $method -m $method $method.lock
		kill -TERM "${PID[$method]}"
		ended $method 143
		exec {in}>&-
		expect_status 0 "$SEMLOCK" -n -m $method $method.lock true
	done
}

@test "an output that no process reads: no lock is kept" {
	for how in '>/dev/full' '>&-'; do
		if [ "$how" = '>&-' ] && under_valgrind; then continue; fi # valgrind takes the number itself
		expect_status 71 bash -c "\"\$1\" --hold l < <(exec sleep 60) $how" - "$SEMLOCK"
		[[ $err == "semlock: cannot say on standard output that the lock is held: "* ]] || complain "$how: $err"
		expect_free l
	done
	expect_status 0 "$SEMLOCK" -n l true
}

@test "an input already at its end gives 64 instead of OK, and no lock" {
	: >file
	hold_lock busy
	for input in /dev/null file; do
		expect_status 64 "$SEMLOCK" --hold busy <"$input"
		expect_status 64 "$SEMLOCK" --hold l <"$input"
		expect_out ""
		[[ $err == "semlock: l: --hold: standard input is at its end"* ]] || complain "$input: $err"
		expect_status 0 "$SEMLOCK" -n l true
	done
	mkfifo pipe
	sh -c : >pipe &
	exec 8<pipe
	wait $!
	expect_status 64 "$SEMLOCK" --hold busy <&8
	expect_status 64 "$SEMLOCK" --hold l <&8
	expect_out ""
	expect_status 64 "$SEMLOCK" --hold l <&-
	expect_status 0 "$SEMLOCK" -n l true
}

@test "shared, slots and several locks are held as well" {
	holding one -s l
	expect_status 0 "$SEMLOCK" -n -s l true
	expect_status 1 "$SEMLOCK" -n l true
	exec {in}>&-
	ended one 0
	holding two -f b a
	expect_status 1 "$SEMLOCK" -n a true
	expect_status 1 "$SEMLOCK" -n b true
	exec {in}>&-
	ended two 0
}

@test "what makes no sense with it is refused" {
	refused 64 "no command" "$SEMLOCK" --hold l true
	refused 64 "-F" "$SEMLOCK" --hold -F l
	refused 64 "--toggle" "$SEMLOCK" --hold --toggle l
	refused 64 "--nested" "$SEMLOCK" --hold --nested l
	refused 64 "-u" "$SEMLOCK" --hold -u l
	refused 64 "--run-timeout" "$SEMLOCK" --hold --run-timeout=1 l
	refused 64 "descriptor" "$SEMLOCK" --hold --fd=0
	[ ! -e l ]
}

@test "--hold gives up its place when its owner has gone" {
	hold_lock l
	mkfifo in
	start waiter sh -c 'exec "$1" --hold l <in' - "$SEMLOCK"
	exec {in}>in
	"$PROBE" blocked "${PID[waiter]}"
	exec {in}>&-
	ended waiter 143
	[ ! -s waiter.out ]
	let_go
	expect_free l
}

# The test's shell keeps the pipe open.
@test "--hold gives up its place also where TERM is ignored" {
	hold_lock l
	mkfifo in
	start waiter "$PROBE" with-ignored TERM -- sh -c 'exec "$0" --hold l <in' "$SEMLOCK"
	exec 9>in
	"$PROBE" blocked "${PID[waiter]}"
	exec 9>&-
	ended waiter 143
	let_go
}

@test "--hold=PID: the owner's end releases the lock, whoever has the pipe" {
	fifos owner
	start owner "$PROBE" hold owner.up owner.down
	ready owner
	for method in flock excl; do
		holding $method --hold="${PID[owner]}" -m $method $method.lock
	done
	expect_status 1 "$SEMLOCK" -n flock.lock true
	release owner
	ended owner 0
	ended flock 0
	ended excl 0
	expect_status 0 "$SEMLOCK" -n flock.lock true
	expect_status 0 "$SEMLOCK" -n -m excl excl.lock true
}

@test "--hold=PID: the end of the owner is the end of the wait" {
	hold_lock l
	fifos owner
	start owner "$PROBE" hold owner.up owner.down
	ready owner
	mkfifo in
	start waiter sh -c 'exec "$1" --hold="$2" l <in' - "$SEMLOCK" "${PID[owner]}"
	exec {in}>in
	"$PROBE" blocked "${PID[waiter]}"
	kill -KILL "${PID[owner]}"
	ended waiter 143
}

@test "--hold=PID of no process is refused" {
	refused 64 "--hold=x: no ancestor of this process has that name" "$SEMLOCK" --hold=x l
	refused 64 "--hold=0: the parent is outside this container" "$SEMLOCK" --hold=0 l
	true & gone=$!
	wait $gone
	refused 64 "no such process" "$SEMLOCK" --hold=$gone l
	[ ! -e l ]
}

# says LINE: to standard input, and waits for its echo
says() {
	local echoed
	echo "$1" >&"$in"
	IFS= read -r -t "$PATIENCE" echoed <&"$up"
	[ "$echoed" = "$1" ] || complain "it echoed '$echoed'"
}

# Seconds of --ttl: long enough for a line every half a second to come in time, and, short, for one line and a call.
LONG=$((5 + SLOWNESS))
SHORT=$((2 + SLOWNESS))

# beats SECONDS: for so long, a line every half a second
beats() {
	local end=$((SECONDS + $1 + 1))
	while [ $SECONDS -lt $end ]; do
		nap 500
		says beat
	done
}

# ms_since BEGAN: BEGAN is in microseconds
ms_since() { echo $(((${EPOCHREALTIME/[.,]/} - $1) / 1000)); }

# free_after MS BEGAN NAME: the lock is free, and was not before MS after BEGAN
free_after() {
	local took
	expect_status 0 "$SEMLOCK" -w 120 l true
	took=$(ms_since "$2")
	[ "$took" -ge "$1" ] || complain "$3: free after $took ms"
}

@test "--hold --ttl: lines are echoed, and release releases" {
	OK="OK ttl=60" holding one --ttl=60 l
	says "one"
	says ""
	says " release"
	says "release it"
	printf 'half a ' >&"$in"
	echo line >&"$in"
	read -r -t "$PATIENCE" line <&"$up"
	[ "$line" = "half a line" ] || complain "it echoed '$line'"
	expect_status 1 "$SEMLOCK" -n l true
	echo release >&"$in"
	ended one 0
	if read -r line <&"$up"; then complain "the release was echoed: '$line'"; fi
	expect_status 0 "$SEMLOCK" -n l true
	OK="OK slot=0 ttl=2.5" holding two --ttl=2500ms -j 2 l
	echo release >&"$in"
	ended two 0
}

@test "--hold --ttl: silence releases the lock, and lines keep it longer" {
	for method in flock ofd; do
		OK="OK ttl=$LONG" holding $method --ttl=$LONG -m $method l
		beats $LONG
		began=${EPOCHREALTIME/[.,]/}
		says last
		expect_status 1 "$SEMLOCK" -m $method -n l true
		expect_status 0 "$SEMLOCK" -m $method -w 120 l true
		took=$(ms_since "$began")
		[ "$took" -ge $((1000 * LONG)) ] || complain "$method: free after $took ms"
		ended $method 76
		grep -q "no line came within --ttl" $method.err
		exec {in}>&- {up}<&-
	done
}

@test "--hold --ttl: end of input without release keeps the lock for that time" {
	OK="OK ttl=$SHORT" holding one --ttl=$SHORT l
	says beat
	nap 1000
	began=${EPOCHREALTIME/[.,]/}
	exec {in}>&-
	free_after $((1000 * SHORT)) "$began" "end of input"
	ended one 76
	grep -q 'no line "release"' one.err
}

@test "--hold --ttl: so does the end of the process that started it" {
	mkfifo in up
	exec {in}<>in {up}<>up
	start parent sh -c '"$1" --hold --ttl=$2 l <in >up; :' - "$SEMLOCK" $SHORT
	read -r -t "$PATIENCE" line <&"$up"
	[ "$line" = "OK ttl=$SHORT" ]
	says beat
	nap 1000
	began=${EPOCHREALTIME/[.,]/}
	kill -KILL "${PID[parent]}"
	free_after $((1000 * SHORT)) "$began" parent
}

@test "--hold --ttl: one kill -9 frees nothing" {
	for method in flock ofd; do
		OK="OK ttl=$LONG" holding $method --ttl=$LONG -m $method l
		says beat
		kill -KILL "${PID[$method]}"
		end=$((SECONDS + LONG + 2))
		while [ $SECONDS -lt $end ]; do
			nap 1000
			says "still there"
			expect_status 1 "$SEMLOCK" -m $method -n l true
		done
		echo release >&"$in"
		expect_status 0 "$SEMLOCK" -m $method -w 120 l true
		exec {in}>&- {up}<&-
	done
	OK="OK ttl=$LONG" holding second --ttl=$LONG l
	says beat
	nap 1000
	began=${EPOCHREALTIME/[.,]/}
	kill -KILL "$(pgrep -P "${PID[second]}")"
	expect_status 1 "$SEMLOCK" -n l true
	if read -r -t "$PATIENCE" line <&"$up"; then complain "it said '$line'"; fi # an end, before the time is over:
	expect_status 1 "$SEMLOCK" -n l true
	free_after $((1000 * LONG)) "$began" "the second process"
	ended second 137
}

@test "--hold --ttl: a caller that does not read its echoes loses the lock" {
	OK="OK ttl=$SHORT" holding one --ttl=$SHORT l
	yes 'a line that nobody reads' | head -n 20000 >&"$in"
	expect_status 0 "$SEMLOCK" -w 120 l true
	ended one 76
}

@test "--hold --ttl: a waiter echoes, too; silence, end, release end its wait" {
	hold_lock l
	for how in silence end release lines; do
		mkfifo $how.in $how.up
		exec {in}<>$how.in
		exec {up}<>$how.up
		ttl=$LONG
		[ $how != end ] && [ $how != release ] || ttl=200 # its end is not that of silence
		began=${EPOCHREALTIME/[.,]/}
		"$PROBE" with-default INT QUIT HUP TERM -- "$SEMLOCK" --hold --ttl=$ttl l <$how.in >$how.up 2>$how.err 3>&- 4>&- {in}>&- &
		PID["$how"]=$!
		: >$how.out
		exec {to}>$how.in {in}>&-
		in=$to
		says beat
		case $how in
		silence) ;;
		end) exec {in}>&- ;;
		release) echo release >&"$in" ;;
		lines)
			beats $LONG
			{ while sleep .5; do echo beat; done >&"$in"; } & # a slow end of the holder is no silence
			let_go
			line=beat
			while [ "$line" = beat ]; do read -r -t "$PATIENCE" line <&"$up"; done
			[ "$line" = "OK ttl=$LONG" ] || complain "it said '$line'"
			kill $!
			echo release >&"$in"
			ended lines 0
			continue
			;;
		esac
		ended $how 143
		took=$(ms_since "$began")
		[ $how = silence ] || [ "$took" -lt 100000 ] || complain "$how: after $took ms"
		[ $how = end ] || exec {in}>&-
		exec {up}<&-
	done
}

@test "--hold --ttl: what it cannot do is 64" {
	refused 64 "--ttl: requires a lock on a server" "$SEMLOCK" --ttl=9 l true
	refused 64 "-m posix" "$SEMLOCK" --hold --ttl=9 -m posix l
	refused 64 "made of files" "$SEMLOCK" --hold --ttl=9 -m mkdir l
	refused 64 "at least 2 seconds" "$SEMLOCK" --hold --ttl=1 l
	expect_status 64 "$SEMLOCK" --hold --ttl=9 l </dev/null
	[[ $err == *"standard input is at its end already"* ]] || complain "$err"
	[ ! -e l ]
}
