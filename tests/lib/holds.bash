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

# A stopped keeper goes on, to see the end of its owner.  The holds work in the directory /, where no watchdog looks for them.
holds_tidy() {
	local one
	[ -z "${id-}" ] || kill -CONT "$(keeper)" 2>/dev/null || true
	for one in "${owners[@]}"; do kill -KILL "$one" 2>/dev/null || true; done
}

# keeper, holder: the processes of hold $id
keeper() {
	echo "${id%%-*}"
}

holder() {
	pgrep -P "$(keeper)"
}

# hold ARGS...: one call, by a shell that ends; sets $id.
hold() {
	expect_status 0 sh -c '"$@"; exit $?' - "$SEMLOCK" --hold="$owner" --detach "$@"
	id=${out#OK id=}
	id=${id%% *}
	[[ $out =~ ^OK\ id=[0-9]+-[0-9]+-[0-9a-f]{8}( |$) ]] || complain "it said '$out'" "$err"
}

# processes_of_hold: the keeper of hold $id, its holder, and what that has started: the placeholder, and a helper
processes_of_hold() {
	local holder
	holder=$(holder)
	echo "$(keeper) $holder $(pgrep -P "$holder" | tr '\n' ' ')"
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

# kept_over_calls LOCK: taken in one call and released in another, which are processes of their own, however the first one is
# started: with other standard descriptors or none, under nohup and setsid, and at a terminal that is hung up then.
kept_over_calls() {
	local lock=$1 how
	new_owner
	for how in '"$@"' '"$@" </dev/null 2>&1' '"$@" <&- 2>&-' 'nohup "$@" 2>&1' 'setsid -w "$@"' terminal; do
		if [ "$how" = terminal ]; then
			/usr/bin/python3 - "$SEMLOCK" "--hold=$owner" "$lock" >said 3>&- 4>&- <<-'END'
				import os, pty, sys
				pid, terminal = pty.fork()
				if pid == 0:
				    os.execv(sys.argv[1], [sys.argv[1], sys.argv[2], "--detach", sys.argv[3]])
				print(os.read(terminal, 1000).decode(), end="")
				os.waitpid(pid, 0)
				os.close(terminal)
			END
		else
			sh -c "$how >said" - "$SEMLOCK" --hold="$owner" --detach "$lock" 3>&- 4>&-
		fi
		id=$(tr -d '\r' <said | sed -n 's/^OK id=\([^ ]*\).*/\1/p')
		[ -n "$id" ] || complain "$how: it said '$(cat said)'" || return
		expect_status 1 sh -c '"$@"; exit $?' - "$SEMLOCK" -n "$lock" true || return
		expect_status 0 sh -c '"$@"; exit $?' - "$SEMLOCK" --release="$id" "$lock" || return
		expect_silent || return
		expect_status 0 "$SEMLOCK" -n "$lock" true || return
	done
}

# ends_with_its_processes LOCK OPTION...: the end of PID, and of a process of the hold, are the end of the hold; and a process
# of PID's is told that it would wait for itself.
ends_with_its_processes() {
	local lock=$1 which
	shift
	new_owner
	hold "$@" "$lock"
	kill_owner
	expect_status 0 "$SEMLOCK" -w 60 "$lock" true || return
	eventually nothing_left || return
	for which in 1 2; do
		new_owner
		hold "$@" "$lock"
		kill -KILL "$(processes_of_hold | cut -d' ' -f$which)"
		expect_status 0 "$SEMLOCK" -w 60 "$lock" true || return
		refused 76 "ended" "$SEMLOCK" --release="$id" "$lock" || return
		kill_owner
		eventually nothing_left || return
	done
	capture bash -c '"$0" --hold=$$ --detach "$1" >said; "$0" "$1" touch ran' "$SEMLOCK" "$lock"
	[[ $status:$err == "64:"*"held for your own process "* ]] || complain "$status: $err"
}

# holds_on_a_server URL: all of it, with a lease
holds_on_a_server() {
	holds_prepare
	kept_over_calls "$1" || return
	ends_with_its_processes "$1" --ttl=3 || return
	holds_tidy
}

# keeps_a_place_on_a_server URL: a time-out keeps the place, in its order; it is resumed, and released; the end of PID ends it
keeps_a_place_on_a_server() {
	local url=$1 pids place
	holds_prepare
	new_owner
	hold_lock "$url"
	expect_status 1 "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0.5 "$url" || return
	place=${out#WAITING id=}
	[[ $out =~ ^WAITING\ id=[0-9]+-[0-9]+-[0-9a-f]{8}$ ]] || complain "it said '$out'" || return
	start later "$SEMLOCK" -v "$url" touch ran
	eventually test -s later.err || return
	expect_status 1 "$SEMLOCK" --resume="$place" -n "$url" || return
	expect_out "WAITING id=$place" || return
	expect_status 1 "$SEMLOCK" --resume="$place" -w 0.5 "$url" || return
	let_go || return
	expect_status 0 "$SEMLOCK" --resume="$place" -w 60 "$url" || return
	[[ $out == "OK id=$place token="* ]] || complain "it said '$out'" || return
	[ ! -e ran ] || complain "the later one ran before" || return
	expect_status 1 "$SEMLOCK" -n "$url" true || return
	expect_status 0 "$SEMLOCK" --release="$place" "$url" || return
	ended later 0 || return
	[ -e ran ] || return

	hold_as again "$url"
	expect_status 1 "$SEMLOCK" --hold="$owner" --detach --keep-place -w 0.1 "$url" || return
	place=${out#WAITING id=}
	pids="${place%%-*} $(pgrep -P "${place%%-*}")"
	kill_owner
	# shellcheck disable=SC2086 # several words
	gone $pids || return
	let_go again || return
	expect_status 0 "$SEMLOCK" -w 60 "$url" true || return
	holds_tidy
}
