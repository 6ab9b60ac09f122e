"""Leases for connections of the drivers for PostgreSQL, MariaDB and MySQL, and of sqlite3.

The drivers are psycopg (also asynchronous), psycopg2, asyncpg, PyMySQL, mysqlclient, aiomysql and
asyncmy.

A connection keeps its class, and only the class of its cursors changes. These drivers have an
attribute or a parameter for that, so pools and frameworks work as before. asyncpg has no cursors
of this kind: all its queries pass a protocol object, which is wrapped. One query at a time is
leased on a connection. Threads or tasks that share the connection wait for their turn, and hold
no lease while they wait. Statements that run without a lease also wait until the lease is
released. An example is transaction control (`unleased.py`), which is neither leased nor refused.
"""

import asyncio
import contextlib
import functools
import re
import threading
import weakref
from typing import Any, Callable, Dict, Optional, Tuple, Type

from .classes import SettingError
from .lease import OwnQuery, Query
from .stop_client import StopClient
from .unleased import is_control

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")

#: The methods by which a cursor runs a statement, and by which SQLite goes on with one.
_RUN = ("execute", "executemany", "callproc")
_RUN_SQLITE = ("execute", "executemany", "executescript", "fetchmany", "fetchall")

#: The operations of asyncpg's protocol that run a statement, or a part of it; and those that only
#: close something, which are not leased.
_RUN_ASYNCPG = ("bind", "bind_execute", "bind_execute_many", "copy_in", "copy_out", "execute", "prepare", "query")
_CLOSE_ASYNCPG = ("close_portal", "close_statement")


def leased(connection: Any, stop_client: StopClient, database: str) -> Any:
    """Make this connection lease its queries from now on, and return it.

    `database` is the name of the database in the daemon's configuration.
    """
    named(database)
    if hasattr(connection, "get_reset_query"):
        _lease_asyncpg(connection, stop_client, database)
        return connection
    attribute = next((each for each in ("cursor_factory", "cursorclass", "_cursor_cls") if hasattr(connection, each)), None)
    if attribute is None:
        known = "psycopg, psycopg2, asyncpg, PyMySQL, mysqlclient, aiomysql and asyncmy; for sqlite3 there is sqlite_factory"
        raise SettingError(f"{type(connection).__name__} is not a connection of {known}")
    # The attribute is None by default in psycopg2.
    base = getattr(connection, attribute) or _default(connection)
    is_async = asyncio.iscoroutinefunction(base.execute)
    _shared[connection] = (_AsyncConnection if is_async else _Connection)(connection, stop_client, database)
    setattr(connection, attribute, _cursor(base, is_async))
    return connection


def sqlite_factory(stop_client: StopClient) -> Type[Any]:
    """Return a factory for `sqlite3.connect` that makes queries end with their requests.

    `execute`, `fetchmany` and `fetchall` can be interrupted, but not `fetchone`. Threads that share
    a connection take turns in these calls, because an interrupt hits every statement that runs on
    the connection.
    """
    import sqlite3

    def wrapped(name: str) -> Callable[..., Any]:
        run = getattr(sqlite3.Cursor, name)

        @functools.wraps(run)
        def wrapper(self: sqlite3.Cursor, *args: Any, **named: Any) -> Any:
            with self.connection._turn:
                if name.startswith("exec") and args and is_control(args[0]):
                    return run(self, *args, **named)
                with OwnQuery(stop_client, self.connection.interrupt):
                    return run(self, *args, **named)

        return wrapper

    leased_cursor = type("LeasedCursor", (sqlite3.Cursor,), {name: wrapped(name) for name in _RUN_SQLITE})

    class LeasedConnection(sqlite3.Connection):
        def __init__(self, *args: Any, **named: Any) -> None:
            # An SQL function may run a statement in its turn.
            self._turn = threading.RLock()
            super().__init__(*args, **named)

        def cursor(self, factory: Any = leased_cursor) -> Any:
            return super().cursor(factory)

        # The base class would use its own cursors for these.
        def execute(self, *args: Any) -> Any:
            return self.cursor().execute(*args)

        def executemany(self, *args: Any) -> Any:
            return self.cursor().executemany(*args)

        def executescript(self, *args: Any) -> Any:
            return self.cursor().executescript(*args)

    return LeasedConnection


def named(database: str) -> str:
    """Return the name of a database if it is valid; else raise `SettingError`."""
    if not _NAME.fullmatch(database) or database == "self":
        raise SettingError(f"database is {database!r}, and must be 1 to 32 letters, digits or any of _ -, and not self")
    return database


def number_of(connection: Any) -> int:
    """Return the number that the database has for this connection of a driver."""
    for name in ("get_backend_pid", "get_server_pid", "thread_id"):
        ask = getattr(connection, name, None)
        if ask is not None:
            return int(ask())
    return int(connection.info.backend_pid)


def close(connection: Any) -> Any:
    """Close the connection, or return the coroutine that closes it."""
    with contextlib.suppress(Exception):
        # Some drivers raise an error if it is closed already. The `close` of asyncpg may wait.
        return getattr(connection, "terminate", connection.close)()


class _Connection:
    """The lease state of a connection that threads use."""

    def __init__(self, connection: Any, stop_client: StopClient, database: str) -> None:
        # A weak reference, because the connection is the key of this object.
        self._connection, self._stop_client, self._database = weakref.ref(connection), stop_client, database
        self._lock = threading.RLock()
        self._is_running = False

    def run(self, what: Callable[..., Any], *args: Any, **named: Any) -> Any:
        with self._lock:
            # `executemany` may call `execute`.
            if self._is_running or self._is_control(what, args, named):
                return what(*args, **named)
            self._is_running = True
            try:
                with self._query():
                    return what(*args, **named)
            finally:
                self._is_running = False

    def _query(self) -> Query:
        connection = self._connection()
        return Query(self._stop_client, self._database, lambda: number_of(connection), lambda: close(connection))

    def _is_control(self, what: Callable[..., Any], args: Tuple[Any, ...], named: Dict[str, Any]) -> bool:
        """Return whether a call of a cursor's method is transaction control.

        A procedure's name is not a statement. All drivers name the parameter of a statement `query`.
        """
        statement = args[1] if len(args) > 1 else named.get("query")
        return getattr(what, "__name__", "") != "callproc" and is_control(statement, args[0])


class _AsyncConnection(_Connection):
    """The lease state of a connection of an event loop."""

    def __init__(self, connection: Any, stop_client: StopClient, database: str) -> None:
        super().__init__(connection, stop_client, database)
        self._turn: Optional[asyncio.Lock] = None
        # The task whose turn it is: `executemany` may call `execute`.
        self._runner: Optional["asyncio.Task[Any]"] = None

    async def run(self, what: Callable[..., Any], *args: Any, **named: Any) -> Any:
        if self._turn is None:
            # Python 3.9 binds the lock to the loop in which it is created.
            self._turn = asyncio.Lock()
        task = asyncio.current_task()
        if self._runner is not None and self._runner is task:
            return await what(*args, **named)
        async with self._turn:
            self._runner = task
            try:
                if self._is_control(what, args, named):
                    return await what(*args, **named)
                async with self._query():
                    return await what(*args, **named)
            finally:
                self._runner = None


class _Asyncpg(_AsyncConnection):
    """The lease state of a connection of asyncpg, and its protocol while it is leased.

    It has all attributes of the driver's protocol. Its operations are queries of the connection.
    """

    def __init__(self, connection: Any, stop_client: StopClient, database: str) -> None:
        super().__init__(connection, stop_client, database)
        self._protocol = connection._protocol
        # A pool runs this text when a connection comes back to it.
        self._reset_query = connection.get_reset_query()
        # Whether the connection must be closed, because a release was interrupted, refused or not
        # answered.
        self._is_spoiled = False

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._protocol, name)
        if name in _RUN_ASYNCPG or name in _CLOSE_ASYNCPG:
            return functools.partial(self.run, attribute)
        return attribute

    async def run(self, what: Callable[..., Any], *args: Any, **named: Any) -> Any:
        try:
            return await super().run(what, *args, **named)
        finally:
            # asyncpg refuses a ROLLBACK on a closed connection, and its error would replace
            # `Terminated`. So the connection is closed after the end of its transaction.
            if self._is_spoiled and not self._protocol.is_in_transaction():
                close(self._connection())

    def _query(self) -> Query:
        connection = self._connection()
        return Query(
            self._stop_client, self._database, lambda: number_of(connection), lambda: close(connection), self._spoil
        )

    def _spoil(self) -> None:
        self._is_spoiled = True

    def _is_control(self, what: Callable[..., Any], args: Tuple[Any, ...], named: Dict[str, Any]) -> bool:
        name = what.__name__
        # `prepare` has the name of the statement in front of its text.
        place = 1 if name == "prepare" else 0
        # asyncpg passes a prepared statement as `state` where it uses names.
        statement = args[place] if len(args) > place else named.get("state")
        statement = getattr(statement, "query", statement)
        return name in _CLOSE_ASYNCPG or statement == self._reset_query or is_control(statement)


def _lease_asyncpg(connection: Any, stop_client: StopClient, database: str) -> None:
    # A pool lends a proxy of its connection.
    connection = getattr(connection, "_con", connection)
    if not isinstance(connection._protocol, _Asyncpg):
        connection._protocol = _Asyncpg(connection, stop_client, database)


_shared: "weakref.WeakKeyDictionary[Any, _Connection]" = weakref.WeakKeyDictionary()


def _default(connection: Any) -> Type[Any]:
    import importlib

    extensions = importlib.import_module(type(connection).__module__.split(".")[0] + ".extensions")
    return extensions.cursor  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _cursor(base: Type[Any], is_async: bool) -> Type[Any]:
    """Return the class of cursors with leased queries. There are few, so each is cached."""
    if getattr(base, "_is_leased", False):
        return base
    wrapped = _wrapped_async if is_async else _wrapped
    names: Tuple[str, ...] = tuple(name for name in _RUN if hasattr(base, name))
    ours = {name: wrapped(base, name) for name in names}
    return type(f"Leased{base.__name__}", (base,), {"_is_leased": True, **ours})


def _of(cursor: Any) -> Any:
    """Return the lease state of the cursor's connection.

    A closed cursor may have none, and raises its own error.
    """
    try:
        return _shared.get(cursor.connection)
    except TypeError:
        return None


def _wrapped(base: Type[Any], name: str) -> Callable[..., Any]:
    run = getattr(base, name)

    @functools.wraps(run)
    def wrapper(self: Any, *args: Any, **named: Any) -> Any:
        shared = _of(self)
        return run(self, *args, **named) if shared is None else shared.run(run, self, *args, **named)

    return wrapper


def _wrapped_async(base: Type[Any], name: str) -> Callable[..., Any]:
    run = getattr(base, name)

    @functools.wraps(run)
    async def wrapper(self: Any, *args: Any, **named: Any) -> Any:
        shared = _of(self)
        return await (run(self, *args, **named) if shared is None else shared.run(run, self, *args, **named))

    return wrapper
