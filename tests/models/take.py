#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Several slots for one holder (-j N --take=K, src/lock/slots.c).

Waiters draw tickets; the first collects slots, one by one, as they come free, and keeps them while it waits for the
rest; the later ones wait behind it. Where the queue cannot be used each is the first; then a lock of its own lets
one of them collect at a time. A holder may have a child that takes a slot, too, past the queue, and wait for it: so a
collector gives back what it has, now and then. Any may be killed between any two steps.

Shown, for every interleaving: never more than N slots are held; no waiter starts before one whose ticket is earlier;
and as long as somebody waits, somebody can go on. The naive ways go wrong.
"""
import collections
import explore

# slots: the holder of each, or None. line: the waiters in the order of their tickets. collector: or None.
State = collections.namedtuple("State", "slots line collector jobs")
# step: new, waits, runs, gone. ahead: those with an earlier ticket, when its own was drawn. child: once it runs, a child
# of it needs a slot.
Job = collections.namedtuple("Job", "step take ahead child")


def model(naive="", queue=True, kills=0):
    order = {None: 0, **{i: i + 1 for i in range(9)}}

    def steps(s):
        out = []
        dead = sum(job.step == "killed" for job in s.jobs)
        for i, job in enumerate(s.jobs):
            def to(name, step, slots=s.slots, line=s.line, collector=s.collector, ahead=frozenset(), i=i, job=job,
                   child=job.child):
                jobs = tuple(other._replace(ahead=other.ahead - {i}) if step in ("gone", "killed") else other
                             for other in s.jobs)
                jobs = jobs[:i] + (job._replace(step=step, ahead=ahead, child=child),) + jobs[i + 1:]
                out.append(("%s %d" % (name, i), State(tuple(sorted(slots, key=order.__getitem__)), line, collector, jobs)))  # which slot: no matter

            def freed(i=i):
                return dict(slots=tuple(None if holder == i else holder for holder in s.slots),
                            line=tuple(j for j in s.line if j != i), collector=None if s.collector == i else s.collector)

            mine = sum(holder == i for holder in s.slots)
            free = s.slots.count(None)
            first = not queue or naive == "all collect" or s.line[:1] == (i,)
            if job.step == "new":
                to("draw", "waits", line=s.line + (i,) if queue else (), ahead=frozenset(s.line))
            elif job.step == "waits" and mine == job.take:
                to("run", "runs", line=tuple(j for j in s.line if j != i), ahead=job.ahead,
                   collector=None if s.collector == i else s.collector)
            elif job.step == "waits" and first:
                if job.take > 1 and mine and naive not in ("keeps", "no collector"):
                    to("gives back", "waits", ahead=job.ahead, slots=tuple(None if h == i else h for h in s.slots))
                if job.take > 1 and naive != "no collector" and s.collector != i:
                    if s.collector is None:
                        to("collects", "waits", collector=i, ahead=job.ahead)
                elif free:
                    to("takes", "waits", ahead=job.ahead,
                       slots=(i,) + tuple(h for h in s.slots if h is not None) + (None,) * (free - 1))
            elif job.step == "runs" and not job.child:
                to("end", "gone", **freed())
            elif job.step == "runs" and free: # its child takes the slot, and gives it back
                to("child", "runs", ahead=job.ahead, child=False)
            if job.step in ("waits", "runs") and dead < kills:
                to("kill", "killed", **freed())
        return out

    def wrong(s, following):
        if queue and any(job.step == "runs" and s.jobs[j].step == "waits" for job in s.jobs for j in job.ahead):
            return "one overtook another"
        if not following and any(job.step == "waits" for job in s.jobs):
            return "all wait for each other"
        return None

    return steps, wrong


def case(name, holds, n, takes, parents=(), **how):
    jobs = tuple(Job("new", take, frozenset(), i in parents) for i, take in enumerate(takes))
    return (name, holds, State((None,) * n, (), None, jobs)) + model(**how)


CASES = [
    case("four slots: two big jobs and three small ones", True, 4, (3, 3, 1, 1, 1)),
    case("the same, one of them killed", True, 4, (3, 3, 1, 1, 1), kills=1),
    case("three slots: two big, two small, two of them killed", True, 3, (2, 3, 1, 1), kills=2),
    case("without a queue: two big and two small, one killed", True, 4, (3, 3, 1, 1), queue=False, kills=1),
    case("two slots: a small one whose child needs the other, and a big one", True, 2, (1, 2, 1), parents={0}, kills=1),
    case("naive: a collector keeps what it has", False, 2, (1, 2), parents={0}, naive="keeps"),
    case("naive: without a queue, nobody is the only collector, and none gives back", False, 4, (3, 3, 1), queue=False, naive="no collector"),
    case("naive: all waiters collect", False, 4, (3, 1, 1), naive="all collect"),
]

if __name__ == "__main__":
    explore.main(CASES)
