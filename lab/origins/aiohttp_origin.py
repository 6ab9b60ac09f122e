"""An origin on aiohttp's low-level server: every method, no router."""

import asyncio
import sys

from aiohttp import web
from reflect import reflection


async def answer(request):
    body = await request.read()
    hosts = request.headers.getall("Host", [])
    # aiohttp decodes heads as UTF-8, and keeps invalid bytes as surrogates.
    target = request.raw_path.encode("utf-8", "surrogateescape").decode("latin-1")
    host = ",".join(hosts) if hosts else None
    fields, text = reflection(request.method, target, host, request.path, body)
    return web.Response(body=text, headers=dict(fields), content_type="application/json")


async def main(port):
    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


asyncio.run(main(int(sys.argv[1])))
