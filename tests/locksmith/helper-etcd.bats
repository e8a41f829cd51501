#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Locks on etcd, held by semlock-locksmith alone; the servers are started here.

load ../lib/locksmith
load ../lib/servers/etcd

setup() {
	watch_over
	have_locksmiths || skip "built without the network methods"
	export SEMLOCK_ANSWER_WITHIN=60 # --no-wait: a busy machine may need more than two and a half seconds
	DIR=$(mktemp -d "$BATS_TEST_TMPDIR/XXXXXX")
	export HOME=$DIR
	unset NETRC SEMLOCK_CACERT SEMLOCK_USER SEMLOCK_PASSWORD ETCDCTL_ENDPOINTS ETCDCTL_USER ETCDCTL_PASSWORD
}

teardown() {
	smiths_stop_all
	etcd_stop_all
	watched
}

keys() { ctl get "" --prefix --keys-only | grep . || true; }

# key_count LOCK N: waits until the lock has N keys.
key_count() {
	local end
	end=$((SECONDS + LINE_SECONDS))
	until [ "$(ctl get "$1/" --prefix --keys-only | grep -c .)" -eq "$2" ]; do
		((SECONDS < end)) || { keys >&2; return 1; }
	done
}

# until_gone PREFIX: waits until no key begins with PREFIX.
until_gone() {
	local end=$((SECONDS + LINE_SECONDS))
	while keys | grep -q "^$1"; do
		((SECONDS < end)) || complain "there is still:" "$(keys)" || return
		read -r -t 0.05 <> <(:) || true
	done
}

# lease_of LOCK: the lease that its first key is under, which is not that of the key's name once it was renewed.
lease_of() { printf %x "$(ctl get "$1/" --prefix -w fields | awk '$1 == "\"Lease\"" { print $3; exit }')"; }

@test "one holds, others wait and enter in the order of their coming, tokens rise" {
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
	smith b --ttl=2 "etcd://$ETCD/L"
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

@test "--no-wait says BUSY with 1 and writes nothing; --wait gives up and takes its key along" {
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

@test "readers share; a writer among them waits for those before and holds up those after" {
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

@test "the lease revoked behind its back: LOST at once, not at the next keepalive" {
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

@test "the key deleted behind its back: LOST" {
	etcd_single
	smith a --ttl=60 "etcd://$ETCD/L"
	expect a OK
	ctl del L/ --prefix >/dev/null
	expect a LOST
	unlock a
	[ "$STATUS" -eq 76 ]
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

@test "a frozen holder is LOST, and its successor had waited for the lease to end" {
	etcd_single
	smith a --ttl=2 "etcd://$ETCD/L"
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

@test "the lease of a holder that is cut off is revoked: the next is in at once, as after etcdctl lock" {
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

@test "one who does not wait is stopped until its lease has ended: it gets the free lock all the same" {
	etcd_single
	etcd_between
	: >"$DIR/faults/stop-grant"
	smith b --no-wait "etcd://$BETWEEN/L"
	in_file "$DIR/between.log" "stop grant"
	: >"$DIR/faults/stop-txn"
	rm "$DIR/faults/stop-grant"
	in_file "$DIR/between.log" "stop txn"
	ctl lease revoke "$(ctl lease list | tail -1)" >/dev/null
	rm "$DIR/faults/stop-txn"
	expect b OK
}

@test "a server that says nothing more is 69 when the time is over, never busy" {
	etcd_single
	etcd_between
	: >"$DIR/faults/stop-txn"
	: >"$DIR/faults/stop-revoke" # the time is over while the lease is given back
	smith a --ttl=2 --wait=2.5 "etcd://$BETWEEN/L"
	smith_ended a
	until_line a ERR || complain "$PASSED"
	[ "$STATUS" -eq 69 ]
}

slow_first_answer() {
	local end
	: >"$DIR/faults/stop-grant"
	: >"$DIR/between.log"
	smith a --ttl=2 "etcd://$BETWEEN/L" || return
	in_file "$DIR/between.log" "stop grant" || return
	end=$(($(now) + 1000000000))
	until [ "$(now)" -gt "$end" ]; do read -r -t 0.02 <> <(:) || true; done
	rm "$DIR/faults/stop-grant"
	expect a OK
}

@test "with a short lease, too, the first answer of a server may take a second" {
	etcd_single
	etcd_between
	# On a busy machine the answer may take longer.
	slow_first_answer || slow_first_answer || slow_first_answer
}

@test "the reply to the release is lost: it is released all the same, not LOST" {
	etcd_single
	etcd_between
	smith a "etcd://$BETWEEN/L"
	expect a OK
	in_file "$DIR/between.log" txn
	: >"$DIR/faults/lose-txn"
	unlock a
	[ "$STATUS" -eq 0 ]
	[ -z "$(keys)" ] || complain "left: $(keys)"
	until_line a FREE
}

held_on() {
	smith a --ttl="$ttl" "etcd://$BETWEEN/L$ttl" && expect a OK || return
	: >"$DIR/faults/hush-grant"
	in_file "$DIR/between.log" "hush grant" || return
	expect a HELD && expect a HELD || return
	unlock a
	[ "$STATUS" -eq 0 ]
}

@test "an endpoint that says nothing is passed over in seconds, also with a lease of an hour" {
	etcd_single
	etcd_between
	: >"$DIR/faults/hush-grant"
	# Twice the same: the helper asks either first.
	smith a --ttl=3600 "etcd://$BETWEEN,$BETWEEN/L"
	expect a OK
	in_file "$DIR/between.log" "hush grant"
}

@test "a connection falls silent: the lock is held on by another" {
	etcd_single
	etcd_between
	with_lease 9 held_on
}

@test "a waiter's connection falls silent: it enters soon, also with a lease of an hour" {
	etcd_single
	etcd_between
	smith a "etcd://$ETCD/L"
	expect a OK
	: >"$DIR/faults/hush-watch"
	smith b --ttl=3600 "etcd://$BETWEEN/L"
	in_file "$DIR/between.log" "hush watch"
	unlock a
	until_line b OK
}

# watches N: waits until the server has been asked for that many.
watches() {
	local end=$((SECONDS + LINE_SECONDS))
	until [ "$(metric 'grpc_server_started_total{grpc_method="Watch"')" -ge "$1" ]; do
		((SECONDS < end)) || complain "too few watches" || return
	done
}

@test "the history that a watch needs is compacted: a revoked lease is noticed at once all the same" {
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

@test "a server that cancels each watch is asked less and less, and the lock is held and waited for" {
	etcd_single
	etcd_between
	says watch "1 4 88$(header content-type application/grpc)" "0 0 00000000022001"
	smith a "etcd://$BETWEEN/L"
	expect a OK
	expect a HELD
	expect a HELD
	[ "$(grep -c txn "$DIR/between.log")" -lt 25 ] || complain "$(cat "$DIR/between.log")"
	smith b "etcd://$BETWEEN/L"
	expect b WAIT
	unlock a
	until_line b OK
	unlock b
}

held_on_by_proxy() {
	smith a --ttl="$ttl" "etcd://$BETWEEN/L$ttl" && expect a OK || return
	expect a HELD && expect a HELD || return
	if grep -q watch "$DIR/between.log"; then complain "the watch was ended" || return; fi
	smith b --ttl="$ttl" "etcd://$BETWEEN/L$ttl" && expect b WAIT || return
	until [ "$(grep -c keepalive "$DIR/between.log")" -ge 3 ]; do expect a HELD || return; done
	unlock a
	[ "$STATUS" -eq 0 ] && until_line b OK && unlock b && [ "$STATUS" -eq 0 ]
}

@test "behind etcd's grpc-proxy a lock is held on, released and waited for, and a loss is heard of at once" {
	etcd_single
	etcd_proxy
	ETCD=$PROXY etcd_between
	run_smith --who "etcd://$PROXY/L"
	[ "$status" -eq 0 ] || complain "$output"
	with_lease 3 held_on_by_proxy
	[ -z "$(keys)" ] || complain "left: $(keys)"
	smith a --ttl=600 "etcd://$BETWEEN/L"
	expect a OK
	ctl del L/ --prefix >/dev/null
	expect a LOST
	[ "$LINE" = "LOST its key was deleted" ]
}

# says CALL FRAME...: from now on the server answers CALL with these frames.
says() {
	printf '%s\n' "${@:2}" >"$DIR/says"
	mv "$DIR/says" "$DIR/faults/say-$1"
}

# header NAME VALUE: a header of HPACK, without compression.
header() { printf '00%02x%s%02x%s' ${#1} "$(hex "$1")" ${#2} "$(hex "$2")"; }
hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }

# refused_with TEXT: such an answer may come from a proxy, so the helper asks again until its time is up.
refused_with() {
	SEMLOCK_ANSWER_WITHIN=$ttl run_smith --no-wait "etcd://$BETWEEN/L"
	[ "$status" -eq 69 ] || return
	[ "${#lines[@]}" -eq 1 ] || return
	[[ $output == "ERR 69 "*"$1"* ]] || complain "$output" || return
}

@test "an answer that is no message of gRPC's is an error, and so is a status that is none" {
	etcd_single
	etcd_between
	local begins ends text no_message
	begins="1 4 88$(header content-type application/grpc)" ends="1 5 $(header grpc-status 0)"
	no_message="the answer is no gRPC message, or is too long"
	declare -A answers=(
		["0 0 00ffffffff00"]=$no_message # longer than the limit
		["0 0 00ffffffff00
$ends"]=$no_message
		["0 0 010000000100
$ends"]=$no_message # compressed
		["0 0 000000000a01
$ends"]=$no_message # cut off
		["0 0 0000000001ff
$ends"]=$no_message # no protocol buffer
		["$ends"]=$no_message # none
		["1 5 $(header grpc-status 13)"]="an error without a message (gRPC status 13)"
		["1 5 $(header grpc-status x)"]="an error without a message (gRPC status 2)"
		["1 5 $(header grpc-status 4294967296)"]="an error without a message (gRPC status 2)"
		["1 5 $(header grpc-status 13)$(header grpc-message a%0aFREE)"]="a?FREE"
		["1 5 $(header other x)"]="HTTP 200 without gRPC"
	)
	for text in "${!answers[@]}"; do
		says txn "$begins" "$text"
		with_lease 1 refused_with "${answers[$text]}"
	done
	says txn "1 5 88$(header content-type application/grpc)$(header grpc-status 14)" # all at once
	run_smith --no-wait "etcd://$BETWEEN/L"
	[[ $output == "ERR 69 an error without a message (gRPC status 14)" ]] || complain "$output"
	rm "$DIR/faults/say-txn"
	run_smith --no-wait "etcd://$BETWEEN/L"
	[ "$status" -eq 0 ]
}

# flood CALL FRAME...: from now on the server answers CALL with these frames, the last one without end.
flood() {
	printf '%s\n' "${@:2}" >"$DIR/says"
	mv "$DIR/says" "$DIR/faults/flood-$1"
}

@test "a server without end: in messages, in headers, or in the events of a watch: an error in time, in little memory" {
	etcd_single
	etcd_between
	local begins most
	begins="1 4 88$(header content-type application/grpc)"
	smith a --ttl=60 "etcd://$ETCD/L"
	expect a OK
	for most in "0 0 0000000000" "1 0 $(header grpc-message x)" "9 0 $(header grpc-message x)"; do
		flood txn "$begins" "$most"
		SEMLOCK_ANSWER_WITHIN=2 run_smith --no-wait "etcd://$BETWEEN/L"
		[ "$status" -eq 69 ] || complain "$most: $status: $output"
		rm "$DIR/faults/flood-txn"
	done
	flood watch "$begins" "0 0 00000000022001" "0 0 0000000000"
	smith b --ttl=6 --wait=600 "etcd://$BETWEEN/L"
	expect b WAIT
	in_file "$DIR/between.log" "flood watch"
	read -r -t 1 <> <(:) || true
	most=$(awk '$1 == "VmHWM:" { print $2 }' "/proc/${SMITH_PID[b]}/status")
	[ "$most" -lt 32000 ] || complain "$most kB"
	unlock a
	until_line b OK
}

@test "TERM ends a helper whose semlock is gone, when a silent server makes the release long" {
	etcd_single
	smith a --ttl=600 "etcd://$ETCD/L"
	expect a OK
	kill -STOP "${ETCD_PID[s1]}"
	kill -TERM "${SMITH_PID[a]}" # ignored: the lock is held
	read -r -t 0.2 <> <(:) || true
	local in=${SMITH_IN[a]} pid=${SMITH_PID[a]} end=$((SECONDS + LINE_SECONDS))
	kill -0 "$pid"
	exec {in}>&-
	read -r -t 0.5 <> <(:) || true
	kill -TERM "$pid"
	wait "$pid" || true
	[ $SECONDS -lt $end ]
}

sent_away() {
	smith a --ttl="$ttl" "etcd://$BETWEEN/L$ttl" && expect a OK || return
	: >"$DIR/between.log"
	says grant "7 0 0000000000000000"
	in_file "$DIR/between.log" "said grant" || return
	rm "$DIR/faults/say-grant"
	expect a HELD && expect a HELD || return
	unlock a
	[ "$STATUS" -eq 0 ] && grep -q connection "$DIR/between.log"
}

@test "a server that sends its clients away: the lock is held on by another connection" {
	etcd_single
	etcd_between
	with_lease 6 sent_away
}

no_renewal_is_believed() {
	smith a --ttl="$ttl" "etcd://$BETWEEN/L$ttl" && expect a OK || return
	says grant "1 4 88" "$1" "1 5 $(header grpc-status 0)"
	expect a LOST || return
	rm "$DIR/faults/say-grant"
	unlock a
	[ "$STATUS" -eq 76 ] && grep -q "said grant" "$DIR/between.log"
}

@test "an answer that is none renews no lease" {
	etcd_single
	etcd_between
	local answer
	# Answers that are compressed, too long, cut off, and missing; the first would grant 15 seconds.
	for answer in "0 0 0100000002180f" "0 0 00ffffffff180f" "0 0 0000000003180f" "0 0 -"; do
		with_lease 3 no_renewal_is_believed "$answer"
	done
}

# calls: the calls through BETWEEN so far, without watches.
calls() { grep -v watch "$DIR/between.log" | tr '\n' ' '; }

few_calls() {
	: >"$DIR/between.log"
	smith a "$@" "etcd://$BETWEEN/L"
	expect a OK
	unlock a
	[ -z "$(keys)" ] || complain "left: $(keys)" || return
	[ "$(calls)" = "connection grant txn txn " ] || complain "$(calls)"
}

@test "a free lock: a lease, one transaction to take it, and one to release it, on one connection" {
	etcd_single
	etcd_between
	few_calls
	few_calls --mode=shared
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

@test "the reply to the request for a free lock is lost: it is held all the same, once" {
	etcd_single
	etcd_between
	: >"$DIR/faults/lose-txn"
	smith a "etcd://$BETWEEN/L"
	expect a OK
	in_file "$DIR/between.log" "lost txn"
	[ "$(keys | sed 's,[0-9a-f]*$,,')" = L/ ] || complain "$(keys)"
	run_smith --no-wait "etcd://$ETCD/L"
	[ "$status" -eq 1 ]
	unlock a
	[ "$STATUS" -eq 0 ]
	[ -z "$(keys)" ] || complain "left: $(keys)"
}

# tried N: a waiter has tried to enter, and waits on; only the growing number of transactions shows that.
tried() {
	local end=$((SECONDS + LINE_SECONDS))
	until [ "$(transactions)" -gt "$1" ]; do ((SECONDS < end)) || complain "it has not tried" || return; done
}

# foreign REQUEST KEY: of etcd, for a key with a NUL byte, which etcdctl does not take.
foreign() {
	curl -sf "http://$ETCD/v3/kv/$1" -d "{\"key\":\"$(printf %b "$2" | base64 -w 0)\"}" >/dev/null
}

@test "another program's key that is no text is waited for like others, also with a long lease" {
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

# holders LOCK: how many keys say that they hold it.
holders() { ctl get "$1/" --prefix --print-value-only | grep -c ^holds; }

@test "the key before a waiter's goes, and somebody holds the lock still: the waiter waits on" {
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
	local i j value
	printf -v value 'shared pid=1 host=elsewhere since=1 note=%0200d' 0
	for i in 1 2 3 4 5; do
		{
			echo # no conditions
			for j in {1..100}; do echo "put L/$i.$j \"$value\""; done
			echo
			echo
		} | ctl txn >/dev/null
	done
	[ "$("$LOCKSMITH_DIR/semlock-locksmith-etcd" --who "etcd://$ETCD/L" </dev/null | grep -v ^LOCKSMITH | { read -r -t 1 <> <(:) || true; wc -l; })" -eq 500 ]
}

@test "a lock whose name is below another's: when its holder has died, the other is free" {
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
	[ "$(now)" -lt $((deadline + 1000000000)) ] || complain "$(($(now) - deadline)) ns after its deadline" || return
	expect a LOST && smith_ended a
	[ "$STATUS" -eq 76 ] && unlock b
}

@test "a lock that is not begun by START lapses after one lease" {
	etcd_single
	with_lease 2 lapses_unstarted
}

said_in_the_end() {
	local lock="etcd://$ETCD/L$ttl"
	smith a "$lock" && expect a OK || return
	smith b --ttl="$ttl" "$lock" && expect b WAIT || return
	fill b
	unlock a
	until [ "$(holders "L$ttl")" -eq 1 ]; do :; done
	# The pause is longer than the lease: the deadline in the OK has passed, and the command was not started.
	local end=$(($(now) + ttl * 1000000000 + 500000000))
	until [ "$(now)" -gt "$end" ]; do read -r -t 0.1 <> <(:) || true; done
	drain b
	expect_unstarted b && [ "$(field "$LINE" deadline)" -lt "$(now)" ] || return
	expect b LOST && unlock b
	[ "$STATUS" -eq 76 ]
}

@test "OK is said in the end to one who had no room for it, and until when; nothing was held for it beyond that" {
	etcd_single
	with_lease 2 said_in_the_end
}

# metric NAME: a figure out of the server's own count.
metric() { curl -s "http://$ETCD/metrics" | awk -v name="$1" 'index($1, name) == 1 { n += $2 } END { printf "%d", n }'; }
bytes_sent() { metric etcd_network_client_grpc_sent_bytes_total; }
transactions() { metric 'grpc_server_handled_total{grpc_code="OK",grpc_method="Txn"'; }

@test "a look costs the same however long the queue is" {
	etcd_single
	local i j value mode before
	printf -v value 'exclusive pid=1 host=elsewhere since=1 note=%0200d' 0
	smith a --ttl=6 "etcd://$ETCD/L"
	expect a OK
	for i in 1 2 3 4 5; do
		{
			echo # no conditions
			for j in {1..100}; do echo "put L/$i.$j \"$value\""; done
			echo
			echo
		} | ctl txn >/dev/null
	done
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

@test "one that lets go wakes one of those who wait, not all" {
	etcd_single
	# No helper may renew its lease meanwhile.
	smith h0 --ttl=600 "etcd://$ETCD/L"
	expect h0 OK
	transactions_for_ten --ttl=600
	# Each waiter puts its key, which is its look as well, and lets go.
	[ "$TRANSACTIONS" -le 24 ] || complain "exclusive: $TRANSACTIONS"
	smith h0 --ttl=600 --slots=2 "etcd://$ETCD/L"
	expect h0 OK
	smith h1 --ttl=600 --slots=2 "etcd://$ETCD/L"
	expect h1 OK
	transactions_for_ten --ttl=600 --slots=2
	# Each waiter looks again when the one before it has entered.
	[ "$TRANSACTIONS" -le 60 ] || complain "slots: $TRANSACTIONS"
	[ -z "$(keys)" ] || complain "left: $(keys)"
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

@test "after a crash of everything the next enters within 1.3 leases, and nothing is left" {
	etcd_single
	with_lease 8 entered_in_time
	with_lease 8 entered_in_time --slots=1
	until_gone L
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
	smith a --ttl=6 "etcd://$BETWEEN/L"
	expect a OK
	expect a HELD
	ctl del L/ --prefix >/dev/null
	local deleted line
	deleted=$(now)
	until_line a LOST
	[[ $LINE == "LOST its lease expired or was revoked" ]]
	# A renewal that was said after the deletion had been asked for before the deletion.
	while read -r line; do
		[ -z "$line" ] || [ $(($(field "$line" deadline) - 6000000000)) -lt $((deleted + 20000000)) ] || complain "$line"
	done <<<"$PASSED"
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

@test "the server is killed and comes back: held on" {
	etcd_single
	smith a --ttl=20 "etcd://$ETCD/L"
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
	while IFS= read -r -t "$LINE_SECONDS" -u "${SMITH_OUT[a]}" LINE && [[ $LINE == HELD* ]]; do
		deadline=$(field "$LINE" deadline)
	done
	lost=$(now)
	[ "$LINE" = "LOST no endpoint answered in time" ] || complain "$LINE" || return
	unlock a
	etcd_stop_all
	rm -r "$DIR/s1"
	[ "$STATUS" -eq 76 ] && [ "$lost" -lt "$deadline" ]
}

@test "the server has lost its data: the holder is told so at its next renewal, and a waiter enters" {
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

@test "three nodes: the leader is killed, then a member stopped; the lock is kept, waiters enter" {
	etcd_three
	smith a --ttl=12 "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=12 "etcd://$ETCD/L"
	expect b WAIT
	local leader other
	# The members may be electing a leader at this moment.
	local end=$((SECONDS + LINE_SECONDS))
	until leader=$(etcd_leader); do [ $SECONDS -lt $end ]; done
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

@test "an endpoint that is dead from the start is passed over" {
	etcd_single
	smith a "etcd://127.0.0.1:1,$ETCD,127.0.0.1:2/L"
	expect a OK
	unlock a
	[ "$STATUS" -eq 0 ]
	run_smith --no-wait etcd://127.0.0.1:1,127.0.0.1:2/L
	[ "$status" -eq 69 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == "ERR 69 "* ]]
}

@test "users: wrong password 77, no rights 77, login again after a restart" {
	etcd_single
	ctl user add root:pw >/dev/null
	ctl user grant-role root root >/dev/null
	ctl role add locks >/dev/null
	ctl role grant-permission locks readwrite --prefix=true jobs/L/ >/dev/null
	ctl user add cron:pw >/dev/null
	ctl user grant-role cron locks >/dev/null
	ctl auth enable >/dev/null
	run_smith --no-wait "etcd://$ETCD/jobs/L"
	[ "$status" -eq 77 ]
	export SEMLOCK_PASSWORD=wrong
	run_smith --no-wait "etcd://cron@$ETCD/jobs/L"
	[ "$status" -eq 77 ]
	[ "${#lines[@]}" -eq 1 ]
	export SEMLOCK_PASSWORD=pw
	run_smith --no-wait "etcd://cron@$ETCD/other/L"
	[ "$status" -eq 77 ]
	[[ $output == *"--prefix=true 'other/L/'" ]]
	smith a --ttl=20 "etcd://cron@$ETCD/jobs/L"
	expect a OK
	# A server that restarts forgets all logins.
	kill -KILL "${ETCD_PID[s1]}"; wait "${ETCD_PID[s1]}" || true
	etcd_start s1
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
	run_smith "etcd://cron:pw@$ETCD/jobs/L"
	[ "$status" -eq 64 ]
}

with_users() {
	ctl user add root:pw >/dev/null
	ctl user grant-role root root >/dev/null
	ctl auth enable >/dev/null
	export SEMLOCK_PASSWORD=pw
}

# forget_logins COMMAND...: all logins are over, and after COMMAND one is not answered as long as there is time for it.
forget_logins() {
	: >"$DIR/faults/mute-login"
	: >"$DIR/between.log"
	ctl --user root:pw user passwd root --interactive=false <<<pw >/dev/null || return
	"$@"
	in_file "$DIR/between.log" login || return
	: >"$DIR/between.log"
	in_file "$DIR/between.log" grant || return
	rm "$DIR/faults/mute-login"
}

holds_on_after_login() {
	smith a --ttl="$ttl" "etcd://root@$BETWEEN/L$ttl" && expect a OK || return
	forget_logins true || return
	expect a HELD || return
	unlock a
	[ "$STATUS" -eq 0 ]
}

waits_on_after_login() {
	smith a --ttl=600 "etcd://root@$ETCD/W$ttl" && expect a OK || return
	smith b --ttl="$ttl" "etcd://root@$BETWEEN/W$ttl" && expect b WAIT || return
	forget_logins unlock a || return
	until_line b OK
}

auth_enabled() {
	ctl user add root:pw >/dev/null && ctl user grant-role root root >/dev/null && ctl auth enable >/dev/null
}

@test "users are enabled under a lock: it is held on and waited for with the login that was given" {
	etcd_single
	SEMLOCK_PASSWORD=pw smith a --ttl=6 "etcd://root@$ETCD/L"
	expect a OK
	SEMLOCK_PASSWORD=pw smith b "etcd://root@$ETCD/L"
	expect b WAIT
	auth_enabled
	expect a HELD
	expect a HELD
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
	until_line b OK
}

@test "users are enabled under a lock without a login: LOST, and why; a waiter is told that, and nothing else" {
	etcd_single
	smith a --ttl=3 "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=3 "etcd://$ETCD/L"
	expect b WAIT
	auth_enabled
	until_line a LOST
	[ "$LINE" = "LOST etcdserver: user name is empty" ] || complain "$LINE"
	smith_ended b
	[ "$STATUS" -eq 77 ]
	expect b ERR
}

@test "a login is not answered in time: it is made again, and the lock held, or waited for" {
	etcd_single
	etcd_between
	with_users
	with_lease 12 holds_on_after_login
	with_lease 12 waits_on_after_login
}

@test "the cluster and the user are known from etcdctl's variables" {
	etcd_single
	ETCDCTL_ENDPOINTS=http://127.0.0.1:1,$ETCD smith a etcd:///L
	expect a OK
	run_smith --no-wait "etcd://$ETCD/L"
	[ "$status" -eq 1 ]
	unlock a
	# As with etcdctl, a server without users ignores a login; and netrc is not read here.
	printf 'default login anonymous password x\n' >"$HOME/.netrc"
	chmod 600 "$HOME/.netrc"
	run_smith --no-wait "etcd://$ETCD/L"
	[ "$status" -eq 0 ]
	ETCDCTL_USER=cron:pw run_smith --no-wait "etcd://$ETCD/L"
	[ "$status" -eq 0 ]
	ctl user add root:pw >/dev/null
	ctl user grant-role root root >/dev/null
	ctl auth enable >/dev/null
	ETCDCTL_USER=root:pw run_smith --no-wait "etcd://$ETCD/L"
	[ "$status" -eq 0 ]
	ETCDCTL_USER=root ETCDCTL_PASSWORD=pw SEMLOCK_PASSWORD=wrong run_smith --no-wait "etcd://$ETCD/L"
	[ "$status" -eq 0 ]
	ETCDCTL_USER=cron:pw run_smith --no-wait "etcd://root@$ETCD/L"
	[ "$status" -eq 77 ]
	ETCDCTL_ENDPOINTS=http://h:1,https://h:2 run_smith --no-wait etcd:///L
	[ "$status" -eq 64 ]
	[[ $output == "ERR 64 ETCDCTL_ENDPOINTS"* ]]
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

@test "what each endpoint has to say is said, and what is to be done" {
	run_smith --no-wait etcd://127.0.0.1:1,127.0.0.1:2/L
	[[ $output == *"127.0.0.1:1: "*"; 127.0.0.1:2: "* ]] || [[ $output == *"127.0.0.1:2: "*"127.0.0.1:1: "* ]]
	certificates
	ETCD_SCHEME=https
	etcd_single --cert-file "$DIR/leaf.pem" --key-file "$DIR/leaf.key"
	run_smith --no-wait "etcd://$ETCD/L"
	[ "$status" -eq 69 ]
	[[ $output == *"wants TLS (etcds://)"* ]]
	ETCDCTL_CACERT=$DIR/ca.pem ETCDCTL_ENDPOINTS=https://$ETCD run_smith --no-wait etcd:///L
	[ "$status" -eq 0 ]
}

@test "TLS is verified with the given authority, and refused without" {
	certificates
	ETCD_SCHEME=https
	etcd_single --cert-file "$DIR/leaf.pem" --key-file "$DIR/leaf.key"
	run_smith --no-wait "etcds://$ETCD/L"
	[ "$status" -eq 69 ]
	[[ $output == "ERR 69 "*certificate* ]]
	export SEMLOCK_CACERT=$DIR/ca.pem
	smith a --ttl=9 "etcds://$ETCD/L"
	expect a OK
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
	run_smith --no-wait "etcd://$ETCD/L"
	[ "$status" -eq 69 ]
}

@test "a server that wants a certificate of its clients" {
	certificates
	ETCD_SCHEME=https ETCD_CURL=(--cert "$DIR/leaf.pem" --key "$DIR/leaf.key")
	etcd_single --cert-file "$DIR/leaf.pem" --key-file "$DIR/leaf.key" --client-cert-auth \
		--trusted-ca-file "$DIR/ca.pem"
	export SEMLOCK_CACERT=$DIR/ca.pem
	run_smith --no-wait "etcds://$ETCD/L"
	[ "$status" -eq 69 ]
	[[ $output == "ERR 69 "* ]]
	SEMLOCK_CERT=$DIR/leaf.pem SEMLOCK_KEY=$DIR/leaf.key smith a --ttl=9 "etcds://$ETCD/L"
	expect a OK
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
	SEMLOCK_CERT=$DIR/server.pem run_smith --who "etcds://$ETCD/L" # certificate and key in one file
	[ "$status" -eq 0 ]
	SEMLOCK_CERT=$DIR/no-such-file run_smith --no-wait "etcds://$ETCD/L"
	[[ $output == "ERR 69 "*"no-such-file"* ]]
	# The certificate's name is the user, unless the URL names another.
	local tls=(--cacert "$DIR/ca.pem" --cert "$DIR/leaf.pem" --key "$DIR/leaf.key") user
	for user in root localhost; do
		ctl "${tls[@]}" user add $user:pw >/dev/null
		ctl "${tls[@]}" user grant-role $user root >/dev/null
	done
	ctl "${tls[@]}" auth enable >/dev/null
	SEMLOCK_CERT=$DIR/server.pem run_smith --no-wait "etcds://$ETCD/L"
	[ "$status" -eq 0 ]
	SEMLOCK_CERT=$DIR/server.pem SEMLOCK_PASSWORD=wrong run_smith --no-wait "etcds://root@$ETCD/L"
	[ "$status" -eq 77 ]
	SEMLOCK_CERT=$DIR/server.pem SEMLOCK_PASSWORD=pw run_smith --no-wait "etcds://root@$ETCD/L"
	[ "$status" -eq 0 ]
}

@test "--stale, and what is no etcd" {
	etcd_single
	run_smith --stale=5 "etcd://$ETCD/L"
	[ "$status" -eq 64 ]
	no_etcd etcd "has no gRPC (HTTP/2)"
	certificates
	SEMLOCK_CACERT=$DIR/ca.pem no_etcd etcds "HTTP 501 without gRPC" "$DIR/server.pem"
}

# no_etcd SCHEME WORDS [CERTIFICATE]: for a server that speaks HTTP/1.1 alone, the helper says 69 with WORDS.
no_etcd() {
	apart /usr/bin/python3 - "${@:3}" >"$DIR/$1" <<-'END' &
		import http.server, ssl, sys
		server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
		server.RequestHandlerClass.protocol_version = "HTTP/1.1"
		if sys.argv[1:]:
		    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
		    context.load_cert_chain(sys.argv[1])
		    server.socket = context.wrap_socket(server.socket, server_side=True)
		print("READY", server.server_address[1], flush=True)
		server.serve_forever()
	END
	ETCD_PID[other]=$!
	in_file "$DIR/$1" READY
	run_smith --no-wait "$1://127.0.0.1:$(sed 's/READY //' "$DIR/$1")/L"
	kill "${ETCD_PID[other]}"
	unset "ETCD_PID[other]"
	[ "$status" -eq 69 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == "ERR 69 "*"$2"* ]] || complain "$output"
}

@test "a libcurl without HTTP/2 is named" {
	cat >"$DIR/no_http2.c" <<-'END'
		#define _GNU_SOURCE
		#include <curl/curl.h>
		#include <dlfcn.h>
		curl_version_info_data *curl_version_info(CURLversion age)
		{
			static curl_version_info_data without;
			without = *((curl_version_info_data *(*)(CURLversion))dlsym(RTLD_NEXT, "curl_version_info"))(age);
			without.features &= ~CURL_VERSION_HTTP2;
			return &without;
		}
	END
	cc -shared -fPIC -o "$DIR/no_http2.so" "$DIR/no_http2.c" || skip "no compiler here"
	LD_PRELOAD=$DIR/no_http2.so run_smith --no-wait etcd://127.0.0.1:1/L
	[[ $output == "ERR "* ]] || skip "no LD_PRELOAD with this build"
	[ "$output" = "ERR 69 this libcurl has no HTTP/2, in which etcd's gRPC comes" ]
}

@test "a server to which no connection is made for long is connected to in the end" {
	# libcurl 7.88 closes what was never connected without a word: the socket's number comes again and again.
	cat >"$DIR/numbers.c" <<-'END'
		#include "locksmith/etcd/grpc.c"
		const char *etcd_env_variable(const char *name) { (void)name; return NULL; }
		int transfer_open(struct transfer *t) { (void)t; return -1; }
		void transfer_start(struct transfer *t) { (void)t; }
		void transfer_close(struct transfer *t) { (void)t; }
		CURLcode transfer_run(struct transfer *t, int64_t until, const bool *abort)
		{ (void)t; (void)until; (void)abort; return CURLE_OK; }
		int main(void)
		{
			struct grpc_call c = {.base = "http://host:1"};
			for (int i = 0; i < 10 * CONNECTIONS; i++)
				if (note_socket(&c, 7, CURLSOCKTYPE_IPCXN) != CURL_SOCKOPT_OK)
					return 1;
			if (!has_connection(c.base))
				return 2;
			close_socket(NULL, 7);
			return has_connection(c.base) ? 3 : 0;
		}
	END
	# shellcheck disable=SC2086
	cc ${ETCD_CFLAGS:-} -D_GNU_SOURCE -I"$LOCKSMITH_DIR" -I"$SOURCE/src" -o "$DIR/numbers" "$DIR/numbers.c" \
		"$SOURCE/src/locksmith/etcd/protobuf.c" "$SOURCE/src/locksmith/curl/buffer.c" ${ETCD_LIBS:--lcurl} || skip "no compiler here"
	"$DIR/numbers"
}
