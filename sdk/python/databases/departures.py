"""The time from a client's close to the end of its query in the database, without a gateway.

    BYWASH=target/release/bywash scripts/with-databases postgres mariadb -- \\
        python3 sdk/python/databases/departures.py

The packages of requirements.txt must be installed. The applications are the examples of README.md on
uvicorn. For each the program prints the median and the maximum of the turns, with the stop daemon,
and without a daemon, where the driver is alone. It waits LONGEST seconds for the end of a query.
"""

import asyncio
import os
import pathlib
import statistics
import sys
import time
import urllib.parse

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]

from stage import MARIADB, Stage, Watch, conninfo, place  # noqa: E402
from test_frameworks import example_text, served  # noqa: E402

TURNS, LONGEST = 15, 6.0

MYSQL = "mysql+aiomysql://shop:lab@{host}:{port}/shop?autocommit=true".format(**place(MARIADB))

#: The applications by name: a text that only its example has, the kind of its database, the address,
#: and the database's name in the daemon.
APPLICATIONS = {
    "psycopg": ("AsyncConnectionPool", "postgres", conninfo(), "shop"),
    "asyncpg": ("import asyncpg", "postgres", conninfo(), "shop"),
    "SQLAlchemy, psycopg": ("from starlette", "postgres", conninfo().replace("postgresql:", "postgresql+psycopg:"), "shop"),
    "SQLAlchemy, asyncpg": ("from starlette", "postgres", conninfo().replace("postgresql:", "postgresql+asyncpg:"), "shop"),
    "SQLAlchemy, aiomysql": ("from starlette", "mariadb", MYSQL, "store"),
}


async def is_running(watch, count, longest):
    """Wait until this number of queries sleep. Return the time, or None if that takes too long."""
    until = time.perf_counter() + longest
    while await asyncio.to_thread(watch.running) != count:
        if time.perf_counter() > until:
            return None
        await asyncio.sleep(0.001)
    return time.perf_counter()


async def departure(port, watch):
    """Return the milliseconds from the close to the end of the query, or None."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    sleep = "SELECT pg_sleep(8)" if watch.kind == "postgres" else "SELECT SLEEP(8)"
    writer.write(f"GET /search?query={urllib.parse.quote(sleep)} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
    assert await is_running(watch, 1, 60) is not None
    closed = time.perf_counter()
    writer.close()
    ended = await is_running(watch, 0, LONGEST)
    await is_running(watch, 0, 60)
    return None if ended is None else (ended - closed) * 1000


async def measure(what, path, turns):
    word, kind, address, name = APPLICATIONS[what]
    os.environ["DATABASE"], os.environ["BYWASH_STOPD"] = address, path
    names, watch = {}, Watch(kind)
    exec(example_text(word).replace('"shop"', f'"{name}"'), names)
    async with served(names["app"]) as port:
        times = [await departure(port, watch) for _ in range(turns)]
    watch.connection.close()
    if None in times:
        return f"not within {LONGEST:.0f} s"
    return f"{statistics.median(times):.1f} ms, at most {max(times):.1f} ms"


def main():
    stage = Stage()
    for what in APPLICATIONS:
        leased = asyncio.run(measure(what, stage.path, TURNS))
        # A query that runs on takes its whole time.
        alone = asyncio.run(measure(what, "/nowhere/stopd.sock", 3))
        print(f"{what}: {leased}; without a daemon {alone}")
    stage.close()


if __name__ == "__main__":
    main()
