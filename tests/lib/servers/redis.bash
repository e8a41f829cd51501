# SPDX-License-Identifier: MIT
# A Redis on a free port of 127.0.0.1, for the tests.  Needs DIR, a directory of its own; it forgets nothing when it
# is killed.
#
# redis_server     starts it; sets PORT and SERVER, its pid, and URL, a lock's
# redis_start      starts it again
# redis_kill       kill -9
# redis ARG...     redis-cli
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
	until [ "$(redis ping)" = PONG ]; do read -r -t 0.02 <> <(:) || true; done # it reads its data first
}

redis_kill() {
	kill -KILL "$SERVER"
	wait "$SERVER" 2>/dev/null || true
}

redis() { redis-cli -p "$PORT" "$@"; }
