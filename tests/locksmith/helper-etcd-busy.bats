#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# An etcd, or its machine, that is so busy that it takes no more connections, or answers late, or says that it does.
# By semlock-locksmith alone; the servers are started here.

load ../lib/helper-etcd

is_past() { [ "$(now)" -gt "$1" ]; }

# past NANOSECONDS: waits until that moment.
past() { until is_past "$1"; do read -r -t 0.05 <> <(:) || true; done; }

# lease_number N LOCK: the lease of its Nth key.
lease_number() { ctl get "$2/" --prefix --keys-only --sort-by=CREATE | grep . | sed -n "$1s,.*/0*,,p"; }

# kept_until LEASE CMD...: another client keeps LEASE alive until CMD is true, as a server does that ends leases late.
kept_until() { until "${@:2}"; do ctl lease keep-alive --once "$1" >/dev/null || return; done; }

@test "a server was connected to, has not answered, and takes no more connections: it is waited for, without --wait" {
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
	grep -q "WAIT note=no endpoint answers" <<<"$PASSED_B"
}

@test "a server takes no more connections, for longer than a waiter's lease: the waiter has its turn, if its place is there" {
	etcd_single
	etcd_between
	with_lease 4 full_for_long
}

asked_seldom() {
	behind "L$ttl" || return
	says keepalive "1 5 88$(header content-type application/grpc)$(header grpc-status 14)$(header grpc-message late)"
	kept_until "$LEASE" grep -q "said keepalive" "$DIR/between.log" &&
		kept_until "$LEASE" is_past $(($(now) + 10000000000)) || return
	[ "$(grep -c "said keepalive" "$DIR/between.log")" -lt 12 ] || complain "$(grep -c said "$DIR/between.log") times" || return
	rm "$DIR/faults/say-keepalive"
	turn_comes
}

@test "a server that says it is late is asked less and less often: the place is kept, and the turn comes" {
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

@test "where the server is slow a place in its queue has a lease of four times the time, and the lock has its own" {
	etcd_single
	etcd_between
	with_lease 6 long_place
}

# expect_held: a says HELD before its command would have to end, and not with an earlier deadline than before; LEASE is
# the length of its lease.
expect_held() {
	local lease
	expect a HELD && [ "$(now)" -lt $((DEADLINE - LEASE / 3)) ] || complain "late: $LINE" || return
	[ "$(field "$LINE" deadline)" -ge "$DEADLINE" ] || complain "earlier than $DEADLINE: $LINE" || return
	DEADLINE=$(field "$LINE" deadline)
	if lease=$(field "$LINE" lease); then LEASE=$lease; fi
}

@test "a server becomes so slow that two answers take half a lease: it is lengthened in time, and shortened again" {
	etcd_single
	etcd_between
	smith a "etcd://$BETWEEN/L" # without --ttl
	expect a OK
	DEADLINE=$(field "$LINE" deadline) LEASE=$(field "$LINE" lease)
	[ "$LEASE" -eq 15000000000 ]
	slow 3 grant txn watch
	expect_held
	[ "$LEASE" -eq 60000000000 ] || complain "$LINE"
	rm "$DIR/faults/"*
	expect_held
	until [ "$LEASE" -lt 60000000000 ]; do expect_held; done
	unlock a
	[ "$STATUS" -eq 0 ]
}

as_long_as_said() {
	smith a --ttl="$ttl" "etcd://$BETWEEN/L$ttl" && expect a OK || return
	DEADLINE=$(field "$LINE" deadline) LEASE=$(field "$LINE" lease)
	slow "$(printf '%d.%02d' $((ttl / 8)) $((ttl * 100 / 8 % 100)))" grant txn watch
	expect_held && expect_held && expect_held && [ "$LEASE" -eq "${ttl}000000000" ] || complain "$LINE" || return
	rm "$DIR/faults/"*
	unlock a
	[ "$STATUS" -eq 0 ]
}

@test "a lease of --ttl stays as long as it was asked for where the server is slow" {
	etcd_single
	etcd_between
	with_lease 8 as_long_as_said
}

@test "the first answer of a server takes longer than ten seconds: it is asked once, on one connection" {
	etcd_single
	etcd_between
	slow 12 grant
	smith a --ttl=60 "etcd://$BETWEEN/L"
	expect a OK
	unlock a
	[ "$STATUS" -eq 0 ]
	[ "$(grep -c connection "$DIR/between.log")" -eq 1 ] || complain "$(cat "$DIR/between.log")"
}
