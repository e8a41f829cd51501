#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""semlock etcd:// beside etcdctl lock, in turns: a start, hand-over, a drain, the idle server's processor time, a waiter's
memory;
and semlock postgresql:// beside psql with pg_advisory_lock().

usage: with-servers servers.py SEMLOCK [WAITERS [ROUNDS]]

Each line has two medians, their ratio, and what it is to be at most; the exit status is 1 if one is more.
"""
import base64
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request

semlock, waiters = sys.argv[1], int((sys.argv[2:3] or [1000])[0])
rounds = int((sys.argv[3:4] or [5])[0])
etcd = os.environ.get("BENCH_ETCD") or sys.exit("no etcd here: nothing is measured")
os.environ.update(ETCDCTL_API="3", PATH="/bin:" + os.environ["PATH"])
postgresql = os.environ.get("BENCH_POSTGRESQL")
database = [os.environ.get("BENCH_PSQL"), "-X", "-q", "-t", "-A", "-d", "postgresql://lock@%s/postgres" % postgresql, "-c"]
ENTRANTS = {
    "etcdctl": lambda command: ["etcdctl", "--endpoints=" + etcd, "lock", "bench-ctl"] + command.split(),
    "semlock": lambda command: [semlock, "etcd://%s/bench-semlock" % etcd] + command.split(),
    "psql": lambda command: database + ["SELECT WHERE pg_advisory_lock(1) IS NULL", "-c", "\\! " + command],
    "semlock postgresql":
        lambda command: [semlock, "postgresql://lock@%s/bench?dbname=postgres" % postgresql] + command.split(),
}
COMMAND = "date +%s.%N"
missed = 0
started = time.monotonic()


def metric(name):
    text = urllib.request.urlopen("http://%s/metrics" % etcd).read().decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def present(entrant):
    """The number of holders and waiters."""
    if entrant in ("psql", "semlock postgresql"):
        rows = "pg_locks WHERE locktype = 'advisory'" if entrant == "psql" else "semlock.place"
        return int(subprocess.check_output(database + ["SELECT count(*) FROM " + rows]))
    name = "bench-ctl" if entrant == "etcdctl" else "bench-semlock"
    body = {"key": base64.b64encode(b"%s/" % name.encode()).decode(), "count_only": True,
            "range_end": base64.b64encode(b"%s0" % name.encode()).decode()}
    request = urllib.request.Request("http://%s/v3/kv/range" % etcd, json.dumps(body).encode())
    return int(json.load(urllib.request.urlopen(request)).get("count", 0))


def run(words, **how):
    return subprocess.Popen(words, stdin=subprocess.PIPE if how else subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)


def a_start(entrant, _):
    """Seconds of a start with a free lock."""
    began = time.monotonic()
    run(ENTRANTS[entrant]("true")).communicate()
    return time.monotonic() - began


def let_go(holder, gate):
    """Ends the input of the holder's command, unless the holder has ended, having lost the lock."""
    while holder.poll() is None:
        try:
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
            break
        except OSError:    # the command has not opened it yet
            time.sleep(.005)


def hold(entrant):
    """A process that holds until let_go(), and its gate."""
    gate = "bench.gate"
    if not os.path.exists(gate):
        os.mkfifo(gate)
    holder = run(ENTRANTS[entrant]("cat " + gate))
    while present(entrant) < 1:
        time.sleep(.05)
    return holder, gate


def crowd(entrant, count, idle):
    """One process holds, COUNT wait, the holder releases. (processor seconds of the server in that many seconds
    without change; seconds until all have been served; the median between two; how many were lost)"""
    holder, gate = hold(entrant)
    crowd = []
    # No more than 50 come at once: a busy server may let a lease end. Who has ended by now has lost the lock, or its place.
    while present(entrant) < count + 1 and all(c.poll() is None for c in crowd + [holder]):
        if len(crowd) < min(count, present(entrant) + 50):
            crowd.append(run(ENTRANTS[entrant](COMMAND)))
        else:
            time.sleep(.05)
    early = sum(c.poll() is not None for c in crowd + [holder]) + count - len(crowd)
    time.sleep(min(idle, 3))
    used = metric("process_cpu_seconds_total")
    time.sleep(idle)
    used = metric("process_cpu_seconds_total") - used
    began = time.monotonic()
    let_go(holder, gate)
    times = [c.communicate()[0] for c in crowd]
    took = time.monotonic() - began
    holder.wait()
    lost = max(early, sum(c.returncode != 0 for c in crowd + [holder]))
    times = sorted(float(t) for t in times if t.strip())
    between = [b - a for a, b in zip(times, times[1:])] or [float("nan")]
    return used / (idle or 1), took, statistics.median(between), lost


def client_of(pid):
    """The process that speaks to the server: the helper, if PID has started one, or else PID."""
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        children = [int(child) for child in f.read().split()]
    for child in children:
        with open("/proc/%d/comm" % child) as comm:
            return child if comm.read().startswith("semlock-locksmi") else client_of(child)
    return pid


def memory(entrant, _):
    """KB of memory that a waiter's process has for itself."""
    holder, gate = hold(entrant)
    waiter = run(ENTRANTS[entrant]("true"))
    while present(entrant) < 2:
        time.sleep(.05)
    time.sleep(.5)
    with open("/proc/%d/smaps_rollup" % client_of(waiter.pid)) as f:
        kilobytes = sum(int(line.split()[1]) for line in f if line.startswith("Private_"))
    let_go(holder, gate)
    for process in holder, waiter:
        process.communicate()
    return kilobytes


def in_turns(pair, measure, count):
    results = {name: [] for name in pair}
    for n in range(count):
        for name in sorted(pair, reverse=n % 2):
            results[name].append(measure(name, n))
    return results


def tell(title, results, unit, scale, goal):
    """RESULTS: of two tools, semlock first."""
    global missed
    one, other = (statistics.median(times) for times in results.values())
    ratio = one / other if other else float("nan")
    missed += not ratio <= goal
    print("%-42s %10.2f %10.2f %s  %5.2f x  (at most %.1f)%s" % (
        title, one * scale, other * scale, unit, ratio, goal, "" if ratio <= goal else "  MISSED"), flush=True)


def start_and_ten(pair, goal, most):
    """Prints the figures of a start, of a waiter's memory and of a crowd of ten; returns those of the crowd."""
    print("%-42s %10s %10s" % ("median", "semlock", pair[1]))
    tell("a start", in_turns(pair, a_start, rounds * 4), "ms", 1000, goal)
    tell("a waiter: its memory", in_turns(pair, memory, 3), "KB", 1, most)
    ten = in_turns(pair, lambda name, _: crowd(name, 10, 0), rounds)
    tell("10 waiters: from one to the next", {n: [r[2] for r in ten[n]] for n in ten}, "ms", 1000, 1.3)
    return ten


if postgresql and os.path.exists(os.environ["SEMLOCK_LOCKSMITH_DIR"] + "/semlock-locksmith-postgresql"):
    start_and_ten(("semlock postgresql", "psql"), 1.3, .8)
pair = ("semlock", "etcdctl")
ten = start_and_ten(pair, 1.0, .5)
many = in_turns(pair, lambda name, _: crowd(name, waiters, 20), 1)
if time.monotonic() - started < 240:    # so that all of it takes less than eight minutes
    for name in pair:
        many[name].append(crowd(name, waiters, 20))
tell("%d waiters: the idle server's processor" % waiters, {n: [r[0] for r in many[n]] for n in many}, "% ", 100, 1.3)
tell("%d waiters: until all are through" % waiters, {n: [r[1] for r in many[n]] for n in many}, "s ", 1, 1.3)
os.unlink("bench.gate")
lost = {n: sum(r[3] for r in ten[n] + many[n]) for n in pair}
print("lost: semlock %d, etcdctl %d" % tuple(lost.values()))
sys.exit(1 if missed or lost["semlock"] else 0)
