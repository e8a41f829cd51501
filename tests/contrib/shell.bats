#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/shell/semlock.sh: every case in every shell.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

SHELLS=(dash bash 'busybox sh' ksh93 mksh zsh)

# in_each_shell <SCRIPT: runs "check" in each shell, in a directory of its own, with the script as ./script and the
# shell as the array "shell".
prepare() {
	PATH=$PWD/bin:$PATH
	export LIBRARY=$SOURCE/contrib/shell/semlock.sh PROBE
	[ -r "$LIBRARY" ]
	for shell in "${SHELLS[@]}"; do
		command -v "${shell%% *}" >/dev/null || complain "$shell is not installed"
	done
}

in_each_shell() {
	local name
	{
		printf 'set -eu\n. "$LIBRARY"\n'
		cat
	} >script
	for name in "${SHELLS[@]}"; do
		read -ra shell <<<"$name"
		mkdir "$name"
		cp script "$name"
		pushd "$name" >/dev/null || return
		echo "# $name"
		check
		popd >/dev/null || return
	done
}

# prints: the script ends with 0 and prints these lines
prints() {
	expect_status 0 timeout 60 "${shell[@]}" script
	expect_out "$(printf '%s\n' "$@")"
	[ -z "$err" ] || complain "$err"
}

@test "a function runs in the shell itself, with its arguments and its status" {
	check() { prints '<a b><><*>' 'count 1 status 3' free; }
	in_each_shell <<-'END'
		count=0
		f() { count=$((count + 1)); semlock -n l true 2>/dev/null && echo not locked; printf '<%s>' "$@"; echo; return 3; }
		ended=0
		with_lock l f 'a b' '' '*' || ended=$?
		echo "count $count status $ended"
		semlock -n l echo free
	END
}

@test "while it runs it excludes; -n and -w give up with 1, or what -E says" {
	check() {
		fifos holder
		start holder "${shell[@]}" script hold
		ready holder
		expect_status 1 timeout 60 "${shell[@]}" script try -n
		expect_silent
		expect_status 1 timeout 60 "${shell[@]}" script try -w .1
		expect_status 7 timeout 60 "${shell[@]}" script try -n -E 7
		expect_status 7 timeout 60 "${shell[@]}" script try -s -w .1 -E 7
		[ ! -e ran ]
		let_go
		expect_status 0 timeout 60 "${shell[@]}" script try -n
		[ -e ran ]
	}
	in_each_shell <<-'END'
		hold() { "$PROBE" hold holder.up holder.down; }
		try() { echo ran >ran; }
		case $1 in
		hold) with_lock l hold ;;
		try) shift; with_lock "$@" -- l try ;;
		esac
	END
}

@test "a waiter gets in when the first command is out, also if that was killed" {
	check() {
		fifos one
		fifos two
		start one "${shell[@]}" script one
		ready one
		start two "${shell[@]}" script two
		until "$SEMLOCK" --who l | grep -q 'held, 1 waiting'; do kill -0 "${PID[two]}"; done
		kill -KILL "${PID[one]}"
		# the killed shell's command runs on, and keeps the lock to its end
		expect_held l
		"$SEMLOCK" --who l | grep -q 'held, 1 waiting'
		kill -KILL "${COMMAND[one]}"
		ready two
		let_go two
		expect_free l
	}
	in_each_shell <<-'END'
		hold() { "$PROBE" hold "$1.up" "$1.down"; echo after; }
		with_lock l hold "$1"
	END
}

@test "nested: the inner lock ends with its function, the outer one holds on" {
	check() { prints 'a held, b held' 'a held, b free' 'a free, b free' 'depth 0'; }
	in_each_shell <<-'END'
		is() { if semlock -n "$1" true; then printf %s "$1 free"; else printf %s "$1 held"; fi; }
		both() { is a; printf ', '; is b; echo; }
		outer() { with_lock b both; both; }
		with_lock a outer
		both
		echo "depth $_lock_depth"
	END
}

@test "nested: a lock we hold, by any name, is not waited for, in subshells too" {
	check() { prints same dot link elsewhere subshell substitution pipe acquired held free; }
	in_each_shell <<-'END'
		ln -s l link
		inner() { echo "$1"; }
		outer() {
			with_lock l inner same
			with_lock ./l inner dot
			with_lock link inner link
			mkdir dir
			cd dir
			with_lock ../l inner elsewhere
			cd ..
			(with_lock l inner subshell)
			echo "$(with_lock l inner substitution)"
			echo pipe | with_lock l cat
			semlock -n l true || :
		}
		with_lock l outer
		lock_acquire l
		with_lock l inner acquired
		semlock -n l true || echo held
		lock_release l
		semlock -n l echo free
	END
}

@test "shared locks nest; exclusive under shared is refused, not waited for" {
	check() {
		expect_status 0 timeout 60 "${shell[@]}" script
		expect_out "$(printf '%s\n' 'others may' 'shared again' 'status 64')"
		[[ $err == "semlock.sh: $PWD/l: "* ]]
	}
	in_each_shell <<-'END'
		outer() {
			semlock -n -s l echo others may
			with_lock -s l echo shared again
			with_lock l echo ran || echo "status $?"
		}
		with_lock -s l outer
	END
}

@test "lock_acquire, lock_release: several locks, any order; busy -n gives 1" {
	check() {
		expect_status 0 timeout 60 "${shell[@]}" script
		expect_out "$(printf '%s\n' 'a held b held' 'a free b held' 'again 64' 'not ours 64' 'a free b free' 'busy 1')"
		[ "$(wc -l <.err)" -eq 2 ]
	}
	in_each_shell <<-'END'
		is() { if semlock -n "$1" true; then printf %s "$1 free"; else printf %s "$1 held"; fi; }
		both() { is a; printf ' '; is b; echo; }
		lock_acquire a
		lock_acquire b
		both
		lock_release a
		both
		lock_acquire b || echo "again $?"
		lock_release a || echo "not ours $?"
		lock_release b
		both
		mkfifo up down
		semlock a "$PROBE" hold up down &
		read -r line <up
		lock_acquire -n a || echo "busy $?"
		printf . >down
		wait
	END
}

@test "the lock is released when the shell ends, by exit, set -e or KILL" {
	check() {
		for way in exit false kill; do
			capture timeout 60 "${shell[@]}" script with $way
			case $way in exit) want=5 ;; false) want=1 ;; kill) want=137 ;; esac
			[ "$status" -eq "$want" ] || complain "${shell[*]}: $way: $status instead of $want: $err"
			expect_free l
			capture timeout 60 "${shell[@]}" script acquire $way
			[ "$status" -eq "$want" ] || complain "${shell[*]}: acquire, $way: $status instead of $want: $err"
			expect_free l
			[ ! -s .out ]
		done
	}
	in_each_shell <<-'END'
		f() {
			case $1 in
			exit) exit 5 ;;
			false) false ;;
			kill) kill -KILL $$ ;;
			esac
			echo still here
		}
		case $1 in
		with) with_lock l f "$2" ;;
		acquire) lock_acquire l; f "$2" ;;
		esac
		echo still here
	END
}

@test "a LOCK that cannot be opened gives 66, and the shell goes on without it" {
	check() {
		expect_status 0 timeout 60 "${shell[@]}" script
		expect_out "$(printf '%s\n' 'with 66' 'acquire 66' 'none 64' 'option 64' 'depth 0')"
	}
	in_each_shell <<-'END'
		with_lock no/such/place echo ran || echo "with $?"
		lock_acquire no/such/place || echo "acquire $?"
		with_lock || echo "none $?"
		with_lock -Z l echo ran || echo "option $?"
		echo "depth $_lock_depth"
	END
}

@test "if a lock file is removed during the wait, its successor is locked" {
	check() {
		fifos script
		hold_lock --rm l
		start script "${shell[@]}" script
		until "$SEMLOCK" --who l | grep -q 'held, 1 waiting'; do kill -0 "${PID[script]}"; done
		let_go
		ready script
		expect_status 1 "$SEMLOCK" -n l true
		let_go script
		rm holder.*
	}
	in_each_shell <<-'END'
		hold() { "$PROBE" hold script.up script.down; }
		with_lock l hold
	END
}

@test "the script's own descriptors and a lock file's content are left alone" {
	check() {
		prints
		[ "$(cat mine9)" = nine ]
		[ "$(cat mine8)" = eight ]
		[ "$(cat l)" = contents ]
	}
	in_each_shell <<-'END'
		exec 8>mine8 9>mine9
		echo contents >l
		with_lock l true
		echo nine >&9
		lock_acquire l
		echo eight >&8
	END
}

@test "under noclobber: a lock file is created, and an existing one stays" {
	check() {
		echo content >k
		prints one two
		[ "$(<k)" = content ]
	}
	in_each_shell <<-'END'
		set -C
		with_lock l echo one
		lock_acquire m
		lock_release m
		with_lock k echo two
		[ -e l ]
		[ -e m ]
	END
}

@test "lock_detach, lock_end: a lock by ID for a later shell; else 1, 76, 64" {
	check() {
		prints 'busy 1' 'end 0' free 'again 76' 'slot 0' 'held 1' 'free with PID' 'short 64' 'short 64'
	}
	in_each_shell <<-'END'
		lock_detach $$ --note='for the next script' l
		id=$lock_id
		sh -c 'semlock -n l true' || echo "busy $?"
		(lock_end "$id" l; echo "end $?")
		semlock -n l echo free
		again=0
		lock_end "$id" l 2>said || again=$?
		echo "again $again"
		grep -q 'no such hold' said
		lock_detach $$ -j 2 slots
		lock_end "$lock_id" slots && echo "slot $?"
		sleep 1000 &
		lock_detach $! l
		semlock -n l true || echo "held $?"
		kill $!
		semlock -w 60 l echo free with PID
		lock_detach l 2>said || echo "short $?$lock_id"
		grep -q 'lock_detach PID' said
		lock_end l 2>said || echo "short $?"
	END
}

@test "lock_detach --keep-place: lock_id is the place's ID, or empty" {
	check() {
		prints 'waits 1' 'no place 1' 'waits 7' resumed 'held 1' 'end 0' 'end 0' free
	}
	in_each_shell <<-'END'
		lock_detach $$ l
		holder=$lock_id
		lock_detach $$ --keep-place -w 0 l || echo "waits $?"
		place=$lock_id
		lock_detach $$ -n l || echo "no place $?$lock_id"
		lock_detach $$ --keep-place -w 0 -E 7 l || echo "waits $?"
		last=$lock_id
		lock_end "$holder" l
		[ "$(semlock --resume="$place" l)" = "OK id=$place" ] && echo resumed
		semlock -n l true || echo "held $?"
		(lock_end "$place" l; echo "end $?")
		semlock --resume="$last" l >said
		(lock_end "$last" l; echo "end $?")
		semlock -n l echo free
	END
}
