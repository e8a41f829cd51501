#!/usr/bin/env bats
# semlock --tether=8 LOCK: any kind of lock for the calling script, tied to its open descriptor.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"
export SEMLOCK

METHODS="flock ofd posix excl link mkdir rename symlink"

prepare() {
	"$SEMLOCK" -m rename --init rename.lock true
	cat >script <<-'END'
		exec 8>job 7<>$NAME.down
		"$SEMLOCK" --tether=8 "$@" || exit
		echo "ready $$" >$NAME.up
		read -r line <&7
		eval "$line"
	END
}

# script NAME SHELL ARG...: a script that takes the lock and then stands still, until "go"
script() {
	local name=$1 shell=$2
	shift 2
	fifos "$name"
	start "$name" env NAME="$name" "$shell" ./script "$@"
	ready "$name"
}

go() { echo "${2-}" 1<>"$1.down"; }

# Returns once the lock can be had, with the time in $took (us).
until_free() {
	local from=${EPOCHREALTIME/./}
	"$SEMLOCK" -w 60 "$@" true || complain "it is not let go"
	took=$((${EPOCHREALTIME/./} - from))
}

busy() { expect_status 1 "$SEMLOCK" -n "$@" true; }
free() { expect_status 0 "$SEMLOCK" -n "$@" true; }

# What works for the script: the two processes in the background.  (LOCK is a whole path, or they
# might be another test's.)
holder_of() { pgrep -o -f -- "--tether=8 .*$1\$"; }
watcher_of() { pgrep -P "$(holder_of "$1")"; }

gone() {
	local end=$((SECONDS + PATIENCE))
	while kill -0 "$1" 2>/dev/null && [ "$(ps -o stat= -p "$1" | cut -c1)" != Z ]; do
		((SECONDS < end)) || complain "process $1 does not end" || return
		read -r -t 0.02 <> <(:) || true
	done
}

@test "it is held when semlock has ended, and free when -u has: every method, bash and dash" {
	for shell in bash dash; do
		for method in $METHODS; do
			expect_status 0 "$shell" -c '
				lock="-m $1 $1.lock"
				exec 8>job
				"$SEMLOCK" --tether=8 $lock || exit 9
				"$SEMLOCK" -n $lock true && exit 8
				"$SEMLOCK" -u 8 || exit 7
				"$SEMLOCK" -n $lock true || exit 6
				"$SEMLOCK" --tether=8 $lock || exit 5
				exec 8>&-
				"$SEMLOCK" -w 60 $lock true || exit 4' "$shell" "$method"
			expect_silent
		done
	done
}

# The machine may be busy just then: once will do.
free_at_once() {
	rm -f holder.up holder.down
	script holder dash -m "$1" "$1.lock" && busy -m "$1" "$1.lock" || return
	kill -KILL "${PID[holder]}"
	until_free -m "$1" "$1.lock" && [ "$took" -lt 100000 ]
}

@test "it is free within a tenth of a second when the shell is killed" {
	for method in flock excl mkdir; do
		eventually free_at_once $method || complain "$method: $took us the last time"
	done
}

@test "it is free when the script ends" {
	for shell in bash dash; do
		for method in $METHODS; do
			script holder "$shell" -m "$method" "$method.lock"
			busy -m "$method" "$method.lock"
			go holder "exit 5"
			ended holder 5
			until_free -m "$method" "$method.lock"
			rm holder.up holder.down
		done
	done
}

@test "what has inherited the descriptor keeps the lock" {
	fifos child
	script holder bash -m excl lock
	PID[child]=$$
	go holder "\"$PROBE\" hold child.up child.down & exit 0"
	ended holder 0
	ready child
	busy -m excl lock
	release child
	until_free -m excl lock
}

@test "a read-only descriptor, and one of a directory" {
	mkdir d
	: >job
	for file in job d /dev/null; do
		expect_status 0 bash -c '
			exec 8<"$1"
			"$SEMLOCK" --tether=8 -m excl lock || exit 9
			"$SEMLOCK" -n -m excl lock true && exit 8
			"$SEMLOCK" -u 8 || exit 7
			"$SEMLOCK" -n -m excl lock true || exit 6
			"$SEMLOCK" --tether=8 -m excl lock || exit 5
			exec 8>&-
			"$SEMLOCK" -w 60 -m excl lock true || exit 4
			exec 8<"$1"
			"$SEMLOCK" --tether=8 -m excl lock || exit 3' bash "$file"
		until_free -m excl lock
	done
}

@test "a script that ties a lock to itself can still be executed" {
	cp "$(type -P true)" program
	exec 8<program
	expect_status 0 "$SEMLOCK" --tether=8 -m excl lock
	expect_status 0 ./program
	exec 8<&-
	until_free -m excl lock
}

@test "a pipe: the lock ends with the caller" {
	sed -i 's/exec 8>job/mkfifo p; exec 8<>p/' script
	script holder bash -m excl lock
	busy -m excl lock
	kill -KILL "${PID[holder]}"
	until_free -m excl lock
}

@test "busy is 1, and the descriptor is as it was; -w, -E" {
	hold_lock -m excl lock
	exec 8>job
	expect_status 1 "$SEMLOCK" -n --tether=8 -m excl lock
	expect_status 9 "$SEMLOCK" -w .1 -E 9 --tether=8 -m excl lock
	expect_silent
	if grep -q OFDLCK /proc/self/fdinfo/8; then complain "the descriptor is still tied"; fi
	let_go
	expect_status 0 "$SEMLOCK" -n --tether=8 -m excl lock
	expect_status 0 "$SEMLOCK" -u 8
	exec 8>&-
}

@test "who waits and is killed leaves nobody waiting behind" {
	hold_lock lock
	exec 8>job
	start waiter "$SEMLOCK" --tether=8 lock
	eventually pgrep -P "${PID[waiter]}" >watcher
	watcher=$(cat watcher)
	"$PROBE" blocked "$watcher"
	kill -TERM "${PID[waiter]}"
	ended waiter 143
	gone "$watcher"
	exec 8>&-
	let_go
}

@test "no other descriptor of the script's is kept open, and no output that somebody reads" {
	expect_status 0 bash -c '
		exec 8>job 9>other
		"$SEMLOCK" 9 || exit 9
		out=$("$SEMLOCK" --tether=8 -m excl lock 2>&1) || exit 8
		exec 9>&-
		"$SEMLOCK" -n other true || exit 7
		"$SEMLOCK" -n -m excl lock true && exit 6
		exit 0'
}

@test "standard error may be the very file that is tied to" {
	expect_status 0 bash -c 'exec 8>job 2>&8; "$SEMLOCK" --tether=8 -m excl lock'
	until_free -m excl lock
	expect_status 0 bash -c '"$SEMLOCK" --tether=2 -m excl lock 2>job'
	until_free -m excl lock
}

@test "-m posix: the script's input, output or messages may be the very file that is locked" {
	exec 8>job
	: >one
	: >two
	expect_status 0 bash -c '"$SEMLOCK" --tether=8 -m posix -f two one <one'
	expect_held one posix 0 0
	expect_held two posix 0 0
	expect_status 0 "$SEMLOCK" -u 8
	expect_status 0 bash -c '"$SEMLOCK" --tether=8 -m posix -f two one >>one 2>>two'
	expect_held one posix 0 0
	expect_held two posix 0 0
	expect_status 0 "$SEMLOCK" -u 8
	expect_free one posix 0 0
	exec 8>&-
}

@test "two locks on one descriptor; shared ones; several; slots" {
	exec 8>job
	expect_status 0 "$SEMLOCK" --tether=8 -m excl one
	expect_status 0 "$SEMLOCK" --tether=8 -s -f three two
	expect_status 0 "$SEMLOCK" --tether=8 -j 2 four
	busy -m excl one
	free -s two
	busy two
	busy three
	free -j 2 four
	busy four
	expect_status 0 "$SEMLOCK" -u 8
	free -m excl one
	free two
	free three
	free four
	exec 8>&-
}

@test "a lock of all bytes of the file, by the tied descriptor, would let the other go: 64" {
	build_needs_ofd
	expect_status 0 bash -c '
		exec 8<>job
		"$SEMLOCK" --tether=8 M || exit 9
		for bytes in "" "--start 7" "-s"; do
			"$SEMLOCK" --fcntl $bytes 8
			[ $? -eq 64 ] || exit 8
		done
		"$SEMLOCK" --fcntl --length 100 8 || exit 7
		"$SEMLOCK" -n M true && exit 6
		"$SEMLOCK" --fcntl -u 8 || exit 5
		"$SEMLOCK" -n M true || exit 4
		"$SEMLOCK" --fcntl 8 || exit 3'
	[ "$(grep -c "semlock: 8: a lock is tied to this descriptor" .err)" -eq 3 ] || complain "$err"
}

@test "slots, by the tied descriptor, let nothing else go" {
	build_needs_ofd
	expect_status 0 bash -c '
		exec 8<>job
		"$SEMLOCK" --tether=8 M || exit 9
		"$SEMLOCK" --fcntl -j 2 8 || exit 8
		"$SEMLOCK" -n M true && exit 7
		"$SEMLOCK" --fcntl -n -j 1 job true && exit 6
		"$SEMLOCK" --fcntl -u 8 || exit 5
		"$SEMLOCK" -n M true'
}

@test "a descriptor with a lock of all bytes, in which a tie would be lost, is not tied to: 64" {
	build_needs_ofd
	expect_status 0 bash -c '
		exec 8<>job
		for mode in -x -s; do
			"$SEMLOCK" --fcntl $mode 8 || exit 9
			"$SEMLOCK" --tether=8 M
			[ $? -eq 64 ] || exit 8
			"$SEMLOCK" -n M true || exit 7
		done
		"$SEMLOCK" --fcntl -n job true && exit 6
		"$SEMLOCK" --fcntl -u 8 || exit 5
		"$SEMLOCK" --fcntl --length 100 8 || exit 4
		"$SEMLOCK" --tether=8 M || exit 3
		"$SEMLOCK" -u 8 || exit 2
		"$SEMLOCK" -n M true'
	[ "$(grep -c "semlock: .*descriptor 8 .*all bytes" .err)" -eq 2 ] || complain "$err"
}

@test "the lock taken away: the script is stopped by TERM" {
	for method in excl link mkdir symlink; do
		script holder bash -m $method $method.lock
		rm -r $method.lock
		ended holder 143
		eventually grep -q "^semlock: $method.lock: somebody has taken the lock away" holder.err
		rm holder.up holder.down
	done
}

@test "the lock taken away: a script that does not heed TERM is killed, with what has its descriptor" {
	fifos child
	sed -i "1i trap '' TERM" script
	script holder bash -m excl lock
	PID[child]=$$
	go holder "\"$PROBE\" hold child.up child.down"
	ready child
	rm lock
	ended holder 137
	[ ! -e time-is-up ]	# then it was the watchdog
	gone "${COMMAND[child]}"
}

@test "the lock taken away: --on-lost=USR1 is for the script to catch, =warn is no signal" {
	fifos caught
	sed -i "1i trap 'echo USR1 >caught.up' USR1" script
	script holder bash --on-lost=USR1 -m excl lock
	go holder 'read -r line <&7; exit 3'
	PID[caught]=$$
	rm lock
	reports caught USR1
	go holder
	ended holder 3
	script warned bash --on-lost=warn -m excl "$PWD/lock"
	watcher=$(watcher_of "$PWD/lock")
	rm lock
	gone "$watcher"
	in_err warned "taken the lock away"
	go warned '"$SEMLOCK" -u 8; exit $?'
	ended warned 76
}

in_err() {
	eventually grep -q "$2" "$1.err" || complain "$(cat "$1.err")"
}

@test "-u says 76 when the lock had been lost" {
	exec 8>job
	expect_status 0 "$SEMLOCK" --tether=8 --on-lost=warn -m excl "$PWD/lock"
	holder=$(holder_of "$PWD/lock")
	rm lock
	gone "$holder"
	refused 76 "8: the lock that was tied to it had been lost" "$SEMLOCK" -u 8
	exec 8>&-
}

@test "its watcher killed: the script is stopped; told to end: the same" {
	for signal in KILL TERM; do
		for method in flock excl; do
			script holder bash -m $method "$PWD/$method.lock"
			kill -$signal "$(watcher_of "$PWD/$method.lock")"
			ended holder 143
			until_free -m $method $method.lock
			rm holder.up holder.down
		done
	done
}

@test "the lock is lost before the watcher sleeps: the script is told" {
	[ "$CRASHABLE" = yes ] || skip "built without --enable-crash-points"
	export SEMLOCK_CRASH=tether.told:stop
	script holder bash -m posix "$PWD/posix.lock"
	watcher=$(watcher_of "$PWD/posix.lock")
	"$PROBE" state "$watcher" T
	kill -KILL "$(holder_of "$PWD/posix.lock")"
	unset SEMLOCK_CRASH
	expect_status 0 "$SEMLOCK" -m posix posix.lock true
	kill -CONT "$watcher"
	ended holder 143
}

@test "who waits for the word is killed when the lock is had: the script hears of nothing, and it is let go" {
	[ "$CRASHABLE" = yes ] || skip "built without --enable-crash-points"
	export PROBE
	start script bash -c 'exec 8>job
		SEMLOCK_CRASH=gate.started:stop "$SEMLOCK" --tether=8 lock & waits=$!
		holder=$(until pgrep -P $waits; do :; done)
		"$PROBE" state "$holder" T
		kill $waits
		wait $waits
		kill -CONT $holder
		"$PROBE" gone $holder
		"$SEMLOCK" -n lock echo "free $?"'
	ended script 0
	[ "$(cat script.out)" = "free 0" ] || complain "$(cat script.out script.err)"
}

@test "its holder killed: the lock is kept, until the script ends" {
	for method in flock excl mkdir; do
		script holder bash -m $method "$PWD/$method.lock"
		kill -KILL "$(holder_of "$PWD/$method.lock")"
		busy -m $method $method.lock
		go holder
		ended holder 0
		until_free -m $method $method.lock
		rm holder.up holder.down
	done
	script holder bash -m posix "$PWD/posix.lock"
	kill -KILL "$(holder_of "$PWD/posix.lock")"
	ended holder 143
}

@test "what makes no sense with it is refused" {
	exec 8>job
	refused 64 "no command" "$SEMLOCK" --tether=8 lock true
	refused 64 "--tether: name a LOCK" "$SEMLOCK" --tether=8 --fd=0
	for option in -F -o -u --hold --nested --toggle --run-timeout=1 --status-fd=8; do
		refused 64 "--tether" "$SEMLOCK" --tether=8 $option lock
	done
	refused 64 "the file behind descriptor 8" "$SEMLOCK" --tether=8 -m ofd job
	refused 64 "job: that is the file behind" "$SEMLOCK" --tether=8 -m ofd -w 1 -f job lock
	rm -f lock
	refused 64 "x: not a descriptor" "$SEMLOCK" --tether=x lock
	exec 8>&-
	refused 65 "descriptor 8" "$SEMLOCK" --tether=8 lock
	[ ! -e lock ]
}
