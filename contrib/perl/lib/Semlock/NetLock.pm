# SPDX-License-Identifier: MIT
package Semlock::NetLock;

use strict;
use warnings;

use Carp qw(croak);
use parent 'Semlock::Sem';

our $VERSION = '1.0.0';

sub new {
	my ($class, $url, @options) = @_;

	croak 'which lock? Semlock::NetLock->new(URL)' unless defined $url && length $url;
	croak "$url: not the URL of a lock; a file is locked by Semlock::Sem"
		unless $url =~ m{^[a-z][a-z0-9+.-]*://};
	return $class->SUPER::new($url, @options);
}

1;

__END__

=head1 NAME

Semlock::NetLock - hold a lock on a server for as long as an object lives

=head1 SYNOPSIS

    use Semlock::NetLock;

    my $lock = Semlock::NetLock->new('ftp://phoneacc@ftp.example.org/phone_lock', wait => '10m')
        or die "tired of waiting";
    ...
    die 'the lock is lost' unless $lock->held;
    ...
    $lock->unlock;

=head1 DESCRIPTION

Everything in L<Semlock::Sem> applies here as well.  The lock is named by a URL: C<ftp://>,
C<ftpes://>, C<ftps://>, C<sftp://>, C<etcd://> or C<etcds://>; semlock must have been built with
locks on a server.  The password is in F<~/.netrc> or the environment variable SEMLOCK_PASSWORD,
never in the URL.

One more option:

=over

=item ttl => SECONDS

The lease: if the server does not hear from us for SECONDS, the lock is free.

=back

Such a lock can be lost while it is held: the server restarts, the network is gone, somebody
removes it.  semlock cannot stop the program that has this object, as it stops a command; so ask
C<held> before each step that cannot be undone, and mind that C<unlock> dies if the lock was lost.

=head1 SEE ALSO

L<Semlock::Sem>, semlock(1), semlock-locksmith(7)

=cut
