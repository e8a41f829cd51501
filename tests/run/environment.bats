#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the command is told in its environment.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "the lock, the method and the mode" {
	expect_status 0 "$SEMLOCK" some.lock sh -c 'echo "$SEMLOCK_LOCK $SEMLOCK_METHOD $SEMLOCK_MODE"'
	expect_out "some.lock flock exclusive"
	expect_status 0 "$SEMLOCK" -s -m ofd some.lock sh -c 'echo "$SEMLOCK_LOCK $SEMLOCK_METHOD $SEMLOCK_MODE"'
	expect_out "some.lock ofd shared"
	expect_status 0 "$SEMLOCK" --fcntl some.lock sh -c 'echo "$SEMLOCK_METHOD"'
	expect_out ofd
	expect_status 0 "$SEMLOCK" -m posix -F "$PWD/some.lock" sh -c 'echo "$SEMLOCK_LOCK $SEMLOCK_METHOD"'
	expect_out "$PWD/some.lock posix"
	expect_status 0 "$SEMLOCK" -o some.lock sh -c 'echo "$SEMLOCK_LOCK"'
	expect_out some.lock
}

@test "inside another lock the inner one is told" {
	expect_status 0 "$SEMLOCK" -s outer "$SEMLOCK" inner sh -c 'echo "$SEMLOCK_LOCK $SEMLOCK_MODE"'
	expect_out "inner exclusive"
}

@test "each variable is there once, and says nothing of another lock" {
	expect_status 0 env SEMLOCK_LOCK=a SEMLOCK_METHOD=b SEMLOCK_MODE=c SEMLOCK_SLOT=7 SEMLOCK_TOKEN=9 \
		"$SEMLOCK" l env
	[ "$(grep -E '^SEMLOCK_(LOCK|METHOD|MODE|SLOT|TOKEN)=' .out | sort | xargs)" = \
		"SEMLOCK_LOCK=l SEMLOCK_METHOD=flock SEMLOCK_MODE=exclusive" ] || complain "$out"
}

@test "everything else is the caller's own" {
	expect_status 0 env
	grep -v '^SEMLOCK_\|^_=' .out | sort >bare
	expect_status 0 "$SEMLOCK" l env
	grep -v '^SEMLOCK_\|^_=\|^__LLVM_PROFILE_' .out | sort | diff bare - # __LLVM_PROFILE_ is of make coverage
}

@test "an empty environment is enough" {
	expect_status 0 env -i "$SEMLOCK" l /usr/bin/env
	[[ $out == *SEMLOCK_LOCK=l* ]]
	expect_status 0 env -i "$SEMLOCK" l sh -c 'echo found in the standard path'
	expect_out "found in the standard path"
}

@test "the working directory and the umask are the caller's" {
	expect_status 0 "$SEMLOCK" l pwd
	expect_out "$PWD"
	umask 027
	expect_status 0 "$SEMLOCK" --mode 666 other sh -c umask
	expect_out 0027
}

@test "--mode sets a new lock file's permissions, and leaves an old one's" {
	umask 077
	expect_status 0 "$SEMLOCK" --mode 666 l true
	[ "$(stat -c %a l)" = 666 ]
	expect_status 0 "$SEMLOCK" --mode=0640 l true
	[ "$(stat -c %a l)" = 666 ]
}

@test "under make(1) a lock avoids the jobserver's descriptors 3 and 4" {
	command -v make >/dev/null || skip "no make"
	printf '%s\n' 'all: one two' 'one two:' "	'$SEMLOCK' -s a '$SEMLOCK' -s b \$\${MAKE_COMMAND:-make} -f inner" >outer
	printf '%s\n' 'all: x y z' 'x y z:' '	@echo $@ >>ran' >inner
	expect_status 0 make -j 3 -f outer
	[ "$(wc -l <ran)" -eq 6 ]
	[ ! -s a ] && [ ! -s b ] || complain "make has written into a lock file:" "$(od -c a b)"
	# shellcheck disable=SC2016 # the inner shell's
	MAKEFLAGS=x expect_status 0 "$SEMLOCK" a sh -c 'for fd in /proc/$$/fd/*; do [ ! $fd -ef a ] || echo ${fd##*/}; done'
	[ "$out" -ge 10 ]
	(ulimit -n 8 && MAKEFLAGS=x expect_status 0 "$SEMLOCK" a true)
}

@test "LISTEN_PID and WATCHDOG_PID name the command where they named semlock" {
	for way in "" -F -o "-m posix" "-m excl" --run-timeout=60 --die-with-parent; do
		# shellcheck disable=SC2086,SC2016 # words; for the shells
		expect_status 0 sh -c 'LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$@"' sh "$SEMLOCK" $way "l$way" \
			sh -c 'echo $(($$ == LISTEN_PID)) $(($$ == WATCHDOG_PID)) $LISTEN_FDS'
		expect_out "1 1" || complain "$way" || return
	done
	# shellcheck disable=SC2016 # for the shell
	expect_status 0 env LISTEN_PID=1 WATCHDOG_PID=0 "$SEMLOCK" l sh -c 'echo $LISTEN_PID $WATCHDOG_PID'
	expect_out "1 0"
}

@test "without LISTEN_PID, no start costs a system call for it" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	expect_status 0 strace -f -o trace -e trace=getpid,execve env -u LISTEN_PID -u WATCHDOG_PID "$SEMLOCK" l /bin/true
	[ "$(grep -c execve trace)" -ge 3 ]
	[ "$(grep -c getpid trace)" -eq 0 ] || complain "$(cat trace)"
}
