"""Tests that ports are free, and that requests reach a server, on loopback."""

import http.server
import socket
import threading
import unittest
import urllib.error
from unittest import mock

from bywash_lab import network
from bywash_lab.network import HIGHEST, LOOPBACK, LOWEST, free_port, get, is_free, listens


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with the method and the body. The path /missing is a 404."""

    def do_GET(self) -> None:
        body = self.command.encode() + self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Ports(unittest.TestCase):
    def test_free_ports_are_below_those_of_outgoing_connections_and_all_different(self) -> None:
        ports = [free_port() for _ in range(20)]
        self.assertEqual(len(set(ports)), 20)
        self.assertTrue(all(LOWEST <= port <= HIGHEST for port in ports), ports)

    def test_a_port_that_a_program_has_is_not_free(self) -> None:
        taken = free_port()
        self.assertTrue(is_free(taken))
        # The search begins at the taken port, which was never given away.
        search = mock.patch.multiple(network, _given=set(), secrets=mock.Mock(randbelow=lambda _: taken - LOWEST))
        with socket.socket() as program:
            program.bind((LOOPBACK, taken))
            self.assertFalse(is_free(taken), "nothing listens, but the port is bound")
            with search:
                self.assertNotEqual(free_port(), taken)
            program.listen()
            self.assertTrue(listens(taken))
            self.assertFalse(is_free(taken))
        self.assertFalse(listens(taken))
        with search:
            self.assertEqual(free_port(), taken)

    def test_the_search_continues_below_the_highest_port(self) -> None:
        highest = mock.Mock(randbelow=lambda count: count - 1)
        with mock.patch.multiple(network, _given={HIGHEST}, secrets=highest, is_free=lambda port: port > LOWEST):
            self.assertEqual(free_port(), LOWEST + 1)


class Requests(unittest.TestCase):
    def setUp(self) -> None:
        server = http.server.ThreadingHTTPServer((LOOPBACK, 0), Echo)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        self.url = f"http://{LOOPBACK}:{server.server_address[1]}"

    def test_a_body_makes_a_request_a_post(self) -> None:
        self.assertEqual(get(f"{self.url}/"), b"GET")
        self.assertEqual(get(f"{self.url}/", b" x"), b"POST x")

    def test_a_refusal_and_a_closed_port_are_os_errors(self) -> None:
        with self.assertRaises(urllib.error.HTTPError):
            get(f"{self.url}/missing")
        with self.assertRaises(OSError):
            get(f"http://{LOOPBACK}:{free_port()}/")
