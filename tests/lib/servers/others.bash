# SPDX-License-Identifier: MIT
# vsftpd and sftp servers, for the tests.  Need DIR, a directory of the test's own.  Each sets URL, PORT
# and SERVER, its pid; vsftpd also BARE, a directory that is to be removed.

# Waits until a server listens on the port.
listening() {
	local fd end=$((SECONDS + LINE_SECONDS))
	until { exec {fd}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null; do
		((SECONDS < end)) || return 1
		kill -0 "$SERVER" || return 1
		nap 20
	done
	exec {fd}>&-
	kill -0 "$SERVER" # else another process listens there
}

# on_a_port CMD...: CMD starts a server on PORT.  Another process may take a port that was free: try another.
on_a_port() {
	local try
	for try in 1 2 3; do
		free_ports 1
		PORT=${PORTS[0]}
		"$@"
		if listening "$PORT"; then return; fi
	done
	cat "$DIR/server.log" >&2
	return 1
}

# vsftpd_on [CMD...]: run by CMD, if given
vsftpd_on() {
	apart "$@" "$(PATH=$PATH:/usr/sbin command -v vsftpd)" "$BARE/conf" "-olisten_port=$PORT" \
		>"$DIR/server.log" 2>&1 </dev/null &
	SERVER=$!
}

vsftpd_server() {
	command -v vsftpd >/dev/null || [ -x /usr/sbin/vsftpd ] || skip "no vsftpd here"
	# vsftpd's user must reach the files; bats' directories are closed to other users.
	BARE=$(mktemp -d "${TMPDIR:-/tmp}/semlock-vsftpd.XXXXXX")
	mkdir -p "$BARE/root/pub" "$BARE/empty"
	cat >"$BARE/conf" <<-END
		listen=YES
		listen_address=127.0.0.1
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
	on_a_port vsftpd_on "${as[@]}"
	URL=ftp://anonymous@127.0.0.1:$PORT/pub
}

sshd_on() {
	apart /usr/sbin/sshd -f "$DIR/conf" -p "$PORT" -D -e >"$DIR/server.log" 2>&1 </dev/null &
	SERVER=$!
}

sftp_server() {
	[ -x /usr/sbin/sshd ] || skip "no sshd here"
	curl --version | grep -qw sftp || skip "libcurl has no sftp"
	[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f "$DIR/host"
	ssh-keygen -q -t ecdsa -m PEM -N '' -f "$DIR/user"
	mkdir "$DIR/locks"
	cat >"$DIR/conf" <<-END
		ListenAddress 127.0.0.1
		HostKey $DIR/host
		AuthorizedKeysFile $DIR/user.pub
		PidFile none
		UsePAM no
		StrictModes no
		PermitRootLogin yes
		Subsystem sftp internal-sftp
	END
	on_a_port sshd_on
	printf '[127.0.0.1]:%s %s\n' "$PORT" "$(cut -d' ' -f1,2 "$DIR/host.pub")" >"$DIR/known"
	SEMLOCK_USER=$(id -un)
	export SEMLOCK_KNOWN_HOSTS=$DIR/known SEMLOCK_SSH_KEY=$DIR/user SEMLOCK_USER
	URL=sftp://127.0.0.1:$PORT$DIR/locks
}
