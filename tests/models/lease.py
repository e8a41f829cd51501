#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Locks on etcd (src/locksmith/etcd/etcdlock.h, etcdmark.h), and the timer on the lease (src/methods/server/lease.h).

Keys in the order of their creation, each under a lease; the owner of the first key holds the lock until
its own clock says that the lease may have ended: counted from the request, not from the answer.
Requests and answers may take any time, get lost, and be carried out late; a semlock may be stopped or
cut off; only its own timer is taken to be in time. Shown: no two commands are ever inside, and of two
holders the later has the higher token. The naive ways go wrong.

"Forgetful": etcd may end a lease early that is renewed, and confirm the renewal of a lease that has ended. The first
client then makes a mark before its command runs, under a lease that is never renewed, and that may have been
granted long before: the client holds the lock no longer than that lease. If the lock is free, key and mark are
made at once. A renewal counts when the mark was put under a new lease after it, which requires the key. No waiter
enters while a mark is before its key.
"""
import collections
import explore

LEASE = 2   # moments that the server grants
END = 4     # the clock stops here

# keys: (client, revision, expires), in order. revision: of the next key. highest: token of a command so far.
# marks: (client, expires). forgets: leases that may still end early.
State = collections.namedtuple("State", "now keys revision highest clients marks forgets")
# asked: when the request was sent; None: none is under way. answer: under way. until: when the command is killed.
# done: by the server; with marks, of a renewal, "granted": the server has also granted a lease for the mark; "put":
# it has also put the mark under that lease, since the key was there.
# lease: its end.
# token: create_revision of the client's key, 0: not known.
Client = collections.namedtuple("Client", "step asked done until token lease")


def model(naive="", marks=False):
    def first(s):
        return s.keys[0] if s.keys else None

    def others(s, i):
        return [m for m in s.marks if m[0] != i]

    def without(marks, i):
        return tuple(m for m in marks if m[0] != i)

    def steps(s):
        out = []
        for i, c in enumerate(s.clients):
            def to(name, i=i, c=c, **changes):
                own = {k: changes.pop(k) for k in list(changes) if k in Client._fields}
                clients = s.clients[:i] + (c._replace(**own),) + s.clients[i + 1:]
                out.append(("%s %d" % (name, i), s._replace(clients=clients, **changes)))

            mine = next((k for k in s.keys if k[0] == i), None)
            if c.step == "idle":
                to("ask", step="asked", asked=s.now, lease=s.now + LEASE if marks else 0)
            # The server carries the request out, whenever it arrives; a lease that has ended takes no key.
            if c.asked is not None and not c.done:
                if c.step == "asked":
                    key = (i, s.revision, s.now + LEASE)
                    to("put", keys=s.keys + (key,), revision=s.revision + 1, done=True)
                    if marks and s.now < c.lease and not s.keys and not s.marks:
                        to("put both", keys=(key,), revision=s.revision + 1, done=True, marks=((i, c.lease),),
                           token=s.revision)
                elif mine or s.forgets is not None:
                    to("prolong", done=True, keys=tuple(
                        (k[0], k[1], s.now + LEASE) if k == mine else k for k in s.keys))
            ours = next((m for m in s.marks if m[0] == i), None)
            if marks and c.step == "inside" and c.done is True:
                to("grant", done="granted", lease=s.now + LEASE)
            if marks and c.step == "inside" and c.done == "granted" and mine and ours:
                ends = ours[1] if naive == "the mark's lease stays" else c.lease
                to("put", done="put", marks=without(s.marks, i) + ((i, ends),))
            # The answer comes, or is lost.
            believed = "put" if marks and naive != "the renewal alone" and c.step == "inside" else True
            if c.done == believed:
                counted_from = s.now if naive == "from the answer" else c.asked
                if c.step == "asked":
                    to("granted", step="start" if c.token else "look", until=counted_from + LEASE, asked=None, done=False,
                       token=c.token or (mine[1] if mine else 0))
                else:
                    to("prolonged", until=counted_from + LEASE, asked=None, done=False)
            if c.step == "look" and s.now < c.until and c.token:
                turn = mine is not None and first(s) == mine
                if turn and not marks:
                    to("mine", step="start")
                elif turn and not others(s, i):
                    to("mine, under the old lease", step="mark", asked=None, done=False)
                    # A request sent at the same time is not waited for.
                    to("mine", step="mark", lease=s.now + LEASE, asked=None, done=False)
                elif mine is None:
                    to("lost my place", step="over", until=0, asked=None, done=False)
            # The mark is made only while the key is there.
            if c.step == "mark" and s.now < c.lease and (mine or naive == "a mark without a key"):
                to("mark", step="start", marks=s.marks + ((i, c.lease),),
                   until=c.until if naive == "the age of the mark's lease" else min(c.until, c.lease))
            if c.step == "start":  # between the look and the command any time may pass
                if s.now < c.until or naive == "no timer":
                    to("run", step="inside", highest=max(s.highest, c.token))
                else:
                    to("too late", step="over", until=0)
            if c.step in (("look", "mark", "inside") if naive == "keep and mark" else ("look", "inside")) and c.asked is None and s.now < c.until:
                to("keep", asked=s.now)
            if c.step == "inside" and not (naive != "no timer" and s.now >= c.until):
                to("end", step="release")
            if c.step == "inside" and s.now >= c.until and naive != "no timer":
                to("killed", step="over", until=0, asked=None, done=False)
            if c.step == "release":
                to("revoke", step="over", until=0, keys=tuple(k for k in s.keys if k[0] != i), asked=None, done=False,
                   marks=without(s.marks, i))
            if c.step == "over" and any(m[0] == i for m in s.marks):
                to("tidy", marks=without(s.marks, i))
        # semlock's own timer is in time: time stands still while a command has to be killed.
        late = naive != "no timer" and any(c.step == "inside" and s.now >= c.until for c in s.clients)
        if s.now < END and not late:
            out.append(("tick", s._replace(now=s.now + 1)))
        # The server drops a lease when it has ended, or some time later.
        for m in s.marks:
            if naive == "the mark's lease is renewed" and s.forgets:
                out.append(("forget the mark %d" % m[0], s._replace(marks=without(s.marks, m[0]))))
            if s.now >= m[1]:
                out.append(("lapse %d" % m[0], s._replace(marks=without(s.marks, m[0]))))
        for k in s.keys:
            if s.forgets:
                out.append(("forget %d" % k[0], s._replace(keys=tuple(x for x in s.keys if x != k),
                                                            forgets=s.forgets - 1)))
            if s.now >= k[2]:
                out.append(("expire %d" % k[0], s._replace(keys=tuple(x for x in s.keys if x != k))))
        return out

    def wrong(s, following):
        inside = [c for c in s.clients if c.step == "inside"]
        # At its deadline a command is killed before any other step.
        running = [c for c in inside if naive == "no timer" or s.now < c.until]
        if len(running) > 1:
            return "two inside"
        if any(c.token < s.highest for c in running):
            return "an older token after a newer one"
        return None

    return steps, wrong


def case(name, holds, count, forgets=None, **how):
    start = State(0, (), 1, 0, (Client("idle", None, False, 0, 0, 0),) * count, (), forgets)
    return (name, holds, start) + model(**how)


CASES = [
    case("two", True, 2),
    case("naive: the lease counted from the answer", False, 2, naive="from the answer"),
    case("naive: no timer but the server's", False, 2, naive="no timer"),
    case("two, with marks", True, 2, marks=True),
    case("forgetful, marks", True, 2, forgets=1, marks=True),
    case("naive: forgetful, no marks", False, 2, forgets=1),
    case("naive: forgetful, marks, the renewal alone is believed", False, 2, forgets=1, marks=True,
         naive="the renewal alone"),
    case("naive: forgetful, the renewed mark stays under its lease", False, 2, forgets=1, marks=True,
         naive="the mark's lease stays"),
    case("naive: forgetful, the lease of a mark is renewed", False, 2, forgets=1, marks=True,
         naive="the mark's lease is renewed"),
    case("naive: forgetful, the key is kept between lease and mark", False, 2, forgets=1, marks=True,
         naive="keep and mark"),
    case("naive: forgetful, the age of the lease of a mark is not counted", False, 2, forgets=1, marks=True,
         naive="the age of the mark's lease"),
    case("naive: forgetful, a mark is made without a key", False, 2, forgets=1, marks=True,
         naive="a mark without a key"),
]

if __name__ == "__main__":
    explore.main(CASES)
