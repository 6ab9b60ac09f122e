"""Tests of leases and of the conversation with the stop daemon, with a fake daemon.

The lines, and what follows from its answers: `test_conformance_leases.py`.
"""

import os
import sqlite3
import threading
import time
import unittest

import bywash
from bywash import Class, Controller, OwnQuery, Query, StopClient, Terminated, unleased
from bywash.token import _current

from .clock import Clock
from .daemon import PATIENCE, Daemon

LEASE, RELEASE = "LEASE r1 shop 4711", "RELEASE r1 shop 4711"
OK = "OK"


class Cancelled(Exception):
    sqlstate = "57014"


class Case(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.controller = Controller(Class("search", 1.0, 9.0), clock=self.clock)
        self.daemon = Daemon(self)
        self.watch = Clock()
        self.stop_client = self.talk(PATIENCE)
        self.closed = []
        self.token = self.begin()

    def talk(self, patience=0.1):
        stop_client = StopClient(self.daemon.path, clock=self.watch, patience=patience)
        self.addCleanup(stop_client.close)
        return stop_client

    def begin(self, request="r1", **settings):
        """Begin a request that this thread works for from now on.

        It is settled, so no time ends it.
        """
        token = self.controller.begin("search", request=request, **settings)
        token.settle()
        was = _current.set(token)
        self.addCleanup(_current.reset, was)
        return token

    def query(self, number=4711):
        return Query(self.stop_client, "shop", lambda: number, lambda: self.closed.append(number))

    def answers(self, **answers):
        self.daemon.answer = lambda words: answers.get(words.split()[0].lower(), OK)

    def until(self, holds):
        for _ in range(PATIENCE * 100):
            if holds():
                return
            time.sleep(0.01)
        self.fail("it did not come about")


class Leases(Case):
    def test_the_error_of_a_cancelled_query_is_the_cause_of_that_of_its_request(self):
        with self.assertRaises(Terminated) as caught, self.query():
            self.token.leave()
            raise Cancelled
        self.assertIsInstance(caught.exception.__cause__, Cancelled)

    def test_another_error_stays_what_it_is(self):
        with self.assertRaises(KeyError), self.query():
            self.token.leave()
            raise KeyError
        self.assertIn(RELEASE, self.daemon.lines())

    def answers_while_it_cancels(self, question):
        """Answer as the daemon does until the end of a cancellation."""

        def answer(words):
            if "self" not in words:
                return OK if words == LEASE and not self.closed else "ERR taken close it"
            return question if words.startswith("LEASE") else OK

        self.daemon.answer = answer

    def test_if_a_cancellation_takes_long_the_connection_is_closed_and_the_reason_asked(self):
        self.answers_while_it_cancels("STOPPED deadline")
        with self.assertRaises(Terminated) as caught, self.query():
            raise Cancelled
        self.assertEqual((caught.exception.reason, self.token.reason), ("deadline", "deadline"))
        self.assertEqual(self.daemon.lines(), [LEASE, RELEASE, "LEASE r1 self 1"])
        self.assertEqual((self.closed, self.stop_client.stats().spoiled), ([4711], 1))

    def test_if_nobody_has_stopped_the_request_of_a_closed_connection_its_error_stays(self):
        self.answers_while_it_cancels(OK)
        with self.assertRaises(Cancelled), self.query():
            raise Cancelled
        self.assertEqual(self.daemon.lines(), [LEASE, RELEASE, "LEASE r1 self 1", "RELEASE r1 self 1"])
        self.assertEqual((self.closed, self.stop_client.stats().spoiled), ([4711], 1))

    def test_a_connection_that_does_not_know_its_number_is_not_leased(self):
        def closed():
            raise ValueError

        with Query(self.stop_client, "shop", closed, self.fail):
            pass
        self.assertEqual(self.daemon.lines(), [])


class Without(Case):
    def test_without_a_daemon_a_cancelled_query_is_the_drivers_error(self):
        self.daemon.die()
        with self.assertRaises(Cancelled), self.query():
            raise Cancelled
        self.token.leave()
        self.assertEqual((self.closed, self.stop_client.stats().unreachable), ([], 1))


    def test_it_is_looked_for_again_after_two_hundred_milliseconds(self):
        self.daemon.die()
        with self.query():
            pass
        again = Daemon(self, self.daemon.path)
        self.watch.go(0.19)
        with self.query():
            pass
        self.assertEqual(again.lines(), [])
        self.watch.go(0.02)
        with self.query():
            pass
        self.assertEqual(again.lines(), [LEASE, RELEASE])

    def test_a_daemon_that_dies_within_a_lease_closes_the_connection(self):
        with self.query():
            self.daemon.die()
            self.until(lambda: self.stop_client.conversation() is None)
        self.assertEqual(self.closed, [4711])
        again = Daemon(self, self.daemon.path)
        self.watch.go(1)
        with self.query():
            pass
        self.assertEqual((again.lines(), self.closed), ([LEASE, RELEASE], [4711]))

    def test_a_lease_of_a_conversation_that_is_over_closes_the_connection_although_there_is_another(self):
        with self.query():
            self.stop_client.close()
            self.watch.go(1)
            with self.query(4712):
                pass
        self.assertEqual(self.closed, [4711])

    def test_a_lease_that_is_not_answered_is_none_and_its_connection_is_closed(self):
        self.stop_client = self.talk()
        self.answers(lease=None)
        with self.query():
            self.assertEqual(self.closed, [])
        self.assertEqual((self.closed, self.stop_client.stats().unreachable), ([4711], 1))
        with self.query():
            pass
        self.assertEqual(self.daemon.lines(), [LEASE], "nobody waits again at once")

    def test_what_is_no_answer_ends_the_conversation_also_after_one_and_before_its_end(self):
        for answer in ("OK\nx", "O" * 2000):
            with self.subTest(answer[:20]):
                self.watch.go(1)
                self.answers(lease=answer)
                with self.query():
                    self.until(lambda: self.stop_client._conversation.is_over)
                self.assertEqual(self.closed.pop(), 4711)

    def test_an_answer_that_comes_when_nobody_waits_any_more_says_nothing(self):
        with self.query():
            pass
        self.daemon.say("1 STOPPED client_left\n2 ERR taken a\n")
        with self.query():
            pass
        self.assertEqual((self.closed, self.token.reason), ([], None))

    def test_answers_may_come_in_pieces(self):
        with self.query():
            pass
        self.daemon.answer = lambda words: None

        def answer():
            for number, verb in ((3, "LEASE"), (4, "RELEASE")):
                self.assertTrue(self.daemon.next().startswith(verb))
                for letter in f"{number} OK\n":
                    self.daemon.say(letter)

        self.daemon.lines()
        answering = threading.Thread(target=answer)
        answering.start()
        with self.query():
            pass
        answering.join()
        self.assertEqual((self.closed, self.stop_client.stats().leased), ([], 2))

    def test_a_hundred_conversations_leave_no_socket_and_no_thread_behind(self):
        def open_files():
            return len(os.listdir("/proc/self/fd"))

        with self.query():
            pass
        threads = threading.active_count()
        before = open_files()
        for _ in range(100):
            self.stop_client.close()
            self.watch.go(1)
            with self.query():
                pass
        self.until(lambda: open_files() <= before and threading.active_count() <= threads)


class Warnings(Case):
    FORBIDDEN = "ERR forbidden add this user to stopd.leases"

    def warned(self, logged):
        """Return the warnings, without the socket's path."""
        self.assertEqual({record.levelname for record in logged.records}, {"WARNING"})
        return [record.getMessage().replace(self.daemon.path, "PATH") for record in logged.records]

    def refusal(self, what):
        return f"the stop daemon at PATH refused a {what} (later ones are only counted): {self.FORBIDDEN}"

    def test_the_first_query_outside_of_a_named_request_is_logged(self):
        with self.assertLogs("bywash") as logged:
            with unleased(), self.query():
                pass
            self.assertEqual(self.stop_client.stats().unnamed, 0, "it is meant to be outside")
            self.begin(None)
            for _ in range(2):
                with self.query():
                    pass
        self.assertEqual(self.stop_client.stats().unnamed, 2)
        (warned,) = self.warned(logged)
        self.assertIn("outside of a named request", warned)
        self.assertIn("PATH", warned)

    def test_the_first_query_without_a_daemon_is_logged(self):
        self.daemon.die()
        with self.assertLogs("bywash") as logged:
            for _ in range(2):
                with self.query():
                    pass
        self.assertEqual(self.stop_client.stats().unreachable, 2)
        (warned,) = self.warned(logged)
        self.assertEqual(warned, "no stop daemon answers at PATH: queries run, and nothing cancels them")

    def test_the_first_refused_lease_is_logged_with_the_daemons_text(self):
        self.answers(lease=self.FORBIDDEN)
        with self.assertLogs("bywash") as logged:
            for _ in range(2):
                with self.query():
                    pass
        self.assertEqual(self.stop_client.stats().refused, 2)
        (warned,) = self.warned(logged)
        self.assertEqual(warned, self.refusal("lease"))

    def test_the_first_refused_stop_is_logged_with_the_daemons_text(self):
        self.answers(stop=self.FORBIDDEN)
        with self.assertLogs("bywash") as logged:
            for _ in range(2):
                self.stop_client.stop("r1", "client_left")
            self.until(lambda: self.stop_client.stats().refused == 2 and logged.records)
        (warned,) = self.warned(logged)
        self.assertEqual(warned, self.refusal("stop"))

    def test_the_logged_text_of_the_daemon_is_printable_and_bounded(self):
        self.answers(lease="ERR \x1b[2J\u00e9\r" + "x" * 1100)
        with self.assertLogs("bywash") as logged, self.query():
            pass
        (warned,) = self.warned(logged)
        # The two bytes of the letter are two characters.
        self.assertTrue(warned.endswith(": ERR ?[2J???" + "x" * (1024 - len("ERR ?[2J???"))), warned)

    def test_a_stop_that_comes_too_late_is_not_logged_as_a_refusal(self):
        self.stop_client.refused("lease", "STOPPED client_left")
        self.answers(lease=self.FORBIDDEN)
        self.begin("r2")
        with self.assertLogs("bywash") as logged, self.query():
            pass
        self.assertEqual((len(self.warned(logged)), self.stop_client.stats().refused), (1, 2))


class Many(Case):
    def test_answers_find_who_asked_in_whatever_order_they_come(self):
        """Each pair of leases is answered in reverse order."""
        waiting, lock = [], threading.Lock()
        numbers = {}

        def hear(client):
            with client, client.makefile("r") as lines:
                for line in lines:
                    number, verb, request, _, connection = line.split()[:5]
                    numbers[connection] = request
                    with lock:
                        waiting.append(f"{number} {'STOPPED client_left' if int(connection) % 2 else 'OK'}\n")
                        if verb == "RELEASE" or len(waiting) == 2:
                            client.sendall("".join(reversed(waiting)).encode())
                            waiting.clear()

        self.daemon.hear = hear
        wrong = []

        def work(connection):
            _current.set(self.controller.begin("search", request=f"r{connection}"))
            try:
                with self.query(connection):
                    barrier.wait()
                    if connection % 2:
                        wrong.append(connection)
            except Terminated:
                barrier.wait()
                if not connection % 2:
                    wrong.append(connection)

        for pair in range(50):
            barrier = threading.Barrier(2, timeout=PATIENCE)
            threads = [threading.Thread(target=work, args=(2 * pair + i,)) for i in (0, 1)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual((wrong, self.closed, len(numbers)), ([], [], 100))

    def test_three_hundred_threads_ask_at_once(self):
        failed = []

        def work(connection):
            _current.set(self.controller.begin("search", request=f"r{connection}"))
            try:
                for _ in range(5):
                    with self.query(connection):
                        pass
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((failed, self.closed, self.stop_client.stats().leased), ([], [], 1500))
        self.assertEqual(len(self.daemon.clients), 1)

    def test_a_child_of_fork_has_a_conversation_of_its_own(self):
        with self.query():
            child = os.fork()
            if child == 0:
                # The child may inherit held locks: run only the query, then exit.
                with self.query(4712):
                    pass
                os._exit(0 if self.stop_client.stats().leased == 2 and not self.closed else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual((self.closed, len(self.daemon.clients)), ([], 2))
        with self.query():
            pass
        self.assertEqual(self.stop_client.stats().leased, 2)

    def test_what_was_leased_in_the_parent_is_closed_in_the_child(self):
        query = self.query()
        query.__enter__()
        child = os.fork()
        if child == 0:
            query.__exit__(None, None, None)
            os._exit(0 if self.closed == [4711] else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        query.__exit__(None, None, None)
        self.assertEqual(self.closed, [])


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e8) SELECT count(*) FROM n"


class Own(Case):
    def tell(self, reason="client_left"):
        """Send a stop for the last lease, as the daemon does."""
        number = self.daemon.next().split()[3]
        self.daemon.say(f"0 STOPPED r1 {reason} {number}\n")
        return number

    def test_a_query_of_sqlite_is_interrupted(self):
        path = os.path.join(self.daemon.folder, "db")
        connection = sqlite3.connect(path, factory=bywash.sqlite_factory(self.stop_client), check_same_thread=False)
        telling = threading.Thread(target=self.tell)
        telling.start()
        with self.assertRaises(Terminated) as caught:
            connection.execute(ENDLESS)
        telling.join()
        self.assertIsInstance(caught.exception.__cause__, sqlite3.OperationalError)
        self.assertEqual(self.token.reason, "client_left")
        was = _current.set(None)
        self.assertEqual(connection.execute("SELECT 1").fetchall(), [(1,)], "the connection is good")
        _current.reset(was)
        connection.close()

    def test_one_that_begins_after_it_was_told_is_interrupted_as_well(self):
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        query = OwnQuery(self.stop_client, connection.interrupt)
        with self.assertRaises(Terminated), query:
            self.tell()
            self.until(lambda: query._told_why)
            connection.execute(ENDLESS)
        connection.close()

    def test_a_query_that_ends_before_it_is_interrupted_returns_and_its_request_is_over(self):
        query = OwnQuery(self.stop_client, lambda: None)
        with query:
            self.tell()
            self.until(lambda: query._told_why)
        self.assertEqual(self.token.reason, "client_left")

    def test_what_comes_late_interrupts_nobody(self):
        interrupted = threading.Event()
        with OwnQuery(self.stop_client, interrupted.set):
            number = self.daemon.next().split()[3]
        with OwnQuery(self.stop_client, interrupted.set):
            self.daemon.say(f"0 STOPPED r1 client_left {number}\n")
            with self.query():
                # The daemon answers this lease after the stop.
                pass
        self.assertFalse(interrupted.is_set())

    def test_a_connection_of_ones_own_is_kept_whatever_the_daemon_says(self):
        self.stop_client = self.talk()
        self.answers(release=None)
        with OwnQuery(self.stop_client, self.fail):
            pass
        self.assertEqual(self.stop_client.stats().spoiled, 0)


if __name__ == "__main__":
    unittest.main()
