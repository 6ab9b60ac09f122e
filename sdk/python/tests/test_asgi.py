"""Tests of the middleware on a real server, uvicorn, over loopback. Clients are plain sockets.

The test advances the controller's clock. Timers use real time, but only look at that clock,
every `RUN_MAX` at most.
"""

import asyncio
import gc
import unittest
import weakref

import bywash
from bywash import Class, Controller, TerminateAsgi

from .clock import Clock

try:
    import uvicorn
except ImportError:
    uvicorn = None

#: Longer than anything takes on a busy machine, and shorter than a handler that is not stopped.
PATIENCE = 60
ENDLESS = 600
RUN_MIN, RUN_MAX = 0.01, 0.02


async def respond(send, body=b"done\n", status=200):
    await send({"type": "http.response.start", "status": status, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})


class App:
    """An application with one path for each way in which a handler can run for long.

    It records how each request ended.
    """

    def __init__(self, clock):
        self.clock = clock
        self.ended = {}
        self.tokens = weakref.WeakSet()
        self.begun = asyncio.Queue()

    async def __call__(self, scope, receive, send):
        if "bywash.token" in scope:
            self.tokens.add(scope["bywash.token"])
        await self.begun.put(scope["path"])
        handler = getattr(self, scope["path"].strip("/"))
        try:
            await handler(scope, receive, send)
        except BaseException as error:
            self.ended[scope["path"]] = type(error).__name__
            raise

    async def outlast(self):
        """Advance the clock, and wait until every armed timer has fired."""
        self.clock.go(ENDLESS)
        await asyncio.sleep(RUN_MAX * 3)
        bywash.checkpoint()

    async def quick(self, scope, receive, send):
        await respond(send)

    async def unasked(self, scope, receive, send):
        """Leave the body unread, and wait so long that the middleware could read it ahead."""
        await asyncio.sleep(0.01)
        await respond(send)

    async def untouched(self, scope, receive, send):
        await self.outlast()
        await respond(send, str("bywash.token" in scope).encode())

    async def await_long(self, scope, receive, send):
        await asyncio.sleep(ENDLESS)

    async def reads(self, scope, receive, send):
        self.clock.go(ENDLESS)
        assert scope["bywash.token"].is_terminated
        await asyncio.sleep(ENDLESS)

    async def stops_at_a_look(self, scope, receive, send):
        self.clock.go(ENDLESS)
        assert scope["bywash.token"].is_terminated

    async def compute(self, scope, receive, send):
        while True:
            bywash.checkpoint()
            self.clock.go(RUN_MAX / 100)

    async def in_a_thread(self, scope, receive, send):
        def work():
            while True:
                bywash.checkpoint()

        await asyncio.to_thread(work)

    async def own_words(self, scope, receive, send):
        try:
            await asyncio.sleep(ENDLESS)
        except asyncio.CancelledError:
            await respond(send, b"own words", 503)

    async def stream(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await self.outlast()
        await send({"type": "http.response.body", "body": b"b"})

    async def deferred(self, scope, receive, send):
        scope["bywash.token"].cancel_termination()
        await self.outlast()
        await respond(send)

    async def deferred_and_left(self, scope, receive, send):
        scope["bywash.token"].cancel_termination()
        while (await receive())["type"] != "http.disconnect":
            pass
        await self.outlast()
        await respond(send)
        self.ended["/deferred_and_left"] = "finished"

    async def echo(self, scope, receive, send):
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        await respond(send, body)

    async def after(self, scope, receive, send):
        await respond(send)
        await self.outlast()
        self.ended["/after"] = "finished"

    async def breaks(self, scope, receive, send):
        raise KeyError("no")


@unittest.skipIf(uvicorn is None, "uvicorn is not installed")
class OnUvicorn(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        # The debug mode of unittest would complain about each handler that computes.
        asyncio.get_running_loop().set_debug(False)
        self.clock = Clock()
        self.app = App(self.clock)
        await self.serve()

    async def serve(self, run_min=RUN_MIN, run_max=RUN_MAX, interval=3600.0, **settings):
        declared = Class("search", run_min, run_max, interval=interval, retry_after=ENDLESS)
        self.controller = Controller(declared, clock=self.clock)

        def class_of(scope):
            return None if scope["path"] == "/untouched" else "search"

        app = TerminateAsgi(self.app, self.controller, class_of, **settings)
        config = uvicorn.Config(app, port=0, lifespan="off", log_level="critical", http="h11")
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server._serve())
        while not server.started:
            await asyncio.sleep(0.001)
        self.port = server.servers[0].sockets[0].getsockname()[1]

        async def stop():
            server.should_exit = True
            await asyncio.wait_for(serving, PATIENCE)

        self.addAsyncCleanup(stop)

    async def connect(self, path, head="", body=b"", method="GET"):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        length = f"content-length: {len(body)}\r\n" if body else ""
        fields = f"host: a\r\nconnection: close\r\n{length}{head}\r\n"
        writer.write(f"{method} {path} HTTP/1.0\r\n{fields}".encode() + body)
        return reader, writer

    async def get(self, path, head="", body=b"", method="GET"):
        reader, writer = await self.connect(path, head, body, method)
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        return int(lines[0].split()[1]), dict(line.split(": ", 1) for line in lines[1:]), body

    async def get_overdue(self, path, after=RUN_MAX, **request):
        """Return the answer to a request whose handler has run for `after` seconds."""
        answer = asyncio.ensure_future(self.get(path, **request))
        await asyncio.wait_for(self.app.begun.get(), PATIENCE)
        self.clock.go(after)
        return await answer

    def stats(self):
        return self.controller.stats()["search"]

    async def until(self, holds):
        for _ in range(PATIENCE * 100):
            if holds():
                return
            await asyncio.sleep(0.01)
        self.fail("it did not come about")

    async def test_a_long_handler_gets_504_and_a_short_one_200(self):
        ways = [("/await_long", "CancelledError"), ("/compute", "Terminated"), ("/in_a_thread", "")]
        for path, ended in [*ways, ("/reads", "CancelledError")]:
            with self.subTest(path):
                status, head, body = await self.get_overdue(path)
                self.assertEqual((status, head["retry-after"], head["cache-control"]), (504, "600", "no-store"))
                self.assertIn(b"(ran_too_long)", body)
                self.assertNotIn("proxy-status", head)
                self.assertIn(ended, self.app.ended[path])
        self.assertEqual((await self.get("/quick"))[0], 200)
        self.assertEqual((self.stats().terminated, self.stats().lost, self.stats().arrived), (4, 4, 5))

    async def test_a_handler_is_told_no_sooner_than_it_is_overdue(self):
        """Check that a timer of the request checks again until the request is overdue."""
        asking = asyncio.ensure_future(self.get("/await_long"))
        await self.app.begun.get()
        self.clock.go(RUN_MAX - 0.001)
        await asyncio.sleep(RUN_MAX * 3)
        self.assertEqual(self.stats().terminated, 0)
        self.clock.go(0.001)
        self.assertEqual((await asking)[0], 504)

    async def test_who_stops_without_a_word_as_it_is_over_is_answered_for(self):
        self.assertEqual((await self.get("/stops_at_a_look"))[0], 504)
        self.assertEqual(self.stats().terminated, 1)

    async def test_a_deadline_does_not_say_when_to_come_again(self):
        for accept in ("", "accept: application/json\r\n"):
            for deadline in (0, 15):
                fields = f"bywash-deadline: {deadline}\r\n{accept}"
                asking = asyncio.ensure_future(self.get("/await_long", fields))
                if deadline:
                    await self.app.begun.get()
                    self.clock.go(0.015)
                status, head, body = await asking
                self.assertEqual((status, head["cache-control"]), (504, "no-store"))
                self.assertNotIn("retry-after", head)
                self.assertNotIn(b"retry-after", body)
        self.assertEqual((self.stats().deadline, self.stats().lost), (4, 2), "two had run for run_min")

    async def test_who_asks_for_the_head_gets_no_body(self):
        _, wanted, body = await self.get("/quick", "bywash-deadline: 0\r\n")
        status, head, nothing = await self.get("/quick", "bywash-deadline: 0\r\n", method="HEAD")
        self.assertEqual((status, head["content-length"], nothing), (504, str(len(body)), b""))
        self.assertEqual({**head, "date": ""}, {**wanted, "date": ""})

    async def test_the_handlers_own_words_come_first(self):
        self.assertEqual((await self.get_overdue("/own_words"))[::2], (503, b"own words"))

    async def test_what_has_begun_or_is_deferred_or_has_no_class_is_not_terminated(self):
        self.assertEqual((await self.get("/stream"))[0], 200)
        self.assertEqual((await self.get("/deferred"))[0], 200)
        self.assertEqual((await self.get("/untouched"))[::2], (200, b"False"))
        self.assertEqual((self.stats().arrived, self.stats().lost, self.stats().deferred), (2, 0, 1))

    async def test_a_falling_threshold_reaches_who_runs(self):
        await self.serve(run_max=ENDLESS, interval=0.1)
        answer = asyncio.ensure_future(self.get("/await_long"))
        await self.app.begun.get()
        self.controller.lost("search")
        self.clock.go(0.1)
        self.assertEqual((await answer)[0], 504)

    async def test_who_runs_through_several_intervals_is_terminated_all_the_same(self):
        await self.serve(run_max=0.35, interval=0.1)
        answer = asyncio.ensure_future(self.get("/await_long"))
        await self.app.begun.get()
        for _ in range(5):
            self.assertFalse(answer.done())
            self.clock.go(0.07)
            await asyncio.sleep(0)
        self.assertEqual((await answer)[0], 504)

    async def test_tiny_deadlines_end_their_own_requests_and_lower_no_threshold(self):
        await self.serve(run_min=5, run_max=5)
        for milliseconds in (1, 20):
            fields = f"bywash-deadline: {milliseconds}\r\n"
            status, _, body = await self.get_overdue("/await_long", after=milliseconds / 1000, head=fields)
            self.assertEqual(status, 504)
            self.assertIn(b"(deadline)", body)
        # A request with no time left does not begin.
        self.assertEqual((await self.get("/quick", "bywash-deadline: 0\r\n"))[0], 504)
        self.assertTrue(self.app.begun.empty())
        self.assertEqual((self.stats().deadline, self.stats().lost), (3, 0))

    async def test_a_client_who_leaves_frees_the_handler(self):
        for path in ("/await_long", "/in_a_thread"):
            _, writer = await self.connect(path)
            await asyncio.wait_for(self.app.begun.get(), PATIENCE)
            writer.close()
            await self.until(lambda: path in self.app.ended)
        await self.until(lambda: self.stats().running == 0)
        self.assertEqual((self.stats().client_left, self.stats().lost), (2, 0))

    async def test_a_client_who_leaves_ends_nobody_who_is_deferred(self):
        _, writer = await self.connect("/deferred_and_left")
        await asyncio.wait_for(self.app.begun.get(), PATIENCE)
        writer.close()
        await self.until(lambda: self.app.ended)
        self.assertEqual(self.app.ended, {"/deferred_and_left": "finished"})
        await self.until(lambda: self.stats().running == 0)
        self.assertEqual((self.stats().deferred, self.stats().client_left, self.stats().lost), (1, 0, 0))

    async def test_a_gateway_that_closes_when_the_time_is_over_has_come_to_its_deadline(self):
        _, writer = await self.connect("/await_long", "bywash-deadline: 20\r\n")
        await self.app.begun.get()
        self.clock.go(0.019)
        writer.close()
        await self.until(lambda: self.stats().running == 0)
        self.assertEqual((self.stats().deadline, self.stats().lost, self.stats().client_left), (1, 1, 0))

    async def test_bodies_arrive_and_what_follows_the_response_is_left_alone(self):
        body = bytes(range(256)) * 2000
        status, _, echo = await self.get("/echo", body=body)
        self.assertEqual((status, len(echo)), (200, len(body)))
        self.assertTrue(echo == body)
        self.assertEqual((await self.get("/after"))[0], 200)
        await self.until(lambda: "/after" in self.app.ended)
        self.assertEqual(self.app.ended["/after"], "finished")
        self.assertEqual(self.stats().client_left, 0)

    async def test_who_waits_to_be_asked_for_a_body_is_asked_by_the_handler_only(self):
        async def said(path):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            fields = "host: a\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
            writer.write(f"POST {path} HTTP/1.1\r\n{fields}".encode())
            line = await asyncio.wait_for(reader.readline(), PATIENCE)
            if b" 100 " in line:
                writer.write(b"hi")
            rest = await asyncio.wait_for(reader.read(), PATIENCE)
            writer.close()
            return line.split()[1], rest

        self.assertEqual((await said("/unasked"))[0], b"200")
        status, rest = await said("/echo")
        self.assertEqual((status, b"hi" in rest), (b"100", True))
        self.assertEqual(self.stats().client_left, 0)

    async def test_an_error_is_the_servers_as_before(self):
        self.assertEqual((await self.get("/breaks"))[0], 500)
        await self.until(lambda: gc.collect() >= 0 and not len(self.app.tokens))
        self.assertEqual(self.stats().running, 0)

    async def test_of_two_hundred_at_once_nothing_stays_behind(self):
        await self.serve(run_min=5, run_max=5)
        await self.get("/quick")
        tasks = len(asyncio.all_tasks())
        asking = [asyncio.ensure_future(self.get("/await_long", "bywash-deadline: 150\r\n")) for _ in range(50)]
        await self.until(lambda: self.stats().running == 50)
        quick = await asyncio.gather(*(self.get(path) for path in ["/quick", "/echo", "/breaks"] * 50))
        self.assertEqual([answer[0] for answer in quick], [200, 200, 500] * 50)
        self.clock.go(0.15)
        self.assertEqual([answer[0] for answer in await asyncio.gather(*asking)], [504] * 50)
        await self.until(lambda: self.stats().running == 0)
        self.assertEqual((self.stats().deadline, self.stats().lost), (50, 0))
        await self.until(lambda: len(asyncio.all_tasks()) <= tasks)
        # A timer that is still armed would hold its token.
        await self.until(lambda: gc.collect() >= 0 and not len(self.app.tokens))


if __name__ == "__main__":
    unittest.main()
