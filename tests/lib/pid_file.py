"""pid_file.py METHOD LOCK ROUNDS COMMAND... - runs COMMAND under a lock as PID files are locked, ROUNDS times.

The lock is a file with the PID (METHOD excl) or a symbolic link to it (symlink).  If no process has that PID, the
lock is removed.  Prints how many of its own locks another program has removed."""
import os
import subprocess
import sys

method, lock, rounds, command = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
own = str(os.getpid())


def make():
    try:
        if method == 'symlink':
            os.symlink(own, lock)
        else:
            with os.fdopen(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), 'w') as file:
                file.write(own + '\n')
        return True
    except FileExistsError:
        return False


def holder():
    try:
        if method == 'symlink':
            return os.readlink(lock).split(':')[0]
        with open(lock) as file:
            return (file.readline().split() or [''])[0]
    except OSError:
        return ''


def is_dead(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    return False


lost = 0
for _ in range(rounds):
    while not make():
        found = holder()
        if found and is_dead(found) and holder() == found:
            os.unlink(lock)
    subprocess.run(command, check=True)
    if holder() == own:
        os.unlink(lock)
    else:
        lost += 1
print(lost)
