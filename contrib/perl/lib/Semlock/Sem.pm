# SPDX-License-Identifier: MIT
package Semlock::Sem;

use strict;
use warnings;

use Carp qw(carp croak);
use Errno qw(EAGAIN EINTR EWOULDBLOCK);
use Fcntl qw(F_DUPFD F_SETFD FD_CLOEXEC);
use POSIX ();
use Socket qw(AF_UNIX MSG_DONTWAIT MSG_PEEK PF_UNSPEC SHUT_WR SOCK_STREAM);

our $VERSION = '1.0.0';

# The options of new(), and semlock's argument for each: a switch, or an option with a value.
my %SWITCH = (shared => '--shared', nonblock => '--nonblock', init => '--init');
my %VALUE = map { $_ => "--$_" } qw(wait method slots stale mode on-lost ttl);
my %OURS = map { $_ => 1 } qw(also semlock);

sub new {
	my ($class, $lock, %option) = @_;

	croak 'which lock? Semlock::Sem->new(LOCK)' unless defined $lock && length $lock;
	my $self = bless { lock => $lock, owner => $$, holds => 1 }, ref($class) || $class;
	my @watched = _watches_itself(\%option) ? ('--on-lost=term') : ();
	$self->_start(_program(\%option), "--hold=$$", @watched, $self->_arguments(\%option));
	my $said = $self->_hear;
	return $self if $said eq 'OK';
	$self->_end;
	return undef if $said eq 'busy' || $said eq 'timeout';
	croak "$lock: " . $self->_why($said);
}

# A hold in the background, for a later program to release.  Its ID; undef if the lock is busy.
sub detach {
	my ($class, $lock, %option) = @_;

	croak 'which lock? Semlock::Sem->detach(LOCK)' unless defined $lock && length $lock;
	my $self = bless { lock => $lock, owner => $$ }, ref($class) || $class;
	my ($pid, $seconds, $note) = delete @option{qw(pid run_timeout note)};
	my @hold = (defined $pid ? "--hold=$pid" : '--hold', '--detach');
	push @hold, "--run-timeout=$seconds" if defined $seconds;
	push @hold, "--note=$note" if defined $note;
	$self->_start(_program(\%option), @hold, $self->_arguments(\%option));
	my $said = $self->_hear;
	$self->_end;
	return $self->{told}{id} if $said eq 'OK';
	return undef if $said eq 'busy' || $said eq 'timeout';
	croak "$lock: " . $self->_why($said);
}

# Ends a hold; when this returns, the lock is free.
sub release {
	my ($class, $lock, $id, %option) = @_;
	my $self = bless { lock => $lock, owner => $$ }, ref($class) || $class;

	croak 'which hold? Semlock::Sem->release(LOCK, ID)' unless defined $id;
	$self->_start(_program(\%option), "--release=$id", '--', $lock);
	local $?;
	$self->_end;
	# -1: a program that reaps all children was faster; a hold that has ended, or was none, is said.
	return 1 if $? == 0 || ($? == -1 && -s $self->{words} == 0);
	croak "$lock: " . $self->_why('');
}

# Releases the lock; when this returns, the lock is free.
sub unlock {
	my $self = shift;

	return 0 unless $self->{socket} && $self->{owner} == $$;
	my $end = $self->_end;
	return 1 if $self->_released($end);
	croak "$self->{lock}: the lock was lost: " . $self->_why($end);
}

# While the lock is held semlock prints no further line: readable input means the end.
sub held {
	my $self = shift;

	return 0 unless $self->{socket} && $self->{owner} == $$;
	while (1) {
		return 0 if defined recv $self->{socket}, my $byte, 1, MSG_PEEK | MSG_DONTWAIT;
		return $!{EAGAIN} || $!{EWOULDBLOCK} ? 1 : 0 unless $!{EINTR};
	}
}

# undef where the lock has no such thing.
sub slot { return $_[0]{told}{slot} }
sub token { return $_[0]{told}{token} }

sub DESTROY {
	my $self = shift;
	local ($@, $!, $?, $^E);

	return unless $self->{socket} && $self->{owner} == $$;
	my $end = $self->_end;
	return if !$self->{taken} || $self->_released($end);
	carp "$self->{lock}: the lock was lost: " . $self->_why($end);
}

# A thread has no lock of its own.
sub CLONE_SKIP { return 1 }

sub _program {
	my $option = shift;
	return $option->{semlock} // $ENV{SEMLOCK} // 'semlock';
}

# The end of the holder shows the loss of a kernel's or a server's lock; a file must be monitored.
sub _watches_itself {
	my $option = shift;
	return ($option->{method} // '') =~ /^(?:excl|link|mkdir|rename|symlink)$/ && !$option->{on_lost};
}

sub _arguments {
	my ($self, $option) = @_;
	my @arguments = ('--status-fd=1', '--verbose');

	for my $name (sort keys %$option) {
		my $value = $option->{$name};
		(my $long = $name) =~ tr/_/-/;
		if ($SWITCH{$long}) {
			push @arguments, $SWITCH{$long} if $value;
		} elsif ($VALUE{$long}) {
			push @arguments, "$VALUE{$long}=$value" if defined $value;
		} elsif (!$OURS{$long}) {
			croak "$name: unknown option";
		}
	}
	push @arguments, map { "--file=$_" } @{ $option->{also} // [] };
	return (@arguments, '--', $self->{lock});
}

# Descriptors 0 to 2 may be closed in the caller; the new ones must be none of them.
sub _above_2 {
	my $handle = shift;
	my $fd = fcntl($handle, F_DUPFD, 3) // croak "cannot copy a descriptor: $!";

	open my $copy, '+<&=', $fd + 0 or croak "cannot open a descriptor: $!";
	fcntl $copy, F_SETFD, FD_CLOEXEC or croak "cannot set close-on-exec: $!";
	return $copy;
}

# A socket and not a pipe: shutdown() ends semlock's input even if a child, forked while the lock was
# held, has a copy of this end.  Signals are blocked until the child has dropped this program's handlers.
sub _start {
	my ($self, @command) = @_;

	open my $words, '+>', undef or croak "cannot make a temporary file: $!";
	socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC
		or croak "cannot make a socket: $!";
	$_ = _above_2($_) for $ours, $theirs, $words;

	my $before = POSIX::SigSet->new;
	my $all = POSIX::SigSet->new;
	$all->fillset;
	POSIX::sigprocmask(POSIX::SIG_SETMASK(), $all, $before);
	my $pid = fork;
	my $error = $!;
	_become($before, $theirs, $words, @command) if defined $pid && $pid == 0;
	@$self{qw(pid socket words)} = ($pid, $ours, $words) if defined $pid;
	POSIX::sigprocmask(POSIX::SIG_SETMASK(), $before);
	croak "cannot fork: $error" unless defined $pid;
}

# In the child: nothing here may run a handler, a destructor or an END block of the caller's.
# In a session of its own the keys of the terminal (Ctrl-C) do not reach it: the caller decides.
sub _become {
	my ($mask, $socket, $words, @command) = @_;
	no warnings;

	eval {
		for my $name (keys %SIG) {
			$SIG{$name} = 'DEFAULT' unless $name =~ /^__/ || ($SIG{$name} // '') eq 'IGNORE';
		}
		$SIG{$_} = 'DEFAULT' for qw(PIPE TERM);
		POSIX::setsid();
		POSIX::dup2(fileno $socket, 0);
		POSIX::dup2(fileno $socket, 1);
		POSIX::dup2(fileno $words, 2);
		POSIX::sigprocmask(POSIX::SIG_SETMASK(), $mask);
		exec { $command[0] } @command;
		syswrite $socket, "cannot run $command[0]: $!\n";
	};
	POSIX::_exit(127);
}

# The line that says whether the lock is held.
sub _hear {
	my $self = shift;
	my $said = '';

	while (1) {
		my $got = sysread $self->{socket}, $said, 4096, length $said;
		next if !defined $got && $!{EINTR};
		if ($said =~ /^OK( .*)?\n/m) {
			$self->{told} = { ($1 // '') =~ /(\w+)=(\S+)/g };
			return $self->{taken} = 'OK';
		}
		return $said =~ /([^\n]*)\n\z/ ? $1 : '' unless $got;
	}
}

# Ends semlock's input, and waits until semlock and its holder have ended.  Returns semlock's last line.
sub _end {
	my $self = shift;
	my $held = $self->held;
	my $socket = delete $self->{socket};
	my $said = '';

	# The sandboxes of coding agents forbid shutdown(): TERM does the same.  (detach and release read
	# no input.)
	if (!shutdown($socket, SHUT_WR) && $self->{holds} && waitpid($self->{pid}, POSIX::WNOHANG()) == 0) {
		$self->{ended} = $held;
		kill 'TERM', $self->{pid};
	}
	while (1) {
		my $got = sysread $socket, $said, 4096, length $said;
		last if defined $got ? $got == 0 : !$!{EINTR};
	}
	close $socket;
	# A program that reaps all children, or ignores SIGCHLD, was faster.
	1 while waitpid($self->{pid}, 0) == -1 && $!{EINTR};
	return $said =~ /([^\n]*)\n\z/ ? $1 : '';
}

# Is END, semlock's last line, that of a lock which was held until _end?
sub _released {
	my ($self, $end) = @_;

	return $end =~ /^exit 0\b/ || ($self->{ended} && $end =~ /^signal 15\b/);
}

# semlock's last line on standard error, else its last line on the socket.
sub _why {
	my ($self, $said) = @_;
	my $words = $self->{words};

	seek $words, 0, 0;
	my @lines = <$words>;
	chomp @lines;
	@lines = grep { !/: taken after/ } @lines;
	return $lines[-1] if @lines;
	return $said if length $said;
	return 'semlock has ended';
}

1;

__END__

=head1 NAME

Semlock::Sem - hold a lock for as long as an object lives

=head1 SYNOPSIS

    use Semlock::Sem;

    {
        my $sem = Semlock::Sem->new('/run/lock/counter.sem');
        ...                             # one at a time
    }                                   # out of scope: let go

    my $sem = Semlock::Sem->new('/run/lock/counter.sem', wait => 10)
        or die "still busy after ten seconds";
    ...
    $sem->unlock;                       # free when this returns

=head1 DESCRIPTION

An object of this class is a lock, taken by semlock(1): any method that semlock knows, its
waiters served in order of arrival.  L<Semlock::NetLock> is the same for a lock on a server.

=head2 new(LOCK, OPTION => VALUE, ...)

Waits for LOCK, a file or a directory, and returns the object; undef if the lock could not be had
and C<nonblock> or C<wait> said not to wait any longer.  Dies, with semlock's own words, if
something is wrong.  The options are those of semlock(1):

=over

=item shared => 1

Together with other shared holders.

=item nonblock => 1

Do not wait.

=item wait => SECONDS

Wait so long at most: C<10>, C<'500ms'>, C<'2m'>.

=item method => NAME

How to lock: C<'flock'>, C<'ofd'>, C<'mkdir'>, ...

=item slots => N

Up to N holders at once.

=item also => [LOCK, ...]

Further locks: all or none, and no deadlock.

=item init, mode, stale, on_lost

As in semlock(1); of the locks made of files (C<mkdir> and the like) C<on_lost> is C<'term'>,
so that C<held> and C<unlock> know.

=item semlock => PATH

The program; otherwise what the environment variable SEMLOCK names, otherwise C<semlock> in the
PATH.

=back

=head2 unlock

Lets the lock go, and waits until it is free.  Returns true; or false, and does nothing, if the
lock was let go before, or in a process that is not the one that took it.  Dies if the lock had
been lost: somebody killed semlock, removed a lock made of files, or a server took the lease back;
then another program may have run beside this one.

An object that goes out of scope is unlocked so; if the lock had been lost, there is a warning.

=head2 held

Is the lock still ours?  Costs one system call; to be asked before doing what cannot be undone.

=head2 slot, token

With C<slots>, the number of the slot that this object holds, 0 to N-1.  Of a lock on etcd, the
fencing token, which rises from holder to holder: send it along with what you do elsewhere, and
have anything refused that comes with a smaller one than was seen before.  Otherwise undef.

=head2 detach(LOCK, pid => PID, OPTION => VALUE, ...)

A class method: takes LOCK, leaves it to a process in the background, and returns its ID, a word for
a later program; undef as with C<new>.  The lock is free at the end of the process PID, and
C<run_timeout> seconds after it was taken: one of the two is needed.  C<note> says why, for people.

    my $id = Semlock::Sem->detach('/run/lock/deploy.lock', pid => getppid, note => 'release 1.4');

=head2 release(LOCK, ID)

A class method: ends that hold, and returns true when the lock is free.  Dies if it had ended before,
or if ID is none of LOCK's.

=head1 WHO KEEPS THE LOCK

The process that has called C<new>, and no other.  A program that it starts does not get the
lock.  A child that it forks has a copy of the object, which does nothing: C<held> and C<unlock>
are false in it, and when the copy goes out of scope nothing happens.  So a program that goes into
the background (fork, and the parent ends) has to take the lock afterwards.  When the process
ends, by whatever death, or execs another program, the lock is free; children that live on do not
keep it.

A signal handler runs while C<new> waits.  If it dies, C<new> dies, and no place in the queue is
left behind.  The terminal's Ctrl-C reaches the program and not its lock.

=head1 SEE ALSO

L<Semlock::NetLock>, semlock(1), in particular B<--hold>

=cut
