#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The queue's file (src/lock/queue_trust.c): its allowed owners and modes, in a directory open to all.

For each mode, owner and group of a lock and of two directories above it, and for four users in any order:
a user that cannot open the lock, and does not own it, cannot open a queue that a waiter has trusted; all
users that can open the lock wait in one queue, also if its maker was killed; root is never kept out of it.
A file that a user has left there, of any mode, for another lock or on purpose, lets no other user in. Each
case named naive leaves out one rule, and goes wrong.

A file's mode cannot express every set of users: if neither all users, nor one group's members, nor the
owner and root alone can open the lock (two groups; an owner outside of the group), some users wait outside
of the queue. A mode that denies a group what it grants to all others is not modelled.
"""
import collections
import functools
import itertools
import explore

# place: the lock and its directories, (owner, group, mode): 0 for its owner, 1 for its group too, 2 for all.
# queue: the same of the queue file, or None. left: that file was made for something else. users: the state of each;
# barred: outside of the queue, because of a file that was left.
State = collections.namedtuple("State", "place queue left users")
USERS = ("root", "ann", "bob", "eve")
GROUPS = {"root": (), "ann": ("staff",), "bob": ("staff", "guests"), "eve": ("guests",)}
OWNER, GROUP, ALL = 0, 1, 2


def may(user, thing):
    owner, group, mode = thing
    return user == "root" or (user == owner or mode == ALL or (mode == GROUP and group in GROUPS[user]))


@functools.lru_cache(None)
def users_of(place):
    return frozenset(user for user in USERS if all(may(user, thing) for thing in place))


@functools.lru_cache(None)
def told_by_a_mode(place):
    groups = {group for _, group, mode in place if mode == GROUP}
    users = users_of(place) - {"root"}
    members = [{user for user in USERS if group in GROUPS[user]} for group in groups]
    return users <= {place[0][0]} or (not groups and len(users) == 3) or members == [users]


def model(naive=""):
    def openness(place):
        owner, group, mode = place[0]
        for _, its, directory in place[1:] if naive != "lock alone" else ():
            if mode == ALL and directory != ALL:
                mode, group = directory, its
            elif mode == GROUP and not (directory >= GROUP if its == group else directory == ALL):
                mode = OWNER
        return group, mode

    def made_by(user, place):
        group, mode = openness(place)
        if mode == GROUP and user != "root" and group not in GROUPS[user]:
            mode = OWNER
        owner = place[0][0] if user == "root" and naive != "root keeps it" else user
        return (owner, group if naive != "no group" else "", mode)

    def trusted(user, place, queue):
        group, mode = openness(place)
        wider = mode != ALL and (queue[2] == ALL or (queue[2] == GROUP and (mode != GROUP or queue[1] != group)))
        ours = queue[0] in ("root", place[0][0], user) or (naive != "owner alone" and
            (mode == ALL or (mode == GROUP and queue[2] == GROUP and queue[1] == group)))
        return (not wider or naive == "any mode") and (ours or naive == "any owner")

    def join(user, s):
        """What becomes of the user, and the queue then."""
        if s.queue and not may(user, s.queue):
            return "out", s.queue
        if s.queue and trusted(user, s.place, s.queue):
            return "in", s.queue
        if s.queue and (user not in ("root", s.queue[0]) or naive == "no removal"):
            return "out", s.queue
        return "in", made_by(user, s.place)

    def steps(s):
        if s is None:
            things = [(owner, group, mode) for owner in ("root", "ann") for group in ("staff", "guests") for mode in (0, 1, 2)]
            empty = ("new",) * len(USERS)
            return [("%s/%s/%s" % place[::-1], State(place, None, False, empty))
                    for place in itertools.product(things[:3] + things[6:9], things, things)]
        out = []
        for i, user in enumerate(USERS):
            def to(name, what, queue, left=s.left, i=i, user=user):
                out.append(("%s %s" % (user, name), State(s.place, queue, left, s.users[:i] + (what,) + s.users[i + 1:])))

            if s.users[i] == "new" and user in users_of(s.place):
                what, queue = join(user, s)
                if naive == "name first" and queue != s.queue:
                    to("makes it", "making", (queue[0], queue[1], OWNER), False)
                else:
                    to("joins", "barred" if s.left and what == "out" else what, queue, s.left and queue == s.queue)
            elif s.users[i] == "making":
                to("opens it", "in", made_by(user, s.place))
            elif s.users[i] == "in":
                to("is killed", "dead", s.queue)
            if s.users == ("new",) * len(USERS) and s.queue is None:
                for group in GROUPS[user] or ("staff",):
                    for mode in (OWNER, GROUP, ALL):
                        to("has left one", "new", (user, group, mode), True)
        return out

    def wrong(s, following):
        if s is None:
            return None
        can = users_of(s.place)
        if "in" in s.users or "dead" in s.users:
            for user in USERS:
                if user not in can and user != s.place[0][0] and may(user, s.queue):
                    return "%s can open the queue, and not the lock" % user
        if s.users[0] in ("out", "barred"):
            return "root waits outside of the queue"
        if told_by_a_mode(s.place) and "out" in s.users:
            return "%s waits outside of the queue" % USERS[s.users.index("out")]
        return None

    return steps, wrong


def case(name, holds, **how):
    return (name, holds, None) + model(**how)


CASES = [
    case("four users of a lock below two directories", True),
    case("naive: the mode of the lock alone", False, naive="lock alone"),
    case("naive: a file of any mode is trusted", False, naive="any mode"),
    case("naive: a file of any owner is trusted", False, naive="any owner"),
    case("naive: only root's, the lock's owner's and one's own", False, naive="owner alone"),
    case("naive: root keeps what it makes", False, naive="root keeps it"),
    case("naive: it is not given to the group", False, naive="no group"),
    case("naive: its name comes before its mode", False, naive="name first"),
    case("naive: what is not to be trusted is left there", False, naive="no removal"),
]

if __name__ == "__main__":
    explore.main(CASES)
