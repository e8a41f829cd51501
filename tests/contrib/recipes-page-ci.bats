#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock-recipes(7): a lock over the steps of a CI job, as the page has it, in process trees like those of the runners:
# who starts the shell of a step, what of it lives on after the step, and what is killed when a job is cancelled.
# And contrib/recipes/agent-hook.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/recipes

export PROBE

# shellcheck disable=SC2317 # of helpers.bash
tidy() {
	exec 5>&- 6>&- 7>&- 8>&-
	local name
	for name in "${!PID[@]}"; do kill -KILL -- "-${PID[$name]}" 2>/dev/null || true; done
}

is_free() { "$SEMLOCK" --who "$1" >.who 2>&1; }

held() {
	expect_status 1 "$SEMLOCK" --who "$1"
	[[ $out == "$1: held"* ]] || complain "$out"
}

# ---- processes like a runner's ----

# worker NAME PROGRAM: a process called PROGRAM that runs each line of NAME.calls as a step: bash with a script of its own,
# whose parent it is, and whose status it writes into NAME.answers.
worker() {
	[ -e "bin/$2" ] || cp "$(command -v bash)" "bin/$2"
	mkfifo "$1.calls" "$1.answers"
	# shellcheck disable=SC2016
	start "$1" setsid "bin/$2" -c 'n=0; while read -r line <&7; do n=$((n + 1)); printf "%b" "$line" >"$0.step$n"
		bash --noprofile --norc -eo pipefail "$0.step$n" >"$0.said" 2>&1; echo $? >&8; done' "$1" 7<>"$1.calls" 8<>"$1.answers"
}

# step NAME SCRIPT STATUS: the worker's next step is SCRIPT, and ends with STATUS
step() {
	local answer
	printf '%s\n' "${2//$'\n'/\\n}" >"$1.calls"
	read -r -t "$PATIENCE" answer <>"$1.answers" || complain "no answer to: $2"
	[ "$answer" = "$3" ] || complain "$answer instead of $3: $2" "$(cat "$1.said")"
}

@test "GitHub: the job's end, failure or cancellation releases the lock" {
	recipe 'Steps of a GitHub Actions job' 1 >steps.yml
	yaml 'd[0]["run"]' steps.yml >take
	[ "$(yaml 'd[1]["run"]' steps.yml)" = ./test-device ]
	export GITHUB_WORKFLOW='w "1"' GITHUB_RUN_ID=7
	# a listener, a process that stays, starts a worker for each job
	for end in TERM KILL; do
		worker job Runner.Worker
		step job "$(cat take)" 0
		step job "'$SEMLOCK' --who device" 1
		grep -q 'w "1" 7' job.said || complain "$(cat job.said)"
		step job "exit 3" 3
		held device
		kill -$end "${PID[job]}"
		wait "${PID[job]}" || true
		eventually is_free device
		rm job.*
	done
	# the next job waits for the one before, and the log says for whom
	worker job Runner.Worker
	step job "$(cat take)" 0
	worker next Runner.Worker
	printf '%s\n' "$(cat take)" >next.calls
	eventually grep -q 'held by' next.said
	kill -KILL -- "-${PID[job]}"
	read -r -t "$PATIENCE" answer <>next.answers
	[ "$answer" = 0 ] || complain "$(cat next.said)"
	held device
}

@test "GitHub: the composite action locks, and runs no input as script" {
	[ "$(yaml 'd["runs"]["using"], d["inputs"]["lock"]["required"]' "$RECIPES/github-action.yml")" = "('composite', True)" ]
	yaml 'd["runs"]["steps"][0]["run"]' "$RECIPES/github-action.yml" >script
	yaml '["%s=%s" % i for i in d["runs"]["steps"][0]["env"].items()]' "$RECIPES/github-action.yml" >variables
	[ "$(grep -c '{{' script)" = 0 ]
	[ "$(sort variables | xargs -d '\n')" = "LIMIT=\${{ inputs.limit }} LOCK=\${{ inputs.lock }} WAIT=\${{ inputs.wait }}" ]
	export LOCK='$(touch bad) x' WAIT=1h LIMIT=6h GITHUB_REPOSITORY=o/r GITHUB_RUN_ID=7
	worker job Runner.Worker
	step job "$(cat script)" 0
	held "$LOCK"
	[ ! -e bad ]
	kill -KILL -- "-${PID[job]}"
	eventually is_free "$LOCK"
}

# stage NAME LINES: a stage of a job of GitLab's shell executor: bash -l, of a process group of its own, reads the script
# of the stage from standard input, and runs LINES in a part of a pipe.  Its parent is the service.
service() {
	mkfifo stages
	start service bash -c 'while read -r name <&7; do setsid bash -l <"$name" >"$name.said" 2>&1 & echo $! >"$name.new"
		mv "$name.new" "$name.pid"; wait $!; echo $? >"$name.status"; done' 7<>stages
}

stage() {
	{
		printf '%s\n' '#!/usr/bin/env bash' "trap 'exit 1' TERM" 'set -o pipefail; set -o errexit' 'set +o noclobber'
		printf ': | (eval %q)\nexit 0\n' "export PATH='$PATH'"$'\n'"cd '$PWD'"$'\n'"$2"
	} >"$1"
	echo "$1" >stages
	eventually test -s "$1.pid"
}

@test "GitLab: the end of a script, its failure, a cancellation and a time-out" {
	recipe 'Steps of a GitLab CI job' 1 >gitlab-ci.yml
	yaml 'd["device-test"]["script"]' gitlab-ci.yml >script
	service
	for end in 0 1 TERM KILL; do
		fifos test
		program test-device "\"\$PROBE\" hold test.up test.down; exit ${end//[A-Z]/}"
		stage script.$end "$(cat script)"
		PID[test]=${PID[service]}
		ready test
		held device
		case $end in
		[01]) release test ;;
		# the runner ends the process group of the stage's shell
		*) kill -$end -- "-$(cat script.$end.pid)" ;;
		esac
		eventually test -s script.$end.status
		eventually is_free device
		kill -0 "${PID[service]}"
		rm test.up test.down
	done
	# after_script is another shell, and has no lock
	stage after "semlock -n device true"
	eventually test -s after.status
	[ "$(cat after.status)" = 0 ] || complain "$(cat after.said)"
}

# sh_step SCRIPT: a step "sh" of Jenkins: a shell in the background, of no parent that lives as long as the job, with the
# job's cookie in its environment
sh_step() {
	rm -f result
	printf '%s\n' "$1" >script.sh
	JENKINS_NODE_COOKIE=$PWD/cookie nohup sh -c '(sh -xe script.sh >step.log 2>&1; echo $? >result.new; mv result.new result) >&- 2>&- &' \
		>.out 2>&1 3>&- 4>&-
	eventually test -s result
	[ "$(cat result)" = "${2-0}" ] || complain "$(cat step.log)"
}

# node_ends: Jenkins ends every process that has this cookie
node_ends() {
	local file
	for file in /proc/[0-9]*/environ; do
		! grep -qsz "^JENKINS_NODE_COOKIE=$PWD/cookie$" "$file" || kill -TERM "${file//[^0-9]/}" || true
	done 2>/dev/null
}

@test "Jenkins: held over the steps, until post, or the end of the node block" {
	recipe 'Steps of a Jenkins job' 1 >Jenkinsfile
	sed -n "s/.*sh '\(.*\)'.*/\1/p" Jenkinsfile >steps
	[ "$(wc -l <steps)" = 3 ]
	[ "$(tr -dc '{' <Jenkinsfile | wc -c)" = "$(tr -dc '}' <Jenkinsfile | wc -c)" ]
	program test-device 'exit 1'
	sh_step "$(sed -n 1p steps)"
	held hw
	sh_step "$(sed -n 2p steps)" 1
	held hw
	sh_step "$(sed -n 3p steps)"
	is_free hw
	# post does not run
	sh_step "$(sed -n 1p steps)"
	held hw
	node_ends
	eventually is_free hw
	# the limit
	sed -n '1s/=2h/=.2/p' steps >limited
	[ -s limited ]
	sh_step "$(cat limited)"
	eventually is_free hw
	sh_step "$(sed -n 3p steps)" 76
	# the first step did not get the lock
	: >hold
	sh_step "$(sed -n 3p steps)"
}

@test "Buildkite: the job's process ends, and with it the lock" {
	recipe 'Steps of a Buildkite job' 1 >hook
	worker job buildkite-agent
	step job ". ./hook" 0
	step job "'$SEMLOCK' -n device true" 1
	kill -KILL "${PID[job]}"
	eventually is_free device
}

# ---- agent-hook ----

# called TOOL COMMAND: the hook's answer to that call
called() {
	jq -n --arg tool "$1" --arg command "$2" \
		'{hook_event_name: "PreToolUse", tool_name: $tool, tool_input: {command: $command, timeout: 120000}}' | agent-hook
}

# rewritten COMMAND: what the hook makes of it
rewritten() {
	called Bash "$1" | jq -r '.hookSpecificOutput.updatedInput.command'
}

@test "agent-hook: heavy commands run one at a time, others as they are" {
	export AGENT_LOCK=$PWD/build.lock SHELL=/bin/bash
	for light in 'ls' 'echo make' 'git log --grep=make' 'cat Makefile' 'makewhatis' "semlock $AGENT_LOCK make" "semlock $AGENT_LOCK sh -c 'ls; make all'"; do
		[ -z "$(called Bash "$light")" ] || complain "$light: $(called Bash "$light")" || return
	done
	[ -z "$(called Read make)" ]
	for heavy in make 'make -j8 check' 'cd src && make' 'CC=gcc nice make' 'git pull && cargo test' 'npm ci; ls' '(ninja)' $'ls\nmake'; do
		[ -n "$(called Bash "$heavy")" ] || complain "$heavy" || return
	done
	called Bash make >answer
	[ "$(jq -r '.hookSpecificOutput.updatedInput.timeout, .hookSpecificOutput.hookEventName' answer | xargs)" = "120000 PreToolUse" ]
	[ "$(jq '.hookSpecificOutput | has("permissionDecision")' answer)" = false ]
	holding make
	in_turn "$(rewritten 'make "a  b"')"
	# its directory outlives the call; quotes, status and words are the command's own
	mkdir sub
	program bin/make 'printf "<%s>" "$@"; pwd; exit 3'
	expect_status 3 bash -c "$(rewritten "cd sub && make 'it'\"'\"'s' \"\$HOME\" '\$x'"); s=\$?; pwd; exit \$s"
	expect_out "<it's><$HOME><\$x>$PWD/sub"$'\n'"$PWD/sub"
	hold_lock build.lock
	expect_status 75 bash -c "$(AGENT_WAIT=.1 rewritten make)"
	let_go
}

@test "agent-hook: by default the lock is the user's, of the name build" {
	[[ $(unset AGENT_LOCK && rewritten make) == "semlock "*" --name=build -c 'make'" ]]
}

@test "agent-hook fails open: it says nothing, and the command runs as it was" {
	for input in '' '{' 'null' '[]' '{"tool_name": "Bash"}' '{"tool_name": "Bash", "tool_input": {"command": 7}}' $'\xff'; do
		expect_status 0 agent-hook <<<"$input"
		expect_silent
	done
	mkdir few
	for tool in sh cat; do ln -s "$(command -v $tool)" few/; done
	for there in '' jq semlock; do
		rm -f few/jq few/semlock
		[ -z "$there" ] || ln -s "$(command -v "$there")" few/
		PATH=$PWD/few expect_status 0 "$RECIPES/agent-hook" <<<'{"tool_name": "Bash", "tool_input": {"command": "make"}}'
		expect_silent
	done
}
