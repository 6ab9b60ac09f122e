"""Tests of asyncpg without SQLAlchemy: its connections, its pools, and all its ways to run a query."""

import asyncio
import unittest

import asyncpg
from bywash import Taken, Terminated, leased
from stage import PATIENCE, POSTGRES, conninfo, request
from test_drivers import CancelledTask, SharedConnection

NOT_TESTED = "NOT TESTED: PostgreSQL is not there"


async def by_iteration(connection, query):
    async with connection.transaction():
        async for _ in connection.cursor(query):
            pass


async def by_cursor(connection, query):
    async with connection.transaction():
        cursor = await connection.cursor(query)
        await cursor.fetch(1)


async def by_statement(connection, query):
    statement = await connection.prepare(query)
    await statement.fetch()


#: The ways to run a query, by name.
WAYS = {
    "fetch": lambda connection, query: connection.fetch(query),
    "fetchrow": lambda connection, query: connection.fetchrow(query),
    "execute": lambda connection, query: connection.execute(query),
    "execute with an argument": lambda connection, query: connection.execute(f"{query} WHERE $1 = 1", 1),
    "executemany": lambda connection, query: connection.executemany(f"{query} WHERE $1 = 1", [(1,), (1,)]),
    "an iteration": by_iteration,
    "a cursor": by_cursor,
    "a prepared statement": by_statement,
}


class RefusedRelease:
    """The tests of a release that is not answered because the daemon has died."""

    async def cancelled_without_daemon(self, connection):
        """Run a query in a transaction of a request that is over, and return the error."""
        pid = await connection.fetchval("SELECT pg_backend_pid()")

        async def run():
            with request(self.controller, "r1") as token:
                async with connection.transaction():
                    tokens.append(token)
                    await connection.fetch(self.sleep())

        tokens = []
        running = asyncio.ensure_future(run())
        await self.runs(1)
        self.stage.kill()
        self.addAsyncCleanup(asyncio.to_thread, self.stage.start)
        tokens[0].leave()
        await asyncio.to_thread(self.watch.ask, f"SELECT pg_cancel_backend({pid})")
        (error,) = await asyncio.gather(running, return_exceptions=True)
        self.assertEqual(self.stop_client.stats().spoiled, 1)
        return error


@unittest.skipIf(POSTGRES is None, NOT_TESTED)
class Asyncpg(RefusedRelease, CancelledTask, unittest.IsolatedAsyncioTestCase):
    kind, name = "postgres", "shop"

    async def connect(self):
        connection = await asyncpg.connect(conninfo())
        self.addAsyncCleanup(connection.close)
        return connection

    async def run_query(self, connection, query):
        await connection.fetchval(query)

    async def test_the_query_of_a_stopped_request_is_cancelled_however_it_runs(self):
        connection = await self.open()

        async def run(name, way):
            with request(self.controller, name):
                await way(connection, self.sleep())

        for turn, (what, way) in enumerate(WAYS.items()):
            with self.subTest(what):
                running = asyncio.ensure_future(run(f"w{turn}", way))
                await self.runs(1)
                self.assertEqual(await self.stop(f"w{turn}"), "1 OK cancelled=1 spared=0")
                with self.assertRaises(Terminated) as caught:
                    await running
                self.assertEqual(caught.exception.reason, "client_left")
                await self.runs(0)
                self.assertFalse(connection.is_in_transaction())
                with request(self.controller, f"x{turn}"):
                    self.assertEqual(await connection.fetchval("SELECT 1"), 1)

    async def test_the_daemon_spares_what_is_copied_and_its_request_is_over_all_the_same(self):
        connection, parts = await self.open(), []

        async def output(part):
            parts.append(part)

        async def run():
            with request(self.controller, "c1"):
                await connection.copy_from_query(self.sleep(0.5), output=output)
                await connection.fetch("SELECT 1")

        running = asyncio.ensure_future(run())
        await self.runs(1)
        self.assertEqual(await self.stop("c1"), "1 OK cancelled=0 spared=1")
        with self.assertRaises(Terminated):
            await running
        self.assertEqual(parts, [b"\n"])

    async def test_a_request_that_is_over_rolls_back_to_its_savepoint(self):
        connection = await self.open()
        with request(self.controller, "s1") as token:
            await connection.execute("CREATE TEMPORARY TABLE t (a INT)")
            async with connection.transaction():
                with self.assertRaises(Terminated):
                    async with connection.transaction():
                        await connection.execute("INSERT INTO t VALUES (1)")
                        token.leave()
                        await connection.fetch("SELECT 1")
        self.assertEqual(await connection.fetchval("SELECT count(*) FROM t"), 0)

    async def test_what_is_copied_in_and_listened_to_arrives(self):
        connection, said = await self.open(), asyncio.Queue()
        with request(self.controller, "u1"):
            await connection.execute("CREATE TEMPORARY TABLE t (a INT)")
            await connection.copy_records_to_table("t", records=[(1,), (2,)])
            self.assertEqual(await connection.fetchval("SELECT sum(a) FROM t"), 3)
            await connection.add_listener("news", lambda *args: said.put_nowait(args[3]))
            await connection.execute("NOTIFY news, 'here'")
        self.assertEqual(await said.get(), "here")
        self.assertGreater(self.stop_client.stats().leased, 5)

    async def test_a_connection_without_an_answered_release_is_closed_after_its_transaction(self):
        connection = await self.open()
        self.assertIsInstance(await self.cancelled_without_daemon(connection), Terminated)
        self.assertTrue(connection.is_closed())

    async def test_leased_takes_a_connection_that_a_pool_lends_and_leases_it_once(self):
        async with asyncpg.create_pool(conninfo(), min_size=1, max_size=1) as pool:
            for turn in range(2):
                async with pool.acquire() as connection:
                    leased(connection, self.stop_client, "shop")
                    with request(self.controller, f"v{turn}"):
                        await connection.execute("SELECT 1")
        self.assertEqual(self.stop_client.stats().leased, 2)


@unittest.skipIf(POSTGRES is None, NOT_TESTED)
class Pool(RefusedRelease, CancelledTask, SharedConnection, unittest.IsolatedAsyncioTestCase):
    """A pool of one connection."""

    kind, name = "postgres", "shop"

    async def open(self):
        async def init(connection):
            leased(connection, self.stop_client, self.name)

        pool = await asyncpg.create_pool(conninfo(), init=init, min_size=1, max_size=1)
        self.addCleanup(pool.terminate)
        return pool

    async def run_query(self, pool, query):
        # A pool whose only connection does not come back waits for ever.
        await asyncio.wait_for(pool.fetchval(query), PATIENCE + 10)

    async def test_the_connection_of_a_request_that_is_over_goes_back_to_its_pool(self):
        pool = await self.open()
        pid = await pool.fetchval("SELECT pg_backend_pid()")
        with request(self.controller, "y1") as token:
            with self.assertRaises(Terminated):
                async with pool.acquire() as connection, connection.transaction():
                    await connection.execute("SET LOCAL search_path = a")
                    token.leave()
                    await connection.execute("SELECT 1")
        self.assertEqual(await asyncio.wait_for(pool.fetchval("SELECT pg_backend_pid()"), PATIENCE), pid)
        self.assertEqual(self.stop_client.stats().spoiled, 0)

    async def test_a_connection_without_an_answered_release_is_replaced_after_its_transaction(self):
        pool = await self.open()
        async with pool.acquire() as connection:
            pid = await connection.fetchval("SELECT pg_backend_pid()")
            self.assertIsInstance(await self.cancelled_without_daemon(connection), Terminated)
        self.assertNotEqual(await asyncio.wait_for(pool.fetchval("SELECT pg_backend_pid()"), PATIENCE), pid)

    async def test_a_connection_that_another_has_too_is_replaced(self):
        pool = await self.open()
        pid = await pool.fetchval("SELECT pg_backend_pid()")
        reader, writer = await asyncio.open_unix_connection(self.stage.path)
        writer.write(f"1 LEASE other shop {pid}\n".encode())
        await reader.readline()
        with request(self.controller, "z1"):
            with self.assertRaises(Taken):
                await pool.fetchval("SELECT 1")
            self.assertNotEqual(await pool.fetchval("SELECT pg_backend_pid()"), pid)
        writer.close()


if __name__ == "__main__":
    unittest.main()
