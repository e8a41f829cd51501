#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Locks on PostgreSQL (src/locksmith/postgresql/pglock.h): places in the queue and locks are rows with a lease.

A step takes the name's advisory lock, removes the locks whose time has passed, and places sooner or later, decides,
and commits: in two moves, with any time and any other client's moves between them. So does a renewal, which locks its
row. An answer takes any time, or is lost: then the statement may still run, later, and the client asks again. A
client may die at any moment. The command runs until it ends, or until its own timer kills it, at a deadline that is
counted from the sending. In the cases with a failover all rows are as the standby has them, which follows at any
time, and all statements are lost. Shown: no two commands are ever inside but two readers, and the later one has the
higher token. Each case without one of the rules goes wrong.
"""
import collections
import explore

LEASE = 2   # moments
END = 4     # the clock stops here; with three clients two moments earlier

# rows: (client, ticket, token or 0, until). decider: who has the advisory lock. highest: token of a command so far.
# standby: (rows, ticket, token), or None: there is none.
State = collections.namedtuple("State", "now rows decider ticket token highest clients losses standby")
# step: idle queue start inside over. op: the query under way; late: one whose client has given it up.
Client = collections.namedtuple("Client", "step op late token until dead shared")
# kind: step renew. at: 0 not begun, 1 not committed, 2 done. row: the client's, as the query leaves it. seen: for the
# naive one that looks before it has the advisory lock.
Op = collections.namedtuple("Op", "kind sent at row seen")


def model(naive=""):
    def in_the_way(s, i, rows, ticket):
        c = s.clients[i]
        for r in rows:
            if r[0] == i or (c.shared and s.clients[r[0]].shared):
                continue
            if r[2] and naive == "only earlier tickets count":
                if r[1] < ticket:
                    return True
            elif r[2]:
                if s.now < r[3] or naive != "locks whose time has passed are passed over":
                    return True
            elif r[1] < ticket and s.now < r[3] and naive != "no order":
                return True
        return False

    def renewing(s, row):
        return any(op and op.kind == "renew" and op.at == 1 for op in s.clients[row[0]][1:3])

    def server(s, i, op):
        """The moves of the server with one query: (name, what becomes of the query, changes of the state)."""
        mine = next((r for r in s.rows if r[0] == i), None)
        others = tuple(r for r in s.rows if r[0] != i)
        put = lambda row: tuple(sorted(others + (row,)))
        if op.at == 0 and any(other and other.at == 1 for other in s.clients[i][1:3]):
            return  # its other query has locked the row
        if op.kind == "step" and op.at == 0 and (s.decider is None or naive == "no advisory lock"):
            over = [r for r in others if s.now >= r[3] or naive == "rows are removed before their time"]
            locks = [] if naive == "locks whose time has passed are passed over" else [r for r in over if r[2]]
            if naive != "DELETE does not wait for a renewal" and any(renewing(s, r) for r in locks):
                return
            places = [r for r in over if not r[2]]
            for old in [locks, locks + places] if places else [locks]:  # a place is kept for a while
                rows = tuple(r for r in s.rows if r not in old)
                ticket = mine[1] if mine else i if naive == "only earlier tickets count" else s.ticket
                token = mine[2] if mine else 0
                drawn = 0
                if not token and not in_the_way(s, i, op.seen if op.seen is not None else rows, ticket):
                    token, drawn = s.token, 1
                yield ("decides", op._replace(at=1, row=(i, ticket, token, s.now + LEASE), seen=None), dict(
                    rows=rows, decider=i, ticket=s.ticket + (mine is None), token=s.token + drawn))
        elif op.kind == "step" and op.at == 1:
            yield "commits", op._replace(at=2), dict(rows=put(op.row), decider=None)
        elif op.kind == "renew" and op.at == 0:
            if mine and mine[2]:
                yield "finds its row", op._replace(at=1, row=mine[:3] + (s.now + LEASE,)), {}
            elif naive == "a renewal puts the row back":
                row = (i, 0, s.clients[i].token, s.now + LEASE)
                yield "puts its row back", op._replace(at=2, row=row), dict(rows=put(row))
            else:
                yield "finds no row", op._replace(at=2), {}
        elif op.kind == "renew" and op.at == 1:
            yield "renews", op._replace(at=2), dict(rows=put(op.row) if mine else s.rows)

    def steps(s):
        out = []
        for i, c in enumerate(s.clients):
            def to(name, i=i, c=c, **changes):
                own = {k: changes.pop(k) for k in list(changes) if k in Client._fields}
                clients = s.clients[:i] + (c._replace(**own),) + s.clients[i + 1:]
                out.append(("%d %s" % (i, name), s._replace(clients=clients, **changes)))

            seen = s.rows if naive == "the look is older than the advisory lock" else None
            if c.step in ("idle", "queue") and not c.op and not c.dead:
                to("asks", step="queue", op=Op("step", s.now, 0, None, seen))
            if c.step == "inside" and not c.op and not c.dead and s.now < c.until:
                to("asks again", op=Op("renew", s.now, 0, None, None))
                to("ends", step="over", rows=tuple(r for r in s.rows if r[0] != i))
            for slot in "op", "late":
                op = getattr(c, slot)
                if op and op.at < 2:
                    for name, after, changes in server(s, i, op):
                        to(name if slot == "op" else "late, " + name,
                           **{slot: after if slot == "op" or after.at < 2 else None}, **changes)
            # The answer; it counts when the standby has the row.
            if c.op and c.op.at == 2 and not c.dead:
                row, sent = c.op.row, s.now if naive == "the lease is counted from the answer" else c.op.sent
                known = not s.standby or naive == "nobody waits for the standby" or row in s.standby[0]
                if c.op.kind == "step" and not row[2]:
                    to("waits", op=None)
                elif c.op.kind == "step" and known:
                    to("enters", step="start", op=None, token=row[2], until=sent + LEASE)
                elif c.op.kind == "renew" and not row:
                    to("has lost", step="over", op=None)
                elif c.op.kind == "renew" and known:
                    to("goes on", op=None, until=max(c.until, sent + LEASE))
            if c.step == "start":
                if s.now < c.until and not c.dead:
                    to("runs", step="inside", highest=max(s.highest, c.token))
                else:
                    to("is too late", step="over")
            if c.step == "inside" and s.now >= c.until and naive != "no timer":
                to("is killed", step="over", op=None, late=c.op if c.op and c.op.at < 2 else c.late)
            if s.losses and c.op and not c.dead and not c.late:
                to("loses its session", op=None, late=c.op if c.op.at < 2 else None, losses=s.losses - 1)
            if s.losses and not c.dead and c.step in ("queue", "inside"):
                to("dies", dead=True, losses=s.losses - 1)
        late = naive != "no timer" and any(c.step == "inside" and s.now >= c.until for c in s.clients)
        if s.now < END - 2 * (len(s.clients) > 2) and not late:
            out.append(("tick", s._replace(now=s.now + 1)))
        if s.standby:
            if s.standby != (s.rows, s.ticket, s.token):
                out.append(("the standby follows", s._replace(standby=(s.rows, s.ticket, s.token))))
            rows, ticket, token = s.standby
            out.append(("failover", s._replace(rows=rows, ticket=ticket, token=token, standby=None, decider=None,
                        clients=tuple(c._replace(op=None, late=None) for c in s.clients))))
        return out

    def wrong(s, following):
        inside = [c for c in s.clients if c.step == "inside" and (naive == "no timer" or s.now < c.until)]
        if any(not (a.shared and b.shared) for n, a in enumerate(inside) for b in inside[:n]):
            return "two inside"
        if any(c.token < s.highest and not c.shared for c in inside):
            return "an older token after a newer one"
        return None

    return steps, wrong


def case(name, holds, count, losses=0, naive="", shared=(), standby=False):
    clients = tuple(Client("idle", None, None, 0, 0, False, k in shared) for k in range(count))
    start = State(0, (), None, 1, 1, 0, clients, losses, ((), 1, 1) if standby else None)
    return (name, holds, start) + model(naive)


RULES = ["no advisory lock", "the look is older than the advisory lock", "rows are removed before their time",
         "locks whose time has passed are passed over", "DELETE does not wait for a renewal",
         "the lease is counted from the answer", "no timer", "a renewal puts the row back", "only earlier tickets count"]
CASES = [case("two, one loss", True, 2, 1), case("two, a failover", True, 2, standby=True),
         case("two, in any order: still safe", True, 2, 1, "no order"),
         case("three, two are readers", True, 3, shared=(0, 2))]
CASES += [case("naive: " + rule, False, 2, 1, rule) for rule in RULES]
CASES += [case("naive: nobody waits for the standby", False, 2, 0, "nobody waits for the standby", standby=True)]

if __name__ == "__main__":
    explore.main(CASES)
