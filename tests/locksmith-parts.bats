#!/usr/bin/env bats
# What the locksmith reads from servers and files, taken apart without any server.

@test "tokens, listings, URLs, netrc, base64, the etcd queue: good, bad and random text" {
	[ -n "$LOCKSMITH_PARTS" ] || skip "built without the network methods"
	run "$LOCKSMITH_PARTS"
	[ "$status" -eq 0 ] || { echo "$output" >&2; false; }
	[ "$(grep -c '^ok' <<<"$output")" -eq 10 ]
}
