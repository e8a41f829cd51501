#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bindfs, a file system in user space: flock(2) excludes through one name only, O_TMPFILE and renaming without
# replacing fail, and a link count stays 1.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

METHODS="excl link symlink"

prepare() {
	root_only "mounts"
	command -v bindfs >/dev/null || skip "no bindfs"
	[ -w /dev/fuse ] || skip "this kernel has no FUSE, or none for us"
	mkdir below on
	bindfs below on || skip "nothing can be mounted here"
	cd on || return
}

tidy() {
	[ -z "${server-}" ] || kill -CONT "$server"
	cd "$BATS_TEST_TMPDIR" || return
	if mountpoint -q on; then umount -l on; fi
}

each() {
	for method in $METHODS; do
		echo "method $method:"
		"$@"
		rm -rf ./l* ./room ./*.up ./*.down ./*.out ./*.err
	done
}

none_hidden() {
	[ -z "$(find . -name '.fuse_hidden*')" ]
}

nothing_left() {
	local left
	# A file that was hidden because it was open goes when the file system hears of the close, which is after close(2).
	eventually none_hidden
	left=$(find . -name '*l*' ! -name '*.*' -o -name '.l*')
	[ -z "$left" ] || complain "left behind: $left"
}

held_and_handed_on() {
	hold_lock -m "$method" l
	expect_status 1 "$SEMLOCK" -n -m "$method" l true
	start second "$SEMLOCK" -m "$method" l true
	let_go
	ended second 0
	nothing_left
}

@test "held, waited for, free again, and nothing left behind" {
	METHODS="$METHODS mkdir" each held_and_handed_on
}

@test "rename is refused: 69, and no command runs" {
	: >l
	for options in -n "-w 5" --init; do
		# shellcheck disable=SC2086 # a list of words
		refused 69 "use -m link or excl" "$SEMLOCK" $options -m rename l touch ran
	done
	refused 69 "use -m link or excl" "$SEMLOCK" --who -m rename l
	[ ! -e ran ]
	[ -z "$(find . -name 'l.*' -o -name '.l*')" ]
}

@test "a file system that hangs does not delay --who of a lock elsewhere" {
	: >open
	cd "$BATS_TEST_TMPDIR"
	exec 7<on/open
	hold_lock l
	server=
	for pid in $(pgrep bindfs); do
		if [ "/proc/$pid/cwd" -ef below ]; then server=$pid; fi
	done
	"$PROBE" pause 1100 # the kernel caches a file's attributes for a second
	kill -STOP "$server"
	expect_status 1 timeout "$PATIENCE" "$SEMLOCK" --who l
	expect_status 1 timeout "$PATIENCE" "$SEMLOCK" -n -v l true
	kill -CONT "$server"
	exec 7<&-
	let_go
}

survives_semlock() {
	hold_lock -m "$method" l
	kill -KILL "${PID[holder]}"
	ended holder 137
	expect_status 1 "$SEMLOCK" -n -m "$method" l true
	kill -KILL "${COMMAND[holder]}"
	"$PROBE" gone "${COMMAND[holder]}"
	if [ "$method" = link ]; then # a bare PID: it could be another host's
		expect_status 1 "$SEMLOCK" -n -m link l true
		touch -d '1 hour ago' l
		expect_status 0 "$SEMLOCK" -n --stale 1m -m link l true
	else
		expect_status 0 "$SEMLOCK" -n -m "$method" l true
	fi
	nothing_left
}

@test "a killed semlock keeps its command's lock; a dead holder's is taken over" {
	METHODS="$METHODS mkdir" each survives_semlock
}

never_two() {
	expect_status 0 "$PROBE" storm 40 8 "$SEMLOCK" -m "$method" l "$PROBE" inside room 20
	expect_out "0 x 40"
	expect_status 0 "$PROBE" verdict room 800
	nothing_left
}

@test "no two commands are ever inside at once" {
	METHODS="$METHODS mkdir" each never_two
}

@test "a kernel lock excludes through the mount alone; -v reports what helps" {
	for method in flock ofd; do
		hold_lock -v -m $method l
		grep -q "^semlock: l: a lock on fuse may be seen by this mount alone: .* -m excl " holder.err || complain "$(cat holder.err)"
		expect_status 1 "$SEMLOCK" -n -m $method l true
		expect_status 0 "$SEMLOCK" -n -m $method ../below/l true
		let_go
		rm -f ./*.up ./*.down
	done
	expect_status 0 "$SEMLOCK" -v -m excl m true
	[[ $err != *"this mount alone"* ]] || complain "$err"
	expect_status 0 "$SEMLOCK" -v ../below/l true
	[[ $err != *"this mount alone"* ]] || complain "$err"
}

@test "commands through the mount and beside it exclude each other" {
	for method in excl symlink; do
		hold_lock -m $method l
		expect_status 1 "$SEMLOCK" -n -m $method ../below/l true
		let_go
		expect_status 0 "$SEMLOCK" -n -m $method ../below/l true
		rm -f ./*.up ./*.down
		hold_lock -m $method ../below/l
		expect_status 1 "$SEMLOCK" -n -m $method l true
		let_go
		expect_status 0 "$SEMLOCK" -n -m $method l true
		rm -f ./*.up ./*.down
	done
}
