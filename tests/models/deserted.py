#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A deserted lock (src/lock/attempt.c, taking.c): tickets give the order, the lock itself shows whether a waiter comes.

For every interleaving, in time that goes by ticks: with -n a free lock is had whatever tickets lie
before it; a waiter gets a free lock soon, whatever a hostile process does with tickets; a replacer
behind such a ticket still stops the holder; and none of them enters before an older living waiter.
Each case named naive leaves out one check, and goes wrong.

A living process does its step within PROMPT ticks; a command runs for longer than the time
between two looks. (On a machine too busy for that, the order is lost.)

H holds at first, L until it is stopped, E until it ends, at any time. W waits, K until it is
killed. T is stopped with its ticket. X moves a ticket before all others as it likes. R replaces.
N is a caller with -n. A name that ends in s: a shared lock.

A whole exclusive lock is free for all or for none: whatever a process sleeps for, it would have it. One that
wants less (a name that ends in s) may find it free while a writer sleeps before it, which the list of locks
shows: but not before that writer has come to be first, nor when it has been woken, and has not run yet. So
the list is read half-way and at the end. At the end alone, the writer may just have been woken; half-way
alone, it may come to sleep later, because the one before it has been killed. (If both happen during the looks
of one process, the order is lost.)

A waiter that becomes the first while it looks takes the lock at its next look: the one behind it looks as well, and
would find it free. If it went to the head of the queue instead, a ticket that comes and goes would keep it out.

In a PID namespace, that list leaves out a holder whose name has an h, and the waiters for its
lock. A process that finds no holder in the list tries an exclusive lock, which a holder makes fail: a probe.
"""
import collections
import explore

PROMPT = 4        # ticks within which a living process does its step
# Looks, one a tick, that find a deserted lock free: a living waiter comes to be first, and takes it.
LOOKS = 2 * PROMPT + 2
FIRST, AGAIN = 3, 1  # ticks until a waiter's first look, and between looks
SHORT, LONG = 2, 3   # ticks for which a command runs
BOUND = 2 * (FIRST + LOOKS + 3 * PROMPT)  # ticks until a free lock is taken

# owners: of the lock. hostile: is there a ticket of X? idle: ticks for which the lock has been free for the
# waiters.
State = collections.namedtuple("State", "owners hostile idle procs")
# due: ticks until its step; clock: until its look; looks: that found the lock free; rounds: of looks.
# old: the waiters that came before it. told: to stop.
Process = collections.namedtuple("Process", "step due clock looks rounds old told")
WAITS = ("asleep", "head", "looking", "listed", "unlisted", "probed", "peek", "transit")
LOOKING = ("looking", "listed", "unlisted", "probed", "peek")
DONE = ("end", "refused", "new")


def model(names, naive="", slowly=False, namespace=False):
    everyone = range(len(names))
    hostile = "X" in names

    def shared(i):
        return names[i][-1] == "s"

    def taken(s, i):
        """True if a holder excludes process I."""
        return any(j != i and not (shared(i) and shared(j) and s.procs[j].step != "probed") for j in s.owners)

    def hidden(j):
        return "h" in names[j]

    def sleeper(s, i):
        return naive != "no sleepers" and not any(hidden(j) for j in s.owners) and any(
            j != i and s.procs[j].step == "head" and names[j][0] != "T" and taken(s, j) for j in everyone)

    def reads(looks):
        """True if the list is read after so many LOOKS, before the last."""
        return looks == LOOKS // 2 and naive != "end"

    def unlisted(s):
        """In a PID namespace: the lock is held, by processes that the list does not show."""
        return namespace and bool(s.owners) and all(hidden(j) for j in s.owners)

    def ticket(s, j):
        return names[j][0] in "WKTR" and s.procs[j].step in WAITS

    def preceded(s, i):
        return s.hostile or any(ticket(s, j) and (j < i or names[i][0] == "N") and j != i for j in everyone)

    def actions(s, i):
        """The steps of process I: (name, changes of the owners, changes of its own)."""
        p, kind = s.procs[i], names[i][0]
        mine, without = s.owners | {i}, s.owners - {i}
        looking = dict(step="looking", looks=0, clock=0)
        back = dict(step="refused") if kind == "N" else dict(step="asleep", clock=AGAIN, rounds=p.rounds + (p.rounds < 2))
        if kind in "TX" or p.step in ("end", "refused"):
            return []
        if p.step == "new":
            if taken(s, i):
                return [("is refused", s.owners, dict(step="refused"))]
            if not preceded(s, i) or naive == "no looks":
                return [("takes", mine, dict(step="run", clock=LONG))]
            return [("is refused", s.owners, dict(step="refused"))] if naive == "obeys" else [("looks", s.owners, looking)]
        if p.step == "asleep":
            if not preceded(s, i):
                return [("is first", s.owners, dict(step="head"))]
            if p.clock > 0 or naive == "never":
                return []
            if kind == "R" and p.rounds >= 2 and taken(s, i) and naive != "turn":
                return [("stops", s.owners, dict(rounds=0, clock=AGAIN, told=True))]
            return [("looks", s.owners, looking)]
        if p.step == "head":
            if kind == "R" and taken(s, i) and not p.told:
                return [("stops", s.owners, dict(told=True))]
            return [] if taken(s, i) else [("takes", mine, dict(step="transit"))]
        if p.step == "transit":
            if preceded(s, i):
                if p.clock == 0 and naive != "gives back":
                    return [("gives back, looks", without, looking)]
                return [("gives back", without, dict(step="asleep"))]
            return [("runs", s.owners, dict(step="run", clock=LONG))]
        if p.step == "looking":
            if p.due:
                return []
            if taken(s, i):
                return [("sees it busy", s.owners, back)]
            if p.looks > 0 and kind != "N" and not preceded(s, i):
                if naive == "leaves":
                    return [("is first", s.owners, dict(step="head"))]
                return [("is first, takes", mine, dict(step="run", clock=LONG))]
            if shared(i) and reads(p.looks) and (sleeper(s, i) or unlisted(s)):
                return [("finds a sleeper half-way", s.owners, back)]
            if p.looks < (1 if naive == "one look" and kind == names[-1][0] else LOOKS):
                if slowly:
                    return [("sees it free", mine, dict(step="peek"))]
                return [("sees it free", s.owners, dict(looks=p.looks + 1, due=1))]
            if naive == "yields" and preceded(s, i):
                return [("takes it, gives it back", s.owners, back)]
            if not shared(i) or naive == "half-way":
                return [("takes", mine, dict(step="run", clock=LONG))]
            if sleeper(s, i):
                return [("finds a sleeper in the list", s.owners, back)]
            if namespace and all(hidden(j) for j in s.owners):
                return [("finds no holder in the list", s.owners, dict(step="unlisted"))]
            return [("finds no sleeper in the list", s.owners, dict(step="listed"))]
        if p.step == "listed":
            if taken(s, i):
                return [("is late", s.owners, back)]
            return [("takes", mine, dict(step="run", clock=LONG))]
        if p.step == "unlisted":
            return [("sees it busy", s.owners, back)] if s.owners else [("probes", mine, dict(step="probed"))]
        if p.step == "probed":
            return [("lets go", without, dict(step="listed"))]
        if p.step == "peek":
            return [("lets go", without, dict(step="looking", looks=p.looks + 1, due=1))]
        told = any(q.told for q in s.procs)
        if kind == "L":
            return [("ends", without, dict(step="end"))] if told else []
        return [("ends", without, dict(step="end"))] if p.clock <= LONG - SHORT else []

    def must(s, i):
        """True if no tick may pass before the step of process I."""
        p = s.procs[i]
        if p.step in LOOKING:
            return True
        if p.step == "run":
            return p.clock == 0 and names[i][0] != "E"
        return p.step not in DONE and p.due == 0

    def steps(s):
        out = []
        for i, p in enumerate(s.procs):
            killed = [("is killed", s.owners - {i}, dict(step="end"))] if names[i][0] == "K" and p.step in WAITS else []
            for name, owners, own in actions(s, i) + killed:
                after = dict(due=PROMPT)
                after.update(own)
                if after.get("step") == "looking" and p.step not in LOOKING:
                    after["due"] = 0
                procs = list(s.procs)
                procs[i] = p._replace(**after)
                if p.step == "new":  # a process begins: the waiters are its predecessors
                    procs[i] = procs[i]._replace(old=frozenset(
                        j for j in everyone if names[j][0] in "WR" and s.procs[j].step in ("asleep", "head")))
                out.append(("%s %s" % (names[i], name), s._replace(owners=frozenset(owners), procs=tuple(procs))))
        if hostile:
            procs = s.procs
            if naive == "moves":
                procs = tuple(p._replace(clock=FIRST) if p.step == "asleep" else p for p in procs)
            out.append(("X moves", s._replace(hostile=not s.hostile, procs=procs)))
        late = [i for i in everyone if actions(s, i) and must(s, i)]
        going = any(p.step not in DONE and names[i][0] not in "TX" for i, p in enumerate(s.procs))
        if going and not late:
            waits = any(p.step in WAITS and names[i][0] in "WR" for i, p in enumerate(s.procs))
            runs = any(p.step == "run" and (names[i][0] != "L" or "R" not in [n[0] for n in names])
                       for i, p in enumerate(s.procs))
            idle = min(s.idle + 1, BOUND + 1) if waits and not runs else 0
            out.append(("tick", s._replace(idle=idle, procs=tuple(
                p._replace(clock=max(p.clock - 1, 0),
                           due=max(p.due - 1, 0) if p.step == "looking" or actions(s, i) else PROMPT)
                for i, p in enumerate(s.procs)))))
        return out

    strict = not hostile and not any(n[0] == "T" for n in names)

    def wrong(s, following):
        if s.idle > BOUND:
            return "the lock is free, and nobody gets it"
        for i, p in enumerate(s.procs):
            if p.step != "run" or names[i][0] in "HLE" or not strict:
                continue
            older = p.old if names[i][0] == "N" else range(i)
            for j in older:
                if s.procs[j].step == "transit" and shared(i) and shared(j):
                    continue  # it has the lock already
                if names[j][0] in "WR" and s.procs[j].step in WAITS:
                    return "%s enters before %s" % (names[i], names[j])
        callers = [p for n, p in zip(names, s.procs) if n[0] == "N"]
        if not following and callers and all(p.step == "refused" for p in callers) and \
                all(n[0] in "NTX" for n in names):
            return "the lock is free, and refused"
        return None

    return steps, wrong


def case(name, holds, names, **how):
    names = names.split()
    first = {"H": "run", "L": "run", "E": "run", "N": "new", "T": "asleep", "X": "new"}
    procs = tuple(Process(first.get(n[0], "asleep"), PROMPT, LONG if n[0] in "HLE" else FIRST, 0, 0,
                          frozenset(), False) for n in names)
    owners = frozenset(i for i, n in enumerate(names) if n[0] in "HLE")
    return (name, holds, State(owners, False, 0, procs)) + model(names, **how)


CASES = [
    case("-n beside two waiters", True, "H W1 W2 N"),
    case("two with -n beside a waiter", True, "H W1 N1 N2"),
    case("-n -s beside a waiter for all of it", True, "Ls W1 Ns"),
    case("-n -s beside a waiter, as a reader ends", True, "Es W1 Ns"),
    case("-n -s beside a waiter, as the one before it is killed", True, "Ls K W1 Ns"),
    case("two with -n -s beside a waiter, as a reader ends", True, "Es W1 N1s N2s"),
    case("-n and a stopped waiter", True, "T N"),
    case("-n and a hostile ticket", True, "X N"),
    case("three with -n, that see each other look", True, "T N1 N2 N3", slowly=True),
    case("naive: -n obeys each ticket", False, "T N", naive="obeys"),
    case("naive: -n takes what it finds free", False, "H W1 N", naive="no looks"),
    case("naive: -n looks once", False, "H W1 W2 N", naive="one look"),
    case("naive: -n looks for no sleeper", False, "Ls W1 Ns", naive="no sleepers"),
    case("naive: -n -s reads the list at the end alone", False, "Es W1 Ns", naive="end"),
    case("naive: -n -s reads the list half-way alone", False, "Ls K W1 Ns", naive="half-way"),
    case("-n -s beside a waiter, in a PID namespace", True, "Lhs W1 Ns", namespace=True),
    case("-n -s beside a waiter, as a reader ends, in a PID namespace", True, "Ehs W1 Ns", namespace=True),
    case("-n -s and a stopped waiter, in a PID namespace", True, "T Ns", namespace=True),
    case("two with -n -s, that see each other look and probe", True, "T N1s N2s", slowly=True, namespace=True),
    case("naive: -n -s believes the list", False, "Lhs W1 Ns"),
    case("three waiters", True, "H W1 W2 W3"),
    case("a reader behind a writer", True, "Ls W1 Ws"),
    case("a reader behind a writer, as a reader ends", True, "Es W1 Ws"),
    case("a reader behind a writer, as the one before it is killed", True, "Ls K W1 Ws"),
    case("two readers behind a writer, as a reader ends", True, "Es W1 W2s W3s"),
    case("a waiter behind a stopped one", True, "H T W1"),
    case("a waiter and a hostile ticket", True, "H X W1"),
    case("two waiters behind a stopped one", True, "H T W1 W2"),
    case("a replacer and a hostile ticket", True, "L X R"),
    case("a reader behind a writer, in a PID namespace", True, "Lhs W1 Ws", namespace=True),
    case("a reader behind a writer, as a reader ends, in a PID namespace", True, "Ehs W1 Ws", namespace=True),
    case("two readers behind a stopped writer, in a PID namespace", True, "H T W1s W2s", namespace=True),
    case("naive: a waiter believes the list", False, "Lhs W1 Ws"),
    case("naive: a waiter never looks", False, "H T W1", naive="never"),
    case("naive: a waiter looks once", False, "H W1 W2 W3", naive="one look"),
    case("naive: a waiter looks for no sleeper", False, "Ls W1 Ws", naive="no sleepers"),
    case("naive: a waiter that has become the first is soon kept out again", False, "H X W1", naive="leaves"),
    case("naive: a ticket that moves sets the clock back", False, "H X W1", naive="moves"),
    case("naive: a deserted lock is given back to an earlier ticket", False, "H X W1", naive="yields"),
    case("naive: after giving it back, a waiter does not ask the clock", False, "H X W1", naive="gives back"),
    case("naive: a replacer waits for its turn", False, "L X R", naive="turn"),
]

if __name__ == "__main__":
    explore.main(CASES)
