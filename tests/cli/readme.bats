#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What README and HACKING say is so.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	export SEMLOCK
	PATH=$PWD/bin:$PATH
}

@test "README's table of tools is what contrib/compare prints" {
	[ -n "$(system_flock)" ] || skip "no util-linux flock on this machine"
	rm bin/flock	# semlock, by that name
	expect_status 0 "$SOURCE/contrib/compare" flock semlock
	[ "$(wc -l <.out)" -eq 4 ]
	while read -r row; do
		grep -Fqx "    $row" "$SOURCE/README" || complain "not in README: $row"
	done < <(tail -n 2 .out)
}

@test "contrib/compare in a tree where nothing is built says so, and does not wait" {
	SEMLOCK=$PWD/none expect_status 69 timeout "$PATIENCE" "$SOURCE/contrib/compare" semlock
	grep -q "there is no $PWD/none" .err
}

@test "README has at most 130 lines of 100 columns" {
	[ "$(wc -l <"$SOURCE/README")" -le 130 ]
	awk 'length > 100' "$SOURCE/README" >wide
	[ ! -s wide ] || complain "$(cat wide)"
}

@test "README's examples run, those of a server with an engine that needs none" {
	printf '#!/bin/sh\nexit 0\n' >job
	chmod +x job
	for name in reader convert move backup bin/make-report; do cp job $name; done
	mkdir data
	mkdir helpers
	for scheme in etcd postgresql; do
		printf '#!/bin/bash\nexec "%s" "${@:1:$#-1}" "demo://%s"\n' "$SOURCE/contrib/locksmith-demo" "$PWD/remote.lock" \
			>helpers/semlock-locksmith-$scheme
		chmod +x helpers/semlock-locksmith-$scheme
	done
	export SEMLOCK_LOCKSMITH_DIR=$PWD/helpers
	sed -n 's/^    \(semlock [^ ]\|exec 8\)/\1/p; s,^    [*]/5 [* ]*,,p' "$SOURCE/README" |
		sed "s,/tmp/,$PWD/,g; s,--name=\([a-z]*\),$PWD/\1.lock,; s,/nfs/jobs/,$PWD/nfs.,g; s/  *#.*//" >examples
	[ "$(wc -l <examples)" -ge 13 ] || complain "$(cat examples)"
	while read -r example; do
		expect_status 0 sh -c "$example" </dev/null
		[ -z "$err" ] || [[ $example == *tar* ]] || complain "$example: $err"
	done <examples
}

# A file's name is a word with a slash that begins with a directory of the tree.
@test "the files that README, HACKING and contrib/README name are there" {
	for page in README HACKING contrib/README; do
		grep -oE '\b(contrib|tests|src|man)/[A-Za-z0-9_./-]*[A-Za-z0-9]' "$SOURCE/$page" | sort -u |
			while read -r name; do
				case $name in
				tests/FILE* | */NAME.c | tests/fuzz/found) ;;
				*) [ -e "$SOURCE/$name" ] || echo "$page: $name" ;;
				esac
			done
	done >missing
	[ ! -s missing ] || complain "$(cat missing)"
	grep -oE '\b[a-z-]+\.bats' "$SOURCE/README" | sort -u | while read -r name; do
		find "$SOURCE/tests" -name "$name" | grep -q . || complain "README: $name"
	done
}

# The tables "From the articles" name recipes/NAME; their last column names one test, or two, and a name may go on
# in the next line.
@test "what contrib/README has for each program of the articles is there, and is run" {
	sed -n '/^From the articles/,$p' "$SOURCE/contrib/README" >tables
	grep -oE '\brecipes/[a-z-]+' tables | sort -u >recipes
	[ "$(wc -l <recipes)" -ge 12 ]
	while read -r name; do
		[ -e "$SOURCE/contrib/$name" ] || complain "there is no $name"
		grep -q "\b${name#recipes/}\b" "$SOURCE"/tests/contrib/recipes*.bats || complain "no test runs $name"
	done <recipes
	grep "^  " tables | cut -c105- | tr -d ',' | sed '/^[ -]*$/d; /^test$/d' | sed ':a; /-$/ { N; s/-\n/-/; ba }' | sort -u >tests
	[ "$(wc -l <tests)" -ge 8 ] || complain "$(cat tests)"
	while read -r name; do
		find "$SOURCE/tests" -name "$name.bats" | grep -q . || complain "there is no $name.bats"
	done <tests
}
