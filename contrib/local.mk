# SPDX-License-Identifier: MIT
EXTRA_DIST += \
	.ci/run \
	contrib/README \
	contrib/check \
	contrib/compare \
	contrib/coverage \
	contrib/coverage.awk \
	contrib/fresh-tree \
	contrib/html \
	contrib/install-packages \
	contrib/locksmith-demo \
	contrib/locksmith-test \
	contrib/other-debian \
	contrib/packages \
	contrib/static \
	contrib/tests-of \
	contrib/try

# ---- installed beside semlock ----
dist_bin_SCRIPTS = contrib/semlock-check

# ---- locks as objects: in directories that Perl and Python do not search by default ----
perlmoduledir = $(perldir)/Semlock
perlmodule_DATA = contrib/perl/lib/Semlock/NetLock.pm contrib/perl/lib/Semlock/Sem.pm
pythonmoduledir = $(pythondir)
pythonmodule_DATA = contrib/python/semlock.py
dist_man_MANS += contrib/python/semlock.3py
# The pages of the Perl modules are made of their POD where it is installed: a colon is no letter for make.
install-data-hook:
	@if command -v pod2man >/dev/null; then \
		$(MKDIR_P) '$(DESTDIR)$(man3dir)' && for name in NetLock Sem; do \
			pod2man --section=3pm --name="Semlock::$$name" --center=semlock --release='semlock $(VERSION)' \
				"$(srcdir)/contrib/perl/lib/Semlock/$$name.pm" "$(DESTDIR)$(man3dir)/Semlock::$$name.3pm" || exit; \
		done; \
	fi
uninstall-hook:
	rm -f '$(DESTDIR)$(man3dir)'/Semlock::*.3pm
EXTRA_DIST += $(perlmodule_DATA) $(pythonmodule_DATA) \
	contrib/perl/README contrib/perl/t/netlock.t contrib/perl/t/sem.t \
	contrib/python/README contrib/python/test_semlock.py

# ---- what the shells complete ----
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = contrib/completion/bash/semlock
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = contrib/completion/zsh/_semlock
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_fishcompletion_DATA = contrib/completion/fish/semlock.fish

# ---- packages ----
PACKAGE_TESTS = \
	contrib/packaging/debian/tests/foreachmail \
	contrib/packaging/debian/tests/libsemlock-perl \
	contrib/packaging/debian/tests/python3-semlock \
	contrib/packaging/debian/tests/semlock \
	contrib/packaging/debian/tests/semlock-locksmith-etcd \
	contrib/packaging/debian/tests/semlock-locksmith-ftp \
	contrib/packaging/debian/tests/semlock-locksmith-postgresql \
	contrib/packaging/debian/tests/semlock-locksmith-redis \
	contrib/packaging/debian/tests/semlock-locksmith-s3 \
	contrib/packaging/debian/tests/semlock-locksmith-ssh
EXTRA_DIST += \
	contrib/packaging/APKBUILD contrib/packaging/PKGBUILD contrib/packaging/default.nix \
	contrib/packaging/build \
	contrib/packaging/debian/changelog \
	contrib/packaging/debian/control \
	contrib/packaging/debian/copyright \
	contrib/packaging/debian/foreachmail.install contrib/packaging/debian/foreachmail.manpages \
	contrib/packaging/debian/libsemlock-perl.install \
	contrib/packaging/debian/python3-semlock.install \
	contrib/packaging/debian/not-installed \
	contrib/packaging/debian/rules \
	contrib/packaging/debian/semlock-locksmith-etcd.install contrib/packaging/debian/semlock-locksmith-etcd.manpages \
	contrib/packaging/debian/semlock-locksmith-ftp.install contrib/packaging/debian/semlock-locksmith-ftp.manpages \
	contrib/packaging/debian/semlock-locksmith-postgresql.install contrib/packaging/debian/semlock-locksmith-postgresql.manpages \
	contrib/packaging/debian/semlock-locksmith-redis.install contrib/packaging/debian/semlock-locksmith-redis.manpages \
	contrib/packaging/debian/semlock-locksmith-s3.install contrib/packaging/debian/semlock-locksmith-s3.manpages \
	contrib/packaging/debian/semlock-locksmith-ssh.install contrib/packaging/debian/semlock-locksmith-ssh.manpages \
	contrib/packaging/debian/semlock.docs \
	contrib/packaging/debian/semlock.install contrib/packaging/debian/semlock.lintian-overrides \
	contrib/packaging/debian/semlock.manpages \
	contrib/packaging/debian/source/format \
	contrib/packaging/debian/tests/control \
	contrib/packaging/debian/upstream/metadata \
	contrib/packaging/debian/watch \
	contrib/packaging/semlock.spec \
	$(PACKAGE_TESTS)

# ---- make lint: the shell, the manual, its spelling, and what another compiler would not see ----
SHELL_FILES = \
	.ci/run \
	contrib/check \
	contrib/compare \
	contrib/coverage \
	contrib/fresh-tree \
	contrib/html \
	contrib/completion/bash/semlock \
	contrib/install-packages \
	contrib/locksmith-demo \
	contrib/other-debian \
	contrib/packaging/build \
	$(PACKAGE_TESTS) \
	contrib/semlock-check \
	contrib/static \
	contrib/tests-of \
	contrib/try \
	tests/fuzz/run \
	tests/lib/browser.bash \
	tests/lib/demo.bash \
	tests/lib/helpers.bash \
	tests/models/run \
	tests/lib/remote.bash \
	tests/lib/replay.bash \
	tests/lib/run-file \
	tests/lib/slowly \
	tests/lib/under-valgrind \
	tests/lib/watchdog.bash \
	$(MACHINES_SHELL) \
	$(BATS_FILES)

.PHONY: lint lint-shell lint-man lint-words lint-c lint-format lint-tests
lint: lint-shell lint-man lint-words lint-c lint-format lint-tests

lint-shell:
	cd $(srcdir) && shellcheck $(SHELL_FILES)

lint-man:
	cd $(srcdir) && mandoc -Tlint $(dist_man_MANS) $(ENGINE_PAGES)

# bu and TE are requests of the manual pages, nd is a part of 2nd.
lint-words:
	@if command -v codespell >/dev/null; then \
		cd $(srcdir) && codespell -L bu,te,nd README HACKING NEWS SECURITY AUTHORS man src contrib/README contrib/*/README \
			tests/README tests/lib/README; \
	else \
		echo 'lint-words: codespell is not installed'; \
	fi

lint-c:
	@if command -v cppcheck >/dev/null; then \
		set -x; \
		cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr \
			--enable=warning,performance,portability \
			-DHAVE_CONFIG_H -I . -I $(srcdir)/src $(srcdir)/src $(srcdir)/tests; \
	else \
		echo 'lint-c: cppcheck is not installed'; \
	fi

# .clang-format.  Another release of clang-format formats some lines in another way: it cannot judge them.
lint-format:
	@case $$(clang-format --version 2>/dev/null) in \
	*' version 14.'*) cd $(srcdir) && find src tests -name '*.[ch]' -exec clang-format --dry-run --Werror {} + ;; \
	'') echo 'lint-format: clang-format is not installed' ;; \
	*) echo 'lint-format: not checked: this takes clang-format 14, of Debian 12' ;; \
	esac

# A bats file that no list names would never run.
lint-tests:
	@cd $(srcdir) && for file in tests/*.bats tests/*/*.bats; do \
		test -e "$$file" || continue; \
		case ' $(BATS_FILES) ' in \
		*" $$file "*) ;; \
		*) echo "$$file: not in BATS_FILES of tests/local.mk" >&2; exit 1 ;; \
		esac; \
	done

# ---- make html: all pages for a browser, in the directory html ----
html-local:
	$(SHELL) $(srcdir)/contrib/html html
clean-local: clean-html
clean-html:
	rm -rf html
.PHONY: clean-html
LOCAL_BATS += tests/contrib/html.bats tests/contrib/packaging.bats

# ---- make coverage: which lines and branches the tests run; COVERAGE_OF='TESTS=tests/X.bats' ----
.PHONY: coverage
coverage:
	$(SHELL) $(srcdir)/contrib/coverage $(srcdir) $(COVERAGE_OF)

include contrib/foreachmail/local.mk
include contrib/recipes/local.mk
include contrib/shell/local.mk
