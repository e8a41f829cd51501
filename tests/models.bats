#!/usr/bin/env bats
# The models of the protocols, checked by spin: the quick ones; "make models" runs all.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"

@test "the quick models do what is expected of them, the naive ones fail" {
	command -v spin >/dev/null || complain "spin is not installed: apt-get install spin" || return
	for word in "-DBREAK=0 -DMAXCRASH=1 -DNOFRESH" "-DNOVERIFY -DMAXCRASH=1" "semlock_file.pml -DCREATE=0 -DFOREIGN=1 -DMAXCRASH=1" \
		"semlock_rename.pml -DV=1" "flock_unlink.pml -DCHECK=2 safety" "flock_unlink.pml -DCHECK=0 safety"; do
		ONLY=$word expect_status 0 sh "$SOURCE/tests/models/run" 1
		[[ $out != *"0 runs"* ]]
	done
}

@test "every step of a model is named in the code" {
	for step in K1 K2 K3; do grep -q "\b$step\b" "$SOURCE"/src/lock.c "$SOURCE"/src/lockfile.c || echo $step; done >missing
	for step in A1 A2 A3 A4 I1 I2 I3 I4 I5 I6 I7 R1 R2 R3 D1 D2 D6 S1 S2 S3 S4 S5 S6; do
		grep -rqw "$step" "$SOURCE/src/methods" || echo $step
	done >>missing
	[ ! -s missing ] || complain "not in the code: $(cat missing)"
}
