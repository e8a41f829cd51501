#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Sandboxes: the filters of coding agents and of containers, and Landlock.  In each of them everything runs, or says in
# one line why not.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

SANDBOXED=${PROBE%/*}/tools/sandboxed

prepare() {
	[ -z "${SANITIZED-}" ] || without_leak_check # which needs ptrace(2)
	export S=$SEMLOCK P=$PROBE SANDBOXED OUTSIDE=$$
}

# kind KIND: what follows is in this sandbox; skips the test if the kernel has none.
kind() {
	kind=$1
	capture "$SANDBOXED" "$kind" true
	[ "$status" -ne 69 ] || skip "$err"
	[ "$status" -eq 0 ] || complain "sandboxed $kind: $status, $err"
}

# The status of each, what it needs that a sandbox may forbid (a socket with a name, process descriptors), and the script.
# Each option is named by its long form.
scripts() {
	cat <<-'END'
		0 - $S L true
		0 - $S --exclusive --wait 1 L true
		7 - $S L $S --conflict-exit-code=7 --nonblock L true
		0 - $S --queue-max=1 L true
		0 - $S --supersede L true
		0 - $S --first L true
		0 - $S --replace --older=1h L true
		143 pidfd $S r sleep 60 & begun r && $S --wait=60 --replace r true || { s=$?; kill $!; exit $s; }; wait $!
		143 pidfd $S t sleep 60 & begun t && $S --toggle t true || { s=$?; kill $!; exit $s; }; wait $!
		0 - $S --shared L $S --shared --nonblock L true
		0 - $S --slots=4 --take=2 slots sh -c '[ "$SEMLOCK_SLOT" = 0,1 ]'
		0 - $S --file L2 L true
		0 - $S --rm --name=sandbox-of-$OUTSIDE true
		0 - exec 8>fd; $S --fd 8 true && $S 8 && $S --unlock 8
		0 - $S --nested L $S --nested L true
		0 - $S --mode=600 --rm M true
		0 - $S --method flock L true
		0 - $S --method ofd L true
		0 - $S --method posix L true
		0 - $S --method excl excl true
		0 - $S --method link link true
		0 - $S --method mkdir mkdir true
		0 - $S --method symlink symlink true
		0 - $S --method rename --init rename true
		1 - $S --method excl excl2 $S --method excl --nonblock excl2 true
		0 - $S --method mkdir --stale=60 --on-lost=TERM mkdir2 true
		76 - $S --method excl --on-lost=TERM lost sh -c 'rm lost; sleep 60'
		0 - $S --method excl killed sh -c 'kill -KILL $PPID'; $S --method excl -w 60 killed true
		0 - $S --fcntl --start=1 --length=2 L true
		5 - $S L --command 'exit 5'
		127 - $S --method excl L5 ./no-such-command
		127 - $S --close L ./no-such-command
		5 - $S --close L sh -c 'exit 5'
		5 - $S --no-fork L sh -c 'exit 5'
		5 - $S --die-with-parent L sh -c 'exit 5'
		5 - $S --die-with-parent=$OUTSIDE L sh -c 'exit 5'
		0 - $S --min-hold=.1 L true
		124 - $S --run-timeout=.1 --signal=INT --kill-after=60 L sleep 60
		137 - trap "" TERM; $S --run-timeout=.1 --kill-after=.1 L sleep 60
		0 - holds --hold h
		0 - holds --hold=$OUTSIDE h
		0 - holds --hold --method excl h2
		0 - holds --hold --ttl=60 h3
		0 socket id=$($S --hold=$OUTSIDE --detach --note=why d) || exit; $S --release="${id#OK id=}" d
		0 socket $S k sleep 60 & begun k; id=$($S --hold=$OUTSIDE --detach --keep-place -w .1 k); [ $? -eq 1 ] || { s=$?; kill $!; exit 69; }; id=${id#WAITING id=}; kill $!; $S --resume="$id" -w 60 k >resumed && $S --release="$id" k
		1 - $S w $S --who w >who; s=$?; grep -q '^held' who && exit $s
		0 - $S w $S --who --json w >who; grep -q '"holders"' who
		0 - $S --who >who; [ $? -le 1 ] # 1: this machine has locks
		0 - $S --held L || $S L $S --held L
		1 - $S L $S --quiet -n L true
		0 - $S --verbose L true 2>said
		0 - $S --status-fd=1 --log=log --note=why L true >said && grep -q '"lock":' log
		0 - $S --help >said && $S --version >said
		0 - SEMLOCK_LOCKSMITH_DIR=$PWD/helpers $S "demo://$PWD/far" true
	END
}

# What the scripts call.  begun LOCK: until the process $! holds LOCK.  holds OPTION... LOCK: a hold, which ends after OK.
functions() {
	cat >functions <<-'END'
		begun() {
			until $S --who "$1" 2>/dev/null | grep -q " sleep 60"; do
				kill -0 $! || return
			done
		}
		holds() {
			mkfifo in out
			$S "$@" <in >out &
			exec 9>in
			read -r ok <out
			[ "${ok%% *}" != OK ] || echo release >&9
			exec 9>&-
			rm in out
			wait $!
		}
	END
}

# runs_all [FORBIDDEN]: each script, in the sandbox; those that need what is FORBIDDEN are refused.
runs_all() {
	local forbidden=${1-} want needs script faults=''
	functions
	while read -r want needs script; do
		[ "$needs" != "$forbidden" ] || want=69
		capture timeout 60 "$SANDBOXED" "$kind" sh -c ". ./functions; $script"
		case $status,$want,$err in
		69,69,*"a sandbox forbids it"*) [ "$(wc -l <.err)" -eq 1 ] || faults+="$kind: more than a line: $script: $err"$'\n' ;;
		*"not permitted"* | *"a sandbox"*) faults+="$kind: $script: $status, $err"$'\n' ;;
		"$want,$want,"*) ;;
		*) faults+="$kind: $script: $status instead of $want: $err"$'\n' ;;
		esac
		rm -f log said who
	done < <(scripts)
	[ -z "$faults" ] || complain "$faults"
}

helpers() {
	mkdir helpers
	ln -s "$SOURCE/contrib/locksmith-demo" helpers/semlock-locksmith-demo
}

@test "each option and each method is in the list of what is tried in a sandbox" {
	scripts >list
	sed -n 's/^OPTION([A-Z_]*, "[^"]*", "\([^ "]*\).*/\1/p' "$SOURCE/src/cli/options.def" >options
	[ "$(wc -l <options)" -ge 45 ] || complain "$(cat options)"
	# the first spelling of -n is a short one
	sed -i 's/^nb$/nonblock/' options
	while read -r option; do grep -q -- "--$option\>" list || complain "--$option is tried nowhere" || return; done <options
	for method in $("$SEMLOCK" --help | sed -n 's/; made of files://; s/^METHOD: *//p'); do
		grep -q -- "--method $method " list || complain "$method is tried nowhere"
	done
}

@test "a sandbox refuses what it should, and nothing that semlock needs" {
	kind agent
	for what in 'socketpair my $a, my $b, 1, 1, 0 or die; shutdown $a, 1' 'socket my $a, 2, 1, 0' \
		'socketpair my $a, my $b, 1, 1, 0 or die; send $a, "x", 0' 'socket my $a, 1, 1, 0 or die; bind $a, pack "Sx14", 1'; do
		expect_status 0 perl -e "$what or die \$!"
		expect_status 1 "$SANDBOXED" agent perl -e "$what and die; exit(\$!{EPERM} ? 1 : 9)"
	done
	expect_status 0 "$SANDBOXED" agent perl -e 'socket my $a, 1, 1, 0 or die $!'
	expect_status 1 "$SANDBOXED" agent-no-unix perl -e 'socket my $a, 1, 1, 0 and die; exit($!{EPERM} ? 1 : 9)'
	expect_status 1 "$SANDBOXED" container unshare --user true
	expect_status 64 "$SANDBOXED" cellar true
	expect_status 127 "$SANDBOXED" agent ./no-such-command
}

@test "the sandbox of a coding agent: everything runs, or says it is forbidden" {
	kind agent
	helpers
	runs_all socket
}

@test "a sandbox that forbids all sockets of AF_UNIX as well: the same" {
	kind agent-no-unix
	helpers
	runs_all socket
}

@test "the default profile of a container: all runs, but what stops a holder" {
	kind container
	helpers
	runs_all pidfd
}

@test "the scopes of Landlock: everything within one of them runs" {
	kind landlock
	helpers
	runs_all
}

@test "in an agent's sandbox a killed semlock and a limit end the whole command" {
	local way
	kind agent
	mkfifo started
	for way in --die-with-parent --run-timeout=60 -o "-m posix"; do
		# shellcheck disable=SC2086 # words
		start inside "$SANDBOXED" agent "$SEMLOCK" $way L sh -c 'sleep 1000 & echo $! >started; wait'
		read -r child <started
		kill -KILL "${PID[inside]}"
		ended inside 137
		"$PROBE" gone "$child" || complain "$way"
		expect_status 0 "$SEMLOCK" -w 60 L true
	done
	start inside "$SANDBOXED" agent "$SEMLOCK" --run-timeout="$(stretched 2)" L sh -c 'sleep 1000 & echo $! >started; wait'
	read -r child <started
	ended inside 124
	"$PROBE" gone "$child"
}

@test "--release and --resume from another Landlock domain: 69, the hold stays" {
	kind landlock
	expect_status 0 "$SEMLOCK" --hold=$$ --detach --run-timeout=10m d
	id=${out#OK id=}
	for way in --release --resume; do
		refused 69 "a sandbox forbids it" "$SANDBOXED" landlock "$SEMLOCK" $way="$id" d
		[[ $err == *Landlock* ]]
		refused 69 "a sandbox forbids it" "$SANDBOXED" agent "$SEMLOCK" $way="$id" d
		refused 69 "a sandbox forbids it" "$SANDBOXED" agent-no-unix "$SEMLOCK" $way="$id" d
	done
	expect_status 1 "$SEMLOCK" -n d true
	expect_status 0 "$SEMLOCK" --release="$id" d
}

@test "a holder outside of a Landlock domain is not stopped, and a line says so" {
	kind landlock
	hold_lock r
	for way in --replace --toggle; do
		capture "$SANDBOXED" landlock "$SEMLOCK" $way r touch ran
		case $status,$err in # whether it is seen at all differs from moment to moment
		69,"semlock: r: cannot stop the holder: "*sandbox | 77,"semlock: r: cannot stop the holder: "*sandbox) ;;
		*) complain "$way: $status, $err" ;;
		esac
		[ "$(wc -l <.err)" -eq 1 ]
	done
	[ ! -e ran ]
	let_go
}

@test "a refused socket that is no sandbox's work is 71, as before" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	refused 71 "cannot reach this hold" strace -qq -o trace -e trace=socket -e inject=socket:error=ENFILE \
		"$SEMLOCK" --release=1-1-00000000 d
}

@test "waiters in a sandbox and outside of it are served in order" {
	kind agent
	hold_lock L
	fifos one
	start one "$SANDBOXED" agent "$SEMLOCK" --die-with-parent L "$PROBE" hold one.up one.down
	eventually sh -c '"$0" --who L | grep -q "1 waiting"' "$SEMLOCK"
	queue_as two L
	let_go
	ready one
	let_go one
	ready two
	let_go two
}

@test "--hold=0 and --die-with-parent=0: the parent is outside the container" {
	refused 64 "--hold=0: the parent is outside this container" "$SEMLOCK" --hold=0 --detach L
	refused 64 "--die-with-parent=0: the parent is outside this container" "$SEMLOCK" --die-with-parent=0 L touch ran
	[ ! -e ran ]
	namespaces --pid --fork --mount-proc
	refused 64 "outside this container" unshare --pid --fork --mount-proc sh -c '"$0" --hold=$PPID L; exit $?' "$SEMLOCK"
}
