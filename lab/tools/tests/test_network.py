"""Ports are free, and requests reach a server, on loopback."""

import http.server
import socket
import threading
import unittest
import urllib.error

from bywash_lab.network import HIGHEST, LOOPBACK, LOWEST, free_port, get, listens


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

    def test_a_port_on_which_a_program_listens_is_not_free(self) -> None:
        taken = free_port() + 1
        with socket.create_server((LOOPBACK, taken)):
            self.assertTrue(listens(taken))
            self.assertNotEqual(free_port(), taken)
        self.assertFalse(listens(taken))


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
