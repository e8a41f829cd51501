# SPDX-License-Identifier: MIT
# Scripts to use, or to copy from, and what goes with them as documentation; run by tests/contrib/recipes*.bats.
recipesdir = $(docdir)/recipes
recipescriptsdir = $(libexecdir)/semlock
RECIPE_FILES = \
	contrib/recipes/build-slot \
	contrib/recipes/cluster-job \
	contrib/recipes/cluster-once \
	contrib/recipes/counter \
	contrib/recipes/counter-race \
	contrib/recipes/data-file \
	contrib/recipes/gpu \
	contrib/recipes/held-too-long \
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
	contrib/recipes/crontab \
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
	tests/contrib/recipes-servers.bats \
	tests/contrib/recipes-system.bats
EXTRA_DIST += contrib/recipes/.shellcheckrc tests/lib/recipes.bash
