"""Tests of the middleware on the standard library's server. Handlers advance the clock."""

import http.client
import socket
import socketserver
import threading
import time
import unittest
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import bywash
from bywash import Class, Controller, TerminateWsgi

from .clock import Clock

PATIENCE = 60
ENDLESS = 600


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


class Threads(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 256


class App:
    def __init__(self, clock):
        self.clock = clock

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        if path == "/compute":
            self.compute()
        if path == "/own_words":
            try:
                self.compute()
            except bywash.Terminated:
                start_response("503 Busy", [("Content-Type", "text/plain")])
                return [b"own words"]
        start_response("200 OK", [("Content-Type", "text/plain"), ("Set-Cookie", "a=b"), ("Location", "/a")])
        if path == "/late":
            return self.late()
        if path == "/stream":
            return self.stream()
        if path == "/endless":
            return endless()
        if path == "/deferred":
            environ["bywash.token"].cancel_termination()
            self.outlast()
        if path == "/untouched":
            self.outlast()
        return [str("bywash.token" in environ).encode()]

    def compute(self):
        while True:
            bywash.checkpoint()
            self.clock.go(0.001)

    def outlast(self):
        self.clock.go(ENDLESS)
        bywash.checkpoint()

    def late(self):
        yield b""
        self.compute()

    def stream(self):
        yield b"a"
        self.outlast()
        yield b"b"


def endless():
    while True:
        yield b"x" * 65536


class OnWsgiref(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.serve(run_min=0.02, run_max=0.2)

    def serve(self, **bounds):
        declared = Class("search", **bounds, interval=3600, retry_after=ENDLESS)
        self.controller = Controller(declared, clock=self.clock)

        def class_of(environ):
            return None if environ["PATH_INFO"] == "/untouched" else "search"

        app = TerminateWsgi(App(self.clock), self.controller, class_of)
        self.server = make_server("127.0.0.1", 0, app, Threads, Quiet)
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.addCleanup(thread.join, PATIENCE)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def get(self, path, method="GET", **head):
        client = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=PATIENCE)
        client.request(method, path, headers={key.replace("_", "-"): value for key, value in head.items()})
        response = client.getresponse()
        answer = response.status, response.headers, response.read()
        client.close()
        return answer

    def stats(self):
        return self.controller.stats()["search"]

    def idle(self):
        """Wait until no request runs, because an answer may come before its thread has ended."""
        for _ in range(PATIENCE * 100):
            if not self.stats().running:
                return
            time.sleep(0.01)
        self.fail("somebody still runs")

    def test_a_checkpoint_ends_a_long_handler_with_504_and_a_short_one_gets_200(self):
        for path in ("/compute", "/late"):
            status, head, body = self.get(path)
            self.assertEqual((status, head["Retry-After"], head["Cache-Control"]), (504, "600", "no-store"), path)
            self.assertEqual((head["Set-Cookie"], head["Location"]), (None, None), "the handler's")
            self.assertIn(b"(ran_too_long)", body)
        self.assertEqual(self.get("/quick")[0], 200)
        self.idle()
        self.assertEqual((self.stats().lost, self.stats().arrived), (2, 3))

    def test_own_words_come_first_and_who_has_begun_is_not_terminated(self):
        self.assertEqual(self.get("/own_words")[::2], (503, b"own words"))
        self.assertEqual(self.get("/stream")[::2], (200, b"ab"))
        self.assertEqual(self.get("/deferred")[::2], (200, b"True"))
        self.assertEqual(self.get("/untouched")[::2], (200, b"False"))
        self.idle()
        self.assertEqual((self.stats().terminated, self.stats().client_left), (1, 0))

    def test_a_server_learns_the_length_of_a_body_that_has_one(self):
        self.assertEqual(self.get("/quick")[1]["Content-Length"], "4")
        self.assertIsNone(self.get("/stream")[1]["Content-Length"])

    def test_who_asks_for_the_head_gets_no_body(self):
        for path in ("/compute", "/late"):
            _, wanted, body = self.get(path)
            status, head, _ = self.get(path, method="HEAD")
            self.assertEqual((status, head["Content-Length"]), (504, str(len(body))))
            self.assertEqual(head["Retry-After"], wanted["Retry-After"])
        # http.client reads no body of a HEAD, so use a plain socket.
        client = socket.create_connection(("127.0.0.1", self.server.server_port), PATIENCE)
        client.sendall(b"HEAD /compute HTTP/1.0\r\n\r\n")
        with client, client.makefile("rb") as stream:
            self.assertTrue(stream.read().endswith(b"\r\n\r\n"))
        self.idle()

    def test_tiny_deadlines_lower_no_threshold_and_long_ones_do(self):
        self.serve(run_min=1, run_max=30)
        for text in ("0", "10"):
            status, head, body = self.get("/compute", bywash_deadline=text)
            self.assertEqual((status, head["Retry-After"], head["Cache-Control"]), (504, None, "no-store"))
            self.assertIn(b"(deadline)", body)
        self.assertEqual((self.stats().deadline, self.stats().lost), (2, 0))
        self.assertEqual(self.get("/compute", bywash_deadline="1500")[0], 504)
        self.assertEqual((self.stats().deadline, self.stats().lost), (3, 1))

    def test_a_response_that_nobody_reads_to_its_end_was_left(self):
        client = socket.create_connection(("127.0.0.1", self.server.server_port))
        client.sendall(b"GET /endless HTTP/1.0\r\n\r\n")
        client.recv(1)
        client.close()
        self.idle()
        self.assertEqual((self.stats().client_left, self.stats().lost), (1, 0))

    def test_of_two_hundred_at_once_nothing_stays_behind(self):
        self.serve(run_min=3600, run_max=3600)
        statuses = []

        def ask(path):
            head = {"bywash_deadline": "20"} if path == "/late" else {}
            statuses.append(self.get(path, **head)[0])

        paths = ["/quick", "/late"] * 100
        threads = [threading.Thread(target=ask, args=(path,)) for path in paths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual((statuses.count(200), statuses.count(504)), (100, 100))
        self.idle()
        self.assertEqual((self.stats().deadline, self.stats().lost), (100, 0))


class Broken(Exception):
    pass


class Body:
    """A response body that behaves as the test says, and records whether it was closed."""

    def __init__(self, on_iter=None, on_next=None, on_close=None):
        self._on = {"iter": on_iter, "next": on_next, "close": on_close}
        self.is_closed = False

    def _do(self, step):
        if self._on[step] is not None:
            self._on[step]()

    def __iter__(self):
        self._do("iter")
        return self

    def __next__(self):
        self._do("next")
        return b"a"

    def close(self):
        self.is_closed = True
        self._do("close")


class WithoutAServer(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.controller = Controller(Class("search", 1.0, 9.0), clock=self.clock)

    def stats(self):
        return self.controller.stats()["search"]

    def call(self, app, start_response=lambda *_: None, chunks=None, **environ):
        """Do what a server does: call the application, read `chunks` chunks, and close the body."""
        body = TerminateWsgi(app, self.controller, "search")({"REQUEST_METHOD": "GET", **environ}, start_response)
        try:
            read = []
            for chunk in body:
                read.append(chunk)
                if len(read) == chunks:
                    break
            return read
        finally:
            body.close()

    def overdue(self):
        self.clock.go(9)
        bywash.checkpoint()

    def breaks(self, *_):
        raise Broken

    def test_a_class_that_is_not_declared_is_an_error(self):
        with self.assertRaises(bywash.SettingError):
            TerminateWsgi(None, self.controller, "page")
        with self.assertRaisesRegex(bywash.SettingError, "page"):
            TerminateWsgi(None, self.controller, lambda environ: "page")({}, None)

    def test_of_two_middlewares_the_outer_one_decides(self):
        def app(environ, start_response):
            return [environ["bywash.token"].name.encode()]

        controller = Controller(Class("outer", 1, 2), Class("inner", 1, 2), clock=self.clock)
        nested = TerminateWsgi(app, controller, "inner")
        self.assertEqual(list(TerminateWsgi(nested, controller, "outer")({}, None)), [b"outer"])
        stats = controller.stats()
        self.assertEqual((stats["outer"].arrived, stats["inner"].arrived), (1, 0))
        passing = TerminateWsgi(nested, controller, lambda environ: None)
        self.assertEqual(list(passing({}, None)), [b"inner"])

    def test_no_error_anywhere_leaves_a_request_running(self):
        late = {"on_next": self.overdue}
        for what, app, start_response in [
            ("the application", self.breaks, None),
            ("no body", lambda *_: None, None),
            ("iter", lambda *_: Body(on_iter=self.breaks), None),
            ("next", lambda *_: Body(on_next=self.breaks), None),
            ("close", lambda *_: Body(on_close=self.breaks), None),
            ("the answer to the call", lambda *_: self.overdue(), self.breaks),
            ("the answer to iter", lambda *_: Body(on_iter=self.overdue), self.breaks),
            ("the answer to next", lambda *_: Body(**late), self.breaks),
        ]:
            with self.subTest(what), self.assertRaises((Broken, TypeError)):
                self.call(app, start_response, chunks=2)
            self.assertEqual(self.stats().running, 0, what)

    def test_an_answer_that_fails_ends_its_request_before_the_server_closes(self):
        app = TerminateWsgi(lambda *_: Body(on_next=self.overdue), self.controller, "search")
        body = app({}, self.breaks)
        with self.assertRaises(Broken):
            next(body)
        self.assertEqual(self.stats().running, 0)

    def test_a_body_that_the_server_never_gets_is_closed(self):
        for start_response, on_iter in [(None, self.breaks), (self.breaks, self.overdue)]:
            body = Body(on_iter=on_iter)
            with self.assertRaises(Broken):
                TerminateWsgi(lambda *_: body, self.controller, "search")({}, start_response)
            self.assertTrue(body.is_closed)
        self.assertEqual(self.stats().client_left, 0)

    def test_a_body_that_is_replaced_is_closed(self):
        body = Body(on_next=self.overdue)
        (text,) = self.call(lambda *_: body)
        self.assertIn(b"(ran_too_long)", text)
        self.assertTrue(body.is_closed)

    def test_only_a_body_that_has_a_length_shows_one(self):
        sized = TerminateWsgi(lambda *_: [b"a", b"b"], self.controller, "search")({}, None)
        self.assertEqual((len(sized), list(sized)), (2, [b"a", b"b"]))
        sized.close()
        # Servers look whether there is a length before they ask for it.
        self.assertFalse(hasattr(TerminateWsgi(lambda *_: Body(), self.controller, "search")({}, None), "__len__"))
        self.assertEqual((self.stats().running, self.stats().client_left), (1, 0))

    def test_a_reader_who_leaves_ends_nobody_who_is_deferred(self):
        ended = []

        def app(environ, start_response):
            environ["bywash.token"].cancel_termination()
            try:
                yield b"a"
                yield b"b"
            finally:
                bywash.checkpoint()
                ended.append(True)

        self.assertEqual(self.call(app, chunks=1), [b"a"])
        self.assertEqual((ended, self.stats().deferred, self.stats().client_left), ([True], 1, 0))

    def test_of_another_token_nothing_is_answered(self):
        def another(*_):
            self.controller.begin("search", 0.0).checkpoint()

        for app in (another, lambda *_: Body(on_iter=another), lambda *_: Body(on_next=another)):
            with self.assertRaisesRegex(RuntimeError, "another request's token") as caught:
                self.call(app, self.breaks)
            self.assertIsInstance(caught.exception.__cause__, bywash.Terminated)

    def test_it_never_gets_through_to_the_server(self):
        """Check that `Terminated` never reaches the server.

        It is not an Exception, so it may end a server's worker.
        """
        heard = []

        def own_words_and_more(environ, start_response):
            try:
                self.overdue()
            except bywash.Terminated:
                start_response("503 Busy", [])
            return more()

        def more():
            yield b"own words"
            bywash.checkpoint()

        def cleans_up(environ, start_response):
            try:
                yield b"a"
            finally:
                try:
                    bywash.checkpoint()
                except bywash.Terminated as terminated:
                    heard.append(terminated.reason)
                    raise

        with self.assertRaises(RuntimeError) as caught:
            self.call(own_words_and_more)
        self.assertIsInstance(caught.exception.__cause__, bywash.Terminated)
        self.assertEqual(self.call(cleans_up, chunks=1), [b"a"])
        self.assertEqual(heard, ["client_left"])
        self.assertEqual(self.stats().running, 0)


if __name__ == "__main__":
    unittest.main()
