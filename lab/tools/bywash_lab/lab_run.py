"""Runs of `bywash lab run`: a scenario's visitors against a URL, in real time."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bywash_lab.places import PROGRAMS
from bywash_lab.processes import Process, kill, start
from bywash_lab.reports import fail


def begin(scenario: Path | str, target: str, *options: object, bywash: Path | str = PROGRAMS / "bywash",
          before: Sequence[str] = ()) -> Process:
    """Starts a run. `before` is a command that starts it with another priority, such as `nice -n 10`."""
    command = [*before, bywash, "lab", "run", scenario, "--target", target, *options, "--json"]
    return start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def result(process: Process) -> dict[str, Any]:
    """Waits for the end of a run. Returns its result as parsed JSON, or ends the script if it printed none."""
    try:
        output, errors = process.communicate()
    finally:
        # `communicate` does not release the process id.
        kill(process)
    if not output.startswith("{"):
        fail(f"lab run: {errors[-2000:]}")
    found: dict[str, Any] = json.loads(output)
    return found


def play(scenario: Path | str, target: str, *options: object) -> dict[str, Any]:
    """Executes a run to its end. Returns its result as parsed JSON."""
    return result(begin(scenario, target, *options))
