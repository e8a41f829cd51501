#!/usr/bin/env bats
# --replace: the newest wins, and nobody else is hit.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"

@test "the holder's command is ended by TERM, and ours runs in its place" {
	for way in "" -o -F "-m ofd" "-m posix" "-F -m posix" -s; do
		method=
		case $way in *-m*) method=-m${way##*-m} ;; esac
		# shellcheck disable=SC2086
		hold_as old $way l
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" $method --replace l echo new
		expect_out new
		ended old 143
		rm old.up old.down
	done
}

@test "flock(1)'s command is ended, and not flock alone" {
	system=$(system_flock)
	[ -n "$system" ] || skip "no util-linux flock on this machine"
	fifos old
	start old "$system" l "$PROBE" hold old.up old.down
	ready old
	expect_status 0 "$SEMLOCK" --replace l true
	ended old 143
	"$PROBE" gone "${COMMAND[old]}"
}

@test "a shell that has the descriptor is ended" {
	fifos shell
	start shell bash -c 'exec 8>l; "$0" 8; echo ready $$ >shell.up; read -r _ <>shell.down' "$SEMLOCK"
	ready shell
	expect_status 0 "$SEMLOCK" --replace l true
	ended shell 143
}

@test "all who hold it shared are ended, if we want it exclusively" {
	hold_as one -s l
	hold_as two -s l
	expect_status 0 "$SEMLOCK" -s --replace l true
	expect_status 0 "$SEMLOCK" --replace l true
	ended one 143
	ended two 143
}

@test "another signal: --replace=SIG" {
	report_as old l
	start new "$SEMLOCK" --replace=USR1 l true
	reports old USR1
	kill -KILL "${COMMAND[old]}"
	ended old 137
	ended new 0
}

@test "a free lock is taken, and nobody is signalled" {
	expect_status 0 "$SEMLOCK" --status-fd 1 --replace l true
	[ "$(tr '\n' , <.out)" = "acquired,exit 0," ]
}

@test "a command that ignores TERM: waited for, up to -w, and KILLed after --kill-after" {
	fifos old
	start old "$SEMLOCK" l "$PROBE" with-ignored TERM -- "$PROBE" hold old.up old.down
	ready old
	expect_status 1 "$SEMLOCK" -w .2 --replace l true
	kill -0 "${COMMAND[old]}"
	expect_status 0 "$SEMLOCK" --kill-after .1 --replace l true
	ended old 137
	for way in -o "-m posix"; do
		fifos tied
		# shellcheck disable=SC2086
		start tied "$SEMLOCK" $way l "$PROBE" with-ignored TERM -- "$PROBE" hold tied.up tied.down
		ready tied
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" ${way#-o} --kill-after .1 --replace l true
		ended tied 137
		rm tied.up tied.down
	done
}

@test "a stopped holder is continued, so that it can obey" {
	hold_as old l
	kill -STOP "${PID[old]}" "${COMMAND[old]}"
	"$PROBE" state "${PID[old]}" T
	expect_status 0 "$SEMLOCK" --replace l true
	ended old 143
}

@test "what the holder has left behind is stopped, too" {
	fifos old
	start old "$SEMLOCK" l "$PROBE" leave-behind old.up old.down
	ended old 0
	ready old
	expect_status 0 "$SEMLOCK" --replace l true
	"$PROBE" gone "${COMMAND[old]}"
}

@test "the holder ends by itself just then: taken, and nobody is signalled" {
	for _ in $(seq 10); do
		start old "$SEMLOCK" l true
		expect_status 0 "$SEMLOCK" --replace l true
		wait "${PID[old]}" || [ $? -eq 143 ]
	done
}

@test "of many at once never two run, and one is left" {
	for i in $(seq 8); do start "r$i" "$SEMLOCK" --replace l "$SEMLOCK" -n -E 99 -F -m ofd room "$PROBE" pause 20; done
	for i in $(seq 8); do
		status=0
		wait "${PID[r$i]}" || status=$?
		echo $status
	done >statuses
	! grep -qvx -e 0 -e 143 statuses || complain "$(cat statuses)"
	[ "$(grep -c '^0$' statuses)" -ge 1 ]
	expect_free l
}

@test "another user's holder: 77, and it lives on" {
	root_only "to be two users"
	hold_lock l
	chmod 666 l
	refused 77 "holder" as_nobody "$SEMLOCK" --replace l true
	let_go
}

@test "our own caller is never signalled: 64" {
	expect_status 5 bash -c 'exec 8>l; "$0" 8; "$0" --replace l true; [ $? -eq 64 ] && exit 5' "$SEMLOCK"
	expect_status 64 "$SEMLOCK" l "$SEMLOCK" --replace l true
	expect_status 64 "$SEMLOCK" l "$SEMLOCK" --toggle l true
}

# What PID namespaces can do: in one of its own, let a holder's number become a stranger's
# between the moments at which --replace looks, opens the process, and signals.
reuse() {
	cat >reuse.sh <<-'END'
		set -eu
		mkfifo up down
		"$SEMLOCK" l "$PROBE" hold up down &
		old=$!
		read -r _ command <>up
		SEMLOCK_CRASH=$1:stop "$SEMLOCK" --replace l touch replaced &
		new=$!
		"$PROBE" state $new T
		kill -KILL $old $command
		wait $old || :
		"$PROBE" gone $command
		for pid in $old $command; do
			tries=0
			until [ -e "/proc/$pid/stranger" ]; do
				echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid
				sleep 1000 &
				if [ $! -eq $pid ]; then break; fi
				kill $!
				tries=$((tries + 1))
				[ $tries -lt 50 ]
			done
		done
		kill -CONT $new
		tries=0
		until wait $new; do
			"$PROBE" state $new T && kill -CONT $new
			tries=$((tries + 1))
			[ $tries -lt 50 ]
		done
		kill -0 $old
		kill -0 $command
		[ -e replaced ]
		kill $old $command
		touch passed
	END
	SEMLOCK=$SEMLOCK PROBE=$PROBE unshare --pid --fork --mount-proc bash reuse.sh "$1" >reuse.out 2>&1 3>&- || true
	[ -e passed ] || complain "$1" "$(cat reuse.out)"
	rm -f passed replaced up down
}

@test "a holder's number that has become a stranger's: the stranger is not signalled" {
	namespaces --pid --fork --mount-proc
	[ "$CRASHABLE" = yes ] || skip "needs --enable-crash-points"
	reuse replace.looked
	reuse replace.aimed
	reuse replace.proven
}

@test "what makes no sense is refused" {
	refused 64 --replace "$SEMLOCK" --replace -n l true
	refused 64 --replace "$SEMLOCK" --replace -j 2 l true
	refused 64 --replace "$SEMLOCK" --replace -f a b true
	refused 64 --replace "$SEMLOCK" --replace=NOSUCH l true
	refused 64 -u "$SEMLOCK" --replace -u 8
}
