# SPDX-License-Identifier: MIT
# What the tests of contrib/recipes share.
# shellcheck shell=bash disable=SC2154 # SOURCE, PROBE and PID are of helpers.bash

RECIPES=$SOURCE/contrib/recipes

# As for a user: the recipes are in the PATH, and the working directory is a home directory.
prepare() {
	PATH=$PWD/bin:$RECIPES:$PATH
	export HOME=$PWD
}

# stand NAME RECIPE ARGS...: runs the recipe with a command that waits for release; returns when the command
# runs.
stand() {
	local name=$1
	shift
	fifos "$name"
	start "$name" "$@" "$PROBE" hold "$name.up" "$name.down"
	ready "$name"
}

# The semlock that PID is, or that PID has started.
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

# self_lock_with LOCK METHOD: the recipe self-lock as ./mine, with another LOCK; METHOD, if any, is "-m METHOD".
self_lock_with() {
	sed -e "s|^lock=.*|lock=$1|" -e "s|semlock --held|& ${2-}|; s|exec semlock -n|& ${2-}|" -e '1a set -eu' "$RECIPES/self-lock" >mine
	chmod +x mine
}

# Fails unless ./mine runs alone, also when started under an outer lock, and returns its status.
self_lock_excludes() {
	stand one ./mine
	expect_status 1 ./mine touch ran
	expect_status 1 "$SEMLOCK" outer.lock ./mine touch ran
	[ ! -e ran ]
	let_go one
	expect_status 3 "$SEMLOCK" outer.lock ./mine sh -c 'exit 3'
	expect_status 0 ./mine true
	rm one.up one.down
}
