"""Tests of each driver with the real daemon and a real database: which queries are cancelled."""

import asyncio
import queue
import random
import threading
import unittest

import aiomysql
import asyncmy
import psycopg
import psycopg2
from bywash import Class, Controller, StopClient, Terminated, leased
from bywash.databases import close
from stage import MARIADB, POSTGRES, Stage, Watch, conninfo, controller, mariadb, place, postgres, request
from stage import stop_client, thread, until

try:
    import MySQLdb
except ImportError:
    MySQLdb = None


class Driver:
    """The tests that each driver for threads must pass.

    `connect` returns an open connection. `values` is the driver's name for the values of a statement.
    """

    kind = name = None
    values = "args"

    @classmethod
    def setUpClass(cls):
        cls.stage = Stage()
        cls.watch = Watch(cls.kind)

    @classmethod
    def tearDownClass(cls):
        cls.stage.close()
        cls.watch.connection.close()

    def setUp(self):
        self.controller = controller()
        self.stop_client = stop_client(self, self.stage)

    def open(self):
        connection = leased(self.connect(), self.stop_client, self.name)
        self.addCleanup(close, connection)
        return connection

    def sleep(self, seconds=60):
        return f"SELECT {'pg_sleep' if self.kind == 'postgres' else 'SLEEP'}({seconds})"

    def run_for(self, name, connection, query):
        with request(self.controller, name), connection.cursor() as cursor:
            cursor.execute(query)
            return "done"

    def begin(self, name, connection, query):
        """Begin a query in a thread, and wait until the database reports that it runs."""
        before = self.watch.running()
        join = thread(self.run_for, name, connection, query)
        until(lambda: self.watch.running() > before)
        return join

    def test_the_query_of_a_request_that_is_stopped_is_cancelled_and_its_connection_lives_on(self):
        connection = self.open()
        join = self.begin("a1", connection, self.sleep())
        self.assertEqual(self.stage.stop("a1"), "1 OK cancelled=1 spared=0")
        error = join()
        self.assertIsInstance(error, Terminated)
        self.assertEqual(error.reason, "client_left")
        until(lambda: self.watch.running() == 0)
        connection.rollback()
        self.assertEqual(self.run_for("a2", connection, "SELECT 1"), "done")

    def test_a_request_that_is_over_here_is_cancelled_there(self):
        connection = self.open()
        tokens = queue.Queue()

        def work():
            with request(self.controller, "b1") as token, connection.cursor() as cursor:
                tokens.put(token)
                cursor.execute(self.sleep())

        join = thread(work)
        token = tokens.get()
        until(lambda: self.watch.running() == 1)
        token.leave()
        self.assertIsInstance(join(), Terminated)
        until(lambda: self.watch.running() == 0)
        until(lambda: self.stop_client.stats().stops == 1)

    def test_a_query_that_is_longer_than_its_request_may_run_is_cancelled_although_nobody_asks(self):
        self.controller = Controller(Class("search", run_min=0.3, run_max=0.3))
        error = thread(self.run_for, "b2", self.open(), self.sleep())()
        self.assertIsInstance(error, Terminated)
        self.assertEqual(error.reason, "ran_too_long")
        until(lambda: self.watch.running() == 0)

    def test_a_request_of_the_same_name_in_another_service_runs_on_to_its_end(self):
        ours, tokens = self.open(), queue.Queue()
        other = leased(self.connect(), stop_client(self, self.stage), self.name)
        self.addCleanup(close, other)

        def work():
            with request(self.controller, "b3") as token, ours.cursor() as cursor:
                tokens.put(token)
                cursor.execute(self.sleep())

        join, token = thread(work), tokens.get()
        until(lambda: self.watch.running() == 1)
        caller = self.begin("b3", other, self.sleep(1))
        token.leave()
        self.assertIsInstance(join(), Terminated)
        self.assertEqual(caller(), "done")
        self.assertEqual(self.run_for("b3", other, "SELECT 1"), "done", "and what it asks next")

    def test_a_request_that_is_over_rolls_back_by_a_text_of_its_own(self):
        connection = self.open()
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS orders")
            cursor.execute("CREATE TABLE orders (a INT)")
            connection.commit()
            with request(self.controller, "b4") as token:
                cursor.execute("INSERT INTO orders VALUES (1)")
                token.leave()
                with self.assertRaises(Terminated):
                    cursor.execute("SELECT 1")
                # The order of arguments with names has no meaning.
                cursor.execute(**{self.values: None, "query": "ROLLBACK"})
            cursor.execute("SELECT count(*) FROM orders")
            self.assertEqual(list(cursor.fetchall()), [(0,)])
            cursor.execute("DROP TABLE orders")
        connection.commit()

    def test_who_was_stopped_before_does_not_begin(self):
        self.stage.stop("c1", "deadline")
        error = thread(self.run_for, "c1", self.open(), self.sleep())()
        self.assertIsInstance(error, Terminated)
        self.assertEqual(error.reason, "deadline")

    def test_a_write_is_spared_and_its_request_is_over_all_the_same(self):
        connection = self.open()
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS orders")
            cursor.execute("CREATE TABLE orders (a INT)")
        connection.commit()
        insert = f"INSERT INTO orders SELECT 1 FROM ({self.sleep(0.5)}) AS s"

        def work():
            with request(self.controller, "d1"), connection.cursor() as cursor:
                cursor.execute(insert)
                connection.commit()
                cursor.execute("SELECT 1")

        join = thread(work)
        until(lambda: self.watch.running() == 1)
        self.assertEqual(self.stage.stop("d1"), "1 OK cancelled=0 spared=1")
        self.assertIsInstance(join(), Terminated, "what comes after it does not begin")
        connection.rollback()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM orders")
            self.assertEqual(list(cursor.fetchall()), [(1,)])
            cursor.execute("DROP TABLE orders")
        connection.commit()

    def test_of_two_requests_that_share_a_connection_only_the_stopped_one_is_hit(self):
        connection = self.open()
        hit = 0
        for turn in range(200):
            join = thread(self.run_for, f"e{turn}", connection, self.sleep(0.003))
            stopping = threading.Timer(turn * 0.00004, self.stage.stop, (f"e{turn}",))
            stopping.start()
            ended = join()
            connection.rollback()
            self.assertEqual(self.run_for(f"f{turn}", connection, self.sleep(0.003)), "done", turn)
            connection.rollback()
            stopping.join()
            hit += isinstance(ended, Terminated)
        self.assertGreater(hit, 10, "hardly any was hit at all")

    def test_of_many_that_share_a_pool_only_those_that_are_stopped_are_hit(self):
        pool = queue.Queue()
        for _ in range(3):
            pool.put(self.open())
        wrong, hit = [], []
        chance = random.Random(7)

        def work(worker):
            for turn in range(40):
                name = f"{'g' if worker % 2 else 'h'}{worker}-{turn}"
                connection = pool.get()
                try:
                    self.run_for(name, connection, self.sleep(0.002))
                except Terminated:
                    (hit if worker % 2 else wrong).append(name)
                connection.rollback()
                pool.put(connection)

        workers = [thread(work, worker) for worker in range(6)]
        for turn in range(40):
            for worker in (1, 3, 5):
                threading.Event().wait(chance.random() * 0.004)
                self.stage.stop(f"g{worker}-{turn}")
        self.assertEqual([join() for join in workers], [None] * 6)
        self.assertEqual(wrong, [])
        self.assertGreater(len(hit), 0)

    def test_without_a_daemon_everything_works(self):
        connection = leased(self.connect(), StopClient(self.stage.path + "-none"), self.name)
        self.assertEqual(self.run_for("i1", connection, "SELECT 1"), "done")
        connection.close()

    def test_a_daemon_that_dies_within_a_query_closes_the_connection_and_is_found_again(self):
        stage = Stage()
        self.stop_client = stop_client(self, stage)
        connection = self.open()
        join = self.begin("j1", connection, self.sleep(0.5))
        stage.kill()
        self.assertEqual(join(), "done")
        with self.assertRaises(Exception):
            self.run_for("j2", connection, "SELECT 1")
        stage.start()
        again = self.open()
        before = self.stop_client.stats().leased
        until(lambda: self.run_for("j3", again, "SELECT 1") and self.stop_client.stats().leased > before)
        stage.close()


@unittest.skipIf(POSTGRES is None, "NOT TESTED: PostgreSQL is not there")
class Psycopg(Driver, unittest.TestCase):
    kind, name, values = "postgres", "shop", "params"

    def connect(self):
        return postgres()


@unittest.skipIf(POSTGRES is None, "NOT TESTED: PostgreSQL is not there")
class Psycopg2(Driver, unittest.TestCase):
    kind, name, values = "postgres", "shop", "vars"

    def connect(self):
        return postgres(psycopg2)


@unittest.skipIf(MARIADB is None, "NOT TESTED: MariaDB is not there")
class PyMySQL(Driver, unittest.TestCase):
    kind, name = "mariadb", "store"

    def connect(self):
        return mariadb()


@unittest.skipIf(MARIADB is None or MySQLdb is None, "NOT TESTED: MariaDB and mysqlclient are not both there")
class MySQLClient(Driver, unittest.TestCase):
    kind, name = "mariadb", "store"

    def connect(self):
        return MySQLdb.connect(user="shop", password="lab", database="shop", **place(MARIADB))

    def run_for(self, name, connection, query):
        # A cursor that is closed after its connection raises an error, so none is closed here.
        with request(self.controller, name):
            connection.cursor().execute(query)
            return "done"


class AsyncDriver:
    """The tests that each asynchronous driver must pass.

    `connect` returns an open connection, and `run_query` runs a query on it.
    """

    kind = name = None

    @classmethod
    def setUpClass(cls):
        cls.stage, cls.watch = Stage(), Watch(cls.kind)

    @classmethod
    def tearDownClass(cls):
        cls.stage.close()
        cls.watch.connection.close()

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)
        self.controller = controller()
        self.stop_client = stop_client(self, self.stage)

    async def open(self):
        return leased(await self.connect(), self.stop_client, self.name)

    def sleep(self, seconds=60):
        return f"SELECT {'pg_sleep' if self.kind == 'postgres' else 'SLEEP'}({seconds})"

    async def run_for(self, name, connection, query):
        with request(self.controller, name):
            await self.run_query(connection, query)

    async def runs(self, count):
        await asyncio.to_thread(until, lambda: self.watch.running() == count)

    async def stop(self, name):
        return await asyncio.to_thread(self.stage.stop, name)

    async def test_the_query_of_a_request_that_is_stopped_is_cancelled_and_its_connection_lives_on(self):
        connection = await self.open()
        running = asyncio.ensure_future(self.run_for("k1", connection, self.sleep()))
        await self.runs(1)
        self.assertEqual(await self.stop("k1"), "1 OK cancelled=1 spared=0")
        with self.assertRaises(Terminated):
            await running
        await self.runs(0)
        await self.run_for("k2", connection, "SELECT 1")
        with self.assertRaises(Terminated):
            await self.run_for("k1", connection, "SELECT 1")

    async def test_a_task_that_is_cancelled_because_its_request_is_over_leaves_no_query(self):
        connection, tokens = await self.open(), []

        async def work():
            with request(self.controller, "p1") as token:
                tokens.append(token)
                await self.run_query(connection, self.sleep())

        running = asyncio.ensure_future(work())
        await self.runs(1)
        tokens[0].leave()
        running.cancel()
        with self.assertRaises((asyncio.CancelledError, Terminated)):
            await running
        await self.runs(0)


class CancelledTask(AsyncDriver):
    """The test of drivers that keep a connection whose task was cancelled."""

    async def test_a_task_that_is_cancelled_leaves_a_connection_that_is_not_leased(self):
        connection, spoiled = await self.open(), 0
        for turn in range(100):
            running = asyncio.ensure_future(self.run_for(f"l{turn}", connection, self.sleep()))
            await asyncio.sleep(turn * 0.00005)
            running.cancel()
            stopping = asyncio.ensure_future(self.stop(f"l{turn}"))
            with self.assertRaises(asyncio.CancelledError):
                await running
            if self.stop_client.stats().spoiled > spoiled:
                # The release was refused or interrupted, so the connection was closed.
                connection, spoiled = await self.open(), spoiled + 1
            await self.run_for(f"m{turn}", connection, self.sleep(0.002))
            await stopping


class SharedConnection(AsyncDriver):
    """The test of drivers whose connection, or pool of one connection, tasks can share."""

    async def test_of_two_requests_that_share_a_connection_only_the_stopped_one_is_hit(self):
        connection = await self.open()
        hit = []

        async def victim(turn):
            try:
                await self.run_for(f"n{turn}", connection, self.sleep(0.003))
            except Terminated:
                hit.append(turn)

        for turn in range(200):
            innocent = self.run_for(f"o{turn}", connection, self.sleep(0.003))
            await asyncio.gather(victim(turn), innocent, self.stop(f"n{turn}"))
        self.assertGreater(len(hit), 10)


@unittest.skipIf(POSTGRES is None, "NOT TESTED: PostgreSQL is not there")
class AsyncPsycopg(CancelledTask, SharedConnection, unittest.IsolatedAsyncioTestCase):
    kind, name = "postgres", "shop"

    async def connect(self):
        connection = await psycopg.AsyncConnection.connect(conninfo(), autocommit=True)
        self.addAsyncCleanup(connection.close)
        return connection

    async def run_query(self, connection, query):
        await connection.execute(query)


@unittest.skipIf(MARIADB is None, "NOT TESTED: MariaDB is not there")
class AioMySQL(SharedConnection, unittest.IsolatedAsyncioTestCase):
    kind, name, driver = "mariadb", "store", aiomysql

    async def connect(self):
        connection = await self.driver.connect(user="shop", password="lab", db="shop", autocommit=True, **place(MARIADB))
        self.addCleanup(connection.close)
        return connection

    async def run_query(self, connection, query):
        async with connection.cursor() as cursor:
            await cursor.execute(query)


class AsyncMy(AioMySQL):
    driver = asyncmy


if __name__ == "__main__":
    unittest.main()
