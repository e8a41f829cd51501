#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What etcd does and nobody hears of, or does late: answers that are lost, requests that stand still in a member.
# By semlock-locksmith alone; the servers are started here.

load ../lib/helper-etcd

# lease_of LOCK: the lease that its first key is under.
lease_of() { printf %x "$(ctl get "$1/" --prefix -w fields | awk '$1 == "\"Lease\"" { print $3; exit }')"; }

# past NANOSECONDS: waits until that moment.
past() { [ "$(now)" -gt "$1" ] || "$PROBE" pause $((($1 - $(now)) / 1000000 + 10)); }

# do_held CALL: the server does what was held back.
do_held() { rm "$DIR/faults/held-$1" && in_file "$DIR/between.log" "late $1"; }

late_renewal() {
	local deadline lease
	smith a --ttl="$ttl" "etcd://$BETWEEN/L$ttl" && expect a OK || return
	: >"$DIR/faults/late-txn"
	expect a HELD && expect a HELD && [ -e "$DIR/faults/held-txn" ] || return
	deadline=$(field "$LINE" deadline)
	kill -STOP "${SMITH_PID[a]}" # as one that is cut off
	lease=$(lease_of "L$ttl")
	do_held txn || return
	[ "$(lease_of "L$ttl")" = "$lease" ] || complain "the key was taken back to an older lease" || return
	smith b "etcd://$ETCD/L$ttl" && until_line b OK || return
	[ "$(now)" -gt "$deadline" ] || complain "the next was in before the deadline" || return
}

@test "a renewal done late, after a newer one, does not shorten the key's life" {
	etcd_single
	etcd_between
	with_lease 6 late_renewal
}

entered_late() {
	local lock=L$#.$ttl lease
	smith a "$@" "etcd://$ETCD/$lock" && expect a OK || return
	smith b --ttl="$ttl" "$@" "etcd://$BETWEEN/$lock" && expect b WAIT || return
	# One that waits for long has renewed its lease, and enters under another.
	: >"$DIR/between.log"
	in_file "$DIR/between.log" keepalive || return
	: >"$DIR/faults/late-txn"
	unlock a
	in_file "$DIR/between.log" "held txn" && until_line b OK && expect b HELD || return
	lease=$(lease_of "$lock")
	do_held txn || return
	[ "$(lease_of "$lock")" = "$lease" ] || complain "the key was taken back to an older lease" || return
	unlock b
	[ "$STATUS" -eq 0 ]
}

@test "an entering that a member does late, behind a renewal, is not done" {
	etcd_single
	etcd_between
	with_lease 6 entered_late
	with_lease 6 entered_late --slots=1
}

@test "a renewal whose reply is lost counts, and the lock is held on" {
	etcd_single
	etcd_between
	smith a --ttl=$((9 * PACE)) "etcd://$BETWEEN/L"
	expect a OK
	: >"$DIR/between.log"
	: >"$DIR/faults/lose-txn"
	expect a HELD
	in_file "$DIR/between.log" "lost txn"
	[ "$(grep -c grant "$DIR/between.log")" -eq 1 ] || complain "$(cat "$DIR/between.log")"
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
	[ -z "$(keys)" ] || complain "left: $(keys)"
}

unheard() {
	local before
	smith a --ttl="$ttl" "etcd://$BETWEEN/L$ttl" && expect a OK || return
	before=$(lease_of "L$ttl")
	: >"$DIR/faults/mute-txn"
	# It is done, and asked for again, but nobody hears of that for longer than one try takes.
	until [ "$(lease_of "L$ttl")" != "$before" ]; do nap 20; done
	past $(($(now) + ttl * 400000000))
	rm "$DIR/faults/mute-txn"
	expect a HELD && expect a HELD || return
	unlock a
	[ "$STATUS" -eq 0 ] && [ -z "$(keys)" ]
}

@test "a renewal without a reply over several tries keeps the lock" {
	etcd_single
	etcd_between
	with_lease 9 unheard
}

@test "a waiter that enters twice for lack of a reply holds the lock once" {
	etcd_single
	etcd_between
	smith a --slots=1 "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=$((20 * PACE)) --slots=1 "etcd://$BETWEEN/L"
	expect b WAIT
	smith c --slots=1 "etcd://$ETCD/L"
	expect c WAIT
	# From now on it enters under a lease of its own.
	in_file "$DIR/between.log" keepalive
	: >"$DIR/between.log"
	echo 1 >"$DIR/faults/mute-txn" # after the look at the place
	unlock a
	in_file "$DIR/between.log" grant
	# A try lasts ten seconds, and with the last of these less than half of that lease is left.
	past $(($(now) + 10000000000 * PACE + 500000000))
	rm "$DIR/faults/mute-txn"
	until_line b OK
	[ "$(field "$LINE" slot)" = 0 ] || complain "$LINE"
	[ "$(grep -c grant "$DIR/between.log")" -eq 2 ] || complain "$(cat "$DIR/between.log")"
	expect b HELD
	unlock b
	[ "$STATUS" -eq 0 ]
	until_line c OK
	unlock c
	[ -z "$(keys)" ] || complain "left: $(keys)"
}

# full, room: the server has no room from now on, and some again.
full() { while head -c 100000 /dev/zero | tr '\0' x | ctl put full >/dev/null 2>&1; do :; done; }

room() {
	ctl del full >/dev/null &&
		ctl compact "$(ctl get full -w json | jq .header.revision)" >/dev/null &&
		ctl defrag >/dev/null && ctl alarm disarm >/dev/null
}

late_without_room() {
	local deadline lock=L$ttl
	smith a --ttl="$ttl" "etcd://$BETWEEN/$lock" && expect a OK || return
	: >"$DIR/faults/late-txn"
	echo 1 >"$DIR/faults/stop-txn" # the second, which is the first again
	in_file "$DIR/between.log" "held txn" || return
	full
	rm "$DIR/faults/stop-txn"
	until_line a HELD && until_line a HELD && until_line a HELD || return
	deadline=$(field "$LINE" deadline)
	kill -STOP "${SMITH_PID[a]}"
	room && do_held txn || return
	smith b "etcd://$ETCD/$lock" && until_line b OK || return
	[ "$(now)" -gt "$deadline" ] || complain "the next was in before the deadline" || return
}

@test "a late renewal after refusals for lack of room keeps the key in time" {
	etcd_single --quota-backend-bytes 200000
	etcd_between
	with_lease 9 late_without_room
}
