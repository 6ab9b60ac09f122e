"""NATS servers start as a cluster, let in the users that they should, and end. Their keys are those of NATS."""

import base64
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import shutil
import socket
import ssl
import subprocess
import tempfile
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from bywash_lab.nats import MAKE_KEYS, VERSION, Missing, Server, Servers, configuration, install, refuse, version
from bywash_lab.network import listens
from bywash_lab.places import TARGET
from bywash_lab.reports import not_tested

PROGRAM = TARGET / "nats/bin/nats-server"
# From the documentation of NATS: https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/nkey_auth
SECRET = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


def load_make_keys() -> ModuleType:
    """Returns the script of the example as a module."""
    loader = importlib.machinery.SourceFileLoader("make_keys", str(MAKE_KEYS))
    specification = importlib.util.spec_from_loader("make_keys", loader)
    assert specification is not None, "it has a loader"
    module = importlib.util.module_from_spec(specification)
    loader.exec_module(module)
    return module


make_keys = load_make_keys()


class Refused(Exception):
    """The server does not let the client in."""


class Client:
    """A client of one server, in the server's text protocol."""

    def __init__(self, url: str, folder: Path, **options: str) -> None:
        """Connects. `options` are `ca`, `user` and `password`, or `seed`: the text of a secret key."""
        host, port = url.rpartition("/")[2].split(":")
        plain = socket.create_connection((host, int(port)), timeout=20)
        # The connection is not buffered, so that nothing of the handshake is read from it.
        first = b""
        while not first.endswith(b"\r\n"):
            first += plain.recv(1)
        information = json.loads(first.removeprefix(b"INFO "))
        ca = options.get("ca")
        self.socket = ssl.create_default_context(cafile=ca).wrap_socket(plain, server_hostname=host) if ca else plain
        self.lines = self.socket.makefile("rb")
        words: dict[str, Any] = {"verbose": False, "lang": "python", "version": "0"}
        if "user" in options:
            words |= {"user": options["user"], "pass": options["password"]}
        if "seed" in options:
            seed = make_keys.seed_of(options["seed"])
            words |= {"nkey": make_keys.public_text(seed), "sig": sign(seed, information["nonce"], folder)}
        try:
            self.send(f"CONNECT {json.dumps(words)}")
            self.round_trip()
        except (OSError, Refused):
            self.close()
            raise

    def send(self, line: str) -> None:
        """Sends a line."""
        self.socket.sendall(f"{line}\r\n".encode())

    def round_trip(self) -> None:
        """Waits until the server has carried out all lines."""
        self.send("PING")
        while (line := self.read()) != "PONG":
            if line.startswith("-ERR") or not line:
                raise Refused(line)

    def read(self) -> str:
        """Returns the next line."""
        return self.lines.readline().decode().rstrip()

    def close(self) -> None:
        """Ends the connection."""
        self.lines.close()
        self.socket.close()


def sign(seed: bytes, nonce: str, folder: Path) -> str:
    """Returns the signature that proves that a client has a key."""
    (folder / "key").write_bytes(make_keys.ED25519 + seed)
    (folder / "nonce").write_text(nonce)
    signature = make_keys.openssl("pkeyutl", "-sign", "-rawin", "-keyform", "DER", "-inkey", folder / "key", "-in", folder / "nonce")
    return base64.urlsafe_b64encode(signature).decode().rstrip("=")


class InFolder(unittest.TestCase):
    """A test with a temporary folder."""

    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)


class Configurations(unittest.TestCase):
    def test_one_server_is_not_a_cluster(self) -> None:
        server = Server("nats-1", 1, 2, 3)
        text = configuration(server, [server], Path("/f"), False, "")
        self.assertIn("listen: 127.0.0.1:1\n", text)
        self.assertNotIn("cluster", text)
        self.assertNotIn("tls", text)

    def test_each_server_of_a_cluster_has_the_routes_to_all(self) -> None:
        servers = [Server(f"nats-{number}", number, 10 + number, 20 + number) for number in (1, 2, 3)]
        for server in servers:
            text = configuration(server, servers, Path("/f"), True, "users")
            self.assertIn("routes: [nats://127.0.0.1:11, nats://127.0.0.1:12, nats://127.0.0.1:13]", text)
            self.assertIn(f"cert_file: '/f/{server.name}.pem'", text)
            self.assertTrue(text.endswith("users\n"))


class Installation(InFolder):
    def test_without_go_there_is_no_server(self) -> None:
        with mock.patch.object(shutil, "which", return_value=None), self.assertRaisesRegex(Missing, "go is missing"):
            install(self.folder)

    def test_a_program_with_the_version_is_not_built_again(self) -> None:
        program = self.folder / "bin/nats-server"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\necho 'nats-server: v{VERSION}'\n")
        program.chmod(0o755)
        self.assertEqual(version(program), VERSION)
        with mock.patch.object(shutil, "which", return_value=None):
            self.assertEqual(install(self.folder), program)
            program.write_text("#!/bin/sh\necho 'nats-server: v2.9.10'\n")
            with self.assertRaises(Missing):
                install(self.folder)

    def test_only_the_machine_is_a_reason_not_to_test(self) -> None:
        for said in ("go: nats@v2: requires go >= 1.26.0 (running go 1.19.8; GOTOOLCHAIN=local)",
                     'Get "https://proxy": dial tcp: lookup proxy: no such host', "go: module lookup disabled by GOPROXY=off"):
            with self.assertRaises(Missing):
                refuse(said)
        with self.assertRaisesRegex(SystemExit, "unknown revision"):
            refuse("go: nats@v9.9.9: invalid version: unknown revision v9.9.9")


class Keys(InFolder):
    def setUp(self) -> None:
        super().setUp()
        if shutil.which("openssl") is None:
            not_tested("keys of NATS, because openssl is missing")
            self.skipTest("openssl is missing")

    def test_the_text_of_keys_is_that_of_nats(self) -> None:
        seed = make_keys.seed_of(SECRET)
        self.assertEqual(make_keys.seed_text(seed), SECRET)
        self.assertEqual(make_keys.public_text(seed), PUBLIC)

    def test_a_key_with_a_wrong_character_is_refused(self) -> None:
        for text in (SECRET.replace("L3", "L4"), SECRET[:-1], PUBLIC, "", "!"):
            with self.assertRaises(ValueError, msg=text):
                make_keys.seed_of(text)

    def test_a_second_call_adds_a_gateway_and_keeps_the_rest(self) -> None:
        def call(*options: str) -> None:
            subprocess.run([MAKE_KEYS, self.folder, *options], check=True)

        call("--server=one=127.0.0.1", "--server=two=nats.example.com", "--gateway=g1")
        kept = {file: file.read_bytes() for file in self.folder.iterdir() if file.name != "users.conf"}
        (before,) = [line for line in (self.folder / "users.conf").read_text().splitlines() if "nkey:" in line]
        call("--server=one=127.0.0.1", "--gateway=g2")
        after = (self.folder / "users.conf").read_text()
        self.assertEqual({file: file.read_bytes() for file in kept}, kept)
        self.assertIn(before, after.splitlines())
        self.assertIn("# g2", after)
        subprocess.run(["openssl", "verify", "-CAfile", self.folder / "ca.pem", self.folder / "two.pem"], check=True,
                       stdout=subprocess.DEVNULL)
        modes = {file.name: file.stat().st_mode & 0o777 for file in self.folder.iterdir()}
        self.assertEqual({name for name, mode in modes.items() if mode == 0o600}, {"ca.key", "one.key", "two.key", "g1.nk", "g2.nk"})


class Running(InFolder):
    def setUp(self) -> None:
        super().setUp()
        if version(PROGRAM) != VERSION:
            not_tested("NATS servers, because scripts/with-nats has not installed them")
            self.skipTest("not installed")

    def servers(self, **options: Any) -> Servers:
        """Starts servers, which end with the test."""
        servers = Servers(self.folder, PROGRAM, **options)
        self.enterContext(servers)
        return servers

    def connect(self, url: str, **options: str) -> Client:
        """Connects a client, which is closed with the test."""
        client = Client(url, self.folder, **options)
        self.addCleanup(client.close)
        return client

    def test_a_message_reaches_the_other_servers_of_a_cluster(self) -> None:
        one, two, three = self.servers(number=3).environment()["BYWASH_NATS"].split(",")
        readers = [self.connect(url) for url in (two, three)]
        for reader in readers:
            reader.send("SUB word 1")
            reader.round_trip()
        writer = self.connect(one)
        # The other servers learn of a subscription some time after it was made.
        for reader in readers:
            reader.socket.settimeout(0.1)
        heard: set[int] = set()
        for _ in range(200):
            writer.send("PUB word 2\r\nhi")
            for number, reader in enumerate(readers):
                with contextlib.suppress(TimeoutError):
                    if reader.socket.recv(4096):
                        heard.add(number)
            if len(heard) == 2:
                return
        self.fail(f"only {heard} heard the message")

    def test_a_password_and_tls_are_needed(self) -> None:
        told = self.servers(tls=True, auth="user").environment()
        url, ca, user = told["BYWASH_NATS"], told["BYWASH_NATS_CA"], told["BYWASH_NATS_USER"]
        password = Path(told["BYWASH_NATS_PASSWORD_FILE"]).read_text().strip()
        self.assertTrue(url.startswith("tls://127.0.0.1:"), url)
        self.connect(url, ca=ca, user=user, password=password)
        with self.assertRaisesRegex(Refused, "Authorization"):
            self.connect(url, ca=ca, user=user, password="wrong")
        with self.assertRaisesRegex(Refused, "Authorization"):
            self.connect(url, ca=ca)
        with self.assertRaises((Refused, OSError)):
            self.connect(url, user=user, password=password)

    def test_a_key_is_needed(self) -> None:
        told = self.servers(auth="nkey").environment()
        self.connect(told["BYWASH_NATS"], seed=Path(told["BYWASH_NATS_SEED_FILE"]).read_text().strip())
        with self.assertRaisesRegex(Refused, "Authorization"):
            self.connect(told["BYWASH_NATS"], seed=SECRET)

    def test_a_server_ends_freezes_and_comes_back_at_the_same_port(self) -> None:
        servers = self.servers()
        url = servers.environment()["BYWASH_NATS"]
        for end in servers.kill, servers.stop:
            client = self.connect(url)
            servers.freeze(1)
            client.socket.settimeout(0.2)
            with self.assertRaises(TimeoutError):
                client.round_trip()
            end(1)
            with self.assertRaises(OSError):
                self.connect(url)
            servers.start(1)
            self.connect(url)
        with self.assertRaisesRegex(SystemExit, "server 1 runs"):
            servers.start(1)
        servers.kill(1)
        with self.assertRaisesRegex(SystemExit, "server 1 does not run"):
            servers.freeze(1)

    def test_a_server_that_does_not_start_ends_the_script_with_its_log(self) -> None:
        servers = Servers(self.folder, PROGRAM)
        (self.folder / "nats-1.conf").write_text("no such setting: 1\n")
        with self.assertRaisesRegex(SystemExit, "nats-1 does not start: nats-server: Parse error"), contextlib.redirect_stderr(io.StringIO()):
            servers.__enter__()
        self.assertFalse(listens(servers.servers[0].client))


if __name__ == "__main__":
    unittest.main()
