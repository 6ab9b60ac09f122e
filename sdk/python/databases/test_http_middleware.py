"""Starlette and FastAPI with a middleware of their own kind, which runs the application in a task."""

import asyncio
import unittest

from bywash import Class, Controller, TerminateAsgi


async def found(request):
    """Answer at once."""
    return "found"


async def slow(request):
    """Never answer."""
    await asyncio.Event().wait()


async def own(request):
    """Answer although the request is over."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "own"


HANDLERS = {"/found": found, "/slow": slow, "/own": own}


def starlette(add):
    """Return an application of Starlette. `add` adds its middleware."""
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    def endpoint(handler):
        async def answer(request):
            return PlainTextResponse(await handler(request))

        return answer

    app = Starlette(routes=[Route(path, endpoint(handler)) for path, handler in HANDLERS.items()])
    add(app)
    return app


def fastapi(add):
    """Return an application of FastAPI. `add` adds its middleware."""
    from fastapi import FastAPI, Request
    from fastapi.responses import PlainTextResponse

    app = FastAPI()

    def route(path, handler):
        @app.get(path)
        async def answer(request: Request):
            return PlainTextResponse(await handler(request))

    for path, handler in HANDLERS.items():
        route(path, handler)
    add(app)
    return app


async def passes(request, call_next):
    """Mark each response, as a middleware."""
    response = await call_next(request)
    response.headers["marked"] = "yes"
    return response


def add_terminate(app):
    controller = Controller(Class("search", run_min=0.5, run_max=0.5))
    app.add_middleware(TerminateAsgi, controller=controller, class_of="search")


def add_other(app):
    from starlette.middleware.base import BaseHTTPMiddleware

    if hasattr(app, "middleware"):
        app.middleware("http")(passes)
    else:
        # Starlette 1 has no such decorator.
        app.add_middleware(BaseHTTPMiddleware, dispatch=passes)


class WithHttpMiddleware(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)

    async def ask(self, app, path):
        """Return the status, the body and the mark of an answer."""
        sent, is_asked = [], False

        async def receive():
            nonlocal is_asked
            if is_asked:
                await asyncio.Event().wait()
            is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}
        await asyncio.wait_for(app(scope, receive, send), 60)
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], body, (b"marked", b"yes") in sent[0]["headers"]

    async def answers(self, make, *adds):
        """Return the answers to each path. The middleware that is added last is the outer one."""
        app = make(lambda app: [add(app) for add in adds])
        return [await self.ask(app, path) for path in HANDLERS]

    async def test_a_handlers_own_answer_stays_if_the_other_middleware_is_outside(self):
        for make in (starlette, fastapi):
            with self.subTest(make.__name__):
                found, slow, own = await self.answers(make, add_terminate, add_other)
                self.assertEqual(found, (200, b"found", True))
                self.assertEqual((slow[0], b"(ran_too_long)" in slow[1], slow[2]), (504, True, True))
                self.assertEqual(own, (200, b"own", True))

    async def test_a_handlers_own_answer_is_lost_if_the_other_middleware_is_inside(self):
        for make in (starlette, fastapi):
            with self.subTest(make.__name__):
                found, slow, own = await self.answers(make, add_other, add_terminate)
                self.assertEqual(found, (200, b"found", True))
                for answer in (slow, own):
                    self.assertEqual((answer[0], b"(ran_too_long)" in answer[1], answer[2]), (504, True, False))


if __name__ == "__main__":
    unittest.main()
