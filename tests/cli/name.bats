#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --name: a lock in one place for one user, whatever the environment says.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	PLACE=$(name_directory)
	NAME=bats.$$ # in the real place: removed after the test
}

tidy() {
	rm -f "$PLACE/$NAME" "$PLACE/$NAME".*
}

# as_user UID CMD...: CMD runs as that user of a password database, and with a /run, that are the test's own.
as_user() {
	local user=$1
	shift
	unshare --mount sh -c 'mount --bind passwd /etc/passwd && mount --bind run /run && exec "$@"' sh \
		setpriv --reuid="$user" --regid="$user" --clear-groups "$@"
}

# users: 0, and 4242 with a home; 4243 has none, 4244's is not there, 4245's is root's, all may write to 4246's
users() {
	namespaces --mount
	mkdir -p run/home/{4242,4245,4246}
	chown 4242 run/home/4242
	chown 4246 run/home/4246
	chmod 777 run/home/4246
	cat >passwd <<-END
		root:x:0:0::/run/home/root:/bin/sh
		one:x:4242:4242::/run/home/4242:/bin/sh
		four:x:4244:4244::/run/home/4244:/bin/sh
		five:x:4245:4245::/run/home/4245:/bin/sh
		six:x:4246:4246::/run/home/4246:/bin/sh
	END
}

@test "--name: root's locks are in /run/semlock, others' in ~/.local/state" {
	expect_status 0 "$SEMLOCK" --name "$NAME" sh -c 'echo "$SEMLOCK_LOCK"'
	expect_out "$PLACE/$NAME"
	[ -f "$PLACE/$NAME" ]
	users
	expect_status 0 as_user 0 "$SEMLOCK" --name job sh -c 'echo "$SEMLOCK_LOCK"'
	expect_out /run/semlock/job
	[ "$(stat -c %a run/semlock)" = 755 ]
	expect_status 0 as_user 4242 "$SEMLOCK" --name job sh -c 'echo "$SEMLOCK_LOCK"'
	expect_out "/run/home/4242/.local/state/semlock/job"
	[ "$(stat -c %a:%u run/home/4242/.local/state/semlock)" = 700:4242 ]
}

@test "the umask does not close root's directory; other users cannot lock there" {
	users
	(umask 0077 && as_user 0 "$SEMLOCK" --name job true)
	[ "$(stat -c %a run/semlock)" = 755 ]
	(umask 0 && as_user 0 "$SEMLOCK" --name other true)
	[ "$(stat -c %a run/semlock/other)" = 600 ]
	expect_status 66 as_user 4242 "$SEMLOCK" -n /run/semlock/other true
	as_user 0 "$SEMLOCK" --name open --mode=0644 true
	[ "$(stat -c %a run/semlock/open)" = 644 ]
}

@test "the same name excludes, another does not" {
	hold_lock --name "$NAME"
	expect_status 1 "$SEMLOCK" -n --name "$NAME" true
	expect_status 0 "$SEMLOCK" -n --name "$NAME.other" true
	expect_status 1 "$SEMLOCK" -n "$PLACE/$NAME" true
	let_go
}

@test "login, cron, sudo and a service use the same file, also after logout" {
	mkdir -m 700 login
	XDG_RUNTIME_DIR=$PWD/login XDG_STATE_HOME=$PWD/login HOME=$PWD hold_lock --name "$NAME"
	rmdir login # as at logout: nothing may have been made in it
	expect_status 1 env -i "$SEMLOCK" -n --name "$NAME" true
	expect_status 1 env HOME=/nonexistent "$SEMLOCK" -n --name "$NAME" true
	mkdir -m 700 again
	expect_status 1 env XDG_RUNTIME_DIR="$PWD/again" XDG_STATE_HOME="$PWD/again" TMPDIR="$PWD/again" \
		"$SEMLOCK" -n --name "$NAME" true
	rmdir again
	let_go
}

@test "what another user makes in a runtime directory is in nobody's way" {
	users
	mkdir -p run/user/{0,4242}/semlock
	chown -R 65534 run/user
	for user in 0 4242; do
		expect_status 0 as_user $user env XDG_RUNTIME_DIR=/run/user/$user "$SEMLOCK" -n --name job true
	done
	[ -z "$(find run/user -type f)" ]
}

@test "a shell command, and a further lock" {
	expect_status 3 "$SEMLOCK" --name "$NAME" -c 'exit 3'
	(umask 0 && "$SEMLOCK" -f l --name "$NAME" true)
	[ "$(stat -c %a l)" = 666 ]
}

@test "--who --name names the holder" {
	expect_status 0 "$SEMLOCK" --who --name "$NAME"
	expect_out "$PLACE/$NAME: free (no such file)"
	hold_lock --name "$NAME"
	expect_status 1 "$SEMLOCK" --who --name "$NAME"
	grep -q "^held *${COMMAND[holder]} " .out
	let_go
}

@test "--who --name makes no directory" {
	users
	expect_status 0 as_user 4242 "$SEMLOCK" --who --name job
	expect_status 0 as_user 0 "$SEMLOCK" --who --name job
	[ ! -e run/semlock ] && [ ! -e run/home/4242/.local ]
}

@test "names that are none" {
	for name in '' . .. .hidden a/b ../a /a $'a\nb' $'a\eb' $'a\177b' "$(printf 'x%.0s' {1..201})"; do
		refused 64 --name "$SEMLOCK" --name "$name" true
	done
	refused 64 --name "$SEMLOCK" --name "$NAME"
	refused 64 --name "$SEMLOCK" --name "$NAME" --fd 8 true
}

@test "a user without a home, or with another user's, gets 66 and what to do" {
	users
	refused 66 "user 4243 has no home directory in the password database: name a file as LOCK instead" \
		as_user 4243 "$SEMLOCK" --name job touch ran
	refused 66 "the home directory /run/home/4244: No such file or directory: name a file as LOCK instead" \
		as_user 4244 "$SEMLOCK" --name job touch ran
	refused 66 "the home directory /run/home/4245 is not owned by user 4245, or others may write to it: name a file as LOCK instead" \
		as_user 4245 "$SEMLOCK" --name job touch ran
	refused 66 "the home directory /run/home/4246 is not owned by user 4246, or others may write to it: name a file as LOCK instead" \
		as_user 4246 env HOME="/run/home/4242" "$SEMLOCK" --name job touch ran
	refused 66 "name a file as LOCK instead" as_user 4243 "$SEMLOCK" --who --name job
	[ ! -e ran ]
}

@test "uid 0 in a user namespace or under fakeroot uses the user's own lock" {
	users
	expect_status 0 as_user 4242 "$SEMLOCK" --name job sh -c 'echo "$SEMLOCK_LOCK"'
	expect_out /run/home/4242/.local/state/semlock/job
	as_user 4242 unshare -r true || skip "this user may make no user namespace"
	for root in "unshare -r" fakeroot; do
		# shellcheck disable=SC2086 # words
		command -v ${root% *} >/dev/null || skip "no $root on this machine"
		[ -z "${SANITIZED-}" ] || [ "$root" != fakeroot ] || skip "AddressSanitizer's library cannot come behind fakeroot's"
		for there in no yes; do # root's own directory is nobody else's
			# shellcheck disable=SC2086
			expect_status 0 as_user 4242 $root "$SEMLOCK" --name job sh -c 'echo "$SEMLOCK_LOCK"'
			expect_out /run/home/4242/.local/state/semlock/job
			# shellcheck disable=SC2086
			expect_status 1 as_user 4242 "$SEMLOCK" --name job $root "$SEMLOCK" -n --name job true
			# shellcheck disable=SC2086
			expect_status 0 as_user 4242 $root "$SEMLOCK" --who --name job
			expect_out "/run/home/4242/.local/state/semlock/job: free"
			[ "$there" = yes ] || expect_status 0 as_user 0 "$SEMLOCK" --name other true
		done
		rm -r run/semlock
	done
}

@test "root of a container, whose /run is its own: /run/semlock" {
	users
	chown 4242 run
	as_user 4242 unshare -r true || skip "this user may make no user namespace"
	expect_status 0 as_user 4242 unshare -r "$SEMLOCK" --who --name job
	expect_out "/run/semlock/job: free (no such file)"
	expect_status 0 as_user 4242 unshare -r "$SEMLOCK" --name job sh -c 'echo "$SEMLOCK_LOCK"'
	expect_out /run/semlock/job
}

@test "where no directory can be made: 73, and which one" {
	users
	mkdir run/home/4242/.local
	refused 73 /run/home/4242/.local/state as_user 4242 "$SEMLOCK" --name job touch ran
	touch run/home/4242/.local/state
	refused 73 /run/home/4242/.local/state/semlock as_user 4242 "$SEMLOCK" --name job touch ran
	[ ! -e ran ]
}

@test "a directory that another user can write in is refused" {
	users
	mkdir -p run/home/4242/.local/state run/elsewhere
	chown -R 4242 run/home/4242 run/elsewhere
	mkdir -m 777 run/home/4242/.local/state/semlock
	chown 4242 run/home/4242/.local/state/semlock
	refused 66 "not trusted: the directory" as_user 4242 "$SEMLOCK" --name job touch ran
	rmdir run/home/4242/.local/state/semlock
	ln -s /run/elsewhere run/home/4242/.local/state/semlock
	refused 66 "not trusted: the directory" as_user 4242 "$SEMLOCK" --name job touch ran
	mkdir run/semlock
	chown 65534 run/semlock
	refused 66 "not trusted: the directory" as_user 0 "$SEMLOCK" --name job touch ran
	rmdir run/semlock
	mkdir -m 775 run/semlock
	refused 66 "not trusted: the directory" as_user 0 "$SEMLOCK" --name job touch ran
	rmdir run/semlock
	touch run/semlock
	refused 66 "not trusted: the directory" as_user 0 "$SEMLOCK" --name job touch ran
	[ -z "$(ls run/elsewhere)" ] && [ ! -e ran ]
}
