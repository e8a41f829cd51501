#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock-recipes(7): its commands for other tools (backups, git, apt, task runners, containers), as the page has them, with
# the tools themselves where they are small, else with programs that take the same locks and leave the same processes.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/demo
load ../lib/recipes

export PROBE

# shellcheck disable=SC2317 # of helpers.bash
tidy() {
	[ -z "${SERVER-}" ] || kill -KILL "$SERVER" 2>/dev/null || true
}

# needs PROGRAM...
needs() {
	local program
	for program; do command -v "$program" >/dev/null || skip "no $program on this machine"; done
}

# repository: a git repository in the directory repo, with one commit, and a worktree of it in tree
repository() {
	needs git
	git init -q repo
	git -C repo config user.name test
	git -C repo config user.email test@example.org
	git -C repo commit -q --allow-empty -m first
	git -C repo worktree add -q "$PWD/tree" 2>/dev/null
}

@test "WHICH LOCK: each lock excludes those that should meet, and nobody else" {
	holding make
	in_turn "$(recipe 'WHICH LOCK' 1)"
	(umask 077 && in_turn "$(recipe 'WHICH LOCK' 2)")
	[ "$(stat -c %a build)" = 660 ]
	repository
	common=$(recipe 'WHICH LOCK' 3 | sed -n 1p)
	own=$(recipe 'WHICH LOCK' 3 | sed -n 2p)
	mkdir repo/sub
	fifos one && fifos two && fifos three
	here=$PWD
	export NAME
	NAME=$here/one start one sh -c "cd repo/sub && $common"
	ready one
	NAME=$here/two start two sh -c "cd tree && $common"
	sleeping two
	# a worktree's lock is another one
	NAME=$here/three start three sh -c "cd tree && $own"
	ready three
	expect_status 1 "$SEMLOCK" -n tree true
	let_go three
	let_go one
	ready two
	let_go two
}

@test "CRON: several commands in one string are under the lock, quotes and all" {
	recipe 'Several commands, quotes and %' 1 >line
	program sort "! semlock -n '$PWD/sort.lock' true || exit 9; exec $(command -v sort) \"\$@\""
	mkdir data
	printf '%s\n' 2 1 >data/a
	expect_status 0 sh line
	expect_out ok
	[ "$(cat data/b)" = $'1\n2' ]
	rm data/b
	hold_lock sort.lock
	expect_status 1 sh line
	[ ! -e data/b ]
	let_go
}

@test "CRON: a healthcheck is pinged when the job ran, not on a skip or failure" {
	needs curl
	mkdir pings
	: >pings/UUID
	start pings /usr/bin/python3 -u -m http.server --bind 127.0.0.1 --directory pings 0
	SERVER=${PID[pings]}
	eventually grep -q ' port [0-9]' pings.out
	port=$(sed -n 's/.* port \([0-9]*\).*/\1/p' pings.out)
	recipe 'Ping a healthcheck only when the job ran' 1 | sed "s#https://hc-ping.com#http://127.0.0.1:$port#" >lines
	grep -q "^PING=http:.*/UUID$" lines
	holding backup
	begin first "$(cat lines)"
	ready first
	expect_status 1 sh lines
	[ ! -s pings.err ]
	let_go first
	grep -c '"GET /UUID' pings.err >count
	[ "$(cat count)" = 1 ]
	program bin/backup 'exit 4'
	expect_status 4 sh lines
	[ "$(grep -c '"GET /UUID' pings.err)" = 1 ]
}

@test "CRON: restic, borg and rsync at the same minute run one after another" {
	needs restic borg rsync
	export RESTIC_REPOSITORY=$PWD/restic RESTIC_PASSWORD=x BORG_REPO=$PWD/borg BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes
	export TMPDIR=$PWD
	mkdir data
	echo content >data/file
	restic -q init
	borg init -e none
	recipe 'restic, borg and rsync in one crontab' 1 | sed "s#nas:backup#$PWD/copy#; s#semlock#semlock --log=$PWD/log#" >lines
	[ "$(wc -l <lines)" = 3 ]
	hold_lock disk.lock
	while IFS= read -r line; do
		n=$((${n-0} + 1))
		start "backup$n" sh -c "$line"
		sleeping "backup$n"
	done <lines
	let_go
	for n in 1 2 3; do ended "backup$n" 0; done
	[ "$(jq -r '.command[0]' log | xargs)" = "restic borg rsync" ] || complain "$(cat log)"
	[ "$(restic -q ls latest --json | grep -c file)" -ge 1 ]
	borg list --short | grep -q .
	[ "$(cat copy/data/file)" = content ]
}

@test "BUILDS: ninja links two at a time, over all builds" {
	needs ninja
	recipe 'make, ninja' 3 >build.ninja
	printf 'build %s: link\n' one two three >>build.ninja
	cat >bin/cc <<-'END'
		#!/bin/sh
		mkdir "slot$SEMLOCK_SLOT" || echo clash >clash
		"$PROBE" pause 20
		rmdir "slot$SEMLOCK_SLOT"
		echo "$SEMLOCK_SLOT" >"$2"
	END
	chmod +x bin/cc
	expect_status 0 ninja -j 8 one two three
	[ ! -e clash ]
	[ "$(sort -u one two three | xargs)" = "0 1" ] || [ "$(sort -u one two three | xargs)" = 0 ]
}

@test "BUILDS: just, Taskfile and mise: the task's command runs under the lock" {
	recipe 'just, Taskfile, mise' 1 >justfile
	recipe 'just, Taskfile, mise' 2 >Taskfile.yml
	recipe 'just, Taskfile, mise' 3 >mise.toml
	holding tests
	cp bin/tests run-tests
	if command -v just >/dev/null; then in_turn 'just test'; fi
	{
		sed -n 's/^    //p' justfile
		yaml 'd["tasks"]["test"]["cmd"]' Taskfile.yml
		/usr/bin/python3 -c 'import tomllib; print(tomllib.load(open("mise.toml", "rb"))["tasks"]["test"]["run"])'
	} >commands
	[ "$(wc -l <commands)" = 3 ]
	while IFS= read -r command; do in_turn "$command"; done <commands
}

@test "AGENTS: the words for AGENTS.md put builds of all worktrees in turn" {
	recipe 'AGENTS ON ONE MACHINE' 2 >words
	command=$(sed -n 's/^    //p' words)
	[[ $command == semlock\ * ]]
	holding make
	in_turn "$command"
	hold_lock build.lock
	expect_status 75 sh -c "${command/-w 9m/-w .1}"
	sh -c "$(grep -o '"semlock --who[^"]*"' words | tr -d '"')" >said || true
	grep -q "^held  *${COMMAND[holder]} " said || complain "$(cat said)"
	let_go
}

@test "A job that was started without a lock: the next one waits for its end" {
	program bin/next-job 'echo ran >ran'
	start running sleep 1000
	recipe 'A job that was started without a lock' 1 | sed "s/4242/${PID[running]}/" >lines
	[ "$(wc -l <lines)" -eq 2 ]
	expect_status 0 sh -c "$(head -n 1 lines)"
	start next sh -c "$(tail -n 1 lines)"
	sleeping next
	[ ! -e ran ]
	kill -KILL "${PID[running]}"
	ended running 137
	ended next 0
	[ -e ran ]
}

@test "GIT: commits of two worktrees take turns" {
	repository
	echo one >tree/file
	git -C tree add file
	hold_lock repo/.git
	start commit sh -c "cd tree && $(recipe GIT 1)"
	sleeping commit
	[ "$(git -C tree log --oneline | wc -l)" = 1 ]
	let_go
	ended commit 0
	[ "$(git -C tree log --oneline | wc -l)" = 2 ]
}

@test "GIT: \"Another git process\": a commit waits, in a worktree too" {
	repository
	recipe GIT 2 >script
	for place in repo tree; do
		echo one >$place/file
		git -C $place add file
		lock=$(cd $place && realpath "$(git rev-parse --git-path index.lock)")
		: >"$lock"
		expect_status 128 git -C $place commit -qm work
		[[ $err == *"Another git process"* ]] || complain "$err"
		start commit sh -c "cd $place && $(cat script)"
		sleeping commit
		rm "$lock"
		ended commit 0
		[ "$(git -C $place log --oneline | wc -l)" = 2 ]
	done
}

@test "GIT: a pre-push hook, and pre-commit's entry, run the tests in turn" {
	repository
	recipe GIT 3 >repo/.git/hooks/pre-push
	chmod +x repo/.git/hooks/pre-push
	git init -q --bare far
	git -C repo remote add far "$PWD/far"
	holding tests
	cp bin/tests run-tests
	cp bin/tests repo/run-tests
	NAME=$PWD/push
	fifos push
	export NAME
	start push git -C repo push -q far HEAD:main
	ready push
	expect_status 1 "$SEMLOCK" -n test-db.lock true
	let_go push
	git -C far rev-parse -q --verify main
	unset NAME
	recipe GIT 4 >pre-commit.yaml
	in_turn "$(yaml 'd["repos"][0]["hooks"][0]["entry"]' pre-commit.yaml)"
}

@test "APT AND DPKG: apt-get and dpkg wait for an installation, then install" {
	needs apt-get dpkg-deb
	packages
	recipe 'APT AND DPKG' 1 | sed "s#install -y jq#install -y ./sample.deb#; s# jq.deb# sample.deb#; s#$PWD/lock-f#$PWD/dpkg/lock-f#" >lines
	program bin/dpkg "exec $(command -v dpkg) $(printf "'%s' " "${DPKG[@]:1}") \"\$@\""
	sed -n 1p lines >by-apt
	sed -n '2,$p' lines >by-dpkg
	fifos dpkg
	start dpkg "${DPKG[@]}" -i sample.deb
	ready dpkg
	expect_status 1 sh -c "$(recipe 'APT AND DPKG' 2 | sed "s#$PWD/lock-f#$PWD/dpkg/lock-f#")"
	[[ $out == *"held "*" ${PID[dpkg]} "*dpkg* ]] || complain "$out"
	capture env LC_ALL=C "${DPKG[@]}" -i sample.deb
	[[ $err == *lock* ]] || complain "$err"
	start dpkg-next sh by-dpkg
	sleeping dpkg-next
	start apt-next env LC_ALL=C sh by-apt
	eventually grep -q 'Waiting for cache lock' apt-next.out apt-next.err
	mv dpkg.up up # the next ones install at once
	release dpkg
	ended dpkg 0
	ended dpkg-next 0
	ended apt-next 0
	installed
}

@test "APT AND DPKG: apt-get under its own lock gives up, as the page warns" {
	needs apt-get dpkg-deb
	packages
	capture env LC_ALL=C "$SEMLOCK" -m posix dpkg/lock-frontend apt-get install -y ./sample.deb
	[ "$status" -ne 0 ]
	[[ $err == *"Could not get lock"*"(semlock)"* ]] || complain "$err"
	capture installed
	[ "$status" -ne 0 ]
}

@test "LOCKS OF OTHER TOOLS: --who names who has cargo's and uv's files" {
	mkdir -p target/debug .cargo .venv
	hold_by_flock cargo target/debug/.cargo-lock
	hold_by_flock uv .venv/.lock
	expect_status 1 sh -c "$(recipe 'LOCKS OF OTHER TOOLS' 1 | sed -n 1p)"
	[[ $out == *cargo-lock:\ held*" ${COMMAND[cargo]} "*package-cache:\ free* ]] || complain "$out"
	expect_status 1 sh -c "$(recipe 'LOCKS OF OTHER TOOLS' 1 | sed -n 2p)"
	[[ $out == *" ${COMMAND[uv]} "* ]] || complain "$out"
	let_go cargo
	let_go uv
}

@test "LOCKS OF OTHER TOOLS: npm in one tree takes turns" {
	holding npm
	in_turn "$(recipe 'LOCKS OF OTHER TOOLS' 2)"
}

@test "ANSIBLE: two playbooks on one host, from one controller, or from several" {
	holding ansible-playbook
	recipe ANSIBLE 1 >lines
	in_turn "$(sed -n 1p lines)"
	load ../lib/remote
	load ../lib/servers/others
	load ../lib/servers/ssh
	need_locksmith ssh
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR
	DIR=$PWD
	ssh_server
	sed -n '2,$p' lines | sed "s#ssh://web1[^ ]*#$URL#" >several
	grep -q "$URL" several
	begin first "$(cat several)"
	ready first
	begin second "$(cat several)"
	eventually grep -q 'waiting\|held by' second.err
	[ ! -s second.up ]
	let_go first
	ready second
	let_go second
}

# An engine whose containers are children of nobody, and whose client only waits, and passes TERM on.  The program in the
# container ignores TERM.
engine() {
	cat >bin/docker <<-'END'
		#!/bin/bash
		case $1 in
		rm) # -f NAME
			[ -e "container.$3" ] || { echo "No such container: $3" >&2; exit 1; }
			kill -KILL "-$(cat "container.$3")" 2>/dev/null
			rm -f "container.$3"
			;;
		run) # --rm --name NAME IMAGE COMMAND...
			[ ! -e "container.$4" ] || { echo "name in use" >&2; exit 125; }
			# as a daemon's child, which inherits nothing of the client
			(for fd in /proc/"$BASHPID"/fd/*; do [ "${fd##*/}" -le 2 ] || eval "exec ${fd##*/}>&-"; done
			trap '' TERM; exec setsid bash -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; "${@:2}"; echo $? >"$0.status"' "container.$4" "${@:5}") <&0 &
			until [ -e "container.$4" ]; do sleep .01; done
			trap 'kill -TERM "$(cat "container.$4")" 2>/dev/null' TERM
			until [ -e "container.$4.status" ] || [ ! -e "container.$4" ]; do sleep .01; done
			[ -e "container.$4.status" ] || exit 137
			status=$(cat "container.$4.status")
			rm -f "container.$4" "container.$4.status"
			exit "$status"
			;;
		esac
	END
	chmod +x bin/docker
}

reaches_its_limit() {
	rm -f late.*
	begin late "${job/ 1h / ${room}e-3 }" || return
	ready late || return
	ended late 137 || return
	"$PROBE" gone "${COMMAND[late]}"
}

@test "limited-container: the container ends at the limit, or at a signal" {
	engine
	job=$(recipe 'docker run or podman run with a time limit' 1)
	holding run
	mv bin/run .
	# it ends by itself
	program bin/quick 'exit 5'
	expect_status 5 sh -c "${job/.\/run/quick}"
	[ ! -e container.job ]
	# its input is the caller's
	program bin/words 'exec cat'
	echo "to be read" >input
	expect_status 0 sh -c "${job/.\/run/words}" <input
	expect_out "to be read"
	# the limit; the program ignores TERM
	sed 's/-k 10/-k .1/' "$RECIPES/limited-container" >bin/limited-container
	chmod +x bin/limited-container
	with_room reaches_its_limit
	[ ! -e container.job ]
	# a signal to the client's parent
	begin stopped "exec $job"
	ready stopped
	kill -TERM "${PID[stopped]}"
	wait "${PID[stopped]}" || true
	"$PROBE" gone "${COMMAND[stopped]}"
	# the client of an earlier run was killed: its container never runs beside the next one
	begin killed "exec $job"
	ready killed
	kill -KILL $(pgrep -f "$PWD/bin/limited-container 1h") $(pgrep -f "$PWD/bin/docker run") "${PID[killed]}"
	wait "${PID[killed]}" || true
	[ -e container.job ]
	begin next "$job"
	ready next
	"$PROBE" gone "${COMMAND[killed]}"
	let_go next
}

@test "Kubernetes CronJob: another's run is skipped, and succeeds" {
	yaml 'd["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["command"]' "$RECIPES/cronjob.yaml" >words
	recipe 'A Kubernetes CronJob that must not overlap' 1 >line.yaml
	[ "$(yaml 'd["command"]' line.yaml)" = "$(cat words)" ]
	[ "$(yaml 'd["kind"], d["spec"]["concurrencyPolicy"]' "$RECIPES/cronjob.yaml")" = "('CronJob', 'Forbid')" ]
	demo_helpers etcd
	holding make-report
	mapfile -t command <words
	fifos first
	NAME=first start first "${command[@]}"
	ready first
	expect_status 0 "${command[@]}"
	expect_silent
	let_go first
}
