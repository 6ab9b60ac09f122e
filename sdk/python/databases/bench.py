"""The cost of leasing: a query without a lease, with one, and with a daemon that is not there.

    BYWASH=target/release/bywash scripts/with-databases postgres mariadb -- \\
        python3 sdk/python/databases/bench.py

The packages of requirements.txt must be installed. All sides run in turns in one process on one
connection to a database on loopback. The program prints the median of the turns.
"""

import asyncio
import pathlib
import statistics
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]

import psycopg  # noqa: E402
from bywash import StopClient, leased  # noqa: E402
from stage import Stage, conninfo, controller, mariadb, postgres, request  # noqa: E402

TURNS, QUERIES = 15, 400


def turn(connection):
    start = time.perf_counter()
    with connection.cursor() as cursor:
        for _ in range(QUERIES):
            cursor.execute("SELECT 1")
            cursor.fetchall()
    return (time.perf_counter() - start) / QUERIES * 1e6


async def turn_async(connection):
    start = time.perf_counter()
    async with connection.cursor() as cursor:
        for _ in range(QUERIES):
            await cursor.execute("SELECT 1")
            await cursor.fetchall()
    return (time.perf_counter() - start) / QUERIES * 1e6


def report(what, rows):
    without, with_it, absent = (statistics.median(row[i] for row in rows) for i in range(3))
    ratios = [statistics.median(row[i] / row[0] for row in rows) for i in (1, 2)]
    print(
        f"{what}: {without:.0f} us without, {with_it:.0f} us leased (ratio {ratios[0]:.2f}), "
        f"{absent:.0f} us without a daemon (ratio {ratios[1]:.2f})"
    )


async def asynchronous(stage, nobody):
    sides = [await psycopg.AsyncConnection.connect(conninfo(), autocommit=True) for _ in range(3)]
    stop_clients = [StopClient(stage.path), nobody]
    for connection, stop_client in zip(sides[1:], stop_clients):
        leased(connection, stop_client, "shop")
    report("psycopg, asynchronous", [[await turn_async(each) for each in sides] for _ in range(TURNS)])
    for connection in sides:
        await connection.close()


def main():
    stage, nobody = Stage(), StopClient("/nowhere/stopd.sock")
    for what, connect, name in (("psycopg", postgres, "shop"), ("PyMySQL", mariadb, "store")):
        sides = [connect(), leased(connect(), StopClient(stage.path), name), leased(connect(), nobody, name)]
        with request(controller(), "r1"):
            report(what, [[turn(each) for each in sides] for _ in range(TURNS)])
        for connection in sides:
            connection.close()
    with request(controller(), "r2"):
        asyncio.run(asynchronous(stage, nobody))
    stage.close()


if __name__ == "__main__":
    main()
