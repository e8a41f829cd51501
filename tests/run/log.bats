#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --log: one line of JSON for each run, at its end.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# logs JQ VALUE: the last line of the file log has VALUE there
logs() {
	local found
	found=$(tail -n1 log | jq -rc "$1") || complain "not JSON: $(tail -n1 log)" || return
	[ "$found" = "$2" ] || complain "$1 is $found instead of $2:" "$(tail -n1 log)"
}

@test "a run: what, who, which lock, how long, what came of it" {
	expect_status 3 "$SEMLOCK" --log=log -j 2 l sh -c 'echo $$; exit 3' 'a "word"'
	pid=$out
	logs .lock l
	logs .method flock
	logs .mode slot
	logs .slot 0
	logs .pid "$pid"
	logs .user "$(id -un)"
	logs .command '["sh","-c","echo $$; exit 3","a \"word\""]'
	logs .outcome "exit 3"
	logs .place null
	logs '.waited < 60 and .held < 60' true
	[ "$(date -d "$(jq -r .time log)" +%s)" -gt $(($(date +%s) - 600)) ]
	expect_status 0 "$SEMLOCK" --log=log -s l true
	logs .mode shared
	logs .slot null
	[ "$(wc -l <log)" -eq 2 ]
}

@test "what came of it: a signal, busy, a time limit, replaced, not run, an error" {
	expect_status 143 "$SEMLOCK" --log=log l sh -c 'kill -TERM $$'
	logs .outcome "signal 15"
	hold_lock --log=log l
	expect_status 1 "$SEMLOCK" --log=log -n l true
	logs .outcome busy
	logs .pid null
	expect_status 1 "$SEMLOCK" --log=log -w .05 l true
	logs .outcome timeout
	logs .place 1
	logs '.waited >= 0.05' true
	expect_status 0 "$SEMLOCK" --replace l true
	ended holder 143
	logs .outcome replaced
	logs .command[0] "$PROBE"
	mkfifo never
	expect_status 124 "$SEMLOCK" --log=log --run-timeout .05 l sh -c 'read -r _ <>never'
	logs .outcome run-timeout
	expect_status 127 "$SEMLOCK" --log=log l ./not-there
	logs .outcome "not-run ENOENT"
	expect_status 66 "$SEMLOCK" --log=log not/there true
	logs .outcome "failed 66"
	expect_status 76 "$SEMLOCK" --log=log -m excl x rm x
	logs .outcome lost
}

@test "what came of it, where no command ran; several slots" {
	hold_lock l
	expect_status 0 "$SEMLOCK" --log=log --toggle l true
	ended holder 143
	logs .outcome toggled
	expect_status 126 "$SEMLOCK" --log=log -m excl x ./l
	logs .outcome "not-run EACCES"
	logs .pid null
	expect_status 0 "$SEMLOCK" --log=log -j 4 --take=2 slots true
	logs .slot 0,1
}

# The log's descriptor gets the lowest number that is free.
@test "a descriptor that the caller has closed is not the log: nothing is locked, 65" {
	# shellcheck disable=SC2016 # by the shell that has closed it
	expect_status 65 bash -c 'exec 3>&-; "$0" --log=log -n --fd=3 touch ran' "$SEMLOCK"
	[[ $err == *"descriptor 3: this descriptor is not open"* ]] || complain "$err"
	[ ! -e ran ]
	expect_free log
}

@test "places in the queue, and locks made of files, -o and --hold" {
	hold_lock l
	for i in 1 2 3; do
		fifos w$i
		start w$i "$SEMLOCK" --log=log l "$PROBE" hold w$i.up w$i.down
		"$PROBE" blocked "${PID[w$i]}"
	done
	let_go
	for i in 1 2 3; do
		ready w$i
		let_go w$i
		logs .place $i
		logs '.waited > 0' true
	done
	for way in "-m excl x" "-m mkdir d" "-m symlink s" "-o l" "-m posix l"; do
		# shellcheck disable=SC2086 # words
		expect_status 0 "$SEMLOCK" --log=log $way sh -c 'echo $$'
		logs .pid "$out"
	done
	expect_status 0 "$SEMLOCK" --log=log --hold l
	logs .command '[]'
	logs .outcome "exit 0"
}

@test "200 runs at once: 200 whole lines, and what they held adds up to less than the time that has passed" {
	starts_many
	local began=${EPOCHREALTIME/[.,]/} i
	for i in {1..200}; do
		"$SEMLOCK" --log=log l "$PROBE" pause 1 3>&- &
	done
	wait
	[ "$(jq -s length log)" -eq 200 ]
	[ "$(wc -l <log)" -eq 200 ]
	jq -es "(map(.held) | add) * 1000000 <= $((${EPOCHREALTIME/[.,]/} - began + 200 * 500))" log
}

@test "a log that cannot be written is a message, and no failure" {
	mkdir directory
	expect_status 4 "$SEMLOCK" --log=directory l sh -c 'exit 4'
	[ "$err" = "semlock: --log directory: cannot open: Is a directory; this run is not logged" ] || complain "$err"
	expect_status 0 "$SEMLOCK" --log=not/there l true
	[[ $err == *"--log not/there: cannot open: No such file"* ]]
	expect_status 0 "$SEMLOCK" --log=/dev/full l true
	[[ $err == *"--log /dev/full: cannot write: No space left"* ]]
	expect_status 0 "$SEMLOCK" --log=/dev/stdout l true
	[ "$(jq -r .outcome <<<"$out")" = "exit 0" ]
	(ulimit -f 0 && expect_status 0 "$SEMLOCK" --log=log k true 2>/dev/null >/dev/null) || [ "$?" -ne 153 ]
	mkfifo pipe
	expect_status 0 "$SEMLOCK" --log=pipe l true
	[[ $err == *"--log pipe: cannot open"* ]]
}

@test "the command does not inherit the log; the umask is its mode" {
	(umask 027 && "$SEMLOCK" --log=log l sh -c 'ls -l /proc/self/fd' >fds)
	[ "$(stat -c %a log)" = 640 ]
	if grep log fds; then false; fi
}

@test "a link that another user has put into a directory open to all is not followed" {
	root_only "to be two users"
	mkdir -m 1777 open
	: >precious
	ln -s ../precious open/log
	chown -h 65534 open/log
	expect_status 0 "$SEMLOCK" --log=open/log l true
	[[ $err == *"a symbolic link that user 65534 put"* ]] || complain "$err"
	[ ! -s precious ]
	ln -s precious own
	expect_status 0 "$SEMLOCK" --log=own l true
	[ -s precious ]
}

@test "-F and a descriptor alone are refused" {
	refused 64 "--log" "$SEMLOCK" -F --log=log l touch ran
	exec 8>l
	refused 64 "--log" "$SEMLOCK" --log=log 8
	exec 8>&-
	[ ! -e ran ] && [ ! -e log ]
}
