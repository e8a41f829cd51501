# SPDX-License-Identifier: MIT
"""Starts the tests' servers that are in Python, by fork(2): to load their modules takes longer than most tests do.

usage: nursery.py FIFO PID      ends when the process PID has ended, or FIFO has gone

A line in FIFO is a request, of fields separated by the character 0x1f: the directory to work in, the file for the PID,
those for standard output and error, and then the script and its arguments.  Each server is a process of its own, whose
parent is this one.
"""
import os
import runpy
import select
import signal
import sys

# What the scripts import.
import hashlib, hmac, http.server, itertools, json, re, socket, ssl, struct, threading, time, warnings  # noqa
warnings.simplefilter("ignore")
try:
    import pyftpdlib.authorizers, pyftpdlib.handlers, pyftpdlib.servers  # noqa
except ImportError:     # ftp.py says that
    pass

LOOK_EVERY = 2      # seconds
fifo, parent = sys.argv[1], int(sys.argv[2])
requests = os.open(fifo, os.O_RDWR | os.O_CLOEXEC)


def serve(directory, pid_file, out, err, *argv):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(directory)
    os.close(requests)
    for name, descriptor in ((out, 1), (err, 2)):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    with open(pid_file, "w") as file:
        print(os.getpid(), file=file)
    sys.argv = list(argv)
    sys.path[0] = os.path.dirname(argv[0])
    sys.dont_write_bytecode = True
    runpy.run_path(argv[0], run_name="__main__")


os.chdir("/")
signal.signal(signal.SIGCHLD, signal.SIG_IGN)   # no server is waited for
data = b""
while os.path.exists(fifo) and os.path.exists("/proc/%d" % parent):
    if not select.select([requests], [], [], LOOK_EVERY)[0]:
        continue
    data += os.read(requests, 65536)
    *lines, data = data.split(b"\n")
    for line in lines:
        if os.fork() == 0:
            serve(*line.decode().split("\x1f"))
            sys.exit(0)
