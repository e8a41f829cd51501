#!/usr/bin/env bats
# semlock killed between any two steps of taking, breaking and letting go: the next one gets
# in, and nothing stays behind.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

# points FILE...: the names of the crash points in the methods' sources
points() {
	(cd "$SOURCE/src" && sed -n 's/.*CRASH_POINT("\([^"]*\)").*/\1/p' "$@" | sort -u)
}

# stale METHOD: a dead holder's lock
stale() {
	capture "$SEMLOCK" -w 5 -m "$1" l sh -c 'kill -KILL $PPID $$'
}

# next_gets_in METHOD POINT
next_gets_in() {
	expect_status 0 "$SEMLOCK" -w 5 -m "$1" l true || complain "$1 killed at $2" || return
	stale "$1"
	expect_status 0 "$SEMLOCK" -n -m "$1" l true || complain "$1 killed at $2" || return
	local left
	left=$(find . -mindepth 1 -maxdepth 1 -printf '%f\n' | grep -vxE 'bin|\.out|\.err|killed' || true)
	if [ "$1" = rename ]; then left=${left#l}; fi
	[ -z "$left" ] || complain "$1 killed at $2 leaves $left"
}

# killed_everywhere METHOD FILE...
killed_everywhere() {
	local method=$1 point
	shift
	for point in $(points "$@"); do
		if [ "$method" = rename ]; then "$SEMLOCK" -m rename --init l true; fi
		# taking and letting go
		SEMLOCK_CRASH=$point:kill capture "$CRASHABLE_SEMLOCK" -m "$method" l true
		[ "$status" -ne 137 ] || echo "$point" >>killed
		next_gets_in "$method" "$point"
		# taking over
		stale "$method"
		SEMLOCK_CRASH=$point:kill capture "$CRASHABLE_SEMLOCK" -m "$method" l true
		[ "$status" -ne 137 ] || echo "$point" >>killed
		next_gets_in "$method" "$point"
	done
	# a point that is never reached tests nothing; those two want a failing call
	for point in $(points "$@"); do
		case $point in mkdir.empty | rename.not-erased) continue ;; esac
		grep -qx "$point" killed || complain "$method: $point is never reached" || return
	done
}

@test "excl, killed between any two steps" {
	killed_everywhere excl methods/namefile.c methods/existing.c gate.c
}

@test "link, killed between any two steps" {
	killed_everywhere link methods/namefile.c methods/existing.c gate.c
}

@test "mkdir, killed between any two steps" {
	killed_everywhere mkdir methods/namefile.c methods/existing.c methods/mkdir.c gate.c
}

@test "symlink, killed between any two steps" {
	killed_everywhere symlink methods/symlink.c gate.c
}

@test "rename, killed between any two steps" {
	killed_everywhere rename methods/rename.c gate.c
}

@test "a file with a name of its own, killed between any two steps" {
	for point in plainfile.made namefile.made plainfile.linked namefile.published; do
		SEMLOCK_CRASH="namefile.tmpfile:fail=95 $point:kill" expect_status 137 "$CRASHABLE_SEMLOCK" -m link l true
		next_gets_in link $point
	done
}

@test "rename with names of its own, killed between any two steps" {
	unique=filesystem.local:fail=5
	"$SEMLOCK" -m rename --init l true
	for point in $(points methods/unique.c gate.c); do
		expect_status 0 "$SEMLOCK" -m rename --init l true
		[ "$point" != unique.made ] || rm l
		for state in free stale; do
			SEMLOCK_CRASH="$unique $point:kill" capture "$CRASHABLE_SEMLOCK" -m rename --init l true
			[ "$status" -ne 137 ] || echo "$point" >>killed
			SEMLOCK_CRASH=$unique expect_status 0 "$CRASHABLE_SEMLOCK" -w 5 -m rename l true
			left=$(ls -d .l* l.* 2>/dev/null || true)
			[ -z "$left" ] || complain "killed at $point, $state, leaves $left"
			SEMLOCK_CRASH=$unique capture "$CRASHABLE_SEMLOCK" -m rename l sh -c 'kill -KILL $PPID $$'
		done
		next_gets_in rename "$point"
		grep -qx "$point" killed || complain "$point is never reached"
	done
}
