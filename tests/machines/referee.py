#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""referee.py LOG PORTFILE - notes which commands are inside of which lock, and reports two at once.

The referee runs outside of the machines.  A command connects and sends "in KEY NAME", and later "out".
If another command seems to be inside, the referee asks that command: only a command that answers is alive,
because a lock can be free before the referee has heard that its killed holder is gone.
A test sends "go KEY HOST" to let the commands of that host go on.  LOG gets a line for each event:
TIME in|overlap|out|gone KEY NAME; "gone" is a connection that ends without "out".
"""
import asyncio
import sys
import time

ANSWER_LIMIT = 30   # seconds; a command that is silent for longer counts as alive
inside = {}         # key -> {name: Command}


class Command:
    def __init__(self, referee, writer):
        self.referee, self.writer = referee, writer
        self.key = self.name = None
        self.answered = asyncio.Event()     # or has left

    def note(self, what, *others):
        print("%.3f" % time.time(), what, self.key, self.name, *others, file=self.referee)

    def tell(self, line):
        self.writer.write(line + b"\n")

    async def lives(self):
        self.answered.clear()
        self.tell(b"are you there")
        try:
            await asyncio.wait_for(self.answered.wait(), ANSWER_LIMIT)
        except asyncio.TimeoutError:
            pass
        return self.name in inside[self.key]

    async def enter(self, key, name):
        self.key, self.name = key, name
        others = list(inside.setdefault(key, {}).values())
        inside[key][name] = self
        living = [other.name for other in others if await other.lives()]
        self.note("overlap" if living else "in", *living)
        self.tell(b"two" if living else b"one")

    def leave(self, how):
        self.note(how)
        del inside[self.key][self.name]
        self.key = None
        self.answered.set()

    async def line(self, words):
        if words[0] == "in":
            await self.enter(*words[1:])
        elif words[0] == "here":
            self.answered.set()
        elif words[0] == "out":
            self.leave("out")
            self.tell(b"out")
        elif words[0] == "go":
            for command in inside.get(words[1], {}).values():
                if command.name.startswith(words[2] + ":"):
                    command.tell(b"go")


async def serve(log, reader, writer):
    command = Command(log, writer)
    try:
        while words := (await reader.readline()).decode().split():
            await command.line(words)
    except OSError:
        pass
    if command.key is not None:
        command.leave("gone")
    writer.close()


async def main(log_path, port_path):
    log = open(log_path, "a", buffering=1)
    server = await asyncio.start_server(lambda r, w: serve(log, r, w), "127.0.0.1", 0)
    with open(port_path, "w") as file:
        print(server.sockets[0].getsockname()[1], file=file)
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
