"""The stop daemon (`bywash sentry`), as one process talks to it: over one conversation, which is never needed.

It is made when somebody first asks, and anew no sooner than 200 ms after one was over or nobody was there. A child of
fork has none of its parent's: its answers would be the parent's, and the parent's leases end with it.
"""

import itertools
import logging
import os
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Callable, Dict, Optional

from .conversation import Conversation

SOCKET = "/run/bywash-sentry/sentry.sock"

#: Seconds in which the daemon answers; a test of something else has more.
PATIENCE = 0.1

#: Seconds until a daemon that was not there is looked for again.
AGAIN = 0.2


_log = logging.getLogger("bywash")

#: What is said once if it happens; with the socket's path.
_WARNINGS = {
    "unnamed": "a query runs outside of a named request, and nothing can stop it: is the middleware around its handler? "
    "(stop daemon: %s)",
    "unreachable": "no stop daemon answers at %s; queries run, and are not cancelled",
}


@dataclass(frozen=True)
class SentryStats:
    """What was said, since the start."""

    #: Queries that ran under a lease.
    leased: int
    #: Queries of no request that has a name: nothing can stop them. The middleware names each request of a class.
    unnamed: int
    #: Queries that ran without, as nobody was there to ask, or did not answer.
    unreachable: int
    #: What the daemon refused: queries ran without a lease, or requests were not stopped (`ERR forbidden`).
    refused: int
    #: Queries that did not begin, as their request had been stopped.
    stopped: int
    #: Connections that were closed, as the daemon said that another has them too.
    taken: int
    #: Connections that were not lent again, as a release was not answered.
    spoiled: int
    #: Requests that the daemon was told to stop.
    stops: int


class Sentry:
    """The stop daemon at `path`, else at `BYWASH_SENTRY`, else at /run/bywash-sentry/sentry.sock. One for each process.

    Every method may be called from every thread.
    """

    def __init__(
        self,
        path: Optional[str] = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
    ) -> None:
        self.clock = clock
        self.patience = patience
        self.path = path or os.environ.get("BYWASH_SENTRY") or SOCKET
        self._lock = threading.RLock()
        self._conversation: Optional[Conversation] = None
        self._not_before = 0.0
        self._counts: Dict[str, int] = dict.fromkeys(SentryStats.__dataclass_fields__, 0)
        #: Numbers for leases of our own: one for each lease, so that what comes late is aimed at nobody.
        self.numbers = itertools.count(1)
        _sentries.add(self)

    def conversation(self) -> Optional[Conversation]:
        """The present one, if there is one; never waits."""
        now = self._conversation
        if now is not None and not now.is_over:
            return now
        if self.clock() < self._not_before:
            return None
        with self._lock:
            return self._anew()

    def _anew(self) -> Optional[Conversation]:
        was = self._conversation
        if was is not None and not was.is_over:
            return was
        if was is not None:
            self._conversation, self._not_before = None, was.ended + AGAIN
        if self.clock() < self._not_before:
            return None
        try:
            self._conversation = Conversation(self.path, self.clock, self.patience)
        except OSError:
            self._not_before = self.clock() + AGAIN
        return self._conversation

    def stop(self, request: str, reason: str) -> None:
        """What this process has leased for this request shall stop. Waits for nothing.

        Only that (`scope=own`): whoever called it works on under the same name, and what he called elsewhere as well.
        """
        conversation = self.conversation()
        if conversation is not None:
            conversation.ask(f"STOP {request} {reason} scope=own", self._hears_of_stop)

    def _hears_of_stop(self, answer: Optional[str]) -> None:
        if answer is not None:
            self.count("stops" if answer.startswith("OK") else "refused")

    def count(self, what: str) -> None:
        """One more of these. The first of a kind that tells of a wrong set-up is logged."""
        with self._lock:
            self._counts[what] += 1
            is_first = self._counts[what] == 1
        if is_first and what in _WARNINGS:
            _log.warning(_WARNINGS[what], self.path)

    def stats(self) -> SentryStats:
        """What was said, in numbers."""
        with self._lock:
            return SentryStats(**self._counts)

    def close(self) -> None:
        """Ends the conversation. Who asks later begins another."""
        with self._lock:
            conversation = self._conversation
        if conversation is not None:
            conversation.end()

    def _is_in_child(self) -> None:
        self._lock = threading.RLock()
        conversation, self._conversation, self._not_before = self._conversation, None, 0.0
        if conversation is not None:
            conversation.abandon()


_sentries: "weakref.WeakSet[Sentry]" = weakref.WeakSet()


def _in_child() -> None:
    for sentry in list(_sentries):
        sentry._is_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
