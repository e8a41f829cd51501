#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks made of files, in a place that another user has prepared: nothing hangs, nothing is followed, nothing is
# spoilt, and a lock that cannot be judged is held.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

# record_of METHOD: where METHOD's record is
record_of() {
	case $1 in
	mkdir) echo l/pid ;;
	rename) echo l.held ;;
	*) echo l ;;
	esac
}

# left_alone METHOD: semlock finds the lock held at once, also with --stale, and does not change it
left_alone() {
	local before
	before=$(ls -lLRi l*)
	echo "$1:" "$before"
	expect_status 1 "$SEMLOCK" -n --stale 1000d -m "$1" l touch ran
	expect_status 1 "$SEMLOCK" -w .01 -m "$1" l touch ran
	[ "$before" = "$(ls -lLRi l*)" ]
	[ ! -e ran ]
	rm -rf l l.held
}

@test "5 MB of junk for a record" {
	head -c 5000000 /dev/zero | tr '\0' 1 >junk
	for method in excl link mkdir rename; do
		[ $method != mkdir ] || mkdir l
		ln junk "$(record_of $method)"
		left_alone $method
	done
}

@test "a target of 4,000 bytes" {
	ln -s "$(head -c 4000 /dev/zero | tr '\0' 7)" l
	expect_status 1 "$SEMLOCK" -n -m symlink l touch ran
	expect_status 1 "$SEMLOCK" -w .01 -m symlink l touch ran
	[ -L l ] && [ ! -e ran ]
}

@test "a FIFO, or a link that leads elsewhere, for the record in a directory" {
	echo precious >victim
	for object in fifo link directory; do
		mkdir l
		case $object in
		fifo) mkfifo l/pid ;;
		link) ln -s ../victim l/pid ;;
		directory) mkdir l/pid ;;
		esac
		left_alone mkdir
	done
	[ "$(cat victim)" = precious ]
}

@test "a FIFO, a directory or a link where a token is that was renamed away" {
	for object in "mkfifo" "mkdir" "ln -s victim"; do
		echo precious >victim
		$object l.held
		refused 66 "l" "$SEMLOCK" -n -m rename l touch ran
		[ "$(cat victim)" = precious ]
		[ ! -e ran ]
		rm -rf l.held
	done
}

@test "a FIFO, a directory, a link or a file as symlink's guard does no harm" {
	for object in "mkfifo" "mkdir" "ln -s victim" "touch"; do
		echo precious >victim
		$object .l.guard
		expect_status 0 "$SEMLOCK" -m symlink l true
		[ ! -L l ]
		ln -s 99999999:1:x:1@x l
		expect_status 1 "$SEMLOCK" -n -m symlink l touch ran
		[ "$(cat victim)" = precious ]
		[ ! -e ran ]
		rm -rf l .l.guard
	done
}

@test "a lock that may not be read: held" {
	root_only "needs two users"
	mkdir open
	chmod 777 open
	cd open || return
	for method in excl link mkdir; do
		[ $method != mkdir ] || mkdir -m 000 l
		[ $method = mkdir ] || (umask 777 && echo 99999999 >l)
		expect_status 1 as_nobody "$SEMLOCK" -n --stale .001 -m $method l touch ran
		expect_status 1 as_nobody "$SEMLOCK" -w .01 -m $method l touch ran
		[ -e l ]
		[ ! -e ran ]
		rm -rf l
	done
	: >l.held
	chmod 000 l.held
	refused 66 "Permission denied" as_nobody "$SEMLOCK" -n -m rename l touch ran
}

@test "another user's lock in a sticky directory: held, and no waiter spins" {
	root_only "needs two users"
	mkdir sticky
	chmod 1777 sticky
	for method in excl link mkdir symlink rename; do
		cd sticky || return
		[ $method != rename ] || "$SEMLOCK" -m rename --init --mode 666 l true
		capture "$SEMLOCK" -m $method l sh -c 'echo $$ && kill -KILL $PPID $$'
		"$PROBE" gone "$out"
		expect_status 1 as_nobody "$SEMLOCK" -n -m $method l touch ran
		expect_status 1 as_nobody "$SEMLOCK" -w .2 -m $method l touch ran
		[ ! -e ran ]
		expect_status 0 "$SEMLOCK" -n -m $method l true
		rm -f l l.held
		cd ..
	done
}
