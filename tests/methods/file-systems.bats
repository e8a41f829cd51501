#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Every method on real file systems.  If a file system cannot do what a method needs, semlock says so.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

KERNEL="flock ofd posix"
FILES="excl link mkdir symlink rename"

tidy() {
	for place in on under; do
		if mountpoint -q $place; then umount -l $place; fi
	done
}

# on_loop TYPE SIZE [MKFS-OPTION...]: on/ is an empty file system of that type
on_loop() {
	local type=$1 size=$2
	shift 2
	root_only "mounts"
	command -v "mkfs.$type" >/dev/null || skip "no mkfs.$type here"
	truncate -s "$size" image
	"mkfs.$type" "$@" image >mkfs.out 2>&1 || complain "$(cat mkfs.out)" || return
	mkdir on
	mount -o loop -t "$type" image on 2>mount.err || skip "cannot mount $type here: $(head -1 mount.err)"
	chmod 777 on
}

# on_none TYPE [OPTIONS]: on/ is a file system of a type that needs no device
on_none() {
	root_only "mounts"
	mkdir -p on
	mount -t "$1" ${2:+-o "$2"} none on 2>mount.err || skip "cannot mount $1 here: $(head -1 mount.err)"
	chmod 777 on
}

# excludes METHOD: -n is refused, a waiter waits, no two commands overlap, and a dead holder's lock is taken over.
# ("excludes ... ||" turns set -e off: each line has its own return.)
excludes() {
	local method=$1 left
	if [ "$method" = rename ]; then "$SEMLOCK" -m rename --init on/l true || return; fi
	hold_lock -m "$method" on/l || return
	expect_status 1 "$SEMLOCK" -n -m "$method" on/l true || return
	start waiter "$SEMLOCK" -m "$method" on/l true
	"$PROBE" state "${PID[waiter]}" S || return
	let_go || return
	ended waiter 0 || return
	capture "$SEMLOCK" -m "$method" on/l sh -c 'kill -KILL $PPID $$'
	[ "$status" -eq 137 ] || complain "killed, and $status" || return
	expect_status 0 "$SEMLOCK" -w 60 -m "$method" on/l true || return
	expect_status 0 "$PROBE" storm 24 4 "$SEMLOCK" -m "$method" on/l "$PROBE" inside room 20 || return
	expect_status 0 "$PROBE" verdict room 480 || return
	rm -f room
	left=$(find on -mindepth 1 -maxdepth 1 ! -name lost+found ! -name l -printf '%f ')
	[ -z "$left" ] || complain "$method leaves: $left" || return
	if [[ " excl link mkdir symlink " == *" $method "* ]] && [ -e on/l ]; then complain "on/l is left"; fi
	rm -f on/l
}

all_methods() {
	for method in $KERNEL $FILES; do excludes "$method" || complain "$method" || return; done
}

@test "on ext4 every method excludes, and leaves nothing behind" {
	on_loop ext4 16M -q -F
	all_methods
}

@test "on xfs every method excludes, and leaves nothing behind" {
	on_loop xfs 320M -q -f
	all_methods
}

@test "on btrfs every method excludes, and leaves nothing behind" {
	on_loop btrfs 128M -q -f
	all_methods
}

@test "on tmpfs every method excludes, and leaves nothing behind" {
	on_none tmpfs
	all_methods
}

lower_layer() {
	root_only "mounts"
	mkdir under on
	mount -t tmpfs none under 2>mount.err || skip "cannot mount tmpfs here: $(head -1 mount.err)"
	mkdir under/lower under/upper under/work
}

on_overlay() {
	mount -t overlay -o lowerdir=under/lower,upperdir=under/upper,workdir=under/work none on 2>mount.err ||
		skip "cannot mount overlay here: $(head -1 mount.err)"
	chmod 777 on
}

@test "overlayfs: a dead holder's lock in a lower layer is taken over" {
	lower_layer
	"$SEMLOCK" -m rename --init under/lower/rename true
	for method in $FILES; do
		expect_status 137 "$SEMLOCK" -m "$method" "under/lower/$method" sh -c 'echo $$ && kill -KILL $PPID $$'
		"$PROBE" gone "$out"
	done
	on_overlay
	for method in $FILES; do
		expect_status 0 "$SEMLOCK" -n -m "$method" "on/$method" true
		expect_status 0 "$SEMLOCK" -n -m "$method" "on/$method" true
	done
	[ "$(ls -A on)" = rename ]
}

@test "overlayfs, also when the lock file has to be copied up first" {
	lower_layer
	: >under/lower/l
	on_overlay
	hold_lock on/l
	expect_status 1 "$SEMLOCK" -n on/l true
	let_go
	hold_as copier -m ofd on/l # opened for writing: copied up
	expect_status 1 "$SEMLOCK" -n -m posix on/l true
	let_go copier
	all_methods
}

@test "vfat, which has neither hard links nor symbolic links" {
	on_loop vfat 4M
	for method in $KERNEL excl link mkdir rename; do excludes "$method" || complain "$method"; done
	refused 73 on/l "$SEMLOCK" -m symlink on/l touch ran
	[ ! -e ran ]
}

@test "a read-only one: what need not write works, the rest says that it cannot" {
	on_none tmpfs
	: >on/l
	mount -o remount,ro on
	hold_lock on/l
	expect_status 1 "$SEMLOCK" -n on/l true
	let_go
	for method in ofd posix; do
		expect_status 0 "$SEMLOCK" -s -m "$method" on/l true
		refused 73 on/l "$SEMLOCK" -m "$method" on/l touch ran
	done
	for method in $KERNEL $FILES; do
		if [ "$method" = rename ]; then continue; fi
		refused 73 on/new "$SEMLOCK" -m "$method" on/new touch ran
	done
	refused 66 on/new "$SEMLOCK" -m rename on/new touch ran
	refused 73 on/new "$SEMLOCK" -m rename --init on/new touch ran
	[ ! -e ran ]
}

@test "on a full file system existing locks work, and new ones leave nothing" {
	on_none tmpfs size=64k,nr_inodes=4
	: >on/l
	"$SEMLOCK" -m rename --init on/token true
	: >on/inodes
	dd if=/dev/zero of=on/l bs=64k count=1 2>dd.err || true
	for method in $KERNEL; do expect_status 0 "$SEMLOCK" -m "$method" on/l true; done
	for method in $KERNEL excl link mkdir symlink; do
		refused 73 on/new "$SEMLOCK" -m "$method" on/new touch ran
	done
	refused 73 on/token "$SEMLOCK" -m rename on/token touch ran
	[ ! -e ran ]
	[ "$(find on -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" = "inodes l token " ]
	rm on/inodes
	: >on/l
	expect_status 0 "$SEMLOCK" -m rename on/token true
}
