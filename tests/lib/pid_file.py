# SPDX-License-Identifier: MIT
"""pid_file.py METHOD LOCK ROUNDS COMMAND... - runs COMMAND under a lock as PID files are locked, ROUNDS times.
pid_file.py METHOD LOCK - looks at a lock of semlock's until it has been there and is gone.

The lock is a file with the PID (METHOD excl), a symbolic link to it (symlink), or a directory (mkdir).  If no process
has that PID, the lock is removed.  Prints how many of its own locks another program has removed; of a lock that is
looked at, "seen", and "dead" when it names no process."""
import os
import subprocess
import sys

method, lock, command = sys.argv[1], sys.argv[2], sys.argv[4:]
own = str(os.getpid())
record = {'mkdir': lock + '/pid', 'rename': lock + '.held'}.get(method, lock)


def make():
    try:
        if method == 'symlink':
            os.symlink(own, lock)
        elif method == 'mkdir':
            os.mkdir(lock)
            with open(record, 'w') as file:
                file.write(own + '\n')
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
        with open(record) as file:
            return (file.readline().split() or [''])[0]
    except OSError:
        return ''


def remove():
    if method == 'mkdir':
        aside = '%s.%s' % (lock, own)
        os.rename(lock, aside)
        os.unlink(aside + '/pid')
        os.rmdir(aside)
    else:
        os.unlink(lock)


def is_dead(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    return False


def look():
    said = []
    while not said or os.path.lexists(record):
        found = holder()
        word = 'dead' if found and is_dead(found) and holder() == found else 'seen' if found else ''
        if word and word not in said:
            print(word, flush=True)
            said.append(word)


def run(rounds):
    lost = 0
    for _ in range(rounds):
        while not make():
            found = holder()
            if found and is_dead(found) and holder() == found:
                try:
                    remove()
                except FileNotFoundError:
                    pass
        subprocess.run(command, check=True)
        if holder() == own:
            remove()
        else:
            lost += 1
    print(lost)


if command:
    run(int(sys.argv[3]))
else:
    look()
