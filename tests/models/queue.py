#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The queue (src/lock/queue.h): tickets, and the queue's file, which the last process to leave removes.

Shown, for every interleaving, with kills at any step: a process that had its ticket before another
began is served before that other; and no process is left waiting for a free lock. Each naive case
leaves out one precaution, and goes wrong.
"""
import collections
import explore

# path: the queue file under the name, 0: none. files: how many have been made.
# sealed: {(file, process)}: the file is locked as a whole by the process that is about to remove it.
# drawn: the processes in the order of their tickets' numbers. holder: of the lock, or None.
State = collections.namedtuple("State", "path files sealed drawn holder processes")
# file: the open one, 0: none. ahead: the processes to be served before. kills: that may still come.
Process = collections.namedtuple("Process", "step file ticket ahead rounds")

WAITING = ("await", "take")


def model(naive="", kills=0):
    def steps(s):
        out = []
        for i, p in enumerate(s.processes):
            def to(name, i=i, p=p, s=s, **changes):
                own = {k: changes.pop(k) for k in list(changes) if k in Process._fields}
                after = s._replace(**changes)
                processes = list(after.processes)
                processes[i] = p._replace(**own)
                if own.get("step") == "begin":  # a process that starts again is a new one
                    processes = [q._replace(ahead=q.ahead - {i}) for q in processes]
                out.append(("%s %d" % (name, i), after._replace(processes=tuple(processes))))

            def gone(s=s, i=i):  # closed: the kernel drops the ticket, and the seal
                return dict(drawn=tuple(d for d in s.drawn if d != i),
                            sealed=frozenset(x for x in s.sealed if x[1] != i), file=0, ticket=False)

            def tickets(f, but=None, s=s):
                return [d for d in s.drawn if d != but and s.processes[d].ticket and s.processes[d].file == f]

            if p.step == "begin" and p.rounds:
                ahead = frozenset(j for j, q in enumerate(s.processes) if q.step in WAITING)
                to("begin", step="try" if s.path == 0 else "open", file=s.path, ahead=ahead)
            elif p.step == "try":
                if s.holder is None:
                    to("taken at once", step="inside", holder=i)
                else:
                    to("busy", step="open")
            elif p.step == "open":
                if p.file:
                    to("has it open", step="clock")
                elif s.path:
                    to("open", step="clock", file=s.path)
                else:
                    to("make", step="clock", file=s.files + 1, path=s.files + 1, files=s.files + 1)
            elif p.step == "clock":
                to("clock", step="draw", drawn=s.drawn + (i,))
            elif p.step == "draw":
                if any(f == p.file for f, _ in s.sealed):
                    to("sealed", step="clock", drawn=tuple(d for d in s.drawn if d != i))
                else:
                    to("draw", step="await" if naive == "no look" else "look", ticket=True)
            elif p.step == "look":
                if s.path == p.file:
                    to("joined", step="await")
                else:
                    to("removed", step="open", **gone())
            elif p.step == "await":
                before = tickets(p.file)
                if before.index(i) == 0:
                    to("my turn", step="take")
            elif p.step == "take" and s.holder is None:
                to("taken", step="leave", holder=i)
            elif p.step == "leave":
                if tickets(p.file, i) or any(f == p.file for f, _ in s.sealed):
                    to("leave", step="inside", **gone())
                elif naive == "unsealed":
                    to("looks alone", step="remove")
                elif naive == "closed first":
                    to("alone, close", step="remove", **gone())
                else:
                    to("alone", step="remove", sealed=s.sealed | {(p.file, i)})
            elif p.step == "remove":
                to("remove", step="inside", path=0, **gone())
            elif p.step == "inside":
                to("release", step="begin", holder=None, rounds=p.rounds - 1, ahead=frozenset())
            if kills and p.step not in ("begin", "dead"):
                dead = dict(step="dead", holder=None if s.holder == i else s.holder, ahead=frozenset())
                if sum(q.step == "dead" for q in s.processes) < kills:
                    to("killed", **{**gone(), **dead})
        return out

    def wrong(s, following):
        for i, p in enumerate(s.processes):
            if p.step in ("leave", "remove", "inside"):
                for j in p.ahead:
                    if s.processes[j].step in WAITING:
                        return "%d overtook %d" % (i, j)
        if not following and any(p.step not in ("begin", "dead") for p in s.processes):
            return "somebody waits for nothing"
        return None

    return steps, wrong


def case(name, holds, count, rounds=1, **how):
    start = State(0, 0, frozenset(), (), None, (Process("begin", 0, False, frozenset(), rounds),) * count)
    return (name, holds, start) + model(**how)


CASES = [
    case("three", True, 3),
    case("three, one of them killed", True, 3, kills=1),
    case("two, three times each", True, 2, rounds=3),
    case("two, twice each, one of them killed", True, 2, rounds=2, kills=1),
    case("four", True, 4),
    case("naive: the file is removed without sealing it", False, 4, naive="unsealed"),
    case("naive: closed first, then removed", False, 4, naive="closed first"),
    case("naive: no look whether the ticket's file is still there", False, 4, naive="no look"),
]

if __name__ == "__main__":
    explore.main(CASES)
