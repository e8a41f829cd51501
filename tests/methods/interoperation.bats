#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Other programs that lock with files: they keep semlock out, and semlock keeps them out.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

needs() {
	command -v "$1" >/dev/null || complain "$1 is not installed: apt-get install $2"
}

@test "ofd and posix, and lckdo(1), exclude each other; flock and flock(1) do" {
	needs lckdo moreutils
	for method in ofd posix; do
		hold_lock -m $method l
		expect_status 75 lckdo -q l true
		let_go
		rm holder.*
		fifos other
		start other lckdo l "$PROBE" hold other.up other.down
		ready other
		expect_status 1 "$SEMLOCK" -n -m $method l true
		expect_status 0 "$SEMLOCK" -n -m flock l true
		let_go other
		rm other.*
	done
	hold_lock l
	expect_status 0 lckdo -q l true
	expect_status 1 "$(system_flock)" -n l true
	let_go
}

@test "link and dotlockfile(1) exclude each other" {
	needs dotlockfile liblockfile-bin
	hold_lock -m link l
	expect_status 0 test -s l
	capture dotlockfile -r 0 -p l
	[ "$status" -ne 0 ]
	expect_status 0 dotlockfile -c -p l
	let_go
	expect_status 0 dotlockfile -r 0 l
	expect_status 1 "$SEMLOCK" -n -m link l true
	start waiter "$SEMLOCK" -m link l true
	expect_status 0 dotlockfile -u l
	ended waiter 0
}

@test "a dead dotlockfile -p's lock is taken over, a live one's is not" {
	needs dotlockfile liblockfile-bin
	sh -c 'dotlockfile -r 0 -p l; echo $$ >owner'
	expect_status 0 "$SEMLOCK" -n -m link l true
	fifos script
	start script sh -c 'dotlockfile -r 0 -p l && "$0" hold script.up script.down; dotlockfile -u l' "$PROBE"
	ready script
	expect_status 1 "$SEMLOCK" -n -m link --stale .001 l true
	let_go script
	expect_status 0 "$SEMLOCK" -n -m link l true
}

@test "link and lockfile(1) of procmail exclude each other" {
	needs lockfile procmail
	hold_lock -m link l
	capture lockfile -r 0 l
	[ "$status" -ne 0 ]
	let_go
	expect_status 0 lockfile -r 0 l
	expect_status 1 "$SEMLOCK" -n -m link l true
	expect_status 1 "$SEMLOCK" -n --stale 1h -m link l true
	expect_status 1 "$SEMLOCK" -n -m excl l true
	start waiter "$SEMLOCK" -m link l true
	rm -f l
	ended waiter 0
}

@test "link and lockfile-create(1) exclude each other" {
	needs lockfile-create lockfile-progs
	hold_lock -m link l.lock
	capture lockfile-create -r 0 l
	[ "$status" -ne 0 ]
	let_go
	expect_status 0 lockfile-create -r 0 -p l
	expect_status 0 lockfile-check l
	expect_status 0 lockfile-remove l
	expect_status 0 "$SEMLOCK" -n -m link l.lock lockfile-check l
}

@test "link and mutt_dotlock(1) exclude each other" {
	needs mutt_dotlock mutt
	: >box
	hold_lock -m link box.lock
	expect_status 3 mutt_dotlock -r 0 box
	let_go
	expect_status 0 mutt_dotlock -r 0 box
	expect_status 1 "$SEMLOCK" -n -m link --stale 1h box.lock true
	start waiter "$SEMLOCK" -m link box.lock true
	"$PROBE" blocked "${PID[waiter]}"
	expect_status 0 mutt_dotlock -u box
	ended waiter 0
}

@test "excl and shlock(1) exclude each other" {
	PATH=$PATH:/usr/lib/news/bin
	command -v shlock >/dev/null || skip "no shlock here: Debian has it in inn2, a whole news server"
	start owner sleep 1000
	hold_lock -m excl l
	expect_status 1 shlock -p "${PID[owner]}" -f l
	let_go
	expect_status 0 shlock -p "${PID[owner]}" -f l
	expect_status 1 "$SEMLOCK" -n -m excl --stale .001 l touch ran
	kill -KILL "${PID[owner]}"
	ended owner 137
	expect_status 0 "$SEMLOCK" -n -m excl l true
	[ ! -e l ] && [ ! -e ran ]
}

# broken_by CMD...: the lock that semlock's command runs under looks old to CMD, which takes the lock
broken_by() {
	hold_lock -m link --on-lost=term l.lock
	touch -d '1 hour ago' l.lock
	expect_status 0 "$@"
	ended holder 76
	grep -q "another process has removed the lock" holder.err
	[ -e l.lock ] # CMD's lock
	rm -f l.lock ./*.up ./*.down
}

@test "a lock taken by force or by age is noticed, and left to its new holder" {
	needs lockfile procmail
	needs mutt_dotlock mutt
	: >l
	broken_by lockfile -1 -r 1 -l 600 -s 0 l.lock
	broken_by mutt_dotlock -f -r 1 l
}

# contended METHOD: semlock's loops, and those of another program, whose command is in script, are never inside at once
contended() {
	often 60
	start others "$PROBE" storm "$often" 3 sh ./script "$PROBE" inside room 20
	expect_status 0 "$PROBE" storm $((2 * often)) 4 "$SEMLOCK" -m "$1" l "$PROBE" inside room 20
	expect_out "0 x $((2 * often))"
	ended others 0
	expect_status 0 "$PROBE" verdict room $((60 * often))
}

@test "a shell's mkdir: in loops, never inside at once" {
	cat >script <<-'END'
		until mkdir l 2>/dev/null; do :; done
		"$@"
		rmdir l
	END
	contended mkdir
}

@test "a shell's set -C: in loops, never inside at once" {
	cat >script <<-'END'
		until (set -C && echo $$ >l) 2>/dev/null; do :; done
		"$@"
		rm l
	END
	contended excl
	rm room
	contended link
}

@test "a shell's ln -s: in loops, never inside at once" {
	cat >script <<-'END'
		until ln -s $$ l 2>/dev/null; do :; done
		"$@"
		rm l
	END
	contended symlink
}

@test "beside a breaker of dead locks: no overlap in loops, no lock lost" {
	starts_many
	for method in excl symlink; do
		start other python3 "$SOURCE/tests/lib/pid_file.py" "$method" l 30 "$PROBE" inside room 20
		expect_status 0 "$PROBE" storm 120 3 "$SEMLOCK" -m "$method" l "$PROBE" inside room 20
		expect_out "0 x 120"
		ended other 0
		[ "$(cat other.out)" = 0 ] || complain "locks of the other program that were removed: $(cat other.out)"
		expect_status 0 "$PROBE" verdict room 3000
		rm room
	done
}

@test "a script's rename of a file: in loops, never inside at once" {
	"$SEMLOCK" -m rename --init l true
	cat >script <<-'END'
		until perl -e 'rename "l", "l.held" or exit 1'; do :; done
		"$@"
		perl -e 'rename "l.held", "l"'
	END
	contended rename
}

@test "a script that renames the file just before semlock keeps the lock" {
	"$SEMLOCK" -m rename --init l true
	for failing in "" rename.rename:fail=22; do
		SEMLOCK_CRASH="rename.written:stop $failing" start late "$CRASHABLE_SEMLOCK" -n -m rename l touch ran
		"$PROBE" state "${PID[late]}" T
		mv l l.held
		kill -CONT "${PID[late]}"
		ended late 1
		mv l.held l
	done
	[ ! -e ran ]
}

@test "a script that renames a file with a killed semlock's record keeps it" {
	for point in rename.written rename.back; do
		"$SEMLOCK" -m rename --init l true
		SEMLOCK_CRASH=$point:kill expect_status 137 "$CRASHABLE_SEMLOCK" -m rename l true
		"$PROBE" gone "$(head -n 1 l)"
		grep -q "semlock/1 rename" l
		mv l l.held && touch -d '1 minute ago' l.held # as if the script came a minute after
		expect_status 1 "$SEMLOCK" -n -m rename l true
		expect_status 1 "$SEMLOCK" -w .3 -m rename l true
		expect_status 1 "$SEMLOCK" --who -m rename l
		[[ $out == *"(of an earlier holder, perhaps)"* ]] || complain "$out"
		refused 69 "but that may be an earlier holder" "$SEMLOCK" --replace -w 60 -m rename l touch ran
		[ ! -e ran ]
		mv l.held l
		expect_status 0 "$SEMLOCK" -n -m rename l true
		[ ! -s l ]
	done
	expect_status 137 "$SEMLOCK" -m rename l sh -c 'kill -KILL $PPID $$' # a dead holder's own is free all the same
	expect_status 0 "$SEMLOCK" -w 60 -m rename l true
}

@test "the first line is the PID for head, kill, pgrep -F, start-stop-daemon" {
	hold_lock -m excl l
	[ "$(head -n 1 l)" = "${COMMAND[holder]}" ]
	if command -v pgrep >/dev/null; then [ "$(pgrep -F l)" = "${COMMAND[holder]}" ]; fi
	if command -v start-stop-daemon >/dev/null; then
		expect_status 0 start-stop-daemon --status --pidfile "$PWD/l"
	fi
	kill -KILL "$(head -n 1 l)"
	ended holder 137
	[ ! -e l ]
}

# As minicom(1) writes it, and others that lock a serial line: their name and user follow the PID.
@test "words behind the PID: a living program's lock is kept, a dead one's not" {
	start program sleep 1000
	for method in link excl; do
		foreign_lock $method "$(printf '%10d minicom root' "${PID[program]}")"$'\n'
		refused 1 "held by ${PID[program]}" "$SEMLOCK" -v -n -m $method l true
		expect_status 1 "$SEMLOCK" --who -m $method l
		[[ $out == *" ${PID[program]} "*"sleep 1000"* ]] || complain "$out"
	done
	kill -KILL "${PID[program]}"
	ended program 137
	for method in link excl; do
		foreign_lock $method "$(printf '%10d minicom root' "${PID[program]}")"$'\n'
		expect_status 0 "$SEMLOCK" -n -m $method l true
		# no lock, but a file with other content: nobody's death frees it
		for content in '2024 1,250.00 EUR\n' "${PID[program]} minicom root\\nmore\\n" "${PID[program]} minicom" "${PID[program]}th day\\n" "${PID[program]} 67\\n"; do
			# shellcheck disable=SC2059 # that is the format
			printf "$content" >l
			expect_status 1 "$SEMLOCK" -n -m $method l true
		done
		rm l
	done
}
