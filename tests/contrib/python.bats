#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/python: locks as Python objects.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	export SEMLOCK PYTHONDONTWRITEBYTECODE=1
	unset SEMLOCK_TEST_URL
	DIR=$SOURCE/contrib/python
	PATH=/usr/bin:$PATH
}

@test "the module's own tests pass, run as its README says" {
	expect_status 0 env -C "$DIR" python3 -W error -m unittest
	grep -qE '^Ran [2-9][0-9] tests' .err || complain "$err"
	[ "$(grep -c '^    SEMLOCK=../../build/semlock python3 -m unittest$' "$DIR/README")" -eq 1 ]
	[ ! -e "$DIR/__pycache__" ]
}

@test "the module's manual can be read" {
	expect_status 0 env -C "$DIR" python3 -m pydoc semlock
	for word in acquire release held Busy Lost NetLock; do
		grep -q "$word" .out || complain "no $word in $out"
	done
}

@test "the examples of its README run" {
	echo 41 >counter
	mkdir locks
	sed -n 's/^    //p' "$DIR/README" | sed '/^with semlock.NetLock/,$d; s,/run/lock,locks,' >readme.py
	printf 'def make_report(): print("made")\n' | cat - readme.py >free.py
	expect_status 0 env PYTHONPATH="$DIR" python3 free.py
	expect_out made
	[ "$(cat counter)" = 42 ]
	hold_lock locks/report.lock
	expect_status 0 env PYTHONPATH="$DIR" python3 free.py
	grep -q "locks/report.lock: semlock: .*held by ${COMMAND[holder]} " .out || complain "$out"
	[ "$(cat counter)" = 43 ]
}

@test "semlock(3) lists every option, method, attribute and exception" {
	sed 's/\\-/-/g; s/\\f[A-Z]//g' "$DIR/semlock.3py" >page
	{
		sed -n 's/.*name not in (\(.*\)):$/\1/p; s/.*switches = {\(.*\)}$/\1/p' "$DIR/semlock.py" | grep -oE '"[a-z_]+"' | tr -d '"'
		sed -n 's/^__all__ = \[\(.*\)\]$/\1/p' "$DIR/semlock.py" | grep -oE '[A-Z][A-Za-z]+'
		sed -n 's/^    def \([a-z]*\)(.*/\1/p' "$DIR/semlock.py"
		echo slot token also program
	} | tr ' ' '\n' | sort -u >names
	[ "$(wc -l <names)" -ge 20 ] || complain "$(cat names)"
	while read -r name; do
		grep -qw -- "$name" page || complain "nothing of $name"
	done <names
}

@test "in an agent's sandbox, without shutdown(2), all works as elsewhere" {
	expect_status 0 env PYTHONPATH="$DIR" "${PROBE%/*}/tools/sandboxed" agent timeout 60 python3 - <<-'END'
		import semlock, socket
		try:
		    socket.socketpair()[0].shutdown(socket.SHUT_WR)
		    raise SystemExit("shutdown(2) is not forbidden")
		except PermissionError:
		    pass
		for options in {}, {"method": "posix"}, {"method": "excl"}, {"slots": 2}:
		    lock = semlock.Sem("l%d" % len(str(options)), **options).acquire()
		    assert lock.held
		    if "slots" not in options:
		        try:
		            semlock.Sem(lock.lock, nonblock=True, **options).acquire()
		            raise SystemExit("not busy")
		        except semlock.Busy:
		            pass
		    assert lock.release() and not lock.held
		    with semlock.Sem(lock.lock, nonblock=True, **options):
		        pass
		lock = semlock.Sem("lost").acquire()
		lock._process.terminate()
		lock._process.wait()
		assert not lock.held
		try:
		    lock.release()
		    raise SystemExit("a lost lock was released")
		except semlock.Lost:
		    pass
		try:
		    semlock.detach("d", run_timeout=60)
		    raise SystemExit("detach works")
		except semlock.Error as error:
		    assert "a sandbox forbids it" in str(error), error
	END
	expect_silent
}
