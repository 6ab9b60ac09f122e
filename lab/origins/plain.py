"""An upstream that answers each request with 200 and a page of 16 KiB.

h2spec tests flow-control windows, and needs a body that fills them.
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b"0123456789abcdef" * 1024


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        if self.headers.get("Transfer-Encoding"):
            while size := int(self.rfile.readline().split(b";")[0], 16):
                self.rfile.read(size + 2)
            while self.rfile.readline().strip():
                pass
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(PAGE)

    do_GET = do_HEAD = do_POST = do_PUT = do_OPTIONS = answer

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
