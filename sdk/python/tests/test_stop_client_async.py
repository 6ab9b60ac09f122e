"""Tests of coroutines that use the stop daemon, also within requests of the middleware."""

import asyncio
import threading
import unittest

import bywash
from bywash import Class, Controller, Query, StopClient, TerminateAsgi, outgoing
from bywash.token import _current

from .clock import Clock
from .daemon import PATIENCE, Daemon

LEASE, RELEASE = "LEASE r1 shop 4711", "RELEASE r1 shop 4711"


class Case(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.clock = Clock()
        self.controller = Controller(Class("search", 1.0, 9.0), clock=self.clock)
        self.daemon = Daemon(self)
        self.stop_client = self.talk(PATIENCE)
        self.closed = []

    def talk(self, patience=0.1):
        stop_client = StopClient(self.daemon.path, patience=patience)
        self.addCleanup(stop_client.close)
        return stop_client

    async def asyncSetUp(self):
        # The debug mode of unittest would complain about the blocked loop.
        asyncio.get_running_loop().set_debug(False)
        self.token = self.controller.begin("search", request="r1")
        self.token.settle()
        _current.set(self.token)

    def query(self, number=4711):
        async def close():
            self.closed.append(number)

        return Query(self.stop_client, "shop", lambda: number, close)

    async def next(self):
        return await asyncio.to_thread(self.daemon.next)


class Coroutines(Case):
    async def test_a_connection_is_leased_from_before_a_query_to_after_it(self):
        async with self.query():
            self.assertEqual(self.daemon.lines(), [LEASE])
        self.assertEqual((self.daemon.lines(), self.closed), ([RELEASE], []))

    async def test_a_loop_goes_on_while_the_daemon_says_nothing(self):
        self.stop_client = self.talk()
        self.daemon.answer = lambda words: None
        turns = 0

        async def others():
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        going = asyncio.ensure_future(others())
        async with self.query():
            self.assertGreater(turns, 0)
        going.cancel()
        self.assertEqual((self.daemon.lines(), self.closed), ([LEASE], [4711]))

    async def test_an_answer_that_came_while_the_loop_was_held_up_is_one(self):
        def answer(words):
            threading.Timer(0.0, held.set).start()
            return "OK"

        self.stop_client = self.talk()
        held = threading.Event()
        self.daemon.answer = answer
        query = self.query()
        entering = asyncio.ensure_future(query.__aenter__())
        await asyncio.sleep(0)
        # Block the loop for longer than an answer may take, although the answer has come.
        held.wait(PATIENCE)
        threading.Event().wait(0.15)
        await entering
        await query.__aexit__(None, None, None)
        self.assertEqual((self.closed, self.stop_client.stats().leased), ([], 1))

    async def test_who_is_cancelled_between_his_lease_and_his_query_has_released_it(self):
        told = threading.Event()

        def answer(words):
            if words.startswith("LEASE"):
                told.wait(PATIENCE)
            return "OK"

        self.daemon.answer = answer

        async def work():
            async with self.query():
                self.fail("it began")

        working = asyncio.ensure_future(work())
        self.assertEqual(await self.next(), LEASE)
        working.cancel()
        await asyncio.sleep(0)
        told.set()
        with self.assertRaises(asyncio.CancelledError):
            await working
        self.assertEqual((self.daemon.lines(), self.closed), ([RELEASE], []))

    async def test_who_is_cancelled_while_he_releases_closes_the_connection(self):
        self.daemon.answer = lambda words: None if words.startswith("RELEASE") else "OK"

        async def work():
            async with self.query():
                pass

        working = asyncio.ensure_future(work())
        self.assertEqual((await self.next(), await self.next()), (LEASE, RELEASE))
        working.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await working
        self.assertEqual(self.closed, [4711])

    async def test_who_is_cancelled_twice_while_he_leases_closes_the_connection(self):
        self.daemon.answer = lambda words: None

        async def work():
            async with self.query():
                self.fail("it began")

        working = asyncio.ensure_future(work())
        self.assertEqual(await self.next(), LEASE)
        working.cancel()
        self.assertEqual(await self.next(), RELEASE)
        working.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await working
        self.assertEqual(self.closed, [4711])

    async def test_a_daemon_that_dies_ends_every_wait(self):
        self.daemon.answer = lambda words: None

        async def work(number):
            async with self.query(number):
                pass

        working = [asyncio.ensure_future(work(number)) for number in range(50)]
        for _ in working:
            await self.next()
        self.daemon.die()
        await asyncio.wait_for(asyncio.gather(*working), PATIENCE)
        self.assertEqual(sorted(self.closed), list(range(50)), "each may have been granted")


class Requests(Case):
    async def test_without_a_time_or_a_request_nothing_is_passed_on(self):
        self.assertEqual(self.token.outgoing(), {}, "no time ends it, and it came without a trace")
        _current.set(None)
        self.assertEqual(outgoing(), {})


    def test_what_is_no_connection_is_refused(self):
        with self.assertRaisesRegex(bywash.SettingError, "NoneType is not a connection of psycopg"):
            bywash.leased(None, self.stop_client, "shop")

    async def test_a_client_who_leaves_stops_what_his_request_has_leased(self):
        async def app(scope, receive, send):
            async with self.query():
                await asyncio.Event().wait()

        left = asyncio.Event()

        async def receive():
            await left.wait()
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"bywash-request", b"r2")]}
        asking = asyncio.ensure_future(TerminateAsgi(app, self.controller, "search")(scope, receive, None))
        self.assertTrue((await self.next()).startswith("LEASE r2 shop 4711 not-after="))
        left.set()
        await asyncio.wait_for(asking, PATIENCE)
        self.assertEqual(self.daemon.lines(), ["STOP r2 client_left scope=own", "RELEASE r2 shop 4711"])

if __name__ == "__main__":
    unittest.main()
