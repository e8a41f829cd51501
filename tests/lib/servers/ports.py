# SPDX-License-Identifier: MIT
"""Ports for the servers of the tests.  ports.py N prints N of them.

Not of the ephemeral range: a client that retries while its server is down may get the server's own port
from the kernel, and connect to itself; and the server, started again, finds its port taken."""
import random
import socket
import sys


def free(count):
    """COUNT port numbers of 127.0.0.1 on which no process listens."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as kernels:
        end = int(kernels.read().split()[0])
    found = []
    for port in random.sample(range(10000, end), min(100, end - 10000)) if end > 11000 else []:
        with socket.socket() as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind(("127.0.0.1", port))
                found.append(port)
            except OSError:
                continue
        if len(found) == count:
            return found
    others = [socket.socket() for _ in range(count)]
    for one in others:
        one.bind(("127.0.0.1", 0))
    return [one.getsockname()[1] for one in others]


if __name__ == "__main__":
    print(*free(int(sys.argv[1])))
