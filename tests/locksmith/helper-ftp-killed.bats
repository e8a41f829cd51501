#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# An FTP client that is killed at any of its steps, and lock directories without a sign.

load ../lib/helper-ftp

@test "a directory without a holder's sign goes after --stale, never with 0" {
	server
	mkdir "$ROOT/L"
	with_wait --stale=0 "$URL/L"
	smith a --stale=0.5 "$URL/L"
	until_line a NOTE # at once, if the directory was old enough by the server's clock
	[[ $LINE == *"empty for too long"* ]]
	expect a OK
}

@test "--stale dates an empty directory by the server's clock, also with -n" {
	server
	mkdir "$ROOT/L"
	touch -d '-10000 seconds' "$ROOT/L"
	run_smith --no-wait "$URL/L"
	[ "$status" -eq 1 ]
	run_smith --no-wait --stale=0 "$URL/L"
	[ "$status" -eq 1 ]
	run_smith --no-wait --stale=11000 "$URL/L"
	[ "$status" -eq 1 ]
	smith a --no-wait --stale=9000 "$URL/L"
	expect a NOTE
	[[ $LINE == *"empty for too long"* ]]
	expect a OK
	unlock a
	[ "$STATUS" -eq 0 ]
	# A year is more than a number of seconds that an option may have.
	mkdir "$ROOT/L"
	touch -d '-1 year' "$ROOT/L"
	smith a --no-wait --stale=9000 "$URL/L"
	until_line a OK
	unlock a
	[ -z "$(ls "$ROOT")" ]
}

# killed_before NAME CMD PATTERN: NAME is killed after what it did last, and before it has sent the CMD that is
# stopped, whose line in the server's log matches PATTERN.
killed_before() {
	in_file "$DIR/log" "^stop $2 $3"
	kill -KILL "${SMITH_PID[$1]}"
	wait "${SMITH_PID[$1]}" || true
	fault "drop-$2"
	mend "stop-$2"
	in_file "$DIR/log" "^drop $2 $3"
	: >"$DIR/log"
}

# killed_signless: a helper is killed between the making of L and that of its sign.
killed_signless() {
	fault stop-PWD
	smith killed "$URL/L"
	in_file "$DIR/log" "^stop PWD"
	fault skip-one-MKD
	fault stop-MKD
	mend stop-PWD
	killed_before killed MKD "[^ ]*/sl1"
}

# free_within SECS: an empty directory is left, which is busy for -n, and is had by who waits with --stale=SECS.
free_within() {
	[ -d "$ROOT/L" ] && [ -z "$(ls "$ROOT/L")" ] || complain "$(find "$ROOT")" || return
	run_smith --no-wait "$URL/L"
	[ "$status" -eq 1 ] || return
	smith next --ttl=60 --stale="$1" "$URL/L"
	until_line next NOTE && [[ $LINE == *"empty for too long"* ]] && expect next OK || return
	unlock next
	[ "$STATUS" -eq 0 ]
}

@test "killed between the lock and its sign: busy for --stale and not longer" {
	server
	killed_signless
	free_within 2
}

@test "killed between lock and sign: the next reports once why it waits" {
	server
	killed_signless
	smith next --ttl=2 --wait=600 "$URL/L"
	expect next WAIT
	[[ $LINE == *"since="*"without a sign"* ]]
	expect next NOTE
	[[ $LINE == *"a plain client has made it, or a client of semlock's that was killed; it is removed once it has been empty for 600 s (--stale)" ]]
	rmdir "$ROOT/L"
	expect next OK
	unlock next
	smith killed --wait=600 "$URL/L"
	expect killed OK
	kill -KILL "${SMITH_PID[killed]}"
	wait "${SMITH_PID[killed]}" || true
	rmdir "$ROOT"/L/*
	smith next --ttl=2 --stale=0 --wait=600 "$URL/L"
	until_line next NOTE
	[[ $LINE == *"it is never removed (--stale=0)" ]]
	[ -d "$ROOT/L" ]
}

@test "killed with its sign written, before it looked: free after its lease" {
	server
	fault stop-STAT
	smith killed --ttl=2 "$URL/L"
	killed_before killed STAT "[^ ]*L"
	smith next "$URL/L"
	until_line next NOTE
	[[ $LINE == *"taken over from"* ]]
	expect next OK
	unlock next
	[ -z "$(ls "$ROOT")" ]
}

@test "killed at its release, before the lock is removed: busy for --stale" {
	server
	smith killed "$URL/L"
	expect killed OK
	fault skip-one-RMD
	fault stop-RMD
	tell killed UNLOCK
	killed_before killed RMD "[^ ]*/L\$"
	free_within 2
}

@test "killed as it takes over, before the lock is removed: busy for --stale" {
	server
	mkdir -p "$ROOT/L/sl1.x.2.5.0123456789abcdef.99.elsewhere"
	smith killed "$URL/L"
	expect killed WAIT
	fault skip-one-RMD
	fault stop-RMD
	killed_before killed RMD "[^ ]*/L\$"
	free_within 2
}

@test "a plain client keeps its lock past leases, even after a killed holder" {
	server
	# All that the killed helper's next step would have done is done by the plain client.
	fault stop-MKD
	smith killed --ttl=2 "$URL/L"
	killed_before killed MKD "[^ ]*/L\$"
	curl -s -u lock:secret "$URL/" -Q "MKD L" -I
	smith next --ttl=2 --wait=600 "$URL/L"
	expect next WAIT
	expect next NOTE # more than a lease
	[[ $LINE == *"without a sign"* ]]
	with_wait --ttl=2 "$URL/L"
	curl -s -u lock:secret "$URL/" -Q "RMD L" -I
	after_waits next OK
}
