# SPDX-License-Identifier: MIT
# An agent: ROUNDS times three calls (take the lock l, work, release it), of which something is killed at a random moment.
# It writes a line for each round into "rounds", what it had of the lock into "spans" (begin, end, agent), and into "faults"
# what must not be.
# shellcheck shell=bash
: "${SEMLOCK:?}" "${ROUNDS:?}" "${AGENT:?}"
RANDOM=$((AGENT * 7919 + ROUNDS))

pause() { sleep ".0$((RANDOM % 40 + 10))"; }
now() { echo "$EPOCHREALTIME"; }

# end NAME: the line of the round
end() {
	echo "$1 $AGENT $round" >>rounds
}

# is_busy: a plain semlock is so slow that a second is no measure here
is_busy() {
	local began=${EPOCHREALTIME/./}
	"$SEMLOCK" "free$AGENT" true
	[ $((${EPOCHREALTIME/./} - began)) -gt 200000 ]
}

# nothing_left: a second after the end of PID no process of the hold is there
nothing_left() {
	local began=${EPOCHREALTIME/./}
	while pgrep -f -- "--hold=$owner --detach" >/dev/null; do
		sleep .01
		if [ $((${EPOCHREALTIME/./} - began)) -gt 1000000 ] && ! is_busy; then
			echo "round $round of $AGENT, $kind: $(pgrep -af -- "--hold=$owner --detach" | tr '\n' ';')" >>faults
			return
		fi
	done
}

# process WHICH: of the hold: 1 its keeper, 2 its holder, 3 its placeholder
process() {
	local pid=${id%%-*} n
	for ((n = 1; n < $1; n++)); do pid=$(pgrep -P "$pid"); done
	echo "$pid"
}

one_round() {
	local said='' id begin finish status
	"$SEMLOCK" --hold="$owner" --detach -w 60 l >"said$AGENT" 2>"err$AGENT" &
	call=$!
	case $kind in
	call) pause && kill -KILL $call ;;
	early) pause && kill -KILL "$owner" ;;
	esac
	wait $call
	status=$?
	begin=$(now)
	said=$(<"said$AGENT") id=${said#OK id=}
	if [ -z "$said" ]; then
		[ "$kind" = call ] || [ "$kind" = early ] || echo "round $round of $AGENT: not taken: $status $(<"err$AGENT")" >>faults
		end "no-$kind"
		return
	fi
	if [ $status -ne 0 ]; then # killed behind OK: it may be held or not
		end "half-$kind"
		return
	fi
	finish=
	case $kind in
	owner) pause && finish=$(now) && kill -KILL "$owner" ;;
	keeper) pause && finish=$(now) && kill -KILL "$(process 1)" ;;
	holder) pause && finish=$(now) && kill -KILL "$(process 2)" ;;
	placeholder) pause && finish=$(now) && kill -KILL "$(process 3)" ;;
	*) pause ;;
	esac
	finish=${finish:-$(now)}
	"$SEMLOCK" --release="$id" l 2>"err$AGENT" &
	call=$!
	[ "$kind" != release ] || { sleep ".00$((RANDOM % 9))" && kill -KILL $call; }
	wait $call
	status=$?
	# early: PID may have ended before this shell saw the end of the call, and another agent may have the lock by then
	[ "$kind" = early ] || echo "$begin $finish $AGENT" >>spans
	case $kind,$status in
	none,0 | call,0) end released ;;
	owner,0 | early,0) end "$kind" ;; # it had not ended yet
	release,*) end release ;;
	owner,76 | keeper,76 | holder,76 | placeholder,76 | early,76) end "$kind" ;;
	*) echo "round $round of $AGENT, $kind: --release ended with $status $(<"err$AGENT")" >>faults ;;
	esac
}

kinds=(none none call early owner keeper holder placeholder release)
{
	for ((round = 1; round <= ROUNDS; round++)); do
		kind=${kinds[RANDOM % ${#kinds[@]}]}
		sleep infinity &
		owner=$!
		one_round
		kill -KILL "$owner"
		wait "$owner"
		nothing_left
	done
} 2>/dev/null
exit 0
