"""A conversation with the stop daemon: numbered lines over a UNIX socket, answered in any order.

Source: `crates/lease/src/lib.rs`, and `sdk/README.md`, "Down to the query".

A thread reads, because the daemon also sends lines that answer nothing (`0 STOPPED …`) while the
holder of a lease is busy. A caller waits for its answer on a lock, or on a future of its event
loop. A caller whose wait has timed out reads by itself before it gives up (`pump`): where every
thread competes for the interpreter, the answer may have come and not been read.

The same thread watches the clock for holders of leases (`hold`). A thread that waits for its
database calls no checkpoint, yet the daemon must learn that a request is over while its query runs.
The answer to the lease wakes the reading thread, so it learns of the next moment to look in time.
If another thread has read that answer, it is a second late at worst.

States: open, then over, permanently. It becomes over when the daemon closes, sends a line that is
not an answer, or owes an answer for 100 ms. The thread that notices first ends it. `_lock` guards
the questions, the unsent bytes, the holders of leases and the state. `_reading` guards the received
bytes. `_telling` guards the callbacks of own leases, so that a released one is not interrupted any
more although the daemon says so. The reading thread closes the socket as its last act, so that the
descriptor is not reused while the thread polls it.
"""

import contextlib
import select
import socket
import threading
import time
from math import ceil, inf
from typing import Callable, Dict, Optional, Tuple

from .token import REASONS, Token

#: The callback for an answer: it gets the words, or None if no answer will come.
Heard = Callable[[Optional[str]], None]

#: The number of answers that can be awaited at once. Further queries run without a lease.
MOST_ASKED = 4096
#: Longer than the daemon's longest line.
LONGEST = 1024
#: The limit of unsent bytes. It has room for all lines that can be asked, and for stops, of which
#: one has the maximum length of a line.
MOST_UNSENT = MOST_ASKED * 512
#: The longest time in seconds until the holders of leases are checked again.
LOOK = 1.0


class Conversation:
    """One connection to the daemon. It is safe for use by several threads."""

    def __init__(self, path: str, clock: Callable[[], float], patience: float) -> None:
        """Connect to the daemon; raise `OSError` if no daemon listens.

        The call does not block: with a UNIX socket, the result is known at once.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | getattr(socket, "SOCK_CLOEXEC", 0))
        self._lock, self._reading, self._telling = threading.RLock(), threading.Lock(), threading.Lock()
        self._clock = clock
        #: The seconds within which the daemon must answer.
        self.patience = patience
        self._asked: Dict[int, Heard] = {}
        self._own: Dict[int, Callable[[str], None]] = {}
        # The tokens of leases whose request can end by time while the lease is held; and the next
        # moment to check them.
        self._held: Dict[object, Token] = {}
        self._look_at = inf
        self._number = 0
        self._unsent, self._came = bytearray(), bytearray()
        self.is_over = False
        #: The time at which it ended.
        self.ended = 0.0
        try:
            self._socket.setblocking(False)
            self._socket.connect(path)
            threading.Thread(target=self._read, name="bywash-stopd", daemon=True).start()
        except (OSError, RuntimeError) as error:
            # No thread can be started any more while the interpreter ends.
            self._socket.close()
            raise OSError(str(error)) from error

    def ask(self, words: str, heard: Optional[Heard] = None) -> Optional[int]:
        """Send a line.

        `heard` is called with the answer, once, soon, and in any thread. It is not called if the
        number is forgotten before (`forget`).

        Return the line's number; None if the line cannot be sent, in which case `heard` is not
        called.
        """
        with self._lock:
            if self.is_over or len(self._asked) >= MOST_ASKED or len(self._unsent) >= MOST_UNSENT:
                return None
            self._number += 1
            number = self._number
            if heard is not None:
                self._asked[number] = heard
            self._unsent += f"{number} {words}\n".encode()
            is_sent = self._send()
        if not is_sent:
            self.end()
        return number

    def forget(self, number: int) -> bool:
        """Forget the answer to the line of this number, because its caller no longer waits.

        Return False if the answer has come.
        """
        with self._lock:
            return self._asked.pop(number, None) is not None

    def own(self, number: int, stop: Callable[[str], None]) -> None:
        """Register the callback `stop` for the lease of own work with this number.

        It is called in another thread, with the reason.
        """
        with self._telling:
            self._own[number] = stop

    def disown(self, number: int) -> None:
        """Remove the callback of the lease of own work with this number."""
        with self._telling:
            self._own.pop(number, None)

    def hold(self, lease: object, token: Token) -> None:
        """Check regularly whether the request of the token is over while this lease is held."""
        if token.is_running:
            with self._lock:
                self._held[lease] = token
                self._look_at = min(self._look_at, _next_look(token))

    def let_go(self, lease: object) -> None:
        """Stop the checks for this lease.

        The time of the next check stays: at worst it finds no lease.
        """
        with self._lock:
            self._held.pop(lease, None)

    def pump(self) -> None:
        """Read what the daemon has sent, without waiting for more."""
        with self._reading:
            if not self.is_over and not self._hear():
                self.end()

    def end(self) -> None:
        """End the conversation. Further calls have no effect."""
        with self._lock:
            if self.is_over:
                return
            self.ended, self.is_over = self._clock(), True
            asked, self._asked = self._asked, {}
            self._unsent.clear()
            with contextlib.suppress(OSError):
                # This wakes the reading thread.
                self._socket.shutdown(socket.SHUT_RDWR)
        for heard in asked.values():
            heard(None)

    def abandon(self) -> None:
        """Discard the parent's conversation in a child of fork.

        Its locks may be held by threads that do not exist here.
        """
        self.is_over = True
        self._lock, self._reading, self._telling = threading.RLock(), threading.Lock(), threading.Lock()
        self._asked, self._own, self._held = {}, {}, {}
        self._socket.close()

    def _send(self) -> bool:
        """Send as much as the socket accepts.

        The rest follows as answers come, since unsent lines are always behind lines that will be
        answered. Return False if the daemon is gone.
        """
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            return False
        return True

    def _read(self) -> None:
        try:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            while not self.is_over:
                if poll.poll(self._patience_of_poll()):
                    self.pump()
                if time.monotonic() >= self._look_at:
                    self._look()
        finally:
            self.end()
            with self._reading, self._lock:
                self._socket.close()

    def _patience_of_poll(self) -> Optional[int]:
        """Return the number of milliseconds until the next check; None if there is none.

        It is rounded up, so that the poll does not end too early.
        """
        wait = self._look_at - time.monotonic()
        return None if wait == inf else max(ceil(wait * 1000), 0)

    def _look(self) -> None:
        """Check all requests with leases.

        A token whose request is over tells the daemon, which must happen outside the lock.
        """
        with self._lock:
            tokens = set(self._held.values())
        for token in tokens:
            token.look()
        with self._lock:
            self._held = {lease: token for lease, token in self._held.items() if token.is_running}
            self._look_at = min(map(_next_look, set(self._held.values())), default=inf)

    def _hear(self) -> bool:
        """Handle the received lines.

        Return False if the daemon is gone, or sent a line that is not an answer.
        """
        try:
            came = self._socket.recv(65536)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        self._came += came
        *lines, rest = self._came.split(b"\n")
        self._came = rest
        if not came or len(rest) > LONGEST or not all(self._said(bytes(line)) for line in lines):
            return False
        with self._lock:
            return self._send()

    def _said(self, line: bytes) -> bool:
        number, _, words = line.decode("latin-1").partition(" ")
        if not number.isascii() or not number.isdigit() or not is_answer(words):
            return False
        if int(number) == 0:
            return self._tell(words)
        with self._lock:
            if int(number) > self._number:
                return False
            heard = self._asked.pop(int(number), None)
        # The caller may have stopped waiting.
        if heard is not None:
            heard(words)
        return True

    def _tell(self, words: str) -> bool:
        verb, *rest = words.split(" ")
        if verb != "STOPPED" or len(rest) != 3 or rest[1] not in REASONS or not rest[2].isdigit():
            # `0 ERR malformed …` means that a line of ours could not be parsed.
            return False
        with self._telling:
            stop = self._own.get(int(rest[2]))
            if stop is not None:
                stop(rest[1])
        return True


def _next_look(token: Token) -> float:
    return time.monotonic() + min(token.before_look(), LOOK)


def is_answer(words: str) -> bool:
    """Return whether `words` is a valid answer.

    `OK` and `ERR` may be followed by more than is known here.
    """
    verb, _, rest = words.partition(" ")
    return verb in ("OK", "ERR") or (verb == "STOPPED" and (rest in REASONS or " " in rest))


def stopped(words: str) -> Tuple[bool, str]:
    """Return whether an answer to a lease says that its request was stopped, and the reason."""
    verb, _, reason = words.partition(" ")
    return verb == "STOPPED" and reason in REASONS, reason
