# SPDX-License-Identifier: MIT
"""What the helpers written in Python share: the lines to and from semlock, and the life of a lock.

semlock-locksmith(7) describes the lines.  The rules are those of src/locksmith/common/, which
src/locksmith/README explains.  A helper is an object:

  name          "redis"
  words         what it offers: the words after LOCKSMITH 2
  options       its own options, besides COMMON
  ttl           the length of its lease without --ttl
  prepare(url, options)
                reads the URL, the environment and the login, and asks no server
  look(turn)    asks the server once, until turn.answer_by.  Returns TAKEN: turn.deadline and
                turn.fields are set; BUSY: turn.who holds the lock; or AGAIN: neither.  turn.at says
                when to look next
  rest(turn, until)
                sleeps, and listens to the server; if a look is due, sets turn.at to 0.  A helper
                without rest() sleeps in listen()
  renew(turn, until)
                returns the new deadline, or None: the lock is gone
  release(turn, until)
                returns True, or False: the lock was gone
  who()         returns what follows "WHO state=" for each holder and waiter: "holds mode=...",
                "waits mode=..."
  hang_up()     closes the connection

Each function raises Away if another try may succeed, Refused if not, and nothing else, whatever the
server sends."""
import os
import re
import select
import signal
import sys
import time

TAKEN, BUSY, AGAIN = "taken", "busy", "again"
FOREVER = 1e9
COMMON = {"mode": "exclusive", "wait": "%g" % FOREVER, "pid": str(os.getppid()), "note": ""}
LONGEST_LINE = 128  # of semlock's, in bytes

started = False   # the command runs, so the lock must be renewed
released = False  # semlock no longer wants the lock, or has gone
unread = b""      # the beginning of semlock's next line
unsaid = []       # lines for which the pipe had no room


class Away(Exception):
    """No useful answer came, but another try may succeed.  reached: the server is there, and is
    only busy or late."""
    def __init__(self, text, reached=False):
        super().__init__(text)
        self.reached = reached


class Refused(Exception):
    """The server refuses, and would refuse again."""
    def __init__(self, text, status=69):
        super().__init__(text)
        self.status = status


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def spread(low, high):
    """Returns a random number between LOW and HIGH.  (The modules random and secrets would load
    OpenSSL: 2 MB.)"""
    return low + (high - low) * int.from_bytes(os.urandom(4), "big") / 2**32


# ---- the lines to semlock ----

def has_room():
    """Can a line be written without waiting for semlock?"""
    return bool(select.select([], [1], [], 0)[1])


def say(text, last=False):
    """Send a line to semlock.  If the pipe is full, drop a WAIT line, and keep other lines for
    later.  A HELD line is kept only until the next line that is not a NOTE.  If LAST, wait until
    all lines are written, even for a stopped semlock."""
    word = text.split(" ")[0]
    room = has_room()
    if word != "NOTE":
        unsaid[:] = [line for line in unsaid if not line.startswith("HELD")]
    if room or word != "WAIT":
        unsaid.append(re.sub(r"[\x00-\x1f\x7f]", "?", text)[:900])
    write_unsaid(last)


def write_unsaid(last=False):
    while unsaid and (last or has_room()):
        line = unsaid.pop(0).encode("utf-8", "replace")[:1000] + b"\n"
        try:
            os.write(1, line)
        except OSError:
            unsaid.clear()  # semlock was killed; its command will end, and then our input


def fail(status, text):
    """End at once, and tidy up nothing."""
    say("ERR %d %s" % (status, text), True)
    sys.exit(status)


# ---- the lines from semlock ----

def end_soon(number, _):
    signal.signal(number, signal.SIG_IGN)  # another TERM must not postpone the alarm
    signal.alarm(1)


def take_lines(got):
    """Handle GOT, the bytes that semlock has written; b"": it has closed the pipe."""
    global released, unread
    *lines, unread = (unread + got).split(b"\n")
    for line in lines:
        if len(line) < LONGEST_LINE:
            take_words(line.split())
    if len(unread) >= LONGEST_LINE:
        unread = b"x" * LONGEST_LINE  # too long to be a line of semlock's: ignore it
    if not got:  # nobody has the pipe open any more: from now on, TERM may end a slow release
        released = True
        signal.signal(signal.SIGTERM, end_soon)


def take_words(words):
    global started, released
    if words[:1] == [b"START"]:
        started = True
    if words[:1] == [b"UNLOCK"]:
        released = True
    for word in words[1:]:
        if word.startswith(b"pid="):
            COMMON["pid"] = word[4:].decode("ascii", "replace")


def listen(until, *others):
    """Sleep until the moment UNTIL, START, UNLOCK, the end of input, or data from one of OTHERS.
    Returns those that have data."""
    before, ready = started, []
    while not ready and not released and started == before and now() < until:
        # select(2) does not count the time of a suspend, so sleep for 5 s at most
        timeout = min(5.0, max(0.0, until - now()))
        ready = select.select([0, *others], [], [], timeout)[0]
        if 0 in ready:
            take_lines(os.read(0, 4096))
            ready.remove(0)
    return ready


# ---- the life of a lock ----

class Turn:
    """What the common part and the helper tell each other; moments are those of now()."""
    no_wait = False
    lease = 0.0      # its length in seconds
    until = 0.0      # when the wait is over
    answer_by = 0.0  # when to give up a silent server
    last = False     # no time is left for another look
    noted = ""       # the refusal that we reported last
    why = ""         # why the lock is lost, if no renewal succeeds from here on

    # Set by the helper.
    who = ""         # what is in the way, in the words of a WAIT line
    fields = ""      # the fields of the line OK
    at = 0.0         # when to look or renew next
    deadline = 0.0   # no other client can take the lock before

    def is_late(self):
        """Is it too late to enter?  See LEASE_ENTER in lease_schedule.h."""
        return now() >= self.deadline - self.lease / 2

    def renew_at(self):
        """When to renew: LEASE_RENEW in lease_schedule.h."""
        return self.deadline - self.lease * 2 / 3

    def last_moment(self):
        """When to give up renewing: LEASE_LAST in lease_schedule.h."""
        return self.deadline - self.lease / 10


def rest(helper, turn, until, hears):
    """Sleep until turn.at or the moment UNTIL.  HEARS: listen to the server, too, which may have
    something to say."""
    while not released and now() < min(turn.at, until):
        if hears and hasattr(helper, "rest"):
            helper.rest(turn, min(turn.at, until))
        else:
            listen(min(turn.at, until))


def look_once(helper, turn):
    """Returns the answer and None; if there was none, AGAIN and the reason."""
    turn.last = turn.no_wait or now() >= turn.until
    turn.at = 0.0
    turn.who = ""
    try:
        look = helper.look(turn)
        if look == TAKEN:
            enter(helper, turn)
        return look, None
    except Away as error:
        turn.at = turn.at or now() + spread(0.75, 1.25)
        return AGAIN, error


def enter(helper, turn):
    """If the answer that grants the lock came late, renew the lock before the command starts."""
    if not turn.is_late():
        return
    turn.deadline = helper.renew(turn, min(now() + 10, turn.answer_by)) or 0.0
    if turn.is_late():
        raise Away("the server answered too late to enter", reached=True)


def wait(helper, turn):
    """Returns TAKEN; BUSY, after sending that line; or None, if semlock no longer wants the
    lock."""
    reached, said = False, ""
    while not released:
        look, why = look_once(helper, turn)
        if look == TAKEN:
            return TAKEN
        if why:
            reached = reached or why.reached
            if turn.last or not (reached or turn.until < FOREVER):
                raise why
            turn.who = "note=for the server: %s" % why
        else:
            reached = True
            if turn.last and (look == BUSY or now() >= turn.answer_by):
                say("BUSY " + (turn.who or "note=for others that come at the same time"), True)
                return BUSY
        if turn.who and turn.who != said and not turn.no_wait:
            say("WAIT " + turn.who)
            said = turn.who
        rest(helper, turn, turn.answer_by if turn.last else turn.until, look == BUSY)
    return None


def hold(helper, turn):
    """Hold the lock.  Returns why it is lost, or None if semlock wants to release it."""
    fields = turn.fields + " " if turn.fields else ""
    say("OK %slease=%d deadline=%d" % (fields, turn.lease * 1e9, turn.deadline * 1e9))
    turn.at = turn.renew_at()
    turn.why = "semlock stood still, and did not start the command in time"
    while not released:
        last = turn.last_moment()
        if started:
            rest(helper, turn, last, True)
        else:
            listen(last)
        if released:
            break
        if now() >= last:
            return turn.why
        if started and now() >= turn.at and not renew(helper, turn, last):
            return "its key has gone"
    return None


def renew(helper, turn, last):
    """Try once to renew, until the moment LAST.  Returns False if the lock is gone."""
    turn.at = now() + 0.2
    turn.why = "the server did not answer in time"
    try:
        deadline = helper.renew(turn, last)
    except (Refused, Away) as error:
        turn.why = str(error) or turn.why
        if isinstance(error, Refused):
            note_refusal(turn)
        return True
    if deadline is None:
        return False
    turn.deadline = deadline
    turn.at = turn.renew_at()
    say("HELD deadline=%d" % (deadline * 1e9))
    return True


def note_refusal(turn):
    """Report a refusal at once: semlock ends the command before the last try."""
    if turn.why != turn.noted:
        say("NOTE not renewed yet: " + turn.why)
        turn.noted = turn.why


def release(helper, turn):
    """Release the lock, and send the last line.  Returns the exit status."""
    again = False
    give_up = now() + max(10, min(turn.lease, 30))
    while True:
        try:
            freed = helper.release(turn, now() + 3)
        except (Refused, Away) as error:
            if now() >= give_up or isinstance(error, Refused):
                lapses_in = max(0, turn.deadline - now()) + 1
                fail(69, "%s; it expires in %d s" % (error, lapses_in))
            again = True
            time.sleep(0.2)
            continue
        # If the lock was gone before the deadline, an earlier request of ours, whose answer was
        # lost, has removed it: nobody else could take it before.
        if freed or again and now() < turn.deadline:
            say("FREE", True)
            return 0
        say("LOST its key had gone", True)
        return 76


# ---- the program ----

def read_options(helper, turn):
    COMMON.update(helper.options, ttl=helper.ttl)
    for argument in sys.argv[1:-1]:
        key, _, value = argument[2:].partition("=")
        if not is_option(helper, key, value):
            fail(64, "--%s is not for %s://" % (key, helper.name))
        COMMON[key] = value or COMMON.get(key)
    turn.no_wait = "--no-wait" in sys.argv
    turn.lease = float(COMMON["ttl"])
    turn.until, turn.answer_by = limits(float(COMMON["wait"]), turn.no_wait)


def is_option(helper, key, value):
    if key == "mode" and value != "exclusive" and " shared" not in helper.words:
        return False
    return key in ("", "no-wait", "who", *COMMON)


def limits(seconds, no_wait):
    """Returns when a wait for SECONDS is over, and when to give up a silent server."""
    if no_wait:
        until = now() + 2.5
        return until, until
    until = FOREVER if seconds == FOREVER else now() + seconds
    return until, max(until + 0.5, now() + 2.5)


def live(helper, turn):
    """The whole life of a lock.  Returns the exit status."""
    look = wait(helper, turn)
    if look != TAKEN:
        return 1 if look == BUSY else 0
    why = hold(helper, turn)
    if not why:
        return release(helper, turn)
    say("LOST " + why, True)
    # Now semlock ends the command, and then closes our input.
    while started and not released and now() < turn.at + 10:
        listen(turn.at + 10)
    return 76


def list_owners(helper):
    owners = helper.who()
    for owner in owners:
        say("WHO state=" + owner, True)
    return 1 if owners else 0


def tidy_up(helper, turn):
    """Remove what a wait or a lost lock may have left, unless a command runs under it.  Try only
    once: semlock has its answer already."""
    if "--who" in sys.argv or started and not released:
        return
    try:
        helper.release(turn, now() + 1)
    except (Refused, Away):
        pass


def ignore_signals():
    """Ignore the signals that are meant for semlock: a helper ends at the end of its input."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP,
                   signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def run(helper):
    ignore_signals()
    say("LOCKSMITH 2" + helper.words)
    turn = Turn()
    read_options(helper, turn)
    helper.prepare(sys.argv[-1], COMMON)
    status = act(helper, turn)
    tidy_up(helper, turn)
    helper.hang_up()
    sys.exit(status)


def act(helper, turn):
    """List the owners, or hold the lock; send ERR if that fails.  Returns the exit status."""
    try:
        return list_owners(helper) if "--who" in sys.argv else live(helper, turn)
    except Refused as error:
        say("ERR %d %s" % (error.status, error), True)
        return error.status
    except Away as error:
        say("ERR 69 the server does not answer: %s" % error, True)
        return 69
    except Exception as error:  # no traceback: its exit status, 1, means "busy"
        say("ERR 70 internal error: %s: %s" % (type(error).__name__, error), True)
        return 70
