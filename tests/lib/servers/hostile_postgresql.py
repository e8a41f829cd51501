# SPDX-License-Identifier: MIT
"""A PostgreSQL server that lets everybody in, and then makes no sense.

usage: hostile_postgresql.py MODE [SENSIBLE]     prints READY and its port

The first SENSIBLE queries of a session (0) are answered as a lock that is taken is.  After that, by MODE:
  copy-in copy-out copy-both   a table is to be copied
  shape null nothing           a result of another shape; one that is all NULL; none
  rows row                     rows without end; one of a gigabyte
  notify notice settings results   messages of this kind, without end
"""
import itertools
import socket
import struct
import sys
import threading

mode, sensible = sys.argv[1], int((sys.argv + ["0"])[2])


def message(kind, content=b""):
    return kind + struct.pack("!i", len(content) + 4) + content


def setting(name, value):
    return message(b"S", name + b"\0" + value + b"\0")


def columns(n):
    return message(b"T", struct.pack("!h", n) + b"".join(b"c\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0) for _ in range(n)))


def row(values):
    return message(b"D", struct.pack("!h", len(values)) + b"".join(
        struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values))


DONE = message(b"C", b"SELECT 1\0")
READY = message(b"Z", b"I")
TAKEN = [b"5", None, b"t", b"f", b"", b""]
WIDTH = len(TAKEN)
MEGABYTE = b"x" * (1 << 20)


def nonsense():
    """What is sent for a query, piece by piece."""
    if mode.startswith("copy"):
        yield message({"in": b"G", "out": b"H", "both": b"W"}[mode[5:]], b"\0\0\0")
    elif mode == "shape":
        yield columns(2) + row([b"1", b"2"]) + DONE + READY
    elif mode == "null":
        yield columns(WIDTH) + row([None] * WIDTH) + DONE + READY
    elif mode == "nothing":
        yield READY
    elif mode == "rows":
        yield columns(WIDTH)
        yield from itertools.repeat(row([b"1" * 90] * WIDTH) * 99)
    elif mode == "row":
        yield columns(WIDTH) + b"D" + struct.pack("!ihi", 1 << 30, WIDTH, (1 << 30) - 99)
        yield from itertools.repeat(MEGABYTE)
    elif mode == "notify":
        yield from itertools.repeat(message(b"A", struct.pack("!i", 1) + b"semlock\0" + b"x" * 7000 + b"\0") * 9)
    elif mode == "notice":
        yield from itertools.repeat(message(b"N", b"SNOTICE\0VNOTICE\0C00000\0M" + b"x" * 7000 + b"\0\0") * 9)
    elif mode == "settings":
        yield from (setting(b"name%d" % i, b"x" * 7000) for i in itertools.count())
    elif mode == "results":
        yield from itertools.repeat(DONE * 99)


def read(client, size):
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def session(client):
    try:
        while True:
            size, code = struct.unpack("!ii", read(client, 8))
            read(client, size - 8)
            if code == 196608:
                break
            client.sendall(b"N")        # no TLS
        client.sendall(message(b"R", struct.pack("!i", 0)) + setting(b"server_version", b"15.0") +
                       setting(b"in_hot_standby", b"off") + setting(b"default_transaction_read_only", b"off") +
                       message(b"K", struct.pack("!ii", 1, 1)) + READY)
        for n in itertools.count():
            _, size = struct.unpack("!ci", read(client, 5))
            read(client, size - 4)
            if n < sensible:
                client.sendall(columns(WIDTH) + row(TAKEN) + DONE + READY)
                continue
            for piece in nonsense():
                client.sendall(piece)
    except (EOFError, OSError):
        pass


listener = socket.create_server(("127.0.0.1", 0))
sys.stdout.write("READY %d\n" % listener.getsockname()[1])    # one write: a reader may look between two
sys.stdout.flush()
while True:
    threading.Thread(target=session, args=[listener.accept()[0]], daemon=True).start()
