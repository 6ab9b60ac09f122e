"""Starts a stock application, prints its URL, and waits for Ctrl-C or SIGTERM. See scripts/applications."""

import importlib
import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from bywash_lab.processes import Processes, exit_on_sigterm
from bywash_lab.reports import fail


def main():
    exit_on_sigterm()
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    name, folder = sys.argv[1:]
    root = pathlib.Path(folder).resolve()
    (root / "process").write_text(f"{os.getpid()}\n")
    processes = Processes(root)
    try:
        print(importlib.import_module(name).start(processes, root), flush=True)
        while all(process.poll() is None for process in processes.running):
            signal.sigtimedwait([], 1)
        fail(f"a server of {name} has ended; its log is in {root}")
    finally:
        processes.stop()


main()
