#!/usr/bin/python3
"""Stands in for semlock: starts a locksmith and, with the lock held, a command that inherits the pipe.

usage: core.py [--no-inherit] LOCKSMITH ARG... -- COMMAND ARG...

Prints the locksmith's lines, "SMITH pid", and "COMMAND pid" when the locksmith has noted the command.
Then core.py only waits, to be killed. At end of input it ends the lock and itself.
"""
import os
import signal
import subprocess
import sys

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
args = sys.argv[1:]
inherit = True
if args[0] == "--no-inherit":
    inherit, args = False, args[1:]
split = args.index("--")
read_in, write_in = os.pipe()
smith = subprocess.Popen(args[:split], stdin=read_in, stdout=subprocess.PIPE, text=True)
os.close(read_in)
print("SMITH", smith.pid, flush=True)
for line in smith.stdout:
    print(line, end="", flush=True)
    if line.startswith(("OK", "ERR", "BUSY")):
        break
if not line.startswith("OK"):
    sys.exit(smith.wait())
command = subprocess.Popen(args[split + 1:], pass_fds=[write_in] if inherit else [], stdout=subprocess.DEVNULL)
os.write(write_in, b"CHILD %d\n" % command.pid)
while not line.startswith("CHILD"):
    line = smith.stdout.readline()
print("COMMAND", command.pid, flush=True)
sys.stdin.read()
os.close(write_in)
sys.exit(smith.wait())
