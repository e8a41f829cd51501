#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The exit status: the command's own, or a documented one of semlock's.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "every status of the command comes through" {
	for n in 0 1 2 3 42 64 65 66 69 70 71 73 75 76 77 99 124 125 126 127 128 129 254 255; do
		expect_status $n "$SEMLOCK" l sh -c "exit $n"
		expect_silent
	done
}

@test "128 and the number of the signal that ended it" {
	ulimit -c 0
	for pair in HUP:129 INT:130 QUIT:131 KILL:137 USR1:138 SEGV:139 PIPE:141 ALRM:142 TERM:143; do
		expect_status "${pair#*:}" "$PROBE" with-default HUP INT QUIT PIPE TERM -- \
			"$SEMLOCK" l sh -c "kill -${pair%:*} \$\$"
		expect_silent
	done
}

@test "a command that is not there: 127, and it is named" {
	refused 127 nosuch "$SEMLOCK" l nosuch
	refused 127 ./nosuch "$SEMLOCK" l ./nosuch
	refused 127 "a shell command must follow -c" "$SEMLOCK" l 'echo a b'
	[[ $(! "$SEMLOCK" l nosuch 2>&1) != *-c* ]]
	[[ $(! "$SEMLOCK" l 'no such' word 2>&1) != *-c* ]]
	refused 127 /nosuch/x "$SEMLOCK" l /nosuch/x
	expect_free l
}

@test "a command that cannot be run: 126, and it is named" {
	: >plain
	refused 126 ./plain "$SEMLOCK" l ./plain
	mkdir dir
	refused 126 ./dir "$SEMLOCK" l ./dir
	expect_free l
}

@test "a command whose interpreter is not there: it is named" {
	if under_valgrind; then skip "valgrind does not survive an execve() of which it has not foreseen that it fails"; fi
	printf '#!/nosuch/interpreter\n' >script
	chmod +x script
	capture "$SEMLOCK" l ./script
	[ "$status" -eq 126 ] || [ "$status" -eq 127 ]
	[[ $err == *./script* ]]
	expect_free l
}

@test "the command is looked for in PATH" {
	mkdir tools
	printf '#!/bin/sh\necho mine\n' >tools/mytool
	chmod +x tools/mytool
	expect_status 0 env PATH="$PWD/tools:$PATH" "$SEMLOCK" l mytool
	expect_out mine
	chmod -x tools/mytool
	refused 126 mytool env PATH="$PWD/tools" "$SEMLOCK" l mytool
	refused 127 mytool env PATH=/nosuch "$SEMLOCK" l mytool
}

@test "a script without #! is the shell's" {
	echo 'echo "from the shell: $1"' >script
	chmod +x script
	for option in '' -o -F; do
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" $option l ./script hello
		expect_out "from the shell: hello"
	done
}

@test "standard error that cannot be written to does not change the status" {
	hold_lock busy
	for redirect in '2>/dev/full' '2>&-'; do
		for pair in "1:-v -n busy true" "127:l nosuch" "64:--nosuch l true" "66:/nonexist/x true" "4:-v l sh -c 'exit 4'"; do
			expect_status "${pair%%:*}" bash -c "\"\$0\" ${pair#*:} $redirect" "$SEMLOCK"
		done
	done
	let_go
}

@test "messages that nobody reads do not end it" {
	mkfifo pipe
	# shellcheck disable=SC2016 # by that shell
	expect_status 3 bash -c 'exec 7<>pipe 8>pipe 7<&-; "$0" -v -m excl l sh -c "exit 3" 2>&8' "$SEMLOCK"
	[ ! -e l ]
}

@test "output that semlock itself cannot write: 71" {
	hold_lock busy
	for words in --help --version "--who busy" "--who --json busy"; do
		expect_status 71 bash -c "\"\$0\" $words >/dev/full" "$SEMLOCK"
	done
	let_go
}

@test "standard output that cannot be written to is the command's matter" {
	expect_status 0 bash -c '"$0" l true >/dev/full' "$SEMLOCK"
	expect_status 0 bash -c '"$0" l true >&-' "$SEMLOCK"
}

@test "-E is for the conflict alone" {
	expect_status 3 "$SEMLOCK" -n -E 9 l sh -c 'exit 3'
	expect_status 1 "$SEMLOCK" -n -E 9 l sh -c 'exit 1'
	expect_status 127 "$SEMLOCK" -n -E 9 l nosuch
	expect_status 66 "$SEMLOCK" -n -E 0 /nonexist/x true
}

@test "without a vfork that shares memory, exit statuses and errors are right" {
	BROKEN=${BROKEN:-$SOURCE/build/tests/semlock-broken}
	refused 127 "nosuch: cannot run: not found in PATH (LOCK was l, an empty file that was made just now)" "$BROKEN" --status-fd=6 l nosuch 6>events
	[ "$(untimed <events)" = $'acquired\nnot-run ENOENT' ] || complain "$(cat events)"
	refused 126 "/etc/passwd: cannot run: Permission denied" "$BROKEN" l /etc/passwd
	refused 127 nosuch "$BROKEN" --run-timeout=60 l nosuch
	for status in 0 1 2 13 126 127; do
		expect_status $status "$BROKEN" --status-fd=6 l sh -c "exit $status" 6>events
		[ "$(untimed <events)" = $'acquired\nexit '$status ] || complain "$(cat events)"
	done
	expect_status 127 "$BROKEN" l sh -c nosuch
	expect_status 137 "$BROKEN" l sh -c 'kill -KILL $$'
	expect_free l
}

@test "a failed lock call gives 71, the call and the reason, as flock, too" {
	if under_valgrind; then skip "valgrind cannot work under strace"; fi
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	refused 71 "l: cannot lock: No locks available" strace -qq -o trace -e inject=flock:error=ENOLCK "$SEMLOCK" l touch ran
	refused 71 "l: cannot lock a slot: No locks available" strace -qq -o trace -e inject=fcntl:error=ENOLCK \
		"$SEMLOCK" -j2 l touch ran
	expect_status 71 strace -qq -o trace -e inject=flock:error=ENOLCK "$FLOCK" l touch ran
	[ "$err" = "flock: l: No locks available" ] || complain "$err"
	[ ! -e ran ]
}
