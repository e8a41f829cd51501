#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2030,SC2031 # each @test is a subshell, and knows it
# shellcheck disable=SC2016 # single quotes: the command's own shell is to expand
# foreachmail: a command for each message of a mailbox.
# Run by make check; alone: SOURCE=$PWD bats tests/contrib/foreachmail.bats

setup() {
	: "${SOURCE:?the top of the source tree}" "${FOREACHMAIL:=$SOURCE/contrib/foreachmail/foreachmail}"
	export FOREACHMAIL
	cd "$BATS_TEST_TMPDIR" || return
	mkdir bin
	ln -s "$FOREACHMAIL" bin/foreachmail
	PATH=$PWD/bin:$PATH
	printf 'From %s Mon Jan  1 00:00:00 2024\nFrom: %s\nSubject: %s\n\n%s\n\n' \
	    ann@example.org 'Ann <ann@example.org>' first 'one' \
	    bob@example.org 'Bob <bob@example.org>' second 'two' \
	    cat@example.org 'Cat <cat@example.org>' third 'three' > mbox
}

# timeout: a deadlock is a failure, not a test that never ends.
foreachmail() {
	timeout $((60 * ${SLOWNESS:-1})) "$FOREACHMAIL" "$@"
}

mailboxes() {
	perl "$SOURCE/tests/lib/mailboxes.perl" "$@"
}

# expect STATUS COMMAND...: outputs are left in ./out and ./err
expect() {
	local wanted=$1 got=0
	shift
	"$@" > out 2> err || got=$?
	[ "$got" -eq "$wanted" ] && return
	echo "$*: status $got instead of $wanted"
	cat out err
	return 1
}

# is FILE TEXT: the file has just these bytes; TEXT as printf's first argument
is() {
	# shellcheck disable=SC2059 # the text is a format: that is how it says \r and \0
	printf "$2" | cmp - "$1" && return
	od -c "$1"
	return 1
}

# each TEXT: cut TEXT (as printf's first argument) into ./1 ./2 ...
each() {
	# shellcheck disable=SC2059
	printf "$1" | expect 0 foreachmail 'cat > $FOREACHMAIL_NUMBER'
}

# ---- what a message is ----

@test "each message is the standard input of a command of its own, in order" {
	expect 0 foreachmail 'cat; echo =' < mbox
	is out 'From ann@example.org Mon Jan  1 00:00:00 2024
From: Ann <ann@example.org>
Subject: first

one

=
From bob@example.org Mon Jan  1 00:00:00 2024
From: Bob <bob@example.org>
Subject: second

two

=
From cat@example.org Mon Jan  1 00:00:00 2024
From: Cat <cat@example.org>
Subject: third

three

=
'
	is err ''
}

@test "From begins a message only after a blank line" {
	each 'From a\nA: 1\n\nbody\nFrom b\nB: 2\n\n\nFrom c\nC: 3\n\n'
	is 1 'From a\nA: 1\n\nbody\nFrom b\nB: 2\n\n\n'
	is 2 'From c\nC: 3\n\n'
	[ ! -e 3 ]
}

@test "a line of blanks is not a blank line" {
	each 'From a\nA: 1\n\nbody\n \nFrom b\nB: 2\n\n'
	is 1 'From a\nA: 1\n\nbody\n \nFrom b\nB: 2\n\n'
	[ ! -e 2 ]
}

@test "From begins a message only before a header" {
	each 'From a\nA: 1\n\nbody\n\nFrom here on, it rains\nin the whole: land\n\nFrom b\n\nFrom c\n: x\n\nFrom d\nD D: x\n\nFrom e\n\xe9: x\n\nFrom f'
	is 1 'From a\nA: 1\n\nbody\n\nFrom here on, it rains\nin the whole: land\n\nFrom b\n\nFrom c\n: x\n\nFrom d\nD D: x\n\nFrom e\n\xe9: x\n\nFrom f\n\n'
	[ ! -e 2 ]
	each 'From a\nA: 1\n\nFrom here on\nit: rains\n\n' # a field for all that anyone can see
	is 2 'From here on\nit: rains\n\n'
}

@test "a header may begin with a relay's >From line" {
	each 'From a\nA: 1\n\n\nFrom b\n>From c\nB: 2\n\n'
	is 1 'From a\nA: 1\n\n\n'
	is 2 'From b\n>From c\nB: 2\n\n'
}

@test "a quoted >From line stays as it is" {
	each 'From a\nA: 1\n\n>From b\nB: 2\n\n>>From c\n\n'
	is 1 'From a\nA: 1\n\n>From b\nB: 2\n\n>>From c\n\n'
}

@test "CR LF: lines, blank lines and the missing end" {
	each 'From a\r\nA: 1\r\n\r\nbody\r\n\r\nFrom b\r\nB: 2\r\n\r\nend'
	is 1 'From a\r\nA: 1\r\n\r\nbody\r\n\r\n'
	is 2 'From b\r\nB: 2\r\n\r\nend\r\n\r\n'
}

@test "the last message gets the line end and the blank line it lacks" {
	each 'From a\nA: 1\n\nend'
	is 1 'From a\nA: 1\n\nend\n\n'
	each 'From a\nA: 1\n\nend\n'
	is 1 'From a\nA: 1\n\nend\n\n'
	each 'From a\nA: 1\n\nend\n\n'
	is 1 'From a\nA: 1\n\nend\n\n'
	each 'From a\nA: 1'
	is 1 'From a\nA: 1\n\n'
	each 'From a\nA: 1\n\nend\n\r'
	is 1 'From a\nA: 1\n\nend\n\r\n\n'
}

@test "all blank lines belong to the message before them" {
	each 'From a\nA: 1\n\nbody\n\n\n\nFrom b\nB: 2\n\n\n\n'
	is 1 'From a\nA: 1\n\nbody\n\n\n\n'
	is 2 'From b\nB: 2\n\n\n\n'
}

@test "blank lines before the first message belong to none" {
	each '\n\r\n\nFrom a\nA: 1\n\n'
	is 1 'From a\nA: 1\n\n'
	printf '\n\n\r\n' | expect 0 foreachmail false
}

@test "no input: no command, and success" {
	expect 0 foreachmail false < /dev/null
	is err ''
}

@test "a message that has no From line is a message" {
	each 'Subject: bare\n\nbody\n\nFrom b\nB: 2\n\n'
	is 1 'Subject: bare\n\nbody\n\n'
	is 2 'From b\nB: 2\n\n'
}

@test "Content-Length is not looked at, and stays" {
	each 'From a\nContent-Length: 40\n\nbody\n\nFrom b\nContent-Length: 1\n\nbody\n\n'
	is 1 'From a\nContent-Length: 40\n\nbody\n\n'
	is 2 'From b\nContent-Length: 1\n\nbody\n\n'
}

@test "NUL and other binary bytes pass" {
	each 'From a\nA: 1\n\n\0\001\377\0\n\n\0From b\nB: 2\n\n'
	is 1 'From a\nA: 1\n\n\0\001\377\0\n\n\0From b\nB: 2\n\n'
	[ ! -e 2 ]
}

@test "a From line of 64 KiB and more begins no message, a shorter one does" {
	{ printf 'From a\nA: 1\n\nFrom '; head -c 65000 /dev/zero | tr '\0' x; printf '\nB: 2\n\n'; } > short
	{ printf 'From a\nA: 1\n\nFrom '; head -c 65536 /dev/zero | tr '\0' x; printf '\nB: 2\n\n'; } > long
	[ "$(foreachmail -n < short)" -eq 2 ]
	[ "$(foreachmail -n < long)" -eq 1 ]
	expect 0 foreachmail cat < long
	cmp out long
}

@test "a separator is seen wherever a read cuts it" {
	# the window is 256 KiB: put `blank line, From , header' on each place round its end
	for at in $(seq 262115 262146); do
		{
			printf 'From a\nA: 1\n\n'
			head -c $((at - 13)) /dev/zero | tr '\0' x
			printf '\n\nFrom b\nB: 2\n\n'
		} > cutbox
		[ "$(foreachmail -n < cutbox)" -eq 2 ] || { echo "at $at"; return 1; }
		expect 0 foreachmail cat < cutbox
		cmp out cutbox
	done
}

@test "a separator is seen when the input comes byte by byte" {
	mkfifo slow
	mailboxes noise 7 2000 > bytes
	perl -e '$| = 1; open my $in, "<", "bytes"; while (read $in, my $c, 1) { print $c }' > slow &
	expect 0 foreachmail 'cat > slow.$FOREACHMAIL_NUMBER' < slow
	mkdir wanted
	mailboxes split bytes wanted
	[ "$(find wanted -type f | wc -l)" -gt 10 ]
	for f in wanted/*; do
		cmp "$f" "slow.${f##*/}"
	done
	[ "$(find . -name 'slow.*' | wc -l)" -eq "$(find wanted -type f | wc -l)" ]
}

@test "random bytes: all messages together are the input, cut by the rule" {
	# shellcheck disable=SC2046 # numbers
	for seed in 1 2 $([ -z "${THOROUGH-}" ] || seq 3 12); do
		rm -rf wanted got
		mkdir wanted got
		mailboxes noise "$seed" 20000 > bytes
		mailboxes split bytes wanted
		expect 0 foreachmail 'cat > got/$FOREACHMAIL_NUMBER' < bytes
		[ "$(find wanted -type f | wc -l)" -gt 100 ]
		diff -r wanted got
		# without the reference: the output is the input without its leading blank lines, and may add a completion
		expect 0 foreachmail cat < bytes
		perl -0777 -e '
			open my $in, "<:raw", "bytes"; open my $out, "<:raw", "out";
			($in, $out) = (<$in>, <$out>);
			$in =~ s/\A(?:\r?\n)+//;
			exit !($out =~ /\A\Q$in\E(?:\r?\n){0,2}\z/)'
		[ "$(foreachmail -n < bytes)" -eq "$(find wanted -type f | wc -l)" ]
	done
}

@test "headers and bodies of random bytes make up the whole" {
	mkdir whole parts
	mailboxes noise 11 20000 > bytes
	foreachmail 'cat > whole/$FOREACHMAIL_NUMBER' < bytes
	foreachmail -H 'cat > parts/$FOREACHMAIL_NUMBER' < bytes
	foreachmail -B 'cat >> parts/$FOREACHMAIL_NUMBER' < bytes
	[ "$(find whole -type f | wc -l)" -gt 100 ]
	diff -r whole parts
}

@test "the same messages as formail -s, on an archive" {
	command -v formail > /dev/null || skip "formail (procmail) is not installed"
	mailboxes archive 200 > box
	mkdir ours theirs
	foreachmail 'cat > ours/$FOREACHMAIL_NUMBER' < box
	FILENO=1 formail -bY -s sh -c 'cat > theirs/$FILENO' < box
	[ "$(find theirs -type f | wc -l)" -eq 200 ]
	diff -r ours theirs
	# once more with Content-Length believed: in this archive each Content-Length is right
	rm theirs/*
	FILENO=1 formail -b -s sh -c 'cat > theirs/$FILENO' < box
	diff -r ours theirs
	expect 0 foreachmail cat < box
	cmp out box
}

@test "the same blank lines as formail -s, at the end and between" {
	command -v formail > /dev/null || skip "formail (procmail) is not installed"
	for end in '' '\n' '\n\n' '\n\n\n'; do
		# shellcheck disable=SC2059
		printf "From a@b Mon Jan  1 00:00:00 2024\nA: 1\nB: 2\n\nx\n\n\nFrom c@d Mon Jan  1 00:00:00 2024\nC: 3\nD: 4\n\ny$end" > box
		foreachmail cat < box > ours
		formail -b -s cat < box > theirs
		cmp ours theirs
	done
}

# ---- what the command gets ----

@test "-H gives the From line, the header and its blank line; -B the rest" {
	printf 'From a\nA: 1\n 2\n\nbody\n\nmore\n\nFrom b\nB: 2\n\nFrom c\nC: 3\n\nend' > box
	expect 0 foreachmail -H 'cat; echo =' < box
	is out 'From a\nA: 1\n 2\n\n=\nFrom b\nB: 2\n\n=\nFrom c\nC: 3\n\n=\n'
	expect 0 foreachmail -B 'cat; echo =' < box
	is out 'body\n\nmore\n\n=\n=\nend\n\n=\n'
	expect 0 foreachmail --headers cat < box
	[ "$(foreachmail -n < out)" -eq 3 ] # what -H gives is a mailbox again
	expect 0 foreachmail --body cat < box
	is out 'body\n\nmore\n\nend\n\n'
}

@test "the environment tells number, place and From line" {
	expect 0 foreachmail 'echo $FOREACHMAIL_NUMBER, "$FOREACHMAIL_FROM"
		tail -c +$((FOREACHMAIL_OFFSET + 1)) mbox | head -n 2 | tail -n 1' < mbox
	is out '1, ann@example.org Mon Jan  1 00:00:00 2024
From: Ann <ann@example.org>
2, bob@example.org Mon Jan  1 00:00:00 2024
From: Bob <bob@example.org>
3, cat@example.org Mon Jan  1 00:00:00 2024
From: Cat <cat@example.org>
'
}

@test "the From line in the environment ends at 1000 bytes, at NUL or at CR" {
	{
		printf 'Subject: no such line\n\n'
		printf 'From b\0c\nB: 2\n\nFrom d e\r\nD: 4\n\nFrom '
		head -c 2000 /dev/zero | tr '\0' x
		printf '\nE: 5\n\n'
	} > box
	expect 0 foreachmail -c 'printf "<%s>\n" "$FOREACHMAIL_FROM"' < box
	is out "<>\n<b>\n<d e>\n<$(head -c 1000 /dev/zero | tr '\0' x)>\n"
}

@test "-n counts, and runs nothing" {
	expect 0 foreachmail -n < mbox
	is out '3\n'
	expect 0 foreachmail -n < /dev/null
	is out '0\n'
}

# ---- the command ----

@test "words are words: no shell comes near them" {
	expect 0 foreachmail printf '<%s>' 'a  b' '$HOME;*' '' < mbox
	is out '<a  b><$HOME;*><><a  b><$HOME;*><><a  b><$HOME;*><>'
}

@test "one operand with blanks or characters of the shell is a command line" {
	expect 0 foreachmail "grep '^From:' | sed -e 's/^From: //' " < mbox
	is out 'Ann <ann@example.org>\nBob <bob@example.org>\nCat <cat@example.org>\n'
	expect 0 foreachmail 'echo<mbox>there' < mbox
	is there '\n'
}

@test "-c is a command line even without them, and its arguments are its own" {
	expect 0 foreachmail -c pwd < mbox
	is out "$PWD\n$PWD\n$PWD\n"
	expect 0 foreachmail --command 'echo "$0 $1:$2"' a 'b  -c' < mbox
	is out 'sh a:b  -c\nsh a:b  -c\nsh a:b  -c\n'
}

@test "the whole command line gets the message, not its first command" {
	expect 0 foreachmail 'rm -f file; cat > file; echo >> count' < mbox
	is file 'From cat@example.org Mon Jan  1 00:00:00 2024\nFrom: Cat <cat@example.org>\nSubject: third\n\nthree\n\n'
	is count '\n\n\n'
}

@test "the bodies by hand, with a loop in the shell" {
	expect 0 foreachmail 'i=0; while read l; do if [ "$l" = "" ]; then i=1; fi; if [ $i -gt 0 ]; then echo "$l"; fi; done;' < mbox
	is out '\none\n\n\ntwo\n\n\nthree\n\n'
}

@test "a command that does not read its message breaks nothing" {
	{ mailboxes big 3000000; cat mbox; mailboxes big 3000000; } > box
	expect 0 foreachmail true < box
	expect 0 foreachmail head -c 4 < box
	is out 'FromFromFromFromFrom'
	is err ''
}

@test "SIGPIPE is not ignored in the command: a broken pipe ends it" {
	expect 0 foreachmail -H 'perl -e '\''print $SIG{PIPE} // "default", "\n"'\' < mbox
	is out 'default\ndefault\ndefault\n'
	expect 0 foreachmail -c 'yes | head -n 1' < mbox
	is out 'y\ny\ny\n'
}

@test "no descriptor of foreachmail's own reaches the command" {
	for _ in 1 2 3; do ls /proc/self/fd; done > wanted < mbox
	expect 0 foreachmail ls /proc/self/fd < mbox
	cmp out wanted
}

# ---- when something fails ----

@test "without a command: how to use it, and 64" {
	expect 64 foreachmail < mbox
	is out ''
	grep -q '^usage: foreachmail .*COMMAND' err
}

@test "options that make no sense together, or at all, are refused with 64" {
	refused() {
		expect 64 foreachmail "$@" < mbox
		is out ''
		[ "$(wc -l < err)" -eq 1 ]
	}
	refused -H -B cat
	refused -n cat
	refused -n -c cat
	refused -n -e
	refused -n -q
	refused -x cat
	refused --nonesuch cat
	expect 64 foreachmail '' < mbox
}

@test "--help and --version" {
	expect 0 foreachmail --help
	grep -o -- ' --[a-z-]*' out | sort -u > options
	[ "$(wc -l < options)" -eq 8 ]
	sed 's/\\//g' "$SOURCE/contrib/foreachmail/foreachmail.1" > page
	while read -r option; do
		grep -q -e "^\.B.*$option" page || { echo "$option"; return 1; }
	done < options
	expect 0 foreachmail -V
	grep -q '^foreachmail (semlock) [0-9]' out
	[ -c /dev/full ]
	expect 74 sh -c '"$FOREACHMAIL" -h > /dev/full'
}

@test "a command that fails: one line each, the others run, and 1" {
	expect 1 foreachmail -c 'echo $FOREACHMAIL_NUMBER; exit $((FOREACHMAIL_NUMBER % 2 * 7))' < mbox
	is out '1\n2\n3\n'
	is err 'foreachmail: message 1: the command failed: exit status 7
foreachmail: message 3: the command failed: exit status 7\n'
}

@test "a command that a signal ends has failed" {
	expect 1 foreachmail -c 'kill -9 $$' < mbox
	[ "$(grep -c '^foreachmail: message [123]: the command failed: killed by signal 9' err)" -eq 3 ]
	[ "$(wc -l < err)" -eq 3 ]
}

@test "-q says nothing of commands that fail, but returns 1" {
	expect 1 foreachmail -q false < mbox
	is err ''
}

@test "-e stops at the first that fails" {
	expect 1 foreachmail -e -c 'echo $FOREACHMAIL_NUMBER; test $FOREACHMAIL_NUMBER -lt 2' < mbox
	is out '1\n2\n'
	is err 'foreachmail: message 2: the command failed: exit status 1\n'
}

@test "a command that is not there: one line, 127, and no second try" {
	expect 127 foreachmail no-such-command arg < mbox
	is err 'foreachmail: no-such-command: No such file or directory\n'
}

@test "a command that cannot be run: 126" {
	echo 'no program' > plain
	expect 126 foreachmail ./plain < mbox
	is err 'foreachmail: ./plain: Permission denied\n'
}

@test "input that cannot be read: 74" {
	expect 74 foreachmail cat < .
	is err 'foreachmail: standard input: Is a directory\n'
	expect 74 foreachmail -n < .
	expect 74 foreachmail cat <&-
	[ "$(wc -l < err)" -eq 1 ]
}

# ---- signals ----

# in_background COMMAND...: foreachmail gets signals as at a terminal; a script's & ignores INT and QUIT, nohup HUP
in_background() {
	perl -e '@SIG{qw(HUP INT QUIT TERM)} = ("DEFAULT") x 4; exec @ARGV or die' "$FOREACHMAIL" "$@" <&0 > out 2> err 3>&- 5>&- 6>&- &
	pid=$!
}

# hear FIFO: waits for a line; the FIFO is opened for both, so that -t covers the opening as well
hear() {
	read -r -t 60 line <> "$1"
}

# ./told: a command that reads its message, writes a line to the FIFO up, and stays until a signal ends the
# command; the signal is noted in log
make_told() {
	mkfifo up
	cat > told <<-'END'
		for my $signal (qw(HUP INT QUIT TERM)) {
			$SIG{$signal} = sub { open my $log, '>>', 'log';
				print $log "$ENV{FOREACHMAIL_NUMBER} $signal\n"; close $log; exit };
		}
		alarm 100; # no signal has ended the command
		1 while !$ENV{UNREAD} && <STDIN>;
		open my $up, '>', 'up'; print $up "ready\n"; close $up;
		sleep 60 while 1;
	END
}

@test "a signal reaches the command, and ends the whole program by that signal" {
	make_told
	for signal in HUP INT QUIT TERM; do
		rm -f log
		in_background perl told < mbox
		hear up
		[ "$line" = ready ]
		kill -s $signal "$pid"
		status=0
		wait "$pid" || status=$?
		[ "$status" -eq $((128 + $(kill -l $signal))) ]
		is log "1 $signal\n"
		is err ''
	done
}

@test "a signal while the input is awaited ends the program" {
	mkfifo input up
	exec 5<> input
	in_background -c 'echo ready > up; cat > got' < input
	printf 'From a\nA: 1\n\nhalf a mess' >&5
	hear up
	[ "$line" = ready ]
	kill -s TERM "$pid"
	status=0
	wait "$pid" || status=$?
	exec 5>&-
	[ "$status" -eq 143 ]
}

@test "a signal ends foreachmail and a command that does not read its input" {
	make_told
	mailboxes big 3000000 > box # more than the pipe takes
	UNREAD=1 in_background perl told < box
	hear up
	[ "$line" = ready ]
	kill -s TERM "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 143 ]
	is log '1 TERM\n'
}

@test "a command cut short by a signal never takes the part for the whole" {
	mkfifo input up
	exec 5<> input
	in_background -c 'echo ready > up; cat > part && mv part whole' < input
	printf 'From a\nA: 1\n\nhalf a mess' >&5
	hear up
	kill -s TERM "$pid"
	wait "$pid" || true
	exec 5>&-
	[ "$line" = ready ]
	[ ! -e whole ]
}

@test "a signal that was ignored at the start is ignored" {
	mkfifo up down
	perl -e '$SIG{HUP} = "IGNORE"; exec @ARGV or die' "$FOREACHMAIL" \
	    -c 'echo ready > up; read x < down; cat > /dev/null' < mbox > out 2> err 3>&- &
	pid=$!
	for _ in 1 2 3; do
		hear up
		kill -s HUP "$pid"
		echo > down
	done
	wait "$pid"
	is err ''
}

@test "SIGCHLD ignored at the start, or a strange child, disturbs nothing" {
	expect 1 perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV or die' timeout 60 "$FOREACHMAIL" \
	    -c 'test $FOREACHMAIL_NUMBER != 2' < mbox
	is err 'foreachmail: message 2: the command failed: exit status 1\n'
	# shellcheck disable=SC2016
	expect 0 timeout 60 sh -c 'false & exec "$FOREACHMAIL" cat < mbox'
	cmp out mbox
}

# ctrl_c COMMAND...: ^C is typed while `COMMAND catcher` has a part of a message; log says what happens
ctrl_c() {
	[ -n "${PROBE-}" ] || skip "make check has the program that types at a terminal"
	mkfifo up keys input
	exec 5<> keys 6<> input # opened before the other ends, so that no open waits
	cat > catcher <<-'END'
		sub note { open my $log, '>>', 'log'; print $log @_; close $log }
		$SIG{INT} = sub { note "INT\n" };
		alarm 100;
		my $from = <STDIN>;
		open my $up, '>', 'up'; print $up "ready\n"; close $up;
		1 while <STDIN>; # the input ends when all signals have been passed on
		note "end\n";
	END
	timeout 60 "$PROBE" pty sh -c 'exec "$FOREACHMAIL" "$@" catcher < input' sh "$@" \
	    < keys > out 2> err 3>&- 5>&- 6>&- &
	pid=$!
	printf 'From a\nA: 1\n\nhalf a mess' >&6
	hear up
	[ "$line" = ready ]
	echo 'send ^C' >&5
	exec 5>&-
	status=0
	wait "$pid" || status=$?
	exec 6>&-
	[ "$status" -eq 130 ]
}

@test "^C at the terminal ends all of it" {
	ctrl_c perl
	is log 'INT\nend\n'
}

@test "foreachmail does not pass on a Ctrl-C that the terminal sends to all" {
	ctrl_c setsid -w perl # the terminal's signal does not reach a session of its own
	is log 'end\n'
}

@test "the command inherits the signals that foreachmail blocks and ignores" {
	[ -e /proc/self/status ]
	for start in '' 'use POSIX; sigprocmask SIG_BLOCK, POSIX::SigSet->new(SIGUSR1, SIGTERM);' \
	    '@SIG{qw(PIPE HUP USR2)} = ("IGNORE") x 3;'; do
		expect 0 perl -e "$start"'exec @ARGV or die' grep 'Sig[BI]' /proc/self/status
		cat out out out | sed 's/:.*\(.......\)$/ \1/' > wanted
		expect 0 perl -e "$start"'exec @ARGV or die' "$FOREACHMAIL" \
		    grep 'Sig[BI]' /proc/self/status < mbox
		# the last seven digits: above them libc has signals of its own
		sed 's/:.*\(.......\)$/ \1/' out | cmp - wanted
	done
}

# ---- without end ----

@test "memory does not grow with the size or the number of messages" {
	[ -r /proc/self/status ]
	{ cat mbox; mailboxes big 60000000; mailboxes archive 200; cat mbox; } > box
	expect 0 foreachmail -c 'cat > /dev/null; echo $FOREACHMAIL_NUMBER \
		$(sed -n "s/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p" /proc/$PPID/status)' < box
	first=$(sed -n 's/^1 //p' out) last=$(sed -n 's/^207 //p' out)
	echo "$first kB, then $last kB"
	[ "$last" -lt $((first + 4000)) ]
}

@test "a message streams: the command reads its start before its end arrives" {
	mkfifo input up
	exec 5<> input
	in_background -c 'read from; read field; echo "$field" > up; cat' < input
	printf 'From a\nA: 1\n\n' >&5
	hear up
	[ "$line" = 'A: 1' ]
	printf 'more\n\n' >&5
	exec 5>&-
	wait "$pid"
	is out '\nmore\n\n'
}

# ---- the man page ----

# example N: the N-th example of the man page, as a person would type it
example() {
	awk -v n="$1" '/^\.EE/ { on = 0 } on { print } /^\.EX/ { on = ++i == n }' \
	    "$SOURCE/contrib/foreachmail/foreachmail.1" |
	    sed 's/\\-/-/g; s/\\(dq/"/g; s/\\(aq/'\''/g; s/\\(ga/`/g; s/\\e/\\/g' > example
	[ -s example ]
	expect 0 timeout 60 sh example
}

@test "examples of the man page: senders, bodies, a file each" {
	example 1
	is out 'Ann <ann@example.org>\nBob <bob@example.org>\nCat <cat@example.org>\n'
	example 2
	is out 'one\n\ntwo\n\nthree\n\n'
	example 4
	cat 1.eml 2.eml 3.eml | cmp - mbox
}

@test "examples of the man page: a mailbox for each day" {
	sed '/^From bob/s/Jan  1/Feb  3/' mbox > box
	mv box mbox
	TZ=UTC example 3
	grep '^Subject' spam.2024-01-01 > got
	is got 'Subject: first\nSubject: third\n'
	grep '^Subject' spam.2024-02-03 > got
	is got 'Subject: second\n'
	find . -name 'spam.*' > all
	[ "$(wc -l < all)" -eq 2 ]
}

@test "examples of the man page: bodies that came more than once" {
	sed 's/^three$/one/' mbox > box
	mv box mbox
	example 5
	printf 'one\n\n' | cksum | cmp - out
}

@test "examples of the man page: delivered anew" {
	cat > bin/procmail <<-'END'
		#!/bin/sh
		cat >> "$HOME/delivered"
	END
	chmod +x bin/procmail
	HOME=$PWD example 6
	cmp delivered mbox
	[ "$(grep -c '^\.EX' "$SOURCE/contrib/foreachmail/foreachmail.1")" -eq 6 ]
}
