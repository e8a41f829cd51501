# SPDX-License-Identifier: MIT
# Each bats file is a test program of automake's TAP driver, so that each @test is a result of its own.
# Run one file: make check TESTS=tests/lock/queue.bats
check_PROGRAMS += tests/probe
tests_probe_SOURCES = tests/lib/syscalls.h tests/lib/probe.h tests/lib/probe.c tests/lib/probe-hold.c tests/lib/probe-inside.c \
	tests/lib/probe-json.c tests/lib/probe-lock.c tests/lib/probe-look.c tests/lib/probe-pty.c tests/lib/probe-signals.c \
	tests/lib/probe-slowness.c tests/lib/probe-start.c tests/lib/probe-storm.c tests/lib/probe-sweep.c tests/lib/probe-timer.c
check_PROGRAMS += tests/parse
tests_parse_SOURCES = tests/lib/parse.c src/sys/open_fds.c src/sys/file_system.c src/sys/process.c \
	src/sys/deadline.c src/sys/crash_points.c src/report/text.c

# runs a command in a sandbox: its own program, so that it can be tried by hand on anything, with nothing of the probe's
check_PROGRAMS += tests/tools/sandboxed
tests_tools_sandboxed_SOURCES = tests/tools/sandboxed.c tests/lib/seccomp.h
check_PROGRAMS += tests/tools/two-writers
tests_tools_two_writers_SOURCES = tests/tools/two-writers.c src/report/error.c src/report/text.c

check_PROGRAMS += tests/crowd
tests_crowd_SOURCES = tests/lib/syscalls.h tests/lib/crowd.h tests/lib/crowd.c tests/lib/crowd-kills.c tests/lib/crowd-line.c \
	tests/lib/crowd-loops.c

check_PROGRAMS += tests/liveness-check
tests_liveness_check_SOURCES = tests/lib/liveness-check.c \
	src/sys/process.c src/sys/deadline.c src/report/text.c \
	src/methods/file/owner_record.c src/methods/file/owner_record.h

check_PROGRAMS += tests/inject
tests_inject_SOURCES = tests/lib/inject.c tests/lib/seccomp.h

# semlock with crash points: places where a test may kill it, or have a call fail
check_PROGRAMS += tests/semlock-crashable
tests_semlock_crashable_SOURCES = $(semlock_SOURCES)
tests_semlock_crashable_CPPFLAGS = $(AM_CPPFLAGS) -DENABLE_CRASH_POINTS=1

check_PROGRAMS += tests/torture/torture
tests_torture_torture_SOURCES = tests/torture/torture.c tests/torture/torture.h \
	tests/torture/board.c tests/torture/breakers.c tests/torture/contend.c tests/torture/forms.c \
	tests/torture/held.c tests/torture/inside.c tests/torture/process.c tests/torture/naive.c tests/torture/naive.h \
	tests/torture/users.c tests/torture/verdict.c

# semlock with a hole that the torture must find
check_PROGRAMS += tests/semlock-broken
tests_semlock_broken_SOURCES = $(semlock_SOURCES) tests/torture/broken.c
tests_semlock_broken_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=lockfile_current,--wrap=lockdir_same,--wrap=attempt_deserted,--wrap=flock,--wrap=vfork

# make torture METHOD=excl ACQUISITIONS=100000 KILLS=1000 SEED=1 TORTURE_SECONDS=600
METHOD = flock ofd posix excl link mkdir symlink rename
ACQUISITIONS = 100000
KILLS = 1000
SEED = 1
torture: all tests/torture/torture$(EXEEXT) tests/inject$(EXEEXT)
	@bash $(srcdir)/tests/torture/run '$(abs_top_builddir)' $(ACQUISITIONS) $(KILLS) $(SEED) $(METHOD)
	python3 $(srcdir)/tests/torture/faults.py --for-ever --jobs=2 semlock$(EXEEXT) tests/torture/torture$(EXEEXT)

# make torture-remote SERVER=etcd-stop ROUNDS=200 SEED=1: the same for locks on a server
SERVER = ftp sftp etcd etcd-kill etcd-stop postgresql ssh s3 redis
ROUNDS = 200
HOLD = 0.02
torture-remote: all
	@for server in $(SERVER); do \
		SEMLOCK='$(abs_top_builddir)/semlock$(EXEEXT)' \
		SEMLOCK_LOCKSMITH_DIR='$(abs_top_builddir)' \
		$(SHELL) $(srcdir)/tests/torture/remote $$server --rounds=$(ROUNDS) --hold=$(HOLD) --seed=$(SEED) || exit; \
	done
.PHONY: torture-remote

# make faults: an error from every system call, for some twenty minutes; FAULTS=--only=excl: ...
FAULTS =
faults: all tests/torture/torture$(EXEEXT) tests/inject$(EXEEXT)
	python3 $(srcdir)/tests/torture/faults.py $(FAULTS) semlock$(EXEEXT) tests/torture/torture$(EXEEXT)

# make mutants: half an hour on two processors; which of SAMPLE changed lines does no test notice?
# make mutants FILE=src/lock/queue.c SAMPLE=30 SEED=2: in these files, other lines
FILE = src/lock src/hold src/methods src/locksmith/common
SAMPLE = 40
mutants:
	python3 $(srcdir)/tests/mutants --sample=$(SAMPLE) --seed=$(SEED) --jobs=2 $(srcdir) $(FILE)

# The tests themselves, one line for each as it ends: make tap TESTS=tests/lock/queue.bats TAP_FLAGS="--filter kills"
TAP_FLAGS =
tap:
	@$(AM_TESTS_ENVIRONMENT) cd $(srcdir) && $(BATS) --tap $(TAP_FLAGS) $(TESTS)
.PHONY: mutants tap say-no-bats
EXTRA_DIST += tests/mutants

# All tests on a slow machine: two fifths of one processor (as root), and each fork 10 ms late; SLOWLY=forks: that alone
SLOWLY = cpu forks
check-slowly: all tests/inject$(EXEEXT)
	@for how in $(SLOWLY); do \
		echo "make check, $$how:"; \
		INJECT='$(abs_top_builddir)/tests/inject$(EXEEXT)' $(SHELL) $(srcdir)/tests/lib/slowly $$how $(MAKE) -k check || exit; \
	done
.PHONY: check-slowly

# make models LEVEL=2: the big ones as well
LEVEL = 1
models:
	@$(SHELL) $(srcdir)/tests/models/run $(LEVEL)
.PHONY: torture faults models
EXTRA_DIST += tests/torture/run tests/torture/RESULTS tests/torture/killat tests/torture/faults.py tests/torture/faults_scenarios.py tests/PROMISES tests/models/README tests/models/run tests/models/suite.txt \
	tests/models/existlock.pml tests/models/flock_unlink.pml tests/models/open_noexcl.pml \
	tests/models/semlock_file.pml tests/models/semlock_rename.pml \
	tests/models/semlock_symlink.pml tests/models/spc_lock_file.pml

# Each takes a minute or more, the longest first: begun late, the last one would run alone at the end.  Those of
# PostgreSQL and the long ones of other servers, which mostly wait, come before them.  tests/notes/times in the build
# directory has the seconds of each file in the last run.
LONG_BATS = \
	tests/lock/order.bats \
	tests/methods/crash.bats \
	tests/models/models.bats \
	tests/torture/torture.bats \
	tests/torture/faults.bats \
	tests/preempt/replace.bats \
	tests/cli/completion.bats \
	tests/owners/who-files.bats \
	tests/run/waiting-line.bats \
	tests/methods/file-systems.bats \
	tests/torture/found-out.bats \
	tests/methods/methods.bats

LOCAL_BATS = \
	tests/cli/bad-input.bats \
	tests/run/ancestors.bats tests/run/runners.bats \
	tests/run/become.bats \
	tests/run/busy.bats \
	tests/owners/proc.bats tests/owners/looking.bats \
	tests/run/close.bats \
	tests/lock/conversion.bats \
	tests/lock/deleted.bats \
	tests/run/die-with-parent.bats \
	tests/cli/drop-in.bats \
	tests/cli/rules.bats tests/cli/slips.bats \
	tests/locksmith/engine.bats \
	tests/run/environment.bats \
	tests/run/exit-status.bats \
	tests/run/fallbacks.bats \
	tests/lock/fd.bats tests/lock/first.bats tests/lock/supersede.bats \
	tests/methods/fuse.bats \
	tests/fuzz/fuzz.bats \
	tests/run/group-kill.bats \
	tests/run/detach.bats tests/run/detach-faults.bats tests/run/detach-kills.bats tests/run/detach-stopped.bats tests/run/keep-place.bats tests/run/hold.bats \
	tests/run/note.bats \
	tests/owners/forged.bats \
	tests/methods/hostile-files.bats \
	tests/methods/published-faults.bats \
	tests/lock/hostile.bats \
	tests/methods/interoperation.bats \
	tests/run/job-control.bats \
	tests/layering.bats \
	tests/methods/process-alive.bats \
	tests/methods/lock-made-of-files.bats \
	tests/locksmith/helper-model.bats \
	tests/cli/manual.bats \
	tests/methods/network-file-systems.bats \
	tests/mutants.bats \
	tests/cli/name.bats \
	tests/run/log.bats \
	tests/run/min-hold.bats \
	tests/run/nested.bats \
	tests/run/held.bats \
	tests/methods/on-lost.bats \
	tests/contrib/check.bats \
	tests/contrib/perl.bats \
	tests/contrib/semlock-check.bats tests/contrib/tests-of.bats \
	tests/promises.bats \
	tests/contrib/python.bats \
	tests/cli/readme.bats \
	tests/lock/queue-max.bats \
	tests/lock/queue.bats \
	tests/lock/queue-users.bats \
	tests/lock/reject.bats \
	tests/run/run-timeout.bats tests/run/sandbox.bats \
	tests/lock/lockset.bats \
	tests/lock/shared.bats \
	tests/run/signals.bats \
	tests/lock/slots.bats tests/lock/take.bats \
	tests/methods/stale.bats \
	tests/run/status-fd.bats \
	tests/run/terminal.bats \
	tests/lock/timeout.bats \
	tests/preempt/proof.bats \
	tests/preempt/toggle.bats \
	tests/owners/who-all.bats \
	tests/owners/who.bats

# These start servers and need the helpers for etcd and FTP: not run in a build without them.
LONG_NETWORK_BATS = \
	tests/locksmith/conformance-ours.bats \
	tests/locksmith/conformance.bats \
	tests/locksmith/helper-etcd-lease.bats \
	tests/locksmith/helper-etcd-late.bats \
	tests/locksmith/helper-etcd-faults.bats \
	tests/locksmith/helper-etcd-busy.bats
NETWORK_BATS = $(LONG_NETWORK_BATS) $(SHORT_NETWORK_BATS)
SHORT_NETWORK_BATS = \
	tests/locksmith/etcd.bats \
	tests/locksmith/s3.bats \
	tests/locksmith/ssh.bats \
	tests/locksmith/redis.bats \
	tests/locksmith/troubles.bats \
	tests/locksmith/stress.bats \
	tests/locksmith/helper-etcd-login.bats \
	tests/locksmith/helper-ftp.bats \
	tests/locksmith/helper-ftp-killed.bats \
	tests/locksmith/helper-etcd-queue.bats \
	tests/locksmith/ftp.bats \
	tests/locksmith/helper-servers.bats \
	tests/locksmith/vanished.bats \
	tests/locksmith/other-servers.bats \
	tests/locksmith/helper-fuzz.bats tests/fuzz/strangers.bats \
	tests/locksmith/helper-parts.bats \
	tests/contrib/objects-on-a-server.bats

# These need a server of 276 MB: contrib/check s3.
RADOSGW_BATS = tests/locksmith/s3-radosgw.bats tests/locksmith/s3-radosgw-crowd.bats

# These run only in a build with the helper for PostgreSQL.
POSTGRESQL_BATS = tests/locksmith/postgresql-away.bats tests/locksmith/postgresql-full.bats \
	tests/locksmith/postgresql.bats tests/locksmith/postgresql-queue.bats

BATS_FILES = $(LONG_BATS) $(LOCAL_BATS) $(NETWORK_BATS) $(POSTGRESQL_BATS) $(RADOSGW_BATS)

# The program that the tests call semlock; another one: make check SEMLOCK_TESTED=/path
SEMLOCK_TESTED = $(abs_top_builddir)/semlock$(EXEEXT)

TEST_EXTENSIONS = .bats
BATS_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
if HAVE_BATS
BATS_LOG_COMPILER = $(SHELL) '$(abs_srcdir)/tests/lib/run-file' '$(abs_top_builddir)/tests/notes' $(BATS)
else
BATS_LOG_COMPILER = $(SHELL) -c 'echo "Bail out! tests run by: $(say_bats)"'
check-local: say-no-bats
say-no-bats:
	@echo 'NOT RUN: no tests; tests run by: $(say_bats)'
endif
# How slow this machine is, before the tests make it slower.  A cross build has no probe that runs here.
if CROSS_COMPILING
slowness = echo 1
else
slowness = tests/probe$(EXEEXT) slowness
endif
check_DATA = tests/notes/slowness
tests/notes/slowness: $(check_PROGRAMS) measure-now
	@rm -rf tests/notes && $(MKDIR_P) tests/notes && $(slowness) >$@ && \
		read -r times <$@ && if test $$times -gt 1; then echo "processes start $$times times slower here than usual"; fi
measure-now:
.PHONY: measure-now
AM_BATS_LOG_FLAGS = --tap
AM_TESTS_FD_REDIRECT = 9>&2
AM_TESTS_ENVIRONMENT = \
	SEMLOCK='$(SEMLOCK_TESTED)'; export SEMLOCK; \
	SANITIZED='$(SAN_CFLAGS)'; export SANITIZED; \
	PROBE='$(abs_top_builddir)/tests/probe$(EXEEXT)'; export PROBE; \
	CROWD='$(abs_top_builddir)/tests/crowd$(EXEEXT)'; export CROWD; \
	HELPERS='$(abs_top_srcdir)/tests/lib/helpers.bash'; export HELPERS; \
	SOURCE='$(abs_top_srcdir)'; export SOURCE; \
	CONFIG='$(abs_top_builddir)/config.h'; export CONFIG; \
	CRASHABLE_SEMLOCK='$(abs_top_builddir)/tests/semlock-crashable$(EXEEXT)'; export CRASHABLE_SEMLOCK; \
	LIVENESS='$(abs_top_builddir)/tests/liveness-check$(EXEEXT)'; export LIVENESS; \
	TORTURE='$(abs_top_builddir)/tests/torture/torture$(EXEEXT)'; export TORTURE; \
	BROKEN='$(abs_top_builddir)/tests/semlock-broken$(EXEEXT)'; export BROKEN; \
	CRASHABLE='$(CRASHABLE)'; export CRASHABLE;

TESTS =
if HAVE_POSTGRESQL
if HAVE_BATS
TESTS += $(POSTGRESQL_BATS)
endif
else
check-local: say-no-postgresql
endif
if HAVE_NETWORK
if HAVE_BATS
TESTS += $(LONG_NETWORK_BATS)
endif
endif
if HAVE_BATS
TESTS += $(LONG_BATS)
endif
if HAVE_NETWORK
if HAVE_BATS
TESTS += $(SHORT_NETWORK_BATS)
endif
else
check-local: say-no-network
endif
if HAVE_BATS
TESTS += $(LOCAL_BATS)
endif

.PHONY: say-no-network say-no-postgresql
say-no-postgresql:
	@echo 'NOT RUN, for locks on PostgreSQL are not in this build (see configure --with-postgresql): $(POSTGRESQL_BATS)'
say-no-network:
	@echo 'NOT RUN, for locks on a server are not in this build (see configure --with-network): $(NETWORK_BATS)'

EXTRA_DIST += tests/README tests/lib/README tests/lib/agent.bash tests/lib/browser.bash tests/lib/completion.py tests/lib/demo.bash tests/lib/group-kill.bash tests/lib/helpers.bash tests/lib/holds.bash tests/lib/lease.py tests/lib/made-of-files.bash tests/lib/pid_file.py tests/lib/replay.bash tests/lib/run-file tests/lib/runner.py tests/lib/slowly tests/lib/shifted_clock.c tests/lib/slow_names.c tests/lib/stray.py tests/lib/takes_anything.py tests/lib/terminal.bash tests/lib/watchdog.bash tests/.shellcheckrc $(BATS_FILES)

# ---- make static: semlock-static, one file that needs no library ----
# Built in a tree of its own, and again if the source has changed.
static/semlock: $(semlock_SOURCES) tests/benchmark/least.c configure.ac
	$(SHELL) $(srcdir)/contrib/static static semlock tests/benchmark/least
semlock-static: static/semlock
	cp static/semlock $@
.PHONY: static clean-static
clean-local: clean-notes
clean-notes:
	rm -rf tests/notes
.PHONY: clean-notes
static: semlock-static
clean-local: clean-static
clean-static:
	rm -rf static semlock-static

# ---- make bench: both builds beside other installed tools; some five minutes ----
EXTRA_PROGRAMS = tests/benchmark/bench tests/benchmark/least
tests_benchmark_bench_SOURCES = tests/lib/syscalls.h tests/benchmark/bench.h tests/benchmark/bench.c tests/benchmark/contest.c \
	tests/benchmark/counts.c tests/benchmark/crowds.c tests/benchmark/files.c tests/benchmark/growth.c tests/benchmark/looking.c \
	tests/benchmark/run.c tests/benchmark/scaling.c tests/benchmark/servers.c tests/benchmark/starts.c
tests_benchmark_bench_LDADD = -lm
tests_benchmark_least_SOURCES = tests/benchmark/least.c
tests_benchmark_least_CFLAGS = $(AM_CFLAGS) $(STATIC_CFLAGS)
tests_benchmark_least_LDFLAGS = $(AM_LDFLAGS) $(STATIC_LDFLAGS)
tests_benchmark_least_LDADD = $(STATIC_LIBS)
CLEANFILES += tests/benchmark/bench$(EXEEXT) tests/benchmark/least$(EXEEXT) bench.tsv growth.tsv bench.svg
EXTRA_DIST += tests/benchmark/plot tests/benchmark/speed.svg tests/benchmark/with-servers tests/benchmark/servers.py

BENCH_ROUNDS = 20
BENCH_PARTS = counts start crowds scaling files looking servers
BENCH = top=`pwd` && mkdir -p bench.dir && cd bench.dir && \
	SEMLOCK_LOCKSMITH_DIR="$$top" \
	bash '$(abs_srcdir)/tests/benchmark/with-servers' "$$top/tests/benchmark/bench$(EXEEXT)" \
	"$$top/semlock$(EXEEXT)" "$$top/static/semlock$(EXEEXT)" "$$top/tests/crowd$(EXEEXT)" \
	"$$top/tests/benchmark/least$(EXEEXT)" "$$top/static/tests/benchmark/least$(EXEEXT)" $(BENCH_ROUNDS)
BENCHED = semlock$(EXEEXT) static/semlock tests/benchmark/bench$(EXEEXT) tests/benchmark/least$(EXEEXT) \
	tests/crowd$(EXEEXT)

.PHONY: bench bench-growth bench-plot
bench: $(BENCHED)
	@$(BENCH) $(BENCH_PARTS)
	@mv bench.dir/bench.tsv . && rm -rf bench.dir

# Locks on etcd beside etcdctl lock, on PostgreSQL beside psql; some six minutes, less with WAITERS=200
WAITERS = 1000
bench-servers: all
	@cd tests && SEMLOCK_LOCKSMITH_DIR='$(abs_top_builddir)' bash '$(abs_srcdir)/tests/benchmark/with-servers' \
		/usr/bin/python3 '$(abs_srcdir)/tests/benchmark/servers.py' '$(abs_top_builddir)/semlock$(EXEEXT)' $(WAITERS)
.PHONY: bench-servers

# How the cost grows with waiters, slots, locks and stale locks: some more minutes.
bench-growth: $(BENCHED)
	@$(BENCH) growth
	@mv bench.dir/bench.tsv growth.tsv && rm -rf bench.dir

# The chart of make bench, and of make bench-growth if it has been run.
bench-plot: bench.tsv
	growth=growth.tsv; test -f $$growth || growth=; \
		$(AWK) -f $(srcdir)/tests/benchmark/plot bench.tsv $$growth >bench.svg
	@echo bench.svg

# ---- the locksmiths ----
AM_TESTS_ENVIRONMENT += LOCKSMITH_DIR='$(abs_top_builddir)'; export LOCKSMITH_DIR;
if HAVE_NETWORK
AM_TESTS_ENVIRONMENT += LOCKSMITH_PARTS='$(abs_top_builddir)/tests/locksmith_parts$(EXEEXT)'; export LOCKSMITH_PARTS;
check_PROGRAMS += tests/locksmith_parts
endif
tests_locksmith_parts_SOURCES = tests/lib/locksmith_parts.c \
	src/sys/random.c src/locksmith/common/loop.c src/locksmith/common/options.c src/locksmith/common/protocol.c src/sys/deadline.c src/locksmith/common/url.c \
	src/report/error.c src/report/text.c src/locksmith/curl/buffer.c src/locksmith/etcd/etcd_queue.c src/locksmith/etcd/etcd_wire.c src/locksmith/etcd/protobuf.c \
	src/locksmith/ftp/listing.c
EXTRA_DIST += tests/lib/helper-etcd.bash tests/lib/helper-ftp.bash tests/lib/locksmith.bash tests/lib/remote.bash tests/lib/remote-postgresql.bash tests/lib/radosgw.bash tests/lib/servers/between.py tests/lib/servers/relay.py tests/lib/servers/etcd.bash tests/lib/servers/etcd_between.py tests/lib/servers/ftp.py tests/lib/servers/full_queue.py tests/lib/servers/hostile_postgresql.py tests/lib/servers/nursery.py tests/lib/servers/ports.py tests/lib/servers/others.bash tests/lib/servers/postgresql.bash tests/lib/servers/redis.bash tests/lib/servers/redis_between.py tests/lib/servers/s3.bash tests/lib/servers/s3.py tests/lib/servers/ssh.bash \
	tests/torture/remote tests/torture/remote.py \
	tests/torture/locksmith tests/torture/locksmith.py tests/lib/engine.py

# Protocols tried in every interleaving; seconds, needs python3 alone.
PYTHON_MODELS = tests/models/deserted.py tests/models/ftp.py tests/models/gate.py tests/models/hold.py tests/models/lease.py \
	tests/models/postgresql.py tests/models/queue.py tests/models/replace.py tests/models/take.py tests/models/trust.py
.PHONY: models-python
models: models-python
models-python:
	@status=0; for model in $(PYTHON_MODELS); do \
		echo "$$model"; PYTHONDONTWRITEBYTECODE=1 python3 $(srcdir)/$$model || status=1; \
	done; exit $$status
EXTRA_DIST += $(PYTHON_MODELS) tests/models/explore.py

EXTRA_DIST += tests/lib/under-valgrind

# Virtual machines on a real network: contrib/check nfs.
MACHINES_SHELL = \
	tests/machines/build tests/machines/init tests/machines/run \
	tests/machines/checks.bash tests/machines/machines.bash \
	tests/machines/guest/contend tests/machines/guest/hold tests/machines/guest/slay \
	tests/machines/topics/failures.bash tests/machines/topics/others.bash tests/machines/topics/plain.bash \
	tests/machines/topics/refused.bash tests/machines/topics/slots.bash tests/machines/topics/takeover.bash \
	tests/machines/topics/unreachable.bash
EXTRA_DIST += $(MACHINES_SHELL) tests/machines/README tests/machines/inside.c tests/machines/referee.py

include tests/fuzz/local.mk
