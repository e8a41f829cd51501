#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The start barrier (src/run/start.c): the record of a lock made of files names the command before it runs.

semlock starts the command's process, which waits at the barrier (here: the gate); writes its PID into
the record; publishes the record under the lock's name; and opens the barrier. Any process may be
killed between any two steps. Another semlock takes the lock over when the process of the recorded PID
has ended. Shown, for every interleaving: no two commands are ever inside, and the lock can be taken
when all its processes are dead. The naive ways go wrong.

semlock_file.pml has the locks that the kernel helps to guard; this model is for a lock that cannot be
flocked: on NFS, or a symbolic link.
"""
import collections
import explore

# lock: None, or the PID in the record under the name.
State = collections.namedtuple("State", "lock pairs")
# semlock: its step, or "dead". command: "", "gate", "inside", "dead". opened: the byte is on its way.
Pair = collections.namedtuple("Pair", "semlock command opened kills")


def model(naive=""):
    start_at = "inside" if naive == "no gate" else "gate"

    def alive(s, pid):
        pair, who = pid
        return (s.pairs[pair].command if who == "command" else s.pairs[pair].semlock) not in ("", "dead", "idle")

    def steps(s):
        out = []
        for i, p in enumerate(s.pairs):
            def to(name, lock=s.lock, i=i, p=p, **changes):
                pairs = s.pairs[:i] + (p._replace(**changes),) + s.pairs[i + 1:]
                out.append(("%s %d" % (name, i), State(lock, pairs)))

            named = (i, "semlock" if naive == "own PID" else "command")
            if p.semlock == "idle":
                to("start", semlock="publish", command=start_at)
            elif p.semlock == "publish":
                if s.lock is None:
                    to("publish", lock=named, semlock="open")
                elif not alive(s, s.lock):
                    to("break", lock=None)
            elif p.semlock == "open":
                to("open", semlock="watch", opened=True)
            elif p.semlock == "watch" and p.command == "dead":
                to("remove", lock=None if s.lock == named else s.lock, semlock="dead")
            if p.command == "gate" and p.opened:
                to("run", command="inside")
            elif p.command == "gate" and p.semlock == "dead" and not p.opened:
                to("end of file", command="dead")  # the other end is closed, and nothing was sent
            elif p.command == "inside":
                to("end", command="dead")
            if p.kills:
                if p.semlock not in ("idle", "dead"):
                    to("kill semlock", semlock="dead", kills=p.kills - 1)
                if p.command not in ("", "dead"):
                    to("kill command", command="dead", kills=p.kills - 1)
        return out

    def wrong(s, following):
        if sum(p.command == "inside" for p in s.pairs) > 1:
            return "two inside"
        if not following and any(p.semlock == "publish" for p in s.pairs):
            return "nobody can have it any more"
        return None

    return steps, wrong


def case(name, holds, count, kills, **how):
    return (name, holds, State(None, (Pair("idle", "", False, kills),) * count)) + model(**how)


CASES = [
    case("two, each killed once", True, 2, 1),
    case("two, each killed twice", True, 2, 2),
    case("three, each killed once", True, 3, 1),
    case("naive: the command runs before it is named", False, 2, 0, naive="no gate"),
    case("naive: the record names semlock", False, 2, 1, naive="own PID"),
]

if __name__ == "__main__":
    explore.main(CASES)
