#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Which process is alive, which is dead, and which is unknown: the table, and real situations.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

LIVENESS=${LIVENESS:-$SOURCE/build/tests/liveness-check}

# record PID [KEY=VALUE...]: a full record of this system, with some of it changed
record() {
	local pid=$1 pair
	shift
	"$SEMLOCK" -m excl sample cat sample >whole
	{ echo "$pid" && tail -n +2 whole; } >changed
	for pair; do sed -i "s|\b${pair%%=*}=[^ ]*|$pair|" changed; done
	cat changed
}

# judged VERDICT: semlock takes the lock l over ("dead"), or leaves it alone ("held")
judged() {
	local want=1
	if [ "$1" = dead ]; then want=0; fi
	expect_status $want "$SEMLOCK" -n -m excl l true
}

@test "every row of the table, and every format of a record" {
	"$LIVENESS" >rows || complain "$(grep '^not ok' rows)"
	[ "$(grep -c '^ok' rows)" -ge 60 ]
}

@test "a zombie holds nothing" {
	fifos parent
	mkfifo go
	# The child ends only when its parent has become a program that does not wait for the child.
	start parent bash -c 'read -r _ <go & echo $! >zombie; exec "$0" hold parent.up parent.down' "$PROBE"
	ready parent
	pid=$(cat zombie)
	echo >go
	"$PROBE" state "$pid" Z
	echo "$pid" >l
	judged dead
	let_go parent
}

@test "a process whose first thread has ended lives on in the others" {
	fifos threads
	start threads "$PROBE" hold-in-thread threads.up threads.down
	ready threads
	"$PROBE" state "${PID[threads]}" Z
	echo "${PID[threads]}" >l
	judged held
	let_go threads
}

@test "a symlink belongs to its command, even without semlock or first thread" {
	fifos holder
	start holder "$SEMLOCK" -m symlink l "$PROBE" hold-in-thread holder.up holder.down
	ready holder
	"$PROBE" state "${COMMAND[holder]}" Z
	kill -KILL "${PID[holder]}"
	ended holder 137
	expect_status 1 "$SEMLOCK" -n -m symlink l true
	release holder
	"$PROBE" gone "${COMMAND[holder]}"
	expect_status 0 "$SEMLOCK" -n -m symlink l true
}

@test "another PID namespace's /proc proves nothing about a process" {
	without_leak_check
	namespaces --pid --fork
	fifos parent
	fifos holder
	start parent bash -c 'sleep 1000 & echo $! >child; exec "$0" hold parent.up parent.down' "$PROBE"
	ready parent
	# Inside the namespace, the holder has the parent's PID, and the waiter has the child's.
	expect_status 0 unshare --pid --fork --kill-child sh -c '
		echo $(($3 - 2)) >/proc/sys/kernel/ns_last_pid
		"$0" -m symlink l "$1" hold holder.up holder.down &
		until [ -L l ]; do :; done
		echo $(($2 - 1)) >/proc/sys/kernel/ns_last_pid
		"$0" -w .01 -m symlink l true
		echo $? >said
		readlink l >target' "$SEMLOCK" "$PROBE" "$(cat child)" "${COMMAND[parent]}"
	kill "$(cat child)"
	let_go parent
	grep "^${COMMAND[parent]}:" target
	[ "$(cat said)" -eq 1 ]
}

@test "without /proc, a living command without its lock open is not dead" {
	[ -z "${SANITIZED-}" ] || skip "AddressSanitizer reads its options in /proc"
	namespaces --mount
	fifos holder
	start holder "$SEMLOCK" -m excl l "$PROBE" closefrom-then-hold holder.up holder.down
	ready holder
	kill -KILL "${PID[holder]}"
	ended holder 137
	expect_status 1 "$SEMLOCK" -n -m excl l true
	without_proc() { unshare --mount sh -c 'umount -l /proc && exec "$@"' sh "$SEMLOCK" -n -m excl l "$@"; }
	expect_status 1 without_proc touch ran
	[ ! -e ran ]
	release holder
	eventually without_proc touch ran # when it is no zombie any more
}

@test "with another PID namespace's /proc, a process ended there is not ours" {
	without_leak_check
	namespaces --pid --fork
	fifos parent
	fifos holder
	start parent bash -c 'sleep 1000 & echo $! >ended; exec "$0" hold parent.up parent.down' "$PROBE"
	ready parent
	kill "$(cat ended)"
	"$PROBE" state "$(cat ended)" Z
	# Inside the namespace, the holder, whose semlock is killed, has the ended process's PID.
	expect_status 0 unshare --pid --fork --kill-child sh -c '
		echo $(($2 - 2)) >/proc/sys/kernel/ns_last_pid
		"$0" -m symlink l "$1" hold holder.up holder.down &
		read -r _ <>holder.up
		kill -KILL $!
		wait $!
		readlink l >target
		"$0" -n -m symlink l true
		echo $? >said' "$SEMLOCK" "$PROBE" "$(cat ended)"
	let_go parent
	grep "^$(cat ended):" target
	[ "$(cat said)" -eq 1 ]
}

# A start on the edge of a second is printed as one second or as the next.
looks_the_same() {
	expect_status 1 "$SEMLOCK" --who -m symlink l && cp .out here &&
		expect_status 1 unshare --time --boottime=100000 "$SEMLOCK" --who -m symlink l && cmp .out here
}

@test "a process is the same from within another time namespace" {
	namespaces --time --boottime=100000
	hold_lock -m symlink l
	kill -KILL "${PID[holder]}"
	ended holder 137
	expect_status 1 unshare --time --boottime=100000 "$SEMLOCK" -n -m symlink l true
	expect_status 1 unshare --time --boottime=-10 "$SEMLOCK" -n -m symlink l true
	eventually looks_the_same
	release holder
	"$PROBE" gone "${COMMAND[holder]}"
	expect_status 0 "$SEMLOCK" -n -m symlink l true
}

@test "a reused PID is another process" {
	start other sleep 1000
	record "${PID[other]}" start=1 >l
	judged dead
	start=$(sed 's/.*) //' "/proc/${PID[other]}/stat" | cut -d' ' -f20)
	record "${PID[other]}" start="$start" >l
	judged held
}

@test "a record of an earlier boot is dead, of another host unknown" {
	start other sleep 1000
	# Not the sample's start: both may have begun within one tick of the clock.
	record "${PID[other]}" start=1 boot=00000000-0000-0000-0000-000000000000 >l
	judged dead
	record "${PID[other]}" start="$(cut -d' ' -f22 "/proc/${PID[other]}/stat")" boot=00000000-0000-0000-0000-000000000000 >l
	judged held # it lives, with the start of the record: the boot may be named wrongly
	record 99999999 host=elsewhere >l
	judged held
	record 99999999 machine=another >l
	judged held
}

@test "junk, a PID of 0, an empty file: unknown, and left alone" {
	for content in 0 hello '-1' 99999999999999999999; do
		echo "$content" >l
		judged held
		[ "$(cat l)" = "$content" ]
	done
	: >l
	judged held
	touch -d '10 seconds ago' l # after the last boot
	judged held
	head -c 5000000 /dev/zero | tr '\0' 1 >l
	judged held
}

@test "a holder in another PID namespace lives while it has the file flocked" {
	namespaces --pid --fork --mount-proc
	fifos holder
	start holder unshare --pid --fork --kill-child --mount-proc "$SEMLOCK" -m excl l "$PROBE" hold holder.up holder.down
	next_line holder
	judged held
	expect_status 1 "$SEMLOCK" -n -m link l true
	kill -KILL "${PID[holder]}"
	expect_status 0 "$SEMLOCK" -w 60 -m excl l true
}

@test "a killed container leaves its lock to the next, which has another name" {
	namespaces --pid --fork --mount-proc --uts
	for method in excl mkdir; do
		fifos $method
		start $method unshare --pid --fork --kill-child --mount-proc --uts \
			sh -c 'hostname "$1"-one && exec "$0" -m "$1" l "$2" hold "$1".up "$1".down' "$SEMLOCK" $method "$PROBE"
		next_line $method
		expect_status 1 unshare --uts sh -c 'hostname another && exec "$0" -n -m "$1" l true' "$SEMLOCK" $method
		kill -KILL "${PID[$method]}"
		expect_status 0 unshare --pid --fork --mount-proc --uts \
			sh -c 'hostname "$1"-two && exec "$0" -w 60 -m "$1" l true' "$SEMLOCK" $method
		[ ! -e l ]
	done
}

@test "an earlier holder's file that the machine lost the contents of is dead" {
	: >l
	touch -d '20 years ago' l
	judged dead
}

@test "a clock that was set or stood still makes no lock older than the boot" {
	read -r up _ </proc/uptime
	namespaces --time --boottime="-$((${up%.*} - 1))"
	: >l
	touch -d "@$(($(stat -c %Y /dev/null) + 1))" l
	expect_status 1 unshare --time --boottime="-$((${up%.*} - 1))" "$SEMLOCK" -n -m excl l true
	judged held
}

@test "kill \$(cat FILE): a PID file has one number, that of the holder" {
	fifos holder
	start holder "$SEMLOCK" -m excl l "$PROBE" hold holder.up holder.down
	ready holder
	[ "$(tr ' ' '\n' <l | grep -cx '[0-9][0-9]*')" -eq 1 ] || complain "numbers in it:" "$(cat l)"
	for shell in bash dash zsh; do
		command -v $shell >/dev/null || continue
		$shell -c 'kill -CONT $(cat l)' 2>$shell.said || :
		! grep -q 'permit' $shell.said || complain "$(cat $shell.said)"
	done
	release holder
}

# boot_id_of_others: for each method, a command lives on that has closed the lock, and whose semlock was killed; to the next
# one another boot_id is shown
boot_id_of_others() {
	echo 01234567-89ab-cdef-0123-456789abcdef >boot_id
	unshare --mount sh -c 'mount --bind boot_id /proc/sys/kernel/random/boot_id && exec "$@"' \
		sh "$SEMLOCK" -m excl m cp m record
	for method in symlink excl mkdir rename link; do
		rm -rf up down l l.held
		mkfifo up down
		if [ $method = rename ]; then "$SEMLOCK" -m rename --init l true; fi
		"$SEMLOCK" -m $method l "$PROBE" closefrom-then-hold up down &
		semlock=$!
		read -r _ command <>up
		kill -KILL $semlock
		wait $semlock || :
		status=0
		unshare --mount sh -c 'mount --bind boot_id /proc/sys/kernel/random/boot_id && exec "$@"' \
			sh "$SEMLOCK" -n -m $method l touch ran || status=$?
		kill -KILL "$command"
		echo "$method $status" >>seen
	done
}

@test "a boot_id mounted by a container tool does not make a holder dead" {
	namespaces --mount --pid --fork --mount-proc
	export SEMLOCK PROBE
	for place in "" "unshare --mount --pid --fork --mount-proc"; do
		rm -f seen
		$place bash -c "$(declare -f boot_id_of_others); boot_id_of_others" 2>said
		[ "$(cat seen)" = $'symlink 1\nexcl 1\nmkdir 1\nrename 1\nlink 1' ] ||
			complain "$place: $(cat seen said)"
		[ ! -e ran ] || complain "$place: two at once"
		grep -q " boot=- " record || complain "$place: a false boot is recorded: $(cat record)"
	done
}
