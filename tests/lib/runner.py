# SPDX-License-Identifier: MIT
"""runner.py KIND STEP...: the processes of a CI runner, and of other programs that start each step of a job as a
process of its own, as their documentation and their sources describe them.  Each STEP is a shell script.  After a step
that has failed, or was cancelled, only steps that begin with "always:" are run.

Lines on standard output: "runner PID", which SIGUSR1 tells to cancel the job, or to end it as its time is up; "step N",
when step N begins; "ended" when the job is over.  The service, which comes before the job and outlives it, stays until it is
killed; "service PID" is that.  GRACE: seconds between two signals of a cancellation, which are 2.5 to 600 in truth."""
import ctypes
import os
import pty
import signal
import subprocess
import sys
import time

GRACE = float(os.environ.get("GRACE", ".3"))
cancelled = False


def called(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def cancel(_signo, _frame):
    global cancelled
    cancelled = True


def script(text):
    """A file with the step, as runners write it."""
    name = f"step.{os.getpid()}.{time.monotonic_ns()}"
    with open(name, "w") as file:
        file.write(text + "\n")
    return name


def proc(pid, what):
    try:
        with open(f"/proc/{pid}/{what}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def with_variable(name):
    """The processes that have inherited this variable, but this one."""
    wanted = f"{name}={os.environ[name]}".encode()
    return [pid for pid in processes() if pid != os.getpid() and wanted in proc(pid, "environ").split(b"\0")]


def parent(pid):
    return int(proc(pid, "stat").rpartition(b")")[2].split()[1] or 0) if proc(pid, "stat") else 0


def descendants(pid):
    children = [one for one in processes() if parent(one) == pid]
    return children + [more for child in children for more in descendants(child)]


def send(pids, signo):
    for pid in pids:
        try:
            os.kill(pid, signo)
        except OSError:
            pass


def ends_in_time(process):
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        return False
    return True


def started(*words, **more):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, **more)


class Runner:
    name = None
    signals = (signal.SIGKILL,)  # of a cancellation, one after the other until the step has ended

    def start(self, step):
        return started("sh", "-e", script(step))

    def reached(self, process, signo):
        """The processes that get a cancellation's signal; a group's number is negative."""
        return [process.pid]

    def stop(self, process):
        for signo in self.signals:
            send(self.reached(process, signo), signo)
            if ends_in_time(process):
                return
        process.wait()

    def finish(self):
        """The job is over."""

    def job(self, steps):
        global cancelled
        failed = False
        signal.signal(signal.SIGUSR1, cancel)
        say("runner", os.getpid())
        for number, step in enumerate(steps, 1):
            always = step.startswith("always:")
            if failed and not always:
                continue
            say("step", number)
            process = self.start(step.removeprefix("always:"))
            while process.poll() is None:
                if cancelled:
                    cancelled, failed = False, True
                    self.stop(process)
                time.sleep(.01)
            failed = failed or process.returncode != 0
        self.finish()

    def serve(self, steps):
        """The job is run by the service itself."""
        called(self.name)
        say("service", os.getpid())
        self.job(steps)

    def serve_by_child(self, steps, service, worker):
        """The job is run by a process of its own."""
        called(service)
        say("service", os.getpid())
        pid = os.fork()
        if pid == 0:
            called(worker)
            self.job(steps)
            os._exit(0)
        os.waitpid(pid, 0)


class GitHub(Runner):
    """Runner.Listener starts a Runner.Worker for each job.  A step is cancelled by INT and TERM to its shell, then by KILL
    to all its descendants; at the end of the job, the Worker kills all that has inherited RUNNER_TRACKING_ID."""
    signals = signal.SIGINT, signal.SIGTERM, signal.SIGKILL

    def serve(self, steps):
        os.environ["RUNNER_TRACKING_ID"] = f"github_{os.getpid()}"
        self.serve_by_child(steps, "Runner.Listener", "Runner.Worker")

    def start(self, step):
        return started("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script(step))

    def reached(self, process, signo):
        return (descendants(process.pid) if signo == signal.SIGKILL else []) + [process.pid]

    def finish(self):
        send([pid for pid in with_variable("RUNNER_TRACKING_ID") if pid != os.getppid()], signal.SIGKILL)


class ByGroup(Runner):
    """A step is cancelled by TERM to its process group, then KILL."""
    signals = signal.SIGTERM, signal.SIGKILL

    def reached(self, process, signo):
        return [-process.pid]


class ByVariable(Runner):
    """A step is cancelled by TERM to all that has inherited a variable, then KILL."""
    signals = signal.SIGTERM, signal.SIGKILL
    variable = None

    def reached(self, process, signo):
        return with_variable(self.variable)


class GitLab(ByGroup):
    """The shell executor.  before_script and script are one shell, after_script is another one; the service starts both, each
    in a group of its own, and they read their script from standard input, a part of which runs in a subshell."""
    name = "gitlab-runner"

    def start(self, step):
        process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, preexec_fn=os.setpgrp)
        process.stdin.write(f"set -eo pipefail\nset +o noclobber\n: | (eval '{step}')\nexit 0\n".encode())
        process.stdin.close()
        return process


class Jenkins(ByVariable):
    """The agent starts a launcher in a session of its own for each sh step, which starts the script.  A step is cancelled by
    TERM to all that has inherited its cookie; the end of the node block ends all that has inherited the node's."""
    name, variable = "java", "JENKINS_SERVER_COOKIE"

    def start(self, step):
        os.environ["JENKINS_NODE_COOKIE"] = f"node-{os.getpid()}"
        os.environ["JENKINS_SERVER_COOKIE"] = f"durable-{time.monotonic_ns()}"
        return started("sh", "-c", 'sh -xe "$0" 2>&1; exit $?', script(step), start_new_session=True)

    def finish(self):
        send(with_variable("JENKINS_NODE_COOKIE"), signal.SIGTERM)


class Buildkite(ByGroup):
    """buildkite-agent start runs buildkite-agent bootstrap for each job, which runs hooks and the command.  A cancellation
    is TERM to the bootstrap, which passes it on to the command's group, then KILL."""
    def serve(self, steps):
        self.serve_by_child(steps, "buildkite-agent", "buildkite-agent")

    def start(self, step):
        return started("bash", "-e", "-c", step, start_new_session=True)


class Woodpecker(Runner):
    """Woodpecker's local backend, and Drone's exec runner: the agent starts a shell for each step, and kills that shell."""
    name = "woodpecker-agen"  # comm has 15 bytes


class Cron(Runner):
    """cron forks a child for each job, which starts the shell.  Nothing is cancelled."""
    def serve(self, steps):
        self.serve_by_child(steps, "cron", "cron")

    def start(self, step):
        return started("sh", "-c", step)


class Systemd(ByVariable):
    """The commands of a unit.  Whatever they start stays in the unit's control group, which is told here by INVOCATION_ID: it
    gets TERM, then KILL, when the unit is stopped and when its main process has ended."""
    name, variable = "systemd", "INVOCATION_ID"

    def start(self, step):
        os.environ["INVOCATION_ID"] = f"{os.getpid():032x}"
        return started("sh", "-c", step)

    def finish(self):
        send(with_variable(self.variable), signal.SIGTERM)
        time.sleep(GRACE)
        send(with_variable(self.variable), signal.SIGKILL)


class Tmux(Runner):
    """The server has a shell at a terminal of its own for each pane.  kill-pane hangs the terminal up."""
    name = "tmux: server"

    def start(self, step):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.execlp("bash", "-bash", "--norc", "--noprofile", "-c", step)
        return Pane(pid, self.terminal)

    def stop(self, process):
        os.close(self.terminal)
        process.wait()


class Pane:
    """What subprocess.Popen is for the others."""
    def __init__(self, pid, terminal):
        self.pid, self.terminal, self.returncode = pid, terminal, None
        os.set_blocking(terminal, False)

    def poll(self):
        try:
            os.read(self.terminal, 4096)
        except OSError:
            pass
        pid, status = os.waitpid(self.pid, os.WNOHANG) if self.returncode is None else (0, 0)
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self):
        while self.poll() is None:
            time.sleep(.01)


class Agent(ByGroup):
    """A coding agent: each tool call is a shell in a session of its own.  A call whose time is up is ended with its
    group; the agent goes on."""
    name = "claude"

    def start(self, step):
        return started("bash", "-c", step, start_new_session=True)


def main(kind, *steps):
    service = {"agent": Agent, "buildkite": Buildkite, "cron": Cron, "github": GitHub, "gitlab": GitLab, "jenkins": Jenkins,
               "systemd": Systemd, "tmux": Tmux, "woodpecker": Woodpecker}[kind]()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    service.serve(steps)
    say("ended")
    while True:
        signal.pause()


main(*sys.argv[1:])
