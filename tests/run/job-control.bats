#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# In a terminal: Ctrl-Z, fg, bg, Ctrl-C.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/terminal

export SEMLOCK PROBE WAY=

times_shown() {
	grep -c "^$1\$" <<<"$(tr -d '\r' <<<"$out" | sed 's/^\(\$ \)*//')" || true
}

stop_and_go() {
	in_terminal "$1" <<-'END'
		line "$SEMLOCK" $WAY l "$PROBE" signals - -
		expect ready
		send ^Z
		expect Stopped
		line echo "the lock is $("$PROBE" free l)"
		expect the lock is held
		line fg
		expect CONT
		send ^C
		expect INT
		line end
		line echo "status $?"
		expect status 0
		line echo "the lock is $("$PROBE" free l)"
		expect the lock is free
		line exit
	END
	[ "$(times_shown INT)" -eq 1 ] || complain "INT came $(times_shown INT) times:" "$out"
}

@test "bash: Ctrl-Z stops, fg goes on, Ctrl-C reaches the command once" {
	stop_and_go bash
}

@test "dash: Ctrl-Z stops, fg goes on, Ctrl-C reaches the command once" {
	stop_and_go dash
}

@test "as two processes: Ctrl-Z stops, fg resumes, one Ctrl-C arrives" {
	for WAY in -o --die-with-parent --run-timeout=60 "--die-with-parent --run-timeout=60 -o"; do
		export WAY
		stop_and_go bash || complain "$WAY" || return
	done
	stop_and_go dash
}

@test "as two processes, with stty tostop: semlock's messages still appear" {
	for WAY in -o --run-timeout=60; do
		export WAY
		in_terminal bash <<-'END'
			line stty tostop
			line "$SEMLOCK" -v $WAY --min-hold .3 l nosuch
			expect cannot run
			line "$SEMLOCK" -v $WAY l sh -c 'echo said; exit 4'
			expect said
			line echo "status $?"
			expect status 4
			line "$SEMLOCK" $WAY -m excl x rm x
			expect was lost
			line echo "status $?"
			expect status 76
			line exit
		END
	done
}

@test "stopped twice, continued in the foreground and in the background" {
	for shell in bash dash; do
		in_terminal $shell <<-'END'
			line mkfifo down
			line "$SEMLOCK" l "$PROBE" signals - down
			expect ready
			send ^Z
			expect Stopped
			line fg
			expect CONT
			send ^Z
			expect Stopped
			line bg
			expect CONT
			line echo . 1<>down; wait; echo "the lock is $("$PROBE" free l)"
			expect the lock is free
			line exit
		END
		# Another CONT from semlock could come after the next Ctrl-Z, and undo that.
		[ "$(times_shown CONT)" -eq 2 ] || complain "CONT came $(times_shown CONT) times:" "$out"
		rm down
	done
}

@test "Ctrl-C ends the command: 130, and the lock is free" {
	for shell in bash dash; do
		in_terminal $shell <<-'END'
			line "$SEMLOCK" l sh -c 'echo running; exec cat'
			expect running
			send ^C
			expect $
			line echo "status $?"
			expect status 130
			line echo "the lock is $("$PROBE" free l)"
			expect the lock is free
			line exit
		END
	done
}

@test "Ctrl-C stops the script that semlock is a command of, whatever the way" {
	for way in "" -o -o -o -F --run-timeout=60 --run-timeout=60 --die-with-parent "-m mkdir" "-m excl" --fcntl "-j 2" flock; do
		export way
		"$PROBE" pty bash -c '
			program=$SEMLOCK
			if [ "$way" = flock ]; then program=bin/flock way=; fi
			"$program" $way "l${way: -1}" sh -c "echo running; exec cat"
			echo NEXT' >shown <<-'END' || true
			expect running
			send ^C
		END
		grep -q running shown || complain "$way: it did not run: $(cat shown)"
		! grep -q NEXT shown || complain "$way: the script went on"
	done
}

@test "Ctrl-C stops a loop" {
	"$PROBE" pty bash -c '
		for n in 1 2 3; do "$SEMLOCK" l sh -c "echo run $n; exec cat"; done' >shown <<-'END' || true
		expect run 1
		send ^C
	END
	[ "$(tr -d '\r' <shown)" = "run 1" ] || complain "$(cat shown)"
}

@test "Ctrl-C ends the wait" {
	hold_lock l
	for shell in bash dash; do
		in_terminal $shell <<-'END'
			expect $
			line "$SEMLOCK" l echo never
			blocked
			send ^C
			expect $
			line echo "status $?"
			expect status 130
			line exit
		END
		[[ $out != *never* ]]
	done
	let_go
}

@test "Ctrl-Z stops the wait, and fg goes on with it" {
	for shell in bash dash; do
		hold_lock l
		in_terminal $shell <<-'END'
			line "$SEMLOCK" l echo served
			blocked
			send ^Z
			expect Stopped
			line echo . 1<>holder.down; fg
			expect served
			line exit
		END
		ended holder 0
		rm holder.*
	done
}

@test "a command that stops itself stops semlock, and goes on with it" {
	in_terminal bash <<-'END'
		line "$SEMLOCK" l sh -c 'echo running; kill -TSTP $$; echo woken; exit 5'
		expect running
		expect Stopped
		line fg
		expect woken
		line echo "status $?"
		expect status 5
		line exit
	END
}

@test "the command may read from the terminal" {
	in_terminal bash <<-'END'
		line "$SEMLOCK" l sh -c 'echo name; read name; echo "hello $name"'
		expect name
		line world
		expect hello world
		line exit
	END
}

# The kernel signals only the leader of the session, which is semlock, and the foreground group, which the command
# has made, as a shell does for a job.
@test "a hangup reaches the command, even if another group is in foreground" {
	command -v python3 >/dev/null || skip "no python3"
	cat >command.py <<-'END'
		import os, signal
		signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP, signal.SIGTTOU})
		ends = os.pipe()
		job = os.fork()
		if job == 0:
		    os.close(ends[1])
		    os.read(ends[0], 1)
		    os._exit(0)
		os.setpgid(job, job)
		os.tcsetpgrp(0, job)
		open("up", "w").write("ready\n")
		open("heard", "w").write(str(signal.sigtimedwait({signal.SIGHUP}, 60) is not None))
	END
	cat >terminal.py <<-'END'
		import os, pty, sys
		pid, terminal = pty.fork()
		if pid == 0:
		    os.execv(sys.argv[1], sys.argv[1:])
		open("up").read()
		os.close(terminal)
		os.waitpid(pid, 0)
	END
	mkfifo up
	expect_status 0 python3 terminal.py "$SEMLOCK" l "$(command -v python3)" command.py
	[ "$(cat heard)" = True ] || complain "it has not heard of it"
}

@test "in the background, reading the terminal stops semlock, too, until fg" {
	for shell in bash dash; do
		WAY=l reads_after_fg $shell
		[[ $out == *"stopped: held"* ]] || complain "$shell: the lock is free" "$out"
	done
}

@test "in the background of a terminal the waiting line is not drawn" {
	hold_lock l
	in_terminal bash <<-'END'
		line TERM=xterm "$SEMLOCK" -w .5 l true & wait $!; echo "status $?"
		expect status 1
		line TERM=xterm "$SEMLOCK" -w .5 l true
		expect until
		expect the time is up
		line exit 0
	END
	[[ ${out%%status 1*} != *"; until"* ]] || complain "$out"
	let_go
}

@test "stopped and continued in the foreground, a waiter shows its line again" {
	hold_lock l
	in_terminal bash <<-'END'
		line TERM=xterm "$SEMLOCK" l true
		expect 1st of 1
		send ^Z
		expect Stopped
		line fg
		expect 1st of 1
		send ^C
		line exit 0
	END
	let_go
}

@test "a waiter stopped and continued in the background erases nothing" {
	hold_lock l
	in_terminal bash <<-'END'
		line TERM=xterm "$SEMLOCK" l true
		expect 1st of 1
		send ^Z
		expect Stopped
		line bg; echo . 1<>holder.down; wait; echo over
		expect over
		line exit
	END
	ended holder 0
	[[ ${out##*Stopped} != *$'\033[K'* ]] || complain "${out##*Stopped}"
}
