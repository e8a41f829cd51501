#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""--replace in the queue (src/lock/taking.c, src/preempt/preempt.c, targets.c): waiters, replacers with tickets in front.

For every interleaving, with the death of a replacer at any step: no process that only waits is
signalled; none starts between the signal of a living replacer and that replacer's turn; no holder
is signalled by two living replacers; replacers start in the order of their tickets; no process is
left waiting. Each case named naive leaves out one check, and goes wrong.

H holds at first, until it is signalled. W waits. R replaces. S1, S2: a script that locks its
descriptor twice, with a time limit: the signal goes to the script.
"""
import collections
import explore

# clock: the next ticket. owner: of the lock. procs: see Process.
State = collections.namedtuple("State", "clock owner procs")
# ticket: (range, number) as drawn; has: its byte is locked. sent: the replacers that have signalled it. aim: the
# process it examines. had: found to be first while it had the lock.
Process = collections.namedtuple("Process", "step ticket has sent aim had")
FRESH = Process("new", None, False, frozenset(), None, False)
ENDED = ("end", "dead")


def canonical(s):
    """Only the order of the tickets in use matters."""
    used = sorted({p.ticket[1] for p in s.procs if p.ticket})
    rank = {number: i + 1 for i, number in enumerate(used)}
    return s._replace(clock=len(used) + 1, procs=tuple(
        p._replace(ticket=p.ticket and (p.ticket[0], rank[p.ticket[1]])) for p in s.procs))


def model(names, naive="", deaths=False):
    def earlier(s, i):
        return any(q.has and j != i and q.ticket < s.procs[i].ticket for j, q in enumerate(s.procs))

    def script_target(s, a):
        live = [j for j, n in enumerate(names) if n[0] == "S" and s.procs[j].step not in ("new",) + ENDED]
        return live[0] if names[a][0] == "S" and live else a

    def steps(s):
        out = []

        def to(what, i, owner=s.owner, clock=s.clock, other=None, **own):
            procs = list(s.procs)
            if other:
                procs[other[0]] = procs[other[0]]._replace(**other[1])
            procs[i] = procs[i]._replace(**own)
            if own.get("step") in ENDED or own.get("step") == "run":
                procs[i] = procs[i]._replace(ticket=None, has=False)
            out.append(("%s %s" % (names[i], what), canonical(State(clock, owner, tuple(procs)))))

        for i, p in enumerate(s.procs):
            kind, freed = names[i][0], None if s.owner == i else s.owner
            if p.step in ENDED:
                continue
            if deaths and kind == "R" and p.step not in ("new", "run"):
                to("dies", i, step="dead", owner=freed)
            if p.step == "run":
                if kind != "H" or p.sent:
                    to("ends", i, step="end", owner=freed)
            elif p.step == "new":
                first = s.procs[names.index("S1")] if names[i] == "S2" else None
                if first is None or (first.step == "end" and not first.had):
                    to("clock", i, step="draw", ticket=(0 if kind == "R" else 1, s.clock), clock=s.clock + 1)
            elif p.step == "draw":
                to("draw", i, step="later" if kind == "R" and naive != "no later" else "wait", has=True)
            elif p.step == "later":
                if any(q.has and q.ticket[0] == 0 and q.ticket > p.ticket for q in s.procs):
                    to("again", i, step="new", ticket=None, has=False)
                else:
                    to("last", i, step="wait")
            elif p.step == "wait":
                if kind == "S":
                    to("time out", i, step="end")
                if earlier(s, i) and not (kind == "R" and naive == "all signal"):
                    continue
                if kind != "R":
                    to("head", i, step="sleep")
                elif s.owner is None:
                    to("taken", i, step="look", owner=i)
                else:
                    to("sees", i, step="seen", aim=s.owner)
            elif p.step == "sleep" and s.owner is None:
                if naive == "drop first":
                    to("taken, drop", i, step="look", owner=i, has=False)
                else:
                    to("taken", i, step="look", owner=i)
            elif p.step == "look":
                if earlier(s, i) and (naive != "no look" or kind == "R"):
                    to("gives back", i, step="wait", owner=None, has=True)
                else:
                    to("first", i, step="leave", had=True)
            elif p.step == "leave":
                to("runs", i, step="run")
            elif p.step == "seen":
                looked = s.procs[p.aim]
                script = naive == "script" and names[p.aim][0] == "S"
                if i in looked.sent or (looked.has and naive != "no transit" and not script):
                    to("not it", i, step="wait", aim=None)
                else:
                    to("holder", i, step="proof")
            elif p.step == "proof":
                if s.owner == p.aim:
                    to("proven", i, step="shoot")
                else:
                    to("let go", i, step="wait", aim=None)
            elif p.step == "shoot":
                a = script_target(s, p.aim)
                to("signals %s" % names[a], i, step="wait", aim=None,
                   other=(a, dict(sent=s.procs[a].sent | {i})))
        return out

    def living(s, j):
        return s.procs[j].step not in ENDED + ("run", "new")

    def wrong(s, following):
        for i, p in enumerate(s.procs):
            # Signalled before it was found to be first: it was only waiting.
            if p.sent and names[i] != "H" and not p.had and p.step not in ENDED:
                return "%s is signalled while it waits" % names[i]
            if p.step in ("leave", "run") and len([j for j in p.sent if s.procs[j].step != "dead"]) > 1:
                return "%s is signalled by two" % names[i]
            if p.step != "run" or s.owner != i:
                continue
            for j, q in enumerate(s.procs):
                if names[j][0] == "R" and j != i and living(s, j) and q.has and \
                        any(j in r.sent for k, r in enumerate(s.procs) if k != i):
                    return "%s starts between the signal of %s and its turn" % (names[i], names[j])
        waits = [n for n, p in zip(names, s.procs) if p.step not in ("run", "new") + ENDED]
        lasts = s.procs[0].step == "run" and not any(n[0] == "R" for n in waits)
        if not following and waits and not lasts:
            return "%s waits for nothing" % waits[0]
        return None

    return steps, wrong


def case(name, holds, names, **how):
    names = names.split()
    start = State(1, 0, (FRESH._replace(step="run"),) + (FRESH,) * (len(names) - 1))
    return (name, holds, start) + model(names, **how)


CASES = [
    case("two waiters, a replacer", True, "H W1 W2 R1"),
    case("a waiter, two replacers", True, "H W1 R1 R2"),
    case("three replacers", True, "H R1 R2 R3"),
    case("a waiter, two replacers, which may die", True, "H W1 R1 R2", deaths=True),
    case("a script that tries twice", True, "H S1 S2 R1"),
    case("a waiter and a script", True, "H W1 S1 S2 R1"),
    case("naive: no look for an earlier ticket", False, "H W1 R1", naive="no look"),
    case("naive: the ticket is given up before the look", False, "H W1 R1", naive="drop first"),
    case("naive: any holder is signalled, also in passing", False, "H W1 R1", naive="no transit"),
    case("naive: the script is looked at, not its child", False, "H S1 S2 R1", naive="script"),
    case("naive: no look for a later ticket in front", False, "H R1 R2", naive="no later"),
    case("naive: not only the first replacer signals", False, "H R1 R2", naive="all signal"),
]

if __name__ == "__main__":
    explore.main(CASES)
