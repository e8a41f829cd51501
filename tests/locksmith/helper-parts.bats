#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the locksmith reads from servers and files, taken apart without any server.
load ../lib/locksmith

setup() { watch_over; }
teardown() { watched; }

@test "tokens, listings, URLs, protocol buffers, queue: good, bad and random" {
	[ -n "$LOCKSMITH_PARTS" ] || skip "built without the network methods"
	run "$LOCKSMITH_PARTS"
	[ "$status" -eq 0 ] || { echo "$output" >&2; false; }
	[ "$(grep -c '^ok' <<<"$output")" -eq 11 ]
}

# says WHAT ARG...: status 64, and this one line in the protocol
says() {
	local what=$1
	shift
	run_smith "$@"
	[ "$status" -eq 64 ] || { echo "$*: ended with $status"; false; }
	[ "$output" = "ERR 64 $what" ] || { echo "$*: $output"; false; }
}

@test "a bad command line of the locksmith is refused in the protocol" {
	for word in --mode=odd --slots=0 --slots=x --ttl=1 --ttl=x --wait=x --pid=0; do
		says "invalid $word" "$word" ftp://host/lock
	done
	says "unknown or incomplete option: --what" --what ftp://host/lock
	says "one URL is needed"
	says "one URL is needed" --mode=exclusive ftp://host/lock ftp://host/other
	says "more than 16 hosts in the URL" "etcd://$(seq -s , 17)/lock"
	for port in 0 +1 '1 ' 65536 99999 000080 99999999999999999999 abc 1x x1 -1 ''; do
		for host in host "[::1]" "host,[::1]:1,host"; do
			says "the port in the URL must be a number from 1 to 65535" "etcd://$host:$port/lock"
			says "the port in the URL must be a number from 1 to 65535" "ftp://$host:$port/lock"
		done
	done
	says "invalid host in the URL" "sftp:///lock" # on etcd: ETCDCTL_ENDPOINTS
	for host in :1 ',' 'host,' ',host' "host:1," '[' ']' '[]' '[]:1' '[::1' '[::1]x' '[::1]x:1' '[1:2]' '[::g]' \
		"[$(printf '1:%.0s' {1..40})]" "ho st" "[::1] " 'h*' "h%41" 'h?x=1' "$(printf '%0264d' 0)"; do
		says "invalid host in the URL" "etcd://$host/lock"
	done
	for host in ::1 1:2:3 host:1:2; do
		says "invalid host in the URL (an IPv6 address needs brackets: [::1])" "sftp://$host/lock"
	done
	for path in '' / // ///; do
		says "the URL has no path: it must end in the lock's name" "etcd://host$path"
	done
	for path in %zz % %4 a%00b a%0ab a%7f "$(printf '%0512d' 0)"; do
		says "the path in the URL is invalid or too long" "ftp://host/$path"
	done
	for path in 'a?b=c' 'a#b' a%23b 'a*' 'a[1]' 'a{b}' 'a\b' 'a"b' a%2a; do
		says "the lock's name must not contain any of * ? # [ ] { } \" \\" "etcd://host/$path"
	done
	for path in . .. a/. a/.. %2e%2e a/../; do
		says "the URL must end in the lock's name, and $(sed 's,/$,,; s,.*/,,; s,%2e,.,g' <<<"$path") is none" "ftp://host/$path"
	done
	says "invalid user name in the URL" etcd://@host/lock
	says "invalid user name in the URL" etcd://a%0a@host/lock
	says "ftp:// takes one host" --no-wait ftp://u@host,other/lock
	run "$(locksmith_of ftp://)" --help
	[ "$status" -eq 0 ]
	[[ $output == usage:* ]]
}

# The loader says where the function is found that GnuTLS asks before it makes 100 KB of tables.
@test "GnuTLS, loaded by libcurl and libpq, builds no tables in a helper" {
	local helper found=0
	for helper in "$LOCKSMITH_DIR"/semlock-locksmith-{etcd,ftp,postgresql,s3}; do
		[ -x "$helper" ] && ldd "$helper" | grep -q libgnutls || continue
		LD_DEBUG=bindings "$helper" --version 2>&1 | grep -q "/libgnutls.* to $helper .*_gnutls_global_init_skip" ||
			{ echo "$helper: GnuTLS is initialized"; false; }
		found=$((found + 1))
	done
	[ $found -gt 0 ] || skip "no library here loads GnuTLS"
}

# offers yes|no WORD: so the manual has it, and $scheme's helper says WORD in its first line, or does not.
offers() {
	local said=no
	[[ " $offer " != *" $2 "* ]] || said=yes
	[ "$1" = "$said" ] || { echo "$scheme, $2: the manual says $1, the helper: $offer"; false; }
}

@test "the manual's table of servers agrees with what each helper offers" {
	local scheme schemes order both token rest offer seen=0
	export AWS_EC2_METADATA_DISABLED=true
	sed -n '/^\.SH WHICH ONE/,/^\.TE/p' "$SOURCE/man/semlock-servers.7" | awk -F'\t' 'NF == 6 && $1 != ""' >table
	[ "$(wc -l <table)" -eq 6 ]
	while IFS=$'\t' read -r schemes order both token rest; do
		for scheme in ${schemes//,/ }; do
			[ -x "$LOCKSMITH_DIR/semlock-locksmith-$scheme" ] || continue # this build is without it
			offer=$("$LOCKSMITH_DIR/semlock-locksmith-$scheme" --no-wait "$scheme://127.0.0.1:1/x" </dev/null 2>&1 | head -n 1)
			[[ $offer == "LOCKSMITH 2"* ]] || { echo "$scheme: $offer ($rest)"; false; }
			offers "$order" order
			offers "$both" shared
			offers "$both" slots
			offers "$token" token
			seen=$((seen + 1))
		done
	done <table
	[ $seen -gt 0 ] || skip "built without the network methods"
	scheme=demo offer=$("$SOURCE/contrib/locksmith-demo" --no-wait demo:///nowhere/x </dev/null | head -n 1)
	[ "$offer" = "LOCKSMITH 2" ] || { echo "demo: $offer"; false; }
}

@test "--help of a helper has the lease that it takes without --ttl" {
	local scheme lease rest
	while IFS=$'\t' read -r scheme rest; do
		lease=$(cut -f 4 <<<"$rest" | cut -d ' ' -f 1)
		scheme=${scheme%%,*}
		case $scheme in etcd | postgresql | s3 | ftp) ;; *) continue ;; esac
		[ -x "$LOCKSMITH_DIR/semlock-locksmith-$scheme" ] || continue # this build is without it
		"$LOCKSMITH_DIR/semlock-locksmith-$scheme" --help | grep -q "^  --ttl=SECS  *lease ($lease)$" || { echo "$scheme: $lease"; false; }
	done < <(sed -n '/^\.SH WHICH ONE/,/^\.TE/p' "$SOURCE/man/semlock-servers.7" | awk -F'\t' 'NF == 6 && $1 != ""')
}

@test "a test of the locksmith that hangs is ended, and has failed" {
	printf '%s\n' "load '$BATS_TEST_DIRNAME/../lib/locksmith'" 'setup() { watch_over; }' 'teardown() { watched; }' \
		'@test "hangs" {' 'sleep 1000' '}' >hangs.bats
	run env -i PATH="${PATH#"$BATS_LIBEXEC":}" TMPDIR="$PWD" PROBE="$PROBE" TEST_LIMIT=1 bats hangs.bats
	[ "$status" -eq 1 ] || { echo "$output"; false; }
	[[ $output == *"not ok 1 hangs"*"killed after 1 seconds: something hung"* ]] || { echo "$output"; false; }
	for file in "$SOURCE"/tests/*.bats "$SOURCE"/tests/*/*.bats; do
		grep -qE '^load .*HELPERS|watch_over|^load ../lib/helper-(etcd|ftp)$|timeout 60 "\$FOREACHMAIL"' "$file" || { echo "$file: its tests may hang for ever"; false; }
	done
}
