#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An engine for semlock without a server: engine:///FILE is a lock with a lease, whose queue is in FILE.

It keeps each rule of semlock-locksmith(7), and breaks the one that ENGINE_BREAKS names: for contrib/locksmith-test.
"""
import fcntl
import json
import os
import select
import signal
import sys
import time

BREAKS = os.environ.get("ENGINE_BREAKS", "")
options = {"mode": "exclusive", "slots": 0, "ttl": 15.0, "wait": None, "queue-max": 0, "pid": str(os.getppid()), "note": ""}
no_wait, who, started, released, line = False, False, False, False, b""


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def say(text):
    text = text.encode() + b"\n"
    if BREAKS == "blanks":
        text = text.replace(b" ", b"  ", 1)
    if BREAKS == "blocks" or select.select([], [1], [], 0)[1]:
        try:
            os.write(1, text)
        except BrokenPipeError:  # nobody reads any more
            if BREAKS == "noise":
                raise


def end(status, text=""):
    if text:
        say(text)
    sys.exit(status)


def transaction(act):
    """Runs ACT on the list of all that hold and wait, without those whose lease is over."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        state = json.loads(file.read() or '{"token": 0, "all": []}')
        keep = now() if BREAKS != "early" else now() + 1
        if BREAKS != "who-dies" or not no_wait:
            state["all"] = [one for one in state["all"] if one["until"] > keep]
        answer = act(state)
        file.seek(0)
        file.truncate()
        file.write(json.dumps(state))
    return answer


def mine(state):
    return next((one for one in state["all"] if one["id"] == me), None)


def blocked(state):
    """What is in the way of a newcomer, or of our own entry; sets our slot."""
    global slot
    ahead, taken, line = [], set(), state["all"]
    if BREAKS == "order":  # the last one comes first
        line = [one for one in line if one["holds"]] + [one for one in reversed(line) if not one["holds"]]
    for one in line:
        if one["id"] == me or BREAKS == "two":
            break
        if one["mode"] != mode or mode == "exclusive":
            ahead.append(one)
        elif mode == "slots":
            taken.add(one["slot"])
    if mode == "slots":
        slot = min(set(range(options["slots"] + 1)) - taken)
        if BREAKS == "same-slot":
            slot = 0
        elif slot == options["slots"]:
            return next(one for one in state["all"] if one["mode"] == "slots")
    return ahead[0] if ahead else None


def try_to_enter(state):
    other, own = blocked(state), mine(state)
    waits = sum(not one["holds"] for one in state["all"])
    if own is None:
        if other and (no_wait or options["queue-max"] and waits >= options["queue-max"] and BREAKS != "queue-max"):
            return other
        own = dict(id=me, mode=mode, holds=False, slot=None, text=text())
        state["all"].append(own)
    own["until"] = now() + (options["ttl"] if BREAKS != "dead-waiter" else 60)
    if not other:
        state["token"] += BREAKS != "token"
        own.update(holds=True, slot=slot, token=state["token"])
    return other


def text():
    words = "" if BREAKS == "no-mode" else "mode=%s " % mode
    pid = "1" if BREAKS == "who-pid" else options["pid"]
    return words + "pid=%s host=%s since=%d note=%s" % (pid, os.uname().nodename, time.time(), options["note"])


def forget(state):
    own = mine(state)
    if own:
        state["all"].remove(own)
    return own


def listen(timeout):
    """Reads semlock's lines for so long."""
    global started, released, line
    until = now() + timeout
    while not released and now() < until and select.select([0], [], [], max(0, until - now()))[0]:
        got = os.read(0, 4096)
        if not got:
            if BREAKS == "outlives" and not started:
                time.sleep(30)
            released = BREAKS != "no-release"
            time.sleep(0.1)
            continue
        for byte in got:
            line = line + bytes([byte])
            if line.endswith(b"\n") or BREAKS == "long-line" and len(line) > 120:
                word = line.split()[0] if line.split() else b""
                if BREAKS == "long-line" and line.rstrip().endswith(b"UNLOCK"):
                    word = b"UNLOCK"
                started = started or word == b"START" and (BREAKS != "fields" or line.count(b" ") < 2)
                if BREAKS == "fields" and line.count(b" ") > 1:
                    end(70, "ERR 70 too many fields")
                released = released or word == b"UNLOCK" and BREAKS != "unlock"
                line = b""


def wait():
    began, said = now(), None
    while True:
        while os.path.exists(path + ".away") and not released:
            if BREAKS == "leaves":
                end(69, "ERR 69 no answer")
            listen(0.05)
        other = transaction(try_to_enter)
        if not other:
            return
        late = options["wait"] is not None and now() - began >= options["wait"] + (3 if BREAKS == "late" else 0)
        if no_wait or options["queue-max"] and not transaction(mine) or late:
            time.sleep(4 if BREAKS == "slow" else 0)
            transaction(forget)
            end(1, "BUSY " + other["text"])
        if said != other["id"]:
            say("WAIT " + other["text"])
            said = other["id"]
        listen(0.05)
        if released:
            transaction(forget)
            end(0)


def hold():
    lease = options["ttl"]
    own = transaction(mine)
    until = own["until"]
    told = until + (5 if BREAKS == "boast" else 0)
    token = " token=%d" % own["token"]
    say("OK%s%s lease=%d deadline=%d" % (token, "" if own["slot"] is None else " slot=%d" % own["slot"], lease * 1e9, told * 1e9))
    if BREAKS == "unstarted":
        globals()["started"] = True
    while not released:
        renew = until - lease * (0.2 if BREAKS == "renews-late" else 0.7)
        listen(max(0.0, min(renew, until) - now()) if started else 0.05)
        if released:
            break
        if now() >= until - (0 if started else lease / 10) and BREAKS != "never-lost":
            transaction(forget)
            end(76, "LOST no time is left")
        if started and now() >= renew:
            own = transaction(lambda state: mine(state) and mine(state).update(until=now() + lease) or mine(state))
            if own is None and BREAKS not in ("never-lost", "deaf"):
                end(76, "LOST another has it")
            until = own["until"] if own else until
            say("HELD deadline=%d" % (until * 1e9))
    if BREAKS == "keeps":
        end(0, "FREE")
    time.sleep(lease + 1 if BREAKS == "late-free" else 0)
    lost = transaction(forget) is None
    end(76, "LOST too late") if lost else end(0, "FREE")


if BREAKS != "signals":
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
offers = "" if os.environ.get("ENGINE_PLAIN") else " shared slots order token queue-max"
say("LOCKSMITH %d%s" % (1 if BREAKS == "greeting" else 2, offers))
if BREAKS == "control":
    say("NOTE a\tb")
for word in sys.argv[1:-1]:
    name, _, value = word[2:].partition("=")
    if name in ("no-wait", "who"):
        no_wait, who = no_wait or name == "no-wait", who or name == "who"
    elif not offers and BREAKS != "accepts" and (name in ("slots", "queue-max") or value == "shared"):
        end(64, "ERR 64 --%s is not offered" % name)
    elif name in options:
        if value == "exclusive" and BREAKS == "mode":
            end(64, "ERR 64 unknown mode")
        if name == "wait" and value == "" and BREAKS != "at-once":
            continue
        value = value or "0"
        options[name] = int(value) if name in ("slots", "queue-max") else float(value) if name in ("ttl", "wait") else value
    elif name and BREAKS != "any-option":
        end(64, "ERR 64 unknown option: " + word)
url = sys.argv[-1].split("://", 1)[1]
if "@" in url and BREAKS != "password":
    end(64, "ERR 64 a password in a URL")
if url.startswith("away") or os.environ.get("ENGINE_SERVER") == "away":
    if who:
        end(69, "ERR 69 no such server") if BREAKS != "who-away" else end(0)
    if no_wait:
        end(69, "ERR 69 no such server") if BREAKS != "away-busy" else end(1, "BUSY mode=exclusive")
    say("WAIT note=for the server: no such server")
    time.sleep(options["wait"])
    end(69, "ERR 69 no such server") if BREAKS != "away-late" else end(1, "BUSY mode=exclusive")
path, me, slot = url[url.index("/"):], "%d-%d" % (os.getpid(), time.monotonic_ns()), None
mode = "slots" if options["slots"] else options["mode"]
if who:
    for one in transaction(lambda state: state["all"]):
        say("WHO state=%s %s" % ("holds" if one["holds"] else "waits", one["text"]))
    end(1 if transaction(lambda state: state["all"]) and BREAKS != "who-status" else 0 if BREAKS != "who-free" else 1)
wait()
hold()
