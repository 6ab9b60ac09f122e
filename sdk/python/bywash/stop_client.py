"""The client of the stop daemon (`bywash stopd`) in a process.

It has one conversation, and is optional.

The conversation begins when it is first needed, and again no sooner than 200 ms after it ended or
no daemon was found. A child of fork does not use its parent's: it would read the parent's answers,
and the parent's leases end with it.
"""

import itertools
import logging
import os
import re
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Callable, Dict, Optional, Set

from .conversation import LONGEST, Conversation

SOCKET = "/run/bywash-stopd/stopd.sock"

#: Seconds within which the daemon must answer. Tests of other things allow more.
PATIENCE = 0.1

#: Seconds until the next attempt to connect to a daemon that was not there.
AGAIN = 0.2


_log = logging.getLogger("bywash")

#: The warnings that are logged once, with the socket's path.
_WARNINGS = {
    "unnamed": "a query runs outside of a named request, so nothing can stop it: "
    "put the middleware around its handler (stop daemon: %s)",
    "unreachable": "no stop daemon answers at %s: queries run, and nothing cancels them",
}

#: The warning for the first refused lease and the first refused stop, with the daemon's text.
_REFUSAL = "the stop daemon at %s refused a %s (later ones are only counted): %s"


@dataclass(frozen=True)
class StopClientStats:
    """Counts of a `StopClient` since the start."""

    #: Queries that ran under a lease.
    leased: int
    #: Queries outside of a named request, which nothing can stop. The middleware names each request
    #: of a class.
    unnamed: int
    #: Queries that ran without a lease, because there was no daemon, or it did not answer.
    unreachable: int
    #: Refusals of the daemon: queries that ran without a lease, or requests that were not stopped
    #: (`ERR forbidden`).
    refused: int
    #: Queries that did not begin because their request was over.
    stopped: int
    #: Connections that were closed because another client of the daemon had leased them too.
    taken: int
    #: Connections that were not reused because a release was interrupted, refused or not answered.
    spoiled: int
    #: Requests that the daemon was told to stop.
    stops: int


class StopClient:
    """The client of the stop daemon at `path`. There is one for each process.

    The path defaults to `BYWASH_STOPD`, else to /run/bywash-stopd/stopd.sock. The client is safe
    for use by several threads.
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
        self.path = path or os.environ.get("BYWASH_STOPD") or SOCKET
        self._lock = threading.RLock()
        self._conversation: Optional[Conversation] = None
        self._not_before = 0.0
        self._counts: Dict[str, int] = dict.fromkeys(StopClientStats.__dataclass_fields__, 0)
        #: What was refused and logged: leases and stops have different causes.
        self._logged: Set[str] = set()
        #: Numbers for this process's own leases. Each lease has a new one, so that a late stop
        #: finds no lease.
        self.numbers = itertools.count(1)
        _stop_clients.add(self)

    def conversation(self) -> Optional[Conversation]:
        """Return the present conversation, if there is one. This never waits."""
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
        """Tell the daemon to stop what this process has leased for this request.

        This does not wait.

        The scope is this process's leases (`scope=own`), because callers and called services work
        on under the same name.
        """
        conversation = self.conversation()
        if conversation is not None:
            conversation.ask(f"STOP {request} {reason} scope=own", self._hears_of_stop)

    def _hears_of_stop(self, answer: Optional[str]) -> None:
        if answer is None:
            return
        if answer.startswith("OK"):
            self.count("stops")
        else:
            self.refused("stop", answer)

    def refused(self, what: str, answer: str) -> None:
        """Count a refused lease or stop, and log the first one of each with the daemon's text.

        `STOPPED` counts as a refusal too if nothing may terminate the request any more. It is not
        logged, because nothing is wrong with the set-up.
        """
        self.count("refused")
        with self._lock:
            if what in self._logged or not answer.startswith("ERR"):
                return
            self._logged.add(what)
        # A line of another program at this socket may have any length and any bytes.
        _log.warning(_REFUSAL, self.path, what, re.sub("[^ -~]", "?", answer[:LONGEST]))

    def count(self, what: str) -> None:
        """Add one to a count. The first of a kind that indicates a wrong set-up is logged."""
        with self._lock:
            self._counts[what] += 1
            is_first = self._counts[what] == 1
        if is_first and what in _WARNINGS:
            _log.warning(_WARNINGS[what], self.path)

    def stats(self) -> StopClientStats:
        """Return the counts."""
        with self._lock:
            return StopClientStats(**self._counts)

    def close(self) -> None:
        """End the conversation. Later queries begin another."""
        with self._lock:
            conversation = self._conversation
        if conversation is not None:
            conversation.end()

    def _is_in_child(self) -> None:
        self._lock = threading.RLock()
        conversation, self._conversation, self._not_before = self._conversation, None, 0.0
        if conversation is not None:
            conversation.abandon()


_stop_clients: "weakref.WeakSet[StopClient]" = weakref.WeakSet()


def _in_child() -> None:
    for stop_client in list(_stop_clients):
        stop_client._is_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
