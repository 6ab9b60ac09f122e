"""Measures how long a query goes on in its database after the client of its request has closed its connection.

    scripts/stacks drivers [--record] [LANGUAGE...]         LANGUAGE: python node go rust java php; default: all

Each application is started in the ways of WAYS. In each round, every application runs a query that sleeps. The script
waits until the database lists the query as running, closes the client's connection, and asks the database until the
query is gone. Then it requests the application's next queries, to see whether the same connection serves one of them.

The applications of one language and one database run at the same time, but their clients close one after another. So a
query that runs on costs no time of its own. The script prints the tables of docs/figures/drivers.md. `--record` also
writes their result file, docs/figures/results/drivers.json."""

import argparse
import contextlib
import os
import re
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from applications import DAEMON, GATEWAY, LANGUAGES, USER, WAYS, Application, NotTested
from bywash_lab import figures
from bywash_lab.databases import DATABASES
from bywash_lab.network import LOOPBACK, free_port, get, listens
from bywash_lab.processes import Processes, exit_on_sigterm
from bywash_lab.reports import not_tested
from bywash_lab.waiting import seconds_until, until

ROUNDS = 5
# A query that has run on in this many rounds is not measured again.
ENOUGH = 2
# The seconds after which a query that still runs counts as one that runs on.
LONGEST = 8
# The seconds for which the script asks again at once. Later, it asks after pauses, and the next client closes.
CLOSELY = 0.3
# More requests than a pool of the examples has connections.
NEXT = 20

TABLES = {
    "milliseconds": "{median_ms:.1f|runs on}",
    "connection kept": "{kept|–}",
}

DAEMON_FILE = """version = 1
[stopd]
socket = "{folder}/stopd.sock"
mode = "enforce"
admin = "127.0.0.1:{port}"
leases = ["{user}"]
stops = ["{user}"]
[database.shop]
server = "{server}"
password_file = "{folder}/password"
statements_per_second = 10000
"""
GATEWAY_FILE = """version = 1
mode = "enforce"
[listen]
http = "127.0.0.1:{port}"
admin = "127.0.0.1:0"
[upstream]
server = "http://127.0.0.1:{application}"
limit = 8
[stopd]
socket = "{folder}/stopd.sock"
"""


class Watch:
    """An observer of the queries in a database, over one connection."""

    def __init__(self, kind: str) -> None:
        host, port = DATABASES[kind].address().split(":")
        if kind == "postgres":
            import psycopg

            self.connection = psycopg.connect(f"postgresql://stopd:lab@{host}:{port}/shop", autocommit=True)
            self.sleeping = "SELECT pid FROM pg_stat_activity WHERE usename = 'shop' AND wait_event = 'PgSleep'"
            self.cancelling = "SELECT pg_cancel_backend({})"
        else:
            import pymysql

            self.connection = pymysql.connect(host=host, port=int(port), user="stopd", password="lab", autocommit=True)
            self.sleeping = "SELECT id FROM information_schema.processlist WHERE user = 'shop' AND state = 'User sleep'"
            # The connection may have ended meanwhile.
            self.cancelling = "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1094 BEGIN END; KILL QUERY {}; END"

    def running(self) -> set[int]:
        """Returns the numbers of the connections in which a query of the applications sleeps."""
        with self.connection.cursor() as cursor:
            cursor.execute(self.sleeping)
            return {int(number) for number, in cursor.fetchall()}

    def cancel(self, number: int) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(self.cancelling.format(number))


class Visit:
    """The requests to one application that was started in one way."""

    def __init__(self, application: Application, way: str, port: int, watch: Watch) -> None:
        self.application, self.way, self.port, self.watch = application, way, port, watch
        self.times: list[float | None] = []
        self.kept = 0

    def leave(self) -> None:
        """Requests the query that sleeps, and closes the connection when the query runs."""
        others = self.watch.running()
        with socket.create_connection((LOOPBACK, self.port)) as client:
            client.sendall(f"GET {self.application.path('sleep')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            (self.number,) = until(f"{self.name()} runs its query", lambda: self.watch.running() - others, 30, 0.005)
            self.closed = time.monotonic()
        self.passed: float | None = None
        seconds_until(self.is_over, CLOSELY, 0.001)

    def is_over(self) -> bool:
        """Returns whether the query is gone, or has run on for LONGEST seconds."""
        if self.passed is not None:
            return True
        is_gone = self.number not in self.watch.running()
        passed = time.monotonic() - self.closed
        if is_gone and passed <= LONGEST:
            self.passed = passed
        return self.passed is not None or passed > LONGEST

    def look_again(self) -> None:
        """Ends the query if it runs on. If it is gone, asks whether its connection serves a next one."""
        self.times.append(None if self.passed is None else self.passed * 1000)
        if self.passed is None:
            self.watch.cancel(self.number)
            until(f"{self.name()}'s query can be cancelled", lambda: self.number not in self.watch.running())
        elif any(self.number in self.numbers() for _ in range(NEXT)):
            self.kept += 1

    def numbers(self) -> list[int]:
        """Returns the numbers in the answer to a next request, which asks for that of its connection."""
        answer = get(f"http://{LOOPBACK}:{self.port}{self.application.path('number')}").decode()
        return [int(number) for number in re.findall(r"\d+", answer)]

    def name(self) -> str:
        return f"{self.application.name}, {WAYS[self.way]},"

    def result(self) -> figures.Record:
        ended = [one for one in self.times if one is not None]
        # If the query ran on in most of the rounds, it ran on in the median round.
        median = statistics.median(float("inf") if one is None else one for one in self.times)
        return {
            "language": self.application.language, "driver": self.application.name,
            "database": {"postgres": "PostgreSQL", "mariadb": "MariaDB"}[self.application.database],
            "way": self.way, "rounds": len(self.times), "ended": len(ended),
            "median_ms": round(median, 2) if median < float("inf") else None,
            "longest_ms": round(max(ended), 2) if ended else None,
            "kept": f"{self.kept} of {len(ended)}" if ended else None,
        }


@contextlib.contextmanager
def started(applications: list[Application], kind: str, watch: Watch) -> Iterator[list[Visit]]:
    """Starts the applications in all ways, and what they need. Returns their visits."""
    with tempfile.TemporaryDirectory() as name:
        folder, program = Path(name), os.environ["BYWASH"]
        processes = Processes(folder, patience=90)
        (folder / "password").write_text("lab\n")
        (folder / "password").chmod(0o600)
        admin = free_port()
        (folder / "daemon.toml").write_text(DAEMON_FILE.format(
            folder=folder, port=admin, user=USER, server=DATABASES[kind].url("stopd")))
        visits = []
        try:
            daemon = [program, "stopd", "--config", folder / "daemon.toml"]
            processes.start("daemon", daemon, lambda: listens(admin))
            for application in applications:
                for way in WAYS:
                    port = application_port = free_port()
                    socket_of = folder / ("stopd.sock" if way in (DAEMON, GATEWAY) else "nowhere.sock")
                    application.start(processes, port, way, socket_of)
                    if way == GATEWAY:
                        port = free_port()
                        file = folder / f"gateway-{port}.toml"
                        file.write_text(GATEWAY_FILE.format(folder=folder, port=port, application=application_port))
                        processes.start("gateway", [program, "run", "--config", file], lambda port=port: listens(port))
                    visits.append(Visit(application, way, port, watch))
            for visit in visits:
                until(f"{visit.name()} answers", visit.numbers)
            yield visits
        except BaseException:
            for log in sorted(folder.glob("*.out")):
                print(f"{log.name}:", *log.read_text(errors="replace").splitlines()[-20:], sep="\n", file=sys.stderr)
            raise
        finally:
            processes.kill()


def play(visits: list[Visit]) -> None:
    """Plays one round, without those whose queries run on."""
    visits = [visit for visit in visits if visit.times.count(None) < ENOUGH]
    for visit in visits:
        visit.leave()
    until("each query is gone or runs on", lambda: not [visit for visit in visits if not visit.is_over()], pause=0.005)
    for visit in visits:
        visit.look_again()


def measure(language: str) -> list[figures.Record]:
    """Returns the results of a language's applications."""
    results = []
    for kind in DATABASES:
        applications = [one for one in LANGUAGES[language]() if one.database == kind]
        if not applications or not DATABASES[kind].is_there():
            continue
        watch = Watch(kind)
        with started(applications, kind, watch) as visits:
            for _ in range(ROUNDS):
                play(visits)
        results += [visit.result() for visit in visits]
    return results


def words(cell: str) -> list[str]:
    """Returns the words of the mark that writes a table of docs/figures/drivers.md."""
    return ["drivers", "rows=language", "rows=driver", "rows=database", "columns=way",
            f"titles={'|'.join(WAYS.values())}", f"cell={cell}"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/stacks drivers", description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write docs/figures/results/drivers.json")
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help=f"{' '.join(LANGUAGES)}; default: all")
    chosen = parser.parse_args()
    if unknown := set(chosen.languages) - set(LANGUAGES):
        parser.error(f"unknown: {', '.join(unknown)}: use {' '.join(LANGUAGES)}")
    exit_on_sigterm()
    results = []
    for language in chosen.languages or LANGUAGES:
        try:
            results += measure(language)
        except NotTested as why:
            not_tested(f"{language}, {why}")
    if chosen.record:
        figures.write("drivers", f"scripts/stacks drivers {' '.join(chosen.languages)}".strip(), results)
    for title, cell in TABLES.items():
        print(f"{title}\n\n{figures.table(words(cell), lambda name: {'results': results})}\n")


if __name__ == "__main__":
    main()
