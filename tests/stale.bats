#!/usr/bin/env bats
# --stale: locks whose holder cannot be asked.
load "${HELPERS:-$BATS_TEST_DIRNAME/helpers.bash}"

CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}

old() {
	touch -h -d '1 hour ago' "$1"
}

# elsewhere METHOD: a lock l of somebody on another host
elsewhere() {
	local record="4711
semlock 1 $1
start=5 boot=00000000-0000-0000-0000-000000000000 pidns=1 flock=1
host=elsewhere machine=another since=1 uid=0"
	rm -rf l l.held
	case $1 in
	mkdir) mkdir l && echo "$record" >l/pid ;;
	symlink) ln -s "4711:5:00000000-0000-0000-0000-000000000000:1@elsewhere" l ;;
	rename) echo "$record" >l.held ;;
	*) echo "$record" >l ;;
	esac
}

@test "a lock from another host: held, and taken over when it is older than --stale" {
	build_needs SYS_VFS_H "to know that the file system is this machine's alone"
	for method in excl link mkdir symlink rename; do
		name=l
		[ $method != rename ] || name=l.held
		elsewhere $method
		expect_status 1 "$SEMLOCK" -n -m $method l true
		expect_status 1 "$SEMLOCK" -n --stale 30m -m $method l true
		old $name
		expect_status 1 "$SEMLOCK" -n -m $method l true
		expect_status 1 "$SEMLOCK" -n --stale 2h -m $method l true
		expect_status 0 "$SEMLOCK" -n --stale 30m -m $method l true
	done
}

@test "foreign ones without a PID: the same" {
	for method in excl link; do
		for content in '' 0 what; do
			printf '%s' "$content" >l
			old l
			expect_status 1 "$SEMLOCK" -n -m $method l true
			expect_status 0 "$SEMLOCK" -n --stale 30m -m $method l true
		done
	done
	mkdir l
	expect_status 1 "$SEMLOCK" -n --stale 30m -m mkdir l true
	old l
	expect_status 1 "$SEMLOCK" -n -m mkdir l true
	expect_status 0 "$SEMLOCK" -n --stale 30m -m mkdir l true
	[ ! -e l ]
}

@test "one that is known to live is never robbed, however old" {
	build_needs SYS_VFS_H "to know that the file system is this machine's alone"
	for method in excl link mkdir symlink; do
		hold_lock -m $method l
		old l
		expect_status 1 "$SEMLOCK" -n --stale 1m -m $method l true
		let_go
		rm ./*.up ./*.down
	done
	start other sleep 100
	echo "${PID[other]}" >l
	old l
	expect_status 1 "$SEMLOCK" -n --stale 1m -m excl l true
}

@test "a waiter takes over when the time has come" {
	elsewhere excl
	start waiter "$SEMLOCK" --stale .5 -m excl l true
	ended waiter 0
}

@test "holders with --stale give signs of life" {
	build_needs SYS_VFS_H "to know that the file system is this machine's alone"
	for method in excl link mkdir symlink rename; do
		name=l
		[ $method != rename ] || { "$SEMLOCK" -m rename --init l true && name=l.held; }
		hold_lock --stale .2 -m $method l
		old $name
		tries=0
		until [ "$(stat -c %Y $name)" -gt "$(date -d '10 minutes ago' +%s)" ]; do
			tries=$((tries + 1))
			[ $tries -lt 5000 ] || complain "$method: no beat"
		done
		let_go
		rm -f ./*.up ./*.down
	done
}

@test "rename with names of its own: taken over by age, once, and the late holder hears of it" {
	export SEMLOCK_CRASH=filesystem.local:fail=5
	SEMLOCK=$CRASHABLE_SEMLOCK
	"$SEMLOCK" -m rename --init l true
	mv l l.held.4711.5.00000000-0000-0000-0000-000000000000.1.7.00000000.elsewhere
	expect_status 1 "$SEMLOCK" -n -m rename --init l touch ran
	expect_status 1 "$SEMLOCK" -n --stale 30m -m rename l touch ran
	expect_status 0 "$SEMLOCK" -w 20 --stale .2 -m rename l sh -c 'ls -d l.held.$$.*'
	[ "$(ls -d l*)" = l ]
	hold_as slow --stale 1000 --on-lost term -m rename l
	[ "$(ls -d l*)" = "$(ls -d l.held."${COMMAND[slow]}".*)" ]
	mv l.held.* l.held.1.1.x.1.1.00000000.elsewhere
	ended slow 76
	[ "$(ls -d l*)" = l.held.1.1.x.1.1.00000000.elsewhere ]
	mv l.held.* l.held # a script's
	touch -d '1 hour ago' l.held
	expect_status 1 "$SEMLOCK" -n --stale 1m -m rename l touch ran
	[ ! -e ran ]
}

@test "rename with names of its own: a beat is a new name" {
	export SEMLOCK_CRASH=filesystem.local:fail=5
	SEMLOCK=$CRASHABLE_SEMLOCK
	"$SEMLOCK" -m rename --init l true
	hold_lock --stale .2 -m rename l
	until first=$(compgen -G 'l.held.*') && [ -n "$first" ]; do :; done # who lists them in between sees none, or two
	first=${first%%$'\n'*}
	tries=0
	until [ ! -e "$first" ]; do
		tries=$((tries + 1))
		[ $tries -lt 5000 ] || complain "no beat"
	done
	expect_status 1 "$SEMLOCK" -n --stale 5 -m rename l true
	let_go
	[ "$(ls -d l*)" = l ]
}

@test "rename with names of its own: two tokens become one" {
	export SEMLOCK_CRASH=filesystem.local:fail=5
	SEMLOCK=$CRASHABLE_SEMLOCK
	"$SEMLOCK" -m rename --init l true
	hold_lock -m rename l
	: >l
	expect_status 1 "$SEMLOCK" -n -m rename l touch ran
	start waiter "$SEMLOCK" -m rename l true
	"$PROBE" blocked "${PID[waiter]}" # it finds the second one, and waits for the first's holder
	let_go
	ended waiter 0
	[ "$(ls -d l*)" = l ]
	[ ! -e ran ]
}

@test "rename with names of its own: a refusal and --who say who holds it" {
	export SEMLOCK_CRASH=filesystem.local:fail=5
	SEMLOCK=$CRASHABLE_SEMLOCK
	"$SEMLOCK" -m rename --init l true
	expect_status 0 "$SEMLOCK" -m rename --who l
	hold_lock -m rename l
	refused 1 "held by ${COMMAND[holder]} " "$SEMLOCK" -v -n -m rename l true
	expect_status 1 "$SEMLOCK" -m rename --who l
	[[ $out == *" ${COMMAND[holder]} "* ]] || complain "$out"
	unset SEMLOCK_CRASH # who goes by flock sees it as well
	expect_status 1 "$SEMLOCK" -m rename --who l
	[[ $out == *" ${COMMAND[holder]} "* ]] || complain "$out"
	let_go
}
