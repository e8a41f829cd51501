# SPDX-License-Identifier: MIT
"""Between a client and a Redis, or instead of one, for tests.

usage: redis_between.py DIR PORT     prints READY and its port; PORT is the Redis's.  DIR/accepted has a line for each client.

What a file in DIR/between says is done:
  lose       the next answer that has come is not passed on, and the connection is closed; the file is removed
  say BYTES  the answer to each request, in Python's notation
  slow       BYTES come one at a time, five a second
  endless    BYTES come without end
"""
import ast
import os
import socket
import sys
import threading
import time

DIR, PORT = os.path.join(sys.argv[1], "between"), int(sys.argv[2])
os.makedirs(DIR, exist_ok=True)


def told(name):
    try:
        with open(os.path.join(DIR, name)) as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


def say(client):
    text = ast.literal_eval("b'%s'" % told("say"))
    if told("endless") is not None:
        while True:
            client.sendall(text * 1000)
    if told("slow") is not None:
        for byte in text:
            client.sendall(bytes([byte]))
            time.sleep(0.2)
    client.sendall(text)


def serve(client):
    server = None
    try:
        while True:
            request = client.recv(65536)
            if not request:
                return
            if told("say") is not None:
                say(client)
                continue
            server = server or socket.create_connection(("127.0.0.1", PORT))
            server.sendall(request)
            answer = server.recv(65536)
            if told("lose") is not None and b"SET" in request:
                os.unlink(os.path.join(DIR, "lose"))
                return
            client.sendall(answer)
    except OSError:
        pass
    finally:
        client.close()
        if server:
            server.close()


listener = socket.create_server(("127.0.0.1", 0))
print("READY %d" % listener.getsockname()[1], flush=True)
while True:
    client, _ = listener.accept()
    with open(os.path.join(sys.argv[1], "accepted"), "a") as file:
        file.write("one\n")
    threading.Thread(target=serve, args=(client,), daemon=True).start()
