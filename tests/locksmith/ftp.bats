#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock ftp://SERVER/PATH COMMAND; the server is started here.
# shellcheck disable=SC2030,SC2031 # each test has a server of its own
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote

prepare() {
	prepare_remote
	export SEMLOCK_USER=lock SEMLOCK_PASSWORD=secret
	python_server ready server.err ftp.py "$DIR"
	URL=ftp://127.0.0.1:$PORT/nightly
	ROOT=$DIR/root
}

fault() { : >"$DIR/faults/$1"; }

tidy() { [ -z "${SERVER:-}" ] || kill -KILL "$SERVER"; }

plain() { curl -s -u lock:secret "ftp://127.0.0.1:$PORT/" -Q "$1 nightly" -I >/dev/null; }

@test "the command gets its input, its status and the lock's variables" {
	runs_a_command
	expect_status 0 "$SEMLOCK" "$URL" sh -c 'echo "$SEMLOCK_METHOD $SEMLOCK_MODE ${SEMLOCK_TOKEN-none}"'
	expect_out "ftp exclusive none"
	[ -z "$(ls "$ROOT")" ]
}

@test "under its own command the lock is refused with 64; --nested runs" {
	refused 64 "held by the semlock above this command" "$SEMLOCK" "$URL" "$SEMLOCK" "$URL" touch ran
	expect_status 1 "$SEMLOCK" "$URL" "$SEMLOCK" -n "$URL" touch ran
	expect_status 7 "$SEMLOCK" "$URL" "$SEMLOCK" -w 60 -E 7 "$URL" touch ran
	[ ! -e ran ]
	expect_status 5 "$SEMLOCK" "$URL" "$SEMLOCK" --nested "$URL" sh -c 'exit 5'
	[ -z "$(ls "$ROOT")" ]
}

@test "when semlock has ended the lock is free: the next -n has it" {
	for _ in 1 2 3 4 5; do
		expect_status 0 "$SEMLOCK" -n "$URL" true
	done
}

@test "-n killed while it watches a seemingly dead holder takes nothing later" {
	token=$ROOT/nightly/sl1.x.30.5.0123456789abcdef.99.elsewhere
	mkdir -p "$token"
	touch -d '-1 hour' "$ROOT/nightly"
	start impatient "$SEMLOCK" -n "$URL" touch ran
	in_file log "^RMD [^ ]*sl-probe-[^ ]* 250"
	helper=$(helper_of impatient)
	kill -TERM "${PID[impatient]}"
	ended impatient 143
	gone "$helper"
	[ -d "$token" ]
	[ ! -e ran ]
}

@test "one at a time: -n and -w give up, a waiter gets it" {
	holds_against_others
	waiter_gets_it "$URL"
	[ -z "$(ls "$ROOT")" ]
}

@test "a plain client that makes and removes the directory excludes both ways" {
	hold_lock "$URL"
	! plain MKD || complain "it made the directory"
	! plain RMD || complain "it removed the directory"
	release holder
	ended holder 0
	plain MKD
	expect_status 1 "$SEMLOCK" -n "$URL" true
	plain RMD
	expect_status 0 "$SEMLOCK" -n "$URL" true
}

@test "readers and slots are refused: 64, and no lock is taken" {
	for mode in -s "-j 2"; do
		# shellcheck disable=SC2086 # two words
		refused 64 "$URL" "$SEMLOCK" $mode "$URL" touch ran
	done
	if grep MKD log; then complain "a directory was made"; fi
	[ ! -e ran ]
}

@test "TERM to semlock reaches the command, which decides" {
	report_as holder "$URL"
	kill -TERM "${PID[holder]}"
	reports holder TERM
	release holder
	ended holder 0
}

@test "the sign removed behind its back: the command is stopped, exit 76" {
	hold_lock --ttl=$((4 * PACE)) "$URL"
	# A heartbeat may rename the token at the same moment.
	until rm -rf "$ROOT/nightly" 2>/dev/null; do kill -0 "${PID[holder]}"; done
	ended holder 76
	grep -q "the lock is lost: .*stopping the command" holder.err
}

@test "the server goes for good: the command is stopped, exit 76" {
	hold_lock --ttl=$((4 * PACE)) "$URL"
	kill -KILL "$SERVER"
	SERVER=
	ended holder 76
	[ "$(grep -vc ": not renewed yet: " holder.err)" -eq 1 ] || complain "$(cat holder.err)"
}

@test "a helper that is killed or stopped: the command is stopped, exit 76" {
	hold_lock --ttl=$((20 * PACE)) "$URL"
	kill -KILL "$(helper_of holder)"
	ended holder 76
	rm -r "$ROOT/nightly"
	hold_as other --ttl=$((4 * PACE)) "$URL"
	smith=$(helper_of other)
	kill -STOP "$smith"
	ended other 76
	kill -CONT "$smith"
}

@test "either semlock killed: all that the command started ends before the next" {
	ends_with_semlock
}

# Clients look, and no order is kept: the next one comes when the sign of the stopped one, with its PID, is there.
stopped_with_sign() {
	local url=${URL/nightly/nightly$ttl} sign inner
	rm -f ./*.up ./*.down
	hold_lock --ttl="$ttl" "$url" || return
	fifos stopped && fifos next
	start stopped "$SEMLOCK" -v --ttl="$ttl" "$url" "$PROBE" hold stopped.up stopped.down
	waits_for stopped "waiting: held by" || return
	inner=$(inner stopped) sign="[^ ]*\.${PID[stopped]}\."
	kill -STOP "${PID[stopped]}" "$inner"
	let_go && in_file log "^MKD $sign" || return
	start next "$SEMLOCK" -v --ttl="$ttl" "$url" "$PROBE" hold next.up next.down
	ready next && none "^RNFR $sign" log || return
	kill -CONT "$inner" "${PID[stopped]}"
	let_go next && ready stopped && let_go stopped
}

@test "a waiter stopped by Ctrl-Z in its turn delays one lease, then gets it" {
	with_lease 2 stopped_with_sign
}

@test "bad password 77, no server 69, unwritable directory 73: one line each" {
	SEMLOCK_PASSWORD=wrong refused 77 "$URL" "$SEMLOCK" -n "$URL" touch ran
	refused 69 "ftp://127.0.0.1:1" "$SEMLOCK" -n ftp://127.0.0.1:1/nightly touch ran
	refused 73 "missing/nightly" "$SEMLOCK" -n "ftp://127.0.0.1:$PORT/missing/nightly" touch ran
	[ ! -e ran ]
}

@test "a server that refuses a login late gives 77, also with -n and a short -w" {
	local wait
	server_kill
	python_server again server.err ftp.py "$DIR" --port="$PORT" --refuses-after=3.5
	for wait in -n "-w 30"; do
		# shellcheck disable=SC2086 # two words
		SEMLOCK_PASSWORD=wrong refused 77 "login denied" "$SEMLOCK" $wait "$URL" touch ran
	done
	[ ! -e ran ]
}

@test "the password is in no command line" {
	SEMLOCK_PASSWORD=secret hold_lock "$URL"
	for process in /proc/[0-9]*/cmdline; do
		case $process in "/proc/$SERVER/"*) continue ;; esac
		case $(readlink "${process%/*}/cwd") in "$DIR"*) ;; *) continue ;; esac # another test's
		if tr '\0' ' ' <"$process" 2>/dev/null | grep -q "lock:secret\|=secret"; then complain "in $process"; fi
	done
	release holder
	ended holder 0
}

@test "an answer that breaks off is none: --who says 69, not that all is well" {
	fake ftp < <(printf '#!/bin/sh\necho LOCKSMITH 2; kill -KILL $$\n')
	expect_status 69 "$SEMLOCK" --who "$URL"
}

@test "--who shows the holder's command with its words, elsewhere its PID" {
	expect_status 0 "$SEMLOCK" --who "$URL"
	hold_lock --ttl=$((8 * PACE)) "$URL"
	COLUMNS=300 expect_status 1 "$SEMLOCK" --who "$URL"
	grep -Eq "^held +${COMMAND[holder]} .* exclusive .* hold holder.up holder.down" .out
	# Another host knows what the name on the server says: the command's PID from the first heartbeat on.
	known() {
		run_smith --who "$URL"
		[[ $output == "WHO state=holds pid=${COMMAND[holder]} host="*" mode=exclusive" ]]
	}
	eventually known
}

@test "a server that is not there yet is waited for like a lock" {
	server_kill
	start waiter "$SEMLOCK" -v -w 60 "$URL" touch ran
	waits_for waiter "waiting: for the server: "
	[ ! -e ran ]
	python_server ready server.err ftp.py "$DIR" --port="$PORT"
	ended waiter 0
	[ -e ran ]
	kill -KILL "$SERVER"
	refused 69 "onnect" "$SEMLOCK" -w 1 "$URL" touch late
	refused 69 "onnect" "$SEMLOCK" -n "$URL" touch late
	[ ! -e late ]
}

@test "a silent FTP server gives 69, not 1; with -n within 3 s" {
	kill -STOP "$SERVER"
	no_answer_in_time
	kill -CONT "$SERVER"
	[ ! -e ran ]
}

@test "a server that falls silent after login gives 69; the next gets the lock" {
	fault stop-MKD
	for wait in -n "-w 1"; do
		# shellcheck disable=SC2086 # two words
		refused 69 "did not answer in time" "$SEMLOCK" $wait "$URL" touch ran
	done
	rm faults/stop-MKD
	expect_status 0 "$SEMLOCK" -w 60 --stale=1 "$URL" true
	[ ! -e ran ]
}

@test "what the helper warns of reaches the user" {
	unset SEMLOCK_USER SEMLOCK_PASSWORD
	printf 'machine 127.0.0.1 login lock password secret\n' >open.netrc
	chmod 644 open.netrc
	NETRC=$PWD/open.netrc expect_status 0 "$SEMLOCK" "$URL" true
	[ "$err" = "semlock: $URL: $PWD/open.netrc: others can read it: chmod 600 it" ] || complain "$err"
	chmod 600 open.netrc
	mkdir -p "$ROOT/nightly/sl1.x.6.5.0123456789abcdef.99.elsewhere"
	touch -d '-63 seconds' "$ROOT/nightly"
	NETRC=$PWD/open.netrc expect_status 0 "$SEMLOCK" -n "$URL" true
	[[ $err == "semlock: $URL: taken over from 99 on elsewhere, silent for "* ]] || complain "$err"
	NETRC=$PWD/none refused 77 "no user for 127.0.0.1" "$SEMLOCK" -n "$URL" true
}
