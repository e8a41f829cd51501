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

@test "systemd: report.service and report.timer are without faults, by systemd-analyze" {
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

@test "systemd: jobs that queue run one after another, and one that is stopped leaves the queue" {
	printf '#!/bin/sh\nexec "%s" hold "$1.up" "$1.down"\n' "$PROBE" >bin/convert
	chmod +x bin/convert
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

@test "systemd: ExecStart= makes the report, and is no failure while another run makes it" {
	mkdir run
	printf '#!/bin/sh\necho report; exit 4\n' >bin/make-report
	chmod +x bin/make-report
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
	printf '#!/bin/sh\nexec "%s" hold "%s/report.up" "%s/report.down"\n' "$PROBE" "$PWD" "$PWD" >bin/make-report
	chmod +x bin/make-report
	read -ra words <<<"$(sed -n 's/^ExecStart=//p' "$RECIPES/report.service" | sed "s|%t|$PWD/run|g")"
	start report "${words[@]}"
	ready report
	[ "${COMMAND[report]}" -eq "${PID[report]}" ]
	expect_held run/report.lock
	let_go report
}

# ---- apt ----

# A package database of the test's own.  If there are FIFOs, the installation of its package waits at them.
packages() {
	export DPKG_ADMINDIR=$PWD/dpkg APT_CONFIG=$PWD/apt.conf
	mkdir -p dpkg/info dpkg/updates dpkg/triggers inst apt/state/lists/partial apt/cache/archives/partial apt/log pkg/DEBIAN
	: >dpkg/status
	printf '%s\n' 'Package: sample' 'Version: 1' 'Architecture: all' \
		'Maintainer: nobody <nobody@example.org>' 'Description: nothing' >pkg/DEBIAN/control
	printf '#!/bin/sh\n[ ! -e "%s/dpkg.up" ] || exec "%s" hold "%s/dpkg.up" "%s/dpkg.down"\n' \
		"$PWD" "$PROBE" "$PWD" "$PWD" >pkg/DEBIAN/preinst
	chmod 755 pkg/DEBIAN pkg/DEBIAN/preinst
	dpkg-deb --root-owner-group -b pkg sample.deb >/dev/null
	DPKG=(dpkg "--admindir=$PWD/dpkg" "--instdir=$PWD/inst" "--log=$PWD/dpkg.log"
		--force-script-chrootless --force-not-root --force-bad-path)
	# no configuration of this machine, and no hook of its own
	cat >apt.conf <<-END
		Dir::Etc "$PWD/apt/none";
		Dir::Etc::main "/dev/null";
		Dir::Etc::parts "/dev/null";
		Dir::State "$PWD/apt/state";
		Dir::State::status "$PWD/dpkg/status";
		Dir::Cache "$PWD/apt/cache";
		Dir::Log "$PWD/apt/log";
		APT::Sandbox::User "";
		DPkg::Lock::Timeout "0";
		DPkg::Options { "--admindir=$PWD/dpkg"; "--instdir=$PWD/inst"; "--log=$PWD/dpkg.log";
			"--force-script-chrootless"; "--force-not-root"; "--force-bad-path"; };
	END
}

installed() {
	dpkg-query "--admindir=$PWD/dpkg" -W -f '${db:Status-Status}' sample 2>/dev/null | grep -qx installed
}

@test "no-apt: dpkg and apt-get give up while it runs, and install when it has ended" {
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
