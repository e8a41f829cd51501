#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The queue of a lock on etcd: order, readers, slots, etcdctl lock beside it, and what a look costs.
# By semlock-locksmith alone; the servers are started here.

load ../lib/helper-etcd

# queue_of_500 MODE: 500 keys in the queue of L, of 300 bytes each.
queue_of_500() {
	local i j value
	printf -v value '%s pid=1 host=elsewhere since=1 note=%0200d' "$1" 0
	for i in 1 2 3 4 5; do
		{
			echo # no conditions
			for j in {1..100}; do echo "put L/$i.$j \"$value\""; done
			echo
			echo
		} | ctl txn >/dev/null
	done
}

@test "one holds, others wait and enter in order of arrival, with rising tokens" {
	etcd_single
	local last token i
	smith a "etcd://$ETCD/L"
	expect a OK
	last=$(field "$LINE" token)
	[ "$(field "$LINE" lease)" = 15000000000 ]
	for i in 1 2 3; do
		smith w$i "etcd://$ETCD/L"
		expect w$i WAIT
	done
	unlock a
	[ "$STATUS" -eq 0 ]
	expect a FREE
	for i in 1 2 3; do
		until_line w$i OK
		token=$(field "$LINE" token)
		[ "$token" -gt "$last" ]
		last=$token
		unlock w$i
		[ "$STATUS" -eq 0 ]
	done
	[ -z "$(keys)" ]
}

@test "a waiter that goes, or is killed, costs nobody anything" {
	etcd_single
	smith a "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=$((2 * PACE)) "etcd://$ETCD/L"
	expect b WAIT
	smith c "etcd://$ETCD/L"
	expect c WAIT
	smith d "etcd://$ETCD/L"
	expect d WAIT
	unlock c
	[ "$STATUS" -eq 0 ]
	kill -KILL "${SMITH_PID[b]}"
	unlock a
	until_line d OK
}

@test "--no-wait prints BUSY, exits 1, writes nothing; --wait removes its key" {
	etcd_single
	smith a --ttl=600 --note="rsync -a /srv" "etcd://$ETCD/L" # no renewal between
	expect a OK
	local before room
	before=$(ctl get "" --prefix --keys-only -w json | jq .header.revision)
	run_smith --no-wait "etcd://$ETCD/L"
	[ "$status" -eq 1 ]
	[[ $output == "BUSY mode=exclusive pid=$$ host="*"note=rsync -a /srv" ]]
	run_smith --no-wait --mode=shared "etcd://$ETCD/L"
	[ "$status" -eq 1 ]
	[ "$(ctl get "" --prefix --keys-only -w json | jq .header.revision)" -eq "$before" ]
	for room in 2 8 32; do
		smith b --wait=$room "etcd://$ETCD/L"
		until_line b BUSY
		smith_ended b
		[ "$STATUS" -eq 1 ]
		[[ $PASSED != "WAIT "* ]] || break # on a busy machine a short wait may end before WAIT is said
	done
	[[ $PASSED == "WAIT "* ]]
	[ "$(keys | sed 's,[0-9a-f]*$,,')" = L/ ]
	[ "$(ctl lease list | tail -n +2 | wc -l)" -eq 1 ] # of the holder's key
}

@test "--no-wait takes a free lock, shared ones together" {
	etcd_single
	smith a --no-wait "etcd://$ETCD/L"
	expect a OK
	unlock a
	smith r1 --no-wait --mode=shared "etcd://$ETCD/L"
	expect r1 OK
	smith r2 --no-wait --mode=shared "etcd://$ETCD/L"
	expect r2 OK
	run_smith --no-wait "etcd://$ETCD/L"
	[ "$status" -eq 1 ]
}

@test "readers share; a writer waits for those before, and delays those after" {
	etcd_single
	smith r1 --mode=shared "etcd://$ETCD/L"
	expect r1 OK
	smith r2 --mode=shared "etcd://$ETCD/L"
	expect r2 OK
	smith w "etcd://$ETCD/L"
	expect w WAIT
	smith r3 --mode=shared "etcd://$ETCD/L"
	expect r3 WAIT
	unlock r1
	unlock r2
	until_line w OK
	unlock w
	until_line r3 OK
}

@test "slots have different numbers, and there are not more than N" {
	etcd_single
	local i seen=
	for i in 1 2 3; do
		smith s$i --slots=3 "etcd://$ETCD/L"
		expect s$i OK
		seen="$seen $(field "$LINE" slot)"
	done
	[ "$seen" = " 0 1 2" ]
	smith s4 --slots=3 "etcd://$ETCD/L"
	expect s4 WAIT
	run_smith --no-wait --slots=3 "etcd://$ETCD/L"
	[ "$status" -eq 1 ]
	unlock s2
	until_line s4 OK
	[ "$(field "$LINE" slot)" = 1 ]
}

@test "etcdctl lock is excluded, and excludes" {
	etcd_single
	smith a "etcd://$ETCD/nightly"
	expect a OK
	apart env ETCDCTL_API=3 etcdctl --endpoints "http://$ETCD" lock nightly touch "$DIR/ran" >/dev/null 2>&1 </dev/null &
	local other=$!
	key_count nightly 2
	[ ! -e "$DIR/ran" ]
	unlock a
	wait "$other"
	[ -e "$DIR/ran" ]
	mkfifo "$DIR/go"
	printf '#!/bin/sh\nread x <%s/go\n' "$DIR" >"$DIR/job"
	chmod +x "$DIR/job"
	apart env ETCDCTL_API=3 etcdctl --endpoints "http://$ETCD" lock nightly "$DIR/job" >/dev/null 2>&1 </dev/null &
	other=$!
	key_count nightly 1
	run_smith --no-wait "etcd://$ETCD/nightly"
	[ "$status" -eq 1 ]
	[[ $output == "BUSY mode=exclusive note=another program's key nightly/"* ]]
	smith b "etcd://$ETCD/nightly"
	expect b WAIT
	echo >"$DIR/go"
	wait "$other"
	until_line b OK
}

@test "--who: holders and waiters" {
	etcd_single
	run_smith --who "etcd://$ETCD/L"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	smith a --pid=4242 "etcd://$ETCD/L"
	expect a OK
	smith b --pid=4343 --mode=shared "etcd://$ETCD/L"
	expect b WAIT
	[ "$(field "$LINE" pid)" = 4242 ]
	run_smith --who "etcd://$ETCD/L"
	[ "$status" -eq 1 ]
	[[ ${lines[0]} == "WHO state=holds mode=exclusive pid=4242 "* ]]
	[[ ${lines[1]} == "WHO state=waits mode=shared pid=4343 "* ]]
}

@test "a waiter whose lease is revoked stands at the back of the queue again" {
	etcd_single
	smith a "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=60 --pid=2222 "etcd://$ETCD/L"
	expect b WAIT
	local lease
	lease=$(ctl get L/ --prefix --sort-by=CREATE --keys-only | grep . | tail -1 | sed 's,.*/0*,,')
	ctl lease revoke "$lease" >/dev/null
	unlock a
	until_line b OK
}

few_calls() {
	: >"$DIR/between.log"
	smith a "$@" "etcd://$BETWEEN/L"
	expect a OK
	unlock a
	[ -z "$(keys)" ] || complain "left: $(keys)" || return
	[ "$(calls)" = "connection grant txn txn " ] || complain "$(calls)"
}

@test "a free lock costs a lease and two transactions on one connection" {
	etcd_single
	etcd_between
	few_calls
	few_calls --mode=shared
}

# tried N: a waiter has tried to enter, and waits on; only the growing number of transactions shows that.
tried() {
	local end=$((SECONDS + LINE_SECONDS))
	until [ "$(transactions)" -gt "$1" ]; do
		((SECONDS < end)) || complain "it has not tried" || return
		nap 20
	done
}

# foreign REQUEST KEY: of etcd, for a key with a NUL byte, which etcdctl does not take.
foreign() {
	curl -sf "http://$ETCD/v3/kv/$1" -d "{\"key\":\"$(printf %b "$2" | base64 -w 0)\"}" >/dev/null
}

@test "another program's key that is not text is waited for like others" {
	local key
	etcd_single
	for key in 'L/a\0b' "L/$(printf '%0800d' 0)"; do
		foreign put "$key"
		smith a --ttl=600 "etcd://$ETCD/L"
		expect a WAIT
		foreign deleterange "$key"
		until_line a OK
		unlock a
	done
}

@test "a waiter waits on if the key before it goes and the lock is still held" {
	etcd_single
	local mode before
	for mode in --mode=exclusive --mode=shared; do
		smith a --ttl=60 "etcd://$ETCD/L"
		expect a OK
		smith b --pid=2222 "etcd://$ETCD/L"
		expect b WAIT
		smith c $mode "etcd://$ETCD/L"
		expect c WAIT
		before=$(transactions)
		unlock b
		tried "$before"
		[ "$(holders L)" -eq 1 ] || complain "$(keys)"
		unlock a
		until_line c OK
		unlock c
		[ -z "$(keys)" ] || complain "left: $(keys)"
	done
}

@test "--who tells of all, however slowly it is read" {
	etcd_single
	queue_of_500 shared
	[ "$("$LOCKSMITH_DIR/semlock-locksmith-etcd" --who "etcd://$ETCD/L" </dev/null | grep -v ^LOCKSMITH | { "$PROBE" pause 1000; wc -l; })" -eq 500 ]
}

@test "a dead holder of a lock named below another leaves the other free" {
	etcd_single
	smith a --ttl=2 "etcd://$ETCD/L/below"
	expect a OK
	kill -KILL "${SMITH_PID[a]}"
	smith b --wait=30 "etcd://$ETCD/L"
	until_line b OK
	run_smith --who "etcd://$ETCD/L"
	[ "${#lines[@]}" -eq 1 ]
}

lapses_unstarted() {
	local lock="etcd://$ETCD/L$ttl"
	smith a --ttl="$ttl" "$lock" && expect_unstarted a || return
	deadline=$(field "$LINE" deadline)
	smith b --ttl="$ttl" "$lock" && until_line b OK || return
	[ "$(now)" -lt $((deadline + 1000000000 * SLOWNESS)) ] || complain "$(($(now) - deadline)) ns after its deadline" || return
	expect a LOST && smith_ended a
	[ "$STATUS" -eq 76 ] && unlock b
}

@test "a lock that is not begun by START lapses after one lease" {
	etcd_single
	with_lease 2 lapses_unstarted
}

bytes_sent() { metric etcd_network_client_grpc_sent_bytes_total; }

transactions() { metric 'grpc_server_handled_total{grpc_code="OK",grpc_method="Txn"'; }

@test "a look costs the same however long the queue is" {
	etcd_single
	local mode before
	smith a --ttl=$((6 * PACE)) "etcd://$ETCD/L"
	expect a OK
	queue_of_500 exclusive
	before=$(bytes_sent)
	expect a HELD
	expect a HELD
	for mode in --mode=exclusive --mode=shared --slots=3; do
		smith w$mode $mode "etcd://$ETCD/L"
		expect w$mode WAIT
		run_smith --no-wait $mode "etcd://$ETCD/L"
		[ "$status" -eq 1 ]
	done
	before=$(($(bytes_sent) - before))
	[ $before -lt 30000 ] || complain "$before bytes" # the queue has 150,000
}

# transactions_for_ten ARG...: ten helpers wait, and the holders let go one by one; TRANSACTIONS is what that takes.
transactions_for_ten() {
	local i end
	for i in 0 1 2 3 4 5 6 7 8 9; do
		smith w$i "$@" "etcd://$ETCD/L"
		expect w$i WAIT
	done
	end=$(transactions)
	for i in h0 h1 w0 w1 w2 w3 w4 w5 w6 w7 w8 w9; do
		[[ $i == h* ]] || until_line "$i" OK
		[ -z "${SMITH_PID[$i]:-}" ] || unlock $i
	done
	TRANSACTIONS=$(($(transactions) - end))
}

# wakes_one MOST SMITH...: the SMITHs hold the lock (ARGS), and ten wait for it; all that takes MOST transactions.  A
# busy server's late answers add some, now and then; a queue that wakes them all adds forty, each time.
wakes_one() {
	local try holder
	for try in 1 2 3; do
		for holder in "${@:2}"; do
			smith "$holder" "${ARGS[@]}" "etcd://$ETCD/L"
			expect "$holder" OK || return
		done
		transactions_for_ten "${ARGS[@]}" || return
		[ "$TRANSACTIONS" -gt "$1" ] || return 0
	done
	complain "$TRANSACTIONS transactions: ${ARGS[*]}"
}

@test "one that lets go wakes one of those who wait, not all" {
	etcd_single
	# No helper may renew its lease meanwhile.
	ARGS=(--ttl=600)
	wakes_one 24 h0 # each waiter puts its key, which is its look as well, and lets go
	ARGS+=(--slots=2)
	wakes_one 60 h0 h1 # each waiter looks again when the one before it has entered
	[ -z "$(keys)" ] || complain "left: $(keys)"
}

@test "a slot is waited for by the first in the queue, also when that one goes" {
	etcd_single
	local name
	smith a --slots=2 "etcd://$ETCD/L"
	expect a OK
	smith b --slots=2 "etcd://$ETCD/L"
	expect b OK
	for name in c d e; do
		smith $name --slots=2 "etcd://$ETCD/L"
		expect $name WAIT
	done
	unlock c
	unlock a
	until_line d OK
	[ "$(field "$LINE" slot)" = 0 ]
	unlock b
	until_line e OK
	[ "$(field "$LINE" slot)" = 1 ]
}

@test "what somebody has put among the keys is in the way, and is named" {
	etcd_single
	local key
	for key in "L/x" "L/#slots#/0"; do
		ctl put "$key" "" >/dev/null
		run_smith --no-wait "etcd://$ETCD/L"
		[ "$status" -eq 1 ]
		[[ $output == "BUSY mode=exclusive note=another program's key $key" ]]
		ctl del "$key" >/dev/null
	done
	smith a --no-wait "etcd://$ETCD/L"
	expect a OK
}

@test "the token rises from semlock to etcdctl lock, and back" {
	etcd_single
	local tokens=() token last=0 other
	printf '#!/bin/sh\necho $ETCD_LOCK_REV >%s/rev\n' "$DIR" >"$DIR/job"
	chmod +x "$DIR/job"
	smith a "etcd://$ETCD/L"
	expect a OK
	tokens+=("$(field "$LINE" token)")
	apart env ETCDCTL_API=3 etcdctl --endpoints "http://$ETCD" lock L "$DIR/job" \
		>/dev/null 2>&1 </dev/null &
	other=$!
	key_count L 2
	smith b "etcd://$ETCD/L"
	expect b WAIT
	unlock a
	wait "$other"
	until_line b OK
	tokens+=("$(cat "$DIR/rev")" "$(field "$LINE" token)")
	for token in "${tokens[@]}"; do
		[ "$token" -gt "$last" ] || { echo "${tokens[*]}" >&2; false; }
		last=$token
	done
}
