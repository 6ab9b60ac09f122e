"""Leases for the queries of Django's connections, by `execute_wrapper`.

Call this once, where an application begins (an `AppConfig.ready`, or wsgi.py):

    lease_queries(StopClient(), default="shop")

A connection that must not be reused is closed when its request ends, like one that has become too
old (`close_at`). One of Django's pool for PostgreSQL is closed at once, because the pool takes it
back regardless of Django. A connection that another client has leased too (`Taken`) is closed at
once as well, and Django replaces it for the next request.
"""

from typing import Any, Callable

from django.db import connections
from django.db.backends.signals import connection_created

from .databases import close, named, number_of
from .lease import OwnQuery, Query
from .stop_client import StopClient
from .token import current
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

    The arguments are `alias="name in the daemon's configuration"`.
    """
    wrappers = {alias: LeaseQueries(stop_client, name) for alias, name in databases.items()}

    def lease(connection: Any, **_: Any) -> None:
        wrapper = wrappers.get(connection.alias)
        if wrapper is not None and wrapper not in connection.execute_wrappers:
            connection.execute_wrappers.append(wrapper)

    # There is no list of all connections, since each thread has its own.
    connection_created.connect(lease, weak=False, dispatch_uid="bywash")
    for connection in connections.all(initialized_only=True):
        lease(connection)
