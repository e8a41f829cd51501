# Each bats file is a test program of automake's TAP driver, so that each @test in
# it is a result of its own.  Run one file: make check TESTS=tests/queue.bats
check_PROGRAMS += tests/probe
tests_probe_SOURCES = tests/probe.h tests/probe.c tests/probe-hold.c tests/probe-inside.c \
	tests/probe-json.c tests/probe-lock.c tests/probe-look.c tests/probe-pty.c tests/probe-signals.c \
	tests/probe-start.c tests/probe-storm.c tests/probe-sweep.c tests/probe-timer.c

check_PROGRAMS += tests/crowd
tests_crowd_SOURCES = tests/crowd.h tests/crowd.c tests/crowd-kills.c tests/crowd-line.c \
	tests/crowd-loops.c

BATS_FILES = tests/bad-input.bats tests/become.bats tests/close.bats \
	tests/conversion.bats tests/deleted.bats tests/drop-in.bats tests/environment.bats \
	tests/exit-status.bats tests/fd.bats tests/hostile.bats tests/job-control.bats \
	tests/layering.bats tests/manual.bats tests/methods.bats tests/order.bats tests/queue.bats \
	tests/reject.bats tests/several.bats tests/shared.bats tests/signals.bats tests/slots.bats \
	tests/timeout.bats tests/name.bats tests/nested.bats \
	tests/replace.bats tests/run-timeout.bats tests/status-fd.bats tests/toggle.bats \
	tests/waiting-line.bats tests/who.bats

TEST_EXTENSIONS = .bats
BATS_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
BATS_LOG_COMPILER = $(BATS)
AM_BATS_LOG_FLAGS = --tap
AM_TESTS_ENVIRONMENT = \
	SEMLOCK='$(abs_top_builddir)/semlock$(EXEEXT)'; export SEMLOCK; \
	PROBE='$(abs_top_builddir)/tests/probe$(EXEEXT)'; export PROBE; \
	CROWD='$(abs_top_builddir)/tests/crowd$(EXEEXT)'; export CROWD; \
	HELPERS='$(abs_top_srcdir)/tests/helpers.bash'; export HELPERS; \
	SOURCE='$(abs_top_srcdir)'; export SOURCE; \
	CRASHABLE='$(CRASHABLE)'; export CRASHABLE;

TESTS =
if HAVE_BATS
TESTS += $(BATS_FILES)
endif
EXTRA_DIST += tests/helpers.bash tests/.shellcheckrc $(BATS_FILES)

# ---- make bench: ratios to flock(1), from interleaved runs ----
EXTRA_PROGRAMS = tests/bench
tests_bench_SOURCES = tests/bench.c
CLEANFILES += tests/bench$(EXEEXT)

.PHONY: bench
bench: semlock$(EXEEXT) tests/bench$(EXEEXT)
	cd tests && ./bench '$(abs_top_builddir)/semlock$(EXEEXT)' $(BENCH_ROUNDS)
