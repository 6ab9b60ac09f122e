"""Measures the minutes of a newcomer from an empty environment to a query that ends when `curl` is interrupted.

    scripts/stacks newcomer [--record] [LANGUAGE...]        LANGUAGE: python node go rust java php; default: all

For each language, the script installs the package into an empty environment, with empty caches of the package manager,
writes the first example of its README that leases a query, starts the stop daemon and the example, and interrupts
`curl`. The query must then be gone from PostgreSQL. A newcomer's reading is estimated by the words of the README up to
the end of that example, and of "Run the stop daemon", as scripts/test-tutorials does it for tutorials.

The packages come from target/packages, where scripts/test-packages puts them. `--record` writes the result file of
docs/figures/drivers.md. C is left out, because no library for C leases a query."""

import argparse
import importlib.machinery
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from applications import QUERIES, SDK, SENTRY, changed, example, httpd
from bywash_lab import figures
from bywash_lab.databases import DATABASES
from bywash_lab.network import LOOPBACK, free_port, get, listens
from bywash_lab.places import ROOT, TARGET
from bywash_lab.processes import Processes, exit_on_sigterm, start
from bywash_lab.reports import fail
from bywash_lab.waiting import until
from drivers import DAEMON_FILE, GATEWAY_FILE, Watch

PACKAGES = TARGET / "packages"
GUIDE = (ROOT / "docs/how-to/stop-abandoned-work.md").read_text()
DAEMON_SECTION = GUIDE[GUIDE.index("### 1. Run the stop daemon"):GUIDE.index("### 2. ")]
# The words of the mark that writes the table of docs/figures/drivers.md.
WORDS = ["newcomer", "rows=language and example=language", "words to read={words}", "minutes to read={reading_minutes}",
         "minutes of the commands={command_minutes}", "minutes={minutes}", "remark={remark}"]
SLEEP, PORT = QUERIES["postgres"]["sleep"], 8080


def tutorials():
    """Returns the module scripts/test-tutorials, which has the speed of a reader."""
    loader = importlib.machinery.SourceFileLoader("tutorials", str(ROOT / "scripts/test-tutorials"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tutorials", loader))
    loader.exec_module(module)
    return module


class Newcomer(NamedTuple):
    """The way of a newcomer. `reads` are the texts to read, and `installs` is a script for an empty folder."""

    language: str
    reads: list[str]
    installs: str
    files: dict[str, str]
    command: list[object]
    path: str = "/search"
    has_gateway: bool = False
    remark: str = ""


def up_to(path: str, word: str) -> str:
    """Returns a README from its start to the end of its first example that contains `word`."""
    text = (ROOT / path).read_text()
    return text[:text.index("```", text.index(word))]


def python(folder: Path) -> Newcomer:
    return Newcomer(
        "Python, FastAPI and psycopg", [up_to("sdk/python/README.md", "AsyncConnectionPool")],
        f"python3 -m venv env && env/bin/pip install --quiet --no-cache-dir {PACKAGES}/bywash-0.1.0-py3-none-any.whl "
        "fastapi uvicorn 'psycopg[binary]' psycopg-pool",
        {"module.py": example("python", "AsyncConnectionPool", "python/README.md")},
        [folder / "env/bin/uvicorn", "--port", PORT, "module:app"])


def node(folder: Path) -> Newcomer:
    return Newcomer(
        "Node, Express and pg", [up_to("sdk/node/README.md", "require('pg')")],
        f"npm install --silent --cache cache {PACKAGES}/bywash-0.1.0.tgz express pg",
        {"example.js": example("js", "require('pg')", "node/README.md") + f"app.listen({PORT}, '{LOOPBACK}')\n"},
        ["node", "example.js"])


# The README has the lines that open a leased *sql.DB. This is the program around them.
GO = """package main

import (
	"database/sql"
	"log"
	"net/http"
	"os"
	"time"

	bywash "bywash.dev/go"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

func main() {
	config, err := pgx.ParseConfig(os.Getenv("DATABASE"))
	if err != nil {
		log.Fatal(err)
	}
EXAMPLE	controller, err := bywash.NewController(bywash.NewClass("search", time.Second, 30*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	terminate, err := controller.Middleware("search")
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/search", terminate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var found string
		if err := db.QueryRowContext(r.Context(), r.FormValue("query")).Scan(&found); err == nil {
			_, _ = w.Write([]byte(found))
		}
	})))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
"""


def go(folder: Path) -> Newcomer:
    lines = example("go", "stopClient.Connector", "go/README.md").splitlines()
    program = GO.replace("EXAMPLE", "".join(f"\t{line}\n" if line else "\n" for line in lines))
    return Newcomer(
        "Go, net/http and pgx", [up_to("sdk/go/README.md", "stopClient.Connector")],
        "export GOMODCACHE=$PWD/modules GOCACHE=$PWD/cache GOFLAGS=-modcacherw && cd program && go mod init program && "
        f"go mod edit -require bywash.dev/go@v0.0.0 -replace bywash.dev/go={SDK}/go && go mod tidy && go build -o program .",
        {"program/main.go": program},
        [folder / "program/program"], remark=f"{GO.count(chr(10))} lines of program around the README's are not counted")


def rust(folder: Path) -> Newcomer:
    text = example("rust,no_run", "async fn books", "tower/frameworks/README.md")
    # As rustdoc does: the example's hidden lines.
    text = "\n".join(line.removeprefix("# ") for line in text.splitlines())
    address = DATABASES["postgres"].address()
    text = changed(text, ("SELECT count(*) FROM books", "SELECT 1::int8 FROM pg_sleep(20)"), ("@127.0.0.1/", f"@{address}/"))
    crate = SDK / "tower"
    return Newcomer(
        "Rust, axum and sqlx",
        [up_to("sdk/tower/README.md", "use bywash_tower::{DatabaseName"),
         up_to("sdk/tower/frameworks/README.md", "async fn books")],
        "export CARGO_HOME=$PWD/home CARGO_TARGET_DIR=$PWD/target && cargo init --quiet --name program program && "
        f"mv main.rs program/src && cd program && cargo add --quiet --path {crate} && "
        f"cargo add --quiet --path {crate}/frameworks && cargo add --quiet axum tokio --features tokio/full && "
        "cargo add --quiet sqlx --no-default-features --features runtime-tokio,postgres && cargo build --quiet",
        {"main.rs": text + "\n#[tokio::main]\nasync fn main() {\n    serve().await.unwrap();\n}\n"},
        [folder / "target/debug/program"], "/books", remark="the crates are taken from the repository")


POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<parent>
  <groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId>
  <version>{spring}</version><relativePath/>
</parent>
<groupId>shop</groupId><artifactId>shop</artifactId><version>1</version>
<dependencies>
{dependency}
<dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-web</artifactId></dependency>
<dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-jdbc</artifactId></dependency>
<dependency><groupId>org.postgresql</groupId><artifactId>postgresql</artifactId></dependency>
</dependencies>
<build><plugins><plugin>
  <groupId>org.springframework.boot</groupId><artifactId>spring-boot-maven-plugin</artifactId>
</plugin></plugins></build>
</project>
"""


def java(folder: Path) -> Newcomer:
    text = example("java", "@SpringBootApplication", "java/README.md")
    spring = re.search("<spring-boot.version>(.*)</spring-boot.version>", (SDK / "java/pom.xml").read_text())
    pom = POM.format(spring=spring[1], dependency=example("xml", "starter", "java/README.md"))
    properties = changed(example("properties", "bywash.database", "java/README.md"),
                         ("127.0.0.1/", f"{DATABASES['postgres'].address()}/")) + "spring.datasource.password=lab\n"
    maven = f"mvn -q -B -Dmaven.repo.local={folder}/repository"
    return Newcomer(
        "Java, Spring Boot and JdbcTemplate", [up_to("sdk/java/README.md", "mvn -f sdk/java install")],
        # A copy, so that nobody else builds in the same folder.
        f"mkdir -p bywash/sdk/java && tar -C {SDK}/java --exclude=target -c . | tar -x -C bywash/sdk/java && "
        f"cp {ROOT}/LICENSE bywash && {maven} -f bywash/sdk/java install -DskipTests && {maven} package",
        {"src/main/java/shop/Shop.java": changed(text, ("SELECT 500 AS found", SLEEP)),
         "src/main/resources/application.properties": properties, "pom.xml": pom},
        ["java", "-jar", "target/shop-1.jar", f"--server.port={PORT}", f"--server.address={LOOPBACK}"],
        has_gateway=True, remark="with the gateway, because servlets do not notice that a client leaves")


# Apache without the packages' own set-up of Debian, which needs root.
APACHE = """
LoadModule bywash_sentry_module {folder}/usr/lib/apache2/modules/mod_bywash_sentry.so
BywashSentrySocket {folder}/stopd.sock
AliasMatch "^/search" "{folder}/pages/search.php"
<Location />
    BywashSentry On
</Location>
"""
COMPOSER = """{"repositories": [
    {"type": "path", "url": "package", "options": {"symlink": false, "versions": {"bywash/bywash": "0.1.0"}}},
    {"packagist.org": false}], "require": {"bywash/bywash": "0.1.0"}}
"""


def php(folder: Path) -> Newcomer:
    server = (SENTRY / "README.md").read_text()
    server = server[server.index("## In a web server"):server.index("```php")]
    folder.chmod(0o755)
    page = changed(example("php", "Bywash", "../native/sentry/php/README.md"), ("SELECT 1", SLEEP),
                   ("__DIR__ . '/vendor", "__DIR__ . '/../vendor"), ("getenv('SHOP')", "getenv('SHOP'), 'shop', 'lab'"))
    host, port = DATABASES["postgres"].address().split(":")
    conf = httpd.CONFIG.format(root=folder, address=LOOPBACK, port=PORT, modules=httpd.MODULES, php=httpd.php_module(),
                               children=1, user=httpd.USER, group="nogroup",
                               more=f"LoadModule alias_module {httpd.MODULES}/mod_alias.so" + APACHE.format(folder=folder))
    return Newcomer(
        "PHP, Apache and PDO", [up_to("native/sentry/php/README.md", "Bywash\\leased($shop"), server],
        f"export COMPOSER_HOME=$PWD/composer COMPOSER_ALLOW_SUPERUSER=1 && mkdir package && "
        f"tar -xf {PACKAGES}/bywash-bywash-0.1.0.tar -C package && composer --quiet --no-interaction install && "
        f"for deb in {PACKAGES}/debian/lib*sentry*.deb; do dpkg-deb -x $deb . || exit; done",
        {"pages/search.php": page, "composer.json": COMPOSER, "httpd.conf": conf},
        ["env", f"LD_LIBRARY_PATH={folder}/usr/lib/x86_64-linux-gnu", f"SHOP=pgsql:host={host};port={port};dbname=shop",
         "apache2", "-DFOREGROUND", "-f", folder / "httpd.conf"],
        remark="packages for Debian are unpacked, not installed; the set-up of Apache is not counted")


def languages() -> dict[str, Callable[[Path], Newcomer]]:
    return {"python": python, "node": node, "go": go, "rust": rust, "java": java, "php": php}


def measure(way: Newcomer, folder: Path, watch: Watch) -> float:
    """Does what a newcomer does. Returns the seconds that the commands have taken."""
    for name, text in way.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    begun = time.monotonic()
    installed = subprocess.run(["bash", "-c", way.installs], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, timeout=1200)
    if installed.returncode != 0:
        fail(f"{way.language} cannot be installed: {installed.stdout[-3000:]}")
    return time.monotonic() - begun + cancel(way, folder, watch)


def cancel(way: Newcomer, folder: Path, watch: Watch) -> float:
    """Starts the daemon and the example, and interrupts `curl`. Returns the seconds up to the end of the query."""
    begun, processes, program = time.monotonic(), Processes(folder, patience=90), os.environ["BYWASH"]
    (folder / "password").write_text("lab\n")
    (folder / "password").chmod(0o600)
    admin, port = free_port(), PORT
    (folder / "daemon.toml").write_text(DAEMON_FILE.format(
        folder=folder, port=admin, user="nobody", server=DATABASES["postgres"].url("stopd")))
    url = f"postgresql://shop:lab@{DATABASES['postgres'].address()}/shop?sslmode=disable"
    try:
        processes.start("daemon", [program, "stopd", "--config", folder / "daemon.toml"], lambda: listens(admin))
        get(f"http://{LOOPBACK}:{admin}/v1/status")
        processes.start("example", way.command, lambda: listens(PORT), cwd=folder,
                        env=os.environ | {"DATABASE": url, "BYWASH_STOPD": f"{folder}/stopd.sock"})
        if way.has_gateway:
            port = free_port()
            (folder / "gateway.toml").write_text(GATEWAY_FILE.format(folder=folder, port=port, application=PORT))
            processes.start("gateway", [program, "run", "--config", folder / "gateway.toml"], lambda: listens(port))
        curl = start("curl", "-sG", f"http://{LOOPBACK}:{port}{way.path}", "--data-urlencode", f"query={SLEEP}",
                     stdout=subprocess.DEVNULL)
        (number,) = until(f"the query of {way.language} runs", watch.running, 30, 0.01)
        curl.send_signal(signal.SIGINT)
        curl.wait()
        left = time.monotonic()
        until(f"the query of {way.language} is gone", lambda: number not in watch.running(), 8, 0.01)
        print(f"{way.language}: gone {1000 * (time.monotonic() - left):.0f} ms after curl", file=sys.stderr, flush=True)
        return time.monotonic() - begun
    finally:
        processes.kill()


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/stacks newcomer", description=__doc__.split("\n")[0])
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help=f"{' '.join(languages())}; default: all")
    parser.add_argument("--record", action="store_true", help="write docs/figures/results/newcomer.json")
    chosen = parser.parse_args()
    exit_on_sigterm()
    speed = tutorials().WORDS_PER_MINUTE
    results: list[figures.Record] = []
    for name in chosen.languages or languages():
        with tempfile.TemporaryDirectory() as folder:
            way = languages()[name](Path(folder))
            seconds = measure(way, Path(folder), Watch("postgres"))
        words = sum(len(text.split()) for text in [*way.reads, DAEMON_SECTION])
        results.append({"language": way.language, "words": words, "reading_minutes": round(words / speed, 1),
                        "command_minutes": round(seconds / 60, 1), "minutes": round(words / speed + seconds / 60, 1),
                        "remark": way.remark or "–"})
    if chosen.record:
        figures.write("newcomer", f"scripts/stacks newcomer {' '.join(chosen.languages)}".strip(), results)
    print(figures.table(WORDS, lambda name: {"results": results}))


main()
