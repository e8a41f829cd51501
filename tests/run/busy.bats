#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A lock is busy for one reason, from which the exit status, the event and the message follow.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# busy STATUS EVENT MESSAGE OPTION...: semlock with these options and -v, asked for l, does not run its command, and says
# so in these three ways.  EVENT and MESSAGE are patterns.  UNDER: a command to run semlock by.
busy() {
	local status=$1 event=$2 message=$3
	shift 3
	expect_status "$status" "${UNDER[@]}" "$SEMLOCK" -v --status-fd=5 "$@" l touch ran 5>event || return
	# shellcheck disable=SC2053 # a pattern
	[[ $(cat event) == $event ]] || complain "$*: the event is '$(cat event)'" "instead of '$event'" || return
	# shellcheck disable=SC2053
	[[ $err == "semlock: l: "$message ]] || complain "$*: the message is '$err'" "instead of '$message'" || return
	[ ! -e ran ] || complain "$*: the command ran"
}

@test "status, event and message are those of the reason" {
	local by='held by +([0-9]) (*) since +([0-9:])' UNDER=()
	shopt -s extglob
	hold_lock l
	#    status event     message                        options
	busy 1      busy      "$by"                          -n
	busy 7      busy      "$by"                          -n -E 7
	busy 1      busy      "$by"                          -w 0
	busy 1      busy      "$by"                          --queue-max=0
	busy 1      timeout   "*$by; the time is up"         -w .2
	start waiter "$SEMLOCK" l true
	"$PROBE" blocked "${PID[waiter]}"
	busy 1      busy      "$by; its queue is full"       --queue-max=1
	busy 0      stopped*  'stopped process +([0-9])'     --toggle
	ended waiter 0
	UNDER=("$SEMLOCK" -F l)
	busy 1      busy      'held by this process, which has inherited the lock' -n
	busy 1      busy      'held by *'                    -w 60
	busy 64     failed*64 'held by *: waiting for it would never end*' --queue-max=3
}
