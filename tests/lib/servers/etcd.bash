# SPDX-License-Identifier: MIT
# etcd servers on free loopback ports, for the tests.  Needs DIR, a directory of their own.
#
# free_ports N             N port numbers on which no process listens
# etcd_start NAME [ARG...] starts (or starts again) a member out of etcd_members; waits until it is healthy
# etcd_single [ARG...]     one node called s1; sets ETCD (host:port) and ETCD_PID_s1
# etcd_three               n1 n2 n3; sets ETCD to all three endpoints
# etcd_proxy               etcd's grpc-proxy before ETCD; sets PROXY (host:port)
# etcd_between             etcd_between.py, which does wrong on demand, before ETCD; sets BETWEEN (host:port)
# etcd_between_full        stops BETWEEN, and fills its queue of connections: no further one is made
# etcd_between_goes_on     the end of that
# etcd_leader              prints the leader's name
# etcd_stop_all            kills what was started
#
# ETCD_CURL: options of curl for a server with authentication.

free_ports() {
	/usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/ports.py" "$1"
}

ETCD_SCHEME=http
declare -gA ETCD_CLIENT ETCD_PEER ETCD_PID
declare -ga ETCD_CURL=()
ETCD_CLUSTER='' ETCD_STATE=new

etcd_start() {
	local name=$1 client peer
	shift
	client=$ETCD_SCHEME://127.0.0.1:${ETCD_CLIENT[$name]} peer=http://127.0.0.1:${ETCD_PEER[$name]}
	apart etcd --name "$name" --data-dir "$DIR/$name" --listen-client-urls "${client/127.0.0.1/${ETCD_LISTEN:-127.0.0.1}}" \
		--advertise-client-urls "$client" --listen-peer-urls "$peer" \
		--initial-advertise-peer-urls "$peer" --initial-cluster "$ETCD_CLUSTER" \
		--initial-cluster-token semlock --initial-cluster-state "$ETCD_STATE" --logger zap \
		--log-level error --unsafe-no-fsync --heartbeat-interval 50 --election-timeout 500 \
		"$@" >>"$DIR/$name.log" 2>&1 </dev/null &
	ETCD_PID[$name]=$!
}

# Asks until the member is healthy; fails if it has ended.
etcd_wait() {
	local name=$1 end=$((SECONDS + ${LINE_SECONDS:-60}))
	until curl -sk "${ETCD_CURL[@]}" --max-time 2 "$ETCD_SCHEME://127.0.0.1:${ETCD_CLIENT[$name]}/health" | grep -q true; do
		kill -0 "${ETCD_PID[$name]}" && [ $SECONDS -lt $end ] || { cat "$DIR/$name.log" >&2; return 1; }
	done
	kill -0 "${ETCD_PID[$name]}" # else another test's server has answered on the port
}

# Another process may take a port that was free: try other ports.
etcd_single() {
	local try
	for try in 1 2 3; do
		if etcd_single_once "$@"; then return; fi
		etcd_stop_all
		rm -rf "$DIR/s1"
	done
	return 1
}

etcd_single_once() {
	local ports
	read -ra ports <<<"$(free_ports 2)"
	ETCD_CLIENT[s1]=${ports[0]} ETCD_PEER[s1]=${ports[1]}
	ETCD_CLUSTER=s1=http://127.0.0.1:${ports[1]}
	ETCD=127.0.0.1:${ports[0]}
	etcd_start s1 "$@"
	etcd_wait s1
}

etcd_proxy() {
	local try
	for try in 1 2 3; do
		ETCD_CLIENT[proxy]=$(free_ports 1)
		PROXY=127.0.0.1:${ETCD_CLIENT[proxy]}
		apart etcd grpc-proxy start --endpoints "$ETCD" --listen-addr "$PROXY" --advertise-client-url "$PROXY" --data-dir "$DIR/proxy" \
			>>"$DIR/proxy.log" 2>&1 </dev/null &
		ETCD_PID[proxy]=$!
		if etcd_wait proxy; then return; fi
	done
	return 1
}

etcd_between() {
	apart /usr/bin/python3 "$SOURCE/tests/lib/servers/etcd_between.py" "$ETCD" "$DIR" >"$DIR/port" 2>&1 </dev/null &
	ETCD_PID[between]=$!
	in_file "$DIR/port" READY
	BETWEEN=127.0.0.1:$(sed 's/READY //' "$DIR/port")
}

etcd_between_full() {
	kill -STOP "${ETCD_PID[between]}"
	apart /usr/bin/python3 "$SOURCE/tests/lib/servers/full_queue.py" "$BETWEEN" >"$DIR/full" 2>&1 </dev/null &
	ETCD_PID[full]=$!
	in_file "$DIR/full" READY
}

etcd_between_goes_on() {
	kill -KILL "${ETCD_PID[full]}"
	wait "${ETCD_PID[full]}" 2>/dev/null || true
	unset "ETCD_PID[full]"
	kill -CONT "${ETCD_PID[between]}"
}

etcd_three() {
	local try
	for try in 1 2 3; do
		if etcd_three_once; then return; fi
		etcd_stop_all
		rm -rf "$DIR"/n[123]
	done
	return 1
}

etcd_three_once() {
	local ports i
	ETCD_STATE=new
	read -ra ports <<<"$(free_ports 6)"
	ETCD='' ETCD_CLUSTER=''
	for i in 1 2 3; do
		ETCD_CLIENT[n$i]=${ports[i - 1]} ETCD_PEER[n$i]=${ports[i + 2]}
		ETCD=$ETCD${ETCD:+,}127.0.0.1:${ports[i - 1]}
		ETCD_CLUSTER=$ETCD_CLUSTER${ETCD_CLUSTER:+,}n$i=http://127.0.0.1:${ports[i + 2]}
	done
	for i in 1 2 3; do etcd_start n$i; done
	for i in 1 2 3; do etcd_wait n$i || return; done
	ETCD_STATE=existing
}

etcd_leader() {
	local name status
	for name in "${!ETCD_CLIENT[@]}"; do
		status=$(curl -s --max-time 2 "http://127.0.0.1:${ETCD_CLIENT[$name]}/v3/maintenance/status" -d '{}') ||
			continue
		if jq -e '.leader == .header.member_id' >/dev/null <<<"$status"; then
			echo "$name"
			return
		fi
	done
	return 1
}

etcd_stop_all() {
	local name
	for name in "${!ETCD_PID[@]}"; do
		kill -CONT "${ETCD_PID[$name]}" 2>/dev/null
		kill -KILL "${ETCD_PID[$name]}" 2>/dev/null
		wait "${ETCD_PID[$name]}" 2>/dev/null
	done
	return 0
}

ctl() { ETCDCTL_API=3 etcdctl --endpoints "$ETCD_SCHEME://${ETCD%%,*}" "$@"; }
