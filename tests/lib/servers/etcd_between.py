# SPDX-License-Identifier: MIT
"""A proxy before an etcd, with faults on demand.

usage: etcd_between.py HOST:PORT DIR        prints READY and its own port; DIR/between.log gets a line per call, and per connection

A fault is a file DIR/faults/NAME, where CALL is login, grant, revoke, keepalive, txn or watch:
  stop-CALL   hold back CALL, and all behind it, until the file is removed
  lose-CALL   do CALL, remove the file, and end the connection without a reply
  mute-CALL   do CALL, and pass none of its answer on
  say-CALL    do CALL, and answer with the file: lines of KIND FLAGS PAYLOAD, a frame each;
              the payload as hexadecimal digits, "-" if there is none
  flood-CALL  the same, with the last frame again and again, without end
  late-CALL   rename the file held-CALL, and do CALL when that is removed, without a reply: as a member that stands still
  slow-CALL   the file has seconds: the answers to CALL begin so late, and what is behind them on the connection waits
  hush-CALL   remove the file, and pass nothing on any more on the connection of CALL, which stays open
A number in the file of stop, late, mute or hush: so many of CALL pass before.

gRPC comes in frames of HTTP/2; a call is known by its path, which libcurl sends in the Huffman code of HPACK.
"""
import os
import socket
import sys
import threading
import time

DATA, HEADERS, SETTINGS, GOAWAY = 0, 1, 4, 7
END_STREAM, ACK = 1, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NO_TABLE = b"\0\1\0\0\0\0"    # a setting: the headers of a call refer to no earlier ones
CALLS = {"login": "Auth/Authenticate", "grant": "Lease/LeaseGrant", "revoke": "Lease/LeaseRevoke",
         "keepalive": "Lease/LeaseKeepAlive", "txn": "KV/Txn", "watch": "Watch/Watch"}
# The codes of five, six and seven bits, in their order.
CODES = [(5, 0, "012aceiost"), (6, 20, " %-./3456789=A_bdfghlmnpru"), (7, 92, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz")]

host, port = sys.argv[1].rsplit(":", 1)
faults = os.path.join(sys.argv[2], "faults")
os.makedirs(faults, exist_ok=True)
log = open(os.path.join(sys.argv[2], "between.log"), "a", buffering=1)


def huffman(text):
    codes = {c: format(first + i, "0%db" % bits) for bits, first, chars in CODES for i, c in enumerate(chars)}
    bits = "".join(codes[c] for c in text)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


PATHS = {huffman("/etcdserverpb." + path): call for call, path in CALLS.items()}


def fault(kind, call):
    return os.path.join(faults, "%s-%s" % (kind, call))


def due(kind, call):
    try:
        with open(fault(kind, call)) as f:
            left = int(f.read() or 0)
    except FileNotFoundError:
        return False
    if left:
        with open(fault(kind, call), "w") as f:
            f.write(str(left - 1))
    return left == 0


def read(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def do_late(call, frames):
    while os.path.exists(fault("held", call)):
        time.sleep(0.01)
    server = socket.create_connection((host, int(port)))
    server.sendall(PREFACE)
    Between.send(server, SETTINGS, 0, 0, b"")
    for kind, flags, payload in frames:
        if kind in (DATA, HEADERS):    # not that the client has given it up
            Between.send(server, kind, flags, 1, payload)
    for kind, flags, stream, payload in Between.frames(server):
        if stream == 1 and flags & END_STREAM:
            log.write("late %s\n" % call)
            return


class Between:
    def __init__(self, client):
        self.client, self.server = client, socket.create_connection((host, int(port)))
        log.write("connection\n")
        self.calls = {}    # per stream
        self.held = {}     # frames, per stream
        self.mute = set()  # streams
        self.slowed = set()
        self.hushed = False
        for one in (self.client, self.server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self, direction):
        try:
            direction()
        except (OSError, EOFError):
            pass
        for one in (self.client, self.server):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    @staticmethod
    def frames(connection):
        while True:
            head = read(connection, 9)
            payload = read(connection, int.from_bytes(head[:3], "big"))
            yield head[3], head[4], int.from_bytes(head[5:], "big"), payload

    @staticmethod
    def send(connection, kind, flags, stream, payload):
        connection.sendall(len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload)

    def ask(self):
        self.server.sendall(read(self.client, len(PREFACE)))
        for kind, flags, stream, payload in self.frames(self.client):
            if kind == SETTINGS and not flags & ACK:
                payload += NO_TABLE    # which would lack the headers of a mute call
            if kind == HEADERS:
                call = next((call for path, call in PATHS.items() if path in payload), "other")
                self.calls[stream] = call
                self.wait(call)
                self.hush(call)
                self.hold(call, stream)
                if due("mute", call):
                    self.mute.add(stream)
            if stream in self.held:
                self.held[stream].append((kind, flags, payload))
                continue
            self.send(self.server, kind, flags, stream, payload)

    @staticmethod
    def wait(call):
        if due("stop", call):
            log.write("stop %s\n" % call)
            while os.path.exists(fault("stop", call)):
                time.sleep(0.01)

    def hush(self, call):
        if due("hush", call):
            self.hushed = True
            os.unlink(fault("hush", call))
            log.write("hush %s\n" % call)
            threading.Event().wait()

    def hold(self, call, stream):
        if due("late", call):
            os.rename(fault("late", call), fault("held", call))
            log.write("held %s\n" % call)
            self.held[stream] = []
            threading.Thread(target=do_late, args=[call, self.held[stream]], daemon=True).start()

    @staticmethod
    def delay(call):
        try:
            with open(fault("slow", call)) as f:
                seconds = float(f.read())
        except FileNotFoundError:
            return
        log.write("slow %s\n" % call)
        time.sleep(seconds)

    def says(self, call, stream):
        floods = os.path.exists(fault("flood", call))
        try:
            with open(fault("flood" if floods else "say", call)) as f:
                frames = [line.split() for line in f]
        except OSError:
            return False
        for kind, flags, payload in frames:
            payload = bytes.fromhex(payload.strip("-"))
            self.send(self.client, int(kind), int(flags), 0 if int(kind) == GOAWAY else stream, payload)
        if floods:
            log.write("flood %s\n" % call)
            frame = len(payload).to_bytes(3, "big") + bytes([int(kind), int(flags)]) + stream.to_bytes(4, "big") + payload
            while True:
                self.client.sendall(frame * 100)
        self.calls[stream] = "said"
        log.write("said %s\n" % call)
        return True

    def answer(self):
        for kind, flags, stream, payload in self.frames(self.server):
            call = self.calls.get(stream) if kind in (DATA, HEADERS) else None
            if kind == SETTINGS and not flags & ACK:
                payload += NO_TABLE    # a late call comes on another connection
            if call and os.path.exists(fault("lose", call)):
                os.unlink(fault("lose", call))
                log.write("lost %s\n" % call)
                return
            if call and stream not in self.slowed:
                self.slowed.add(stream)
                self.delay(call)
            if call == "said" or (call and self.says(call, stream)):
                continue
            if call and flags & END_STREAM:
                log.write("%s\n" % call)
            if not (self.hushed or (call and stream in self.mute)):
                self.send(self.client, kind, flags, stream, payload)


listener = socket.create_server(("127.0.0.1", 0))
sys.stdout.write("READY %d\n" % listener.getsockname()[1])    # one write: a reader may look between two
sys.stdout.flush()
while True:
    between = Between(listener.accept()[0])
    for direction in (between.ask, between.answer):
        threading.Thread(target=between.run, args=[direction], daemon=True).start()
