"""The example of README.md with Django, as ASGI, on a real database and server."""

import asyncio
import gc
import unittest
import warnings

from stage import PATIENCE, until
from test_django import configure
from test_frameworks import README, Served, example_text


def views():
    """Return the views that run a query under ASGI, by name."""
    from asgiref.sync import sync_to_async
    from django.db import connections, models, transaction
    from django.db.models.expressions import RawSQL
    from django.http import HttpResponse

    class Row(models.Model):
        """A row of a table that every database has."""

        datname = models.TextField(primary_key=True)

        class Meta:
            app_label, db_table, managed = "lab", "pg_database", False

    def run(query):
        with connections["asgi"].cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchone()[0]

    @transaction.non_atomic_requests
    async def in_a_thread(request):
        return HttpResponse(str(await sync_to_async(run)(request.GET["query"])))

    @transaction.non_atomic_requests
    async def mapped(request):
        rows = Row.objects.using("asgi").annotate(found=RawSQL(request.GET["query"], ()))
        return HttpResponse(str((await rows.afirst()).found))

    @transaction.non_atomic_requests
    def synchronous(request):
        return HttpResponse(str(run(request.GET["query"])))

    return {"sync_to_async": in_a_thread, "the asynchronous ORM": mapped, "a synchronous view": synchronous}


class Waiting:
    """A view that waits until it is cancelled, and then until it may end."""

    def __init__(self):
        self.has_begun, self.is_cancelled, self.may_end = (asyncio.Event() for _ in range(3))
        self.has_ended = False

    def view(self):
        from django.db import transaction

        @transaction.non_atomic_requests
        async def wait(request):
            self.has_begun.set()
            try:
                await asyncio.sleep(600)
            finally:
                self.is_cancelled.set()
                await self.may_end.wait()
                self.has_ended = True

        return wait


class OnDjangoAsgi(Served):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        configure()
        text, cls.names = example_text("django.core.asgi"), {}
        exec(compile(text.replace("default=", "asgi="), str(README), "exec"), cls.names)
        cls.views = views()

    def route(self, view):
        """Let Django's only path be this view until the end of the test."""
        from django.test import override_settings
        from django.urls import path

        override = override_settings(ROOT_URLCONF=type("Urls", (), {"urlpatterns": [path("search", view)]}))
        override.enable()
        self.addCleanup(override.disable)

    async def obeys(self, view):
        """Check the rules for a view, and that it leaves no connection open."""
        self.route(self.views[view])
        await self.serve(self.names["application"])
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            await self.laws(self.names)
            gc.collect()
        # psycopg warns of a connection that its garbage collection closes.
        self.assertEqual([each for each in map(str, warned) if "deleted while still open" in each], [])
        opened = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'asgi'"
        await asyncio.to_thread(until, lambda: self.watch.ask(opened) == [(0,)])

    async def test_a_view_that_awaits_a_thread(self):
        await self.obeys("sync_to_async")

    async def test_a_view_that_awaits_the_asynchronous_orm(self):
        await self.obeys("the asynchronous ORM")

    async def test_a_synchronous_view(self):
        await self.obeys("a synchronous view")

    async def test_a_view_that_waits_is_cancelled(self):
        waiting = Waiting()
        waiting.may_end.set()
        self.route(waiting.view())
        await self.serve(self.names["application"])
        self.assertEqual((await self.get("w1", "", "bywash-deadline: 300\r\n"))[0], 504)
        await asyncio.to_thread(until, lambda: waiting.has_ended)

    async def test_a_second_cancellation_does_not_leave_the_view_behind(self):
        from bywash.django import cancellable
        from django.core.asgi import get_asgi_application

        waiting, sent = Waiting(), []
        self.route(waiting.view())

        async def receive():
            return await (messages.get() if not messages.empty() else asyncio.sleep(600))

        async def send(message):
            sent.append(message)

        messages = asyncio.Queue()
        messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        scope = {"type": "http", "method": "GET", "path": "/search", "query_string": b"", "headers": [(b"host", b"a")]}
        running = asyncio.ensure_future(cancellable(get_asgi_application())(scope, receive, send))
        await asyncio.wait_for(waiting.has_begun.wait(), PATIENCE)
        running.cancel()
        await asyncio.wait_for(waiting.is_cancelled.wait(), PATIENCE)
        running.cancel()
        # Enough turns of the loop for the task to end, if it does not wait for the view.
        for _ in range(100):
            await asyncio.sleep(0)
        self.assertFalse(running.done())
        waiting.may_end.set()
        with self.assertRaises(asyncio.CancelledError):
            await running
        self.assertEqual((waiting.has_ended, sent), (True, []))


if __name__ == "__main__":
    unittest.main()
