#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Users that share a lock share its queue, and other users cannot reach the queue.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# Other users can reach this directory, unlike a test's own.
prepare() {
	place=$(mktemp -d /tmp/semlock-users.XXXXXX)
	chmod 755 "$place"
	: >"$place/l"
	rm -f "$(queue_of "$place/l")"
}

tidy() {
	[ ! -e "$place/l" ] || rm -f "$(queue_of "$place/l")"
	rm -rf "$place"
}

# queue_by UID[:GID] NAME ARGS...: queue_as, by the user UID without any other group (but GID)
queue_by() {
	local user=$1 name=$2
	shift 2
	fifos "$name"
	chmod 666 "$name.up" "$name.down"
	start "$name" setpriv --reuid="${user%:*}" --regid="${user%:*}" --groups="${user#*:}" \
		"$SEMLOCK" "$@" "$PROBE" hold "$name.up" "$name.down"
	"$PROBE" blocked "${PID[$name]}"
}

# queue_is MODE [OWNER]: the queue has this mode, and this owner
queue_is() {
	local is
	is=$(stat -c "%a${2:+ %u}" "$(queue_of "$place/l")")
	[ "$is" = "$*" ] || complain "the queue is $is instead of $*"
}

# opens LOCK DIRECTORY QUEUE: if the lock and its directory have these modes, the queue has mode QUEUE
opens() {
	chmod "$1" "$place/l"
	chmod "$2" "$place"
	hold_lock "$place/l"
	queue_as waiter "$place/l"
	queue_is "$3"
	let_go
	ready waiter
	let_go waiter
	rm ./*.up ./*.down
}

@test "the queue is as open as the lock and the directories above it" {
	opens 600 755 600
	opens 640 755 660
	opens 644 755 666
	opens 644 700 600
	opens 644 750 660
	opens 640 700 600
	opens 640 750 660
	opens 666 711 666
	if [ "$(id -u)" -eq 0 ]; then
		chgrp 65534 "$place"
		opens 640 750 600 # the lock and its directory have two groups
		opens 640 711 660
	fi
}

@test "waiters of two users are served in order, even if some are killed" {
	root_only "to be two users"
	chmod 666 "$place/l"
	hold_lock "$place/l"
	queue_by 65534 one "$place/l"
	queue_is 666
	queue_by 1 two -s "$place/l"
	queue_by 65534 killed "$place/l"
	queue_by 1 late "$place/l"
	queue_as three -s "$place/l"
	kill -KILL "${PID[killed]}"
	ended killed 137
	let_go
	ready one
	for name in two late three; do "$PROBE" blocked "${PID[$name]}"; done
	let_go one
	ready two
	for name in late three; do "$PROBE" blocked "${PID[$name]}"; done # a reader behind the writer
	let_go two
	ready late
	"$PROBE" blocked "${PID[three]}"
	let_go late
	ready three
	let_go three
}

@test "the queue that one member of the lock's group made serves the others" {
	root_only "to be two users"
	chgrp 7 "$place/l"
	chmod 660 "$place/l"
	hold_lock "$place/l"
	queue_by 65534:7 one "$place/l"
	queue_is 660 65534
	queue_by 1:7 two "$place/l"
	find "/proc/${PID[two]}/fd" -lname "$(queue_of "$place/l")" | grep -q . || complain "it waits outside of the queue"
	let_go
	ready one
	"$PROBE" blocked "${PID[two]}"
	let_go one
	ready two
	let_go two
}

@test "a killed user's queue serves the next, and readers starve no writer" {
	root_only "to be two users"
	chmod 666 "$place/l"
	hold_as reader -s "$place/l"
	queue_by 65534 killed "$place/l"
	kill -KILL "${PID[killed]}"
	ended killed 137
	queue_is 666 65534
	queue_by 1 writer "$place/l"
	queue_as late -s "$place/l"
	queue_is 666 65534
	let_go reader
	ready writer
	"$PROBE" blocked "${PID[late]}"
	let_go writer
	ready late
	let_go late
}

# in_turn NAME ARGS...: waits for the lock; its command notes NAME, and that it is alone
in_turn() {
	start "$1" "$SEMLOCK" "${@:2}" sh -c 'mkdir inside && echo "$0" >>order && rmdir inside' "$1"
	"$PROBE" blocked "${PID[$1]}"
}

# the_queue FORMAT: stat(1) of the file that $pattern matches
the_queue() {
	# shellcheck disable=SC2086 # a pattern
	stat -c "$1" $pattern
}

# two_queues FILE PATTERN ARGS...: waiters for the lock ARGS queue in the file of PATTERN; the mode of FILE changes, and
# others queue in another file of that name
two_queues() {
	local file=$1 pattern=$2 before since now ordered=(before{1,2,3})
	shift 2
	# A directory of another test, removed by now, may have had this one's inode number.
	# shellcheck disable=SC2086 # a pattern
	rm -f order $pattern
	hold_lock "$@"
	in_turn before1 "$@"
	read -r since _ </proc/uptime
	for i in 2 3; do in_turn before$i "$@"; done
	before=$(the_queue %i)
	chmod 700 "$file"
	for i in 1 2 3; do in_turn after$i "$@"; done
	for name in before1 after1; do # is the last in the kernel's order then
		kill -STOP "${PID[$name]}"
		"$PROBE" state "${PID[$name]}" T
		kill -CONT "${PID[$name]}"
		"$PROBE" blocked "${PID[$name]}"
	done
	[ "$(the_queue %i)" -ne "$before" ] || complain "the queue is as it was" || return
	[ "$(the_queue %a)" = 600 ] || complain "the queue is $(the_queue %a)" || return
	let_go
	read -r now _ </proc/uptime
	for name in {before,after}{1..3}; do ended "$name" 0 || return; done
	# A second after they came, those behind the first follow the name: the kernel's order decides between it and them.
	[ $((${now/./} - ${since/./})) -lt 90 ] || ordered=(before{2,3})
	[ "$(grep -F "$(printf '%s\n' "${ordered[@]}")" order | paste -sd' ')" = "${ordered[*]}" ] || complain "$(cat order)" || return
	[ "$(grep after order | paste -sd' ')" = "$(echo after{1..3})" ] || complain "$(cat order)" || return
	rm ./*.up ./*.down
}

@test "the lock's mode changes during waits: all are served, queues in order" {
	chmod 644 "$place/l"
	two_queues "$place/l" "$(queue_of "$place/l")" "$place/l"
	chmod 1777 "$place"
	two_queues "$place" "$(queue_of "$place")-*" -m excl "$place/x"
}

@test "a third user's queue of another mode is removed, or not used" {
	root_only "to be two users"
	local queue
	queue=$(queue_of "$place/l")
	chmod 600 "$place/l"
	chown 1 "$place/l"
	as_nobody touch "$queue"
	chmod 666 "$queue"
	fifos blocker
	chmod 666 blocker.up blocker.down
	start blocker setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$PROBE" fcntl-hold "$queue" ofd write 0 0 blocker.up blocker.down
	ready blocker
	fifos holder
	chmod 666 holder.up holder.down
	start holder setpriv --reuid=1 --regid=1 --clear-groups \
		"$SEMLOCK" "$place/l" "$PROBE" hold holder.up holder.down
	ready holder
	queue_by 1 first "$place/l"
	queue_is 666 65534
	expect_status 1 setpriv --reuid=1 --regid=1 --clear-groups "$SEMLOCK" -n "$place/l" true
	let_go
	ready first
	queue_as second "$place/l" # root's waiter finds the queue owned by the lock's owner
	queue_is 600 1
	queue_by 1 third "$place/l"
	let_go first
	ready second
	"$PROBE" blocked "${PID[third]}"
	let_go second
	ready third
	let_go third
	[ ! -e "$queue" ] || complain "its owner, the last to leave, has not removed it"
	let_go blocker
}

@test "a user's own queue with too wide a mode, of a reused inode, is removed" {
	chmod 600 "$place/l"
	: >"$(queue_of "$place/l")"
	chmod 666 "$(queue_of "$place/l")"
	expect_status 0 "$SEMLOCK" -n "$place/l" true
	[ ! -e "$(queue_of "$place/l")" ] || complain "it is still there"
	opens 600 755 600
}

@test "the queue of a lock made of files is as open as its directory" {
	local queue
	for mode in "777 666" "775 660" "755 600" "1777 666"; do
		chmod "${mode% *}" "$place"
		hold_lock -m mkdir "$place/d"
		queue_as waiter -m mkdir "$place/d"
		queue=$(echo "$(queue_of "$place")"-*)
		[ "$(stat -c %a "$queue")" = "${mode#* }" ] || complain "$mode: $(stat -c %a "$queue")"
		let_go
		ready waiter
		let_go waiter
		rm ./*.up ./*.down
	done
}
