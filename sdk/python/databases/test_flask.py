"""The example of README.md with Flask and psycopg's pool, on gunicorn and a real database."""

import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from stage import PATIENCE, POSTGRES, Stage, Watch, conninfo, free_port, thread, until
from test_frameworks import SLEEP, example_text

#: Handlers that the example does not have.
MORE = '''

import time

from bywash import Terminated


@app.get("/loop")
def loop():
    while True:
        checkpoint()
        time.sleep(0.001)


@app.get("/own")
def own():
    try:
        loop()
    except Terminated:
        return "own"


@app.get("/fails")
def fails():
    raise RuntimeError("no")


@app.get("/stats")
def stats():
    return {"leased": stop_client.stats().leased, "running": controller.stats()["search"].running}
'''


@unittest.skipIf(POSTGRES is None, "NOT TESTED: PostgreSQL is not there")
class OnGunicorn(unittest.TestCase):
    def serve(self, *options):
        """Serve the example in a worker of gunicorn."""
        self.stage, self.watch = Stage(), Watch("postgres")
        self.addCleanup(self.stage.close)
        self.addCleanup(self.watch.connection.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name)
        (path / "example.py").write_text(example_text("from flask") + MORE)
        self.port = free_port()
        words = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{self.port}", "--chdir", folder.name]
        environment = {**os.environ, "DATABASE": conninfo(), "BYWASH_STOPD": self.stage.path}
        with open(path / "log", "w") as log:
            server = subprocess.Popen([*words, *options, "example:app"], env=environment, stdout=log, stderr=log)
        self.addCleanup(server.wait, PATIENCE)
        self.addCleanup(server.terminate)
        until(self.is_there, (path / "log").read_text)

    def is_there(self):
        try:
            return self.get("/stats")[0] == 200
        except OSError:
            return False

    def get(self, path, **fields):
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            headers = {name.replace("_", "-"): value for name, value in fields.items()}
            client.request("GET", path, headers=headers)
            response = client.getresponse()
            return response.status, response.read().decode()
        finally:
            client.close()

    def search(self, query, **fields):
        return self.get(f"/search?query={urllib.parse.quote(query)}", **fields)

    def laws(self):
        status, body = self.search("SELECT 1")
        self.assertEqual((status, json.loads(body)), (200, {"found": [1]}))
        self.assertEqual(json.loads(self.get("/stats")[1])["leased"], 1)
        # A handler that works too long ends at its checkpoint, or answers itself.
        status, body = self.get("/loop", bywash_deadline="100")
        self.assertEqual((status, "(deadline)" in body), (504, True))
        self.assertEqual(self.get("/own", bywash_deadline="100"), (200, "own"))
        self.assertEqual(self.get("/fails")[0], 500)
        # The gateway stops the request: its query ends.
        join = thread(lambda: self.search(SLEEP, bywash_request="f1"))
        until(lambda: self.watch.running() == 1)
        self.assertEqual(self.stage.stop("f1", "deadline"), "1 OK cancelled=1 spared=0")
        self.assertEqual(join()[0], 504)
        # The request reaches its deadline, which this process reports.
        self.assertEqual(self.search(SLEEP, bywash_deadline="300")[0], 504)
        until(lambda: self.watch.running() == 0)
        # The connection goes back to its pool in order.
        self.assertEqual(self.search("SELECT 1")[0], 200)
        # The request for the counts is running itself. A thread may still end the one before.
        until(lambda: json.loads(self.get("/stats")[1])["running"] == 1)

    def test_the_example_of_flask(self):
        self.serve()
        self.laws()

    def test_the_example_of_flask_with_threads(self):
        self.serve("--threads", "4")
        self.laws()


if __name__ == "__main__":
    unittest.main()
