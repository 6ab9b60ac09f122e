"""A thread pool that gives a request as many threads as its service level deserves.

    with Pool(4, {"high": Level(max_threads=4), "low": Level()}) as pool:
        with pool.request("high") as request:
            digests = request.map(digest, blocks)

Tasks take the interpreter's lock: only what releases it (hashlib and zlib on large buffers, numpy, C) runs side by
side. The rest of what a pool does, order and shares of levels, goals, statistics, is as good for any work.
"""

from __future__ import annotations

import atexit
import enum
import threading
import weakref
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, TypeVar, Union

from . import _native
from ._native import Closed, Gateway, NotBelieved, QueueFull, Refused, Request, TimedOut, UnknownLevel

__all__ = [
    "Closed",
    "Gateway",
    "GoalStats",
    "Level",
    "LevelStats",
    "NotBelieved",
    "Percentile",
    "Pool",
    "QueueFull",
    "Ratio",
    "Refused",
    "Request",
    "Stats",
    "TimedOut",
    "UnknownLevel",
    "Verdict",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Level:
    """What a level is granted."""

    max_threads: int = 1
    """Threads that a request may have at most."""
    min_threads: int = 1
    """Threads that it may have although others of its level wait to begin."""
    weight: float = 1.0
    """Slot time in proportion to that of other levels, where no goal says otherwise."""
    floor: float = 0.02
    """The share of slot time, 0 to 1, below which the level is not pressed."""
    queue: int = 1000
    """Requests that may wait to begin."""


@dataclass(frozen=True)
class Ratio:
    """The mean response time of one level is such a part of another's."""

    fast: str
    slow: str
    target: float
    """Above 0, at most 1."""


@dataclass(frozen=True)
class Percentile:
    """Such a share of a level's requests are answered within a time."""

    level: str
    share: float
    """From 0.5 to 0.999: 0.95 for the 95th percentile."""
    within: float
    """Seconds."""


class Verdict(enum.Enum):
    """Whether a goal is reached."""

    SETTLING = "settling"
    """Nobody has been measured yet, or it is on its way."""
    HELD = "held"
    EXCEEDED = "exceeded"
    """There is room: better than asked."""
    INFEASIBLE = "infeasible"
    """The pool does all that it may. What would help is to let fewer in."""


@dataclass(frozen=True)
class LevelStats:
    """A level: counts since the pool was made, and what it does now. Times in seconds."""

    name: str
    answered: int
    failed: int
    """Of those that were answered: a task or the function raised, or `Request.fail` was called."""
    refused: int
    left: int
    """Before their turn came."""
    mean: float
    """From arrival to end, as the next four."""
    deviation: float
    """Standard deviation over mean."""
    median: float
    p95: float
    p99: float
    waited: float
    """From arrival to the first slot: mean."""
    waiting: int
    running: int
    threads: int
    share: float
    """Of the slot time used in the last seconds, 0 to 1."""


@dataclass(frozen=True)
class GoalStats:
    """How far the goal is reached."""

    verdict: Verdict
    measured: Optional[float]
    """The ratio, or the share that was answered in time, of the last seconds."""
    effort: float
    """What is done: the weight of the fast level's age, or seconds that a request is let wait."""


@dataclass(frozen=True)
class Stats:
    """A pool, at one moment."""

    levels: Dict[str, LevelStats]
    goal: Optional[GoalStats]


class Pool:
    """Threads, for which requests of several levels compete.

    As a context manager it is closed at the end, and waited for.
    """

    def __init__(
        self,
        threads: Optional[int],
        levels: Mapping[str, Level],
        *,
        goal: Union[Ratio, Percentile, None] = None,
        parity: Optional[int] = None,
    ) -> None:
        """`threads`: one more than there are processors for it; None: of those that the process may use.

        `parity`: so many requests run at a time, first come first served, each with all threads of its level.
        ValueError: the settings contradict themselves.
        """
        if goal is not None and not isinstance(goal, (Ratio, Percentile)):
            raise TypeError(f"{goal!r} is no goal")
        ratio = (goal.fast, goal.slow, goal.target) if isinstance(goal, Ratio) else None
        percentile = (goal.level, goal.share, goal.within) if isinstance(goal, Percentile) else None
        terms = [
            (name, level.max_threads, level.min_threads, level.weight, level.floor, level.queue)
            for name, level in levels.items()
        ]
        try:
            self._native = _native.Pool(threads, terms, ratio, percentile, parity)
        except OverflowError as error:
            raise ValueError(f"a number is below 0 or too large: {error}") from None
        _pools.add(self)

    def request(self, level: str, timeout: Optional[float] = None) -> Request:
        """Waits for this thread's turn, for `timeout` seconds at most. One thread should have one turn.

        The request has a slot until it ends: use it in a `with`. If the block raises, the request has failed.
        UnknownLevel, QueueFull, TimedOut, Closed.
        """
        signals = threading.current_thread() is threading.main_thread()
        return self._native.request(level, timeout, signals)

    def submit(self, level: str, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Has a thread of the pool call `fn(request, *args, **kwargs)` when the request's turn has come.

        The future can be cancelled until then. If the pool is closed before, it has `Closed`.
        """
        future: Future[T] = Future()

        def run(request: Optional[Request]) -> bool:
            if not future.set_running_or_notify_cancel():
                return True
            if request is None:
                future.set_exception(Closed("the pool is closed"))
                return False
            try:
                result = fn(request, *args, **kwargs)
            except BaseException as error:  # As concurrent.futures does: it is whose future it is.
                future.set_exception(error)
                return False
            future.set_result(result)
            return True

        self._native.submit(level, run)
        return future

    def stats(self) -> Stats:
        """What the pool has done and does."""
        levels, goal = self._native.stats()
        by_name = {level["name"]: LevelStats(**level) for level in levels}
        return Stats(by_name, None if goal is None else GoalStats(Verdict(goal[0]), goal[1], goal[2]))

    def close(self, wait: bool = True) -> None:
        """Nobody comes in any more: who waits gets `Closed`, also what was submitted and has not begun.

        Those that have begun go on. `wait`: until they have ended, so not within one of them.
        """
        self._native.close()
        if wait:
            self._native.wait_until_empty()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _leave() -> None:
    """At the interpreter's end: afterwards no thread of a pool may ask for its lock."""
    for pool in list(_pools):
        try:
            pool.close(wait=False)
        except Closed:  # It was the parent's.
            pass
    _native.leave()


atexit.register(_leave)
