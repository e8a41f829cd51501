#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/recipes: systemd's units, and apt locked out.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/recipes

# ---- systemd ----

# A root directory for systemd-analyze: Debian's units, the recipes' units, and the programs that these start.
systemd_root() {
	local units=/usr/lib/systemd/system
	[ -d $units ] || units=/lib/systemd/system
	mkdir -p root/usr/lib/systemd root/usr/local/bin root/etc/systemd/system
	cp -r $units root/usr/lib/systemd/
	cp "$RECIPES"/report.* root/etc/systemd/system/
	cp "$SEMLOCK" root/usr/local/bin/semlock
	printf '#!/bin/sh\n' >root/usr/local/bin/make-report
	chmod +x root/usr/local/bin/make-report
}

verify() {
	env SYSTEMD_LOG_TARGET=console systemd-analyze verify --root="$PWD/root" report.service report.timer
}

@test "systemd: systemd-analyze finds no fault in report.service and its timer" {
	systemd_root
	expect_status 0 verify
	expect_silent
	# systemd-analyze would have found a fault, and a program that is not there
	sed -i s/^SuccessExitStatus/SuccessfulExitStatus/ root/etc/systemd/system/report.service
	capture verify
	[[ $err == *"Unknown key"* ]]
	rm root/usr/local/bin/make-report root/usr/local/bin/semlock
	capture verify
	[ "$status" -ne 0 ]
}

@test "systemd: queued@.service and queued-daemon.service are without faults" {
	systemd_root
	cp "$RECIPES"/queued* root/etc/systemd/system/
	cp root/usr/local/bin/make-report root/usr/local/bin/convert
	cp root/usr/local/bin/make-report root/usr/local/bin/my-daemon
	expect_status 0 env SYSTEMD_LOG_TARGET=console systemd-analyze verify --root="$PWD/root" queued@one.service queued-daemon.service
	expect_silent
}

@test "systemd: locks-to-journal.service is without faults" {
	systemd_root
	cp "$RECIPES"/locks-to-journal.service root/etc/systemd/system/
	cp root/usr/local/bin/make-report root/usr/local/bin/tail
	expect_status 0 env SYSTEMD_LOG_TARGET=console systemd-analyze verify --root="$PWD/root" locks-to-journal.service
	expect_silent
}

# start_of UNIT NAME: what ExecStart= of UNIT says, for the instance NAME.
start_of() {
	sed -n 's/^ExecStart=//p' "$RECIPES/$1" | sed "s|%t|$PWD|g; s|%i|$2|g"
}

@test "systemd: queued jobs run in order, and a stopped one leaves the queue" {
	program bin/convert "exec '$PROBE' hold \"\$1.up\" \"\$1.down\""
	cp bin/convert bin/my-daemon
	for name in one two three; do
		fifos $name
		read -ra words <<<"$(start_of queued@.service $name)"
		start $name "${words[@]}"
		if [ $name = one ]; then ready one; else "$PROBE" blocked "${PID[$name]}"; fi
	done
	[ "${COMMAND[one]}" -eq "${PID[one]}" ] # -F: systemd's main process is the job's
	kill -TERM "${PID[two]}"
	ended two 143
	let_go one
	ready three
	let_go three
}

# exec_start: runs ExecStart= as systemd does: %t is replaced, and no shell splits the words.
exec_start() {
	local words
	read -ra words <<<"$(sed -n 's/^ExecStart=//p' "$RECIPES/report.service" | sed "s|%t|$PWD/run|g")"
	[ ${#words[@]} -gt 3 ]
	env -i PATH="$PATH" "${words[@]}"
}

@test "systemd: ExecStart= makes the report, and succeeds if another run does" {
	mkdir run
	program bin/make-report 'echo report; exit 4'
	expect_status 4 exec_start
	expect_out report
	hold_lock run/report.lock
	success=$(sed -n 's/^SuccessExitStatus=//p' "$RECIPES/report.service")
	expect_status "$success" exec_start
	expect_silent
	let_go
	rmdir run 2>/dev/null || rm -r run
	expect_status 66 exec_start
	[ -n "$err" ]
}

@test "systemd: the process that systemd watches is the report's own" {
	mkdir run
	fifos report
	program bin/make-report "exec '$PROBE' hold '$PWD/report.up' '$PWD/report.down'"
	read -ra words <<<"$(sed -n 's/^ExecStart=//p' "$RECIPES/report.service" | sed "s|%t|$PWD/run|g")"
	start report "${words[@]}"
	ready report
	[ "${COMMAND[report]}" -eq "${PID[report]}" ]
	expect_held run/report.lock
	let_go report
}

# ---- apt ----

@test "no-apt: dpkg and apt-get give up while it runs, and work afterwards" {
	packages
	stand mine no-apt
	capture env LC_ALL=C "${DPKG[@]}" -i sample.deb
	[ "$status" -ne 0 ]
	[[ $err == *"lock"* ]] || complain "$err"
	capture env LC_ALL=C apt-get -y install ./sample.deb
	[ "$status" -ne 0 ]
	inner=$(pgrep -P "${PID[mine]}" semlock) # see src/run/subreaper.h
	[[ $err == *"dpkg/lock-frontend. It is held by process $inner (semlock)"* ]] || complain "$err"
	capture installed
	[ "$status" -ne 0 ]
	let_go mine
	expect_status 0 env LC_ALL=C apt-get -y install ./sample.deb
	installed
}

@test "no-apt: waits for an installation that is under way" {
	packages
	fifos dpkg
	start dpkg "${DPKG[@]}" -i sample.deb
	ready dpkg
	expect_status 75 env NO_APT_WAIT=.1 no-apt touch ran
	[ ! -e ran ]
	behind mine no-apt
	release dpkg
	ready mine
	ended dpkg 0
	installed
	let_go mine
}
