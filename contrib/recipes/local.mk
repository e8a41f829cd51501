# SPDX-License-Identifier: MIT
# Scripts to use, or to copy from, and what goes with them as documentation; run by tests/contrib/recipes*.bats.
recipesdir = $(docdir)/examples
recipescriptsdir = $(docdir)/examples

# Four are commands as well, whose page is semlock-report(1).
RECIPE_COMMANDS = held-too-long loud-after lock-metrics lock-report
install-exec-local:
	@$(MKDIR_P) '$(DESTDIR)$(bindir)'
	@for name in $(RECIPE_COMMANDS); do \
		$(INSTALL_SCRIPT) '$(srcdir)'/contrib/recipes/$$name '$(DESTDIR)$(bindir)'/semlock-$${name#lock-} || exit; \
	done
install-data-hook: install-command-pages
install-command-pages: install-man
	@for name in $(RECIPE_COMMANDS); do \
		test $$name = lock-report || \
			(cd '$(DESTDIR)$(man1dir)' && $(LN_S) -f semlock-report.1 semlock-$${name#lock-}.1) || exit; \
	done
uninstall-hook: uninstall-commands
uninstall-commands:
	@for name in $(RECIPE_COMMANDS); do \
		rm -f '$(DESTDIR)$(bindir)'/semlock-$${name#lock-} '$(DESTDIR)$(man1dir)'/semlock-$${name#lock-}.1; \
	done
.PHONY: install-command-pages uninstall-commands

RECIPE_FILES = \
	contrib/recipes/agent-hook \
	contrib/recipes/build-slot \
	contrib/recipes/cluster-job \
	contrib/recipes/cluster-once \
	contrib/recipes/counter \
	contrib/recipes/counter-race \
	contrib/recipes/data-file \
	contrib/recipes/gpu \
	contrib/recipes/held-too-long \
	contrib/recipes/limited-container \
	contrib/recipes/limits \
	contrib/recipes/lock-metrics \
	contrib/recipes/lock-report \
	contrib/recipes/loud-after \
	contrib/recipes/mailbox \
	contrib/recipes/marker \
	contrib/recipes/no-apt \
	contrib/recipes/notify \
	contrib/recipes/on-off \
	contrib/recipes/phone-book \
	contrib/recipes/pid-file \
	contrib/recipes/pool \
	contrib/recipes/queue \
	contrib/recipes/reject \
	contrib/recipes/section \
	contrib/recipes/self-lock \
	contrib/recipes/shared-log \
	contrib/recipes/wait-until-free
dist_recipescripts_SCRIPTS = $(RECIPE_FILES)
# make installcheck runs each script with --help; these examples would do their work.
AM_INSTALLCHECK_STD_OPTIONS_EXEMPT = $(RECIPE_FILES)
dist_recipes_DATA = \
	contrib/recipes/ARTICLES \
	contrib/recipes/README \
	contrib/recipes/cronjob.yaml \
	contrib/recipes/crontab \
	contrib/recipes/github-action.yml \
	contrib/recipes/guard \
	contrib/recipes/locks-to-journal.service \
	contrib/recipes/procmailrc \
	contrib/recipes/queued-daemon.service \
	contrib/recipes/queued@.service \
	contrib/recipes/report.service \
	contrib/recipes/report.timer

PYTHON_RECIPES = contrib/recipes/lock-metrics contrib/recipes/lock-report
SHELL_FILES += $(filter-out $(PYTHON_RECIPES),$(RECIPE_FILES)) tests/lib/recipes.bash
LOCAL_BATS += \
	tests/contrib/monitoring.bats \
	tests/contrib/recipes.bats \
	tests/contrib/recipes-mail.bats \
	tests/contrib/recipes-page.bats \
	tests/contrib/recipes-page-ci.bats \
	tests/contrib/recipes-page-tools.bats \
	tests/contrib/recipes-servers.bats \
	tests/contrib/recipes-system.bats \
	tests/contrib/tldr.bats
EXTRA_DIST += contrib/recipes/.shellcheckrc contrib/tldr/semlock.md tests/lib/recipes.bash
