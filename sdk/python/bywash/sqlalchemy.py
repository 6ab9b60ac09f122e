"""SQLAlchemy 2: the queries of an engine are leased, of an asynchronous one as well.

    lease_queries(engine, Sentry(), "shop")

It stands where the dialect executes (`do_execute`, `do_executemany`), which is the one event that holds a query from
its begin to its end. A connection that is not to be lent again is recycled by its pool (soft invalidation). SQLAlchemy
itself closes one out of whose query something comes that is no `Exception`, and so after a `Terminated`.
"""

import sys
from typing import Any, Callable

from sqlalchemy import event
from sqlalchemy.util import await_only

from .databases import named, number_of
from .lease import OwnQuery, Query
from .sentry import Sentry
from .token import current
from .unleased import is_control


def lease_queries(engine: Any, sentry: Sentry, database: str) -> None:
    """Leases the queries of an engine; `database` is its name in the daemon's configuration."""
    named(database)
    engine = getattr(engine, "sync_engine", engine)

    def leases(name: str) -> None:
        run = getattr(engine.dialect, name)

        @event.listens_for(engine, name)
        def execute(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
            dialect = context.dialect
            # What interrupts SQLite in a thread of its own would have to be awaited.
            if current() is None or is_control(statement) or (dialect.is_async and dialect.name == "sqlite"):
                return False
            query = _query(sentry, database, context)
            _run(query, lambda: run(cursor, statement, parameters, context), dialect.is_async)
            return True

    leases("do_execute")
    leases("do_executemany")


def _query(sentry: Sentry, database: str, context: Any) -> Query:
    connection = context.root_connection
    lent = connection.connection
    driver = lent.driver_connection
    if context.dialect.name == "sqlite":
        return OwnQuery(sentry, driver.interrupt)

    def spoil() -> None:
        lent.invalidate(soft=True)

    # An asynchronous one cannot be closed from where no greenlet runs.
    close = spoil if context.dialect.is_async else connection.invalidate
    return Query(sentry, database, lambda: number_of(driver), close, spoil)


def _run(query: Query, execute: Callable[[], Any], is_async: bool) -> None:
    if not is_async:
        with query:
            execute()
        return
    # SQLAlchemy waits for its asynchronous drivers like this.
    await_only(query.__aenter__())
    try:
        execute()
    except BaseException:
        await_only(query.__aexit__(*sys.exc_info()))
        raise
    await_only(query.__aexit__(None, None, None))
