"""The token of one request: may it go on?

States: `running`, then one of `settled` (its response has begun), `deferred` (it asked not to be terminated),
`terminated`; from any of them `ended`. A client who leaves terminates a running or a settled request, for
nobody reads its response; a deferred one goes on. States change under the lock of the class, and none because
somebody asks whether it is over: `terminated` is who has been told.

`not_before` makes a checkpoint cheap: the moment before which nothing can terminate this request. A threshold
changes only at the end of an interval and never falls below `run_min`, so until then the clock decides alone.
It is also when a timer has to look again.
"""

import contextvars
from math import inf
from typing import TYPE_CHECKING, Callable, Dict, Mapping, Optional, Tuple

if TYPE_CHECKING:
    from .controller import Granted
    from .sentry import Sentry

RUNNING, SETTLED, DEFERRED, TERMINATED, ENDED = "running", "settled", "deferred", "terminated", "ended"

# A gateway in front closes the connection a moment before the time is over here: who leaves in the rest of the
# time after this part of it has come to his deadline.
NEARLY = 0.9

# The gateway's words (`crates/engine/src/reason.rs`), and `deadline`, which only the application knows.
RAN_TOO_LONG, CLIENT_LEFT, DEADLINE = "ran_too_long", "client_left", "deadline"
REASONS = (RAN_TOO_LONG, CLIENT_LEFT, DEADLINE)


class Terminated(BaseException):
    """This request is over: whoever works for it stops.

    No `Exception`, as `asyncio.CancelledError` is none: what a handler does about its own errors
    (`except Exception`), and the 500 that a framework makes of an unknown one, are not meant for it.
    """

    def __init__(self, name: str, reason: str, retry_after: float) -> None:
        # What it is made of again when it is copied or pickled.
        super().__init__(name, reason, retry_after)
        self.name = name
        self.reason = reason
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"class {self.name}: {self.reason}"


class Token:
    """One request. Every method may be called from every thread."""

    __slots__ = (
        "__weakref__",
        "_came",
        "_clock",
        "_granted",
        "_is_over",
        "_own",
        "_passed_on",
        "_sentries",
        "_state",
        "not_before",
        "on_told",
        "reason",
        "request",
        "start",
    )

    def __init__(
        self,
        granted: "Granted",
        clock: Callable[[], float],
        now: float,
        left: Optional[float],
        request: Optional[str] = None,
        passed_on: Mapping[str, str] = {},
    ) -> None:
        self._granted = granted
        self._clock = clock
        #: When it began, by the controller's clock.
        self.start = now
        # The interval that it counts in.
        self._came = granted.since
        self._own = inf if left is None else now + max(left, 0.0)
        self._state = RUNNING
        self._is_over = False
        #: Why it is terminated, once it has been told.
        self.reason: Optional[str] = None
        #: Called by whoever is told at a checkpoint, in its thread. For a middleware.
        self.on_told: Optional[Callable[[], None]] = None
        #: The name that the request came with, if it had one that is taken: what it leases connections with.
        self.request = request
        # Fields for calls to others, as they came.
        self._passed_on = passed_on
        # Who is told when it is over, as it has leased something there.
        self._sentries: "Tuple[Sentry, ...]" = ()
        #: Nothing terminates it before.
        self.not_before = 0.0
        self._look_again(now)

    @property
    def name(self) -> str:
        """Its class."""
        return self._granted.settings.name

    @property
    def deadline(self) -> float:
        """When it is terminated as things are, by the controller's clock; infinity if it is not."""
        with self._granted.lock:
            return self._due(self._clock()) if self._state in (RUNNING, TERMINATED) else inf

    @property
    def is_running(self) -> bool:
        """Whether time can still terminate it."""
        return self._state == RUNNING

    @property
    def is_deferred(self) -> bool:
        """Whether nothing terminates it any more, not even a client who leaves."""
        return self._state == DEFERRED

    @property
    def is_terminated(self) -> bool:
        """Whether it is over; true once it is overdue, although it has not been told. Asking changes nothing."""
        with self._granted.lock:
            return self._state == TERMINATED or self._is_overdue(self._clock())

    def left(self) -> float:
        """Seconds that are left to it, as things are."""
        return max(self.deadline - self._clock(), 0.0) if self._state != TERMINATED else 0.0

    def checkpoint(self) -> None:
        """Raises `Terminated` if this request is over."""
        if self._clock() >= self.not_before:
            self.look()
            if self._state == TERMINATED:
                raise self._told()

    def cancel_termination(self) -> None:
        """The last checkpoint: from here on nothing terminates this request. Before a write, for one."""
        with self._granted.lock:
            is_now = self._look(self._clock())
            if self._state in (RUNNING, SETTLED):
                self._state, self.not_before = DEFERRED, inf
                self._granted.totals["deferred"] += 1
        if is_now:
            self._stop_queries()
        if self._state == TERMINATED:
            raise self._told()

    def look(self) -> bool:
        """Terminates it if it is overdue. Whether that was now."""
        with self._granted.lock:
            is_now = self._look(self._clock())
        if is_now:
            self._stop_queries()
        return is_now

    def settle(self) -> bool:
        """The first byte of its response goes out: no time terminates it any more. False if it is over."""
        with self._granted.lock:
            if self._state == RUNNING:
                self._state, self.not_before = SETTLED, inf
            return self._state != TERMINATED

    def leave(self) -> bool:
        """Its client has left. Whether that terminated it."""
        with self._granted.lock:
            if self._state not in (RUNNING, SETTLED):
                return False
            now = self._clock()
            # No time ends a settled one.
            is_spent = self._state == RUNNING and now >= self.start + NEARLY * (self._own - self.start)
            self._terminate(DEADLINE if is_spent else CLIENT_LEFT, now)
        self._stop_queries()
        return True

    def leases_with(self, sentry: "Sentry") -> bool:
        """Whether something may be leased for it; then `sentry` is told when it is over. For a wrapper of a database.

        Not for one that is over, nor for one that nothing ends any more.
        """
        with self._granted.lock:
            if self._state not in (RUNNING, SETTLED):
                return False
            if sentry not in self._sentries:
                self._sentries += (sentry,)
            return True

    def stopped(self, reason: str) -> Optional[Terminated]:
        """The stop daemon says that it is over: what is raised, unless nothing ends it any more."""
        with self._granted.lock:
            if self._state in (RUNNING, SETTLED):
                # The daemon need not be told.
                self._sentries = ()
                self._terminate(reason, self._clock())
        return self.told()

    def told(self) -> Optional[Terminated]:
        """What is raised at whoever works for it, if it is over and that has been said."""
        return self._told() if self._state == TERMINATED else None

    def before_look(self) -> float:
        """Seconds in which nothing terminates it but its client."""
        return max(self.not_before - self._clock(), 0.0)

    def latest(self) -> Optional[float]:
        """Seconds until time ends it at the latest, whatever becomes of the threshold, if time can end it."""
        if self._state != RUNNING:
            return None
        return min(self.start + self._granted.settings.run_max, self._own) - self._clock()

    def outgoing(self) -> Dict[str, str]:
        """The fields for a call to another service: whose it is, and what time is left to it."""
        fields = dict(self._passed_on)
        left = self.left()
        if left != inf:
            fields["bywash-deadline"] = str(int(left * 1000))
        return fields

    def end(self) -> None:
        """Its response is complete, or nobody works for it any more. Once is enough, twice is no harm."""
        with self._granted.lock:
            self._granted.running -= not self._is_over
            self._is_over = True
            # Whoever still works for one that was terminated is still to be told.
            if self._state != TERMINATED:
                self._state, self.not_before = ENDED, inf

    def terminated(self) -> Terminated:
        """What is raised."""
        settings = self._granted.settings
        return Terminated(settings.name, self.reason or RAN_TOO_LONG, settings.come_again())

    def _stop_queries(self) -> None:
        """It is over, and whoever works for it in a database is to hear of it. Without the lock."""
        with self._granted.lock:
            sentries, self._sentries = self._sentries, ()
        for sentry in sentries:
            sentry.stop(self.request or "", self.reason or RAN_TOO_LONG)

    def _told(self) -> Terminated:
        on_told = self.on_told
        if on_told is not None:
            on_told()
        return self.terminated()

    def _due(self, now: float) -> float:
        return min(self.start + self._granted.threshold(now), self._own)

    def _look(self, now: float) -> bool:
        if not self._is_overdue(now):
            return False
        self._terminate(DEADLINE if self._own <= self._due(now) else RAN_TOO_LONG, now)
        return True

    def _is_overdue(self, now: float) -> bool:
        if self._state != RUNNING or now < self.not_before:
            return False
        if now < self._due(now):
            self._look_again(now)
            return False
        return True

    def _look_again(self, now: float) -> None:
        due, granted = self._due(now), self._granted
        self.not_before = min(due, max(granted.until, self.start + granted.settings.run_min))

    def _terminate(self, reason: str, now: float) -> None:
        # The reason first: whoever sees the state without the lock finds it.
        self.reason, self._state, self.not_before = reason, TERMINATED, 0.0
        granted = self._granted
        granted.totals[reason] += 1
        if reason != CLIENT_LEFT and now >= self.start + granted.settings.run_min:
            granted.lost(now)
        else:
            granted.departed(self._came, now)


_current: "contextvars.ContextVar[Optional[Token]]" = contextvars.ContextVar("bywash_token", default=None)


def current() -> Optional[Token]:
    """The token of the request that this code works for, if it has one."""
    return _current.get()


def checkpoint() -> None:
    """Raises `Terminated` if the request that this code works for is over; nothing if it works for none."""
    token = _current.get()
    if token is not None:
        token.checkpoint()


def outgoing() -> Dict[str, str]:
    """The fields for a call to another service, on behalf of the request that this code works for; else none."""
    token = _current.get()
    return {} if token is None else token.outgoing()
