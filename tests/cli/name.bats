#!/usr/bin/env bats
# --name: a lock in the user's own directory.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# forget FILE: removes a lock file outside of the test's directory, and its directory if that is empty.
forget() {
	rm -f "$1"
	rmdir --ignore-fail-on-non-empty "${1%/*}"
}

prepare() {
	mkdir -m 700 run
	export XDG_RUNTIME_DIR=$PWD/run
}

@test "the lock is a file of that name in the runtime directory" {
	expect_status 0 "$SEMLOCK" --name job sh -c 'echo "$SEMLOCK_LOCK"'
	expect_out "$PWD/run/semlock/job"
	[ -f run/semlock/job ]
	[ "$(stat -c %a run/semlock)" = 700 ]
}

@test "the same name excludes, another does not" {
	hold_lock --name job
	expect_status 1 "$SEMLOCK" -n --name job true
	expect_status 0 "$SEMLOCK" -n --name other true
	expect_status 1 "$SEMLOCK" -n run/semlock/job true
	let_go
}

@test "a shell command, and a further lock" {
	expect_status 3 "$SEMLOCK" --name job -c 'exit 3'
	expect_status 0 "$SEMLOCK" -f l --name job true
}

@test "--who --name names the holder" {
	expect_status 0 "$SEMLOCK" --who --name job
	expect_out "$PWD/run/semlock/job: free"
	[ ! -e run/semlock ]
	hold_lock --name job
	expect_status 1 "$SEMLOCK" --who --name job
	grep -q "^held *${COMMAND[holder]} " .out
	let_go
}

@test "names that are none" {
	for name in '' . .. .hidden a/b ../a /a $'a\nb' $'a\eb' $'a\177b' "$(printf 'x%.0s' {1..201})"; do
		refused 64 --name "$SEMLOCK" --name "$name" true
	done
	[ ! -e run/semlock ]
	refused 64 --name "$SEMLOCK" --name job
	refused 64 --name "$SEMLOCK" --name job --fd 8 true
}

@test "a runtime directory that is another user's, or open to others, is not used" {
	root_only "to be two users"
	for spoil in "chown 65534 run" "chmod 777 run"; do
		chown 0 run
		chmod 700 run
		$spoil
		expect_status 0 "$SEMLOCK" --name bats-name-test sh -c 'echo "$SEMLOCK_LOCK"'
		[ "$out" != "$PWD/run/semlock/bats-name-test" ]
		[ ! -e run/semlock ]
		forget "$out"
	done
}

@test "a runtime directory that is not named whole, or by too long a name, is not used" {
	for XDG_RUNTIME_DIR in run '' "$PWD/$(printf './%.0s' {1..2000})run"; do
		expect_status 0 "$SEMLOCK" --name bats-name-test sh -c 'echo "$SEMLOCK_LOCK"'
		[[ "$out" == /run/user/*/semlock/bats-name-test || "$out" == /tmp/semlock-*/bats-name-test ]]
		[ ! -e run/semlock ]
		forget "$out"
	done
}

@test "where no directory can be made: 73, and which one" {
	touch run/semlock
	refused 66 "not a directory of ours alone" "$SEMLOCK" --name job true
	rm run/semlock
	chmod 500 run
	if [ "$(id -u)" -eq 0 ]; then chown 65534 run; fi
	refused 73 run/semlock as_nobody env XDG_RUNTIME_DIR=/proc/self/cwd/run "$SEMLOCK" --name job true
}

@test "a directory that another user can write in is refused" {
	mkdir -m 777 run/semlock
	refused 66 run/semlock "$SEMLOCK" --name job true
	rmdir run/semlock
	mkdir elsewhere
	ln -s ../elsewhere run/semlock
	refused 66 run/semlock "$SEMLOCK" --name job true
	[ -z "$(ls elsewhere)" ]
}
