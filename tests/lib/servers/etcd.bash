# SPDX-License-Identifier: MIT
# etcd servers on free loopback ports, for the tests.  Needs DIR, a directory of their own.
#
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

# etcd_ask PORT PATH [BODY]: a request by HTTP without TLS, and without a process; the answer is in ANSWER, and it is false if
# that is no 200.
etcd_ask() {
	local fd line body=${3-} method=GET
	[ $# -lt 3 ] || method=POST
	ANSWER=
	{ exec {fd}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return
	printf '%s %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s' "$method" "$2" "${#body}" "$body" 1>&"$fd" 2>/dev/null
	IFS= read -r -t 2 line <&"$fd"
	IFS= read -r -d '' -t 60 ANSWER <&"$fd" || true # to its end
	exec {fd}>&-
	[[ $line == "HTTP/1."?" 200"* ]]
}

etcd_is_healthy() {
	if [ "$ETCD_SCHEME" = http ]; then
		etcd_ask "${ETCD_CLIENT[$1]}" /health && [[ $ANSWER == *true* ]]
	else
		curl -sk "${ETCD_CURL[@]}" --max-time 2 "$ETCD_SCHEME://127.0.0.1:${ETCD_CLIENT[$1]}/health" | grep -q true
	fi
}

# Asks until the member is healthy; fails if it has ended.
etcd_wait() {
	local name=$1 end=$((SECONDS + ${LINE_SECONDS:-60}))
	until etcd_is_healthy "$name"; do
		if [ $SECONDS -gt $end ] || ! kill -0 "${ETCD_PID[$name]}"; then cat "$DIR/$name.log" >&2; return 1; fi
		nap 20
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
	free_ports 2
	ETCD_CLIENT[s1]=${PORTS[0]} ETCD_PEER[s1]=${PORTS[1]}
	ETCD_CLUSTER=s1=http://127.0.0.1:${PORTS[1]}
	ETCD=127.0.0.1:${PORTS[0]}
	etcd_start s1 "$@"
	etcd_wait s1
}

etcd_proxy() {
	local try
	for try in 1 2 3; do
		free_ports 1
		ETCD_CLIENT[proxy]=${PORTS[0]}
		PROXY=127.0.0.1:${ETCD_CLIENT[proxy]}
		apart etcd grpc-proxy start --endpoints "$ETCD" --listen-addr "$PROXY" --advertise-client-url "$PROXY" --data-dir "$DIR/proxy" \
			>>"$DIR/proxy.log" 2>&1 </dev/null &
		ETCD_PID[proxy]=$!
		if etcd_wait proxy; then return; fi
	done
	return 1
}

etcd_between() {
	local SERVER PORT
	python_server "$DIR/port" "$DIR/between.err" etcd_between.py "$ETCD" "$DIR"
	ETCD_PID[between]=$SERVER
	BETWEEN=127.0.0.1:$PORT
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
	local i
	ETCD_STATE=new
	free_ports 6
	ETCD='' ETCD_CLUSTER=''
	for i in 1 2 3; do
		ETCD_CLIENT[n$i]=${PORTS[i - 1]} ETCD_PEER[n$i]=${PORTS[i + 2]}
		ETCD=$ETCD${ETCD:+,}127.0.0.1:${PORTS[i - 1]}
		ETCD_CLUSTER=$ETCD_CLUSTER${ETCD_CLUSTER:+,}n$i=http://127.0.0.1:${PORTS[i + 2]}
	done
	for i in 1 2 3; do etcd_start n$i; done
	for i in 1 2 3; do etcd_wait n$i || return; done
	ETCD_STATE=existing
}

etcd_leader() {
	local name leader
	for name in "${!ETCD_CLIENT[@]}"; do
		etcd_ask "${ETCD_CLIENT[$name]}" /v3/maintenance/status '{}' || continue
		[[ $ANSWER =~ \"leader\":\"([0-9]+)\" ]] || continue
		leader=${BASH_REMATCH[1]}
		if [[ $ANSWER == *"\"member_id\":\"$leader\""* ]]; then
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

# etcd_base64 TEXT: sets BASE64; TEXT is ASCII.
etcd_base64() {
	local alphabet=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/ i j byte bits
	BASE64=
	for ((i = 0; i < ${#1}; i += 3)); do
		bits=0
		for j in 0 1 2; do
			printf -v byte %d "'${1:i+j:1}"
			bits=$((bits << 8 | byte))
		done
		for j in 18 12 6 0; do BASE64+=${alphabet:bits >> j & 63:1}; done
	done
	case $((${#1} % 3)) in
	1) BASE64=${BASE64%??}== ;;
	2) BASE64=${BASE64%?}= ;;
	esac
}

# etcd_count PREFIX/: prints how many keys begin so.  etcdctl takes longer to start than what it is started for.
# (The server must ask for no login.)
etcd_count() {
	local from
	etcd_base64 "$1"
	from=$BASE64
	etcd_base64 "${1%/}0" # the character after the slash
	etcd_ask "${ETCD##*:}" /v3/kv/range "{\"key\":\"$from\",\"range_end\":\"$BASE64\",\"count_only\":true}" || return
	if [[ $ANSWER =~ \"count\":\"([0-9]+)\" ]]; then echo "${BASH_REMATCH[1]}"; else echo 0; fi
}

ctl() { ETCDCTL_API=3 etcdctl --endpoints "$ETCD_SCHEME://${ETCD%%,*}" "$@"; }
