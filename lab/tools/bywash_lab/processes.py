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
import contextlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, NoReturn

from bywash_lab.reports import fail
from bywash_lab.waiting import seconds_until


class Process(subprocess.Popen[str]):
    """A started program. `poll` and `wait` do not release its process id, but `stop` and `kill` do.

    While the id is not released, no other process group has it. So the children of a program that
    has ended can still be killed.
    """

    # Whether the process id may belong to another process by now.
    released = False

    def poll(self) -> int | None:
        """Returns the exit code if the program has ended, otherwise None."""
        return self._look(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end of the program. Returns its exit code.

        # Errors

        `subprocess.TimeoutExpired` after `timeout` seconds.
        """
        if timeout is not None and self.poll() is None and seconds_until(lambda: self.poll() is not None, timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        code = self._look(0)
        assert code is not None, "waitid returns when the program has ended"
        return code

    def _look(self, options: int) -> int | None:
        """Returns the exit code if the program has ended, otherwise None. Does not release the process id.

        The code is 0 if nobody can tell it any more, as with `subprocess.Popen`: the caller has
        already asked the kernel for it, or ignores SIGCHLD.
        """
        if self.returncode is None:
            try:
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | options)
            except ChildProcessError:
                self.returncode, self.released = 0, True
            else:
                if ended:
                    self.returncode = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        code: int | None = self.returncode
        return code


def start(*command: object, **options: Any) -> Process:
    """Starts a program. `options` are those of `subprocess.Popen`."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        fail(f"{words[0]} is missing")
    options = {"stdin": subprocess.DEVNULL} | options
    return Process(["setpriv", "--pdeathsig", "TERM", "--", *words], text=True, process_group=0, **options)


def announced(name: str, output: IO[str] | None, pattern: str, patience: float = 120) -> tuple[str, ...]:
    """Reads a program's output up to a line that matches `pattern`. Returns the groups of the match.

    Without such a line within `patience` seconds, ends the script and prints the last lines that the
    program wrote. A thread reads the rest, so that the program never waits for a reader.
    """
    assert output is not None, "start the program with a pipe"
    said: collections.deque[str] = collections.deque(maxlen=20)
    answer: queue.SimpleQueue[tuple[str, ...] | None] = queue.SimpleQueue()

    def read() -> None:
        with output:
            for line in output:
                said.append(line)
                if found := re.search(pattern, line):
                    answer.put(found.groups())
                    break
            collections.deque(output, maxlen=0)
        answer.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        groups = answer.get(timeout=patience)
    except queue.Empty:
        fail(f"{name} did not print {pattern} within {patience:g} s: {''.join(list(said))}")
    if groups is None:
        fail(f"{name} ended before it printed {pattern}: {''.join(said)}")
    return groups


def stop(process: Process, patience: float = 20) -> None:
    """Ends a program by SIGTERM. Kills its process group when it has ended, or after `patience` seconds."""
    if process.released:
        return
    process.terminate()
    seconds_until(lambda: process.poll() is not None, patience)
    kill(process)


def kill(process: Process) -> None:
    """Ends a program and its process group by SIGKILL, even if the program itself has ended. Releases its id.

    A second call kills nothing, because the id may belong to another group by that time.
    """
    if process.released:
        return
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        # The caller has released the id, or the kernel has because the caller ignores SIGCHLD.
        process.released = True
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # An interruption between these lines leaves a process that has ended, and no id to kill by mistake.
    process.released = True
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process.pid, 0)


def exit_on_sigterm() -> None:
    """Lets SIGTERM end this script with exit code 143 and run its `finally` blocks."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Processes:
    """Started programs, each with its output in a file of `folder`. stop() ends them, the last one first."""

    def __init__(self, folder: Path, patience: float = 60) -> None:
        self.folder, self.patience = Path(folder), patience
        self.running: list[Process] = []

    def start(self, name: str, command: Iterable[object], ready: Callable[[], object] | None, **options: Any) -> Process:
        """Starts a program, and waits until `ready()`. Its output is added to `folder/NAME.out`.

        `ready` must not hold before the start: otherwise another program has the port, or an earlier
        one has left its file. With None, nothing is waited for. If the program ends first, or is not
        ready after `patience` seconds, ends all programs and the script.
        """
        output = self.folder / f"{name}.out"
        with output.open("a") as log:
            if ready is not None and ready():
                self.stop()
                fail(f"{name} cannot start: what shows that it is ready is there already, such as its port or its file")
            process = start(*command, stdout=log, stderr=log, **options)
        self.running.append(process)
        end = time.monotonic() + self.patience
        while ready is not None and not ready():
            if process.poll() is not None or time.monotonic() > end:
                self.give_up(name)
            time.sleep(0.05)
        # Another program may have become ready in its place.
        if process.poll() is not None:
            self.give_up(name)
        return process

    def give_up(self, name: str) -> NoReturn:
        """Ends all programs and the script, because one does not start. Prints its last output."""
        self.stop()
        fail(f"{name} does not start: {(self.folder / f'{name}.out').read_text(errors='replace')[-2000:]}")

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
