"""The applications of `scripts/stacks drivers`. The READMEs of the SDKs have most of them as examples: these run word for
word, but for the names of libraries that the READMEs call interchangeable. Each runs the query of its request.

To leave out the SDK, an application gets no class for its requests: the SDK passes them untouched."""

import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bywash_lab.databases import DATABASES
from bywash_lab.network import LOOPBACK, listens
from bywash_lab.places import ROOT, TARGET
from bywash_lab.processes import Processes
from bywash_lab.reports import fail

# The ways in which an application is started, and their titles in the tables.
ALONE, NO_DAEMON, DAEMON, GATEWAY = "alone", "no daemon", "daemon", "gateway"
WAYS = {
    ALONE: "without the SDK",
    NO_DAEMON: "SDK, no daemon",
    DAEMON: "SDK and daemon",
    GATEWAY: "the same behind the gateway",
}
# The seconds for which a query sleeps.
SLEEP = 20
QUERIES = {
    "postgres": {"sleep": f"SELECT pg_sleep({SLEEP})::text", "number": "SELECT pg_backend_pid()::text"},
    # An interrupted SLEEP returns 1 without an error; only the second one fails.
    "mariadb": {"sleep": f"SELECT CAST(SLEEP({SLEEP}) AS CHAR) FROM (SELECT 1 UNION SELECT 2) AS two",
                "number": "SELECT CAST(CONNECTION_ID() AS CHAR)"},
}
HERE = Path(__file__).resolve().parent
SDK = ROOT / "sdk"


class NotTested(Exception):
    """The reason, as text, why the applications of a language were not tested."""


class Application:
    """An application under test, with the name of its driver and the kind of its database."""

    language = ""

    def __init__(self, name: str, database: str, url: str = "") -> None:
        self.name, self.database = name, database
        address = DATABASES[database].address()
        self.url = f"{url}://shop:lab@{address}/shop"

    def path(self, of: str) -> str:
        """Returns the path of a request that runs one of the QUERIES."""
        return f"/search?query={urllib.parse.quote(QUERIES[self.database][of])}"

    def command(self, folder: Path, port: int, way: str) -> list[object]:
        """Writes its files into a folder. Returns the command that starts it on a port, in one of the WAYS."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def start(self, processes: Processes, port: int, way: str, stopd: Path) -> None:
        folder = processes.folder / f"application-{port}"
        folder.mkdir()
        environment = {"DATABASE": self.url, "BYWASH_STOPD": str(stopd), "PORT": str(port)} | self.environment()
        processes.start(f"{self.language}-{port}", self.command(folder, port, way), lambda: listens(port),
                        env=os.environ | environment, cwd=folder)


def example(language: str, word: str, path: str) -> str:
    """Returns the first example of a README that contains `word`."""
    found = re.findall(rf"```{language}\n(.*?)```", (SDK / path).read_text(), re.DOTALL)
    return next(each for each in found if word in each)


def changed(text: str, *changes: tuple[str, str]) -> str:
    """Returns a text after replacements, each of which must have an effect."""
    for old, new in changes:
        assert old in text, f"the example has no {old}"
        text = text.replace(old, new)
    return text


# --- Python ---

DJANGO = """
import os
import urllib.parse

from django.conf import settings
from django.http import HttpResponse
from django.urls import path


def search(request):
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(request.GET["query"])
        return HttpResponse(str(cursor.fetchone()[0]))


place = urllib.parse.urlsplit(os.environ["DATABASE"])
settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": f"django.db.backends.{place.scheme}", "NAME": "shop", "USER": "shop",
                           "PASSWORD": "lab", "HOST": place.hostname, "PORT": place.port, "CONN_MAX_AGE": MAX_AGE}},
    ROOT_URLCONF=__name__,
    SECRET_KEY="of a test",
)
urlpatterns = [path("search", search)]
"""
# README.md says that `create_engine` is the same as `create_async_engine`.
SYNCHRONOUS = [
    ("from sqlalchemy import text", "from sqlalchemy import create_engine, text"),
    ("from sqlalchemy.ext.asyncio import create_async_engine\n", ""),
    ("engine = create_async_engine", "engine = create_engine"),
    ("async ", ""), ("await ", ""),
]
VENV = TARGET / "sdk-databases-venv"


class Python(Application):
    language = "Python"

    def __init__(self, name: str, database: str, url: str, word: str, *changes: tuple[str, str]) -> None:
        super().__init__(name, database, url)
        self.text = changed(example("python", word, "python/README.md"), *changes)

    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": f"{SDK}/python", "PYTHONDONTWRITEBYTECODE": "1"}

    def command(self, folder: Path, port: int, way: str) -> list[object]:
        text = self.text
        if way == ALONE:
            text = re.sub(r'(class_of=|controller, )"search"\)', r"\1lambda scope: None)", text)
            assert text != self.text, "the example has no class"
        (folder / "application.py").write_text(text)
        return self.server(port)

    def server(self, port: int) -> list[object]:
        app = "application" if self.text.startswith(DJANGO[:9]) else "app"
        options = ["--host", LOOPBACK, "--port", port, "--http", "h11"]
        return [VENV / "bin/python3", "-m", "uvicorn", *options, f"application:{app}"]


class Wsgi(Python):
    def server(self, port: int) -> list[object]:
        app = "application" if self.text.startswith(DJANGO[:9]) else "app"
        options = ["--threads", "4", "--bind", f"{LOOPBACK}:{port}"]
        return [VENV / "bin/python3", "-m", "gunicorn", *options, f"application:{app}"]


def python() -> list[Application]:
    if not (VENV / "installed").exists():
        raise NotTested("run scripts/test-sdk-databases python, which installs the drivers")
    starlette = "from starlette"
    found: list[Application] = [
        Python("psycopg and its pool, FastAPI", "postgres", "postgresql", "AsyncConnectionPool"),
        Python("asyncpg and its pool, FastAPI", "postgres", "postgresql", "import asyncpg"),
        Python("SQLAlchemy, psycopg (async)", "postgres", "postgresql+psycopg", starlette),
        Python("SQLAlchemy, asyncpg", "postgres", "postgresql+asyncpg", starlette),
        Python("SQLAlchemy, psycopg2, in a thread", "postgres", "postgresql+psycopg2", starlette, *SYNCHRONOUS),
        Wsgi("psycopg and its pool, Flask", "postgres", "postgresql", "from flask"),
        Wsgi("Django, WSGI", "postgres", "postgresql", "core.wsgi"),
        Python("Django, ASGI", "postgres", "postgresql", "core.asgi"),
        Python("SQLAlchemy, aiomysql", "mariadb", "mysql+aiomysql", starlette),
        Python("SQLAlchemy, asyncmy", "mariadb", "mysql+asyncmy", starlette),
        Python("SQLAlchemy, PyMySQL, in a thread", "mariadb", "mysql+pymysql", starlette, *SYNCHRONOUS),
    ]
    if list(VENV.glob("lib/*/site-packages/MySQLdb")):
        found += [
            Python("SQLAlchemy, mysqlclient, in a thread", "mariadb", "mysql+mysqldb", starlette, *SYNCHRONOUS),
            Wsgi("Django, mysqlclient, WSGI", "mariadb", "mysql", "core.wsgi"),
        ]
    for one in found:
        if one.name.startswith("Django"):
            # CONN_MAX_AGE is 0 under ASGI, as the README says.
            one.text = DJANGO.replace("MAX_AGE}", "0}" if "ASGI" in one.name else "None}") + one.text
    return found


# --- Node ---

MODULES = TARGET / "sdk-databases-node/node_modules"


class Node(Application):
    language = "Node"

    def __init__(self, name: str, database: str, word: str, *changes: tuple[str, str]) -> None:
        super().__init__(name, database, "postgres" if database == "postgres" else "mysql")
        self.text = changed(example("js", f"require('{word}')", "node/README.md"), *changes).replace("'store'", "'shop'")

    def command(self, folder: Path, port: int, way: str) -> list[object]:
        text = self.text
        if way == ALONE:
            text = changed(text, ("middleware(controller, 'search')", "middleware(controller, () => null)"))
        (folder / "application.js").write_text(f"{text}\napp.listen({port}, '{LOOPBACK}')\n")
        (folder / "modules").mkdir()
        (folder / "modules/bywash").symlink_to(SDK / "node")
        return ["node", folder / "application.js"]

    def environment(self) -> dict[str, str]:
        return {"NODE_PATH": f"modules:{MODULES}"}


def node() -> list[Application]:
    if not (MODULES.parent / "installed").exists():
        raise NotTested("run scripts/test-sdk-databases node, which installs the drivers")
    mysql_of_typeorm = "{ ...mysql2, createPool: (options) => leased(mysql2.createPool(options), stopClient, 'store') }"
    return [
        Node("pg", "postgres", "pg"),
        Node("knex", "postgres", "knex"),
        Node("Drizzle", "postgres", "drizzle-orm"),
        Node("Sequelize", "postgres", "sequelize"),
        Node("TypeORM", "postgres", "typeorm"),
        Node("Prisma", "postgres", "@prisma/client"),
        Node("mysql2", "mariadb", "mysql2/promise"),
        Node("knex", "mariadb", "knex", ("client: 'pg'", "client: 'mysql2'"), ("const { rows } =", "const [rows] =")),
        Node("Drizzle", "mariadb", "drizzle-orm", ("drizzle-orm/node-postgres", "drizzle-orm/mysql2"),
             ("const { Pool } = require('pg')", "const mysql = require('mysql2/promise')"),
             ("new Pool({ connectionString: process.env.DATABASE })", "mysql.createPool(process.env.DATABASE)"),
             ("const { rows } =", "const [rows] =")),
        Node("Sequelize", "mariadb", "sequelize"),
        Node("TypeORM", "mariadb", "typeorm", ("const pg = require('pg')", "const mysql2 = require('mysql2')"),
             ("const Pool = function (options) { return leased(new pg.Pool(options), stopClient, 'shop') }\n", ""),
             ("type: 'postgres'", "type: 'mysql'"), ("{ ...pg, Pool }", mysql_of_typeorm)),
    ]


# --- Go ---

class Go(Application):
    """The README's lines for Go are in go/main.go, which takes the name of the driver."""

    language = "Go"

    def __init__(self, name: str, database: str, driver: str) -> None:
        super().__init__(name, database, database.replace("mariadb", "mysql"))
        self.driver = driver

    def command(self, folder: Path, port: int, way: str) -> list[object]:
        return [TARGET / "stacks-drivers-go", self.driver, "plain" if way == ALONE else "sdk"]


def go() -> list[Application]:
    build("go", "build", "-C", HERE / "go", "-o", TARGET / "stacks-drivers-go", ".")
    return [
        Go("database/sql, pgx", "postgres", "pgx"),
        Go("database/sql, lib/pq", "postgres", "pq"),
        Go("sqlx, pgx", "postgres", "sqlx"),
        Go("gorm, pgx", "postgres", "gorm"),
        Go("ent, pgx", "postgres", "ent"),
        Go("bun, pgx", "postgres", "bun"),
        Go("pgxpool", "postgres", "pgxpool"),
        Go("database/sql, go-sql-driver", "mariadb", "mysql"),
    ]


def build(*command: object, **options: Any) -> None:
    """Builds an application. Its compiler prints the errors."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        raise NotTested(f"{words[0]} is missing")
    if subprocess.run(words, **options).returncode != 0:
        fail(f"`{' '.join(words)}` failed")


# --- Rust ---

class Rust(Application):
    """The README's lines for Rust are in rust/src/main.rs, which takes the name of the driver."""

    language = "Rust"

    def __init__(self, name: str, database: str, driver: str) -> None:
        super().__init__(name, database, database.replace("mariadb", "mysql"))
        self.driver = driver

    def command(self, folder: Path, port: int, way: str) -> list[object]:
        return [CRATES / "debug/stacks-drivers", self.driver, "plain" if way == ALONE else "sdk"]


CRATES = TARGET / "sdk-frameworks-rust"


def rust() -> list[Application]:
    build("cargo", "build", "--quiet", "--locked", cwd=HERE / "rust", env=os.environ | {"CARGO_TARGET_DIR": str(CRATES)})
    return [
        Rust("tokio-postgres", "postgres", "tokio-postgres"),
        Rust("sqlx", "postgres", "sqlx-postgres"),
        Rust("diesel-async", "postgres", "diesel-postgres"),
        Rust("mysql_async", "mariadb", "mysql_async"),
        Rust("sqlx", "mariadb", "sqlx-mariadb"),
        Rust("diesel-async", "mariadb", "diesel-mariadb"),
    ]


# --- Java ---

class Java(Application):
    """The application of sdk/java/databases, with HikariCP and a handler of its own for each library."""

    language = "Java"

    def __init__(self, name: str, database: str, handler: str) -> None:
        super().__init__(name, database, f"jdbc:{database.replace('postgres', 'postgresql')}")
        self.handler = handler

    def path(self, of: str) -> str:
        return self.handler if of == "sleep" else "/number"

    def command(self, folder: Path, port: int, way: str) -> list[object]:
        settings = {
            "server.address": LOOPBACK, "server.port": port, "spring.datasource.username": "shop",
            "spring.datasource.password": "lab", "spring.datasource.url": re.sub(r"shop:lab@", "", self.url),
            "bywash.database": "shop", "bywash.enabled": str(way != ALONE).lower(),
            "number": QUERIES[self.database]["number"], "long": QUERIES[self.database]["sleep"], "short": "SELECT 1",
        }
        return ["java", "-Xmx128m", "-jar", JAR, *(f"--{key}={value}" for key, value in settings.items())]


JAR = SDK / "java/databases/target/application.jar"


def java() -> list[Application]:
    options = ["-q", "-B", "-Dstyle.color=never", "-P", "databases", "-DskipTests"]
    build("mvn", *options, "-f", SDK / "java", "package", stdout=sys.stderr)
    names = {"postgres": "pgjdbc", "mariadb": "MariaDB Connector/J"}
    return [Java(f"{library}, HikariCP, {name}", database, handler) for database, name in names.items()
            for library, handler in [("JdbcTemplate in a transaction", "/transaction"), ("Hibernate", "/jpa")]]


# --- PHP ---

SENTRY = ROOT / "native/sentry"
sys.path.insert(0, str(SENTRY / "tests"))
import httpd

PAGE = """<?php
$shop = {connects};
echo Bywash\\leased($shop, 'shop', function ($shop) {{
    return {asks};
}});
"""
# The module names the requests and reports departures. Behind the gateway, which does both, it is off.
NAMED = """
KeepAlive Off
<Location />
    BywashSentry {module}
    {name}
</Location>
"""
# The user of Apache's children. Other applications have the user of the daemon.
USER = httpd.USER
NAME = 'SetEnvIf Bywash-Request "^(.*)$" BYWASH_REQUEST=$1 BYWASH_STOPD={socket}'


class Php(Application):
    language = "PHP"

    def __init__(self, name: str, database: str, connects: str, asks: str) -> None:
        super().__init__(name, database)
        host, port = DATABASES[database].address().split(":")
        self.page = PAGE.format(connects=connects.format(host=host, port=port), asks=asks)

    def path(self, of: str) -> str:
        return super().path(of).replace("/search", "/page.php")

    def start(self, processes: Processes, port: int, way: str, stopd: Path) -> None:
        self.stopd = stopd
        processes.folder.chmod(0o755)
        super().start(processes, port, way, stopd)

    def command(self, folder: Path, port: int, way: str) -> list[object]:
        (folder / "pages").mkdir()
        (folder / "pages/page.php").write_text(self.page)
        out = SENTRY / "out"
        module = "On" if way in (NO_DAEMON, DAEMON) else "Off"
        name = NAME.format(socket=self.stopd) if way == GATEWAY else ""
        more = httpd.sentry(folder, out, self.stopd) + NAMED.format(module=module, name=name)
        (folder / "httpd.conf").write_text(httpd.CONFIG.format(
            root=folder, address=LOOPBACK, port=port, modules=httpd.MODULES, php=httpd.php_module(), children=1,
            user=USER, group="nogroup", more=more))
        return ["apache2", "-DFOREGROUND", "-f", folder / "httpd.conf"]

    def environment(self) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(SENTRY / "out")}


def php() -> list[Application]:
    if why := httpd.missing(SENTRY / "out"):
        raise NotTested(why)
    pdo = "new PDO('{}:host={{host}};port={{port}};dbname=shop', 'shop', 'lab', [PDO::ATTR_PERSISTENT => true])"
    column = "$shop->query($_GET['query'])->fetchColumn()"
    return [
        Php("PDO", "postgres", pdo.format("pgsql"), column),
        Php("pgsql", "postgres", "pg_pconnect('host={host} port={port} dbname=shop user=shop password=lab')",
            "pg_fetch_result(pg_query($shop, $_GET['query']), 0)"),
        Php("PDO", "mariadb", pdo.format("mysql"), column),
        Php("mysqli", "mariadb", "new mysqli('p:{host}', 'shop', 'lab', 'shop', {port})",
            "$shop->query($_GET['query'])->fetch_row()[0]"),
    ]


LANGUAGES: dict[str, Callable[[], list[Application]]] = {
    "python": python, "node": node, "go": go, "rust": rust, "java": java, "php": php}
