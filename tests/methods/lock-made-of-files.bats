#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# excl, link, mkdir, rename and symlink: what a user sees of a lock that is made of files.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/made-of-files

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}
# nothing_left: the directory is empty, but for rename's token
nothing_left() {
	rm -f ./*.up ./*.down ./*.out ./*.err .out .err order
	local left
	left=$(ls -A)
	if [ "$method" = rename ]; then [ "$left" = l ]; else [ -z "$left" ]; fi || complain "left behind: $left"
}

recorded() {
	case $method in
	symlink) readlink l | sed 's/:.*//' ;;
	mkdir) head -n 1 l/pid ;;
	rename) head -n 1 l.held ;;
	*) head -n 1 l ;;
	esac
}

held_waited_for_and_free() {
	hold_lock -m "$method" l
	expect_status 1 "$SEMLOCK" -n -m "$method" l touch ran
	expect_status 7 "$SEMLOCK" -E 7 -w .01 -m "$method" l touch ran
	[ ! -e ran ]
	start second "$SEMLOCK" -m "$method" l true
	let_go
	ended second 0
	expect_status 0 "$SEMLOCK" -n -m "$method" l true
	expect_silent
	nothing_left
}

@test "held, waited for, free again, and nothing left behind" {
	each held_waited_for_and_free
}

names_the_command() {
	hold_lock -m "$method" l
	[ "$(recorded)" = "${COMMAND[holder]}" ] || complain "recorded: $(recorded)" "command: ${COMMAND[holder]}"
	let_go
}

@test "the record names the command" {
	each names_the_command
}

killed_semlock() {
	hold_lock -m "$method" l
	kill -KILL "${PID[holder]}"
	ended holder 137
	expect_status 1 "$SEMLOCK" -n -m "$method" l true
	case $method in # a process of another PID namespace does not know the command, but its flock
	rename) expect_held l.held ;;
	symlink) ;;
	*) expect_held l ;;
	esac
	start second "$SEMLOCK" -w 60 -m "$method" l true
	release holder
	ended second 0
	nothing_left
}

ender_stands_or_is_gone() {
	grep -q '^State:.T' "/proc/${PID[ender]}/status" || [ ! -e "/proc/${PID[ender]}" ]
} 2>/dev/null

# named_until_released STATUS ARGS...: where semlock ARGS is stopped before its release, the lock names a process
named_until_released() {
	local want=$1 looks=0
	shift
	SEMLOCK_CRASH="command.ended:stop publish.release:stop symlink.release:stop" \
		start ender "$CRASHABLE_SEMLOCK" -m "$method" "$@"
	while eventually ender_stands_or_is_gone && [ -e "/proc/${PID[ender]}" ]; do
		kill -0 "$(recorded)" || complain "$method $*: the lock names process $(recorded), which is not there"
		looks=$((looks + 1))
		kill -CONT "${PID[ender]}"
	done
	[ $looks -gt 0 ] || [ "$method $want" = 'rename 127' ] # which has no point before its release
	ended ender "$want"
	nothing_left
}

named_to_the_end() {
	named_until_released 0 l true
	named_until_released 3 --min-hold .01 l sh -c 'exit 3'
	named_until_released 137 l sh -c 'kill -KILL $$'
	named_until_released 127 l ./not-there
	[ "$method" = rename ] || named_until_released 0 -f l k true
}

@test "a breaker of dead locks finds the command there until the release" {
	each named_to_the_end
}

# look_on: look.out says what a program finds that looks at the lock, until it has been there and is gone
look_on() {
	start look python3 "$SOURCE/tests/lib/pid_file.py" "$method" l
	eventually grep -q seen look.out
}

looked_on() {
	ended look 0
	[ "$(cat look.out)" = seen ] || complain "$method: the lock named a process that had ended"
	nothing_left
}

# looked_at_while STATUS PREFIX... -- ARGS...: semlock ARGS, with PREFIX before it, is a while between the end of its
# command and the release
looked_at_while() {
	local want=$1 prefix=()
	shift
	while [ "$1" != -- ]; do
		prefix+=("$1")
		shift
	done
	shift
	fifos holder
	start holder env SEMLOCK_CRASH="command.ended:wait=100 publish.release:wait=100 symlink.release:wait=100" "${prefix[@]}" \
		"$CRASHABLE_SEMLOCK" -m "$method" "$@" "$PROBE" hold holder.up holder.down
	ready holder
	look_on
	release holder
	ended holder "$want"
	looked_on
}

# as_subreaper CMD...: orphaned descendants of CMD become its children
as_subreaper='import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])'

named_in_every_form() {
	looked_at_while 0 -- -o l
	[ "$method" = rename ] || looked_at_while 0 -- -f l k
	looked_at_while 0 -- l sh -c '"$@"; ("$0" pause 50 & ) & "$0" pause 50 &' "$PROBE"
	looked_at_while 0 python3 -c "$as_subreaper" -- l sh -c '("$0" pause 5 & ("$0" pause 20 & ) & ); "$@"' "$PROBE"
}

@test "it finds the command with -o and -f, with children, as a subreaper" {
	each named_in_every_form
}

held_for_a_program() {
	mkfifo input
	start holder env SEMLOCK_CRASH="command.ended:wait=100 publish.release:wait=100 symlink.release:wait=100" \
		sh -c 'exec "$0" --hold -m "$1" l <input' "$CRASHABLE_SEMLOCK" "$method"
	exec 7>input
	look_on 7>&-
	exec 7>&-
	ended holder 0
	rm input
	looked_on
}

@test "it finds the process that stands for --hold" {
	each held_for_a_program
}

subreaper_killed_while_held() {
	local inner
	fifos holder
	start holder env SEMLOCK_CRASH="command.ended:wait=100 publish.release:wait=100 symlink.release:wait=100" \
		"$CRASHABLE_SEMLOCK" -o -m "$method" l sh -c '"$0" hold 8.up 8.down & "$@"' "$PROBE" \
		"$PROBE" hold holder.up holder.down
	ready holder
	look_on
	inner=$(pgrep -P "${PID[holder]}")
	kill -KILL "${PID[holder]}"
	ended holder 137
	"$PROBE" gone "$inner" # it releases the lock
	looked_on
}

@test "with -o, it finds the command after the outer semlock was killed" {
	each subreaper_killed_while_held
}

as_process_1() {
	fifos holder
	start holder unshare --pid --fork --kill-child --mount-proc bash -c 'python3 "$0" "$1" l >look.out & exec "${@:2}"' \
		"$SOURCE/tests/lib/pid_file.py" "$method" env SEMLOCK_CRASH="command.ended:wait=100 publish.release:wait=100 symlink.release:wait=100" \
		"$CRASHABLE_SEMLOCK" -m "$method" l "$PROBE" hold holder.up holder.down
	next_line holder
	eventually grep -q seen look.out
	release holder
	ended holder 0
	[ "$(cat look.out)" = seen ] || complain "$method: the lock named a process that had ended"
	nothing_left
}

@test "it finds the command of a semlock that is process 1 of a container" {
	namespaces --pid --fork --mount-proc
	each as_process_1
}

@test "on a host with an odd name the record is in words, and known as ours" {
	namespaces --uts
	unshare --uts sh -c 'echo "a host" >/proc/sys/kernel/hostname' || skip "the host cannot be named here"
	unshare --uts bash -c 'echo "a host" >/proc/sys/kernel/hostname
		"$0" -m excl l sh -c "cat l >record; kill -KILL \$PPID; kill -KILL \$\$"
		"$0" -w 60 -m excl l touch ran' "$SEMLOCK"
	grep -q '\bhost=a?host\b' record
	[ -e ran ]
}

@test "the root directory is one to have a lock in" {
	echo 1 >no-such-lock
	expect_status 1 "$SEMLOCK" --who -m excl no-such-lock
	expect_status 0 "$SEMLOCK" --who -m excl /no-such-lock
	expect_out "/no-such-lock: free"
}

@test "a killed semlock keeps its command's lock; afterwards the next enters" {
	each killed_semlock
}

killed_both() {
	hold_lock -m "$method" l
	start second "$SEMLOCK" -w 60 -m "$method" l true
	kill -KILL "${PID[holder]}" "${COMMAND[holder]}"
	ended holder 137
	ended second 0
	nothing_left
}

@test "both killed: the waiter gets in" {
	each killed_both
}

never_runs() {
	hold_lock -m "$method" l
	start second "$SEMLOCK" -m "$method" l touch ran
	"$PROBE" blocked "${PID[second]}"
	child=$(pgrep -P "${PID[second]}") # the child waits for its turn, with the prepared lock
	kill -KILL "${PID[second]}"
	ended second 137
	"$PROBE" gone "$child"
	let_go
	expect_status 0 "$SEMLOCK" -m "$method" l true
	[ ! -e ran ]
	# The next takeover removes what the killed semlock had prepared under a name.
	if [ "$method" = mkdir ]; then
		expect_status 137 "$SEMLOCK" -m "$method" l sh -c 'kill -KILL $PPID $$'
		expect_status 0 "$SEMLOCK" -m "$method" l true
	fi
	nothing_left
}

@test "a waiter that is killed never runs its command" {
	each never_runs
}

ended_waiter() {
	hold_lock -m "$method" l
	for signal in INT TERM HUP; do
		start second "$SEMLOCK" -m "$method" l touch ran
		"$PROBE" blocked "${PID[second]}"
		child=$(pgrep -P "${PID[second]}")
		if [ $signal = INT ]; then kill -INT "$child"; fi # as Ctrl-C does
		kill -$signal "${PID[second]}"
		wait "${PID[second]}" || true
		"$PROBE" gone "$child"
	done
	[ "$(find . -name '.*.semlock.*')" = "" ] || complain "left behind: $(ls -A)"
	let_go
	[ ! -e ran ]
	nothing_left
}

@test "a waiter that a signal ends leaves nothing behind" {
	each ended_waiter
	SEMLOCK_CRASH=publish.published:kill expect_status 137 "$CRASHABLE_SEMLOCK" -m mkdir l true
	[ -s l/pid ] || complain "the child has emptied a lock that was published"
	expect_status 0 "$SEMLOCK" -w 60 -m mkdir l true
	export SEMLOCK_CRASH="lockdir.tmpfile:fail=95"
	SEMLOCK=$CRASHABLE_SEMLOCK METHODS="excl link"
	rm -r at.*
	each ended_waiter # where a file gets its name by link(2)
}

in_order() {
	hold_lock -m "$method" l
	for name in a b c d; do
		start $name "$SEMLOCK" -m "$method" l sh -c 'echo "$0" >>order' $name
		"$PROBE" blocked "${PID[$name]}"
	done
	let_go
	for name in a b c d; do ended $name 0; done
	[ "$(tr '\n' ' ' <order)" = "a b c d " ] || complain "$(cat order)"
	rm -f a.* b.* c.* d.*
	nothing_left
}

@test "waiters are served in the order in which they came" {
	each in_order
}

passed_by() {
	hold_lock -m "$method" l
	queue_as stopped -m "$method" l
	start behind "$SEMLOCK" -m "$method" l true
	"$PROBE" blocked "${PID[behind]}"
	kill -STOP "${PID[stopped]}"
	"$PROBE" state "${PID[stopped]}" T
	let_go
	ended behind 0
	kill -CONT "${PID[stopped]}"
	ready stopped
	expect_status 1 "$SEMLOCK" -n -m "$method" l touch ran
	let_go stopped
	nothing_left
}

@test "a stopped waiter is passed by, and has its turn when it goes on" {
	if under_valgrind; then skip "valgrind 3.19 lets no signal into a wait for an OFD lock"; fi
	each passed_by
}

no_bar_to_the_dead() {
	hold_lock -m "$method" l
	queue_as stopped -m "$method" l
	kill -STOP "${PID[stopped]}"
	"$PROBE" state "${PID[stopped]}" T
	kill -KILL "${PID[holder]}" "${COMMAND[holder]}"
	ended holder 137
	start behind "$SEMLOCK" -m "$method" l true
	ended behind 0
	expect_status 0 "$SEMLOCK" -n -m "$method" l true
	kill -CONT "${PID[stopped]}"
	ready stopped
	let_go stopped
	nothing_left
}

@test "a stopped waiter does not keep the others from a dead holder's lock" {
	if under_valgrind; then skip "valgrind 3.19 lets no signal into a wait for an OFD lock"; fi
	each no_bar_to_the_dead
}

own_status() {
	expect_status 3 "$SEMLOCK" -m "$method" l sh -c 'exit 3'
	expect_status 137 "$SEMLOCK" -m "$method" l sh -c 'kill -KILL $$'
	expect_status 127 "$SEMLOCK" -m "$method" l ./no-such-command
	expect_status 143 "$SEMLOCK" -m "$method" l sh -c 'kill -TERM $PPID; exec sleep 100'
	expect_status 0 "$SEMLOCK" -o --rm -m "$method" l -c 'exit 0'
	nothing_left
}

@test "the command's status, its signals, and what it cannot do, are its own" {
	each own_status
}

refusals() {
	refused 64 -s "$SEMLOCK" -s -m "$method" l touch ran
	refused 64 -j "$SEMLOCK" -j 2 -m "$method" l touch ran
	refused 64 -F "$SEMLOCK" -F -m "$method" l touch ran
	refused 64 --start "$SEMLOCK" --start 1 -m "$method" l touch ran
	refused 64 --fcntl "$SEMLOCK" --fcntl -m "$method" l touch ran
	refused 64 descriptor "$SEMLOCK" -m "$method" 8
	refused 64 descriptor "$SEMLOCK" --fd 8 -m "$method" touch ran
	[ "$method" = rename ] || refused 64 --init "$SEMLOCK" --init -m "$method" l touch ran
	refused 64 directory "$SEMLOCK" -m "$method" ./ touch ran
	refused 64 directory "$SEMLOCK" -m "$method" .. touch ran
	refused 66 no/such "$SEMLOCK" -m "$method" no/such/l touch ran
	nothing_left
}

@test "what it cannot honour is refused with 64" {
	each refusals
	refused 64 --stale "$SEMLOCK" --stale 1 l true
	refused 64 --on-lost "$SEMLOCK" --on-lost term l true
	refused 64 --on-lost "$SEMLOCK" --on-lost maybe -m excl l true
	refused 64 --stale "$SEMLOCK" --stale 0 -m excl l true
}

both_or_none() {
	[ "$method" != rename ] || "$SEMLOCK" -m rename --init k true
	hold_lock -m "$method" -f k l
	expect_status 1 "$SEMLOCK" -n -m "$method" k true
	expect_status 1 "$SEMLOCK" -n -m "$method" l true
	let_go
	hold_as one -m "$method" k
	expect_status 1 "$SEMLOCK" -n -m "$method" -f k l true
	expect_status 0 "$SEMLOCK" -n -m "$method" l true
	let_go one
	expect_status 0 "$SEMLOCK" -m "$method" -f l l true
	expect_status 0 "$SEMLOCK" -m "$method" --stale 1 --on-lost term -f l l true
	[ "$method" != rename ] || rm k
	nothing_left
}

directory_replaced() {
	mkdir d
	[ "$method" != rename ] || "$SEMLOCK" -m rename --init d/l true
	hold_lock -m "$method" d/l
	queue_as waiter -m "$method" d/l
	mv d old
	mkdir d
	[ "$method" != rename ] || "$SEMLOCK" -m rename --init d/l true
	hold_as other -m "$method" d/l
	let_go
	"$PROBE" blocked "${PID[waiter]}"
	expect_status 1 "$SEMLOCK" -n -m "$method" d/l true
	let_go other
	ready waiter
	let_go waiter
	[ "$(ls -A old)" = "$(ls -A d)" ] # nothing, or the token
	rm -r d old
}

@test "a directory replaced by another: waiters get the lock in the new one" {
	each directory_replaced
}

# remove_while_stopped NAME: the process cannot take the lock in d between rm's last two steps
remove_while_stopped() {
	kill -STOP "${PID[$1]}"
	"$PROBE" state "${PID[$1]}" T
	rm -r d
}

directory_removed() {
	mkdir d
	[ "$method" != rename ] || "$SEMLOCK" -m rename --init d/l true
	hold_lock -m "$method" d/l
	queue_as waiter -m "$method" d/l
	remove_while_stopped waiter
	mkdir d
	[ "$method" != rename ] || "$SEMLOCK" -m rename --init d/l true
	kill -CONT "${PID[waiter]}"
	release holder
	ended holder 76
	ready waiter
	expect_status 1 "$SEMLOCK" -n -m "$method" d/l true
	start gone "$SEMLOCK" -m "$method" d/l true
	"$PROBE" blocked "${PID[gone]}"
	remove_while_stopped gone
	kill -CONT "${PID[gone]}"
	release waiter
	ended waiter 76
	ended gone 66
	grep -q "cannot open its directory" gone.err
}

@test "a directory removed and made again serves waiters; without it, 66" {
	each directory_removed
}

not_released() {
	chmod 777 .
	as_nobody mkdir d
	[ "$method" != rename ] || as_nobody "$SEMLOCK" -m rename --init d/l true
	for mode in 555 000; do
		expect_status 3 as_nobody "$SEMLOCK" -m "$method" d/l sh -c "chmod $mode d; exit 3"
		[ "$err" = "semlock: d/l: cannot release the lock: Permission denied" ] || complain "$err"
		as_nobody chmod 755 d
		[ -n "$(ls d)" ]
		expect_status 0 as_nobody "$SEMLOCK" -n -m "$method" d/l true
	done
	expect_status 76 as_nobody "$SEMLOCK" -m "$method" d/l sh -c "rm -r d/*"
	rm -r d
}

@test "a lock that cannot be removed is reported, and the next takes it over" {
	umask 022
	each not_released
}

@test "mkdir: the command's files in the lock are moved beside it, and reported" {
	expect_status 3 "$SEMLOCK" -m mkdir l sh -c 'echo data >l/notes; exit 3'
	[ "$err" = "semlock: l: files were put into it: they are left beside it, in a directory .*.semlock.gone.*" ] || complain "$err"
	[ "$(cat .l.semlock.gone.*/notes)" = data ]
	expect_status 0 "$SEMLOCK" -n -m mkdir l true
	expect_silent
}

@test "mkdir: a lock taken away at the last moment stays with its new holder" {
	SEMLOCK_CRASH=publish.release:stop start holder "$CRASHABLE_SEMLOCK" -m mkdir l true
	"$PROBE" state "${PID[holder]}" T
	rm -r l
	hold_as other -m mkdir l
	kill -CONT "${PID[holder]}"
	ended holder 76
	[ "$(head -n 1 l/pid)" = "${COMMAND[other]}" ]
	expect_status 1 "$SEMLOCK" -n -m mkdir l true
	let_go other
	[ ! -e l ]
}

@test "several: both or none" {
	each both_or_none
}

something_else() {
	local before
	mkfifo fifo
	ln -s "$PWD/fifo" link
	: >file
	mkdir dir
	: >dir/precious
	before=$(find . ! -type d ! -name '*.out' ! -name '*.err' -ls)
	for object in $1; do
		refused 66 "$object" "$SEMLOCK" -n -m "$method" "$object" touch ran
	done
	[ "$before" = "$(find . ! -type d ! -name '*.out' ! -name '*.err' -ls)" ]
	rm -r fifo link file dir
}

@test "something else under the name is left alone: 66" {
	METHODS="excl link" each something_else "fifo link dir"
	rm -r at.*
	METHODS="mkdir" each something_else "fifo link file"
	rm -r at.*
	METHODS=symlink each something_else "fifo file dir"
	rm -r at.*
	METHODS=rename each something_else "fifo link dir"
}

@test "a directory of other files, in which no process is named, is no lock: 66" {
	local pid how kind
	umask 022 # as_nobody looks into the directories
	mkdir many deep deep/er
	touch many/1 many/2 many/3 many/4 many/precious
	for kind in many deep; do
		for pid in "" 0 word; do
			if [ -n "$pid" ]; then echo "$pid" >"$kind/pid"; fi
			for how in -n '-w 60' '-n --stale .001' --replace --toggle; do
				# shellcheck disable=SC2086
				refused 66 "$kind: is a directory of other files, not a lock" "$SEMLOCK" $how -m mkdir "$kind" touch ran
			done
			refused 66 "$kind: is a directory of other files, not a lock" "$SEMLOCK" --who -m mkdir "$kind"
		done
		expect_status 66 as_nobody "$SEMLOCK" -n -m mkdir "$kind" true # the user nobody may not make a file there either
	done
	[ -e many/precious ] && [ -d deep/er ] && [ ! -e ran ]
}

@test "a directory with a few files and no pid is waited for, never taken over" {
	mkdir l
	touch -d '1 hour ago' l/owner l/host l
	expect_status 1 "$SEMLOCK" -n --stale .001 -m mkdir l touch ran
	start waiter "$SEMLOCK" -m mkdir l true
	"$PROBE" blocked "${PID[waiter]}"
	[ -e l/owner ]
	[ -e l/host ]
	[ ! -e ran ]
	rm -r l
	ended waiter 0
}

@test "a directory with other files and a pid is waited for, never taken over" {
	mkdir l
	: >l/precious
	start other sleep 1000
	echo "${PID[other]}" >l/pid
	touch -d '1 minute ago' l
	expect_status 1 "$SEMLOCK" -n --stale .001 -m mkdir l touch ran
	start waiter "$SEMLOCK" -m mkdir l true
	"$PROBE" blocked "${PID[waiter]}"
	rm -r l
	ended waiter 0
	mkdir l
	: >l/precious
	true &
	wait $!
	for pid in $! 99999999; do
		echo "$pid" >l/pid
		touch -d '1 minute ago' l
		expect_status 1 "$SEMLOCK" -n --stale .001 -m mkdir l touch ran
		[ -e l/precious ]
		[ -e l/pid ]
		[ ! -e ran ]
	done
}

@test "a dead holder's lock that may not be removed is held, with the reason" {
	root_only "needs two users"
	mkdir sticky
	chmod 1777 sticky
	true &
	wait $!
	echo $! >sticky/l
	chmod 644 sticky/l
	capture as_nobody "$SEMLOCK" -v -n -m excl sticky/l true
	[ "$status" -eq 1 ]
	[[ $err == *"cannot be removed"* ]] || complain "$err"
	expect_status 0 "$SEMLOCK" -n -m excl sticky/l true
}

@test "--mode, and without it the umask, decide which users may read the lock" {
	umask 027
	expect_status 0 "$SEMLOCK" -m excl l stat -c %a l
	expect_out 640
	expect_status 0 "$SEMLOCK" -m excl --mode 0606 l stat -c %a l
	expect_out 606
	umask 022
	SEMLOCK_CRASH="lockdir.tmpfile:fail=95 plainfile.link:fail=95 publish.rename:fail=22" \
		expect_status 0 "$CRASHABLE_SEMLOCK" -m excl --mode 0606 l stat -c %a l # with O_EXCL alone
	expect_out 606
	expect_status 0 "$SEMLOCK" -m link l stat -c %a l
	expect_out 444
	expect_status 0 "$SEMLOCK" -m mkdir --mode 0660 l stat -c %a l
	expect_out 770
}

@test "rename: no file, no lock; --init creates it once; two are refused" {
	refused 66 --init "$SEMLOCK" -m rename l true
	expect_status 0 "$SEMLOCK" -m rename --init l true
	[ -e l ]
	[ ! -s l ]
	expect_status 0 "$SEMLOCK" -m rename --init l sh -c '[ ! -e l ] && [ -s l.held ]'
	: >l.held
	refused 66 "two lock files" "$SEMLOCK" -m rename l touch ran
	[ ! -e ran ]
}

@test "rename: a file with something in it is no lock file, and stays as it is" {
	for content in "what nobody wants to lose" 42$'\n'lines 42$'\n\nwhat nobody wants to lose' "$(seq 2000)"; do
		echo "$content" >l
		refused 66 "not a lock file" "$SEMLOCK" -m rename l touch ran
		refused 66 "not a lock file" "$SEMLOCK" -n --stale 1 -m rename l touch ran
		[ "$(cat l)" = "$content" ]
		[ ! -e l.held ]
		[ ! -e ran ]
	done
	echo 4711 >l # a script's PID
	expect_status 0 "$SEMLOCK" -m rename l true
	[ -e l ] && [ ! -s l ]
}

@test "link: nothing in it but the PID" {
	expect_status 0 "$SEMLOCK" -m link l sh -c '[ "$(cat l)" = $$ ] && [ "$(wc -l <l)" -eq 1 ]'
}

@test "no two commands are ever inside at once" {
	starts_many
	for method in $METHODS; do
		[ "$method" != rename ] || "$SEMLOCK" -m rename --init l true
		often 160
		expect_status 0 "$PROBE" storm "$often" 8 "$SEMLOCK" -m "$method" l "$PROBE" inside "room.$method" 20
		expect_out "0 x $often"
		expect_status 0 "$PROBE" verdict "room.$method" $((20 * often))
	done
}

waits_for_itself() {
	expect_status 0 "$SEMLOCK" -m "$method" l sh -c '"$0" -m "$1" l true 2>said; [ $? -eq 64 ]' "$SEMLOCK" "$method"
	grep -q "would never end" said
	rm said
	expect_status 0 "$SEMLOCK" -m "$method" l sh -c '"$0" -n -m "$1" l true; [ $? -eq 1 ]' "$SEMLOCK" "$method"
	nothing_left
}

@test "a command that would wait for a lock it may have inherited is refused" {
	METHODS=${METHODS/symlink/}
	each waits_for_itself
}

@test "a link is not inherited: its command, or a script's, is refused or waits" {
	expect_status 0 "$SEMLOCK" -m symlink l sh -c '"$0" -n -m symlink l true; [ $? -eq 1 ]' "$SEMLOCK"
	expect_status 0 "$SEMLOCK" -m symlink l sh -c '"$0" -w .2 -m symlink l true; [ $? -eq 1 ]' "$SEMLOCK"
	[ ! -L l ]
	expect_status 0 dash -c 'ln -s $$ l; "$0" -n -m symlink l true; [ $? -eq 1 ]' "$SEMLOCK"
	[ -L l ] || complain "the script's lock is gone"
}

# sleeps_of PID: how often the process has slept.
sleeps_of() {
	awk '/^voluntary/ { print $2 }' "/proc/$1/status"
}

slept_more_than() {
	[ "$(sleeps_of "$1")" -gt "$2" ]
}

@test "a waiter that polls another program's lock keeps nothing open" {
	if under_valgrind; then skip "valgrind has descriptors of its own open"; fi
	start other "$PROBE" pause 600000
	mkdir l
	echo "${PID[other]}" >l/pid
	start waiter prlimit --nofile=24 "$SEMLOCK" -m mkdir l true
	"$PROBE" state "${PID[waiter]}" S
	for i in $(seq 30); do
		[ "$i" -ne 15 ] || : >l/pid # the file names no process: the waiter looks what else is in the directory
		sleeps=$(sleeps_of "${PID[waiter]}")
		: >l2 # a name that begins like the lock's makes the waiter look
		rm l2
		eventually slept_more_than "${PID[waiter]}" "$sleeps"
	done
	open=$(find "/proc/${PID[waiter]}/fd" -type l | wc -l)
	[ "$open" -le 16 ] || complain "$open descriptors are open"
	rm -r l
	ended waiter 0
}

descriptors_here() {
	# shellcheck disable=SC2016 # for the inner shell
	"$SEMLOCK" -n -m "$method" l sh -c 'find /proc/$PPID/fd -lname "$(pwd -P)*" | wc -l'
}

opens_no_more() {
	free=$(descriptors_here)
	# shellcheck disable=SC2016 # for the inner shell
	expect_status 137 "$SEMLOCK" -m "$method" l sh -c 'echo $$ >pid; kill -KILL $PPID $$'
	"$PROBE" gone "$(cat pid)" # until its end the command has the flock
	dead=$(descriptors_here)
	[ "$dead" -eq "$free" ] || complain "$dead descriptors are open, $free if the lock was free"
}

@test "after a takeover semlock has no more files open than after a free lock" {
	each opens_no_more
}

@test "a command that cannot be handed the lock is not run" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	if under_valgrind; then skip "valgrind cannot work under strace"; fi
	expect_status 126 strace -f -qq -o trace -e inject=fcntl,?fcntl64:error=EIO:when=1+ "$SEMLOCK" -m mkdir l touch ran
	[ ! -e ran ]
	[ ! -e l ]
}

# unreadable FILE METHOD STATUS: a lock whose contents cannot be read is refused with STATUS, and stays
unreadable() {
	cp -p "$1" before
	expect_status "$3" strace -f -qq -o trace -P "$PWD/$1" -e inject=pread64:error=EIO "$SEMLOCK" -n -m "$2" "${1%%/*}" touch ran
	cmp "$1" before
	[ ! -e ran ]
}

@test "a lock that the disk does not give back is not an empty one" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	if under_valgrind; then skip "valgrind cannot work under strace"; fi
	start other sleep 1000
	echo "${PID[other]}" >l
	touch -d '1990-01-01' l # as if older than this boot
	unreadable l excl 1
	unreadable l link 1
	echo "what nobody wants to lose" >l
	unreadable l rename 66
}
