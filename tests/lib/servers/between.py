# SPDX-License-Identifier: MIT
"""A proxy before a server: passes bytes on, until a test has it cut a reply.

usage: between.py HOST:PORT DIR [PORT]     prints READY and its own port

DIR/faults/cut-reply: the next data of the server is not passed on; both connections are closed, and the file is
removed. A number in the file: that many reads of the server's data are passed on before.  A second number: so many times.
DIR/faults/version: a PostgreSQL server seems to be of that major version, a number of two digits.
"""
import os
import re
import select
import socket
import sys
import threading

host, port = sys.argv[1].rsplit(":", 1)
os.makedirs(os.path.join(sys.argv[2], "faults"), exist_ok=True)
cut = os.path.join(sys.argv[2], "faults", "cut-reply")
version = os.path.join(sys.argv[2], "faults", "version")


def numbers(text):
    words = text.split()
    return int(words[0]) if words else 0, int(words[1]) if len(words) > 1 else 1


def cuts():
    try:
        with open(cut) as f:
            left, times = numbers(f.read())
        if left == 0 and times == 1:
            os.unlink(cut)
        else:
            with open(cut, "w") as f:
                f.write("%d %d" % (max(left - 1, 0), times - (left == 0)))
        return left == 0
    except FileNotFoundError:
        return False


def told(data):
    try:
        with open(version, "rb") as f:
            return re.sub(rb"(?<=server_version\0)\d\d", f.read(2), data)
    except FileNotFoundError:
        return data


def between(client):
    server = socket.create_connection((host, int(port)))
    while True:
        ready, _, _ = select.select([client, server], [], [])
        for one in ready:
            data = one.recv(65536)
            if one is server and cuts():
                data = b""
            if not data:
                client.close()
                server.close()
                return
            if one is server:
                client.sendall(told(data))
            else:
                server.sendall(data)


listener = socket.create_server(("127.0.0.1", int((sys.argv + ["0"])[3])))
sys.stdout.write("READY %d\n" % listener.getsockname()[1])    # one write: a reader may look between two
sys.stdout.flush()
while True:
    threading.Thread(target=between, args=[listener.accept()[0]], daemon=True).start()
