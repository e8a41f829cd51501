#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""faults.py SEMLOCK TORTURE [--places] [--sample=N] [--seed=N] [--only=WORD] [--error=NAME] [--verbose]

Every system call of semlock from the request to the release fails once, with every error it can have:
strace(1) counts the calls of a run without errors, and then injects one error after the other
into the binary as it is installed.  In each run it must hold that
  - the command runs only while the lock is held, as the command itself can see;
  - semlock ends, within seconds, with a status that the manual has;
  - if the command did not run, that status is not 0, and one line says why;
  - a sleeping call that fails with EINTR changes nothing;
  - the lock is free afterwards, and no file is left.
--places: one error of each kind (KINDS) for each call stack of a call, in the scenarios of each method,
and once in those that run no command; not each error at every call of every scenario.
(Needs a SEMLOCK with its symbols, and an strace with -k.)
--sample: N injections into half as many scenarios, both drawn by the seed.  --only: scenarios with WORD in their name.
--error: that error alone.
Ends with 1 if a condition did not hold, and prints how to repeat that run by hand.
"""
import fcntl
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

KERNEL = ("flock", "ofd", "posix")
FILES = ("excl", "link", "mkdir", "symlink", "rename")
STATUSES = {0, 1, 65, 66, 69, 71, 73, 76, 77, 126, 127}
HANG = 60
QUICK, PATIENCE = 0.06, 3  # seconds: until semlock surely waits; the same while strace records stacks

OPEN = "EACCES EPERM EMFILE ENFILE ENOMEM ENOSPC EROFS EIO ELOOP ENAMETOOLONG EDQUOT EINTR"
NAME = "EIO ENOSPC EDQUOT EROFS EACCES EPERM EMLINK ENOSYS EOPNOTSUPP EINVAL ENOMEM EINTR"
LOOK = "EIO ENOMEM EACCES ESTALE"
LOCK = "EINTR ENOLCK EIO EBADF EOPNOTSUPP ENOMEM EINVAL"
WRITE = "EIO ENOSPC EDQUOT EINTR"
PROCESS = "EAGAIN ENOMEM"
ERRORS = {
    "openat": OPEN, "open": OPEN, "flock": LOCK, "fcntl": LOCK + " EDEADLK EAGAIN",
    "linkat": NAME, "symlinkat": NAME, "renameat2": NAME, "renameat": NAME, "mkdirat": NAME,
    "unlinkat": "EIO EACCES EPERM EROFS EBUSY EINTR", "unlink": "EIO EACCES EPERM EROFS EBUSY",
    "fstat": LOOK, "newfstatat": LOOK, "stat": LOOK, "lstat": LOOK, "statfs": LOOK, "fstatfs": LOOK,
    "readlinkat": LOOK, "readlink": LOOK, "getdents64": LOOK,
    "write": WRITE, "pwrite64": WRITE, "ftruncate": "EIO EPERM EINTR", "fchmod": "EPERM EIO EROFS",
    "fchown": "EPERM EIO", "futimens": "EPERM EIO", "utimensat": "EPERM EIO",
    "read": "EIO EINTR", "pread64": "EIO",
    "vfork": PROCESS, "fork": PROCESS, "clone": PROCESS, "clone3": PROCESS,
    "execve": "EACCES ENOMEM E2BIG EIO", "rt_sigtimedwait": "EINTR EAGAIN",
    "waitid": "EINTR EPERM ENOSYS",
    "socketpair": "EMFILE ENFILE ENOMEM", "pipe": "EMFILE", "pipe2": "EMFILE",
    "sendmsg": "EPIPE ENOMEM EINTR", "recvmsg": "EINTR ENOMEM", "sendto": "EINTR", "recvfrom": "EINTR",
    "timer_create": "EAGAIN ENOMEM",
    "prctl": "EINVAL", "mmap": "ENOMEM", "getrandom": "EINTR ENOSYS",
    "pidfd_open": "ENOSYS EMFILE", "inotify_init1": "EMFILE ENOMEM", "inotify_add_watch": "ENOSPC",
    "poll": "EINTR ENOMEM", "ppoll": "EINTR ENOMEM", "dup": "EMFILE", "dup2": "EMFILE",
    "dup3": "EMFILE", "kill": "EPERM",
}
# Errors that a caller treats alike.
KINDS = ("EACCES EPERM EROFS", "EMFILE ENFILE ENOMEM EAGAIN", "ENOSPC EDQUOT", "ENOSYS EOPNOTSUPP EINVAL",
         "EIO EBADF EBUSY EMLINK E2BIG")


def one_of_each(errors):
    """Of each of the KINDS the first in ERRORS; and all errors of no kind."""
    first = {}
    for error in errors:
        first.setdefault(next((kind for kind in KINDS if error in kind.split()), error), error)
    return list(first.values())


class Scenario:
    """A way to ask for the lock, in a directory of its own."""

    def __init__(self, name, method, args, before="free", ends=0, child=False, far=False):
        self.name, self.method, self.args = name, method, args
        self.before, self.ends, self.child, self.far = before, ends, child, far
        self.looks = "--who" in args
        self.runs = not self.looks and args not in (["20"], ["--hold"])
        # the semlock that takes the lock is a child (src/run/subreaper.h); the first process only waits
        self.child |= self.runs and "-F" not in args and (method == "posix" or "-o" in args)

    def argv(self, semlock, torture):
        command = [torture, "held", self.method] if self.runs else []
        if self.args == ["20"]:
            return [semlock, "-m", self.method, "20"]
        return [semlock, "-m", self.method, *self.args, "lock", *command]

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
            yield one("--run-timeout", "--run-timeout", "60")
        if method == "flock":
            yield one("by a link", before="link")


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
    """The directory, and the files in it before semlock starts."""

    def __init__(self, scenario, semlock):
        self.scenario, self.semlock = scenario, semlock
        self.path = tempfile.mkdtemp(prefix="faults.")
        self.holder = None
        self.fds = []
        method, before = scenario.method, scenario.before
        if method == "rename" and before != "nothing":
            self.quietly("--init", "lock", "true")
        if before == "link":
            os.symlink("file", self.path + "/lock")
        if method in KERNEL and before != "nothing":
            open(self.path + "/lock", "w").close()
        if before == "stale":
            leave_stale([semlock, "-m", method, "lock"], self.path)
        if before in ("held", "wait", "stop"):
            self.hold()
        if scenario.args == ["20"]:
            self.fds.append(os.open(self.path + "/lock", os.O_RDWR))

    def quietly(self, *args):
        subprocess.run([self.semlock, "-m", self.scenario.method, *args], cwd=self.path,
                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def hold(self):
        self.holder = subprocess.Popen(
            [self.semlock, "-m", self.scenario.method, "lock", "sh", "-c", "echo in; read end"],
            cwd=self.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()

    def let_go(self):
        if self.holder:
            self.holder.stdin.close()
            self.holder.wait()
            self.holder.stdout.close()
        self.holder = None

    def read(self, name):
        try:
            with open(self.path + "/" + name) as file:
                return file.read()
        except OSError:
            return ""

    def left(self):
        known = {"ran", "said", "file"}
        if self.scenario.method in KERNEL:
            known |= {"lock", "other"}
        if self.scenario.method == "rename":
            known |= {"lock"}
        return sorted(set(os.listdir(self.path)) - known)

    def close(self):
        self.let_go()
        for fd in self.fds:
            os.close(fd)
        shutil.rmtree(self.path, ignore_errors=True)


def calm():
    """Resets signals that this process, in the background of a shell, may ignore."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def wait_until_it_waits(process, since, seconds):
    """Returns after SECONDS, when semlock surely waits, or when semlock has ended."""
    while process.poll() is None and time.monotonic() - since < seconds:
        time.sleep(0.005)


def close_after_ok(process, said):
    while process.poll() is None:
        with open(said) as lines:
            if any(line.startswith("OK") for line in lines):
                break
        time.sleep(.01)
    process.stdin.close()


def run(room, strace, argv, waiting=QUICK, limit=HANG):
    """Returns semlock's status; None: semlock hung."""
    give = {}
    if room.fds:
        def place():
            calm()
            os.dup2(room.fds[0], 20)
        give = {"pass_fds": [20], "preexec_fn": place}
        os.dup2(room.fds[0], 20)
    else:
        give = {"preexec_fn": calm}
    began = time.monotonic()
    # --hold takes no input that is at its end already: its input ends when it has said OK.
    holds = room.scenario.args == ["--hold"]
    with open(room.path + "/said", "w") as said:
        process = subprocess.Popen(strace + argv, cwd=room.path,
                                   stdin=subprocess.PIPE if holds else subprocess.DEVNULL,
                                   stdout=said, stderr=said, start_new_session=True, **give)
    if holds:
        threading.Thread(target=close_after_ok, args=(process, room.path + "/said"), daemon=True).start()
    if room.fds:
        os.close(20)
    if room.scenario.before == "wait":
        wait_until_it_waits(process, began, waiting)
        room.let_go()
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


class Call:
    """A system call in a trace; STACK: the functions of the program that led to the call."""

    def __init__(self, pid, name, rest):
        self.pid, self.name, self.rest, self.stack = pid, name, rest, ()

    def within(self, function):
        return any(frame.startswith(function + "+") for frame in self.stack)


def traced(scenario, semlock, torture, places):
    """All calls of a run without any fault."""
    room = Room(scenario, semlock)
    trace = room.path + ".trace"
    try:
        # (strace needs a millisecond for a line with its stack: leave frequent calls out.)
        strace = ["strace", "-f", "-qq", "-e", "trace=!rt_sigreturn", "-e", "signal=none", "-o", trace]
        strace += ["-k"] * places + scenario.always()
        status = run(room, strace, scenario.argv(semlock, torture),
                     *((PATIENCE, 20 * HANG) if places else (QUICK, HANG)))
        if status != scenario.ends:
            sys.exit(f"{scenario.name}: without any fault it ends with {status}: {room.read('said')}")
        calls = []
        with open(trace) as file:
            for line in file:
                frame = re.match(r" > (.*)\((.*)\) \[0x[0-9a-f]+\]$", line)
                call = re.match(r"(\d+) +([a-z_0-9]+)\((.*)$", line)
                if call:
                    calls.append(Call(*call.groups()))
                elif frame and calls and frame[1] == semlock:
                    calls[-1].stack += (frame[2],)
        return calls
    finally:
        room.close()
        if os.path.exists(trace):
            os.unlink(trace)


def started(calls, places):
    """The number of calls before main(), by the loader for the most part."""
    mine = [i for i, call in enumerate(calls) if call.pid == calls[0].pid]
    if places:
        # main() may have tail-called who().
        return next((i for i in mine if calls[i].within("main") or calls[i].within("who")), None)
    if not any("ld.so.cache" in call.rest for call in calls):
        return 0
    return next((i + 1 for i in mine if calls[i].name == "munmap"), 0)


def calls_of(scenario, semlock, torture, places):
    """(name, its number among calls of that name, stack) of all calls from main() on."""
    calls = traced(scenario, semlock, torture, places)
    start = started(calls, places)
    if start is None:
        sys.exit(f"{semlock}: its symbols are gone, or strace has no -k")
    first, before, counts, found, done = calls[0].pid, {}, {}, [], set()
    for call in calls[:start]:  # strace counts for each process: calls of the first one are part of its numbers
        if call.pid == first:
            before[call.name] = before.get(call.name, 0) + 1
    for i, call in enumerate(calls):
        name = call.name
        mine = call.pid != first if scenario.child else call.pid == first
        if not mine or call.pid in done:
            continue
        counts[call.pid, name] = count = counts.get((call.pid, name), 0) + 1
        if name == "execve" and (not scenario.child and count == 1):
            continue
        if name in ERRORS and not (scenario.far and name == "fstatfs") and (count > before.get(name, 0) if scenario.child else i >= start):
            found.append((name, count, call.stack))
        if name == "execve":
            done.add(call.pid)   # from here on the process runs the command
    return found


READS = ("openat", "read", "pread64", "fstat", "newfstatat", "readlinkat", "statfs", "fstatfs")


def said_to_be_busy(status, call, error):
    """True if the injected error means that the lock is busy."""
    return status == 1 and call in ("flock", "fcntl") and error in ("EAGAIN", "EDEADLK")


def taken_for_held(scenario, status, call):
    """True if semlock could not read the lock, and so takes it for a living holder's."""
    return status == 1 and scenario.method in FILES and call in READS


def sleeps(scenario, call):
    """True if a signal can interrupt CALL, on a file system of this machine."""
    if call in ("openat", "read") and scenario.args == ["--replace"]:
        return False  # this call reads /proc
    if call in ("openat", "open"):
        return scenario.method in KERNEL
    if call == "flock" and scenario.method in FILES:
        return "-n" not in scenario.args
    if call == "fcntl":
        return scenario.method in KERNEL and not scenario.child and "-F" not in scenario.args
    return call in ("flock", "poll", "ppoll", "rt_sigtimedwait", "waitid", "sendto", "recvfrom", "read")


def on_names(scenario, call):
    """True if CALL is part of a lock made of files: a signal may interrupt it over NFS and FUSE."""
    if call == "openat" and scenario.args == ["--replace"]:
        return False  # this call reads /proc
    return scenario.method in FILES and call in (
        "openat", "linkat", "symlinkat", "renameat2", "renameat", "mkdirat", "unlinkat", "pwrite64", "ftruncate")


def judge_look(scenario, status, ran, said):
    """Yields the broken conditions of --who: a failure to look must be reported."""
    if ran:
        yield "a command ran"
    if status not in STATUSES:
        yield f"status {status}"
    if scenario.before == "held" and status == 0:
        yield f"the lock is held, and it says: {said!r}"
    if status not in (0, 1) and not said:
        yield f"status {status}, and nothing says why: {said!r}"


def judge(scenario, room, status, call, error, torture):
    """Yields the broken conditions."""
    ran, said = room.read("ran"), room.read("said").removeprefix("OK\n")
    if status is None:
        yield f"hung for {HANG} s"
        return
    if scenario.looks:
        yield from judge_look(scenario, status, ran, said)
        return
    if (taken_for_held(scenario, status, call) or said_to_be_busy(status, call, error)) and not ran:
        return
    if "FREE" in ran:
        yield "the command ran without the lock"
    if ran.count("\n") > 1:
        yield "the command ran more than once"
    if scenario.before == "held" and ran:
        yield "the command ran while another held the lock"
    if status not in STATUSES:
        yield f"status {status}"
    if scenario.runs and status == 0 and not ran:
        yield "status 0, and the command did not run"
    if status not in (0, scenario.ends) and not ran and call != "write" and not re.fullmatch(r"semlock: .+\n", said):
        yield f"status {status}, and not one line that says why: {said!r}"
    if ran and status not in (0, 76):
        yield f"the command ran well, and the status is {status}: {said!r}"
    if status == 1 and scenario.ends != 1 and call not in ("flock", "fcntl"):
        yield "it says that the lock is busy, and it is free"
    if error == "EINTR" and status != scenario.ends and (sleeps(scenario, call) or on_names(scenario, call)):
        yield f"an interrupted call ends it, with {status}: {said!r}"
    if scenario.args == ["20"]:
        subprocess.run([torture, "held", scenario.method], cwd=room.path, check=False)
        if (room.read("ran") == "held\n") != (status == 0):
            yield f"status {status}, and the descriptor is {room.read('ran')!r}"


def afterwards(room, scenario, semlock):
    """Yields an error unless, after a takeover, the lock is free and the directory clean."""
    room.let_go()
    for fd in room.fds:
        os.close(fd)
    room.fds = []

    also = scenario.args if "other" in scenario.args or "--init" in scenario.args else ()

    def again(*command):
        return subprocess.run([semlock, "-m", scenario.method, "-w", "3", *also, "lock", *command], cwd=room.path,
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
    if again("true") != 0:
        yield "the next one does not get the lock"
        return
    if room.left() and scenario.method in FILES:
        leave_stale([semlock, "-m", scenario.method, "-w", "3", *also, "lock"], room.path)
        again("true")
    if room.left():
        yield f"left: {room.left()}"


def inject(scenario, call, number, error, semlock, torture):
    room = Room(scenario, semlock)
    strace = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call},fstatfs",
              "-e", f"inject={call}:error={error}:when={number}"] + scenario.always()
    if scenario.child:
        strace[1:1] = ["-f"] + ["-b", "execve"] * (call != "execve")  # no error in the command's own calls
    argv = scenario.argv(semlock, torture)
    try:
        status = run(room, strace, argv)
        wrong = list(judge(scenario, room, status, call, error, torture))
        wrong += afterwards(room, scenario, semlock)
    finally:
        room.close()
    for text in wrong:
        print(f"{scenario.name}: {call} {number}, {error}: {text}")
    if wrong:
        print("\t" + " ".join(strace + argv), flush=True)
    return not wrong


def main():
    options = {"places": "", "sample": 0, "seed": 1, "only": "", "error": "", "verbose": ""}
    words = []
    for word in sys.argv[1:]:
        match = re.fullmatch(r"--(places|sample|seed|only|error|verbose)=?(.*)", word)
        if match:
            options[match[1]] = match[2] or "1"
        else:
            words.append(word)
    if len(words) != 2:
        sys.exit(__doc__)
    semlock, torture = map(os.path.abspath, words)
    places = bool(options["places"])
    cases, known = [], set()
    draw, sample = random.Random(int(options["seed"])), int(options["sample"])
    chosen = [scenario for scenario in scenarios() if options["only"] in scenario.name]
    if sample:
        chosen = draw.sample(chosen, min(len(chosen), (sample + 1) // 2))
    for scenario in chosen:
        calls = calls_of(scenario, semlock, torture, places)
        for call, number, stack in calls:
            place = (scenario.method if scenario.runs else "", call, stack)
            if not places or place not in known:
                errors = ERRORS[call].split()
                cases += [(scenario, call, number, error)
                          for error in (one_of_each(errors) if places else errors)
                          if options["error"] in ("", error)]
            known.add(place)
        if options["verbose"]:
            print(scenario.name, len(calls), "calls", flush=True)
    total = len(cases)
    if sample:
        cases = draw.sample(cases, min(total, sample))
    bad = sum(not inject(*case, semlock, torture) for case in cases)
    print(f"{len(cases)} of {total} injections, seed {options['seed']}: {bad} bad")
    sys.exit(1 if bad or not cases else 0)


main()
