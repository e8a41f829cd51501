#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -n: now or not at all.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "a free lock is taken" {
	expect_status 0 "$SEMLOCK" -n l echo ran
	expect_out ran
}

@test "a held lock is refused with 1, and nothing is said or run" {
	hold_lock l
	expect_status 1 "$SEMLOCK" -n l touch ran
	expect_silent
	[ ! -e ran ]
	expect_status 1 "$SEMLOCK" -s -n l touch ran
	[ ! -e ran ]
	let_go
	expect_status 0 "$SEMLOCK" -n l touch ran
	[ -e ran ]
}

@test "-E chooses the status, 0 included" {
	hold_lock l
	expect_status 75 "$SEMLOCK" -n -E 75 l touch ran
	expect_status 0 "$SEMLOCK" -n -E 0 l touch ran
	expect_status 99 "$SEMLOCK" --nonblock --conflict-exit-code=99 l touch ran
	[ ! -e ran ]
	let_go
	expect_status 3 "$SEMLOCK" -n -E 75 l sh -c 'exit 3'
}

@test "-v names the lock that is held" {
	hold_lock some.lock
	refused 1 some.lock "$SEMLOCK" -v -n some.lock true
	let_go
}

@test "-q says nothing, even with a terminal's worth of reasons" {
	hold_lock l
	expect_status 1 "$SEMLOCK" -q -n l true
	expect_silent
	let_go
}

@test "standard input is left for the next command" {
	hold_lock l
	printf 'one\ntwo\n' >in
	{
		expect_status 1 "$SEMLOCK" -n l cat
		read -r first
	} <in
	[ "$first" = one ]
	let_go
}

@test "a released lock is free for the next command: never its own shadow" {
	often 500
	expect_status 0 "$PROBE" storm "$often" 1 "$SEMLOCK" -n l true
	expect_out "0 x $often"
}

@test "a held lock is refused with 1 also when there has been a queue" {
	hold_lock l
	queue_as second l
	let_go
	ready second
	let_go second
	often 500
	expect_status 0 "$PROBE" storm "$often" 1 "$SEMLOCK" -n l true
	expect_out "0 x $often"
}

@test "a lock whose holders were killed is free" {
	hold_lock l
	kill -KILL "${PID[holder]}" "${COMMAND[holder]}"
	ended holder 137
	"$PROBE" gone "${COMMAND[holder]}"
	expect_status 0 "$SEMLOCK" -n l true
}

@test "-n wins over -w, whichever comes last" {
	hold_lock l
	expect_status 1 "$SEMLOCK" -n -w 600 l true
	expect_status 1 "$SEMLOCK" -w 600 -n l true
	let_go
}

@test "a link to a held lock file is the same lock" {
	hold_lock l
	ln l hard
	ln -s l soft
	expect_status 1 "$SEMLOCK" -n hard true
	mkdir directory
	ln -s "$PWD/l" directory/whole
	expect_status 1 "$SEMLOCK" -n soft true
	expect_status 1 "$SEMLOCK" -n directory/whole true
	expect_status 1 "$SEMLOCK" -n "$PWD/l" true
	let_go
}

@test "a URL names its method, and stands alone: 64" {
	for url in etcd://h/x ftp://h/x; do
		refused 64 "$url" "$SEMLOCK" -m flock $url touch ran
		refused 64 "$url" "$SEMLOCK" --fcntl $url touch ran
		refused 64 "$url" "$SEMLOCK" -f $url l touch ran
		refused 64 "$url" "$SEMLOCK" -f l $url touch ran
	done
	refused 64 "-m etcd" "$SEMLOCK" -m etcd l touch ran
	[ ! -e ran ] && [ ! -e l ]
}
