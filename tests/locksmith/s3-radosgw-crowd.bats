#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock s3://BUCKET/NAME COMMAND from many places at once, with a real S3 server: contrib/check s3.
# shellcheck disable=SC2030,SC2031 # each test has a server of its own
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/radosgw

@test "nobody starves: of eight, the last gets a third of the first's turns" {
	export SEMLOCK_LOOK_EVERY=0.5
	PATIENCE=300
	for one in 1 2 3 4 5 6 7 8; do
		start "one$one" sh -c 'until [ -e stop ]; do "$0" -w 60 "$1" sh -c "echo $2 >>entries"; done' "$SEMLOCK" "$URL" "$one"
	done
	eventually sh -c '[ "$(cat entries 2>/dev/null | wc -l)" -ge 300 ]'
	touch stop
	for one in 1 2 3 4 5 6 7 8; do ended "one$one" 0; done
	head -n 300 entries | sort | uniq -c | sort -n >shares
	[ "$(wc -l <shares)" -eq 8 ] && [ $((3 * $(awk 'NR == 1 { print $1 }' shares))) -ge "$(awk 'END { print $1 }' shares)" ] ||
		complain "$(cat shares)"
	cat shares >"${SHARES:-/dev/null}"
}

# With THOROUGH: how often each has been inside counts, too.
@test "eight contenders with faults: no overlap, rising tokens, none stuck" {
	how=--rounds=12
	[ -z "${THOROUGH-}" ] || how=--entries=300
	radosgw_stop
	TMPDIR=$DIR SEMLOCK_LOOK_EVERY=0.5 expect_status 0 "$SOURCE/tests/torture/remote" radosgw --contenders=8 $how --seed=3
	grep -q "^entered=[0-9]* overlaps=0 regressions=0 stuck=0 wrong=0 " .out || complain "$out"
	cat .out >"${FIGURES:-/dev/null}"
}
