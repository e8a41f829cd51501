#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Slips of the hand and of memory: one line names the word, says what is wrong with it, and what to do.
# shellcheck disable=SC2016 # the script is to expand it
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# slip STATUS ARGS... -- WORD REASON CURE: semlock ARGS ends with STATUS, runs nothing, and its one line has these.
slip() {
	local want=$1 words=()
	shift
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	refused "$want" "$1" "$SEMLOCK" "${words[@]}" || return
	for part in "$2" "$3"; do
		[[ $err == *"$part"* ]] || complain "semlock ${words[*]}" "nothing of '$part': $err" || return
	done
	[ ! -e ran ] || complain "semlock ${words[*]}" "the command was run"
	count=$((${count:-0} + 1))
}

NO_OPTION="unknown option"
NO_METHOD="unknown method"

@test "forty slips: each gets one line with the word, the reason and the cure" {
	slip 64 --wiat 5 L touch ran -- --wiat "$NO_OPTION" "did you mean --wait?"
	slip 64 --waitt=5 L touch ran -- --waitt=5 "$NO_OPTION" "did you mean --wait?"
	slip 64 --time-out 5 L touch ran -- --time-out "$NO_OPTION" "did you mean --timeout?"
	slip 64 --non-block L touch ran -- --non-block "$NO_OPTION" "did you mean --nonblock?"
	slip 64 --no-wait L touch ran -- --no-wait "$NO_OPTION" "did you mean --nonblock?"
	slip 64 --nowait L touch ran -- --nowait "$NO_OPTION" "did you mean --nonblock?"
	slip 64 --exlusive L touch ran -- --exlusive "$NO_OPTION" "did you mean --exclusive?"
	slip 64 --share L -- L "no command given" "only a descriptor number needs none"
	slip 64 --sharde L touch ran -- --sharde "$NO_OPTION" "did you mean --shared?"
	slip 64 --repalce L touch ran -- --repalce "$NO_OPTION" "did you mean --replace?"
	slip 64 --togle L touch ran -- --togle "$NO_OPTION" "did you mean --toggle?"
	slip 64 --methd=ofd L touch ran -- --methd=ofd "$NO_OPTION" "did you mean --method?"
	slip 64 --slot_s 3 L touch ran -- --slot_s "$NO_OPTION" "did you mean --slots?"
	slip 64 --queuemax 3 L touch ran -- --queuemax "$NO_OPTION" "did you mean --queue-max?"
	slip 64 --runtimeout 3 L touch ran -- --runtimeout "$NO_OPTION" "did you mean --run-timeout?"
	slip 64 --kill_after 3 L touch ran -- --kill_after "$NO_OPTION" "did you mean --kill-after?"
	slip 64 --nofork L touch ran -- --nofork "$NO_OPTION" "did you mean --no-fork?"
	slip 64 --comand L touch ran -- --comand "$NO_OPTION" "did you mean --command?"
	slip 64 --check L -- --check "$NO_OPTION" "semlock-check(1)"
	slip 64 --hodl L -- --hodl "$NO_OPTION" "did you mean --hold?"
	slip 64 --max-hold=1h L touch ran -- --max-hold=1h "$NO_OPTION" "did you mean --run-timeout?"
	slip 64 --priority L touch ran -- --priority "$NO_OPTION" "did you mean --first?"
	slip 64 --detach --run-timeout 1 L -- --detach "requires --hold=PID" "--hold and --run-timeout"
	slip 64 --keep-place -w 1 L -- --keep-place "requires" "--hold=PID --detach"
	exec 8>open
	slip 64 --hold=1 --detach 8 -- 8 "only the caller can hold a lock on its descriptor 8" "a file called 8 is ./8"
	slip 64 --held 8 -- 8 "only the caller can hold a lock on its descriptor 8" "a file called 8 is ./8"
	exec 8>&-
	slip 64 -timeout 5 L touch ran -- -t "$NO_OPTION" "did you mean --timeout?"
	slip 64 -k L touch ran -- -k "$NO_OPTION" "did you mean --kill-after?"
	slip 64 -m flok L touch ran -- flok "$NO_METHOD" "did you mean flock?"
	slip 64 -m of L touch ran -- "-m of" "$NO_METHOD" "did you mean ofd?"
	slip 64 -m mkidr L touch ran -- mkidr "$NO_METHOD" "did you mean mkdir?"
	slip 64 -m simlink L touch ran -- simlink "$NO_METHOD" "did you mean symlink?"
	slip 64 -m etcd L touch ran -- "-m etcd" "$NO_METHOD" "for a server, give a URL as LOCK"
	slip 64 --signal TREM --run-timeout 5 L touch ran -- TREM "invalid signal" "did you mean TERM?"
	slip 64 --replace=KIL L touch ran -- KIL "invalid signal" "did you mean KILL?"
	slip 64 --toggle=SEGV L touch ran -- SEGV "invalid signal" "USR2, WINCH, or a number"
	slip 64 --on-lost=wran -m excl L touch ran -- wran "neither \"warn\" nor a signal" "TERM"
	slip 64 touch -c ran x -- -c "exactly one argument" "the shell command"
	slip 64 tar -cf ran d -- -cf "begins with a dash" "is LOCK missing before tar?"
	slip 64 L -n touch ran -- -n "options must precede LOCK" "-- -n"
	slip 64 L --wait=5 touch ran -- --wait=5 "options must precede LOCK" "-- --wait=5"
	slip 64 ./m.lock -- ./m.lock "no command given" "only a descriptor number needs none"
	slip 64 -w 5x L touch ran -- 5x "invalid time" "500ms, 10s, 2m"
	slip 64 -w L touch ran -- L "invalid time" "500ms, 10s, 2m"
	slip 64 --mode=0999 L touch ran -- 0999 "invalid mode" "such as 0660"
	slip 64 -E 300 L touch ran -- 300 "invalid exit status" "0 to 255"
	slip 64 --fcntl -m flock L touch ran -- --fcntl "-m flock" "mutually exclusive"
	slip 64 "" touch ran -- LOCK "is empty" "unset variable?"
	slip 127 L "echo ran" -- "echo ran" "cannot run" "a shell command must follow -c"
	mkdir helpers
	touch helpers/semlock-locksmith-{etcd,ftp,postgresql}
	export SEMLOCK_LOCKSMITH_DIR=$PWD/helpers
	slip 69 ecd://h/x touch ran -- ecd://h/x "available: etcd ftp postgresql" "did you mean etcd://?"
	slip 69 --who fpt://h/x -- fpt://h/x "cannot start semlock-locksmith-fpt" "did you mean ftp://?"
	slip 69 gopher://h/x touch ran -- gopher://h/x "available: etcd ftp postgresql" "For a file, write ./NAME"
	[ "$count" -ge 49 ] || complain "only $count"
}

EMPTY="an empty file that was made just now"

@test "misplaced words: the message names LOCK, and the file created for it" {
	echo text >text
	for made in "$EMPTY" ""; do
		slip 127 touch2 hi -- hi "cannot run: not found in PATH" "(LOCK was touch2${made:+, }$made)"
		slip 127 -w 10 sec L touch ran -- L "cannot run: not found in PATH" "(LOCK was sec${made:+, }$made)"
		slip 127 --toggle L2 L touch ran -- L "cannot run" "(LOCK was L2${made:+, }$made)"
		slip 127 -n 5 L touch ran -- L "cannot run" "(LOCK was 5${made:+, }$made)"
		slip 127 -s L make_report -- make_report "not found in PATH" "(LOCK was L${made:+, }$made)"
		: >L # now a lock, which is no command that is here
	done
	slip 127 text make_report -- make_report "not found in PATH" "(LOCK was text)"
	slip 127 -m excl E make_report -- make_report "not found in PATH" "(LOCK was E)"
	slip 127 L ./make_report -- ./make_report "No such file or directory" "(LOCK was L)"
	printf '#!/no/such/shell\n' >script
	chmod +x script
	slip 127 L ./script -- ./script "cannot run" "bad interpreter"
	[ "$count" -ge 14 ]
}

@test "a value after a blank: it follows an equals sign, and is no LOCK" {
	slip 64 --replace KILL L touch ran -- "--replace KILL" "must follow an equals sign: --replace=KILL" "a file of this name is ./KILL"
	slip 64 --toggle USR1 L touch ran -- "--toggle USR1" "must follow an equals sign: --toggle=USR1" "./USR1"
	slip 64 --die-with-parent 1234 L touch ran -- "--die-with-parent 1234" "equals sign: --die-with-parent=1234" "./1234"
	slip 64 --hold 4242 --detach L -- "--hold 4242" "equals sign: --hold=4242" "./4242"
	slip 64 --hold=4242 --detach L touch ran -- --detach "runs no command" "--release"
	: >KILL
	expect_status 0 "$SEMLOCK" --replace KILL true
	expect_status 0 "$SEMLOCK" --replace ./TERM true
}

# other_words WORD...: SUGGESTION: each of these options of other tools is refused with that
other_words() {
	local word suggestion=${*: -1}
	for word in "${@:1:$#-1}"; do
		slip 64 "--$word" L touch ran -- "--$word" "$NO_OPTION" "$suggestion" || return
		[ "$word" = weight ] || slip 64 "--$word=5" L touch ran -- "--$word=5" "$NO_OPTION" "$suggestion" || return
	done
}

@test "options of other tools lead to the right one, abbreviations too" {
	other_words lock-timeout wait-timeout max-wait wait-for-lock "did you mean --wait?"
	other_words retry-lock retries "did you mean --wait?"
	other_words status info ls locks owners "did you mean --who?"
	other_words kill cancel break "did you mean --replace, or --release=ID?"
	other_words comment reason message "did you mean --note?"
	other_words unit "did you mean --name?"
	other_words acquire "--hold=PID --detach LOCK"
	other_words reserve renew owner claim "over several calls: --hold=PID --detach LOCK"
	other_words max-runtime max-age time-limit runtime-max "did you mean --run-timeout?"
	other_words limit count concurrency max-concurrent "did you mean --slots, or -j?"
	other_words weight quantity gpus "did you mean --take?"
	other_words coalesce debounce "did you mean --queue-max=1, or --supersede?"
	other_words cancel-in-progress "did you mean --supersede, or --replace?"
	other_words skip fail "did you mean --nonblock?"
	other_words silent "did you mean --quiet?"
	other_words exit-code "did you mean --conflict-exit-code, or -E?"
	other_words background daemon fork "the shell does that: semlock LOCK COMMAND &"
	other_words expire lease "did you mean --ttl?"
	other_words endpoints endpoint-url region "the URL or the environment gives it"
	slip 64 --unlock=ID L -- --unlock=ID "takes no argument" "did you mean --release=ID?"
	slip 64 -N 2 L touch ran -- -N "$NO_OPTION" "-j, the number of slots"
	slip 64 -S 3 L touch ran -- -S "$NO_OPTION" "-j, the number of slots"
	slip 64 -W 10 L touch ran -- -W "$NO_OPTION" "did you mean -w?"
	slip 64 -t 10 L touch ran -- -t "$NO_OPTION" "did you mean -w?"
	slip 64 -child-exit-code L touch ran -- -child-exit-code "$NO_OPTION" "exit status is always passed on"
	expect_status 0 "$SEMLOCK" -nh
	expect_status 0 "$SEMLOCK" --kill-a 5 --run-timeout=9 L true # other abbreviations are as ever
	slip 64 -m fcntl L touch ran -- fcntl "$NO_METHOD" "did you mean ofd?"
	slip 64 -m dotlock L touch ran -- dotlock "$NO_METHOD" "did you mean link?"
	slip 64 -m lockf L touch ran -- lockf "$NO_METHOD" "did you mean posix?"
	slip 64 -m pidfile L touch ran -- pidfile "$NO_METHOD" "did you mean excl?"
}

@test "subcommands of other tools: explained, unless such a program exists" {
	local word
	for word in acquire lock; do
		slip 127 $word no-such-job -- no-such-job "$word was taken for LOCK" "over several calls: semlock --hold=PID --detach LOCK"
		slip 64 $word -- $word "semlock has no subcommands" "over several calls: semlock --hold=PID --detach LOCK"
	done
	for word in release unlock; do
		slip 127 $word no-such-job -- no-such-job "$word was taken for LOCK" "semlock --release=ID LOCK"
	done
	for word in status list who; do
		slip 127 $word no-such-job -- no-such-job "$word was taken for LOCK" "semlock --who [LOCK]"
		slip 64 $word -- $word "semlock has no subcommands" "semlock --who [LOCK]"
	done
	slip 64 help -- help "semlock has no subcommands" "semlock --help"
	expect_status 0 "$SEMLOCK" lock true
	expect_status 0 "$SEMLOCK" status true
}

@test "a word of the shell as COMMAND: -c" {
	mkdir none # some systems have a program cd
	for word in cd export source ulimit umask set exec eval; do
		refused 127 "$word: cannot run: it is shell syntax; use semlock L -c '$word /tmp && ...'" \
			env PATH="$PWD/none" "$SEMLOCK" L $word /tmp
	done
	slip 127 L FOO=1 make -- FOO=1 "it is shell syntax; use" "semlock L env FOO=1 make"
	for word in if while for '{' '!'; do
		slip 127 L "$word" no-such -- "$word" "it is shell syntax; use" "semlock L -c '$word no-such"
	done
	slip 127 L shopt -- shopt "it is shell syntax; use" "semlock L -c 'shopt && ...'"
}

@test "an option or a lock that is not what it looks like" {
	slip 64 -n L -- L "no command given" "to lock the rest of a script: exec 8>>L; semlock -n 8"
	slip 64 etcd://h/x -- etcd://h/x "no command given" after
	[[ $err != *exec* ]] || complain "no shell opens a URL: $err"
	slip 64 -f L -- -f "adds to LOCK" "no LOCK was given"
	slip 64 --release L -- --release "requires an ID" "--release=ID LOCK"
	slip 64 --resume=4242-17-abc -- --resume "requires an ID" "--resume=ID LOCK"
	slip 64 --detach L touch ran -- --detach "requires" "--hold=PID, or --hold and --run-timeout"
	slip 64 --first s3://bucket/l touch ran -- --first "on a server" "in order only"
	slip 64 --json L -- --json "requires" --who
	slip 64 --json -- --json "requires" --who
	slip 64 --min-hold=0 L touch ran -- "--min-hold 0" "must be" "greater than 0"
	slip 64 --stale=0 -m excl L touch ran -- "--stale 0" "must be" "greater than 0"
	slip 64 -w=1 L touch ran -- -w=1 "write -w 1" "or --wait=1"
	slip 64 -nw=1 L touch ran -- -w=1 "write -w 1" "or --wait=1"
	slip 64 -j=3 L touch ran -- -j=3 "write -j 3" "or --slots=3"
	slip 64 --take=2 L touch ran -- --take "requires -j" "number of slots"
	slip 64 -j 2 --take=3 L touch ran -- --take "exceeds" "number of slots (-j)"
	slip 64 -j 2 -s L touch ran -- "-j and -s" "exactly one holder" "use -j or -s, not both"
	slip 65 99 -- 99 "not open" "use 3 to 9"
	touch file
	slip 66 -m mkdir file touch ran -- file "-m mkdir: that needs an unused name, or a directory" "nothing was changed"
	touch ./=2
	expect_status 0 "$SEMLOCK" -f =2 L true
}

@test "the number of an open descriptor before COMMAND: to lock it is --fd" {
	exec 8>>descriptor
	slip 64 8 touch ran -- 8 "to lock descriptor 8: --fd=8" "a file of this name is ./8"
	expect_status 0 "$SEMLOCK" ./8 true
	expect_status 0 "$SEMLOCK" 8 true # it is a file now
	expect_status 0 "$SEMLOCK" 7 true # no descriptor
	rm 8
	expect_status 0 "$FLOCK" 8 true
	[ -e 8 ]
	rm 8
	expect_status 0 "$SEMLOCK" --who 8
	[ "$(cat .err)" = "semlock: 8: taken as a file's name, not as a descriptor" ] || complain "$err"
	touch 8
	expect_status 0 "$SEMLOCK" --who 8
	[ ! -s .err ] || complain "$err"
	exec 8>&-
}

@test "what other tools call it" {
	for pair in jobs=--slots parallel=--slots permits=--slots semaphore=--slots list=--who watch=--who \
		try=--nonblock force=--replace steal=--replace max-time=--run-timeout maxtime=--run-timeout \
		read=--shared write=--exclusive retries=--wait retry=--wait sleep=--wait id=--name; do
		slip 64 "--${pair%=*}" L touch ran -- "--${pair%=*}: unknown" "$NO_OPTION" "did you mean ${pair#*=}"
		slip 64 "--${pair%=*}=3" L touch ran -- "--${pair%=*}=3" "$NO_OPTION" "did you mean ${pair#*=}"
	done
	for word in acquire lock lockfile bg; do
		slip 64 "--$word" L touch ran -- "--$word" "$NO_OPTION" "semlock LOCK COMMAND"
	done
	slip 64 --fg L touch ran -- --fg "$NO_OPTION" "in the foreground"
}

@test "-v says what runs, with its words" {
	expect_status 0 "$SEMLOCK" -v L sh -c 'exit 0' "$(printf 'x%.0s' {1..300})"
	grep -qxE "semlock: L: running sh -c exit 0 x{100,}\.\.\." .err || complain "$err"
	# the words before the last one fill the room to its end
	expect_status 0 "$SEMLOCK" -v L true "$(printf 'x%.0s' {1..234})" lost
	grep -qxE "semlock: L: running true x{200,}\.\.\." .err || complain "$err"
	expect_status 0 "$SEMLOCK" -v L true
	grep -qx "semlock: L: running true" .err || complain "$err"
}

@test "a script that locks itself, started by sh: start it as ./script" {
	printf '%s\n' 'exec semlock -n "$0" true' >sl.sh
	PATH=$(dirname "$SEMLOCK"):$PATH capture sh -c 'exec "$0" L sl.sh' "$SEMLOCK"
	[ "$status" -eq 127 ]
	[[ $err == "semlock: sl.sh: cannot run: not in PATH, but ./sl.sh exists" ]] || complain "$err"
}
