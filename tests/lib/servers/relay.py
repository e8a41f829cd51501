# SPDX-License-Identifier: MIT
"""A ProxyCommand for ssh(1): relay.py HOST PORT passes bytes on.  A test that stops it has cut the link, and ssh lives."""
import os
import select
import socket
import sys

server = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    ready = select.select([0, server], [], [])[0]
    if 0 in ready:
        got = os.read(0, 65536)
        if not got:
            break
        server.sendall(got)
    if server in ready:
        got = server.recv(65536)
        if not got:
            break
        os.write(1, got)
