"""Tests that run the vectors of `sdk/conformance` on requests: fields, answers, thresholds, texts."""

import asyncio
import json
import unittest
from math import inf

import bywash
from bywash import Class, Controller, Terminated, TerminateAsgi, TerminateWsgi, current, outgoing
from bywash.unleased import is_control

from .conformance import MicroClock, flat, is_made, seconds, vectors


class Exchange:
    """A request without a server, sent through the middleware for ASGI or for WSGI."""

    def __init__(self, run_max, retry_after=None):
        self.clock = MicroClock()
        self.controller = Controller(
            Class("search", min(1.0, run_max), run_max, retry_after=retry_after), clock=self.clock
        )

    def asgi(self, handle, fields, method="GET", **settings):
        """Return the status, the fields and the body of the answer; None if there is none."""
        sent = []

        async def app(scope, receive, send):
            handle()

        async def send(message):
            sent.append(message)

        async def ask():
            headers = [(name.encode(), value.encode()) for name, value in fields]
            scope = {"type": "http", "method": method, "path": "/", "headers": headers}
            await TerminateAsgi(app, self.controller, "search", **settings)(scope, asyncio.Event().wait, send)

        asyncio.run(ask())
        if not sent:
            return None
        start, body = sent
        head = {name.decode(): value.decode() for name, value in start["headers"]}
        return start["status"], head, body["body"]

    def wsgi(self, handle, fields, method="GET", **settings):
        answers = []

        def app(environ, start_response):
            handle()
            return []

        def start_response(status, head, error=None):
            answers.append((int(status.split()[0]), {name.lower(): value for name, value in head}))

        environ = {"REQUEST_METHOD": method}
        for name, value in fields:
            key = "HTTP_" + name.upper().replace("-", "_")
            # A server joins several values, and decodes them like this (PEP 3333).
            text = value.encode().decode("latin-1")
            environ[key] = f"{environ[key]},{text}" if key in environ else text
        response = TerminateWsgi(app, self.controller, "search", **settings)(environ, start_response)
        body = b"".join(response)
        response.close()
        return (*answers[-1], body) if answers else None


BOTH = ("asgi", "wsgi")


class Fields(unittest.TestCase):
    def each(self, file, run):
        for vector in vectors(file, "requests"):
            for by in BOTH:
                with self.subTest(vector["why"], by=by):
                    run(vector, by)

    def test_names(self):
        made = set()

        def names(vector, by):
            seen = []
            fields = [("bywash-request", value) for value in vector["values"]]
            trusts = vector.get("trusts_names", True)
            getattr(Exchange(9.0), by)(lambda: seen.append(current().request), fields, trust_request=trusts)
            (name,) = seen
            if vector["name"] is not None:
                self.assertEqual(name, vector["name"])
            else:
                self.assertTrue(is_made(name), name)
                self.assertNotIn(name, made)
                made.add(name)

        self.each("names.json", names)

    def test_names_of_databases(self):
        # The name of a database is checked before the connection, which is none.
        for vector in vectors("names.json", "databases"):
            expected = "is not a connection" if vector["is_valid"] else "database is"
            with self.subTest(vector["why"]), self.assertRaisesRegex(bywash.SettingError, expected):
                bywash.leased(None, None, vector["name"])

    def test_deadlines(self):
        def deadlines(vector, by):
            exchange, left = Exchange(3600.0), []
            fields = [("bywash-deadline", value) for value in vector["values"]]
            trusts = vector.get("trusts_deadlines", True)
            ask = getattr(exchange, by)
            answer = ask(lambda: left.append(current().left()), fields, trust_deadline=trusts)
            stats = exchange.controller.stats()["search"]
            if vector["left_ms"] == 0:
                self.assertEqual((answer[0], left), (504, []), "it does not begin")
                self.assertEqual((stats.deadline, stats.lost), (1, 0))
            else:
                self.assertAlmostEqual(left[0], seconds(vector["left_ms"]), delta=1e-7)
                self.assertEqual((stats.deadline, stats.lost), (0, 0))

        self.each("deadlines.json", deadlines)

    def test_outgoing(self):
        def passes_on(vector, by):
            exchange, seen = Exchange(9.0), []

            def handle():
                exchange.clock.go(vector.get("after_ms", 0))
                if vector.get("settles"):
                    current().settle()
                seen.append(outgoing())

            getattr(exchange, by)(handle, vector["fields"], trust_request=vector.get("trusts_names", True))
            (fields,) = seen
            expected = dict(vector["outgoing"])
            if expected["bywash-request"] is None:
                self.assertTrue(is_made(fields["bywash-request"]), fields)
                expected["bywash-request"] = fields["bywash-request"]
            self.assertEqual(fields, expected)

        self.each("outgoing.json", passes_on)


class Answers(unittest.TestCase):
    def test_answers(self):
        for vector in vectors("answers.json", "answers"):
            for by in BOTH:
                # The middleware for ASGI sends nothing to a client that has left.
                if (by, vector["reason"]) != ("asgi", "client_left"):
                    with self.subTest(vector["why"], by=by):
                        self.answers(vector, by)

    def answers(self, vector, by):
        _, _, body = self.answer(vector, by, "GET")
        status, head, said = self.answer(vector, by, vector["method"])
        self.assertEqual(status, vector["status"])
        self.assertEqual(head, {**vector["fields"], "content-length": str(len(body))})
        self.assertEqual(said, b"" if vector["method"] == "HEAD" else body)
        if "problem" in vector:
            self.assertEqual(json.loads(body), vector["problem"])
        else:
            self.assertEqual(body.decode(), vector["text"])

    def answer(self, vector, by, method):
        exchange = Exchange(9.0, seconds(vector["retry_after_ms"]))
        fields = [("accept", value) for value in vector["accept"]]
        if vector["reason"] == "deadline":
            fields.append(("bywash-deadline", "0"))

        def handle():
            if vector["reason"] == "client_left":
                current().leave()
            exchange.clock.go(9000)
            bywash.checkpoint()

        return getattr(exchange, by)(handle, fields, method)


class Statements(unittest.TestCase):
    def test_statements(self):
        for vector in vectors("statements.json", "statements"):
            for text in (vector["text"], vector["text"].encode("latin-1")):
                with self.subTest(vector["why"], text=text):
                    self.assertEqual(is_control(text), vector["is_control"])


class Steps:
    """The state for the steps of one vector: a controller, its clock and its requests."""

    def __init__(self, case):
        self.case = case
        self.clock = MicroClock()
        classes = [Class(name, 1.0, 9.0) for name in ("search", "other")]
        self.controller = Controller(*classes, clock=self.clock)
        self.tokens = {}

    def run(self, steps):
        for name, *args in flat(steps):
            getattr(self, name)(*args)

    def go(self, milliseconds):
        self.clock.go(milliseconds)

    def arrived(self, count):
        for _ in range(count):
            self.controller.arrived("search")

    def lost(self, count):
        for _ in range(count):
            self.controller.lost("search")

    def begin(self, name, left=None, count=1):
        self.tokens[name] = [self.controller.begin("search", seconds(left), name) for _ in range(count)]

    def settle(self, name):
        for token in self.tokens[name]:
            token.settle()

    def leave(self, name):
        for token in self.tokens[name]:
            token.leave()

    def end(self, name):
        for token in self.tokens[name]:
            token.end()

    def checkpoint(self, name, reason):
        for token in self.tokens[name]:
            self.raises(token.checkpoint, token, reason)

    def cancel_termination(self, name, reason):
        for token in self.tokens[name]:
            self.raises(token.cancel_termination, token, reason)

    def raises(self, call, token, reason):
        if reason is None:
            call()
            self.case.assertFalse(token.is_terminated)
            return
        with self.case.assertRaises(Terminated) as caught:
            call()
        self.case.assertEqual((caught.exception.reason, token.reason), (reason, reason))
        self.case.assertEqual((token.is_terminated, token.left()), (True, 0.0))

    def is_terminated(self, name, expected):
        for token in self.tokens[name]:
            self.case.assertEqual(token.is_terminated, expected)

    def reason(self, name, expected):
        for token in self.tokens[name]:
            self.case.assertEqual(token.reason, expected)

    def left(self, name, expected):
        for token in self.tokens[name]:
            self.is_about(token.left(), expected)

    def due(self, name, expected):
        for token in self.tokens[name]:
            self.is_about(token.deadline, expected)

    def threshold(self, name, expected):
        self.is_about(self.controller.threshold(name), expected)

    def is_about(self, time, expected):
        self.case.assertAlmostEqual(time, inf if expected is None else seconds(expected), delta=1e-7)

    def stats(self, expected):
        stats = self.controller.stats()["search"]
        self.case.assertEqual({name: round(getattr(stats, name), 9) for name in expected}, expected)


class Sequences(unittest.TestCase):
    def test_sequences(self):
        for vector in vectors("controller.json", "sequences"):
            with self.subTest(vector["why"]):
                Steps(self).run(vector["steps"])


if __name__ == "__main__":
    unittest.main()
