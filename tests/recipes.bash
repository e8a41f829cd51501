# What the tests of contrib/recipes share.
# shellcheck shell=bash disable=SC2154 # SOURCE, PROBE and PID are of helpers.bash

RECIPES=$SOURCE/contrib/recipes

# As a user would have them: in the PATH, and a home directory to work in.
prepare() {
	PATH=$PWD/bin:$RECIPES:$PATH
	export HOME=$PWD
}

# stand NAME RECIPE ARGS...: runs it with a command that stands still; returns when that runs.
stand() {
	local name=$1
	shift
	fifos "$name"
	start "$name" "$@" "$PROBE" hold "$name.up" "$name.down"
	ready "$name"
}

# The semlock that PID is, or has started.
semlock_of() {
	local child
	if [ "$(cat "/proc/$1/comm")" = semlock ]; then
		echo "$1"
		return
	fi
	for child in $(pgrep -P "$1"); do
		! semlock_of "$child" || return 0
	done
	return 1
}

# behind NAME RECIPE ARGS...: the same as stand, but returns when its semlock sleeps, waiting.
behind() {
	local name=$1 pid end=$((SECONDS + PATIENCE))
	shift
	fifos "$name"
	start "$name" "$@" "$PROBE" hold "$name.up" "$name.down"
	until pid=$(semlock_of "${PID[$name]}" 2>/dev/null); do
		[ $SECONDS -lt $end ] || complain "$name does not wait" "$(cat "$name.err")" || return
	done
	"$PROBE" blocked "$pid"
}
