#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A deserted lock (src/lock/attempt.c, taking.c, queue.c): tickets give the order; a waiter that /proc shows to be
stopped is passed; whether another one comes, the lock itself shows.

For every interleaving, in time that goes by ticks: with -n a free lock is had whatever tickets lie
before it; a waiter gets a free lock soon, whatever a hostile process does with tickets; a replacer
behind such a ticket still stops the holder; and none of them enters before an older living waiter.
Each case named naive leaves out one check, and goes wrong.

A living process does its step within PROMPT ticks; a command runs for longer than the time
between two looks. (On a machine too busy for that, the order is lost.)

H holds at first, L until it is stopped, E until it ends, at any time. W waits, K until it is
killed. T has a ticket and never comes, and is not seen to be stopped. Z is stopped at any time, once, and goes on at
any time, or never; S is stopped, and never goes on. X moves a ticket before all others as it likes. R replaces.
N is a caller with -n. A name that ends in s: a shared lock.

A whole exclusive lock is free for all or for none: whatever a process sleeps for, it would have it. One that
wants less (a name that ends in s) may find it free while a writer sleeps before it, which the list of locks
shows: but not before that writer has come to be first, nor when it has been woken, and has not run yet. So
the list is read half-way and at the end. At the end alone, the writer may just have been woken; half-way
alone, it may come to sleep later, because the one before it has been killed. (If both happen during the looks
of one process, the order is lost.)

A waiter that becomes the first while it looks takes the lock at its next look: the one behind it looks as well, and
would find it free. If it went to the head of the queue instead, a ticket that comes and goes would keep it out.

The cases with an S or a Z are without looks at the lock ("unlooked"): a stopped waiter is passed by its state alone. A waiter
sees that at its own looks, which come the more seldom the more tickets are before it; with the lock in hand it looks
whether Z has gone on.

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
    unlooked = any(n[0] in "SZ" for n in names)

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

    def before(s, i):
        """The processes whose tickets are before that of I, the stopped ones as well."""
        return [j for j in everyone if names[j][0] in "WKTRSZ" and s.procs[j].step in WAITS + ("stopped",) and
                (j < i or names[i][0] == "N") and j != i]

    def preceded(s, i):
        return s.hostile or any(s.procs[j].step != "stopped" or naive == "unseen" for j in before(s, i))

    def stopped(s):
        return frozenset(j for j in everyone if s.procs[j].step == "stopped")

    def again(s, i):
        """The ticks until the next look of I: the more, the more tickets are before it."""
        return AGAIN * max(len(before(s, i)), 1)

    def actions(s, i):
        """The steps of process I: (name, changes of the owners, changes of its own)."""
        p, kind = s.procs[i], names[i][0]
        mine, without = s.owners | {i}, s.owners - {i}
        looking = dict(step="looking", looks=0, clock=0)
        if kind in "TX" or p.step in ("end", "refused", "stopped"):
            return []
        if p.step == "new":
            if taken(s, i):
                return [("is refused", s.owners, dict(step="refused"))]
            if not preceded(s, i) or naive == "no looks":
                return [("takes", mine, dict(step="run", clock=LONG))]
            return [("is refused", s.owners, dict(step="refused"))] if naive == "obeys" else [("looks", s.owners, looking)]
        if p.step == "asleep":
            if not s.hostile and not before(s, i):
                return [("is first", s.owners, dict(step="head"))]
            if p.clock > 0 or naive == "never" or (naive == "second alone" and len(before(s, i)) > 1):
                return []
            if not preceded(s, i):
                return [("passes the stopped", s.owners, dict(step="head"))]
            if unlooked:
                return [("sees none stopped", s.owners, dict(clock=again(s, i)))]
            if kind == "R" and p.rounds >= 2 and taken(s, i) and naive != "turn":
                return [("stops", s.owners, dict(rounds=0, clock=AGAIN, told=True))]
            return [("looks", s.owners, looking)]
        if p.step == "head":
            if kind == "R" and taken(s, i) and not p.told:
                return [("stops", s.owners, dict(told=True))]
            return [] if taken(s, i) else [("takes", mine, dict(step="transit"))]
        if p.step == "transit":
            if preceded(s, i) and naive != "keeps it":
                if p.clock == 0 and naive != "gives back" and not unlooked:
                    return [("gives back, looks", without, looking)]
                return [("gives back", without, dict(step="asleep"))]
            return [("runs", s.owners, dict(step="run", clock=LONG, old=stopped(s)))]
        if p.step in LOOKING and kind == "N":
            back = dict(step="refused")
        elif p.step in LOOKING:
            back = dict(step="asleep", clock=again(s, i), rounds=p.rounds + (p.rounds < 2))
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
        told = any(q.told for n, q in zip(names, s.procs) if n[0] == "R")
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
        return p.step not in DONE + ("stopped",) and p.due == 0

    def steps(s):
        out = []
        acts = [actions(s, i) for i in everyone]
        for i, p in enumerate(s.procs):
            killed = [("is killed", s.owners - {i}, dict(step="end"))] if names[i][0] == "K" and p.step in WAITS else []
            if names[i][0] == "Z" and p.step in ("asleep", "head") and not p.told:
                killed = [("is stopped", s.owners, dict(step="stopped", told=True))]
            if p.step == "stopped" and names[i][0] == "Z":
                killed = [("goes on", s.owners, dict(step="asleep", clock=AGAIN))]
            for name, owners, own in acts[i] + killed:
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
        late = any(acts[i] and must(s, i) for i in everyone)
        going = any(p.step not in DONE + ("stopped",) and names[i][0] not in "TX" for i, p in enumerate(s.procs))
        if going and not late:
            waits = any(p.step in WAITS and names[i][0] in "WRZ" for i, p in enumerate(s.procs))
            runs = any(p.step == "run" and (names[i][0] != "L" or "R" not in [n[0] for n in names])
                       for i, p in enumerate(s.procs))
            idle = min(s.idle + 1, BOUND + 1) if waits and not runs else 0
            out.append(("tick", s._replace(idle=idle, procs=tuple(
                p._replace(clock=max(p.clock - 1, 0),
                           due=max(p.due - 1, 0) if p.step == "looking" or acts[i] else PROMPT)
                for i, p in enumerate(s.procs)))))
        return out

    strict = not hostile and not any(n[0] == "T" for n in names)

    def wrong(s, following):
        if s.idle > BOUND:
            return "the lock is free, and nobody gets it"
        for i, p in enumerate(s.procs):
            if p.step != "run" or names[i][0] in "HLE" or not strict:
                continue
            # those that were stopped then may have gone on
            older = p.old if names[i][0] == "N" else [j for j in range(i) if j not in p.old]
            for j in older:
                if s.procs[j].step == "transit" and shared(i) and shared(j):
                    continue  # it has the lock already
                if names[j][0] in "WRZ" and s.procs[j].step in WAITS:
                    return "%s enters before %s" % (names[i], names[j])
        callers = [p for n, p in zip(names, s.procs) if n[0] == "N"]
        if not following and callers and all(p.step == "refused" for p in callers) and \
                all(n[0] in "NTX" for n in names):
            return "the lock is free, and refused"
        return None

    return steps, wrong


def case(name, holds, names, **how):
    names = names.split()
    first = {"H": "run", "L": "run", "E": "run", "N": "new", "T": "asleep", "X": "new", "S": "stopped"}
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
    case("-n and a waiter that does not come", True, "T N"),
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
    case("-n -s and a waiter that does not come, in a PID namespace", True, "T Ns", namespace=True),
    case("two with -n -s, that see each other look and probe", True, "T N1s N2s", slowly=True, namespace=True),
    case("naive: -n -s believes the list", False, "Lhs W1 Ns"),
    case("three waiters", True, "H W1 W2 W3"),
    case("a reader behind a writer", True, "Ls W1 Ws"),
    case("a reader behind a writer, as a reader ends", True, "Es W1 Ws"),
    case("a reader behind a writer, as the one before it is killed", True, "Ls K W1 Ws"),
    case("two readers behind a writer, as a reader ends", True, "Es W1 W2s W3s"),
    case("a waiter behind one that does not come", True, "H T W1"),
    case("a waiter and a hostile ticket", True, "H X W1"),
    case("two waiters behind one that does not come", True, "H T W1 W2"),
    case("a waiter behind a stopped one, which goes on", True, "H Z W1"),
    case("a waiter behind two stopped ones", True, "H S1 S2 W1"),
    case("a waiter between two stopped ones", True, "H S W1 Z"),
    case("a replacer and a hostile ticket", True, "L X R"),
    case("a reader behind a writer, in a PID namespace", True, "Lhs W1 Ws", namespace=True),
    case("a reader behind a writer, as a reader ends, in a PID namespace", True, "Ehs W1 Ws", namespace=True),
    case("two readers behind a writer that does not come, in a PID namespace", True, "H T W1s W2s", namespace=True),
    case("naive: a waiter believes the list", False, "Lhs W1 Ws"),
    case("naive: a stopped waiter is obeyed", False, "H Z W1", naive="unseen"),
    case("naive: only the second in line looks", False, "H S1 S2 W1", naive="second alone"),
    case("naive: a waiter that has passed a stopped one does not look for it again", False, "H Z W1", naive="keeps it"),
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
