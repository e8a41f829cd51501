#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --log: one line of JSON for each run, at its end.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

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

@test "outcomes: a signal, busy, a time limit, replaced, not run, an error" {
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
@test "a descriptor that the caller closed is not the log: 65, nothing locked" {
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
	: >.out
	expect_status 0 "$SEMLOCK" --log=log --hold l < <(until_ok)
	logs .command '[]'
	logs .outcome "exit 0"
}

@test "200 runs at once: 200 whole lines, whose times add up to no overlap" {
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

@test "the command does not inherit the log, which only its user can read" {
	(umask 0 && "$SEMLOCK" --log=log l sh -c 'ls -l /proc/self/fd' >fds)
	[ "$(stat -c %a log)" = 600 ]
	if grep log fds; then false; fi
	chmod 640 log
	expect_status 0 "$SEMLOCK" --log=log l true
	[ "$(stat -c %a log)" = 640 ]
}

@test "a link of another user is not followed, wherever it is" {
	root_only "to be two users"
	: >precious
	for directory in "1777 0" "755 65534" "755 0"; do
		mkdir -m "${directory% *}" "d$directory"
		chown "${directory#* }" "d$directory"
		ln -s ../precious "d$directory/log"
		ln -s log "d$directory/other"
		chown -h 65534 "d$directory/log"
		for name in log other; do
			expect_status 0 "$SEMLOCK" --log="d$directory/$name" l true
			[[ $err == *"a symbolic link that user 65534 put"* ]] || complain "$directory" "$err"
		done
		[ ! -s precious ]
	done
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

@test "the lock is free while the log is written" {
	command -v strace >/dev/null || skip "no strace here"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	for method in flock ofd posix excl; do
		start $method strace -f -qq -o /dev/null -P "$PWD/log" -e trace=write -e inject=write:delay_enter=50000000 \
			"$SEMLOCK" -m $method --log="$PWD/log" l.$method touch ran.$method
	done
	for method in flock ofd posix excl; do
		eventually [ -e ran.$method ]
		expect_status 0 "$SEMLOCK" -m $method -w 20 l.$method true
	done
	[ ! -s log ]
}

@test "the lock is free while events wait for their reader" {
	mkfifo events
	exec 7<>events
	hold_lock --status-fd 7 l
	dd if=/dev/zero of=events oflag=nonblock bs=512 count=512 2>/dev/null || true
	release holder
	expect_status 0 "$SEMLOCK" -w 20 l true
	kill -0 "${PID[holder]}"
	exec 7>&-
}

@test "replaced is logged only for --replace, not for an outer limit" {
	mkfifo never
	capture "$SEMLOCK" --run-timeout .3 outer sh -c '"$0" --log=log l sh -c ": >ran; read -r _ <>never"; :' "$SEMLOCK"
	eventually [ -s log ]
	[ -e ran ]
	logs .outcome "signal 15"
	cp "$(command -v sleep)" sleeper
	printf '#!/bin/sh\nkill -TERM "$1"\n' >script
	cp "$(readlink -f /bin/bash)" semlock
	hold_lock --log=log l
	./semlock -c 'kill -TERM "$1"; :' semlock "${PID[holder]}"
	ended holder 143
	logs .outcome "signal 15"
}

@test "an end before the lock is asked for has its line and its event as well" {
	sleep 0 &
	gone=$!
	wait $gone
	expect_status 64 "$SEMLOCK" --log=log --status-fd 7 --hold=$gone l 7>events
	logs .outcome "failed 64"
	[ "$(cat events)" = "failed 64" ]
	[ -x "$CRASHABLE_SEMLOCK" ]
	rm log
	SEMLOCK_CRASH=parent.noted:stop start parent sh -c '"$@" 7>events & echo $! >inner; wait' sh \
		"$CRASHABLE_SEMLOCK" --log=log --status-fd 7 --die-with-parent l touch ran
	eventually [ -s inner ]
	"$PROBE" state "$(cat inner)" T
	kill -KILL "${PID[parent]}"
	ended parent 137
	kill -CONT "$(cat inner)"
	eventually [ -s log ]
	logs .outcome "failed 143"
	logs .slot null
	[ "$(cat events)" = "failed 143" ]
	[ ! -e ran ]
}

@test "a log with the name of a lock made of files is refused, and not made" {
	mkdir d
	ln -s d/l link
	for method in excl link mkdir symlink; do
		for log in d/l ./d/l d/../d/l link; do
			refused 64 "this is the lock itself" "$SEMLOCK" -w 5 -m $method --log=$log d/l touch ran
			[ ! -e d/l ] || complain "$method made $log"
		done
	done
	refused 64 "this is the lock itself" "$SEMLOCK" -m excl --log=d/l -f d/l d/other touch ran
	[ ! -e ran ]
	[ -z "$(ls d)" ]
	expect_status 0 "$SEMLOCK" --log=l l true
	[ "$(jq -r .outcome l)" = "exit 0" ]
}

@test "no half of a line is left where there is no room for the whole" {
	long=$(printf '%300s' '')
	expect_status 0 "$SEMLOCK" --log=log l true "$long"
	size=$(stat -c %s log)
	for i in 1 2 3; do
		(ulimit -f 1 && exec "$SEMLOCK" --log=log l true "$long") 2>.err || complain "$?" "$(cat .err)"
	done
	[ "$(stat -c %s log)" -lt 1024 ]
	grep -q "no room for the whole line" .err || complain "$(cat .err)"
	[ $((size * $(wc -l <log))) -eq "$(stat -c %s log)" ] || complain "half a line:" "$(cat log)"
	expect_status 0 "$SEMLOCK" --log=log l true
	jq -es . log >/dev/null || complain "$(cat log)"
}

# rotated HOW: the log of a run is moved away in its midst, and HOW makes another one.
rotated() {
	rm -f ./*.up ./*.down log log.1
	hold_lock --log=log l
	mv log log.1
	"$@"
	let_go holder
	[ ! -s log.1 ] || complain "the line is in the file that was moved" || return
	logs .outcome "exit 0"
	[ "$(wc -l <log)" -eq 1 ]
}

@test "a log that is rotated while a run lasts: the line is in the new file" {
	: >log.new
	rotated mv log.new log
	rotated true
	[ "$(stat -c %a log)" = 600 ]
	rotated ln -s elsewhere log # as at the start, a link of the caller's own is followed
	[ -s elsewhere ]
}

# waits_or_ended PID: it has no child any more, and does not run
waits_or_ended() {
	[ -e "/proc/$1" ] || return 0
	[ -z "$(cat "/proc/$1/task/$1/children")" ] && grep -q '^State:.[SZ]' "/proc/$1/status"
}

# At log.half a part of a line is in the file, and is about to be cut away.
@test "a line that another run writes is not cut away with half of one" {
	long=$(printf '%400s' '') # two lines are more than 1024 bytes
	expect_status 0 "$SEMLOCK" --log=log l true "$long"
	start half bash -c 'ulimit -f 1; exec "$@"' bash env SEMLOCK_CRASH=log.half:stop "$CRASHABLE_SEMLOCK" --log=log l true "$long"
	"$PROBE" state "${PID[half]}" T
	start whole "$SEMLOCK" --log=log m touch ran
	eventually [ -e ran ]
	eventually waits_or_ended "${PID[whole]}"
	kill -CONT "${PID[half]}"
	ended whole 0
	ended half 0
	logs .lock m
	jq -es 'length == 2' log >/dev/null || complain "$(cat log)"
}
