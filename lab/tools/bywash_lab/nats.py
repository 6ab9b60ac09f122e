"""NATS servers on loopback: installs the program, and starts one server or a cluster of three.

`scripts/with-nats` gives them to a command. A script that ends and freezes servers itself uses
`Servers`.
"""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bywash_lab.network import LOOPBACK, free_port, get, listens
from bywash_lab.places import ROOT, TARGET
from bywash_lab.processes import Process, Processes, kill, stop
from bywash_lab.procfs import PROC, fields
from bywash_lab.reports import fail
from bywash_lab.waiting import until

VERSION = "2.15.2"
MODULE = f"github.com/nats-io/nats-server/v2@v{VERSION}"
USER = "bywash"
MAKE_KEYS = ROOT / "examples/fleet/make-keys"
# What `go install` prints if the network, not the module, is the reason.
UNREACHABLE = re.compile(r"dial (tcp|udp)|no such host|i/o timeout|TLS handshake timeout|connection (refused|reset)|"
                         r"network is unreachable|context deadline exceeded|module lookup disabled")
TOO_OLD = re.compile(r"requires go >= \S+ \(running go \S+")


class Missing(Exception):
    """The reason why this machine cannot have a NATS server."""


def install(folder: Path = TARGET / "nats") -> Path:
    """Returns the path of the server's program. Builds it if it is missing or has another version.

    # Errors

    `Missing` without Go, with a Go that is too old, or without a network to download the sources.
    """
    program = folder / "bin/nats-server"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if version(program) != VERSION:
            build(program)
    return program


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lets no other script in at the same time."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def version(program: Path) -> str | None:
    """Returns the version of a server's program, or None if there is none."""
    try:
        printed = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True).stdout
    except OSError:
        return None
    found = re.search(r"v(\d+\.\d+\.\d+\S*)", printed)
    return found[1] if found else None


def build(program: Path) -> None:
    """Builds the server's program for this machine."""
    if shutil.which("go") is None:
        raise Missing("go is missing")
    print(f"installing nats-server {VERSION} (once, a minute)", file=sys.stderr, flush=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("GOOS", "GOARCH")}
    environment |= {"GOBIN": str(program.parent), "CGO_ENABLED": "0"}
    done = subprocess.run(["go", "install", MODULE], env=environment, cwd=program.parents[1], stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        refuse(done.stderr)


def refuse(said: str) -> None:
    """Raises `Missing` if `go install` has failed because of this machine. Ends the script otherwise."""
    if found := TOO_OLD.search(said):
        raise Missing(f"{MODULE} {found[0]})")
    if UNREACHABLE.search(said):
        raise Missing(f"{MODULE} cannot be downloaded: {said.strip().splitlines()[-1]}")
    fail(f"go install {MODULE}: {said[-2000:]}")


class Server(NamedTuple):
    """A server of a cluster: its name, and its ports for clients, servers and monitoring."""

    name: str
    client: int
    cluster: int
    monitor: int


def configuration(server: Server, servers: list[Server], folder: Path, tls: bool, users: str) -> str:
    """Returns the configuration of one of the servers. Its files are in `folder`."""
    lines = [
        f"server_name: {server.name}",
        f"listen: {LOOPBACK}:{server.client}",
        f"http: {LOOPBACK}:{server.monitor}",
        f"jetstream {{ store_dir: '{folder / server.name}', max_memory_store: 64MB, max_file_store: 256MB }}",
    ]
    if tls:
        lines.append(f"tls {{ cert_file: '{folder}/{server.name}.pem', key_file: '{folder}/{server.name}.key' }}")
    if len(servers) > 1:
        routes = ", ".join(f"nats://{LOOPBACK}:{one.cluster}" for one in servers)
        lines.append(f"cluster {{ name: bywash, listen: {LOOPBACK}:{server.cluster}, routes: [{routes}] }}")
    return "\n".join([*lines, users, ""])


class Servers:
    """The servers of one test, numbered from 1. Use it in a `with` block, which ends them."""

    def __init__(self, folder: Path, program: Path, number: int = 1, tls: bool = False, auth: str | None = None) -> None:
        """Writes the configurations. `auth` is `user` for a password, `nkey` for a key, or None."""
        self.folder, self.program, self.tls, self.auth = folder, program, tls, auth
        self.servers = [Server(f"nats-{one}", free_port(), free_port(), free_port()) for one in range(1, number + 1)]
        self.processes = Processes(folder)
        self.running: dict[int, Process] = {}
        self.make_keys()
        for server in self.servers:
            file = folder / f"{server.name}.conf"
            file.write_text(configuration(server, self.servers, folder, tls, self.users()))
            file.chmod(0o600)

    def make_keys(self) -> None:
        """Makes the certificates, the key and the password that the options ask for."""
        options = [f"--server={server.name}={LOOPBACK}" for server in self.servers if self.tls]
        if self.auth == "nkey":
            options.append(f"--gateway={USER}")
        if options:
            if shutil.which("openssl") is None:
                raise Missing("openssl is missing")
            subprocess.run([MAKE_KEYS, self.folder, *options], check=True)
        if self.auth == "user":
            file = self.folder / "password"
            file.touch(0o600)
            file.write_text(secrets.token_urlsafe() + "\n")

    def users(self) -> str:
        """Returns the part of the configuration that names the users."""
        if self.auth == "nkey":
            found = re.search(r"nkey: (U[A-Z2-7]+)", (self.folder / "users.conf").read_text())
            assert found is not None, "make-keys writes the public key of each gateway"
            return f"accounts {{ BYWASH {{ jetstream: enabled, users: [{{ nkey: {found[1]} }}] }} }}"
        if self.auth == "user":
            password = (self.folder / "password").read_text().strip()
            return f"accounts {{ BYWASH {{ jetstream: enabled, users: [{{ user: {USER}, password: '{password}' }}] }} }}"
        return ""

    def environment(self) -> dict[str, str]:
        """Returns the variables that say how to connect."""
        scheme = "tls" if self.tls else "nats"
        found = {"BYWASH_NATS": ",".join(f"{scheme}://{LOOPBACK}:{server.client}" for server in self.servers)}
        if self.tls:
            found["BYWASH_NATS_CA"] = str(self.folder / "ca.pem")
        if self.auth == "user":
            found |= {"BYWASH_NATS_USER": USER, "BYWASH_NATS_PASSWORD_FILE": str(self.folder / "password")}
        if self.auth == "nkey":
            found["BYWASH_NATS_SEED_FILE"] = str(self.folder / f"{USER}.nk")
        return found

    def __enter__(self) -> "Servers":
        try:
            for number in range(1, len(self.servers) + 1):
                self.start(number)
            for server in self.servers:
                until(f"{server.name} is part of the cluster", lambda: self.healthy(server), pause=0.05)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self.running):
            self.kill(number)

    def healthy(self, server: Server) -> bytes:
        """Returns an answer if the server is ready, with JetStream and the cluster."""
        return get(f"http://{LOOPBACK}:{server.monitor}/healthz")

    def start(self, number: int) -> None:
        """Starts a server, and waits until it accepts clients. The cluster may not be ready yet."""
        if number in self.running:
            fail(f"server {number} runs")
        server = dict(enumerate(self.servers, 1))[number]
        command = [self.program, "--config", self.folder / f"{server.name}.conf"]
        self.running[number] = self.processes.start(server.name, command, lambda: listens(server.client))

    def process(self, number: int) -> Process:
        """Returns the process of a server that runs."""
        if number not in self.running:
            fail(f"server {number} does not run")
        return self.running[number]

    def take(self, number: int) -> Process:
        """Returns the process of a server, which this value then forgets."""
        process = self.process(number)
        del self.running[number]
        with contextlib.suppress(ValueError):
            # `give_up` may have ended it.
            self.processes.running.remove(process)
        return process

    def kill(self, number: int) -> None:
        """Ends a server as in a crash."""
        kill(self.take(number))

    def stop(self, number: int) -> None:
        """Ends a server in order."""
        self.thaw(number)
        stop(self.take(number))

    def freeze(self, number: int) -> None:
        """Stops a server for a time: its connections stay, and it does not answer."""
        process = self.process(number)
        process.send_signal(signal.SIGSTOP)
        threads = PROC / str(process.pid) / "task"
        # A thread may go on for a moment after the signal.
        until(f"server {number} stands still", lambda: all(fields(thread)[0] in "TZ" for thread in threads.iterdir()), pause=0.001)

    def thaw(self, number: int) -> None:
        """Lets a frozen server go on."""
        self.process(number).send_signal(signal.SIGCONT)
