# SPDX-License-Identifier: MIT
bin_PROGRAMS += semlock
semlock_SOURCES = src/main.c $(SEMLOCK_PARTS_SOURCES)
# Everything but main, for tests to be linked with.
SEMLOCK_PARTS_SOURCES = \
	src/cli/check_options.c src/cli/check_options.h \
	src/cli/named_lock.c src/cli/named_lock.h \
	src/cli/operands.c src/cli/operands.h \
	src/cli/option_table.c src/cli/option_table.h \
	src/cli/options.c src/cli/options.def src/cli/options.h \
	src/cli/other_semlock.c src/cli/other_semlock.h \
	src/cli/read_request.c src/cli/read_request.h \
	src/cli/reading.h \
	src/cli/request.h \
	src/cli/rules.def \
	src/cli/unknown_option.c src/cli/unknown_option.h \
	src/cli/usage.c src/cli/usage.h \
	src/cli/values.c src/cli/values.h \
	src/hold/caller_fds.c src/hold/caller_fds.h \
	src/hold/detach.c src/hold/detach.h \
	src/hold/hold.c src/hold/hold.h \
	src/hold/hold_names.c src/hold/hold_names.h \
	src/hold/keeper.c src/hold/keeper.h \
	src/hold/keeper_client.c src/hold/keeper_client.h \
	src/hold/sandbox.c src/hold/sandbox.h \
	src/lock/attempt.c src/lock/attempt.h \
	src/lock/conversion.c src/lock/conversion.h \
	src/lock/held_mode.c src/lock/held_mode.h \
	src/lock/lock.h \
	src/lock/lockset.c src/lock/lockset.h \
	src/lock/method.h \
	src/lock/queue.c src/lock/queue.h \
	src/lock/queue_trust.c src/lock/queue_trust.h \
	src/lock/slots.c src/lock/slots.h \
	src/lock/taking.c src/lock/taking.h \
	src/methods/file/filemethods.h \
	src/methods/file/heartbeat.c \
	src/methods/file/lockdir.c \
	src/methods/file/mkdir.c \
	src/methods/file/owner_record.c src/methods/file/owner_record.h \
	src/methods/file/plainfile.c \
	src/methods/file/publish.c \
	src/methods/file/rename.c \
	src/methods/file/symlink.c \
	src/methods/file/takeover.c \
	src/methods/kernel/fcntl.c \
	src/methods/kernel/flock.c \
	src/methods/kernel/kernel_methods.h \
	src/methods/kernel/lockfile.c src/methods/kernel/lockfile.h \
	src/methods/kernel/safe_open.c src/methods/kernel/safe_open.h \
	src/methods/server/lease.c src/methods/server/lease.h \
	src/methods/server/locksmith.c src/methods/server/locksmith.h \
	src/methods/server/scheme.c src/methods/server/scheme.h \
	src/methods/server/server.c src/methods/server/server.h \
	src/methods/server/server_inherited.c src/methods/server/server_inherited.h \
	src/methods/table.c src/methods/table.h \
	src/owners/hold_id.c src/owners/hold_id.h \
	src/owners/kernel_nesting.c \
	src/owners/kernel_owners.c \
	src/owners/open_locks.c \
	src/owners/owner_text.c \
	src/owners/owners.h \
	src/owners/owners_list.c \
	src/owners/owners_look.c \
	src/owners/record_owners.c \
	src/owners/server_owners.c \
	src/owners/snapshot.c \
	src/owners/sources.h \
	src/owners/waiters.c \
	src/preempt/preempt.c src/preempt/preempt.h \
	src/preempt/target_list.c src/preempt/target_list.h \
	src/preempt/targets.c src/preempt/targets.h \
	src/protocol/lease_schedule.h \
	src/protocol/locksmith_words.h \
	src/report/compiler.h \
	src/report/error.c src/report/error.h \
	src/report/status_fd.c src/report/status_fd.h \
	src/report/text.c src/report/text.h \
	src/run/acquire.c src/run/acquire.h \
	src/run/front.c src/run/front.h \
	src/run/hold_time.c src/run/hold_time.h \
	src/run/log.c src/run/log.h \
	src/run/notes.c src/run/notes.h \
	src/run/observer.c src/run/observer.h \
	src/run/outcome.c src/run/outcome.h \
	src/run/run.c src/run/run.h \
	src/run/start.c src/run/start.h \
	src/run/subreaper.c src/run/subreaper.h \
	src/run/supervise.c src/run/supervise.h \
	src/run/who.c src/run/who.h \
	src/sys/ancestors.c src/sys/ancestors.h \
	src/sys/crash_points.c src/sys/crash_points.h \
	src/sys/deadline.c src/sys/deadline.h \
	src/sys/file_system.c src/sys/file_system.h \
	src/sys/files.c src/sys/files.h \
	src/sys/listeners.c src/sys/listeners.h \
	src/sys/memory.c src/sys/memory.h \
	src/sys/open_fds.c src/sys/open_fds.h \
	src/sys/process.c src/sys/process.h \
	src/sys/random.c src/sys/random.h \
	src/sys/signals.c src/sys/signals.h \
	src/sys/terminal.c src/sys/terminal.h \
	src/sys/waiting.c src/sys/waiting.h

# configure --enable-static-binary
semlock_CFLAGS = $(AM_CFLAGS) $(STATIC_CFLAGS)
semlock_LDFLAGS = $(AM_LDFLAGS) $(START_LDFLAGS) $(STATIC_LDFLAGS)
semlock_LDADD = $(STATIC_LIBS)

# ---- locksmiths: locks on a server; the only programs linked with more than libc ----
libexec_PROGRAMS =
LOCKSMITH_COMMON = \
	src/sys/deadline.c src/sys/deadline.h \
	src/sys/process.c src/sys/process.h src/report/text.c src/report/text.h \
	src/sys/random.c src/sys/random.h \
	src/locksmith/common/loop.c src/locksmith/common/loop.h \
	src/locksmith/common/options.c src/locksmith/common/options.h \
	src/locksmith/common/protocol.c src/locksmith/common/protocol.h \
	src/protocol/lease_schedule.h src/protocol/locksmith_words.h \
	src/locksmith/common/url.c src/locksmith/common/url.h \
	src/report/error.c src/report/error.h \
	src/locksmith/common/engine.h src/locksmith/common/main.c \
	src/locksmith/common/release.c src/locksmith/common/release.h \
	src/locksmith/common/renewal.c src/locksmith/common/renewal.h \
	src/locksmith/common/wait.c src/locksmith/common/wait.h
# What is built on libcurl.
LOCKSMITH_CURL = \
	src/locksmith/curl/buffer.c src/locksmith/curl/buffer.h \
	src/locksmith/curl/transfer.c src/locksmith/curl/transfer.h
LOCKSMITH_ETCD = $(LOCKSMITH_CURL) \
	src/locksmith/etcd/etcd.c \
	src/locksmith/etcd/etcd_wait.c src/locksmith/etcd/etcd_wait.h \
	src/locksmith/etcd/etcd_key.c src/locksmith/etcd/etcd_key.h \
	src/locksmith/etcd/etcd_queue.c src/locksmith/etcd/etcd_queue.h \
	src/locksmith/etcd/etcd_rpc.c src/locksmith/etcd/etcd_rpc.h \
	src/locksmith/etcd/etcd_wire.c src/locksmith/etcd/etcd_wire.h \
	src/locksmith/etcd/grpc.c src/locksmith/etcd/grpc.h \
	src/locksmith/etcd/protobuf.c src/locksmith/etcd/protobuf.h
LOCKSMITH_FTP = $(LOCKSMITH_CURL) \
	src/locksmith/ftp/dirlock.c src/locksmith/ftp/dirlock.h \
	src/locksmith/ftp/ftp.c \
	src/locksmith/ftp/ftpconn.c \
	src/locksmith/ftp/listing.c src/locksmith/ftp/listing.h \
	src/locksmith/ftp/remote_dir.c src/locksmith/ftp/remote_dir.h \
	src/locksmith/ftp/sftpconn.c
LOCKSMITH_POSTGRESQL = \
	src/locksmith/postgresql/conninfo.c src/locksmith/postgresql/conninfo.h \
	src/locksmith/postgresql/pglock.h \
	src/locksmith/postgresql/place.c src/locksmith/postgresql/place.h \
	src/locksmith/postgresql/postgresql.c \
	src/locksmith/postgresql/query.c src/locksmith/postgresql/query.h \
	src/locksmith/postgresql/schema.c src/locksmith/postgresql/schema.h \
	src/locksmith/postgresql/session.c src/locksmith/postgresql/session.h \
	src/locksmith/postgresql/waiter.c src/locksmith/postgresql/waiter.h
LOCKSMITH_S3 = $(LOCKSMITH_CURL) \
	src/locksmith/s3/aws_login.c src/locksmith/s3/aws_login.h \
	src/locksmith/s3/aws_process.c src/locksmith/s3/aws_process.h \
	src/locksmith/s3/aws_settings.c src/locksmith/s3/aws_settings.h \
	src/locksmith/s3/md5.c src/locksmith/s3/md5.h \
	src/locksmith/s3/s3.c \
	src/locksmith/s3/s3_lock.c src/locksmith/s3/s3_lock.h \
	src/locksmith/s3/s3_request.c src/locksmith/s3/s3_request.h

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
if HAVE_S3
libexec_PROGRAMS += semlock-locksmith-s3
endif
semlock_locksmith_s3_SOURCES = $(LOCKSMITH_COMMON) $(LOCKSMITH_S3)
semlock_locksmith_s3_CFLAGS = $(AM_CFLAGS) $(S3_CFLAGS)
semlock_locksmith_s3_LDADD = $(S3_LIBS)
# Those that are scripts.  In the build directory, too, they stand beside the others.
libexec_SCRIPTS =
if HAVE_REDIS
libexec_SCRIPTS += src/locksmith/redis/semlock-locksmith-redis
LOCKSMITH_LINKS += redis/rediss
endif
if HAVE_SSH
libexec_SCRIPTS += src/locksmith/ssh/semlock-locksmith-ssh
endif
# What the scripts share is installed beside them: they find it there without PYTHONPATH.
locksmithdir = $(libexecdir)
if HAVE_REDIS
locksmith_DATA = src/locksmith/python/semlock_locksmith.py
else
if HAVE_SSH
locksmith_DATA = src/locksmith/python/semlock_locksmith.py
endif
endif
EXTRA_DIST += src/locksmith/redis/semlock-locksmith-redis src/locksmith/ssh/semlock-locksmith-ssh \
	src/locksmith/python/semlock_locksmith.py

all-local: $(libexec_PROGRAMS) $(libexec_SCRIPTS)
	@for script in $(libexec_SCRIPTS); do $(LN_S) -f '$(abs_srcdir)'/$$script . || exit; done
	@for link in $(LOCKSMITH_LINKS); do \
		$(LN_S) -f semlock-locksmith-$${link%/*}$(EXEEXT) \
			semlock-locksmith-$${link#*/}$(EXEEXT) || exit; \
	done
install-exec-hook:
	@for link in $(LOCKSMITH_LINKS); do \
		(cd '$(DESTDIR)$(libexecdir)' && $(LN_S) -f semlock-locksmith-$${link%/*}$(EXEEXT) \
			semlock-locksmith-$${link#*/}$(EXEEXT)) || exit; \
	done
uninstall-local:
	@for link in $(LOCKSMITH_LINKS); do \
		rm -f '$(DESTDIR)$(libexecdir)'/semlock-locksmith-$${link#*/}$(EXEEXT); \
	done
mostlyclean-local:
	for script in $(libexec_SCRIPTS); do rm -f $${script##*/}; done
	for link in $(LOCKSMITH_LINKS); do rm -f semlock-locksmith-$${link#*/}$(EXEEXT); done

EXTRA_DIST += src/LAYERS src/README \
	src/run/README src/hold/README src/preempt/README src/owners/README src/cli/README \
	src/methods/README src/lock/README src/protocol/README src/sys/README src/report/README \
	src/locksmith/README
