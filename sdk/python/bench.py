"""The cost of the middleware: a request without and with it, and a checkpoint.

    python3 sdk/python/bench.py

Both sides run in turns in one process. WSGI and ASGI applications are called directly, which shows
the middleware's whole cost, and over a real server (uvicorn, if it is installed), which shows its
share of a request. The program prints the median of the turns.
"""

import asyncio
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from bywash import Class, Controller, TerminateAsgi, TerminateWsgi  # noqa: E402

TURNS = 15


def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Length", "4")])
    return [b"done"]


async def asgi(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"done"})


def wsgi_turn(app, count=5000):
    start = time.perf_counter()
    for _ in range(count):
        body = app({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, lambda *_: None)
        for _ in body:
            pass
        if hasattr(body, "close"):
            body.close()
    return (time.perf_counter() - start) / count * 1e6


async def asgi_turn(app, count=2000):
    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    gone = asyncio.Event()

    async def send(message):
        pass

    async def receive():
        await gone.wait()

    start = time.perf_counter()
    for _ in range(count):
        await app(scope, receive, send)
    return (time.perf_counter() - start) / count * 1e6


async def served_turn(streams, count=1000):
    reader, writer = streams
    start = time.perf_counter()
    for _ in range(count):
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        await reader.readuntil(b"done")
    return (time.perf_counter() - start) / count * 1e6


def report(what, pairs):
    without, with_it, ratio = (
        statistics.median(values)
        for values in ([p[0] for p in pairs], [p[1] for p in pairs], [p[1] / p[0] for p in pairs])
    )
    print(f"{what}: {without:.1f} us without, {with_it:.1f} us with, ratio {ratio:.2f}")


async def on_uvicorn(apps):
    try:
        import uvicorn
    except ImportError:
        print("request (uvicorn): left out, it is not installed")
        return
    servers, streams = [], []
    for app in apps:
        config = uvicorn.Config(app, port=0, lifespan="off", log_level="critical", http="h11")
        server = uvicorn.Server(config)
        servers.append((server, asyncio.ensure_future(server._serve())))
        while not server.started:
            await asyncio.sleep(0.001)
        port = server.servers[0].sockets[0].getsockname()[1]
        streams.append(await asyncio.open_connection("127.0.0.1", port))
    report("request (uvicorn)", [[await served_turn(each) for each in streams] for _ in range(TURNS)])
    for (server, serving), (_, writer) in zip(servers, streams):
        writer.close()
        server.should_exit = True
        await serving


async def on_a_loop(apps):
    report("call (ASGI)", [[await asgi_turn(app) for app in apps] for _ in range(TURNS)])


def checkpoints(controller, count=200_000):
    token = controller.begin("search")

    def turn():
        start = time.perf_counter()
        for _ in range(count):
            token.checkpoint()
        return (time.perf_counter() - start) / count * 1e9

    print(f"checkpoint: {statistics.median(turn() for _ in range(TURNS)):.0f} ns")


def main():
    controller = Controller(Class("search", run_min=1, run_max=30))
    apps = [asgi, TerminateAsgi(asgi, controller, "search")]
    asyncio.run(on_uvicorn(apps))
    asyncio.run(on_a_loop(apps))
    wrapped = TerminateWsgi(wsgi, controller, "search")
    report("call (WSGI)", [[wsgi_turn(app) for app in (wsgi, wrapped)] for _ in range(TURNS)])
    checkpoints(controller)


if __name__ == "__main__":
    main()
