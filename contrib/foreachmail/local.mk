if ENABLE_FOREACHMAIL
bin_PROGRAMS += contrib/foreachmail/foreachmail
dist_man_MANS += contrib/foreachmail/foreachmail.1
endif

contrib_foreachmail_foreachmail_SOURCES = \
	contrib/foreachmail/commands.c contrib/foreachmail/commands.h \
	contrib/foreachmail/foreachmail.c \
	contrib/foreachmail/mbox.c contrib/foreachmail/mbox.h

EXTRA_DIST += contrib/foreachmail/README
