#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --note: why a lock is held, or waited for, as others are told it.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/demo

prepare() {
	demo_helpers
	URL=demo://$PWD/on-server
}

# notes WHICH: the notes of the holders, or waiters, in the output of --who --json
notes() {
	jq -c "[.[0].$1[].note]" .out
}

@test "--who shows the holder's note, as a table and JSON, for each method" {
	local method lock
	for method in flock ofd posix excl link mkdir symlink rename demo; do
		set -- -m $method $method.lock
		[ $method != rename ] || set -- --init "$@"
		[ $method != demo ] || set -- "$URL"
		lock=${!#}
		hold_as $method --note="the $method of the night" "$@"
		expect_status 1 "$SEMLOCK" --who "$lock"
		grep -qx "     note: the $method of the night" .out || complain "$method:" "$out"
		expect_status 1 "$SEMLOCK" --who --json "$lock"
		[ "$(notes holders)" = "[\"the $method of the night\"]" ] || complain "$method:" "$out"
		let_go $method
	done
	hold_as closed -o --note=close l
	expect_status 1 "$SEMLOCK" --who --json l
	[ "$(notes holders)" = '["close"]' ] || complain "$out"
	let_go closed
	hold_lock l
	expect_status 1 "$SEMLOCK" --who --json l
	[ "$(notes holders)" = "[null]" ] || complain "$out"
	expect_status 1 "$SEMLOCK" --who l
	if grep note .out; then complain "a note of nobody's"; fi
}

@test "notes of a waiter, of several holders and of a hold; without LOCK, too" {
	hold_as one -j 2 --note="the first" l
	hold_as two --note="the second" -j 2 l
	queue_as waiter --note="it waits" -j 2 l
	expect_status 1 "$SEMLOCK" --who --json l
	[ "$(notes holders)" = '["the first","the second"]' ] || complain "$out"
	[ "$(notes waiters)" = '["it waits"]' ] || complain "$out"
	expect_status 1 "$SEMLOCK" --who
	grep -qx "     note: it waits" .out || complain "$out"
	expect_status 0 "$SEMLOCK" --hold=$$ --detach --note="no deploys today" h
	id=${out#OK id=}
	expect_status 1 "$SEMLOCK" --who --json h
	[ "$(notes holders)" = '["no deploys today"]' ] || complain "$out"
	expect_status 0 "$SEMLOCK" --release="$id" h
}

@test "a refusal, a time-out and a wait's messages show the holder's note" {
	hold_lock --note="until Monday" l
	capture "$SEMLOCK" -n -v l true
	[[ $err =~ \ since\ [^\ ]+,\ [0-9]+\ s,\ \"until\ Monday\"\;\ semlock\ --who\ l\ says\ more$ ]] || complain "$err"
	capture "$SEMLOCK" -w .2 -v l true
	[[ $err =~ ,\ \"until\ Monday\"\;\ the\ time\ is\ up ]] || complain "$err"
	start waiter "$SEMLOCK" -v l true
	eventually grep -q 'waiting: held by .*, "until Monday"; 1st of 1; ' waiter.err
	kill -TERM "${PID[waiter]}"
	ended waiter 143
	capture "$SEMLOCK" --hold=$$ --detach -n -v l
	[[ $err == *', "until Monday"; '* ]] || complain "$err"
}

@test "the line of a wait shows it, and keeps the place on a narrow terminal" {
	hold_lock --note="a note that is longer than the line of any terminal has room for, as far as these tests know it" l
	TERM=xterm start waiter "$PROBE" pty "$SEMLOCK" l true
	eventually grep -q "held by .*; 1st of 1" waiter.out
	let_go
	ended waiter 0
}

@test "200 bytes at most are shown, without control characters or cut letters" {
	local long evil=$'\e]0;title\a\n\x7f\xc2\x9b31m\xff\xe2\x80\xae'
	long=$(printf 'ä%.0s' {1..150})
	hold_lock --note="$evil" l
	expect_status 1 "$SEMLOCK" --who l
	grep -qx '     note: ?\]0;title????31m??' .out || complain "$(cat -v .out)"
	capture "$SEMLOCK" -n -v l true
	[[ $err == *', "?]0;title????31m??"; '* ]] || complain "$(cat -v .err)"
	let_go
	hold_as long --note="$long" l
	expect_status 1 "$SEMLOCK" --who --json l
	note=$(jq -r '.[0].holders[0].note' .out)
	[ "$(printf %s "$note" | wc -c)" -le 200 ] && [ "$(printf %s "$note" | wc -c)" -ge 195 ] || complain "$note"
	printf %s "$note" | iconv -f UTF-8 -t UTF-8 >same
	[[ $note == ää*ä... ]] || complain "$note"
	hold_as server --note="$long \" and more" "$URL"
	expect_status 1 "$SEMLOCK" --who --json "$URL"
	[[ $(jq -r '.[0].holders[0].note' .out) == ää*ä... ]] || complain "$out"
}

@test "what is not semlock's note is none: a command's own words, or quotes" {
	mkfifo never
	start other "$SEMLOCK" l sh -c 'echo ready; read -r _ <>never' --note=mine
	eventually grep -q ready other.out
	expect_status 1 "$SEMLOCK" --who --json l
	[ "$(notes holders)" = '[null]' ] || complain "$out"
	mkdir -p odd
	ln -s "$PROBE" 'odd/"quoted" probe'
	fifos server
	start server env PATH="$PWD/odd:$PATH" "$SEMLOCK" "$URL" '"quoted" probe' hold server.up server.down
	ready server
	expect_status 1 "$SEMLOCK" --who --json "$URL"
	[ "$(notes holders)" = '[null]' ] || complain "$out"
	grep -q 'note="" "quoted" probe hold' on-server/owner || complain "$(cat on-server/owner)"
	let_go server
	hold_as again --note='say "why"' "$URL"
	expect_status 1 "$SEMLOCK" --who --json "$URL"
	[ "$(notes holders)" = "[\"say 'why'\"]" ] || complain "$out"
	grep -q "note=\"say 'why'\" [^ ]*probe hold" on-server/owner || complain "$(cat on-server/owner)"
}

@test "--log has it" {
	expect_status 0 "$SEMLOCK" --log=log --note="nightly run" l true
	[ "$(jq -r .note log)" = "nightly run" ] || complain "$(cat log)"
	expect_status 0 "$SEMLOCK" --log=log l true
	[ "$(tail -n 1 log | jq .note)" = null ] || complain "$(cat log)"
}

@test "where nobody could read it, it is refused" {
	refused 64 "--note" "$SEMLOCK" --note=why -F l true
	exec 8>l
	refused 64 "--note" "$SEMLOCK" --note=why 8
	refused 64 "--note" "$SEMLOCK" --note=why -u --fd 8 true
	exec 8>&-
}
