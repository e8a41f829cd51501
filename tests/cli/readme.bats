#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What README and HACKING say is so.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/demo

prepare() {
	export SEMLOCK
	PATH=$PWD/bin:$PATH
}

@test "the table of tools in semlock-compared(7) is what contrib/compare prints" {
	[ -n "$(system_flock)" ] || skip "no util-linux flock on this machine"
	rm bin/flock	# semlock, by that name
	expect_status 0 "$SOURCE/contrib/compare" flock semlock
	[ "$(wc -l <.out)" -eq 6 ]
	sed 's/\\-/-/g' "$SOURCE/man/semlock-compared.7" >page
	while IFS= read -r row; do
		grep -Fqx "$row" page || complain "not in the page: $row" || return
	done <.out
}

# Numbers and times are others, and so is the user.
typical() {
	sed -E 's/[0-9]+(:[0-9]+)*/0/g; s/\b(root|alice|nobody|[a-z]*)  +(exclusive|-) /USER \2 /; s/  +/ /g; s/ +$//'
}

@test "README shows what semlock prints for a refusal, a wait and --who" {
	printf '#!/bin/sh\n' | tee backup >check
	chmod +x backup check
	mkfifo disk.img # cp waits for its end
	start holder "$SEMLOCK" backup.lock cp disk.img disk.copy
	eventually sh -c '! "$SEMLOCK" --who backup.lock >seen'
	start first "$SEMLOCK" backup.lock ./check
	"$PROBE" blocked "${PID[first]}"
	start second "$SEMLOCK" backup.lock ./backup
	"$PROBE" blocked "${PID[second]}"
	capture "$SEMLOCK" -v -n backup.lock ./backup
	"$SEMLOCK" --who backup.lock >seen || true
	kill "${PID[second]}"
	ended second 143
	printf 'expect until\n' | "$PROBE" pty env TERM=vt100 sh -c "stty cols 120; exec '$SEMLOCK' -w 2 backup.lock ./backup" >line || true
	sed -n 's/.*\(semlock: [^\r]*until [0-9:]*\).*/\1/p' line | head -n 1 >waiting
	sed "s,$SEMLOCK,semlock,; s,backup.lock,/tmp/&,; s,disk.copy,/srv/disk.img,; s/; semlock --who .* says more$//" .err waiting seen | typical >printed
	sed -n '/^    \$ /,/^$/p' "$SOURCE/README" | sed '/^    \$/d; s/^    //; /;$/{N;s/\n/ /}; /^$/d' | typical >shown
	[ "$(wc -l <shown)" -eq 7 ] || complain "$(cat shown)" || return
	diff shown printed || complain "README shows something else" || return
	: >disk.img
	ended holder 0
}

@test "contrib/compare reports that nothing is built, and does not wait" {
	SEMLOCK=$PWD/none expect_status 69 timeout "$PATIENCE" "$SOURCE/contrib/compare" semlock
	grep -q "there is no $PWD/none" .err
}

@test "README has at most 120 lines of 100 columns" {
	[ "$(wc -l <"$SOURCE/README")" -le 120 ]
	awk 'length > 100' "$SOURCE/README" >wide
	[ ! -s wide ] || complain "$(cat wide)"
}

@test "README's examples run, those of a server with an engine that needs none" {
	program job 'exit 0'
	for name in reader convert move backup bin/make-report; do cp job $name; done
	mkdir data
	demo_helpers etcd postgresql
	sed -n 's/^    \(semlock [^ ]\|exec 8\)/\1/p; s,^    [*]/5 [* ]*,,p' "$SOURCE/README" |
		locks_here | sed "s/sleep 5/sleep .1/; s/  *#.*//" >all
	grep -v -e --hold= -e --release= all >examples
	[ "$(wc -l <examples)" -eq 7 ] || complain "$(cat examples)"
	while read -r example; do
		expect_status 0 sh -c "$example" </dev/null
		[ -z "$err" ] || [[ $example == *tar* ]] || complain "$example: $err"
	done <examples
	sleep infinity 3>&- &
	expect_status 0 sh -c "$(grep -e --hold= all | sed "s/\$PPID/$!/")"
	[[ $out == "OK id="* ]] || complain "$out"
	id=${out#OK id=}
	expect_status 1 "$SEMLOCK" -n deploy.lock true
	expect_status 0 sh -c "$(grep -e --release= all | sed "s/ID/$id/")"
	kill -KILL $!
}

# A file's name is a word with a slash that begins with a directory of the tree.
@test "the files named in README, HACKING, contrib/README and ARTICLES exist" {
	for page in README HACKING contrib/README contrib/recipes/ARTICLES; do
		grep -oE '\b(contrib|tests|src|man)/[A-Za-z0-9_./-]*[A-Za-z0-9]' "$SOURCE/$page" | sort -u |
			while read -r name; do
				case $name in
				tests/FILE* | */NAME.c | tests/fuzz/found) ;;
				*) [ -e "$SOURCE/$name" ] || echo "$page: $name" ;;
				esac
			done
	done >missing
	[ ! -s missing ] || complain "$(cat missing)"
	grep -oE '\b[a-z-]+\.bats' "$SOURCE/man/semlock-compared.7" | sort -u >bats
	[ "$(wc -l <bats)" -ge 5 ]
	while read -r name; do
		find "$SOURCE/tests" -name "$name" | grep -q . || complain "semlock-compared(7): $name"
	done <bats
}

# The tables of recipes/ARTICLES name recipes/NAME; their last column names one test, or two, and a name may go on
# in the next line.
@test "what recipes/ARTICLES offers for each program of the articles is tested" {
	cp "$SOURCE/contrib/recipes/ARTICLES" tables
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
