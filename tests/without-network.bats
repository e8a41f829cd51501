#!/usr/bin/env bats
# A semlock that was built without locks on a server; only such a build runs this.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"

@test "a URL is refused with 69, and the sentence says what is missing" {
	for url in etcd://127.0.0.1:1/nightly ftp://127.0.0.1:1/nightly sftp://127.0.0.1:1/nightly; do
		refused 69 "$url: locks on a server are not in this semlock" "$SEMLOCK" "$url" touch ran
		refused 69 "$url: locks on a server are not in this semlock" "$SEMLOCK" --who "$url"
	done
	[ ! -e ran ]
}

@test "everything else works" {
	expect_status 7 "$SEMLOCK" l sh -c 'exit 7'
}
