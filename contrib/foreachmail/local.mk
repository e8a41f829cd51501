# SPDX-License-Identifier: MIT
# A program of its own, in Perl: runs a command on each message of a mailbox.
if ENABLE_FOREACHMAIL
dist_bin_SCRIPTS += contrib/foreachmail/foreachmail
dist_man_MANS += contrib/foreachmail/foreachmail.1
LOCAL_BATS += tests/contrib/foreachmail.bats
else
EXTRA_DIST += contrib/foreachmail/foreachmail contrib/foreachmail/foreachmail.1
endif
EXTRA_DIST += contrib/foreachmail/README tests/contrib/foreachmail.bats tests/lib/mailboxes.perl
