#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""faults.py SEMLOCK TORTURE [--each | --places] [--sample=N] [--seed=N] [--only=WORD] [--error=NAME] [--call=NAME]
          [--jobs=N] [--for-ever] [--verbose]

Every system call of semlock from the request to the release fails once, with every error it can have:
strace(1) counts the calls of a run without errors; then inject (tests/lib/inject.c) has one after the other fail
in the binary as it is installed.  In each run it must hold that
  - the command runs only while the lock is held, as the command itself can see;
  - semlock ends, within seconds, with a status that the manual has;
  - if the command did not run, that status is not 0, and one line says why;
  - a sleeping call that fails with EINTR changes nothing;
  - the lock is free afterwards, and no file and no process is left.
--each: every system call fails with EINTR, EPERM and ENOSYS, whether or not it can have that error, as a sandbox
refuses calls; in all processes that semlock forks, up to the command; but for NOT_INJECTED.
--for-ever: from the Nth on, each call fails for ever, in the same processes, with the errors of FOR_EVER that it can
have: what fails twice must be no hang and no busy loop.  No run takes longer than its own limit and a second, or uses
more than a tenth of a processor while it waits.  N: the first eight, 16, 32, and so on.
--places: one error of each kind (KINDS) for each call stack of a call, in the scenarios of each method,
and once in those that run no command; not each error at every call of every scenario.
(Needs a SEMLOCK with its symbols, and an strace with -k.)
--sample: N injections into half as many scenarios, both drawn by the seed.  --only: scenarios with WORD in their name.
--error: that error alone.  --call=NAME,...: these calls alone.  --jobs: N scenarios at a time.
Ends with 1 if a condition did not hold, and prints how to repeat that run by hand.
"""
import ctypes
import errno
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from faults_scenarios import FILES, HANG, KERNEL, Room, leave_stale, scenarios

STATUSES = {0, 1, 65, 66, 69, 71, 73, 76, 77, 126, 127}
LONG = 1  # seconds that a run waits for its turn, for the processor time of that
QUICK, PATIENCE = 0.06, 3  # seconds: until semlock surely waits; the same while strace records stacks

OPEN = "EACCES EPERM EMFILE ENFILE ENOMEM ENOSPC EROFS EIO ELOOP ENAMETOOLONG EDQUOT EINTR"
NAME = "EIO ENOSPC EDQUOT EROFS EACCES EPERM EMLINK ENOSYS EOPNOTSUPP EINVAL ENOMEM EINTR"
LOOK = "EIO ENOMEM EACCES ESTALE"
LOCK = "EINTR ENOLCK EIO EBADF EOPNOTSUPP ENOMEM EINVAL"
WRITE = "EIO ENOSPC EDQUOT EINTR"
PROCESS = "EAGAIN ENOMEM"
NEVER_FAILS = "has no error, and no caller looks for one"
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
FOR_EVER = "EPERM ENOSYS EINVAL ENOMEM EMFILE EIO"
SANDBOX = "EPERM ENOSYS"   # any call can have them
EACH = "EINTR EPERM ENOSYS"  # what a signal, a sandbox and an old kernel make of any call
# Calls that --each leaves alone, and why.
NOT_INJECTED = {
    "execve": "the first one starts semlock itself",
    "exit_group": "does not return: no library goes on behind it", "exit": "does not return",
    "close": "Linux has closed the descriptor, whatever it returns; an injection keeps it open",
    "rt_sigreturn": "the end of a handler: what a failure would return to is not defined",
    "rt_sigprocmask": "fails for a wrong argument alone; the library's own fork(2) masks all signals by it",
    "rt_sigaction": "fails for a wrong argument alone",
    "timer_delete": "fails for a wrong argument alone",
    "brk": "returns the end of the heap and never an error: the library takes -ENOSYS for an address",
    "futex": "the library ends the program after an error that futex(2) cannot have",
    "mprotect": "the library's, for the stack of a thread, which it takes for protected after ENOSYS",
    "arch_prctl": "the library's start, before main", "set_tid_address": "the library's start, before main",
    "set_robust_list": "the library's start, before main", "rseq": "the library's start, before main",
    "getpid": NEVER_FAILS, "gettid": NEVER_FAILS, "getppid": NEVER_FAILS, "umask": NEVER_FAILS,
    "getuid": NEVER_FAILS, "geteuid": NEVER_FAILS, "getgid": NEVER_FAILS, "getegid": NEVER_FAILS,
}
SLOWNESS = max(1, int(os.environ.get("SLOWNESS", "1")))
# Seconds beyond its own limit that a run may take when a call fails for ever: on a machine that runs other tests beside,
# only one that hangs is found.
SLACK = SLOWNESS * int(os.environ.get("FAULTS_SLACK", "1"))
START = .25 * SLOWNESS   # seconds of processor time that the processes of a run take to start
# Errors that a caller treats alike.
KINDS = ("EACCES EPERM EROFS", "EMFILE ENFILE ENOMEM EAGAIN", "ENOSPC EDQUOT", "ENOSYS EOPNOTSUPP EINVAL",
         "EIO EBADF EBUSY EMLINK E2BIG")


def one_of_each(errors):
    """Of each of the KINDS the first in ERRORS; and all errors of no kind."""
    first = {}
    for error in errors:
        first.setdefault(next((kind for kind in KINDS if error in kind.split()), error), error)
    return list(first.values())


def calm():
    """Resets signals that this process, in the background of a shell, may ignore, and semlock with it.  (Here, and not in
    each child: subprocess can then start that by vfork(2).)"""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def wait_until_it_waits(process, since, seconds):
    """Returns after SECONDS, when semlock surely waits, or when semlock has ended."""
    while process.poll() is None and time.monotonic() - since < seconds:
        time.sleep(0.005)


def end_it(room, process, torture):
    """Ends what goes on until it is told: --hold, a hold in the background, a command that lasts."""
    scenario = room.scenario
    while process.poll() is None:
        said = room.read("said")
        held = any(line.startswith("OK") for line in said.splitlines())
        if "--hold" in scenario.args and held:
            process.stdin.close()
        elif scenario.then and (held or "WAITING id=" in said):
            if held:
                subprocess.run([torture, "held", scenario.method], cwd=room.path, check=False)
            if scenario.then == "--release":
                room.released = room.quietly("--release=" + re.search(r"id=(\S+)", said)[1], "lock")
            if scenario.then != "--release" or room.released:
                room.end_owner()
        elif scenario.lasts and scenario.owned and os.path.exists(room.path + "/lasts"):
            room.end_owner()
        else:
            time.sleep(.005)
            continue
        return


def run(room, strace, argv, torture, waiting=QUICK, limit=HANG):
    """Returns semlock's status; None: semlock hung."""
    give = {}
    if room.fds:
        os.dup2(room.fds[0], 20)
        give = {"pass_fds": [20]}
    began = time.monotonic()
    # --hold takes no input that is at its end already: its input ends when it has said OK.
    holds = "--hold" in room.scenario.args
    with open(room.path + "/said", "w") as said:
        process = subprocess.Popen(strace + argv, cwd=room.path,
                                   stdin=subprocess.PIPE if holds else subprocess.DEVNULL,
                                   stdout=said, stderr=said, start_new_session=True, **give)
    ender = threading.Thread(target=end_it, args=(room, process, torture), daemon=True)
    ender.start()
    if room.fds:
        os.close(20)
    if room.scenario.before == "wait":
        wait_until_it_waits(process, began, waiting)
        room.let_go()
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        status = None
    ender.join()
    return 128 - status if status and status < 0 else status


def of_call(room, status):
    """The status of a call that has taken a hold which has ended before the call itself."""
    ended = room.scenario.then and status in (76, 143) and " id=" in room.read("said")
    return room.scenario.ends if ended else status


NUMBERS = {}  # of the system calls that have been seen


class Call:
    """A system call in a trace; STACK: the functions of the program that led to the call."""

    def __init__(self, pid, number, name, rest):
        self.pid, self.number, self.name, self.rest, self.stack = pid, int(number), name, rest, ()

    def within(self, function):
        return any(frame.startswith(function + "+") for frame in self.stack)


def traced(scenario, semlock, torture, places, each):
    """All calls of a run without any fault, but those of the command."""
    room = Room(scenario, semlock)
    trace = room.path + ".trace"
    try:
        # (strace needs a millisecond for a line with its stack: leave frequent calls out.)
        strace = ["strace", "-n", "-f", "-qq", "-e", "trace=!rt_sigreturn", "-e", "signal=none", "-o", trace]
        strace += ["-k"] * places + ["-b", "execve"] * each + scenario.always()
        # On a busy machine, strace has not come to the wait when QUICK is over.
        status = run(room, strace, scenario.argv(semlock, torture, room), torture,
                     *((PATIENCE, 20 * HANG) if places else (LONG, HANG)))
        if of_call(room, status) != scenario.ends:
            sys.exit(f"{scenario.name}: without any fault it ends with {status}: {room.read('said')}")
        calls = []
        with open(trace) as file:
            for line in file:
                frame = re.match(r" > (.*)\((.*)\) \[0x[0-9a-f]+\]$", line)
                call = re.match(r"(\d+) +\[ *(\d+)\] ([a-z_0-9]+)\((.*)$", line)
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


def calls_of(scenario, semlock, torture, places, each):
    """(name, its number among calls of that name, stack) of all calls from main() on; EACH: in any of the processes."""
    calls = traced(scenario, semlock, torture, places, each)
    NUMBERS.update((call.name, call.number) for call in calls)
    start = started(calls, places)
    if start is None:
        sys.exit(f"{semlock}: its symbols are gone, or strace has no -k")
    first, before, counts, found, done = calls[0].pid, {}, {}, [], set()
    for call in calls[:start]:  # strace counts for each process: calls of the first one are part of its numbers
        if call.pid == first:
            before[call.name] = before.get(call.name, 0) + 1
    for i, call in enumerate(calls):
        name = call.name
        mine = each or (call.pid != first if scenario.child else call.pid == first)
        if not mine or call.pid in done:
            continue
        counts[call.pid, name] = count = counts.get((call.pid, name), 0) + 1
        if name == "execve" and call.pid == first and count == 1:
            continue
        known = name not in NOT_INJECTED if each else name in ERRORS
        later = count > before.get(name, 0) if each or scenario.child else i >= start
        if each and scenario.lasts and name in ("kill", "rt_sigqueueinfo"):
            continue  # a command that may not be signalled is waited for: the lock is its own
        if known and not (scenario.far and name == "fstatfs") and later:
            found.append((name, count, () if each else call.stack))
        if name == "execve":
            done.add(call.pid)   # from here on the process runs the command
    return sorted(set(found)) if each else found


def thinned(calls):
    """Of the calls of a name the first eight, and of the others each whose place is a power of two: --who makes a
    thousand of one kind, and that the last ones fail is no other case."""
    places, some = {}, []
    for name, number, stack in calls:
        places[name] = place = places.get(name, 0) + 1
        if place <= 8 or place & (place - 1) == 0:
            some.append((name, number, stack))
    return some


READS = ("openat", "read", "pread64", "fstat", "newfstatat", "readlinkat", "statfs", "fstatfs")


def said_to_be_busy(status, call, error):
    """True if the injected error means that the lock is busy."""
    return status == 1 and call in ("flock", "fcntl") and error in ("EAGAIN", "EDEADLK")


def taken_for_held(scenario, status, call):
    """True if semlock could not read the lock, and so takes it for a living holder's."""
    return status == 1 and scenario.method in FILES and call in READS


def sleeps(scenario, call):
    """True if a signal can interrupt CALL, on a file system of this machine."""
    if call in ("openat", "open", "read") and scenario.args == ["--replace"]:
        return False  # this call reads /proc
    if call in ("openat", "open"):
        return scenario.method in KERNEL
    if call == "flock" and scenario.method in FILES:
        return "-n" not in scenario.args
    if call == "fcntl":
        return scenario.method in KERNEL and not scenario.child and not scenario.then and "-F" not in scenario.args
    return call in ("flock", "poll", "ppoll", "rt_sigtimedwait", "waitid", "wait4", "sendto", "recvfrom", "read",
                    "sendmsg", "recvmsg", "connect", "accept", "accept4", "nanosleep", "clock_nanosleep")


def on_names(scenario, call):
    """True if CALL is part of a lock made of files: a signal may interrupt it over NFS and FUSE."""
    if call == "openat" and scenario.args == ["--replace"]:
        return False  # this call reads /proc
    return scenario.method in FILES and call in (
        "openat", "linkat", "symlinkat", "renameat2", "renameat", "mkdirat", "unlinkat", "pwrite64", "ftruncate")


def judge_for_ever(scenario, room, status, call, took, used):
    """Yields the broken conditions where the call CALL has failed for ever.  TOOK, USED: seconds by the clock, and of
    processor time."""
    ran, said = room.read("ran"), room.read("said")
    if status is None or took > scenario.limit(LONG, call) + SLACK:
        yield f"it took {took:.1f} s"
    if used > took / 10 + START:
        yield f"it used {used:.1f} s of processor time in {took:.1f} s"
    if status is None:
        return
    told = scenario.then and status == 76
    if scenario.runs and "FREE" in ran and not told:
        yield "the command ran without the lock"
    if ran.count("\n") > 1:
        yield "the command ran more than once"
    if scenario.before == "held" and ran:
        yield "the command ran while another held the lock"
    status = of_call(room, status)
    if status not in (*STATUSES, scenario.ends):
        yield f"status {status}"
    if scenario.runs and status == 0 and not ran:
        yield "status 0, and the command did not run"
    # a lock made of files that cannot be read, or whose holder cannot be asked for, is taken for held: 1, in silence
    held = status == 1 and scenario.method in FILES
    if status not in (0, scenario.ends) and not held and not ran and not said and call != "write":
        yield f"status {status}, and nothing says why"


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
    ran, said = room.read("ran"), re.sub(r"^(OK|WAITING)( .*)?\n", "", room.read("said"), flags=re.M)
    if status is None:
        yield f"hung for {HANG} s"
        return
    if scenario.looks:
        yield from judge_look(scenario, status, ran, said)
        return
    told = scenario.then and status == 76  # OK was printed, and could not be confirmed: the call says so
    status = of_call(room, status)
    if (taken_for_held(scenario, status, call) or said_to_be_busy(status, call, error)) and not ran:
        return
    if "FREE" in ran and not told and not (scenario.silent and call == "poll" and error != "EINTR"):  # the hold ends: --release is 76
        yield "the command ran without the lock"
    if ran.count("\n") > 1:
        yield "the command ran more than once"
    if scenario.before == "held" and ran:
        yield "the command ran while another held the lock"
    if status not in (*STATUSES, scenario.ends):
        yield f"status {status}"
    if scenario.runs and status == 0 and not ran:
        yield "status 0, and the command did not run"
    if status not in (0, scenario.ends) and not ran and call != "write" and not re.fullmatch(r"semlock: .+\n" if not scenario.then else r"(semlock: .+\n)+", said):
        yield f"status {status}, and not one line that says why: {said!r}"
    if scenario.then and (status == 0) != ("OK id=" in room.read("said")):
        yield f"status {status}, and it says {room.read('said')!r}"
    if room.released not in STATUSES or (error == "EINTR" and sleeps(scenario, call) and room.released):
        yield f"--release ends with {room.released}"
    if ran and status not in (0, 76, scenario.ends):
        yield f"the command ran well, and the status is {status}: {said!r}"
    if status == 1 and scenario.ends != 1 and call not in ("flock", "fcntl"):
        yield "it says that the lock is busy, and it is free"
    if error == "EINTR" and status != scenario.ends and (sleeps(scenario, call) or on_names(scenario, call)):
        yield f"an interrupted call ends it, with {status}: {said!r}"
    if scenario.args == ["20"]:
        subprocess.run([torture, "held", scenario.method], cwd=room.path, check=False)
        if (room.read("ran") == "held\n") != (status == 0):
            yield f"status {status}, and the descriptor is {room.read('ran')!r}"


def end_of_hold(room, scenario, status, torture):
    """Yields what --release and --resume have left, against what they said."""
    if scenario.before == "place":
        subprocess.run([torture, "held", scenario.method], cwd=room.path, check=False)
        if status == 0 and room.read("ran") != "held\n":
            yield "the lock is free, and it says that it is held"
        if (released := room.quietly("--release=" + room.id, "lock")) != 0:
            yield f"--release ends with {released}"
    if status == 0 and room.quietly("-n", "lock", "true") != 0:
        yield "the lock is released, and the next one does not get it"


def afterwards(room, scenario, semlock):
    """Yields an error unless, after a takeover, the lock is free, the directory clean, and no process left."""
    room.let_go()
    room.end_owner()
    for pid in room.processes_left():
        with open(f"/proc/{pid}/cmdline") as file:
            yield f"left: process {pid}, {file.read()!r}"
        os.kill(pid, signal.SIGKILL)
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


def used_by_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def inject_for_ever(scenario, call, number, error, semlock, torture):
    room = Room(scenario, semlock)
    faulty = [os.path.dirname(torture) + "/../inject", "until-exec", f"{NUMBERS[call]}={getattr(errno, error)}@{number}+", "--"]
    try:
        began, used = time.monotonic(), used_by_children()
        status = run(room, faulty, scenario.argv(semlock, torture, room), torture, LONG,
                     scenario.limit(LONG) + 9 * SLOWNESS + SLACK)
        took = time.monotonic() - began
        wrong = list(judge_for_ever(scenario, room, status, call, took, used_by_children() - used))
        room.let_go()
        room.end_owner()
        for pid in room.processes_left(2 * SLOWNESS):
            with open(f"/proc/{pid}/cmdline") as file:
                wrong.append(f"left: process {pid}, {file.read()!r}")
            os.kill(pid, signal.SIGKILL)
        for fd in room.fds:
            os.close(fd)
        room.fds = []
    finally:
        room.close()
    return report(scenario, call, number, error, wrong, faulty + scenario.argv(semlock, torture))


def report(scenario, call, number, error, wrong, argv):
    for text in wrong:
        print(f"{scenario.name}: {call} {number}, {error}: {text}")
    if wrong:
        print("\t" + " ".join(argv), flush=True)
    return not wrong


def inject(scenario, call, number, error, semlock, torture, each):
    room = Room(scenario, semlock)
    reach = "first"
    if scenario.child or each:
        reach = "all" if call == "execve" else "until-exec"  # no error in the command's own calls
    faulty = [os.path.dirname(torture) + "/../inject", reach, f"{NUMBERS[call]}={getattr(errno, error)}@{number}"]
    if scenario.far and "fstatfs" in NUMBERS:
        faulty.append(f"{NUMBERS['fstatfs']}={errno.ENOSYS}")
    faulty.append("--")
    try:
        status = run(room, faulty, scenario.argv(semlock, torture, room), torture)
        wrong = list(judge(scenario, room, status, call, error, torture))
        if scenario.before in ("hold", "place"):
            wrong += end_of_hold(room, scenario, status, torture)
        wrong += afterwards(room, scenario, semlock)
    finally:
        room.close()
    return report(scenario, call, number, error, wrong, faulty + scenario.argv(semlock, torture))


def errors_of(call, options):
    """The errors with which CALL is to fail."""
    if options["for-ever"]:
        return [error for error in FOR_EVER.split() if error in SANDBOX.split() + ERRORS.get(call, "").split()]
    return EACH.split() if options["each"] else ERRORS[call].split()


def cases_of(scenario, known, options, semlock, torture):
    """All injections into one scenario, (call, number, error); those of a place in KNOWN are left out with --places."""
    places, each = bool(options["places"]), bool(options["each"])
    cases = []
    calls = calls_of(scenario, semlock, torture, places, each)
    if options["for-ever"]:
        calls = thinned(calls)
    for call, number, stack in calls:
        place = (scenario.method if scenario.runs else "", call, stack)
        if not places or place not in known:
            errors = errors_of(call, options)
            cases += [(scenario, call, number, error) for error in (one_of_each(errors) if places else errors)
                      if options["error"] in ("", error) and (not options["call"] or call in options["call"].split(","))]
        known.add(place)
    if options["verbose"]:
        print(scenario.name, len(calls), "calls", len(cases), "injections", flush=True)
    return cases


def part_of(chosen, draw, options, semlock, torture):
    """Injects into the scenarios CHOSEN; returns how many injections there were, of how many, and how many were bad."""
    sample, known, cases, done, bad = int(options["sample"]), set(), [], 0, 0

    def inject_all(some):
        if options["for-ever"]:
            return sum(not inject_for_ever(*case, semlock, torture) for case in some)
        return sum(not inject(*case, semlock, torture, bool(options["each"])) for case in some)

    for scenario in chosen:
        found = cases_of(scenario, known, options, semlock, torture)
        for _ in range(2):  # a waiter may have found the lock free, on a busy machine
            if options["call"] and not found:
                found = cases_of(scenario, known, options, semlock, torture)
        cases += found
        if not sample:
            done, bad = done + len(found), bad + inject_all(found)
    if sample:
        some = draw.sample(cases, min(len(cases), sample))
        done, bad = len(some), inject_all(some)
    return done, len(cases), bad


def inherit_orphans():
    """What semlock's processes leave behind are children of this process from now on."""
    if ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0) != 0:
        sys.exit("prctl(PR_SET_CHILD_SUBREAPER): " + os.strerror(ctypes.get_errno()))


def main():
    options = {"places": "", "each": "", "for-ever": "", "sample": 0, "seed": 1, "only": "", "error": "", "call": "", "jobs": 1, "verbose": ""}
    words = []
    for word in sys.argv[1:]:
        match = re.fullmatch(r"--(places|each|for-ever|sample|seed|only|error|call|jobs|verbose)=?(.*)", word)
        if match:
            options[match[1]] = match[2] or "1"
        else:
            words.append(word)
    if options["for-ever"]:
        options["each"] = "1"
    if len(words) != 2 or (options["places"] and options["each"]):
        sys.exit(__doc__)
    semlock, torture = map(os.path.abspath, words)
    calm()
    draw, sample, jobs = random.Random(int(options["seed"])), int(options["sample"]), int(options["jobs"])
    chosen = [scenario for scenario in scenarios() if options["only"] in scenario.name]
    if sample:
        chosen = draw.sample(chosen, min(len(chosen), (sample + 1) // 2))
    results = []
    for job in range(jobs):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            inherit_orphans()
            figures = part_of(chosen[job::jobs], draw, options, semlock, torture)
            os.write(writer, " ".join(map(str, figures)).encode())
            sys.stdout.flush()
            os._exit(0)
        os.close(writer)
        results.append((pid, reader))
    ends = [os.waitpid(pid, 0)[1] for pid, _ in results]
    figures = [list(map(int, os.read(reader, 100).split())) for _, reader in results]
    if any(ends) or not all(figures):
        sys.exit(f"a job has failed: {ends}")
    done, total, bad = map(sum, zip(*figures))
    print(f"{done} of {total} injections, seed {options['seed']}: {bad} bad")
    sys.exit(1 if bad or not done else 0)


main()
