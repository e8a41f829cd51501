bin_PROGRAMS += semlock
semlock_SOURCES = \
	src/main.c \
	src/alarm.c src/alarm.h \
	src/command.c src/command.h \
	src/crash.c src/crash.h \
	src/deadline.c src/deadline.h \
	src/descriptor.c src/descriptor.h \
	src/environment.c src/environment.h \
	src/exitcode.h \
	src/fdinfo.c src/fdinfo.h \
	src/links.c src/links.h \
	src/lock.c src/lock.h \
	src/lockfile.c src/lockfile.h \
	src/messages.c src/messages.h \
	src/options.c src/options.h \
	src/queue.c src/queue.h \
	src/report.c src/report.h \
	src/rules.c src/rules.h \
	src/several.c src/several.h \
	src/slots.c src/slots.h \
	src/usage.c src/usage.h \
	src/values.c src/values.h \
	src/methods/method.h src/methods/table.c \
	src/methods/flock.c src/methods/flock.h \
	src/methods/fcntl.c src/methods/fcntl.h
