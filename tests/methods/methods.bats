#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The methods flock, ofd and posix, and which other locks they exclude.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

tool() {
	command -v "$1" >/dev/null || skip "no $1 on this machine"
}

held_and_free() {
	hold_lock "$@" l
	expect_status 1 "$SEMLOCK" -n "$@" l true
	expect_status 1 "$SEMLOCK" -w .01 "$@" l true
	queue_as second "$@" l
	let_go
	ready second
	let_go second
	expect_status 0 "$SEMLOCK" -n "$@" l true
}

@test "flock, ofd and posix: held, waited for, free again" {
	for method in flock ofd posix; do
		held_and_free -m "$method"
		rm -f ./*.up ./*.down
	done
	held_and_free --method=posix
}

@test "--fcntl is ofd" {
	held_and_free --fcntl
	hold_as third --fcntl l
	cat "/proc/${COMMAND[third]}/fdinfo"/* >fdinfo
	grep -q '^lock:.* OFDLCK .*WRITE' fdinfo
	let_go third
}

@test "ofd and posix: readers share, writers do not" {
	for method in ofd posix; do
		hold_as one -m "$method" -s l
		hold_as two -m "$method" -s l
		expect_status 1 "$SEMLOCK" -m "$method" -n l true
		let_go one
		let_go two
		rm ./*.up ./*.down
	done
}

@test "no two commands are ever inside at once, whatever the method" {
	starts_many
	often 160
	for method in flock ofd posix; do
		expect_status 0 "$PROBE" storm "$often" 8 "$SEMLOCK" -m "$method" l "$PROBE" inside "room.$method" 20
		expect_out "0 x $often"
		expect_status 0 "$PROBE" verdict "room.$method" $((20 * often))
	done
}

@test "waiters for ofd and posix are served in the order in which they came" {
	for method in ofd posix; do
		hold_as "holder$method" -m $method l
		for name in a b c d; do
			start $name "$SEMLOCK" -m $method l sh -c 'echo "$0" >>order' $name
			"$PROBE" blocked "${PID[$name]}"
		done
		let_go "holder$method"
		for name in a b c d; do ended $name 0; done
		[ "$(tr '\n' ' ' <order)" = "a b c d " ]
		rm order
	done
}

@test "ofd and posix exclude each other, and neither excludes flock" {
	hold_lock -m ofd l
	expect_status 1 "$SEMLOCK" -m posix -n l true
	expect_status 0 "$SEMLOCK" -m flock -n l true
	let_go
	hold_as second -m posix l
	expect_status 1 "$SEMLOCK" -m ofd -n l true
	expect_status 0 "$SEMLOCK" -m flock -n l true
	let_go second
}

@test "flock: the system's flock(1) excludes and is excluded" {
	system=$(system_flock)
	[ -n "$system" ] || skip "no util-linux flock on this machine"
	hold_lock l
	expect_status 1 "$system" -n l true
	let_go
	hold_by_flock other l
	expect_status 1 "$SEMLOCK" -n l true
	queue_as second l
	let_go other
	ready second
	let_go second
}

@test "flock(1) and semlock in loops are never inside at once" {
	starts_many
	system=$(system_flock)
	[ -n "$system" ] || skip "no util-linux flock on this machine"
	often 200
	start others "$PROBE" storm "$often" 4 "$system" l "$PROBE" inside room 20
	expect_status 0 "$PROBE" storm "$often" 4 "$SEMLOCK" l "$PROBE" inside room 20
	ended others 0
	expect_status 0 "$PROBE" verdict room $((40 * often))
}

@test "posix and ofd: a user of fcntl(2) excludes and is excluded" {
	for method in ofd posix; do
		for theirs in ofd posix; do
			fifos other
			start other "$PROBE" fcntl-hold l $theirs write 0 0 other.up other.down
			ready other
			expect_status 1 "$SEMLOCK" -m "$method" -n l true
			queue_as second -m "$method" l
			let_go other
			ready second
			[ "$("$PROBE" free l $theirs 0 0 || true)" = held ]
			let_go second
			rm ./*.up ./*.down
		done
	done
}

@test "posix and ofd: Python's fcntl.lockf excludes and is excluded" {
	tool python3
	cat >try.py <<-'END'
		import fcntl, sys
		f = open("l", "r+")
		try:
		    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
		except OSError:
		    sys.exit(1)
	END
	cat >hold.py <<-'END'
		import fcntl, os
		f = open("l", "r+")
		fcntl.lockf(f, fcntl.LOCK_EX)
		up, down = os.open("py.up", os.O_RDWR), os.open("py.down", os.O_RDWR)
		os.write(up, b"ready %d\n" % os.getpid())
		os.read(down, 1)
	END
	: >l
	for method in ofd posix; do
		hold_lock -m "$method" l
		expect_status 1 python3 try.py
		let_go
		expect_status 0 python3 try.py
		fifos py
		start py python3 hold.py
		ready py
		expect_status 1 "$SEMLOCK" -m "$method" -n l true
		let_go py
		rm ./*.up ./*.down
	done
}

@test "--start and --length choose a range of bytes" {
	local method theirs
	for method in ofd posix; do
		hold_as "$method" -m "$method" --start 10 --length 5 l
		expect_free l ofd 0 10
		expect_held l ofd 10 1
		expect_held l ofd 14 1
		expect_free l ofd 15 0
		for theirs in ofd posix; do
			expect_status 0 "$SEMLOCK" -n -m "$theirs" --start 0 --length 10 l true
			expect_status 1 "$SEMLOCK" -n -m "$theirs" --start 14 --length 1 l true
			expect_status 0 "$SEMLOCK" -n -m "$theirs" --start=15 --length=1 l true
			expect_status 0 "$SEMLOCK" -n -m "$theirs" --start 15 l true
			expect_status 1 "$SEMLOCK" -n -m "$theirs" l true
		done
		let_go "$method"
	done
}

@test "--fcntl takes a range" {
	hold_lock --fcntl --start 10 --length 5 l
	expect_status 0 "$SEMLOCK" -n --fcntl --start 0 --length 10 l true
	expect_status 1 "$SEMLOCK" -n --fcntl --start 14 --length 1 l true
	let_go
}

@test "--start or --length alone mean --fcntl, and length 0 means to the end" {
	hold_lock --start 100 l
	expect_free l ofd 0 100
	expect_held l ofd 100 1
	expect_held l ofd 1000000000 1
	let_go
	hold_as second --length 3 l
	expect_held l ofd 0 1
	expect_free l ofd 3 0
	let_go second
	hold_as third --start 7 --length 0 l
	expect_held l ofd 1000000 1
	let_go third
}

@test "sizes take suffixes" {
	hold_lock -m posix --start 1K --length 1KiB l
	expect_free l ofd 0 1024
	expect_held l ofd 1024 1
	expect_held l ofd 2047 1
	expect_free l ofd 2048 0
	let_go
	hold_as second -m posix --start 1MiB --length 1 l
	expect_held l ofd 1048576 1
	expect_free l ofd 0 1048576
	let_go second
}

@test "a range with the method flock is refused with 64" {
	refused 64 start "$SEMLOCK" -m flock --start 0 l touch ran
	refused 64 length "$SEMLOCK" --length 1 -m flock l touch ran
	[ ! -e ran ]
}

@test "ofd on a descriptor, unlocked again with -u" {
	exec 8<>l
	expect_status 0 "$SEMLOCK" --fcntl 8
	expect_held l ofd 0 0
	expect_free l
	expect_status 0 "$SEMLOCK" --fcntl -u 8
	expect_free l ofd 0 0
	expect_status 0 "$SEMLOCK" --fcntl --start 5 --length 1 8
	expect_held l ofd 5 1
	expect_free l ofd 0 5
	exec 8>&-
	expect_free l ofd 0 0
}

@test "ofd on a descriptor that cannot be written to: shared only, else 65" {
	: >l
	exec 8<l
	expect_status 0 "$SEMLOCK" --fcntl -s 8
	refused 65 8 "$SEMLOCK" --fcntl 8
	exec 8<&-
}

@test "ofd on a directory cannot be exclusive: 65, shared it can" {
	mkdir d
	refused 65 d "$SEMLOCK" --fcntl d touch ran
	expect_status 0 "$SEMLOCK" --fcntl -s d true
}

@test "posix refuses a descriptor with 64, and says what to use" {
	exec 8<>l
	refused 64 posix "$SEMLOCK" -m posix 8
	[[ $err == *ofd* ]]
	exec 8>&-
}

@test "posix: a supervised command dies with semlock, the only holder" {
	hold_lock -m posix l
	expect_held l posix 0 0
	kill -KILL "${PID[holder]}"
	ended holder 137
	"$PROBE" gone "${COMMAND[holder]}"
	eventually expect_free l posix 0 0
}

@test "posix: the lock stays when the command opens and closes the lock file" {
	fifos holder
	start holder "$SEMLOCK" -m posix l sh -c 'cat l; : >>l; exec "$0" hold holder.up holder.down' "$PROBE"
	ready holder
	expect_held l posix 0 0
	let_go
	expect_free l posix 0 0
}

@test "posix: a daemon that the command leaves behind does not keep the lock" {
	fifos daemon
	PID[daemon]=$$
	: >daemon.out
	: >daemon.err
	expect_status 0 "$SEMLOCK" -m posix l "$PROBE" leave-behind daemon.up daemon.down
	ready daemon
	expect_free l posix 0 0
	release daemon
}

@test "ofd: a daemon that the command leaves behind keeps the lock" {
	fifos daemon
	PID[daemon]=$$
	: >daemon.out
	: >daemon.err
	expect_status 0 "$SEMLOCK" -m ofd l "$PROBE" leave-behind daemon.up daemon.down
	ready daemon
	expect_held l ofd 0 0
	release daemon
}

@test "deadlines hold for every method" {
	starts_many
	often 500
	for method in flock ofd posix; do
		hold_as "$method" -m "$method" l
		expect_status 0 "$PROBE" storm "$often" 4 "$SEMLOCK" -m "$method" -w 0.00001 l true
		expect_out "1 x $often"
		let_go "$method"
	done
}

@test "a method that is not there is refused with 64, and the message names it" {
	refused 64 nosuch "$SEMLOCK" -m nosuch l touch ran
	[ ! -e l ]
}
