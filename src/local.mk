bin_PROGRAMS += semlock
semlock_SOURCES = \
	src/main.c \
	src/alarm.c src/alarm.h \
	src/check.c src/check.h \
	src/command.c src/command.h \
	src/crash.c src/crash.h \
	src/deadline.c src/deadline.h \
	src/descriptor.c src/descriptor.h \
	src/environment.c src/environment.h \
	src/events.c src/events.h \
	src/exitcode.c src/exitcode.h \
	src/fdinfo.c src/fdinfo.h \
	src/gate.c src/gate.h \
	src/grips.c src/grips.h \
	src/here.c src/holder.c src/holder.h \
	src/holds.c src/holds.h \
	src/json.c src/json.h \
	src/keeper.c src/keeper.h \
	src/links.c src/links.h \
	src/liveness.c src/liveness.h \
	src/lock.c src/lock.h \
	src/lockfile.c src/lockfile.h \
	src/messages.c src/messages.h \
	src/mounts.c src/mounts.h \
	src/names.c src/names.h \
	src/nesting.c src/nesting.h \
	src/obtain.c src/obtain.h \
	src/occupants.c src/occupants.h \
	src/operands.c src/operands.h \
	src/options.c src/options.h \
	src/process.c src/process.h \
	src/procfs.c src/procfs.h \
	src/progress.c src/progress.h \
	src/queue.c src/queue.h \
	src/reach.c src/reach.h \
	src/replace.c src/replace.h \
	src/report.c src/report.h \
	src/rules.c src/rules.h \
	src/scene.c src/scene.h \
	src/sentence.c src/sentence.h \
	src/several.c src/several.h \
	src/signals.c src/signals.h \
	src/slots.c src/slots.h \
	src/targets.c src/targets.h \
	src/text.c src/text.h \
	src/usage.c src/usage.h \
	src/values.c src/values.h \
	src/waiters.c src/waiters.h \
	src/who.c src/who.h \
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
	src/methods/token.c src/methods/token.h \
	src/methods/excl.c src/methods/link.c src/methods/mkdir.c \
	src/methods/rename.c src/methods/symlink.c
