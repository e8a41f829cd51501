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
	symlink) ln -s "$2:$start:${boot:0:13}:$pidns:$(sed -n 's/.* semlock=//p' record)@$(uname -n)" pub/l && echo pub/l ;;
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
@test "a record that only its process's own user can write is proof" {
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

@test "a record that its holder has under flock is proof, whoever can write it" {
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

@test "--replace, --toggle: a record that another user wrote signals no process" {
	root_only "to make another user's file"
	stops_nobody as_another
}

@test "--replace: a daemon acting for a record's forger is not the forger's" {
	root_only "to make another user's file"
	start victim setpriv --euid=65534 sleep 1000
	eventually runs "${PID[victim]}" sleep
	for method in excl mkdir symlink rename; do
		object=$(forge $method "${PID[victim]}")
		as_another $method "$object"
		refused 69 "another user may have written that" "$SEMLOCK" -m $method --replace pub/l touch ran
		kill -0 "${PID[victim]}"
		[ ! -e ran ]
	done
}

@test "--replace, --toggle: a record that others can write signals no process" {
	stops_nobody open_to_all
}

@test "--replace: a process that flocks another user's forged file lives on" {
	root_only "to make another user's file"
	for method in excl link mkdir; do
		object=$(forge $method $$)
		as_another $method "$object"
		hold_as victim pub/l
		refused 69 "another user may have written that" "$SEMLOCK" -m $method --replace pub/l touch ran
		let_go victim
		[ ! -e ran ]
		rm ./*.up ./*.down
	done
}

tidy() {
	[ -z "${SHARED-}" ] || rm -rf "$SHARED"
}

# other_user_holds LOCK NAME: a process of another user that calls itself NAME holds LOCK, which is root's
other_user_holds() {
	SHARED=$(mktemp -d /tmp/semlock-forged.XXXXXX) # the other user can look at this directory, unlike the test's own
	chmod 755 "$SHARED"
	ln -s "$(command -v sleep)" "$SHARED/$2"
	exec 9<"$1"
	start forger setpriv --reuid=54321 --regid=54321 --clear-groups \
		sh -c '"$0" 9 && exec "$@"' "$SEMLOCK" "$SHARED/$2" 1000
	exec 9<&-
	eventually runs "${PID[forger]}" "$2"
}

@test "a placeholder's name, forged by another user, names no innocent process" {
	root_only "to be another user"
	: >l
	chmod 644 l
	start victim sleep 1000
	other_user_holds l "semlock>${PID[victim]}"
	expect_status 1 "$SEMLOCK" --who l
	[[ $out == *" ${PID[forger]} "* && $out != *" ${PID[victim]} "* ]] || complain "$out" || return
	refused 1 "held by ${PID[forger]} " "$SEMLOCK" -v -n l true
	refused 69 "cannot stop the holder: process ${PID[forger]} (" "$SEMLOCK" -w 60 --replace l true
	kill -0 "${PID[victim]}"
}

@test "a hold that root takes for another user's process names that process" {
	root_only "to be another user"
	start owner setpriv --reuid=54321 --regid=54321 --clear-groups sleep 1000
	eventually runs "${PID[owner]}" sleep
	expect_status 0 "$SEMLOCK" --hold="${PID[owner]}" --detach l
	expect_status 1 "$SEMLOCK" --who l
	[[ $out == *" ${PID[owner]} "* ]] || complain "$out"
	kill -KILL "${PID[owner]}"
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

@test "--nested: another user's record that names an ancestor proves nothing" {
	root_only "to make another user's file"
	lets_nobody_in as_another
}

@test "--nested: a record that another user can write to is no ancestor's lock" {
	lets_nobody_in open_to_all
}

