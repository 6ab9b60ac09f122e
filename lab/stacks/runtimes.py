"""The runtimes of `stacks`: how each is started on loopback, and its handlers under test."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

from bywash_lab.network import free_port, listens
from bywash_lab.places import ROOT
from bywash_lab.processes import Processes, announced, kill, start

HERE = pathlib.Path(__file__).resolve().parent
SENTRY = ROOT / "native/sentry"
sys.path.insert(0, str(SENTRY / "tests"))

import httpd


class NotTested(Exception):
    """The reason, as text, why a runtime was not tested."""


class Handler(NamedTuple):
    """A handler under test. `how` is the beginning of its path, and `remedy` is the advice in the table."""

    what: str
    how: str
    remedy: str
    in_steps: bool = True


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def version(pattern, *command):
    return re.search(pattern, said(*command)).group(1)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise NotTested(f"{program} is missing")


@contextlib.contextmanager
def running(folder, *command, port=None, **environment):
    """Runs a server until the context ends. It listens on a port of its own, given in STACKS_PORT."""
    port = port or free_port()
    servers = Processes(folder, patience=20)
    try:
        servers.start("server", command, lambda: listens(port), cwd=HERE,
                      env=dict(os.environ, STACKS_PORT=str(port), PYTHONDONTWRITEBYTECODE="1", **environment))
        yield "127.0.0.1", port
    finally:
        servers.kill()


# --- PHP ---

CANCEL = "[cancel queries](stop-abandoned-work.md#cancel-queries)"
PLAIN_PHP = Handler("", "plain", f"`mod_bywash_sentry` or {CANCEL}; `Bywash\\leased` around queries")
WRITES_PHP = Handler("writes as it goes", "ask", "`ob_flush()` and `flush()`; keep `ignore_user_abort` off")

PAGES = """
LoadModule alias_module {modules}/mod_alias.so
AliasMatch "^/(plain|ask)/" "{root}/pages/page.php"
AliasMatch "^/(on|off)/query/" "{root}/pages/query.php"
<LocationMatch "^/(plain|ask)/">
    BywashSentry Off
</LocationMatch>
"""

DAEMON = """version = 1
mode = "enforce"
[stopd]
socket = "{root}/stopd.sock"
leases = ["{user}"]
stops = ["{user}"]
[database.shop]
server = "postgres://stopd@{postgres}/shop"
password_file = "{root}/password"
"""


@contextlib.contextmanager
def apache(folder):
    out = SENTRY / "out"
    if why := httpd.missing(out):
        raise NotTested(why)
    folder.chmod(0o755)
    server = version(r"Apache/([\d.]+)", "apache2", "-v")
    name = f"Apache {server} prefork, mod_php {version(r'PHP ([0-9.]+)', 'php', '-v')}"
    handlers = [PLAIN_PHP, WRITES_PHP]
    more = httpd.sentry(folder, out, folder / "stopd.sock") + PAGES.format(root=folder, modules=httpd.MODULES)
    pages = {page: (HERE / page).read_text() for page in ["page.php", "query.php"]}
    with contextlib.ExitStack() as stack:
        if "BYWASH_POSTGRES" in os.environ:
            stack.enter_context(daemon(folder))
            handlers += [
                Handler("waits for PostgreSQL", "off/query", "the next row", in_steps=False),
                Handler("the same with `mod_bywash_sentry`, `Bywash\\leased`, `bywash stopd`", "on/query",
                        "[how to set it up](../../native/sentry/README.md#in-a-web-server)", in_steps=False)]
        server = httpd.Apache(folder, out, pages, more, children=3)
        stack.callback(server.close)
        yield name, handlers, lambda handler: contextlib.nullcontext((server.address, httpd.PORT))


@contextlib.contextmanager
def daemon(folder):
    """Runs `bywash stopd` for PostgreSQL."""
    (folder / "password").write_text("lab\n")
    (folder / "password").chmod(0o600)
    (folder / "bywash.toml").write_text(DAEMON.format(root=folder, user=httpd.USER, postgres=os.environ["BYWASH_POSTGRES"]))
    process = start(
        os.environ["BYWASH"], "stopd", "--config", folder / "bywash.toml", "--admin", f"127.0.0.1:{free_port()}",
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        announced("bywash stopd", process.stderr, "leases and stops")
        yield
    finally:
        kill(process)


@contextlib.contextmanager
def php_server(folder):
    need("php")
    name = f"PHP {version(r'PHP ([0-9.]+)', 'php', '-v')}, its own server"
    port = free_port()
    with running(folder, "php", "-S", f"127.0.0.1:{port}", HERE / "page.php", port=port) as at:
        yield name, [Handler("", "plain", "for development only"), WRITES_PHP], lambda handler: contextlib.nullcontext(at)


FPM = """[global]
error_log = {folder}/fpm.log
[www]
user = {user}
group = {group}
listen = {folder}/fpm.sock
listen.mode = 0666
pm = static
pm.max_children = 3
clear_env = no
"""

NGINX = """daemon off; master_process off; pid {folder}/pid; error_log {folder}/nginx.log;
{user}
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            fastcgi_pass unix:{folder}/fpm.sock;
            fastcgi_buffering off;
            fastcgi_param SCRIPT_FILENAME {folder}/page.php;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param REQUEST_URI $request_uri;
        }}
    }}
}}
"""


@contextlib.contextmanager
def php_fpm(folder):
    """Runs PHP-FPM. If it is not in PATH, the variable STACKS_PHP_FPM has its path."""
    fpm = os.environ.get("STACKS_PHP_FPM") or next(filter(None, map(shutil.which, ["php-fpm", "php-fpm8.2"])), None)
    if fpm is None:
        raise NotTested("php-fpm is missing")
    need("nginx")
    folder.chmod(0o755)
    shutil.copy(HERE / "page.php", folder)
    group = "nogroup" if "nogroup:" in pathlib.Path("/etc/group").read_text() else "nobody"
    (folder / "fpm.conf").write_text(FPM.format(folder=folder, user=httpd.USER, group=group))
    port = free_port()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, user="user root;" if os.getuid() == 0 else ""))
    name = (f"nginx {version(r'nginx/([0-9.]+)', 'nginx', '-v')}, PHP-FPM {version(r'PHP ([0-9.]+)', fpm, '-v')}")
    plain = PLAIN_PHP._replace(remedy=f"{CANCEL}, with `Bywash\\leased`")
    servers = Processes(folder)
    try:
        servers.start("fpm", [fpm, "-F", "-y", folder / "fpm.conf"], (folder / "fpm.sock").exists)
        with running(folder, "nginx", "-c", folder / "nginx.conf", port=port) as at:
            yield name, [plain, WRITES_PHP], lambda handler: contextlib.nullcontext(at)
    finally:
        servers.stop()


# --- Python ---

def python_of(*packages):
    """Returns the path of the Python that scripts/stacks installed, and the versions of `packages` in it."""
    python = pathlib.Path(os.environ["STACKS_VENV"]) / "bin/python3"
    if not python.exists():
        raise NotTested(f"{' and '.join(packages)} could not be installed")
    versions = said(python, "-c", f"from importlib.metadata import version; print(*map(version, {packages!r}))").split()
    return python, versions


PYTHON = {"PYTHONPATH": f"{HERE}:{ROOT / 'sdk/python'}"}


@contextlib.contextmanager
def gunicorn(folder):
    python, [its] = python_of("gunicorn")
    port = free_port()
    handlers = [
        Handler("", "plain", CANCEL),
        Handler("`TerminateWsgi`", "sdk", "it ends at `run_max`, not when its client leaves; as above")]
    with running(folder, python, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "wsgi_app:app", port=port, **PYTHON) as at:
        yield f"gunicorn {its} sync", handlers, lambda handler: contextlib.nullcontext(at)


@contextlib.contextmanager
def uvicorn_with(folder, app, name, handlers):
    python, _ = python_of("uvicorn")
    port = free_port()
    with running(folder, python, "-m", "uvicorn", "--http", "h11", "--port", port, "--log-level", "error",
                 f"{app}:app", port=port, **PYTHON) as at:
        yield name, handlers, lambda handler: contextlib.nullcontext(at)


@contextlib.contextmanager
def starlette(folder):
    _, [server, its] = python_of("uvicorn", "starlette")
    handlers = [
        Handler("", "plain", "the row after the next"),
        Handler("`await request.is_disconnected()`", "ask", "nothing, if it asks often"),
        Handler("`TerminateAsgi`", "sdk", "[the SDK](../../sdk/python/README.md)")]
    with uvicorn_with(folder, "asgi_app", f"uvicorn {server}, Starlette {its}", handlers) as started:
        yield started


@contextlib.contextmanager
def django(folder):
    _, [server, its] = python_of("uvicorn", "django")
    handlers = [Handler("an async view", "plain", f"nothing: its task is cancelled; {CANCEL}")]
    with uvicorn_with(folder, "django_app", f"uvicorn {server}, Django {its}", handlers) as started:
        yield started


# --- Node, Go, Rust, Java, C ---

@contextlib.contextmanager
def node(folder):
    need("node")
    handlers = [
        Handler("", "plain", "the next row, or the one after it"),
        Handler("`res.on('close')`", "ask", f"nothing; {CANCEL}"),
        Handler("`terminable()`", "sdk", "[the SDK](../../sdk/node/README.md): an `AbortSignal`")]
    with running(folder, "node", HERE / "node.js") as at:
        yield f"Node {version(r'v([0-9.]+)', 'node', '--version')}", handlers, lambda handler: contextlib.nullcontext(at)


@contextlib.contextmanager
def go(folder):
    need("go")
    subprocess.run(["go", "build", "-o", folder / "stack", "."], cwd=HERE / "go", check=True)
    handlers = [
        Handler("", "plain", "the next row"),
        Handler("`r.Context()`", "ask", f"pass the context on; {CANCEL} if the driver does not"),
        Handler("`Middleware`", "sdk", "[the SDK](../../sdk/go/README.md)")]
    with running(folder, folder / "stack") as at:
        yield f"Go {version(r'go([0-9.]+) ', 'go', 'version')} net/http", handlers, lambda handler: contextlib.nullcontext(at)


@contextlib.contextmanager
def bywash(folder):
    """Runs the gateway in front of the Go server, and measures the handlers of that server."""
    need("go")
    its = version(r"bywash ([0-9.]+)", os.environ["BYWASH"], "--version")
    port = free_port()
    with go(folder) as (name, _, start), start(None) as (host, behind):
        with running(folder, os.environ["BYWASH"], "run", "--upstream", f"http://{host}:{behind}",
                     "--listen", f"127.0.0.1:{port}", "--admin", f"unix:{folder}/admin", port=port) as at:
            yield (f"bywash {its} in front of {name}", [Handler("`r.Context()`", "ask", "nothing")],
                   lambda handler: contextlib.nullcontext(at))


@contextlib.contextmanager
def hyper(folder):
    need("cargo")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "-p", "bywash-tower", "--example", "stack"],
                   cwd=ROOT, check=True)
    its = re.search(r'name = "hyper"\nversion = "([\d.]+)"', (ROOT / "Cargo.lock").read_text()).group(1)
    handlers = [
        Handler("", "plain", f"nothing: its future is dropped; {CANCEL}"),
        Handler("`TerminateLayer`", "sdk", "[the SDK](../../sdk/tower/README.md): threads are notified as well")]

    def start(handler):
        return running(folder, target / "release/examples/stack", handler.how)

    yield f"Rust hyper {its}", handlers, start


@contextlib.contextmanager
def tomcat(folder):
    need("java")
    jars = pathlib.Path("/usr/share/tomcat10")
    if not (jars / "lib/catalina.jar").exists():
        raise NotTested("Tomcat is missing (Debian: tomcat10-common)")
    classes = f"{jars}/lib/*:{jars}/bin/tomcat-juli.jar"
    its = version(r"Tomcat/([0-9.]+)", "java", "-cp", classes, "org.apache.catalina.util.ServerInfo")
    handlers = [
        Handler("", "plain", "[cancel queries](servlet.md)"),
        Handler("writes as it goes", "ask", "an `IOException` at one of its next writes")]
    with running(folder, "java", "-cp", classes, HERE / "Stack.java", folder) as at:
        yield f"Tomcat {its} servlet", handlers, lambda handler: contextlib.nullcontext(at)


@contextlib.contextmanager
def prefork(folder):
    need("gcc")
    sert = ROOT / "native/sert"
    if not (SENTRY / "out/libbywash-sentry.so").exists() or not (sert / "out/libsert.so").exists():
        raise NotTested("libbywash-sentry or libsert is missing: run make -C native/sentry all tests")
    subprocess.run(
        ["gcc", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-I", SENTRY / "include", "-I", sert / "include", HERE / "prefork.c",
         "-L", SENTRY / "out", "-L", sert / "out", "-lbywash-sentry", "-lsert", "-pthread", "-o", folder / "prefork"], check=True)
    handlers = [
        Handler("", "plain", "the next rows"),
        Handler("`socket_watch`, and a handler that asks", "watch", "[libbywash-sentry](../../native/sentry/README.md)"),
        Handler("`SW_SERT`, and one that does not", "sert", "[libsert](../../native/sert/README.md)", in_steps=False)]
    libraries = f"{SENTRY / 'out'}:{sert / 'out'}"
    with running(folder, folder / "prefork", LD_LIBRARY_PATH=libraries) as at:
        yield "C, a process for each connection", handlers, lambda handler: contextlib.nullcontext(at)


ALL = {
    "apache": apache, "php-server": php_server, "php-fpm": php_fpm, "gunicorn": gunicorn, "starlette": starlette,
    "django": django, "node": node, "go": go, "hyper": hyper, "tomcat": tomcat, "prefork": prefork,
    "bywash": bywash,
}
