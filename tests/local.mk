# Each bats file is a test program of automake's TAP driver, so that each @test in
# it is a result of its own.  Run one file: make check TESTS=tests/queue.bats
check_PROGRAMS += tests/probe
tests_probe_SOURCES = tests/probe.c

BATS_FILES = \
	tests/locksmith-ftp.bats \
	tests/locksmith-etcd.bats \
	tests/locksmith-model.bats \
	tests/locksmith-parts.bats \
	tests/locksmith-servers.bats

TEST_EXTENSIONS = .bats
BATS_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
BATS_LOG_COMPILER = $(BATS)
AM_BATS_LOG_FLAGS = --tap
AM_TESTS_ENVIRONMENT = \
	SEMLOCK='$(abs_top_builddir)/semlock$(EXEEXT)'; export SEMLOCK; \
	PROBE='$(abs_top_builddir)/tests/probe$(EXEEXT)'; export PROBE; \
	HELPERS='$(abs_top_srcdir)/tests/helpers.bash'; export HELPERS; \
	SOURCE='$(abs_top_srcdir)'; export SOURCE; \
	CRASHABLE='$(CRASHABLE)'; export CRASHABLE;

TESTS =
if HAVE_BATS
TESTS += $(BATS_FILES)
endif
EXTRA_DIST += tests/helpers.bash $(BATS_FILES)

# ---- the locksmith ----
if HAVE_NETWORK
AM_TESTS_ENVIRONMENT += LOCKSMITH='$(abs_top_builddir)/semlock-locksmith$(EXEEXT)'; export LOCKSMITH; \
	LOCKSMITH_PARTS='$(abs_top_builddir)/tests/locksmith_parts$(EXEEXT)'; export LOCKSMITH_PARTS;
check_PROGRAMS += tests/locksmith_parts
endif
tests_locksmith_parts_SOURCES = tests/locksmith_parts.c $(LOCKSMITH_PARTS_SOURCES)
tests_locksmith_parts_CFLAGS = $(AM_CFLAGS) $(NETWORK_CFLAGS)
tests_locksmith_parts_LDADD = $(NETWORK_LIBS)
EXTRA_DIST += tests/locksmith.bash tests/servers/core.py tests/servers/etcd.bash tests/servers/ftp.py \
	tests/torture/locksmith tests/torture/locksmith.py

# The lock protocol on FTP, tried in every interleaving; seconds, needs python3 alone.
.PHONY: models models-ftp
models: models-ftp
models-ftp:
	python3 $(srcdir)/tests/models/ftp.py
EXTRA_DIST += tests/models/ftp.py
