"""Leases for the queries of Django's connections, by `execute_wrapper`; and cancellation under ASGI.

Call this once, where an application begins (an `AppConfig.ready`, or wsgi.py):

    lease_queries(StopClient(), default="shop")

A connection that must not be reused is closed when its request ends, like one that has become too
old (`close_at`). One of Django's pool for PostgreSQL is closed at once, because the pool takes it
back regardless of Django. A connection that another client has leased too (`Taken`) is closed at
once as well, and Django replaces it for the next request.
"""

import asyncio
import contextlib
from typing import Any, Callable, Dict

from asgiref.sync import ThreadSensitiveContext
from django.core.signals import request_finished
from django.db import connections
from django.db.backends.signals import connection_created

from .asgi import App, Message, Receive, Scope, Send
from .databases import close, named, number_of
from .lease import OwnQuery, Query
from .stop_client import StopClient
from .token import Terminated, current
from .unleased import is_control


class LeaseQueries:
    """A wrapper for `connection.execute_wrapper`.

    `database` is the name in the daemon's configuration.
    """

    def __init__(self, stop_client: StopClient, database: str) -> None:
        self._stop_client = stop_client
        self._database = named(database)

    def __call__(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        if current() is None or is_control(sql, context["cursor"]):
            return execute(sql, params, many, context)
        with self._query(context["connection"]):
            return execute(sql, params, many, context)

    def _query(self, wrapper: Any) -> Query:
        driver = wrapper.connection
        if wrapper.vendor == "sqlite":
            return OwnQuery(self._stop_client, driver.interrupt)

        def end() -> None:
            close(driver)
            wrapper.close_at = 0.0

        return Query(self._stop_client, self._database, lambda: number_of(driver), end, lambda: spoil(wrapper))


def spoil(wrapper: Any) -> None:
    """Make the connection close at the end of the request, instead of being reused."""
    if wrapper.settings_dict["OPTIONS"].get("pool"):
        close(wrapper.connection)
    else:
        wrapper.close_at = 0.0


def lease_queries(stop_client: StopClient, **databases: str) -> None:
    """Lease the queries of all connections with these aliases.

    The arguments are `alias="name in the daemon's configuration"`. Another call for the same alias
    has no effect.
    """
    for alias, name in databases.items():
        _wrappers.setdefault(alias, LeaseQueries(stop_client, name))
    # There is no list of all connections, since each thread has its own. Django connects a receiver
    # once.
    connection_created.connect(_lease)
    for connection in connections.all(initialized_only=True):
        _lease(connection)


#: The wrappers of this process, by alias.
_wrappers: Dict[str, LeaseQueries] = {}


def _lease(connection: Any, **_: Any) -> None:
    wrapper = _wrappers.get(connection.alias)
    if wrapper is not None and wrapper not in connection.execute_wrappers:
        connection.execute_wrappers.append(wrapper)


def cancellable(application: App) -> App:
    """Return an ASGI application of Django that ends its view if it is cancelled.

    Django's own handler runs each view in another task, and cancels that task only if the client
    leaves. If the handler itself is cancelled, the view runs on, and its connections are not closed.
    Therefore a cancellation is passed on as a client that leaves.
    """

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        ended = asyncio.get_running_loop().create_future()

        async def receive_or_end() -> Message:
            coming = asyncio.ensure_future(receive())
            try:
                await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
                return coming.result() if coming.done() else {"type": "http.disconnect"}
            finally:
                coming.cancel()

        handler = asyncio.ensure_future(application(scope, receive_or_end, send))
        try:
            await asyncio.shield(handler)
        except asyncio.CancelledError:
            ended.set_result(None)
            # A further cancellation would end the handler before its view.
            while not handler.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({handler})
            await handler
            raise

    async def run_and_close(scope: Scope, receive: Receive, send: Send) -> None:
        # The thread of the request's synchronous code, which has its connections.
        async with ThreadSensitiveContext():
            try:
                await run(scope, receive, send)
            except Terminated:
                # Django does not know this error, and would leave the connections open.
                await request_finished.asend(sender=type(application))
                raise

    return run_and_close
