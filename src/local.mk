bin_PROGRAMS += semlock
semlock_SOURCES = \
	src/main.c
