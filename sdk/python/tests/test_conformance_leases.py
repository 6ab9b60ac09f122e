"""Tests that run the transcripts of `sdk/conformance` with a fake stop daemon."""

import time
import unittest

from bywash import Query, StopClient, Taken, Terminated
from bywash.token import _current

from .conformance import vectors
from .daemon import PATIENCE, Daemon
from .test_conformance import Steps
from .test_stop_client import Cancelled


class Transcript(Steps):
    """The steps of a transcript, whose queries run on threads' drivers."""

    def __init__(self, case, vector):
        super().__init__(case)
        self.said = dict(vector.get("answers", {}))
        self.happens = None
        self.daemon = Daemon(case)
        self.daemon.reply = self.reply
        if not vector.get("daemon", True):
            self.daemon.die()
        # The default, if the daemon does not answer; else longer than anything takes.
        self.stop_client = StopClient(self.daemon.path, patience=0.1 if None in self.said.values() else PATIENCE)
        case.addCleanup(self.stop_client.close)
        # By name: a query and the connections that it has closed. Those that are not released yet.
        self.queries, self.began = {}, []
        self.heard, self.checked = [], 0

    def reply(self, number, words):
        self.heard.append(words)
        verb, request, *_ = words.split()
        if verb == "LEASE" and self.happens is not None:
            step, self.happens = self.happens, None
            self.run([step])
        answer = self.said.get(f"{verb} {request}", self.said.get(verb, "N OK"))
        return "" if answer is None else answer.replace("N", number, 1) + "\n"

    def finish(self):
        for query in self.began:
            query.__exit__(None, None, None)

    def answers(self, answers):
        self.said.update(answers)

    def meanwhile(self, step):
        self.happens = step

    def begin_nameless(self, name):
        self.tokens[name] = [self.controller.begin("search")]

    def lease(self, name, token, connection, outcome):
        closed = []
        was = _current.set(None if token is None else self.tokens[token][0])
        query = Query(self.stop_client, "shop", lambda: connection, lambda: closed.append(connection))
        _current.reset(was)
        self.queries[name] = query, closed
        before = time.time()
        if outcome == "runs":
            query.__enter__()
            self.began.append(query)
        elif outcome == "taken":
            self.case.assertRaises(Taken, query.__enter__)
        else:
            with self.case.assertRaises(Terminated) as caught:
                query.__enter__()
            self.case.assertEqual(caught.exception.reason, outcome)
        self.during = before, time.time()
        self.case.assertEqual(closed, [connection] if outcome == "taken" else [])

    def release(self, name, end):
        query, closed = self.queries[name]
        query.__exit__(None, None, None)
        self.began.remove(query)
        self.case.assertEqual(len(closed), {"kept": 0, "closed": 1}[end])

    def cancelled(self, name, reason):
        query, closed = self.queries[name]
        self.began.remove(query)
        if reason is None:
            query.__exit__(Cancelled, Cancelled(), None)
        else:
            with self.case.assertRaises(Terminated) as caught:
                query.__exit__(Cancelled, Cancelled(), None)
            self.case.assertEqual(caught.exception.reason, reason)
        self.case.assertEqual(closed, [])

    def lines(self, expected):
        self.case.until(lambda: len(self.heard) >= self.checked + len(expected))
        lines = [words.partition(" not-after=")[0] for words in self.heard[self.checked :]]
        self.checked = len(self.heard)
        self.case.assertEqual(lines, expected)

    def not_after(self, milliseconds):
        _, is_there, moment = self.heard[-1].partition(" not-after=")
        self.case.assertEqual(bool(is_there), milliseconds is not None)
        if is_there:
            before, after = (int(moment * 1000 + milliseconds) for moment in self.during)
            self.case.assertTrue(before - 1 <= int(moment) <= after + 1, (before, moment, after))

    def stats(self, expected):
        """Wait for these counts: 0 for one that is not named, and any for None."""
        self.case.assertLessEqual(expected.keys(), vars(self.stop_client.stats()).keys(), "a count is not known")

        def are():
            counts = vars(self.stop_client.stats())
            return {name: count for name, count in counts.items() if expected.get(name, 0) is not None}

        wanted = {name: expected.get(name, 0) for name in are()}
        self.case.until(lambda: are() == wanted, are)


class Transcripts(unittest.TestCase):
    def until(self, holds, what=lambda: ""):
        for _ in range(PATIENCE * 100):
            if holds():
                return
            time.sleep(0.01)
        self.fail(f"it did not come about: {what()}")

    def test_transcripts(self):
        for vector in vectors("leases.json", "transcripts") + vectors("stops.json", "transcripts"):
            with self.subTest(vector["why"], answers=vector.get("answers")):
                transcript = Transcript(self, vector)
                transcript.run(vector["steps"])
                transcript.finish()


if __name__ == "__main__":
    unittest.main()
