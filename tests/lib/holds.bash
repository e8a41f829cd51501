# SPDX-License-Identifier: MIT
# Holds in the background (--hold=PID --detach): take, and look at.
# shellcheck shell=bash disable=SC2034 # used by the tests

# new_owner: a process for which a lock is held: $owner.
new_owner() {
	sleep infinity >owner.out 2>&1 3>&- 4>&- &
	owner=$!
	owners+=("$owner")
}

kill_owner() {
	kill -KILL "$owner"
	wait "$owner" 2>/dev/null || true
}

holds_prepare() {
	owners=()
}

# The holds work in the directory /, where no watchdog looks for them.
holds_tidy() {
	local one
	for one in "${owners[@]}"; do kill -KILL "$one" 2>/dev/null || true; done
}

# hold ARGS...: one call, by a shell that ends; sets $id.
hold() {
	expect_status 0 sh -c '"$@"; exit $?' - "$SEMLOCK" --hold="$owner" --detach "$@"
	id=${out#OK id=}
	id=${id%% *}
	[[ $out =~ ^OK\ id=[0-9]+-[0-9]+-[0-9a-f]{8}( |$) ]] || complain "it said '$out'" "$err"
}

# processes_of_hold: keeper, holder and placeholder of hold $id
processes_of_hold() {
	local holder
	holder=$(pgrep -P "${id%%-*}")
	echo "${id%%-*} $holder $(pgrep -P "$holder")"
}

# gone PID...: none of them is left
gone() {
	local pid
	for pid; do "$PROBE" gone "$pid"; done
}

# nothing_left: no process of a hold for $owner is there
nothing_left() {
	! pgrep -f -- "--hold=$owner --detach" >/dev/null
}
