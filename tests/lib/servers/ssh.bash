# SPDX-License-Identifier: MIT
# An sshd on a free port of 127.0.0.1, for the tests; its host key, and the key that it lets in, are its own.  Needs DIR.
#
# ssh_server [PATH]    starts it; its sessions have PATH, by default that of the tested semlock; sets PORT and SERVER, its
#                      pid, URL, a lock's, which is the file DIR/nightly; SSH_LISTEN: on that address
# sshd_again LINE      starts it again, with this line in its configuration
# ssh_known HOST       its key is known under that name or address, too
# ssh_stop             ends it and its sessions
# ssh_of, proxy_of NAME  the PID of the ssh of the semlock called NAME, and of its ProxyCommand
# ssh_by_proxy         each ssh from now on has a ProxyCommand
# link_cut NAME        no byte passes between the helper of that semlock and the far end
#
# shellcheck shell=bash disable=SC2034

ssh_server() {
	[ -x /usr/sbin/sshd ] || skip "no sshd here"
	[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f "$DIR/host"
	ssh-keygen -q -t ed25519 -N '' -f "$DIR/user"
	cat >"$DIR/conf" <<-END
		ListenAddress ${SSH_LISTEN-127.0.0.1}
		HostKey $DIR/host
		AuthorizedKeysFile $DIR/user.pub
		PidFile none
		UsePAM no
		StrictModes no
		PermitRootLogin yes
		MaxStartups 100
		# A shell's start-up files are no part of the tests, and the default exchange of keys costs half of a connection.
		SetEnv PATH=${1-${SEMLOCK%/*}:/usr/bin:/bin} HOME=$DIR
		KexAlgorithms curve25519-sha256
	END
	on_a_port sshd_on
	ssh_known 127.0.0.1
	export SEMLOCK_KNOWN_HOSTS=$DIR/known SEMLOCK_SSH_KEY=$DIR/user
	export SEMLOCK_SSH='ssh -F none'
	URL=ssh://127.0.0.1:$PORT$DIR/nightly
}

sshd_again() {
	kill -KILL "$SERVER"
	"$PROBE" gone "$SERVER"
	sed -i "/^${1%% *} /d" "$DIR/conf"
	printf '%s\n' "$1" >>"$DIR/conf"
	sshd_on
	listening "$PORT"
}

ssh_known() { printf '[%s]:%s %s\n' "$1" "$PORT" "$(cut -d' ' -f1,2 "$DIR/host.pub")" >>"$DIR/known"; }

# The ssh of a helper is its only child.
ssh_of() { pgrep -P "$(helper_of "$1")" -x ssh; }

proxy_of() { pgrep -P "$(ssh_of "$1")"; }

ssh_by_proxy() {
	export SEMLOCK_SSH="ssh -F none -o 'ProxyCommand=/usr/bin/python3 -S -E $SOURCE/tests/lib/servers/relay.py %h %p'"
}

link_cut() { kill -STOP "$(ssh_of "$1")"; }

# A session of sshd is a process of its own, and outlives the one that has accepted it.
ssh_stop() {
	[ -z "${SERVER-}" ] || kill -KILL "$SERVER" 2>/dev/null || true
}
