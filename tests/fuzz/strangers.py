#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Servers that are none: each helper is given random answers, or answers that come slowly or have no end.

usage: strangers.py HELPERS ENGINE COUNT [SEED]     COUNT rounds, WORKERS (8) at a time; ENGINE is redis, ssh, s3, etcd, ftp or
                                                    postgresql; prints how they ended; exit status 1: one was wrong
       strangers.py serve DIR ENGINE drip|flood     prints READY and its port; DIR/URL is the lock's URL, DIR/env its
                                                    environment, for sh(1)

A round is a life of the helper in HELPERS: it looks (--no-wait), waits (--wait), or lists the holders (--who).  Its
server answers each request with a sensible answer, which was often changed at random places.  Every tenth round the
answer drips or has no end.  It is wrong if the helper does not end in time, ends by a signal or with an internal error,
prints a traceback, or a line that is not of the protocol, or has more than 32 MB."""
import glob
import json
import os
import random
import re
import shlex
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SLOWNESS = float(os.environ.get("SLOWNESS") or 1)
# Seconds.  A helper answers within three, to --who within ten, and then removes what it left on the server.  An FTP
# helper waits five more for a login, and ten for a request to make or remove a directory: if it gave up earlier, it
# could leave a directory that no lease ends.
ANSWER = {"--no-wait": 6 * SLOWNESS, "--wait=3": 9 * SLOWNESS, "--who": 12 * SLOWNESS}
FTP_REQUEST = 10 * SLOWNESS
LIMIT = 24 * SLOWNESS
MEMORY = 32000  # kB
WORKERS = int(os.environ.get("WORKERS") or 8)
LINE = re.compile(rb"(LOCKSMITH|OK|BUSY|ERR|NOTE|WHO|WAIT|HELD|LOST|FREE)( [^\x00-\x1f\x7f]*)?")
STATUSES = {0, 1} | set(range(64, 78)) - {70}
NUMBERS = [b"0", b"-1", b"1", b"255", b"65536", b"2147483648", b"9223372036854775807", b"18446744073709551616", b"1e999",
           b"\xd9\xa3", b"1_0", b"99999999999999999999999999", b"nan", b"1.2.3"]


def change(text, rng):
    """TEXT with some random changes."""
    text = bytearray(text)
    for _ in range(rng.choice([0, 1, 1, 2, 3, 8])):
        at, size = rng.randrange(len(text) + 1), rng.choice([1, 1, 2, 4, 16])
        kind = rng.randrange(7)
        if kind == 0 and text:
            text[at % len(text)] = rng.randrange(256)
        elif kind == 1:
            del text[at:at + size]
        elif kind == 2:
            text[at:at] = bytes(rng.randrange(256) for _ in range(size))
        elif kind == 3:
            text[at:at] = text[at:at + size] * rng.choice([1, 2, 50])
        elif kind == 4:
            found = list(re.finditer(rb"\d+", bytes(text)))
            if found:
                one = rng.choice(found)
                text[one.start():one.end()] = rng.choice(NUMBERS)
        elif kind == 5:
            del text[at:]
        elif text:
            text[at % len(text)] ^= 1 << rng.randrange(8)
    return bytes(text)


class Stranger:
    """A server of one engine.  Its mode is random, drip or flood."""
    settings, arguments = {}, ["--ttl=2"]
    exact = False  # the next answer is not changed
    answers = 0    # given so far

    def __init__(self, directory, mode, seed=0):
        self.directory, self.mode, self.rng = directory, mode, random.Random(seed)
        self.calm = self.rng.choice([0.3, 0.9])  # the part of the answers that are not changed
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=[client], daemon=True).start()

    def serve(self, client):
        try:
            self.greet(client)
            while True:
                request = client.recv(65536)
                if not request:
                    return
                self.say(client, self.answer(request))
                if self.mode == "random" and self.rng.random() > self.calm + 0.4:
                    return
        except OSError:
            pass
        finally:
            client.close()

    def say(self, client, text):
        self.answers += 1
        if self.mode == "drip":
            for byte in text * 100:
                client.sendall(bytes([byte]))
                time.sleep(0.2)
        while self.mode == "flood" and text:
            client.sendall(text * 99)
        client.sendall(text if self.rng.random() < self.calm or self.exact else change(text, self.rng))
        self.exact = False

    def greet(self, client):
        pass


class Redis(Stranger):
    url = "redis://127.0.0.1:%d/l"
    seeds = [b":1\r\n", b":1794000000\r\n", b"*2\r\n$33\r\nword mode=exclusive pid=1 note=x y\r\n:1500\r\n", b"+OK\r\n", b"$-1\r\n",
             b"*-1\r\n", b"*2\r\n$6\r\n{l}:fr\r\n$1\r\n1\r\n", b"-ERR unknown command\r\n", b"-OOM command not allowed\r\n",
             b"*1\r\n*1\r\n*1\r\n:1\r\n", b"$5\r\nother\r\n", b"-NOAUTH Authentication required.\r\n", b"-LOADING\r\n", b":0\r\n",
             b"*99999\r\n", b"$99999\r\n" + b"x" * 90, b"_\r\n", b"%1\r\n+a\r\n:1\r\n", b"(3492890328409238509324850943850943825024385\r\n"]

    def answer(self, _):
        return self.rng.choice(self.seeds)


class S3(Stranger):
    url = "s3://locks/l"
    record = (b"semlock 1 state=held token=1794000000 beat=4 lease=30000000000 tag=4b0e4f00112233445566778899aabbcc "
              b"etag=quoted waited=no mode=exclusive pid=4242 host=web1 since=1764107203 note=./job\n")

    def __init__(self, *words):
        super().__init__(*words)
        self.settings = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:%d" % self.port, "AWS_ACCESS_KEY_ID": "AKTEST",
                         "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "test-1"}

    def answer(self, _):
        error = b"<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>What it says</Message></Error>"
        free = self.record.replace(b"state=held", b"state=free")
        status, body = self.rng.choice(
            [(b"200 OK", self.record), (b"200 OK", free), (b"200 OK", b""), (b"404 Not Found", error % b"NoSuchKey"),
             (b"412 Precondition Failed", error % b"PreconditionFailed"), (b"304 Not Modified", b""), (b"204 No Content", b""),
             (b"400 Bad Request", error % b"RequestTimeTooSkewed"), (b"403 Forbidden", error % b"ExpiredToken"),
             (b"301 Moved", error % b"PermanentRedirect"), (b"500 Oops", error % b"InternalError"), (b"100 Continue", b"")])
        if self.rng.random() < 0.5:
            body = change(body, self.rng)
        return (b"HTTP/1.1 %s\r\nETag: \"%032x\"\r\nDate: Sat, 28 Nov 2026 12:00:00 GMT\r\nLast-Modified: Sat, 28 Nov 2026 11:00:00 GMT\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (status, self.rng.randrange(4), len(body), body))


class Etcd(Stranger):
    url = "etcd://127.0.0.1:%d/l"
    head = b"\x0a\x06\x08\x01\x10\x02\x18\x09"  # a ResponseHeader
    seeds = [head + b"\x10\x85\x01\x18\x0f", head + b"\x10\x01\x1a\x00", head + b"\x10\x00\x1a\x04\x0a\x02\x0a\x00",
             head + b"\x10\x01\x1a\x1e\x0a\x1c\x12\x1a\x0a\x03l/1\x10\x09\x18\x09\x20\x01\x2a\x05holds\x30\x85\x01", head, b""]

    def __init__(self, *words):
        super().__init__(*words)
        for name in glob.glob(os.path.join(HERE, "seeds/etcd/*")):
            with open(name, "rb") as file:
                self.seeds = self.seeds + [file.read()]

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload

    @staticmethod
    def header(name, value):
        return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value

    def answer(self, request):
        """A call's answer is its headers, a message, and its trailers: frames of HTTP/2."""
        at = 24 if request.startswith(b"PRI ") else 0
        said = self.frame(4, 0, 0, b"") if at else b""
        while at + 9 <= len(request):
            size, kind = int.from_bytes(request[at:at + 3], "big"), request[at + 3]
            stream = int.from_bytes(request[at + 5:at + 9], "big")
            at += 9 + size
            if kind == 1:
                message = self.rng.choice(self.seeds)
                if self.rng.random() < 0.5:
                    message = change(message, self.rng)
                said += self.frame(1, 4, stream, b"\x88" + self.header(b"content-type", b"application/grpc"))
                said += self.frame(0, 0, stream, struct.pack("!BI", 0, len(message)) + message)
                said += self.frame(1, 5, stream, self.header(b"grpc-status", self.rng.choice([b"0", b"0", b"0", b"5", b"14", b"99", b"x"])))
        return said


class Ftp(Stranger):
    url = "ftp://me@127.0.0.1:%d/l"
    settings = {"SEMLOCK_PASSWORD": "secret"}
    names = [b"sl1.x.60.17.3c25951782f8c905.15496.web1", b"a file", b".", b"..", b"sl1.x.2.1.0000000000000000.1.h"]
    replies = {b"USER": [b"331 Password?"], b"PASS": [b"230 In.", b"530 No."], b"PWD": [b"257 \"/\" is it."], b"CWD": [b"250 Done.", b"550 No."],
               b"MKD": [b"257 \"l\" made.", b"550 Exists.", b"521 Exists.", b"552 Full."], b"RMD": [b"250 Gone.", b"550 Not empty."],
               b"RNFR": [b"350 To what?"], b"RNTO": [b"250 Done."], b"TYPE": [b"200 Ok."], b"FEAT": [b"211-\r\n MLST type*;modify*;\r\n211 End"]}

    def greet(self, client):
        self.say(client, b"220 Hello.\r\n")

    def answer(self, request):
        verb = request.split()[0].upper() if request.split() else b""
        names = [self.rng.choice(self.names) for _ in range(self.rng.randrange(4))]
        if verb == b"STAT":
            return b"213-\r\n" + b"".join(b"drwxr-xr-x 2 me me 4096 Nov 28 12:00 %s\r\n" % name for name in names) + b"213 End\r\n"
        if verb in (b"MLST", b"MLSD"):
            return b"250-\r\n type=dir;modify=20261128120000; /l\r\n250 End\r\n"
        if verb == b"EPSV":
            data = socket.create_server(("127.0.0.1", 0))
            threading.Thread(target=self.list, args=[data, names], daemon=True).start()
            return b"229 (|||%d|)\r\n" % data.getsockname()[1]
        if verb in (b"NLST", b"LIST"):
            return b"150 Here.\r\n226 Done.\r\n"
        return self.rng.choice(self.replies.get(verb, [b"200 Ok.", b"500 What?"])) + b"\r\n"

    def list(self, listener, names):
        listener.settimeout(5)
        try:
            with listener, listener.accept()[0] as client:
                self.say(client, b"\r\n".join(names) + b"\r\n")
        except OSError:
            pass


class Postgresql(Stranger):
    url = "postgresql://lock@127.0.0.1:%d/l?sslmode=disable&gssencmode=disable"

    @staticmethod
    def message(kind, content=b""):
        return kind + struct.pack("!i", len(content) + 4) + content

    def rows(self, values):
        told = self.message(b"T", struct.pack("!h", len(values)) + b"".join(
            b"c\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0) for _ in values))
        told += self.message(b"D", struct.pack("!h", len(values)) + b"".join(
            struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values))
        return told + self.message(b"C", b"SELECT 1\0") + self.message(b"Z", b"I")

    def answer(self, request):
        if request[:1] not in b"QX":
            return (self.message(b"R", struct.pack("!i", 0)) + self.message(b"S", b"server_version\0" + b"15.0\0") +
                    self.message(b"S", b"in_hot_standby\0off\0") + self.message(b"S", b"default_transaction_read_only\0off\0") +
                    self.message(b"K", struct.pack("!ii", 1, 1)) + self.message(b"Z", b"I"))
        entry = [b"5", None, b"t", b"f", b"", b""]
        # libpq itself asks this (PQconnectPoll), and crashes if the row has no column.
        if b"SHOW transaction_read_only" in request or b"pg_is_in_recovery" in request:
            self.exact = True
            return self.rows([self.rng.choice([b"off", b"on", b"t", None])])

        return self.rng.choice([
            self.rows(entry), self.rows([None] + entry[1:]), self.rows([b"t"]), self.rows([None]), self.rows([]),
            self.rows([None] + entry[1:] + [b"3", b"1500", b"mode=exclusive pid=1 note=x", b"", b"50"]),
            self.message(b"E", b"SERROR\0VERROR\0C42P01\0Mno table\0\0") + self.message(b"Z", b"I"),
            self.message(b"E", b"SFATAL\0VFATAL\0C53300\0Mtoo many\0\0"), self.message(b"N", b"SWARNING\0VWARNING\0C01000\0Mhm\0\0")])


class Ssh(Stranger):
    """The far end of a fake ssh."""
    url = "ssh://host/l"
    listed = [{"lock": "/l", "held": True, "holders": [
        {"pid": 4242, "mode": "exclusive", "since": "2026-11-28T12:00:00Z", "command": ["sh", "-c", "x", "semlock-ssh", "15", "-n", "l", "\\0160\\0151"]}],
        "waiters": [{"pid": 1, "mode": None, "since": 1764107203.5, "command": None}]}]

    def __init__(self, *words):
        super().__init__(*words)
        self.fake, self.said = os.path.join(self.directory, "ssh"), os.path.join(self.directory, "said")
        cat = {"random": 'cat "%s"; [ -e "%s.more" ] && cat >/dev/null' % (self.said, self.said),
               "flood": 'exec yes "$(cat "%s")"' % self.said,
               "drip": 'while sleep .2; do printf W; done'}[self.mode]
        with open(self.fake, "w") as file:
            file.write('#!/bin/sh\nread -r far\nword=${far#: semlock-ssh }\nprintf "BEGIN %%s\\n" "${word%%%%;*}"\n%s\n' % cat)
        os.chmod(self.fake, 0o755)
        self.settings = {"SEMLOCK_SSH": shlex.quote(self.fake)}
        lines = [b"READY semlock", b"P 1", b"W 1", b"B 1", b"B 2", b"OK", b"OK slot=1 ttl=9", b"OK ttl=1", b"END 1", b"END 66", b"END 137", b"LOST", b"",
                 b"WHO " + change(json.dumps(self.listed).encode(), self.rng), b"WHO " + json.dumps(self.listed).encode(), b"WHO " + b"[" * 2000]
        text = b"\n".join(self.rng.choice(lines) for _ in range(self.rng.randrange(1, 9))) + b"\n"
        self.answers = text.count(b"\n")
        with open(self.said, "wb") as file:
            file.write(change(text, self.rng) if self.mode == "random" else text)
        if self.rng.random() < 0.1:
            open(self.said + ".more", "w").close()

    def answer(self, _):
        return b""


ENGINES = {"redis": Redis, "s3": S3, "etcd": Etcd, "ftp": Ftp, "postgresql": Postgresql, "ssh": Ssh}


def url_of(server):
    return server.url % server.port if "%d" in server.url else server.url


def environment(server, directory):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SEMLOCK_", "AWS_", "PG", "ETCDCTL_", "REDISCLI_"))}
    return {**kept, "HOME": directory, "AWS_EC2_METADATA_DISABLED": "true", **server.settings}


def memory_of(pid):
    try:
        with open("/proc/%d/status" % pid) as file:
            found = re.search(r"VmHWM:\s+(\d+)", file.read())
            return int(found[1]) if found else 0
    except OSError:
        return 0


def live(helper, engine, seed):
    """One round.  Returns the exit status, and what was wrong, or ""."""
    rng = random.Random("%s %s" % (engine, seed))
    mode = rng.choice(["drip", "flood"]) if seed % 10 == 9 else "random"
    with tempfile.TemporaryDirectory(prefix="semlock-strangers.") as directory:
        server = ENGINES[engine](directory, mode, rng.random())
        words = [helper, *server.arguments, rng.choice(["--no-wait", "--who", "--wait=3", "--wait=3"]), "--", url_of(server)]
        with open(os.path.join(directory, "out"), "w+b") as out, open(os.path.join(directory, "err"), "w+b") as err:
            child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=out, stderr=err, env=environment(server, directory))
            begun = time.monotonic()
            end, most, answered = begun + LIMIT, 0, 0
            while child.poll() is None and time.monotonic() < end:
                most = max(most, memory_of(child.pid))
                time.sleep(0.03)
                if not answered and re.search(rb"\n(OK|BUSY|ERR|WHO)", os.pread(out.fileno(), 4096, 0)):
                    answered = time.monotonic()
                if not child.stdin.closed and (rng.random() < 0.01 or b"\nOK" in os.pread(out.fileno(), 4096, 0)):
                    child.stdin.close()
            child.stdin.close()
            late = child.poll() is None
            if late:
                child.kill()
                child.wait()
            out.seek(0)
            err.seek(0)
            lines, errors = out.read(), err.read()
        server.listener.shutdown(socket.SHUT_RDWR)  # ends the thread that accepts
        server.listener.close()
    allowed = ANSWER[words[2]] + (FTP_REQUEST if engine == "ftp" else 0)
    wrong = [what for what, true in [
        ("it does not end", late), ("no answer in time", answered > begun + allowed),
        ("status %d" % child.returncode, not late and child.returncode not in STATUSES),
        ("%d kB" % most, most > MEMORY and not os.environ.get("SANITIZED")), ("internal error", b"internal error" in lines),
        ("standard error: %r" % errors[-500:], b"Traceback" in errors or b"ERROR: " in errors or b"runtime error" in errors),
        ("a line that is none", not all(LINE.fullmatch(one) for one in lines.split(b"\n")[:-1]))] if true]
    return child.returncode, server.answers, ", ".join(wrong) and "%s, seed %d, %s, %s: %s: %r" % (engine, seed, mode, words[2], ", ".join(wrong), lines[-700:])


def rounds(helper, engine, count, first):
    statuses, faults, guard, left = {}, [], threading.Lock(), iter(range(first, first + count))
    answers = 0

    def work():
        nonlocal answers
        while True:
            with guard:
                seed = next(left, None)
            if seed is None:
                return
            try:
                status, given, fault = live(helper, engine, seed)
            except OSError as error:
                status, given, fault = None, 0, "%s, seed %d: %s" % (engine, seed, error)
            with guard:
                answers += given
                statuses[status] = statuses.get(status, 0) + 1
                if fault:
                    faults.append(fault)

    workers = [threading.Thread(target=work) for _ in range(WORKERS)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    print("%s: %d rounds, %d answers: %s; %d wrong" % (engine, count, answers, ", ".join(
        "status %s: %d" % pair for pair in sorted(statuses.items(), key=str)), len(faults)))
    for fault in faults[:20]:
        print(fault)
    return bool(faults)


def serve(directory, engine, mode):
    server = ENGINES[engine](directory, mode)
    with open(os.path.join(directory, "URL"), "w") as file:
        print(url_of(server), file=file)
    with open(os.path.join(directory, "env"), "w") as file:
        for name, value in server.settings.items():
            print("export %s=%s" % (name, shlex.quote(value)), file=file)
    print("READY %d" % server.port, flush=True)
    while True:
        time.sleep(60)


if sys.argv[1] == "serve":
    serve(*sys.argv[2:5])
sys.exit(rounds(os.path.join(sys.argv[1], "semlock-locksmith-" + sys.argv[2]), sys.argv[2], int(sys.argv[3]), int((sys.argv + ["0"])[4])))
