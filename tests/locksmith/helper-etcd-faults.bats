#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# An etcd, or what stands before it, that is slow, silent, loses answers, or makes no sense.
# By semlock-locksmith alone; the servers are started here.

load ../lib/helper-etcd

# end_lease: the only lease ends, if it has not lapsed already.
end_lease() {
	ctl lease revoke "$(ctl lease list | tail -1)" >/dev/null 2>&1 || [ "$(ctl lease list)" = "found 0 leases" ]
}

@test "--no-wait, stopped until its lease has ended, still gets a free lock" {
	etcd_single
	etcd_between
	: >"$DIR/faults/stop-grant"
	smith b --no-wait "etcd://$BETWEEN/L"
	in_file "$DIR/between.log" "stop grant"
	: >"$DIR/faults/stop-txn"
	rm "$DIR/faults/stop-grant"
	in_file "$DIR/between.log" "stop txn"
	end_lease
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

@test "a lock is not busy if nothing was heard before the place was lost" {
	etcd_single
	etcd_between
	: >"$DIR/faults/stop-txn"
	slow 0.6 keepalive # it is sent after two seconds
	smith a --ttl=2 --wait=2.5 "etcd://$BETWEEN/L"
	in_file "$DIR/between.log" "stop txn"
	end_lease
	smith_ended a
	until_line a ERR || complain "$PASSED"
	[ "$STATUS" -eq 69 ]
}

slow_first_answer() {
	: >"$DIR/faults/stop-grant"
	: >"$DIR/between.log"
	smith a --ttl=2 "etcd://$BETWEEN/L" || return
	in_file "$DIR/between.log" "stop grant" || return
	"$PROBE" pause 1000
	rm "$DIR/faults/stop-grant"
	expect a OK
}

@test "with a short lease, too, the first answer of a server may take a second" {
	etcd_single
	etcd_between
	# On a busy machine the answer may take longer.
	slow_first_answer || slow_first_answer || slow_first_answer
}

silent_for_long() {
	smith a --ttl=4 "etcd://$1/A" || return
	in_file "$DIR/between.log" "stop grant" || return
	"$PROBE" pause 14000 # longer than any answer is waited for at one time
	kill -0 "${SMITH_PID[a]}" || return
	rm "$DIR/faults/stop-grant"
	until_line a OK
}

@test "a silent server is waited for; one that is not reached gives 69" {
	etcd_single
	etcd_between
	: >"$DIR/faults/stop-grant"
	silent_for_long "$BETWEEN"
	run_smith etcd://127.0.0.1:1/L
	[ "$status" -eq 69 ]
}

@test "a waiter stopped beyond its lease keeps a place that the server kept" {
	etcd_single
	etcd_between
	smith a --ttl=60 "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=$((4 * PACE)) "etcd://$BETWEEN/L"
	expect b WAIT
	smith c --ttl=600 "etcd://$ETCD/L"
	expect c WAIT
	kill -STOP "${SMITH_PID[b]}"
	local end=$(($(now) + 5000000000 * PACE)) id
	# The server ends leases late: here it is this that renews it meanwhile.
	id=$(ctl get L/ --prefix --keys-only --sort-by=CREATE | grep . | sed -n '2s,.*/0*,,p')
	until [ "$(now)" -gt "$end" ]; do
		ctl lease keep-alive --once "$id" >/dev/null
		"$PROBE" pause 300
	done
	kill -CONT "${SMITH_PID[b]}"
	in_file "$DIR/between.log" keepalive
	unlock a
	until_line b OK
	unlock b
	until_line c OK
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

@test "a silent endpoint is passed over in seconds, even with an hour's lease" {
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

@test "a waiter whose connection falls silent enters soon, at any lease" {
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

@test "a server that cancels each watch is asked less, and locking goes on" {
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

@test "behind etcd's grpc-proxy, locks, waits, releases and losses work" {
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

# refused_with TEXT: such an answer may come from a proxy, so the helper asks again until its time is up.
refused_with() {
	SEMLOCK_ANSWER_WITHIN=$ttl run_smith --no-wait "etcd://$BETWEEN/L"
	[ "$status" -eq 69 ] || return
	[ "${#lines[@]}" -eq 1 ] || return
	[[ $output == "ERR 69 "*"$1"* ]] || complain "$output" || return
}

@test "an answer that is not gRPC, or has an invalid status, is an error" {
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

@test "an endpoint that refuses, then falls silent: the error is the refusal" {
	etcd_single
	etcd_between
	says txn "1 5 88$(header content-type application/grpc)$(header grpc-status 14)"
	echo 2 >"$DIR/faults/stop-txn"
	SEMLOCK_ANSWER_WITHIN=3 run_smith --no-wait "etcd://$BETWEEN/L"
	rm "$DIR/faults/stop-txn"
	[ "$status" -eq 69 ]
	[ "$output" = "ERR 69 an error without a message (gRPC status 14)" ] || complain "$output"
	grep -q "stop txn" "$DIR/between.log"
}

# flood CALL FRAME...: from now on the server answers CALL with these frames, the last one without end.
flood() {
	printf '%s\n' "${@:2}" >"$DIR/says"
	mv "$DIR/says" "$DIR/faults/flood-$1"
}

@test "endless messages, headers or events: an error in time, little memory" {
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
	smith b --ttl=$((6 * PACE)) --wait=600 "etcd://$BETWEEN/L"
	expect b WAIT
	in_file "$DIR/between.log" "flood watch"
	"$PROBE" pause 1000
	most=$(awk '$1 == "VmHWM:" { print $2 }' "/proc/${SMITH_PID[b]}/status")
	[ "$most" -lt 32000 ] || complain "$most kB"
	unlock a
	until_line b OK
}

@test "TERM ends an orphaned helper whose release a silent server delays" {
	etcd_single
	smith a --ttl=600 "etcd://$ETCD/L"
	expect a OK
	kill -STOP "${ETCD_PID[s1]}"
	kill -TERM "${SMITH_PID[a]}" # ignored: the lock is held
	"$PROBE" pause 200
	local in=${SMITH_IN[a]} pid=${SMITH_PID[a]} end=$((SECONDS + LINE_SECONDS))
	kill -0 "$pid"
	exec {in}>&-
	"$PROBE" pause 500
	kill -TERM "$pid"
	wait "$pid" || true
	[ $SECONDS -lt $end ]
}

sent_away() {
	rm -f "$DIR/faults/say-grant" # of a shorter lease
	smith a --ttl="$ttl" "etcd://$BETWEEN/L$ttl" && expect a OK || return
	: >"$DIR/between.log"
	says grant "7 0 0000000000000000"
	in_file "$DIR/between.log" "said grant" || return
	rm "$DIR/faults/say-grant"
	expect a HELD && expect a HELD || return
	unlock a
	[ "$STATUS" -eq 0 ] && grep -q connection "$DIR/between.log"
}

@test "a server that sends clients away: the lock moves to another connection" {
	etcd_single
	etcd_between
	with_lease 6 sent_away
}

no_renewal_is_believed() {
	rm -f "$DIR/faults/say-grant" # of a shorter lease
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

@test "if the reply to the request is lost, the lock is held once" {
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
	[ "$output" = "ERR 69 this libcurl has no HTTP/2, which etcd's gRPC needs" ]
}

@test "a server that takes long to accept a connection is reached in the end" {
	# libcurl 7.88 closes what was never connected without a word: the socket's number comes again and again.
	cat >"$DIR/numbers.c" <<-'END'
		#include "locksmith/etcd/grpc.c"
		const char *etcd_env_variable(const char *name) { (void)name; return NULL; }
		int transfer_open(struct transfer *t) { (void)t; return -1; }
		void transfer_start(struct transfer *t) { (void)t; }
		void transfer_close(struct transfer *t) { (void)t; }
		void transfer_cut(struct transfer *t) { (void)t; }
		void transfer_drive(struct transfer *t, int64_t limit, int64_t until, const bool *abort)
		{ (void)t; (void)limit; (void)until; (void)abort; }
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
