#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A command under a lock asks for the same lock once more.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# at_once N CMD...: CMD ends with N, long before a wait of 60 seconds has ended.
at_once() {
	local began=$SECONDS
	expect_status "$@" || return
	[ $((SECONDS - began)) -lt "$(stretched 30)" ] || complain "${*:2} waited"
}

@test "an inherited lock is found at once: 64, and a sentence" {
	for way in "" -F "-m ofd" "-F -m ofd" "-j 1"; do
		method=${way#-?}
		case $way in *-m*|-j*) method=${way##*-} method=-$method ;; *) method= ;; esac
		# shellcheck disable=SC2086
		refused 64 "which this command has inherited" "$SEMLOCK" $way l "$SEMLOCK" $method l true
	done
	refused 64 "which this command has inherited" "$SEMLOCK" k "$SEMLOCK" l "$SEMLOCK" l true
}

# semlock asks for its descriptors up to the end of the kernel's table, which has 64 numbers and doubles.
@test "an inherited lock is found at any number, also of thousands" {
	local number
	for number in 0 3 63 64 65 127 128 200 256 1000 1023 1024 3000; do
		[ $number -lt "$(ulimit -n)" ] || continue
		for last in "" "$((number + 70))"; do # one more that is open: the table may be larger
			[ "${last:-0}" -lt "$(ulimit -n)" ] || continue
			# shellcheck disable=SC2016 # that shell's
			refused 64 "held by descriptor $number, which this command has inherited" bash -c '
				eval "exec $1<>l ${2:+$2</dev/null}" && "$0" $1 && exec timeout 60 "$0" l true' "$SEMLOCK" $number $last
		done
	done
}

@test "-n under one's own lock names the outer semlock, not the inner one" {
	if under_valgrind; then skip "valgrind is the program that is named"; fi
	for way in "-m flock" "-m flock -o" "-m posix" "-m mkdir"; do
		# shellcheck disable=SC2086 # words
		start holder "$SEMLOCK" $way l "$SEMLOCK" -v -n $way l true
		ended holder 1
		[[ $(cat holder.err) == *"l: held by "*" ($SEMLOCK $way l "* || $(cat holder.err) == *"l: held by "*" (semlock $way l "* ]] ||
			complain "$way: $(cat holder.err)"
		rm -rf l
	done
	refused 1 "l: held by this process, which has inherited the lock" "$SEMLOCK" -F l "$SEMLOCK" -v -n l true
	expect_status 1 "$SEMLOCK" l "$SEMLOCK" --who --json l
	[[ $out == *'"watcher": null'*'"command": ["'*'", "l", "'*'", "--who", "--json", "l"]'* ]] || complain "$out"
}

@test "a limited wait for one's own lock is busy at once, with -n and -w" {
	starts_many
	for way in "" -F "-m ofd"; do
		method=${way#-?}
		for modes in "-x -x" "-x -s" "-s -x"; do
			for inner in -n "-w 60" "-n -E 0" "-w 60 -E 0" "-n --nested"; do
				case $modes$inner in *E*) want=0 ;; -s*--nested) want=1 ;; *--nested) want=5 ;; *) want=1 ;; esac
				# shellcheck disable=SC2086 # words
				at_once $want "$SEMLOCK" $way ${modes% *} l \
					"$SEMLOCK" ${method:+-m ${method##* }} $inner ${modes#* } l sh -c 'touch ran; exit 5'
				[ ! -e ran ] || [ $want = 5 ] || complain "$way $modes $inner: it ran"
				rm -f ran
			done
		done
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" $way -s l "$SEMLOCK" ${method:+-m ${method##* }} -n -s l true
	done
	expect_status 1 "$SEMLOCK" --status-fd=5 a "$SEMLOCK" --status-fd=6 -w 60 a true 5>/dev/null 6>events
	[ "$(cat events)" = busy ]
}

@test "--nested is recommended only where it works" {
	expect_status 64 "$SEMLOCK" l "$SEMLOCK" l true
	[[ $err = *--nested* ]]
	for inner in "l -f k" "k -f l"; do
		# shellcheck disable=SC2086 # words
		expect_status 64 "$SEMLOCK" l "$SEMLOCK" ${inner#* } ${inner%% *} true
		[[ $err != *--nested* ]] || complain "$inner: $err"
	done
	expect_status 64 "$SEMLOCK" l sh -c 'exec 9>l; exec "$0" 9' "$SEMLOCK"
	[[ $err != *--nested* ]]
}

@test "under an inherited descriptor that holds it: 64; busy with -n or -w" {
	for method in flock ofd; do
		if [ $method = ofd ] && under_valgrind; then continue; fi # valgrind 3.19 lets no signal into this wait
		exec 8<>l
		expect_status 0 "$SEMLOCK" -m "$method" 8
		refused 64 "descriptor 8" "$SEMLOCK" -m "$method" l touch ran
		refused 64 "descriptor 8" "$SEMLOCK" -m "$method" -s l touch ran
		refused 64 "descriptor 8" "$SEMLOCK" -m "$method" -j 2 l touch ran
		refused 64 "descriptor 8" "$SEMLOCK" -m "$method" -f k l touch ran
		[[ $err != *--nested* ]]
		at_once 1 "$SEMLOCK" -m "$method" -n l touch ran
		at_once 9 "$SEMLOCK" -m "$method" -w 60 -E 9 l touch ran
		expect_status 5 "$SEMLOCK" -m "$method" --nested l sh -c 'exit 5'
		exec 9<>l
		refused 64 "descriptor 8" "$SEMLOCK" -m "$method" 9
		exec 9>&-
		at_once 1 "$SEMLOCK" -m "$method" -w .01 l touch ran 8>&-
		expect_status 0 "$SEMLOCK" -m "$method" -s 8
		expect_status 0 "$SEMLOCK" -m "$method" -s l true
		refused 64 "descriptor 8" "$SEMLOCK" -m "$method" --nested l touch ran
		at_once 1 "$SEMLOCK" -m "$method" -w 60 l touch ran
		exec 8>&-
		expect_free l
	done
	[ ! -e ran ]
}

@test "a shared lock under a shared one is granted, although a writer waits" {
	exec 8<>l
	expect_status 0 "$SEMLOCK" -s 8
	queue_as writer l 8>&-
	expect_status 0 "$SEMLOCK" -s l true
	expect_status 0 "$SEMLOCK" -w 60 -s l true
	expect_status 1 "$SEMLOCK" -n -s l true 8>&-
	expect_status 1 "$SEMLOCK" -n -s l true 8>&- 7<>l # inherited, and not locked
	expect_status 0 "$SEMLOCK" --fcntl l true
	exec 8>&-
	ready writer
	let_go writer
}

@test "a duplicate of an inherited descriptor is no other lock, nor is a slot" {
	exec 8<>l 9>&8
	expect_status 0 "$SEMLOCK" 8
	expect_status 0 "$SEMLOCK" -n 9
	expect_status 0 "$SEMLOCK" -s 9
	hold_as reader -s l
	start waiter "$SEMLOCK" 9
	"$PROBE" blocked "${PID[waiter]}"
	let_go reader
	ended waiter 0
	exec 8>&- 9>&-
	rm ./*.up ./*.down
	hold_as reader -m ofd -s m
	exec 8<>m 9>&8
	expect_status 0 "$SEMLOCK" -m ofd -s 8
	start waiter "$SEMLOCK" -m ofd 9 # waits for the reader, and not for what it has itself
	"$PROBE" blocked "${PID[waiter]}"
	let_go reader
	ended waiter 0
	exec 8>&- 9>&-
	exec 8<>k
	expect_status 0 "$SEMLOCK" -j 2 8
	hold_as other -j 2 k
	start waiter "$SEMLOCK" -j 2 k true
	let_go other
	ended waiter 0
	exec 8>&-
}

@test "through a shell, a link and another name" {
	: >l
	ln l other
	ln -s l link
	refused 64 "descriptor" "$SEMLOCK" l sh -c '"$0" link true' "$SEMLOCK"
	refused 64 "descriptor" "$SEMLOCK" l sh -c 'sh -c "$0\ other\ true"; "$0" other true' "$SEMLOCK" 2>&1 || true
	expect_status 64 "$SEMLOCK" l sh -c '"$0" other true' "$SEMLOCK"
}

@test "another descriptor of the same file is refused; the lock's own is not" {
	expect_status 64 "$SEMLOCK" l sh -c 'exec 9>l; exec "$0" 9' "$SEMLOCK"
	expect_status 0 "$SEMLOCK" l sh -c 'for fd in /proc/self/fd/*; do [ "$fd" -ef l ] && break; done; exec "$0" "${fd##*/}"' "$SEMLOCK"
}

@test "--nested runs the command under the ancestor's lock" {
	expect_status 5 "$SEMLOCK" l "$SEMLOCK" --nested l sh -c 'exit 5'
	expect_status 0 "$SEMLOCK" l "$SEMLOCK" --nested -s l true
	expect_free l
}

@test "--nested without an ancestor takes the lock" {
	hold_as holder --nested l
	expect_held l
	expect_status 1 "$SEMLOCK" -n --nested l true
	let_go
}

@test "shared under shared is granted, even with a writer in the queue" {
	fifos go
	start outer "$SEMLOCK" -s l sh -c '"$1" hold go.up go.down && "$0" -s l true' "$SEMLOCK" "$PROBE"
	read -r _ _ <>go.up
	queue_as writer l
	printf . 1<>go.down
	ended outer 0
	ready writer
	let_go writer
}

# between "OUTER" "WAITER" "INNER": the inner lock is granted at once, although a waiter waits for the outer lock.
between() {
	fifos go
	# shellcheck disable=SC2086 # words
	start outer "$SEMLOCK" $1 l sh -c '"$2" hold go.up go.down && exec "$0" -n $1 l true' "$SEMLOCK" "$3" "$PROBE"
	read -r _ _ <>go.up
	# shellcheck disable=SC2086 # words
	queue_as waiter $2 l
	printf . 1<>go.down
	ended outer 0
	ready waiter
	let_go waiter
	rm ./*.up ./*.down
}

@test "waiters for the outer lock do not block other bytes, slots or methods" {
	between "--fcntl --start 0 --length 1" "--fcntl --start 0 --length 1" "--fcntl --start 1 --length 1"
	between -s "" "-j 2"
	between "-m ofd -s --start 10 --length 10" "-m ofd" "-m ofd -s --start 0"
	between "" "" --fcntl
	between --fcntl --fcntl ""
}

@test "a nested command that skips earlier waiters comes before later ones" {
	: >l
	hold_as reader -s l
	queue_as writer -F --fcntl --length 1 l "$SEMLOCK" l
	expect_status 1 "$SEMLOCK" -n -s l true
	let_go reader
	ready writer
	let_go writer
	expect_status 0 "$SEMLOCK" -n -s l true
}

@test "all bytes of a file and one of its slots would wait for each other: 64" {
	refused 64 "would never end" "$SEMLOCK" -m ofd l "$SEMLOCK" -j 2 l touch ran
	at_once 1 "$SEMLOCK" -m ofd l "$SEMLOCK" -w 60 -j 2 l touch ran
	for method in ofd posix; do
		refused 64 "would never end" "$SEMLOCK" -j 2 l "$SEMLOCK" -m $method l touch ran
		at_once 1 "$SEMLOCK" -j 2 l "$SEMLOCK" -m $method -w 60 l touch ran
		expect_status 0 "$SEMLOCK" -m $method --length 5 l "$SEMLOCK" -n -j 2 l true
		expect_status 0 "$SEMLOCK" -j 2 l "$SEMLOCK" -m $method -n --length 5 l true
		expect_status 0 "$SEMLOCK" -m $method l "$SEMLOCK" -n l true
	done
	[ ! -e ran ]
}

@test "a slot under a shared lock of all its bytes would wait for itself: 64" {
	refused 64 "shared" "$SEMLOCK" -m ofd -s l "$SEMLOCK" -m ofd -j 2 l touch ran
	[ ! -e ran ]
}

@test "a slot outside those asked for does not stand for one of them" {
	hold_as first -j 2 l
	refused 1 "" "$SEMLOCK" -j 2 l "$SEMLOCK" -n -v --nested -j 1 l touch ran
	[ ! -e ran ]
	let_go first
}

@test "exclusive under shared would wait for itself: 64, with --nested as well" {
	refused 64 "shared" "$SEMLOCK" -s l "$SEMLOCK" l true
	refused 64 "shared" "$SEMLOCK" -s l "$SEMLOCK" --nested l true
}

@test "a slot under a shared lock does not wait, nor the other way round" {
	expect_status 5 "$SEMLOCK" -s l "$SEMLOCK" -n -j 2 l sh -c 'exit 5'
	expect_status 5 "$SEMLOCK" -j 2 l "$SEMLOCK" -n -s l sh -c 'exit 5'
	expect_status 5 "$SEMLOCK" -j 2 l "$SEMLOCK" --nested -s l sh -c 'exit 5'
}

@test "a slot under a slot is another slot; with --nested it is the same one" {
	for method in flock ofd; do
		expect_status 0 "$SEMLOCK" -m $method -j 2 l "$SEMLOCK" -m $method -j 2 l sh -c 'echo $SEMLOCK_SLOT'
		expect_out 1
		expect_status 0 "$SEMLOCK" -m $method -j 2 l "$SEMLOCK" -m $method --nested -j 2 l sh -c '"$0" -m "$1" -n -j 2 l echo free' "$SEMLOCK" $method
		expect_out free
		expect_status 1 "$SEMLOCK" -m $method -j 2 l "$SEMLOCK" -m $method -j 2 l "$SEMLOCK" -m $method -n -j 2 l true
	done
}

@test "--take: inherited slots count with --nested; more must be available" {
	for method in flock ofd; do
		expect_status 0 "$SEMLOCK" -m $method -j 4 --take=3 l "$SEMLOCK" -m $method --nested -j 4 --take=3 l echo inherited
		expect_out inherited
		refused 64 "waiting for more than that" "$SEMLOCK" -m $method -j 4 l "$SEMLOCK" -m $method --nested -j 4 --take=4 l touch ran
		expect_status 0 "$SEMLOCK" -m $method -j 4 l "$SEMLOCK" -m $method --nested -j 4 --take=3 l sh -c 'echo $SEMLOCK_SLOT'
		expect_out 1,2,3
		refused 64 "" "$SEMLOCK" -m $method -j 4 --take=4 l "$SEMLOCK" -m $method -j 4 l touch ran
		expect_status 64 "$SEMLOCK" -m $method -j 2 l "$SEMLOCK" -m $method -j 2 l "$SEMLOCK" -m $method -j 2 l touch ran
		rm l
	done
	[ ! -e ran ]
}

@test "a slot covers no exclusive lock: 64, with --nested as well" {
	for method in flock ofd; do
		refused 64 "as a slot" "$SEMLOCK" -m "$method" -j 2 l "$SEMLOCK" -m "$method" --nested l touch ran
	done
	[ ! -e ran ]
}

@test "other bytes of the file are another lock; a part does not become all" {
	outer=("$SEMLOCK" -m ofd --start 10 --length 10 l)
	inner=("$SEMLOCK" -m ofd --start)
	expect_status 0 "${outer[@]}" "${inner[@]}" 0 --length 10 l true
	expect_status 0 "${outer[@]}" "${inner[@]}" 20 l true
	expect_status 0 "${outer[@]}" "${inner[@]}" 12 --length 8 --nested l true
	refused 64 "which this command has inherited" "${outer[@]}" "${inner[@]}" 12 --length 8 l touch ran
	for bytes in "9 --length 11" "10 --length 11" "0"; do
		# shellcheck disable=SC2086 # words
		refused 64 "in part" "${outer[@]}" "${inner[@]}" $bytes --nested l touch ran
	done
	[ ! -e ran ]
}

@test "all bytes shared under a shared part are granted, exclusive ones never" {
	outer=("$SEMLOCK" -m ofd -s --start 10 --length 10 l)
	for nested in '' --nested; do
		# shellcheck disable=SC2086 # a word or none
		expect_status 5 "${outer[@]}" "$SEMLOCK" -m ofd -s --start 0 $nested l sh -c 'exit 5'
		# shellcheck disable=SC2086
		refused 64 "would never end" "${outer[@]}" "$SEMLOCK" -m ofd --start 0 $nested l touch ran
	done
	[ ! -e ran ]
}

@test "an inherited descriptor that has been unlocked is no lock" {
	expect_status 0 "$SEMLOCK" l sh -c 'for fd in /proc/self/fd/*; do [ "$fd" -ef l ] && "$0" -u "${fd##*/}"; done; exec "$0" -n l echo free' "$SEMLOCK"
	expect_out free
}

@test "the environment is not believed: another process holds the lock, or none" {
	hold_lock l
	SEMLOCK_LOCK=l SEMLOCK_MODE=exclusive expect_status 1 "$SEMLOCK" -n --nested l true
	let_go
	SEMLOCK_LOCK=l expect_status 0 "$SEMLOCK" l true
}

# outer WAY: the command of a semlock that holds the lock so, but does not hand it down, waits for that lock.
waits_below() {
	fifos outer
	# shellcheck disable=SC2086 # words
	start outer "$SEMLOCK" $1 l sh -c 'exec "$0" -v "$@"' "$SEMLOCK" ${1#-o} l true
	eventually grep -q "waiting: held by [0-9]* .* since" outer.err || complain "$1: $(cat outer.err)"
	kill "${PID[outer]}"
	ended outer 143
	rm -rf outer.* l
}

@test "a lock held above but not inherited is waited for, with its holder named" {
	if under_valgrind; then skip "valgrind is the program that is named"; fi
	for way in -o "-m posix" "-m symlink"; do waits_below "$way"; done
}

@test "another lock under a lock is another lock" {
	expect_status 0 "$SEMLOCK" a "$SEMLOCK" b "$SEMLOCK" c true
	expect_status 64 "$SEMLOCK" a "$SEMLOCK" b "$SEMLOCK" a true
	expect_status 64 "$SEMLOCK" a "$SEMLOCK" -f b a true
}

@test "a nested call of another user's command is found, too" {
	root_only "to be two users"
	: >l
	chmod 666 l
	expect_status 64 "$SEMLOCK" l setpriv --reuid=65534 --regid=65534 --clear-groups "$SEMLOCK" l true
}

METHODS="excl link mkdir rename" # a symbolic link has no descriptor

@test "locks of files: an inherited one gives 64, or busy; --nested runs" {
	for method in $METHODS; do
		[ "$method" != rename ] || "$SEMLOCK" -m rename --init l true
		refused 64 "which this command has inherited" "$SEMLOCK" -m "$method" l "$SEMLOCK" -m "$method" l true
		at_once 1 "$SEMLOCK" -m "$method" l "$SEMLOCK" -n -m "$method" l true
		at_once 7 "$SEMLOCK" -m "$method" l "$SEMLOCK" -w 60 -E 7 -m "$method" l true
		for limit in "" -n "-w 60"; do
			# shellcheck disable=SC2086 # words
			expect_status 5 "$SEMLOCK" -m "$method" l sh -c '"$@"; exit $?' sh "$SEMLOCK" $limit --nested -m "$method" l sh -c 'exit 5'
		done
		expect_status 0 "$SEMLOCK" -n -m "$method" l true
	done
}

@test "locks of files: --nested without an ancestor takes the lock" {
	for method in $METHODS; do
		[ "$method" != rename ] || "$SEMLOCK" -m rename --init l true
		hold_lock -m "$method" --nested l
		expect_status 1 "$SEMLOCK" -n -m "$method" --nested l true
		expect_status 1 "$SEMLOCK" other "$SEMLOCK" -n -m "$method" --nested l true
		let_go
		rm ./*.up ./*.down
	done
}

@test "locks made of files: an ancestor's number alone proves nothing" {
	echo $$ >l
	expect_status 1 "$SEMLOCK" -n -m excl --nested l touch ran
	expect_status 1 "$SEMLOCK" other "$SEMLOCK" -w .2 -m excl --nested l touch ran
	[ ! -e ran ]
}

@test "--nested makes sense with one lock and a command only" {
	refused 64 --nested "$SEMLOCK" --nested 8
	refused 64 --nested "$SEMLOCK" --nested -f a b true
}
