#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock ssh://HOST/PATH COMMAND, with an sshd of this test's own, as the user that runs the tests.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote
load ../lib/servers/others
load ../lib/servers/ssh

prepare() {
	prepare_remote
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-ssh" ] || skip "this build has no locks by ssh"
	unset SEMLOCK_LOOK_EVERY
}

tidy() { ssh_stop; }

@test "the engine for ssh keeps each rule" {
	ssh_server
	timeout 400 "$SOURCE/contrib/locksmith-test" --ttl=9 --away=ssh://127.0.0.1:1/l \
		"$LOCKSMITH_DIR/semlock-locksmith-ssh" "$URL" >rules || complain "$(grep -v '^ok' rules)"
}

@test "it is the lock of that host's own semlock: local jobs are excluded, and exclude" {
	ssh_server
	runs_a_command
	hold_lock "$URL"
	expect_status 1 "$SEMLOCK" -n nightly touch ran
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	let_go
	rm -f holder.*
	hold_lock nightly
	refused 1 "held by ${COMMAND[holder]} on " "$SEMLOCK" -v -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" -w 1 "$URL" touch ran
	expect_status 1 "$SEMLOCK" --who "$URL"
	grep -Eq "^held +${COMMAND[holder]} .* exclusive .*: probe hold" .out || complain "$out"
	waiter_gets_it "$URL"
	expect_status 0 "$SEMLOCK" --who "$URL"
	[ ! -e ran ]
}

@test "in the order of that host's queue, near and far waiters together" {
	ssh_server
	hold_lock nightly
	for one in 1 2 3 4; do
		lock=nightly
		[ $((one % 2)) -eq 0 ] || lock=$URL
		start "one$one" "$SEMLOCK" "$lock" sh -c "echo $one >>order"
		eventually sh -c "'$SEMLOCK' --who nightly | grep -q '^ *$one\\.'" || return
	done
	let_go
	for one in 1 2 3 4; do ended "one$one" 0; done
	[ "$(tr -d '\n' <order)" = 1234 ] || complain "$(cat order)"
}

@test "shared, with slots, and with --queue-max" {
	ssh_server
	hold_lock -s "$URL"
	expect_status 0 "$SEMLOCK" -s -n nightly true
	expect_status 0 "$SEMLOCK" -s -n "$URL" true
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	let_go
	rm -f holder.*
	hold_lock -j 2 "$URL"
	expect_status 0 "$SEMLOCK" -n -j 2 "$URL" sh -c 'echo $SEMLOCK_SLOT'
	expect_out 1
	let_go
	rm -f holder.*
	hold_lock "$URL"
	start waiter "$SEMLOCK" "$URL" true
	eventually sh -c "'$SEMLOCK' --who nightly | grep -q '^ *1\\.'"
	expect_status 1 "$SEMLOCK" --queue-max=1 "$URL" touch ran
	let_go
	ended waiter 0
	[ ! -e ran ]
}

# cut_off: the link is cut, and a job of the far end waits: it begins when the holder's command is dead.
cut_off() {
	rm -f holder.* "nightly$ttl"
	hold_lock --ttl="$ttl" "$URL$ttl" || return
	link_cut holder
	expect_status 0 "$SEMLOCK" -w 120 "nightly$ttl" sh -c "$(none_runs "${COMMAND[holder]}")" || return
	ended holder 76
}

@test "cut off: the command is dead before the far end lets go" {
	ssh_server
	with_lease 4 cut_off
}

@test "ssh killed, and the helper: the far end keeps the lock for a lease more, and no longer" {
	ssh_server
	for victim in ssh helper; do
		rm -f holder.*
		hold_lock --ttl=6 "$URL"
		began=$(now)
		if [ $victim = ssh ]; then kill -KILL "$(ssh_of holder)"; else kill -KILL "$(helper_of holder)"; fi
		expect_status 0 "$SEMLOCK" -w 120 nightly sh -c "$(none_runs "${COMMAND[holder]}")"
		took=$((($(now) - began) / 1000000))
		[ $took -ge 4000 ] || complain "$victim: after $took ms"
		ended holder 76
	done
}

@test "semlock killed: its command is ended, and the lock is free at once" {
	ssh_server
	URL=ssh://127.0.0.1:$PORT$DIR/nightly ends_with_semlock
}

@test "where there is no semlock flock(1) does it, and that is said; what it cannot do is 64" {
	mkdir only
	for tool in sh flock cat timeout sleep tr; do ln -s "$(command -v $tool)" only/$tool; done
	ssh_server "$DIR/only"
	if ssh -F none -i user -o UserKnownHostsFile="$DIR/known" -p "$PORT" 127.0.0.1 \
		'PATH=$PATH:/usr/local/bin:/usr/bin:/bin command -v semlock'; then skip "semlock is installed on this machine"; fi
	expect_status 7 "$SEMLOCK" "$URL" sh -c 'exit 7'
	[[ $err == *"there is no semlock on 127.0.0.1: flock(1) takes the lock, in no order"* ]] || complain "$err"
	hold_lock "$URL"
	expect_status 1 "$SEMLOCK" -n nightly touch ran
	let_go
	expect_status 64 "$SEMLOCK" -j 2 "$URL" touch ran
	[ ! -e ran ]
}

@test "an unknown host, a wrong key and a refused port say so; a password is refused" {
	ssh_server
	SEMLOCK_KNOWN_HOSTS=$DIR/none refused 77 "Host key verification failed" "$SEMLOCK" "$URL" touch ran
	ssh-keygen -q -t ed25519 -N '' -f other
	SEMLOCK_SSH_KEY=$DIR/other SEMLOCK_SSH='ssh -F none -o IdentitiesOnly=yes' refused 77 "Permission denied" "$SEMLOCK" "$URL" touch ran
	refused 69 "Connection refused" "$SEMLOCK" ssh://127.0.0.1:1/l touch ran
	refused 64 "a password" "$SEMLOCK" "ssh://me:secret@127.0.0.1/l" touch ran
	refused 64 "" "$SEMLOCK" "ssh://-oProxyCommand=touch%20ran/l" touch ran
	refused 66 "" "$SEMLOCK" "ssh://127.0.0.1:$PORT$DIR/none/l" touch ran
	expect_status 0 "$SEMLOCK" "ssh://127.0.0.1:$PORT$DIR/a%20b'\$(touch%20ran)\`touch%20ran\`" true
	[ ! -e ran ]
	[ -e "a b'\$(touch ran)\`touch ran\`" ]
}

@test "a host that is not there yet is waited for with -w" {
	ssh_server
	ssh_stop
	start waiter "$SEMLOCK" -v -w 60 "$URL" touch ran
	waits_for waiter "waiting: for the server"
	sshd_on
	ended waiter 0
	[ -e ran ]
}
