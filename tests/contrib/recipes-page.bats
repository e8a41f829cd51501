#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock-recipes(7): each of its commands, as the page has it, with programs of the test's own under the locks.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/recipes

export PROBE

# recipe HEADING N: the Nth example under HEADING.  Its locks are in the test's directory, that of a --name too.
recipe() {
	page_text "$SOURCE/man/semlock-recipes.7" | awk -v heading="$1" -v wanted="$2" '
		/^\.S[HS] / { n = 0 }
		/^\.S[HS] / { inside = substr($0, 5) == heading }
		/^\.EE/ { shown = 0 }
		shown
		/^\.EX/ { shown = inside && ++n == wanted }' |
		sed -e "s#/tmp/#$PWD/#g; s#/run/#$PWD/#g; s#/nfs/jobs/#$PWD/#g; s#/var/lib/dpkg/#$PWD/#g" \
			-e "s#--name=\([a-z-]*\)#$PWD/\1.lock#g" -e 's#^[*0-9/]* [*] [*] [*] [*] *##' | grep .
}

# holding PROGRAM...: programs that wait for release, under the NAME that the caller has given
holding() {
	local program
	for program; do
		printf '#!/bin/sh\n[ -n "$NAME" ] || exit 3\nexec "$PROBE" hold "$NAME.up" "$NAME.down"\n' >"bin/$program"
		chmod +x "bin/$program"
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

# sleeping NAME: returns when its semlock sleeps, waiting.
sleeping() {
	local pid end=$((SECONDS + PATIENCE))
	until pid=$(semlock_of "${PID[$1]}" 2>/dev/null); do
		[ $SECONDS -lt $end ] || complain "$1 does not wait" "$(cat "$1.err")" || return
	done
	"$PROBE" blocked "$pid"
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

@test "CRON: the lines are those of the recipe crontab, and the first one finds semlock in /usr/local/bin" {
	recipe CRON 1 >lines
	[ "$(wc -l <lines)" -eq 4 ]
	sed "s#--name=\([a-z]*\)#$PWD/\1.lock#g; s#^[*0-9/]* [*] [*] [*] [*] *##" "$RECIPES/crontab" >file
	while IFS= read -r line; do
		grep -Fqx "$line" file || complain "not in crontab: $line"
	done <lines
	[[ $(head -n 1 lines) == PATH=/usr/local/bin:* ]]
}

@test "CRON: a job is skipped with its reason, and silent otherwise" {
	recipe CRON 2 >script
	printf '#!/bin/sh\nexit 4\n' >bin/job
	chmod +x bin/job
	expect_status 4 sh script
	expect_silent
	hold_lock job.lock
	expect_status 75 sh script
	[[ $out == *"job.lock: held"*"${COMMAND[holder]} "* ]] || complain "$out"
	[ -z "$err" ]
	let_go
}

# The tests of recipes-system.bats run these units.
@test "SYSTEMD: the lines are those of the recipes' units" {
	n=0
	for unit in report.service queued@.service queued-daemon.service; do
		n=$((n + 1))
		recipe SYSTEMD $n >lines
		while IFS= read -r line; do
			grep -Fqx "$line" "$RECIPES/$unit" || complain "not in $unit: $line"
		done <lines
		[ "$(wc -l <lines)" -ge 4 ]
	done
}

@test "MAKE: one make at a time in a directory, and no file is left there" {
	printf 'all:\n\t@"$$PROBE" hold "$$NAME.up" "$$NAME.down"\n' >Makefile
	touch after
	ls -a >before
	in_turn "$(recipe MAKE 1)"
	rm -f .out .err
	ls -a >after
	diff before after
}

@test "MAKE: two links at a time over all builds, and one check" {
	recipe MAKE 2 >Makefile
	holding link
	for name in one two three; do
		begin $name 'make CC=link OBJECTS= program'
		if [ $name = three ]; then sleeping three; else ready $name; fi
	done
	let_go one
	ready three
	let_go two
	let_go three
	holding tests
	cp bin/tests run-tests
	in_turn 'make check'
}

@test "XARGS: outputs come in one piece each" {
	printf '#!/bin/sh\nfor _ in 1 2 3; do yes "$2" | head -n 30000; done\n' >bin/cc
	chmod +x bin/cc
	touch a.c b.c c.c d.c e.c f.c
	expect_status 0 sh -c "$(recipe XARGS 1)"
	[ "$(uniq build.log | wc -l)" -eq 6 ] || complain "$(uniq -c build.log)"
	[ "$(wc -l <build.log)" -eq 540000 ]
}

@test "XARGS: four devices, each used by one run at a time, and two by one job" {
	cat >bin/train <<-'END'
		#!/bin/sh
		devices=$(echo "$CUDA_VISIBLE_DEVICES" | tr , ' ')
		for device in $devices; do mkdir "busy.$device" || echo clash; done
		"$PROBE" pause 20
		for device in $devices; do rmdir "busy.$device"; done
		echo "$1 $CUDA_VISIBLE_DEVICES" >>devices
	END
	chmod +x bin/train
	touch 1.wav 2.wav 3.wav 4.wav 5.wav 6.wav 7.wav 8.wav
	expect_status 0 sh -c "$(recipe XARGS 2)"
	expect_silent
	[ "$(grep -c 'wav [0-3]$' devices)" -eq 8 ] || complain "$(cat devices)"
	[ "$(grep -c 'all [0-3],[0-3]$' devices)" -eq 1 ]
}

@test "AGENTS: one build at a time, in order; one that hangs is ended, and one that waits too long gives up" {
	build=$(recipe 'AGENTS ON ONE MACHINE' 1)
	holding make
	in_turn "$build"
	begin hung "${build/2h/1}"
	ready hung
	begin next "$build"
	ended hung 124
	ready next
	expect_status 75 sh -c "${build/1h/.1}"
	expect_status 0 sh -c "$(recipe 'AGENTS ON ONE MACHINE' 4)"
	[[ $out == *"held"*"${COMMAND[next]} "*"longest waits"*"build.lock"*timeout* ]] || complain "$out"
	let_go next
}

@test "AGENTS: the build of an agent that is killed ends, and its place in the queue; a short build goes first" {
	build=$(recipe 'AGENTS ON ONE MACHINE' 1)
	holding make
	begin agent "$build; :"
	ready agent
	begin waiting "$build; :"
	sleeping waiting
	begin last "$build"
	sleeping last
	begin short "$(recipe 'AGENTS ON ONE MACHINE' 3)"
	sleeping short
	kill -KILL "${PID[waiting]}" "${PID[agent]}"
	"$PROBE" gone "${COMMAND[agent]}"
	ready short
	let_go short
	ready last
	let_go last
}

@test "AGENTS: a build that is too old is ended by the next one, a younger one is waited for" {
	build=$(recipe 'AGENTS ON ONE MACHINE' 2)
	holding make
	in_turn "$build" true
	begin hung "$build"
	ready hung
	begin next "${build/2h/.3}"
	ended hung 143
	ready next
	begin last "$build"
	eventually has_a_waiter build.lock flock
	let_go next
	ready last
	let_go last
}

@test "AGENTS: two builds at a time, and builds within a build in its slot" {
	build=$(recipe 'AGENTS ON ONE MACHINE' 5)
	holding make
	begin one "$build"
	begin two "$build"
	ready one
	ready two
	begin three "$build"
	sleeping three
	let_go one
	ready three
	let_go two
	let_go three
	holding inner
	printf '#!/bin/sh\n%s\n' "${build/ make/ inner}" >bin/make
	rm one.* two.*
	begin one "$build"
	ready one
	begin two "$build"
	ready two
	let_go one
	let_go two
}

@test "ONE OF SEVERAL MACHINES: once in a period, on a server and on a shared disk" {
	mkdir helpers
	printf '#!/bin/bash\nexec "%s" "${@:1:$#-1}" "demo://%s"\n' "$SOURCE/contrib/locksmith-demo" "$PWD/remote.lock" \
		>helpers/semlock-locksmith-etcd
	chmod +x helpers/semlock-locksmith-etcd
	export SEMLOCK_LOCKSMITH_DIR=$PWD/helpers
	printf '#!/bin/sh\necho ran >>runs\n' >bin/tidy
	chmod +x bin/tidy
	for n in 1 2; do
		job=$(recipe 'ONE OF SEVERAL MACHINES' $n)
		: >runs
		start first sh -c "$job"
		eventually test -s runs
		expect_status 0 sh -c "$job"
		expect_silent
		[ "$(wc -l <runs)" -eq 1 ]
		kill -TERM "${PID[first]}"
		ended first 143
	done
}

@test "MAIL: a mailbox is locked by the file beside it, and by both kinds of lock" {
	holding mail-tool
	for n in 1 2; do
		begin tool "$(recipe MAIL $n)"
		ready tool
		[ -e INBOX.lock ]
		let_go tool
		rm tool.*
		[ ! -e INBOX.lock ]
	done
	in_turn "$(recipe MAIL 1)"
}

@test "CONTAINERS: the lock excludes what runs in another container" {
	namespaces -mpf --mount-proc
	mkdir srv locks
	# docker run --rm -v DIRECTORY:MOUNTED IMAGE COMMAND...
	cat >bin/docker <<-'END'
		#!/bin/sh
		[ "$1 $2 $3 $5" = "run --rm -v image" ] || exit 99
		volume=$4
		shift 5
		exec unshare -mpf --mount-proc sh -c 'mount --bind "${0%:*}" "${0#*:}" && exec "$@"' "$volume" "$@"
	END
	chmod +x bin/docker
	holding job
	in_turn "$(recipe CONTAINERS 1 | sed "s#/srv/locks#$PWD/srv#; s#\([: ]\)/locks#\1$PWD/locks#g")"
	[ -e srv/job.lock ]
}

@test "NFS: a kernel lock, and one made of a file" {
	holding job
	in_turn "$(recipe NFS 1 | sed -n 1p)"
	# with --stale a waiter sleeps in the kernel for moments only
	in_turn "$(recipe NFS 1 | sed -n 2p)" has_a_waiter mark link
}

# The tests of no-apt in recipes-system.bats have apt-get and dpkg meet that lock.
@test "PACKAGES: the copy is made under the lock of dpkg, of which no-apt tells more" {
	holding tar
	in_turn "$(recipe PACKAGES 1)"
	grep -q '/lock-frontend$' "$RECIPES/no-apt"
}

@test "a script that locks itself: each form refuses a second run" {
	for n in 1 2; do
		{
			echo '#!/bin/sh'
			recipe 'A script that locks itself' $n
			echo '"$PROBE" hold holder.up holder.down'
		} >script
		chmod +x script
		fifos holder
		start holder ./script
		ready holder
		expect_status 1 ./script
		let_go
		rm holder.*
	done
}

# in_shells SHELL...: script, in each of them, prints that it is the only one, and unlocks at its end; and it is refused.
in_shells() {
	local shell
	for shell; do
		command -v "$shell" >/dev/null || complain "no $shell on this machine"
		expect_status 0 "$shell" script
		expect_out 'the only one'
		hold_lock job.lock
		expect_status 1 "$shell" script
		let_go
		rm holder.*
	done
}

@test "a descriptor of the shell: each form works in the shells that it is for" {
	recipe 'A descriptor of the shell' 1 >script
	in_shells dash bash zsh
	recipe 'A descriptor of the shell' 2 >script
	in_shells dash bash zsh mksh ksh93
}

@test "a descriptor of the shell: dash takes 10 for a word" {
	expect_status 0 dash -c 'echo ten 10>file; cat file'
	expect_out 'ten 10'
}

@test "a part of a script, a busy lock, two commands under one lock" {
	recipe 'A part of a script' 1 >script
	expect_status 0 sh script
	expect_out 'in the critical section'
	hold_lock section.lock
	sed 's/-w 10/-w .1/' script >impatient
	expect_status 1 sh impatient
	expect_out ''
	let_go
	recipe 'A busy lock and a failed command' 1 >script
	expect_status 0 sh script
	expect_out ''
	rm holder.*
	hold_lock job.lock
	expect_status 0 sh script
	expect_out busy
	let_go
	rm holder.*
	printf '%s\n' 2 1 >table
	recipe 'Two commands under one lock' 1 >script
	hold_lock table.lock
	start second sh script
	sleeping second
	[ ! -e new ]
	let_go
	ended second 0
	[ "$(cat table)" = $'1\n2' ]
}

@test "Functions under a lock: one at a time, and their variables stay set" {
	recipe 'Functions under a lock' 1 | sed "s#^[.] .*/#. $SOURCE/contrib/shell/#" >script
	echo 37 >sum
	for shell in dash bash zsh mksh ksh93; do
		expect_status 0 "$shell" script
	done
	expect_out 62
	hold_lock sum.lock
	sed 's/-w 10/-n/' script >impatient
	expect_status 1 sh -e impatient
	let_go
	[ "$(cat sum)" -eq 62 ]
}

@test "MONITORING: a log, what is made of it, an alarm, and what Prometheus reads" {
	local place="s#/var/log/#$PWD/#g; s#/srv/#$PWD/#g; s#/var/lib/prometheus/node-exporter/#$PWD/#g"
	holding backup
	recipe MONITORING 1 | sed "$place" >script
	begin held "$(cat script)"
	ready held
	recipe MONITORING 3 | sed "$place" >alarm
	expect_status 0 sh alarm
	sed -i 's/ 3600 / 0 /' alarm
	eventually sh -c '! sh alarm >said'
	grep -q "^$PWD/backup.lock: held for" said || complain "$(cat said)" || return
	recipe MONITORING 4 | sed "$place" >metrics
	let_go held
	expect_status 0 sh metrics
	grep -qF "semlock_runs_total{lock=\"$PWD/backup.lock\",outcome=\"exit 0\"} 1" semlock.prom || complain "$(cat semlock.prom)" || return
	recipe MONITORING 2 | sed "$place" >report
	expect_status 0 sh report
	[[ $out == *"$PWD/backup.lock"$'\t1\t0\t'* ]] || complain "$out" || return
	grep -q '<rect class="held"' locks.html
	# What the journal gives is a line of the log, as -o cat prints it.
	sed 's/"waited": [0-9.]*/"waited": 61/' locks.jsonl >entries
	printf '#!/bin/sh\ncat "%s/entries"\n' "$PWD" >bin/journalctl
	chmod +x bin/journalctl
	recipe MONITORING 5 >journal
	expect_status 0 sh journal
	[[ $out == *'"outcome": "exit 0"'* ]] || complain "$out"
}

@test "AGENTS: four builds at a time, each of which begins when there is memory, looked at by one at a time" {
	holding make
	job=$(recipe 'AGENTS ON ONE MACHINE' 6)
	printf '#!/bin/sh\nexec wait-until-free.tried "$@"\n' >bin/wait-until-free
	sed 's#/proc/meminfo#'"$PWD"'/meminfo#' "$RECIPES/wait-until-free" >bin/wait-until-free.tried
	chmod +x bin/wait-until-free bin/wait-until-free.tried
	export WAIT_UNTIL_FREE_PAUSE=.1
	echo 'MemAvailable:    8388607 kB' >meminfo
	begin first "$job"
	begin second "$job"
	eventually has_a_waiter gate.lock flock
	[ ! -s first.up ]
	echo 'MemAvailable:    8388608 kB' >meminfo
	ready first
	ready second
	let_go first
	let_go second
	expect_status 64 wait-until-free much
	WAIT_UNTIL_FREE_PAUSE=0 expect_status 0 wait-until-free 1M
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

# shellcheck disable=SC2317 # of helpers.bash
tidy() {
	exec 5>&- 6>&-
	if declare -F postgresql_stop_all >.out; then postgresql_stop_all; fi
}

# told N: the Nth command in the words for an agent, on one line
told() {
	recipe 'Tool calls of an agent' 1 | sed -n 's/^    //p' | sed -e ':a; /\\$/{N; s/\\\n *//; ba' -e '}' | sed -n "$1p"
}

@test "Tool calls of an agent: taken in one call, released in another, and gone with the agent" {
	agent
	agent_says "$(told 1)"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	id=$(sed -n 's/^OK id=//p' .call)
	[ -n "$id" ] || complain "$(cat .call)"
	agent_says "$(told 1 | sed 's/-w 5m/-w 0/')"
	[ "$answer" = 75 ] || complain "$answer: $(cat .call)"
	place=$(sed -n 's/^WAITING id=//p' .call)
	[ -n "$place" ] || complain "$(cat .call)"
	agent_says "$(told 2 | sed "s/=ID/=$place/; s/-w 5m/-w 0/")"
	[ "$answer" = 75 ] || complain "$answer: $(cat .call)"
	agent_says "$(recipe 'Tool calls of an agent' 1 | grep -o '"semlock --who[^"]*"' | tr -d '"')"
	[ "$answer" = 1 ]
	grep -q 'why, in five words' .call || complain "$(cat .call)"
	: >other.lock
	agent_says "$(told 3 | sed "s/=ID/=$id/; s/deploy.lock/other.lock/")"
	[ "$answer" = 64 ] || complain "$(cat .call)"
	agent_says "$(told 3 | sed "s/=ID/=$id/")"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	agent_says "$(told 3 | sed "s/=ID/=$id/")"
	[ "$answer" = 76 ] || complain "$(cat .call)"
	expect_status 1 "$SEMLOCK" -w 0.1 deploy.lock true
	agent_says "$(told 2 | sed "s/=ID/=$place/")"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	grep -q "^OK id=$place" .call || complain "$(cat .call)"
	agent_says "$(told 3 | sed "s/=ID/=$place/")"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	expect_status 0 "$SEMLOCK" -n deploy.lock true

	agent_says "$(told 1)"
	[ "$answer" = 0 ]
	expect_status 1 "$SEMLOCK" -n deploy.lock true
	kill -KILL "${PID[agent]}"
	ended agent 137
	expect_status 0 "$SEMLOCK" -w "$PATIENCE" deploy.lock true
}

@test "Steps of a CI job: the device is the job's from the first step to the last, or to its end" {
	agent
	export CI_JOB_NAME=test
	first=$(recipe 'Steps of a CI job' 1 | sed 's/\$CI_JOB_NAME/job 7/' | sed -e ':a; /\\$/{N; s/\\\n *//; ba' -e '}')
	last=$(recipe 'Steps of a CI job' 2 | sed -z 's/\n/; /')
	agent_says "$first"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	expect_status 1 "$SEMLOCK" -n device.lock true
	agent_says "$last"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	expect_status 0 "$SEMLOCK" -n device.lock true
	agent_says "$first"
	[ "$answer" = 0 ]
	kill -KILL "${PID[agent]}"
	ended agent 137
	expect_status 0 "$SEMLOCK" -w "$PATIENCE" device.lock true
}

@test "Hooks before and after: the lock is held between the two" {
	for n in 1 2; do
		recipe 'Hooks before and after' $n >hook$n
		chmod +x hook$n
	done
	agent
	agent_says "exec ./hook1"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	expect_status 1 "$SEMLOCK" -n backup.lock true
	# Another tool that waits meanwhile leaves the ID of the first one alone.
	start other ./hook1
	eventually sh -c '"$SEMLOCK" --who backup.lock | grep -q "1 waiting"'
	agent_says "exec ./hook2"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	ended other 0
	expect_status 1 "$SEMLOCK" -n backup.lock true
	agent_says "exec ./hook2"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	expect_status 0 "$SEMLOCK" -n backup.lock true
	agent_says "exec ./hook2"
	[ "$answer" = 76 ] || complain "$(cat .call)"
}

@test "A maintenance window: held until a person ends it, and everybody is told why" {
	expect_status 0 sh -c "$(recipe 'A maintenance window' 1)"
	id=${out#OK id=}
	expect_status 1 sh -c "$(recipe 'A maintenance window' 2)"
	[[ $out == *"--release=$id"*"the database moves; ask Ada"* ]] || complain "$out"
	expect_status 1 "$SEMLOCK" -n deploy.lock true
	expect_status 0 "$SEMLOCK" --release="$id" deploy.lock
	expect_status 0 "$SEMLOCK" -n deploy.lock true
}

@test "TOOLS THAT LOCK: a commit waits for git's own lock, and for its turn; npm and cargo, one at a time" {
	git init -q repo
	pushd repo >.out
	git config user.name test
	git config user.email test@example.org
	echo one >file
	git add file
	job=$(recipe 'TOOLS THAT LOCK, OR SHOULD' 1)
	: >.git/index.lock
	start commit sh -c "$job"
	eventually semlock_of "${PID[commit]}"
	"$PROBE" blocked "$(semlock_of "${PID[commit]}")"
	rm .git/index.lock
	ended commit 0
	[ "$(git log --oneline | wc -l)" = 1 ]
	echo two >>file
	git add file
	hold_lock .git/turn
	start commit sh -c "$(recipe 'TOOLS THAT LOCK, OR SHOULD' 2)"
	"$PROBE" blocked "$(semlock_of "${PID[commit]}")"
	[ "$(git log --oneline | wc -l)" = 1 ]
	release holder
	ended commit 0
	[ "$(git log --oneline | wc -l)" = 2 ]
	popd >.out
	holding npm cargo
	in_turn "$(recipe 'TOOLS THAT LOCK, OR SHOULD' 3 | sed -n 1p)"
	in_turn "$(recipe 'TOOLS THAT LOCK, OR SHOULD' 3 | sed -n 2p)"
}

@test "MIGRATIONS: of three replicas that start at once each serves, and one has migrated at a time" {
	load ../lib/remote
	load ../lib/servers/postgresql
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-postgresql" ] || skip "this build has no locks on PostgreSQL"
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR
	postgresql_server max_connections=20 shared_buffers=8MB
	printf '#!/bin/sh\nmkdir migrating && sleep .2 && echo done >>migrations && rmdir migrating\n' >migrate
	printf '#!/bin/sh\necho serves >>served\n' >server
	chmod +x migrate server
	job=$(recipe MIGRATIONS 1 | sed "s#'postgresql://db/migrate?dbname=app'#'${URL/nightly/migrate}'#")
	for n in 1 2 3; do
		start "replica$n" sh -c "$job"
	done
	for n in 1 2 3; do
		ended "replica$n" 0
	done
	[ "$(wc -l <migrations)" = 3 ]
	[ "$(wc -l <served)" = 3 ]
	printf '#!/bin/sh\nexit 4\n' >migrate
	expect_status 4 sh -c "$job"
	[ "$(wc -l <served)" = 3 ]
}

@test "each example of the page is in one of these tests" {
	awk '/^\.S[HS] / { heading = substr($0, 5); n = 0 } /^\.EX/ { print heading "\t" ++n }' \
		"$SOURCE/man/semlock-recipes.7" >examples
	[ "$(wc -l <examples)" -ge 20 ]
	while IFS=$'\t' read -r heading n; do
		grep -Eq "recipe '?$heading'? ($n|\\\$n)" "$SOURCE/tests/contrib/recipes-page.bats" ||
			complain "no test has example $n of $heading"
	done <examples
}
