"""Statements without a lease: transaction control and other clean-up.

They run even if their request is over.

If a `ROLLBACK` were refused, the connection would go back with its transaction open, and the next
request would work within that. So transaction control passes when it is its turn: no line is sent
to the daemon, and no cancellation is aimed at it. For other clean-up (`pg_advisory_unlock`,
`RESET`) there is `unleased`.
"""

import contextlib
import re
from typing import Any, Iterator, Optional, Tuple

from .token import _current

#: The words that such statements begin with, and those that may come second; None allows any. BEGIN
#: also begins a block of statements (MariaDB's BEGIN NOT ATOMIC), which may run for long. Keep it
#: equal to sdk/node/lib/unleased.js and sdk/go/control.go.
CONTROL = {
    **dict.fromkeys(("COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE")),
    "START": ("TRANSACTION",),
    "UNLOCK": ("TABLES", "TABLE"),
    "BEGIN": (
        *("", "WORK", "TRANSACTION", "ISOLATION", "READ", "DEFERRABLE"),  # PostgreSQL, MySQL
        *("DEFERRED", "IMMEDIATE", "EXCLUSIVE", "CONCURRENT"),  # SQLite
    ),
}

# It matches one blank or comment at a time: a single expression for all would backtrack over all
# combinations. Texts that MySQL executes (/*! … */, /*M! … */) are not comments.
_BLANK = re.compile(r"\s+|--[^\n]*|#[^\n]*|/\*(?!M?!).*?\*/", re.DOTALL)
_WORD = re.compile(r"\w*")


@contextlib.contextmanager
def unleased() -> Iterator[None]:
    """Run the block outside of any request.

    Its statements are not leased, not refused, and not cancelled.
    """
    was = _current.set(None)
    try:
        yield
    finally:
        _current.reset(was)


def is_control(statement: Any, context: Any = None) -> bool:
    """Return whether this is transaction control.

    `context` is the driver's cursor, for what psycopg composes.
    """
    if isinstance(statement, (bytes, bytearray)):
        statement = statement.decode("latin-1")
    elif not isinstance(statement, str):
        as_string = getattr(statement, "as_string", None)
        try:
            statement = as_string(context) if as_string is not None else ""
        except Exception:
            # The execution of the statement raises its own error.
            return False
    statements = [one for one in (_words(one) for one in _bare(statement).split(";")) if one is not None]
    return bool(statements) and all(first in CONTROL and _may_follow(first, second) for first, second in statements)


def _bare(text: str, at: int = 0) -> str:
    """Return the text without the blanks and comments in front."""
    while blank := _BLANK.match(text, at):
        at = blank.end()
    return text[at:]


def _words(statement: str) -> Optional[Tuple[str, str]]:
    """Return the first two words; if the second is not a word, its first character or ""."""
    statement = _bare(statement)
    if not statement:
        return None
    first = _WORD.match(statement).group()
    rest = _bare(statement, len(first))
    return first.upper(), _WORD.match(rest).group().upper() or rest[:1]


def _may_follow(first: str, second: str) -> bool:
    seconds = CONTROL[first]
    return seconds is None or second in seconds
