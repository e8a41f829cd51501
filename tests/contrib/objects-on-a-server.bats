#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/perl and contrib/python with a lock on a server, which is started here.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote

prepare() {
	prepare_remote
	export SEMLOCK PYTHONDONTWRITEBYTECODE=1 SEMLOCK_USER=lock SEMLOCK_PASSWORD=secret
	apart /usr/bin/python3 "$SOURCE/tests/lib/servers/ftp.py" "$DIR" >ready 2>server.err </dev/null &
	SERVER=$!
	in_file ready READY
	read -r _ PORT <ready
	export SEMLOCK_TEST_URL=ftp://127.0.0.1:$PORT/nightly
	ROOT=$DIR/root
}

tidy() { [ -z "${SERVER:-}" ] || kill -KILL "$SERVER"; }

@test "Perl: taken, busy, let go" {
	expect_status 0 env -C "$SOURCE/contrib/perl" prove -v -Ilib t/netlock.t
	if grep -q skip .out; then complain "$out"; fi
	[ -z "$(ls "$ROOT")" ]
}

@test "Python: taken, busy, let go" {
	expect_status 0 env -C "$SOURCE/contrib/python" /usr/bin/python3 -W error -m unittest test_semlock.NetLock
	if grep -q skip .err; then complain "$err"; fi
	[ -z "$(ls "$ROOT")" ]
}

# The lease is 2 s: after two thirds of it without the server, the holder is stopped.
@test "the server is gone: the object knows, and says that the lock was lost" {
	fifos owner
	cat >owner.perl <<-'PERL'
		use Semlock::NetLock;
		my $lock = Semlock::NetLock->new($ENV{SEMLOCK_TEST_URL}, ttl => 2);
		open my $up, '>', 'owner.up' or die;
		print $up "ready $$\n";
		close $up;
		select undef, undef, undef, 0.02 while $lock->held;
		eval { $lock->unlock; 1 } or print "it said: $@";
	PERL
	start owner perl -I"$SOURCE/contrib/perl/lib" owner.perl
	ready owner
	kill -STOP "$SERVER"
	ended owner 0
	grep -q "it said: .*nightly: the lock was lost: semlock: " owner.out || complain "$(cat owner.out)"
}
