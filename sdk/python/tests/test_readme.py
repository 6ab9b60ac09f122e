"""Tests that the example of README.md does what it says."""

import asyncio
import pathlib
import re
import unittest

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


class Example(unittest.TestCase):
    def ask(self, app, path, headers=()):
        """Return the status and the body of one request to an ASGI application."""
        sent = []

        async def run():
            async def send(message):
                sent.append(message)

            scope = {"type": "http", "path": path, "headers": list(headers)}
            await app(scope, asyncio.Event().wait, send)

        asyncio.run(run())
        return sent[0]["status"], sent[1]["body"]

    def test_the_example_runs(self):
        # The other examples need databases: they run in sdk/python/databases.
        example, *_ = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        names = {}
        exec(compile(example, str(README), "exec"), names)
        app, controller = names["app"], names["controller"]
        self.assertEqual(self.ask(app, "/search"), (200, b"500"))
        self.assertEqual(self.ask(app, "/search", [(b"bywash-deadline", b"0")])[0], 504)
        stats = controller.stats()["search"]
        self.assertEqual((stats.arrived, stats.deferred, stats.running), (2, 1, 0))
