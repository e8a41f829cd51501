# SPDX-License-Identifier: MIT
# What the tests of the locksmiths share: several of them at once, spoken to line by line.
#
# smith NAME ARG...     starts one; its input stays open until "unlock NAME"
# expect NAME WORD      reads its next line, which must begin with WORD; sets LINE; after OK, tells START
# until_line NAME WORD  reads lines until one begins with WORD; sets LINE, and PASSED to those before it; the same
# expect_unstarted NAME as "expect NAME OK", but does not tell START
# tell NAME TEXT        sends it a line
# unlock NAME           ends its input and waits for it; sets STATUS
# smith_ended NAME      waits for one that ends by itself; sets STATUS
# with_lease TTL CMD... CMD with a $ttl that is long enough
# fill NAME, drain NAME leaves no room for its lines; makes room
# field LINE KEY        the value of KEY=... in a line
# free_ports N          sets PORTS
# now                   CLOCK_BOOTTIME in nanoseconds
# watch_over, watched   for setup and teardown: see watchdog.bash

SOURCE=${SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
# The last argument, a URL, selects the helper: etcd's or FTP's.
LOCKSMITH_DIR=${LOCKSMITH_DIR-}

declare -gA SMITH_IN SMITH_OUT SMITH_PID
export SEMLOCK_LOOK_EVERY=0.1 # the interval of a helper with crash points; by default two seconds
# shellcheck source=tests/lib/watchdog.bash
source "$SOURCE/tests/lib/watchdog.bash"
LINE_SECONDS=$((60 * SLOWNESS)) # a test fails if a line takes longer
# For leases and for pauses that tests wait out, which get longer with them: a helper that sleeps most of the time gets its
# turn on a busy machine sooner than a new process does.
PACE=$((SLOWNESS < 5 ? SLOWNESS : 5))

# free_ports N: sets PORTS to N ports of 127.0.0.1 on which no process listens.  They are none of the ephemeral range: a
# client that retries while its server is down may get the server's own port from the kernel, and connect to itself; and
# the server, started again, finds its port taken.
free_ports() {
	local end fd port
	PORTS=()
	read -r end _ </proc/sys/net/ipv4/ip_local_port_range
	if [ "$end" -le 11000 ]; then
		read -ra PORTS <<<"$(/usr/bin/python3 "$SOURCE/tests/lib/servers/ports.py" "$1")"
		return
	fi
	while [ ${#PORTS[@]} -lt "$1" ]; do
		port=$((10000 + (RANDOM * 32768 + RANDOM) % (end - 10000)))
		[[ " ${PORTS[*]} " != *" $port "* ]] || continue
		if { exec {fd}<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; then
			exec {fd}>&-
		else
			PORTS+=("$port")
		fi
	done
}

# python_server OUT ERR SCRIPT ARG...: starts a server of tests/lib/servers; its files are OUT and ERR.  When OUT has a line
# READY, SERVER is its PID, and PORT its port.  The tests of a file fork theirs off one Python, which they start first.
python_server() {
	local out=$1 err=$2 script=$SOURCE/tests/lib/servers/$3 fifo=${BATS_FILE_TMPDIR-}/nursery pid=none fd request
	shift 3
	: >"$out"
	if [ -z "${BATS_FILE_TMPDIR-}" ]; then
		apart /usr/bin/python3 "$script" "$@" >"$out" 2>"$err" </dev/null &
		SERVER=$!
		in_file "$out" READY || { cat "$err" >&2; return 1; }
		read -r _ PORT <"$out"
		return
	fi
	[ -p "$fifo" ] || mkfifo "$fifo"
	exec {fd}<>"$fifo" # a request waits there until it is read
	[ ! -e "$fifo.pid" ] || read -r pid <"$fifo.pid"
	if ! kill -0 "$pid" 2>/dev/null; then
		(cd / && exec {fd}>&- && apart /usr/bin/python3 -B "$SOURCE/tests/lib/servers/nursery.py" "$fifo" "${BATS_ROOT_PID:-$PPID}") \
			>"$fifo.out" 2>&1 </dev/null &
		echo $! >"$fifo.pid"
		disown
	fi
	[[ $out == /* ]] || out=$PWD/$out
	[[ $err == /* ]] || err=$PWD/$err
	rm -f .server
	printf -v request '%s\x1f' "$PWD" "$PWD/.server" "$out" "$err" "$script" "$@"
	printf '%s\n' "${request%?}" 1>&"$fd"
	in_file "$out" READY || { cat "$err" "$fifo.out" >&2; return 1; }
	exec {fd}>&-
	read -r SERVER <.server
	read -r _ PORT <"$out"
}

# server_kill: kill -9 of SERVER; its port is free then.
server_kill() {
	kill -KILL "$SERVER" 2>/dev/null || true
	"$PROBE" gone "$SERVER"
}

now() {
	local up
	# The same clock as `now`; no process is started on a busy machine.
	read -r up _ </proc/uptime
	printf '%s0000000\n' "${up/./}"
}

field() {
	local word
	for word in $1; do
		[[ $word == "$2="* ]] && printf '%s\n' "${word#*=}" && return
	done
	return 1
}

# have_locksmiths: this build has those of etcd and FTP.
have_locksmiths() { [ -x "$LOCKSMITH_DIR/semlock-locksmith-etcd" ] && [ -x "$LOCKSMITH_DIR/semlock-locksmith-ftp" ]; }

# need_locksmith ENGINE: skips the test if this build has none for that engine.
need_locksmith() { [ -x "$LOCKSMITH_DIR/semlock-locksmith-$1" ] || skip "this build has no locks by $1"; }

# locksmith_of ARG...: the program for the URL that is the last argument; find_locksmith sets LOCKSMITH to it.
locksmith_of() { find_locksmith "$@" && printf '%s\n' "$LOCKSMITH"; }

find_locksmith() {
	local scheme=${*: -1}
	LOCKSMITH=$LOCKSMITH_DIR/semlock-locksmith-${scheme%%:*}
	[ -x "$LOCKSMITH" ] || LOCKSMITH=$LOCKSMITH_DIR/semlock-locksmith-ftp
}

# Execs a program in the background without the tests' descriptors: its input does not end while another
# process has it open.
apart() {
	local fd
	for fd in "${SMITH_IN[@]}" "${SMITH_OUT[@]}"; do exec {fd}>&-; done
	exec 3>&- 4>&- 5>&- 6>&-
	exec "$@"
}

smith() {
	local name=$1 in out
	shift
	[ ! -e "$DIR/$name.in" ] || rm -f "$DIR/$name.in" "$DIR/$name.out"
	mkfifo "$DIR/$name.in" "$DIR/$name.out"
	find_locksmith "$@"
	# Open both ways, so that opening does not wait for the other side.
	exec {in}<>"$DIR/$name.in" {out}<>"$DIR/$name.out"
	SMITH_IN[$name]=$in SMITH_OUT[$name]=$out
	apart "$LOCKSMITH" "$@" <"$DIR/$name.in" >"$DIR/$name.out" 2>>"$DIR/$name.err" &
	SMITH_PID[$name]=$!
	expect "$name" LOCKSMITH
}

expect() {
	expect_line "$@" && started "$@"
}

expect_unstarted() { expect_line "$1" OK; }

# started NAME WORD: after OK, the command may run.
started() {
	[ "$2" != OK ] || [ -z "${SMITH_IN[$1]-}" ] || tell "$1" START
}

# next_word NAME WORD: reads a line into $LINE.  A helper may note at any time that a renewal has failed, which is left out
# unless WORD is NOTE.
next_word() {
	while IFS= read -r -t $LINE_SECONDS -u "${SMITH_OUT[$1]}" LINE; do
		if [[ $2 == NOTE || $LINE != "NOTE not renewed yet: "* ]]; then return; fi
	done
	echo "$1: no line, wanted $2" >&2
	return 1
}

expect_line() {
	next_word "$@" || return
	[[ $LINE == "$2" || $LINE == "$2 "* ]] || {
		echo "$1: wanted $2, got: $LINE" >&2
		return 1
	}
}

until_line() {
	PASSED=
	while IFS= read -r -t $LINE_SECONDS -u "${SMITH_OUT[$1]}" LINE; do
		[[ $LINE == "$2" || $LINE == "$2 "* ]] && { started "$@"; return; }
		PASSED+=$LINE$'\n'
	done
	echo "$1: no line that begins with $2; the last was: $LINE" >&2
	return 1
}

# after_waits NAME WORD...: the next line that does not say again what is waited for.  That is said anew when it has
# changed, as after another client's visit.
after_waits() {
	until_line "$@" || return
	! grep -v "^WAIT " <<<"${PASSED%$'\n'}" | grep .
}

tell() { printf '%s\n' "$2" >&"${SMITH_IN[$1]}"; }

smith_ended() {
	STATUS=0
	wait "${SMITH_PID[$1]}" || STATUS=$?
	unset "SMITH_PID[$1]"
}

unlock() {
	local in=${SMITH_IN[$1]}
	exec {in}>&-
	unset "SMITH_IN[$1]"
	smith_ended "$1"
}

# Whatever they end with; the names are free again.
smiths_stop_all() {
	local pid fd
	for pid in "${SMITH_PID[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	for fd in "${SMITH_IN[@]}" "${SMITH_OUT[@]}"; do exec {fd}>&-; done
	SMITH_PID=() SMITH_IN=() SMITH_OUT=()
}

# Tries CMD with a $ttl of TTL seconds, and if it fails with three and with nine times as much.  For what has to
# happen before a lease has ended, or a part of one: a busy machine may be late for a short lease, and a fault of
# the helper fails with any.  (In CMD, "||" is needed, and a lock of its own for each $ttl.)
with_lease() {
	local ttl least=$1 LINE_SECONDS PATIENCE
	shift
	least=$((least * PACE))
	for ttl in "$least" $((3 * least)) $((9 * least)); do
		LINE_SECONDS=$((60 * SLOWNESS + 2 * ttl)) PATIENCE=$((60 * SLOWNESS + 2 * ttl))
		if "$@"; then return; fi
		if declare -F smiths_stop_all >/dev/null; then smiths_stop_all; fi
	done
	complain "this failed with each lease, up to $ttl seconds: $*"
}

# Fills the pipe a byte at a time, up to its last byte, without waiting for room.
fill() { dd if=/dev/zero of="$DIR/$1.out" bs=1 oflag=nonblock 2>/dev/null || true; }
drain() { head -c 65536 <&"${SMITH_OUT[$1]}" >/dev/null; }

# Waits until a line of the file, mostly the server's log, matches the pattern.
in_file() {
	local end=$((SECONDS + LINE_SECONDS))
	if [ -x "$PROBE" ]; then
		"$PROBE" line "$1" "$2" $LINE_SECONDS && return
	else # the torture, by hand
		until grep -q -e "$2" "$1" 2>/dev/null || ((SECONDS > end)); do nap 20; done
		((SECONDS > end)) || return 0
	fi
	echo "no line $2 in $1" >&2
	cat "$1" >&2
	return 1
}

# Fails if grep finds it. (A "!" before a command makes no bats test fail.)
none() {
	if grep "$@"; then return 1; fi
}

# Runs the locksmith for one answer, without input.
run_smith() {
	find_locksmith "$@"
	run "$LOCKSMITH" "$@" </dev/null
	lines=("${lines[@]:1}") # without LOCKSMITH
	printf -v output '%s\n' "${lines[@]}"
	output=${output%$'\n'}
}

# A certificate authority, and a certificate by it for 127.0.0.1.
certificates() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ca -keyout "$DIR/ca.key" -out "$DIR/ca.pem" \
		2>/dev/null
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout "$DIR/leaf.key" -out "$DIR/leaf.csr" \
		2>/dev/null
	printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >"$DIR/ext"
	openssl x509 -req -in "$DIR/leaf.csr" -CA "$DIR/ca.pem" -CAkey "$DIR/ca.key" -CAcreateserial -days 2 \
		-extfile "$DIR/ext" -out "$DIR/leaf.pem" 2>/dev/null
	cat "$DIR/leaf.key" "$DIR/leaf.pem" >"$DIR/server.pem"
}
