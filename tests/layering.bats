#!/usr/bin/env bats
# Who may know whom in the source: arrows only go down.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"

# clean WHAT: what was found on standard input is nothing.
clean() {
	local found
	found=$(cat)
	[ -z "$found" ] || complain "$1" "$found"
}

prepare() {
	cd "$SOURCE/src" || return
	[ -f main.c ]
}

@test "config.h comes first in every .c file" {
	for file in *.c */*.c */*/*.c ../tests/*.c; do
		[ "$(grep -m1 '^#include' "$file")" = '#include <config.h>' ] || echo "$file"
	done | clean "these begin with something else:"
}

@test "every header has a guard and is included by somebody" {
	for header in *.h */*.h */*/*.h; do
		grep -qE '^#ifndef (SEMLOCK|LOCKSMITH)_' "$header" || echo "$header has no guard"
		grep -rlq --include='*.c' --include='*.h' "include \".*$(basename "$header")\"" . ||
			echo "$header is nobody's"
	done | clean "headers:"
}

@test "only the command line's files know getopt" {
	grep -lE 'getopt|optarg|optind' ./*.c ./*.h ./*/*.c ./*/*.h ./*/*/*.[ch] | grep -vE '^\./(locksmith/common/)?options\.[ch]$' |
		clean "these know getopt:"
}

@test "the policy over the locks and the commands never see the command line" {
	grep -lE '"options\.h"' lock.c lock.h command.c command.h queue.c methods/* | clean "these include options.h:"
}

@test "commands never see a method, methods never see a command" {
	grep -nE '"(lock|methods/.*|method)\.h"' command.[ch] | clean "command:"
	grep -nE '"(\.\./)?(command|main|options|usage)\.h"' methods/* | clean "methods:"
}

@test "methods neither look at a clock, nor print, nor exit" {
	grep -nE '\b(clock_gettime|clock_now|gettimeofday|printf|fprintf|puts|complain|die|exit|_exit|err|warn)\(' \
		methods/*.c | clean "methods:"
}

@test "what the locksmiths share knows no engine, and no engine another" {
	grep -nE '"locksmith/(curl|etcd|ftp|postgresql)/' locksmith/common/* | clean "common:"
	grep -nE '"locksmith/(etcd|ftp|postgresql)/' locksmith/curl/* | clean "curl:"
	for engine in locksmith/{etcd,ftp,postgresql}; do
		grep -rnE '"locksmith/(etcd|ftp|postgresql)/' "$engine" | grep -vF "\"$engine/"
	done 2>/dev/null | clean "engines:"
}

@test "only main and what it has for that exit" {
	grep -nE '\b_?exit\(' ./*.c methods/*.c | grep -vE '^\./(main|report|usage|options|command|crash|gate|hold|locksmith)\.c:' |
		clean "these exit:"
}

@test "only methods take locks" {
	grep -nP '\bflock\((?!\d)|F_OFD_SETLK|F_SETLK' ./*.c | grep -vE '^\./(queue|fdinfo)\.c:' | clean "these lock:"
}

@test "no file is longer than 350 lines" {
	wc -l ./*.[ch] ./*/*.[ch] ./*/*/*.[ch] | awk '$2 != "total" && $1 > 350' | clean "too long:"
}

@test "the exit statuses are numbers in one place" {
	grep -nE '\b(exit|return|die)\(? *(6[4-9]|7[0-9]|12[4-7])\b' ./*.c ./*/*.c ./*/*/*.c | clean "numbers instead of names:"
}

# Of "[ a ] && [ b ]" only b fails a test, unless nothing comes behind it: two lines, then.
@test "no condition in a test is lost" {
	awk 'lost != "" && $0 != "}" { print lost }
		{ lost = "" }
		/^\t+(\[|!).* && (\[|!|grep|cmp|diff|test)/ && !/\|\||&& return$/ { lost = FILENAME ": " FNR ": " $0 }' \
		../tests/*.bats ../tests/*.bash | clean "the first of two conditions:"
}
