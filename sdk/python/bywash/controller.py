"""The controller: for each class, it decides how long a request may run.

Source: paper 2, SERT §3.2, as in `crates/engine/src/terminate/loss.rs`. Both must agree with
`lab/golden/termination.csv`. The fraction p of the requests of a class that arrived in an
interval was lost: refused, terminated by the threshold, or ended by a deadline after they had
run for `run_min`. The threshold of the next interval follows from p. A client that leaves, and a
deadline before `run_min`, say nothing about the load. A request that ends in this way in the
interval of its arrival counts as not arrived.

One lock for each class guards its counts and the states of its tokens. It is held for a few
steps and never during a wait. The lock is reentrant, since a signal handler that calls `stats()`
may run between two of these steps. A checkpoint of a request that has time left takes no lock
(`token.py`).
"""

import threading
import time
from dataclasses import dataclass
from typing import Callable, Dict, Mapping, Optional

from .classes import Class, SettingError
from .token import Token


@dataclass(frozen=True)
class Stats:
    """The counts of a class since the start, and its present values."""

    #: Requests that have arrived.
    arrived: int
    #: Requests that were refused, terminated by the threshold, or ended by a deadline from
    #: `run_min` on: the numerator of p.
    lost: int
    #: Requests terminated by the threshold.
    terminated: int
    #: Requests ended by a deadline that they brought along, at any time.
    deadline: int
    #: Requests ended because their client had left.
    client_left: int
    #: Requests that called `cancel_termination`.
    deferred: int
    #: Requests that have begun and not ended.
    running: int
    #: The fraction that was lost in the last whole interval.
    p: float
    #: How long a request may run now, in seconds.
    threshold: float


class Granted:
    """A class of a controller: its settings, its counts, its threshold and its lock."""

    def __init__(self, settings: Class, now: float) -> None:
        self.settings = settings
        self.lock = threading.RLock()
        self.totals = {"arrived": 0, "lost": 0, "ran_too_long": 0, "deadline": 0, "client_left": 0, "deferred": 0}
        self.running = 0
        self.p = 0.0
        #: The begin of this interval.
        self.since = now
        self._arrived = self._lost = 0

    @property
    def until(self) -> float:
        """The end of the present interval. The threshold does not change before it."""
        return self.since + self.settings.interval

    def tick(self, now: float) -> None:
        """Advance the clock to `now`. The caller holds the lock."""
        passed = (now - self.since) // self.settings.interval
        if passed < 1:
            return
        self.since += self.settings.interval * passed
        # Without arrivals nothing was lost in an interval: terminated requests had arrived before
        # it.
        self.p = min(self._lost / self._arrived, 1.0) if passed == 1 and self._arrived else 0.0
        self._arrived = self._lost = 0

    def threshold(self, now: float) -> float:
        """Return the time in seconds for which a request may run. The caller holds the lock."""
        self.tick(now)
        return self.settings.granted(self.p)

    def arrived(self, now: float) -> None:
        """Count an arrival. The caller holds the lock."""
        self.tick(now)
        self._arrived += 1
        self.totals["arrived"] += 1

    def departed(self, came: float, now: float) -> None:
        """Uncount a request that ended without being lost, if it arrived in the present interval.

        `came` is the begin of the interval in which it arrived. The caller holds the lock.
        """
        self.tick(now)
        self._arrived -= came == self.since

    def lost(self, now: float) -> None:
        """Count a loss. The caller holds the lock."""
        self.tick(now)
        self._lost += 1
        self.totals["lost"] += 1


class Controller:
    """The classes of this process. It is safe for use by several threads."""

    def __init__(self, *classes: Class, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        now = clock()
        self._classes: Dict[str, Granted] = {}
        for settings in classes:
            if settings.name in self._classes:
                raise SettingError(f"class {settings.name} is declared twice")
            self._classes[settings.name] = Granted(settings, now)

    def begin(
        self,
        name: str,
        left: Optional[float] = None,
        request: Optional[str] = None,
        passed_on: Mapping[str, str] = {},
    ) -> Token:
        """Begin a request now and return its token.

        `left` is the number of seconds that the caller of the request allows. `request` is the
        name of the request. `passed_on` has the header fields that `outgoing` returns unchanged.
        """
        granted, now = self._of(name), self.clock()
        with granted.lock:
            granted.arrived(now)
            granted.running += 1
            return Token(granted, self.clock, now, left, request, passed_on)

    def arrived(self, name: str) -> None:
        """Count the arrival of a request that gets no token because it is refused.

        A call to `lost` must follow.
        """
        granted = self._of(name)
        with granted.lock:
            granted.arrived(self.clock())

    def lost(self, name: str) -> None:
        """Count a request that was refused because of overload before it did any work."""
        granted = self._of(name)
        with granted.lock:
            granted.lost(self.clock())

    def threshold(self, name: str) -> float:
        """Return the time for which a request of this class may run at present, in seconds."""
        granted = self._of(name)
        with granted.lock:
            return granted.threshold(self.clock())

    def knows(self, name: str) -> None:
        """Raise `SettingError` unless this class is declared."""
        self._of(name)

    def stats(self) -> Dict[str, Stats]:
        """Return the counts and present values of every class, by name."""
        return {name: self._stats(granted) for name, granted in self._classes.items()}

    def _stats(self, granted: Granted) -> Stats:
        with granted.lock:
            threshold = granted.threshold(self.clock())
            totals = granted.totals
            return Stats(
                arrived=totals["arrived"],
                lost=totals["lost"],
                terminated=totals["ran_too_long"],
                deadline=totals["deadline"],
                client_left=totals["client_left"],
                deferred=totals["deferred"],
                running=granted.running,
                p=granted.p,
                threshold=threshold,
            )

    def _of(self, name: str) -> Granted:
        try:
            return self._classes[name]
        except KeyError:
            known = ", ".join(self._classes) or "none"
            raise SettingError(f"class {name!r} is not declared; declared: {known}") from None
