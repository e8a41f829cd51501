#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# flock(1)'s contract, vector by vector: for semlock, for semlock under the name flock, and for the system's
# flock(1), which proves the vectors right.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	SYSTEM=$(system_flock)
	everyone=("$SEMLOCK" "$FLOCK" ${SYSTEM:+"$SYSTEM"})
	flocks=("$FLOCK" ${SYSTEM:+"$SYSTEM"})
}

# all N ARGS...: every program ends with N.  named_flock N ARGS...: semlock under the name flock, and the system's
# flock, end with N.
all() {
	local want=$1 program
	shift
	for program in "${everyone[@]}"; do
		expect_status "$want" "$program" "$@" || return
	done
}

named_flock() {
	local want=$1 program
	shift
	for program in "${flocks[@]}"; do
		expect_status "$want" "$program" "$@" || return
	done
}

@test "the system's flock(1) is here to prove these vectors right" {
	[ -n "$SYSTEM" ] || skip "no util-linux flock on this machine"
	expect_status 0 "$SYSTEM" l true
}

@test "a command's own status comes through" {
	all 0 l true
	all 1 l -c 'exit 1'
	all 3 l sh -c 'exit 3'
	all 137 l -c 'kill -9 $$'
}

@test "a command that is not there: 127, under the name flock 69" {
	refused 127 nosuch "$SEMLOCK" l nosuch
	refused 126 /etc/passwd "$SEMLOCK" l /etc/passwd
	named_flock 69 l nosuch
	named_flock 69 l /etc/passwd
	[ "$(wc -l <.err)" -eq 1 ]
	for program in "${flocks[@]}"; do
		expect_status 69 "$program" l nosuch
		[[ $err == "flock: "*nosuch* ]]
	done
}

@test "no arguments, or a file and no command, are refused with 64" {
	all 64
	all 64 l
	[ ! -e l ]
	all 64 -n
}

@test "a descriptor that is not open is refused with 65" {
	all 65 77
}

@test "invoked as flock, messages begin with flock:, as those of flock(1) do" {
	bad="Bad file descriptor"
	for program in "${flocks[@]}"; do
		expect_status 65 "$program" 77
		[ "$err" = "flock: 77: $bad" ] || complain "$err"
		for line in "abc" "-Z l true" "-w x l true" "-c x" "l -c" "--no-such l true" "-E"; do
			# shellcheck disable=SC2086 # words
			expect_status 64 "$program" $line
			[[ $err == "flock: "* && $err != *semlock* ]] || [ "$program" = "$SYSTEM" ] || complain "$line: $err"
		done
	done
	expect_status 65 "$FLOCK" -u 77
	[ "$err" = "flock: 77: $bad" ]
}

# util-linux's own test flock/close, of a flock that has --fd; the system's flock may have none.
@test "-o closes the descriptor of --fd for the command, which else inherits it" {
	exec 9<>l
	expect_status 65 "$FLOCK" --exclusive --close --fd 9 --command "$FLOCK --exclusive --nonblock --fd 9 true"
	[ "$err" = "flock: 9: Bad file descriptor" ] || complain "$err"
	expect_out ''
	expect_status 0 "$FLOCK" --exclusive --fd 9 --command "$FLOCK --exclusive --nonblock --fd 9 true"
	expect_silent
	exec 9>&-
}

# util-linux's own test flock/range-lock, of a flock that has --start.
@test "--start and --length with --no-fork lock bytes of a directory, shared" {
	fifos holder
	start holder "$FLOCK" --shared --fcntl --start 1 --length 2 --no-fork . -c "exec '$PROBE' hold holder.up holder.down"
	ready holder
	[ "${COMMAND[holder]}" = "${PID[holder]}" ]
	grep -qhE '^lock:.* OFDLCK +ADVISORY +READ .* 1 2$' "/proc/${PID[holder]}/fdinfo/"*
	let_go
}

@test "a file that may only be written takes an exclusive --fcntl" {
	: >l
	chmod 222 l
	for way in --fcntl "--start 1" "-m posix" "--fcntl -j 2"; do
		# shellcheck disable=SC2086 # words
		expect_status 3 as_nobody "$SEMLOCK" $way l sh -c 'exit 3'
	done
	expect_status 66 as_nobody "$SEMLOCK" --fcntl -s l true
	expect_status 66 as_nobody "$SEMLOCK" l true
}

@test "a file that cannot be opened is refused with 66" {
	all 66 /nonexist/x true
	named_flock 66 '' true
	refused 64 "LOCK is empty" "$SEMLOCK" '' true
}

@test "-w takes fractions and exponents, and refuses words and nothing" {
	all 0 -w 0 l true
	all 0 -w .5 l true
	all 0 -w 1e1 l true
	all 64 -w abc l true
	expect_status 0 "$SEMLOCK" -w 1s l true
	all 64 -w '' l true
}

@test "a negative -w: 64, under the name flock 71" {
	refused 64 -1 "$SEMLOCK" -w -1 l true
	named_flock 71 -w -1 l true
}

@test "-E takes 0 to 255" {
	all 64 -E 256 l true
	all 64 -E -1 l true
	all 64 -E x l true
	all 0 -E 255 l true
	hold_lock l
	all 0 -n -E 0 l true
	all 255 -n -E 255 l true
	all 75 -w .01 -E 75 l true
	all 75 --conflict-exit-code=75 --nb l true
	all 75 --conflict-exit-code 75 --timeout .01 l true
	let_go
}

@test "a number may have leading blanks and a plus, as wc(1) prints it" {
	exec 5>>fd
	for number in ' 5' '+5' '  +5' $'\t5' 05; do
		all 0 -w "$number" l true
		all 0 -E "$number" l true
		all 0 "$number"
	done
	all 64 -w '5 ' l true
	all 64 -E '5 ' l true
	all 64 '5 '
	all 64 -E 0x5 l true
	all 64 0x5
	expect_status 0 "$SEMLOCK" --start ' 5' --length +1K l true
	expect_status 0 "$SEMLOCK" -j ' 5' -w ' 500ms' slots true
	expect_status 64 "$SEMLOCK" --start -5 l true
	hold_lock l
	all 5 -n -E ' 5' l true
	let_go
	exec 5>&-
}

@test "-c stands behind the file and takes one string" {
	all 64 l -c
	all 64 l -c a b
	all 64 -c x
	all 64 -c l x
	for program in "${everyone[@]}"; do
		expect_status 0 "$program" l -c 'echo "$0 a  b" | wc -w'
		expect_out 3
		expect_status 0 "$program" l --command 'echo two'
		expect_out two
	done
}

@test "-c runs \$SHELL, and /bin/sh when that is unset or empty" {
	printf '#!/bin/sh\necho "my shell: $*"\n' >shell
	chmod +x shell
	for program in "${everyone[@]}"; do
		SHELL=$PWD/shell expect_status 0 "$program" l -c 'a  b'
		expect_out "my shell: -c a  b"
		SHELL='' expect_status 0 "$program" l -c 'readlink /proc/$$/exe'
		expect_out "$(readlink -f /bin/sh)"
		expect_status 0 env -u SHELL "$program" l -c 'readlink /proc/$$/exe'
		expect_out "$(readlink -f /bin/sh)"
	done
}

@test "-u FILE COMMAND: refused with 64, under the name flock it runs" {
	refused 64 -u "$SEMLOCK" -u l echo hi
	for program in "${flocks[@]}"; do
		rm -f l
		expect_status 0 "$program" -u l echo hi
		expect_out hi
		[ -e l ] || complain "$program made no l"
		expect_status 66 "$program" -u no/such echo hi
		expect_out ''
		expect_status 0 "$program" -u l readlink /proc/self/fd/3
		expect_out "$PWD/l"
		expect_status 1 "$program" -o -u l readlink /proc/self/fd/3
	done
}

@test "busy: 1 and silence with -n and with -w" {
	hold_lock l
	for program in "${everyone[@]}"; do
		for how in -n --nb --nonblock --nonblocking '-w .2' '-w 0' '--wait=.01' '--timeout=.01' '-xn' '-nx'; do
			# shellcheck disable=SC2086
			expect_status 1 "$program" $how l echo ran
			expect_silent
		done
	done
	let_go
}

# waits_in_vain: the line of a wait was there before $room ms were over
waits_in_vain() {
	expect_status 1 "$SEMLOCK" --verbose -w "${room}ms" l true || return
	grep -c "^semlock: l: waiting: held by" <<<"$err" | grep -qx 1
}

@test "busy with --verbose gives 1 and a line; a wait prints one when it begins" {
	hold_lock l
	refused 1 l "$SEMLOCK" --verbose -n l true
	with_room waits_in_vain
	grep -c "^semlock: l: held by .*; the time is up; semlock --who l says more$" <<<"$err" | grep -qx 1
	[ "$(wc -l <<<"$err")" -eq 2 ]
	for program in "${flocks[@]}"; do
		expect_status 1 "$program" --verbose -n l true
		[ "$err" = "flock: failed to get lock" ]
		expect_out ''
		expect_status 1 "$program" --verbose -w .01 l true
		[ "$err" = "flock: timeout while waiting to get lock" ]
		expect_out ''
	done
	let_go
}

@test "--verbose: on standard error, under the name flock on standard output" {
	expect_status 0 "$SEMLOCK" --verbose l echo hi
	expect_out hi
	[ -n "$err" ]
	for program in "${flocks[@]}"; do
		expect_status 0 "$program" --verbose l true
		[ -z "$err" ]
		[[ $out =~ ^"flock: getting lock took "[0-9]+\.[0-9]{6}" seconds"$'\n'"flock: executing true"$ ]]
	done
}

@test "the later of -s and -x wins" {
	hold_lock -s l
	all 1 -sx -n l true
	all 1 --shared --exclusive -n l true
	all 0 -xs -n l true
	all 0 -es -n l true
	all 1 -se -n l true
	all 1 -n l true
	let_go
}

@test "a directory is a lock" {
	mkdir d
	all 0 d true
	hold_lock d
	all 1 -n d true
	let_go
	[ -z "$(ls -A d)" ]
}

@test "digits before a command are a file's name" {
	for program in "${everyone[@]}"; do
		expect_status 0 "$program" 5 true
		[ -f 5 ]
		rm 5
	done
}

@test "/dev/fd/7 and /dev/null are files" {
	exec 7>l
	all 0 /dev/fd/7 true
	exec 7>&-
	all 0 /dev/null true
}

@test "the command can read its input through the device that is the lock" {
	for program in "${everyone[@]}"; do
		expect_status 0 "$program" /dev/zero bash -c 'for fd in /proc/self/fd/*; do
			[ "$(readlink "$fd")" != /dev/zero ] || grep -h ^flags: "/proc/self/fdinfo/${fd##*/}"; done'
		[[ $out =~ ^flags:[[:space:]]*(0[0-7]+)$ ]] || complain "$program: $out"
		[ $((BASH_REMATCH[1] & 04000)) -eq 0 ] || complain "$program: $out has O_NONBLOCK in it"
	done
}

@test "a file that is only readable can be locked; an unreadable one gives 66" {
	: >readable
	: >unreadable
	chmod 444 readable
	chmod 000 unreadable
	for program in "${everyone[@]}"; do
		expect_status 0 as_nobody "$program" readable true
		expect_status 66 as_nobody "$program" unreadable true
		[ "$(wc -l <.err)" -eq 1 ]
	done
}

@test "the command's status is seen even when SIGCHLD was ignored" {
	for program in "${everyone[@]}"; do
		expect_status 3 "$PROBE" with-ignored CHLD -- "$program" l sh -c 'exit 3'
	done
}

@test "a command that was stopped and continued is waited for" {
	for program in "${everyone[@]}"; do
		rm -f holder.up holder.down
		fifos holder
		start holder "$program" l "$PROBE" hold holder.up holder.down
		ready holder
		kill -STOP "${COMMAND[holder]}"
		"$PROBE" state "${COMMAND[holder]}" T
		expect_held l
		kill -0 "${PID[holder]}"
		kill -CONT "${COMMAND[holder]}"
		let_go holder
	done
}

@test "the lock file is made with 0666 less the umask" {
	for program in "${everyone[@]}"; do
		rm -f l
		(umask 077 && expect_status 0 "$program" l true)
		[ "$(stat -c %a l)" = 600 ]
		rm l
		(umask 0 && expect_status 0 "$program" l true)
		[ "$(stat -c %a l)" = 666 ]
		rm l
	done
}

@test "a word behind the file is the command's, not an option" {
	refused 64 "options must precede LOCK" "$SEMLOCK" l -n true
	refused 64 "COMMAND is empty (unset variable?)" "$SEMLOCK" l ''
	named_flock 69 l -n true
	all 0 -- l true
	for program in "${everyone[@]}"; do
		expect_status 0 "$program" l echo -n -w --help
		expect_out "$(echo -n -w --help)"
	done
}

@test "-- before the command is let pass by semlock" {
	expect_status 0 "$SEMLOCK" l -- echo -x
	expect_out -x
}

@test "long options may be shortened, short ones bundled" {
	hold_lock -s l
	all 1 --excl --nonb l true
	all 1 --ex --nonblock l true
	all 0 --sh --nonb l true
	all 7 --nonb --conf 7 l true
	all 7 -nE7 l true
	all 7 -xnE 7 l true
	all 1 --time .01 l true
	let_go
}

@test "-o and -F, short and long, are known, and refused together with 64" {
	all 4 -o l sh -c 'exit 4'
	all 4 --close l sh -c 'exit 4'
	all 4 -F l sh -c 'exit 4'
	all 4 --no-fork l sh -c 'exit 4'
	all 64 -F -o l true
}

@test "an operand alone that is no number is refused with 64" {
	all 64 8x
	all 64 99999999999999999999
}

@test "an option that is not there is refused with 64" {
	all 64 --no-such-option l true
	all 64 -Z l true
	[ ! -e l ]
}

@test "--help and --version go to standard output" {
	for program in "${everyone[@]}"; do
		for option in -h --help -V --version; do
			expect_status 0 "$program" "$option"
			[ -n "$out" ]
			[ -z "$err" ]
		done
	done
}

@test "arguments reach the command as they are" {
	for program in "${everyone[@]}"; do
		expect_status 0 "$program" l printf '<%s>' 'a  b' '*' '' "\$HOME" $'x\ny'
		expect_out "<a  b><*><><\$HOME><x"$'\n'"y>"
	done
}

@test "standard input is the command's" {
	for program in "${everyone[@]}"; do
		echo typed >in
		expect_status 0 "$program" l cat <in
		expect_out typed
	done
}

@test "the command's children keep the lock" {
	for program in "${everyone[@]}"; do
		rm -f child.up child.down
		fifos child
		expect_status 0 "$program" l "$PROBE" leave-behind child.up child.down
		PID[child]=$$
		ready child
		expect_held l
		release child
		"$PROBE" until-free l
	done
}

@test "a dangling link is created through" {
	for program in "${everyone[@]}"; do
		rm -f target
		ln -sf target link
		expect_status 0 "$program" link true
		[ -f target ]
	done
}

@test "an existing file keeps its contents" {
	echo precious >l
	all 0 l true
	all 0 -s l true
	[ "$(cat l)" = precious ]
}

@test "descriptors that the caller has open reach the command" {
	for program in "${everyone[@]}"; do
		echo passed >in
		exec 8<in
		expect_status 0 "$program" l sh -c 'cat <&8'
		exec 8<&-
		expect_out passed
	done
}
