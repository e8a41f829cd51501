"""Stands before an etcd and passes all on, with faults on demand.

usage: etcd_between.py HOST:PORT DIR        prints READY and its own port; DIR/between.log gets a line per call

A fault is a file DIR/faults/NAME, where CALL is the last word of a call's path (grant, txn, ...):
  stop-CALL   wait before CALL until the file is taken away
  lose-CALL   do CALL, take the file away, and end the connection without a reply
"""
import http.client
import http.server
import os
import sys
import time

faults = os.path.join(sys.argv[2], "faults")
os.makedirs(faults, exist_ok=True)
log = open(os.path.join(sys.argv[2], "between.log"), "a", buffering=1)


class Between(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        call = self.path.rsplit("/", 1)[1]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if os.path.exists(os.path.join(faults, "stop-" + call)):
            log.write("stop %s\n" % call)
            while os.path.exists(os.path.join(faults, "stop-" + call)):
                time.sleep(0.01)
        server = http.client.HTTPConnection(sys.argv[1])
        server.request("POST", self.path, body, {"Content-Type": "application/json"})
        reply = server.getresponse()
        if call == "watch":
            return self.stream(reply)
        answer = reply.read()
        try:
            os.unlink(os.path.join(faults, "lose-" + call))
            log.write("lost %s\n" % call)
            self.close_connection = True
            return
        except FileNotFoundError:
            log.write("%s\n" % call)
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def stream(self, reply):
        self.close_connection = True
        self.send_response(reply.status)
        self.end_headers()
        while line := reply.readline():
            self.wfile.write(line)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


with Server(("127.0.0.1", 0), Between) as server:
    sys.stdout.write("READY %d\n" % server.server_address[1])    # at once: a reader may look between two writes
    sys.stdout.flush()
    server.serve_forever()
