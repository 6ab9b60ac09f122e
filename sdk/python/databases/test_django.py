"""The example of README.md with Django, as WSGI, on a real database."""

import io
import socket
import threading
import time
import unittest
import urllib.parse

from bywash import Taken, Terminated, unleased
from stage import MARIADB, PATIENCE, POSTGRES, Stage, Watch, controller, place, request, stop_client, thread, until
from test_drivers import MySQLdb
from test_frameworks import SLEEP, example


def search(request):
    from django.db import connection
    from django.http import HttpResponse

    with connection.cursor() as cursor:
        for query in request.GET["query"].split(";"):
            cursor.execute(query)
        return HttpResponse(str(cursor.fetchone()[0]))


def configure():
    import django
    from django.conf import settings
    from django.urls import path

    if settings.configured:
        return

    def database(engine, address):
        place_of = {key.upper(): value for key, value in place(address or "none:0").items()}
        return {"ENGINE": f"django.db.backends.{engine}", "NAME": "shop", "USER": "shop", "PASSWORD": "lab", **place_of}

    postgres = database("postgresql", POSTGRES)
    urls = type("Urls", (), {"urlpatterns": [path("search", search)]})
    settings.configure(
        ALLOWED_HOSTS=["*"],
        DATABASES={
            "default": {**postgres, "CONN_MAX_AGE": None, "ATOMIC_REQUESTS": True},
            # Under ASGI each request has a connection of its own, which must be closed at its end.
            "asgi": {**postgres, "OPTIONS": {"application_name": "asgi"}},
            "store": database("mysql", MARIADB),
        },
        ROOT_URLCONF=urls,
        SECRET_KEY="lab",
    )
    django.setup()


@unittest.skipIf(POSTGRES is None, "NOT TESTED: PostgreSQL is not there")
class OnDjango(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import os

        cls.stage = Stage()
        os.environ["BYWASH_STOPD"] = cls.stage.path
        configure()
        cls.names = example("django.core.wsgi")
        cls.watch = Watch("postgres")

    @classmethod
    def tearDownClass(cls):
        cls.stage.close()
        cls.watch.connection.close()

    def get(self, name, query):
        """Handle one request in this thread, as a server does."""
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": "/search",
            "QUERY_STRING": "query=" + urllib.parse.quote(query),
            "SERVER_NAME": "a",
            "SERVER_PORT": "80",
            "HTTP_BYWASH_REQUEST": name,
            "wsgi.input": io.BytesIO(),
            "wsgi.url_scheme": "http",
        }
        statuses = []
        body = self.names["application"](environ, lambda status, *_: statuses.append(status))
        text = b"".join(body)
        body.close()
        return int(statuses[-1].split()[0]), text.decode()

    def stats(self):
        return self.names["stop_client"].stats()

    def test_a_stopped_query_is_cancelled_and_its_request_answered_for(self):
        join = thread(self.get, "p1", SLEEP)
        until(lambda: self.watch.running() == 1)
        self.assertEqual(self.stage.stop("p1"), "1 OK cancelled=1 spared=0")
        status, text = join()
        self.assertEqual((status, "(client_left)" in text), (504, True))
        until(lambda: self.watch.running() == 0)
        self.assertEqual(self.get("p1", "SELECT 1")[0], 504, "it does not begin")
        self.assertEqual(self.get("p2", "SELECT 1"), (200, "1"))

    def stop_in_turn(self, turn, leased):
        """Stop the request of this turn at some time of its query.

        Every other request is only stopped once it has its lease, so that the test does not
        depend on the speed of the machine.
        """
        latest = time.monotonic() + PATIENCE
        while turn % 2 and self.stats().leased == leased and time.monotonic() < latest:
            time.sleep(0.0002)
        time.sleep(turn * 0.00005)
        self.stage.stop(f"v{turn}")

    def test_of_requests_that_share_a_connection_only_the_stopped_ones_are_hit(self):
        hit = 0
        first = self.get("t", "SELECT pg_backend_pid()")
        for turn in range(200):
            stopping = threading.Thread(target=self.stop_in_turn, args=(turn, self.stats().leased))
            stopping.start()
            hit += self.get(f"v{turn}", "SELECT pg_sleep(0.003)")[0] == 504
            self.assertEqual(self.get(f"i{turn}", "SELECT pg_sleep(0.003)")[0], 200, turn)
            stopping.join(PATIENCE)
        self.assertGreater(hit, 10, self.stats())
        self.assertEqual(self.get("t", "SELECT pg_backend_pid()"), first, "one connection")

    def ask(self, name, query):
        """Run a query outside of Django's handling of requests, and in no transaction."""
        from django.db import connection

        with request(controller(), name), connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchone()[0]

    def test_a_request_that_is_over_rolls_back_to_its_savepoint(self):
        from django.db import connection, transaction

        with request(controller(), "s1") as token, transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE t (a INT) ON COMMIT DROP")
            with self.assertRaises(Terminated), transaction.atomic():
                cursor.execute("INSERT INTO t VALUES (1)")
                token.leave()
                cursor.execute("SELECT 1")
            with unleased():
                cursor.execute("SELECT count(*) FROM t")
            self.assertEqual(cursor.fetchone(), (0,))

    def test_an_alias_that_is_leased_twice_leases_each_query_once(self):
        from bywash.django import lease_queries

        lease_queries(stop_client(self, self.stage), default="shop")
        before = self.stats().leased
        self.assertEqual(self.ask("u1", "SELECT 1"), 1)
        self.assertEqual(self.stats().leased, before + 1)

    def test_a_connection_that_another_has_too_is_replaced_for_the_next_request(self):
        from django.db import connection

        pid = self.ask("t1", "SELECT pg_backend_pid()")
        with socket.socket(socket.AF_UNIX) as other, other.makefile("r") as answers:
            other.settimeout(PATIENCE)
            other.connect(self.stage.path)
            other.sendall(f"1 LEASE other shop {pid}\n".encode())
            self.assertEqual(answers.readline(), "1 OK\n")
            with self.assertRaises(Taken):
                self.ask("t2", "SELECT 1")
        # Django does this at the begin of a request.
        connection.close_if_unusable_or_obsolete()
        self.assertNotEqual(self.ask("t3", "SELECT pg_backend_pid()"), pid)

    def test_a_connection_whose_release_is_not_answered_ends_its_transaction_and_is_not_lent_again(self):
        from django.db import connection

        pid = "SELECT pg_backend_pid()"
        first = self.get("y1", pid)

        def asking():
            return self.get("y2", pid)[1], self.get("y3", f"SELECT pg_sleep(0.5);{pid}"), self.get("y4", pid)[1]

        join = thread(asking)
        until(lambda: self.watch.running() == 1)
        self.stage.kill()
        before, (status, within), after = join()
        self.assertEqual((status, within), (200, before), "the transaction goes on")
        self.assertNotEqual(after, before)
        self.assertEqual(first[0], 200)
        connection.close()
        self.stage.start()
        leased = self.stats().leased
        until(lambda: self.get("y5", pid)[0] == 200 and self.stats().leased > leased)


@unittest.skipIf(MARIADB is None or MySQLdb is None, "NOT TESTED: MariaDB and mysqlclient are not both there")
class OnMariaDB(unittest.TestCase):
    def test_a_stopped_query_is_cancelled_and_its_connection_lives_on(self):
        configure()
        from bywash.django import lease_queries
        from django.db import connections

        stage, watch = Stage(), Watch("mariadb")
        self.addCleanup(stage.close)
        self.addCleanup(watch.connection.close)
        lease_queries(stop_client(self, stage), store="store")

        def ask(name, query):
            with request(controller(), name), connections["store"].cursor() as cursor:
                cursor.execute(query)
                return cursor.fetchone()[0]

        def work():
            first = ask("m1", "SELECT CONNECTION_ID()")
            with self.assertRaises(Terminated):
                ask("m2", "SELECT SLEEP(60)")
            last = ask("m3", "SELECT CONNECTION_ID()")
            connections["store"].close()
            return last == first

        join = thread(work)
        until(lambda: watch.running() == 1)
        self.assertEqual(stage.stop("m2"), "1 OK cancelled=1 spared=0")
        self.assertIs(join(), True)
        until(lambda: watch.running() == 0)


if __name__ == "__main__":
    unittest.main()
