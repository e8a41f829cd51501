#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# An etcd, or its machine, that is so busy that it takes no more connections, or answers late, or says that it does.
# By semlock-locksmith alone; the servers are started here.

load ../lib/helper-etcd

is_past() { [ "$(now)" -gt "$1" ]; }

# past NANOSECONDS: waits until that moment.
past() { is_past "$1" || "$PROBE" pause $((($1 - $(now)) / 1000000 + 10)); }

# lease_number N LOCK: the lease of its Nth key.
lease_number() { ctl get "$2/" --prefix --keys-only --sort-by=CREATE | grep . | sed -n "$1s,.*/0*,,p"; }

# kept_until LEASE CMD...: another client keeps LEASE alive until CMD is true, as a server does that ends leases late.
kept_until() {
	until "${@:2}"; do
		ctl lease keep-alive --once "$1" >/dev/null || return
		"$PROBE" pause 300
	done
}

@test "without --wait, a server that was reached and falls silent is waited for" {
	etcd_single
	etcd_between
	smith a --ttl=60 "etcd://$ETCD/L"
	expect a OK
	: >"$DIR/faults/stop-grant"
	smith b "etcd://$BETWEEN/L"
	in_file "$DIR/between.log" "stop grant"
	etcd_between_full
	# Longer than the first answer is waited for, and than the second connection is.
	past $(($(now) + 33000000000))
	kill -0 "${SMITH_PID[b]}" || { until_line b ERR; complain "$LINE"; }
	etcd_between_goes_on
	rm "$DIR/faults/stop-grant"
	until [ "$(keys | grep -c .)" -eq 2 ]; do expect b WAIT; done
	unlock a
	until_line b OK
	unlock b
	[ "$STATUS" -eq 0 ]
}

@test "a server takes no connection from the first on: 69, without --wait" {
	etcd_single
	etcd_between
	etcd_between_full
	LINE_SECONDS=120 # a busy machine gives the server more time
	smith a "etcd://$BETWEEN/L"
	until_line a ERR
	[[ $LINE == "ERR 69 "* ]] || complain "$LINE"
	smith_ended a
	[ "$STATUS" -eq 69 ]
}

# behind LOCK: a holds LOCK, b waits through the proxy, and c behind it; LEASE is that of b's place.
behind() {
	rm -f "$DIR/faults/"* # of a shorter lease
	smith a --ttl=60 "etcd://$ETCD/$1" && expect a OK &&
		smith b --ttl="$ttl" "etcd://$BETWEEN/$1" && expect b WAIT &&
		smith c --ttl=600 "etcd://$ETCD/$1" && expect c WAIT && LEASE=$(lease_number 2 "$1")
}

# turn_comes: b enters before c.
turn_comes() {
	unlock a
	until_line b OK || return
	PASSED_B=$PASSED
	unlock b
	[ "$STATUS" -eq 0 ] && until_line c OK && unlock c
}

full_for_long() {
	behind "L$ttl" && etcd_between_full || return
	# Longer than the lease lasts, and than an answer is waited for.
	kept_until "$LEASE" is_past $(($(now) + ttl * 1000000000 + 13000000000)) || return
	: >"$DIR/between.log"
	etcd_between_goes_on
	kept_until "$LEASE" grep -q keepalive "$DIR/between.log" && turn_comes || return
	grep -q "WAIT note=for the server: " <<<"$PASSED_B"
}

@test "a server full for longer than a lease: a waiter with its place enters" {
	etcd_single
	etcd_between
	with_lease 4 full_for_long
}

# At most 12 times in ten seconds, counted over the time that the look really took.
asked_seldom() {
	local began times
	behind "L$ttl" || return
	says keepalive "1 5 88$(header content-type application/grpc)$(header grpc-status 14)$(header grpc-message late)"
	kept_until "$LEASE" grep -q "said keepalive" "$DIR/between.log" || return
	began=$(now)
	kept_until "$LEASE" is_past $((began + 10000000000)) || return
	times=$(grep -c "said keepalive" "$DIR/between.log")
	[ "$times" -lt $((($(now) - began) * 12 / 10000000000)) ] || complain "$times times" || return
	rm "$DIR/faults/say-keepalive"
	turn_comes
}

@test "a server that reports it is late is asked less often, and keeps places" {
	etcd_single
	etcd_between
	with_lease 4 asked_seldom
}

long_place() {
	rm -f "$DIR/faults/"*
	smith a --ttl=60 "etcd://$ETCD/L$ttl" && expect a OK || return
	: >"$DIR/faults/stop-grant"
	smith b --ttl="$ttl" "etcd://$BETWEEN/L$ttl" || return
	in_file "$DIR/between.log" "stop grant" && past $(($(now) + ttl * 1000000000 / 6)) || return
	rm "$DIR/faults/stop-grant"
	expect b WAIT || return
	[ "$(granted "L$ttl")" -eq $((4 * ttl)) ] || complain "$(granted "L$ttl") seconds" || return
	unlock a
	until_line b OK || return
	# The lock is held under a lease as long as it was asked for.
	[ "$(field "$LINE" lease)" -eq "${ttl}000000000" ] && expect b HELD && unlock b && [ "$STATUS" -eq 0 ]
}

# granted LOCK: for how many seconds the lease of its second place is granted.
granted() { ctl lease timetolive "$(lease_number 2 "$1")" | sed 's/.*granted with TTL(\([0-9]*\)s.*/\1/'; }

@test "a slow server gives places four times the lease, the lock its own" {
	etcd_single
	etcd_between
	with_lease 6 long_place
}

# expect_held [NS]: a says HELD, and not with an earlier deadline than before; LEASE is the length of its lease.  The
# renewal, which counts from its begin and takes NS, began so early that it ended before a's command would have to end.
expect_held() {
	local lease before=$DEADLINE term=$((DEADLINE - LEASE / 3))
	expect a HELD || return
	DEADLINE=$(field "$LINE" deadline)
	[ "$DEADLINE" -ge "$before" ] || complain "earlier than $before: $LINE" || return
	if lease=$(field "$LINE" lease); then LEASE=$lease; fi
	[ $((DEADLINE - LEASE + ${1-0})) -lt $term ] || complain "late: $LINE"
}

# lengthened LOCK MS: each call takes MS, two a renewal, which has 10 s for them and all else.
lengthened() {
	local renewal
	rm -f "$DIR/faults/"*
	smith a "etcd://$BETWEEN/$1" && expect a OK || return # without --ttl
	DEADLINE=$(field "$LINE" deadline) LEASE=$(field "$LINE" lease)
	[ "$LEASE" -eq 15000000000 ] || return
	slow "$(printf '%d.%03d' $(($2 / 1000)) $(($2 % 1000)))" grant txn watch
	for renewal in 1 2 3; do # the first may have begun before that
		expect_held $((2 * $2 * 1000000)) || return
		[ "$LEASE" -ne 60000000000 ] || break
	done
	[ "$LEASE" -eq 60000000000 ] || complain "$LINE" || return
	rm "$DIR/faults/"*
	expect_held || return
	until [ "$LEASE" -lt 60000000000 ]; do expect_held || return; done
	unlock a
	[ "$STATUS" -eq 0 ]
}

@test "a lease is lengthened while the server is slow, and shortened again" {
	local ms
	etcd_single
	etcd_between
	# A busy machine may be late; an answer that takes a twelfth of the lease, 1.25 s, is slow.
	for ms in 3000 2500 2000 1600 1400 1300; do
		if lengthened L$ms $ms; then return; fi
		smiths_stop_all
	done
	complain "six times"
}

as_long_as_said() {
	smith a --ttl="$ttl" "etcd://$BETWEEN/L$ttl" && expect a OK || return
	DEADLINE=$(field "$LINE" deadline) LEASE=$(field "$LINE" lease)
	slow "$(printf '%d.%02d' $((ttl / 8)) $((ttl * 100 / 8 % 100)))" grant txn watch
	expect_held $((ttl * 250000000)) && expect_held && expect_held && [ "$LEASE" -eq "${ttl}000000000" ] || complain "$LINE" || return
	rm "$DIR/faults/"*
	unlock a
	[ "$STATUS" -eq 0 ]
}

@test "a lease of --ttl keeps its length on a slow server" {
	etcd_single
	etcd_between
	with_lease 8 as_long_as_said
}

@test "a first answer that takes more than 10 s is asked for once" {
	etcd_single
	etcd_between
	slow 12 grant
	smith a --ttl=60 "etcd://$BETWEEN/L"
	expect a OK
	unlock a
	[ "$STATUS" -eq 0 ]
	[ "$(grep -c connection "$DIR/between.log")" -eq 1 ] || complain "$(cat "$DIR/between.log")"
}
