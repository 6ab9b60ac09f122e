"""Ports and requests on loopback."""

import os
import socket
import urllib.request

from bywash_lab.reports import fail

LOOPBACK = "127.0.0.1"
# The kernel takes the ports of outgoing connections from 32768 on, unless it is told otherwise.
LOWEST, HIGHEST = 28000, 32767
_given: set[int] = set()


def free_port() -> int:
    """Returns a port on which nothing listens, and which this function has not returned before.

    It is below the ports of outgoing connections. Otherwise a connection could take the port before
    the server listens on it. Scripts that run at the same time begin the search at different ports.
    """
    start = LOWEST + os.getpid() % 400 * 8
    for port in range(start, HIGHEST + 1):
        if port not in _given and not listens(port):
            _given.add(port)
            return port
    fail(f"no port from {start} to {HIGHEST} is free")


def listens(port: int) -> bool:
    """Returns whether a program listens on this port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def get(url: str, body: bytes | None = None, timeout: float = 60) -> bytes:
    """Returns the body of an answer. With a body, the request is a POST.

    # Errors

    `urllib.error.HTTPError` for a status of 400 and above, `OSError` without an answer.
    """
    with urllib.request.urlopen(url, body, timeout=timeout) as answer:
        found: bytes = answer.read()
    return found
