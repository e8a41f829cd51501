# SPDX-License-Identifier: MIT
# takes_anything.py SOCKET: a daemon that keeps each descriptor that it is sent, as a message bus does.
# takes_anything.py SOCKET LOCK COMMAND...: COMMAND locks descriptor 0, which is open on LOCK; then that is sent.
# takes_anything.py SOCKET LOCK: this process locks it, sends it, and lives on.
import array, fcntl, os, signal, socket, subprocess, sys

if len(sys.argv) == 2:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    server.bind(sys.argv[1])
    os.chmod(sys.argv[1], 0o777)
    open(sys.argv[1] + ".up", "w").close()
    while True:
        server.recvmsg(1, socket.CMSG_SPACE(4))
        open(sys.argv[1] + ".got", "w").close()
lock = os.open(sys.argv[2], os.O_RDWR if os.access(sys.argv[2], os.W_OK) else os.O_RDONLY)
if len(sys.argv) == 3:
    fcntl.flock(lock, fcntl.LOCK_EX)
else:
    subprocess.run(sys.argv[3:], stdin=lock, check=True)
client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
client.connect(sys.argv[1])
client.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [lock]).tobytes())])
while len(sys.argv) == 3:
    signal.pause()
