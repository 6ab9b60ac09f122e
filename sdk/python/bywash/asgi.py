"""ASGI: the handler runs as a task of its own, which is cancelled at an await once it is overdue.

A task of its own, because a task cannot tell our cancellation from its server's before Python 3.11. A second
one reads ahead what the client sends, at most one message, so that a client who leaves is noticed although
the handler asks for nothing more; behind a body that the handler leaves unread nobody is noticed. To read is
to ask a client who waits for `100 Continue` for his body: of his request nothing is read before the handler
does, or has begun its response.

Who is told at a checkpoint in the handler's own task has the first word; a task or thread that works for it is not
the handler, which may wait for something else, so it is cancelled all the same. A server that cancels this task has
given the request up: its handler goes with it, unless it has called `cancel_termination`.

Source: ASGI 3.0, HTTP connection scope, and its extensions.
"""

import asyncio
import contextlib
import logging
from typing import Any, Awaitable, Callable, Dict, List, Optional, Set, Union

from .http import answer
from .middleware import NOT_ITS_OWN, TOKEN, Middleware
from .token import CLIENT_LEFT, Terminated, Token, _current

Scope = Dict[str, Any]
Message = Dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("bywash")

#: Handlers that go on although their server has given up their requests. A loop has weak references only.
_orphans: "Set[asyncio.Future[None]]" = set()

#: What a response's body is sent with; the extension for files by their path knows no more of it to come.
_BODIES = ("http.response.body", "http.response.zerocopysend", "http.response.pathsend")


class TerminateAsgi(Middleware):
    """The middleware for ASGI. Websockets and the lifespan pass untouched.

    The token is `scope["bywash.token"]`, and `current()`.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = self._begin(scope, _values) if scope["type"] == "http" else None
        if token is None:
            await self._app(scope, receive, send)
            return
        await _Exchange(self._controller.clock, token, scope, receive, send).run(self._app)


class _Exchange:
    """One request and its response."""

    def __init__(
        self, clock: Callable[[], float], token: Token, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._clock = clock
        self._token = token
        self._scope = {**scope, TOKEN: token}
        self._from_client = receive
        self._to_client = send
        self._inbox: "asyncio.Queue[Union[Message, Exception]]" = asyncio.Queue(1)
        # What comes last, and then whenever somebody asks: the client has left, or the server's error.
        self._last: Union[Message, Exception, None] = None
        self._has_begun = self._is_complete = False
        # The handler: at a checkpoint of its own, by its task's cancellation.
        self._is_told = self._is_cancelled = False
        self._is_orphan = False
        self._timer: Optional[asyncio.TimerHandle] = None
        self._watcher: Optional["asyncio.Future[None]"] = None

    async def run(self, app: App) -> None:
        try:
            # Who comes with nothing left need not begin.
            if self._token.look():
                await self._refuse()
            else:
                await self._handle(app)
        finally:
            if not self._is_orphan:
                self._token.end()

    async def _handle(self, app: App) -> None:
        was = _current.set(self._token)
        # Both tasks take the token along.
        self._handler = asyncio.ensure_future(app(self._scope, self._receive, self._send))
        if not any(b"100-continue" in value.lower() for value in _values(self._scope, "expect")):
            self._read_ahead()
        _current.reset(was)
        self._token.on_told = self._tells
        self._arm()
        try:
            await asyncio.wait({self._handler})
        finally:
            self._token.on_told = None
            self._disarm()
            if self._watcher is not None:
                self._watcher.cancel()
            if not self._handler.done():
                await self._give_up()
        await self._conclude()

    async def _give_up(self) -> None:
        """The server cancels this task."""
        # First, so that threads that work for it are told, and whatever the handler does now knows why.
        self._token.leave()
        if self._token.is_deferred:
            self._is_orphan = True
            self._end({"type": "http.disconnect"})
            _orphans.add(self._handler)
            self._handler.add_done_callback(self._orphan_ends)
        else:
            self._handler.cancel()
            await asyncio.wait({self._handler})

    def _orphan_ends(self, handler: "asyncio.Future[None]") -> None:
        _orphans.discard(handler)
        self._token.end()
        error = None if handler.cancelled() else handler.exception()
        if error is not None:
            log.warning("a request that its server had given up ended with an error", exc_info=error)

    async def _conclude(self) -> None:
        """The handler is done: hands on its error, or answers in its place if it was terminated."""
        if self._token.reason is None:
            try:
                self._handler.result()
            except Terminated as terminated:
                raise RuntimeError(NOT_ITS_OWN) from terminated
            # Who stops without a word as it has seen that it is over is answered for as well.
            if self._has_begun or not self._token.look():
                return
        error = None if self._handler.cancelled() else self._handler.exception()
        if error is not None and not isinstance(error, Terminated):
            log.warning("a terminated request ended with an error", exc_info=error)
        if not self._has_begun and self._token.reason != CLIENT_LEFT:
            await self._refuse()

    async def _refuse(self) -> None:
        accept = b",".join(_values(self._scope, "accept")).decode("latin-1")
        head, body = answer(self._token.terminated(), accept)
        headers = [(name.lower().encode(), value.encode()) for name, value in head]
        await self._to_client({"type": "http.response.start", "status": 504, "headers": headers})
        body = b"" if self._scope.get("method") == "HEAD" else body
        await self._to_client({"type": "http.response.body", "body": body})

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(self._token.not_before - self._clock(), 0.0), self._wake)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        self._token.look()
        if self._token.is_running:
            # The clock of the loop may be a little ahead, or the threshold has changed.
            self._arm()
        elif self._token.reason is not None and not self._is_told:
            self._cancel()

    def _cancel(self) -> None:
        self._disarm()
        self._is_cancelled = True
        self._handler.cancel()

    def _tells(self) -> None:
        """A checkpoint tells somebody."""
        # Where no loop runs it is another thread.
        with contextlib.suppress(RuntimeError):
            if asyncio.current_task() is self._handler:
                self._is_told = True

    def _read_ahead(self) -> None:
        if self._watcher is None and self._last is None:
            self._watcher = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        """Reads ahead; the end of it is a client who has left."""
        try:
            while True:
                message = await self._from_client()
                if message["type"] == "http.disconnect":
                    break
                await self._inbox.put(message)
        except Exception as error:
            self._end(error)
            return
        self._token.leave()
        # Who was cancelled and has not said anything cleans up, and is left to it.
        is_cleaning_up = self._is_cancelled and not self._has_begun
        if self._token.reason is not None and not is_cleaning_up and not self._is_complete:
            self._cancel()
        self._end(message)

    def _end(self, last: Union[Message, Exception]) -> None:
        """Nothing more comes from the client."""
        self._last = last
        self._repeat_last()

    def _repeat_last(self) -> None:
        if self._last is not None and self._inbox.empty():
            self._inbox.put_nowait(self._last)

    async def _receive(self) -> Message:
        self._read_ahead()
        message = await self._inbox.get()
        self._repeat_last()
        if isinstance(message, Exception):
            raise message
        return message

    async def _send(self, message: Message) -> None:
        is_start = message["type"] == "http.response.start"
        if is_start:
            # Also of a request that is over: what its handler has to say comes before our answer.
            self._token.settle()
            self._has_begun = True
            self._disarm()
        if message["type"] in _BODIES and not message.get("more_body", False):
            # A server may tell whoever reads that the client is gone before it is back from this. And what the
            # handler does behind its response is nobody's request.
            self._is_complete = True
            self._token.end()
        # What an orphan says nobody reads.
        if not self._is_orphan:
            await self._to_client(message)
        if is_start:
            # Nobody can be asked to continue any more.
            self._read_ahead()


def _values(scope: Scope, field: str) -> List[bytes]:
    name = field.encode()
    return [value for key, value in scope["headers"] if key.lower() == name]
