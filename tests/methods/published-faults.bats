#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The kinds of faults that were published of other programs' locks made of files, tried on each method.  The attacker
# is another user, who owns the directory of mode 0777, without the sticky bit.  (What does not apply: tests/PROMISES.)
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}
METHODS="excl link symlink mkdir rename"

# theirs: a directory that the attacker owns, and a file elsewhere that is not to be touched
theirs() {
	others_may_run
	mkdir pub
	chmod 777 pub
	chown 65534 pub
	echo precious >victim
	touch -d '2001-02-03 04:05:06' victim
	stat -c '%i %Y %s %h' victim >before
}

victim_is_untouched() {
	[ "$(stat -c '%i %Y %s %h' victim)" = "$(cat before)" ] || complain "$1: $(cat before) became $(stat -c '%i %Y %s %h' victim)"
	[ "$(cat victim)" = precious ] || complain "$1: the victim says $(cat victim)"
}

# there METHOD: the name that a lock pub/l has while it is held
there() {
	if [ "$1" = rename ]; then ls -d pub/l.held*; else echo pub/l; fi
}

init() {
	rm -rf pub/l pub/l.* pub/.l.*
	if [ "$1" = rename ]; then "$SEMLOCK" -m rename --init pub/l true; fi
}

@test "a link planted between look and creation is not followed or locked" {
	theirs
	# symlinkat(2) itself, of -m symlink, neither follows nor replaces what is there.
	for pair in excl:publish.flocked link:publish.flocked mkdir:publish.flocked rename:rename.written; do
		method=${pair%:*}
		name=pub/l
		if [ "$method" = rename ]; then name=pub/l.held; fi # to which it is to be renamed
		init "$method"
		SEMLOCK_CRASH=${pair#*:}:stop start maker "$CRASHABLE_SEMLOCK" -n -m "$method" pub/l touch ran
		"$PROBE" state "${PID[maker]}" T
		as_nobody ln -s "$PWD/victim" $name
		kill -CONT "${PID[maker]}"
		wait "${PID[maker]}" && complain "$method: entered"
		unset "PID[maker]"
		[ ! -e ran ] || complain "$method: the command ran"
		[ "$(readlink $name)" = "$PWD/victim" ] || complain "$method: the link is gone"
		victim_is_untouched "$method"
	done
}

@test "signs of life do not go through a hard link or into a FIFO of its name" {
	theirs
	fifos beats
	for method in $METHODS; do
		for trap in hard fifo; do
			init "$method"
			start beats "$SEMLOCK" -m "$method" --stale 2 pub/l "$PROBE" hold beats.up beats.down
			ready beats
			name=$(there "$method")
			as_nobody mv "$name" "$name.away"
			# protected_hardlinks: the attacker may link only what is his
			if [ $trap = hard ]; then ln victim "$name"; else as_nobody mkfifo "$name"; fi
			stat -c '%i %Y %s %h' victim >before
			sleep 1.6
			victim_is_untouched "$method, $trap"
			release beats
			wait "${PID[beats]}" || [ $? -eq 76 ] || complain "$method, $trap: $?"
			unset "PID[beats]"
			[ -e "$name" ] || complain "$method, $trap: what had the name was removed"
			rm -rf pub/l* pub/.l*
		done
	done
}

@test "nor if the name is taken between the look and the sign of life" {
	without_leak_check # of a process that gets a SIGCONT
	theirs
	fifos beats
	for method in $METHODS; do
		for trap in hard fifo; do
			init "$method"
			SEMLOCK_CRASH=heartbeat.beats:stop start beats "$CRASHABLE_SEMLOCK" -m "$method" --stale 2 pub/l \
				"$PROBE" hold beats.up beats.down
			ready beats
			"$PROBE" state "${PID[beats]}" T
			name=$(there "$method")
			as_nobody mv "$name" "$name.away"
			if [ $trap = hard ]; then ln victim "$name"; else as_nobody mkfifo "$name"; fi
			stat -c '%i %Y %s %h' victim >before
			release beats
			kill -CONT "${PID[beats]}"
			wait "${PID[beats]}" || [ $? -eq 76 ] || complain "$method, $trap: $?"
			unset "PID[beats]"
			victim_is_untouched "$method, $trap"
			rm -rf pub/l* pub/.l*
		done
	done
}

@test "a living holder's lock that is dated back is not taken over" {
	theirs
	fifos lives
	for method in $METHODS; do
		init "$method"
		start lives "$SEMLOCK" -m "$method" pub/l "$PROBE" hold lives.up lives.down
		ready lives
		touch -h -d '2001-02-03' "$(there "$method")"
		expect_status 1 "$SEMLOCK" -n -m "$method" --stale 1 pub/l touch ran
		[ ! -e ran ] || complain "$method"
		release lives
		ended lives 0
	done
}

@test "a directory planted under a temporary name is not used or removed" {
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	theirs
	for method in excl link symlink mkdir; do
		init "$method"
		SEMLOCK_CRASH=lockdir.tmpfile:fail=95 expect_status 0 strace -f -qq -o trace -e trace=openat,mkdirat "$CRASHABLE_SEMLOCK" -m "$method" pub/l true
		names=$(grep -oE '"\.l\.semlock[^"]*"' trace | sort -u | wc -l)
		SEMLOCK_CRASH=lockdir.tmpfile:fail=95 expect_status 0 strace -f -qq -o trace2 -e trace=openat,mkdirat "$CRASHABLE_SEMLOCK" -m "$method" pub/l true
		# no name is used twice: there is none to be made first
		[ "$(cat trace trace2 | grep -oE '"\.l\.semlock[^"]*"' | sort -u | wc -l)" -ge $((2 * names)) ] || complain "$method: a name came again"
	done
}

@test "the directory of mkdir has the lock's mode from its first moment on" {
	theirs
	umask 077
	SEMLOCK_CRASH=publish.published:stop start maker "$CRASHABLE_SEMLOCK" -m mkdir --mode 750 pub/l true
	"$PROBE" state "${PID[maker]}" T
	[ "$(stat -c %a pub/l)" = 750 ] || complain "$(stat -c %a pub/l)"
	kill -CONT "${PID[maker]}"
	ended maker 0
}

@test "a release leaves alone what another user has put in the lock's place" {
	theirs
	fifos robbed
	for method in $METHODS; do
		init "$method"
		start robbed "$SEMLOCK" -m "$method" pub/l "$PROBE" hold robbed.up robbed.down
		ready robbed
		name=$(there "$method")
		as_nobody mv "$name" "$name.stolen"
		as_nobody mkdir "$name"
		as_nobody touch "$name/data"
		release robbed
		ended robbed 76
		[ -e "$name/data" ] || complain "$method: another's directory was removed"
	done
}

@test "a parent directory that is swapped for a link leads no release elsewhere" {
	theirs
	mkdir house
	fifos swapped
	for method in $METHODS; do
		rm -rf house/pub house/elsewhere
		mkdir house/pub house/elsewhere
		if [ "$method" = rename ]; then "$SEMLOCK" -m rename --init house/pub/l true; fi
		start swapped "$SEMLOCK" -m "$method" house/pub/l "$PROBE" hold swapped.up swapped.down
		ready swapped
		held=$(find house/pub -name "l*" -printf "%f\n" | head -n 1)
		echo precious >"house/elsewhere/$held"
		mv house/pub house/moved
		ln -s elsewhere house/pub
		release swapped
		wait "${PID[swapped]}" || [ $? -eq 76 ] || complain "$method: $?"
		unset "PID[swapped]"
		[ "$(cat "house/elsewhere/$held")" = precious ] || complain "$method: removed through the link"
		rm -rf house/moved house/pub
	done
}

# messages_are_alike USER DIRECTORY METHOD: semlock -n -m METHOD, as USER, fails with one message for DIRECTORY/secret, which
# is there or leads to what is there, and for DIRECTORY/absent
messages_are_alike() {
	local name
	for name in secret absent; do
		# shellcheck disable=SC2086 # words
		$1 "$SEMLOCK" -n -m "$3" "$2/$name" touch ran >$name.out 2>&1 && complain "$3: entered"
		[ -s $name.out ] || complain "$3: no message" || return
		sed -i "s/$name/NAME/g" $name.out
	done
	cmp secret.out absent.out || complain "$3: $(cat secret.out absent.out)"
}

@test "a message does not reveal names where the user may not look" {
	theirs
	mkdir -m 700 closed
	: >closed/secret
	chown 0 pub
	chmod 1777 pub
	for name in secret absent; do as_nobody ln -s "$PWD/closed/$name" pub/$name; done
	for method in $METHODS flock ofd posix; do
		messages_are_alike as_nobody closed "$method"
		[ "$method" = symlink ] || messages_are_alike "" pub "$method"
	done
	[ ! -e ran ]
	[ "$(ls closed)" = secret ] || complain "$(ls closed)"
}
