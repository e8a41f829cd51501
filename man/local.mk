dist_man_MANS += man/semlock.1 man/semlock-methods.7
if HAVE_NETWORK
dist_man_MANS += man/semlock-locksmith.8
else
EXTRA_DIST += man/semlock-locksmith.8
endif
