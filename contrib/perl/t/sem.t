# SPDX-License-Identifier: MIT
# Semlock::Sem, on files.  prove -Ilib t, with SEMLOCK=the program, or semlock in the PATH.
use strict;
use warnings;

use Fcntl qw(F_GETFD FD_CLOEXEC);
use File::Temp qw(tempdir);
use IO::Handle;
use POSIX ();
use Test::More;

use Semlock::Sem;

my $semlock = $ENV{SEMLOCK} // 'semlock';
my $dir = tempdir(CLEANUP => 1);
my $lock = "$dir/lock";

# No test may hang for ever.  (A handler would not do: the waits below are retried.)
$SIG{ALRM} = 'DEFAULT';
alarm 120;

# True if the lock is free for another program.
sub is_free {
	my $status = system $semlock, '-n', @_, 'true';
	return $status == 0 if $status == 0 || $status >> 8 == 1;
	die "semlock @_ ended with $status";
}

sub line_of {
	my $line = readline $_[0];
	return defined $line ? $line : 'end of file';
}

# Ends when every process of the child has ended: until then the lock is reported as held.
sub in_child {
	my $code = shift;

	pipe my $from, my $to or die;
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		close $from;
		$to->autoflush(1);
		eval { $code->($to); 1 } or print $to $@;
		POSIX::_exit(0);
	}
	close $to;
	return ($pid, $from);
}

# The processes that wait for $lock, all semlocks.
sub waiting {
	return scalar grep { /^\s+\d+\.\s/ } `$semlock --who $lock`;
}

subtest 'it holds, and unlock frees' => sub {
	my $sem = Semlock::Sem->new($lock);
	isa_ok $sem, 'Semlock::Sem';
	ok $sem->held, 'held';
	ok !is_free($lock), 'nobody else gets it';
	ok $sem->unlock, 'unlock is true';
	ok is_free($lock), 'free at once';
	ok !$sem->held, 'held no more';
	ok !$sem->unlock, 'the second unlock is false';
};

subtest 'out of scope: free' => sub {
	{
		my $sem = Semlock::Sem->new($lock);
		ok !is_free($lock), 'held inside';
	}
	ok is_free($lock), 'free outside';
	eval {
		my $sem = Semlock::Sem->new($lock);
		die "oops\n";
	};
	is $@, "oops\n", 'an exception passes';
	ok is_free($lock), 'and frees';
};

subtest 'busy is undef, trouble dies' => sub {
	my $sem = Semlock::Sem->new($lock);
	is(scalar(Semlock::Sem->new($lock, nonblock => 1)), undef, 'nonblock');
	is(scalar(Semlock::Sem->new($lock, wait => '10ms')), undef, 'wait');
	$sem->unlock;
	eval { Semlock::Sem->new("$dir/none/lock") };
	like $@, qr/none\/lock: cannot create: its directory does not exist/, "semlock's own words";
	eval { Semlock::Sem->new };
	like $@, qr/which lock/, 'no lock';
	eval { Semlock::Sem->new($lock, semlock => "$dir/none") };
	like $@, qr/cannot run .*: No such file/, 'no semlock';
	eval { Semlock::Sem->new($lock, wiat => 1) };
	like $@, qr/wiat: unknown option/, 'no option';
	eval { Semlock::Sem->new($lock, method => 'nothing') };
	like $@, qr/nothing/, 'no method';
	ok !-e "$dir/none", 'nothing made';
	my $named = Semlock::Sem->new("$dir/-n", nonblock => 1);
	ok $named->held, 'a name is never an option';
};

subtest 'shared, slots, several, methods' => sub {
	my @readers = map { Semlock::Sem->new($lock, shared => 1) } 1 .. 3;
	is scalar(grep { $_->held } @readers), 3, 'three readers';
	is(scalar(Semlock::Sem->new($lock, nonblock => 1)), undef, 'no writer');
	undef @readers;
	my @slots = map { Semlock::Sem->new($lock, slots => 2, nonblock => 1) } 1 .. 3;
	is scalar(grep { defined } @slots), 2, 'two of three';
	is join(' ', map { $_->slot } grep { defined } @slots), '0 1', 'each with a number of its own';
	is $slots[0]->token, undef, 'and no token';
	undef @slots;
	my $both = Semlock::Sem->new($lock, also => ["$dir/other"]);
	ok !is_free($lock) && !is_free("$dir/other"), 'two locks';
	$both->unlock;
	for my $method (qw(ofd posix excl link mkdir symlink)) {
		my $sem = Semlock::Sem->new("$dir/$method", method => $method);
		ok !is_free('-m', $method, "$dir/$method"), $method;
		$sem->unlock;
		ok is_free('-m', $method, "$dir/$method"), "$method freed";
	}
};

subtest 'a forked child holds nothing and frees nothing' => sub {
	my $sem = Semlock::Sem->new($lock);
	my ($pid, $from) = in_child(sub {
		my $to = shift;
		print $to $sem->held ? 'held' : 'not held', $sem->unlock ? ' unlocked' : ' left alone', "\n";
		undef $sem;
	});
	is line_of($from), "not held left alone\n", 'in the child';
	waitpid $pid, 0;
	ok $sem->held && !is_free($lock), 'still held by the parent';

	pipe my $stay, my $go or die;
	($pid, $from) = in_child(sub {
		close $go;
		readline $stay;
	});
	ok $sem->unlock, 'unlocked while a child has a copy';
	ok is_free($lock), 'free although the child lives';
	close $go;
	waitpid $pid, 0;
};

subtest 'the owner ends, by whatever death; its child lives on' => sub {
	for my $signal (qw(KILL TERM)) {
		pipe my $stay, my $go or die;
		my ($pid, $from) = in_child(sub {
			my $to = shift;
			close $go;
			my $sem = Semlock::Sem->new($lock);
			my $child = fork // die;
			if ($child == 0) {
				readline $stay;
				POSIX::_exit(0);
			}
			print $to "$child\n";
			sleep 100;
		});
		my $child = line_of($from);
		ok !is_free($lock), 'held';
		kill $signal, $pid;
		waitpid $pid, 0;
		is system($semlock, '-w', 60, $lock, 'true'), 0, "free after $signal";
		ok kill(0, $child), 'and the child is still there';
		close $go;
	}
};

subtest 'exec and programs that are started do not get the lock' => sub {
	my $sem = Semlock::Sem->new($lock);
	ok fcntl($sem->{socket}, F_GETFD, 0) & FD_CLOEXEC, 'close-on-exec';
	pipe my $stay, my $go or die;
	my $pid = fork // die;
	if ($pid == 0) {
		close $go;
		POSIX::dup2(fileno $stay, 0);
		exec 'cat';
	}
	close $stay;
	$sem->unlock;
	ok is_free($lock), 'free although the program lives';
	close $go;
	waitpid $pid, 0;

	my $from;
	($pid, $from) = in_child(sub {
		my $to = shift;
		my $own = Semlock::Sem->new($lock);
		exec $semlock, '-w', 60, $lock, 'true' or die;
	});
	waitpid $pid, 0;
	is $?, 0, 'exec lets go';
};

subtest 'a signal while it waits' => sub {
	my $sem = Semlock::Sem->new($lock);
	my $wait = sub {
		my ($to, $handler) = @_;
		local $SIG{USR1} = sub { print $to "signal\n"; $handler->() };
		my $own = eval { Semlock::Sem->new($lock) };
		print $to $own ? "taken\n" : "dead: $@";
		$sem = undef;
		exit_with_child($own);
	};
	no warnings 'redefine';
	sub exit_with_child { POSIX::_exit(0) }

	my ($pid, $from) = in_child(sub { $wait->($_[0], sub { }) });
	select undef, undef, undef, 0.01 until waiting() == 1;
	kill 'USR1', $pid;
	is line_of($from), "signal\n", 'the handler runs while it waits';
	is waiting(), 1, 'it waits on';
	$sem->unlock;
	is line_of($from), "taken\n", 'and gets it';
	waitpid $pid, 0;

	$sem = Semlock::Sem->new($lock);
	($pid, $from) = in_child(sub { $wait->($_[0], sub { die "enough\n" }) });
	select undef, undef, undef, 0.01 until waiting() == 1;
	kill 'USR1', $pid;
	is line_of($from), "signal\n", 'the handler runs';
	is line_of($from), "dead: enough\n", 'its exception passes';
	is waiting(), 0, 'and no place in the queue is left';
	waitpid $pid, 0;

	($pid, $from) = in_child(sub { $wait->($_[0], sub { }) });
	select undef, undef, undef, 0.01 until waiting() == 1;
	kill 'KILL', $pid;
	waitpid $pid, 0;
	select undef, undef, undef, 0.01 until waiting() == 0;
	pass 'a killed waiter leaves no place behind';
	ok $sem->held, 'the holder does not notice';
};

subtest 'a signal to the whole group, as Ctrl-C sends it, is for the program to handle' => sub {
	my ($pid, $from) = in_child(sub {
		my $to = shift;
		setpgrp or die;
		my $own = Semlock::Sem->new($lock);
		my $caught = 0;
		local $SIG{INT} = sub { $caught++ };
		print $to "ready\n";
		select undef, undef, undef, 0.01 until $caught;
		system $semlock, '-n', $lock, 'true';	# would be served, had the holder ended
		print $to $? >> 8, $own->unlock ? " held\n" : " lost\n";
	});
	is line_of($from), "ready\n", 'taken';
	kill 'INT', -$pid;
	is line_of($from), "1 held\n", 'the lock is not let go';
	waitpid $pid, 0;
};

subtest 'whoever reaps children, or ignores their end' => sub {
	for my $way ('IGNORE', sub { 1 while waitpid(-1, POSIX::WNOHANG()) > 0 }) {
		local $SIG{CHLD} = $way;
		my $sem = Semlock::Sem->new($lock);
		ok $sem->held, 'taken';
		is(scalar(Semlock::Sem->new($lock, nonblock => 1)), undef, 'busy');
		ok $sem->unlock, 'unlocked';
		$sem = Semlock::Sem->new($lock, nonblock => 1);
		ok $sem, 'free';
	}
};

subtest 'a lock that is lost is reported' => sub {
	my $sem = Semlock::Sem->new($lock);
	kill 'KILL', $sem->{pid};
	waitpid $sem->{pid}, 0;
	ok !is_free($lock), 'a killed semlock alone does not free it';
	ok $sem->held, 'and it is held';
	eval { $sem->unlock };
	like $@, qr/the lock was lost/, 'but nobody vouches for it any more';
	ok is_free($lock), 'free';

	my ($warned, $taken) = ('', "$dir/taken");
	$sem = Semlock::Sem->new($taken, method => 'mkdir');
	system 'rm', '-rf', $taken;
	select undef, undef, undef, 0.01 while $sem->held;
	eval { $sem->unlock };
	like $@, qr/taken: the lock was lost: semlock: .*taken: /, 'by unlock, with the reason';

	$sem = Semlock::Sem->new($taken, method => 'excl');
	unlink $taken;
	select undef, undef, undef, 0.01 while $sem->held;
	{
		local $SIG{__WARN__} = sub { $warned .= $_[0] };
		local $@ = 'kept';
		undef $sem;
		is $@, 'kept', '$@ is left alone';
	}
	like $warned, qr/taken: the lock was lost/, 'by a warning, out of scope';
};

subtest 'the end of the program' => sub {
	my $program = 'use Semlock::Sem; our $sem = Semlock::Sem->new(shift); exit 3';
	is system($^X, (map { "-I$_" } @INC), '-e', $program, $lock) >> 8, 3, 'its status is its own';
	ok is_free($lock), 'the lock is free';
	$program = 'close STDIN; close STDOUT; my $sem = Semlock::Sem->new(shift);'
		. 'POSIX::_exit(fileno($sem->{socket}) > 2 ? 4 : 5)';
	is system($^X, (map { "-I$_" } @INC), '-MSemlock::Sem', '-e', $program, $lock) >> 8, 4,
		'a closed standard input and output do no harm';
};

subtest 'a hold in the background, for a later program' => sub {
	my $held = "$dir/held";
	my $id = Semlock::Sem->detach($held, pid => $$, note => 'release 1.4');
	like $id, qr/^[\w-]+$/, 'an ID';
	ok !is_free($held), 'nobody else gets it';
	like `$semlock --who $held`, qr/\Q$id\E.*release 1\.4/s, 'the note';
	is(Semlock::Sem->detach($held, pid => $$, nonblock => 1), undef, 'busy is undef');
	my $program = 'use Semlock::Sem; exit !Semlock::Sem->release(@ARGV)';
	is system($^X, (map { "-I$_" } @INC), '-e', $program, $held, $id), 0, 'another program releases it';
	ok is_free($held), 'free';
	ok !eval { Semlock::Sem->release($held, $id) }, 'a second release dies';
	like $@, qr/no such hold/, '... in words';
	ok !eval { Semlock::Sem->release($held, 4711) }, 'so does what is no ID';
	my $child = fork // die;
	if (!$child) { sleep 1000; POSIX::_exit(0) }
	ok(Semlock::Sem->detach($held, pid => $child), 'for another process');
	ok !is_free($held), '... it is held';
	kill KILL => $child;
	waitpid $child, 0;
	for (1 .. 300) { last if is_free($held); select undef, undef, undef, .1 }
	ok is_free($held), '... until that ends';
	ok !eval { Semlock::Sem->detach($held) }, 'when it ends has to be said';
	like $@, qr/run-timeout/, '... in words';
	local $SIG{CHLD} = 'IGNORE';
	$id = Semlock::Sem->detach("$held.d", run_timeout => 60, method => 'mkdir');
	ok(Semlock::Sem->release("$held.d", $id), 'children that are reaped elsewhere do no harm');
};

subtest 'a counter' => sub {
	my $counter = "$dir/counter";
	my @children = map {
		my ($pid) = in_child(sub {
			for (1 .. 25) {
				my $sem = Semlock::Sem->new($lock);
				open my $in, '<', $counter;
				my $count = defined fileno $in ? readline $in : 0;
				open my $out, '>', $counter or die;
				print $out $count + 1;
				close $out;
			}
		});
		$pid;
	} 1 .. 4;
	waitpid $_, 0 for @children;
	open my $in, '<', $counter or die;
	is readline $in, 100, '4 times 25 is 100';
};

done_testing;
