"""What runs without a lease, and although its request is over: what ends a transaction, and other clean-up.

Who refuses a `ROLLBACK` gives a connection back with its transaction open, and the next request works within that. So
transaction control passes, in its turn: nothing is said to the daemon, and nothing is aimed at it. For what else has to
be cleaned up (`pg_advisory_unlock`, `RESET`) there is `unleased`.
"""

import contextlib
import re
from typing import Any, Iterator, Optional, Tuple

from .token import _current

#: What such statements begin with, and what may come second; anything if that is None. BEGIN also begins a block of
#: statements (MariaDB's BEGIN NOT ATOMIC), which may take long. As in sdk/node/lib/unleased.js and sdk/go/control.go.
CONTROL = {
    **dict.fromkeys(("COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE")),
    "START": ("TRANSACTION",),
    "UNLOCK": ("TABLES", "TABLE"),
    "BEGIN": (
        *("", "WORK", "TRANSACTION", "ISOLATION", "READ", "DEFERRABLE"),  # PostgreSQL, MySQL
        *("DEFERRED", "IMMEDIATE", "EXCLUSIVE", "CONCURRENT"),  # SQLite
    ),
}

# One blank or comment at a time: what is one expression tries its pieces in all combinations. What MySQL runs
# (/*! … */, /*M! … */) is no comment.
_BLANK = re.compile(r"\s+|--[^\n]*|#[^\n]*|/\*(?!M?!).*?\*/", re.DOTALL)
_WORD = re.compile(r"\w*")


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
    statements = [one for one in (_words(one) for one in _bare(statement).split(";")) if one is not None]
    return bool(statements) and all(first in CONTROL and _may_follow(first, second) for first, second in statements)


def _bare(text: str, at: int = 0) -> str:
    """Without blanks and comments in front."""
    while blank := _BLANK.match(text, at):
        at = blank.end()
    return text[at:]


def _words(statement: str) -> Optional[Tuple[str, str]]:
    """The first two words; of the second only that there is none, or what is no word."""
    statement = _bare(statement)
    if not statement:
        return None
    first = _WORD.match(statement).group()
    rest = _bare(statement, len(first))
    return first.upper(), _WORD.match(rest).group().upper() or rest[:1]


def _may_follow(first: str, second: str) -> bool:
    seconds = CONTROL[first]
    return seconds is None or second in seconds
