"""The middleware for ASGI without a server: what is passed on, in which order, and what stays behind."""

import asyncio
import unittest

import bywash
from bywash import Class, Controller, TerminateAsgi

from .clock import Clock

ENDLESS = 600
HTTP = {"type": "http", "method": "GET", "path": "/", "headers": []}
START = {"type": "http.response.start", "status": 200, "headers": []}


class WithoutAServer(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.clock = Clock()
        # Timers ask every 10 ms.
        self.controller = Controller(Class("search", 0.01, 0.01), clock=self.clock)
        self.sent = []

    async def send(self, message):
        self.sent.append(message.get("status", message.get("body")))

    async def ask(self, app, send=None, receive=None, scope=HTTP):
        middleware = TerminateAsgi(app, self.controller, "search")
        await middleware(scope, receive or asyncio.Event().wait, send or self.send)

    def stats(self):
        return self.controller.stats()["search"]

    async def test_other_scopes_pass_untouched(self):
        seen = []

        async def app(*given):
            seen.append(given)

        middleware = TerminateAsgi(app, self.controller, "search")
        for scope in ({"type": "lifespan"}, {"type": "websocket", "path": "/", "headers": []}):
            before = dict(scope)
            await middleware(scope, 1, 2)
            passed = seen.pop()
            self.assertEqual((passed, before), ((scope, 1, 2), scope))
            self.assertIs(passed[0], scope)
        self.assertEqual(self.stats().arrived, 0)

    async def test_a_class_that_is_not_declared_is_an_error(self):
        with self.assertRaises(bywash.SettingError):
            TerminateAsgi(None, self.controller, "page")
        with self.assertRaisesRegex(bywash.SettingError, "page"):
            await TerminateAsgi(None, self.controller, lambda scope: "page")(HTTP, None, None)

    async def test_of_two_middlewares_the_outer_one_decides(self):
        seen = []

        async def app(scope, receive, send):
            seen.append((scope["bywash.token"].name, bywash.current().name, scope, receive))

        between = []

        async def mark(scope, receive, send):
            between.append((scope, receive))
            await nested(scope, receive, send)

        controller = Controller(Class("outer", 1, 2), Class("inner", 1, 2), clock=self.clock)
        nested = TerminateAsgi(app, controller, "inner")
        await TerminateAsgi(mark, controller, "outer")(HTTP, asyncio.Event().wait, self.send)
        self.assertEqual(seen[0][:2], ("outer", "outer"))
        self.assertEqual(seen[0][2:], between[0], "passed on as they are")
        stats = controller.stats()
        self.assertEqual((stats["outer"].arrived, stats["inner"].arrived), (1, 0))
        await TerminateAsgi(mark, controller, lambda scope: None)(HTTP, asyncio.Event().wait, self.send)
        self.assertEqual(seen[1][0], "inner", "the outer one has nothing to do with it")

    async def test_own_words_are_the_only_ones_and_no_task_stays_behind(self):
        async def app(scope, receive, send):
            self.clock.go(1)
            try:
                await asyncio.sleep(ENDLESS)
            except asyncio.CancelledError:
                await send({**START, "status": 503})
                await send({"type": "http.response.body", "body": b"own words"})

        await self.ask(app)
        self.assertEqual(self.sent, [503, b"own words"])
        await asyncio.sleep(0)
        self.assertEqual(asyncio.all_tasks(), {asyncio.current_task()})

    async def test_a_server_that_tells_of_the_end_before_its_last_send_is_back_is_not_left(self):
        """Whatever the last message of a body is; behind it the handler goes on."""
        lasts = [
            [{"type": "http.response.body", "body": b"a"}],
            [{"type": "http.response.body", "body": b"a", "more_body": True}, {"type": "http.response.body"}],
            [{"type": "http.response.pathsend", "path": "/a"}],
            [{"type": "http.response.zerocopysend", "file": 1, "more_body": True}]
            + [{"type": "http.response.zerocopysend", "file": 1}],
        ]
        for messages in lasts:
            with self.subTest(messages[-1]):
                gone = asyncio.Event()
                passed, finished, running = [], [], []

                async def receive():
                    await gone.wait()
                    return {"type": "http.disconnect"}

                async def send(message):
                    passed.append(message)
                    running.append(self.stats().running)
                    if message is messages[-1]:
                        gone.set()
                    for _ in range(10):
                        await asyncio.sleep(0)

                async def app(scope, receive, send):
                    for message in [START, *messages]:
                        self.assertTrue(scope["bywash.token"].settle())
                        await send(message)
                    self.clock.go(1)
                    finished.append(await receive())

                await self.ask(app, send, receive)
                self.assertEqual(passed, [START, *messages])
                self.assertEqual(finished, [{"type": "http.disconnect"}])
                self.assertEqual(running, [1] * len(messages) + [0])
        self.assertEqual((self.stats().client_left, self.stats().running), (0, 0))

    async def test_who_leaves_before_the_last_message_ends_what_has_begun(self):
        gone = asyncio.Event()

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        async def app(scope, receive, send):
            await send(START)
            await send({"type": "http.response.zerocopysend", "file": 1, "more_body": True})
            gone.set()
            await asyncio.sleep(ENDLESS)

        await self.ask(app, receive=receive)
        self.assertEqual((self.stats().client_left, self.stats().running), (1, 0))

    async def test_nothing_is_read_of_who_waits_to_be_asked_until_the_handler_does(self):
        reads = []

        async def receive():
            reads.append(self.sent.copy())
            await asyncio.sleep(ENDLESS)

        async def silent(scope, receive, send):
            await asyncio.sleep(0.01)
            await send(START)
            await asyncio.sleep(0.01)

        async def asks(scope, receive, send):
            await asyncio.wait({asyncio.ensure_future(receive())}, timeout=0.01)

        for expect, app, seen in [
            (b"100-Continue", silent, [[200]]),
            (b"100-continue", asks, [[]]),
            (b"", silent, [[]]),
        ]:
            self.sent.clear()
            reads.clear()
            await self.ask(app, receive=receive, scope={**HTTP, "headers": [(b"expect", expect)]})
            self.assertEqual(reads, seen, expect)

    async def test_a_server_that_cancels_leaves_no_handler_behind(self):
        begun = asyncio.Event()
        ended = []

        async def app(scope, receive, send):
            begun.set()
            try:
                await asyncio.sleep(ENDLESS)
            finally:
                ended.append(True)

        serving = asyncio.ensure_future(self.ask(app))
        await begun.wait()
        serving.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await serving
        self.assertEqual((ended, self.stats().running), ([True], 0))

    async def test_the_body_of_an_answer_to_head_is_empty(self):
        async def app(scope, receive, send):
            self.clock.go(1)
            bywash.checkpoint()

        await self.ask(app, scope={**HTTP, "method": "HEAD"})
        self.assertEqual(self.sent, [504, b""])


if __name__ == "__main__":
    unittest.main()
