#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# semlock 8: the caller's own descriptor, locked and left so.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
export SEMLOCK PROBE

@test "a descriptor is locked, and stays so when semlock has ended" {
	exec 8>l
	expect_status 0 "$SEMLOCK" 8
	expect_silent
	expect_held l
	expect_status 1 "$SEMLOCK" -n l true
	exec 8>&-
	expect_free l
}

@test "-u --fd lets it go, and runs the command" {
	for program in "$SEMLOCK" "$FLOCK"; do
		for way in "" -o -F --run-timeout=60 "-j 2" --fcntl; do
			exec 8<>l
			case $way in -j* | --fcntl) how=$way ;; *) how= ;; esac
			# shellcheck disable=SC2086 # words
			expect_status 0 "$program" $how 8
			# shellcheck disable=SC2086
			expect_status 4 "$program" $way -u --fd 8 sh -c 'echo RAN; exit 4'
			expect_out RAN
			expect_free l
			expect_status 3 "$program" -u --fd 8 -c 'exit 3'
			exec 8>&-
		done
	done
}

@test "-u lets it go, and the descriptor stays open" {
	exec 8>l
	expect_status 0 "$SEMLOCK" -x 8
	expect_held l
	expect_status 0 "$SEMLOCK" -u 8
	expect_free l
	echo still open >&8
	expect_status 0 "$SEMLOCK" 8
	expect_held l
	expect_status 0 "$SEMLOCK" --unlock 8
	expect_free l
	exec 8>&-
	[ "$(cat l)" = "still open" ]
}

@test "descriptors of two digits" {
	: >l
	expect_status 0 bash -c '
		exec 12>l
		"$SEMLOCK" 12 && "$PROBE" free l
		"$SEMLOCK" -u 12 && "$PROBE" free l
		exec 99<l
		"$SEMLOCK" -n 99 && "$PROBE" free l
		exec 99>&-
		"$PROBE" free l'
	expect_out "$(printf '%s\n' held free held free)"
}

@test "a held lock is refused with 1, silently" {
	hold_lock l
	exec 8>>l
	expect_status 1 "$SEMLOCK" -n 8
	expect_silent
	expect_status 1 "$SEMLOCK" -w .01 8
	expect_silent
	expect_status 7 "$SEMLOCK" -n -E 7 8
	let_go
	expect_status 0 "$SEMLOCK" -n 8
	exec 8>&-
}

@test "a wait for a descriptor's lock is in line with waits for the file's name" {
	hold_lock l
	exec 8>>l
	start waiter "$SEMLOCK" 8
	"$PROBE" blocked "${PID[waiter]}"
	queue_as later l
	let_go
	ended waiter 0
	expect_held l
	"$PROBE" blocked "${PID[later]}"
	expect_status 0 "$SEMLOCK" -u 8
	exec 8>&-
	ready later
	let_go later
}

@test "-s on a descriptor" {
	exec 8<>l
	expect_status 0 "$SEMLOCK" -s 8
	expect_shared l
	expect_status 0 "$SEMLOCK" -n -s l true
	expect_status 1 "$SEMLOCK" -n l true
	exec 8>&-
}

@test "locking a descriptor again succeeds" {
	exec 8>l
	expect_status 0 "$SEMLOCK" 8
	expect_status 0 "$SEMLOCK" -n 8
	expect_held l
	exec 8>&-
}

@test "a lock asked for again, or for less, with -n, while others wait, is held" {
	: >l
	for method in flock ofd; do
		exec 8<>l
		expect_status 0 "$SEMLOCK" -m "$method" 8
		queue_as other -m "$method" l 8>&-
		expect_status 0 "$SEMLOCK" -m "$method" -n 8
		expect_status 0 "$SEMLOCK" -m "$method" -n -s 8
		expect_status 0 "$SEMLOCK" -m "$method" -n -s 8
		exec 8>&-
		ready other
		let_go other
		rm other.up other.down
	done
}

@test "more bytes of a locked file do not wait behind waiters for the first" {
	: >l
	exec 8<>l
	expect_status 0 "$SEMLOCK" --fcntl --start 0 --length 1 8
	queue_as other --fcntl --start 0 --length 1 l 8>&-
	expect_status 0 "$SEMLOCK" -n --fcntl --start 1 --length 1 8
	expect_status 0 "$SEMLOCK" -w 60 --fcntl --start 2 --length 1 8
	expect_held l ofd 2 1
	exec 8>&-
	ready other
	let_go other
}

@test "a descriptor that waits past its other lock's waiters stays ahead" {
	: >l
	hold_as reader -s l
	exec 8<>l
	expect_status 0 "$SEMLOCK" --fcntl --length 1 8
	start writer "$SEMLOCK" 8
	"$PROBE" blocked "${PID[writer]}"
	expect_status 1 "$SEMLOCK" -n -s l true 8>&-
	let_go reader
	ended writer 0
	expect_held l
	exec 8>&-
}

@test "exec 8>lock in a shell that hands descriptors on only when it is told" {
	for shell in ksh93 mksh; do
		command -v "$shell" >/dev/null || continue
		expect_status 0 "$shell" -c 'exec 8>l; "$SEMLOCK" 8; echo $?; "$SEMLOCK" 8 8>&8; echo $?; "$PROBE" free l; :'
		expect_out $'65\n0\nheld'
	done
}

@test "the subshell form" {
	for shell in bash dash; do
		rm -f order
		expect_status 0 "$shell" -c '
			(
				"$SEMLOCK" -n 9 || exit 1
				echo inside >>order
				"$PROBE" free l >>order
			) 9>l
			"$PROBE" free l >>order'
		[ "$(tr '\n' ' ' <order)" = "inside held free " ]
		hold_lock l
		expect_status 1 "$shell" -c '( "$SEMLOCK" -n 9 || exit 1; echo inside ) 9>l'
		expect_silent
		let_go
		rm holder.*
	done
}

@test "exec 8>lock in a script of bash and of dash" {
	for shell in bash dash; do
		expect_status 0 "$shell" -c '
			exec 8>l
			"$SEMLOCK" -n 8 || exit 1
			"$PROBE" free l; "$SEMLOCK" -u 8; "$PROBE" free l
			"$SEMLOCK" 8; exec 8>&-; "$PROBE" free l'
		expect_out "held"$'\n'"free"$'\n'"free"
	done
}

@test "a script that locks itself" {
	cat >script <<'END'
#!/bin/sh
exec 9<"$0"
"$SEMLOCK" -n 9 || exit 75
"$PROBE" hold holder.up holder.down
END
	chmod +x script
	fifos holder
	start holder ./script
	ready holder
	expect_status 75 ./script
	let_go
	[ "$("$PROBE" free script)" = free ]
}

@test "a descriptor that is only read, and one of a directory" {
	: >l
	exec 8<l
	expect_status 0 "$SEMLOCK" 8
	expect_held l
	exec 8<&-
	mkdir d
	exec 8<d
	expect_status 0 "$SEMLOCK" 8
	expect_held d
	expect_status 1 "$SEMLOCK" -n d true
	exec 8<&-
	expect_free d
}

@test "/dev/fd/N before a command" {
	exec 8>l
	expect_status 1 "$SEMLOCK" /dev/fd/8 "$PROBE" free l
	expect_out held
	exec 8>&-
	expect_free l
}

@test "a descriptor that is not open is refused with 65, and named" {
	refused 65 77 "$SEMLOCK" 77
	refused 65 77 "$SEMLOCK" -n 77
	refused 65 77 "$SEMLOCK" -u 77
}

@test "what is no descriptor is refused with 64" {
	refused 64 8x "$SEMLOCK" 8x
	refused 64 "$PWD/l" "$SEMLOCK" "$PWD/l"
	[ ! -e l ]
}

@test "a descriptor of a deleted file is refused with 65, except as flock" {
	exec 8>l
	rm l
	refused 65 "its file has been deleted or replaced, so a program that opens its name locks another file" "$SEMLOCK" 8
	expect_status 0 "$FLOCK" 8
	exec 8>&-
}

@test "--fd N COMMAND runs it under the lock" {
	exec 8>l
	expect_status 1 "$SEMLOCK" --fd 8 "$PROBE" free l
	expect_out held
	expect_status 0 "$SEMLOCK" --fd 8 test -e /proc/self/fd/8
	expect_status 1 "$SEMLOCK" -o --fd 8 test -e /proc/self/fd/8
	expect_status 5 "$SEMLOCK" --fd 8 -c 'exit 5'
	expect_status 5 "$SEMLOCK" -c --fd 8 'exit 5'
	expect_status 5 "$SEMLOCK" -nc -w 1 --fd=8 'exit 5'
	refused 64 "-c must follow LOCK" "$SEMLOCK" -c -n l 'exit 5'
	exec 8>&-
	hold_lock l
	exec 8>l
	expect_status 1 "$SEMLOCK" -n --fd 8 echo ran
	expect_silent
	exec 8>&-
	let_go
}

@test "the lock goes with the last copy of the descriptor, not with the first" {
	exec 8>l
	expect_status 0 "$SEMLOCK" 8
	fifos child
	start child "$PROBE" hold child.up child.down
	ready child
	exec 8>&-
	expect_held l
	let_go child
	expect_free l
}
