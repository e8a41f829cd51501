# What the tests of locks on a server share: semlock with the helper of this build.
# shellcheck shell=bash disable=SC2034,SC1091 # used by the tests

# shellcheck source=tests/lib/locksmith.bash
source "$SOURCE/tests/lib/locksmith.bash"
# Both have an "ended"; here it is the one that looks at the status.
# shellcheck source=tests/lib/helpers.bash
source "$SOURCE/tests/lib/helpers.bash"
unset -f smith expect until_line tell unlock smiths_stop_all run_smith

prepare_remote() {
	have_locksmiths || skip "this build has no locks on a server (configure --with-network)"
	DIR=$PWD
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR HOME=$DIR
	unset NETRC SEMLOCK_CACERT SEMLOCK_USER SEMLOCK_PASSWORD
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
	local holder=$1 other end
	shift
	: >runs
	start one env LD_PRELOAD="$PWD/shifted.so" CLOCK_SHIFT="$holder" \
		"$SEMLOCK" -n --ttl=2 --min-hold=1h "$URL" sh -c 'echo ran >>runs'
	eventually [ -s runs ]
	end=$(($(now) + 3000000000))
	while [ "$(now)" -lt $end ]; do
		for other; do expect_status 1 shifted "$other" "$SEMLOCK" -n --ttl=2 --min-hold=2 "$URL" sh -c 'echo ran >>runs'; done
	done
	kill -TERM "${PID[one]}"
	ended one 0
	[ "$(wc -l <runs)" -eq 1 ] || complain "$(wc -l <runs) runs"
}

# The lock is held for so long, and not for so long by a wrong clock.
clocks_differ() {
	local began
	need_shifted_clocks
	held_by_one -1 1 3600
	held_by_one 3600 0 -3600
	began=$(now)
	expect_status 0 shifted 3600 timeout 600 "$SEMLOCK" -n --min-hold=2 "$URL" true
	[ $(($(now) - began)) -ge 1900000000 ] || complain "held for $(($(now) - began)) ns"
}
