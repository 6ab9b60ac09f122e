"""The middleware on the standard library's server over loopback."""

import http.client
import socket
import socketserver
import threading
import time
import unittest
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import bywash
from bywash import Class, Controller, TerminateWsgi

PATIENCE = 20


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


class Threads(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 256


def compute():
    while True:
        bywash.checkpoint()
        # Two hundred threads that all compute would wait for each other.
        time.sleep(0.001)


def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/compute":
        compute()
    if path == "/own_words":
        try:
            compute()
        except bywash.Terminated:
            start_response("503 Busy", [("Content-Type", "text/plain")])
            return [b"own words"]
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/late":
        return late()
    if path == "/stream":
        return stream()
    if path == "/endless":
        return endless()
    if path == "/deferred":
        environ["bywash.token"].cancel_termination()
        outlast()
    if path == "/untouched":
        outlast()
    return [str("bywash.token" in environ).encode()]


def outlast():
    until = time.monotonic() + 0.4
    while time.monotonic() < until:
        bywash.checkpoint()


def late():
    yield b""
    compute()


def stream():
    yield b"a"
    outlast()
    yield b"b"


def endless():
    while True:
        yield b"x" * 65536


class OnWsgiref(unittest.TestCase):
    def setUp(self):
        self.serve(Controller(Class("search", run_min=0.02, run_max=0.2, interval=600)))

    def serve(self, controller):
        self.controller = controller

        def class_of(environ):
            return None if environ["PATH_INFO"] == "/untouched" else "search"

        self.server = make_server(
            "127.0.0.1", 0, TerminateWsgi(app, controller, class_of), Threads, Quiet
        )
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.addCleanup(thread.join, PATIENCE)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def get(self, path, **head):
        client = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=PATIENCE)
        client.request("GET", path, headers={key.replace("_", "-"): value for key, value in head.items()})
        response = client.getresponse()
        answer = response.status, response.headers, response.read()
        client.close()
        return answer

    def stats(self):
        return self.controller.stats()["search"]

    def idle(self):
        """An answer may come before its thread is done."""
        until = time.monotonic() + PATIENCE
        while self.stats().running and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual(self.stats().running, 0)

    def test_a_checkpoint_ends_a_long_handler_with_504_and_a_short_one_gets_200(self):
        for path in ("/compute", "/late"):
            status, head, body = self.get(path)
            self.assertEqual((status, head["Retry-After"]), (504, "600"), path)
            self.assertIn(b"(ran_too_long)", body)
        self.assertEqual(self.get("/quick")[0], 200)
        self.idle()
        self.assertEqual((self.stats().lost, self.stats().arrived), (2, 3))
        status, head, body = self.get("/compute", accept="application/json")
        self.assertEqual(head["Content-Type"], "application/problem+json")
        self.assertIn(b'"reason": "ran_too_long"', body)

    def test_own_words_come_first_and_who_has_begun_is_not_terminated(self):
        self.assertEqual(self.get("/own_words")[::2], (503, b"own words"))
        self.assertEqual(self.get("/stream")[::2], (200, b"ab"))
        self.assertEqual(self.get("/deferred")[::2], (200, b"True"))
        self.assertEqual(self.get("/untouched")[::2], (200, b"False"))
        self.assertEqual((self.stats().terminated, self.stats().client_left), (1, 0))

    def test_tiny_deadlines_lower_no_threshold(self):
        self.serve(Controller(Class("search", run_min=0.02, run_max=30, interval=600)))
        for text in ("0", "10"):
            status, _, body = self.get("/compute", bywash_deadline=text)
            self.assertEqual(status, 504)
            self.assertIn(b"(deadline)", body)
        self.assertEqual((self.stats().deadline, self.stats().lost), (2, 0))
        self.assertEqual(self.get("/quick", bywash_deadline="-1")[0], 200)

    def test_a_response_that_nobody_reads_to_its_end_was_left(self):
        client = socket.create_connection(("127.0.0.1", self.server.server_port))
        client.sendall(b"GET /endless HTTP/1.0\r\n\r\n")
        client.recv(1)
        client.close()
        self.idle()
        self.assertEqual((self.stats().client_left, self.stats().lost), (1, 0))

    def test_of_two_hundred_at_once_nothing_stays_behind(self):
        self.serve(Controller(Class("search", run_min=30, run_max=30, interval=600)))
        statuses = []

        def ask(path):
            head = {"bywash_deadline": "200"} if path == "/late" else {}
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

    def test_a_class_that_is_not_declared_is_an_error_at_once(self):
        with self.assertRaises(bywash.SettingError):
            TerminateWsgi(app, self.controller, "page")


if __name__ == "__main__":
    unittest.main()
