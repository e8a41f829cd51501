EXTRA_DIST += \
	.ci/run \
	contrib/README \
	contrib/check \
	contrib/fresh-tree \
	contrib/install-packages \
	contrib/packages \
	contrib/try

# ---- make lint: the shell, the manual, and what another compiler would not see ----
SHELL_FILES = \
	.ci/run \
	contrib/check \
	contrib/fresh-tree \
	contrib/install-packages \
	contrib/try \
	tests/helpers.bash \
	tests/remote.bash \
	$(BATS_FILES)

.PHONY: lint lint-shell lint-man lint-c lint-tests
lint: lint-shell lint-man lint-c lint-tests

lint-shell:
	cd $(srcdir) && shellcheck $(SHELL_FILES)

lint-man:
	cd $(srcdir) && mandoc -Tlint -Wwarning $(dist_man_MANS)

lint-c:
	@if command -v cppcheck >/dev/null; then \
		set -x; \
		cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr \
			--enable=warning,performance,portability \
			-DHAVE_CONFIG_H -I . -I $(srcdir)/src $(srcdir)/src $(srcdir)/tests \
			$(srcdir)/contrib/foreachmail; \
	else \
		echo 'lint-c: cppcheck is not installed'; \
	fi

# A bats file that nobody listed would never run, and nobody would notice.
lint-tests:
	@cd $(srcdir) && for file in tests/*.bats; do \
		test -e "$$file" || continue; \
		case ' $(BATS_FILES) ' in \
		*" $$file "*) ;; \
		*) echo "$$file: not in BATS_FILES of tests/local.mk" >&2; exit 1 ;; \
		esac; \
	done
include contrib/foreachmail/local.mk
include contrib/recipes/local.mk
