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
	local by='held by +([0-9]) (*) since +([0-9:]), +([0-9]) s' more='; semlock --who l says more' UNDER=()
	shopt -s extglob
	hold_lock l
	#    status event     message                        options
	busy 1      busy      "$by$more"                          -n
	busy 7      busy      "$by$more"                          -n -E 7
	busy 1      busy      "$by$more"                          -w 0
	busy 1      busy      "$by$more"                          --queue-max=0
	busy 1      timeout   "*$by; the time is up$more"         -w .2
	start waiter "$SEMLOCK" l true
	"$PROBE" blocked "${PID[waiter]}"
	busy 1      busy      "$by; its queue is full$more"       --queue-max=1
	busy 0      stopped*  'stopped process +([0-9])'     --toggle
	ended waiter 0
	UNDER=("$SEMLOCK" -F l)
	busy 1      busy      "held by this process, which has inherited the lock$more" -n
	busy 1      busy      'held by *'                    -w 60
	busy 64     failed*64 'held by *: waiting for it would never end*' --queue-max=3
}

@test "-v names the call that ends a hold; another user's is only looked at" {
	expect_status 0 "$SEMLOCK" --hold=$$ --detach l
	id=${out#OK id=}
	expect_status 1 "$SEMLOCK" -n -v l true
	[[ $err == "semlock: l: held by $$ ("*"; semlock --release=$id l ends this hold" ]] || complain "$err"
	start waiter "$SEMLOCK" -v -w 600 l true
	eventually grep -q "waiting: held by $$ .*; semlock --release=$id l ends this hold" waiter.err
	if [ "$(id -u)" -eq 0 ] && as_nobody test -x "$SEMLOCK"; then
		BARE=$(mktemp -d /tmp/semlock-busy.XXXXXX)
		chmod 755 "$BARE"
		expect_status 0 "$SEMLOCK" --hold=$$ --detach -m excl "$BARE/m" # every user can see whose it is
		capture as_nobody "$SEMLOCK" -n -v -m excl "$BARE/m" true
		[[ $err == *"held by $$ "*"; semlock --who $BARE/m says more" ]] || complain "$err"
	fi
	expect_status 0 "$SEMLOCK" --release="$id" l
	ended waiter 0
}

@test "SEMLOCK_VERBOSE=1 is -v, unless -q is given or the name is flock" {
	local value
	hold_lock l
	SEMLOCK_VERBOSE=1 expect_status 1 "$SEMLOCK" -n l true
	[[ $err == "semlock: l: held by "*"; semlock --who l says more" ]] || complain "$err"
	SEMLOCK_VERBOSE=1 expect_status 1 "$SEMLOCK" -n -q l true
	expect_silent
	for value in 0 "" yes 11; do
		SEMLOCK_VERBOSE=$value expect_status 1 "$SEMLOCK" -n l true
		expect_silent
	done
	SEMLOCK_VERBOSE=1 expect_status 1 "$FLOCK" -n l true
	expect_silent
	let_go
	SEMLOCK_VERBOSE=1 expect_status 0 "$SEMLOCK" l true
	[[ $err == *"l: running true" ]] || complain "$err"
	SEMLOCK_VERBOSE=1 expect_status 0 "$SEMLOCK" -q l true
	expect_silent
}
