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
	ttl=9 conforms --away=ssh://127.0.0.1:1/l "$LOCKSMITH_DIR/semlock-locksmith-ssh" "$URL"
}

@test "it is the lock of the far host's own semlock: local jobs exclude it, too" {
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

# cut_off HOW: the link is cut, and a job of the far end waits: it begins when the holder's command is dead.
cut_off() {
	rm -f holder.*
	hold_lock --ttl=$((6 * PACE)) "$URL" || return
	case $1 in
	ssh-stopped) link_cut holder ;;
	link-stopped) kill -STOP "$(proxy_of holder)" ;; # ssh lives, and takes what it is told
	link-ended) kill -KILL "$(proxy_of holder)" ;;
	esac
	expect_status 0 "$SEMLOCK" -w 120 nightly sh -c "$(none_runs "${COMMAND[holder]}")" || return
	ended holder 76
}

@test "cut off: the command is dead before the far end lets go" {
	ssh_server
	ssh_by_proxy
	cuts=(ssh-stopped link-stopped link-ended)
	rounds=${THOROUGH:+20}
	for ((round = 0; round < ${rounds:-3}; round++)); do
		cut_off "${cuts[round % 3]}" || complain "round $round: ${cuts[round % 3]}"
	done
}

@test "ssh and helper killed: the far end keeps the lock for one lease more" {
	ssh_server
	for victim in ssh helper; do
		rm -f holder.*
		hold_lock --ttl=$((6 * PACE)) "$URL"
		began=$(now)
		if [ $victim = ssh ]; then kill -KILL "$(ssh_of holder)"; else kill -KILL "$(helper_of holder)"; fi
		expect_status 0 "$SEMLOCK" -w 120 nightly sh -c "$(none_runs "${COMMAND[holder]}")"
		took=$((($(now) - began) / 1000000))
		[ $took -ge $((4000 * PACE)) ] || complain "$victim: after $took ms"
		ended holder 76
	done
}

# far_end NAME: the processes of the far end's semlock that have NAME, the second one last
far_end() {
	local first
	first=$(pgrep -xf "semlock --hold --ttl=[0-9]+ .*-- $DIR/$1" | head -n 1)
	echo "$first" "$(pgrep -P "$first")"
}

@test "if one process of the far end is killed, the command keeps the lock" {
	ssh_server
	for victim in 1 2; do
		rm -f holder.*
		hold_lock --ttl=$((6 * PACE)) "$URL"
		read -r -a far <<<"$(far_end nightly)"
		[ ${#far[@]} -eq 2 ] || complain "${far[*]}"
		kill -KILL "${far[$((victim - 1))]}"
		expect_status 1 "$SEMLOCK" -n nightly touch ran
		expect_status 0 "$SEMLOCK" -w 120 nightly sh -c "$(none_runs "${COMMAND[holder]}")"
		ended holder 76
	done
	[ ! -e ran ]
}

@test "a key with a forced command: one lock, and nothing else" {
	ssh_server
	key=$(cat user.pub)
	forced() { echo "command=\"$1\",restrict $key" >user.pub; }
	forced "semlock --hold --ttl=60 $DIR/nightly"
	expect_status 7 "$SEMLOCK" "$URL/ignored" sh -c "'$SEMLOCK' -n nightly true && exit 0; exit 7"
	hold_lock nightly
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" -w 1 "$URL" touch ran
	start waiter "$SEMLOCK" "$URL" true
	eventually sh -c "'$SEMLOCK' --who nightly | grep -q '^ *1\\.'"
	let_go
	ended waiter 0
	# the far end has the lock by then, and keeps it for 60 seconds after an end without words
	refused 64 "the key has a forced command" "$SEMLOCK" -s "$URL" touch ran
	expect_status 0 "$SEMLOCK" -w 30 nightly true
	refused 64 "the key has a forced command" "$SEMLOCK" -j 2 "$URL" touch ran
	expect_status 0 "$SEMLOCK" -w 30 nightly true
	for _ in 1 2 3 4; do # semlock kills the helper, which may be slower
		refused 69 "the key has a forced command" "$SEMLOCK" --who "$URL"
		expect_status 0 "$SEMLOCK" -w 30 nightly true
	done
	# a slow host: it hears of the end four seconds later
	cat >late <<-'END'
		#!/usr/bin/python3
		import subprocess, sys, time
		ssh = subprocess.Popen(["ssh"] + sys.argv[1:], stdin=subprocess.PIPE)
		for line in sys.stdin.buffer:
		    time.sleep(4 if line == b"release\n" else 0)
		    ssh.stdin.write(line)
		    ssh.stdin.flush()
		ssh.stdin.close()
		sys.exit(ssh.wait())
	END
	chmod +x late
	SEMLOCK_SSH=$PWD/late refused 64 "the key has a forced command" "$SEMLOCK" -s "$URL" touch ran
	expect_status 0 "$SEMLOCK" -w 30 nightly true
	forced "semlock --hold $DIR/nightly"
	expect_status 69 "$SEMLOCK" "$URL" touch ran
	forced "semlock --hold --ttl=4 $DIR/nightly" # the lease is the shorter one
	rm -f holder.*
	hold_lock --ttl=60 "$URL"
	link_cut holder
	expect_status 0 "$SEMLOCK" -w 120 nightly sh -c "$(none_runs "${COMMAND[holder]}")"
	ended holder 76
	[ ! -e ran ]
}

@test "a semlock frozen before its command starts gives the lock back itself" {
	ssh_server
	mkfifo smith.in
	exec 5<>smith.in
	"$LOCKSMITH_DIR/semlock-locksmith-ssh" --ttl=$((12 * PACE)) -- "$URL" <smith.in >smith.out 2>smith.err 5>&- 3>&- 4>&- &
	smith=$!
	exec 6>smith.in 5>&-
	in_file smith.out "^OK"
	expect_status 1 "$SEMLOCK" -n nightly true
	in_file smith.out "^LOST semlock stood still"
	exec 6>&-
	expect_status 0 "$SEMLOCK" -w $((8 * PACE)) nightly true # without words after 12
	ending=0
	wait "$smith" || ending=$?
	[ "$ending" -eq 76 ] || complain "status $ending"
}

@test "semlock killed: its command is ended, and the lock is free at once" {
	ssh_server
	URL=ssh://127.0.0.1:$PORT$DIR/nightly ends_with_semlock
}

@test "without semlock there, flock(1) locks; what it cannot do is refused: 64" {
	mkdir only
	for tool in sh flock cat timeout sleep tr grep; do ln -s "$(command -v $tool)" only/$tool; done
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

@test "an unknown host, wrong key, refused port or password gives an error" {
	ssh_server
	SEMLOCK_KNOWN_HOSTS=$DIR/none refused 77 "Host key verification failed" "$SEMLOCK" "$URL" touch ran
	ssh-keygen -q -t ed25519 -N '' -f other
	SEMLOCK_SSH_KEY=$DIR/other SEMLOCK_SSH='ssh -F none -o IdentitiesOnly=yes' refused 77 "Permission denied" "$SEMLOCK" "$URL" touch ran
	refused 69 "Connection refused" "$SEMLOCK" ssh://127.0.0.1:1/l touch ran
	# The same, when ssh reads no more by the time the helper writes to it.
	printf '#!/bin/sh\nexec <&-\nsleep 1\necho "Connection refused" >&2\nexit 255\n' >early
	chmod +x early
	without_leak_check # under strace
	SEMLOCK_SSH=$PWD/early refused 69 "Connection refused" delayed -e trace=write \
		-e inject=write:delay_enter=300000 -- "$SEMLOCK" ssh://127.0.0.1:1/l touch ran
	SEMLOCK_SSH=no-such-ssh refused 69 "cannot run no-such-ssh: not found" "$SEMLOCK" "$URL" touch ran
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

@test "whatever a command on the far host is called, waiters wait on" {
	ssh_server
	fifos evil
	start evil "$SEMLOCK" nightly sh -c "'$PROBE' hold evil.up evil.down; :" semlock-ssh '\0777'
	ready evil
	start waiter "$SEMLOCK" -v -w 60 "$URL" touch ran
	waits_for waiter "waiting: held by"
	[ ! -e ran ]
	let_go evil
	ended waiter 0
	[ -e ran ]
}

@test "a waiter whose semlock on the far host is killed asks for its turn again" {
	ssh_server
	hold_lock nightly
	for wait in '' '-w 60'; do
		rm -f ran
		# shellcheck disable=SC2086 # two words
		start waiter "$SEMLOCK" -v $wait "$URL" touch ran
		eventually sh -c "'$SEMLOCK' --who nightly | grep -q '^ *1\\.'"
		kill -KILL "$(pgrep -xf "semlock --hold --ttl=[0-9]+ .*-- $DIR/nightly")"
		waits_for waiter "waiting: for the server: the semlock on 127.0.0.1 has been killed"
		eventually sh -c "'$SEMLOCK' --who nightly | grep -q '^ *1\\.'"
		kill -0 "${PID[waiter]}"
		[ -z "$wait" ] || break
		kill -TERM "${PID[waiter]}"
		ended waiter 143
	done
	let_go
	ended waiter 0
	[ -e ran ]
}

@test "an sshd that drops new connections (MaxStartups) is waited for" {
	ssh_server
	sshd_again "MaxStartups 1"
	is_full() { # by a connection that does not log in
		exec 6<>"/dev/tcp/127.0.0.1/$PORT" && read -r -t 10 -u 6 banner && [[ $banner == SSH-* ]]
	}
	eventually is_full
	# shellcheck disable=SC2016 # for the script
	program once '[ ! -e dropped ] || exec sleep 60
		: >dropped
		exec ssh "$@"'
	dropped_first() { # if that took less than the time of -n; the second connection is never answered
		rm -f dropped
		SEMLOCK_SSH=$PWD/once refused 69 "the sshd there drops new connections (MaxStartups): " "$SEMLOCK" -n "$URL" touch never &&
			[[ $err != *"no answer"* ]]
	}
	eventually dropped_first
	start waiter "$SEMLOCK" -v "$URL" touch ran 6>&-
	waits_for waiter "waiting: for the server: the sshd there drops new connections"
	exec 6>&-
	ended waiter 0
	[ -e ran ] && [ ! -e never ]
}

@test "each release's words for a dropped connection are known" {
	while read -r words; do
		program fake-ssh "echo '$words' >&2; exit 255"
		SEMLOCK_SSH=$PWD/fake-ssh refused 69 "(MaxStartups): $words" "$SEMLOCK" -n "ssh://host$PWD/l" touch never
	done <<-'END'
		kex_exchange_identification: Connection closed by remote host
		kex_exchange_identification: read: Connection reset by peer
		ssh_exchange_identification: read: Connection reset by peer
		Not allowed at this time
		Connection closed by 192.0.2.7 port 22
		Connection reset by 192.0.2.7 port 22
	END
	program fake-ssh "echo 'Connection to host closed by remote host.' >&2; exit 255"
	SEMLOCK_SSH=$PWD/fake-ssh refused 69 ": Connection to host closed" "$SEMLOCK" -n "ssh://host$PWD/l" touch never
}

@test "the ssh helper does not search PYTHONPATH for modules" {
	ssh_server
	mkdir modules
	for module in shlex socket re semlock_locksmith; do echo "open('$PWD/obeyed', 'w')" >modules/$module.py; done
	cp modules/*.py .
	PYTHONPATH=$PWD/modules PYTHONHOME=/none expect_status 0 "$SEMLOCK" "$URL" true
	[ ! -e obeyed ]
}

@test "the user's RemoteCommand, StdinNull and SessionType do no harm" {
	ssh_server
	printf 'Host *\n\tRemoteCommand touch wrong\n\tStdinNull yes\n\tSessionType none\n' >config
	export SEMLOCK_SSH="ssh -F $PWD/config"
	expect_status 7 "$SEMLOCK" "$URL" sh -c 'exit 7'
	hold_lock "$URL"
	expect_status 1 "$SEMLOCK" -n nightly true
	expect_status 1 "$SEMLOCK" --who "$URL"
	let_go
	# ssh 8.4 does not know two of them, and says so of the first
	printf '#!/bin/sh\necho run >>"%s"\nfor word; do\n' "$PWD/starts" >old-ssh
	printf 'case $word in StdinNull=*|SessionType=*) echo "command-line: line 0: Bad configuration option: ${word%%%%=*}" >&2; exit 255;; esac\n' >>old-ssh
	printf 'done\nexec ssh -F none "$@"\n' >>old-ssh
	chmod +x old-ssh
	export SEMLOCK_SSH=$PWD/old-ssh
	expect_status 7 "$SEMLOCK" "$URL" sh -c 'exit 7'
	[ "$(wc -l <starts)" -eq 3 ] || complain "$(wc -l <starts) starts"
	rm -f holder.*
	hold_lock nightly
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" --who "$URL"
	let_go
	[ ! -e wrong ] && [ ! -e ran ]
}

@test "what the far end's shell prints at its start is not believed" {
	ssh_server
	# as a .bashrc does
	noise='echo END 1; echo OK; echo OK ttl=60; echo WHO []; echo READY flock; echo LOST; printf Welcome'
	sshd_again "ForceCommand $noise; eval \"\$SSH_ORIGINAL_COMMAND\""
	expect_status 7 "$SEMLOCK" "$URL" sh -c 'exit 7'
	[[ $err != *flock* ]] || complain "$err"
	expect_status 0 "$SEMLOCK" --who "$URL"
	hold_lock nightly
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_status 1 "$SEMLOCK" --who "$URL"
	start waiter "$SEMLOCK" -v "$URL" touch later
	waits_for waiter "waiting: held by ${COMMAND[holder]}"
	let_go
	ended waiter 0
	noise="echo END 1; echo READY flock; printf Welcome"
	sshd_again "ForceCommand $noise; semlock --hold --ttl=60 $DIR/nightly"
	rm -f holder.*
	hold_lock "$URL"
	expect_status 1 "$SEMLOCK" -n nightly touch ran
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	let_go
	[ -e later ] && [ ! -e ran ]
}

# far_end_says: SEMLOCK_SSH is a shell script, standard input, that runs after the session's word
far_end_says() {
	{
		printf '#!/bin/sh\nread -r far\nword=${far#: semlock-ssh }\necho "BEGIN ${word%%%%;*}"\n'
		cat
	} >fake-ssh
	chmod +x fake-ssh
	export SEMLOCK_SSH=$PWD/fake-ssh
}

@test "--who: a waiter's command that says state=holds does not hold the lock" {
	far_end_says <<-'END'
		echo 'WHO [{"held": false, "holders": [], "waiters": [{"pid": 7, "command": ["state=holds"]}]}]'
	END
	expect_status 0 "$LOCKSMITH_DIR/semlock-locksmith-ssh" --who ssh://host/l
	grep -q '^WHO state=waits .*note=state=holds' .out || complain "$out"
}

@test "a far end that confirms the lock too late is not believed" {
	far_end_says <<-'END'
		echo READY semlock
		echo OK
		for _ in $(seq 70); do
			read -r line
			echo READY semlock
		done
		printf 'B 1\nB 2\nEND 66\n'
		exec cat >/dev/null
	END
	mkfifo smith.in
	exec 5<>smith.in
	expect_status 66 "$LOCKSMITH_DIR/semlock-locksmith-ssh" --ttl=60 ssh://host/l <smith.in
	[[ $err != *Traceback* ]] || complain "$err"
	grep -q "^ERR 66 " .out || complain "$out"
}
