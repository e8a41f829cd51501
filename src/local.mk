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
	src/gate.c src/gate.h \
	src/here.c src/holder.c src/holder.h \
	src/keeper.c src/keeper.h \
	src/links.c src/links.h \
	src/liveness.c src/liveness.h \
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
	src/methods/fcntl.c src/methods/fcntl.h \
	src/methods/existing.c src/methods/existing.h \
	src/methods/filemethods.h \
	src/methods/filesystem.c src/methods/filesystem.h \
	src/methods/namefile.c src/methods/namefile.h src/methods/temporary.c \
	src/methods/plainfile.c src/methods/plainfile.h \
	src/methods/rename2.c src/methods/rename2.h \
	src/methods/stranger.c src/methods/stranger.h \
	src/methods/excl.c src/methods/link.c src/methods/mkdir.c \
	src/methods/rename.c src/methods/symlink.c
