#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/recipes: scripts to copy from, run as their README says.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/recipes

@test "queue: the second and the third run wait, and run in this order" {
	for recipe in queue section; do
		stand "$recipe.1" "$recipe"
		behind "$recipe.2" "$recipe"
		behind "$recipe.3" "$recipe"
		[ ! -s "$recipe.2.out" ]
		let_go "$recipe.1"
		grep -q "^I'm done" "$recipe.1.out"
		ready "$recipe.2"
		[ ! -s "$recipe.3.out" ]
		let_go "$recipe.2"
		ready "$recipe.3"
		let_go "$recipe.3"
	done
}

@test "queue, section, self-lock: the command's status, or the lock's failure" {
	for recipe in queue section self-lock reject; do
		expect_status 3 "$recipe" sh -c 'exit 3'
	done
	for recipe in queue section reject; do
		rm ".$recipe.lock"
		mkdir ".$recipe.lock"
		capture "$recipe" touch ran
		[ "$status" -ne 0 ]
		[ ! -e ran ]
	done
}

@test "section: after the part the lock is free, though the script runs on" {
	fifos on
	# the script's last line, outside of the section, stays until the test lets go
	sed "s|^exit|'$PROBE' hold on.up on.down; exit|" "$RECIPES/section" >section
	chmod +x section
	start on ./section true
	ready on
	expect_free .section.lock
	let_go on
}

@test "reject: a second run exits with 75; once the first has ended, it can run" {
	stand one reject
	expect_status 75 reject touch ran
	[[ $out == "I'm rejected ("* ]]
	[ ! -e ran ]
	let_go one
	expect_status 0 reject touch ran
	[ -e ran ]
}

@test "self-lock: the second run is refused, with status 1" {
	cp "$RECIPES/self-lock" mine
	stand one ./mine
	expect_status 1 ./mine touch ran
	[ ! -e ran ]
	let_go one
	expect_status 0 ./mine true
}

@test "self-lock with a file, with a directory (-m mkdir), under an outer lock" {
	self_lock_with "$PWD/file.lock"
	self_lock_excludes
	self_lock_with "$PWD/dir.lock" "-m mkdir"
	self_lock_excludes
	[ ! -e dir.lock ]
}

@test "guard: protects another author's script, even one replaced meanwhile" {
	write_viewer() {
		printf '#!/bin/sh\n# viewer, version %s\n"$@"\n' "$1" >new
		chmod +x new
		sed -i "1r $RECIPES/guard" new
		mv new viewer
	}
	write_viewer 1
	stand one ./viewer
	write_viewer 2
	refused 1 "held by ${PID[one]} (" ./viewer touch ran
	[ ! -e ran ]
	let_go one
	expect_status 0 ./viewer true
	expect_silent
	chmod 0 .viewer.lock
	[ "$(id -u)" -eq 0 ] || { capture ./viewer touch ran; [ "$status" -gt 1 ]; }
}

@test "on-off: each press switches, and ends all that the command has started" {
	program viewer '"$@" & wait'
	for _ in 1 2; do
		stand on on-off ./viewer
		expect_status 0 on-off ./viewer touch ran
		[ ! -e ran ]
		ended on 143
		"$PROBE" gone "${COMMAND[on]}"
		rm on.up on.down
	done
}

@test "pool: each run has a line; a killed run's line is free again; one waits" {
	printf 'red\ngreen\nblue\n' >list
	stand one pool list sh -c 'echo "$RESOURCE"; exec "$@"' sh
	stand two pool list sh -c 'echo "$RESOURCE"; exec "$@"' sh
	stand three pool list sh -c 'echo "$RESOURCE"; exec "$@"' sh
	[ "$(cat one.out two.out three.out)" = "$(cat list)" ]
	behind four pool list sh -c 'echo "$RESOURCE"; exec "$@"' sh
	kill -KILL "${PID[two]}" "${COMMAND[two]}"
	ready four
	[ "$(cat four.out)" = green ]
	let_go one
	let_go three
	let_go four
}

@test "pool: a last line may lack its newline; a vanished line stops the run" {
	printf 'red\ngreen' >list
	stand one pool list sh -c 'echo "$RESOURCE"; exec "$@"' sh
	stand two pool list sh -c 'echo "$RESOURCE"; exec "$@"' sh
	[ "$(cat one.out two.out)" = "$(cat list)" ]
	behind three pool list
	echo red >list
	let_go two
	ended three 75
	grep -q 'nothing in line 2' three.err
	let_go one
	: >list
	refused 64 '-j 0' pool list touch ran
	rm list
	expect_status 64 pool list touch ran
	[ ! -e ran ]
}

@test "a recipe without what it needs says how it is used" {
	for recipe in "data-file read" "data-file" "phone-book get" "phone-book" "on-off" gpu "loud-after 2 l" "mailbox l" \
		"marker excl l" "pool l" "shared-log l"; do
		# shellcheck disable=SC2086 # words
		expect_status 64 $recipe
		[[ $err == "usage: ${recipe%% *} "* ]] || complain "$recipe: $err"
	done
	rm bin/semlock
	for recipe in "queue true" "section true" "reject true" "self-lock true" "marker excl m true" "pid-file p true" \
		"limits l true" "on-off true" "data-file append d" "loud-after 2 l true" "no-apt true" "cluster-job true" \
		counter-race; do
		# shellcheck disable=SC2086 # words
		capture env PATH="$PWD/bin:$RECIPES:/usr/bin:/bin" timeout 20 $recipe
		[ "$status" -eq 127 ] && [[ $err == *semlock* ]] || complain "$recipe: $status, $err"
	done
}

@test "counter: wrong without semlock, each time; right with it" {
	echo 0 >counter.dat
	expect_status 0 counter counter.dat
	expect_status 0 counter counter.dat
	expect_out "Hits on this page: 2"
	for _ in 1 2 3; do
		expect_status 0 timeout 60 counter-race
		[ "$(grep -v '^--' .out)" = "$(printf '%s\n' \
			'Hits on this page: 1001' 'Hits on this page: 1001' 'counted: 1001' \
			'Hits on this page: 1001' 'Hits on this page: 1' 'counted: 1001' \
			'Hits on this page: 1001' 'Hits on this page: 1' 'counted: 1001' \
			'Hits on this page: 1001' 'Hits on this page: 1002' 'counted: 1002' \
			'Hits on this page: 1001' 'Hits on this page: 1002' 'counted: 1002')" ] || complain "$out"
	done
}

@test "counter: with a lock that excludes nobody the demonstration fails" {
	program sham 'while [ $# -gt 0 ] && [ "$1" != counter ]; do shift; done; exec "$@"'
	mv sham bin/semlock
	capture env TMPDIR="$PWD" timeout 60 counter-race
	[ "$status" -eq 1 ]
	[[ $out == *"-- semlock counter.sem"$'\n'"Hits on this page: 1001" ]] || complain "$out"
}

@test "data-file replace: the file keeps its mode, whatever the umask is" {
	echo 1 >d
	chmod 664 d
	(umask 077 && expect_status 0 data-file replace d < <(echo 2))
	[ "$(stat -c %a d) $(<d)" = "664 2" ] || complain "$(ls -l d)"
}

@test "data-file: readers share, a writer is alone, the file is always whole" {
	expect_status 0 data-file replace d < <(seq 3)
	expect_status 0 data-file append d < <(echo 4)
	expect_status 0 data-file read d
	expect_out "$(seq 4)"
	hold_as reader -s d.lock
	expect_status 0 data-file read d
	mkfifo in
	exec 5<>in
	start writer sh -c 'exec data-file replace d <in' 5>&-
	until pid=$(semlock_of "${PID[writer]}"); do :; done 2>/dev/null
	"$PROBE" blocked "$pid"
	let_go reader
	echo half >&5
	until [ -s d.new ]; do kill -0 "$pid"; done
	# the writer is killed in the middle of its writing
	kill -KILL "$pid" $(pgrep -P "$pid") $(pgrep -P "$(pgrep -P "$pid")")
	exec 5>&-
	expect_status 0 data-file read d
	expect_out "$(seq 4)"
	expect_status 64 data-file write d
}

# limited_to MS: ./short is the recipe, with less time
limited_to() {
	sed "s/-w 5/-w .1/; s/5m/$1ms/" "$RECIPES/limits" >short
	chmod +x short
}

# too_long: the command has to run before its time is up.
too_long() {
	local up pid
	rm -f long.up long.down
	limited_to "$room"
	fifos long
	exec {up}<>long.up # the probe's line stays in the FIFO
	start long ./short l sh -c '"$@" & wait' sh "$PROBE" hold long.up long.down
	ended long 124 && read -r -t 1 _ pid <&"$up" && "$PROBE" gone "$pid"
}

@test "limits: a long wait exits 75; a long run 124, with all it started ended" {
	expect_status 3 limits l sh -c 'exit 3'
	limited_to 200
	hold_lock l
	expect_status 75 ./short l touch ran
	[ ! -e ran ]
	let_go
	with_room too_long
}

@test "marker: exists while the command runs; a killed run's is taken over" {
	sed 's/-w 5/-w .1/' "$RECIPES/marker" >marker
	chmod +x marker
	for method in excl symlink mkdir rename; do
		mark=$method.mark
		there=$mark
		[ $method != rename ] || there=$mark.held
		rm -f one.up one.down
		stand one ./marker $method $mark
		[ -e $there ] || [ -L $there ]
		expect_status 75 ./marker $method $mark touch ran
		[ ! -e ran ]
		kill -KILL "${PID[one]}" "${COMMAND[one]}"
		"$PROBE" gone "${PID[one]}"
		"$PROBE" gone "${COMMAND[one]}"
		expect_status 0 ./marker $method $mark true
		expect_silent
		[ ! -e $there ]
		[ ! -L $there ]
	done
}

@test "marker: TERM ends the command, and then the mark goes" {
	fifos one
	start one marker symlink mark "$PROBE" hold one.up one.down
	ready one
	[ -L mark ]
	kill -TERM "${PID[one]}"
	ended one 143
	[ ! -L mark ]
	"$PROBE" gone "${COMMAND[one]}"
}

@test "pid-file: names the command's PID, refuses a second, replaces a dead one" {
	sed 's/-w 3/-w .1/' "$RECIPES/pid-file" >pid-file
	chmod +x pid-file
	stand one ./pid-file p
	[ "$(head -n 1 p)" -eq "${COMMAND[one]}" ]
	expect_status 75 ./pid-file p touch ran
	[ ! -e ran ]
	kill -KILL "${PID[one]}" "${COMMAND[one]}"
	"$PROBE" gone "${PID[one]}"
	"$PROBE" gone "${COMMAND[one]}"
	expect_status 0 ./pid-file p touch ran
	[ -e ran ]
	[ ! -e p ]
}

# cron_job N: runs job N as cron does: sh, few variables, in the home directory; NAME.lock stands for --name=NAME.
cron_job() {
	grep -v -e '^#' -e '^[A-Z]*=' -e '^$' "$RECIPES/crontab" | sed -n "s|--name=\([a-z]*\)|\1.lock|; $1p" >line
	# five fields of time and a command without a %, which cron would take for the end of the line
	grep -Eqx '([0-9*/,-]+ +){5}[^%]+' line
	env -i HOME="$HOME" LOGNAME=me SHELL=/bin/sh PATH="$PATH" /bin/sh -c "$(sed -E 's/^([^ ]+ +){5}//' line)"
}

@test "crontab: one at a time, quiet when busy, loud when a job or lock fails" {
	program bin/make-report 'echo made; exit 4'
	hold_lock report.lock
	expect_status 0 cron_job 1
	expect_silent
	let_go
	expect_status 4 cron_job 1
	expect_out made
	rm report.lock
	ln -s loop report.lock
	ln -s report.lock loop
	expect_status 66 cron_job 1
	[ -n "$err" ]
}

@test "crontab: after 12 skips in a row it names the holder, and again after 24" {
	program bin/fetch-feeds 'exit 1'
	hold_lock .fetch.lock
	for skip in $(seq 24); do
		case $skip in
		12 | 24)
			expect_status 1 cron_job 2
			expect_out ""
			[[ $err == "skipped $skip times, first on "*"held"*"${COMMAND[holder]} "* ]] || complain "$err" ;;
		*)
			expect_status 0 cron_job 2
			expect_silent ;;
		esac
	done
	let_go
	# the job's own 1 is the status, and the job's run ends the row of skips
	expect_status 1 cron_job 2
	expect_silent
	[ ! -e .fetch.lock.skipped ]
}

@test "loud-after: passes a signal on, and holds the lock until it has ended" {
	fifos mine
	start mine loud-after 2 l "$PROBE" signals mine.up mine.down
	ready mine
	for name in TERM HUP INT TERM; do
		kill -"$name" "${PID[mine]}"
		reports mine "$name"
	done
	expect_held l
	let_go mine
	expect_free l
	stand mine2 loud-after 2 l
	kill -TERM "${PID[mine2]}"
	ended mine2 143
	"$PROBE" gone "${COMMAND[mine2]}"
	expect_free l
}

@test "loud-after: a command that closes all descriptors keeps the lock" {
	fifos mine
	start mine loud-after 2 l "$PROBE" closefrom-then-hold mine.up mine.down
	ready mine
	expect_held l
	expect_status 0 loud-after 2 l touch ran
	[ ! -e ran ]
	[ -s l.skipped ]
	let_go mine
	expect_free l
}

@test "crontab: a job that waits for another job" {
	program bin/make-backup 'echo backed up'
	expect_status 0 cron_job 3
	expect_out "backed up"
	[ -z "$(cron_job 4 2>/dev/null)" ]
}

@test "build-slot: fills all slots, then waits; a nested build does not wait" {
	export BUILD_LOCK=$PWD/slots BUILD_SLOTS=2
	stand one build-slot
	stand two build-slot
	behind three build-slot
	let_go one
	ready three
	let_go two
	let_go three
	rm ./*.up ./*.down
	export BUILD_SLOTS=1
	expect_status 5 build-slot build-slot sh -c 'echo $SEMLOCK_SLOT; exit 5'
	expect_out 0
}

@test "build-slot and gpu: the lock that the first user made serves every user" {
	root_only "to be two users"
	chmod 777 .
	export BUILD_LOCK=slots GPU_LOCK=pool GPUS=1
	PATH=${SEMLOCK%/*}:$PATH	# nobody may not enter the directories above this one
	for recipe in build-slot gpu; do
		expect_status 0 "$recipe" true
		expect_status 0 as_nobody "$RECIPES/$recipe" true
	done
}

@test "gpu: each has one for itself, and waits while all are taken" {
	program bin/nvidia-smi 'printf "GPU 0\nGPU 1\n"'
	export GPU_LOCK=$PWD/pool
	stand one gpu
	expect_status 3 gpu sh -c 'echo $CUDA_VISIBLE_DEVICES; exit 3'
	expect_out 1
	stand two gpu
	behind three gpu
	let_go one
	ready three
	let_go two
	let_go three
}

@test "shared-log: the output of each stays in one piece, statuses their own" {
	program bin/speaks 'for _ in 1 2 3 4 5 6 7 8 9; do yes "$1" | head -n 300000; done'
	seq 6 | xargs -P 6 -n 1 shared-log log speaks
	[ "$(uniq log | wc -l)" -eq 6 ] || complain "$(uniq -c log)"
	[ "$(wc -l <log)" -eq 16200000 ]
	expect_status 7 shared-log log sh -c 'echo last; exit 7'
	[ "$(tail -n 1 log)" = last ]
}

@test "shared-log: what the command printed is in the log, even after TERM" {
	stand one shared-log log sh -c 'echo said; exec "$0" "$@"'
	kill -TERM "${PID[one]}"
	let_go one
	[ "$(cat log)" = said ] || complain "the log has: $(cat log)"
}

@test "lock-report: the runs of each lock, and the longest waits and holds" {
	"$SEMLOCK" --log=log a true
	hold_as long --log=log b
	capture "$SEMLOCK" --log=log -n b true
	start waiter "$SEMLOCK" --log=log b sh -c 'exit 3'
	"$PROBE" blocked "${PID[waiter]}"
	let_go long
	ended waiter 3
	printf '{"time": "of a full' >>log
	expect_status 0 lock-report log 1
	grep -Pq '^a\t1\t0\t' .out
	grep -Pq '^b\t3\t1\t' .out
	[ "$(sed -n '/^longest waits/,/^$/p' .out | wc -l)" -eq 3 ] || complain "$out"
	# Which is the longest is the machine's to say: a start may take longer than the wait did.
	expect_status 0 lock-report log 9
	for part in waits holds; do
		sed -n "/^longest $part/,/^$/p" .out | grep -P '^[0-9]' >"$part"
		cut -f 1 "$part" | sort -rn -c || complain "$out"
	done
	grep -Pq '\tb\texit 3\tsh -c exit 3$' waits || complain "$out"
	grep -Pq "\tb\texit 0\t$PROBE hold" holds || complain "$out"
	expect_status 64 lock-report
}
