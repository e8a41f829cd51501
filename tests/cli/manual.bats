#!/usr/bin/env bats
# What semlock(1) and --help say is what the program does.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	page=$SOURCE/man/semlock.1
	# the words of the page without their typography
	sed -e 's/\\-/-/g; s/\\f[A-Z]//g; s/\\&//g; s/\\e/\\/g' "$page" >words
}

# section NAME: its lines
section() {
	awk -v name="$1" '/^\.SH / { inside = $0 == ".SH " name } inside' words
}

long_options() {
	grep -oE -- '--[a-z][a-z-]+' | sort -u
}

known_options() {
	sed -nE 's/.*\{"([a-z-]+)", (no|required|optional)_argument.*/--\1/p' "$SOURCE/src/cli/options.c" | sort -u
}

# same WHAT A B: two lists of words are the same
same() {
	[ -s "$2" ] && [ -s "$3" ] || complain "$1: one of the lists is empty" || return
	diff "$2" "$3" >.diff || complain "$1 ($2 <, $3 >):" "$(cat .diff)"
}

@test "the manual has every option of the program, and no other" {
	known_options >program
	section OPTIONS | sed '/^\.BR flock/d' | long_options >manual
	same "long options" program manual
}

@test "--help has every option of the program, and no other" {
	known_options >program
	"$SEMLOCK" --help | long_options >help
	same "long options" program help
}

@test "--help and the manual have the same short options" {
	"$SEMLOCK" --help | grep -oE '^ +-[A-Za-z](, -[A-Za-z])*' | grep -oE -- '-[A-Za-z]' | sort -u >help
	section OPTIONS | grep -E '^\.B[IR]? "?-[A-Za-z]' | sed -E 's/--[a-z-]+//g' |
		grep -oE -- '-[A-Za-z]\b' | sort -u >manual
	same "short options" help manual
}

@test "--help fits on a terminal of 80 columns" {
	"$SEMLOCK" --help | awk 'length > 80' >wide
	[ ! -s wide ] || complain "$(cat wide)"
}

@test "every option in --help is known to the program" {
	expect_status 64 "$SEMLOCK" --no-such-option l true
	unknown=$err
	for option in $("$SEMLOCK" --help | long_options); do
		capture "$SEMLOCK" "$option" </dev/null
		[ "$err" != "${unknown//--no-such-option/$option}" ] || complain "$option is unknown"
	done
}

@test "every option of flock(1) is known" {
	system=$(system_flock)
	[ -n "$system" ] || skip "no util-linux flock on this machine"
	"$system" --help | long_options >theirs
	known_options >ours
	comm -23 theirs ours >missing
	[ ! -s missing ] || complain "missing: $(cat missing)"
}

@test "the exit statuses in the manual are those in exitcode.h" {
	grep -oE 'EXIT_[A-Z]+ = [0-9]+' "$SOURCE/src/report/exitcode.h" | grep -oE '[0-9]+$' | sort -n >header
	section '"EXIT STATUS"' >status
	section 'EXIT STATUS' >>status
	grep -oE '^\.B [0-9]+$' status | grep -oE '[0-9]+' | sort -n >manual
	same "exit statuses" header manual
}

@test "the methods in the manual are those in --help" {
	"$SEMLOCK" --help | sed -n '/^METHOD/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p' | sort >help
	section METHODS | awk '/^\.TP/ { getline; print $2 }' | sort >manual
	same methods help manual
}

@test "the environment in the manual is the one that the command gets" {
	section ENVIRONMENT | grep -oE '^\.B SEMLOCK_[A-Z]+' | cut -d' ' -f2 | sort -u >manual
	{
		"$SEMLOCK" l env
		"$SEMLOCK" -j 2 slot.l env
		echo SEMLOCK_TOKEN # from a server: remote-etcd.bats
	} | grep -oE '^SEMLOCK_[A-Z]+' | sort -u >given
	same environment manual given
}

# examples: the blocks of the section EXAMPLES, as files example.1, example.2 ..., which
# work in this directory instead of /tmp and /run/lock, and find "semlock" here.
examples() {
	section EXAMPLES | awk '/^\.EE/ { inside = 0 } inside { print > ("example." n) } /^\.EX/ { inside = 1; n++ }'
	sed -i -e "s|/tmp/|$PWD/|g; s|/run/lock/|$PWD/|g" -e 's|^[*0-9/]* [*] [*] [*] [*] *||' example.*
	mkdir data
	seq 3 >table
	printf '#!/bin/sh\nexit 0\n' >bin/make-report
	chmod +x bin/make-report
	PATH=$PWD/bin:$PATH
}

@test "the examples in the manual work, in sh and in bash" {
	examples
	[ -e example.5 ]
	for example in example.*; do
		for shell in dash bash; do
			{
				echo "#!$(command -v $shell)"
				cat "$example"
			} >script
			chmod +x script
			expect_status 0 ./script
			[ ! -s .err ] || complain "$(cat "$example")" "said: $err"
		done
	done
}

@test "the examples of a script that locks itself refuse a second run" {
	examples
	mapfile -t own < <(grep -l 'exec semlock' example.*)
	[ ${#own[@]} -eq 2 ]
	export PROBE
	for example in "${own[@]}"; do
		{
			echo '#!/bin/sh'
			cat "$example"
			echo '"$PROBE" hold holder.up holder.down'
		} >script
		chmod +x script
		fifos holder
		start holder ./script
		ready holder
		expect_status 1 ./script
		let_go
		rm holder.up holder.down
	done
}

@test "the example for cron is silent, and fine, while the lock is held" {
	examples
	cron=$(grep -l 'make-report' example.*)
	hold_lock report.lock
	rm bin/make-report
	expect_status 0 sh "$cron"
	expect_silent
	let_go
}

@test "the page is without faults" {
	command -v mandoc >/dev/null || command -v groff >/dev/null || skip "neither mandoc nor groff is here"
	if command -v mandoc >/dev/null; then
		mandoc -Tlint -Wwarning "$page"
	else
		[ -z "$(groff -man -Tascii -ww -z "$page" 2>&1)" ]
	fi
}

@test "--version is the version of the page" {
	version=$("$SEMLOCK" --version)
	[[ $version == semlock*[0-9].[0-9]* ]]
	grep -q "\"semlock ${version##* }\"" words
}
