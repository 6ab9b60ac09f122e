"""Messages and exit codes of failures, messages of tests that were left out, Markdown tables, result files."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn


def script() -> str:
    """Returns the script's name in messages.

    `scripts/NAME` starts the modules of `lab/NAME`, so the name of a module is that of its folder.
    """
    started = Path(sys.argv[0]).resolve()
    return started.parent.name if started.suffix == ".py" else started.name


def fail(message: str) -> NoReturn:
    """Ends the script with exit code 1, and prints `message`."""
    sys.exit(f"{script()}: {message}")


@contextlib.contextmanager
def failures_exit_with(code: int) -> Iterator[None]:
    """Makes a failure inside the context end the script with exit code `code`, after its message."""
    try:
        yield
    except SystemExit as failure:
        if not isinstance(failure.code, str):
            raise
        print(failure.code, file=sys.stderr, flush=True)
        sys.exit(code)


def not_tested(what: str) -> None:
    """Reports a test that this machine cannot run. That is not a failure."""
    print(f"NOT TESTED: {what}", file=sys.stderr, flush=True)


def table(*titles: str) -> Callable[..., None]:
    """Prints the head of a Markdown table. Returns a function that prints a row."""

    def row(*cells: object) -> None:
        print("|" + "|".join(f" {text} " if text else " " for text in map(str, cells)) + "|", flush=True)

    row(*titles)
    print("|" + "---|" * len(titles), flush=True)
    return row


def save(path: Path, text: str) -> None:
    """Writes `text` to the file `path`. A new file replaces the old one only when it is complete."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)
