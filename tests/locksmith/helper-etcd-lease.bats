#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The lease of a lock on etcd: renewed, revoked, lost; and the servers killed, stopped and emptied.
# By semlock-locksmith alone; the servers are started here.

load ../lib/helper-etcd

# until_gone PREFIX: waits until no key begins with PREFIX.
until_gone() {
	local end=$((SECONDS + LINE_SECONDS))
	while keys | grep -q "^$1"; do
		((SECONDS < end)) || complain "there is still:" "$(keys)" || return
		"$PROBE" pause 500
	done
}

# lease_of LOCK: the lease that its first key is under, which is not that of the key's name once it was renewed.
lease_of() { printf %x "$(ctl get "$1/" --prefix -w fields | awk '$1 == "\"Lease\"" { print $3; exit }')"; }

@test "a lease revoked behind its back is LOST at once, not at a keepalive" {
	etcd_single
	smith a --ttl=600 "etcd://$ETCD/L"
	expect a OK
	# Until the watch on the key is there, the helper finds the loss by looking: both ways are right.
	local before
	before=$(now)
	ctl lease revoke "$(lease_of L)" >/dev/null
	expect a LOST
	[ $(($(now) - before)) -lt 60000000000 ] # a keepalive is sent every 200 seconds
	unlock a
	[ "$STATUS" -eq 76 ]
}

@test "a waiter enters under a new lease, because a renewed one may end early" {
	etcd_single
	smith a --ttl=$((15 * PACE)) "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=$((4 * PACE)) "etcd://$ETCD/L"
	expect b WAIT
	"$PROBE" pause $((6000 * PACE)) # the lease of the first moment is over by now
	unlock a
	until_line b OK
	[ "$(keys | sed 's,.*/0*,,')" != "$(lease_of L)" ] || complain "under the lease that it waited with"
	unlock b
	[ "$STATUS" -eq 0 ]
}

@test "the key deleted behind its back: LOST" {
	etcd_single
	smith a --ttl=60 "etcd://$ETCD/L"
	expect a OK
	ctl del L/ --prefix >/dev/null
	expect a LOST
	unlock a
	[ "$STATUS" -eq 76 ]
}

@test "a frozen holder is LOST, and its successor waited for the lease to end" {
	etcd_single
	smith a --ttl=$((2 * PACE)) "etcd://$ETCD/L"
	expect a OK
	local deadline
	deadline=$(field "$LINE" deadline)
	kill -STOP "${SMITH_PID[a]}"
	smith b "etcd://$ETCD/L"
	until_line b OK
	[ "$(now)" -gt "$deadline" ]
	kill -CONT "${SMITH_PID[a]}"
	until_line a LOST
	unlock a
	[ "$STATUS" -eq 76 ]
}

# cut_off NAME LEASE: revokes the lease of a stopped helper, which hears nothing of that, as one that is cut off.
cut_off() {
	kill -STOP "${SMITH_PID[$1]}"
	ctl lease revoke "$2" >/dev/null
}

@test "the lease of a holder that is cut off is revoked: the next enters soon" {
	etcd_single
	local mode
	for mode in --mode=exclusive --mode=shared --slots=1; do
		smith a --ttl=60 $mode "etcd://$ETCD/L"
		expect a OK
		smith b --ttl=60 "etcd://$ETCD/L"
		expect b WAIT
		cut_off a "$(lease_of L)"
		until_line b OK
		kill -CONT "${SMITH_PID[a]}"
		until_line a LOST
		unlock a
		[ "$STATUS" -eq 76 ]
		unlock b
		[ "$STATUS" -eq 0 ]
		[ -z "$(keys)" ] || complain "left: $(keys)"
	done
}

@test "a compacted history does not delay the news of a revoked lease" {
	local revision
	etcd_single
	etcd_between
	: >"$DIR/faults/stop-watch"
	smith a --ttl=600 "etcd://$BETWEEN/L"
	expect a OK
	in_file "$DIR/between.log" "stop watch"
	ctl put other 1 >/dev/null
	revision=$(ctl put other 2 -w json | jq .header.revision)
	ctl compact "$revision" >/dev/null
	rm "$DIR/faults/stop-watch"
	watches 2
	ctl lease revoke "$(lease_of L)" >/dev/null
	until_line a LOST
}

# full: the server has no room from now on.  room: it has some again.
full() {
	while head -c 100000 /dev/zero | tr '\0' x | ctl put full >/dev/null 2>&1; do :; done
	ctl alarm list | grep -q NOSPACE
}

room() {
	ctl del full >/dev/null &&
		ctl compact "$(ctl get full -w json | jq .header.revision)" >/dev/null &&
		ctl defrag >/dev/null && ctl alarm disarm >/dev/null
}

# held_past TTL NAME: the helper says HELD until the lease of this moment is over, and has said THING once before.
held_past() {
	local end=$(($(now) + $1 * 1000000000)) notes=0
	until [ "$(now)" -gt $end ]; do
		IFS= read -r -t "$LINE_SECONDS" -u "${SMITH_OUT[$2]}" LINE || return
		case $LINE in
		"HELD deadline="*) ;;
		"NOTE the server refuses to renew it, so its lease is kept alive: "*"$3"*) notes=$((notes + 1)) ;;
		*) complain "$LINE" || return ;;
		esac
	done
	[ $notes -eq 1 ] || complain "$notes notes"
}

@test "a full server: keepalives hold the lock, and this is reported once" {
	etcd_single --quota-backend-bytes 200000
	etcd_between
	smith a --ttl=$((3 * PACE)) "etcd://$BETWEEN/L"
	expect a OK
	full
	held_past $((6 * PACE)) a "database space exceeded"
	[ "$(holders L)" -eq 1 ]
	room
	: >"$DIR/between.log"
	expect a HELD
	in_file "$DIR/between.log" txn
	expect a HELD
	full
	held_past $((6 * PACE)) a "database space exceeded"
	unlock a
	[ "$STATUS" -eq 0 ]
	[ "$(keys)" = full ] || complain "$(keys)"
}

@test "a full server: waiters keep their order; -w and -n fail with 69" {
	etcd_single --quota-backend-bytes 200000
	smith a --ttl=60 "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=$((3 * PACE)) "etcd://$ETCD/L"
	expect b WAIT
	smith c --ttl=$((3 * PACE)) "etcd://$ETCD/L"
	expect c WAIT
	smith d --ttl=60 "etcd://$ETCD/M"
	expect d OK
	# It still waits when there is no room any more.
	smith e --ttl=60 --wait=$((5 * PACE)) "etcd://$ETCD/M"
	expect e WAIT
	full
	unlock a
	[ "$STATUS" -eq 0 ]
	unlock d
	[ "$STATUS" -eq 0 ]
	expect b "WAIT"
	[[ $LINE == "WAIT note=for the server: "*"database space exceeded" ]] || complain "$LINE"
	run_smith --no-wait "etcd://$ETCD/N"
	[ "$status" -eq 69 ]
	smith_ended e
	[ "$STATUS" -eq 69 ]
	until_line e "ERR"
	[[ $LINE == "ERR 69 "*"database space exceeded" ]] || complain "$LINE"
	smith f --wait=.5 "etcd://$ETCD/N"
	smith_ended f
	[ "$STATUS" -eq 69 ]
	"$PROBE" pause $((4000 * PACE)) # longer than the lease of B and C
	[ "$(keys | grep -c ^L/)" -eq 2 ] || complain "$(keys)"
	room
	until_line b OK
	unlock b
	until_line c OK
	unlock c
}

@test "without the right to write, keepalives hold the lock; a lost key is LOST" {
	etcd_single
	auth_with_role
	SEMLOCK_PASSWORD=pw smith a --ttl=$((3 * PACE)) "etcd://cron@$ETCD/L"
	expect a OK
	expect a HELD
	ctl --user root:pw role revoke-permission locks --prefix=true L/ >/dev/null
	if keepalive_granted --user cron:pw; then
		held_past $((6 * PACE)) a "permission denied"
		ctl --user root:pw del --prefix L/ >/dev/null
		until_line a LOST
	else
		lost_at_the_end a 'permission denied: the user needs a role'
	fi
}

auth_with_role() {
	ctl user add root:pw >/dev/null && ctl user grant-role root root >/dev/null &&
		ctl role add locks >/dev/null &&
		ctl role grant-permission locks readwrite --prefix=true L/ >/dev/null &&
		ctl user add cron:pw >/dev/null && ctl user grant-role cron locks >/dev/null &&
		ctl auth enable >/dev/null
}

@test "a lock is held on by two calls: a lease, and a transaction" {
	etcd_single
	etcd_between
	smith a --ttl=9 "etcd://$BETWEEN/L"
	expect a OK
	: >"$DIR/between.log"
	expect a HELD
	[ "$(calls)" = "grant txn " ] || complain "$(calls)"
}

said_in_the_end() {
	local lock="etcd://$ETCD/L$ttl"
	smith a "$lock" && expect a OK || return
	smith b --ttl="$ttl" "$lock" && expect b WAIT || return
	fill b
	unlock a
	until [ "$(holders "L$ttl")" -eq 1 ]; do nap 20; done
	# The pause is longer than the lease: the deadline in the OK has passed, and the command was not started.
	"$PROBE" pause $((ttl * 1000 + 500))
	drain b
	expect_unstarted b && [ "$(field "$LINE" deadline)" -lt "$(now)" ] || return
	expect b LOST && unlock b
	[ "$STATUS" -eq 76 ]
}

@test "a late OK still carries its deadline, and nothing was held beyond it" {
	etcd_single
	with_lease 2 said_in_the_end
}

entered_in_time() {
	local killed
	smith a --ttl="$ttl" "$@" "etcd://$ETCD/L$#.$ttl" && expect a OK || return
	smith b "$@" "etcd://$ETCD/L$#.$ttl" && expect b WAIT || return
	killed=$(now)
	kill -KILL "${SMITH_PID[a]}"
	until_line b OK || return
	killed=$(($(now) - killed))
	unlock b
	[ $killed -lt $((ttl * 1300000000)) ] || complain "$*: $killed ns with a lease of $ttl s"
}

@test "after a crash of everything the next enters within 1.3 leases" {
	etcd_single
	with_lease 8 entered_in_time
	with_lease 8 entered_in_time --slots=1
	until_gone L
}

@test "readers do not mind a reader that is cut off" {
	etcd_single
	smith a --ttl=60 --mode=shared "etcd://$ETCD/L"
	expect a OK
	cut_off a "$(lease_of L)"
	smith b --no-wait --mode=shared "etcd://$ETCD/L"
	expect b OK
}

@test "a slot's number is its holder's until that one's time is over" {
	etcd_single
	smith a --ttl=60 --slots=3 "etcd://$ETCD/L"
	expect a OK
	smith b --slots=3 "etcd://$ETCD/L"
	expect b OK
	kill -STOP "${SMITH_PID[a]}"
	smith c --slots=3 "etcd://$ETCD/L"
	expect c OK
	[ "$(field "$LINE" slot)" = 2 ]
	run_smith --no-wait --slots=3 "etcd://$ETCD/L"
	[ "$status" -eq 1 ]
	unlock b
	smith d --slots=3 "etcd://$ETCD/L"
	expect d OK
	[ "$(field "$LINE" slot)" = 1 ]
}

@test "a renewal is not believed when the key is gone" {
	etcd_single
	etcd_between
	: >"$DIR/faults/mute-watch" # the lease is renewed, and no watch says that the key has gone
	smith a --ttl=$((6 * PACE)) "etcd://$BETWEEN/L"
	expect a OK
	expect a HELD
	ctl del L/ --prefix >/dev/null
	local deleted line
	deleted=$(now)
	until_line a LOST
	[[ $LINE == "LOST its lease expired or was revoked" ]]
	# A renewal that was said after the deletion had been asked for before the deletion.
	while read -r line; do
		[ -z "$line" ] || [ $(($(field "$line" deadline) - 6000000000 * PACE)) -lt $((deleted + 20000000)) ] || complain "$line"
	done <<<"$PASSED"
}

@test "the server is killed and comes back: held on" {
	etcd_single
	smith a --ttl=$((20 * PACE)) "etcd://$ETCD/L"
	expect a OK
	kill -KILL "${ETCD_PID[s1]}"; wait "${ETCD_PID[s1]}" || true
	etcd_start s1
	expect a HELD
	expect a HELD
	ctl del L/ --prefix >/dev/null
	until_line a LOST
	[[ $LINE == "LOST its key was deleted" ]]
}

lost_before_the_deadline() {
	local deadline lost
	etcd_single
	smith a --ttl="$ttl" "etcd://$ETCD/L" && expect a OK || return
	deadline=$(field "$LINE" deadline)
	kill -KILL "${ETCD_PID[s1]}"
	while next_word a LOST && [[ $LINE == HELD* ]]; do
		deadline=$(field "$LINE" deadline)
	done
	lost=$(now)
	[[ $LINE == "LOST no endpoint answered in time: "*"connect to 127.0.0.1"* ]] || complain "$LINE" || return
	unlock a
	etcd_stop_all
	rm -r "$DIR/s1"
	[ "$STATUS" -eq 76 ] && [ "$lost" -lt "$deadline" ]
}

@test "if the server lost its data, the holder hears it, and a waiter enters" {
	etcd_single
	smith a --ttl=9 "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=9 "etcd://$ETCD/L"
	expect b WAIT
	kill -KILL "${ETCD_PID[s1]}"
	wait "${ETCD_PID[s1]}" || true
	rm -r "$DIR/s1"
	etcd_start s1
	etcd_wait s1
	until_line a LOST
	[ "$LINE" = "LOST its lease expired or was revoked" ] || complain "$LINE"
	until_line b OK
}

@test "the server goes for good: LOST before the deadline" {
	with_lease 9 lost_before_the_deadline
}

@test "three nodes, one killed, one stopped: the lock is kept, waiters enter" {
	etcd_three
	smith a --ttl=$((12 * PACE)) "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=$((12 * PACE)) "etcd://$ETCD/L"
	expect b WAIT
	local leader other
	# The members may be electing a leader at this moment.
	local end=$((SECONDS + LINE_SECONDS))
	until leader=$(etcd_leader); do
		[ $SECONDS -lt $end ]
		nap 20
	done
	kill -KILL "${ETCD_PID[$leader]}"; wait "${ETCD_PID[$leader]}" || true
	expect a HELD
	expect a HELD
	etcd_start "$leader"
	etcd_wait "$leader"
	other=n1; [ "$leader" != n1 ] || other=n2
	kill -STOP "${ETCD_PID[$other]}"
	expect a HELD
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
	until_line b OK
	kill -CONT "${ETCD_PID[$other]}"
	expect b HELD
}
