#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/recipes: several machines.  The servers are started here, if this build has locks on a server.  If not,
# the recipes have to say so: silence would look as if there was nothing to do.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote
load ../lib/servers/etcd
load ../lib/recipes

tidy() {
	etcd_stop_all
	[ -z "${SERVER:-}" ] || kill -KILL "$SERVER"
}

with_servers() {
	DIR=$PWD
	unset NETRC SEMLOCK_CACERT SEMLOCK_USER SEMLOCK_PASSWORD
	have_locksmiths || return
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR
}

@test "cluster-job: one machine at a time, others silent, and a rising token" {
	if ! with_servers; then
		refused 69 etcd://etcd1,etcd2,etcd3/touch cluster-job touch ran
		[ ! -e ran ]
		return
	fi
	etcd_single
	export CLUSTER=$ETCD
	program bin/nightly '[ $# -eq 0 ] || { echo $SEMLOCK_TOKEN >token; exec "$@"; }; echo $SEMLOCK_TOKEN; exit 4'
	stand one cluster-job nightly
	expect_status 0 cluster-job nightly
	expect_silent
	let_go one
	expect_status 4 cluster-job nightly
	[ "$out" -gt "$(cat token)" ]
}

@test "crontab and cluster-once: one machine of three runs the job, once" {
	read -r line < <(grep -o 'CLUSTER=.* cluster-once clean-up' "$RECIPES/crontab")
	[ -n "$line" ]
	program bin/clean-up 'echo ran >>runs'
	: >runs
	if ! with_servers; then
		PERIOD=6s refused 69 etcd:// sh -c "$line"
		[ ! -s runs ]
		return
	fi
	etcd_single
	# On a busy machine a run may begin when a short period is over.
	for PERIOD in 6s 30s; do
		export PERIOD
		: >runs
		for machine in a b c; do
			start $machine sh -c "${line/etcd1,etcd2,etcd3/$ETCD}"
		done
		for machine in a b c; do
			ended $machine 0
		done
		[ "$(wc -l <runs)" -ne 1 ] || break
	done
	[ "$(wc -l <runs)" -eq 1 ]
}

@test "self-lock with a lock on etcd: one at a time" {
	if ! with_servers; then
		self_lock_with etcd://etcd1/job
		refused 69 etcd://etcd1/job ./mine touch ran
		[ ! -e ran ]
		return
	fi
	etcd_single
	self_lock_with "etcd://$ETCD/job"
	self_lock_excludes
}

@test "cluster-job: no server is no quiet skip" {
	with_servers || true
	free_ports 1
	port=${PORTS[0]}
	export CLUSTER=127.0.0.1:$port
	refused 69 "etcd://$CLUSTER/touch" cluster-job touch ran
	[ ! -e ran ]
}

@test "phone-book: one transfer at a time, and nobody sees half a file" {
	if ! with_servers; then
		echo 1 >phone.tsv
		refused 69 ftp://ftp.example.org phone-book put ftp://ftp.example.org
		refused 69 ftp://ftp.example.org phone-book get ftp://ftp.example.org
		[ "$(cat phone.tsv)" = 1 ]
		return
	fi
	apart /usr/bin/python3 "$SOURCE/tests/lib/servers/ftp.py" "$DIR" >ready 2>server.err </dev/null &
	SERVER=$!
	in_file ready READY
	read -r _ PORT <ready
	URL=ftp://127.0.0.1:$PORT
	printf 'machine 127.0.0.1 login lock password secret\n' >.netrc
	chmod 600 .netrc
	mkdir mok agent
	seq 1000 >mok/phone.tsv
	(cd mok && expect_status 0 phone-book put "$URL")
	(cd agent && expect_status 0 phone-book get "$URL")
	cmp mok/phone.tsv agent/phone.tsv
	hold_as reader "$URL/phone_lock"
	sed 's/-w 10m/-n/' "$RECIPES/phone-book" >impatient
	chmod +x impatient
	(cd mok && expect_status 1 ../impatient put "$URL")
	let_go reader
	hold_as writer "$URL/phone_lock"
	(cd agent && expect_status 1 ../impatient get "$URL")
	let_go writer
	# the connection breaks in the middle of an upload: the old file stays
	: >faults/miss-RNTO
	seq 2000 >mok/phone.tsv
	(cd mok && capture phone-book put "$URL" && [ "$status" -ne 0 ])
	(cd agent && expect_status 0 phone-book get "$URL" && [ "$(wc -l <phone.tsv)" -eq 1000 ])
	(cd mok && expect_status 0 phone-book put "$URL")
	(cd agent && expect_status 0 phone-book get "$URL" && [ "$(wc -l <phone.tsv)" -eq 2000 ])
	# a download that fails leaves no file behind
	mkdir -p nothing
	(cd agent && capture phone-book get "$URL/nothing" && [ "$status" -ne 0 ])
	[ "$(ls agent)" = phone.tsv ]
}
