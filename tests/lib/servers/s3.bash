# SPDX-License-Identifier: MIT
# S3 servers on 127.0.0.1, for the tests.  Need DIR, a directory of their own.
#
# s3_server [ARG...]   the stand-in, s3.py; sets PORT, SERVER (its pid), URL (a lock's), and the login
# s3_fault NAME [TEXT] from now on; "s3_fault NAME -": no longer
# s3 METHOD KEY [ARG...]  a request for an object of the bucket, by curl(1)
# sixteen_at_once URL  ask for it with -n
# radosgw_server       a real one: a Ceph monitor, an OSD in memory and a radosgw; sets the same, and RADOSGW (pids)
# radosgw_start        starts the radosgw again after a kill; what it stores is in the OSD
# radosgw_stop
#
# shellcheck shell=bash disable=SC2034

# No login and no setting of the user's own.
s3_nothing_else() {
	local name
	for name in $(compgen -e | grep '^AWS_'); do unset "$name"; done
	export AWS_EC2_METADATA_DISABLED=true AWS_REGION=test-1
}

s3_login() {
	export AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY=sk/test+4711 AWS_ENDPOINT_URL_S3=$1
}

s3_server() {
	s3_nothing_else
	python_server "$DIR/ready" "$DIR/server.err" s3.py "$DIR" "$@"
	s3_login "http://127.0.0.1:$PORT"
	URL=s3://locks/nightly
}

s3_fault() {
	if [ "${2-}" = - ]; then rm -f "$DIR/faults/$1"; return; fi
	printf '%s\n' "${2-}" >"$DIR/faults/$1.new" && mv "$DIR/faults/$1.new" "$DIR/faults/$1"
}

# libcurl 7.88 sends no x-amz-content-sha256 by itself, and radosgw refuses a request without it.
s3() {
	curl -s --max-time 60 --aws-sigv4 "aws:amz:$AWS_REGION:s3" -u "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \
		-H "x-amz-content-sha256: UNSIGNED-PAYLOAD" -X "$1" "${@:3}" "$AWS_ENDPOINT_URL_S3/locks/$2"
}

# sixteen_at_once URL: as many ask for the lock with -n, one gets it, and holds it until the others have been told.
sixteen_at_once() {
	local one
	rm -f runs over status.*
	for one in $(seq 16); do
		start "one$one" sh -c '"$0" -n "$1" sh -c "echo run >>runs; until [ -e over ]; do sleep .1; done"; echo $? >"status.$2"' \
			"$SEMLOCK" "$1" "$one"
	done
	eventually sh -c '[ "$(cat status.* 2>/dev/null | wc -l)" -ge 15 ]' || return
	touch over
	eventually sh -c '[ "$(cat status.* | wc -l)" -eq 16 ]' || return
	if [ "$(cat status.* | sort | tr '\n' ' ')" != "0 $(yes 1 | head -n 15 | tr '\n' ' ')" ] || [ "$(wc -l <runs)" -ne 1 ]; then
		complain "$(wc -l <runs) runs; statuses $(cat status.* | tr '\n' ' ')" "$(cat one*.err)"
	fi
}

ceph_conf() {
	cat <<-END
		[global]
		fsid = $(cat /proc/sys/kernel/random/uuid)
		mon initial members = a
		mon host = v2:127.0.0.1:$1/0
		ms bind ipv4 = true
		ms bind port min = $3
		ms bind port max = $(($3 + 20))
		public addr = 127.0.0.1
		cluster addr = 127.0.0.1
		auth cluster required = none
		auth service required = none
		auth client required = none
		ms mon client mode = crc
		mon allow pool size one = true
		osd pool default size = 1
		osd pool default min size = 1
		osd pool default pg num = 1
		osd pool default pgp num = 1
		osd pool default pg autoscale mode = off
		osd crush chooseleaf type = 0
		osd objectstore = memstore
		memstore device bytes = 268435456
		osd max object name len = 256
		osd max object namespace len = 64
		run dir = $DIR/ceph/run
		log file = $DIR/ceph/\$name.log
		pid file = $DIR/ceph/\$name.pid
		admin socket = $DIR/ceph/run/\$cluster-\$name.\$pid.asok
		[mon.a]
		mon data = $DIR/ceph/mon
		paxos propose interval = 0.05
		mon data avail crit = 1
		mon data avail warn = 2
		[osd.0]
		osd data = $DIR/ceph/osd
		[client.rgw]
		rgw frontends = beast endpoint=127.0.0.1:$2
		rgw thread pool size = 64
		rgw enable usage log = false
		rgw enable lc threads = false
		rgw enable gc threads = false
		rgw run sync thread = false
		rgw dynamic resharding = false
		rgw override bucket index max shards = 1
		rgw data = $DIR/ceph
	END
}

ceph_daemon() {
	apart "$@" -f >>"$DIR/ceph/out" 2>&1 </dev/null &
	RADOSGW+=($!)
}

# The user is made before radosgw starts: both of them make the pools, and the second to come ends.
radosgw_server() {
	local monitor osd uuid try
	for try in radosgw ceph-osd ceph-mon monmaptool; do
		command -v $try >/dev/null || skip "no $try here"
	done
	mkdir "$DIR/ceph" "$DIR/ceph/mon" "$DIR/ceph/osd" "$DIR/ceph/run"
	free_ports 3
	monitor=${PORTS[0]} PORT=${PORTS[1]} osd=${PORTS[2]}
	export CEPH_CONF=$DIR/ceph/conf
	RADOSGW=()
	ceph_conf "$monitor" "$PORT" "$osd" >"$CEPH_CONF"
	{
		monmaptool --create --fsid "$(sed -n 's/^fsid = //p' "$CEPH_CONF")" --addv a "[v2:127.0.0.1:$monitor]" "$DIR/ceph/monmap" &&
		ceph-mon --mkfs -i a --monmap "$DIR/ceph/monmap"
	} >>"$DIR/ceph/out" 2>&1 || { cat "$DIR/ceph/out" >&2; return 1; }
	ceph_daemon ceph-mon -i a
	uuid=$(cat /proc/sys/kernel/random/uuid)
	{ timeout 60 ceph osd new "$uuid" && ceph-osd -i 0 --mkfs --osd-uuid "$uuid"; } >>"$DIR/ceph/out" 2>&1 ||
		{ cat "$DIR/ceph/out" >&2; return 1; }
	ceph_daemon ceph-osd -i 0
	timeout 60 radosgw-admin -n client.rgw user create --uid=t --display-name=t --access-key=AKTEST --secret-key=sk/test+4711 \
		>>"$DIR/ceph/out" 2>&1 || { cat "$DIR/ceph/out" >&2; return 1; }
	radosgw_start || { cat "$DIR/ceph/out" >&2; return 1; }
	s3_nothing_else
	s3_login "http://127.0.0.1:$PORT"
	for try in 1 2 3 4 5; do
		s3 PUT '' -f >/dev/null && s3 PUT first -f -d x >/dev/null && break
		[ "$try" -lt 5 ] || return 1
		read -r -t 1 <> <(:) || true
	done
	URL=s3://locks/nightly
}

radosgw_start() {
	ceph_daemon radosgw -n client.rgw
	SERVER=${RADOSGW[-1]}
	listening "$PORT"
}

radosgw_stop() {
	local pid
	for pid in "${RADOSGW[@]}"; do
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null || true
	done
	RADOSGW=()
}
