#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The model of the lock protocol on FTP proves something only if it can also fail.
load ../lib/locksmith

setup() { watch_over; }
teardown() { watched; }

@test "the protocol holds in every interleaving, and goes wrong where it should" {
	run python3 "$SOURCE/tests/models/ftp.py"
	[ "$status" -eq 0 ]
	[ "$(grep -c 'holds$' <<<"$output")" -eq 12 ]
	[ "$(grep -c 'VIOLATION' <<<"$output")" -eq 5 ]
	[[ $output == *"naive: "*"release-goes-astray 0, lease-ends 0, break-0 1, released-before 0, rmd 0"* ]]
	[[ $output == *"naive: a plain client, an intent "*"intent 0, die 0, intent 1, plain-mkd 2, remove-bare 1, A1 1, A2 1, A3 1"* ]]
	[[ $output == *"naive: a plain client, the sign is renamed in"*"plain-mkd 1, rename-in 0, A3 0"* ]]
	[[ $output == *"dead at made "*" bare"*"dead at critical "*" token"* ]]
}

@test "with the check after the sign taken out, two hold at once" {
	run python3 "$SOURCE/tests/models/ftp.py" --without-check
	[ "$status" -eq 1 ]
	[[ $output == *"VIOLATION: "*"A2 1"* ]]
}
