# SPDX-License-Identifier: MIT
"""Fills the queue of connections of a server that accepts none, as one that is stopped.

usage: full_queue.py HOST:PORT      prints READY when the kernel takes no more, and keeps the queue full until it is killed
"""
import errno
import select
import socket
import sys

host, port = sys.argv[1].rsplit(":", 1)


def connected(one):
    """Is ONE connected within a second?  The kernel does that by itself, however busy the server is."""
    one.setblocking(False)
    error = one.connect_ex((host, int(port)))
    if error not in (0, errno.EINPROGRESS):
        sys.exit("no connection to %s: %s" % (sys.argv[1], errno.errorcode.get(error, error)))
    return bool(select.select([], [one], [], 1)[1])


queue = []
refused = 0
while refused < 2:
    one = socket.socket()
    if connected(one):
        queue.append(one)
    else:
        refused += 1
        one.close()    # or it would take the first place that comes free
print("READY", len(queue), flush=True)
select.select([], [], [])
