#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock s3://BUCKET/NAME COMMAND with a real S3 server, Ceph's radosgw: contrib/check s3.
# shellcheck disable=SC2030,SC2031 # each test has a server of its own
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/radosgw

@test "the engine for S3 keeps each rule" {
	conforms "$LOCKSMITH_DIR/semlock-locksmith-s3" "$URL"
}

@test "runs, excludes, waits, and the tokens rise over a deletion" {
	runs_a_command
	holds_against_others
	waiter_gets_it "$URL"
	expect_status 0 "$SEMLOCK" "$URL" sh -c 'echo $SEMLOCK_TOKEN'
	last=$out
	s3 DELETE nightly
	eventually sh -c "[ \$(date +%s) -gt $last ]"
	expect_status 0 "$SEMLOCK" "$URL" sh -c 'echo $SEMLOCK_TOKEN'
	[ "$out" -gt "$last" ] || complain "token $out after $last"
	s3 GET nightly | grep -q ' etag=bare ' || complain "$(s3 GET nightly)"
}

@test "a bucket with versions: 69, and the command does not run" {
	printf '<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>' >on
	s3 PUT '?versioning=' -f --data-binary @on
	refused 69 "ignores If-None-Match, and so cannot lock" "$SEMLOCK" --ttl=3 "$URL" touch ran
	refused 69 "cannot lock" "$SEMLOCK" "$URL" touch ran
	[ ! -e ran ]
}

@test "sixteen ask with -n at once, twenty times: one of them gets it" {
	for round in $(seq 20); do sixteen_at_once "$URL" || complain "round $round"; done
}
