#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The layers of the source: includes only go down, and nothing below main ends the program.
load "${HELPERS:-$BATS_TEST_DIRNAME/lib/helpers.bash}"

# clean WHAT: standard input, the list of the findings, is empty.
clean() {
	local found
	found=$(cat)
	[ -z "$found" ] || complain "$1" "$found"
}

prepare() {
	cd "$SOURCE/src" || return
	[ -f main.c ]
}

# includes: "FILE INCLUDED" for each include of a header of src/.
includes() {
	find . -name '*.[ch]' -printf '%P\n' | xargs grep -oE '^#include "[^"]+"' |
		sed -E 's/^([^:]+):#include "(.*)"/\1 \2/'
}

# forbidden: the includes that LAYERS does not allow.
forbidden() {
	includes | awk '
		function folder(path) { return path == "main.c" ? "main" : path ~ "/" ? substr(path, 1, index(path, "/") - 1) : "" }
		NR == FNR { if (/^[a-z]/) { name = $1; sub(":", "", name); known[name]; for (i = 2; i <= NF; i++) may[name, $i] } next }
		{ from = folder($1); to = folder($2) }
		!(from in known) || !(to in known) || (from != to && !((from, to) in may)) { print $1 " includes " $2 }' LAYERS -
}

@test "includes only go where LAYERS allows it" {
	[ -n "$(includes)" ] || complain "no includes found"
	forbidden | clean "these go up:"
}

@test "an include that goes up is found, in each folder" {
	cp -R "$SOURCE/src" "$BATS_TEST_TMPDIR/src"
	cd "$BATS_TEST_TMPDIR/src"
	for pair in hold:run preempt:hold owners:preempt owners:cli cli:owners methods:cli lock:methods sys:lock report:sys locksmith:methods run:locksmith; do
		into=$(find "${pair%:*}" -name '*.c' | head -1)
		header=$(find "${pair#*:}" -name '*.h' | head -1)
		cp "$into" saved
		echo "#include \"$header\"" >>"$into"
		[ "$(forbidden)" = "$into includes $header" ] || complain "not found: $header in $into"
		mv saved "$into"
	done
}

# A module is a header and the file of its functions.
@test "no modules include each other in a circle" {
	includes | sed -E 's/\.[ch]\b//g' | awk '$1 != $2' | tsort 2>&1 >/dev/null | clean "a circle:"
}

@test "the same check finds a circle" {
	printf 'a b\nb c\nc a\n' | tsort 2>&1 >/dev/null | grep -q loop
}

# uses PROGRAM: "MODULE OTHER" where a module of PROGRAM uses a function or variable of another, as its objects have it.
uses() {
	(cd "${CONFIG%/*}/src" && find . -name "$1-*.o" -exec nm -A {} +) | awk -v program="$1-" '
		function module(object) {
			sub(/^\.\//, "", object)
			sub(program, "", object)
			sub(/\.o:.*/, "", object)
			return object
		}
		{ by = module($1); name = $NF; kind = $(NF - 1) }
		kind == "U" { wanted[by, name] = by " " name }
		kind ~ /^[A-TV-Z]$/ { owner[name] = by }
		END {
			for (i in wanted) {
				split(wanted[i], pair)
				if (pair[2] in owner && owner[pair[2]] != pair[1])
					print pair[1], owner[pair[2]]
			}
		}' | sort -u
}

@test "no modules of a program call each other in a circle" {
	for program in semlock semlock_locksmith_{etcd,ftp,postgresql,s3}; do
		[ "$program" != semlock ] || [ -n "$(uses semlock)" ] || complain "no objects of $program"
		uses "$program" | tsort 2>&1 >/dev/null | clean "$program: a circle:"
	done
}

# large_variables: "SIZE NAME" of each variable of semlock that is larger than LIMIT bytes.
large_variables() {
	(cd "${CONFIG%/*}/src" && find . -name 'semlock-*.o' -exec nm -S {} +) |
		while read -r _ size kind name; do
			[[ $kind != [bBdD] ]] || [ $((16#$size)) -le "$1" ] || echo "$((16#$size)) $name"
		done
}

# A large array pushes the variables that each start writes to apart: each page of them is a page fault.
@test "no variable of semlock is larger than 2 KiB: large arrays are on stack" {
	large_variables 2048 | clean "these are static, or global:"
	[ -n "$(large_variables 0)" ] || complain "no variables found"
}

@test "config.h comes first in every .c file" {
	find . ../tests -name '*.c' | while read -r file; do
		[ "$(grep -m1 '^#include' "$file")" = '#include <config.h>' ] || echo "$file"
	done | clean "these begin with something else:"
}

@test "every header has the guard of its path, and is included" {
	find . -name '*.h' -printf '%P\n' | while read -r header; do
		guard=SEMLOCK_$(printf %s "${header%.h}" | tr 'a-z/' 'A-Z_')_H
		grep -q "^#ifndef $guard\$" "$header" || echo "$header has not the guard $guard"
		grep -rq --include='*.[ch]' "include \"$header\"" . ../tests || echo "$header is not included"
	done | clean "headers:"
}

@test "every folder says in a README what it is for" {
	sed -n 's/^\([a-z]*\):.*/\1/p' LAYERS | while read -r folder; do
		[ "$folder" = main ] || [ -s "$folder/README" ] || echo "$folder/README is missing"
	done | clean "folders:"
}

@test "the README of a folder names its modules, and no others" {
	for folder in run hold preempt owners cli methods lock sys report; do
		find "$folder" -name '*.[ch]' -printf '%f\n' | sed 's/\..*//' | sort -u >"$BATS_TEST_TMPDIR/modules"
		while read -r module; do
			grep -qw "$module" "$folder/README" || echo "$folder/README lacks $module"
		done <"$BATS_TEST_TMPDIR/modules"
		sed -nE 's/^  ([a-z_]+(, [a-z_]+)*)( .*|$)/\1/p' "$folder/README" | tr -d ' ' | tr , '\n' | sort -u |
			comm -23 - "$BATS_TEST_TMPDIR/modules" | sed "s,^,$folder/README names ,"
	done | clean "modules:"
}

# Lines of HACKING's table "Where is it?": a question, a file of src/, and what it defines.
answers() {
	sed -n '/^Where is it?/,/^To add/p' "$SOURCE/HACKING" | grep -oE 'src/[a-z_/]+\.[ch] +[a-z_]+$'
}

@test "each answer of HACKING's table is a file that defines the function" {
	[ -n "$(answers)" ] || complain "HACKING has no such table"
	answers | while read -r file function; do
		grep -qsE "^[a-z].*[ *]$function\(.*[^;]\$" "$SOURCE/$file" || echo "$file does not define $function"
	done | clean "HACKING:"
}

@test "getopt is known to the command line's files alone" {
	grep -rlE --include='*.[ch]' 'getopt|optarg|optind' . | grep -vE '^\./(cli/(options|option_table|other_semlock|unknown_option)|locksmith/common/options)\.[ch]$' |
		clean "these know getopt:"
}

# A child whose exec failed, and a handler of a signal that ends, can only call _exit.
@test "only the command line and --who end the program; others return a status" {
	grep -rnE '\b(die|exit)\(' --include='*.c' --exclude=who.c main.c run hold preempt owners methods lock sys | clean "these end the program:"
	grep -rlE '\b_exit\(' --include='*.c' . |
		grep -vE '^\./(run/(acquire|observer|start|subreaper)|hold/(hold|keeper)|methods/server/locksmith|sys/signals|locksmith/.*)\.c$' |
		clean "these end a process:"
}

@test "methods print nothing and end nothing" {
	grep -rnE '\b(printf|fprintf|puts|complain|die|exit|_exit|err|warn)\(' --include='*.c' methods/kernel methods/file |
		clean "methods:"
}

@test "the exit statuses are numbers in one place" {
	grep -rnE --include='*.c' '\b(exit|return|die)\(? *(6[4-9]|7[0-9]|12[4-7])\b' . | clean "numbers instead of names:"
}

@test "no structure has the name of another" {
	grep -rhoE --include='*.h' '^(struct|enum) [a-z_0-9]+ \{' . | sort | uniq -d | clean "twice:"
}

# asks_null: where a function of a method's table is compared with NULL, which is no question of the lock's kind.
asks_null() {
	grep -rnE --include='*.[ch]' --exclude-dir=methods 'method->[a-z_]+ *(==|!=) *NULL|!method->[a-z_]+\b[^(]' .
}

@test "outside methods/, code asks for a capability by name, not for a function" {
	asks_null | clean "these ask for NULL:"
}

# request_structs: the structures that struct request has.
request_structs() {
	sed -n '/^struct request {/,/^};/p' cli/request.h | grep -oE '\bstruct [a-z_]+ ' | sort -u
}

@test "a request says what was asked for, and has no lock" {
	request_structs | grep -qx 'struct lock_spec '
	request_structs | grep -x 'struct lock ' | clean "struct request has:"
}

# changeable: signatures through which what a wait was told can be changed.
changeable() {
	grep -rnE --include='*.[ch]' '[(,] *struct wait_options \*' .
}

@test "what a wait was told is const in every signature" {
	changeable | clean "not const:"
}

# misplaced: the functions that are declared neither in a header of their file's name, nor in their room's header under a
# heading (---- file.c: ... ----) that names their file.
misplaced() {
	find . -name '*.c' -o -name '*.h' | sort | xargs awk '
		function name(line) { sub(/\(.*/, "", line); sub(/.*[ *]/, "", line); return line }
		function base(path) { sub(/.*\//, "", path); sub(/\.[ch]$/, "", path); return path }
		FNR == 1 { heading = "" }
		/^\/\* ---- / { heading = $0 }
		/^(static|typedef|extern|struct [a-z_]+;|enum [a-z_]+;|#|\/|\})/ || !/^[A-Za-z_][A-Za-z_0-9 *]* \**[a-z_0-9]+\(/ { next }
		FILENAME ~ /\.c$/ && !/;$/ { defined[name($0)] = FILENAME }
		FILENAME ~ /\.h$/ { declared[FILENAME " " name($0)] = heading }
		END {
			for (pair in declared) {
				split(pair, part, " ")
				file = defined[part[2]]
				if (file != "" && base(file) != base(part[1]) && index(declared[pair], " " base(file) ".c") == 0)
					print part[1] " declares " part[2] " of " file
			}
		}' | sort
}

@test "a function is declared in its file's header, or under its file's heading" {
	misplaced | clean "elsewhere:"
	mkdir "$BATS_TEST_TMPDIR/tree"
	cp -R . "$BATS_TEST_TMPDIR/tree/src"
	cd "$BATS_TEST_TMPDIR/tree/src"
	echo 'int queue_open_all(void);' >>lock/slots.h
	printf 'int queue_open_all(void)\n{\n\treturn 0;\n}\n' >>lock/queue.c
	[ "$(misplaced)" = "./lock/slots.h declares queue_open_all of ./lock/queue.c" ]
}

# pointers: "FILE MEMBER" for each member of a structure that is a function pointer.
pointers() {
	find . -name '*.[ch]' -exec awk '
		/^struct [a-z_]+ \{/ { inside = 1 }
		/^};/ { inside = 0 }
		inside && match($0, /\(\*[a-z_]+\)\(/) { print FILENAME " " substr($0, RSTART + 2, RLENGTH - 4) }' {} + |
		sed 's,^\./,,' | sort
}

# Tables of what a method, an object, a source of owners, an engine or a protocol does lie below those that call; a table is filled by the
# folder that it is of.  Of the others, guard->report alone leads upwards: it prints one line, from a thread.
known_pointers() {
	cat <<-'END'
		lock/lock.h report
		locksmith/etcd/grpc.h hear
	END
}

@test "a function pointer that leads upwards is known here" {
	pointers | grep -vE '^(lock/method|methods/file/filemethods|owners/sources|locksmith/common/engine|locksmith/ftp/remote_dir)\.h ' >"$BATS_TEST_TMPDIR/found"
	known_pointers | diff - "$BATS_TEST_TMPDIR/found"
}

# reaching PREFIX: what the objects of lock/ of a program use of what is for others to do.
reaching() {
	find "$1" -name '*.o' -exec nm -u {} + | grep -wE 'v?fork|kill|waitpid|opendir|pidfd_[a-z]+|execv[pe]*|complain|tell' | sort -u
}

@test "lock/ starts, signals and looks for no process, and prints nothing" {
	[ -e "${CONFIG%/*}/src/lock/taking.o" ] || [ -n "$(find "${CONFIG%/*}/src/lock" -name '*taking.o')" ]
	reaching "${CONFIG%/*}/src/lock" | clean "lock/ uses:"
	reaching "${CONFIG%/*}/src/run" | grep -qw fork
}

@test "these three rules find what breaks them" {
	cp -R "$SOURCE/src" "$BATS_TEST_TMPDIR/src"
	cd "$BATS_TEST_TMPDIR/src"
	echo 'static int f(struct wait_options *wait) { return lock->spec->method->guard != NULL; }' >>main.c
	sed -i 's/^struct request {/&\n\tstruct lock held;/' cli/request.h
	[ "$(asks_null | cut -d: -f1)" = ./main.c ]
	[ "$(changeable | cut -d: -f1)" = ./main.c ]
	request_structs | grep -qx 'struct lock '
}

# unlicensed: the source files, by their names or "#!", whose first five lines have no SPDX-License-Identifier.
unlicensed() {
	{
		find .ci Makefile.am configure.ac contrib man src tests -type f ! -path 'tests/notes/*' \( -name '*.[ch17]' -o -name '*.py' -o -name '*.bats' \
			-o -name '*.bash' -o -name '*.mk' -o -name '*.am' -o -name '*.ac' -o -name '*.in' -o -name '*.pm' -o -name '*.pml' \
			-o -name '*.fish' -o -name '*.sh' -o -name '*.t' -o -name '*.service' -o -name '*.timer' \) -print
		find .ci contrib man src tests -type f ! -path 'tests/fuzz/seeds/*' -exec grep -lI -m1 '^#!' {} + |
			while read -r file; do [ "$(head -c 2 "$file")" != '#!' ] || echo "$file"; done
	} | sort -u | while read -r file; do
		head -n 5 "$file" | grep -q 'SPDX-License-Identifier: [A-Z]' || echo "$file"
	done
}

@test "every source file has SPDX-License-Identifier in its first lines" {
	cd "$SOURCE"
	unlicensed | clean "write '/* SPDX-License-Identifier: MIT */' (or # ...) into the first line, or the second behind #!:"
	mkdir -p "$BATS_TEST_TMPDIR"/tree/{.ci,contrib,man,src,tests}
	cd "$BATS_TEST_TMPDIR/tree"
	touch Makefile.am configure.ac src/new.c
	printf '#!/bin/sh\n' >contrib/new
	[ "$(unlicensed | tr '\n' ' ')" = "Makefile.am configure.ac contrib/new src/new.c " ] || complain "$(unlicensed)"
}

# Of "[ a ] && [ b ]" only b fails a test, unless the line is the last: write two lines.
@test "no condition in a test is lost" {
	find ../tests \( -name '*.bats' -o -name '*.bash' \) -print0 | xargs -0 awk 'lost != "" && $0 != "}" { print lost }
		{ lost = "" }
		/^\t+(\[|!).* && (\[|!|grep|cmp|diff|test)/ && !/\|\||&& return$/ { lost = FILENAME ": " FNR ": " $0 }' |
		clean "the first of two conditions:"
}
