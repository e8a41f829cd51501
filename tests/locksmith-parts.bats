#!/usr/bin/env bats
# What the locksmith reads from servers and files, taken apart without any server.

@test "tokens, listings, URLs, netrc, base64, the etcd queue: good, bad and random text" {
	[ -n "$LOCKSMITH_PARTS" ] || skip "built without the network methods"
	run "$LOCKSMITH_PARTS"
	[ "$status" -eq 0 ] || { echo "$output" >&2; false; }
	[ "$(grep -c '^ok' <<<"$output")" -eq 10 ]
}

# says WHAT ARG...: status 64, and this one line in the protocol
says() {
	local what=$1
	shift
	run "$LOCKSMITH" "$@" </dev/null
	[ "$status" -eq 64 ] || { echo "$*: ended with $status"; false; }
	[ "$output" = "ERR 64 $what" ] || { echo "$*: $output"; false; }
}

@test "what makes no sense on the locksmith's command line is refused in the protocol" {
	for word in --mode=odd --slots=0 --slots=x --ttl=1 --ttl=x --interval=0 --wait=x --pid=0; do
		says "$word makes no sense" "$word" ftp://host/lock
	done
	says "unknown or incomplete option: --what" --what ftp://host/lock
	says "one URL is needed"
	says "one URL is needed" --mode=exclusive ftp://host/lock ftp://host/other
	says "more than 16 hosts in the URL" "etcd://$(seq -s , 17)/lock"
	run "$LOCKSMITH" --help
	[ "$status" -eq 0 ]
	[[ $output == usage:* ]]
}
