#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Signals to the process group of semlock's caller: KILL, and TERM as timeout(1) sends it.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/group-kill

@test "KILL to the group, no option or lock of files: what lives holds the lock" {
	keeps_with_group "" l
	keeps_with_group "-m excl" -m excl x
	keeps_with_group "-m mkdir" -m mkdir d
}

@test "KILL to the group, with -o and posix: nothing runs, the lock is free" {
	ends_with_group "-o" l
	ends_with_group "-m posix" -m posix p
	ends_with_group "-o -m excl" -m excl x
	ends_with_group "-o --fcntl" --fcntl l
}

@test "KILL to the group, with a limit or parent: nothing runs, lock is free" {
	ends_with_group "--die-with-parent" l
	ends_with_group "--run-timeout=2h" l
	ends_with_group "--die-with-parent --run-timeout=2h --kill-after=10" l
	ends_with_group "--run-timeout=2h -m excl" -m excl x
}

@test "KILL to the group of a waiter leaves no process behind" {
	hold_lock l
	for way in -o --run-timeout=2h --die-with-parent; do
		start caller setsid sh -c '"$@"; :' sh "$SEMLOCK" $way l touch ran
		eventually pgrep -g "${PID[caller]}" -f "semlock $way" >/dev/null
		"$PROBE" pause 100
		kill -KILL -- "-${PID[caller]}"
		ended caller 137
		eventually not_in_group "${PID[caller]}"
	done
	let_go
	[ ! -e ran ]
}

not_in_group() {
	! pgrep -g "$1" >/dev/null
}

@test "both semlocks killed by PID: the command lives on, and keeps the lock" {
	hold_as plain --run-timeout=2h l
	inner=$(pgrep -P "${PID[plain]}")
	kill -STOP "${PID[plain]}" # else it might see the other one's end before its own
	"$PROBE" state "${PID[plain]}" T
	kill -KILL "$inner" "${PID[plain]}"
	ended plain 137
	kill -0 "${COMMAND[plain]}"
	expect_status 1 "$SEMLOCK" -n l true
	kill "${COMMAND[plain]}"
	"$PROBE" until-free l
}

# The probe of counts.py: how many TERM have come, until half a second after the first.
write_counter() {
	cat >counts.py <<-'END'
		import signal, time
		count = 0
		def term(*_):
		    global count
		    count += 1
		signal.signal(signal.SIGTERM, term)
		open("up", "w").close()
		end = time.monotonic() + 60
		while not count and time.monotonic() < end:
		    time.sleep(.005)
		end = time.monotonic() + .5
		while time.monotonic() < end:
		    time.sleep(.005)
		open("count", "w").write(str(count))
	END
}

# counted CMD...: timeout(1) has sent its TERM when the counter was up
counted() {
	rm -f up count
	capture timeout "$((room / 1000)).$(printf %03d $((room % 1000)))" "$@" /usr/bin/python3 counts.py
	[ -e up ] && [ -s count ]
}

@test "TERM by timeout(1) to the group: the command counts two at most" {
	write_counter
	for ((i = 0; i < (GROUP_KILLS + 1) / 2; i++)); do
		for way in "" -o "-m posix" "-m excl" "--run-timeout 60" "--die-with-parent"; do
			# shellcheck disable=SC2086 # words
			with_room counted "$SEMLOCK" $way "l$way" || complain "$way" || return
			[ "$(cat count)" -le 2 ] || complain "$way: $(cat count)"
			# shellcheck disable=SC2086 # words
			with_room counted "$SEMLOCK" $way "l$way" "$SEMLOCK" $way "k$way" "$SEMLOCK" $way "j$way" ||
				complain "nested: $way" || return
			[ "$(cat count)" -le 2 ] || complain "nested: $way: $(cat count)"
		done
		with_room counted "$SEMLOCK" -F l # the command is the child of timeout(1), and gets its two
		[ "$(cat count)" -le 2 ] || complain "-F: $(cat count)"
	done
}

# A parent that leads the process group sends TERM to the first semlock of $order, and $pause seconds later to the rest of
# the group, one by one: to the command, and once the command has it, to the others of $order: outer, and inner if there
# are two.  What the command gets is in the file log; WINCH comes behind all of it.
write_leader() {
	cat >leader <<-'END'
		# Without processes: what is sent has to be sent within a second.
		logged() {
			local line count=0
			until [ $count -ge "$2" ]; do
				read -r -t .01 _ <>never
				count=0
				while read -r line; do
					case $line in *"$1"*) count=$((count + 1)) ;; esac
				done <log
			done
		}
		rm -f log down never
		mkfifo down never
		: >log
		case $order in *inner*) two=yes ;; *) two= ;; esac
		"$SEMLOCK" $way "l$way" ${two:+"$SEMLOCK" k} "$PROBE" signals - down >log &
		logged ready 1
		outer=$! inner=$(pgrep -P $!)
		read -r _ command <log
		began=${EPOCHREALTIME/[.,]/}
		set -- $order
		kill -TERM "${!1}"
		logged TERM 1
		read -r -t "$pause" _ <>never
		kill -TERM "$command"
		logged TERM 2
		for name in "${@:2}"; do kill -TERM "${!name}"; done
		kill -WINCH "$outer"
		logged WINCH 1
		echo $((${EPOCHREALTIME/[.,]/} - began)) >took
		echo . >down
		wait "$outer"
	END
	export PROBE way='' order pause
}

# led: a run of the leader with all that it sends within nine tenths of a second
led() {
	rm -f took
	expect_status 0 setsid -w bash leader
	[ "$(cat took)" -lt 900000 ]
}

# counts_two: the leader's command has got TERM twice
counts_two() {
	local tries=0
	pause=.15
	until led; do # a busy machine
		tries=$((tries + 1))
		[ $tries -lt 20 ] || complain "$way, $order: $(cat took log)" || return
	done
	[ "$(grep -c TERM log)" -eq 2 ] || complain "$way, $order: $(cat log)"
}

@test "TERM by a group's delayed leader: the command counts two at most" {
	write_leader
	order="outer outer"
	for way in "" -o "-m excl" --die-with-parent "--run-timeout 60"; do counts_two; done
	way='' pause=1.1 # means it
	expect_status 0 setsid -w bash leader
	[ "$(grep -c TERM log)" -eq 3 ] || complain "$(cat log)"
}

@test "TERM by such a leader to nested semlocks: two at most" {
	write_leader
	for order in "outer inner outer" "inner outer outer"; do counts_two; done
}

@test "a sender that means it sends TERM twice: the command gets both" {
	report_as holder -o l
	for _ in 1 2; do
		kill -TERM "${PID[holder]}"
		reports holder TERM
		"$PROBE" pause 300
	done
	release holder
	ended holder 0
}

# A daemon that has a session of its own, and says when it gets TERM; --deaf: ignores it.
write_daemon() {
	cat >daemon.py <<-'END'
		import os, signal, sys, time
		if os.fork(): os._exit(0)
		os.setsid()
		if os.fork(): os._exit(0)
		def term(*_):
		    open("termed", "w").close()
		    os._exit(0)
		signal.signal(signal.SIGTERM, signal.SIG_IGN if "--deaf" in sys.argv else term)
		open("daemon.new", "w").write(str(os.getpid()))
		os.rename("daemon.new", "daemon")
		while True: time.sleep(1)
	END
}

# limited ARGS...: the limit has passed when the daemon was there
limited() {
	rm -f daemon termed
	capture "$SEMLOCK" --run-timeout "${room}ms" "$@"
	[ -e daemon ]
}

@test "--run-timeout ends the command's daemon, by TERM or KILL; lock is free" {
	write_daemon
	for way in "" "-o" "-m excl" "--kill-after .2"; do
		# shellcheck disable=SC2086 # words
		with_room limited $way "l$way" sh -c '/usr/bin/python3 daemon.py; exec sleep 1000'
		[ "$status" -eq 124 ] || complain "$way: $status"
		[ -e termed ] || complain "$way: no TERM"
		sh -c "$(none_runs "$(cat daemon)")" || complain "$way: the daemon runs"
		# shellcheck disable=SC2086 # words
		with_room limited $way "l$way" sh -c '/usr/bin/python3 daemon.py --deaf; exec sleep 1000'
		sh -c "$(none_runs "$(cat daemon)")" || complain "$way: the deaf daemon runs"
		# shellcheck disable=SC2086 # words
		expect_status 0 "$SEMLOCK" -n ${way#--kill-after .2} "l$way" true
	done
}

@test "--die-with-parent ends a daemon of the command" {
	write_daemon
	start parent sh -c '"$@"; :' sh "$SEMLOCK" --die-with-parent l sh -c '/usr/bin/python3 daemon.py --deaf; exec sleep 1000'
	eventually [ -e daemon ]
	kill -KILL "${PID[parent]}"
	ended parent 137
	expect_status 0 "$SEMLOCK" -w "$PATIENCE" l sh -c "$(none_runs "$(cat daemon)") && : >alone"
	[ -e alone ]
}

@test "a daemon of a command that ends in time lives, and keeps the lock" {
	write_daemon
	expect_status 0 "$SEMLOCK" --run-timeout 60 l /usr/bin/python3 daemon.py
	eventually [ -e daemon ]
	expect_status 1 "$SEMLOCK" -n l true
	kill "$(cat daemon)"
	"$PROBE" until-free l
}

@test "the command's end hangs up no stopped process of an unwatched group" {
	mkfifo go
	cat >job <<-'END'
		sleep 1000 &
		echo $! >stopped
		kill -STOP $!
		"$SEMLOCK" $WAY l sh -c 'read -r _ <go'
		echo $? >status
		kill -KILL "$(cat stopped)"
	END
	export SEMLOCK WAY
	for WAY in -o "-m posix" "--run-timeout 1h" --die-with-parent "-o -m excl"; do
		rm -f stopped status
		setsid sh job &
		echo >go
		eventually test -s status
		[ "$(cat status)" -eq 0 ] || complain "$WAY: $(cat status)"
		wait $! || complain "$WAY: the script was ended: $?"
		rm -f l
	done
}
