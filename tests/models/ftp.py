#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every interleaving of a few clients of the lock protocol on FTP (src/locksmith/ftp/dirlock.h).

usage: ftp.py                  run all the cases below; exit status 1 unless each ends as it should
       ftp.py --without-check  the protocol with A3, the check after the token, taken out: exit status 1 if
                               that breaks mutual exclusion in the cases that should hold

A command of the server is atomic; between two commands any step may happen. Any client may die
anywhere, and may lose a command that the server then carries out much later, or never. A directory
without a token may be taken for dead at ANY moment: no time is assumed. A token is broken only if
its owner is dead, or by lease: an owner that is too late has stopped its command before.
A listing is a snapshot; in some cases a rename can hide a token from it.

At the end: what a client leaves that dies after each of its steps, as the list in dirlock.h has it.
"""
import collections
import sys

# A state is (lock, clients). lock: None, or the frozenset of tokens in the directory; a token is
# (client, version). A client: (step, version, snapshot, beats left, faults left, late).
Client = collections.namedtuple("Client", "step version seen beats faults late")


class Case:
    def __init__(self, name, kinds, holds=True, beats=0, faults=0, torn=False, looks=1, bare=True, full=False,
                 naive=False, way=None):
        self.name = name        # for the output
        self.kinds = kinds      # one per client: x of semlock's, p plain mkdir client
        self.holds = holds      # mutual exclusion is expected
        self.beats = beats      # heartbeats per acquisition
        self.faults = faults    # commands per client that may be lost, or done late
        self.torn = torn        # a listing is not atomic
        self.looks = looks      # how often A3 lists
        self.bare = bare        # empty directories may be removed
        self.full = full        # the server may refuse a token
        self.naive = naive      # who finds the token gone after the lease removes the directory all the same
        self.way = way          # around the wait for --stale: "intent", "rename"


CASES = [
    Case("two exclusive", "xx"),
    Case("three exclusive", "xxx"),
    Case("three exclusive, heartbeats", "xxx", beats=1),
    Case("two exclusive, lost and late commands", "xx", faults=2),
    Case("three exclusive, lost and late commands", "xxx", faults=1),
    Case("four exclusive", "xxxx"),
    Case("a plain client among exclusive ones", "xxp", bare=False, beats=1),
    Case("a plain client, lost commands", "xxp", bare=False, faults=2),
    Case("a plain client, a server without room", "xxp", bare=False, full=True, faults=1),
    Case("torn listings, two looks", "xxx", beats=1, torn=True, looks=2),
    # These show why the assumptions and the rules are needed: each fails without its own.
    Case("torn listings, one look", "xxx", beats=1, torn=True, looks=1, holds=False),
    Case("a plain client, empty directories removed early", "xxp", holds=False),
    Case("naive: a plain client, released after the lease", "xxp", holds=False, bare=False, faults=1, naive=True),
    # Ways to a bare directory that need not wait for --stale. Without plain clients they hold, as does removing it
    # at any time. None holds with one: a server in which MKD was all that a dead client did in the end looks as if
    # that client had died before it, and MKD had been a plain client's.
    Case("an intent beside the lock", "xxx", bare=False, faults=1, way="intent"),
    Case("naive: a plain client, an intent beside the lock", "xxp", holds=False, bare=False, way="intent"),
    Case("the sign is renamed in", "xxx", bare=False, faults=1, way="rename"),
    Case("naive: a plain client, the sign is renamed in", "xp", holds=False, bare=False, way="rename"),
]

# What a client leaves that dies at a step, if nobody else was there: a token goes after its lease, a bare directory
# after --stale. Idle: bare if the reply to A1 was lost.
LEFT = {
    "idle": {"nothing", "bare"},
    "made": {"bare"},
    "look": {"token"},
    "critical": {"token"},
    "unsure": {"token", "bare"},
    "overdue": {"token", "bare"},
    "clear": {"bare"},
}


def holds(tokens, me):
    """listing_holds() in listing.c"""
    return bool(tokens) and all(t[0] == me for t in tokens)


def steps(case, check, state):
    """All possible (name, next state)."""
    lock, clients = state
    out = []

    for i, c in enumerate(clients):
        def to(name, lock=lock, i=i, c=c, **changes):
            new = list(clients)
            new[i] = c._replace(**changes)
            out.append(("%s %d" % (name, i), (lock, tuple(new))))

        idle = dict(step="idle", version=0, seen=None, beats=case.beats)
        kind = case.kinds[i]
        if c.late and case.way == "rename":
            if not lock:
                to("late-rename-in", frozenset({(i, "late")}), late=False)
        elif c.late and lock is not None:
            # The server carries out an old MKD of a token. No client has its nonce any more.
            to("late-token", lock | {(i, "late")}, late=False)
        if c.step in ("dead", "dead-with-intent"):
            continue
        # The intent stands from before A1 until the token is in, or A1 was refused.
        to("die", step="dead-with-intent" if c.step == "made" or c.step == "intent" else "dead", version=0, seen=None,
           beats=0, faults=0)
        mine = (i, c.version)
        if c.step in ("idle", "intent"):
            if c.step == "intent" and lock is not None:
                to("A1-refused", **idle)
            if lock is None and kind == "p":
                to("plain-mkd", frozenset(), step="critical")
            elif case.way == "intent" and c.step == "idle":
                to("intent", step="intent")
                continue
            elif case.way == "rename" and not lock:
                # The directory was made beside the lock; rename(2) puts it in the place of an empty one.
                to("rename-in", frozenset({mine}), step="look" if check else "critical")
                if c.faults:
                    to("rename-in-reply-lost", frozenset({mine}), step="look", faults=c.faults - 1)
                    to("rename-in-goes-astray", **dict(idle, faults=c.faults - 1, late=True))
            elif lock is None:
                to("A1", frozenset(), step="made")
                if c.faults:
                    to("A1-reply-lost", frozenset(), faults=c.faults - 1)
            elif kind != "p":
                if not lock and (case.bare or any(o.step == "dead-with-intent" for o in clients)
                                 and case.way == "intent"):
                    to("remove-bare", None)
                for t in lock:
                    if t[1] == "late" or clients[t[0]].step in ("dead", "dead-with-intent", "idle", "overdue"):
                        to("break-%d" % t[0], lock - {t}, step="clear")
        elif c.step == "made":
            if lock is None:
                to("A2-refused", **idle)
            else:
                if case.full:
                    to("no-room", step="clear")
                to("A2", lock | {mine}, step="look" if check else "critical")
            if c.faults:
                to("A2-goes-astray", **dict(idle, faults=c.faults - 1, late=True))
        elif c.step in ("look", "look2"):
            if case.torn:
                to("listing-begins", step=c.step + "-on", seen=lock)
            else:
                tokens = lock or frozenset()
                to("A3", step="critical" if holds(tokens, i) else "back")
        elif c.step in ("look-on", "look2-on"):
            before, after = c.seen or frozenset(), lock or frozenset()
            sure, maybe = before & after, before | after
            good = "critical" if c.step == "look2-on" or case.looks == 1 else "look2"
            # The listing shows all of sure, and any part of maybe.
            if holds(sure | {t for t in maybe if t[0] == i}, i):
                to("A3-alone", step=good, seen=None)
            if not holds(maybe, i) or not holds(sure, i):
                to("A3-not-alone", step="back", seen=None)
        elif c.step == "critical" and kind == "p":
            to("plain-rmd", None if lock is not None and not lock else lock, **idle)
        elif c.step == "critical":
            if lock is None or mine not in lock:
                to("lost", **idle)
                continue
            to("release", lock - {mine}, step="clear")
            if c.faults:
                to("release-reply-lost", lock - {mine}, step="unsure", faults=c.faults - 1)
                to("release-goes-astray", step="unsure", faults=c.faults - 1)
            # Stopped or cut off beyond its lease: the command was stopped, the token stays and goes stale.
            to("expire", (lock - {mine}) | {(i, "late")}, **idle)
            if c.beats:
                to("beat", (lock - {mine}) | {(i, c.version + 1)}, version=c.version + 1,
                   beats=c.beats - 1)
        elif c.step in ("unsure", "overdue"):    # let_go() in ftp.c
            if lock is not None and mine in lock:
                to("release-again", lock - {mine}, step="clear")
            elif c.step == "unsure" or case.naive:
                to("released-before", step="clear")
            else:
                to("gone", **idle)
            if c.step == "unsure":
                to("lease-ends", step="overdue")
        elif c.step == "back":
            if lock is not None and mine in lock:
                to("take-back", lock - {mine}, step="clear")
            else:
                to("gone-already", **idle)
        elif c.step == "clear":
            to("rmd", None if lock is not None and not lock else lock, **idle)
    return out


def violated(state):
    return sum(c.step == "critical" for c in state[1]) > 1


def explore(case, check=True):
    """Returns (number of states, None or the steps that lead to two inside)."""
    start = (None, tuple(Client("idle", 0, None, case.beats, case.faults, False) for _ in case.kinds))
    came_from = {start: None}
    queue = collections.deque([start])
    while queue:
        state = queue.popleft()
        if violated(state):
            trace = []
            while came_from[state]:
                state, name = came_from[state]
                trace.append(name)
            return len(came_from), trace[::-1]
        for name, following in steps(case, check, state):
            if following not in came_from:
                came_from[following] = (state, name)
                queue.append(following)
    return len(came_from), None


def left_by_death():
    """For each step, what there can be of the lock when a client that is alone dies at it."""
    case = Case("alone", "x", faults=1, bare=False)
    start = (None, (Client("idle", 0, None, 0, 1, False),))
    seen, queue, left = {start}, [start], collections.defaultdict(set)
    while queue:
        state = queue.pop()
        lock, clients = state
        # With a command that is still under way, and behind its own old token, it is not alone.
        if not clients[0].late and not any(t[1] == "late" for t in lock or ()):
            left[clients[0].step].add("nothing" if lock is None else "token" if lock else "bare")
        for name, following in steps(case, True, state):
            if name.split()[0] != "die" and "expire" not in name and following not in seen:
                seen.add(following)
                queue.append(following)
    return left


def main():
    check = "--without-check" not in sys.argv[1:]
    wrong = 0
    for case in CASES:
        if not check and not case.holds:
            continue
        states, trace = explore(case, check)
        wrong += (trace is None) != case.holds
        print("%-52s %7d states  %s" % (case.name, states,
              "holds" if trace is None else "VIOLATION: " + ", ".join(trace)), flush=True)
        if not check and trace:
            break
    if check:
        left = left_by_death()
        for step in left:
            print("dead at %-10s %s" % (step, " or ".join(sorted(left[step]))))
        wrong += left != LEFT
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
