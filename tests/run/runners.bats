#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A lock over the steps of a job, with stand-ins of the process trees of CI runners and their like (tests/lib/runner.py):
# however the job ends, the lock is free within two seconds, or at the time that the call has set.
# shellcheck disable=SC2016 # the step expands it
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# How often each job is run.
JOB_ROUNDS=${JOB_ROUNDS:-1}
LIMIT=2 # seconds of --run-timeout, where nothing else ends the hold

prepare() {
	export SEMLOCK
	TAKE='"$SEMLOCK" --hold=NAME --detach -w 1m job.lock >job.hold'
	TAKE_FOR='"$SEMLOCK" --hold --run-timeout='$(stretched $LIMIT)' --detach -w 1m job.lock >job.hold'
	TAKE_LONG='"$SEMLOCK" --hold --run-timeout=600 --detach -w 1m job.lock >job.hold' # the limit is not what ends it
	WORK='echo working >work; sleep 600'
	RELEASE='always:"$SEMLOCK" --release="$(cat job.hold)" job.lock'
}

# run_job KIND STEP...: begins the job.  PID[job] is the service, RUNNER the process that runs the steps.
run_job() {
	mkfifo work
	start job /usr/bin/python3 "$SOURCE/tests/lib/runner.py" "$@"
	eventually grep -q ^runner job.out
	RUNNER=$(sed -n 's/^runner //p' job.out)
}

# works: returns when the job is at its work, under the lock
works() {
	read -r _ <work || true
	expect_status 1 "$SEMLOCK" -n job.lock true
}

# ends HOW: the job is over in this way: by itself, "cancelled", "killed" (the runner's processes), or "rebooted" (all)
ends() {
	case $1 in
	cancelled) kill -USR1 "$RUNNER" ;;
	killed) kill -KILL "$RUNNER" "${PID[job]}" 2>/dev/null || true ;;
	esac
	[ "$1" = killed ] || eventually grep -q ^ended job.out
}

# free_within SECONDS: the lock is free, or so soon that a waiter of today does not give up
free_within() {
	expect_status 0 "$SEMLOCK" -v -w "$(stretched "$1")" job.lock true
}

# after HOW SECONDS KIND STEP...: each time, the lock is free SECONDS after such an end
after() {
	local how=$1 seconds=$2 round
	shift 2
	for ((round = 0; round < JOB_ROUNDS; round++)); do
		run_job "$@"
		case $how in
		passed | failed) read -r _ <work ;; # by then the lock may be free
		*) works ;;
		esac
		ends "$how"
		free_within "$seconds" || complain "$1, $how" "$(cat job.out job.err)" || return
		kill -KILL "${PID[job]}" 2>/dev/null || true
		wait "${PID[job]}" 2>/dev/null || true
		"$PROBE" sweep . >/dev/null 2>&1 || true
		rm -f work job.hold job.out step.*
	done
}

# job NAME KIND: the hold ends with the process NAME of such a job, whatever becomes of it
job() {
	local take=${TAKE/NAME/"'$1'"}
	after passed 2 "$2" "$take" 'echo working >work' "$RELEASE"
	after failed 2 "$2" "$take" 'echo working >work; exit 3'
	after cancelled 2 "$2" "$take" "$WORK"
	after killed 2 "$2" "$take" "$WORK"
}

@test "GitHub: --hold=Runner.Worker ends with the job" {
	job Runner.Worker github
}

@test "Buildkite: --hold=buildkite-agent ends with the job, not the agent" {
	job buildkite-agent buildkite
}

@test "cron: --hold=cron ends with the job, not with cron" {
	job cron cron
}

@test "an agent: --hold=claude lasts over tool calls, and ends with it" {
	local take=${TAKE/NAME/claude}
	after passed 2 agent "$take" 'echo working >work' "$RELEASE"
	after killed 2 agent "$take" "$WORK"
	run_job agent "$take" "$WORK" "$RELEASE"
	works
	ends cancelled # the call; the next one releases
	free_within 2
}

# In script: the hold is for that shell, in a subshell of which the lines of the script are run.
@test "GitLab: --hold=bash in script: ends with the script, however that ends" {
	local take=${TAKE/NAME/bash}
	after passed 2 gitlab "$take; echo working >work"
	after failed 2 gitlab "$take; echo working >work; exit 3"
	after cancelled 2 gitlab "$take; $WORK"
}

@test "GitLab: a hold over to after_script has a limit, and is released there" {
	after passed 2 gitlab "$TAKE_LONG" 'echo working >work' "$RELEASE"
	after failed 2 gitlab "$TAKE_LONG" 'echo working >work; exit 3' "$RELEASE"
	after cancelled 2 gitlab "$TAKE_LONG; $WORK" "$RELEASE"
	after killed $((LIMIT + 2)) gitlab "$TAKE_FOR; $WORK" "$RELEASE"
}

@test "Jenkins: with a limit, released in post, ended with the node block" {
	after passed 2 jenkins "$TAKE_LONG" 'echo working >work' "$RELEASE"
	after failed 2 jenkins "$TAKE_LONG" 'echo working >work; exit 3'
	after cancelled 2 jenkins "$TAKE_LONG" "$WORK" "$RELEASE"
	after killed $((LIMIT + 2)) jenkins "$TAKE_FOR" "$WORK"
}

@test "Woodpecker, Drone: with a limit, and released in the last step" {
	after passed 2 woodpecker "$TAKE_LONG" 'echo working >work' "$RELEASE"
	after failed 2 woodpecker "$TAKE_LONG" 'echo working >work; exit 3' "$RELEASE"
	after cancelled 2 woodpecker "$TAKE_LONG" "$WORK" "$RELEASE"
	after killed $((LIMIT + 2)) woodpecker "$TAKE_FOR" "$WORK"
}

@test "a systemd unit: one command under the lock; its end is the lock's" {
	local run='"$SEMLOCK" job.lock sh -c'
	after passed 2 systemd "$run 'echo working >work'"
	after failed 2 systemd "$run 'echo working >work; exit 3'"
	after cancelled 2 systemd "$run '$WORK'"
}

@test "tmux: the hold of a pane's shell ends with the pane" {
	local take=${TAKE/NAME/bash}
	after passed 2 tmux "$take; echo working >work"
	after cancelled 2 tmux "$take; $WORK; true"
}

@test "a process of the name of the service outlives the job, and is not taken" {
	run_job gitlab "${TAKE/NAME/gitlab-runner}; echo working >work"
	works
	ends passed
	expect_status 1 "$SEMLOCK" -n job.lock true # what the page warns of
	kill -KILL "${PID[job]}"
	free_within 2
}
