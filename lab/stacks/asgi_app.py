"""A handler of Starlette for `stacks`, under uvicorn, that works in small steps.

There is a plain one, one that asks whether its client is still there, and one within TerminateAsgi.
"""

import asyncio

from bywash import Class, Controller, TerminateAsgi
from observer import tell
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


async def work(name, has_left):
    try:
        for _ in range(40):
            tell(name, "step")
            await asyncio.sleep(0.02)
            if await has_left():
                tell(name, "told")
                return PlainTextResponse("")
    except asyncio.CancelledError:
        tell(name, "told")
        raise
    tell(name, "done")
    return PlainTextResponse("done")


async def never():
    return False


async def plain(request):
    return await work(request.path_params["name"], never)


async def ask(request):
    return await work(request.path_params["name"], request.is_disconnected)


handlers = Starlette(routes=[Route("/plain/{name}", plain), Route("/ask/{name}", ask), Route("/sdk/{name}", plain)])
controller = Controller(Class("work", run_min=1.0, run_max=30.0))
app = TerminateAsgi(handlers, controller, lambda scope: "work" if scope["path"].startswith("/sdk/") else None)
