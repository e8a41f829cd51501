#!/usr/bin/env bats
# --queue-max: between waiting in a queue, however long, and not waiting at all.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# patiently CMD...: what waits in spite of --queue-max is killed: the status is 137.
patiently() {
	timeout -s KILL "$PATIENCE" "$@"
}

@test "with as many waiting as may, the next is refused at once; with fewer it waits" {
	local method began
	for method in flock ofd posix excl mkdir symlink "flock -j1"; do
		read -ra way <<<"-m $method l.${method%% *}"
		hold_lock "${way[@]}"
		fifos waiter
		start waiter "$SEMLOCK" --queue-max=1 "${way[@]}" "$PROBE" hold waiter.up waiter.down
		"$PROBE" blocked "${PID[waiter]}"
		began=$(date +%s%N)
		expect_status 9 patiently "$SEMLOCK" --queue-max=1 -E 9 "${way[@]}" touch ran
		took=$((($(date +%s%N) - began) / 1000000))
		[ "$took" -lt 900 ] || echo "$took" >>slow
		expect_silent
		expect_status 1 "$SEMLOCK" --queue-max=1 -w 60 --status-fd=1 "${way[@]}" touch ran
		expect_out busy
		fifos third
		start third "$SEMLOCK" --queue-max=2 "${way[@]}" "$PROBE" hold third.up third.down
		"$PROBE" blocked "${PID[third]}"
		let_go
		ready waiter
		let_go waiter
		ready third
		let_go third
		rm ./*.up ./*.down
	done
	[ ! -e ran ]
	[ ! -e slow ] || [ "$(wc -l <slow)" -lt 3 ] || complain "it took so many ms: $(xargs <slow)"
}

@test "0 is like -n" {
	hold_lock l
	expect_status 1 patiently "$SEMLOCK" --queue-max=0 l true
	let_go
	expect_status 0 "$SEMLOCK" --queue-max=0 l true
}

@test "200 that start at once: one runs, 5 wait, 195 are refused" {
	starts_many
	hold_as first l
	for i in {1..200}; do
		"$SEMLOCK" --queue-max=5 -E 75 l sh -c 'echo ran >>runs' 3>&- &
		all[i]=$!
	done
	eventually leaves 5
	let_go first
	refused=0
	for pid in "${all[@]}"; do
		status=0
		wait "$pid" || status=$?
		if [ $status -eq 75 ]; then refused=$((refused + 1)); fi
	done
	[ "$(wc -l <runs)" -eq 5 ] || complain "$(wc -l <runs) ran"
	[ $refused -eq 195 ] || complain "$refused were refused"
}

# leaves N: so many of those in all are left
leaves() {
	local pid left=0
	for pid in "${all[@]}"; do
		if kill -0 "$pid" 2>/dev/null; then left=$((left + 1)); fi
	done
	[ $left -le "$1" ]
}

@test "a stopped waiter has a place, and a deserted lock is had all the same" {
	hold_lock l
	queue_as waiter l
	kill -STOP "${PID[waiter]}"
	"$PROBE" state "${PID[waiter]}" T
	expect_status 1 patiently "$SEMLOCK" --queue-max=1 l true
	let_go
	expect_status 0 "$SEMLOCK" --queue-max=1 l true
	kill -CONT "${PID[waiter]}"
	ready waiter
	let_go waiter
}

@test "refused where there is no queue to count" {
	refused 64 --queue-max "$SEMLOCK" --queue-max=1 etcd://127.0.0.1:1/l touch ran
	refused 64 --queue-max "$SEMLOCK" --queue-max=1 -f m l touch ran
	refused 64 --queue-max "$SEMLOCK" --queue-max=1 --replace l touch ran
	refused 64 --queue-max "$SEMLOCK" --queue-max=1 --toggle l touch ran
	refused 64 --queue-max "$SEMLOCK" --queue-max=-1 l touch ran
	refused 64 --queue-max "$SEMLOCK" --queue-max=x l touch ran
	[ ! -e ran ]
}
