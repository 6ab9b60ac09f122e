"""Waiting for a condition, with a limit."""

import time
from collections.abc import Callable
from typing import TypeVar

from bywash_lab.reports import fail

Seen = TypeVar("Seen")


def seconds_until(holds: Callable[[], object], limit: float, pause: float = 0.02) -> float | None:
    """Waits until `holds()` is true. Returns the seconds that this took, or None after `limit` seconds."""
    begun = time.monotonic()
    while time.monotonic() - begun < limit:
        if holds():
            return time.monotonic() - begun
        time.sleep(pause)
    return None


def until(what: str, look: Callable[[], Seen], limit: float = 60, pause: float = 0.2) -> Seen:
    """Returns the first true result of `look`, or ends the script after `limit` seconds.

    An `OSError`, such as a refused connection, counts as no result.
    """
    seen: list[Seen] = []

    def is_seen() -> bool:
        try:
            seen[:] = [look()]
        except OSError:
            return False
        return bool(seen[0])

    if seconds_until(is_seen, limit, pause) is None:
        fail(f"not within {limit:g} s: {what}")
    return seen[0]
