#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A waiter or a holder that is frozen with all of its processes, as a container is, and one that no packet reaches.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote
load ../lib/servers/etcd
load ../lib/servers/others
load ../lib/servers/postgresql
load ../lib/servers/ssh

prepare() { prepare_remote; }

# Frozen processes cannot be killed.
tidy() {
	if [ -n "${CAGE-}" ]; then
		thaw
		"$PROBE" sweep "$PWD" >/dev/null
		eventually rmdir "$CAGE"
	fi
	etcd_stop_all
	postgresql_stop_all
	ssh_stop
}

# A server that is reached from elsewhere as well; sets URL.
on_etcd() {
	ETCD_LISTEN=0.0.0.0 etcd_single
	URL=etcd://$ETCD/nightly
}

on_postgresql() {
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-postgresql" ] || skip "this build has no locks on PostgreSQL"
	unset PGUSER PGPASSWORD PGHOST PGPORT PGDATABASE PGSERVICE PGPASSFILE
	postgresql_server 'listen_addresses=*'
	echo "host all all 198.18.0.0/15 trust" >>"$PG_HOME/one/pg_hba.conf"
	sql "SELECT pg_reload_conf()"
}

on_ssh() {
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-ssh" ] || skip "this build has no locks by ssh"
	unset SEMLOCK_LOOK_EVERY
	SSH_LISTEN=0.0.0.0 ssh_server
}

# cage: makes CAGE, a control group whose processes can be frozen; WAY starts a command in it.
cage() {
	local parent
	root_only "makes a control group"
	AWAY=$URL
	for parent in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/freezer; do
		CAGE=$parent/semlock-test-$$
		if mkdir "$CAGE" 2>/dev/null; then
			WAY=(sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$CAGE")
			if [ -e "$CAGE/cgroup.freeze" ] || [ -e "$CAGE/freezer.state" ]; then return; fi
			rmdir "$CAGE"
		fi
	done
	CAGE=
	skip "no control group can be made and frozen here"
}

all_frozen() { grep -qx -e "frozen 1" "$CAGE/cgroup.events" 2>/dev/null || grep -qx FROZEN "$CAGE/freezer.state" 2>/dev/null; }
freeze() {
	if [ -e "$CAGE/cgroup.freeze" ]; then echo 1 >"$CAGE/cgroup.freeze"; else echo FROZEN >"$CAGE/freezer.state"; fi
	eventually all_frozen
}
thaw() { if [ -e "$CAGE/cgroup.freeze" ]; then echo 0 >"$CAGE/cgroup.freeze"; else echo THAWED >"$CAGE/freezer.state"; fi; }

# elsewhere: makes a network namespace; WAY starts a command in it, and AWAY is URL from there.
elsewhere() {
	local net=198.18.$((RANDOM % 256)).$((RANDOM % 64 * 4))
	namespaces --net
	start place unshare --net sleep 1000
	is_apart() { [ "$(readlink "/proc/${PID[place]}/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
	eventually is_apart
	LINK=semlock$((RANDOM % 10000)) NEAR=${net%.*}.$((${net##*.} + 1)) FAR=${net%.*}.$((${net##*.} + 2))
	WAY=(nsenter "--net=/proc/${PID[place]}/ns/net")
	ip link add "$LINK" type veth peer name there netns "${PID[place]}" 2>/dev/null || skip "no network can be made here"
	ip address add "$NEAR/30" dev "$LINK"
	ip link set "$LINK" up
	there ip link set lo up
	there ip address add "$FAR/30" dev there
	there ip link set there up
	AWAY=${URL/127.0.0.1/$NEAR}
}

there() { "${WAY[@]}" "$@"; }

# Neither side is told: all packets go to a machine that is not there.
cut_off() {
	ip neighbour replace "$FAR" lladdr 02:00:00:00:00:01 dev "$LINK" nud permanent
	there ip neighbour replace "$NEAR" lladdr 02:00:00:00:00:01 dev there nud permanent
}
join() {
	ip neighbour del "$FAR" dev "$LINK"
	there ip neighbour del "$NEAR" dev there
}

# The same of a holder whose lease has been renewed.
cut_off_later() {
	"$PROBE" pause $((ttl * 500))
	cut_off
}

# The machine there is told that its link is down.
unplug() { ip link set "$LINK" down; }
plug() { ip link set "$LINK" up; }

# passed_by LEAVE RETURN: the first waiter, started by WAY, is there no more when the lock is let go; the next one is
# in within a lease. When the first is back it has its turn.
passed_by() {
	local url=${URL/nightly/nightly$ttl} released
	rm -f ./*.up ./*.down
	$2 2>/dev/null || true # a try that has failed may have left it so
	hold_lock --ttl="$ttl" "$url" || return
	fifos first && fifos next
	start first "${WAY[@]}" "$SEMLOCK" -v --ttl="$ttl" "${AWAY/nightly/nightly$ttl}" "$PROBE" hold first.up first.down
	waits_for first "waiting: held by" || return
	start next "$SEMLOCK" -v --ttl="$ttl" "$url" "$PROBE" hold next.up next.down
	waits_for next "waiting: " || return
	$1 || return
	let_go || return
	released=$(now)
	ready next || return
	[ $(($(now) - released)) -lt $(((ttl + SLOWNESS) * 1000000000)) ] || complain "after $(($(now) - released)) ns" || return
	$2 || return
	let_go next && ready first && let_go first
}

# replaced LEAVE RETURN: the same of a holder; its command is dead when the next one begins.
replaced() {
	local url=${URL/nightly/held$ttl} left=0
	rm -f ./*.up ./*.down
	$2 2>/dev/null || true # a try that has failed may have left it so
	fifos first && fifos next
	start first "${WAY[@]}" "$SEMLOCK" --ttl="$ttl" "${AWAY/nightly/held$ttl}" sh -c "trap '' TERM; exec '$PROBE' hold first.up first.down"
	ready first || return
	start next "$SEMLOCK" -v --ttl="$ttl" "$url" "$PROBE" hold next.up next.down
	waits_for next "waiting: " || return
	$1 || return
	ready next || return
	dead "${COMMAND[first]}" || left=1
	$2 && ended first 76 && let_go next && [ $left -eq 0 ]
}

@test "etcd: a waiter that is frozen is passed by within a lease" {
	on_etcd
	cage
	with_lease 3 passed_by freeze thaw
}

@test "PostgreSQL: a waiter that is frozen is passed by within a lease" {
	on_postgresql
	cage
	with_lease 3 passed_by freeze thaw
}

@test "etcd: a waiter that no packet reaches is passed by within a lease" {
	on_etcd
	elsewhere
	with_lease 3 passed_by cut_off join
}

@test "PostgreSQL: a waiter that no packet reaches is passed by within a lease" {
	on_postgresql
	elsewhere
	with_lease 3 passed_by cut_off join
}

@test "etcd: a holder cut off from the network ends its command in time, 76" {
	on_etcd
	elsewhere
	with_lease 4 replaced cut_off join
}

@test "PostgreSQL: a holder cut off from the network ends its command in time" {
	on_postgresql
	elsewhere
	with_lease 4 replaced cut_off join
}

@test "ssh: a holder cut off, or with its link down, ends its command in time" {
	on_ssh
	elsewhere
	ssh_known "$NEAR"
	rounds=${THOROUGH:+10}
	for ((round = 0; round < ${rounds:-1}; round++)); do
		with_lease 4 replaced cut_off_later join
		with_lease 4 replaced unplug plug
	done
}
