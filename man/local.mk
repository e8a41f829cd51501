# SPDX-License-Identifier: MIT
dist_man_MANS += \
	man/semlock.1 \
	man/semlock-check.1 \
	man/semlock-compared.7 \
	man/semlock-faq.7 \
	man/semlock-hold.7 \
	man/semlock-locksmith.7 \
	man/semlock-methods.7 \
	man/semlock-recipes.7 \
	man/semlock-report.1 \
	man/semlock-scripting.7 \
	man/semlock-servers.7 \
	man/semlock-who.7

# The page of each engine is installed with its helper, also under the helper's name and that of each scheme.
ENGINE_PAGES = \
	man/semlock-etcd.7 \
	man/semlock-ftp.7 \
	man/semlock-postgresql.7 \
	man/semlock-redis.7 \
	man/semlock-s3.7 \
	man/semlock-ssh.7
EXTRA_DIST += $(ENGINE_PAGES)
ENGINES = $(subst semlock-locksmith-,,$(notdir $(libexec_PROGRAMS) $(libexec_SCRIPTS)))
man7_MANS = $(filter $(ENGINES:%=man/semlock-%.7),$(ENGINE_PAGES))
install-data-hook: install-engine-pages
install-engine-pages: install-man
	@for name in $(ENGINES) $(LOCKSMITH_LINKS); do \
		(cd '$(DESTDIR)$(man7dir)' && \
			$(LN_S) -f semlock-$${name%/*}.7 semlock-locksmith-$${name#*/}.7) || exit; \
	done
uninstall-hook: uninstall-engine-pages
uninstall-engine-pages:
	@for name in $(ENGINES) $(LOCKSMITH_LINKS); do \
		rm -f '$(DESTDIR)$(man7dir)'/semlock-locksmith-$${name#*/}.7; \
	done
.PHONY: install-engine-pages uninstall-engine-pages
