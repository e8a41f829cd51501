#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Mailboxes for tests/contrib/foreachmail.bats: the same bytes for the same arguments.
#
#	mailboxes.perl archive N           print N messages as mail programs write them
#	mailboxes.perl noise SEED SIZE     print random bytes that are full of near-separators
#	mailboxes.perl big SIZE            print a message of SIZE bytes, all but a few in one line
#	mailboxes.perl split FILE DIR      cut FILE by the rule of foreachmail(1) into DIR/1, DIR/2 ...
#
# `split' states the rule a second time, independently: one regular expression on the whole.
use strict;
use warnings;

binmode STDOUT;

my @words = qw(lock mail queue holder From waiter the a of ships at dawn and token slot From: >From);

# Not rand(), which differs between builds of perl.
my $state = 1;
sub any { my ($n) = @_; $state = ($state * 69069 + 12345) % 4294967296; return int($state / 65536) % $n }

sub text {
	my ($lines) = @_;
	my $text = '';
	for (1 .. $lines) {
		my $line = join ' ', map { $words[any(scalar @words)] } 1 .. any(12);
		$line =~ s/^(?=>*From )/>/;    # a writer of mboxrd
		$text .= "$line\n";
	}
	return $text;
}

sub base64 {
	my @digits = ('A' .. 'Z', 'a' .. 'z', 0 .. 9, '+', '/');
	return join '', map { join('', map { $digits[any(64)] } 1 .. 76) . "\n" } 1 .. $_[0];
}

sub body {
	my ($kind) = @_;
	return '' if $kind == 0;
	return text(1 + any(40)) . "\n-- \nA. User\n" if $kind < 4;
	return join '', map { chr any(256) } 1 .. 700 if $kind == 4;
	return "This is a message in MIME format.\n\n--=_b\nContent-Type: text/plain\n\n" . text(10)
	    . "\n--=_b\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\n"
	    . base64(1 + any(200)) . "\n--=_b--\n";
}

sub archive {
	my ($n) = @_;
	for my $i (1 .. $n) {
		my $body = body(any(7));
		$body =~ s/\n(?=From )/\n>/g;
		$body .= "\n" unless $body =~ /\n\z/ || $body eq '';
		printf "From user%d\@example.org %s Jan %2d %02d:%02d:%02d 2024\n", any(50),
		    (qw(Sun Mon Tue Wed Thu Fri Sat))[$i % 7], 1 + $i % 28, $i % 24, $i % 60, $i % 59;
		print "Return-Path: <user\@example.org>\n" if any(2);
		print "Received: from mx.example.org (mx.example.org [192.0.2.7])\n",
		    "\tby mail.example.net with ESMTP id $i;\n\tMon, 1 Jan 2024 00:00:00 +0000\n";
		print "From: \"User, A.\" <user\@example.org>\nTo: list\@example.org\n";
		print "Subject: ", join(' ', map { $words[any(scalar @words)] } 1 .. 5), "\n";
		print "Message-ID: <$i.", any(99999), "\@example.org>\n";
		print "Content-Length: ", length $body, "\nLines: ", $body =~ tr/\n//, "\n" if any(2);
		print "Content-Type: multipart/mixed;\n boundary=\"=_b\"\n" if $body =~ /=_b/;
		print "\n", $body, "\n" x (1 + (any(5) == 0));
	}
}

sub noise {
	my ($seed, $size) = @_;
	my @pieces = ("\n", "\n", "\n\n", "\r\n", "\r\n\r\n", "\r", 'From ', "\n\nFrom x\nA: b\n",
		"\n\r\nFrom y\r\nB:\r\n", "\nFrom z\n", "\n\nFrom \n:\n", "\n\nFrom q\n>From r\n",
		'>From ', ">>From \n", 'a:', ' ', "\0", "\xff", '>', 'F', 'Subject: x');
	my $noise = '';
	$state = $seed;
	while (length $noise < $size) {
		my $i = any(@pieces + 6);
		$noise .= $i < @pieces ? $pieces[$i] : join '', map { chr any(256) } 1 .. any(30);
	}
	print substr $noise, 0, $size;
}

sub split_mailbox {
	my ($file, $dir) = @_;
	open my $in, '<:raw', $file or die "$file: $!";
	local $/;
	my $all = <$in>;
	my $number = 0;
	my $end = $all =~ /(\r?)\n(?!.*\n)/s && $1 ? "\r\n" : "\n";
	my $blank = $all =~ /\n\r?\n\z/;
	$all .= $end if $all ne '' && $all !~ /\n\z/;
	$all .= $end if $all ne '' && !$blank;
	$all =~ s/\A(?:\r?\n)+//;
	for (split /(?:(?<=\n\n)|(?<=\n\r\n))(?=From [^\n]*\n(?:[!-9;-~]+:|>From ))/, $all) {
		open my $out, '>:raw', "$dir/" . ++$number or die "$dir/$number: $!";
		print $out $_;
		close $out or die "$dir/$number: $!";
	}
}

my ($what, @arguments) = @ARGV;
if ($what eq 'archive') {
	archive(@arguments);
} elsif ($what eq 'noise') {
	noise(@arguments);
} elsif ($what eq 'big') {
	print "From big\@example.org Mon Jan  1 00:00:00 2024\nSubject: big\nTo: x\n\n",
	    'x' x ($arguments[0] - 75), "\nthe end\n\n";
} elsif ($what eq 'split') {
	split_mailbox(@arguments);
} else {
	die "mailboxes.perl: $what: no such thing\n";
}
close STDOUT or die "mailboxes.perl: standard output: $!\n";
