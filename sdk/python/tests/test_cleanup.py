"""Tests that transaction control is neither leased nor refused, and runs in its turn.

The tests have fake drivers. `test_conformance.py` tests which texts are transaction control.
"""

import asyncio
import os
import sqlite3
import threading
import time
import unittest

from bywash import Terminated, leased, sqlite_factory, unleased
from bywash.token import _current
from bywash.unleased import is_control

from .daemon import PATIENCE
from .test_stop_client import ENDLESS, LEASE, RELEASE, Case
from .test_stop_client_async import Case as AsyncCase

class Cursor:
    """A fake cursor, like those of drivers for threads."""

    def __init__(self, connection):
        self.connection = connection

    def execute(self, text):
        self.connection.run(text)

    def callproc(self, name):
        self.connection.run(name)


class Connection:
    cursorclass = Cursor

    def __init__(self):
        self.ran = []
        self.run = self.ran.append

    def thread_id(self):
        return 4711

    def cursor(self):
        return self.cursorclass(self)

    def close(self):
        self.ran.append("closed")


class AsyncCursor:
    def __init__(self, connection):
        self.connection = connection

    async def execute(self, text):
        await asyncio.sleep(0)
        self.connection.ran.append(text)

    async def executemany(self, texts):
        for text in texts:
            await self.execute(text)


class AsyncConnection(Connection):
    cursorclass = None
    cursor_factory = AsyncCursor

    def cursor(self):
        return self.cursor_factory(self)


class Composed:
    """A composed statement like psycopg's, which needs the connection to be composed."""

    def as_string(self, context):
        return f"ROLLBACK TO SAVEPOINT {context.connection.thread_id()}"


class Control(Case):
    def test_what_is_no_text_is_not_control_and_long_comments_are_read_once(self):
        for statement in (None, 7):
            self.assertFalse(is_control(statement), statement)
        start = time.monotonic()
        self.assertFalse(is_control("/* a */ -- b\n" * 10000 + "SELECT 1"))
        self.assertLess(time.monotonic() - start, PATIENCE, "in no more than one way")

    def test_it_runs_although_its_request_is_over_and_nothing_is_said(self):
        connection = leased(Connection(), self.stop_client, "shop")
        cursor = connection.cursor()
        cursor.execute("BEGIN")
        self.assertEqual(self.daemon.lines(), [])
        cursor.execute("UPDATE a")
        self.token.leave()
        self.assertEqual([self.daemon.next() for _ in range(3)], [LEASE, RELEASE, "STOP r1 client_left scope=own"])
        for run, text in ((cursor.execute, "SELECT 1"), (cursor.callproc, "rollback")):
            with self.assertRaises(Terminated):
                run(text)
        for text in ("ROLLBACK TO SAVEPOINT a", Composed(), "ROLLBACK"):
            cursor.execute(text)
        self.assertEqual(connection.ran[:3], ["BEGIN", "UPDATE a", "ROLLBACK TO SAVEPOINT a"])
        self.assertEqual((len(connection.ran), self.daemon.lines()), (5, []))

    def test_it_waits_for_the_release_of_what_runs_on_its_connection(self):
        connection = leased(Connection(), self.stop_client, "shop")
        runs, ends = threading.Event(), threading.Event()

        def run(text):
            connection.ran.append(f"{text} begins")
            if text == "SELECT 1":
                runs.set()
                ends.wait(PATIENCE)
            connection.ran.append(f"{text} ends")

        def work(token):
            _current.set(token)
            connection.cursor().execute("SELECT 1")

        connection.run = run
        first = threading.Thread(target=work, args=(self.token,))
        first.start()
        runs.wait(PATIENCE)
        second = threading.Thread(target=lambda: connection.cursor().execute("ROLLBACK"))
        second.start()
        second.join(0.05)
        ends.set()
        first.join()
        second.join()
        expected = [f"{text} {what}" for text in ("SELECT 1", "ROLLBACK") for what in ("begins", "ends")]
        self.assertEqual(connection.ran, expected)

    def test_what_runs_unleased_works_for_no_request(self):
        connection = leased(Connection(), self.stop_client, "shop")
        self.token.leave()
        with unleased():
            connection.cursor().execute("SELECT pg_advisory_unlock(1)")
        with self.assertRaises(Terminated):
            connection.cursor().execute("SELECT 1")
        self.assertEqual((connection.ran, self.daemon.lines()), (["SELECT pg_advisory_unlock(1)"], []))

    def test_sqlite_rolls_back_for_a_request_that_is_over(self):
        connection = sqlite3.connect(":memory:", factory=sqlite_factory(self.stop_client), isolation_level=None)
        connection.execute("CREATE TABLE a (b)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO a VALUES (1)")
        self.token.leave()
        with self.assertRaises(Terminated):
            connection.execute("SELECT 1")
        connection.execute("ROLLBACK")
        self.assertFalse(connection.in_transaction)
        connection.close()


class Turns(Case):
    def test_an_interrupt_hits_nobody_who_shares_a_connection_of_sqlite(self):
        path = os.path.join(self.daemon.folder, "db")
        connection = sqlite3.connect(path, factory=sqlite_factory(self.stop_client), check_same_thread=False)
        begins, ends = threading.Event(), []

        def answer(words):
            if words.startswith("RELEASE"):
                # The statement is interrupted during this time, since it may not have begun yet.
                time.sleep(0.1)
            return "OK"

        def innocent():
            begins.set()
            try:
                ends.extend(connection.execute(ENDLESS.replace("1e8", "1e6")).fetchall())
            except sqlite3.Error as error:
                ends.append(error)

        def victim():
            _current.set(self.token)
            try:
                connection.execute(ENDLESS)
            except Terminated as error:
                ends.append(error.reason)

        self.daemon.answer = answer
        working = [threading.Thread(target=victim), threading.Thread(target=innocent)]
        working[0].start()
        number = self.daemon.next().split()[3]
        working[1].start()
        begins.wait(PATIENCE)
        self.daemon.say(f"0 STOPPED r1 client_left {number}\n")
        for each in working:
            each.join(PATIENCE)
        self.assertEqual(ends, ["client_left", (1_000_000,)])
        connection.close()


class AsyncTurns(AsyncCase):
    async def test_a_cursor_that_executes_within_executemany_has_its_turn_already(self):
        connection = leased(AsyncConnection(), self.stop_client, "shop")
        many = connection.cursor().executemany(["a", "b"])
        await asyncio.wait_for(asyncio.gather(many, connection.cursor().execute("c")), PATIENCE)
        self.assertEqual(connection.ran, ["a", "b", "c"])
        self.assertEqual(self.daemon.lines(), [LEASE, RELEASE] * 2)

    async def test_control_runs_although_its_request_is_over(self):
        connection = leased(AsyncConnection(), self.stop_client, "shop")
        self.token.leave()
        with self.assertRaises(Terminated):
            await connection.cursor().execute("SELECT 1")
        await connection.cursor().execute("ROLLBACK")
        with unleased():
            await connection.cursor().execute("RESET ALL")
        self.assertEqual((connection.ran, self.daemon.lines()), (["ROLLBACK", "RESET ALL"], []))


del Case, AsyncCase

if __name__ == "__main__":
    unittest.main()
