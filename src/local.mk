bin_PROGRAMS += semlock
semlock_SOURCES = \
	src/main.c

# ---- the locksmith: locks on a server; the only program linked with more than libc ----
libexec_PROGRAMS =
# Everything but main, which its tests are linked with too.
LOCKSMITH_PARTS_SOURCES = \
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
