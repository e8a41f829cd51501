#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Locks on PostgreSQL (src/locksmith/postgresql/pglock.h): a row is the lock, an advisory lock its queue.

A session with the advisory lock looks for rows, adds its own, and releases the advisory lock when the row is
committed. The server looks and commits in two steps, with any time between them; an answer may take any time; a
session may be cut at any moment, and the server ends its statement before it frees its advisory lock. A row may be
removed by another session when its time has passed. The command runs until it ends, or until the holder's own timer
kills it, at a deadline that is counted from the sending of the statement. Shown: no two commands are ever inside,
and the later one has the higher token. Each case without one of the rules goes wrong.
"""
import collections
import explore

LEASE = 2   # moments
END = 5     # the clock stops here

# rows: (client, token, expires). queue: the advisory lock's owner. token: the next one. highest: of a command
# so far.
State = collections.namedtuple("State", "now rows queue token highest clients failovers")
# asked: when the statement was sent; None: none is under way. server: "" not begun, "looked" (and NEW is what the
# server will write), "done". until: when the command is killed. cut: the session has ended, at least for the client.
Client = collections.namedtuple("Client", "step asked server new until token cut")


def model(naive=""):
    # DELETE waits for an UPDATE under way, and then checks the time again.
    def renewing(s, i):
        c = s.clients[i]
        return c.server == "looked" and naive != "DELETE does not wait for UPDATE"

    def steps(s):
        out = []
        for i, c in enumerate(s.clients):
            def to(name, i=i, c=c, **changes):
                own = {k: changes.pop(k) for k in list(changes) if k in Client._fields}
                clients = s.clients[:i] + (c._replace(**own),) + s.clients[i + 1:]
                out.append(("%s %d" % (name, i), s._replace(clients=clients, **changes)))

            mine = next((r for r in s.rows if r[0] == i), None)
            others = tuple(r for r in s.rows if r[0] != i)
            free = s.queue in (None, i)
            if c.step == "idle" and (free or naive == "a pooler shares sessions"):
                to("queue", step="head", queue=i)
            # The first in the queue.
            if c.step == "head" and not c.cut:
                to("insert", step="entering", asked=s.now, server="")
                for r in others:
                    if (s.now >= r[2] and not renewing(s, r[0])) or naive == "rows removed before their time":
                        to("expire %d by" % r[0], rows=tuple(x for x in s.rows if x != r))
            if c.step == "entering" and c.server == "" and not c.cut:
                if not s.rows or naive == "no row":
                    left = {"queue": None} if naive == "the queue left before the commit" else {}
                    to("look", server="looked", new=(i, s.token, s.now + LEASE), token=s.token + 1, **left)
                else:
                    to("conflict", step="head", asked=None)
            if c.step == "renewing" and c.server == "" and not c.cut:
                if mine:
                    to("evaluate", server="looked", new=(i, mine[1], s.now + LEASE))
                else:
                    to("no row", server="done", new=None)
            # The commit, with or without the client. A row that was removed meanwhile does not come back.
            if c.server == "looked" and "entering" in (c.step, c.cut):
                to("commit", server="done", rows=others + ((c.new,) if naive != "no row" else ()))
            elif c.server == "looked":
                to("commit", server="done", rows=others + ((c.new,) if mine else ()))
            # The answer.
            if c.server == "done" and not c.cut:
                counted_from = s.now if naive == "the lease counted from the answer" else c.asked
                if c.step == "entering":
                    to("entered", step="start", token=c.new[1], until=counted_from + LEASE, asked=None, server="",
                       queue=None if s.queue == i else s.queue)
                elif c.step == "renewing" and c.new:
                    to("renewed", step="inside", until=counted_from + LEASE, asked=None, server="")
                elif c.step == "renewing":
                    to("lost", step="over", asked=None, server="")
            if c.step == "start":
                if s.now < c.until or naive == "no timer":
                    to("run", step="inside", highest=max(s.highest, c.token))
                else:
                    to("too late", step="over")
            if c.step == "inside" and not c.cut and s.now < c.until:
                to("renew", step="renewing", asked=s.now, server="")
            if c.step in ("inside", "renewing") and c.server != "looked":
                if s.now < c.until or naive == "no timer":
                    to("end", step="release" if not c.cut else "over", asked=None, server="")
            if c.step in ("inside", "renewing") and s.now >= c.until and naive != "no timer":
                to("killed", step="over", asked=None)
            if c.step == "release":
                to("release", step="over", rows=others)
            # The session ends; the server frees the advisory lock when the statement has ended.
            if not c.cut and c.step not in ("idle", "over"):
                gone = {"step": "over"} if c.step in ("head", "entering", "start") else {}
                to("cut", cut=c.step, **gone)
            if c.cut and c.server != "looked" and s.queue == i:
                to("unlock", queue=None)
            if c.step == "over" and not c.cut and s.queue == i:
                to("unlock", queue=None)
        late = naive != "no timer" and any(c.step in ("inside", "renewing") and s.now >= c.until for c in s.clients)
        if s.now < END and not late:
            out.append(("tick", s._replace(now=s.now + 1)))
        # All sessions end; the standby has every acknowledged row, if it is synchronous.
        if s.failovers:
            rows = () if naive == "the standby is asynchronous" else s.rows
            clients = tuple(c if c.step in ("idle", "over") or c.cut else c._replace(
                cut=c.step, server="", step="over" if c.step in ("head", "entering", "start") else c.step)
                for c in s.clients)
            out.append(("failover", s._replace(rows=rows, clients=clients, queue=None, failovers=0)))
        return out

    def wrong(s, following):
        running = [c for c in s.clients if c.step in ("inside", "renewing") and
                   (naive == "no timer" or s.now < c.until)]
        if len(running) > 1:
            return "two inside"
        if any(c.token < s.highest for c in running):
            return "an older token after a newer one"
        return None

    return steps, wrong


def case(name, holds, count, failovers=0, naive=""):
    start = State(0, (), None, 1, 0, (Client("idle", None, "", None, 0, 0, ""),) * count, failovers)
    return (name, holds, start) + model(naive)


RULES = ["no row", "the queue left before the commit", "a pooler shares sessions", "rows removed before their time",
         "DELETE does not wait for UPDATE",
         "the lease counted from the answer", "no timer"]
CASES = [case("two", True, 2), case("two, a failover to a synchronous standby", True, 2, 1)]
CASES += [case("naive: " + rule, False, 2, naive=rule) for rule in RULES]
CASES += [case("naive: the standby is asynchronous", False, 2, 1, "the standby is asynchronous")]

if __name__ == "__main__":
    explore.main(CASES)
