# SPDX-License-Identifier: MIT
# ---- fuzzing: make fuzz invents inputs (clang), make check replays tests/fuzz/seeds ----
# FUZZ_NAME_FILES: the files of a harness, and those that its program is linked with.
FUZZ_LOCAL = duration record proc words answers options
FUZZ_NETWORK = server etcd

FUZZ_REPLAY = tests/fuzz/fuzz.h tests/fuzz/replay.c
FUZZ_duration_FILES = tests/fuzz/duration.c src/sys/deadline.c
FUZZ_record_FILES = tests/fuzz/record.c src/methods/file/owner_record.c src/sys/process.c \
	src/report/text.c src/sys/deadline.c
FUZZ_proc_FILES = tests/fuzz/proc.c src/sys/open_fds.c src/sys/file_system.c src/sys/crash_points.c src/report/text.c \
	src/sys/deadline.c
FUZZ_words_FILES = tests/fuzz/words.c src/report/text.c
FUZZ_answers_FILES = tests/fuzz/answers.c src/methods/server/locksmith.c src/sys/deadline.c src/sys/files.c src/sys/waiting.c src/sys/process.c \
	src/report/error.c src/report/text.c
FUZZ_options_FILES = tests/fuzz/options.c $(SEMLOCK_PARTS_SOURCES)
FUZZ_options_WRAPS = -Wl,--wrap=die,--wrap=usage_help,--wrap=usage_version,--wrap=named_lock_path,--wrap=status_fd_use,--wrap=memory_lasting
FUZZ_server_FILES = tests/fuzz/server.c src/sys/random.c src/locksmith/common/loop.c src/locksmith/common/protocol.c src/sys/deadline.c \
	src/locksmith/ftp/listing.c src/locksmith/common/url.c src/report/error.c src/report/text.c
FUZZ_etcd_FILES = tests/fuzz/etcd.c src/locksmith/common/options.c src/locksmith/etcd/etcd_queue.c src/locksmith/etcd/etcd_wire.c \
	src/locksmith/etcd/protobuf.c src/locksmith/curl/buffer.c \
	src/locksmith/common/url.c \
	src/sys/random.c src/locksmith/common/loop.c src/locksmith/common/protocol.c src/locksmith/curl/transfer.c src/report/error.c \
	src/sys/process.c src/sys/deadline.c src/report/text.c

check_PROGRAMS += tests/fuzz/duration tests/fuzz/record tests/fuzz/proc tests/fuzz/words \
	tests/fuzz/answers tests/fuzz/options
if HAVE_NETWORK
check_PROGRAMS += tests/fuzz/server tests/fuzz/etcd
endif
tests_fuzz_duration_SOURCES = $(FUZZ_REPLAY) $(FUZZ_duration_FILES)
tests_fuzz_record_SOURCES = $(FUZZ_REPLAY) $(FUZZ_record_FILES)
tests_fuzz_proc_SOURCES = $(FUZZ_REPLAY) $(FUZZ_proc_FILES)
tests_fuzz_words_SOURCES = $(FUZZ_REPLAY) $(FUZZ_words_FILES)
tests_fuzz_answers_SOURCES = $(FUZZ_REPLAY) $(FUZZ_answers_FILES)
tests_fuzz_options_SOURCES = $(FUZZ_REPLAY) $(FUZZ_options_FILES)
tests_fuzz_options_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_options_WRAPS)
tests_fuzz_server_SOURCES = $(FUZZ_REPLAY) $(FUZZ_server_FILES)
tests_fuzz_etcd_SOURCES = $(FUZZ_REPLAY) $(FUZZ_etcd_FILES)
tests_fuzz_etcd_CPPFLAGS = $(AM_CPPFLAGS) $(ETCD_CFLAGS)
tests_fuzz_etcd_LDADD = $(ETCD_LIBS)

AM_TESTS_ENVIRONMENT += FUZZ='$(abs_top_builddir)/tests/fuzz'; export FUZZ;

# make fuzz FUZZ_SECONDS=600 FUZZ='options record': 600 seconds each.  Finds stay in tests/fuzz/found of the
# build directory; correct the parser, and copy the find into tests/fuzz/seeds/NAME.
FUZZ_SECONDS = 60
FUZZ_CC = clang
if HAVE_NETWORK
FUZZ = $(FUZZ_LOCAL) $(FUZZ_NETWORK)
else
FUZZ = $(FUZZ_LOCAL)
endif
FUZZ_COMPILE = $(SHELL) $(srcdir)/tests/fuzz/run '$(FUZZ_CC)' $(srcdir) $(FUZZ_SECONDS)
FUZZ_FLAGS = $(DEFS) -I. $(AM_CPPFLAGS) -std=c11

.PHONY: fuzz
fuzz: config.h
	@status=0; for name in $(FUZZ); do \
		case $$name in \
		duration) set -- $(FUZZ_duration_FILES) ;; \
		record) set -- $(FUZZ_record_FILES) ;; \
		proc) set -- $(FUZZ_proc_FILES) ;; \
		words) set -- $(FUZZ_words_FILES) ;; \
		answers) set -- $(FUZZ_answers_FILES) ;; \
		options) set -- $(FUZZ_options_FILES) $(FUZZ_options_WRAPS) -lrt -lpthread ;; \
		server) set -- $(FUZZ_server_FILES) ;; \
		etcd) set -- $(FUZZ_etcd_FILES) $(ETCD_CFLAGS) $(ETCD_LIBS) ;; \
		esac; \
		$(FUZZ_COMPILE) $$name $(FUZZ_FLAGS) "$$@" || status=1; \
	done; exit $$status
	@$(MAKE) fuzz-strangers

# Each helper before a server that sends random answers.  make fuzz-strangers FUZZ_ROUNDS=300 STRANGERS='ssh redis'
FUZZ_ROUNDS = 10000
STRANGERS = redis ssh s3 etcd ftp postgresql
.PHONY: fuzz-strangers
fuzz-strangers: all
	@status=0; for engine in $(STRANGERS); do \
		test ! -x semlock-locksmith-$$engine || \
		PYTHONDONTWRITEBYTECODE=1 python3 $(srcdir)/tests/fuzz/strangers.py '$(abs_top_builddir)' $$engine $(FUZZ_ROUNDS) || status=1; \
	done; exit $$status

EXTRA_DIST += tests/fuzz/run tests/fuzz/seeds tests/fuzz/strangers.py
