bin_PROGRAMS += semlock
semlock_SOURCES = src/main.c $(SEMLOCK_PARTS_SOURCES)
# Everything but main, for tests to be linked with.
SEMLOCK_PARTS_SOURCES = \
	src/alarm.c src/alarm.h \
	src/asleep.c src/asleep.h \
	src/caller.c src/caller.h \
	src/check.c src/check.h \
	src/command.c src/command.h \
	src/crash.c src/crash.h \
	src/deadline.c src/deadline.h \
	src/descriptor.c src/descriptor.h \
	src/ending.c src/ending.h \
	src/environment.c src/environment.h \
	src/events.c src/events.h \
	src/execute.c src/execute.h \
	src/exitcode.c src/exitcode.h \
	src/fdinfo.c src/fdinfo.h \
	src/gate.c src/gate.h \
	src/grips.c src/grips.h \
	src/here.c src/hold.c src/hold.h src/holder.c src/holder.h \
	src/holds.c src/holds.h \
	src/job.c src/job.h \
	src/json.c src/json.h \
	src/keeper.c src/keeper.h \
	src/lease.c src/lease.h \
	src/lifeline.c src/lifeline.h \
	src/links.c src/links.h \
	src/liveness.c src/liveness.h \
	src/lock.c src/lock.h \
	src/lockfile.c src/lockfile.h \
	src/locksmith.c src/locksmith.h \
	src/locksmith/common/holders.c src/locksmith/common/holders.h \
	src/memory.c src/memory.h \
	src/messages.c src/messages.h \
	src/mounts.c src/mounts.h \
	src/names.c src/names.h \
	src/nesting.c src/nesting.h \
	src/obtain.c src/obtain.h \
	src/occupants.c src/occupants.h \
	src/operands.c src/operands.h \
	src/path.c src/path.h \
	src/options.c src/options.h \
	src/pidfd.c src/pidfd.h \
	src/process.c src/process.h \
	src/procfs.c src/procfs.h \
	src/progress.c src/progress.h \
	src/proof.c src/proof.h \
	src/queue.c src/queue.h \
	src/queuefile.c src/queuefile.h \
	src/reach.c src/reach.h \
	src/replace.c src/replace.h \
	src/report.c src/report.h \
	src/recorded.c src/recorded.h \
	src/rules.c src/rules.h \
	src/run.c src/run.h \
	src/scene.c src/scene.h \
	src/sentence.c src/sentence.h \
	src/several.c src/several.h \
	src/signals.c src/signals.h \
	src/slots.c src/slots.h \
	src/targets.c src/targets.h \
	src/text.c src/text.h \
	src/told.c src/told.h \
	src/usage.c src/usage.h \
	src/values.c src/values.h \
	src/view.c src/view.h \
	src/waiters.c src/waiters.h \
	src/watch.c src/watch.h \
	src/who.c src/who.h \
	src/methods/method.h src/methods/table.c \
	src/methods/flock.c src/methods/flock.h \
	src/methods/fcntl.c src/methods/fcntl.h \
	src/methods/existing.c src/methods/existing.h \
	src/methods/filemethods.h \
	src/methods/filesystem.c src/methods/filesystem.h src/methods/calls.h src/methods/guard.c src/methods/guard.h \
	src/methods/namefile.c src/methods/namefile.h src/methods/directory.c src/methods/temporary.c \
	src/methods/plainfile.c src/methods/plainfile.h \
	src/methods/rename2.c src/methods/rename2.h \
	src/methods/remote.c src/methods/remote.h src/methods/scheme.c \
	src/methods/sight.c src/methods/sight.h \
	src/methods/stranger.c src/methods/stranger.h \
	src/methods/token.c src/methods/token.h \
	src/methods/excl.c src/methods/link.c src/methods/mkdir.c \
	src/methods/rename.c src/methods/symlink.c src/methods/unique.c

# configure --enable-static-binary
semlock_CFLAGS = $(AM_CFLAGS) $(STATIC_CFLAGS)
semlock_LDFLAGS = $(AM_LDFLAGS) $(STATIC_LDFLAGS)
semlock_LDADD = $(STATIC_LIBS)

# ---- locksmiths: locks on a server; the only programs linked with more than libc ----
libexec_PROGRAMS =
LOCKSMITH_COMMON = \
	src/pidfd.c src/pidfd.h \
	src/procfs.c src/procfs.h \
	src/locksmith/common/clock.c src/locksmith/common/clock.h \
	src/locksmith/common/engine.h \
	src/locksmith/common/guard.c src/locksmith/common/guard.h \
	src/locksmith/common/holders.c src/locksmith/common/holders.h \
	src/locksmith/common/login.c src/locksmith/common/login.h \
	src/locksmith/common/loop.c src/locksmith/common/loop.h \
	src/locksmith/common/main.c \
	src/locksmith/common/options.c src/locksmith/common/options.h \
	src/locksmith/common/protocol.c src/locksmith/common/protocol.h \
	src/locksmith/common/url.c src/locksmith/common/url.h \
	src/locksmith/common/why.c src/locksmith/common/why.h
# What is built on libcurl.
LOCKSMITH_CURL = \
	src/locksmith/curl/buffer.c src/locksmith/curl/buffer.h \
	src/locksmith/curl/transfer.c src/locksmith/curl/transfer.h
LOCKSMITH_ETCD = $(LOCKSMITH_CURL) \
	src/locksmith/etcd/base64.c src/locksmith/etcd/base64.h \
	src/locksmith/etcd/etcd.c \
	src/locksmith/etcd/etcd_acquire.c \
	src/locksmith/etcd/etcd_hold.c \
	src/locksmith/etcd/etcdctl.c src/locksmith/etcd/etcdctl.h \
	src/locksmith/etcd/etcdlock.c src/locksmith/etcd/etcdlock.h \
	src/locksmith/etcd/etcdmark.c src/locksmith/etcd/etcdmark.h \
	src/locksmith/etcd/etcdqueue.c src/locksmith/etcd/etcdqueue.h \
	src/locksmith/etcd/etcdrpc.c src/locksmith/etcd/etcdrpc.h \
	src/locksmith/etcd/etcdwatch.c src/locksmith/etcd/etcdwatch.h \
	src/locksmith/etcd/http.c src/locksmith/etcd/http.h
LOCKSMITH_FTP = $(LOCKSMITH_CURL) \
	src/locksmith/ftp/dirlock.c src/locksmith/ftp/dirlock.h \
	src/locksmith/ftp/dirlock_acquire.c \
	src/locksmith/ftp/dirlock_age.c \
	src/locksmith/ftp/dirlock_check.c \
	src/locksmith/ftp/dirlock_hold.c \
	src/locksmith/ftp/ftpconn.c \
	src/locksmith/ftp/ftplist.c src/locksmith/ftp/ftplist.h \
	src/locksmith/ftp/listing.c src/locksmith/ftp/listing.h \
	src/locksmith/ftp/remote.c src/locksmith/ftp/remote.h \
	src/locksmith/ftp/sftpconn.c \
	src/locksmith/ftp/sightings.c src/locksmith/ftp/sightings.h \
	src/locksmith/ftp/token.c src/locksmith/ftp/token.h
LOCKSMITH_POSTGRESQL = \
	src/locksmith/postgresql/acquire.c \
	src/locksmith/postgresql/connect.c \
	src/locksmith/postgresql/hold.c \
	src/locksmith/postgresql/look.c \
	src/locksmith/postgresql/pglock.h \
	src/locksmith/postgresql/postgresql.c \
	src/locksmith/postgresql/statement.c \
	src/locksmith/postgresql/table.c

# PROGRAM-SCHEME is run for SCHEME://...: a program's further schemes are links to it.
LOCKSMITH_LINKS =
if HAVE_ETCD
libexec_PROGRAMS += semlock-locksmith-etcd
LOCKSMITH_LINKS += etcd/etcds
endif
semlock_locksmith_etcd_SOURCES = $(LOCKSMITH_COMMON) $(LOCKSMITH_ETCD)
semlock_locksmith_etcd_CFLAGS = $(AM_CFLAGS) $(ETCD_CFLAGS)
semlock_locksmith_etcd_LDADD = $(ETCD_LIBS)
if HAVE_FTP
libexec_PROGRAMS += semlock-locksmith-ftp
LOCKSMITH_LINKS += ftp/ftpes ftp/ftps ftp/sftp
endif
semlock_locksmith_ftp_SOURCES = $(LOCKSMITH_COMMON) $(LOCKSMITH_FTP)
semlock_locksmith_ftp_CFLAGS = $(AM_CFLAGS) $(FTP_CFLAGS)
semlock_locksmith_ftp_LDADD = $(FTP_LIBS)
if HAVE_POSTGRESQL
libexec_PROGRAMS += semlock-locksmith-postgresql
LOCKSMITH_LINKS += postgresql/postgres
endif
semlock_locksmith_postgresql_SOURCES = $(LOCKSMITH_COMMON) $(LOCKSMITH_POSTGRESQL)
semlock_locksmith_postgresql_CFLAGS = $(AM_CFLAGS) $(POSTGRESQL_CFLAGS)
semlock_locksmith_postgresql_LDADD = $(POSTGRESQL_LIBS)

all-local: $(libexec_PROGRAMS)
	@for link in $(LOCKSMITH_LINKS); do \
		$(LN_S) -f semlock-locksmith-$${link%/*}$(EXEEXT) semlock-locksmith-$${link#*/}$(EXEEXT) || exit; \
	done
install-exec-hook:
	@for link in $(LOCKSMITH_LINKS); do \
		(cd '$(DESTDIR)$(libexecdir)' && $(LN_S) -f semlock-locksmith-$${link%/*}$(EXEEXT) \
			semlock-locksmith-$${link#*/}$(EXEEXT)) || exit; \
	done
uninstall-hook:
	@for link in $(LOCKSMITH_LINKS); do \
		rm -f '$(DESTDIR)$(libexecdir)'/semlock-locksmith-$${link#*/}$(EXEEXT); \
	done
mostlyclean-local:
	for link in $(LOCKSMITH_LINKS); do rm -f semlock-locksmith-$${link#*/}$(EXEEXT); done
