#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The models of the protocols, checked by spin: the quick ones; "make models" runs all.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# Unchanged models say nothing new: THOROUGH checks more of them.
@test "the quick models do what is expected of them, the naive ones fail" {
	local more=()
	command -v spin >/dev/null || complain "spin is not installed: apt-get install spin" || return
	[ -z "${THOROUGH-}" ] || more=("-DBREAK=0 -DMAXCRASH=1 -DNOFRESH" "-DNOVERIFY -DMAXCRASH=1"
		"semlock_file.pml -DCREATE=0 -DFOREIGN=1 -DMAXCRASH=1" "flock_unlink.pml -DCHECK=0 safety" "-DLOOKONCE"
		"-DSTOP -DRELGUARD")
	for word in "semlock_rename.pml -DV=1" "flock_unlink.pml -DCHECK=2 safety" "-DCOMMANDONLY" "-DSTART=0" "${more[@]}"; do
		ONLY=$word expect_status 0 sh "$SOURCE/tests/models/run" 1
		[[ $out != *"0 runs"* ]]
	done
}

# steps: "LABEL PLACE" for each line of the list in README; a verdict's row is "row-N".
steps() {
	sed -nE 's/^row ([0-9]+) +(src[^ ]*) .*/row-\1 \2/p; s/^([A-Z][0-9]) +(src[^ ]*) .*/\1 \2/p' "$SOURCE/tests/models/README"
}

@test "every step of a model is named in the code, where the list says" {
	[ -n "$(steps)" ] || complain "tests/models/README lists no steps"
	steps | while read -r label place; do
		grep -rqwi --include="*.[ch]" "${label/-/ }" "$SOURCE/$place" || echo "$label is not in $place"
	done >missing
	[ ! -s missing ] || complain "$(cat missing)"
}

@test "the code names no step that is not in the list" {
	grep -rohE "\b[A-Z][1-9]\b|\brow [0-9]+" "$SOURCE"/src/lock "$SOURCE"/src/methods "$SOURCE"/src/run --include='*.[ch]' | tr ' ' - | sort -u >used
	[ -s used ]
	steps | cut -d' ' -f1 | sort -u | comm -13 - used >unknown
	[ ! -s unknown ] || complain "not in tests/models/README: $(cat unknown)"
}

# in_python MODEL WORD HOLD FAIL [OTHER...]: of the model's cases with WORD, but without OTHER, HOLD hold and FAIL go wrong.
in_python() {
	PYTHONDONTWRITEBYTECODE=1 expect_status 0 /usr/bin/python3 "$SOURCE/tests/models/$1.py" "$2" "${@:5}" || return
	[ "$(grep -c 'states  holds$' <<<"$out")" -eq "$3" ] || complain "$1:" "$out" || return
	[ "$(grep -c 'states  VIOLATION: ' <<<"$out")" -eq "$4" ] || complain "$1:" "$out"
}

@test "the start barrier: a command never runs unnamed, and the naive ways fail" {
	in_python gate "" 3 2
}

@test "the queue: in order, nobody left behind, even if its file is removed" {
	in_python queue three 3 0
	in_python queue "no look" 0 1
}

@test "background holds: none unknown, ownerless or released; naive ways fail" {
	in_python hold "" 7 11
}

@test "many slots for one: no excess, no overtaking, no deadlock; naive fails" {
	in_python take "" 5 3
}

@test "--replace: no waiter is started or stopped; the naive ways fail" {
	in_python replace "" 6 6
}

@test "deserted locks: tickets block nobody, none is overtaken; naive ways fail" {
	if [ -n "${THOROUGH-}" ]; then
		in_python deserted "" 28 19
	else # those with the most states take a minute
		in_python deserted "" 24 19 "two readers behind a writer, as" "three waiters" "three with -n" "-n beside two waiters"
	fi
}

@test "a lock's users, and no others, can open its queue; the naive ways fail" {
	in_python trust "" 1 8
}

@test "locks on etcd: a lease never renewed holds; each naive way fails" {
	in_python lease "covered: two" 1 0
	in_python lease "reduced: three" 2 0
	in_python lease "reduced: two readers" 1 0
	in_python lease "naive: counted" 0 1
	in_python lease "naive: slots, keepalives" 0 1
	in_python lease "naive: two readers, a writer, enter under" 0 1
	in_python lease "two, a lease may be long" 2 0
	in_python lease "naive: a lease may be long" 0 1
	in_python lease "naive: a put comes late" 0 2
	[ -z "${THOROUGH-}" ] || in_python lease "" 29 17
}

@test "rows with leases: with any of the rules taken out two are inside" {
	if [ -n "${THOROUGH-}" ]; then
		in_python postgresql "" 4 10
	else
		in_python postgresql "failover" 1 0
		in_python postgresql "no advisory lock" 0 1
		in_python postgresql "nobody waits" 0 1
	fi
}
