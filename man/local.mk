# SPDX-License-Identifier: MIT
dist_man_MANS += man/semlock.1 man/semlock-check.1 man/semlock-compared.7 man/semlock-faq.7 man/semlock-methods.7 man/semlock-recipes.7 man/semlock-scripting.7 \
	man/semlock-servers.7 man/semlock-locksmith.7
