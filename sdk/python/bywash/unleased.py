"""Statements without a lease: transaction control and other clean-up.

They run even if their request is over.

If a `ROLLBACK` were refused, the connection would go back to its pool with its transaction open,
and the next request would work within that transaction. Therefore transaction control runs when it
is its turn: no line is sent to the daemon, and no cancellation is aimed at it. `unleased` does the
same for other clean-up (`pg_advisory_unlock`, `RESET`).
"""

import contextlib
import re
from typing import Any, Iterator, Tuple

from .token import _current, _is_unleased

#: The words that such statements begin with, and those that may come second; None allows any. BEGIN
#: also begins a block of statements (MariaDB's BEGIN NOT ATOMIC), which may run for long. It is
#: equal in every language: sdk/conformance/statements.json.
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
# combinations. Only ASCII has blanks for a database, and every character beyond it belongs to a
# word. Texts that MySQL executes (/*! … */, /*M! … */) are not comments.
_BLANK = re.compile(r"[ \t\r\n\f\v]+|--[^\n]*|#[^\n]*|/\*(?!M?!).*?\*/", re.DOTALL)
_WORD = re.compile(r"[A-Za-z0-9_\u0080-\U0010ffff]*")


@contextlib.contextmanager
def unleased() -> Iterator[None]:
    """Run the block of a `with` outside of any request.

    Its statements are not leased, not refused, and not cancelled. They are not counted as `unnamed`.
    """
    was, was_unleased = _current.set(None), _is_unleased.set(True)
    try:
        yield
    finally:
        _is_unleased.reset(was_unleased)
        _current.reset(was)


def is_control(statement: Any, context: Any = None) -> bool:
    """Return whether a statement is transaction control.

    `context` is the driver's cursor, which psycopg needs for composed statements.
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
    statements = list(_statements(statement))
    return bool(statements) and all(first in CONTROL and _may_follow(first, second) for first, second in statements)


def _statements(text: str) -> Iterator[Tuple[str, str]]:
    """Yield the first two words of each statement.

    If the second is not a word, yield its first character or "".
    """
    text = _bare(text)
    while text:
        # A semicolon in a comment in front has gone with the comment.
        statement, _, text = text.partition(";")
        if statement:
            first = _WORD.match(statement).group()
            rest = _bare(statement, len(first))
            yield first.upper(), _WORD.match(rest).group().upper() or rest[:1]
        text = _bare(text)


def _bare(text: str, at: int = 0) -> str:
    """Return the text without the blanks and comments in front."""
    while blank := _BLANK.match(text, at):
        at = blank.end()
    return text[at:]


def _may_follow(first: str, second: str) -> bool:
    seconds = CONTROL[first]
    return seconds is None or second in seconds
