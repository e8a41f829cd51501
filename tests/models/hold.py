#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A hold in the background (--detach, --release, --keep-place, --resume): src/hold/detach.h, keeper.h; src/run/front.h.

The front is the call that waits. The keeper has the ID; it has started the holder, which waits for the lock and takes
it, and then starts the placeholder, which has the lock as well, says OK and stays. The holder's input is a pipe of the
keeper's. PID, for which it all is, may end at any moment; the front may be stopped, and go on; of the front, keeper,
holder, placeholder and a --resume, so many are killed as the case says, between any two steps.

Shown, for every interleaving. At rest, which is when no process of the hold has a step left to do: nothing is held, and
no process is left, after PID's end, after a --release, after the end of a first call that has not said that it knows, or
is stopped; nor is anything held without a holder. A call that ends with 0 has a hold of which the keeper knows that it is
known. A place that was said to be kept is kept. A --release that ends with 0 does so when the lock is free, and never if
the hold had ended before that call. And while a caller may believe that it holds, since nothing of its hold was killed,
nobody else has the lock. The naive ways go wrong.
"""
import collections
import explore

# pid: lives, ended. another: PID's number belongs to another process, which lives on.
# front: waits, said, asked; done: it has ended with 0 (with 1: a place); no: with another status; killed. said: OK, WAITING.
# to_front, to_keeper: messages on their way. keeper: TAKES, OFFERS, HOLDS, ENDS, REMEMBERS, GONE. known: see keeper.h.
# input: of the holder and placeholder: open, word, eof. output: theirs. held: OK was heard once. holder: new (not started
# yet), waits, has, holds, gone. placeholder: none, new, holds, gone. told: the
# placeholder has ended as it was told to, and the holder says so by its status.
# verdict: 0 or 76. release: none, asks, 0, 76; late: the hold, which had held, had ended before. resume: none, asks, waits,
# ok, left, no. other: holds, wants, holds again. kills: left. lost: a process of the hold was killed.
State = collections.namedtuple("State", "pid another front said stopped stops to_front to_keeper keeper known input output"
                               " held holder placeholder told verdict release late resume other kills lost kept passed")

START = State("lives", False, "waits", "", False, 0, (), (), "TAKES", False, "open", (), False, "new", "none", False, 0,
              "none", False, "none", "wants", 0, False, False, False)
LIVES = ("waits", "said", "asked")


def is_held(s, inherits=True):
    return s.holder in ("has", "holds") or (inherits and s.placeholder in ("new", "holds"))


def is_gone(s):
    return s.holder == "gone" and s.placeholder in ("none", "gone")


def keeper_is_gone(s, killed=False):
    front = s.to_front + ("EOF",) if s.front in LIVES else s.to_front
    return s._replace(keeper="GONE", to_front=front, input="eof" if s.input == "open" else s.input, lost=s.lost or killed,
                      release="76" if s.release == "asks" else s.release,
                      resume="no" if s.resume in ("asks", "waits") else s.resume)


# The keeper tells the holder to end.
def end_holder(s, verdict):
    return s if s.keeper in ("ENDS", "REMEMBERS") else s._replace(keeper="ENDS", verdict=verdict, input="word")


# The holder has ended: the keeper has waited for that.
def holder_ended(s, naive):
    asked = s.keeper == "ENDS"
    verdict = s.verdict if asked else 76
    if asked and verdict == 0 and s.held and not s.told and naive != "asked for, so released":
        verdict = 76
    s = s._replace(verdict=verdict)
    if s.front in LIVES and not s.known:
        s = s._replace(to_front=s.to_front + ("ENDED",))
    if s.release == "asks":
        s = s._replace(release=str(verdict))
    if s.resume in ("asks", "waits"):
        s = s._replace(resume="no")
    if asked or not s.known or s.pid == "ended":
        return keeper_is_gone(s)
    return s._replace(keeper="REMEMBERS")


def keeper_steps(s, naive, to):
    sees_pid = s.pid == "ended" and not (naive == "PID by its number" and s.another)
    if naive == "PID is looked at while it holds" and s.keeper != "HOLDS":
        sees_pid = False
    # H1: PID's end is watched before the keeper is forked
    if sees_pid and s.keeper == "REMEMBERS":
        to("H6 forget", keeper_is_gone(s))
    elif sees_pid and s.keeper != "ENDS":
        to("H6 PID has ended", end_holder(s, 76))
    if s.to_keeper and s.keeper != "ENDS":
        word, heard = s.to_keeper[0], s._replace(to_keeper=s.to_keeper[1:])
        if word == "ACK":
            to("H5 keeper hears ACK", heard._replace(to_front=s.to_front + ("KNOWN",), known=True,
                                                     keeper="HOLDS" if s.keeper == "OFFERS" else s.keeper))
        elif word == "EOF" and not s.known and s.keeper != "REMEMBERS" and naive != "the front's end ends nothing":
            to("H5 keeper hears the front's end", end_holder(heard, 76))
        else:
            to("keeper hears " + word, heard)
    if s.output and s.keeper != "REMEMBERS":
        heard = s._replace(output=s.output[1:])
        if s.keeper == "TAKES":
            heard = heard._replace(keeper="HOLDS" if s.known else "OFFERS", held=True)
            if not s.known:
                heard = heard._replace(to_front=s.to_front + ("OK",))
            elif s.resume == "waits":
                heard = heard._replace(resume="ok")
        to("keeper hears OK", heard)
    elif is_gone(s) and s.keeper != "REMEMBERS":
        to("H8 keeper hears the holder's end", holder_ended(s, naive))
    if s.release == "asks" and s.keeper == "REMEMBERS":
        to("keeper remembers", keeper_is_gone(s._replace(release=str(s.verdict))))
    elif s.release == "asks" and s.keeper != "ENDS":
        after = end_holder(s, 0)
        to("H7 keeper hears --release", after._replace(release="0") if naive == "answered when the holder is told" else after)
    if s.resume == "asks" and s.keeper in ("TAKES", "OFFERS"):
        to("keeper hears --resume", s._replace(resume="waits" if s.known else "no"))
    elif s.resume == "asks" and s.keeper in ("HOLDS", "REMEMBERS"):
        to("keeper hears --resume", s._replace(resume="ok" if s.keeper == "HOLDS" else "no"))
    if s.keeper == "OFFERS" and s.stopped and naive != "a stopped front is waited for":
        to("H9 the turn passes", end_holder(s, 76)._replace(passed=True))


def holder_steps(s, naive, inherits, to):
    ends = s.input != "open"
    if s.holder == "new" and s.keeper != "GONE":
        to("H2 fork the holder", s._replace(holder="waits"))
    elif s.holder == "waits":
        if ends and naive != "the wait has no end":
            to("H3 the holder ends", s._replace(holder="gone"))
        if not is_held(s, inherits) and s.other not in ("holds", "holds again"):
            to("the holder takes the lock", s._replace(holder="has"))
    elif s.holder == "has":
        to("H4 the placeholder begins", s._replace(holder="holds", placeholder="new"))
    elif s.holder == "holds" and s.placeholder == "gone":
        to("the holder lets go", s._replace(holder="gone"))
    if s.placeholder in ("new", "holds") and s.holder == "gone" and naive != "the placeholder outlives the holder":
        to("H4 the placeholder dies with the holder", s._replace(placeholder="gone"))
    if s.placeholder == "new" and s.keeper != "GONE":
        to("the placeholder says OK", s._replace(placeholder="holds", output=s.output + ("OK",)))
    elif s.placeholder in ("new", "holds") and ends and naive != "the placeholder has no end":
        to("H3 the placeholder ends", s._replace(placeholder="gone", told=s.input == "word" and s.holder != "gone"))


def front_steps(s, naive, keeps, to):
    def ends(how, s=s, **more):
        to("front ends: " + how, s._replace(front=how, to_keeper=s.to_keeper + ("EOF",), **more))

    word = s.to_front[0] if s.to_front else ""
    heard = s._replace(to_front=s.to_front[1:])
    if s.stopped or s.front not in LIVES:
        return
    if s.front == "said":
        after = s._replace(front="asked", to_keeper=s.to_keeper + ("ACK",))
        if naive == "no answer to ACK":
            ends("done", after, kept=s.said == "WAITING")
        else:
            to("front says ACK", after)
    elif word in ("ENDED", "EOF"):
        ends("no", heard)
    elif s.front == "asked":
        if word == "KNOWN":
            ends("done", heard, kept=s.said == "WAITING")
        elif word:
            to("front hears " + word, heard)
    elif word == "OK" and s.to_front[1:] and s.to_front[1] in ("ENDED", "EOF"):
        ends("no", heard)
    elif word == "OK":
        to("front prints OK", heard._replace(front="said", said=word))
    elif keeps and s.front == "waits": # what the keeper has sent meanwhile is read when that has answered
        to("* the time is up: front prints WAITING", s._replace(front="said", said="WAITING"))


# What others do: it is no step of the hold's, which may come to rest without it.
def events(s, naive, inherits, stops, to):
    if s.pid == "lives":
        to("* PID ends", s._replace(pid="ended"))
    if s.other == "holds":
        to("* the other one leaves", s._replace(other="wants"))
    elif s.other == "wants" and not is_held(s, inherits):
        to("* the other one enters", s._replace(other="holds again"))
    if s.front in LIVES and not s.stopped and s.stops < stops:
        to("* the front is stopped", s._replace(stopped=True, stops=s.stops + 1))
    if s.stopped:
        to("* the front goes on", s._replace(stopped=False))
    if s.holder != "new" and s.release == "none": # who it is for does not matter: --who shows the ID
        late = s.holder == "gone" and s.held
        to("* --release", s._replace(release="76" if s.keeper == "GONE" else "asks", late=late))
    if s.front == "done" and s.said == "WAITING" and s.resume == "none":
        to("* --resume", s._replace(resume="no" if s.keeper == "GONE" else "asks"))
    if s.resume == "waits":
        after = s._replace(resume="left")
        to("* the --resume ends", end_holder(after, 76) if naive == "the end of --resume is that of the place" else after)
    if s.kills == 0:
        return
    s = s._replace(kills=s.kills - 1)
    if s.front in LIVES:
        to("* kill the front", s._replace(front="killed", stopped=False, to_keeper=s.to_keeper + ("EOF",)))
    if s.keeper != "GONE":
        to("* kill the keeper", keeper_is_gone(s, True)._replace(holder="gone" if s.holder == "new" else s.holder))
    if s.holder in ("waits", "has", "holds"):
        to("* kill the holder", s._replace(holder="gone", told=False, lost=True))
    if s.placeholder in ("new", "holds"):
        to("* kill the placeholder", s._replace(placeholder="gone", lost=True))


def model(naive="", keeps=False, inherits=True, stops=0):
    def steps(s):
        out = []

        def to(name, after):
            out.append((name, after))

        if s.keeper != "GONE":
            keeper_steps(s, naive, to)
        holder_steps(s, naive, inherits, to)
        front_steps(s, naive, keeps, to)
        events(s, naive, inherits, stops, to)
        if naive == "PID by its number" and s.pid == "ended" and s.holder == "new":
            to("* another process has PID's number", s._replace(another=True))
        return out

    def wrong(s, following):
        believes = (s.front == "done" and s.said == "OK") or s.resume == "ok"
        if believes and not s.lost and s.pid == "lives" and s.release == "none" and s.other == "holds again":
            return "two at once"
        given_up = s.keeper in ("ENDS", "GONE") and not s.known and not s.lost and s.pid == "lives"
        if s.front == "done" and given_up:
            return "a call ended with 0, and its hold is given up"
        if s.release == "0" and is_held(s, inherits):
            return "--release is 0, and the next one cannot enter"
        if s.release == "0" and s.late:
            return "a --release that came too late is 0"
        if not all(name.startswith("*") for name, _ in following):
            return None
        unknown = s.front in ("no", "killed") and not s.known
        over = s.pid == "ended" or unknown or s.release == "0" or s.passed
        if over and is_held(s, inherits):
            return "it is held, and nobody holds it"
        if over and (s.keeper != "GONE" or not is_gone(s)):
            return "a process of it is left"
        if s.stopped and not s.known and is_held(s, inherits):
            return "it is held for a call that is stopped"
        if s.holder == "gone" and is_held(s, inherits):
            return "it is held without a holder"
        if s.kept and not s.lost and s.pid == "lives" and s.release == "none" and s.holder == "gone":
            return "a place is gone that was to be kept"
        return None

    return steps, wrong


def case(name, holds, kills=1, other="wants", **how):
    return (name, holds, START._replace(kills=kills, other=other)) + model(**how)


CASES = [
    case("a free lock, PID ends, one process is killed", True),
    case("a free lock, PID ends, three processes are killed", True, kills=3),
    case("a busy lock, two are killed", True, kills=2, other="holds"),
    case("a lock that the holder alone has (posix, a server)", True, kills=2, other="holds", inherits=False),
    case("the call is stopped, twice, and one is killed", True, other="holds", stops=2),
    case("a place is kept, and resumed; one is killed", True, other="holds", keeps=True),
    case("a place, its first call stopped, two are killed", True, kills=2, other="holds", keeps=True, stops=1),
    case("naive: the front's end ends nothing", False, naive="the front's end ends nothing"),
    case("naive: no answer to ACK", False, kills=0, stops=1, naive="no answer to ACK"),
    case("naive: a stopped front is waited for", False, kills=0, stops=1, naive="a stopped front is waited for"),
    case("naive: PID is known by its number", False, kills=0, naive="PID by its number"),
    case("naive: PID is looked at only while it holds", False, kills=0, other="holds", naive="PID is looked at while it holds"),
    case("naive: the wait does not end with the keeper", False, other="holds", naive="the wait has no end"),
    case("naive: the placeholder does not end with the keeper", False, naive="the placeholder has no end"),
    case("naive: the placeholder outlives the holder", False, naive="the placeholder outlives the holder"),
    case("naive: --release is answered when the holder is told", False, kills=0, naive="answered when the holder is told"),
    case("naive: asked for, so released", False, naive="asked for, so released"),
    case("naive: the end of --resume is that of the place", False, kills=0, other="holds", keeps=True,
         naive="the end of --resume is that of the place"),
]

if __name__ == "__main__":
    explore.main(CASES)
