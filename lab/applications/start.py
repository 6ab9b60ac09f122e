"""Starts a stock application, prints its URL, and waits for Ctrl-C or SIGTERM. See scripts/applications."""

import importlib
import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import stack


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    name, folder = sys.argv[1:]
    root = pathlib.Path(folder).resolve()
    (root / "process").write_text(f"{os.getpid()}\n")
    processes = stack.Processes(root)
    try:
        print(importlib.import_module(name).start(processes, root), flush=True)
        while all(process.poll() is None for process in processes.running):
            signal.sigtimedwait([], 1)
        sys.exit(f"applications: a server of {name} has ended; its log is in {root}")
    finally:
        processes.stop()


main()
