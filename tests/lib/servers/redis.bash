# SPDX-License-Identifier: MIT
# A Redis on a free port of 127.0.0.1, for the tests.  Needs DIR, a directory of its own; it forgets nothing when it
# is killed.
#
# redis_server     starts it; sets PORT and SERVER, its pid, and URL, a lock's
# redis_start      starts it again
# redis_kill       kill -9
# redis ARG...     redis-cli
# redis_between    a server between, redis_between.py; sets BETWEEN, its pid, and URL, a lock's through it
# between NAME [TEXT]  from now on; "between NAME -": no longer
#
# shellcheck shell=bash disable=SC2034

redis_server() {
	command -v redis-server >/dev/null || skip "no redis-server here"
	mkdir "$DIR/data"
	on_a_port redis_on
	URL=redis://127.0.0.1:$PORT/nightly
}

redis_on() {
	REDIS_PORTS=(--port "$PORT")
	# with certificates made, by TLS
	[ ! -e "$DIR/leaf.pem" ] || REDIS_PORTS=(--port 0 --tls-port "$PORT" --tls-cert-file "$DIR/leaf.pem" \
		--tls-key-file "$DIR/leaf.key" --tls-ca-cert-file "$DIR/ca.pem" --tls-auth-clients no)
	apart redis-server "${REDIS_PORTS[@]}" --bind 127.0.0.1 --dir "$DIR/data" --save '' --appendonly yes --appendfsync always \
		>>"$DIR/server.log" 2>&1 </dev/null &
	SERVER=$!
}

redis_start() {
	redis_on
	listening "$PORT" || return
	until [ "$(redis ping)" = PONG ]; do nap 20; done # it reads its data first
}

redis_kill() {
	kill -KILL "$SERVER"
	wait "$SERVER" 2>/dev/null || true
}

redis() { redis-cli -p "$PORT" "$@"; }

redis_between() {
	: >"$DIR/ready"
	apart /usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/redis_between.py" "$DIR" "$PORT" >"$DIR/ready" 2>>"$DIR/server.log" </dev/null &
	BETWEEN=$!
	in_file "$DIR/ready" READY || return
	local port
	read -r _ port <"$DIR/ready"
	URL=redis://127.0.0.1:$port/nightly
}

between() {
	if [ "${2-}" = - ]; then rm -f "$DIR/between/$1"; return; fi
	printf '%s\n' "${2-}" >"$DIR/$1.new" && mv "$DIR/$1.new" "$DIR/between/$1"
}
