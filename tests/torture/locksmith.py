#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Contenders for one lock on a server, whose locksmiths are killed and stopped at random.

usage: locksmith.py --smith=PROGRAM --url=URL [--contenders=4] [--rounds=200] [--kill=0.03] [--stop=0.01]
                    [--ttl=2] [--seed=N] [--shake=COMMAND] [--shake-every=SECS] [OPTION FOR THE LOCKSMITH...]

A contender is inside from the OK that it reads until it releases, its locksmith dies, or the last deadline has
passed. Two inside at once are an overlap. --shake runs a command now and then (restart a server, stop a leader).
Prints one line of figures; exit status 1 if anything was wrong.
"""
import os
import random
import signal
import subprocess
import sys
import threading
import time

options = {"contenders": "4", "rounds": "200", "kill": "0.03", "stop": "0.01", "ttl": "2", "seed": "",
           "shake": "", "shake-every": "5", "hold": "0.02"}
rest = []
for a in sys.argv[1:]:
    key, _, value = a[2:].partition("=")
    if key in options or key in ("smith", "url"):
        options[key] = value
    else:
        rest.append(a)
seed = int(options["seed"] or random.randrange(1 << 30))
rounds, ttl = int(options["rounds"]), float(options["ttl"])
guard = threading.Lock()
inside = {}     # contender -> deadline
last_token = 0
count = dict(entered=0, overlaps=0, regressions=0, killed=0, stopped=0, lost=0, silent=0, failed=0, ahead=0)


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def fields(line):
    return dict(w.split("=", 1) for w in line.split()[1:] if "=" in w)


def enter(me, line):
    global last_token
    told = fields(line)
    with guard:
        t = now()
        for other, deadline in inside.items():
            if deadline > t:
                count["overlaps"] += 1
                print("OVERLAP: %d enters, %d has %.2f s left" % (me, other, (deadline - t) / 1e9), flush=True)
        token = int(told.get("token", 0))
        if token and token <= last_token:
            count["regressions"] += 1
            print("TOKEN %d after %d" % (token, last_token), flush=True)
        last_token = max(last_token, token)
        inside[me] = int(told["deadline"])
        count["entered"] += 1


def leave(me):
    with guard:
        inside.pop(me, None)


class Smith:
    def __init__(self, me):
        self.me = me
        self.lines = threading.Condition()
        self.ok = self.lost = self.over = False
        self.free = False
        self.err = ""
        self.p = subprocess.Popen([options["smith"], "--ttl=" + options["ttl"], *rest,
                                   options["url"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.DEVNULL)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.p.stdout:
            word = line.split()[0]
            if word == "OK":
                enter(self.me, line)
                self.start()
            if word == "HELD":
                with guard:
                    if self.me in inside:
                        inside[self.me] = int(fields(line)["deadline"])
            if word == "LOST":
                leave(self.me)
            with self.lines:
                self.ok |= word == "OK"
                self.lost |= word == "LOST"
                self.free |= word == "FREE"
                if word == "ERR":
                    self.err = line.strip()
                self.lines.notify_all()
        with self.lines:
            self.over = True
            self.lines.notify_all()

    def start(self):
        try:
            self.p.stdin.write("START\n")
            self.p.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def wait_for(self, what, timeout):
        with self.lines:
            return self.lines.wait_for(lambda: what() or self.over, timeout)

    def end(self):
        try:
            self.p.stdin.close()
        except BrokenPipeError:
            pass
        self.p.wait()
        self.thread.join()


def stop_and_go(me, s):
    """Stops the locksmith: the contender relies on the deadline, which passes."""
    count["stopped"] += 1
    os.kill(s.p.pid, signal.SIGSTOP)
    time.sleep(ttl + 1.5)
    with guard:
        if inside.get(me, 0) > now():
            count["ahead"] += 1
    leave(me)
    os.kill(s.p.pid, signal.SIGCONT)
    if not s.wait_for(lambda: s.lost, 10) or not s.lost:
        count["silent"] += 1
        print("NO LOST after a stop", flush=True)


def one(me, dice):
    s = Smith(me)
    if dice.random() < float(options["kill"]) / 2:
        # The locksmith is still acquiring.
        time.sleep(dice.random() * 0.05)
        s.p.kill()
        s.end()
        leave(me)
        count["killed"] += 1
        return
    s.wait_for(lambda: s.ok or s.err, 120)
    if not s.ok:
        count["failed"] += 1
        if not options["shake"]:
            print("NOT TAKEN:", s.err, flush=True)
        s.p.kill()
        s.end()
        return
    fate = dice.random()
    time.sleep(dice.random() * float(options["hold"]))
    if fate < float(options["kill"]):
        leave(me)
        s.p.kill()
        count["killed"] += 1
    elif fate < float(options["kill"]) + float(options["stop"]):
        stop_and_go(me, s)
    if s.lost:
        count["lost"] += 1
    leave(me)
    s.end()


def contender(me):
    dice = random.Random(seed * 1000 + me)
    for _ in range(rounds):
        one(me, dice)


def shaker(stop):
    while not stop.wait(float(options["shake-every"])):
        subprocess.run(options["shake"], shell=True, check=False)


began = time.monotonic()
threads = [threading.Thread(target=contender, args=(i,)) for i in range(int(options["contenders"]))]
over = threading.Event()
if options["shake"]:
    threading.Thread(target=shaker, args=(over,), daemon=True).start()
for t in threads:
    t.start()
for t in threads:
    t.join()
over.set()
print(" ".join("%s=%d" % kv for kv in count.items()), "seconds=%.1f seed=%d" % (time.monotonic() - began, seed))
bad = count["overlaps"] + count["regressions"] + count["silent"]
if not options["shake"]:
    bad += count["failed"]
sys.exit(1 if bad or count["entered"] == 0 else 0)
