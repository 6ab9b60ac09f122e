"""What runs without a lease, and although its request is over: what ends a transaction, and other clean-up.

Who refuses a `ROLLBACK` gives a connection back with its transaction open, and the next request works within that. So
transaction control passes, in its turn: nothing is said to the daemon, and nothing is aimed at it. For what else has to
be cleaned up (`pg_advisory_unlock`, `RESET`) there is `unleased`.
"""

import contextlib
import re
from typing import Any, Iterator

from .token import _current

#: The first word of a text that passes, as in `sdk/node/lib/unleased.js`.
CONTROL = frozenset(("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ABORT", "UNLOCK"))

# One blank or comment at a time: what is one expression tries its pieces in all combinations.
_BLANK = re.compile(r"[\s;]+|--[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]+")


@contextlib.contextmanager
def unleased() -> Iterator[None]:
    """What runs within works for no request: it is not leased, not refused, and not ended."""
    was = _current.set(None)
    try:
        yield
    finally:
        _current.reset(was)


def is_control(statement: Any, context: Any = None) -> bool:
    """Whether this is transaction control. `context` is the driver's cursor, for what psycopg composes."""
    if isinstance(statement, (bytes, bytearray)):
        statement = statement.decode("latin-1")
    elif not isinstance(statement, str):
        as_string = getattr(statement, "as_string", None)
        try:
            statement = as_string(context) if as_string is not None else ""
        except Exception:
            # Whoever executes it says so himself.
            return False
    at = 0
    while True:
        blank = _BLANK.match(statement, at)
        if blank is None:
            break
        at = blank.end()
    word = _WORD.match(statement, at)
    return word is not None and word.group().upper() in CONTROL
