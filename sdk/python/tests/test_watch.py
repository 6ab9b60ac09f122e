"""Tests of requests that end while their query runs: the check, the stop, and the release."""

import asyncio
import time
import unittest

from bywash import Class, Controller, Terminated
from bywash.token import _current

from .daemon import PATIENCE
from .test_stop_client import LEASE, RELEASE, Cancelled, Case
from .test_stop_client_async import Case as AsyncCase

STOP = "STOP r1 client_left scope=own"


class Watched(Case):
    def setUp(self):
        super().setUp()
        self.short = Controller(Class("search", 0.05, 0.05), clock=self.clock)

    def work_for(self, token):
        was = _current.set(token)
        self.addCleanup(_current.reset, was)
        return token

    def test_a_query_that_is_longer_than_its_request_may_run_is_told_to_the_daemon(self):
        """The thread that runs the query only waits, like a thread of WSGI."""
        for name, left in (("ran_too_long", None), ("deadline", 0.01)):
            self.work_for(self.short.begin("search", left, "r1"))
            with self.assertRaises(Terminated) as caught, self.query():
                self.assertTrue(self.daemon.next().startswith(LEASE + " not-after="))
                self.clock.go(0.05)
                self.assertEqual(self.daemon.next(), f"STOP r1 {name} scope=own")
                raise Cancelled
            self.assertEqual(caught.exception.reason, name)
            self.assertEqual(self.daemon.next(), RELEASE)

    def test_somebody_looks_when_the_earliest_may_be_over_and_each_second(self):
        self.work_for(self.controller.begin("search", request="r1"))
        patience = self.stop_client.conversation()._patience_of_poll
        with self.query(1):
            self.assertLessEqual(patience(), 1000)
            self.work_for(self.short.begin("search", request="r2"))
            with self.query(2):
                self.assertLessEqual(patience(), 50)
                self.daemon.next(), self.daemon.next()
                self.clock.go(0.05)
                self.assertEqual(self.daemon.next(), "STOP r2 ran_too_long scope=own")

    def test_who_holds_no_lease_any_more_or_cannot_run_out_of_time_is_not_looked_at(self):
        token = self.work_for(self.controller.begin("search", request="r1"))
        with self.query():
            pass
        conversation = self.stop_client.conversation()
        self.assertEqual(conversation._held, {})
        self.clock.go(9)
        conversation._look()
        self.assertIsNone(token.reason)
        self.begin()
        with self.query():
            self.assertEqual(conversation._held, {}, "it is settled")
        self.assertIsNone(conversation._patience_of_poll(), "nobody wakes for nothing")

class Abandoned(AsyncCase):
    async def cancelled_within(self, leave):
        """Return the seconds from the end of the request to the release."""
        said, within = {}, asyncio.Event()

        def answer(words):
            said[words] = time.monotonic()
            return "OK"

        async def work():
            async with self.query():
                within.set()
                await asyncio.Event().wait()

        self.daemon.answer = answer
        working = asyncio.ensure_future(work())
        await asyncio.wait_for(within.wait(), PATIENCE)
        if leave:
            self.token.leave()
        over = time.monotonic()
        working.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await asyncio.wait_for(working, PATIENCE)
        self.assertEqual((STOP in said, self.closed), (leave, []))
        return said[RELEASE] - over

    async def test_the_release_of_what_a_driver_abandons_comes_a_moment_after_the_stop(self):
        self.assertGreaterEqual(await self.cancelled_within(leave=True), 0.09)

    async def test_who_is_cancelled_for_another_reason_releases_at_once(self):
        self.assertLess(min([await self.cancelled_within(leave=False) for _ in range(20)]), 0.09)


del Case, AsyncCase

if __name__ == "__main__":
    unittest.main()
