#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Lock paths that another user has prepared: nothing hangs, nothing is followed, nothing is spoilt.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

tidy() {
	if [ -n "$regular" ]; then echo "$regular" >/proc/sys/fs/protected_regular; fi
	if [ -n "$symlinks" ]; then echo "$symlinks" >/proc/sys/fs/protected_symlinks; fi
}

# protect regular|symlinks VALUE: sets the kernel's own protection for the length of one test.
protect() {
	root_only "sets fs.protected_$1"
	exec 9</proc/sys/fs # another run of these tests has to wait: it would set the value back
	"$SEMLOCK" -w 120 9
	if [ "$1" = regular ]; then regular=$(cat "/proc/sys/fs/protected_$1"); fi
	if [ "$1" = symlinks ]; then symlinks=$(cat "/proc/sys/fs/protected_$1"); fi
	echo "$2" >"/proc/sys/fs/protected_$1"
}

shared_directory() {
	mkdir pub
	chmod 1777 pub
}

@test "a FIFO is refused with 66 at once" {
	mkfifo fifo
	refused 66 fifo "$SEMLOCK" fifo touch ran
	refused 66 fifo "$SEMLOCK" -n fifo touch ran
	refused 66 fifo "$SEMLOCK" -w 600 fifo touch ran
	refused 66 "a FIFO, or a device without a driver" "$SEMLOCK" --fcntl fifo touch ran
	refused 66 "a FIFO, or a device without a driver" "$SEMLOCK" -m posix fifo touch ran
	[ ! -e ran ]
}

@test "a socket is refused with 66" {
	"$PROBE" socket sock
	refused 66 sock "$SEMLOCK" -n sock touch ran
	[ ! -e ran ]
}

@test "another user's link planted in a world-writable directory gives 66" {
	protect symlinks 0
	shared_directory
	echo precious >victim
	ln -s "$PWD/victim" pub/l
	ln -s "$PWD/made" pub/dangling
	chown -h 65534:65534 pub/l pub/dangling
	refused 66 pub/l "$SEMLOCK" pub/l touch ran
	refused 66 pub/l "$SEMLOCK" --fcntl pub/l touch ran
	refused 66 pub/dangling "$SEMLOCK" pub/dangling touch ran
	[ "$(cat victim)" = precious ]
	[ ! -e made ]
	[ ! -e ran ]
}

@test "such a link is refused with the kernel's protection too" {
	protect symlinks 1
	shared_directory
	ln -s "$PWD/made" pub/l
	chown -h 65534:65534 pub/l
	refused 66 pub/l "$SEMLOCK" pub/l touch ran
	[ ! -e made ]
}

@test "a link in a link's directory is looked at too" {
	protect symlinks 0
	shared_directory
	ln -s "$PWD/made" pub/evil
	chown -h 65534:65534 pub/evil
	ln -s pub/evil honest
	refused 66 honest "$SEMLOCK" honest touch ran
	[ ! -e made ]
}

@test "in such a directory, one's own, root's and the owner's links work" {
	shared_directory
	: >target
	chmod 666 target
	ln -s ../target pub/l
	hold_lock pub/l
	expect_held target
	let_go
	expect_status 0 as_nobody "$SEMLOCK" pub/l true
	if [ "$(id -u)" -eq 0 ]; then
		chown 65534 pub
		ln -s ../target pub/theirs
		chown -h 65534:65534 pub/theirs
		expect_status 0 "$SEMLOCK" pub/theirs true
		ln -s ../target pub/roots
		expect_status 0 as_nobody "$SEMLOCK" pub/roots true
	fi
}

# A user that may write there may replace the target as well: to refuse the link protects nothing.
@test "in a world-writable directory without the sticky bit links are followed" {
	root_only "to be two users"
	mkdir -m 777 pub
	: >target
	ln -s ../target pub/l
	chown -h 65534:65534 pub/l
	expect_status 0 "$SEMLOCK" pub/l true
}

@test "an ordinary directory's link is followed, and creates what it names" {
	mkdir sub
	ln -s sub/target l
	expect_status 0 "$SEMLOCK" l true
	[ -f sub/target ]
	[ -L l ]
	hold_lock l
	expect_held sub/target
	expect_status 1 "$SEMLOCK" -n sub/target true
	let_go
}

@test "links that lead in a circle are refused with 66" {
	ln -s b a
	ln -s a b
	refused 66 a "$SEMLOCK" a touch ran
	[ ! -e ran ]
}

@test "a file is never cut short or written to, by any method" {
	echo precious >l
	for how in '' -s '-m ofd' '-m ofd -s' '-m posix' '-m posix -s' -o -F; do
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" $how l true
		[ "$(cat l)" = precious ]
	done
	hold_lock l
	expect_status 1 "$SEMLOCK" -n l true
	expect_status 1 "$SEMLOCK" -w .01 l true
	let_go
	[ "$(cat l)" = precious ]
}

@test "another user's file in an open directory locks under protected_regular" {
	protect regular 2
	shared_directory
	: >pub/l
	chmod 666 pub/l
	chown 65534:65534 pub/l
	expect_status 0 "$SEMLOCK" pub/l true
	expect_status 0 "$SEMLOCK" -s pub/l true
	expect_status 0 setpriv --reuid=65533 --regid=65533 --clear-groups "$SEMLOCK" pub/l true
	system=$(system_flock)
	[ -z "$system" ] || expect_status 66 "$system" pub/l true
}

@test "the lock is never descriptor 0, 1 or 2, whatever was closed" {
	for closed in 0 1 2 "0 1" "0 2" "1 2" "0 1 2"; do
		for option in '' -F '-m ofd'; do
			# shellcheck disable=SC2086
			expect_status 0 "$PROBE" with-closed $closed -- "$SEMLOCK" $option l "$PROBE" fds list
			grep -q "^[3-9][0-9]* $PWD/l\$" list || complain "the lock is not among:" "$(cat list)"
			! grep "^[012] $PWD/l\$" list || complain "closed $closed, option $option: $(cat list)"
		done
	done
}

@test "what was closed for semlock is closed for the command" {
	expect_status 0 "$PROBE" with-closed 0 1 2 -- "$PROBE" fds bare
	expect_status 0 "$PROBE" with-closed 0 1 2 -- "$SEMLOCK" -o l "$PROBE" fds list
	diff <(grep '^[012] ' bare) <(grep '^[012] ' list)
}

@test "with standard error closed, no message is written into the lock file" {
	echo precious >l
	hold_lock l
	expect_status 1 "$PROBE" with-closed 0 1 2 -- "$SEMLOCK" -v -n l true
	expect_status 127 "$PROBE" with-closed 0 1 2 -- "$SEMLOCK" -v other nosuch
	let_go
	[ "$(cat l)" = precious ]
	[ ! -s other ]
}

@test "a terminal as a lock never becomes the controlling one; /dev/full works" {
	expect_status 0 "$SEMLOCK" /dev/full true
	expect_status 0 setsid -w "$SEMLOCK" /dev/ptmx sh -c '! (: </dev/tty) 2>/dev/null'
}

@test "a queue file that another user prepared costs order and nothing else" {
	root_only "prepares a file as another user"
	[ -d /dev/shm ] || skip "no /dev/shm"
	: >l
	chmod 666 l
	hold_lock l
	queue_as second l
	queue=$(queue_of l)
	[ -f "$queue" ]
	let_go
	ready second
	let_go second
	rm -f "$queue"
	mkfifo "$queue"
	chown 65534 "$queue"
	hold_as third l
	expect_status 1 "$SEMLOCK" -n l true
	expect_status 1 "$SEMLOCK" -w .05 l true
	queue_as fourth l
	let_go third
	ready fourth
	let_go fourth
	rm -f "$queue"
	ln -s "$PWD/elsewhere" "$queue"
	chown -h 65534 "$queue"
	hold_as fifth l
	expect_status 1 "$SEMLOCK" -w .05 l true
	let_go fifth
	rm -f "$queue"
	[ ! -e elsewhere ]
}

@test "a symbolic link that is replaced during the look is looked at again" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	: >l
	ln -s l link
	for error in ENOENT EINVAL; do
		expect_status 0 strace -qq -o trace -e inject=readlink,readlinkat:error=$error:when=1 "$SEMLOCK" link true
		grep -q INJECTED trace || complain "no link was read"
	done
	refused 66 "Input/output error" strace -qq -o trace -e inject=readlink,readlinkat:error=EIO:when=1+ "$SEMLOCK" link true
}

@test "root's link in another user's sticky directory is followed" {
	others_may_run
	protect symlinks 1
	shared_directory
	chown 65533 pub
	mkdir open && chmod 777 open
	ln -s ../open/l pub/link
	expect_status 0 timeout "$PATIENCE" setpriv --reuid=65534 --regid=65534 --clear-groups "$SEMLOCK" -w 30 pub/link true
	expect_status 0 timeout "$PATIENCE" setpriv --reuid=65534 --regid=65534 --clear-groups "$SEMLOCK" -n pub/link true
	[ -f open/l ]
}
