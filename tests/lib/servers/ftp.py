#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An FTP server on a free loopback port, with faults on demand.

usage: ftp.py DIR [--port=N] [--cert=PEM] [--implicit] [--max=N] [--refuses-after=SECS]

DIR/root is served to the user "lock" (password "secret") and read-only to "guest"; a wrong
password is refused after SECS; DIR/faults names the faults. Prints "READY port" when it listens; DIR/log gets a line per command.

A fault is a file, used up when it strikes, unless its name ends in ".always":
  lose-CMD    do CMD, then break the connection without a reply
  miss-CMD    break the connection without doing CMD
  421-CMD     reply 421 and close
  stop-CMD    wait before CMD until the file is removed (one connection waits, others go on)
  skip-one-CMD  stop-CMD does not stop the next CMD
  drop-CMD    a stopped CMD is not done: its client was killed before it was sent
  521         refuse an existing directory with 521 instead of 550
  nostat      STAT with a path is unknown
  yes-MKD     MKD always says 257
  no-home     PWD names no directory
  no-token    MKD of a token says 552: no room
  banner      a many-line greeting
"""
import os
import sys
import warnings

warnings.simplefilter("ignore")
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler, TLS_FTPHandler
from pyftpdlib.servers import FTPServer

args = [a for a in sys.argv[1:] if not a.startswith("--")]
options = dict(a[2:].split("=", 1) if "=" in a else (a[2:], "") for a in sys.argv[1:] if a.startswith("--"))
base = args[0]
root, faults = os.path.join(base, "root"), os.path.join(base, "faults")
os.makedirs(root, exist_ok=True)
os.makedirs(faults, exist_ok=True)
log = open(os.path.join(base, "log"), "a", buffering=1)


def fault(name):
    if os.path.exists(os.path.join(faults, name + ".always")):
        return True
    try:
        os.unlink(os.path.join(faults, name))
        return True
    except FileNotFoundError:
        return False


class Faulty:
    def pre_process_command(self, line, cmd, arg):
        if fault("miss-" + cmd):
            log.write("miss %s\n" % line)
            self.close()
        elif fault("421-" + cmd):
            log.write("421 %s\n" % line)
            self.respond("421 No more of this.")
            self.close_when_done()
        elif os.path.exists(os.path.join(faults, "stop-" + cmd)) and not fault("skip-one-" + cmd):
            log.write("stop %s\n" % line)
            self.wait_for(os.path.join(faults, "stop-" + cmd), line, cmd, arg)
        else:
            self.go_on(line, cmd, arg)

    def wait_for(self, path, line, cmd, arg):
        if os.path.exists(path):
            self.ioloop.call_later(0.02, self.wait_for, path, line, cmd, arg)
        elif fault("drop-" + cmd):
            log.write("drop %s\n" % line)
            self.close()
        else:
            # The server carries out a command even if its client has disconnected.
            self.go_on(line, cmd, arg)

    def go_on(self, line, cmd, arg):
        self.lost = fault("lose-" + cmd)
        if cmd == "STAT" and arg and fault("nostat"):
            self.respond("502 STAT takes no path here.")
        elif cmd == "PWD" and fault("no-home"):
            self.respond('257 "" is the current directory.')
        elif cmd == "MKD" and "/sl1." in arg and fault("no-token"):
            self.respond("552 Quota exceeded.")
        elif cmd == "MKD" and fault("yes-MKD"):
            self.respond('257 "%s" directory created.' % arg)
        else:
            super().pre_process_command(line, cmd, arg)
        if self.lost:
            self.close()

    def respond(self, resp, logfun=None):
        if getattr(self, "lost", False):
            log.write("lost %s\n" % resp)
            return
        if resp.startswith("550 File exists") and fault("521"):
            resp = "521 Directory already exists."
        super().respond(resp)

    def log_cmd(self, cmd, arg, respcode, respstr):
        if cmd != "PASS":
            log.write("%s %s %s\n" % (cmd, arg, respcode))

    def log(self, msg, logfun=None):
        pass

    logline = log_exception = log


class Plain(Faulty, FTPHandler):
    pass


class Secure(Faulty, TLS_FTPHandler):
    tls_control_required = True


class Implicit(Secure):
    def handle(self):
        self.secure_connection(self.ssl_context)
        self.greeted = False

    def handle_ssl_established(self):
        super().handle_ssl_established()
        if not self.greeted:
            self.greeted = True
            FTPHandler.handle(self)


authorizer = DummyAuthorizer()
authorizer.add_user("lock", "secret", root, perm="elradfmwMT")
authorizer.add_user("guest", "secret", root, perm="elr")
handler = Plain
if "cert" in options:
    handler = Implicit if "implicit" in options else Secure
    handler.certfile = options["cert"]
handler.authorizer = authorizer
handler.auth_failed_timeout = float(options.get("refuses-after", 0))
handler.banner = "ready."
if os.path.exists(os.path.join(faults, "banner")):
    handler.banner = "first line\nsl1.x.60.0.0123456789abcdef.1.banner\nlast line"
import logging
logging.disable(logging.CRITICAL)
sys.dont_write_bytecode = True
import ports
for port in [int(options["port"])] if "port" in options else ports.free(10):
    try:
        server = FTPServer(("127.0.0.1", port), handler)
        break
    except OSError as error:    # another process has taken the port
        trouble = error
else:
    raise trouble
server.max_cons = int(options.get("max", 512))
sys.stdout.write("READY %d\n" % server.address[1])    # one write: a reader may look between two
sys.stdout.flush()
server.serve_forever()
