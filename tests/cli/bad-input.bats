#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Arguments that make no sense, and locks that cannot be: one line names them, the status is documented, no command runs.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# --name puts its lock file into the user's own place.
tidy() {
	rm -f "$(name_directory)/bats.$$"
}

# usage THING ARGS...: semlock ends with 64, names THING in one line, and makes no lock file "l".
usage() {
	refused 64 "$1" "$SEMLOCK" "${@:2}" || return
	if [ -e l ] || [ -e ran ]; then complain "semlock ${*:2}" "left something behind: $(ls)"; fi
}

# with_mount OPTIONS CMD...: CMD runs in a mount namespace, with a tmpfs of its own at mnt.
with_mount() {
	local options=$1
	shift
	mkdir -p mnt
	unshare -m sh -c 'mount -t tmpfs -o "$0" tmpfs mnt && exec "$@"' "$options" "$@"
}

@test "an option that is not there" {
	usage --no-such-option --no-such-option l touch ran
	usage Z -Z l touch ran
	usage Z -nZ l touch ran
}

@test "an unknown option after another in a bundle is the one that is named" {
	usage "-Z: " --verbose -nZ l touch ran
	usage "-Z: " --verbose -Zn l touch ran
}

@test "a long option that could be two: which ones" {
	usage "--no: ambiguous: --no-fork or --nonblock or --nonblocking" --no l touch ran
	usage "--st=3: ambiguous: --stale or --start or --status-fd" --st=3 l touch ran
}

@test "an option in the wrong place is not taken for a command, or for a lock" {
	usage "-w: options must precede LOCK" l -w 5 touch ran
	usage "--json: options must precede LOCK" --who l --json
	usage "no command given after --" l --
	expect_status 127 "$SEMLOCK" l -- -w
	expect_status 127 "$SEMLOCK" --name=bats.$$ -- -w
	expect_status 69 "$FLOCK" l -w 5 touch ran
}

@test "an empty word, as a variable that is not set leaves it" {
	usage "COMMAND is empty (unset variable?)" l ''
	usage "COMMAND is empty (unset variable?)" --name=bats.$$ ''
	usage "LOCK is empty (unset variable?)" '' touch ran
	usage "LOCK is empty (unset variable?)" -f '' l touch ran
	usage "LOCK is empty (unset variable?)" --who ''
	usage "LOCK is empty (unset variable?)" --who l ''
	usage "LOCK is empty (unset variable?)" ''
	usage "LOCK is empty (unset variable?)" -f l ''
	expect_status 69 "$FLOCK" l ''
	rm l
}

@test "a name that ends in a slash is a directory's" {
	ln -s nowhere/ link
	for name in d/ d// link; do
		refused 66 "$name: no such directory (its name ends in a slash)" "$SEMLOCK" $name touch ran
	done
	mkdir d
	expect_status 0 "$SEMLOCK" d/ true
	refused 66 "d/x/: no such directory (its name ends in a slash)" "$SEMLOCK" d/x/ touch ran
	[ ! -e ran ]
}

@test "standard output that takes nothing: 71" {
	for words in --help --version "--who l"; do
		# shellcheck disable=SC2086 # words
		for how in '>/dev/full' '>&-'; do
			expect_status 71 sh -c "exec \"\$0\" $words $how" "$SEMLOCK"
			[ "$err" = "semlock: cannot write to standard output" ] || complain "$words $how: $err"
		done
	done
}

@test "a URL that no program is for is no file" {
	mkdir none
	export SEMLOCK_LOCKSMITH_DIR=$PWD/none
	refused 69 "http://host/l: cannot start semlock-locksmith-http, the program for such URLs, in $PWD/none" "$SEMLOCK" http://host/l touch ran
	refused 69 "cannot start semlock-locksmith-file, the program for such URLs, in $PWD/none" "$SEMLOCK" --who file:///tmp/l
	refused 69 "cannot start semlock-locksmith-etcd, the program for such URLs, in $PWD/none" "$SEMLOCK" ETCD://host/l touch ran
	[ ! -e ran ]
	expect_status 66 "$FLOCK" http://host/l touch ran
	mkdir -p http:/host
	expect_status 0 "$SEMLOCK" ./http://host/l touch ran
	[ -e http:/host/l ]
}

@test "a URL that makes no sense" {
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-etcd" ] || skip "no locks on a server"
	export SEMLOCK_LOCKSMITH_DIR=$LOCKSMITH_DIR SEMLOCK_USER=u SEMLOCK_PASSWORD=p
	for url in etcd://127.0.0.1:99999/l ftp://127.0.0.1:abc/l sftp://127.0.0.1:0/l etcds://127.0.0.1:/l; do
		usage "$url: the port in the URL must be a number from 1 to 65535" -n $url touch ran
		usage "$url: the port in the URL must be a number from 1 to 65535" --who $url
	done
	usage "invalid host in the URL" -n etcd://:2379/l touch ran
	usage "an IPv6 address needs brackets: [::1]" -n etcd://::1/l touch ran
	usage "it must end in the lock's name" -n etcd://127.0.0.1 touch ran
	usage "a password in a URL can be read by everybody" -n etcd://a:b@127.0.0.1/l touch ran
}

@test "an option without its argument, and one with an argument that takes none" {
	usage w -w
	usage timeout --timeout
	usage "--shared=yes: option takes no argument" --shared=yes l touch ran
}

@test "numbers that are none, or out of range" {
	usage -1 -w -1 l touch ran
	usage abc -w abc l touch ran
	usage 256 -E 256 l touch ran
	usage -1 -E -1 l touch ran
	usage 1x -E 1x l touch ran
	usage E -E '' l touch ran
}

@test "a lease that is too short" {
	for url in etcd://127.0.0.1:1/l ftp://127.0.0.1:1/l; do
		usage "--ttl: a lease lasts at least 2 seconds" --ttl 1.9 $url touch ran
	done
}

@test "without LOCK, COMMAND or the string of -c semlock says what is missing" {
	usage "no LOCK given"
	refused 64 '' "$SEMLOCK" -n
	usage l l
	usage c l -c
	usage c l -c 'touch ran' more
}

@test "what the method cannot do is refused and not ignored" {
	usage start -m flock --start 0 l touch ran
	usage length -m flock --length=10 l touch ran
	usage nosuch -m nosuch l touch ran
	usage -o -F -o l touch ran
	usage rm -F --rm l touch ran
	usage u -u l touch ran
}

@test "--rm where there is no plain file to remove: 64" {
	mkdir directory
	refused 64 "directory: --rm removes only regular files" "$SEMLOCK" --rm directory touch ran
	[ -d directory ]
	exec {fd}>l
	refused 64 "--rm: the name of a descriptor's file is not known" "$SEMLOCK" --rm --fd $fd touch ran
	refused 64 "--mode: with a descriptor, no file is created" "$SEMLOCK" --mode 600 --fd $fd touch ran
	exec {fd}>&-
	[ ! -e ran ]
}

@test "a socket is nothing to lock: 66" {
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
	refused 66 "socket: cannot lock a socket" "$SEMLOCK" socket touch ran
	refused 66 "socket: cannot lock a socket" "$SEMLOCK" -m posix socket touch ran
	[ ! -e ran ]
}

@test "ranges that are none" {
	usage x --fcntl --start x l touch ran
	usage -1 --fcntl --start -1 l touch ran
	usage abc --fcntl --length abc l touch ran
	usage "exceeds the limit of 2305843009213693951" --start 2E l touch ran
	usage "exceeds the limit of 9223372036854775807" --length 8E l touch ran
	usage "exceed the largest file size" --start 1 --length 9223372036854775807 l touch ran
	for range in "--start 2305843009213693951" "--length 9223372036854775807" "--start 1 --length 7E"; do
		# shellcheck disable=SC2086 # words
		expect_status 3 "$SEMLOCK" $range l sh -c 'exit 3'
	done
}

@test "modes that are none" {
	usage 999 --mode 999 l touch ran
	usage rw --mode rw l touch ran
	usage 77777 --mode 77777 l touch ran
	usage "--mode: a symbolic link has no permissions" --mode 600 -m symlink l touch ran
}

@test "a descriptor that is not open, and what is none" {
	refused 65 "77: this descriptor is not open" "$SEMLOCK" 77
	refused 65 "77: this descriptor is not open" "$SEMLOCK" --fd 77 touch ran
	refused 65 "pass it on with 77>&77 after the command" "$SEMLOCK" 77
	usage "--status-fd 77: this descriptor is not open" --status-fd 77 l touch ran
	usage "--status-fd x: invalid descriptor number" --status-fd x l touch ran
	usage "--fd x: invalid descriptor number" --fd x touch ran
	usage "-u x: invalid descriptor number" -u x
	usage "no command given after 8x" 8x
	usage "no command given after l" -m rename --init l
	usage "FD 99999999999: invalid descriptor number" 99999999999
}

@test "a directory that is not there" {
	refused 66 "/nonexist/x: cannot create: its directory does not exist" "$SEMLOCK" /nonexist/x touch ran
	[[ $err == *"its directory does not exist" ]] || complain "$err"
	refused 66 missing/l "$SEMLOCK" missing/l touch ran
	: >plain
	refused 66 plain/l "$SEMLOCK" plain/l touch ran
	[ ! -e ran ]
	[ ! -e missing ]
}

@test "a bad name for a descriptor, or a removed working directory, is reported" {
	refused 66 "/dev/fd/77: does not exist, and no file can be created in its directory" "$SEMLOCK" /dev/fd/77 touch ran
	mkdir gone
	said=$(cd gone && rmdir ../gone && "$SEMLOCK" l true 2>&1) && complain "locked"
	[ "$said" = "semlock: l: does not exist, and no file can be created in its directory" ] || complain "$said"
}

@test "a name that is too long" {
	long=$(printf '%0300d' 0)
	refused 66 "$long" "$SEMLOCK" "$long" touch ran
	refused 66 "$long" "$SEMLOCK" -m excl "$long" touch ran
	path=$(printf './%.0s' {1..2100})l
	refused 66 "File name too long" "$SEMLOCK" "$path" touch ran
	refused 66 "File name too long" "$SEMLOCK" -m excl "$path" touch ran
	[ ! -e ran ]
}

@test "a link to a path that is too long" {
	mkdir directory
	ln -s "$(printf './%.0s' {1..2046})l" directory/link
	refused 66 "directory/link: cannot open: File name too long" "$SEMLOCK" directory/link touch ran
	[ ! -e ran ]
}

@test "a token beside which no name has room" {
	token=$(printf '%0245d' 0)
	refused 66 "cannot add .held to its name: File name too long" "$SEMLOCK" -m rename --init "$token" touch ran
	[ ! -e ran ] && [ ! -e "$token" ]
}

@test "a file that one may not open, in a directory where one may not make any" {
	echo precious >l
	chmod 000 l
	refused 66 l as_nobody "$SEMLOCK" l touch ran
	refused 66 l as_nobody "$SEMLOCK" -n l touch ran
	mkdir closed
	chmod 555 closed
	refused 66 closed/l as_nobody "$SEMLOCK" closed/l touch ran
	chmod 644 l
	[ "$(cat l)" = precious ]
	[ ! -e closed/l ]
	[ ! -e ran ]
}

@test "a directory that one may not look into is no busy lock" {
	mkdir closed
	: >closed/l
	chmod 000 closed
	for method in excl link mkdir symlink rename; do
		refused 66 "closed/l: " as_nobody "$SEMLOCK" -n -m $method closed/l touch ran
	done
	[ ! -e ran ]
}

@test "with ulimit -f 0, a lock that is written fails with 73; others work" {
	for method in excl link mkdir; do
		status=0
		said=$(ulimit -f 0; "$SEMLOCK" -m $method l touch ran 2>&1) || status=$?
		[ "$status" -eq 73 ] || complain "$method: $status, $said"
		[[ $said == "semlock: l: cannot write "*": File too large" ]] || complain "$method: $said"
	done
	[ "$(ls -A)" = bin ] || complain "left behind: $(ls -A)"
	hold_lock l
	fifos waiter
	start waiter bash -c 'ulimit -f 0; exec "$@"' bash "$SEMLOCK" l "$PROBE" hold waiter.up waiter.down
	"$PROBE" blocked "${PID[waiter]}"
	let_go
	ready waiter
	let_go waiter
	[ ! -e ran ]
}

@test "a full disk: 73" {
	namespaces -m
	refused 73 mnt/l with_mount nr_inodes=1 "$SEMLOCK" mnt/l touch ran
	[ ! -e ran ]
}

@test "on a read-only file system existing locks work; new ones fail with 73" {
	namespaces -m
	refused 73 mnt/l with_mount ro "$SEMLOCK" mnt/l touch ran
	[ ! -e ran ]
	expect_status 0 with_mount size=1m sh -c ': >mnt/l; mount -o remount,ro mnt; exec "$0" mnt/l echo locked' "$SEMLOCK"
	expect_out locked
}

@test "no descriptor left: 71" {
	timeout -s KILL 5 "$PROBE" with-closed 0 -- "$PROBE" rlimit-nofile 3 -- "$SEMLOCK" --version >/dev/null ||
		skip "this build cannot start with one descriptor (a sanitizer's runtime needs more)"
	refused 71 l "$PROBE" with-closed 0 -- "$PROBE" rlimit-nofile 3 -- "$SEMLOCK" l touch ran
	[ ! -e ran ]
}

@test "no process left: 71" {
	root_only "limits another user's processes"
	command -v prlimit >/dev/null
	chmod 777 .
	without_leak_check
	refused 71 l prlimit --nproc=0 setpriv --reuid=65533 --regid=65533 --clear-groups \
		"$SEMLOCK" l touch ran
	[[ $err == *"the limit of processes is reached (ulimit -u"* ]] || complain "$err"
	expect_status 71 prlimit --nproc=0 setpriv --reuid=65533 --regid=65533 --clear-groups "$FLOCK" l touch ran
	[[ $err == "flock: l: cannot start a process: "* ]] || complain "$err"
	[ ! -e ran ]
}

@test "a name of odd characters is one line in a message" {
	odd=$'no\nsuch/\e[31mr\177ed'
	capture "$SEMLOCK" "$odd" touch ran
	[ "$status" -eq 66 ]
	[ "$(wc -l <.err)" -eq 1 ]
	[[ $err != *$'\e'* && $err != *$'\177'* ]]
	refused 66 "no/??x€: " "$SEMLOCK" $'no/\xff\xc2\x9bx€' touch ran
	expect_status 0 "$SEMLOCK" $'a\nb c' true
	[ -f $'a\nb c' ]
}

@test "under the name flock the same is refused with the same status" {
	for args in "--no-such-option l true" "-Z l true" "-E 256 l true" "-w abc l true" "l -c" "-F -o l true" "8x"; do
		# shellcheck disable=SC2086
		expect_status 64 "$FLOCK" $args
		[[ $err == "flock: "* ]]
	done
	[ ! -e l ]
}
