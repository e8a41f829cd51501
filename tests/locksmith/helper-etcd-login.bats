#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Who may lock on etcd: users, certificates, and the variables of etcdctl.
# By semlock-locksmith alone; the servers are started here.

load ../lib/helper-etcd

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

# forget_logins CALL COMMAND...: all logins are over, and after COMMAND one is not answered as long as there is time for
# it: then CALL is made again.
# Also if this fails, the logins that follow are answered.
forget_logins() {
	local failed=0
	: >"$DIR/faults/mute-login"
	forget_logins_until_called "$@" || failed=1
	rm "$DIR/faults/mute-login"
	return $failed
}

forget_logins_until_called() {
	local call=$1
	shift
	: >"$DIR/between.log"
	ctl --user root:pw user passwd root --interactive=false <<<pw >/dev/null || return
	"$@"
	in_file "$DIR/between.log" login || return
	: >"$DIR/between.log"
	in_file "$DIR/between.log" "$call"
}

holds_on_after_login() {
	smith a --ttl="$ttl" "etcd://root@$BETWEEN/L$ttl" && expect a OK || return
	forget_logins grant true || return
	expect a HELD || return
	unlock a
	[ "$STATUS" -eq 0 ]
}

waits_on_after_login() {
	smith a --ttl=600 "etcd://root@$ETCD/W$ttl" && expect a OK || return
	smith b --ttl="$ttl" "etcd://root@$BETWEEN/W$ttl" && expect b WAIT || return
	forget_logins txn unlock a || return # it keeps its place
	until_line b OK
}

auth_enabled() {
	ctl user add root:pw >/dev/null && ctl user grant-role root root >/dev/null && ctl auth enable >/dev/null
}

@test "users enabled under a lock: the given login holds it and waits for it" {
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

@test "users enabled, no login: keepalives hold, and a waiter hears why" {
	local wants="the server wants a login: set ETCDCTL_USER=USER:PASSWORD, or SEMLOCK_USER and SEMLOCK_PASSWORD"
	etcd_single
	smith a --ttl=$((3 * PACE)) "etcd://$ETCD/L"
	expect a OK
	smith b --ttl=$((3 * PACE)) "etcd://$ETCD/L"
	expect b WAIT
	auth_enabled
	if keepalive_granted; then
		until_line a NOTE
		[ "$LINE" = "NOTE the server refuses to renew it, so its lease is kept alive: $wants" ] || complain "$LINE"
		for _ in 1 2 3 4 5; do expect a HELD; done
		unlock a
		[ "$STATUS" -eq 69 ]
		until_line a ERR
		[[ $LINE == "ERR 69 $wants; it expires in "* ]] || complain "$LINE"
	else
		lost_at_the_end a "$wants"
	fi
	smith_ended b
	[ "$STATUS" -eq 77 ]
	expect b ERR
}

@test "a login without an answer is made again; the lock is held, or waited for" {
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
	# The server's alert comes before the end of the connection, or behind it, and is not seen then.
	for ((i = 0; i < 6; i++)); do
		run_smith --no-wait "etcds://$ETCD/L"
		[ "$status" -eq 69 ]
		[[ $output == "ERR 69 "*" certificate"*"SEMLOCK_CERT, SEMLOCK_KEY"* ]] || complain "$output"
	done
	SEMLOCK_CERT=$DIR/leaf.pem SEMLOCK_KEY=$DIR/leaf.key smith a --ttl=9 "etcds://$ETCD/L"
	expect a OK
	expect a HELD
	unlock a
	[ "$STATUS" -eq 0 ]
	SEMLOCK_CERT=$DIR/server.pem run_smith --who "etcds://$ETCD/L" # certificate and key in one file
	[ "$status" -eq 0 ]
	SEMLOCK_CERT=$DIR/no-such-file run_smith --no-wait "etcds://$ETCD/L"
	[[ $output == "ERR 69 "*"no-such-file"* ]]
	ETCDCTL_CERT=$DIR/leaf.pem ETCDCTL_KEY=$DIR/leaf.key SEMLOCK_CERT=$DIR/no-such-file run_smith --who "etcds://$ETCD/L"
	[ "$status" -eq 0 ]
	# Another authority's, for the same name.
	mkdir "$DIR/theirs"
	(DIR=$DIR/theirs certificates)
	SEMLOCK_CERT=$DIR/theirs/server.pem run_smith --no-wait "etcds://$ETCD/L"
	[ "$status" -eq 69 ]
	[[ $output == "ERR 69 "*" certificate"*"SEMLOCK_CERT, SEMLOCK_KEY"* ]] || complain "$output"
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
