#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock etcd://SERVER/NAME COMMAND; the server is started here.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/group-kill
load ../lib/remote
load ../lib/servers/etcd

prepare() {
	prepare_remote
	etcd_single
	URL=etcd://$ETCD/nightly
}

tidy() { etcd_stop_all; }

lease() { ctl get nightly/ --prefix --keys-only | head -1 | sed 's,.*/0*,,'; }
count() { echo $(($(etcd_count nightly/) - $(etcd_count "nightly/#slots#/"))); }

@test "the command gets its input, its status and the lock's variables" {
	runs_a_command
	expect_status 0 "$SEMLOCK" -s "$URL" sh -c 'echo "$SEMLOCK_LOCK $SEMLOCK_METHOD $SEMLOCK_MODE"'
	expect_out "$URL etcd shared"
	expect_status 127 "$SEMLOCK" "$URL" ./no-such-command
	expect_status 137 "$SEMLOCK" "$URL" sh -c 'kill -KILL $$'
	[ "$(count)" -eq 0 ]
}

@test "when semlock has ended the lock is free: the next -n has it" {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		expect_status 0 "$SEMLOCK" -n "$URL" true
	done
}

@test "the fencing token rises from holder to holder" {
	last=0
	for _ in 1 2 3 4 5; do
		expect_status 0 "$SEMLOCK" "$URL" sh -c 'echo $SEMLOCK_TOKEN'
		[ "$out" -gt "$last" ] || complain "token $out after $last"
		last=$out
	done
}

@test "one at a time: -n and -w leave no key behind, and a waiter gets the lock" {
	holds_against_others
	[ "$(count)" -eq 1 ]
	waiter_gets_it "$URL"
	[ "$(count)" -eq 0 ]
}

# gives_up: on a busy machine -w may end late, and has to end soon once.  (An end that comes too early fails at once.)
gives_up() {
	before=$(now)
	expect_status 1 "$SEMLOCK" -w 1 "$URL" true || return
	took=$(($(now) - before))
	[ $took -lt 980000000 ] || [ $took -lt $((4000000000 * SLOWNESS)) ]
}

@test "-w is kept: not shorter, and not much longer" {
	hold_lock "$URL"
	eventually gives_up
	[ "$took" -ge 980000000 ] || complain "$took ns"
}

@test "other hosts see the notes of holders and waiters" {
	hold_lock --note="schema 42" "$URL"
	start waiter "$SEMLOCK" -v --note="schema 43" "$URL" true
	waits_for waiter "since [0-9:]*, [0-9]* s, \"schema 42\""
	refused 1 "\"schema 42\"" "$SEMLOCK" -n -v "$URL" true
	expect_status 1 "$SEMLOCK" --who --json "$URL"
	[ "$(jq -c '.[0] | [.holders[].note, .waiters[].note]' .out)" = '["schema 42","schema 43"]' ] || complain "$out"
	run_smith --who "$URL"
	[[ $output == *" note=\"schema 42\" $PROBE hold "* ]] || complain "$output"
	let_go
	ended waiter 0
}

@test "a background hold lasts over several calls, and ends with its owner" {
	load ../lib/holds
	holds_on_a_server "$URL"
}

@test "a place in the queue outlives the call, and keeps its turn" {
	load ../lib/holds
	keeps_a_place_on_a_server "$URL"
	[ "$(count)" -eq 0 ]
}

@test "a waiter that is told to end ends, and its key goes" {
	hold_lock "$URL"
	start waiter "$SEMLOCK" -v "$URL" touch ran
	waits_for waiter "waiting: held by"
	[ "$(count)" -eq 2 ]
	kill -TERM "${PID[waiter]}"
	ended waiter 143
	eventually has_key 1
	[ ! -e ran ]
}

@test "readers together, slots with numbers of their own" {
	hold_as one -s "$URL"
	hold_as two -s "$URL"
	expect_status 1 "$SEMLOCK" -n "$URL" true
	release one
	release two
	ended one 0
	ended two 0
	hold_as slot0 -j 2 "$URL"
	expect_status 0 "$SEMLOCK" -n -j 2 "$URL" sh -c 'echo "$SEMLOCK_SLOT $SEMLOCK_MODE"'
	expect_out "1 slot"
	hold_as slot1 -j 2 "$URL"
	expect_status 1 "$SEMLOCK" -n -j 2 "$URL" true
}

@test "etcdctl lock is excluded, and excludes" {
	hold_lock "$URL"
	apart env ETCDCTL_API=3 etcdctl --endpoints "http://$ETCD" lock nightly touch "$DIR/ran" \
		>/dev/null 2>&1 </dev/null &
	other=$!
	eventually has_key 2
	[ ! -e ran ]
	release holder
	ended holder 0
	wait "$other"
	[ -e ran ]
	mkfifo go came
	printf '#!/bin/sh\necho >%s/came\nread x <%s/go\n' "$DIR" "$DIR" >job
	chmod +x job
	apart env ETCDCTL_API=3 etcdctl --endpoints "http://$ETCD" lock nightly "$DIR/job" \
		>/dev/null 2>&1 </dev/null &
	other=$!
	read -r _ <came
	expect_status 1 "$SEMLOCK" -n "$URL" true
	echo >go
	wait "$other"
	expect_status 0 "$SEMLOCK" "$URL" true
}

@test "TERM to semlock reaches the command, which decides" {
	report_as holder "$URL"
	kill -TERM "${PID[holder]}"
	reports holder TERM
	release holder
	ended holder 0
}

@test "TERM to semlock ends the command, releases the key, then ends semlock" {
	mkfifo up
	expect_status 0 perl -e 'my $pid = fork // die;
		if ($pid == 0) { exec @ARGV or die }
		open my $up, "<", "up" or die; <$up>;
		kill TERM => $pid;
		waitpid $pid, 0;
		exit(($? & 127) != 15)' "$SEMLOCK" "$URL" sh -c 'echo runs >up; exec sleep 60'
	[ "$(count)" -eq 0 ]
}

@test "a revoked lease stops the command within a second, exit 76" {
	hold_lock --ttl=6000 "$URL" # the next renewal is later than the test may last
	ctl lease revoke "$(lease)" >/dev/null
	ended holder 76
	grep -q "the lock is lost: .*stopping the command" holder.err
	[ "$(wc -l <holder.err)" -eq 1 ]
}

@test "a command that does not heed TERM is killed, and so is what it started" {
	without_leak_check
	fifos holder
	start holder "$SEMLOCK" --ttl=60 "$URL" sh -c "trap '' TERM; '$PROBE' hold holder.up holder.down; exit 0"
	ready holder
	ctl lease revoke "$(lease)" >/dev/null
	ended holder 76
	gone "${COMMAND[holder]}"
}

@test "a lost lock's command ends even if nobody reads standard error" {
	mkfifo unread
	exec {unread}<>unread
	cat >heeds <<-'END'
		exec 2>/dev/null
		trap 'echo told >told; exit' TERM
		echo $$ >up
		while :; do sleep 0.05; done
	END
	# semlock kills a command that has not ended a second after TERM: on a busy machine that may be too soon.
	eventually told_to_end
	exec {unread}>&-
}

told_to_end() {
	rm -f up told
	head -c 65536 /dev/zero >unread
	start holder sh -c 'exec "$@" 2>unread' sh "$SEMLOCK" --ttl=60 "$URL" sh heeds
	in_file up . || return
	ctl lease revoke "$(lease)" >/dev/null
	gone "$(cat up)" || return
	head -c 65536 <&"$unread" >/dev/null
	ended holder 76 || return
	while read -r -t .1 _ <&"$unread"; do :; done # what semlock has written
	[ -e told ]
}

@test "processes that fork faster than semlock looks are gone when it ends" {
	without_leak_check
	cat >hopper <<-'END'
		import os, time
		end = time.time() + 60
		while time.time() < end:
		    if os.fork(): os._exit(0)
		    open("alive", "w").close()
	END
	hold_lock_of() { start holder "$SEMLOCK" --ttl=60 "$URL" sh -c 'trap "" TERM; /usr/bin/python3 hopper & exec sleep 1000'; }
	hold_lock_of
	eventually [ -e alive ]
	ctl lease revoke "$(lease)" >/dev/null
	ended holder 76
	rm -f alive
	"$PROBE" pause 300
	[ ! -e alive ] || complain "it goes on"
}

@test "if the helper is killed, the command ends before the lease does, with 76" {
	hold_lock --ttl=120 "$URL"
	before=$(now)
	kill -KILL "$(helper_of holder)"
	ended holder 76
	[ $(($(now) - before)) -lt 100000000000 ] # the lease ends after 120
	grep -q "its helper has ended" holder.err
}

@test "if the helper is stopped, the command ends before the next one enters" {
	hold_lock --ttl=$((5 * PACE)) "$URL"
	smith=$(helper_of holder)
	kill -STOP "$smith"
	fifos waiter
	start waiter "$SEMLOCK" "$URL" "$PROBE" hold waiter.up waiter.down
	ready waiter
	gone "${COMMAND[holder]}"
	ended holder 76
	kill -CONT "$smith"
	release waiter
	ended waiter 0
}

# next_beside_none OPTIONS COMMAND...: the lease ends while the helper is stopped; when the next holder begins, no
# process of the one before is alive.  (A process that ignores TERM is killed a tenth of the lease before its end,
# which is little on a busy machine.)
next_beside_none() {
	local options=$1 name=held$ttl next=next$ttl smith left=0
	shift
	# shellcheck disable=SC2086 # perhaps none
	stray_under "$name" "$SEMLOCK" $options --ttl="$ttl" "etcd://$ETCD/$name" "$@" || return
	smith=$(pgrep -f "semlock-locksmith.*$ETCD/$name\$") && kill -STOP "$smith" || return
	fifos "$next"
	start "$next" "$SEMLOCK" "etcd://$ETCD/$name" "$PROBE" hold "$next.up" "$next.down"
	ready "$next" || return
	if ! dead "$(cat "$name.stray")" || ! dead "${COMMAND[$name]}"; then left=1; fi
	kill -CONT "$smith"
	ended "$name" 76 && let_go "$next" && [ $left -eq 0 ]
}

@test "a process that left its session and closed all is gone before the next" {
	with_lease 5 next_beside_none ""
}

@test "with -o, all that the command has started is gone before the next holder" {
	with_lease 5 next_beside_none -o
}

@test "under sudo, all that the command has started is gone before the next" {
	[ "$(id -u)" -eq 0 ] || skip "needs root: to end what sudo has started"
	command -v sudo >/dev/null || skip "no sudo here"
	with_lease 5 next_beside_none "" sudo -n
}

@test "a revoked lease admits the next at once; the command and its rest end" {
	without_leak_check
	local lease
	stray_under holder "$SEMLOCK" --ttl=60 "$URL"
	lease=$(lease)
	fifos next
	start next "$SEMLOCK" -v "$URL" "$PROBE" hold next.up next.down
	waits_for next "waiting: held by"
	ctl lease revoke "$lease" >/dev/null
	ready next
	ended holder 76
	dead "$(cat holder.stray)"
	dead "${COMMAND[holder]}"
	let_go next
}

@test "a lost lock with -o ends what the command started, and nothing else" {
	without_leak_check
	fifos holder
	start holder sh -c 'sleep 1000 & echo $! >elder; exec "$@"' sh "$SEMLOCK" -o --ttl=60 "$URL" \
		sh -c "trap '' TERM; /usr/bin/python3 '$SOURCE/tests/lib/stray.py' stray; '$PROBE' hold holder.up holder.down"
	ready holder
	ctl lease revoke "$(lease)" >/dev/null
	ended holder 76
	dead "${COMMAND[holder]}"
	dead "$(cat stray)"
	kill -0 "$(cat elder)"
}

@test "if the outer semlock is stopped, the inner one ends the command's rest" {
	without_leak_check
	stray_under holder "$SEMLOCK" --ttl=60 "$URL"
	kill -STOP "${PID[holder]}"
	ctl lease revoke "$(lease)" >/dev/null
	gone "$(cat holder.stray)"
	kill -CONT "${PID[holder]}"
	ended holder 76
}

@test "another user's process cannot be stopped: it is named" {
	root_only "makes a set-user-ID program"
	install -m 4755 "$(command -v setpriv)" raise
	chmod 777 .
	fifos holder
	start holder env HOME=/ setpriv --reuid=65534 --regid=65534 --clear-groups "$SEMLOCK" --ttl=60 "$URL" \
		./raise --reuid=0 "$PROBE" hold holder.up holder.down
	ready holder
	ctl lease revoke "$(lease)" >/dev/null
	waits_for holder "process ${COMMAND[holder]} belongs to another user and cannot be stopped"
	release holder
	ended holder 76
	[ "$(grep -c "cannot be stopped" holder.err)" -eq 1 ]
}

declare -gA smith

@test "frozen past the lease, it ends with 76, whichever process resumes first" {
	for first in command semlock helper; do
		start $first "$SEMLOCK" --ttl=$((8 * PACE)) "etcd://$ETCD/$first" sh -c "echo \$\$ >$first.pid; kill -STOP \$\$; exit 0"
		in_file $first.pid .
		smith[$first]=$(pgrep -f "semlock-locksmith.*$ETCD/$first\$")
		kill -STOP "${smith[$first]}" "${PID[$first]}" "$(inner $first)" "$(cat $first.pid)"
	done
	for first in command semlock helper; do
		expect_status 0 "$SEMLOCK" -w 60 "etcd://$ETCD/$first" true
	done
	kill -CONT "$(cat command.pid)"
	gone "$(cat command.pid)"
	kill -CONT "${PID[command]}" "$(inner command)"
	ended command 76
	kill -CONT "${PID[semlock]}" "$(inner semlock)" "$(cat semlock.pid)"
	ended semlock 76
	kill -CONT "${smith[helper]}" "${PID[helper]}" "$(inner helper)" "$(cat helper.pid)"
	ended helper 76
	kill -CONT "${smith[command]}" "${smith[semlock]}"
	! grep "could not be told" ./*.err || complain "that is not so"
}

@test "semlock -o killed: all that the command started ends, the lock is freed" {
	stray_under holder "$SEMLOCK" -o --ttl=60 "$URL"
	kill -KILL "${PID[holder]}"
	ended holder 137
	expect_status 0 "$SEMLOCK" -w 30 "$URL" true
	dead "$(cat holder.stray)"
	dead "${COMMAND[holder]}"
}

@test "either semlock killed: all that the command started ends before the next" {
	ends_with_semlock
}

@test "both semlocks killed: what the command started keeps the lock until gone" {
	without_leak_check
	both_killed
}

@test "a waiter stopped by Ctrl-Z delays others by one lease and keeps its turn" {
	with_lease 2 stopped_waiter 1
}

@test "what the command leaves behind keeps the lock, with -o it does not" {
	fifos one
	exec {down}<>one.down # what is written for the probe stays in the FIFO
	expect_status 0 "$SEMLOCK" "$URL" sh -c "'$PROBE' hold one.up one.down </dev/null >/dev/null 2>&1 &"
	expect_status 1 "$SEMLOCK" -n "$URL" true
	printf . >&"$down"
	expect_status 0 "$SEMLOCK" -w 60 "$URL" true
	fifos two
	expect_status 0 "$SEMLOCK" -o "$URL" sh -c "'$PROBE' hold two.up two.down </dev/null >/dev/null 2>&1 &"
	expect_status 0 "$SEMLOCK" -n "$URL" true
}

@test "the password is in no command line; a wrong or missing one gives 77" {
	ctl user add root:pw >/dev/null
	ctl user grant-role root root >/dev/null
	ctl auth enable >/dev/null
	secret=Sesame$RANDOM$RANDOM # unlike the secret of any other run of these tests
	login="the server wants a login: set ETCDCTL_USER=USER:PASSWORD, or SEMLOCK_USER and SEMLOCK_PASSWORD"
	refused 77 "$login" "$SEMLOCK" -n "$URL" true
	refused 77 "$login" "$SEMLOCK" --who "$URL"
	ETCDCTL_USER=root:pw expect_status 0 "$SEMLOCK" -n "$URL" true
	export SEMLOCK_PASSWORD=a-wrong-one
	refused 77 "$ETCD" "$SEMLOCK" -n "etcd://root@$ETCD/nightly" true
	refused 64 "password" "$SEMLOCK" -n "etcd://root:pw@$ETCD/nightly" true
	ctl --user root:pw user passwd root --interactive=false <<<"$secret" >/dev/null
	export SEMLOCK_PASSWORD=$secret
	hold_lock "etcd://root@$ETCD/nightly"
	in_no_command_line "$secret"
	release holder
	ended holder 0
}

@test "--who names holders and waiters, as a table and as JSON" {
	who_names_both
}

# as_seen LINE: what the server itself tells of a holder; semlock here knows more, from /proc.
as_seen() { "$LOCKSMITH_DIR/semlock-locksmith-etcd" --who "$URL" </dev/null | grep -Eqx "$1"; }

@test "--who on another host shows command, PID, slot and start time" {
	local began
	began=$(date +%s)
	hold_as first -j 3 --ttl=$((3 * PACE)) "$URL"
	hold_as second -j 3 --ttl=$((3 * PACE)) "$URL"
	eventually as_seen "WHO state=holds mode=slots slots=3 slot=0 pid=${COMMAND[first]} host=[^ ]+ since=[0-9]+ note=$PROBE hold first.up first.down"
	eventually as_seen "WHO state=holds mode=slots slots=3 slot=1 pid=${COMMAND[second]} host=[^ ]+ since=[0-9]+ note=$PROBE hold second.up second.down"
	expect_status 1 "$SEMLOCK" --who --json "$URL"
	/usr/bin/python3 - .out "$began" "$PROBE" "${COMMAND[first]}" "${COMMAND[second]}" <<-'END'
		import calendar, json, sys, time
		_, path, began, probe, *pids = sys.argv
		holders = json.load(open(path))[0]["holders"]
		now = calendar.timegm(time.gmtime())
		assert [h["slot"] for h in holders] == [0, 1] and [h["pid"] for h in holders] == [int(pid) for pid in pids], holders
		assert [h["command"] for h in holders] == [[probe, "hold", n + ".up", n + ".down"] for n in ("first", "second")], holders
		times = [calendar.timegm(time.strptime(h["since"], "%Y-%m-%dT%H:%M:%SZ")) for h in holders]
		assert int(began) <= times[0] <= times[1] <= now, holders
	END
	let_go first
	let_go second
}

# told LINE...: a helper that says these lines, and nothing else
told() {
	mkdir helpers
	printf '%s\n' '#!/bin/sh' 'cat <<"END"' "LOCKSMITH 2 shared slots order token queue-max" "$@" END >helpers/semlock-locksmith-etcd
	chmod +x helpers/semlock-locksmith-etcd
	SEMLOCK_LOCKSMITH_DIR=$PWD/helpers
}

@test "--who prints a server's text without control codes, and whole numbers" {
	told "WHO state=holds mode=exclusive pid=4242 since=1 host=evil"$'\xc2\x9b''31m'$'\xe2\x80\xae'" note=job"$'\xc2\x9b' \
		"WHO state=holds mode=shared pid=99999999999 since=9223372036854775807 slot=4294967297 host=" \
		"WHO state=holds mode=exclusive pid=5 host=vm" \
		"WHO state=waits mode=shared pid=-7 host=other"
	expect_status 1 "$SEMLOCK" --who "$URL"
	grep -Eq '^held +4242 .* on evil\?31m\?: job\?$' .out || complain "$out"
	grep -Eq '^held +\? .* shared +- +on \?' .out || complain "$out"
	grep -Eq '^held +5 .* on vm$' .out || complain "$out"
	[ "$(LC_ALL=C tr -d '\0-\177' <.out | wc -c)" -eq 0 ]
	expect_status 1 "$SEMLOCK" --who --json "$URL"
	/usr/bin/python3 - .out <<-'END'
		import json, sys
		lock = json.load(open(sys.argv[1]))[0]
		one, two, _ = lock["holders"]
		assert one["pid"] == 4242 and one["host"] == "evil?31m?" and one["command"] == ["job\u009b"]
		assert two["pid"] is None and two["slot"] is None and two["since"] is None
		assert lock["waiters"][0]["pid"] is None
	END
	[ "$(LC_ALL=C tr -d '\0-\177' <.out | wc -c)" -eq 0 ]
}

@test "--who of several: on the server and here, slots and readers" {
	hold_as slot -j 2 "$URL"
	hold_as reader -s "etcd://$ETCD/readers"
	expect_status 1 "$SEMLOCK" --who here "$URL" "etcd://$ETCD/readers" "etcd://$ETCD/nobody"
	grep -qx 'here: free (no such file)' .out
	grep -Eq "^held +${COMMAND[slot]} .* slot " .out || complain "$out"
	grep -Eq "^held +${COMMAND[reader]} .* shared " .out || complain "$out"
	grep -qx "etcd://$ETCD/nobody: free" .out
	[ ! -e here ]
	let_go slot
	let_go reader
	expect_status 0 "$SEMLOCK" --who here "$URL" "etcd://$ETCD/readers"
}

@test "under its own command the lock is refused with 64; -n and -w are busy" {
	for way in "" "-j 2" --ttl=5; do
		mode=
		[ "$way" != "-j 2" ] || mode="-j 3"
		# shellcheck disable=SC2086
		refused 64 "held by the semlock above this command" "$SEMLOCK" $way "$URL" "$SEMLOCK" $mode "$URL" touch ran
		for with in -n -w60; do
			# shellcheck disable=SC2086
			expect_status 1 "$SEMLOCK" $way "$URL" "$SEMLOCK" $with "$URL" touch ran
		done
	done
	refused 64 "held by the semlock above this command" "$SEMLOCK" "$URL" "$SEMLOCK" --hold "$URL" < <(exec sleep 60)
	refused 64 "held by the semlock above this command" "$SEMLOCK" "$URL" sh -c 'sh -c "\"$0\" $1 touch\ ran"; exit $?' "$SEMLOCK" "$URL"
	refused 64 "if another process queued before this one" "$SEMLOCK" -s "$URL" "$SEMLOCK" -s "$URL" touch ran
	[ ! -e ran ]
	[ "$(count)" -eq 0 ]
}

@test "--nested runs the command under the outer semlock's lock, if it has one" {
	expect_status 5 "$SEMLOCK" "$URL" "$SEMLOCK" --nested "$URL" sh -c 'exit 5'
	expect_status 0 "$SEMLOCK" -s "$URL" "$SEMLOCK" -s --nested "$URL" sh -c 'echo "$SEMLOCK_MODE $SEMLOCK_TOKEN"'
	[[ "$out" == "shared "* ]]
	for slots in 1 2; do
		expect_status 0 "$SEMLOCK" -j$slots "$URL" "$SEMLOCK" -j$slots --nested "$URL" true
	done
	for mode in "-s -x" "-s -j2" "-j2 -x" "-j2 -s"; do
		# shellcheck disable=SC2086 # perhaps none
		refused 64 "for more than that" "$SEMLOCK" ${mode% *} "$URL" "$SEMLOCK" --nested ${mode#* } "$URL" touch ran
	done
	[ ! -e ran ]
	hold_as holder --nested "$URL"
	expect_status 1 "$SEMLOCK" -n --nested "$URL" true
	let_go
	[ "$(count)" -eq 0 ]
}

@test "another lock under a lock is another lock" {
	expect_status 0 "$SEMLOCK" "$URL" "$SEMLOCK" "$URL-2" "$SEMLOCK" "$URL/3" true
	refused 64 "held by the semlock above this command" "$SEMLOCK" "$URL" "$SEMLOCK" "$URL-2" "$SEMLOCK" l "$SEMLOCK" "$URL" true
	refused 64 "held by the semlock above this command" "$SEMLOCK" "$URL" "$SEMLOCK" "$URL-2" "$SEMLOCK" "$URL-2" true
}

# in_queue N: the queue has N keys, the holder's among them.
in_queue() { [ "$(count)" -eq "$1" ]; }

@test "--queue-max: when enough wait, the next is refused; else it waits" {
	local way
	for way in "" -s -j1; do
		hold_lock ${way/-s/-x} "$URL"
		fifos waiter
		fifos third
		start waiter "$SEMLOCK" --queue-max=1 $way "$URL" "$PROBE" hold waiter.up waiter.down
		eventually in_queue 2
		expect_status 9 "$SEMLOCK" --queue-max=1 -E 9 $way "$URL" touch ran
		expect_silent
		expect_status 1 "$SEMLOCK" --queue-max=1 -w 60 --status-fd=1 $way "$URL" touch ran
		expect_out busy
		expect_status 1 "$SEMLOCK" --queue-max=0 $way "$URL" touch ran
		start third "$SEMLOCK" --queue-max=2 $way "$URL" "$PROBE" hold third.up third.down
		eventually in_queue 3
		let_go
		ready waiter
		let_go waiter
		ready third
		let_go third
		rm ./*.up ./*.down
	done
	[ ! -e ran ]
	expect_status 0 "$SEMLOCK" --queue-max=1 "$URL" true
}

@test "--queue-max: of 20 that start at once 3 wait, and 17 are refused" {
	local pid status refused=0 all=()
	starts_many
	hold_lock "$URL"
	for _ in {1..20}; do
		"$SEMLOCK" --queue-max=3 -E 75 "$URL" sh -c 'echo ran >>runs' 3>&- &
		all+=($!)
	done
	# The refused processes have ended, and the queue stays as it is.
	eventually leaves 3 "${all[@]}"
	let_go
	for pid in "${all[@]}"; do
		status=0
		wait "$pid" || status=$?
		[ $status -ne 75 ] || refused=$((refused + 1))
	done
	[ "$(wc -l <runs)" -eq 3 ] || complain "$(wc -l <runs) ran"
	[ $refused -eq 17 ] || complain "$refused were refused"
}

# leaves N PID...: N of the processes are left.
leaves() {
	local most=$1 pid left=0
	shift
	for pid; do ! kill -0 "$pid" 2>/dev/null || left=$((left + 1)); done
	[ $left -eq "$most" ]
}

@test "--queue-max counts etcdctl's waiters, and refuses what etcd cannot do" {
	local other
	hold_lock "$URL"
	ETCDCTL_API=3 etcdctl --endpoints "http://$ETCD" lock nightly true >/dev/null 2>&1 3>&- </dev/null &
	other=$!
	eventually in_queue 2
	expect_status 1 "$SEMLOCK" --queue-max=1 "$URL" touch ran
	let_go
	wait $other
	told "OK lease=15000000000 deadline=9223372036854775807"
	sed -i 's/ queue-max//' helpers/semlock-locksmith-etcd
	refused 64 "--queue-max: not supported by etcd://" "$SEMLOCK" --queue-max=1 "$URL" touch ran
	[ ! -e ran ]
}

@test "what a server has nothing to do with is refused" {
	for option in -F --rm --mode=600 --toggle --replace --on-lost=warn --fcntl \
		--start=1 --init --stale=5 "-f other" "-m flock"; do
		# shellcheck disable=SC2086 # an option and its argument
		refused 64 "" "$SEMLOCK" $option "$URL" touch ran
	done
	refused 64 "--ttl" "$SEMLOCK" --ttl=5 ./file touch ran
	[ ! -e ran ]
}

@test "if the lease ends before the command starts, it never starts: 76" {
	# As if semlock was stopped, or the machine suspended, after the helper's last line.
	fake etcd <<-'END'
		#!/bin/bash
		read -r up _ </proc/uptime
		echo LOCKSMITH 2
		printf 'OK lease=10000000000 deadline=%s\n' $((${up/./}0000000 - 1000000000))
		cat >/dev/null
	END
	refused 76 "lost before the command was started" "$SEMLOCK" "$URL" touch ran
	[ ! -e ran ]
}

@test "no server, no helper: 69, in one line" {
	refused 69 "127.0.0.1" "$SEMLOCK" -n etcd://127.0.0.1:1/nightly true
	SEMLOCK_LOCKSMITH_DIR=$PWD/nothing refused 69 "cannot start" "$SEMLOCK" "$URL" true
}

@test "semlock itself is linked with the C library alone" {
	ldd "$SEMLOCK" >libraries || skip "a static semlock"
	if grep -Ev 'linux-vdso|libc\.so|ld-linux|lib(asan|ubsan|tsan|m|gcc_s|stdc|pthread|rt)' libraries; then
		complain "more than libc"
	fi
}

@test "--who without LOCK: the holder and the waiter on this machine" {
	hold_lock "$URL"
	start waiter "$SEMLOCK" "$URL" true
	eventually has_key 2
	expect_status 1 "$SEMLOCK" --who
	grep -A3 "^$URL: held, 1 waiting" .out >lines
	grep -q "^held  *${COMMAND[holder]} " lines
	grep -q "^ *1\. *$(inner waiter) " lines
	let_go
	ended waiter 0
	start one "$SEMLOCK" --min-hold=1h "$URL" true
	eventually has_key 1
	eventually held_here
	kill -TERM "${PID[one]}"
	ended one 0
}

@test "--who without LOCK lists every kind of lock, each with its waiter" {
	held_by_four
	hold_as server "$URL"
	wait_for_four
	start waits-server "$SEMLOCK" "$URL" true 9>&-
	eventually has_key 2
	expect_status 1 "$SEMLOCK" --who
	shows_four 1
	shows "$URL" "${COMMAND[server]}" 1 "$(inner waits-server)"
	exec 9>&-
}

has_key() { [ "$(count)" -eq "$1" ]; }
held_here() { "$SEMLOCK" --who | grep -A2 "^$URL: held, 0 waiting" | grep -q "^held  *$(inner one) "; }

# On a busy machine a contender that comes after the first one's time runs as well, but not before that time is up.
one_of_three() {
	local one busy=0 last=-1000000 at
	: >runs
	for one in a b c; do
		start $one "$SEMLOCK" -n --ttl="$ttl" --min-hold=$((ttl + 1)) "$URL" sh -c 'cut -d" " -f1 /proc/uptime >>runs'
	done
	for one in a b c; do
		wait "${PID[$one]}" || { [ $? -eq 1 ] && busy=$((busy + 1)); }
	done
	while read -r at; do
		[ $((${at/./} - last)) -ge $((ttl * 50)) ] || echo "$last $at" >>early # the command notes its time after a moment
		last=${at/./}
	done <runs
	if [ $busy -ne 2 ] || [ "$(wc -l <runs)" -ne 1 ]; then complain "$(wc -l <runs) runs"; fi
}

@test "--min-hold: of three at once one runs, and no other before its time" {
	with_lease 3 one_of_three
	[ ! -e early ]
	[ "$(count)" -eq 0 ]
	start one "$SEMLOCK" --min-hold=1h "$URL" sh -c 'echo $$ >command; exit 4'
	eventually [ -s command ]
	"$PROBE" gone "$(cat command)"
	expect_status 1 "$SEMLOCK" -n "$URL" true
	kill -TERM "${PID[one]}"
	ended one 4
	expect_status 0 "$SEMLOCK" -n "$URL" true
}

@test "--min-hold: hosts whose clocks differ run the job once" {
	clocks_differ
}

@test "--run-timeout and --status-fd go with a server's lock" {
	expect_status 124 "$SEMLOCK" --run-timeout=.2 "$URL" sleep 60
	"$SEMLOCK" --status-fd=9 "$URL" sh -c 'exit 3' 9>events || true
	[ "$(untimed <events | xargs)" = "acquired exit 3" ]
}

@test "--hold holds it, and is stopped when it is lost" {
	mkfifo in up
	start holder sh -c 'exec "$1" --hold "$2" <in >up' - "$SEMLOCK" "$URL"
	exec {in}>in {up}<up
	read -r -t "$PATIENCE" line <&"$up"
	[[ "$line" =~ ^OK\ token=([0-9]+)$ ]] || complain "$line"
	[ "${BASH_REMATCH[1]}" = "$(ctl get nightly/ --prefix -w json | jq '.kvs[0].mod_revision')" ]
	expect_status 1 "$SEMLOCK" -n "$URL" true
	ctl lease revoke "$(lease)" >/dev/null
	ended holder 76
	exec {in}>&- {up}<&-
}

@test "an etcd that is not there yet is waited for like a lock" {
	kill -KILL "${ETCD_PID[s1]}"
	wait "${ETCD_PID[s1]}" || true
	start waiter "$SEMLOCK" -v -w 60 "$URL" touch ran
	waits_for waiter "waiting: for the server: "
	if grep callback waiter.err; then complain "why it does not answer is not said"; fi
	[ ! -e ran ]
	etcd_start s1
	ended waiter 0
	[ -e ran ]
}

# no_answer WORDS: -n and a short -w end with 69 and WORDS, in less than three seconds.
no_answer() {
	local wait
	for wait in -n "-w .1"; do
		# shellcheck disable=SC2086 # two words
		refused_within 3000 "$1" "$SEMLOCK" $wait "$URL" touch ran || return
	done
	[ ! -e ran ]
}

has_no_room() { ! ctl put full x >/dev/null 2>&1; }

@test "an etcd without room fails with 69 at once, and a holder can release" {
	etcd_stop_all 2>/dev/null || :
	rm -r "$DIR/s1"
	etcd_single --quota-backend-bytes 200000
	URL=etcd://$ETCD/nightly
	hold_lock --ttl=60 "$URL" # a renewal would fail
	while head -c 100000 /dev/zero | tr '\0' x | ctl put full >/dev/null 2>&1; do :; done
	eventually has_no_room
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	let_go
	no_answer "database space exceeded"
	refused 69 "database space exceeded" "$SEMLOCK" "$URL" touch ran
	[ "$(count)" -eq 0 ]
}

@test "an etcd without room under a holder: the command and the queue go on" {
	local times=1 i
	[ -z "${THOROUGH-}" ] || times=10
	etcd_stop_all 2>/dev/null || :
	rm -r "$DIR/s1"
	etcd_single --quota-backend-bytes 400000
	for ((i = 0; i < times; i++)); do
		hold_as holder.$i --ttl=$((3 * PACE)) "etcd://$ETCD/nightly/$i"
		for n in 1 2 3; do
			start waiter.$i.$n "$SEMLOCK" -v --ttl=$((3 * PACE)) "etcd://$ETCD/nightly/$i" sh -c "echo $n >>$DIR/order.$i"
			waits_for waiter.$i.$n "waiting: "
		done
	done
	while head -c 100000 /dev/zero | tr '\0' x | ctl put full >/dev/null 2>&1; do :; done
	eventually has_no_room
	"$PROBE" pause $((8000 * PACE)) # more than two leases
	for ((i = 0; i < times; i++)); do let_go holder.$i; done
	ctl del full >/dev/null
	ctl compact "$(ctl get full -w json | jq .header.revision)" >/dev/null
	ctl defrag >/dev/null
	ctl alarm disarm >/dev/null
	for ((i = 0; i < times; i++)); do
		for n in 1 2 3; do ended waiter.$i.$n 0; done
		[ "$(tr '\n' ' ' <"order.$i")" = "1 2 3 " ] || complain "$(cat "order.$i")"
	done
}

@test "an etcd without a leader gives 69, with -n within 3 s; -w waits for one" {
	local leader name
	etcd_three
	URL=etcd://$ETCD/nightly
	expect_status 0 "$SEMLOCK" "$URL" true
	for name in n1 n2; do kill -STOP "${ETCD_PID[$name]}"; done
	eventually leaderless n3
	no_answer ""
	fifos waiter
	start waiter "$SEMLOCK" -w 100 "$URL" "$PROBE" hold waiter.up waiter.down
	for name in n1 n2; do kill -CONT "${ETCD_PID[$name]}"; done
	ready waiter
	let_go waiter
}

# leaderless NAME: the member NAME knows of no leader.
leaderless() {
	etcd_ask "${ETCD_CLIENT[$1]}" /v3/maintenance/status '{}' && [[ $ANSWER == *"no leader"* ]]
}

@test "a silent etcd gives 69, not 1; with -n within 3 s" {
	kill -STOP "${ETCD_PID[s1]}"
	no_answer_in_time
	kill -CONT "${ETCD_PID[s1]}"
	[ ! -e ran ]
}

slow_name() {
	expect_status 69 strace -f -qq -o trace -P /etc/hosts -e inject=openat:delay_enter=4s \
		"$SEMLOCK" -n etcd://slow.invalid/nightly touch ran && [[ $err == *"no answer in time"* ]]
}

@test "after a slow name lookup the helper still reports the reason in time" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	eventually slow_name # a busy machine may be late
	[ ! -e ran ]
}

# silent_after N CMD...: the proxy passes N transactions on, and then nothing of what takes or leaves a lock.
silent_after() {
	rm -f faults/*
	: >faults/stop-revoke
	echo "$1" >faults/stop-txn
	shift
	"$@"
}

@test "an etcd that falls silent midway gives 69 and the reason, in time" {
	etcd_between
	URL=etcd://$BETWEEN/nightly
	refused_within 3000 "no answer in time" silent_after 1 "$SEMLOCK" -n "$URL" touch ran
	refused_within 3000 "no answer in time" silent_after 0 "$SEMLOCK" -w .1 "$URL" touch ran
	refused_within 4500 "no answer in time" silent_after 0 "$SEMLOCK" -w 3 "$URL" touch ran
	[ ! -e ran ]
}

@test "KILL to the caller's process group ends the command and frees the lock" {
	ends_with_group "" "$URL"
	[ "$(count)" -eq 0 ]
}

@test "etcds: SEMLOCK_CACERT replaces the authorities of the system" {
	etcd_stop_all || true
	certificates
	ETCD_SCHEME=https
	etcd_single --cert-file "$DIR/leaf.pem" --key-file "$DIR/leaf.key"
	only_cacert_counts "etcds://$ETCD/nightly"
}
