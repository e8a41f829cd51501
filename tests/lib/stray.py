# stray.py FILE: forks a process that nothing ties to this one: a session of its own, no descriptor
# open, deaf to TERM, HUP and INT.  Its PID is in FILE before this one goes on, as "sleep 1000".
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
