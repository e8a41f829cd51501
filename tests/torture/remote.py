#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Contenders for one lock on a server, each `semlock URL COMMAND`; their processes are killed and stopped at random.

usage: remote.py --semlock=PROGRAM --url=URL [--contenders=4] [--rounds=200] [--chaos=0.2] [--ttl=2] [--seed=N]
                 [--hold=0.02] [--tokens] [--beside=LOCK] [--entries=N]

The command takes a record lock of its own, without waiting, for as long as it lives. If that lock is refused, two
commands are inside at once: an OVERLAP, printed with the events before it. So a holder that is too late has to be
dead, not just signalled, before the next may enter. One in three commands ignores SIGTERM. With --tokens each
command must find a SEMLOCK_TOKEN greater than all before.  With --beside every other round of a contender takes LOCK,
which is the same lock by another name, without a server.  With --entries the contenders go on until they have been inside
so often together, instead of --rounds each, and the one that was least often has at least a third of what the first has.

Prints one line of figures; exit status 1 if anything was wrong.
"""
import fcntl
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

# The kernel drops a record lock as soon as a dying process closes its descriptors, before its other resources (a
# flock(2) lock may go after the pipe by which semlock's lock is held); and the kernel names its owner.
INSIDE = """
import fcntl, os, signal, struct, sys, time
if sys.argv[3] == "deaf": signal.signal(signal.SIGTERM, signal.SIG_IGN)
witness = os.open(sys.argv[1], os.O_RDWR)
flock = "hhqqi4x"
wish = struct.pack(flock, fcntl.F_WRLCK, 0, 0, 0, 0)
word = "in"
try:
    fcntl.fcntl(witness, fcntl.F_SETLK, wish)
except OSError:
    word = "overlap"
other = struct.unpack(flock, fcntl.fcntl(witness, fcntl.F_GETLK, wish))[4]
token = os.environ.get("SEMLOCK_TOKEN", "0")
log = os.open(sys.argv[4], os.O_WRONLY | os.O_APPEND)
os.write(log, b"%s\\n" % token.encode())
print(word, os.getpid(), token, other, flush=True)
time.sleep(float(sys.argv[2]))
"""

options = {"contenders": "4", "rounds": "200", "chaos": "0.2", "ttl": "2", "seed": "", "hold": "0.02",
           "tokens": "", "beside": "", "entries": "", "semlock": "", "url": ""}
for a in sys.argv[1:]:
    key, _, value = a[2:].partition("=")
    if not a.startswith("--") or key not in options:
        sys.exit(__doc__)
    options[key] = value or "yes"
seed = int(options["seed"] or random.randrange(1 << 30))
rounds, ttl, chaos = int(options["rounds"]), float(options["ttl"]), float(options["chaos"])
contenders, entries = int(options["contenders"]), int(options["entries"] or 0)
shares = [0] * contenders   # how often each has been inside
room = tempfile.mkdtemp()
oracle, log = os.path.join(room, "inside"), os.path.join(room, "log")
for name in oracle, log:
    open(name, "w").close()
guard = threading.Lock()
story = []      # (when, contender, what happened), to be read when two were inside
count = dict(entered=0, overlaps=0, regressions=0, stuck=0, wrong=0, lost=0, refused=0, semlock_killed=0,
             inner_killed=0, smith_killed=0, command_killed=0, semlock_stopped=0, inner_stopped=0,
             smith_stopped=0, command_stopped=0, waiter_killed=0)
longest = 0.0   # wait for the lock


def note(what, text=None):
    with guard:
        count[what] += 1
        if text:
            print("%s: %s" % (what.upper(), text), flush=True)


def tell(me, what):
    with guard:
        story.append((time.monotonic(), me, what))


def tell_story():
    """Prints the events around each overlap."""
    for at in [t for t, _, what in story if "overlap" in what]:
        print("what led to the overlap at %.3f:" % (at - began))
        for t, me, what in story:
            if at - 3 * ttl - 2 < t < at + ttl:
                print("  %9.3f  %d  %s" % (t - began, me, what))


def child_of(pid, name):
    """The child of process PID whose name begins so."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            for child in f.read().split():
                with open("/proc/%s/comm" % child) as comm:
                    if comm.read().startswith(name):
                        return int(child)
    except (OSError, TypeError):
        pass
    return None


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except (ProcessLookupError, TypeError):
        return False


def stop_for(pid, seconds):
    if send(pid, signal.SIGSTOP):
        time.sleep(seconds)
        send(pid, signal.SIGCONT)


def harm(me, dice, p, command):
    """Kills or stops semlock (the outer or the inner one), its locksmith or its command."""
    what = dice.choice(("semlock_killed", "inner_killed", "smith_killed", "command_killed", "semlock_stopped",
                        "inner_stopped", "smith_stopped", "command_stopped"))
    inner = child_of(p.pid, "semlock")
    who = {"semlock": p.pid, "inner": inner, "smith": child_of(inner, "semlock-locksmi"),
           "command": command}[what.split("_")[0]]
    note(what)
    tell(me, "%s: pid %s" % (what, who))
    if what.endswith("killed"):
        send(who, signal.SIGKILL)
    else:
        # A locksmith is stopped for longer than its lease.
        stop_for(who, ttl * 1.5 if what == "smith_stopped" else dice.random() * ttl)
        tell(me, "pid %s goes on" % who)


def start(dice):
    lock = [*stale, options["url"]]
    if options["beside"] and dice.random() < 0.5:
        lock = [options["beside"]]
    deaf = dice.choice(("deaf", "hears", "hears"))
    return subprocess.Popen([options["semlock"], "-q", *(["--ttl=" + options["ttl"]] if "://" in lock[-1] else []), *lock,
                             "/usr/bin/python3", "-S", "-E", "-c", INSIDE, oracle, options["hold"], deaf, log],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def watch(p, limit):
    """Kills a contender that hangs: no killed command may leave a waiter for ever."""
    timer = threading.Timer(limit, lambda: (note("stuck", "pid %d" % p.pid), p.kill()))
    timer.start()
    return timer


def one(me, dice):
    """Returns whether the contender has been inside."""
    global longest
    p = start(dice)
    asked = time.monotonic()
    tell(me, "semlock %d" % p.pid)
    timer = watch(p, 120)
    if dice.random() < chaos / 10:
        time.sleep(dice.random() * 0.1)
        note("waiter_killed")
        tell(me, "waiter_killed")
        p.kill()
    # A killed semlock's command may have the pipe open for a moment.
    word = p.stdout.readline().split()
    if word:
        tell(me, "%s: command %s, token %s%s" % (*word[:3], "" if word[3] == "0" else ", beside " + word[3]))
        longest = max(longest, time.monotonic() - asked)
        if word[0] == "overlap":
            note("overlaps", "contender %d, command %s, token %s, beside %s" % (me, *word[1:]))
    if word and dice.random() < chaos:
        harm(me, dice, p, int(word[1]))
    said = p.stderr.read()
    status = p.wait()
    timer.cancel()
    p.stdout.read()
    tell(me, "semlock %d has ended: %d %s" % (p.pid, status, said.strip()))
    if status == 76:
        note("lost")
    elif status == 69 or (not word and status in (-9, 76)):
        note("refused")
    elif status not in (0, -9, 137, 143):
        note("wrong", "status %d: %s" % (status, said))
    return bool(word)


def contender(me):
    dice = random.Random(seed * 1000 + me)
    while (sum(shares) < entries if entries else shares[me] < rounds) and count["stuck"] == 0:
        if one(me, dice):
            note("entered")
            shares[me] += 1
        else:
            time.sleep(0.1)


stale = [] if options["url"].startswith(("etcd", "postgresql", "s3", "ssh", "redis")) else ["--stale=3"]
began = time.monotonic()
threads = [threading.Thread(target=contender, args=(i,)) for i in range(contenders)]
for t in threads:
    t.start()
for t in threads:
    t.join()
if options["tokens"]:
    with open(log) as f:
        tokens = [int(line) for line in f]
    for before, token in zip(tokens, tokens[1:]):
        if token <= before:
            note("regressions", "%d after %d" % (token, before))
tell_story()
print(" ".join("%s=%d" % kv for kv in count.items()),
      "least=%d most=%d longest=%.1f seconds=%.0f seed=%d" % (min(shares), max(shares), longest, time.monotonic() - began, seed),
      flush=True)
bad = count["overlaps"] + count["regressions"] + count["stuck"] + count["wrong"]
unfair = entries and 3 * min(shares) < max(shares)
sys.exit(1 if bad or unfair or count["entered"] < (entries or rounds * contenders) else 0)
