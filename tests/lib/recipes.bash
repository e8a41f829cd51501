# SPDX-License-Identifier: MIT
# What the tests of contrib/recipes share.
# shellcheck shell=bash disable=SC2154 # SOURCE, PROBE and PID are of helpers.bash

RECIPES=$SOURCE/contrib/recipes

# As for a user: the recipes are in the PATH, and the working directory is a home directory.
prepare() {
	PATH=$PWD/bin:$RECIPES:$PATH
	for name in held-too-long loud-after lock-metrics lock-report; do
		ln -s "$RECIPES/$name" "bin/semlock-${name#lock-}" # as they are installed
	done
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

# sleeping NAME: returns when its semlock sleeps, waiting.
sleeping() {
	local pid end=$((SECONDS + PATIENCE))
	until pid=$(semlock_of "${PID[$1]}" 2>/dev/null); do
		[ $SECONDS -lt $end ] || complain "$1 does not wait" "$(cat "$1.err")" || return
	done
	"$PROBE" blocked "$pid"
}

# behind NAME RECIPE ARGS...: the same as stand, but returns when its semlock sleeps, waiting.
behind() {
	local name=$1
	shift
	fifos "$name"
	start "$name" "$@" "$PROBE" hold "$name.up" "$name.down"
	sleeping "$name"
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

# ---- apt ----

# A package database of the test's own.  If there are FIFOs, the installation of its package waits at them.
packages() {
	export DPKG_ADMINDIR=$PWD/dpkg APT_CONFIG=$PWD/apt.conf
	mkdir -p dpkg/info dpkg/updates dpkg/triggers inst apt/state/lists/partial apt/cache/archives/partial apt/log pkg/DEBIAN
	: >dpkg/status
	printf '%s\n' 'Package: sample' 'Version: 1' 'Architecture: all' \
		'Maintainer: nobody <nobody@example.org>' 'Description: nothing' >pkg/DEBIAN/control
	printf '#!/bin/sh\n[ ! -e "%s/dpkg.up" ] || exec "%s" hold "%s/dpkg.up" "%s/dpkg.down"\n' \
		"$PWD" "$PROBE" "$PWD" "$PWD" >pkg/DEBIAN/preinst
	chmod 755 pkg/DEBIAN pkg/DEBIAN/preinst
	dpkg-deb --root-owner-group -b pkg sample.deb >/dev/null
	DPKG=(dpkg "--admindir=$PWD/dpkg" "--instdir=$PWD/inst" "--log=$PWD/dpkg.log"
		--force-script-chrootless --force-not-root --force-bad-path)
	# no configuration of this machine, and no hook of its own
	cat >apt.conf <<-END
		Dir::Etc "$PWD/apt/none";
		Dir::Etc::main "/dev/null";
		Dir::Etc::parts "/dev/null";
		Dir::State "$PWD/apt/state";
		Dir::State::status "$PWD/dpkg/status";
		Dir::Cache "$PWD/apt/cache";
		Dir::Log "$PWD/apt/log";
		APT::Sandbox::User "";
		DPkg::Lock::Timeout "0";
		DPkg::Options { "--admindir=$PWD/dpkg"; "--instdir=$PWD/inst"; "--log=$PWD/dpkg.log";
			"--force-script-chrootless"; "--force-not-root"; "--force-bad-path"; };
	END
}

installed() {
	dpkg-query "--admindir=$PWD/dpkg" -W -f '${db:Status-Status}' sample 2>/dev/null | grep -qx installed
}

# ---- semlock-recipes(7) ----

# recipe HEADING N: the Nth example under HEADING.  Its locks are in the test's directory, that of a --name too.
recipe() {
	page_text "$SOURCE/man/semlock-recipes.7" | locks_here | awk -v heading="$1" -v wanted="$2" '
		/^\.S[HS] / { n = 0 }
		/^\.S[HS] / { inside = substr($0, 5) == heading }
		/^\.EE/ { shown = 0 }
		shown
		/^\.EX/ { shown = inside && ++n == wanted }' |
		sed "s#/nfs/jobs/#$PWD/#g; s#/var/lib/dpkg/#$PWD/#g; s#/srv/locks/#$PWD/#g" | grep .
}

# yaml EXPRESSION FILE: prints EXPRESSION of FILE's contents, d, each item of a list on a line
yaml() {
	/usr/bin/python3 -c '
import sys, yaml
with open(sys.argv[2]) as file:
    d = yaml.safe_load(file)
found = eval(sys.argv[1])
print(*found if isinstance(found, list) else [found], sep="\n")' "$@"
}

# holding PROGRAM...: programs that wait for release, under the NAME that the caller has given
holding() {
	local name
	for name; do
		program "bin/$name" '[ -n "$NAME" ] || exit 3; exec "$PROBE" hold "$NAME.up" "$NAME.down"'
	done
}

# begin NAME SCRIPT: the script, whose program is one of those above
begin() {
	fifos "$1"
	NAME=$1 start "$1" sh -c "$2"
}

# has_a_waiter LOCK METHOD
has_a_waiter() {
	! "$SEMLOCK" --who -m "$2" "$1" >.who 2>&1 || return
	grep -q ', 1 waiting' .who
}

# in_turn SCRIPT [CMD...]: a second run waits, which CMD tells, for the first one's end.
in_turn() {
	begin first "$1"
	ready first
	begin second "$1"
	if [ $# -gt 1 ]; then eventually "${@:2}"; else sleeping second; fi
	let_go first
	ready second
	let_go second
	rm first.* second.*
}

# An agent: a process that stays, and runs each line that it reads with a shell of its own.
agent() {
	mkfifo calls answers
	start agent bash -c 'while read -r line <&5; do bash -c "$line; exit" >.call 2>&1; echo $? >&6; done' 5<>calls 6<>answers
	exec 5<>calls 6<>answers
}

agent_says() {
	printf '%s\n' "$1" >&5
	read -r -t "$PATIENCE" answer <&6 || complain "no answer to: $1"
}
