# SPDX-License-Identifier: MIT
# Semlock::NetLock, on the server of the URL in SEMLOCK_TEST_URL.
use strict;
use warnings;

use Test::More;

use Semlock::NetLock;

$SIG{ALRM} = 'DEFAULT';
alarm 120;

eval { Semlock::NetLock->new('/run/lock/file') };
like $@, qr/not the URL of a lock/, 'a file is not a URL';
eval { Semlock::NetLock->new };
like $@, qr/which lock/, 'no URL';

SKIP: {
	my $url = $ENV{SEMLOCK_TEST_URL} or skip 'no server: set SEMLOCK_TEST_URL', 6;
	my $semlock = $ENV{SEMLOCK} // 'semlock';

	my $lock = Semlock::NetLock->new($url, ttl => 20);
	isa_ok $lock, 'Semlock::Sem';
	ok $lock->held, 'held';
	is system($semlock, '-n', $url, 'true') >> 8, 1, 'nobody else gets it';
	is(scalar(Semlock::NetLock->new($url, nonblock => 1)), undef, 'not even we');
	ok $lock->unlock, 'unlocked';
	is system($semlock, '-n', $url, 'true'), 0, 'free';
}

done_testing;
