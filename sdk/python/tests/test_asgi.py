"""The middleware on a real server, uvicorn, over loopback. Its clients are plain sockets."""

import asyncio
import gc
import json
import unittest
import weakref

import bywash
from bywash import Class, Controller, TerminateAsgi

try:
    import uvicorn
except ImportError:
    uvicorn = None

#: Longer than anything takes on a busy machine, shorter than a handler that nobody stops.
PATIENCE = 20
ENDLESS = 600


async def respond(send, body=b"done\n", status=200):
    await send({"type": "http.response.start", "status": status, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})


class App:
    """One path for each way to run for long; says how each ended."""

    def __init__(self):
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

    async def quick(self, scope, receive, send):
        await respond(send)

    async def untouched(self, scope, receive, send):
        await asyncio.sleep(0.4)
        bywash.checkpoint()
        await respond(send, str("bywash.token" in scope).encode())

    async def await_long(self, scope, receive, send):
        await asyncio.sleep(ENDLESS)

    async def compute(self, scope, receive, send):
        while True:
            bywash.checkpoint()

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
        for _ in range(10):
            await asyncio.sleep(0.04)
            bywash.checkpoint()
        await send({"type": "http.response.body", "body": b"b"})

    async def deferred(self, scope, receive, send):
        scope["bywash.token"].cancel_termination()
        await asyncio.sleep(0.4)
        bywash.checkpoint()
        await respond(send)

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
        await asyncio.sleep(0.2)
        self.ended["/after"] = "finished"

    async def breaks(self, scope, receive, send):
        raise KeyError("no")


@unittest.skipIf(uvicorn is None, "uvicorn is not installed")
class OnUvicorn(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        # In debug mode, unittest's, it would complain of each handler that computes.
        asyncio.get_running_loop().set_debug(False)
        self.app = App()
        self.controller = Controller(Class("search", run_min=0.05, run_max=0.2, interval=600))
        await self.serve(self.controller)

    async def serve(self, controller, **settings):
        def class_of(scope):
            return None if scope["path"] == "/untouched" else "search"

        app = TerminateAsgi(self.app, controller, class_of, **settings)
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

    async def connect(self, path, head="", body=b""):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        length = f"content-length: {len(body)}\r\n" if body else ""
        writer.write(f"GET {path} HTTP/1.0\r\nhost: a\r\nconnection: close\r\n{length}{head}\r\n".encode() + body)
        return reader, writer

    async def get(self, path, head="", body=b""):
        reader, writer = await self.connect(path, head, body)
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        return int(lines[0].split()[1]), dict(line.split(": ", 1) for line in lines[1:]), body

    def stats(self):
        return self.controller.stats()["search"]

    async def until(self, holds):
        for _ in range(PATIENCE * 100):
            if holds():
                return
            await asyncio.sleep(0.01)
        self.fail("it did not come about")

    async def test_a_long_handler_gets_504_and_a_short_one_200(self):
        for path, ended in [("/await_long", "CancelledError"), ("/compute", "Terminated"), ("/in_a_thread", "")]:
            with self.subTest(path):
                before = self.controller.clock()
                status, head, body = await self.get(path)
                self.assertEqual((status, head["retry-after"], head["cache-control"]), (504, "600", "no-store"))
                self.assertIn(b"(ran_too_long)", body)
                self.assertNotIn("proxy-status", head)
                self.assertGreaterEqual(self.controller.clock() - before, 0.2)
                self.assertIn(ended, self.app.ended[path])
        self.assertEqual((await self.get("/quick"))[0], 200)
        self.assertEqual((self.stats().terminated, self.stats().lost, self.stats().arrived), (3, 3, 4))

    async def test_who_accepts_json_gets_a_problem(self):
        _, head, body = await self.get("/await_long", "accept: application/json\r\n")
        self.assertEqual(head["content-type"], "application/problem+json")
        problem = json.loads(body)
        self.assertEqual((problem["status"], problem["reason"]), (504, "ran_too_long"))
        self.assertEqual(problem["retry-after"], 600)

    async def test_the_handlers_own_words_come_first(self):
        self.assertEqual((await self.get("/own_words"))[::2], (503, b"own words"))

    async def test_what_has_begun_or_is_deferred_or_has_no_class_is_not_terminated(self):
        self.assertEqual((await self.get("/stream"))[0], 200)
        self.assertEqual((await self.get("/deferred"))[0], 200)
        self.assertEqual((await self.get("/untouched"))[::2], (200, b"False"))
        self.assertEqual((self.stats().arrived, self.stats().lost, self.stats().deferred), (2, 0, 1))

    async def test_a_falling_threshold_reaches_who_runs(self):
        self.controller = Controller(Class("search", run_min=0.05, run_max=ENDLESS, interval=0.2))
        await self.serve(self.controller)
        answer = asyncio.ensure_future(self.get("/await_long"))
        await self.app.begun.get()
        for _ in range(20):
            self.controller.lost("search")
        # Again in each interval, as one may just have ended.
        while not answer.done():
            self.controller.arrived("search")
            self.controller.lost("search")
            await asyncio.sleep(0.02)
        self.assertEqual((await answer)[0], 504)

    async def test_who_runs_through_several_intervals_is_terminated_all_the_same(self):
        self.controller = Controller(Class("search", run_min=0.05, run_max=0.35, interval=0.1))
        await self.serve(self.controller)
        before = self.controller.clock()
        self.assertEqual((await self.get("/await_long"))[0], 504)
        self.assertGreaterEqual(self.controller.clock() - before, 0.35)

    async def test_tiny_deadlines_end_their_own_requests_and_lower_no_threshold(self):
        self.controller = Controller(Class("search", run_min=0.05, run_max=5, interval=600))
        await self.serve(self.controller)
        for text in ("1", "0", "20"):
            status, _, body = await self.get("/await_long", f"bywash-deadline: {text}\r\n")
            self.assertEqual(status, 504)
            self.assertIn(b"(deadline)", body)
        self.assertEqual((self.stats().deadline, self.stats().lost), (3, 0), "so far")
        # Who comes with nothing left does not begin.
        self.assertEqual((await self.get("/quick", "bywash-deadline: 0\r\n"))[0], 504)
        for nonsense in ("-1", "1.5", "0000000000", "x", "", "1\r\nbywash-deadline: 1"):
            self.assertEqual((await self.get("/echo", f"bywash-deadline: {nonsense}\r\n"))[0], 200)
        self.assertEqual(self.stats().deadline, 4)

    async def test_a_deadline_is_not_honoured_where_it_is_not_trusted(self):
        await self.serve(self.controller, trust_deadline=False)
        self.assertEqual((await self.get("/quick", "bywash-deadline: 0\r\n"))[0], 200)

    async def test_a_client_who_leaves_frees_the_handler(self):
        self.controller = Controller(Class("search", run_min=ENDLESS, run_max=ENDLESS))
        await self.serve(self.controller)
        for path in ("/await_long", "/in_a_thread"):
            _, writer = await self.connect(path)
            await asyncio.wait_for(self.app.begun.get(), PATIENCE)
            writer.close()
            await self.until(lambda: path in self.app.ended)
        await self.until(lambda: self.stats().running == 0)
        self.assertEqual((self.stats().client_left, self.stats().lost), (2, 0))

    async def test_bodies_arrive_and_what_follows_the_response_is_left_alone(self):
        self.controller = Controller(Class("search", run_min=ENDLESS, run_max=ENDLESS))
        await self.serve(self.controller)
        body = bytes(range(256)) * 2000
        status, _, echo = await self.get("/echo", body=body)
        self.assertEqual((status, len(echo)), (200, len(body)))
        self.assertTrue(echo == body)
        self.assertEqual((await self.get("/after"))[0], 200)
        await self.until(lambda: "/after" in self.app.ended)
        self.assertEqual(self.app.ended["/after"], "finished")
        self.assertEqual(self.stats().client_left, 0)

    async def test_an_error_is_the_servers_as_before(self):
        self.controller = Controller(Class("search", run_min=ENDLESS, run_max=ENDLESS))
        await self.serve(self.controller)
        self.assertEqual((await self.get("/breaks"))[0], 500)
        await self.until(lambda: gc.collect() >= 0 and not len(self.app.tokens))
        self.assertEqual(self.stats().running, 0)

    async def test_of_two_hundred_at_once_nothing_stays_behind(self):
        self.controller = Controller(Class("search", run_min=0.05, run_max=5, interval=600))
        await self.serve(self.controller)
        await self.get("/quick")
        tasks = len(asyncio.all_tasks())
        paths = ["/quick", "/echo", "/await_long", "/stream"] * 50
        answers = await asyncio.gather(
            *(self.get(path, "bywash-deadline: 150\r\n" if path == "/await_long" else "") for path in paths)
        )
        self.assertEqual([answer[0] for answer in answers], [200, 200, 504, 200] * 50)
        self.assertEqual(self.stats().running, 0)
        await self.until(lambda: len(asyncio.all_tasks()) <= tasks)
        gc.collect()
        # A timer that is still armed would hold its token.
        await self.until(lambda: gc.collect() >= 0 and not len(self.app.tokens))


class WithoutAServer(unittest.IsolatedAsyncioTestCase):
    async def test_other_scopes_pass_untouched(self):
        seen = []

        async def app(scope, receive, send):
            seen.append((scope, receive, send))

        controller = Controller(Class("search", 1, 2))
        middleware = TerminateAsgi(app, controller, "search")
        scope = {"type": "lifespan"}
        await middleware(scope, 1, 2)
        self.assertEqual(seen, [(scope, 1, 2)])
        with self.assertRaises(bywash.SettingError):
            TerminateAsgi(app, controller, "page")

    async def test_own_words_are_the_only_ones_and_no_task_stays_behind(self):
        sent = []

        async def send(message):
            sent.append(message.get("status", message.get("body")))

        async def app(scope, receive, send):
            try:
                await asyncio.sleep(ENDLESS)
            except asyncio.CancelledError:
                await respond(send, b"own words", 503)

        middleware = TerminateAsgi(app, Controller(Class("search", 0.001, 0.01)), "search")
        await middleware({"type": "http", "headers": []}, asyncio.Event().wait, send)
        self.assertEqual(sent, [503, b"own words"])
        await asyncio.sleep(0)
        self.assertEqual(asyncio.all_tasks(), {asyncio.current_task()})

    async def test_a_server_that_cancels_leaves_no_handler_behind(self):
        begun = asyncio.Event()
        ended = []

        async def app(scope, receive, send):
            begun.set()
            try:
                await asyncio.sleep(ENDLESS)
            finally:
                ended.append(True)

        controller = Controller(Class("search", 1, 2))
        middleware = TerminateAsgi(app, controller, "search")
        scope = {"type": "http", "headers": []}
        serving = asyncio.ensure_future(middleware(scope, asyncio.Event().wait, None))
        await begun.wait()
        serving.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await serving
        self.assertEqual((ended, controller.stats()["search"].running), ([True], 0))


if __name__ == "__main__":
    unittest.main()
