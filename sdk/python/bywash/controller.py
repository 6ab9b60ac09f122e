"""How long a request may run, by class: the controller of seed 2.

Source: seed 2, SERT §3.2, as in `crates/engine/src/terminate/loss.rs`; `lab/golden/termination.csv` is what
both must say. Of the requests of a class that came in an interval, p were lost: refused, terminated by the
threshold, or ended by a deadline when they had run for `run_min`. The threshold of the next interval follows
from p. Whoever left, or ran out of a deadline before, says nothing of how much there is to do: if that was in
the interval in which it came, it did not arrive.

One lock for each class guards its counts and the states of its tokens; it is held for a few steps and
never while anything waits. Who holds it may take it again: a signal handler that asks for `stats()` runs between
two of these steps. A checkpoint of a request that has time left takes no lock (`token.py`).
"""

import threading
import time
from dataclasses import dataclass
from typing import Callable, Dict, Mapping, Optional

from .classes import Class, SettingError
from .token import Token


@dataclass(frozen=True)
class Stats:
    """A class in numbers: counts since the start, and what holds now."""

    #: Requests that came.
    arrived: int
    #: Of these refused, terminated by the threshold, or ended by a deadline from `run_min` on: what is in p.
    lost: int
    #: Terminated by the threshold.
    terminated: int
    #: Ended by a deadline that they brought along, at whatever time.
    deadline: int
    #: Ended because their client had left.
    client_left: int
    #: Those who called `cancel_termination`.
    deferred: int
    #: Begun and not ended.
    running: int
    #: The share that was lost in the last whole interval.
    p: float
    #: How long a request may run now, in seconds.
    threshold: float


class Granted:
    """One class: its counts, its threshold, its lock."""

    def __init__(self, settings: Class, now: float) -> None:
        self.settings = settings
        self.lock = threading.RLock()
        self.totals = {"arrived": 0, "lost": 0, "ran_too_long": 0, "deadline": 0, "client_left": 0, "deferred": 0}
        self.running = 0
        self.p = 0.0
        #: When this interval began.
        self.since = now
        self._arrived = self._lost = 0

    @property
    def until(self) -> float:
        """The end of this interval: till then the threshold stays."""
        return self.since + self.settings.interval

    def tick(self, now: float) -> None:
        """It is `now`; with the lock."""
        passed = (now - self.since) // self.settings.interval
        if passed < 1:
            return
        self.since += self.settings.interval * passed
        # In an interval that nobody came in, nobody was lost; those who were terminated had come before.
        self.p = min(self._lost / self._arrived, 1.0) if passed == 1 and self._arrived else 0.0
        self._arrived = self._lost = 0

    def threshold(self, now: float) -> float:
        """How long a request may run; with the lock."""
        self.tick(now)
        return self.settings.granted(self.p)

    def arrived(self, now: float) -> None:
        """One more came; with the lock."""
        self.tick(now)
        self._arrived += 1
        self.totals["arrived"] += 1

    def departed(self, came: float, now: float) -> None:
        """One that came in the interval that began at `came` is gone and was not lost; with the lock."""
        self.tick(now)
        self._arrived -= came == self.since

    def lost(self, now: float) -> None:
        """One more was lost; with the lock."""
        self.tick(now)
        self._lost += 1
        self.totals["lost"] += 1


class Controller:
    """The classes of this process. Every method may be called from every thread."""

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
        """The token of a request that begins now, with `left` seconds if it brought a deadline along.

        `request` is the name that it came with, `passed_on` what `outgoing` gives as it came.
        """
        granted, now = self._of(name), self.clock()
        with granted.lock:
            granted.arrived(now)
            granted.running += 1
            return Token(granted, self.clock, now, left, request, passed_on)

    def arrived(self, name: str) -> None:
        """A request came that gets no token, because it is refused: `lost` follows."""
        granted = self._of(name)
        with granted.lock:
            granted.arrived(self.clock())

    def lost(self, name: str) -> None:
        """A request was refused before it did anything, as there was too much to do."""
        granted = self._of(name)
        with granted.lock:
            granted.lost(self.clock())

    def threshold(self, name: str) -> float:
        """How long a request of this class may run now, in seconds."""
        granted = self._of(name)
        with granted.lock:
            return granted.threshold(self.clock())

    def knows(self, name: str) -> None:
        """Raises `SettingError` unless this class is declared."""
        self._of(name)

    def stats(self) -> Dict[str, Stats]:
        """Every class in numbers."""
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
