# SPDX-License-Identifier: MIT
# machines.bash - starts and ends the machines server, a and b, and runs commands there; to be sourced.
# WORK is the directory of their disks and sockets, LAB the directory made by build, LEASE in seconds.
# shellcheck shell=bash

declare -A ssh_port qemu_pid
machines=(server a b)

free_ports() {
	python3 -c 'import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in sys.argv[1:]]
print(*(s.getsockname()[1] for s in sockets))' "${machines[@]}"
}

# The two ends of a wire are two sockets: either end may start first.  card END OTHER-END LAST-BYTES
card() {
	echo -netdev "dgram,id=wire-$1,local.type=unix,local.path=$WORK/$1.wire,remote.type=unix,remote.path=$WORK/$2.wire" \
		-device "virtio-net-pci,netdev=wire-$1,id=card-$1,mac=52:54:00:00:$3"
}

# machine_start MACHINE - machine_wait waits until it is up.
machine_start() {
	local cards
	case $1 in
	server) cards="$(card server-a a 00:0a) $(card server-b b 00:0b)" ;;
	*) cards=$(card "$1" "server-$1" "0$1:01") ;;
	esac
	if [[ ! -e $WORK/$1.disk ]]; then
		truncate -s 128M "$WORK/$1.disk"
		mke2fs -q -t ext4 "$WORK/$1.disk"
	fi
	: >"$WORK/$1.console"
	# shellcheck disable=SC2086 # $cards is a list
	qemu-system-x86_64 -accel tcg,tb-size=96 -cpu max,pmu=off -smp 1 -m 384 -no-user-config -nodefaults -display none \
		-serial "file:$WORK/$1.console" -monitor "unix:$WORK/$1.monitor,server=on,wait=off" \
		-kernel "$LAB/kernel" -initrd "$LAB/initrd.gz" \
		-append "console=ttyS0 quiet mitigations=off random.trust_cpu=on panic=1 machine=$1 lease=$LEASE referee=$referee_port" \
		-drive "file=$LAB/root.img,if=virtio,format=raw,snapshot=on" -drive "file=$WORK/$1.disk,if=virtio,format=raw" \
		$cards -netdev "user,id=outside,hostfwd=tcp:127.0.0.1:${ssh_port[$1]}-:22" \
		-device virtio-net-pci,netdev=outside,mac=52:54:00:00:00:0f -device virtio-rng-pci \
		-virtfs "local,path=$WORK/programs,mount_tag=host,security_model=none,readonly=on" \
		-virtfs "local,path=$WORK/shared,mount_tag=shared,security_model=none" \
		</dev/null >"$WORK/$1.qemu" 2>&1 &
	qemu_pid[$1]=$!
}

# on MACHINE COMMAND - its shell runs the command; standard input is empty.
on() {
	ssh -F none -o LogLevel=ERROR -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
		-o ControlMaster=auto -o ControlPath="$WORK/$1.ssh" -o ControlPersist=60 -o ConnectTimeout=10 \
		-i "$LAB/key" -p "${ssh_port[$1]}" root@127.0.0.1 "${@:2}" </dev/null
}

machine_wait() {
	local tries
	for ((tries = 0; tries < 1200; tries++)); do
		if grep -qs '^up' "$WORK/$1.console" && on "$1" true; then
			on "$1" 'for try in 1 2 3; do ! busybox ping -c 1 -W 5 server >/dev/null || exit 0; done; exit 1' && return
			break
		fi
		kill -0 "${qemu_pid[$1]}" || break
		sleep 0.1
	done
	echo "machine $1 does not start: $(tail -n 3 "$WORK/$1.console" "$WORK/$1.qemu")" >&2
	return 1
}

# Cuts the power: no process and no kernel of the machine can end its sessions.
power_off() {
	[[ -n ${qemu_pid[$1]-} ]] || return 0
	kill -KILL "${qemu_pid[$1]}"
	wait "${qemu_pid[$1]}" 2>/dev/null
	unset "qemu_pid[$1]"
	ssh -F none -o ControlPath="$WORK/$1.ssh" -O exit x 2>/dev/null
	rm -f "$WORK/$1.ssh"
}

# link MACHINE on|off - the machine's wire to the server; `on` still reaches the machine.
link() {
	python3 - "$WORK/$1.monitor" "set_link card-$1 $2" <<-'END'
		import socket, sys
		monitor = socket.socket(socket.AF_UNIX)
		monitor.connect(sys.argv[1])
		def prompt():
		    text = b""
		    while not text.endswith(b"(qemu) "):
		        text += monitor.recv(4096)
		prompt()
		monitor.sendall(sys.argv[2].encode() + b"\n")
		prompt()
	END
}

# Now and then a started machine gets no packets from the server: start it again.
machines_up() { # MACHINE...
	local machine try
	for try in 1 2 3; do
		for machine; do machine_start "$machine"; done
		if all_wait "$@"; then return; fi
		echo "# try $try: not all machines are up"
		for machine; do power_off "$machine"; done
	done
	return 1
}

all_wait() { # MACHINE...
	local machine
	for machine; do machine_wait "$machine" || return; done
}

machines_start() {
	read -r 'ssh_port[server]' 'ssh_port[a]' 'ssh_port[b]' < <(free_ports)
	machines_up "${machines[@]}"
}

machines_stop() {
	local machine
	for machine in "${machines[@]}"; do power_off "$machine"; done
}
