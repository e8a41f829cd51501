if ENABLE_FOREACHMAIL
bin_PROGRAMS += contrib/foreachmail/foreachmail
dist_man_MANS += contrib/foreachmail/foreachmail.1
LOCAL_BATS += tests/contrib/foreachmail.bats
else
EXTRA_DIST += contrib/foreachmail/foreachmail.1
endif

contrib_foreachmail_foreachmail_SOURCES = \
	contrib/foreachmail/commands.c contrib/foreachmail/commands.h \
	contrib/foreachmail/foreachmail.c \
	contrib/foreachmail/mbox.c contrib/foreachmail/mbox.h

AM_TESTS_ENVIRONMENT += \
	FOREACHMAIL='$(abs_top_builddir)/contrib/foreachmail/foreachmail$(EXEEXT)'; \
	export FOREACHMAIL;

EXTRA_DIST += contrib/foreachmail/README tests/contrib/foreachmail.bats tests/lib/mailboxes.perl
