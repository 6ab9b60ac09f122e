"""ASGI: the handler runs as a task of its own, which is cancelled at an await once it is overdue.

A task of its own, because a task cannot tell our cancellation from its server's before Python 3.11. A second
one reads ahead what the client sends, at most one message, so that a client who leaves is noticed although
the handler asks for nothing more; behind a body that the handler leaves unread nobody is noticed. To read is
to ask a client who waits for `100 Continue` for his body: of his request nothing is read before the handler
does, or has begun its response.

Source: ASGI 3.0, HTTP connection scope, and its extensions.
"""

import asyncio
import logging
from typing import Any, Awaitable, Callable, Dict, List, Optional, Union

from .http import answer
from .middleware import TOKEN, Middleware
from .token import CLIENT_LEFT, Terminated, Token, _current

Scope = Dict[str, Any]
Message = Dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("bywash")

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
        try:
            await _Exchange(self._controller.clock, token, scope, receive, send).run(self._app)
        finally:
            token.end()


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
        self._inbox: "asyncio.Queue[Union[Message, BaseException]]" = asyncio.Queue(1)
        self._has_left = False
        self._has_begun = False
        self._timer: Optional[asyncio.TimerHandle] = None
        self._watcher: Optional["asyncio.Future[None]"] = None

    async def run(self, app: App) -> None:
        token = self._token
        # Who comes with nothing left need not begin.
        if token.look():
            await self._refuse()
            return
        was = _current.set(token)
        # Both tasks take the token along.
        self._handler = asyncio.ensure_future(app(self._scope, self._receive, self._send))
        if not any(b"100-continue" in value.lower() for value in _values(self._scope, "expect")):
            self._read_ahead()
        _current.reset(was)
        self._arm()
        try:
            await asyncio.wait({self._handler})
        finally:
            self._disarm()
            if self._watcher is not None:
                self._watcher.cancel()
            # The server cancels this task: nothing of it stays behind.
            if not self._handler.done():
                self._handler.cancel()
                await asyncio.wait({self._handler})
        await self._conclude()

    async def _conclude(self) -> None:
        """The handler is done: hands on its error, or answers in its place if it was terminated."""
        if self._token.reason is None:
            self._handler.result()
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
        if self._token.look():
            self._handler.cancel()
        elif self._token.is_running:
            # The clock of the loop may be a little ahead, or the threshold has changed.
            self._arm()

    def _read_ahead(self) -> None:
        if self._watcher is None:
            self._watcher = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        """Reads ahead; the end of it is a client who has left."""
        try:
            while not self._has_left:
                message = await self._from_client()
                self._has_left = message["type"] == "http.disconnect"
                if not self._has_left:
                    await self._inbox.put(message)
        except Exception as error:
            await self._inbox.put(error)
            return
        if self._token.leave():
            self._handler.cancel()
        if self._inbox.empty():
            self._inbox.put_nowait({"type": "http.disconnect"})

    async def _receive(self) -> Message:
        self._read_ahead()
        if self._has_left and self._inbox.empty():
            return {"type": "http.disconnect"}
        message = await self._inbox.get()
        if isinstance(message, BaseException):
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
            self._token.end()
        await self._to_client(message)
        if is_start:
            # Nobody can be asked to continue any more.
            self._read_ahead()


def _values(scope: Scope, field: str) -> List[bytes]:
    name = field.encode()
    return [value for key, value in scope["headers"] if key.lower() == name]
