"""A client that leaves in the middle of its request, in four ways, and the reports of its handler."""

import math
import queue
import socket
import statistics
import struct
import threading
import time
from collections import Counter
from typing import NamedTuple

# The length of a step, in seconds. A handler works for 40 steps.
STEP = 0.02
# The time for which a handler works before its client leaves, in seconds.
BEFORE = 0.15
# The time without a step after which a handler counts as stopped, in seconds.
SILENCE = 0.5
PATIENCE = 20
ROUNDS = 3


class Observer:
    """A receiver of the reports of handlers. It keeps each report with the time of its arrival."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.words = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            name, word = self.socket.recv(256).decode().split()
            self.words.put((time.monotonic(), name, word))

    def next(self, name, patience):
        """Returns the next report about the request `name`, or None if none arrives within `patience` seconds."""
        end = time.monotonic() + patience
        while True:
            try:
                when, who, word = self.words.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                return None
            if who == name:
                return when, word


class Ending(NamedTuple):
    """How a request ended.

    `told`: the handler noticed that its client left. `stopped`: it took no more steps. `done`: it
    worked to its end.
    """

    what: str
    seconds: float
    is_answered: bool


def closes(client):
    client.close()


def half_closes(client):
    client.shutdown(socket.SHUT_WR)


def resets(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def closes_behind_a_byte(client):
    client.sendall(b"G")
    time.sleep(0.1)  # The server reads the byte before the close.
    client.close()


WAYS = {
    "closes": closes,
    "shuts down its sending side": half_closes,
    "resets": resets,
    "closes behind one byte more": closes_behind_a_byte,
}

count = 0


def leave(observer, address, how, leaving, in_steps):
    """Sends one request whose client leaves in the way `leaving`. Returns how the request ended."""
    global count
    count += 1
    name = f"r{count}"
    client = socket.create_connection(address, timeout=PATIENCE)
    client.sendall(f"GET /{how}/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert observer.next(name, PATIENCE), f"/{how}/{name} does not begin"
    time.sleep(BEFORE)
    left = time.monotonic() if leaving is not closes_behind_a_byte else None
    leaving(client)
    left = left or time.monotonic()
    ending = watch(observer, name, left, in_steps)
    is_answered = leaving is half_closes and is_answered_to(client)
    client.close()
    return ending._replace(is_answered=is_answered)


def watch(observer, name, left, in_steps):
    last = left
    while (heard := observer.next(name, SILENCE if in_steps else PATIENCE)) is not None:
        last, word = heard
        if word != "step":
            return Ending(word, last - left, False)
    return Ending("stopped", max(0, last - left) + STEP, False)


def is_answered_to(client):
    client.settimeout(5)
    try:
        return client.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def cell(endings):
    """Returns a table cell for the endings of several requests."""
    whats = Counter(ending.what for ending in endings)
    milliseconds = math.ceil(1000 * statistics.median(ending.seconds for ending in endings))
    if len(whats) > 1:
        return ", ".join(f"{what} {times} of {len(endings)}" for what, times in whats.items())
    if "done" in whats:
        return "runs on" + (", answered" if all(ending.is_answered for ending in endings) else "")
    return f"{milliseconds} ms" if "told" in whats else f"within {milliseconds} ms"


def row(observer, address, how, in_steps=True):
    return [cell([leave(observer, address, how, way, in_steps) for _ in range(ROUNDS)]) for way in WAYS.values()]
