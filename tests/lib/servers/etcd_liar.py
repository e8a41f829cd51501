"""An etcd that renews every lease, dead or not, and whose watches never say anything; all else is passed on.

usage: etcd_liar.py HOST:PORT        prints READY and its own port
"""
import http.client
import http.server
import json
import sys
import threading


class Liar(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v3/watch":
            threading.Event().wait()
        if self.path == "/v3/lease/keepalive":
            status, answer = 200, json.dumps({"result": {"TTL": "2", **json.loads(body)}}).encode()
        else:
            server = http.client.HTTPConnection(sys.argv[1])
            server.request("POST", self.path, body, {"Content-Type": "application/json"})
            reply = server.getresponse()
            status, answer = reply.status, reply.read()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


with Server(("127.0.0.1", 0), Liar) as server:
    sys.stdout.write("READY %d\n" % server.server_address[1])    # at once: a reader may look between two writes
    sys.stdout.flush()
    server.serve_forever()
