# What the tests of locks on a server share: semlock with the helper of this build.
# shellcheck shell=bash disable=SC2034,SC1091 # used by the tests

# shellcheck source=tests/lib/locksmith.bash
source "$SOURCE/tests/lib/locksmith.bash"
# Both have an "ended"; here it is the one that looks at the status.
# shellcheck source=tests/lib/helpers.bash
source "$SOURCE/tests/lib/helpers.bash"
unset -f smith expect until_line tell unlock smiths_stop_all run_smith fill drain

prepare_remote() {
	have_locksmiths || skip "this build has no locks on a server (configure --with-network)"
	DIR=$PWD
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR HOME=$DIR
	unset NETRC SEMLOCK_CACERT SEMLOCK_USER SEMLOCK_PASSWORD
}

# expect_status N CMD...: as in helpers.bash.  But a server that has no turn on a busy machine within the three seconds
# of -n, or of a short -w, is 69, and is asked again.
expect_status() {
	local want=$1 end=$((SECONDS + PATIENCE))
	shift
	capture "$@"
	while [ "$status" -eq 69 ] && [ "$want" -ne 69 ] && [[ $err == *"answer"*" in time"* ]] && [ $SECONDS -lt $end ]; do
		capture "$@"
	done
	[ "$status" -eq "$want" ] ||
		complain "$*" "ended with $status instead of $want" "stdout: $out" "stderr: $err"
}

# refused_within MS THING CMD...: with 69, THING in its message, and in so many milliseconds.  On a busy machine it may
# be late: it has to be so once.
refused_within() {
	local end=$((SECONDS + PATIENCE)) began took
	while :; do
		began=$(now)
		refused 69 "${@:2}" 2>.refused && took=$((($(now) - began) / 1000000)) && [ $took -lt "$1" ] && return
		[ $SECONDS -lt $end ] || complain "${*:3}" "${took:+$took ms}" "$(cat .refused)" || return
	done
}

# fake SCHEME: the helpers are in ./fake from here on, and that of SCHEME is standard input.
fake() {
	mkdir -p fake
	cat >"fake/semlock-locksmith-$1"
	chmod +x "fake/semlock-locksmith-$1"
	export SEMLOCK_LOCKSMITH_DIR=$PWD/fake
}

# The helper of the semlock called NAME.
helper_of() {
	pgrep -P "${PID[$1]}" -f semlock-locksmith
}

# gone PID: waits until the process has ended.
gone() {
	local end=$((SECONDS + LINE_SECONDS))
	while kill -0 "$1" 2>/dev/null && [ "$(ps -o stat= -p "$1" | cut -c1)" != Z ]; do
		((SECONDS < end)) || complain "process $1 does not end" || return
		read -r -t 0.02 <> <(:) || true
	done
}

# waits_for NAME WORD: its standard error says WORD.
waits_for() { in_file "$1.err" "$2"; }

# shifted SECS COMMAND...: with a wall clock that is wrong by so much.
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

# held_by_one HOLDER OTHER...: the clocks of some hosts are wrong by so many seconds; the first one's job runs, for a
# moment, and with --min-hold those of the others do not, for longer than its lease.
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

# A holder whose semlock is killed has the lock of a server until its command ends, for longer than its lease.
kept_for_the_command() {
	local url=${URL/nightly/nightly$ttl}
	rm -f holder.up holder.down ran
	hold_lock --ttl="$ttl" "$url" || return
	kill -KILL "${PID[holder]}"
	ended holder 137 && expect_status 1 "$SEMLOCK" -w $((2 * ttl)) "$url" touch ran || return
	kill -0 "${COMMAND[holder]}" && [ ! -e ran ] || return
	release holder
	expect_status 0 "$SEMLOCK" -w 60 "$url" touch ran
}

# The lock is held for so long, and not for so long by a wrong clock.
clocks_differ() {
	local began
	need_shifted_clocks
	with_lease 2 held_by_one -1 1 3600
	with_lease 2 held_by_one 3600 0 -3600
	began=$(now)
	expect_status 0 shifted 3600 timeout 600 "$SEMLOCK" -n --min-hold=2 "$URL" true
	[ $(($(now) - began)) -ge 1900000000 ] || complain "held for $(($(now) - began)) ns"
}
