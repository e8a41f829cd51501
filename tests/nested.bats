#!/usr/bin/env bats
# A command under a lock asks for the same lock once more.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"

@test "found at once, whatever the way of holding: 64, and a sentence" {
	for way in "" -o -F "-m ofd" "-m posix" "-o -m ofd" "-F -m posix" "-j 2"; do
		method=${way#-?}
		case $way in *-m*|-j*) method=${way##*-} method=-$method ;; *) method= ;; esac
		# shellcheck disable=SC2086
		refused 64 "under which this one runs" "$SEMLOCK" $way l "$SEMLOCK" $method l true
	done
}

@test "through a shell, a link and another name" {
	: >l
	ln l other
	ln -s l link
	refused 64 "process" "$SEMLOCK" l sh -c '"$0" link true' "$SEMLOCK"
	refused 64 "process" "$SEMLOCK" l sh -c 'sh -c "$0\ other\ true"; "$0" other true' "$SEMLOCK" 2>&1 || true
	expect_status 64 "$SEMLOCK" l sh -c '"$0" other true' "$SEMLOCK"
}

@test "a descriptor of the same file is refused, too; the lock's own descriptor is not" {
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

# between "OUTER" "WAITER" "INNER": the inner one is granted at once, although the waiter waits for the
# outer one.
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

@test "nobody who waits for the outer lock stands before other bytes, a slot, or a lock of another kind" {
	between "--fcntl --start 0 --length 1" "--fcntl --start 0 --length 1" "--fcntl --start 1 --length 1"
	between -s "" "-j 2"
	between "" "" --fcntl
	between --fcntl --fcntl ""
}

@test "who does not wait for those who came earlier still comes before who comes later" {
	: >l
	hold_as reader -s l
	queue_as writer -F --fcntl --length 1 l "$SEMLOCK" l
	expect_status 1 "$SEMLOCK" -n -s l true
	let_go reader
	ready writer
	let_go writer
	expect_status 0 "$SEMLOCK" -n -s l true
}

@test "all bytes of a file, and a slot, which is a byte of it too, would wait for each other: 64" {
	for method in ofd posix; do
		refused 64 "it would wait for itself" "$SEMLOCK" -m $method l "$SEMLOCK" -w 2 -j 2 l touch ran
		refused 64 "it would wait for itself" "$SEMLOCK" -j 2 l "$SEMLOCK" -m $method -w 2 l touch ran
		expect_status 0 "$SEMLOCK" -m $method --length 5 l "$SEMLOCK" -n -j 2 l true
		expect_status 0 "$SEMLOCK" -j 2 l "$SEMLOCK" -m $method -n --length 5 l true
		expect_status 0 "$SEMLOCK" -m $method l "$SEMLOCK" -n l true
	done
	[ ! -e ran ]
}

@test "a slot under a shared lock of all its bytes would wait for itself: 64" {
	for method in ofd posix; do
		refused 64 "shared" "$SEMLOCK" -m "$method" -s l "$SEMLOCK" -m "$method" -w 2 -j 2 l touch ran
	done
	[ ! -e ran ]
}

@test "a slot that is none of those asked for is another one: it does not stand for it" {
	hold_as first -j 2 l
	refused 1 "" "$SEMLOCK" -j 2 l "$SEMLOCK" -n -v --nested -j 1 l touch ran
	[ ! -e ran ]
	let_go first
}

@test "exclusive under shared would wait for itself: 64, with --nested as well" {
	refused 64 "shared" "$SEMLOCK" -s l "$SEMLOCK" l true
	refused 64 "shared" "$SEMLOCK" -s l "$SEMLOCK" --nested l true
}

@test "a slot under a shared lock is no wait, nor a shared one under a slot with --nested" {
	expect_status 5 "$SEMLOCK" -s l "$SEMLOCK" -n -j 2 l sh -c 'exit 5'
	refused 64 "it would wait for itself" "$SEMLOCK" -j 2 l "$SEMLOCK" -s l touch ran
	[ ! -e ran ]
	expect_status 5 "$SEMLOCK" -j 2 l "$SEMLOCK" --nested -s l sh -c 'exit 5'
}

@test "a slot covers no exclusive lock: 64, with --nested as well" {
	for method in flock ofd posix; do
		refused 64 "as a slot" "$SEMLOCK" -m "$method" -j 2 l "$SEMLOCK" -m "$method" --nested l touch ran
	done
	[ ! -e ran ]
}

@test "other bytes of the file are another lock; of some of the bytes no lock of all is made" {
	for method in ofd posix; do
		outer=("$SEMLOCK" -m "$method" --start 10 --length 10 l)
		inner=("$SEMLOCK" -m "$method" --start)
		expect_status 0 "${outer[@]}" "${inner[@]}" 0 --length 10 l true
		expect_status 0 "${outer[@]}" "${inner[@]}" 20 l true
		expect_status 0 "${outer[@]}" "${inner[@]}" 12 --length 8 --nested l true
		refused 64 "under which this one runs" "${outer[@]}" "${inner[@]}" 12 --length 8 l touch ran
		for bytes in "9 --length 11" "10 --length 11" "0"; do
			# shellcheck disable=SC2086 # words
			refused 64 "in part" "${outer[@]}" "${inner[@]}" $bytes --nested l touch ran
		done
		[ ! -e ran ]
	done
}

@test "all bytes shared under some of them shared are granted, and none of them exclusive" {
	for method in ofd posix; do
		outer=("$SEMLOCK" -m "$method" -s --start 10 --length 10 l)
		for nested in '' --nested; do
			# shellcheck disable=SC2086 # a word or none
			expect_status 5 "${outer[@]}" "$SEMLOCK" -m "$method" -s --start 0 $nested l sh -c 'exit 5'
			# shellcheck disable=SC2086
			refused 64 "it would wait for itself" "${outer[@]}" "$SEMLOCK" -m "$method" --start 0 $nested l touch ran
		done
	done
	[ ! -e ran ]
}

@test "SEMLOCK_HELD is not believed: the ancestor has let go" {
	expect_status 0 "$SEMLOCK" l sh -c 'for fd in /proc/self/fd/*; do [ "$fd" -ef l ] && "$0" -u "${fd##*/}"; done; exec "$0" -n l echo free' "$SEMLOCK"
	expect_out free
}

@test "SEMLOCK_HELD is not believed: somebody else holds it" {
	hold_lock l
	held=$(stat -c '%D:' l)$(printf '%x' "$(stat -c %i l)"):exclusive
	SEMLOCK_HELD=$held expect_status 1 "$SEMLOCK" -n l true
	let_go
	SEMLOCK_HELD=$held expect_status 0 "$SEMLOCK" l true
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
	expect_status 64 "$SEMLOCK" -o l setpriv --reuid=65534 --regid=65534 --clear-groups "$SEMLOCK" l true
}

METHODS="excl link mkdir symlink rename"

@test "locks made of files: found at once, with -n as well; --nested runs under the ancestor's" {
	for method in $METHODS; do
		[ "$method" != rename ] || "$SEMLOCK" -m rename --init l true
		for way in "" -o; do
			# shellcheck disable=SC2086
			refused 64 "under which this one runs" "$SEMLOCK" $way -m $method l "$SEMLOCK" -m $method l true
			# shellcheck disable=SC2086
			refused 64 "under which this one runs" "$SEMLOCK" $way -m $method l "$SEMLOCK" -n -m $method l true
			# shellcheck disable=SC2086
			expect_status 5 "$SEMLOCK" $way -m $method l sh -c '"$0" --nested -m "$1" l sh -c "exit 5"' "$SEMLOCK" $method
			expect_status 0 "$SEMLOCK" -n -m "$method" l true
		done
	done
}

@test "locks made of files: --nested without an ancestor takes the lock; another's is none of ours" {
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
	refused 64 "it would wait for itself" "$SEMLOCK" -m excl --nested l touch ran
	expect_status 1 "$SEMLOCK" -n -m excl --nested l touch ran
	expect_status 64 "$SEMLOCK" other "$SEMLOCK" -m excl --nested l touch ran
	[ ! -e ran ]
}

@test "--nested makes sense with one lock and a command only" {
	refused 64 --nested "$SEMLOCK" --nested 8
	refused 64 --nested "$SEMLOCK" --nested -f a b true
}
