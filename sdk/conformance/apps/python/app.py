"""The application of `sdk/conformance` in Python, on uvicorn."""

import asyncio
import json
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

import uvicorn  # noqa: E402
from bywash import Class, Controller, Query, StopClient, Taken, TerminateAsgi, Terminated, current, outgoing  # noqa: E402

stop_client = StopClient()


async def answer(send, text):
    head = [(b"content-type", b"text/plain"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": text.encode()})


async def query(send):
    has_begun = False
    try:
        async with Query(stop_client, "shop", lambda: 7, lambda: None):
            has_begun = True
            await asyncio.sleep(3600)
    except Terminated as over:
        if has_begun:
            raise
        await answer(send, f"stopped {over.reason}")
    except Taken:
        await answer(send, "taken")


async def app(scope, receive, send):
    path = scope["path"]
    if path == "/name":
        await answer(send, current().request)
    elif path == "/left":
        await answer(send, str(int(current().left() * 1000)))
    elif path == "/outgoing":
        await answer(send, json.dumps(outgoing()))
    elif path == "/query":
        await query(send)
    else:
        await asyncio.sleep(3600)


def class_of(scope):
    return "busy" if scope["path"] == "/busy" else "work"


controller = Controller(Class("work", 1.0, 3600.0), Class("busy", 0.05, 0.05))
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
config = uvicorn.Config(TerminateAsgi(app, controller, class_of), log_level="warning", lifespan="off")
uvicorn.Server(config).run(sockets=[listener])
