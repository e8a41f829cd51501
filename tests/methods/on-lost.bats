#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Another program, which does not heed the lock, takes the lock away while the command runs.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}
METHODS="excl link mkdir symlink rename"

# A heartbeat may just have renamed the token, if the token has a name of its own.
take_away() {
	rm -rf l
	while compgen -G 'l.held*' >/dev/null; do rm -f l.held*; done
}

prepare() {
	export SEMLOCK
}

# robbed ARGS...: semlock ARGS loses the lock while its command runs
robbed() {
	[ "$method" != rename ] || "$SEMLOCK" -m rename --init l true
	hold_lock -m "$method" "$@" l
	take_away
}

@test "--on-lost=term and =kill end the command at once, and the status is 76" {
	for method in $METHODS; do
		for what in term kill; do
			robbed --on-lost=$what
			ended holder 76
			grep -q "^semlock: l: another process has removed the lock" holder.err
			rm -rf l ./*.up ./*.down
		done
	done
}

@test "--on-lost ends the command also when no process reads standard error" {
	mkfifo unread
	exec {unread}<>unread
	head -c 65536 /dev/zero >unread
	fifos holder
	start holder sh -c 'exec "$@" 2>unread' sh "$SEMLOCK" -m link --on-lost=kill l "$PROBE" hold holder.up holder.down
	ready holder
	rm l
	eventually sh -c "$(none_runs "${COMMAND[holder]}")"
	head -c 65536 <&"$unread" >/dev/null
	ended holder 76
	exec {unread}>&-
}

@test "--on-lost works without /proc, or with another PID namespace's" {
	[ -z "${SANITIZED-}" ] || skip "AddressSanitizer reads its options in /proc"
	namespaces --pid --mount --fork
	for hide in true "mount -t tmpfs none /proc"; do
		fifos holder
		start holder unshare --pid --mount --fork --kill-child sh -c '$0 && exec "$@"' "$hide" \
			"$SEMLOCK" -m excl --on-lost=kill l "$PROBE" hold holder.up holder.down
		next_line holder
		rm l
		ended holder 76
		grep -q "^semlock: l: another process has removed the lock" holder.err
		rm holder.up holder.down
	done
}

@test "a lock whose directory may not be searched for a while is not lost" {
	local lock
	mkdir d
	chmod 777 d
	for lock in "-m link" "-m excl --stale=60" "-m mkdir --on-lost=term" "-m symlink --on-lost=term"; do
		as_nobody mkdir d/own
		# shellcheck disable=SC2086 # words
		expect_status 0 as_nobody "$SEMLOCK" $lock d/own/l sh -c 'chmod 0 d/own; "$0" pause 1500; chmod 755 d/own' "$PROBE"
		expect_silent # though the heartbeat has looked, each second
		[ -z "$(ls -A d/own)" ]
		rmdir d/own
	done
}

@test "--on-lost=warn says so at once, lets the command run, and ends with 76" {
	for method in $METHODS; do
		robbed --on-lost=warn
		eventually grep -q "^semlock: l: another process has removed the lock" holder.err
		kill -0 "${COMMAND[holder]}"
		release holder
		ended holder 76
		rm -rf l ./*.up ./*.down
	done
}

@test "--on-lost=warn with several locks: the loss of each is said, once" {
	hold_lock -m link --on-lost=warn -f l m
	for lock in l m; do
		rm $lock
		eventually grep -q "^semlock: $lock: another process" holder.err
	done
	release holder
	ended holder 76
	[ "$(grep -c 'another process' holder.err)" -eq 2 ] || complain "$(cat holder.err)"
}

@test "without --on-lost, the loss is found out at the end" {
	for method in $METHODS; do
		robbed
		release holder
		ended holder 76
		grep -q "^semlock: l: the lock was lost" holder.err
		rm -rf l ./*.up ./*.down
	done
}

@test "a lock that another process has made in its place is left alone" {
	for method in excl link; do
		robbed
		echo 1 >l
		release holder
		ended holder 76
		[ "$(cat l)" = 1 ]
		rm -f l ./*.up ./*.down
	done
	method="mkdir"
	robbed
	mkdir l
	release holder
	ended holder 76
	[ -d l ]
}

@test "--status-fd says so" {
	hold_lock -m mkdir --status-fd=9 l 9>events
	take_away
	release holder
	ended holder 76
	[ "$(untimed <events | tr '\n' ' ')" = "acquired exit 0 lost " ] || complain "$(cat events)"
}

@test "where the lock cannot be watched, --on-lost fails with 71, nothing runs" {
	"$SEMLOCK" -m rename --init l.rename true
	for failing in heartbeat.pipe:fail=24 heartbeat.thread:fail=11; do
		export SEMLOCK_CRASH=$failing
		for method in $METHODS; do
			for what in --on-lost=warn --on-lost=kill "--stale=10"; do
				refused 71 "cannot monitor the lock" "$CRASHABLE_SEMLOCK" "$what" -m "$method" "l.$method" touch ran
				[ ! -e ran ]
				[ ! -L "l.$method" ]
				[ "$method" = rename ] || [ ! -e "l.$method" ]
			done
		done
		refused 71 "cannot monitor the lock" "$CRASHABLE_SEMLOCK" --stale 10 -m excl --hold l < <(exec sleep 60)
		expect_status 0 "$CRASHABLE_SEMLOCK" -m link l.link touch ran # link monitors the lock without being asked
		[ "$(wc -l <.err)" -eq 1 ]
		grep -q "^semlock: l.link: cannot monitor the lock" .err
		rm ran
		expect_status 0 "$CRASHABLE_SEMLOCK" -m excl l.excl true
		expect_silent
	done
}
