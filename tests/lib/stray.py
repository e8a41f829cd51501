# SPDX-License-Identifier: MIT
# stray.py FILE: forks a daemon in a session of its own, with no descriptor open, that ignores TERM, HUP and
# INT.  Writes its PID into FILE, and becomes "sleep 1000".
import os, signal, sys, time

reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signo, signal.SIG_IGN)
    with open(sys.argv[1], "w") as file:
        print(os.getpid(), file=file)
    os.closerange(0, 1024)
    time.sleep(1000)
    os._exit(0)
os.close(writer)
os.read(reader, 1)
