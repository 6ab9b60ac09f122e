"""A thread pool that gives a request as many threads as its service level deserves.

    with Pool(4, {"high": Level(max_threads=4), "low": Level()}) as pool:
        with pool.request("high") as request:
            digests = request.map(digest, blocks)

Tasks take the interpreter's lock: only code that releases it (hashlib and zlib on large buffers,
numpy, C) runs in parallel. The pool's other functions (queueing order, shares of levels, goals,
statistics) work equally well for any work.
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
    """The resources of a level."""

    max_threads: int = 1
    """The most threads that a request may have."""
    min_threads: int = 1
    """The threads that a request may have although others of its level wait to begin."""
    weight: float = 1.0
    """Slot time in proportion to that of other levels, unless a goal decides."""
    floor: float = 0.02
    """The fraction of slot time, 0 to 1, that the level keeps while it wants slots."""
    queue: int = 1000
    """The number of requests that may wait to begin."""


@dataclass(frozen=True)
class Ratio:
    """A goal: the mean response time of `fast` is `target` times that of `slow`."""

    fast: str
    slow: str
    target: float
    """Above 0, at most 1."""


@dataclass(frozen=True)
class Percentile:
    """A goal: at least a fraction `share` of a level's requests is answered within a time."""

    level: str
    share: float
    """From 0.5 to 0.999: 0.95 for the 95th percentile."""
    within: float
    """Seconds."""


class Verdict(enum.Enum):
    """Whether a goal is reached."""

    SETTLING = "settling"
    """No request was measured yet, or the pool still adapts."""
    HELD = "held"
    EXCEEDED = "exceeded"
    """There is room: better than the target."""
    INFEASIBLE = "infeasible"
    """The pool does all that it may. Admitting fewer requests would help."""


@dataclass(frozen=True)
class LevelStats:
    """The counts of a level since the pool was made, and the level's present state.

    Times are in seconds.
    """

    name: str
    answered: int
    failed: int
    """Answered requests that failed: a task or the function raised, or `Request.fail` was called.
    """
    refused: int
    left: int
    """Requests that left before their turn came."""
    mean: float
    """The mean time from arrival to end. The next four are of this time, too."""
    deviation: float
    """The standard deviation over the mean."""
    median: float
    p95: float
    p99: float
    waited: float
    """The mean time from arrival to the first slot."""
    waiting: int
    running: int
    threads: int
    share: float
    """The fraction of the slot time used in the last seconds, 0 to 1."""


@dataclass(frozen=True)
class GoalStats:
    """The measured state of a goal, and the output of its controller."""

    verdict: Verdict
    measured: Optional[float]
    """The ratio, or the fraction answered in time, of the last seconds."""
    effort: float
    """The controller's output.

    It is the weight of the fast level's age, or the seconds that the level's requests may wait
    while others want slots.
    """


@dataclass(frozen=True)
class Stats:
    """The statistics of a pool at one time: its levels and its goal."""

    levels: Dict[str, LevelStats]
    goal: Optional[GoalStats]


class Pool:
    """A pool of threads for which requests of several levels compete.

    At its end, a `with` block closes the pool and waits for its requests, as `close` does.
    """

    def __init__(
        self,
        threads: Optional[int],
        levels: Mapping[str, Level],
        *,
        goal: Union[Ratio, Percentile, None] = None,
        parity: Optional[int] = None,
    ) -> None:
        """Make a pool.

        `threads` is one more than the number of processors for the pool; None stands for the
        processors that the process may use. With `parity`, this number of requests runs at a
        time, first come first served, each with all threads of its level. Raise ValueError if
        the settings contradict themselves.
        """
        if goal is not None and not isinstance(goal, (Ratio, Percentile)):
            raise TypeError(f"{goal!r} is not a goal: use Ratio or Percentile")
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
        """Wait for this thread's turn, for at most `timeout` seconds, and return the request.

        A thread should have only one turn at a time. The request has a slot until it ends, so
        use it in a `with` block. If the block raises, the request counts as failed. Raise
        UnknownLevel, QueueFull, TimedOut or Closed if the turn does not come.
        """
        signals = threading.current_thread() is threading.main_thread()
        return self._native.request(level, timeout, signals)

    def submit(self, level: str, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Let a thread of the pool call `fn` when it is the request's turn.

        The call is `fn(request, *args, **kwargs)`. Return a future for its result, which can be
        cancelled until the call begins. If the pool is closed before the call begins, the future
        raises `Closed`.
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
            except BaseException as error:  # As in concurrent.futures.
                future.set_exception(error)
                return False
            future.set_result(result)
            return True

        self._native.submit(level, run)
        return future

    def stats(self) -> Stats:
        """Return the counts and the present state of the pool."""
        levels, goal = self._native.stats()
        by_name = {level["name"]: LevelStats(**level) for level in levels}
        return Stats(by_name, None if goal is None else GoalStats(Verdict(goal[0]), goal[1], goal[2]))

    def close(self, wait: bool = True) -> None:
        """Close the pool to new requests.

        Requests that wait get `Closed`, and so do submitted requests that have not begun.
        Requests that have begun continue. With `wait`, this method returns when they have ended.
        Raise RuntimeError instead, after the pool is closed, if this thread would wait for
        itself: it has a request in the pool, or runs a function of the pool. A thread has a
        request that it has begun, unless another thread has run tasks in that request since.
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
    """Close all pools before the interpreter ends.

    Afterwards, no thread of a pool may ask for the interpreter's lock.
    """
    for pool in list(_pools):
        try:
            pool.close(wait=False)
        except Closed:  # The pool was the parent's.
            pass
    _native.leave()


atexit.register(_leave)
