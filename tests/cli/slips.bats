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

NO_OPTION="there is no such option"
NO_METHOD="there is no such method"

@test "forty slips: each gets one line with the word, the reason and the cure" {
	slip 64 --wiat 5 L touch ran -- --wiat "$NO_OPTION" "did you mean --wait?"
	slip 64 --waitt=5 L touch ran -- --waitt=5 "$NO_OPTION" "did you mean --wait?"
	slip 64 --time-out 5 L touch ran -- --time-out "$NO_OPTION" "did you mean --timeout?"
	slip 64 --non-block L touch ran -- --non-block "$NO_OPTION" "did you mean --nonblock?"
	slip 64 --no-wait L touch ran -- --no-wait "$NO_OPTION" "did you mean --nonblock?"
	slip 64 --nowait L touch ran -- --nowait "$NO_OPTION" "did you mean --nonblock?"
	slip 64 --exlusive L touch ran -- --exlusive "$NO_OPTION" "did you mean --exclusive?"
	slip 64 --share L -- L "what to run is missing" "a descriptor's number may stand alone"
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
	slip 64 -timeout 5 L touch ran -- -t "$NO_OPTION" "did you mean --timeout?"
	slip 64 -k L touch ran -- -k "$NO_OPTION" "see --help"
	slip 64 -m flok L touch ran -- flok "$NO_METHOD" "did you mean flock?"
	slip 64 -m of L touch ran -- "-m of" "$NO_METHOD" "did you mean ofd?"
	slip 64 -m mkidr L touch ran -- mkidr "$NO_METHOD" "did you mean mkdir?"
	slip 64 -m simlink L touch ran -- simlink "$NO_METHOD" "did you mean symlink?"
	slip 64 -m etcd L touch ran -- "-m etcd" "$NO_METHOD" "a server is named by a URL in place of LOCK"
	slip 64 --signal TREM --run-timeout 5 L touch ran -- TREM "not a signal" "did you mean TERM?"
	slip 64 --replace=KIL L touch ran -- KIL "not a signal" "did you mean KILL?"
	slip 64 --toggle=SEGV L touch ran -- SEGV "not a signal" "USR2, WINCH, or a number"
	slip 64 --on-lost=wran -m excl L touch ran -- wran "not \"warn\"" "TERM"
	slip 64 touch -c ran x -- -c "exactly one string" "the shell command"
	slip 64 tar -cf ran d -- -cf "begins with a dash" "is LOCK missing before tar?"
	slip 64 L -n touch ran -- -n "options stand before LOCK" "-- -n"
	slip 64 L --wait=5 touch ran -- --wait=5 "options stand before LOCK" "-- --wait=5"
	slip 64 ./m.lock -- ./m.lock "what to run is missing" "a descriptor's number may stand alone"
	slip 64 -w 5x L touch ran -- 5x "not a number of seconds" "500ms, 10s, 2m"
	slip 64 -w L touch ran -- L "not a number of seconds" "500ms, 10s, 2m"
	slip 64 --mode=0999 L touch ran -- 0999 "not octal permissions" "such as 0660"
	slip 64 -E 300 L touch ran -- 300 "not an exit status" "0 to 255"
	slip 64 --fcntl -m flock L touch ran -- --fcntl "two methods" "choose one"
	slip 64 "" touch ran -- LOCK "an empty word" "is a variable not set?"
	slip 127 L "echo ran" -- "echo ran" "cannot run" "a shell command stands behind -c"
	mkdir helpers
	touch helpers/semlock-locksmith-{etcd,ftp,postgresql}
	export SEMLOCK_LOCKSMITH_DIR=$PWD/helpers
	slip 69 ecd://h/x touch ran -- ecd://h/x "there are: etcd ftp postgresql" "did you mean etcd://?"
	slip 69 --who fpt://h/x -- fpt://h/x "cannot start semlock-locksmith-fpt" "did you mean ftp://?"
	slip 69 gopher://h/x touch ran -- gopher://h/x "there are: etcd ftp postgresql" "A file of this name is ./NAME"
	[ "$count" -ge 43 ] || complain "only $count"
}

@test "a script that locks itself, started by sh: start it as ./script" {
	printf '%s\n' 'exec semlock -n "$0" true' >sl.sh
	PATH=$(dirname "$SEMLOCK"):$PATH capture sh -c 'exec "$0" L sl.sh' "$SEMLOCK"
	[ "$status" -eq 127 ]
	[[ $err == "semlock: sl.sh: cannot run: "*"start it as ./sl.sh" ]] || complain "$err"
}
