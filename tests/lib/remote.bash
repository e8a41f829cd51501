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
