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

@test "a daemon of root's to which another user has passed the lock is not ended: 69, and the message names it" {
	root_only "to be two users"
	for method in flock ofd; do
		: >"$place/every/l"
		chmod 644 "$place/every/l"
		[ $method = flock ] || chmod 666 "$place/every/l"
		daemon_has "$place/every/l" $method as_nobody
		for way in --replace --replace=KILL --toggle --toggle=KILL; do
			refused 69 "cannot stop the holder: process ${PID[daemon]} (python3 " "$SEMLOCK" -m $method $way "$place/every/l" touch ran
			[[ $err == *"has not taken the lock itself, and other users can open the lock"* ]] || complain "$err"
			kill -0 "${PID[daemon]}"
		done
		[ ! -e ran ]
		end_daemon
	done
}

@test "nor is another user's daemon, to which root has passed it" {
	root_only "to be two users"
	: >"$place/own/l"
	start_daemon setpriv --reuid=65534 --regid=65534 --clear-groups
	/usr/bin/python3 "$PASS" "$place/bus/socket" "$place/own/l" "$SEMLOCK" 0
	eventually [ -e "$place/bus/socket.got" ]
	for way in --replace --replace=KILL --toggle; do
		refused 69 "is another user's, and has the lock's descriptor" "$SEMLOCK" $way "$place/own/l" touch ran
	done
	kill -0 "${PID[daemon]}"
	end_daemon
	[ ! -e ran ]
}

@test "where no other user can open the lock, a process that has its descriptor is the holder's: it is ended" {
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

@test "the lock's taker and its command are ended, although other users can open the lock" {
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

@test "a taker that lives is ended, and the daemon to which it has passed the lock is not" {
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
