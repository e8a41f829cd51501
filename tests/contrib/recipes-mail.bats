#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/recipes: procmail, and mailboxes that other mail programs lock as well.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/recipes

tidy() { exec 6>&- 7>&-; }

# mail N: a message
mail() {
	printf 'From ann@example.org Mon Jan  1 00:00:0%s 2024\nFrom: Ann\nSubject: "$(touch ran)" %s\n\nbody\n\n' "$1" "$1"
}

# deliver N: procmail gets mail N, as the mail server would start procmail
deliver() {
	mail "$1" | procmail HOME="$PWD" LOGFILE="$PWD/procmail.log" VERBOSE=on LOCKSLEEP=1 NOTIFY_SECONDS=0 \
		NOTIFY_SHOW="$PWD/bin/show" PROBE="$PROBE" ROOM="$PWD" "$RECIPES/procmailrc" 3>&- 4>&-
}

# screen: bin/show, which notes a clash if another text is on the screen, and keeps its text until the test writes to it.
screen() {
	ln -s "$RECIPES/notify" bin/notify
	cat >bin/show <<-'END'
		#!/bin/sh
		cd "$ROOM" || exit
		mkdir screen || echo "$1" >>clash
		printf '%s\n' "$1" | tail -n 1 >>shown
		"$PROBE" hold show.up show.down
		rmdir screen
	END
	chmod +x bin/show
	mkfifo show.up show.down
	exec 6<>show.up 7<>show.down
}

# on_screen: waits until the next text is on the screen.
on_screen() {
	read -r -t "$PATIENCE" -u 6 _ || complain "nothing is shown" "$(cat ./*.log)"
}

# waiting N: waits until N texts wait for the screen
waiting() {
	local end=$((SECONDS + PATIENCE))
	until "$SEMLOCK" --who .notify.lock | grep -q "held, $1 waiting"; do
		[ $SECONDS -lt $end ] || complain "not $1 waiting" "$("$SEMLOCK" --who .notify.lock)" || return
	done
}

@test "procmail, notify: mails are shown in turn, and delivered before that" {
	screen
	expect_status 0 deliver 1
	on_screen
	expect_status 0 deliver 2
	waiting 1
	expect_status 0 deliver 3
	waiting 2
	[ "$(grep -c '^body$' INBOX)" -eq 3 ]
	[ "$(cat shown)" = 'Subject: "$(touch ran)" 1' ]
	for _ in 2 3; do
		printf . >&7
		on_screen
	done
	printf . >&7
	"$PROBE" until-free .notify.lock
	[ "$(cat shown)" = "$(printf 'Subject: "$(touch ran)" %s\n' 1 2 3)" ]
	[ ! -e clash ]
	[ ! -e ran ]
}

@test "notify: returns at once, with nothing open, while the text is shown" {
	screen
	mail 1 | NOTIFY_SECONDS=0 NOTIFY_SHOW=$PWD/bin/show ROOM=$PWD timeout 60 "$RECIPES/notify" >said
	on_screen
	# a reader that waits for the end of notify's output must not wait for the screen
	[ -z "$(mail 2 | NOTIFY_SECONDS=0 NOTIFY_SHOW=$PWD/bin/show ROOM=$PWD timeout 60 "$RECIPES/notify" 2>&1 | cat)" ]
	[ "$(wc -l <shown)" -eq 1 ]
	printf . >&7
	on_screen
	printf . >&7
}

@test "notify: without the program that shows, it says so" {
	mail 1 >m
	expect_status 127 env NOTIFY_SHOW=no-such-program "$RECIPES/notify" <m
	[ "$err" = 'notify: there is no no-such-program' ]
}

@test "procmail, notify: of three mails at once none is lost, none covered" {
	screen
	for mail in 1 2 3; do
		deliver $mail &
		server[mail]=$!
	done
	for mail in 1 2 3; do wait "${server[mail]}"; done
	[ "$(grep -c '^body$' INBOX)" -eq 3 ]
	for mail in 1 2 3; do
		on_screen
		printf . >&7
	done
	"$PROBE" until-free .notify.lock
	[ "$(sort shown)" = "$(printf 'Subject: "$(touch ran)" %s\n' 1 2 3)" ]
	[ ! -e clash ]
}

@test "mailbox: keeps procmail, dotlockfile and fcntl out while a command runs" {
	stand mine mailbox INBOX
	[ "$(stat -c %a INBOX)" = 600 ]
	expect_held INBOX posix 0 0
	capture dotlockfile -r 0 -p INBOX.lock
	[ "$status" -ne 0 ]
	screen
	deliver 1 &
	server[1]=$!
	# procmail has found INBOX.lock, and looks again
	until [ "$(grep -c 'Locking.*INBOX.lock' procmail.log)" -ge 2 ]; do kill -0 "${server[1]}"; done
	[ ! -s INBOX ]
	let_go mine
	wait "${server[1]}"
	grep -q '^body$' INBOX
	[ ! -e INBOX.lock ]
	expect_free INBOX posix 0 0
	expect_status 3 mailbox INBOX sh -c 'echo out; exit 3'
	expect_out out
	printf . >&7
}

@test "mailbox: waits for either of the two locks, and holds neither meanwhile" {
	: >INBOX
	# a program takes the file first, as procmail does ...
	expect_status 0 dotlockfile -r 0 INBOX.lock
	start mine mailbox INBOX touch ran
	until pgrep -P "${PID[mine]}" -f 'link INBOX.lock true' >/dev/null; do kill -0 "${PID[mine]}"; done
	# ... and would take fcntl next: that lock is free
	expect_free INBOX posix 0 0
	[ ! -e ran ]
	expect_status 0 dotlockfile -u INBOX.lock
	ended mine 0
	[ -e ran ]
	# a program takes fcntl first
	fifos theirs
	start theirs "$PROBE" fcntl-hold INBOX posix write 0 0 theirs.up theirs.down
	ready theirs
	behind mine mailbox INBOX
	# ... and takes the file next
	expect_status 0 dotlockfile -r 0 INBOX.lock
	expect_status 0 dotlockfile -u INBOX.lock
	let_go theirs
	ready mine
	let_go mine
}

@test "mailbox: passes a signal on, and holds the locks until the command ends" {
	fifos mine
	start mine mailbox INBOX "$PROBE" signals mine.up mine.down
	ready mine
	for name in TERM HUP TERM; do
		kill -"$name" "${PID[mine]}"
		reports mine "$name"
	done
	expect_held INBOX posix 0 0
	[ -e INBOX.lock ]
	let_go mine
	expect_free INBOX posix 0 0
	for pair in TERM:143 HUP:129; do
		rm -f mine.up mine.down
		stand mine mailbox INBOX
		kill -"${pair%:*}" "${PID[mine]}"
		ended mine "${pair#*:}"
		"$PROBE" gone "${COMMAND[mine]}"
		expect_free INBOX posix 0 0
		[ ! -e INBOX.lock ]
	done
}

@test "mailbox: a signal ends the wait for either lock; the command never runs" {
	: >INBOX
	expect_status 0 dotlockfile -r 0 INBOX.lock
	start mine mailbox INBOX touch ran
	until waits=$(pgrep -P "${PID[mine]}" -f 'link INBOX.lock true'); do kill -0 "${PID[mine]}"; done
	kill -TERM "${PID[mine]}"
	ended mine 143
	"$PROBE" gone "$waits"
	expect_status 0 dotlockfile -u INBOX.lock
	fifos theirs
	start theirs "$PROBE" fcntl-hold INBOX posix write 0 0 theirs.up theirs.down
	ready theirs
	behind mine mailbox INBOX
	waits=$(semlock_of "${PID[mine]}")
	kill -TERM "${PID[mine]}"
	ended mine 143
	"$PROBE" gone "$waits"
	let_go theirs
	[ ! -e ran ]
}

@test "mailbox: the command keeps its input, its terminal and its exit status" {
	expect_status 1 mailbox INBOX sh -c 'cat >delivered; exit 1' <<<hello
	[ "$(cat delivered)" = hello ]
	expect_status 0 mailbox INBOX grep -E '^SigIgn' /proc/self/status
	mine=$out
	[ "$mine" = "$(grep -E '^SigIgn' /proc/self/status)" ] || complain "$mine"
}

@test "mailbox: what cannot be locked is said, and the command does not run" {
	mkdir INBOX
	capture mailbox INBOX touch ran
	[ "$status" -ge 64 ]
	[ -n "$err" ]
	[ ! -e ran ]
}
