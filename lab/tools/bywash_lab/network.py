"""Ports and requests on loopback."""

import secrets
import socket
import urllib.request

from bywash_lab.reports import fail

LOOPBACK = "127.0.0.1"
# The kernel takes the ports of outgoing connections from 32768 on, unless it is told otherwise.
LOWEST, HIGHEST = 28000, 32767
_given: set[int] = set()


def free_port() -> int:
    """Returns a port that no socket has, and which this function has not returned before.

    The port is below those of outgoing connections. Otherwise such a connection could take the port
    before the server listens on it. The search begins at a random port, so that scripts that run at
    the same time rarely get the same port.
    """
    count = HIGHEST + 1 - LOWEST
    first = secrets.randbelow(count)
    for offset in range(count):
        port = LOWEST + (first + offset) % count
        if port not in _given and is_free(port):
            _given.add(port)
            return port
    fail(f"no port from {LOWEST} to {HIGHEST} is free")


def is_free(port: int) -> bool:
    """Returns whether a program could listen on the port `port` of loopback now."""
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def listens(port: int) -> bool:
    """Returns whether a program listens on the port `port` of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def get(url: str, body: bytes | None = None, timeout: float = 60) -> bytes:
    """Requests `url` and returns the body of the answer. If `body` is given, the request is a POST.

    # Errors

    `urllib.error.HTTPError` for a status of 400 and above, `OSError` without an answer.
    """
    with urllib.request.urlopen(url, body, timeout=timeout) as answer:
        found: bytes = answer.read()
    return found
