"""The vectors of `sdk/conformance` and the golden values, which are the same for every language.

`sdk/conformance/README.md` describes the format of the vectors. A test that runs a vector states
its `why`.
"""

import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
#: `scripts/test-packages` copies the files into the source distribution. The repository has them
#: above this package.
ROOT = HERE / "data" if (HERE / "data").is_dir() else HERE.parents[2]
FOLDER = ROOT / "sdk/conformance"
GOLDEN = ROOT / "lab/golden/termination.csv"

#: The fields that each vector may have, and those of the vectors of each list.
COMMON = {"why", "source", "except", "in_memory"}
FIELDS = {
    "names.json": {"requests": {"values", "name", "trusts_names"}, "databases": {"name", "is_valid"}},
    "deadlines.json": {"requests": {"values", "left_ms", "trusts_deadlines"}},
    "outgoing.json": {"requests": {"fields", "after_ms", "settles", "outgoing", "trusts_names"}},
    "answers.json": {
        "answers": {"reason", "retry_after_ms", "method", "accept", "status", "fields", "text", "problem"},
    },
    "statements.json": {"statements": {"text", "is_control"}},
    "controller.json": {"sequences": {"steps"}},
    "leases.json": {"transcripts": {"answers", "daemon", "steps"}},
    "stops.json": {"transcripts": {"answers", "daemon", "steps"}},
}


def vectors(file, key):
    """Return the vectors of a file that hold for this library."""
    lists = json.loads((FOLDER / file).read_text(encoding="utf-8"))
    unknown = lists.keys() - FIELDS[file].keys() - {"about"}
    assert not unknown, f"{file} has unknown lists: {unknown}"
    found = lists[key]
    assert found, f"{file} has no {key}"
    for vector in found:
        unknown = vector.keys() - FIELDS[file][key] - COMMON
        assert not unknown, f"{file} has unknown fields: {unknown} in {vector['why']}"
    return [vector for vector in found if "python" not in vector.get("except", {})]


def is_made(name):
    """Return whether the middleware has made this name, like mod_bywash_sentry."""
    return re.fullmatch("[0-9a-f]{16}", name) is not None


def flat(steps):
    """Yield the steps, with repeated ones as often as they are repeated."""
    for step in steps:
        if step[0] == "repeat":
            for _ in range(step[1]):
                yield from flat(step[2])
        else:
            yield step


class MicroClock:
    """A clock of whole microseconds that a vector advances, in seconds.

    Sums of seconds would not be exact.
    """

    def __init__(self):
        self._microseconds = 0

    def __call__(self):
        return self._microseconds / 1e6

    def go(self, milliseconds):
        self._microseconds += round(milliseconds * 1000)


def seconds(milliseconds):
    """Return milliseconds as seconds, without a rounding error below a microsecond; None stays."""
    return None if milliseconds is None else round(milliseconds * 1000) / 1e6
