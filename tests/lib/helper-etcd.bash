# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# For the tests of the helper for etcd: what all files of them need.

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
	local end=$((SECONDS + LINE_SECONDS))
	until [ "$(etcd_count "$1/")" -eq "$2" ]; do
		((SECONDS < end)) || { keys >&2; return 1; }
		nap 20
	done
}

# keepalive_granted [OPTION...]: does the server keep the lease of a lock alive for the user of these options, who may
# not write its key?  etcd 3.5.30 refuses that, etcd 3.4 does not.
keepalive_granted() {
	local lease
	lease=$(ctl --user root:pw get --prefix L/ -w json | grep -o '"lease":[0-9]*' | head -n 1) # not by jq 1.6: 63 bits
	lease=$(printf %x "${lease#*:}")
	ctl "$@" lease keep-alive --once "$lease" >"$DIR/keepalive" 2>&1 && return
	grep -q 'permission denied\|user name is empty' "$DIR/keepalive" || complain "$(cat "$DIR/keepalive")"
	return 1
}

# lost_at_the_end NAME REASON
lost_at_the_end() {
	until_line "$1" LOST || return
	[[ $LINE == "LOST "*"$2"* ]] || complain "$LINE" || return
	smith_ended "$1"
	[ "$STATUS" -eq 76 ]
}

# watches N: waits until the server has been asked for that many.
watches() {
	local end=$((SECONDS + LINE_SECONDS))
	until [ "$(metric 'grpc_server_started_total{grpc_method="Watch"')" -ge "$1" ]; do
		((SECONDS < end)) || complain "too few watches" || return
		nap 20
	done
}

# says CALL FRAME...: from now on the server answers CALL with these frames.
says() {
	printf '%s\n' "${@:2}" >"$DIR/says"
	mv "$DIR/says" "$DIR/faults/say-$1"
}

# header NAME VALUE: a header of HPACK, without compression.
header() { printf '00%02x%s%02x%s' ${#1} "$(hex "$1")" ${#2} "$(hex "$2")"; }

hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }

# calls: the calls through BETWEEN so far, without watches.
calls() { grep -v watch "$DIR/between.log" | tr '\n' ' '; }

# holders LOCK: how many keys say that they hold it.
holders() { ctl get "$1/" --prefix --print-value-only | grep -c ^holds; }

# metric NAME: a figure out of the server's own count.
metric() {
	etcd_ask "${ETCD##*:}" /metrics
	awk -v name="$1" 'index($1, name) == 1 { n += $2 } END { printf "%d", n }' <<<"$ANSWER"
}

# slow SECONDS CALL...: from now on the answers to these calls are so late.
slow() {
	local call
	for call in "${@:2}"; do
		echo "$1" >"$DIR/faults/slow.$call"
		mv "$DIR/faults/slow.$call" "$DIR/faults/slow-$call"
	done
}
