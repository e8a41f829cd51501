# SPDX-License-Identifier: MIT
"""Hold a lock for a part of a program, with semlock(1).

    import os
    import semlock

    with semlock.Sem("/run/lock/counter.sem"):
        ...                                     # one at a time

    with semlock.Sem("/run/lock/counter.sem", wait=10) as lock:     # Busy after ten seconds
        ...
        if lock.held: ...                       # check before what cannot be undone

    lock = semlock.NetLock("etcd://db1,db2,db3/nightly").acquire()
    ...
    lock.release()                              # free when this returns

    hold = semlock.detach("/run/lock/deploy.lock", pid=os.getppid(), note="release 1.4")
    print(hold.id)                              # for a later program:
    semlock.release("/run/lock/deploy.lock", that_id)

The lock of an object belongs only to the process that called acquire().  A program that it starts
does not inherit the lock, and a child that it forks neither holds nor releases it.  When the process
ends, for whatever reason, the lock is free.  The environment variable SEMLOCK names the semlock to
run; otherwise it is found in PATH.  Needs Python 3.8 and only the standard library.
"""

import os
import re
import socket
import subprocess
import tempfile
import threading
import warnings
import weakref

__all__ = ["Busy", "Error", "Hold", "Lost", "NetLock", "Sem", "detach", "release"]
__version__ = "1.0.0"

_FILES = ("excl", "link", "mkdir", "rename", "symlink")
_living = weakref.WeakSet()


class Error(Exception):
    """The lock cannot be taken, for the reason given; in semlock's own words."""


class Busy(Error):
    """Another process holds the lock, and nonblock or wait ended the wait."""


class Lost(Error):
    """The lock was lost while it was held: another program may have run beside this one."""


def _program(program):
    return program or os.environ.get("SEMLOCK") or "semlock"


class Sem:
    """A lock on a file or a directory.  Nothing is taken until acquire(), or the with statement.

    shared, nonblock, init are true or false; wait, method, slots, stale, mode, on_lost and ttl have
    values, as the options of semlock(1) of these names; also is a list of further locks.  A lock
    made of files has on_lost="term", so that held and release() know.

    While it is held, slot is the number of the slot that this object has (with slots), 0 to N-1,
    and token (etcd) the fencing token, which rises from holder to holder; otherwise None.
    """

    slot = token = None

    def __init__(self, lock, *, shared=False, nonblock=False, init=False, also=(),
                 program=None, **values):
        self.lock = os.fspath(lock)
        self._program = _program(program)
        self._socket = None
        self._starting = threading.Lock()
        switches = {"shared": shared, "nonblock": nonblock, "init": init}
        self._options = ["--" + name for name, on in switches.items() if on]
        if values.get("method") in _FILES:
            values.setdefault("on_lost", "term")
        for name, value in values.items():
            if name not in ("wait", "method", "slots", "stale", "mode", "on_lost", "ttl"):
                raise TypeError(f"{name}: unknown option")
            if value is not None:
                self._options.append(f"--{name.replace('_', '-')}={value}")
        self._options += ["--file=" + os.fspath(other) for other in also]

    def acquire(self):
        """Wait for the lock and return this object.  Raises Busy or Error."""
        # Not blocking: if two threads, or a thread and its signal handler, call this at once, only one acquires.
        if not self._starting.acquire(blocking=False):
            raise Error(f"{self.lock}: this object is already acquiring it")
        try:
            if self._socket is not None:
                raise Error(f"{self.lock}: this object already holds it")
            self.slot = self.token = None
            self._start()
        finally:
            self._starting.release()
        try:
            said = self._hear()
        except BaseException:   # an exception from a signal handler, or Ctrl-C
            self._end()
            raise
        if said == "OK":
            return self
        self._end()
        kind = Busy if said in ("busy", "timeout") else Error
        raise kind(f"{self.lock}: {self._why(said)}")

    def release(self):
        """Release the lock, and return when it is free.  Returns True, or False if this object
        does not hold it.  Raises Lost if it was lost before."""
        if self._socket is None:
            return False
        end = self._end()
        if not self._released(end):
            raise Lost(f"{self.lock}: the lock was lost: {self._why(end)}")
        return True

    @property
    def held(self):
        """True while this object holds the lock.  Costs one system call."""
        if self._socket is None:
            return False
        # While the lock is held, semlock prints no further line: readable input means the end.
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def __enter__(self):
        return self.acquire()

    def __exit__(self, kind, value, traceback):
        self.release()

    def __del__(self):
        if getattr(self, "_socket", None) is None:
            return
        end = self._end()
        if not self._released(end):
            warnings.warn(f"{self.lock}: the lock was lost: {self._why(end)}", RuntimeWarning)

    def _start(self):
        # A socket and not a pipe: its shutdown() ends semlock's input even if another process
        # has a copy of this end.  In a session of its own the keys of the terminal (Ctrl-C) do
        # not reach semlock: this program decides what becomes of the lock.
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise Error(f"{self.lock}: cannot make a pair of sockets: {error.strerror}") from None
        self._words = tempfile.TemporaryFile("w+", errors="replace")
        command = [self._program, f"--hold={os.getpid()}", "--status-fd=1", "--verbose",
                   *self._options, "--", self.lock]
        _living.add(self)
        self._socket = ours
        self._said = b""
        try:
            with theirs:
                self._process = subprocess.Popen(command, stdin=theirs, stdout=theirs,
                                                 stderr=self._words, start_new_session=True)
        except OSError as error:
            self._drop()
            raise Error(f"{self.lock}: cannot run {self._program}: {error.strerror}") from None
        except BaseException:
            self._drop()
            raise

    def _hear(self):
        """The line that says whether the lock is held."""
        while not (ok := re.search(rb"^OK( .*)?\n", self._said, re.MULTILINE)):
            got = self._socket.recv(4096)
            if not got:
                return self._last_line()
            self._said += got
        for name, number in re.findall(rb"(\w+)=(\d+)", ok[1] or b""):
            if name in (b"slot", b"token"):
                setattr(self, name.decode(), int(number))
        return "OK"

    def _end(self):
        """End semlock's input, wait until it and its holder have gone; return its last word."""
        self._ended = False
        try:
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:     # the sandboxes of coding agents forbid it: SIGTERM does the same
                self._ended = self.held
                self._process.terminate()
            while True:
                got = self._socket.recv(4096)
                if not got:
                    break
                self._said += got
            self._process.wait()
            self._words.seek(0)
            self._told = self._words.read()
        finally:
            self._drop()
        return self._last_line()

    def _released(self, end):
        """Is END, semlock's last word, that of a lock which was held until _end()?"""
        return re.match(r"(exit 0|signal 15)\b" if self._ended else r"exit 0\b", end) is not None

    def _drop(self):
        ours, self._socket = self._socket, None
        _living.discard(self)
        if ours is not None:
            ours.close()
            self._words.close()

    def _last_line(self):
        lines = self._said.decode(errors="replace").split("\n")
        return lines[-2] if len(lines) > 1 else ""

    def _why(self, said):
        """semlock's last line on standard error, else its last line on the socket."""
        lines = [line for line in self._told.splitlines() if ": taken after" not in line]
        return lines[-1] if lines else said or "semlock has ended"


class NetLock(Sem):
    """A lock on a server, named by a URL: etcd, etcds, ftp, ftpes, ftps, sftp.

    The password is in ~/.netrc or in the environment variable SEMLOCK_PASSWORD.  Such a lock can
    be lost while it is held; semlock cannot stop this program, as it stops a command: ask held
    before each step that cannot be undone, and mind Lost at the end.
    """

    def __init__(self, url, **options):
        if not re.match(r"[a-z][a-z0-9+.-]*://", url):
            raise ValueError(f"{url}: not the URL of a lock; a file is locked by Sem")
        super().__init__(url, **options)


class Hold:
    """A hold in the background: its id, and slot and token as those of Sem."""

    def __init__(self, lock, said):
        word = dict(re.findall(r"(\w+)=(\S+)", said))
        self.lock = lock
        self.id = word["id"]
        self.slot = int(word["slot"]) if word.get("slot", "").isdigit() else None
        self.token = int(word["token"]) if "token" in word else None

    def __str__(self):
        return self.id


def _run(lock, program, *arguments):
    """Run semlock; its output, or Busy, Lost or Error in its own words."""
    command = [_program(program), *arguments, "--", os.fspath(lock)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, errors="replace")
    except OSError as error:
        raise Error(f"{lock}: cannot run {command[0]}: {error.strerror}") from None
    if done.returncode == 0:
        return done.stdout
    lines = done.stderr.splitlines() or [f"semlock ended with {done.returncode}"]
    kind = {1: Busy, 76: Lost}.get(done.returncode, Error)
    raise kind(f"{lock}: {lines[-1]}")


def detach(lock, *, pid=None, run_timeout=None, note=None, program=None, **options):
    """Take LOCK, and leave it to a process in the background: a Hold, whose id a later program
    gives to release().  It ends with the process PID, and after run_timeout: one of the two is
    needed.  The options are those of Sem.  Raises Busy or Error."""
    options.setdefault("on_lost", None)
    arguments = ["--hold" if pid is None else f"--hold={int(pid)}", "--detach", "--verbose"]
    arguments += [f"--run-timeout={run_timeout}"] if run_timeout is not None else []
    arguments += [f"--note={note}"] if note is not None else []
    arguments += Sem(lock, program=program, **options)._options
    return Hold(os.fspath(lock), _run(lock, program, *arguments))


def release(lock, id, *, program=None):
    """End the hold ID of LOCK, which detach() or semlock --detach has begun, and return when the
    lock is free.  Raises Lost if it had ended before, Error if ID is none of LOCK's."""
    _run(lock, program, f"--release={id}")


def _forget_in_child():
    for lock in list(_living):
        lock._drop()    # the parent's lock; the parent's copy of the socket stays open
        lock._starting = threading.Lock()   # a thread of the parent may hold the old one


os.register_at_fork(after_in_child=_forget_in_child)
