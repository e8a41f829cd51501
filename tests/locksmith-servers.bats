#!/usr/bin/env bats
# The same on servers that behave differently: vsftpd, whose every refusal has the same words and which
# has no MLST, and sftp. Each is started here, on loopback, without privileges where it can be.

load locksmith

setup() {
	[ -n "$LOCKSMITH" ] || skip "built without the network methods"
	DIR=$(mktemp -d "$BATS_TEST_TMPDIR/XXXXXX")
	chmod 755 "$DIR" "$BATS_TEST_TMPDIR"
	export HOME=$DIR
	unset NETRC SEMLOCK_CACERT SEMLOCK_USER SEMLOCK_PASSWORD
}

teardown() {
	[ -n "$LOCKSMITH" ] || return 0
	smiths_stop_all
	[ -z "$SERVER" ] || { kill -KILL "$SERVER" 2>/dev/null; wait "$SERVER" 2>/dev/null; } || true
	[ -z "$BARE" ] || rm -rf "$BARE"
}

free_port() {
	/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Waits until somebody listens on the port.
listening() {
	local end
	end=$((SECONDS + LINE_SECONDS))
	until (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do
		((SECONDS < end)) || return 1
		kill -0 "$SERVER" || return 1
	done
}

vsftpd_server() {
	command -v vsftpd >/dev/null || [ -x /usr/sbin/vsftpd ] || skip "no vsftpd here"
	PORT=$(free_port)
	# Its own user must get at it, which bats' directories do not allow.
	BARE=$(mktemp -d /tmp/semlock-vsftpd.XXXXXX)
	mkdir -p "$BARE/root/pub" "$BARE/empty"
	cat >"$BARE/conf" <<-END
		listen=YES
		listen_address=127.0.0.1
		listen_port=$PORT
		background=NO
		run_as_launching_user=YES
		anonymous_enable=YES
		local_enable=NO
		write_enable=YES
		anon_mkdir_write_enable=YES
		anon_other_write_enable=YES
		anon_upload_enable=YES
		anon_umask=022
		anon_root=$BARE/root
		secure_chroot_dir=$BARE/empty
		seccomp_sandbox=NO
		xferlog_enable=NO
	END
	chmod 755 "$BARE"
	local as=()
	if [ "$(id -u)" -eq 0 ]; then
		chown -R nobody "$BARE"
		as=(setpriv --reuid nobody --regid nogroup --clear-groups)
	fi
	chmod 555 "$BARE/root"
	apart "${as[@]}" "$(PATH=$PATH:/usr/sbin command -v vsftpd)" "$BARE/conf" >"$DIR/server.log" 2>&1 </dev/null &
	SERVER=$!
	listening "$PORT"
	URL=ftp://anonymous@127.0.0.1:$PORT/pub
}

sftp_server() {
	[ -x /usr/sbin/sshd ] || skip "no sshd here"
	curl --version | grep -qw sftp || skip "libcurl has no sftp"
	PORT=$(free_port)
	[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f "$DIR/host"
	ssh-keygen -q -t ecdsa -m PEM -N '' -f "$DIR/user"
	mkdir "$DIR/locks"
	cat >"$DIR/conf" <<-END
		Port $PORT
		ListenAddress 127.0.0.1
		HostKey $DIR/host
		AuthorizedKeysFile $DIR/user.pub
		PidFile none
		UsePAM no
		StrictModes no
		PermitRootLogin yes
		Subsystem sftp internal-sftp
	END
	apart /usr/sbin/sshd -f "$DIR/conf" -D -e >"$DIR/server.log" 2>&1 </dev/null &
	SERVER=$!
	listening "$PORT"
	printf '[127.0.0.1]:%s %s\n' "$PORT" "$(cut -d' ' -f1,2 "$DIR/host.pub")" >"$DIR/known"
	SEMLOCK_USER=$(id -un)
	export SEMLOCK_KNOWN_HOSTS=$DIR/known SEMLOCK_SSH_KEY=$DIR/user SEMLOCK_USER
	URL=sftp://127.0.0.1:$PORT$DIR/locks
}

# What must be so on all of them.
all_of_it() {
	run_smith --check "$URL/L"
	[ "$status" -eq 0 ]
	none -q "^CHECK no " <<<"$output"
	smith a --ttl=2 "$URL/L"
	expect a OK
	smith b --ttl=2 --interval=0.1 "$URL/L"
	expect b WAIT
	[ "$(field "$LINE" pid)" = "$$" ]
	expect a HELD
	expect a HELD
	expect a HELD
	run_smith --no-wait "$URL/L"
	[ "$status" -eq 1 ]
	run_smith --who "$URL/L"
	[ "$status" -eq 1 ]
	kill -KILL "${SMITH_PID[a]}"
	expect b OK
	grep -q "taken over" "$DIR/b.err"
	unlock b
	[ "$STATUS" -eq 0 ]
	run_smith --who "$URL/L"
	[ "$status" -eq 0 ]
	smith r1 --mode=shared "$URL/L"
	expect r1 OK
	smith r2 --mode=shared "$URL/L"
	expect r2 OK
	run_smith --no-wait "$URL/L"
	[ "$status" -eq 1 ]
	run_smith --no-wait "$URL/none/L"
	[ "$status" -eq 73 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"missing, or closed to us)" ]]
}

@test "vsftpd" {
	vsftpd_server
	all_of_it
	run_smith --no-wait "ftp://anonymous@127.0.0.1:$PORT/L"
	[ "$status" -eq 73 ]
	[[ $output == *"is there)" ]]
}

@test "sftp" {
	sftp_server
	all_of_it
}

@test "sftp: an unknown host key is 69, a wrong key 77" {
	sftp_server
	: >"$DIR/nobody"
	SEMLOCK_KNOWN_HOSTS=$DIR/nobody run_smith --no-wait "$URL/L"
	[ "$status" -eq 69 ]
	ssh-keygen -q -t ecdsa -m PEM -N '' -f "$DIR/other"
	SEMLOCK_SSH_KEY=$DIR/other run_smith --no-wait "$URL/L"
	[ "$status" -eq 77 ]
}
