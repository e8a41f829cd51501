#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/perl: locks as Perl objects.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	export SEMLOCK
	unset SEMLOCK_TEST_URL
	DIR=$SOURCE/contrib/perl
}


@test "the modules' own tests pass, run as their README says" {
	expect_status 0 env -C "$DIR" prove -Ilib t
	case $out in *"All tests successful"*) ;; *) complain "$out" ;; esac
	[ "$(grep -c '^    SEMLOCK=../../build/semlock prove -Ilib t$' "$DIR/README")" -eq 1 ]
}

@test "no warning, and its manual is well-formed" {
	for module in "$DIR"/lib/Semlock/*.pm; do
		expect_status 0 perl -wc -I"$DIR/lib" "$module"
		[ "$err" = "$module syntax OK" ] || complain "$err"
		expect_status 0 podchecker -warnings -warnings "$module"
		expect_status 0 pod2man "$module"
	done
}

@test "the manual of the Perl modules lists exactly the options they take" {
	expect_status 0 perl -I"$DIR/lib" -MSemlock::Sem -e '
		open my $in, "<", $INC{"Semlock/Sem.pm"} or die;
		my $text = join "", <$in>;
		my ($manual) = $text =~ /=head2 new(.*?)=head2/s;
		my @named = map { /^=item (.*?)(?: =>.*)?$/ ? split(/, */, $1) : () } split /\n/, $manual;
		my ($code) = $text =~ /(my %SWITCH.*?my %OURS[^\n]*)/s;
		my @known = $code =~ /\b([a-z]+) => ["\x27]--/g;
		push @known, map { split } $code =~ /qw\((.*?)\)/g;
		tr/-/_/ for @known;
		my %here = map { $_ => 1 } @named;
		$here{$_} or $_ eq "ttl" or die "$_ is not in the manual\n" for @known;
		my %there = map { $_ => 1 } @known;
		$there{$_} or die "$_ is no option\n" for @named;
		@named >= 10 or die "only @named\n"'
}

# shellcheck disable=SC2016 # Perl's own variables
@test "the counter of its README counts" {
	expect_status 0 perl -I"$DIR/lib" -e '
		use strict; use warnings; use Semlock::Sem;
		for (1 .. 4) {
			next if fork;
			for (1 .. 10) {
				my $sem = Semlock::Sem->new("counter.sem");
				open my $in, "<", "counter" or die; my $n = <$in>; close $in;
				open my $out, ">", "counter" or die; print $out $n + 1; close $out;
			}
			exit;
		}
		BEGIN { open my $out, ">", "counter"; print $out 0 }
		1 while wait != -1'
	[ "$(cat counter)" -eq 40 ]
}

@test "installed, each module has a man page, made of its POD" {
	command -v pod2man >/dev/null || skip "no pod2man here"
	expect_status 0 make -C "$(dirname "$SEMLOCK")" install-data DESTDIR="$PWD/dest" || return
	for name in NetLock Sem; do
		find dest -path "*/man3/Semlock::$name.3pm" -size +2k | grep -q . || complain "no page of $name"
	done
}

# shellcheck disable=SC2016 # Perl's own variables
@test "in an agent's sandbox, without shutdown(2), all works as elsewhere" {
	expect_status 0 "${PROBE%/*}/tools/sandboxed" agent timeout 60 perl -I"$DIR/lib" -e '
		use strict; use warnings; use Semlock::Sem; use Socket;
		socketpair my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die;
		shutdown $a, 1 and die "shutdown(2) is not forbidden";
		for my $method (qw(flock posix excl)) {
			my $sem = Semlock::Sem->new("l.$method", method => $method) or die;
			$sem->held or die;
			Semlock::Sem->new("l.$method", method => $method, nonblock => 1) and die "not busy";
			$sem->unlock or die;
			$sem = Semlock::Sem->new("l.$method", method => $method, nonblock => 1) or die "not free";
		}
		my $lost = Semlock::Sem->new("lost");
		kill "TERM", $lost->{pid};
		1 while $lost->held;
		eval { $lost->unlock; 1 } and die "a lost lock was released";
		$@ =~ /was lost/ or die $@;
		eval { Semlock::Sem->detach("d", run_timeout => 60); 1 } and die "detach works";
		$@ =~ /a sandbox forbids it/ or die $@;'
	expect_silent
}
