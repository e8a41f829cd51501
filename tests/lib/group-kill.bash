# SPDX-License-Identifier: MIT
# A KILL to the process group of semlock's caller, as tool runners end a job; the command has a child in a session of
# its own, which the signal does not reach.
# shellcheck shell=bash

GROUP_KILLS=${GROUP_KILLS:-2} # how often, for each way

# kill_group ARGS...: semlock ARGS (options and LOCK) in a process group of its own; returns when that has been killed.
# The command's process is in the file command, its child in the file deep.
kill_group() {
	rm -f deep command
	cat >leaves <<-'END'
		setsid sh -c 'echo $$ >deep.new && mv deep.new deep && exec sleep 1000' &
		until [ -e deep ]; do sleep .01; done
		echo $$ >command.new && mv command.new command
		sleep 1000
	END
	start caller setsid sh -c '"$@"; :' sh "$SEMLOCK" "$@" sh leaves
	eventually [ -e command ] || return
	kill -KILL -- "-${PID[caller]}"
	ended caller 137
}

# ends_with_group "OPTIONS" LOCK...: nothing of the command runs beside the next holder, which gets in.  How soon it does
# is judged with many rounds alone (GROUP_KILLS=50), on a machine that does nothing else: within a second, each time.
# LOCK... is what the next holder asks for.
ends_with_group() {
	local way=$1 began took best='' worst=0
	shift
	for ((i = 0; i < GROUP_KILLS; i++)); do
		# shellcheck disable=SC2086 # words
		kill_group $way "${@: -1}" || complain "$way" || return
		began=${EPOCHREALTIME/[.,]/}
		rm -f alone
		expect_status 0 "$SEMLOCK" -w "$PATIENCE" "$@" sh -c "$(none_runs "$(cat deep)" "$(cat command)") && : >alone" ||
			complain "$way" || return
		took=$((${EPOCHREALTIME/[.,]/} - began))
		[ -e alone ] || complain "$way: the next one ran beside it" || return
		if [ -z "$best" ] || [ $took -lt "$best" ]; then best=$took; fi
		if [ $took -gt $worst ]; then worst=$took; fi
	done
	[ "$GROUP_KILLS" -lt 50 ] || {
		echo "# ${way:-plain}, ${*: -1}: the next one is in after $best to $worst microseconds" >&3
		[ $worst -lt 1000000 ] || complain "$way: at worst after $worst microseconds"
	}
}

# keeps_with_group "OPTIONS" LOCK...: what the KILL has left keeps the lock while it lives.
keeps_with_group() {
	local way=$1
	shift
	for ((i = 0; i < GROUP_KILLS; i++)); do
		# shellcheck disable=SC2086 # words
		kill_group $way "${@: -1}" || complain "$way" || return
		expect_status 1 "$SEMLOCK" -n "$@" true || complain "$way" || return
		kill "$(cat deep)"
		expect_status 0 "$SEMLOCK" -w "$PATIENCE" "$@" true || complain "$way" || return
	done
}
