#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/check and contrib/install-packages: what they say before they do anything.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "contrib/check --help prints a line for each phase, and exits 0" {
	expect_status 0 "$SOURCE/contrib/check" --help
	sed -n 's/^phase_\([a-z_]*\)() {$/\1/p' "$SOURCE/contrib/check" | tr _ - >phases
	[ "$(wc -l <phases)" -ge 12 ]
	while read -r phase; do
		grep -q "^  $phase  *[A-Za-z]" <<<"$out" || complain "nothing of $phase" || return
	done <phases
}

@test "contrib/check names a phase that there is not, and installs nothing" {
	expect_status 64 "$SOURCE/contrib/check" tests qick
	[ ! -s .out ]
	[ "$(wc -l <.err)" -eq 1 ]
	[[ $err == *qick* ]]
	expect_status 64 "$SOURCE/contrib/check" lint other-debian
	[[ $err == *"which release"* ]]
}

# A machine on which two of the packages of the group "lint" are missing, and apt-get says what it would do.
machine() {
	mkdir fake
	cat >fake/dpkg-query <<-'END'
		#!/bin/sh
		awk '$1 == "lint" && $2 !~ /check$/ { print "installed", $2 }' "$SOURCE/contrib/packages"
	END
	cat >fake/apt-get <<-'END'
		#!/bin/sh
		echo "$*" >>"$ASKED"
		case $* in
		*--assume-no*) printf '%s\n' 'The following NEW packages will be installed:' '  cppcheck libz3-4 shellcheck' \
			'0 upgraded, 3 newly installed, 0 to remove and 1 not upgraded.' 'Need to get 26.1 MB of archives.' \
			'After this operation, 1043 MB of additional disk space will be used.' Abort.; exit 1 ;;
		esac
		exit 100
	END
	printf '#!/bin/sh\n%s\n' "$1" >fake/sudo
	chmod 755 fake fake/*
	chmod go+x "$BATS_RUN_TMPDIR" # for another user
	export SOURCE ASKED=$PWD/asked PATH=$PWD/fake:$PATH
	: >asked
	chmod 666 asked
}

# A sudo that runs what it is given, but makes no file of the system's.
SUDO='[ "$1" != -n ] || shift; case $1 in sh) cat >/dev/null ;; rm) ;; *) exec "$@" ;; esac'

@test "before installing: how many packages, how large, and how to remove them" {
	machine "$SUDO"
	expect_status 69 as_nobody "$SOURCE/contrib/install-packages" lint
	grep -q 'with what they need, 3 packages: 26.1 MB to download, 1043 MB of disk, about 1 minute$' <<<"$err" ||
		complain "$err" || return
	grep -q 'to remove them all again, as root: apt-get autoremove --purge cppcheck shellcheck$' <<<"$err" || complain "$err"
}

@test "without the rights: one sentence, with the line to ask for" {
	machine 'echo "nobody is not in the sudoers file" >&2; exit 1'
	expect_status 69 as_nobody setsid -w "$SOURCE/contrib/install-packages" lint
	[ "$(wc -l <.err)" -eq 1 ] || complain "$err" || return
	[[ $err == *"as root: apt-get update && apt-get install -y --no-install-recommends cppcheck shellcheck" ]]
	[ ! -s asked ] || complain "apt-get was asked: $(cat asked)"
}

# As Ctrl-C or a supervisor ends it: the whole process group gets the signal, while packages are looked for.
@test "contrib/check ended by a signal: its status, no error, nothing left" {
	machine 'exit 1'
	mkfifo never
	printf '#!/bin/sh\n: >reached\nread -r _ <>never\n' >fake/dpkg-query
	mkdir tmp
	TMPDIR=$PWD/tmp start check setsid "$SOURCE/contrib/check" lint
	eventually [ -e reached ]
	kill -TERM -- -"${PID[check]}"
	ended check 143
	[ "$(cat check.err)" = Terminated ] || complain "$(cat check.err)" || return # a shell says that of its child
	left=$(ls -A tmp)
	[ -z "$left" ] || complain "left: $left"
}

# A tree whose phases lint, package and quick are a line each: what they begin and end with is in the file said.
# lint ends only when package has begun, and package only when lint has ended; with HANGS each after 20 seconds.
tree_of_stubs() {
	mkdir -p stubs/contrib/packaging fake tmp
	# Other tests run beside this one: what they have in shared directories is none of its concern.
	mkdir shm
	sed "s,/dev/shm,$PWD/shm,g; s,/tmp/\(semlock\|bats\),$PWD/tmp/\1,g; s,name_directories=.*,name_directories=," \
		"$SOURCE/contrib/check" >stubs/contrib/check
	export SAID=$PWD/said TMPDIR=$PWD/tmp PATH=$PWD/fake:$PATH
	for tool in dpkg-buildpackage dh lintian rpmbuild debootstrap autopkgtest; do ln -s /bin/true "fake/$tool"; done
	printf '#!/bin/sh\necho "install $*" >>"$SAID"\n' >stubs/contrib/install-packages
	cat >stubs/contrib/packaging/build <<-'END'
		#!/bin/sh
		echo package >>"$SAID"
		for moment in $(seq 400); do
			! grep -q "^lint$" "$SAID" || [ -n "${HANGS-}" ] || break
			sleep 0.05
		done
		echo package has ended >>"$SAID"
		echo nothing of it can be built
		exit "${BUILT-0}"
	END
	cat >stubs/contrib/fresh-tree <<-'END'
		#!/bin/sh
		printf '#!/bin/sh\ncp ../tree/stub.mk Makefile\n' >"$1/configure"
		cat >"$1/stub.mk" <<'MAKE'
		lint: ; until grep -qx package "$$SAID"; do sleep 0.05; done; echo lint >>"$$SAID"; [ -z "$$HANGS" ] || sleep 20
		check: ; mkdir -p tests; echo ':test-result: PASS one' >tests/one.trs; [ -z "$(TESTS)" ] || echo tests >>"$$SAID"
		all: ; :
		MAKE
		chmod 755 "$1/configure"
		mkdir "$1/tests"
	END
	printf '#!/bin/sh\necho "debian $*" >>"$SAID"\n' >stubs/contrib/other-debian
	chmod 755 stubs/contrib/* stubs/contrib/packaging/build
}

@test "contrib/check builds packages beside lint, and tests them alone" {
	tree_of_stubs
	expect_status 0 timeout 60 stubs/contrib/check lint package quick
	[ "$(sed 1d said)" = $'install package\npackage\nlint\npackage has ended\ntests' ] || complain "$(cat said)" || return
	[ "$(tail -n 1 <<<"$out")" = "1 passed, 0 failed, 0 skipped" ]
}

@test "contrib/check fails if its background job fails, and shows its output" {
	tree_of_stubs
	BUILT=1 expect_status 1 timeout 60 stubs/contrib/check lint package quick
	grep -qx "nothing of it can be built" <<<"$out" || complain "$out" || return
	[ "$(tail -n 2 <<<"$out")" = $'contrib/check: failed: package\n1 passed, 0 failed, 0 skipped' ] || complain "$out"
}

# only_the_first_shells GROUP: of contrib/check, itself and its heartbeat alone are left.
only_the_first_shells() {
	[ "$(pgrep -c -g "$1" -f stubs/contrib/check)" -le 2 ]
}

# By SIGINT, too, which a shell has all ignore that it runs in the background.  The shell that has begun all is stopped
# meanwhile: what it would do against the next phase comes too late.
@test "a signal to contrib/check ends its background job and starts nothing new" {
	tree_of_stubs
	for signal in INT TERM; do
		: >said
		HANGS=yes start check setsid env --default-signal=INT stubs/contrib/check lint package other-debian sid quick
		eventually grep -qx lint said
		kill -STOP "${PID[check]}"
		kill "-$signal" -- -"${PID[check]}"
		eventually only_the_first_shells "${PID[check]}"
		kill -CONT "${PID[check]}"
		ended check $((128 + $(kill -l "$signal")))
		! grep -qxE "tests|package has ended|debian.*" said || complain "$(cat said)" || return
		left=$(ls -A tmp)
		[ -z "$left" ] || complain "left: $left" || return
		eventually sh -c "! pgrep -f '$PWD/[s]tubs/'"
	done
}

@test "contrib/static removes no directory that is not its own" {
	mkdir precious
	: >precious/letters
	expect_status 73 "$SOURCE/contrib/static" precious
	[ "$(wc -l <.err)" -eq 1 ]
	[ -e precious/letters ]
}
