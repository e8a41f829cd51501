# SPDX-License-Identifier: MIT
"""The ways in which faults.py asks semlock for a lock, and the directory of such a run."""
import fcntl
import os
import re
import select
import shutil
import subprocess
import tempfile
import time

KERNEL = ("flock", "ofd", "posix")
FILES = ("excl", "link", "mkdir", "symlink", "rename")
HANG = int(os.environ.get("HANG", "60"))  # seconds
OWNED = ("--hold={owner}", "--detach")


class Scenario:
    """A way to ask for the lock, in a directory of its own.

    BEFORE: what is there when semlock starts.  ENDS: its status.  CHILD: the semlock that takes the lock is a child
    of the first process.  FAR: the file system is unknown to semlock.  RUNS: it runs a command; LASTS: which does not
    end by itself.  THEN: of a hold in the background, what ends it once the call has said OK or WAITING.
    {owner} and {id} in ARGS are the process that a hold is for, and the hold's ID.
    """

    def __init__(self, name, method, args, before="free", ends=0, child=False, far=False, lasts=False, then=None):
        self.name, self.method, self.args = name, method, args
        self.before, self.ends, self.child, self.far = before, ends, child, far
        self.lasts, self.then = lasts, then
        self.looks = "--who" in args
        self.owned = before in ("hold", "place") or any("{owner}" in word for word in args)
        self.silent = "--hold" in args or then is not None or before in ("hold", "place")
        self.runs = not self.looks and not self.silent and args != ["20"]
        # the semlock that takes the lock is a child (src/run/subreaper.h); the first process only waits
        self.child |= self.runs and "-F" not in args and (method == "posix" or "-o" in args)

    def argv(self, semlock, torture, room=None):
        """Of a run in ROOM, or to be read."""
        if self.args == ["20"]:
            return [semlock, "-m", self.method, "20"]
        known = {"owner": room.owner.pid, "id": room.id} if room and self.owned else {"owner": "PID", "id": "ID"}
        command = [torture, "held", self.method] if self.runs else []
        if self.lasts:
            command = ["sh", "-c", '"$@"; >lasts; exec sleep 1000', "-"] + command
        return [semlock, "-m", self.method, *(word.format(**known) for word in self.args), "lock", *command]

    def limit(self, waiting, fails=None):
        """The seconds that a run takes at most by its own doing: WAITING until it gets the lock, where it waits; FAILS:
        the call that fails for ever."""
        limits = [waiting if self.before == "wait" else 0]
        if "-w" in self.args:
            limits.append(float(self.args[self.args.index("-w") + 1]))
        if self.lasts and "--run-timeout" in self.args:
            limits.append(float(self.args[self.args.index("--run-timeout") + 1]))
        if "--replace" in self.args:
            limits.append(2)  # a holder that is not seen is looked for time and again
        return max(limits) + self.later(fails)

    def later(self, fails):
        """The seconds by which a run ends later where the call FAILS fails for ever."""
        if fails == "pidfd_open" and (self.then == "PID ends" or self.name.endswith("PID, ends")):
            return 1  # without pidfds the end of PID is looked for once a second
        if fails in ("write", "sendmsg") and "--keep-place" in self.args:
            return 2  # front.c: GRACE, as long as the keeper cannot say that the lock is busy
        return 0

    def always(self):
        """strace's options that make the file system unknown to semlock, as those of a network are."""
        return ["-e", "inject=fstatfs:error=ENOSYS"] if self.far else []


def scenarios():
    for method in KERNEL + FILES:
        def one(name, *args, **how):
            return Scenario(method + ": " + name, method, list(args), **how)
        kernel = method in KERNEL
        yield one("free")
        yield one("free, in the child", child=True)
        yield one("-n", "-n")
        yield one("-n, held", "-n", before="held", ends=1)
        yield one("-w .05, held", "-w", ".05", before="held", ends=1)
        yield one("waits its turn", before="wait")
        yield one("-w 5, waits its turn", "-w", "5", before="wait")
        yield one("--who, held", "--who", before="held", ends=1)
        yield one("--who --json, free", "--who", "--json")
        yield one("--hold", "--hold")
        if kernel:
            yield one("-F", "-F")
            yield one("-s", "-s")
            yield one("-j 2", "-j", "2")
            yield one("--rm", "--rm")
            yield one("a new file", before="nothing")
            yield one("a new file, --mode", "--mode", "600", before="nothing")
            if method != "posix":
                yield one("descriptor", "20")
        else:
            # -w 1: a holder that cannot be proven dead is waited for
            yield one("stale", "-w", "1", before="stale")
            if method != "symlink":
                yield one("--mode", "--mode", "600")
        if method == "rename":
            yield one("--init", "--init", before="nothing")
        elif not kernel:
            yield one("far away, free", far=True)
            yield one("far away, -n, held", "-n", before="held", ends=1, far=True)
            if method != "link":  # what link has left behind proves nothing here
                yield one("far away, stale", "-w", "1", before="stale", far=True)
            yield one("far away, --who, held", "--who", before="held", ends=1, far=True)
        if method not in ("posix", "rename"):
            yield one("-o", "-o")
        if method in ("flock", "excl"):
            yield one("two", "-f", "other")
            yield one("--replace", "--replace", before="stop")
            yield one("-o, waits its turn", "-o", before="wait")
            yield one("--log", "--log=log")
        if method in ("flock", "posix", "excl"):
            yield one("--run-timeout", "--run-timeout", "60")
            yield one("--run-timeout, is over", "--run-timeout", ".3", ends=124, lasts=True)
            yield one("--die-with-parent", "--die-with-parent")
            yield one("--die-with-parent=PID, ends", "--die-with-parent={owner}", ends=143, lasts=True)
            yield one("--detach", *OWNED, then="--release")
            yield one("--detach, waits its turn", *OWNED, before="wait", then="--release")
            yield one("--detach, -n, held", *OWNED, "-n", before="held", ends=1, then="--release")
            yield one("--detach, PID ends", *OWNED, then="PID ends")
            yield one("--release", "--release={id}", before="hold")
            yield one("--keep-place, PID ends", *OWNED, "--keep-place", "-w", ".1", before="held", ends=1, then="PID ends")
            yield one("--keep-place, --release", *OWNED, "--keep-place", "-w", ".1", before="held", ends=1, then="--release")
            yield one("--resume", "--resume={id}", "-w", "5", before="place")
        if method == "flock":
            yield one("by a link", before="link")


def children_but(known):
    """The children of this process, which inherits orphans, but those that KNOWN has; the dead ones are buried."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        pids = set(map(int, file.read().split())) - known
    for pid in list(pids):
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                pids.remove(pid)
        except ChildProcessError:
            pids.remove(pid)
    return pids


def leave_stale(argv, path):
    """Leaves the lock of a semlock that is killed with its command; the command may die a moment later."""
    said = subprocess.run([*argv, "sh", "-c", "echo $$; kill -KILL $PPID $$"], cwd=path, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    try:
        command = os.pidfd_open(int(said or 0))
    except OSError:
        return  # the command is dead, or never ran
    select.select([command], [], [], HANG)
    os.close(command)


class Room:
    """The directory, and the files and processes that are there before semlock starts."""

    def __init__(self, scenario, semlock):
        self.scenario, self.semlock = scenario, semlock
        self.path = tempfile.mkdtemp(prefix="faults.")
        self.holder = self.owner = self.id = None
        self.released = 0  # the status of a --release, if there was one
        self.fds = []
        method, before = scenario.method, scenario.before
        if scenario.owned:
            self.owner = subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL)
        if method == "rename" and before != "nothing":
            self.quietly("--init", "lock", "true")
        if before == "link":
            os.symlink("file", self.path + "/lock")
        if method in KERNEL and before != "nothing":
            open(self.path + "/lock", "w").close()
        if before == "stale":
            leave_stale([semlock, "-m", method, "lock"], self.path)
        if before in ("held", "wait", "stop", "place"):
            self.hold()
        if before == "hold":
            self.take_id()
        if before == "place":
            self.take_id("--keep-place", "-w", "0")
            self.let_go()
        if scenario.args == ["20"]:
            self.fds.append(os.open(self.path + "/lock", os.O_RDWR))
        children_but(self.known())

    def quietly(self, *args):
        return subprocess.run([self.semlock, "-m", self.scenario.method, *args], cwd=self.path,
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode

    def hold(self):
        self.holder = subprocess.Popen(
            [self.semlock, "-m", self.scenario.method, "lock", "sh", "-c", "echo in; read end"],
            cwd=self.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()

    def take_id(self, *options):
        """A hold in the background, or a place of one, is there when the run begins."""
        said = subprocess.run(
            [self.semlock, "-m", self.scenario.method, f"--hold={self.owner.pid}", "--detach", *options, "lock"],
            cwd=self.path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False).stdout.decode()
        self.id = re.search(r"id=(\S+)", said)[1]

    def let_go(self):
        if self.holder:
            self.holder.stdin.close()
            self.holder.wait()
            self.holder.stdout.close()
        self.holder = None

    def end_owner(self):
        if self.owner:
            self.owner.kill()
            self.owner.wait()
        self.owner = None

    def known(self):
        return {process.pid for process in (self.holder, self.owner) if process}

    def processes_left(self, patience=HANG / 2):
        """What still runs of what semlock has started; it may take a moment to end."""
        end = time.monotonic() + patience
        while (left := children_but(self.known())) and time.monotonic() < end:
            time.sleep(.01)
        return left

    def read(self, name):
        try:
            with open(self.path + "/" + name) as file:
                return file.read()
        except OSError:
            return ""

    def left(self):
        known = {"ran", "said", "file", "log", "lasts"}
        if self.scenario.method in KERNEL:
            known |= {"lock", "other"}
        if self.scenario.method == "rename":
            known |= {"lock"}
        return sorted(set(os.listdir(self.path)) - known)

    def close(self):
        self.let_go()
        self.end_owner()
        for fd in self.fds:
            os.close(fd)
        shutil.rmtree(self.path, ignore_errors=True)
