"""Leases for the queries of an SQLAlchemy 2 engine, also of an asynchronous one.

    lease_queries(engine, StopClient(), "shop")

The listeners replace the dialect's `do_execute` and `do_executemany`, the only events that enclose
a query from its begin to its end. A connection that must not be reused is recycled by its pool
(soft invalidation). SQLAlchemy itself closes a connection whose query raises something that is not
an `Exception`, and so after a `Terminated`.
"""

import sys
from typing import Any, Callable

from sqlalchemy import event
from sqlalchemy.util import await_only

from .databases import named, number_of
from .lease import OwnQuery, Query
from .stop_client import StopClient
from .token import current
from .unleased import is_control


def lease_queries(engine: Any, stop_client: StopClient, database: str) -> None:
    """Lease the queries of an engine; `database` is its name in the daemon's configuration."""
    named(database)
    engine = getattr(engine, "sync_engine", engine)

    def leases(name: str) -> None:
        run = getattr(engine.dialect, name)

        @event.listens_for(engine, name)
        def execute(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
            dialect = context.dialect
            # The interrupt of an asynchronous SQLite driver would have to be awaited.
            if current() is None or is_control(statement) or (dialect.is_async and dialect.name == "sqlite"):
                return False
            query = _query(stop_client, database, context)
            _run(query, lambda: run(cursor, statement, parameters, context), dialect.is_async)
            return True

    leases("do_execute")
    leases("do_executemany")


def _query(stop_client: StopClient, database: str, context: Any) -> Query:
    connection = context.root_connection
    lent = connection.connection
    driver = lent.driver_connection
    if context.dialect.name == "sqlite":
        return OwnQuery(stop_client, driver.interrupt)

    def spoil() -> None:
        lent.invalidate(soft=True)

    # An asynchronous connection can only be closed within a greenlet.
    close = spoil if context.dialect.is_async else connection.invalidate
    return Query(stop_client, database, lambda: number_of(driver), close, spoil)


def _run(query: Query, execute: Callable[[], Any], is_async: bool) -> None:
    if not is_async:
        with query:
            execute()
        return
    # SQLAlchemy waits for its asynchronous drivers in the same way.
    await_only(query.__aenter__())
    try:
        execute()
    except BaseException:
        await_only(query.__aexit__(*sys.exc_info()))
        raise
    await_only(query.__aexit__(None, None, None))
