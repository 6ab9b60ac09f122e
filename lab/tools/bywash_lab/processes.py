"""Programs that a script starts, and ends again.

A program ends with the script, however the script ends: the kernel sends it SIGTERM when the thread
that started it ends (`setpriv --pdeathsig`). So only the main thread may start programs. `setpriv`
becomes the program, which keeps its process id. `preexec_fn` would do the same, but may hang in a
script with threads.

A program leads a process group, so that one that does not end is killed with its children. It stays
in the script's session, because the kernel may divide processor time among sessions first. A
program in a session of its own would then have another share, whatever its priority is.
"""

import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from bywash_lab.reports import fail

Process = subprocess.Popen[str]


def start(*command: object, **options: Any) -> Process:
    """Starts a program. `options` are those of `subprocess.Popen`."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        fail(f"{words[0]} is missing")
    options = {"stdin": subprocess.DEVNULL} | options
    return subprocess.Popen(["setpriv", "--pdeathsig", "TERM", "--", *words], text=True, process_group=0, **options)


def announced(name: str, output: IO[str] | None, pattern: str) -> tuple[str, ...]:
    """Reads a program's output up to a line with this pattern. Returns the groups of the pattern.

    A thread reads the rest, so that the program never waits for a reader.
    """
    assert output is not None, "start the program with a pipe"
    for line in output:
        if found := re.search(pattern, line):
            threading.Thread(target=drain, args=[output], daemon=True).start()
            return found.groups()
    fail(f"{name} ended before it printed {pattern}")


def drain(output: IO[str]) -> None:
    """Reads an output to its end, and closes it."""
    with output:
        collections.deque(output, maxlen=0)


def stop(process: Process, patience: float = 20) -> None:
    """Ends a program by SIGTERM. If it still runs after `patience` seconds, kills its process group."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        kill(process)


def kill(process: Process) -> None:
    """Ends a program and its process group by SIGKILL.

    If the program has ended, nothing is killed, because its id may belong to another group by now.
    """
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def exit_on_sigterm() -> None:
    """Lets SIGTERM end this script with exit code 143 and run its `finally` blocks."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Processes:
    """Started programs, each with its output in a file of `folder`. stop() ends them, the last one first."""

    def __init__(self, folder: Path, patience: float = 60) -> None:
        self.folder, self.patience = Path(folder), patience
        self.running: list[Process] = []

    def start(self, name: str, command: Iterable[object], ready: Callable[[], object], **options: Any) -> Process:
        """Starts a program, and waits until `ready()`. Its output is added to `folder/NAME.out`.

        If it ends first, or is not ready after `patience` seconds, ends all programs and the script.
        """
        output = self.folder / f"{name}.out"
        with output.open("a") as log:
            process = start(*command, stdout=log, stderr=log, **options)
        self.running.append(process)
        end = time.monotonic() + self.patience
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                self.stop()
                fail(f"{name} does not start: {output.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        return process

    def end(self, process: Process) -> None:
        """Ends one of the programs."""
        self.running.remove(process)
        stop(process)

    def stop(self) -> None:
        """Ends all programs."""
        while self.running:
            self.end(self.running[-1])

    def kill(self) -> None:
        """Ends all programs by SIGKILL, such as those whose work would go on after SIGTERM."""
        while self.running:
            kill(self.running.pop())
