#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --held: has this process inherited the lock?
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "0 under the lock, 1 beside it, under another lock, and without the file" {
	expect_status 1 "$SEMLOCK" --held l
	[ ! -e l ]
	expect_status 0 "$SEMLOCK" l "$SEMLOCK" --held l
	expect_status 1 "$SEMLOCK" --held l
	expect_status 1 "$SEMLOCK" other "$SEMLOCK" --held l
	hold_lock l
	expect_status 1 "$SEMLOCK" --held l
	let_go
}

@test "a lock of each method that is handed down; 1 for those that are not" {
	"$SEMLOCK" -m rename --init rename true
	for method in flock ofd excl link mkdir rename; do
		expect_status 0 "$SEMLOCK" -m $method $method "$SEMLOCK" --held -m $method $method
	done
	for method in posix symlink; do
		expect_status 1 "$SEMLOCK" -m $method $method "$SEMLOCK" --held -m $method $method
	done
	expect_status 1 "$SEMLOCK" -o l "$SEMLOCK" --held l
	expect_status 0 "$SEMLOCK" --fcntl --start 10 --length 5 l "$SEMLOCK" --held --start 11 --length 2 l
	expect_status 1 "$SEMLOCK" --fcntl --start 10 --length 5 l "$SEMLOCK" --held --start 14 --length 2 l
}

@test "less than the lock is not the lock: shared, or a slot without -j" {
	expect_status 1 "$SEMLOCK" -s l "$SEMLOCK" --held l
	expect_status 1 "$SEMLOCK" -j 3 l "$SEMLOCK" --held l
	expect_status 0 "$SEMLOCK" -j 3 l "$SEMLOCK" --held -j 3 l
}

@test "-s: a shared or exclusive lock is enough, if it has all bytes asked for" {
	for method in flock ofd; do
		expect_status 1 "$SEMLOCK" --held -s -m $method l
		expect_status 0 "$SEMLOCK" -s -m $method l "$SEMLOCK" --held -s -m $method l
		expect_status 0 "$SEMLOCK" -m $method l "$SEMLOCK" --held -s -m $method l
		expect_status 0 "$SEMLOCK" -m $method l "$SEMLOCK" --held -x -m $method l
		expect_status 1 "$SEMLOCK" -s -m $method l "$SEMLOCK" --held -x -m $method l
		expect_status 1 "$SEMLOCK" -s -m $method other "$SEMLOCK" --held -s -m $method l
	done
	expect_status 1 "$SEMLOCK" -s l "$SEMLOCK" --held -s -m ofd l
	expect_status 0 "$SEMLOCK" -s --fcntl --start 10 --length 5 l \
		"$SEMLOCK" --held -s --fcntl --start 11 --length 2 l
	expect_status 1 "$SEMLOCK" -s --fcntl --start 10 --length 5 l \
		"$SEMLOCK" --held -s --fcntl --start 14 --length 2 l
}

@test "a script that takes a shared lock on itself does so once" {
	cat >script <<-END
		#!/bin/sh
		"$SEMLOCK" --held -s "\$0" || exec "$SEMLOCK" -s "\$0" "\$0" again "\$@"
		echo "\$*"
	END
	chmod 755 script
	run timeout "$PATIENCE" ./script
	[ "$status" -eq 0 ]
	[ "$output" = again ]
}

# In the real place of --name: removed after the test.
tidy() { rm -f "$(name_directory)/held-$$"; }

@test "--name, and several locks" {
	expect_status 0 "$SEMLOCK" --name="held-$$" "$SEMLOCK" --held --name="held-$$"
	expect_status 1 "$SEMLOCK" --held --name="held-$$"
	expect_status 0 "$SEMLOCK" -f a b sh -c '"$0" --held a && "$0" --held b' "$SEMLOCK"
}

@test "a script that a daemon starts under the old variable locks itself again" {
	mkfifo go
	cat >script <<-END
		#!/bin/sh
		"$SEMLOCK" --held "\$0" || exec "$SEMLOCK" -n "\$0" "\$0" "\$@"
		"\$@"
	END
	cat >daemon <<-'END'
		#!/bin/bash
		for fd in /proc/$$/fd/*; do
			fd=${fd##*/}
			if [ "$fd" -gt 2 ] && [ "$fd" -ne 255 ]; then eval "exec $fd>&-"; fi
		done
		echo "$SEMLOCK_LOCK" >variable
		read -r _ <go
		./script touch ran
		echo $? >ended
	END
	chmod 755 script daemon
	# shellcheck disable=SC2016 # the inner shell's
	expect_status 0 ./script sh -c 'setsid ./daemon </dev/null >/dev/null 2>&1 &
		until [ -s variable ]; do :; done'
	eventually "$SEMLOCK" -n ./script true
	hold_lock ./script
	echo >go
	eventually test -s ended
	[ "$(cat variable)" = ./script ]
	[ "$(cat ended)" -eq 1 ] || complain "the daemon's script ended with $(cat ended)"
	[ ! -e ran ] || complain "the daemon's script ran beside another holder"
	let_go
}

@test "it only asks: what does not go with it is 64, and nothing is made or run" {
	for words in "l true" "-n l" "-w 1 l" "-s -j 2 l" "-F l" "--who l" "--hold l" ""; do
		# shellcheck disable=SC2086 # words
		expect_status 64 "$SEMLOCK" --held $words
	done
	[ ! -e l ]
}
