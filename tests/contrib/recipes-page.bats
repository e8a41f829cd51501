#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock-recipes(7): each of its commands, as the page has it, with programs of the test's own under the locks.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/demo
load ../lib/recipes

export PROBE

@test "CRON: the lines are the recipe crontab's; the first finds semlock" {
	recipe 'CRON JOBS THAT MUST NOT OVERLAP' 1 >lines
	[ "$(wc -l <lines)" -eq 4 ]
	locks_here <"$RECIPES/crontab" >file
	while IFS= read -r line; do
		grep -Fqx "$line" file || complain "not in crontab: $line"
	done <lines
	[[ $(head -n 1 lines) == PATH=/usr/local/bin:* ]]
}

@test "CRON: a job is skipped with its reason, and silent otherwise" {
	recipe 'Say why a run was skipped' 1 >script
	program bin/job 'exit 4'
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
		recipe 'SYSTEMD UNITS' $n >lines
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
	in_turn "$(recipe 'make, ninja' 1)"
	rm -f .out .err
	ls -a >after
	diff before after
}

@test "MAKE: two links at a time over all builds, and one check" {
	recipe 'make, ninja' 2 >Makefile
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
	program bin/cc 'for _ in 1 2 3; do yes "$2" | head -n 30000; done'
	touch a.c b.c c.c d.c e.c f.c
	expect_status 0 sh -c "$(recipe 'xargs: devices, and output in one piece' 1)"
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
	expect_status 0 sh -c "$(recipe 'xargs: devices, and output in one piece' 2)"
	expect_silent
	[ "$(grep -c 'wav [0-3]$' devices)" -eq 8 ] || complain "$(cat devices)"
	[ "$(grep -c 'all [0-3],[0-3]$' devices)" -eq 1 ]
}

@test "AGENTS: builds in order, one at a time; hung ones end, late ones give up" {
	build=$(recipe 'AGENTS ON ONE MACHINE' 1)
	holding make
	in_turn "$build"
	begin hung "${build/=2h/=1}"
	ready hung
	begin next "$build"
	ended hung 124
	ready next
	expect_status 75 sh -c "${build/-w 1h/-w .1}"
	expect_status 0 sh -c "$(recipe 'AGENTS ON ONE MACHINE' 5)"
	[[ $out == *"held"*"${COMMAND[next]} "*"longest waits"*"build.lock"*timeout* ]] || complain "$out"
	let_go next
}

@test "AGENTS: a killed agent's build and place end; a short build goes first" {
	build=$(recipe 'AGENTS ON ONE MACHINE' 1)
	holding make
	begin agent "$build; :"
	ready agent
	begin waiting "$build; :"
	sleeping waiting
	begin last "$build"
	sleeping last
	begin short "$(recipe 'AGENTS ON ONE MACHINE' 4)"
	sleeping short
	kill -KILL "${PID[waiting]}" "${PID[agent]}"
	"$PROBE" gone "${COMMAND[agent]}"
	ready short
	let_go short
	ready last
	let_go last
}

@test "AGENTS: in the sandbox of an agent: a hung build, a killed agent" {
	without_leak_check
	local kind inside="${PROBE%/*}/tools/sandboxed"
	build=$(recipe 'AGENTS ON ONE MACHINE' 1)
	holding make
	for kind in agent agent-no-unix; do
		fifos hung
		NAME=hung start hung "$inside" $kind sh -c "${build/=2h/=1}"
		ready hung
		ended hung 124
		fifos agent
		NAME=agent start agent "$inside" $kind sh -c "$build; :"
		ready agent
		begin next "$build"
		sleeping next
		kill -KILL "${PID[agent]}"
		ended agent 137
		"$PROBE" gone "${COMMAND[agent]}"
		ready next
		let_go next
		rm ./*.up ./*.down
	done
}

@test "AGENTS: the next build ends one that is too old, and waits for others" {
	build=$(recipe 'AGENTS ON ONE MACHINE' 3)
	holding make
	in_turn "$build" true
	begin hung "$build"
	ready hung
	begin next "${build/=2h/=.3}"
	ended hung 143
	ready next
	begin last "$build"
	eventually has_a_waiter build.lock flock
	let_go next
	ready last
	let_go last
}

@test "AGENTS: two builds at a time, and builds within a build in its slot" {
	build=$(recipe 'AGENTS ON ONE MACHINE' 6)
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
	program bin/make "${build/ make/ inner}"
	rm one.* two.*
	begin one "$build"
	ready one
	begin two "$build"
	ready two
	let_go one
	let_go two
}

@test "ONE OF SEVERAL SERVERS: once a period, on a server or a shared disk" {
	demo_helpers etcd
	program bin/tidy 'echo ran >>runs'
	for n in 1 2; do
		job=$(recipe 'ONE OF SEVERAL SERVERS' $n)
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

@test "MAIL: a mailbox is locked by the file beside it and both kernel locks" {
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
@test "APT AND DPKG: a copy is made under the lock of dpkg, as by no-apt" {
	holding tar
	in_turn "$(recipe 'APT AND DPKG' 3)"
	grep -q '/lock-frontend$' "$RECIPES/no-apt"
}

@test "a script that locks itself: each form refuses a second run" {
	for n in 1 2; do
		{
			echo '#!/bin/sh'
			recipe 'Only one instance of a script' $n
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

@test "MONITORING: a log, a report of it, an alarm, and what Prometheus reads" {
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
	program bin/journalctl "cat '$PWD/entries'"
	recipe MONITORING 5 >journal
	expect_status 0 sh journal
	[[ $out == *'"outcome": "exit 0"'* ]] || complain "$out"
}

@test "AGENTS: four builds at a time, each started when there is memory" {
	holding make
	job=$(recipe 'AGENTS ON ONE MACHINE' 7)
	program bin/wait-until-free 'exec wait-until-free.tried "$@"'
	sed 's#/proc/meminfo#'"$PWD"'/meminfo#' "$RECIPES/wait-until-free" >bin/wait-until-free.tried
	chmod +x bin/wait-until-free.tried
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


# shellcheck disable=SC2317 # of helpers.bash
tidy() {
	exec 5>&- 6>&-
	if declare -F postgresql_stop_all >.out; then postgresql_stop_all; fi
}

# told N: the Nth command in the words for an agent, on one line
told() {
	recipe 'Tool calls of an agent' 1 | sed -n 's/^    //p' | sed -e ':a; /\\$/{N; s/\\\n *//; ba' -e '}' | sed -n "$1p"
}

@test "Tool calls of an agent: a lock spans calls, and ends with the agent" {
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

@test "Hooks before and after: the lock is held between the two" {
	for n in 1 2; do
		recipe 'Hooks before and after' $n >hook$n
		chmod +x hook$n
	done
	agent
	agent_says "exec ./hook1"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	expect_status 1 "$SEMLOCK" -n backup.lock true
	# This test is another tool.  It did not get the lock, and does not release the first tool's.
	expect_status 64 ./hook2
	expect_status 1 "$SEMLOCK" -n backup.lock true
	start other ./hook1
	eventually sh -c '"$SEMLOCK" --who backup.lock | grep -q "1 waiting"'
	agent_says "exec ./hook2"
	[ "$answer" = 0 ] || complain "$(cat .call)"
	ended other 0
	# The first tool does not release the other's, either.
	agent_says "exec ./hook2"
	[ "$answer" = 76 ] || complain "$(cat .call)"
	expect_status 1 "$SEMLOCK" -n backup.lock true
	expect_status 0 ./hook2
	expect_status 0 "$SEMLOCK" -n backup.lock true
}

@test "A maintenance window: held until a person ends it, and others see why" {
	expect_status 0 sh -c "$(recipe 'A maintenance window' 1)"
	id=${out#OK id=}
	expect_status 1 sh -c "$(recipe 'A maintenance window' 2)"
	[[ $out == *"--release=$id"*"the database moves; ask Ada"* ]] || complain "$out"
	expect_status 1 "$SEMLOCK" -n deploy.lock true
	expect_status 0 "$SEMLOCK" --release="$id" deploy.lock
	expect_status 0 "$SEMLOCK" -n deploy.lock true
}

@test "MIGRATIONS: of three replicas each serves, and one at a time migrates" {
	load ../lib/remote
	load ../lib/servers/postgresql
	need_locksmith postgresql
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR
	postgresql_server max_connections=20 shared_buffers=8MB
	program migrate 'mkdir migrating && sleep .2 && echo done >>migrations && rmdir migrating'
	program server 'echo serves >>served'
	job=$(recipe MIGRATIONS 1 | sed "s#'postgresql://app@db/migrate?dbname=app'#'${URL/nightly/migrate}'#")
	for n in 1 2 3; do
		start "replica$n" sh -c "$job"
	done
	for n in 1 2 3; do
		ended "replica$n" 0
	done
	[ "$(wc -l <migrations)" = 3 ]
	[ "$(wc -l <served)" = 3 ]
	program migrate 'exit 4'
	expect_status 4 sh -c "$job"
	[ "$(wc -l <served)" = 3 ]
}

@test "Tool calls of an agent: one call, where a sandbox forbids --detach" {
	without_leak_check
	local inside="${PROBE%/*}/tools/sandboxed"
	refused 69 "a sandbox forbids it" "$inside" agent sh -c "$(told 1)"
	holding deploy
	program bin/migrate 'echo migrated'
	fifos deploy
	NAME=deploy start deploy "$inside" agent sh -c "$(recipe 'Tool calls of an agent' 2)"
	ready deploy
	expect_status 1 "$SEMLOCK" --who deploy.lock
	[[ $out == *"why, in five words"* ]] || complain "$out"
	let_go deploy
	[ "$(cat deploy.out)" = migrated ]
}

@test "each example of the page is in one of these tests" {
	awk '/^\.S[HS] / { heading = substr($0, 5); n = 0 } /^\.EX/ { print heading "\t" ++n }' \
		"$SOURCE/man/semlock-recipes.7" >examples
	[ "$(wc -l <examples)" -ge 60 ]
	while IFS=$'\t' read -r heading n; do
		grep -Eq "recipe '?$heading'? ($n|\\\$n)" "$SOURCE"/tests/contrib/recipes-page*.bats ||
			complain "no test has example $n of $heading"
	done <examples
}
