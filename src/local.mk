bin_PROGRAMS += semlock
semlock_SOURCES = src/main.c $(SEMLOCK_PARTS_SOURCES)
# Everything but main, for tests to be linked with.
SEMLOCK_PARTS_SOURCES = \
	src/alarm.c src/alarm.h \
	src/asleep.c src/asleep.h \
	src/attempt.c src/attempt.h \
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
	src/locksmith/holders.c src/locksmith/holders.h \
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
	src/tether.c src/tether.h \
	src/text.c src/text.h \
	src/tie.c src/tie.h \
	src/told.c src/told.h \
	src/transit.c src/transit.h \
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
semlock_LDFLAGS = $(AM_LDFLAGS) $(START_LDFLAGS) $(STATIC_LDFLAGS)
semlock_LDADD = $(STATIC_LIBS)
EXTRA_DIST += src/start.ld

# ---- the locksmith: locks on a server; the only program linked with more than libc ----
libexec_PROGRAMS =
# Everything but main, which its tests are linked with too.
LOCKSMITH_PARTS_SOURCES = \
	src/pidfd.c src/pidfd.h \
	src/procfs.c src/procfs.h \
	src/locksmith/base64.c src/locksmith/base64.h \
	src/locksmith/buffer.c src/locksmith/buffer.h \
	src/locksmith/clock.c src/locksmith/clock.h \
	src/locksmith/dirlock.c src/locksmith/dirlock.h \
	src/locksmith/dirlock_acquire.c \
	src/locksmith/dirlock_age.c \
	src/locksmith/dirlock_check.c \
	src/locksmith/dirlock_hold.c \
	src/locksmith/etcd.c src/locksmith/etcd.h \
	src/locksmith/etcd_acquire.c \
	src/locksmith/etcd_hold.c \
	src/locksmith/etcdlock.c src/locksmith/etcdlock.h \
	src/locksmith/etcdmark.c src/locksmith/etcdmark.h \
	src/locksmith/etcdqueue.c src/locksmith/etcdqueue.h \
	src/locksmith/etcdrpc.c src/locksmith/etcdrpc.h \
	src/locksmith/etcdwatch.c src/locksmith/etcdwatch.h \
	src/locksmith/ftpconn.c \
	src/locksmith/ftplist.c src/locksmith/ftplist.h \
	src/locksmith/guard.c src/locksmith/guard.h \
	src/locksmith/holders.c src/locksmith/holders.h \
	src/locksmith/http.c src/locksmith/http.h \
	src/locksmith/listing.c src/locksmith/listing.h \
	src/locksmith/login.c src/locksmith/login.h \
	src/locksmith/netrc.c src/locksmith/netrc.h \
	src/locksmith/options.c src/locksmith/options.h \
	src/locksmith/protocol.c src/locksmith/protocol.h \
	src/locksmith/remote.c src/locksmith/remote.h \
	src/locksmith/sftpconn.c \
	src/locksmith/sightings.c src/locksmith/sightings.h \
	src/locksmith/token.c src/locksmith/token.h \
	src/locksmith/transfer.c src/locksmith/transfer.h \
	src/locksmith/url.c src/locksmith/url.h \
	src/locksmith/why.c src/locksmith/why.h
if HAVE_NETWORK
libexec_PROGRAMS += semlock-locksmith
endif
semlock_locksmith_SOURCES = src/locksmith/main.c $(LOCKSMITH_PARTS_SOURCES)
semlock_locksmith_CFLAGS = $(AM_CFLAGS) $(NETWORK_CFLAGS)
semlock_locksmith_LDADD = $(NETWORK_LIBS)
