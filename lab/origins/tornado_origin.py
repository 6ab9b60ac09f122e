"""An origin on Tornado's HTTP server without its router. The target stays undecoded, so the
reflection has no route."""

import asyncio
import sys

from reflect import reflection
from tornado import httpserver, httputil


def answer(request):
    host = request.headers.get("Host")
    # Tornado reads heads as Latin-1.
    fields, text = reflection(request.method, request.uri, host, None, request.body or b"")
    fields += [("Content-Type", "application/json"), ("Content-Length", str(len(text)))]
    start = httputil.ResponseStartLine("HTTP/1.1", 200, "OK")
    request.connection.write_headers(start, httputil.HTTPHeaders(fields), text)
    request.connection.finish()


async def main(port):
    httpserver.HTTPServer(answer).listen(port, "127.0.0.1")
    await asyncio.Event().wait()


asyncio.run(main(int(sys.argv[1])))
