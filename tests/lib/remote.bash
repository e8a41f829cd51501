# SPDX-License-Identifier: MIT
# What the tests of locks on a server share: semlock with the helper of this build.
# shellcheck shell=bash disable=SC2034,SC1091 # used by the tests

# shellcheck source=tests/lib/locksmith.bash
source "$SOURCE/tests/lib/locksmith.bash"
# shellcheck source=tests/lib/helpers.bash
source "$SOURCE/tests/lib/helpers.bash"

prepare_remote() {
	have_locksmiths || skip "this build has no locks on a server (configure --with-network)"
	DIR=$PWD
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR HOME=$DIR
	unset NETRC SEMLOCK_CACERT SEMLOCK_USER SEMLOCK_PASSWORD
}

# too_busy WANT: expect_status tries again after 69: on a busy machine a server may not answer within the three
# seconds of -n, or of a short -w.
too_busy() {
	[ "$status" -eq 69 ] && [ "$1" -ne 69 ] && [[ $err == *"answer"*" in time"* ]]
}

# refused_within MS THING CMD...: status 69, THING in the message, and at most MS milliseconds, or on a slow machine
# SLOWNESS times as long.  One try in time is enough.
refused_within() {
	local end=$((SECONDS + PATIENCE)) most=$(($1 * SLOWNESS)) began took
	while :; do
		began=$(now)
		refused 69 "${@:2}" 2>.refused && took=$((($(now) - began) / 1000000)) && [ $took -lt $most ] && return
		[ $SECONDS -lt $end ] || complain "${*:3}" "${took:+$took ms}" "$(cat .refused)" || return
	done
}

# fake SCHEME: makes ./fake the directory of the helpers; standard input is the program for SCHEME.
fake() {
	mkdir -p fake
	cat >"fake/semlock-locksmith-$1"
	chmod +x "fake/semlock-locksmith-$1"
	export SEMLOCK_LOCKSMITH_DIR=$PWD/fake
}

# Prints the PID of the helper of the semlock called NAME.
helper_of() {
	local pid words
	for pid in $(children_of "$(children_of "${PID[$1]}")"); do
		mapfile -d '' words 2>/dev/null <"/proc/$pid/cmdline"
		if [[ ${words[*]} == *semlock-locksmith* ]]; then echo "$pid" && return; fi
	done
	return 1
}

# children_of PID: prints their PIDs; pgrep(1) would read the whole of /proc.
children_of() {
	local children
	if [ -e "/proc/$1/task/$1/children" ]; then
		read -ra children <"/proc/$1/task/$1/children" || [ ${#children[@]} -ne 0 ] && printf '%s\n' "${children[@]}"
	else
		pgrep -P "$1"
	fi
}

# gone PID: waits until the process has ended.
gone() { "$PROBE" gone "$1" "$LINE_SECONDS"; }

# with_system_certs DIRECTORY CMD...: the machine trusts the certificates in DIRECTORY alone.
with_system_certs() {
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount sh -c 'mount --bind "$0" /etc/ssl/certs && exec "$@"' "$@"
}

# only_cacert_counts URL: even where the machine trusts the authority that has signed for this server (DIR/ca.pem), the one in
# SEMLOCK_CACERT counts alone.
only_cacert_counts() {
	local certs=$PWD/system-certs
	namespaces --mount
	mkdir "$certs"
	cp "$DIR/ca.pem" "$certs/ca-certificates.crt"
	cp "$DIR/ca.pem" "$certs/$(openssl x509 -noout -hash -in "$DIR/ca.pem").0"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=another \
		-keyout another.key -out another.pem 2>/dev/null
	expect_status 0 with_system_certs "$certs" "$SEMLOCK" -n "$1" true
	SEMLOCK_CACERT=$PWD/another.pem refused 69 "name its authority" with_system_certs "$certs" "$SEMLOCK" -n "$1" touch never
	[ ! -e never ]
}

# waits_for NAME WORD: waits for WORD on its standard error.
waits_for() { in_file "$1.err" "$2"; }

# shifted SECS COMMAND...: with a wall clock that is off by SECS.
shifted() {
	local secs=$1
	shift
	env LD_PRELOAD="$PWD/shifted.so" CLOCK_SHIFT="$secs" "$@"
}

need_shifted_clocks() {
	"${CC:-cc}" -I "$LOCKSMITH_DIR" -shared -fPIC -o shifted.so "$SOURCE/tests/lib/shifted_clock.c" 2>/dev/null || skip "no compiler"
	if under_valgrind || [ $(($(shifted 3600 date +%s) - $(date +%s))) -lt 1800 ] ||
		[ "$("$SEMLOCK" --version)" != "$(shifted 1 "$SEMLOCK" --version 2>&1)" ]; then
		skip "no LD_PRELOAD with this build"
	fi
}

# held_by_one HOLDER OTHER...: the arguments are clock offsets of hosts, in seconds.  The job of the first host
# runs for a moment; with --min-hold the jobs of the others do not run, for longer than its lease.
held_by_one() {
	local holder=$1 other end ended=0
	shift
	: >runs
	start one env LD_PRELOAD="$PWD/shifted.so" CLOCK_SHIFT="$holder" \
		"$SEMLOCK" -n --ttl="$ttl" --min-hold=1h "${URL/nightly/nightly$ttl}" sh -c 'echo ran >>runs'
	eventually [ -s runs ] || return
	end=$(($(now) + ttl * 1500000000))
	while [ "$(now)" -lt $end ]; do
		for other; do
			expect_status 1 shifted "$other" \
				"$SEMLOCK" -n --ttl="$ttl" --min-hold=2 "${URL/nightly/nightly$ttl}" sh -c 'echo ran >>runs' || ended=1
			[ $ended -eq 0 ] || break 2
		done
	done
	kill -TERM "${PID[one]}"
	ended one 0 || return
	if [ $ended -ne 0 ] || [ "$(wc -l <runs)" -ne 1 ]; then complain "$(wc -l <runs) runs"; fi
}

# stray_under NAME COMMAND...: COMMAND runs the probe, and a process that nothing ties to the probe; the PID of that
# process is in NAME.stray.
stray_under() {
	local name=$1
	shift
	rm -f "$name.stray" "$name.up" "$name.down"
	fifos "$name"
	start "$name" "$@" sh -c "/usr/bin/python3 '$SOURCE/tests/lib/stray.py' $name.stray &&
		exec '$PROBE' hold $name.up $name.down"
	ready "$name"
}

# dead PID: the process has ended, at this moment.
dead() {
	local line
	[ -e "/proc/$1/status" ] || return 0
	while read -r line; do
		case $line in
		State:*[ZX]*"("*) return ;;
		State:*) complain "process $1 lives: $line" || return ;;
		esac
	done <"/proc/$1/status" || true
}

# inner NAME: prints the PID of the inner one of the two semlocks that NAME is.
inner() { children_of "${PID[$1]}"; }

# ends_with_semlock: kill -9 of either semlock ends the command, and what it has started; then the lock is free, long
# before the end of its lease.
ends_with_semlock() {
	local which pid
	for which in outer inner outer inner; do
		stray_under holder "$SEMLOCK" --ttl=300 "$URL"
		pid=${PID[holder]}
		[ $which = outer ] || pid=$(inner holder)
		kill -KILL "$pid"
		expect_status 0 "$SEMLOCK" -w 60 "$URL" sh -c "ps -o stat= -p ${COMMAND[holder]},$(cat holder.stray); true"
		none -qv Z .out || complain "after the $which one was killed: $out"
		ended holder 137
	done
}

# both_killed: kill -9 of both semlocks at once kills the command, and what it has started keeps the lock until it ends.
both_killed() {
	local both
	fifos holder
	fifos child
	start holder "$SEMLOCK" --ttl=300 "$URL" sh -c "'$PROBE' hold child.up child.down & exec '$PROBE' hold holder.up holder.down"
	PID[child]=${PID[holder]}
	ready holder
	ready child
	both=("$(inner holder)" "${PID[holder]}") # its parent's end would let the inner one go on
	kill -STOP "${both[@]}" # else one could see the other's end
	kill -KILL "${both[@]}"
	gone "${COMMAND[holder]}"
	expect_status 1 "$SEMLOCK" -n "$URL" true
	kill -0 "${COMMAND[child]}"
	release child
	expect_status 0 "$SEMLOCK" -w 60 "$URL" true
}

# runs_a_command: it has its input, and its status is semlock's.
runs_a_command() {
	expect_status 7 "$SEMLOCK" "$URL" sh -c 'exit 7'
	expect_silent
	printf 'some input' >input
	expect_status 0 "$SEMLOCK" "$URL" cat <input
	expect_out "some input"
}

# holds_against_others: the holder's command runs, and another's does not; -v names the holder.
holds_against_others() {
	hold_lock "$URL"
	expect_status 1 "$SEMLOCK" -n "$URL" touch ran
	expect_silent
	expect_status 9 "$SEMLOCK" -E 9 -w 0.3 "$URL" touch ran
	refused 1 "held by ${COMMAND[holder]} on " "$SEMLOCK" -v -n "$URL" touch ran
	[ ! -e ran ]
}

# waiter_gets_it URL: who waits for the holder that there is has its turn after it.
waiter_gets_it() {
	fifos waiter
	start waiter "$SEMLOCK" -v "$1" "$PROBE" hold waiter.up waiter.down
	waits_for waiter "waiting: held by ${COMMAND[holder]} on"
	let_go
	ready waiter
	let_go waiter
}

# who_names_both: the holder and who waits, in the table and in JSON.
who_names_both() {
	expect_status 0 "$SEMLOCK" --who "$URL"
	hold_lock "$URL"
	start waiter "$SEMLOCK" -v -s "$URL" true
	waits_for waiter "waiting: held by"
	expect_status 1 "$SEMLOCK" --who "$URL"
	grep -Eq "^held +${COMMAND[holder]} .* exclusive " .out
	grep -Eq "^ +1\. +${PID[waiter]} .* shared " .out
	expect_status 1 "$SEMLOCK" --who --json "$URL"
	/usr/bin/python3 - .out "${COMMAND[holder]}" "${PID[waiter]}" <<-'END'
		import json, sys
		lock = json.load(open(sys.argv[1]))[0]
		assert lock["held"] and lock["holders"][0]["pid"] == int(sys.argv[2])
		assert lock["waiters"][0]["pid"] == int(sys.argv[3])
	END
}

# no_answer_in_time: 69 as fast as promised from a server that says nothing.
no_answer_in_time() {
	local wait
	for wait in -n "-w .1"; do
		# shellcheck disable=SC2086 # two words
		refused_within 3000 "no answer in time" "$SEMLOCK" $wait "$URL" touch ran
	done
	refused_within 4500 "no answer in time" "$SEMLOCK" -w 3 "$URL" touch ran
}

# in_no_command_line SECRET: of any process.
in_no_command_line() {
	local process
	for process in /proc/[0-9]*/cmdline; do
		if grep -qa "$1" "$process" 2>/dev/null; then complain "in $process"; fi
	done
}

# stopped_waiter SECS: a semlock that waits is stopped (Ctrl-Z) and its turn comes: the next one is in after a lease and
# at most SECS, and when it goes on it has its turn again.
stopped_waiter() {
	local url=${URL/nightly/nightly$ttl} released
	rm -f ./*.up ./*.down
	hold_lock --ttl="$ttl" "$url" || return
	fifos stopped && fifos next
	start stopped "$SEMLOCK" -v --ttl="$ttl" "$url" "$PROBE" hold stopped.up stopped.down
	waits_for stopped "waiting: held by" || return
	start next "$SEMLOCK" -v --ttl="$ttl" "$url" "$PROBE" hold next.up next.down
	waits_for next "waiting: " || return
	kill -STOP "${PID[stopped]}" "$(inner stopped)"
	let_go
	released=$(now)
	ready next || return
	[ $(($(now) - released)) -lt $(((ttl + $1 * SLOWNESS) * 1000000000)) ] || complain "after $(($(now) - released)) ns" || return
	kill -CONT "$(inner stopped)" "${PID[stopped]}"
	let_go next && ready stopped && let_go stopped
}

# --min-hold holds the lock for its full time, and no longer because a wall clock is wrong.
clocks_differ() {
	local began
	need_shifted_clocks
	with_lease 2 held_by_one -1 1 3600
	with_lease 2 held_by_one 3600 0 -3600
	began=$(now)
	expect_status 0 shifted 3600 timeout 600 "$SEMLOCK" -n --min-hold=2 "$URL" true
	[ $(($(now) - began)) -ge 1900000000 ] || complain "held for $(($(now) - began)) ns"
}

# conforms ARG...: contrib/locksmith-test finds that all rules are kept.  One that a busy machine was late for is tried again,
# with a longer lease.  ttl: the first lease, in seconds, by default 3.
conforms() {
	local least=$((${ttl:-3} * PACE)) rule failed=0
	rules_kept $least "$@" >rules && return
	sed -n 's/^BROKEN  \([^:]*\).*/\1/p' rules >broken
	[ -s broken ] || complain "$(cat rules)" || return
	while IFS= read -r rule; do
		rules_kept $((3 * least)) --only="$rule" "$@" >again || rules_kept $((9 * least)) --only="$rule" "$@" >again ||
			complain "$(grep -v '^ok' again)" || failed=1
		grep '^ok' again >>rules
	done <broken
	return $failed
}

rules_kept() { timeout $((300 * SLOWNESS)) "$SOURCE/contrib/locksmith-test" --ttl="$1" "${@:2}" </dev/null; }
