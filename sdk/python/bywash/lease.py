"""One query of a request on a connection to a database: leased before, released after.

The rules are those of `sdk/README.md`, "Down to the query". They are written once, as steps that
yield a line to send and receive the answer: a thread waits for the answer on a lock, a coroutine on
a future. If the wait is interrupted, for example by a cancellation, the connection is released or
not reused.
"""

import asyncio
import contextlib
import threading
import time
from typing import Any, Awaitable, Callable, Generator, Optional, Union

from .conversation import Conversation, stopped
from .stop_client import StopClient
from .token import Terminated, Token, _current, _is_unleased

#: Seconds for which a lease outlasts the deadline of its request. The stop comes at that deadline
#: and must find the lease.
GRACE = 10.0

#: Seconds from a stop to the release of a query that its driver has abandoned. The daemon may still
#: have to cancel it.
PAUSE = 0.1

#: The database name for leases that only their holder can end.
OWN = "self"

#: Seconds until the statement of a stopped request is interrupted again. It may not have begun
#: before.
INTERRUPT = 0.01


class Taken(ConnectionError):
    """The error for a connection that another client of the daemon has leased too.

    It has been closed; take another one.
    """


#: The answer to a line that could not be sent. None means that a line was sent and not answered.
UNSAID = ""

#: A function that ends a connection: at once, or before it is reused.
End = Callable[[], Optional[Awaitable[Any]]]

#: Steps that yield words to send, to which the answer is sent back, or a function that ends the
#: connection.
Steps = Generator[Union[str, End], Optional[str], Any]


class Query:
    """A context manager for `with` or `async with`, around a query of the current request.

    `number` returns the database's number of the connection, and `close` closes it. If the pool can
    drop a connection instead of reusing it, `spoil` makes it do so, and this request may still end
    its transaction. Both may be coroutine functions under `async with`.
    """

    def __init__(
        self,
        stop_client: StopClient,
        database: str,
        number: Callable[[], int],
        close: End,
        spoil: Optional[End] = None,
    ) -> None:
        self._stop_client, self._database = stop_client, database
        self._close, self._spoil = close, spoil or close
        self._number_of = number
        self._number = 0
        self._token: Optional[Token] = _current.get()
        # The conversation in which a lease holds, or may hold; and the one in which it was
        # released.
        self._conversation: Optional[Conversation] = None
        self._was_in: Optional[Conversation] = None
        # Whether the connection must not be reused because a release was interrupted, refused or not
        # answered.
        self._is_spoiled = False

    def __enter__(self) -> None:
        self._walk(self._begin())

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        if self._token is not None:
            self._walk(self._end(error))

    async def __aenter__(self) -> None:
        await self._walk_async(self._begin())

    async def __aexit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        if self._token is None:
            return
        try:
            is_leased = self._conversation is not None
            if is_leased and isinstance(error, asyncio.CancelledError) and self._token.is_terminated:
                # The driver may have abandoned a query that still runs. Without a pause the daemon
                # would read stop and release at once.
                await asyncio.sleep(PAUSE)
        finally:
            await self._walk_async(self._end(error))

    def _begin(self) -> Steps:
        token = self._token
        if token is not None and (over := self._refusal(token)):
            raise over
        if token is None or token.request is None:
            if not _is_unleased.get():
                self._stop_client.count("unnamed")
            return
        conversation = self._stop_client.conversation()
        if conversation is None:
            self._stop_client.count("unreachable")
            return
        if not token.leases_with(self._stop_client):
            # Its client may have left in this moment.
            if over := self._refusal(token):
                raise over
            return
        try:
            self._number = self._number_of()
        except Exception:
            # A connection that is closed raises its own error.
            return
        self._takes(conversation)
        yield from self._lease(token, conversation)

    def _refusal(self, token: Token) -> Optional[Terminated]:
        """Return the error to raise if the request is over, so that its query must not begin."""
        token.look()
        over = token.told()
        if over is not None:
            self._stop_client.count("stopped")
        return over

    def _lease(self, token: Token, conversation: Conversation) -> Steps:
        try:
            answer = yield self._words("LEASE") + not_after(token)
        except BaseException:
            # The daemon may have granted the lease, and the query does not begin.
            yield from self._release()
            raise
        if answer == UNSAID:
            self._forgets()
        if answer is None or answer == UNSAID:
            self._stop_client.count("unreachable")
        elif answer == "OK":
            self._stop_client.count("leased")
        else:
            yield from self._not_leased(token, answer)
        if over := self._refusal(token):
            # The daemon may have read the stop before the lease, and it does not remember such a
            # stop.
            yield from self._release()
            raise over

    def _not_leased(self, token: Token, answer: str) -> Steps:
        self._forgets()
        is_stopped, reason = stopped(answer)
        if is_stopped:
            error = token.stopped(reason)
            if error is not None:
                self._stop_client.count("stopped")
                raise error
        if answer.startswith("ERR taken"):
            self._stop_client.count("taken")
            yield self._close
            raise Taken(answer)
        self._stop_client.refused("lease", answer)

    def _end(self, error: Optional[BaseException]) -> Steps:
        token = self._token
        if token is None:
            return
        yield from self._release()
        if isinstance(error, Exception) and was_cancelled(error):
            reason = yield from self._reason(token)
            over = token.told() if reason is None else token.stopped(reason)
            if over is not None:
                raise over from error

    def _release(self) -> Steps:
        conversation = self._conversation
        if conversation is None:
            return
        try:
            answer = yield self._words("RELEASE")
        except BaseException:
            yield from self._spoils()
            raise
        finally:
            self._forgets()
        if answer:
            # After any answer the daemon can be asked for the reason.
            self._was_in = conversation
        if answer != "OK" and not (answer or "").startswith("ERR not_leased"):
            yield from self._spoils()

    def _spoils(self) -> Steps:
        if not self._is_spoiled:
            self._is_spoiled = True
            self._stop_client.count("spoiled")
            yield self._spoil

    def _reason(self, token: Token) -> Steps:
        """Return why the request was stopped.

        A gateway may have told the daemon, and it is not known here yet.
        """
        if self._was_in is None or not token.leases_with(self._stop_client):
            return None
        if self._is_spoiled:
            # The cancellation at the connection may still be under way. Until its end the daemon
            # refuses each lease of the connection, so the question names work in this process.
            self._database, self._number = OWN, next(self._stop_client.numbers)
        self._conversation = self._was_in
        try:
            answer = yield self._words("LEASE") + not_after(token)
            is_stopped, reason = stopped(answer or "")
            if is_stopped:
                self._forgets()
        finally:
            # Release after an interruption as well.
            yield from self._release()
        return reason if is_stopped else None

    def _words(self, verb: str) -> str:
        return f"{verb} {self._token.request if self._token else ''} {self._database} {self._number}"

    def _takes(self, conversation: Conversation) -> None:
        """Record that a lease may hold from here on."""
        self._conversation = conversation
        if self._token is not None:
            conversation.hold(self, self._token)

    def _forgets(self) -> None:
        """Record that no lease holds any more."""
        if self._conversation is not None:
            self._conversation.let_go(self)
        self._conversation = None

    def _walk(self, steps: Steps) -> Any:
        """Run the steps in a thread."""
        answer: Optional[str] = None
        error: Optional[BaseException] = None
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            answer = error = None
            try:
                if isinstance(step, str):
                    answer = heard(self._conversation, step)
                else:
                    step()
            except BaseException as interrupted:
                error = interrupted

    async def _walk_async(self, steps: Steps) -> Any:
        """Run the steps in a coroutine."""
        answer: Optional[str] = None
        error: Optional[BaseException] = None
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            answer = error = None
            try:
                if isinstance(step, str):
                    answer = await heard_async(self._conversation, step)
                else:
                    ending = step()
                    if ending is not None:
                        await ending
            except BaseException as interrupted:
                error = interrupted


class OwnQuery(Query):
    """A query of a database in this process, which `interrupt` ends from another thread.

    Cancellations come only from this process, so the connection stays usable whatever the daemon
    answers.
    """

    def __init__(self, stop_client: StopClient, interrupt: Callable[[], None]) -> None:
        number = next(stop_client.numbers)
        super().__init__(stop_client, OWN, lambda: number, lambda: None)
        self._interrupt = interrupt
        self._interrupting = threading.Lock()
        self._is_done = threading.Event()
        self._told_why: Optional[str] = None

    def _takes(self, conversation: Conversation) -> None:
        super()._takes(conversation)
        conversation.own(self._number, self._stop)

    def _forgets(self) -> None:
        if self._conversation is not None:
            self._conversation.disown(self._number)
        super()._forgets()
        with self._interrupting:
            self._is_done.set()

    def _spoils(self) -> Steps:
        yield from ()

    def _release(self) -> Steps:
        yield from super()._release()
        if self._token is not None and self._told_why is not None:
            self._token.stopped(self._told_why)

    def _reason(self, token: Token) -> Steps:
        # The release has recorded it.
        yield from ()

    def _stop(self, reason: str) -> None:
        self._told_why = reason
        with contextlib.suppress(RuntimeError):
            # No thread can be started any more while the interpreter ends.
            threading.Thread(target=self._interrupts, name="bywash-interrupt", daemon=True).start()

    def _interrupts(self) -> None:
        """Interrupt until the query is done.

        A statement that has not begun yet ignores an interrupt.
        """
        while True:
            with self._interrupting:
                if self._is_done.is_set():
                    return
                self._interrupt()
            self._is_done.wait(INTERRUPT)


def not_after(token: Token) -> str:
    """Return the latest end of a lease, if time can end its request."""
    left = token.latest()
    return "" if left is None else f" not-after={int((time.time() + max(left, 0.0) + GRACE) * 1000)}"


def was_cancelled(error: BaseException) -> bool:
    """Return whether the driver reports a cancelled query.

    Frameworks keep the driver's error as the cause of their own.
    """
    for each in (error, error.__cause__):
        # PostgreSQL's query_canceled, MariaDB's and MySQL's ER_QUERY_INTERRUPTED, and
        # SQLITE_INTERRUPT.
        if "57014" in (getattr(each, "sqlstate", None), getattr(each, "pgcode", None)):
            return True
        if each is not None and each.args[:1] in ((1317,), ("interrupted",)):
            return True
    return False


def heard(conversation: Optional[Conversation], words: str) -> Optional[str]:
    """Send a line and wait for its answer, in a thread."""
    if conversation is None:
        return UNSAID
    waits, said = threading.Lock(), []

    def hear(answer: Optional[str]) -> None:
        said.append(answer)
        waits.release()

    waits.acquire()
    number = conversation.ask(words, hear)
    if number is None:
        return UNSAID
    try:
        if not waits.acquire(timeout=conversation.patience):
            # The answer may have come and not been read.
            conversation.pump()
            if conversation.forget(number):
                conversation.end()
                return None
            waits.acquire()
    except BaseException:
        conversation.forget(number)
        raise
    return said[0]


async def heard_async(conversation: Optional[Conversation], words: str) -> Optional[str]:
    """Send a line and wait for its answer, in a coroutine."""
    if conversation is None:
        return UNSAID
    loop = asyncio.get_running_loop()
    answered: "asyncio.Future[Optional[str]]" = loop.create_future()

    def answer(said: Optional[str]) -> None:
        if not answered.done():
            answered.set_result(said)

    def hear(said: Optional[str]) -> None:
        # The loop may have been closed meanwhile.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(answer, said)

    number = conversation.ask(words, hear)
    if number is None:
        return UNSAID
    timer = loop.call_later(conversation.patience, _lose_patience, conversation, number, answer)
    try:
        return await answered
    finally:
        timer.cancel()
        conversation.forget(number)


def _lose_patience(conversation: Conversation, number: int, answer: Callable[[Optional[str]], None]) -> None:
    # The answer may have come while the loop was blocked.
    conversation.pump()
    if conversation.forget(number):
        conversation.end()
        answer(None)
