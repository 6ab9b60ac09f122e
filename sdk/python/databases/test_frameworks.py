"""The examples of README.md, and more, on real servers.

These are FastAPI and Starlette on uvicorn, Django as WSGI, and SQLAlchemy.
"""

import asyncio
import contextlib
import os
import pathlib
import re
import threading
import unittest
import urllib.parse

from bywash import Class, Controller, TerminateAsgi, Terminated, leased, unleased
from stage import MARIADB, PATIENCE, POSTGRES, Stage, Watch, conninfo, controller, mariadb, place, request, stop_client
from stage import thread, until
from test_drivers import MySQLdb

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
SLEEP = "SELECT pg_sleep(60)"
#: A pool of one connection.
ONE = {"pool_size": 1, "max_overflow": 0}


def example_text(word):
    """Return the example of README.md that contains `word`."""
    (text,) = [each for each in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL) if word in each]
    return text


def example(word):
    """Return the names that an example of README.md defines: the one that contains `word`."""
    names = {}
    exec(compile(example_text(word), str(README), "exec"), names)
    return names


@contextlib.asynccontextmanager
async def served(app):
    """Serve an application on uvicorn within the block. The value is the port."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", http="h11"))
    serving = asyncio.ensure_future(server._serve())
    while not server.started:
        await asyncio.sleep(0.001)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await asyncio.wait_for(serving, PATIENCE)


class Served(unittest.IsolatedAsyncioTestCase):
    """The common part of tests of applications on uvicorn."""

    @classmethod
    def setUpClass(cls):
        if POSTGRES is None or MARIADB is None:
            raise unittest.SkipTest("NOT TESTED: PostgreSQL and MariaDB are not both there")
        cls.stage = Stage()
        os.environ["BYWASH_STOPD"] = cls.stage.path

    @classmethod
    def tearDownClass(cls):
        cls.stage.close()

    async def serve(self, app, watch="postgres"):
        asyncio.get_running_loop().set_debug(False)
        self.watch = Watch(watch)
        self.addCleanup(self.watch.connection.close)
        serving = contextlib.AsyncExitStack()
        self.addAsyncCleanup(serving.aclose)
        self.port = await serving.enter_async_context(served(app))

    def called(self, name):
        """Return a name that is unique to this test.

        The daemon remembers stopped requests for a minute.
        """
        return f"{self.id().rpartition('.')[2]}-{name}"

    async def ask(self, name, query, fields=""):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        path = f"/search?query={urllib.parse.quote(query)}"
        named = "" if name is None else f"bywash-request: {self.called(name)}\r\n"
        head = f"host: a\r\nconnection: close\r\n{named}{fields}"
        writer.write(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
        return reader, writer

    async def get(self, name, query, fields=""):
        reader, writer = await self.ask(name, query, fields)
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        return int(answer.split()[1]), answer

    async def runs(self, count):
        await asyncio.to_thread(until, lambda: self.watch.running() == count)

    async def laws(self, names, sleep=SLEEP):
        """Check the rules for an application with a path /search that runs the given query."""
        stats = names["stop_client"].stats
        before = stats()
        self.assertEqual((await self.get("q1", "SELECT 1"))[0], 200)
        self.assertGreater(stats().leased, before.leased)
        # The client leaves; without a gateway its request has the middleware's name.
        for stops, name in enumerate(("q2", None), before.stops + 1):
            _, writer = await self.ask(name, sleep)
            await self.runs(1)
            writer.close()
            await self.runs(0)
            await asyncio.to_thread(until, lambda stops=stops: stats().stops == stops)
        # The gateway stops the request: the query ends, and a client that still waits gets an
        # answer.
        asking = asyncio.ensure_future(self.get("q3", sleep))
        await self.runs(1)
        said = await asyncio.to_thread(self.stage.stop, self.called("q3"), "deadline")
        self.assertEqual(said, "1 OK cancelled=1 spared=0")
        status, answer = await asking
        self.assertEqual((status, b"(deadline)" in answer), (504, True))
        self.assertEqual((await self.get("q3", "SELECT 1"))[0], 504, "it does not begin")
        # The request reaches its deadline, which this process reports.
        self.assertEqual((await self.get("q4", sleep, "bywash-deadline: 300\r\n"))[0], 504)
        await self.runs(0)
        await asyncio.to_thread(until, lambda: stats().stops == before.stops + 3)
        await self.share(names)

    async def share(self, names):
        """Check that clients that leave do not affect clients that stay, in one pool."""
        async def leave(turn):
            _, writer = await self.ask(f"l{turn}", self.short)
            await asyncio.sleep(turn % 20 * 0.0005)
            writer.close()

        for turn in range(0, 200, 4):
            staying = [self.get(f"s{turn + i}", self.short) for i in range(4)]
            answers, _ = await asyncio.gather(asyncio.gather(*staying), leave(turn))
            self.assertEqual([status for status, _ in answers], [200] * 4)

    short = "SELECT pg_sleep(0.003)"


class OnUvicorn(Served):
    async def test_the_example_of_fastapi(self):
        os.environ["DATABASE"] = conninfo()
        names = example("AsyncConnectionPool")
        await self.serve(names["app"])
        await self.laws(names)

    async def test_the_example_of_asyncpg(self):
        os.environ["DATABASE"] = conninfo()
        names = example("import asyncpg")
        await self.serve(names["app"])
        await self.laws(names)

    async def test_the_example_of_starlette(self):
        os.environ["DATABASE"] = conninfo().replace("postgresql:", "postgresql+psycopg:")
        names = example("from starlette")
        await self.serve(names["app"])
        await self.laws(names)
        await names["engine"].dispose()

    async def test_the_example_of_starlette_with_asyncpg(self):
        os.environ["DATABASE"] = conninfo().replace("postgresql:", "postgresql+asyncpg:")
        names = example("from starlette")
        await self.serve(names["app"])
        await self.laws(names)
        await names["engine"].dispose()

    async def test_a_function_of_fastapi_in_a_thread_with_mariadb(self):
        from fastapi import FastAPI

        made, app = stop_client(self, self.stage), FastAPI()
        app.add_middleware(
            TerminateAsgi, controller=Controller(Class("search", run_min=1, run_max=600)), class_of="search"
        )
        self.short = "SELECT SLEEP(0.003)"
        ended = []

        @app.get("/search")
        def search(query: str):
            connection = leased(mariadb(autocommit=True), made, "store")
            try:
                with connection.cursor() as cursor:
                    cursor.execute(query)
                    return str(cursor.fetchone())
            finally:
                connection.close()
                ended.append(True)

        await self.serve(app, "mariadb")
        await self.laws({"stop_client": made}, "SELECT SLEEP(60)")
        with mariadb(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS orders")
            cursor.execute("CREATE TABLE orders (a INT)")
        count = len(ended)
        _, writer = await self.ask("w1", "INSERT INTO orders SELECT 1 FROM (SELECT SLEEP(0.5)) AS s")
        await self.runs(1)
        writer.close()
        await asyncio.to_thread(until, lambda: len(ended) > count)
        self.assertEqual(self.watch.ask("SELECT count(*) FROM orders"), ((1,),), "what writes is spared")


class OnSqlAlchemy(unittest.TestCase):
    """Tests of engines that are used by threads."""

    @classmethod
    def setUpClass(cls):
        if POSTGRES is None or MARIADB is None:
            raise unittest.SkipTest("NOT TESTED: PostgreSQL and MariaDB are not both there")

    def engine(self, url, name, **options):
        from bywash.sqlalchemy import lease_queries
        from sqlalchemy import create_engine

        self.stage = Stage()
        self.addCleanup(self.stage.close)
        self.stop_client = stop_client(self, self.stage)
        engine = create_engine(url, **options)
        self.addCleanup(engine.dispose)
        lease_queries(engine, self.stop_client, name)
        return engine

    def run_for(self, name, engine, query, classes=None):
        with request(classes or controller(), name), engine.connect() as connection:
            return connection.exec_driver_sql(query).scalar()

    def test_a_stopped_query_is_cancelled_and_another_request_is_not(self):
        url = "mysql+pymysql://shop:lab@{host}:{port}/shop".format(**place(MARIADB))
        for kind, name, url, sleep in (
            ("postgres", "shop", conninfo().replace("postgresql:", "postgresql+psycopg:"), "pg_sleep"),
            ("mariadb", "store", url, "SLEEP"),
            *([("mariadb", "store", url.replace("pymysql", "mysqldb"), "SLEEP")] if MySQLdb else []),
        ):
            engine, watch = self.engine(url, name, **ONE), Watch(kind)
            # Connect first: the driver's queries on a new connection must not count below.
            engine.connect().close()
            join = thread(self.run_for, "x1", engine, f"SELECT {sleep}(60)")
            until(lambda: watch.running() == 1)
            self.assertEqual(self.stage.stop("x1"), "1 OK cancelled=1 spared=0")
            self.assertIsInstance(join(), Terminated)
            for turn in range(100):
                stopping = threading.Timer(turn * 0.00004, self.stage.stop, (f"y{turn}",))
                stopping.start()
                thread(self.run_for, f"y{turn}", engine, f"SELECT {sleep}(0.003)")()
                self.assertNotIsInstance(self.run_for(f"z{turn}", engine, f"SELECT {sleep}(0.003)"), BaseException)
                stopping.join()
            watch.connection.close()

    def test_a_connection_whose_release_is_not_answered_ends_its_transaction_and_is_not_lent_again(self):
        engine = self.engine(conninfo().replace("postgresql:", "postgresql+psycopg:"), "shop", **ONE)
        pid = "SELECT pg_backend_pid()"
        with request(controller(), "u1"), engine.connect() as connection:
            first = connection.exec_driver_sql(pid).scalar()
        watch = Watch("postgres")

        def work():
            with request(controller(), "u2"), engine.connect() as connection:
                before = connection.exec_driver_sql("SELECT pg_backend_pid(), pg_sleep(0.5)").scalar()
                return before, connection.exec_driver_sql(pid).scalar()

        join = thread(work)
        until(lambda: watch.running() == 1)
        self.stage.kill()
        self.assertEqual(join(), (first, first))
        self.assertEqual(self.stop_client.stats().spoiled, 1)
        self.assertNotEqual(self.run_for("u3", engine, pid), first)
        watch.connection.close()

    def test_a_request_that_is_over_rolls_back_to_its_savepoint(self):
        engine = self.engine(conninfo().replace("postgresql:", "postgresql+psycopg:"), "shop", **ONE)
        with request(controller(), "t1") as token, engine.connect() as connection:
            connection.exec_driver_sql("CREATE TEMPORARY TABLE t (a INT)")
            with self.assertRaises(KeyError), connection.begin_nested():
                connection.exec_driver_sql("INSERT INTO t VALUES (1)")
                token.leave()
                raise KeyError
            with unleased():
                self.assertEqual(connection.exec_driver_sql("SELECT count(*) FROM t").scalar(), 0)

    def test_sqlite_is_interrupted(self):
        engine = self.engine("sqlite://", "shop")
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e9) SELECT count(*) FROM n"
        join = thread(self.run_for, "v1", engine, endless)
        until(lambda: self.stop_client.stats().leased == 1)
        self.stage.stop("v1")
        self.assertIsInstance(join(), Terminated)
        short = Controller(Class("search", run_min=0.1, run_max=0.1))
        error = thread(self.run_for, "v2", engine, endless, short)()
        self.assertIsInstance(error, Terminated)
        self.assertEqual(error.reason, "ran_too_long")


if __name__ == "__main__":
    unittest.main()
