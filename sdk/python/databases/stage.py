"""The common part of these tests: the real daemon and the databases of scripts/with-databases."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import psycopg
import pymysql
from bywash import Class, Controller, StopClient
from bywash.token import _current

#: Seconds: longer than anything takes on a busy machine, and the duration of a query that is not
#: stopped.
PATIENCE = 60

POSTGRES, MARIADB = os.environ.get("BYWASH_POSTGRES"), os.environ.get("BYWASH_MARIADB")
PROGRAM = os.environ.get("BYWASH", "target/debug/bywash")


def place(address):
    host, _, port = address.partition(":")
    return {"host": host, "port": int(port)}


def conninfo():
    return "postgresql://shop:lab@{host}:{port}/shop".format(**place(POSTGRES))


def postgres(module=psycopg):
    return module.connect(conninfo())


def mariadb(**more):
    return pymysql.connect(user="shop", password="lab", database="shop", **place(MARIADB), **more)


class Stage:
    """The common part of classes of tests. Each class has a daemon of its own."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.path = str(self.folder / "stopd.sock")
        password = self.folder / "password"
        password.write_text("lab\n")
        password.chmod(0o600)
        admin = f"127.0.0.1:{free_port()}"
        tables = [f'version = 1\n[stopd]\nsocket = "{self.path}"\nmode = "enforce"\nadmin = "{admin}"\n']
        for name, kind, address in (("shop", "postgres", POSTGRES), ("store", "mysql", MARIADB)):
            if address:
                tables.append(
                    f'[database.{name}]\nserver = "{kind}://stopd@{address}/shop"\n'
                    f'password_file = "{password}"\nstatements_per_second = 10000\n'
                )
        (self.folder / "bywash.toml").write_text("\n".join(tables))
        self.start()

    def start(self):
        words = [PROGRAM, "stopd", "--config", str(self.folder / "bywash.toml")]
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        until(self.is_there, lambda: (self.folder / "log").read_text())

    def is_there(self):
        if self.process.poll() is not None:
            raise AssertionError((self.folder / "log").read_text())
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(self.path) == 0

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder)

    def stop(self, request, reason="client_left"):
        """Send STOP as a gateway does, and return the daemon's answer."""
        with socket.socket(socket.AF_UNIX) as client, client.makefile("rw") as lines:
            client.settimeout(PATIENCE)
            client.connect(self.path)
            lines.write(f"1 STOP {request} {reason}\n")
            lines.flush()
            return lines.readline().strip()


class Watch:
    """An observer of the queries in a database."""

    def __init__(self, kind):
        self.kind = kind
        self.connection = postgres() if kind == "postgres" else mariadb()
        if kind == "postgres":
            self.connection.autocommit = True

    def ask(self, query):
        with self.connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def running(self):
        """Return how many queries of the application sleep in the database."""
        if self.kind == "postgres":
            of = "pg_stat_activity WHERE usename = 'shop' AND wait_event = 'PgSleep'"
        else:
            of = "information_schema.processlist WHERE user = 'shop' AND state = 'User sleep'"
        return self.ask(f"SELECT count(*) FROM {of}")[0][0]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(holds, what=lambda: "it did not come about"):
    for _ in range(PATIENCE * 200):
        if holds():
            return
        time.sleep(0.005)
    raise AssertionError(what())


def controller():
    return Controller(Class("search", run_min=600, run_max=600))


@contextlib.contextmanager
def request(of, name):
    """Run the block of a `with` as work for a request of this name."""
    token = of.begin("search", request=name)
    was = _current.set(token)
    try:
        yield token
    finally:
        token.end()
        _current.reset(was)


def thread(work, *args):
    """Run `work` in a thread. Return a function that joins it and returns its result or error."""
    ends = []

    def run():
        try:
            ends.append(work(*args))
        except BaseException as error:
            ends.append(error)

    working = threading.Thread(target=run, daemon=True)
    working.start()

    def join():
        working.join(PATIENCE)
        assert ends, "it still works"
        return ends[0]

    return join


def stop_client(case, stage):
    made = StopClient(stage.path, patience=PATIENCE)
    case.addCleanup(made.close)
    return made
