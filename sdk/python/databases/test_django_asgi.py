"""The example of README.md with Django, as ASGI, on a real database and server."""

import asyncio
import gc
import unittest
import warnings

from stage import until
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


def waiting(ended):
    """Return a view that waits, and puts into a list that it has ended."""
    from django.db import transaction

    @transaction.non_atomic_requests
    async def wait(request):
        try:
            await asyncio.sleep(600)
        finally:
            ended.append(True)

    return wait


class OnDjangoAsgi(Served):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        configure()
        text, cls.names = example_text("django.core.asgi"), {}
        exec(compile(text.replace("default=", "asgi="), str(README), "exec"), cls.names)
        cls.views = views()

    async def serves(self, view):
        """Serve this view until the end of the test."""
        from django.test import override_settings
        from django.urls import path

        override = override_settings(ROOT_URLCONF=type("Urls", (), {"urlpatterns": [path("search", view)]}))
        override.enable()
        self.addCleanup(override.disable)
        await self.serve(self.names["application"])

    async def obeys(self, view):
        """Check the rules for a view, and that it leaves no connection open."""
        await self.serves(self.views[view])
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            await self.laws(self.names)
            gc.collect()
        # The warning of psycopg.
        self.assertEqual([each for each in map(str, warned) if "deleted while still open" in each], [])

    async def test_a_view_that_awaits_a_thread(self):
        await self.obeys("sync_to_async")

    async def test_a_view_that_awaits_the_asynchronous_orm(self):
        await self.obeys("the asynchronous ORM")

    async def test_a_synchronous_view(self):
        await self.obeys("a synchronous view")

    async def test_a_view_that_waits_is_cancelled(self):
        ended = []
        await self.serves(waiting(ended))
        self.assertEqual((await self.get("w1", "", "bywash-deadline: 300\r\n"))[0], 504)
        await asyncio.to_thread(until, lambda: ended)


if __name__ == "__main__":
    unittest.main()
