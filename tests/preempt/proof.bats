#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --replace and --toggle: which process that has a lock's descriptor may be signalled.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	place=$(mktemp -d /tmp/semlock-proof.XXXXXX)
	chmod 755 "$place"
	mkdir "$place/every" "$place/own" "$place/bus"
	chmod 777 "$place/bus"
	chmod 755 "$place/every"
	chmod 700 "$place/own"
}

tidy() { rm -rf "$place"; }

PASS=$SOURCE/tests/lib/takes_anything.py

start_daemon() {
	rm -f "$place/bus/socket"*
	start daemon "$@" /usr/bin/python3 "$PASS" "$place/bus/socket"
	eventually [ -e "$place/bus/socket.up" ]
}

# daemon_has LOCK METHOD AS...: a daemon of the test's user has LOCK, which a process that AS starts (as_nobody, or nothing)
# has locked and passed to it: the taker has ended.
daemon_has() {
	local lock=$1 method=$2
	shift 2
	start_daemon
	"$@" /usr/bin/python3 "$PASS" "$place/bus/socket" "$lock" "$SEMLOCK" -m "$method" 0
	eventually [ -e "$place/bus/socket.got" ]
	expect_status 1 "$SEMLOCK" -n -m "$method" "$lock" true
}

end_daemon() {
	kill "${PID[daemon]}"
	ended daemon 143
}

@test "root's daemon that a user passed the lock to is not ended: 69, and named" {
	root_only "to be two users"
	for method in flock ofd; do
		: >"$place/every/l"
		chmod 644 "$place/every/l"
		[ $method = flock ] || chmod 666 "$place/every/l"
		daemon_has "$place/every/l" $method as_nobody
		for way in --replace --replace=KILL --toggle --toggle=KILL; do
			refused 69 "cannot stop the holder: process ${PID[daemon]} (python3 " "$SEMLOCK" -m $method $way "$place/every/l" touch ran
			[[ $err == *"did not take the lock itself, and may have its descriptor from another user"* ]] || complain "$err"
			kill -0 "${PID[daemon]}"
		done
		[ ! -e ran ]
		end_daemon
	done
}

@test "a command that shares the lock with such a daemon is not ended: 69" {
	root_only "to be two users"
	: >"$place/every/l"
	chmod 644 "$place/every/l"
	for order in "plain passed" "passed plain"; do
		for which in $order; do
			if [ "$which" = plain ]; then
				hold_as plain -s "$place/every/l"
			else
				fifos passed
				start passed bash -c 'exec 8<"$2"; "$0" -s 8 && exec "$1" hold passed.up passed.down' \
					"$SEMLOCK" "$PROBE" "$place/every/l"
				ready passed
			fi
		done
		refused 69 "did not take the lock itself" "$SEMLOCK" --replace "$place/every/l" touch ran
		let_go plain
		let_go passed
		rm plain.* passed.*
	done
	[ ! -e ran ]
}

@test "nor is another user's daemon, to which root has passed it" {
	root_only "to be two users"
	: >"$place/own/l"
	start_daemon setpriv --reuid=65534 --regid=65534 --clear-groups
	/usr/bin/python3 "$PASS" "$place/bus/socket" "$place/own/l" "$SEMLOCK" 0
	eventually [ -e "$place/bus/socket.got" ]
	for way in --replace --replace=KILL --toggle; do
		refused 69 "belongs to another user and has the lock's descriptor" "$SEMLOCK" $way "$place/own/l" touch ran
	done
	kill -0 "${PID[daemon]}"
	end_daemon
	[ ! -e ran ]
}

@test "if no other user can open the lock, a process that has it open is ended" {
	: >"$place/own/l"
	daemon_has "$place/own/l" flock
	expect_status 0 "$SEMLOCK" --replace "$place/own/l" echo new
	expect_out new
	ended daemon 143
	: >"$place/every/l"
	chmod 600 "$place/every/l"
	daemon_has "$place/every/l" ofd
	expect_status 0 "$SEMLOCK" --fcntl --replace "$place/every/l" echo new
	ended daemon 143
}

# taken WAY...: the holder took the lock itself, on a file that all can open, and is ended.
taken() {
	rm -f old.*
	hold_as old "$@" "$place/every/l"
	local method=()
	[[ " $* " != *" ofd "* ]] || method=(-m ofd)
	expect_status 0 "$SEMLOCK" "${method[@]}" --replace "$place/every/l" echo new
	ended old 143
}

@test "a lock's taker and command are ended, even if others can open the lock" {
	: >"$place/every/l"
	chmod 666 "$place/every/l"
	taken
	taken -F
	taken -o
	taken -s
	taken -m ofd
	taken -m ofd -o
	rm -f old.*
	hold_by_flock old "$place/every/l"
	expect_status 0 "$SEMLOCK" --replace "$place/every/l" echo new
	expect_out new
}

@test "a semlock that keeps an ofd lock after its command is ended" {
	: >"$place/every/l"
	chmod 666 "$place/every/l"
	for way in --replace --toggle; do
		start old "$SEMLOCK" -m ofd --min-hold=1h "$place/every/l" sh -c 'echo $$ >command'
		eventually [ -s command ]
		"$PROBE" gone "$(cat command)"
		expect_status 0 "$SEMLOCK" -m ofd $way "$place/every/l" true
		ended old 0
		rm command
	done
}

@test "a living taker is ended, but not the daemon it passed the lock to" {
	root_only "to be two users"
	: >"$place/every/l"
	chmod 644 "$place/every/l"
	start_daemon
	start taker setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 "$PASS" "$place/bus/socket" "$place/every/l"
	eventually [ -e "$place/bus/socket.got" ]
	refused 69 "process ${PID[daemon]} (python3 " "$SEMLOCK" --replace "$place/every/l" touch ran
	ended taker 143
	end_daemon
	[ ! -e ran ]
}

@test "what a job leaves behind ends with it, even if others can open the lock" {
	: >"$place/every/l"
	chmod 666 "$place/every/l"
	for way in "$SEMLOCK" "$FLOCK" "$SEMLOCK -m ofd"; do
		# shellcheck disable=SC2086 # words
		start old $way "$place/every/l" sh -c 'sleep 100 & echo $! >left; wait'
		eventually [ -s left ]
		# shellcheck disable=SC2086 # words
		expect_status 0 "$SEMLOCK" ${way#"${way%% *}"} --replace "$place/every/l" echo new
		expect_out new
		"$PROBE" gone "$(cat left)"
		ended old 143
		rm left
	done
}

@test "--replace of a lock in --hold fails with 69, and names what to end" {
	mkfifo in
	for method in flock ofd posix excl link symlink; do
		start hold sh -c '"$0" --hold -m "$1" "l.$1" <in; echo $?' "$SEMLOCK" $method
		exec 9>in
		eventually grep -q OK hold.out
		for way in --replace --replace=KILL --toggle; do
			refused 69 "process ${PID[hold]} (sh " "$SEMLOCK" -m $method $way l.$method touch ran
			[[ $err == *"holds the lock with semlock --hold"*"end that process" ]] || complain "$err"
		done
		expect_status 1 "$SEMLOCK" -n -m $method l.$method true
		exec 9>&-
		ended hold 0
		[ "$(tail -n 1 hold.out)" = 0 ]
	done
	[ ! -e ran ]
}

@test "where /proc is another PID namespace's, no process is signalled: 69" {
	[ -z "${SANITIZED-}" ] || skip "AddressSanitizer reads its options in /proc"
	namespaces --pid --fork
	cat >inside <<-'END'
		"$1" l sleep 100 &
		while "$1" -n l true; do :; done
		"$1" --replace l touch ran
		echo $?
		"$1" --toggle l touch ran
		echo $?
		kill -0 %1 && echo lives
	END
	capture unshare --pid --fork --kill-child bash inside "$SEMLOCK"
	expect_out $'69\n69\nlives'
	[[ $err == *"/proc shows another PID namespace"* ]] || complain "$err"
	[ ! -e ran ]
}
