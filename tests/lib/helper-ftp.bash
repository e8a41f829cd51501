# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What the tests of the FTP helper share: an FTP server of their own, with faults.
#
# server [ARG...], restart   starts it, and sets PORT, URL and ROOT; kills it and starts it again
# fault NAME, mend NAME      see tests/lib/servers/ftp.py
# with_wait ARG...           the helper has waited, and gives up

load ../lib/locksmith

setup() {
	watch_over
	have_locksmiths || skip "built without the network methods"
	export SEMLOCK_ANSWER_WITHIN=60 # --no-wait: a busy machine may need more than two and a half seconds
	DIR=$(mktemp -d "$BATS_TEST_TMPDIR/XXXXXX")
	export SEMLOCK_USER=lock SEMLOCK_PASSWORD=secret HOME=$DIR
	unset NETRC SEMLOCK_CACERT
}

teardown() {
	smiths_stop_all
	[ -z "${SERVER-}" ] || server_kill
	watched
}

# server [ARG...]: starts the server and sets PORT and URL
server() {
	python_server "$DIR/ready" "$DIR/server.err" ftp.py "$DIR" "$@"
	URL=ftp://127.0.0.1:$PORT
	ROOT=$DIR/root
}

restart() {
	server_kill
	server "--port=$PORT"
}

fault() { : >"$DIR/faults/$1"; }
mend() { rm -f "$DIR/faults/$1"; }

# with_wait ARG...: the helper has waited, and gives up.  (A short time may be over before its first look.)
with_wait() {
	local room
	for room in 3 12 48; do
		smith z --wait=$room "$@"
		until_line z BUSY
		[[ $PASSED != "WAIT "* ]] || return 0
	done
	return 1
}
