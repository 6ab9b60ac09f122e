"""The token of one request, which says whether the request may go on.

States: a request is first `running`. Then it becomes `settled` (its response has begun),
`deferred` (it asked not to be terminated) or `terminated`. From any of these states it becomes
`ended`. When its client leaves, a running or settled request is terminated, because its response
will not be read. A deferred request goes on. The state changes under the lock of the class, and
reading a token never changes it: a request is `terminated` once its handler has been notified.

`not_before` makes a checkpoint cheap: before that time nothing but the client and the stop
daemon can terminate the request. A threshold changes only at the end of an interval and never falls
below `run_min`, so until then the clock alone decides. A timer must check again at that time.
"""

import contextvars
from math import inf
from typing import TYPE_CHECKING, Callable, Dict, Mapping, Optional, Tuple

if TYPE_CHECKING:
    from .controller import Granted
    from .stop_client import StopClient

RUNNING, SETTLED, DEFERRED, TERMINATED, ENDED = "running", "settled", "deferred", "terminated", "ended"

# A gateway in front closes the connection a moment before the deadline here. So a request whose
# client leaves after this fraction of its time counts as ended by its deadline.
NEARLY = 0.9

# The gateway's names (`crates/engine/src/reason.rs`), and `deadline`, which only the application
# knows.
RAN_TOO_LONG, CLIENT_LEFT, DEADLINE = "ran_too_long", "client_left", "deadline"
REASONS = (RAN_TOO_LONG, CLIENT_LEFT, DEADLINE)


class Terminated(BaseException):
    """The error of a request that is over: all work for it should stop.

    Like `asyncio.CancelledError` it is not an `Exception`, so that a handler's own error handling
    (`except Exception`), and a framework's 500 for unknown errors, do not catch it.
    """

    def __init__(self, name: str, reason: str, retry_after: float) -> None:
        # The arguments from which a copy or an unpickled error is made.
        super().__init__(name, reason, retry_after)
        self.name = name
        self.reason = reason
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"class {self.name}: {self.reason}"


class Token:
    """The handle of one request. It is safe for use by several threads."""

    __slots__ = (
        "__weakref__",
        "_came",
        "_clock",
        "_granted",
        "_is_over",
        "_own",
        "_passed_on",
        "_state",
        "_stop_clients",
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
        #: The begin of the request, by the controller's clock.
        self.start = now
        # The interval in which its arrival counts.
        self._came = granted.since
        self._own = inf if left is None else now + max(left, 0.0)
        self._state = RUNNING
        self._is_over = False
        #: Why it was terminated, once it has been told.
        self.reason: Optional[str] = None
        #: For a middleware: called in the thread in which a checkpoint tells the request.
        self.on_told: Optional[Callable[[], None]] = None
        #: The request's name, if it came with an accepted one. Its connections are leased under
        #: this name.
        self.request = request
        # Fields for calls to other services, unchanged.
        self._passed_on = passed_on
        # The stop clients that hold leases of this request; each is notified when the request is
        # over.
        self._stop_clients: "Tuple[StopClient, ...]" = ()
        #: The time before which nothing can terminate it.
        self.not_before = 0.0
        self._look_again(now)

    @property
    def name(self) -> str:
        """The name of the request's class."""
        return self._granted.settings.name

    @property
    def deadline(self) -> float:
        """The time at which the request will be terminated at the present threshold.

        It is by the controller's clock; infinity if no time terminates the request.
        """
        with self._granted.lock:
            return self._due(self._clock()) if self._state in (RUNNING, TERMINATED) else inf

    @property
    def is_running(self) -> bool:
        """Whether time can still terminate the request."""
        return self._state == RUNNING

    @property
    def is_deferred(self) -> bool:
        """Whether nothing terminates the request any more, not even a client that leaves."""
        return self._state == DEFERRED

    @property
    def is_terminated(self) -> bool:
        """Whether the request is over, even if its handler has not been notified yet.

        An overdue request is over. Reading this property changes nothing.
        """
        with self._granted.lock:
            return self._state == TERMINATED or self._is_overdue(self._clock())

    def left(self) -> float:
        """Return the number of seconds that are left to the request at the present threshold."""
        return max(self.deadline - self._clock(), 0.0) if self._state != TERMINATED else 0.0

    def checkpoint(self) -> None:
        """Raise `Terminated` if this request is over."""
        if self._clock() >= self.not_before:
            self.look()
            if self._state == TERMINATED:
                raise self._told()

    def cancel_termination(self) -> None:
        """Pass the last checkpoint: afterwards nothing terminates this request.

        Call it before a write, for example.
        """
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
        """Terminate the request if it is overdue. Return whether this call did so."""
        with self._granted.lock:
            is_now = self._look(self._clock())
        if is_now:
            self._stop_queries()
        return is_now

    def settle(self) -> bool:
        """Record that the first byte of the response is sent: no time ends the request any more.

        Return False if the request is over.
        """
        with self._granted.lock:
            if self._state == RUNNING:
                self._state, self.not_before = SETTLED, inf
            return self._state != TERMINATED

    def leave(self) -> bool:
        """Record that the client has left. Return whether that terminated the request."""
        with self._granted.lock:
            if self._state not in (RUNNING, SETTLED):
                return False
            now = self._clock()
            # No time ends a settled request.
            is_spent = self._state == RUNNING and now >= self.start + NEARLY * (self._own - self.start)
            self._terminate(DEADLINE if is_spent else CLIENT_LEFT, now)
        self._stop_queries()
        return True

    def leases_with(self, stop_client: "StopClient") -> bool:
        """Return whether connections may be leased for the request.

        If so, the token notifies `stop_client` when the request is over. Wrappers of databases
        use this method. Nothing is leased if the request is over, or if nothing ends it any
        more.
        """
        with self._granted.lock:
            if self._state not in (RUNNING, SETTLED):
                return False
            if stop_client not in self._stop_clients:
                self._stop_clients += (stop_client,)
            return True

    def stopped(self, reason: str) -> Optional[Terminated]:
        """Record that the stop daemon has stopped the request.

        Return the error to raise, or None if nothing ends the request any more.
        """
        with self._granted.lock:
            if self._state in (RUNNING, SETTLED):
                # The daemon need not be told.
                self._stop_clients = ()
                self._terminate(reason, self._clock())
        return self.told()

    def told(self) -> Optional[Terminated]:
        """Return the error to raise if the request is over and its handler has been notified."""
        return self._told() if self._state == TERMINATED else None

    def before_look(self) -> float:
        """Return the number of seconds in which only its client can end the request."""
        return max(self.not_before - self._clock(), 0.0)

    def latest(self) -> Optional[float]:
        """Return the number of seconds after which time ends the request at the latest.

        It holds at any threshold. It is None if time cannot end the request.
        """
        if self._state != RUNNING:
            return None
        return min(self.start + self._granted.settings.run_max, self._own) - self._clock()

    def outgoing(self) -> Dict[str, str]:
        """Return the header fields for a call to another service: name, trace and time left."""
        fields = dict(self._passed_on)
        left = self.left()
        if left != inf:
            # A product that is not exact may lie just below a whole number.
            fields["bywash-deadline"] = str(int(round(left * 1000, 3)))
        return fields

    def end(self) -> None:
        """Record that the response is complete, or that all work for the request is over.

        Further calls have no effect.
        """
        with self._granted.lock:
            self._granted.running -= not self._is_over
            self._is_over = True
            # A terminated request keeps its state: other threads that still work for it must learn
            # of it.
            if self._state != TERMINATED:
                self._state, self.not_before = ENDED, inf

    def terminated(self) -> Terminated:
        """Return the `Terminated` of this request."""
        settings = self._granted.settings
        return Terminated(settings.name, self.reason or RAN_TOO_LONG, settings.come_again())

    def _stop_queries(self) -> None:
        """Tell the daemon to stop the request's queries. The caller does not hold the lock."""
        with self._granted.lock:
            stop_clients, self._stop_clients = self._stop_clients, ()
        for stop_client in stop_clients:
            stop_client.stop(self.request or "", self.reason or RAN_TOO_LONG)

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
        # Set the reason first, since the state is also read without the lock.
        self.reason, self._state, self.not_before = reason, TERMINATED, 0.0
        granted = self._granted
        granted.totals[reason] += 1
        if reason != CLIENT_LEFT and now >= self.start + granted.settings.run_min:
            granted.lost(now)
        else:
            granted.departed(self._came, now)


_current: "contextvars.ContextVar[Optional[Token]]" = contextvars.ContextVar("bywash_token", default=None)

#: Whether the calling code is within `unleased`.
_is_unleased: "contextvars.ContextVar[bool]" = contextvars.ContextVar("bywash_unleased", default=False)


def current() -> Optional[Token]:
    """Return the token of the request that the calling code works for; None if there is none."""
    return _current.get()


def checkpoint() -> None:
    """Raise `Terminated` if the current request is over; do nothing outside of a request."""
    token = _current.get()
    if token is not None:
        token.checkpoint()


def outgoing() -> Dict[str, str]:
    """Return the header fields for a call to another service on behalf of the current request.

    There are none if there is no current request.
    """
    token = _current.get()
    return {} if token is None else token.outgoing()
