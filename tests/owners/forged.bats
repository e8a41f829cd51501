#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Any user can write a record into a lock made of files.  The record gets a process signalled, or a second command
# in, only if root or the named process's own user has written it.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

METHODS="excl link mkdir symlink rename"

prepare() {
	mkdir pub own
	chmod 1777 pub
}

# forge METHOD PID: makes pub/l, a lock whose record names the process PID in every readable field; prints the path of
# the file that carries the record
forge() {
	local start boot pidns
	start=$(sed 's/.*) //' "/proc/$2/stat" | cut -d ' ' -f 20)
	boot=$(cat /proc/sys/kernel/random/boot_id)
	pidns=$(stat -Lc %i /proc/self/ns/pid)
	rm -rf pub/l pub/l.held
	"$SEMLOCK" -m excl own/sample cat own/sample |
		sed -e "1s/.*/$2/" -e "2s/excl/$1/" -e "s/^start=[0-9]*/start=$start/" -e 's/flock=1/flock=0/' >record
	case $1 in
	mkdir) mkdir pub/l && cp record pub/l/pid && echo pub/l ;;
	symlink) ln -s "$2:$start:${boot:0:13}:$pidns@$(uname -n)" pub/l && echo pub/l ;;
	rename) cp record pub/l.held && echo pub/l.held ;;
	link) echo "$2" >pub/l && echo pub/l ;;
	*) cp record pub/l && echo pub/l ;;
	esac
}

# as_another METHOD OBJECT: OBJECT becomes another user's
as_another() {
	chown -hR 65534:65534 "$2"
}

# open_to_all METHOD OBJECT: another user can write to OBJECT; a symbolic link has no mode
open_to_all() {
	[ "$1" = symlink ] || chmod a+w "$2"
}

stops_nobody() {
	local how=$1 method object
	start victim sleep 1000
	for method in $METHODS; do
		object=$(forge "$method" "${PID[victim]}")
		"$how" "$method" "$object"
		[ "$how $method" != "open_to_all symlink" ] || continue
		for option in --replace --toggle --replace=KILL; do
			refused 69 "cannot stop the holder: the lock names process ${PID[victim]}, and" \
				"$SEMLOCK" -m "$method" "$option" pub/l touch ran || return
			kill -0 "${PID[victim]}" || complain "$method $option: signalled" || return
			[ ! -e ran ]
		done
	done
}

# The same record, not forged, is believed: the other tests would prove nothing otherwise.
@test "a record that the process's own user has written, and no other user can write to, is proof" {
	umask 022
	for method in $METHODS; do
		[ "$method" != link ] || continue # a number alone proves nothing
		start victim sleep 1000
		forge "$method" "${PID[victim]}"
		start new "$SEMLOCK" -m "$method" --replace pub/l true
		ended victim 143
		ended new 0
	done
}

@test "a record that its holder has under flock is proof, whichever user may write to it" {
	umask 000
	"$SEMLOCK" -m rename --init pub/l true
	for method in rename excl link mkdir; do
		for way in "" -o; do
			# shellcheck disable=SC2086
			hold_lock $way -m $method pub/l
			expect_status 0 "$SEMLOCK" -m $method --replace pub/l true
			ended holder 143
			rm ./*.up ./*.down
		done
		[ $method != rename ] || rm pub/l
		[ $method = rename ] || expect_status 0 "$SEMLOCK" -m $method pub/l "$SEMLOCK" --nested -m $method pub/l true
	done
}

@test "--replace, --toggle: a record that another user has written gets no process signalled" {
	root_only "to make another user's file"
	stops_nobody as_another
}

runs_sleep() {
	[ "$(cat "/proc/$1/comm")" = sleep ]
}

@test "--replace: a daemon that acts for the forger of a record is not the forger's process" {
	root_only "to make another user's file"
	start victim setpriv --euid=65534 sleep 1000
	eventually runs_sleep "${PID[victim]}"
	for method in excl mkdir symlink rename; do
		object=$(forge $method "${PID[victim]}")
		as_another $method "$object"
		refused 69 "another user can have written that" "$SEMLOCK" -m $method --replace pub/l touch ran
		kill -0 "${PID[victim]}"
		[ ! -e ran ]
	done
}

@test "--replace, --toggle: a record that another user can write to gets no process signalled" {
	stops_nobody open_to_all
}

@test "--replace: another user's file that the process has under flock for another purpose" {
	root_only "to make another user's file"
	for method in excl link mkdir; do
		object=$(forge $method $$)
		as_another $method "$object"
		hold_as victim pub/l
		refused 69 "another user can have written that" "$SEMLOCK" -m $method --replace pub/l touch ran
		let_go victim
		[ ! -e ran ]
		rm ./*.up ./*.down
	done
}

lets_nobody_in() {
	local how=$1 method object
	for method in $METHODS; do
		object=$(forge "$method" $$)
		"$how" "$method" "$object"
		[ "$how $method" != "open_to_all symlink" ] || continue
		for way in "-n --nested" "-w .2 --nested" -n "-w .2"; do
			# shellcheck disable=SC2086 # words
			expect_status 1 "$SEMLOCK" own/other "$SEMLOCK" $way -m "$method" pub/l touch ran || return
			[ ! -e ran ]
		done
		expect_status 124 timeout .5 "$SEMLOCK" own/other "$SEMLOCK" -m "$method" pub/l touch ran || return
		[ ! -e ran ]
	done
}

@test "--nested: a record of another user's making that names an ancestor is no ancestor's lock" {
	root_only "to make another user's file"
	lets_nobody_in as_another
}

@test "--nested: a record that another user can write to is no ancestor's lock" {
	lets_nobody_in open_to_all
}

