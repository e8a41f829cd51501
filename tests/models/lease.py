#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Locks on etcd (src/locksmith/etcd/etcd_key.h), and the timer on the lease (src/methods/server/lease.c).

Keys in the order of their creation, each under a lease. A client whose key has nothing before it puts it as the
holder's, under a lease that was never renewed, and may then run its command until its own clock says that the lease
may have ended: counted from the request, not from the answer. To hold on, it puts its key, if it is there still,
under a lease granted since. A waiter renews its lease by keepalives.

Requests and answers may take any time, or get lost; a semlock may be stopped or cut off; only its own timer is taken
to be in time. "Forgetful": etcd may end a lease early that was renewed, and confirm the renewal of one that has
ended. A member of the cluster may carry a put out late, when another has done it, or a newer one: so a put has the
condition that the key was not put since. A server without room, or a right that was taken away: a put may be refused,
and the holder keeps the lease that its key is under, as etcdctl lock does, and that of a put which may come late. That
is safe unless etcd is forgetful. A slow server is asked for a long lease: one that holds the lock may be of any
length, but never ends before the one that it replaces, as the key may be under either when an answer is lost. Shown: no
two commands that exclude each other are ever inside, and of two holders the later has the higher token. The naive ways
go wrong.

Times are counted from now, and no state is told from another by what cannot matter any more: so there is no end of
time, and all states are seen.
"""
import collections
import functools

import explore

LEASE = 2   # moments that the server grants
SLOTS = 2   # of the clients n
ROOM = "no room at times"   # the server refuses a holder's put, and its lease is kept instead
LATE = "a put comes late"   # that a member has held up
LONG = LEASE + 1    # of a server that is slow
MIXED = "a lease may be long"

# keys: in order. forgets: leases that may still end early, None: of an etcd that is not forgetful. highest: the
# highest token of a command so far.
State = collections.namedtuple("State", "keys clients highest forgets")
# left: until the lease ends; None: it does not, its owner renews it in time. holds: 0: it waits; else the slot and 1.
Key = collections.namedtuple("Key", "client left renewed holds")
# age: of the request under way; None: there is none. stage: of the server with it: "", "granted", "put".
# granted: of the lease granted for it, the time left. left: until the command is killed. kept: a keepalive was sent.
# late: of the lease of a put that a member holds up, the time left; None: there is none. size: of the lease asked for.
Client = collections.namedtuple("Client", "step age stage granted left kept token late size", defaults=[None, LEASE])

NONE = dict(age=None, stage="", granted=0, size=LEASE)
IDLE = Client("idle", None, "", 0, 0, False, 0)
OVER = Client("over", None, "", 0, 0, False, 0)


@functools.lru_cache(None)  # most states are reached in several ways
def normal(kinds, keys, clients, highest, forgets=None):
    """Tokens by their rank, where they are compared; clients of a kind, which are alike, in order."""
    if not set(kinds) & set("xe"):
        clients, highest = [c._replace(token=0) for c in clients], 0
    ranks = {t: i for i, t in enumerate(sorted({0, highest} | {c.token for c in clients}))}
    order = sorted(range(len(clients)), key=lambda i: (
        kinds[i], clients[i].step, repr(clients[i]), [(p, k[1:]) for p, k in enumerate(keys) if k.client == i]))
    # The clients of a kind stand together in kinds: a kind keeps its places.
    place = {old: new for new, old in enumerate(order)}
    return State(tuple(k._replace(client=place[k.client]) for k in keys),
                 tuple(clients[i]._replace(token=ranks[clients[i].token]) for i in order), ranks[highest], forgets)


def place_of(kinds, s, i):
    """The number of the slot, or 1, that is free for the key of i or a new one; 0: it is to wait."""
    place = next((p for p, k in enumerate(s.keys) if k.client == i), len(s.keys))
    before = [kinds[k.client] for k in s.keys[:place]]
    kind = kinds[i]
    if kind in "xe" and before or any(b != kind for b in before):
        return 0
    if kind != "n":
        return 1
    taken = {k.holds for k in s.keys if kinds[k.client] == "n"}
    free = [n for n in range(1, SLOTS + 1) if n not in taken]
    return free[0] if len(before) < SLOTS and free else 0


def fault(kinds, s):
    inside = [i for i, c in enumerate(s.clients) if c.step == "inside" and (c.left > 0 or kinds[i] == "e")]
    held = [next((k.holds for k in s.keys if k.client == i), 0) for i in inside]
    if len(inside) > 1 and "".join(kinds[i] for i in inside) not in ("ss", "nn"):
        return "two inside"
    if all(kinds[i] == "n" for i in inside) and len(set(held)) < len(held):
        return "two with one number"
    if len(inside) == 1 and kinds[inside[0]] in "xe" and s.clients[inside[0]].token < s.highest:
        return "an older token after a newer one"
    return None


def etcdctl(to, s, i, free, new_token):
    """The steps of etcdctl lock, whose lease is renewed in time."""
    c, rest = s.clients[i], tuple(k for k in s.keys if k.client != i)
    if c.step == "idle":
        to("put", keys=s.keys + (Key(i, None, False, 0),), step="look")
    if c.step == "look" and free:
        to("enter", keys=tuple(k._replace(holds=1) if k.client == i else k for k in s.keys), step="inside",
           token=new_token, highest=new_token)
    if c.step == "inside":
        to("delete", keys=rest, step="over")


def model(kinds, naive=""):
    """kinds: one per client: x exclusive, s shared, n of the slots, e etcdctl lock."""
    conditional = "without a condition" not in naive
    sizes = (LEASE, LONG) if MIXED in naive else (LEASE,)
    keeps = "ends earlier" not in naive

    def steps(s):
        out = []
        new_token = max([s.highest] + [c.token for c in s.clients]) + 1
        for i, c in enumerate(s.clients):
            def to(name, i=i, c=c, keys=None, highest=None, forgets=None, **changes):
                now = OVER if changes.get("step") == "over" else c._replace(**changes)
                out.append(("%s %d" % (name, i), normal(kinds, s.keys if keys is None else keys,
                            s.clients[:i] + (now,) + s.clients[i + 1:],
                            s.highest if highest is None else highest, s.forgets)))

            mine = next((k for k in s.keys if k.client == i), None)

            def put(**changes):
                return tuple(k._replace(**changes) if k == mine else k for k in s.keys)

            def without():
                return tuple(k for k in s.keys if k != mine)

            free = place_of(kinds, s, i)
            if kinds[i] == "e":
                etcdctl(to, s, i, free, new_token)
                continue
            if c.step == "idle":
                for size in sizes:
                    to("ask", step="asked", age=0, size=size)
            # The server, whenever the request arrives
            asks_for_lease = c.step in ("asked", "enter") or \
                c.step == "inside" and naive != "keepalives renew a holder's lease"
            if c.age is not None and c.stage == "":
                if c.step == "inside" and ROOM in naive and mine:
                    to("refused, prolong", stage="put", keys=put(left=LEASE, renewed=True),
                       late=c.late if c.late is None or "one lease is kept" in naive else LEASE)
                if asks_for_lease:
                    to("grant", stage="granted", granted=c.size)
                elif mine or s.forgets is not None:
                    to("prolong", stage="put", keys=put(left=LEASE, renewed=True))
            if c.stage == "granted" and c.granted > 0:
                if c.step == "asked":
                    holds = free if kinds[i] != "n" else 0
                    to("put", stage="put", keys=s.keys + (Key(i, c.granted, False, holds),),
                       token=new_token if holds or naive == "the key's token" else 0)
                elif c.step == "enter" and mine and free:
                    to("put as holder", stage="put", keys=put(left=c.granted, renewed=False, holds=free),
                       token=c.token or new_token, late=None if conditional else c.late)
                elif c.step == "inside" and (mine or naive == "a renewal without a key"):
                    to("put again", stage="put", keys=put(left=c.granted, renewed=False),
                       late=None if conditional else c.late)
                if LATE in naive and c.step in ("enter", "inside") and c.late is None:
                    to("hold up", late=c.granted)
            if c.late is not None and mine and (mine.holds or free):
                to("put late", late=None, keys=put(left=c.late, renewed=False, holds=mine.holds or free))
            # The answer comes, or is lost
            if c.stage == "put":
                left = LEASE if naive == "from the answer" else c.size - c.age
                step = c.step
                if step in ("asked", "enter"):
                    step = "start" if mine and mine.holds else "look"
                to("answer", step=step, left=left, **NONE)
            if c.age is not None and c.step in ("look", "inside"):
                to("lost", **NONE)
            if c.step == "look" and c.age is None and c.left > 0:
                to("keep", age=0, kept=True)
                if mine is None:
                    to("lost my place", step="over")
                elif free and (not c.kept or naive == "enter under the renewed lease"):
                    to("enter at once", step="start", keys=put(holds=free), token=c.token or new_token)
                elif free:
                    for size in sizes:
                        to("ask to enter", step="enter", age=0, size=size)
            if c.step == "enter" and mine is None:
                to("gone", step="over")
            if c.step == "start" and c.left > 0:
                to("run", step="inside", highest=max(s.highest, c.token))
            if c.step == "inside" and c.age is None and c.left > 0:
                for size in sizes:
                    to("renew", age=0, size=max(size, c.left) if keeps else size)
            if c.step == "inside" and c.left > 0:
                to("end", step="release", token=0, kept=False, **NONE)
            if c.step in ("look", "start", "inside") and c.left == 0:
                to("too late", step="over")     # a command is killed
            if c.step == "release":
                to("delete", step="over", keys=without())
        if not any(c.step == "inside" and kinds[i] != "e" and c.left == 0 for i, c in enumerate(s.clients)):
            out.append(("tick", normal(
                kinds,
                tuple(k if k.left is None else k._replace(left=max(0, k.left - 1)) for k in s.keys),
                tuple(c._replace(age=None if c.age is None else min(sizes[-1], c.age + 1),
                                 granted=max(0, c.granted - 1), left=max(0, c.left - 1),
                                 late=c.late and c.late - 1) for c in s.clients),
                s.highest, s.forgets)))
        for k in s.keys:
            rest = tuple(x for x in s.keys if x != k)
            if s.forgets and k.renewed:
                out.append(("forget %d" % k.client, normal(kinds, rest, s.clients, s.highest, s.forgets - 1)))
            if k.left == 0:
                out.append(("expire %d" % k.client, normal(kinds, rest, s.clients, s.highest, s.forgets)))
        return out

    return steps, lambda s, following: fault(kinds, s)


@functools.lru_cache(None)
def without_times(kinds, keys, clients, highest):
    """A state of reduced(), from one of it or of model()."""
    with_key = {k.client for k in keys}
    clients = list(clients)
    for i, c in enumerate(clients):
        step, left, kept = c.step, c.left, c.kept
        if step in ("asked", "enter"):      # done by the server, or not yet
            step = "put" if c.stage == "put" else "idle" if step == "asked" else "look"
        if step in ("put", "look") and i not in with_key:
            step = "over"
        if step == "look" and kept or step == "put":
            left = 0
        kept = kept and step == "look"
        clients[i] = OVER if step in ("over", "release") else Client(step, None, "", 0, left, kept, c.token)
    keys = tuple(k._replace(left=LEASE, renewed=True)
                 if clients[k.client].step == "over" or clients[k.client].kept else k for k in keys)
    return normal(kinds, keys, tuple(clients), highest)


def reduced(kinds, naive=""):
    """model() with fewer states, for three clients. It has all the behaviours of model() and more; covered() shows
    that for two. A request has no age: it is done at any moment, a lease that is granted for it has any time left, and
    its answer leaves the client any time up to the end of its key's lease. A lease that is renewed, or whose owner does
    nothing any more, has no time: it may end at any moment."""

    def steps(s):
        out = []
        new_token = max([s.highest] + [c.token for c in s.clients]) + 1
        for i, c in enumerate(s.clients):
            def to(name, i=i, c=c, keys=None, highest=None, **changes):
                out.append(("%s %d" % (name, i), without_times(
                    kinds, s.keys if keys is None else keys, s.clients[:i] + (c._replace(**changes),) + s.clients[i + 1:],
                    s.highest if highest is None else highest)))

            mine = next((k for k in s.keys if k.client == i), None)

            def put(**changes):
                return tuple(k._replace(**changes) if k == mine else k for k in s.keys)

            free = place_of(kinds, s, i)
            if kinds[i] == "e":
                etcdctl(to, s, i, free, new_token)
                continue
            if c.step not in ("idle", "over"):
                to("end", step="over")
            if c.step == "idle":
                for granted in range(1, LEASE + 1):
                    holds = free if kinds[i] != "n" else 0
                    to("put", step="asked", stage="put", keys=s.keys + (Key(i, granted, False, holds),),
                       token=new_token if holds or naive == "the key's token" else 0)
            if c.step == "put":
                for left in [LEASE] if naive == "from the answer" else range(mine.left + 1):
                    to("answer", step="start" if mine.holds else "look", left=left)
            if c.step == "look" and not c.kept:
                to("keep", kept=True)
            if c.step == "look" and free and not c.kept:
                to("enter at once", step="start", keys=put(holds=free), token=c.token or new_token)
            elif c.step == "look" and free and naive == "enter under the renewed lease":
                to("enter at once", step="start", left=LEASE, keys=put(holds=free), token=c.token or new_token)
            elif c.step == "look" and free:
                for granted in range(1, LEASE + 1):
                    to("put as holder", step="enter", stage="put", token=c.token or new_token,
                       keys=put(left=granted, renewed=False, holds=free))
            if c.step == "start" and c.left > 0:
                to("run", step="inside", highest=max(s.highest, c.token))
            if c.step == "inside" and naive == "keepalives renew a holder's lease":
                if mine:
                    to("prolong", keys=put(left=LEASE, renewed=True))
                to("answer", left=LEASE)
            elif c.step == "inside":
                for granted in range(max(1, mine.left), LEASE + 1) if mine else []:
                    to("put again", keys=put(left=granted, renewed=False))
                end = LEASE if naive == "from the answer" or naive == "a renewal without a key" and not mine \
                    else mine.left if mine else 0
                for left in range(c.left + 1, end + 1):
                    to("answer", left=left)
        if not any(c.step == "inside" and kinds[i] != "e" and c.left == 0 for i, c in enumerate(s.clients)):
            out.append(("tick", without_times(
                kinds, tuple(k if k.left is None or k.renewed else k._replace(left=max(0, k.left - 1)) for k in s.keys),
                tuple(c._replace(left=max(0, c.left - 1)) for c in s.clients), s.highest)))
        for k in s.keys:
            if k.renewed or k.left == 0:
                out.append(("expire %d" % k.client, without_times(
                    kinds, tuple(x for x in s.keys if x != k), s.clients, s.highest)))
        return out

    return steps, lambda s, following: fault(kinds, s)


def covered(kinds):
    """Is each step of model() one of reduced(), or two, or none that it tells apart?"""
    few = functools.lru_cache(None)(lambda s: {after for _, after in reduced(kinds)[0](s)})

    def wrong(s, following):
        start = without_times(kinds, s.keys, s.clients, s.highest)
        for name, after in following:
            end = without_times(kinds, after.keys, after.clients, after.highest)
            if end != start and end not in few(start) and not any(end in few(middle) for middle in few(start)):
                return "%s is not in the reduced model: %s -> %s" % (name, start, end)
        return None

    return model(kinds)[0], wrong


def case(name, holds, kinds, forgets=None, naive="", of=model):
    assert "".join(sorted(kinds)) == kinds
    return (name, holds, State((), (IDLE,) * len(kinds), 0, forgets)) + (of(kinds, naive) if naive else of(kinds))


CASES = [
    case("two", True, "xx"),
    case("two, forgetful", True, "xx", forgets=2),
    case("etcdctl lock between two", True, "exx", forgets=1),
    case("a reader, a writer", True, "sx", forgets=1),
    case("slots, two", True, "nn", forgets=1),
    case("three", True, "xxx"),
    case("three, forgetful", True, "xxx", forgets=2),
    case("two, no room at times", True, "xx", naive=ROOM),
    case("a reader, a writer, no room at times", True, "sx", naive=ROOM),
    case("forgetful, and no room at times: as behind etcdctl lock", False, "xx", forgets=1, naive=ROOM),
    case("two, a put comes late", True, "xx", naive=LATE),
    case("a reader, a writer, a put comes late", True, "sx", naive=LATE),
    case("slots, a put comes late", True, "nn", naive=LATE),
    case("etcdctl lock and one, a put comes late", True, "ex", naive=LATE),
    case("two, a put comes late, and no room at times", True, "xx", naive=LATE + ROOM),
    case("two, a lease may be long", True, "xx", naive=MIXED),
    case("two, a lease may be long, forgetful", True, "xx", forgets=1, naive=MIXED),
    case("a reader, a writer, a lease may be long", True, "sx", naive=MIXED),
    case("slots, a lease may be long", True, "nn", naive=MIXED),
    case("two, a put comes late, a lease may be long", True, "xx", naive=LATE + MIXED),
    case("covered: two", True, "xx", forgets=2, of=covered),
    case("covered: a reader, a writer", True, "sx", forgets=1, of=covered),
    case("covered: slots", True, "nn", forgets=1, of=covered),
    case("covered: etcdctl lock and one", True, "ex", forgets=1, of=covered),
    case("reduced: three", True, "xxx", of=reduced),
    case("reduced: etcdctl lock between two", True, "exx", of=reduced),
    case("reduced: two readers, a writer", True, "ssx", of=reduced),
    case("reduced: a reader, two writers", True, "sxx", of=reduced),
    case("reduced: three for two slots", True, "nnn", of=reduced),
    case("reduced: two for the slots, a writer", True, "nnx", of=reduced),
    case("naive: counted from the answer", False, "xx", naive="from the answer"),
    case("naive: the token is the revision of the key", False, "exx", naive="the key's token"),
    case("naive: forgetful, a waiter enters under its renewed lease", False, "exx", forgets=1,
         naive="enter under the renewed lease"),
    case("naive: forgetful, keepalives renew a holder's lease", False, "xx", forgets=1,
         naive="keepalives renew a holder's lease"),
    case("naive: a put comes late, without a condition", False, "xx", naive=LATE + "without a condition"),
    case("naive: a put comes late, no room, one lease is kept", False, "xx", naive=LATE + ROOM + "one lease is kept"),
    case("naive: a lease may be long, and the next one ends earlier", False, "xx", naive=MIXED + "ends earlier"),
    case("naive: forgetful, a renewal counts without the key", False, "xx", forgets=1, naive="a renewal without a key"),
] + [
    case("reduced, naive: %s, %s" % (clients, naive), False, kinds, naive=naive, of=reduced)
    for clients, kinds in (("slots", "nnn"), ("two readers, a writer", "ssx"))
    for naive in ("from the answer", "enter under the renewed lease", "keepalives renew a holder's lease",
                  "a renewal without a key")
]

if __name__ == "__main__":
    explore.main(CASES)
