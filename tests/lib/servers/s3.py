# SPDX-License-Identifier: MIT
"""An S3 server in memory, for tests: objects in any bucket but "none", GET, PUT and DELETE, with conditions; each request
must be signed (version 4).  It also gives the logins of roles, as an EC2 instance and a container have them.

usage: s3.py DIR [--cert=FILE] [--port=N]     prints READY and its port; DIR/requests gets a line for each answer

What a file in DIR/faults says is done:
  kind       honours    conditions as HTTP has them (without the file)
             bare       an ETag counts without its quotes alone, as with radosgw 16
             ignores    no condition is looked at
             creates    If-None-Match is not
             versioned  radosgw with versions: If-None-Match is not, and If-Match is never true
             refuses    501 for each condition
             loses      500 for a write whose ETag was once right, as of radosgw to the loser of a race
  before N   the next N requests are answered 500, and not done (N: a number of writes with "w" behind it)
  after N    the next N are done, and answered 500
  cut N      the next N are done, and the connection is closed without an answer
  entered K  a write that is cut is followed at once by another client's: the contents of the object K
  late N     the next N are answered 400 RequestTimeout, and not done
  locked     the bucket has Object Lock: a write without a checksum is refused
  says S     each is answered S: a status, a code and a message; a redirect names the region there-9
  role S     the services of an instance and of a container answer the status S; "S PATH": to requests for PATH alone;
             S is 0: they do not answer
  hole       nothing is answered
  ahead N    its clock is N seconds ahead
  expired    a session token with this word in it has expired
"""
import base64
import email.utils
import hashlib
import hmac
import http.server
import json
import os
import re
import ssl
import sys
import threading
import time

DIR = sys.argv[1]
given = dict(word[2:].split("=", 1) for word in sys.argv[2:])
SECRETS = {"AKTEST": "sk/test+4711", "AKROLE": "sk/role"}
ROLE_TOKEN = "session1"
objects, past, guard, granted = {}, set(), threading.Lock(), [0]
os.makedirs(os.path.join(DIR, "faults"), exist_ok=True)
log = open(os.path.join(DIR, "requests"), "a", buffering=1)


def fault(name):
    try:
        with open(os.path.join(DIR, "faults", name)) as file:
            return file.read().strip() or "1"
    except FileNotFoundError:
        return ""


def counted(name, method):
    """One fewer of the requests that a fault is for.  True: this is one."""
    left = fault(name)
    if not left or left.endswith("w") and method != "PUT":
        return False
    count = int(left.rstrip("w")) - 1
    path = os.path.join(DIR, "faults", name)
    if count:
        with open(path + ".new", "w") as file:
            file.write("%d%s" % (count, "w" if left.endswith("w") else ""))
        os.rename(path + ".new", path)
    else:
        os.unlink(path)
    return True


def now():
    return time.time() + float(fault("ahead") or 0)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(now() if timestamp is None else timestamp, usegmt=True)

    def answer(self, status, code="", body=b"", **headers):
        conditions = ["%s: %s" % (name, self.headers[name]) for name in ("If-Match", "If-None-Match") if self.headers[name]]
        log.write("%s %s %d %s %s\n" % (self.command, self.path, status, code, " ".join(conditions)))
        if code and not body:
            code, _, message = code.partition(" ")
            body = b"<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>%s</Message></Error>" % (code.encode(), message.encode())
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 304:
            self.wfile.write(body)

    def signed(self):
        """"", or the code of what is wrong with the signature."""
        words = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?"
                             r"Signature=([0-9a-f]{64})", self.headers["Authorization"] or "")
        if not words:
            return "AccessDenied"
        user, day, region, names, signature = words.groups()
        if user not in SECRETS:
            return "InvalidAccessKeyId"
        moment = self.headers["X-Amz-Date"]
        if abs(time.mktime(time.strptime(moment, "%Y%m%dT%H%M%SZ")) - time.timezone - now()) > 900:
            return "RequestTimeTooSkewed"
        lines = "".join("%s:%s\n" % (name, (self.headers[name] or "").strip()) for name in names.split(";"))
        asked = "\n".join([self.command, self.path, "", lines, names, self.headers["x-amz-content-sha256"] or ""])
        key = ("AWS4" + SECRETS[user]).encode()
        for part in (day, region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), "sha256").digest()
        text = "AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%s" % (
            moment, day, region, hashlib.sha256(asked.encode()).hexdigest())
        needed = {"host", "x-amz-date", "x-amz-content-sha256"} | {
            name.lower() for name in self.headers if name.lower() in ("if-match", "if-none-match", "x-amz-security-token")}
        if not needed <= set(names.split(";")) or hmac.new(key, text.encode(), "sha256").hexdigest() != signature:
            return "SignatureDoesNotMatch"
        token = self.headers["x-amz-security-token"] or ""
        if fault("expired") and fault("expired") in token:
            return "ExpiredToken"
        return "InvalidToken" if user == "AKROLE" and not token.startswith("session") else ""

    def matches(self):
        """Is the condition of a write true?"""
        kind, there = fault("kind"), objects.get(self.path)
        etag, absent = self.headers["If-Match"], self.headers["If-None-Match"]
        if kind == "ignores":
            return True
        if absent and there and kind not in ("creates", "versioned"):
            return False
        if not etag:
            return True
        if kind == "versioned" or not there:
            return False
        return etag == (there[1].strip('"') if kind == "bare" else there[1])

    def role(self):
        """The services of an instance and of a container."""
        status, _, path = fault("role").partition(" ")
        while status == "0" and fault("role") and path in ("", self.path):
            time.sleep(0.02)
        if status and status != "0" and path in ("", self.path):
            return self.answer(int(status))
        granted[0] += 1
        login = json.dumps({"Code": "Success", "AccessKeyId": "AKROLE", "SecretAccessKey": SECRETS["AKROLE"],
                            "Token": "session%d" % granted[0],
                            "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))})
        if self.path == "/latest/api/token" and self.command == "PUT" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]:
            return self.answer(200, body=b"imds-token")
        if self.path == "/container" and self.headers["Authorization"] == "pod-token":
            return self.answer(200, body=login.encode())
        if self.headers["X-aws-ec2-metadata-token"] != "imds-token":
            return self.answer(401)
        if self.path == "/latest/meta-data/iam/security-credentials/":
            return self.answer(200, body=b"lock-role\n")
        if self.path == "/latest/meta-data/iam/security-credentials/lock-role":
            return self.answer(200, body=login.encode())
        return self.answer(404)

    def handle_one(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path.startswith("/latest/") or self.path == "/container":
            return self.role()
        while fault("hole"):
            time.sleep(0.02)
        with guard:
            before, after, cut, late = [counted(name, self.command) for name in ("before", "after", "cut", "late")]
            if before:
                return self.answer(500, "InternalError")
            if late:
                return self.answer(400, "RequestTimeout")
            wrong = self.signed()
            if wrong:
                return self.answer(400 if "Token" in wrong else 403, wrong)
            if self.path.startswith("/none/"):
                return self.answer(404, "NoSuchBucket")
            if fault("says"):
                status, _, code = fault("says").partition(" ")
                return self.answer(int(status), code, **({"x_amz_bucket_region": "there-9"} if status[0] == "3" else {}))
            wrong = self.checksum(body)
            if wrong:
                return self.answer(400, wrong)
            status, code, headers, text = self.act(body)
        if cut:
            log.write("%s %s cut\n" % (self.command, self.path))
            if fault("entered"):
                objects[self.path] = objects[fault("entered")]
            self.close_connection = True
            return None
        return self.answer(500, "InternalError") if after else self.answer(status, code, text, **headers)

    def checksum(self, body):
        """"", or the code and message of what is wrong with the checksum of a write."""
        told = self.headers["Content-MD5"]
        if told and told != base64.b64encode(hashlib.md5(body).digest()).decode():
            return "BadDigest The Content-MD5 you specified did not match what we received."
        if self.command == "PUT" and fault("locked") and not told:
            return "InvalidRequest Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters"
        return ""

    def act(self, body):
        there = objects.get(self.path)
        if self.command == "GET":
            if not there:
                return 404, "NoSuchKey", {}, b""
            headers = {"ETag": there[1], "Last_Modified": self.date_time_string(there[2])}
            if self.headers["If-None-Match"] == there[1]:
                return 304, "", headers, b""
            return 200, "", headers, there[0]
        if self.command == "DELETE":
            objects.pop(self.path, None)
            return 204, "", {}, b""
        if fault("kind") == "refuses" and (self.headers["If-Match"] or self.headers["If-None-Match"]):
            return 501, "NotImplemented", {}, b""
        if not self.matches():
            late = fault("kind") == "loses" and self.headers["If-Match"] in past
            return (500, "InternalError", {}, b"") if late else (412, "PreconditionFailed", {}, b"")
        etag = '"%s"' % hashlib.md5(body).hexdigest()
        objects[self.path] = body, etag, now()
        past.add(etag)
        return 200, "", {"ETag": etag}, b""

    do_GET = do_PUT = do_DELETE = handle_one


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


server = Server(("127.0.0.1", int(given.get("port", 0))), Handler)
if "cert" in given:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(given["cert"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
sys.stdout.write("READY %d\n" % server.server_port)
sys.stdout.flush()
server.serve_forever()
