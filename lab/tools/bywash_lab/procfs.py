"""Processes and their processor time, from /proc."""

import os
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")  # a second


def fields(place: Path) -> list[str]:
    """Returns the fields of a process's or thread's `stat` that follow its name.

    They are those of proc_pid_stat(5) from the third one on: 0 is the state, 1 the parent, 11 and 12
    the processor time in the program and in the kernel, 13 and 14 that of children that have ended.
    """
    return (place / "stat").read_text().rsplit(")", 1)[1].split()


def ticks(of: list[str]) -> int:
    """Returns the processor time of a process or thread in clock ticks, from the fields `of`."""
    return int(of[11]) + int(of[12])


def family(first: int) -> dict[int, list[str]]:
    """Returns the fields of the process `first` and of all processes that descend from it, by process id."""
    everything = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                everything[int(entry.name)] = fields(entry)
            except OSError:
                pass  # The process has ended.
    found = {first: fields(PROC / str(first))}
    todo = [first]
    while todo:
        parent = str(todo.pop())
        children = {process: its for process, its in everything.items() if its[1] == parent and process not in found}
        found |= children
        todo += children
    return found


def descendants(first: int) -> list[int]:
    """Returns the ids of the processes that descend from the process `first`, except those that have ended."""
    return [process for process, its in family(first).items() if process != first and its[0] != "Z"]


def processor_seconds(first: int) -> float:
    """Returns the processor seconds of a process and its descendants, including children that have ended."""
    found = family(first)
    ended = sum(int(field) for field in found[first][13:15])
    return (sum(map(ticks, found.values())) + ended) / TICKS
