"""Tests of the ASGI middleware without a server.

They check the messages that are passed on, their order, and that nothing is left behind.
"""

import asyncio
import contextlib
import contextvars
import threading
import unittest

import bywash
from bywash import Class, Controller, Terminated, TerminateAsgi

from .clock import Clock

#: Longer than anything takes on a busy machine, and shorter than a handler that is not stopped.
PATIENCE = 60
ENDLESS = 600
HTTP = {"type": "http", "method": "GET", "path": "/", "headers": []}
START = {"type": "http.response.start", "status": 200, "headers": []}
DONE = {"type": "http.response.body", "body": b"done"}
LEFT = {"type": "http.disconnect"}


class WithoutAServer(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.clock = Clock()
        # Timers look every 10 ms.
        self.controller = Controller(Class("search", 0.01, 0.01), clock=self.clock)
        self.sent = []

    async def send(self, message):
        self.sent.append(message.get("status", message.get("body")))

    async def ask(self, app, send=None, receive=None, scope=HTTP):
        middleware = TerminateAsgi(app, self.controller, "search")
        asking = middleware(scope, receive or asyncio.Event().wait, send or self.send)
        await asyncio.wait_for(asking, PATIENCE)

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
        """Check every kind of last message of a body; the handler goes on behind it."""
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

    async def test_who_works_for_a_handler_and_is_told_does_not_speak_for_it(self):
        told = []

        def work():
            # Advance the clock here: a timer that fires earlier would cancel the handler.
            self.clock.go(1)
            try:
                bywash.checkpoint()
            except Terminated as terminated:
                told.append(terminated.reason)

        async def in_a_task():
            async def works():
                work()

            await asyncio.ensure_future(works())

        async def in_a_thread():
            thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
            thread.start()
            thread.join(PATIENCE)

        async def app(scope, receive, send):
            await helper()
            await asyncio.sleep(ENDLESS)

        for helper in (in_a_task, in_a_thread):
            with self.subTest(helper.__name__):
                await self.ask(app)
                self.assertEqual((told.pop(), self.sent.pop(0)), ("ran_too_long", 504))
                self.sent.clear()

    async def test_who_is_told_at_its_own_checkpoint_may_take_its_time_for_an_answer(self):
        async def app(scope, receive, send):
            self.clock.go(1)
            try:
                bywash.checkpoint()
            except Terminated:
                # Let every armed timer fire.
                await asyncio.sleep(0.05)
                await send({**START, "status": 503})
                await send(DONE)

        await self.ask(app)
        self.assertEqual(self.sent, [503, b"done"])

    async def left_by(self, handler):
        """Return how a handler ends that decides itself what to do when its client leaves."""
        gone = asyncio.Event()
        ended = []

        async def receive():
            await gone.wait()
            return LEFT

        async def app(scope, receive, send):
            try:
                await handler(gone, receive, send)
                ended.append("finished")
            except BaseException as error:
                ended.append(type(error).__name__)
                raise

        await self.ask(app, receive=receive)
        return ended

    async def test_a_client_who_leaves_frees_who_was_told_at_a_checkpoint(self):
        async def goes_on(gone, receive, send):
            self.clock.go(1)
            with contextlib.suppress(Terminated):
                bywash.checkpoint()
            gone.set()
            await asyncio.sleep(ENDLESS)

        self.assertEqual(await self.left_by(goes_on), ["CancelledError"])

    async def test_a_client_who_leaves_ends_own_words_that_have_begun_and_no_clean_up(self):
        async def cancelled(gone, receive, send, *words):
            self.clock.go(1)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(ENDLESS)
            for word in words:
                await send(word)
            gone.set()
            await receive()
            await asyncio.sleep(0)

        for words, end in [((), "finished"), ((START,), "CancelledError"), ((START, DONE), "finished")]:
            with self.subTest(words):
                self.assertEqual(await self.left_by(lambda *given: cancelled(*given, *words)), [end])

    async def test_a_server_that_cancels_tells_the_threads_of_a_handler(self):
        begun, done = asyncio.Event(), asyncio.Event()
        told = []

        def work(loop):
            loop.call_soon_threadsafe(begun.set)
            pause = threading.Event()
            for _ in range(PATIENCE * 100):
                try:
                    bywash.checkpoint()
                except Terminated as terminated:
                    told.append(terminated.reason)
                    break
                pause.wait(0.01)
            loop.call_soon_threadsafe(done.set)

        async def app(scope, receive, send):
            await asyncio.to_thread(work, asyncio.get_running_loop())

        serving = asyncio.ensure_future(self.ask(app))
        await begun.wait()
        serving.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await serving
        await done.wait()
        self.assertEqual((told, self.stats().client_left, self.stats().running), (["client_left"], 1, 0))

    async def test_a_deferred_handler_outlives_a_server_that_cancels(self):
        begun, cancelled = asyncio.Event(), asyncio.Event()
        heard, handlers = [], []

        async def app(scope, receive, send):
            handlers.append(asyncio.current_task())
            bywash.current().cancel_termination()
            begun.set()
            heard.append(await receive())
            await cancelled.wait()
            heard.append(await receive())
            bywash.checkpoint()
            await send(START)
            heard.append(self.stats().running)
            await send(DONE)
            raise KeyError("behind its response")

        serving = asyncio.ensure_future(self.ask(app))
        await begun.wait()
        serving.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await serving
        with self.assertLogs("bywash") as logs:
            cancelled.set()
            await asyncio.wait(handlers, timeout=PATIENCE)
            await asyncio.sleep(0)
        self.assertIn("behind its response", logs.output[0])
        self.assertEqual((heard, self.sent), ([LEFT, LEFT, 1], []), "nobody reads it")
        self.assertEqual((self.stats().running, self.stats().deferred, self.stats().client_left), (0, 1, 0))

    async def test_of_another_token_nothing_is_answered(self):
        async def app(scope, receive, send):
            self.controller.begin("search", 0.0).checkpoint()

        with self.assertRaisesRegex(RuntimeError, "another request's token") as caught:
            await self.ask(app)
        self.assertIsInstance(caught.exception.__cause__, Terminated)
        self.assertEqual(self.sent, [])

    async def test_an_error_of_the_servers_receive_is_raised_each_time(self):
        messages = [{"type": "http.request", "body": b"a", "more_body": True}]
        heard = []

        async def receive():
            if messages:
                return messages.pop()
            raise ConnectionError("no more")

        async def app(scope, receive, send):
            for _ in range(3):
                try:
                    heard.append((await receive())["body"])
                except ConnectionError as error:
                    heard.append(str(error))

        await self.ask(app, receive=receive)
        self.assertEqual(heard, [b"a", "no more", "no more"])

if __name__ == "__main__":
    unittest.main()
