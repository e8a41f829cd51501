#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The changes that make mutants tries, in a file of this test: they are listed, and nothing is built.

load "${HELPERS:-$BATS_TEST_DIRNAME/lib/helpers.bash}"

changes() {
	"$SOURCE/tests/mutants" --list "$@" . sample.c
}

sample() {
	cat >sample.c
}

@test "comparisons, conditions, calls, constants and results are changed" {
	sample <<-'END'
		int f(int a)
		{
			if (a == 3)
				return 0;
			g(a);
			a = h();
			return !a && b;
		}
	END
	changes | sort >found
	for change in '3: if (a == 3) -> if (a != 3)' '3: if (a == 3) -> if (!(a == 3))' '3: if (a == 3) -> if (a == 4)' \
		'4: return 0; -> return -1;' '5: g(a); -> ;' '6: a = h(); -> ;' \
		'7: return !a && b; -> return a && b;' '7: return !a && b; -> return !a || b;'; do
		grep -qxF "sample.c:$change" found || complain "not among the changes: $change" "$(cat found)"
	done
	[ "$(wc -l <found)" -eq "$(uniq found | wc -l)" ] || complain "one is there twice: $(cat found)"
}

@test "comments, strings, directives and crash points stay" {
	sample <<-'END'
		#if A == B
		/* if (a == 3)
			return 0; */
			puts("a == 3 && b");
			CRASH_POINT("queue.drawn");
		#endif
	END
	changes >found
	[ "$(cat found)" = 'sample.c:4: puts("a == 3 && b"); -> ;' ] || complain "$(cat found)"
}

@test "a directory stands for all files in C below it" {
	mkdir -p d/e
	echo 'int a = f(1 + 2);' >d/a.c
	echo 'int b = f(3 - 4);' >d/e/b.c
	echo 'int c = f(5 * 6);' >d/c.h
	"$SOURCE/tests/mutants" --list . d | grep -o '^[^:]*' | sort -u >found
	[ "$(cat found)" = $'d/a.c\nd/e/b.c' ] || complain "$(cat found)"
}

@test "a sample is as large as was asked for, and the same for the same seed" {
	sample <"$SOURCE/src/lock/queue.c"
	[ "$(changes --sample=7 --seed=1 | wc -l)" -eq 7 ]
	[ "$(changes --sample=7 --seed=1)" = "$(changes --sample=7 --seed=1)" ]
	[ "$(changes --sample=7 --seed=1)" != "$(changes --sample=7 --seed=2)" ]
}

@test "each file of src/ has tests that should notice, and they are there" {
	cd "$SOURCE"
	find src -name '*.c' | while read -r file; do
		tests/mutants --which . "$file" >"$BATS_TEST_TMPDIR/found" || complain "no test for $file" || return
		while read -r name; do
			[ -e "$name" ] || complain "$file: no $name" || return
		done <"$BATS_TEST_TMPDIR/found"
	done
}

@test "--again tries what survived, and no other change" {
	sample <"$SOURCE/src/lock/queue.c"
	changes --sample=3 --seed=1 >tried
	{ sed -n 1p tried; echo "    noticed by tests/lock/queue.bats 1 a name (3 s)"; sed -n 2p tried; echo "    SURVIVED (3 s)"; } >output
	[ "$(changes --sample=3 --seed=1 --again=output)" = "$(sed -n 2p tried)" ]
}
