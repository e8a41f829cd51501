#!/usr/bin/python3
"""faults.py SEMLOCK TORTURE [--sample=N] [--seed=N] [--only=WORD] [--error=NAME] [--verbose]

Every system call of semlock's way to the lock and back fails once, in every way it can fail:
strace(1) counts the calls of a run that goes well, and then injects one error after the other
into the very binary that is installed.  In each run it must hold that
  - the command runs only while the lock is held, as the command itself can see;
  - semlock ends, within seconds, with a status that the manual has;
  - if the command did not run, that status is not 0, and one line says why;
  - a call that sleeps and was merely interrupted (EINTR) changes nothing;
  - the lock is free afterwards, and nothing lies about.
--sample: N injections, drawn from all by the seed.  --only: scenarios with WORD in their name.
--error: no error but that one.
Ends with 1 if anything did not hold, and prints how to repeat it by hand.
"""
import fcntl
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

KERNEL = ("flock", "ofd", "posix")
FILES = ("excl", "link", "mkdir", "symlink", "rename")
STATUSES = {0, 1, 65, 66, 69, 71, 73, 76, 77, 126, 127}
HANG = 8

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
    "socketpair": "EMFILE ENFILE ENOMEM", "pipe": "EMFILE", "pipe2": "EMFILE",
    "sendmsg": "EPIPE ENOMEM EINTR", "recvmsg": "EINTR ENOMEM", "sendto": "EINTR", "recvfrom": "EINTR",
    "timer_create": "EAGAIN ENOMEM",
    "prctl": "EINVAL", "mmap": "ENOMEM", "getrandom": "EINTR ENOSYS",
    "pidfd_open": "ENOSYS EMFILE", "inotify_init1": "EMFILE ENOMEM", "inotify_add_watch": "ENOSPC",
    "poll": "EINTR ENOMEM", "ppoll": "EINTR ENOMEM", "dup": "EMFILE", "dup2": "EMFILE",
    "dup3": "EMFILE", "kill": "EPERM",
}


class Scenario:
    """A way to ask for the lock, in a directory of its own."""

    def __init__(self, name, method, args, before="free", ends=0, child=False):
        self.name, self.method, self.args = name, method, args
        self.before, self.ends, self.child = before, ends, child

    def argv(self, semlock, torture):
        command = [torture, "held", self.method]
        if self.args == ["20"]:
            return [semlock, "-m", self.method, "20"]
        return [semlock, "-m", self.method, *self.args, "lock", *command]


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
        if kernel:
            yield one("-F", "-F")
            yield one("-s", "-s")
            yield one("-j 2", "-j", "2")
            yield one("--rm", "--rm")
            yield one("a new file", before="nothing")
            if method != "posix":
                yield one("descriptor", "20")
        else:
            # ... for so long: what cannot be proven dead is waited for
            yield one("stale", "-w", "1", before="stale")
        if method not in ("posix", "rename"):
            yield one("-o", "-o")
        if method in ("flock", "excl"):
            yield one("two", "-f", "other")


class Room:
    """The directory; what stands in it before semlock comes."""

    def __init__(self, scenario, semlock):
        self.scenario, self.semlock = scenario, semlock
        self.path = tempfile.mkdtemp(prefix="faults.")
        self.holder = None
        self.fds = []
        method, before = scenario.method, scenario.before
        if method == "rename":
            self.quietly("--init", "lock", "true")
        if method in KERNEL and before != "nothing":
            open(self.path + "/lock", "w").close()
        if before == "stale":
            self.quietly("lock", "sh", "-c", "kill -KILL $PPID $$")
        if before in ("held", "wait"):
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
        known = {"ran", "said"}
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
    """A child must not ignore what we, in the background of a shell, may."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def wait_until_it_waits(room, process, since):
    """semlock has said so, as the kernel does: it sleeps; or some time has passed, or it is over."""
    while process.poll() is None and time.monotonic() - since < 0.06:
        time.sleep(0.005)


def run(room, strace, argv):
    """Returns the status (None: it hung), and what semlock said."""
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
    with open(room.path + "/said", "w") as said:
        process = subprocess.Popen(strace + argv, cwd=room.path, stdin=subprocess.DEVNULL,
                                   stdout=said, stderr=said, start_new_session=True, **give)
    if room.fds:
        os.close(20)
    if room.scenario.before == "wait":
        wait_until_it_waits(room, process, began)
        room.let_go()
    try:
        return process.wait(HANG)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def calls_of(scenario, semlock, torture):
    """(name, how many of that name there have been) of all calls after the loader's."""
    room = Room(scenario, semlock)
    trace = room.path + ".trace"
    try:
        status = run(room, ["strace", "-f", "-qq", "-o", trace], scenario.argv(semlock, torture))
        if status != scenario.ends:
            sys.exit(f"{scenario.name}: without any fault it ends with {status}: {room.read('said')}")
        with open(trace) as file:
            lines = [match.groups() for match in re.finditer(r"(?m)^(\d+) +([a-z_0-9]+)\((.*)$", file.read())]
    finally:
        room.close()
        if os.path.exists(trace):
            os.unlink(trace)
    first, counts, found, loading = lines[0][0], {}, [], True
    if not any("ld.so.cache" in rest for _, _, rest in lines):
        loading = False
    done, loaders = set(), {}
    for pid, name, _ in lines:  # strace counts for each process: those of the first come along
        if pid == first:
            loaders[name] = loaders.get(name, 0) + 1
            if name == "munmap":
                break
    for pid, name, rest in lines:
        mine = pid != first if scenario.child else pid == first
        if not mine or pid in done:
            continue
        counts[name] = counts.get(name, 0) + 1
        if name == "execve" and (not scenario.child and counts[name] == 1):
            continue
        if name in ERRORS and (counts[name] > loaders.get(name, 0) if scenario.child else not loading):
            found.append((name, counts[name]))
        if name == "munmap":
            loading = False
        if name == "execve":
            done.add(pid)   # from here on it is the command
    return found


READS = ("openat", "read", "pread64", "fstat", "newfstatat", "readlinkat", "statfs", "fstatfs")


def said_to_be_busy(status, call, error):
    """Then that is what was injected."""
    return status == 1 and call in ("flock", "fcntl") and error in ("EAGAIN", "EDEADLK")


def taken_for_held(scenario, status, call, error):
    """What cannot be looked at is taken for a living holder's: waited for, and left alone.  So is a
    rename lock whose holder may be dead, where flock(2) does not work and cannot tell."""
    return status == 1 and (scenario.method in FILES and call in READS or
                            scenario.method == "rename" and scenario.before == "stale" and call == "flock" and
                            error != "EINTR")


def sleeps(scenario, call):
    """Can a signal interrupt it, on a file system of this machine?"""
    if call in ("openat", "open"):
        return scenario.method in KERNEL
    if call == "flock" and scenario.method in FILES:
        return "-n" not in scenario.args
    if call == "fcntl":
        return not scenario.child and "-F" not in scenario.args
    return call in ("flock", "poll", "ppoll", "rt_sigtimedwait", "sendto", "recvfrom", "read")


def on_names(scenario, call):
    """Is it one of those that a lock is made of, which a signal may interrupt over NFS and FUSE?"""
    return scenario.method in FILES and call in (
        "openat", "linkat", "symlinkat", "renameat2", "renameat", "mkdirat", "unlinkat", "pwrite64", "ftruncate")


def judge(scenario, room, status, call, error, torture):
    """What does not hold."""
    ran, said = room.read("ran"), room.read("said")
    command = scenario.args != ["20"]
    if status is None:
        yield f"hung for {HANG} s"
        return
    if (taken_for_held(scenario, status, call, error) or said_to_be_busy(status, call, error)) and not ran:
        return
    if "FREE" in ran:
        yield "the command ran without the lock"
    if ran.count("\n") > 1:
        yield "the command ran more than once"
    if scenario.before == "held" and ran:
        yield "the command ran while another held the lock"
    if status not in STATUSES:
        yield f"status {status}"
    if command and status == 0 and not ran:
        yield "status 0, and the command did not run"
    if status not in (0, scenario.ends) and not ran and call != "write" and not re.fullmatch(r"semlock: .+\n", said):
        yield f"status {status}, and not one line that says why: {said!r}"
    if ran and status not in (0, 76):
        yield f"the command ran well, and the status is {status}: {said!r}"
    if status == 1 and scenario.ends != 1 and call not in ("flock", "fcntl"):
        yield "it says that the lock is busy, and it is free"
    if error == "EINTR" and status != scenario.ends and (sleeps(scenario, call) or on_names(scenario, call)):
        yield f"an interrupted call ends it, with {status}: {said!r}"
    if not command:
        subprocess.run([torture, "held", scenario.method], cwd=room.path, check=False)
        if (room.read("ran") == "held\n") != (status == 0):
            yield f"status {status}, and the descriptor is {room.read('ran')!r}"


def afterwards(room, scenario, semlock):
    """Is the lock free, and the directory clean, once a dead holder's lock has been taken over?"""
    room.let_go()
    for fd in room.fds:
        os.close(fd)
    room.fds = []

    also = scenario.args if "other" in scenario.args else ()

    def again(*command):
        return subprocess.run([semlock, "-m", scenario.method, "-w", "3", *also, "lock", *command], cwd=room.path,
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
    if again("true") != 0:
        yield "the next one does not get the lock"
        return
    if room.left() and scenario.method in FILES:
        again("sh", "-c", "kill -KILL $PPID $$")
        again("true")
    if room.left():
        yield f"left: {room.left()}"


def inject(scenario, call, number, error, semlock, torture):
    room = Room(scenario, semlock)
    strace = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}",
              "-e", f"inject={call}:error={error}:when={number}"]
    if scenario.child:
        strace.insert(1, "-f")
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
    options = {"sample": 0, "seed": 1, "only": "", "error": "", "verbose": ""}
    words = []
    for word in sys.argv[1:]:
        match = re.fullmatch(r"--(sample|seed|only|error|verbose)=?(.*)", word)
        if match:
            options[match[1]] = match[2] or "1"
        else:
            words.append(word)
    if len(words) != 2:
        sys.exit(__doc__)
    semlock, torture = map(os.path.abspath, words)
    cases = []
    for scenario in scenarios():
        if options["only"] in scenario.name:
            calls = calls_of(scenario, semlock, torture)
            cases += [(scenario, call, number, error)
                      for call, number in calls for error in ERRORS[call].split()
                      if options["error"] in ("", error)]
            if options["verbose"]:
                print(scenario.name, len(calls), "calls", flush=True)
    total = len(cases)
    if int(options["sample"]):
        cases = random.Random(int(options["seed"])).sample(cases, min(total, int(options["sample"])))
    bad = sum(not inject(*case, semlock, torture) for case in cases)
    print(f"{len(cases)} of {total} injections, seed {options['seed']}: {bad} bad")
    sys.exit(1 if bad or not cases else 0)


main()
