"""What is said with the stop daemon: lines over a UNIX socket, and answers by their numbers, in any order.

Source: `crates/lease/src/lib.rs`, and `sdk/README.md`, "Down to the query".

A thread reads, as the daemon speaks unasked (`0 STOPPED …`) while whoever leased is busy; whoever asks waits for it on
a lock, or on a future of his event loop. Whoever has waited in vain reads himself before he gives up (`pump`): where
every thread wants the interpreter the answer may lie there, and nobody has come to read it.

The same thread looks at the clock for whoever holds a lease (`hold`): a thread that waits for its database asks no
checkpoint, and a request that is over is to be told to the daemon while its query runs. The answer to the lease wakes
it, so it knows of the next moment in time; if another has read that, it comes a second late at worst.

States: open, then over, for good, by whoever notices first: the daemon closes, says what is no answer, or owes one for
100 ms. `_lock` guards what is asked, what is unsent, who holds a lease and the state; `_reading` the bytes that came;
`_telling` whoever is told unasked: a lease of his own that has been released is not interrupted any more, although the
daemon said so.
The reading thread closes the socket as its last act, so that its number is nobody else's while it looks at it.
"""

import contextlib
import select
import socket
import threading
import time
from math import ceil, inf
from typing import Callable, Dict, Optional, Tuple

from .token import REASONS, Token

#: What an answer is called back with: its words, or None if none will come.
Heard = Callable[[Optional[str]], None]

#: Answers that are waited for at once; who comes when there are as many goes without.
MOST_ASKED = 4096
#: An answer is shorter: the daemon's longest line, and some.
LONGEST = 1024
#: What is not sent at once. All that can be asked, and stops, of which one is as long as a line may be.
MOST_UNSENT = MOST_ASKED * 512
#: Seconds after which whoever holds a lease is looked at again at the latest.
LOOK = 1.0


class Conversation:
    """One connection to the daemon. Every method may be called from every thread."""

    def __init__(self, path: str, clock: Callable[[], float], patience: float) -> None:
        """Raises `OSError` if nobody is there. Does not wait: of a UNIX socket this is known at once."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | getattr(socket, "SOCK_CLOEXEC", 0))
        self._lock, self._reading, self._telling = threading.RLock(), threading.Lock(), threading.Lock()
        self._clock = clock
        #: Seconds in which the daemon answers.
        self.patience = patience
        self._asked: Dict[int, Heard] = {}
        self._own: Dict[int, Callable[[str], None]] = {}
        # By lease: whose request time may end while it holds; and the next moment to look at them.
        self._held: Dict[object, Token] = {}
        self._look_at = inf
        self._number = 0
        self._unsent, self._came = bytearray(), bytearray()
        self.is_over = False
        #: When it ended.
        self.ended = 0.0
        try:
            self._socket.setblocking(False)
            self._socket.connect(path)
            threading.Thread(target=self._read, name="bywash-sentry", daemon=True).start()
        except (OSError, RuntimeError) as error:
            # No thread can be started any more as the interpreter ends.
            self._socket.close()
            raise OSError(str(error)) from error

    def ask(self, words: str, heard: Optional[Heard] = None) -> Optional[int]:
        """Says it. `heard` is called once, soon, in any thread, unless the number is forgotten (`forget`).

        None: it cannot be said, and nothing will be heard.
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
        """Nobody waits for this answer any more. False: it has been heard."""
        with self._lock:
            return self._asked.pop(number, None) is not None

    def own(self, number: int, stop: Callable[[str], None]) -> None:
        """Who has the lease of his own of this number is stopped with this, in another thread."""
        with self._telling:
            self._own[number] = stop

    def disown(self, number: int) -> None:
        """Nobody is stopped by this number from here on."""
        with self._telling:
            self._own.pop(number, None)

    def hold(self, lease: object, token: Token) -> None:
        """While it has this lease, somebody looks whether it is over."""
        if token.is_running:
            with self._lock:
                self._held[lease] = token
                self._look_at = min(self._look_at, _next_look(token))

    def let_go(self, lease: object) -> None:
        """It has none any more. The moment to look stays: at worst nobody is there."""
        with self._lock:
            self._held.pop(lease, None)

    def pump(self) -> None:
        """Hears what has come. Does not wait for the daemon."""
        with self._reading:
            if not self.is_over and not self._hear():
                self.end()

    def end(self) -> None:
        """It is over. Once is enough, twice is no harm."""
        with self._lock:
            if self.is_over:
                return
            self.ended, self.is_over = self._clock(), True
            asked, self._asked = self._asked, {}
            self._unsent.clear()
            with contextlib.suppress(OSError):
                # Wakes the reading thread.
                self._socket.shutdown(socket.SHUT_RDWR)
        for heard in asked.values():
            heard(None)

    def abandon(self) -> None:
        """In a child of fork: it is the parent's. Its locks may be held by threads that are not here."""
        self.is_over = True
        self._lock, self._reading, self._telling = threading.RLock(), threading.Lock(), threading.Lock()
        self._asked, self._own, self._held = {}, {}, {}
        self._socket.close()

    def _send(self) -> bool:
        """What fits; the rest follows as answers come, for nothing stays unsent but behind what will be answered."""
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
        """In milliseconds, rounded up: who comes too early comes again."""
        wait = self._look_at - time.monotonic()
        return None if wait == inf else max(ceil(wait * 1000), 0)

    def _look(self) -> None:
        """At everybody who holds a lease. Who is over is told to the daemon by his token; outside the lock, that is."""
        with self._lock:
            tokens = set(self._held.values())
        for token in tokens:
            token.look()
        with self._lock:
            self._held = {lease: token for lease, token in self._held.items() if token.is_running}
            self._look_at = min(map(_next_look, set(self._held.values())), default=inf)

    def _hear(self) -> bool:
        """False: there is nobody, or what came is no answer."""
        try:
            came = self._socket.recv(65536)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        self._came += came
        *lines, rest = self._came.split(b"\n")
        self._came = rest
        if not came or len(rest) > LONGEST or not all([self._said(bytes(line)) for line in lines]):
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
        # Whoever asked may have lost his patience.
        if heard is not None:
            heard(words)
        return True

    def _tell(self, words: str) -> bool:
        verb, *rest = words.split(" ")
        if verb != "STOPPED" or len(rest) != 3 or rest[1] not in REASONS or not rest[2].isdigit():
            # `0 ERR malformed …`: something that was said here is no message.
            return False
        with self._telling:
            stop = self._own.get(int(rest[2]))
            if stop is not None:
                stop(rest[1])
        return True


def _next_look(token: Token) -> float:
    return time.monotonic() + min(token.before_look(), LOOK)


def is_answer(words: str) -> bool:
    """Whether this is one of what the daemon says. `OK` and `ERR` may be followed by more than we know."""
    verb, _, rest = words.partition(" ")
    return verb in ("OK", "ERR") or (verb == "STOPPED" and (rest in REASONS or " " in rest))


def stopped(words: str) -> Tuple[bool, str]:
    """Whether an answer to a lease says that its request was stopped, and why."""
    verb, _, reason = words.partition(" ")
    return verb == "STOPPED" and reason in REASONS, reason
