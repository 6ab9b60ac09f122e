"""ASGI middleware: the handler's task is cancelled at an await once its request is overdue.

The handler runs in a task of its own because, before Python 3.11, a task cannot distinguish our
cancellation from its server's. A second task reads ahead what the client sends, at most one
message, so that a departed client is noticed although the handler reads nothing more. Behind a body
that the handler leaves unread, a departure is not noticed. Reading would ask a client that waits
for `100 Continue` to send its body. So nothing of such a request is read before the handler reads,
or has begun its response.

If a checkpoint in the handler's own task has told it, the handler may answer first. A task or
thread that works for it is not the handler, which may wait for something else, so the handler is
cancelled all the same. A server that cancels this task has abandoned the request, and its handler
is cancelled too, unless it has called `cancel_termination`.

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

#: Handlers that go on although their server has abandoned their requests. This set keeps them
#: alive, since a loop has only weak references to tasks.
_orphans: "Set[asyncio.Future[None]]" = set()

#: The messages that carry a response's body. The extension for files by path has no `more_body`.
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
        # The last message, repeated whenever the handler reads again: the client's departure, or
        # the server's error.
        self._last: Union[Message, Exception, None] = None
        self._has_begun = self._is_complete = False
        # Whether the handler knows: from a checkpoint in its own task, or from its task's
        # cancellation.
        self._is_told = self._is_cancelled = False
        self._is_orphan = False
        self._timer: Optional[asyncio.TimerHandle] = None
        self._watcher: Optional["asyncio.Future[None]"] = None

    async def run(self, app: App) -> None:
        try:
            # A request that arrives with no time left does not begin.
            if self._token.look():
                await self._refuse()
            else:
                await self._handle(app)
        finally:
            if not self._is_orphan:
                self._token.end()

    async def _handle(self, app: App) -> None:
        was = _current.set(self._token)
        # Both tasks inherit the token.
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
        """Abandon the request, because the server has cancelled this task."""
        # Leave first, so that threads that work for the request are told, and the handler's
        # clean-up sees the reason.
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
            log.warning("a request that the server had cancelled ended with an error", exc_info=error)

    async def _conclude(self) -> None:
        """Pass on the error of a handler that has ended.

        If the request was terminated and the handler has not answered, answer in its place.
        """
        if self._token.reason is None:
            try:
                self._handler.result()
            except Terminated as terminated:
                raise RuntimeError(NOT_ITS_OWN) from terminated
            # A handler that stops without an answer because it has seen that its request is over is
            # answered for as well.
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
            # The loop's clock may be a little ahead, or the threshold may have changed.
            self._arm()
        elif self._token.reason is not None and not self._is_told:
            self._cancel()

    def _cancel(self) -> None:
        self._disarm()
        self._is_cancelled = True
        self._handler.cancel()

    def _tells(self) -> None:
        """Record the task or thread in which a checkpoint has reported the termination."""
        # A RuntimeError means that no loop runs: it is another thread.
        with contextlib.suppress(RuntimeError):
            if asyncio.current_task() is self._handler:
                self._is_told = True

    def _read_ahead(self) -> None:
        if self._watcher is None and self._last is None:
            self._watcher = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        """Read ahead what the client sends, until the client leaves."""
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
        # A handler that was cancelled and has not answered is cleaning up, and is left undisturbed.
        is_cleaning_up = self._is_cancelled and not self._has_begun
        if self._token.reason is not None and not is_cleaning_up and not self._is_complete:
            self._cancel()
        self._end(message)

    def _end(self, last: Union[Message, Exception]) -> None:
        """Record that the client sends nothing more. `last` is its last message, or the error."""
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
            # Settle a request that is over as well: its handler's own answer comes before ours.
            self._token.settle()
            self._has_begun = True
            self._disarm()
        if message["type"] in _BODIES and not message.get("more_body", False):
            # A server may report to readers that the client is gone before this call returns. And
            # the handler's work after its response no longer belongs to the request.
            self._is_complete = True
            self._token.end()
        # The response of an orphan is not read.
        if not self._is_orphan:
            await self._to_client(message)
        if is_start:
            # A `100 Continue` is not possible any more.
            self._read_ahead()


def _values(scope: Scope, field: str) -> List[bytes]:
    name = field.encode()
    return [value for key, value in scope["headers"] if key.lower() == name]
