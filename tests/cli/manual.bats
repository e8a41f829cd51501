#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The program does what the manual and --help say.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/demo

prepare() {
	PAGES=$(echo "$SOURCE"/man/semlock*.[17])
}

# words PAGE: the page without its typography
words() {
	page_text "$(find "$SOURCE/man" "$SOURCE/contrib/foreachmail" -name "$1")"
}

# section PAGE NAME: the lines of that section
section() {
	words "$1" | awk -v name="$2" '/^\.SH / { inside = $0 == ".SH " name } inside'
}

long_options() {
	grep -oE -- '--[a-z][a-z-]+' | sort -u
}

known_options() {
	sed -nE 's/^OPTION\([A-Z_]+, "[a-zA-Z]*", "([a-z -]+)",.*/\1/p' "$SOURCE/src/cli/options.def" |
		tr ' ' '\n' | sed 's/^/--/' | sort -u
}

# same WHAT A B: two lists of words are the same
same() {
	[ -s "$2" ] && [ -s "$3" ] || complain "$1: one of the lists is empty" || return
	diff "$2" "$3" >.diff || complain "$1 ($2 <, $3 >):" "$(cat .diff)"
}

@test "every page and every module names the version of the program" {
	version=$("$SEMLOCK" --version)
	cd "$SOURCE"
	grep -L "^\.TH .*\"$version\"" man/*.[17] contrib/foreachmail/*.1 >"$BATS_TEST_TMPDIR/old" || true
	grep -LE "(VERSION|version__) = [\"']${version#* }[\"']" contrib/perl/lib/Semlock/*.pm contrib/python/semlock.py \
		>>"$BATS_TEST_TMPDIR/old" || true
	grep -L "(semlock) ${version#* }" contrib/foreachmail/foreachmail contrib/semlock-check >>"$BATS_TEST_TMPDIR/old" || true
	[ ! -s "$BATS_TEST_TMPDIR/old" ] || complain "another version: $(cat "$BATS_TEST_TMPDIR/old")"
	head -n 1 man/semlock.1 man/semlock-methods.7 | grep -c "^'.. t$" | grep -qx 2 # or man(1) would not call tbl(1)
}

@test "the manual has every option of the program, and no other" {
	known_options >program
	section semlock.1 OPTIONS | sed '/^\.BR flock/d' | long_options >manual
	same "long options" program manual
}

@test "--help has every option of the program, and no other" {
	known_options >program
	"$SEMLOCK" --help | long_options >help
	same "long options" program help
}

@test "--help and the manual have the same short options" {
	"$SEMLOCK" --help | grep -oE '^ +-[A-Za-z](, -[A-Za-z])*' | grep -oE -- '-[A-Za-z]' | sort -u >help
	section semlock.1 OPTIONS | grep -E '^\.B[IR]? "?-[A-Za-z]' | sed -E 's/--[a-z-]+//g' |
		grep -oE -- '-[A-Za-z]\b' | sort -u >manual
	same "short options" help manual
}

@test "--help has one option a line, and fits on two screens of 80 columns" {
	"$SEMLOCK" --help >help
	[ "$(grep -cE '^ +-' help)" -eq "$(grep -c '^OPTION(' "$SOURCE/src/cli/options.def")" ] || complain "$(cat help)" || return
	grep -E '^ +-' help | grep -vE '^ +(-.(, )?)*--[^ ]+(, --[^ ]+)*( STRING)?  +[^ ]' >odd || true
	[ ! -s odd ] || complain "$(cat odd)" || return
	[ "$(wc -l <help)" -le 100 ] || complain "$(wc -l <help) lines" || return
	awk 'length > 80' help >wide
	[ ! -s wide ] || complain "$(cat wide)"
}

@test "--help ends with three examples, which work" {
	"$SEMLOCK" --help | tail -n 3 | sed -n "s,^  \(semlock .*[^ ]\)   *.*,\1,p" | locks_here >examples
	[ "$(wc -l <examples)" -eq 3 ] || complain "$(cat examples)" || return
	PATH=$PWD/bin:$PATH
	while read -r example; do
		expect_status 0 sh -c "$example" </dev/null || return
	done <examples
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

@test "the exit statuses in the manual are those in error.h" {
	grep -oE 'EXIT_[A-Z]+ = [0-9]+' "$SOURCE/src/report/error.h" | grep -oE '[0-9]+$' | sort -n >header
	section semlock.1 'EXIT STATUS' >status
	grep -oE '^\.B [0-9]+$' status | grep -oE '[0-9]+' | sort -n >manual
	same "exit statuses" header manual
}

@test "the table of methods matches --help and the options that each honours" {
	"$SEMLOCK" --help | sed -n 's/; made of files://; s/^METHOD: //p' | tr ' ' '\n' | sort >help
	words semlock-methods.7 | awk -F'\t' 'NF > 4 && $2 ~ /^(yes|no)$/' >table
	cut -f1 table | sort >manual
	same methods help manual
	exec 8>>descriptor
	while IFS=$'\t' read -r method shared slots start descriptor _; do
		honours "$shared" "$method" -s l true
		honours "$slots" "$method" -j 2 l true
		honours "$start" "$method" --start 5 l true
		honours "$descriptor" "$method" 8
	done <table
	exec 8>&-
}

# honours yes|no METHOD ARGUMENT...
honours() {
	local want=$1 method=$2
	shift 2
	rm -rf l
	[ "$want" = yes ] && want=0 || want=64
	expect_status "$want" "$SEMLOCK" -m "$method" "$@"
}

@test "the environment in the manual is the one that the command gets" {
	section semlock-scripting.7 ENVIRONMENT | grep -oE '^\.B SEMLOCK_[A-Z]+' | cut -d' ' -f2 | sort -u >manual
	{
		"$SEMLOCK" l env
		"$SEMLOCK" -j 2 slot.l env
		echo SEMLOCK_TOKEN # from a server: postgresql.bats
	} | grep -oE '^SEMLOCK_[A-Z]+' | sort -u >given
	same environment manual given
}

# The rows of the two tables beside flock(1): what, flock(1), semlock, with tabs between them.
flock_rows() {
	{
		section semlock.1 'COMING FROM FLOCK'
		section semlock-compared.7 'FLOCK(1)'
	} | awk '/^\.TS/ { inside = 1 } /^\.TE/ { inside = 0 }
		inside && /^[^.\t]+\t.*\t/ && !/T[{}]/ { print; next }
		inside && !/^(\.|T[{}]|l[w ]|\t)/ { printf "%s%s", $0, ++n % 3 ? "\t" : "\n" }'
}

# row CELL STATUS PROGRAM ARGUMENT...: CELL names STATUS, and PROGRAM ends with STATUS
row() {
	local cell=$1 want=$2
	[[ " $cell" =~ [^0-9]$want([^0-9]|$) ]] || complain "'$cell' is not $want" || return
	shift 2
	expect_status "$want" "$@"
}

@test "COMING FROM FLOCK: what a status can show is so, and the rest has a test" {
	system=$(system_flock)
	[ -n "$system" ] || skip "no util-linux flock on this machine"
	mkfifo fifo
	: >gone
	exec 8<gone
	rm gone
	flock_rows >rows
	[ "$(wc -l <rows)" -eq 27 ] || complain "$(cat rows)"
	while IFS=$'\t' read -r what theirs ours; do
		case $what in
		"-w 10s, 2m, 1h")
			row "$theirs" 64 "$system" -w 10s l true
			for program in "$FLOCK" "$SEMLOCK"; do
				for time in 10s 2m 1h; do expect_status 0 "$program" -w $time l true; done
			done
			;;
		"-w 0x10, inf")
			row "$theirs" 71 "$system" -w inf l true
			expect_status 0 "$system" -w 0x10 l true
			for program in "$FLOCK" "$SEMLOCK"; do
				for time in 0x10 inf; do row "$ours" 64 "$program" -w $time l true; done
			done
			;;
		"a FIFO as LOCK")
			[ "$theirs" = hangs ]
			expect_status 124 timeout .3 "$system" -n fifo true
			for program in "$FLOCK" "$SEMLOCK"; do row "$ours" 66 "$program" -n fifo true; done
			;;
		"LOCK -- COMMAND")
			row "$theirs" 69 "$system" l -- true
			for program in "$FLOCK" "$SEMLOCK"; do expect_status 0 "$program" l -- true; done
			;;
		"COMMAND cannot be run")
			for program in "$FLOCK" "$system"; do row "$theirs" 69 "$program" l nosuch; done
			row "$ours" 127 "$SEMLOCK" l nosuch
			row "$ours" 126 "$SEMLOCK" l /etc/passwd
			;;
		"COMMAND empty, or begins with a dash")
			for command in '' -x; do
				for program in "$FLOCK" "$system"; do row "$theirs" 69 "$program" l "$command" x; done
				row "$ours" 64 "$SEMLOCK" l "$command" x
			done
			;;
		"8 COMMAND, with descriptor 8 open and no file 8")
			for program in "$FLOCK" "$system"; do
				expect_status 3 "$program" 8 sh -c 'exit 3'
				rm 8
			done
			row "$ours" 64 "$SEMLOCK" 8 sh -c 'exit 3'
			;;
		"-n -s, a writer waits")
			hold_as reader -s l
			settle_as writer l
			for program in "$FLOCK" "$SEMLOCK"; do row "$ours" 1 "$program" -n -s l true; done
			row "$theirs" 0 "$system" -n -s l true
			let_go reader
			ready writer
			let_go writer
			;;
		"LOCK empty")
			for program in "$FLOCK" "$system"; do row "$theirs" 66 "$program" '' true; done
			row "$ours" 64 "$SEMLOCK" '' true
			;;
		"-u LOCK COMMAND")
			for program in "$FLOCK" "$system"; do expect_status 3 "$program" -u l sh -c 'exit 3'; done
			row "$ours" 64 "$SEMLOCK" -u l true
			;;
		"-w -1")
			for program in "$FLOCK" "$system"; do row "$theirs" 71 "$program" -w -1 l true; done
			row "$ours" 64 "$SEMLOCK" -w -1 l true
			;;
		"FD of a deleted file")
			for program in "$FLOCK" "$system"; do expect_status 0 "$program" 8; done
			row "$ours" 65 "$SEMLOCK" 8
			;;
		"LOCK is inherited")
			for program in "$FLOCK" "$system"; do
				expect_status 124 "$program" l timeout .3 "$program" l true
			done
			row "$ours" 64 "$SEMLOCK" l "$SEMLOCK" l true
			;;
		"signal to it") tested run/signals ;;
		"TERM to its group") tested run/group-kill ;;
		"order of waiters") tested lock/order ;;
		"-o, then KILL") tested run/close ;;
		"rm LOCK at the end") tested lock/deleted ;;
		"-w, SIGALRM blocked") tested lock/timeout ;;
		"others' link in /tmp" | "stdin is closed") tested lock/hostile ;;
		"a directory on NFS") tested methods/network-file-systems ;;
		"environment") tested run/environment ;;
		"a URL as LOCK") tested lock/reject ;;
		"--verbose" | "messages begin with") tested cli/drop-in ;;
		"a busy lock") tested run/waiting-line ;;
		*) complain "no test for the row: $what" ;;
		esac
	done <rows
	exec 8<&-
}

tested() {
	[ -s "$SOURCE/tests/$1.bats" ]
}

# examples PAGE: its blocks between .EX and .EE, as files example.1, example.2, ...  Their locks are in this directory;
# semlock and the commands are found in bin, and the helper of a lock on a server is contrib/locksmith-demo.
examples() {
	rm -f example.*
	words "$1" | locks_here | sed "s#^PATH=#PATH=$PWD/bin:#" | awk '/^\.EE/ { inside = 0 } inside { print > ("example." n) } /^\.EX/ { inside = 1; n++ }'
	[ "$(grep -c '^\.EX' "$SOURCE/man/$1")" -eq "$(find . -name 'example.*' | wc -l)" ]
	mkdir -p data
	seq 3 >table
	for name in bin/make-report bin/job job; do
		program $name 'exit 0'
	done
	[ -d helpers ] || demo_helpers etcd postgresql rediss s3 sftp ssh
	PATH=$PWD/bin:$PATH
}

run_examples() {
	local example shell
	examples "$1"
	for example in example.*; do
		for shell in dash bash; do
			command -v "$shell" >/dev/null || skip "no $shell on this machine"
			{
				echo "#!$(command -v "$shell")"
				cat "$example"
			} >script
			chmod +x script
			rm -f hold.in hold.out
			expect_status 0 ./script
			[ ! -s .err ] || complain "$shell" "$(cat "$example")" "said: $err"
		done
	done
}

# shown OPTION: as it is written, with a value where it needs one
shown() {
	case $1 in
	-f) echo "-f other.l" ;;
	-j) echo "-j 3" ;;
	--fd) echo "--fd=8" ;;
	--name) echo "--name=x" ;;
	"a URL") echo URL ;;
	"made of files") echo "-m excl" ;;
	--mode | --start | --length | --ttl | --queue-max | --min-hold | --run-timeout) echo "$1=7" ;;
	--on-lost) echo "--on-lost=TERM" ;;
	--log) echo "--log=log" ;;
	*) printf '%s\n' "$1" ;;
	esac
}

@test "the options that exclude each other: each pair of the table is refused" {
	words semlock-scripting.7 | sed -n '/^\.SH OPTIONS THAT EXCLUDE/,/^\.TE/p' | awk '/^l lw/ { inside = 1; next } /^\.TE/ { exit }
		inside { gsub(/T[{}]/, ""); printf "%s%s", $0 !~ /\t/ ? " " : n++ ? "\n" : "", $0 } END { print "" }' >rows
	[ "$(wc -l <rows)" -ge 10 ] || complain "$(cat rows)" || return
	exec 8>descriptor
	pairs=0
	while IFS=$'\t' read -r left right; do
		right=${right/ (but with --older)/}
		while read -r one; do
			while read -r other; do
				other=${other# }
				read -ra words <<<"$(shown "$one") $(shown "$other")"
				lock=(l)
				case " ${words[*]} " in *' URL '*) lock=(demo://h/l) words=("${words[@]/URL/}") ;; *" --name="* | *" --fd="*) lock=() ;; esac
				[[ ${words[0]} ]] || words=("${words[@]:1}")
				[[ ${words[-1]} ]] || unset 'words[-1]'
				expect_status 64 "$SEMLOCK" "${words[@]}" "${lock[@]}" true || return
				[[ $err != *"unknown "* && $err != *"option "*argument* ]] || complain "$err" || return
				pairs=$((pairs + 1))
			done <<<"${right//, /$'\n'}"
		done <<<"${left//, /$'\n'}"
	done <rows
	exec 8>&-
	[ $pairs -ge 40 ] || complain "$pairs pairs"
}

@test "the examples of semlock(1) work" {
	run_examples semlock.1
	[ -e example.7 ]
}

@test "the example of semlock-hold(7) works" {
	run_examples semlock-hold.7
	[ "$out" = "the lock is held" ] || complain "$out"
}

@test "the examples of semlock-faq(7) work" {
	for name in index migrate server; do
		program $name 'exit 0'
	done
	git init -q . 2>/dev/null || mkdir .git
	HOME=$PWD run_examples semlock-faq.7
	[ "$(cat .daily)" = "$(date +%F)" ]
}

@test "the examples of servers' pages work, with an engine without a server" {
	for page in servers etcd postgresql redis s3 ssh ftp; do
		run_examples semlock-$page.7 || return
	done
}

@test "the example of semlock-locksmith(7) works, with such an engine" {
	examples semlock-servers.7
	section semlock-locksmith.7 EXAMPLE | sed -n "s,^\$ sleep 10 | /usr/libexec,sleep .1 | $PWD/helpers,p" >script
	[ "$(wc -l <script)" -eq 1 ]
	expect_status 0 sh script
	section semlock-locksmith.7 EXAMPLE | grep -oE '^(LOCKSMITH|OK|FREE)\b' >manual
	grep -oE '^[A-Z]+' .out >said
	same "what the program says" said manual
}

@test "the example of a script that locks itself refuses a second run" {
	examples semlock.1
	{
		echo '#!/bin/sh'
		cat "$(grep -l 'exec semlock' example.*)"
		echo '"$PROBE" hold holder.up holder.down'
	} >script
	chmod +x script
	export PROBE
	fifos holder
	start holder ./script
	ready holder
	expect_status 1 ./script
	let_go
}

@test "the example for cron is silent, and fine, while the lock is held" {
	examples semlock.1
	cron=$(grep -l 'make-report' example.*)
	hold_lock report.lock
	rm bin/make-report
	expect_status 0 sh "$cron"
	expect_silent
	let_go
}

@test "the pages are without faults" {
	command -v mandoc >/dev/null || command -v groff >/dev/null || skip "neither mandoc nor groff is here"
	for page in $PAGES; do
		if command -v mandoc >/dev/null; then
			mandoc -Tlint "$page" || complain "$page"
		else
			[ -z "$(groff -t -man -Tascii -ww -z "$page" 2>&1)" ]
		fi
	done
}

@test "semlock(1) fits in 400 lines, examples in 300; no page is too wide" {
	command -v groff >/dev/null || skip "no groff is here"
	for page in $PAGES; do
		GROFF_NO_SGR=1 groff -t -man -Tascii -rLL=78n "$page" 2>complaints | col -bx >shown
		[ ! -s complaints ] || complain "$(cat complaints)"
		awk 'length > 80' shown >wide
		[ ! -s wide ] || complain "$page: $(cat wide)"
		! command -v mandoc >/dev/null || mandoc -Tascii -O width=80 "$page" | col -bx | awk 'length > 80' >wide
		[ ! -s wide ] || complain "$page, by mandoc: $(cat wide)"
		[[ $page == */semlock.1 ]] || continue
		[ "$(wc -l <shown)" -le 400 ] || complain "$(wc -l <shown) lines"
		[ "$(grep -n '^EXAMPLES' shown | cut -d: -f1)" -lt 300 ]
	done
}

@test "all pages but the engines' have at most 21,000 words together" {
	command -v mandoc >/dev/null || skip "no mandoc on this machine"
	for page in $PAGES; do
		is_engine "${page##*/}" || mandoc -Tascii "$page" | col -bx
	done | wc -w >count
	[ "$(cat count)" -le 21000 ] || complain "$(cat count) words"
}

# A page says ".nr HY 0" twice: groff 1.22 heeds it before .TH, groff 1.24 after it.
@test "no word is hyphenated at a line's end: what a page shows can be copied" {
	command -v groff >/dev/null || skip "no groff is here"
	for page in $PAGES; do
		GROFF_NO_SGR=1 groff -t -man -Tutf8 -rLL=60n "$page" | grep '‐$' >hyphenated || continue
		complain "$page: $(head -3 hyphenated)"
	done
}

# The words that an asker types, and the page whose NAME has to have them.
@test "apropos finds the right page for cron, mutex, lease, PgBouncer, ..." {
	command -v mapropos >/dev/null && command -v makewhatis >/dev/null || skip "no apropos of mandoc on this machine"
	mkdir -p manual/man1 manual/man7
	cp "$SOURCE"/man/*.1 manual/man1
	cp "$SOURCE"/man/*.7 manual/man7
	makewhatis manual
	while read -r word page; do
		mapropos -M manual "$word" >found || complain "$word: no page" || return
		grep -qF "$page " found || complain "$word:" "$(cat found)" || return
	done <<-'END'
		cron semlock-recipes(7)
		mutex semlock(1)
		semaphore semlock(1)
		lock semlock(1)
		queue semlock(1)
		lease semlock-servers(7)
		distributed semlock-servers(7)
		pgbouncer semlock-postgresql(7)
		runner semlock-hold(7)
		NFS semlock-methods(7)
		metrics semlock-who(7)
	END
}

# is_engine PAGE: it is about one engine, and comes with that one's helper
is_engine() {
	[ -d "$SOURCE/src/locksmith/$(basename "${1#semlock-}" .7)" ]
}

@test "each page of the manual names the others, and each reference exists" {
	for page in $PAGES; do
		words "${page##*/}" | grep -oE '\bsemlock-[a-z0-9]+ ?\([17]\)|^\.BR semlock-[a-z0-9]+' | grep -oE 'semlock-[a-z0-9]+' | sort -u |
			while read -r name; do
				[ -e "$SOURCE/man/$name.7" ] || [ -e "$SOURCE/man/$name.1" ] || [[ $name == semlock-locksmith* ]] || echo "$page: $name"
			done
	done >missing
	[ ! -s missing ] || complain "$(cat missing)"
	for page in $PAGES; do
		name=${page##*/}
		package=semlock from=semlock.1
		if is_engine "$name"; then
			package=${name%.7} from=semlock-servers.7
			package=semlock-locksmith-${package#semlock-}
		fi
		[ "$name" = semlock.1 ] || section $from 'SEE ALSO' | grep -q "${name%.*}" || complain "$from does not name $name" || return
		grep -q "man/$name" "$SOURCE/man/local.mk" || complain "man/local.mk does not name $name" || return
		grep -q "/$name" "$SOURCE/contrib/packaging/debian/$package.manpages" || complain "$package lacks $name" || return
	done
}

@test "--version is the version of the page" {
	version=$("$SEMLOCK" --version)
	[[ $version == semlock*[0-9].[0-9]* ]]
	for page in $PAGES; do
		grep -q "\"semlock ${version##* }\"" "$page" || complain "$page"
	done
}
