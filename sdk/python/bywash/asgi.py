"""ASGI: the handler runs as a task of its own, which is cancelled at an await once it is overdue.

A task of its own, because a task cannot tell our cancellation from its server's before Python 3.11. A second
one reads ahead what the client sends, at most one message, so that a client who leaves is noticed although
the handler asks for nothing more; behind a body that the handler leaves unread nobody is noticed.

Source: ASGI 3.0, HTTP connection scope.
"""

import asyncio
import logging
from typing import Any, Awaitable, Callable, Dict, List, Optional, Union

from .controller import Controller
from .http import HEADER, answer, seconds_left
from .token import CLIENT_LEFT, Terminated, Token, _current

Scope = Dict[str, Any]
Message = Dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("bywash")


class TerminateAsgi:
    """Terminates overdue requests of `app`.

    `class_of` is the name of a class, or a function from the scope to one, or to None: such a request passes
    untouched, as do websockets and the lifespan. The token is `scope["bywash.token"]`, and `current()`.
    """

    def __init__(
        self,
        app: App,
        controller: Controller,
        class_of: Union[str, Callable[[Scope], Optional[str]]],
        *,
        trust_deadline: bool = True,
    ) -> None:
        if isinstance(class_of, str):
            controller.knows([class_of])
        self._app = app
        self._controller = controller
        self._class_of = class_of
        self._trust_deadline = trust_deadline

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = self._name(scope) if scope["type"] == "http" else None
        if name is None:
            await self._app(scope, receive, send)
            return
        left = seconds_left(_values(scope, HEADER)) if self._trust_deadline else None
        token = self._controller.begin(name, left)
        try:
            await _Exchange(self._controller, token, scope, receive, send).run(self._app)
        finally:
            token.end()

    def _name(self, scope: Scope) -> Optional[str]:
        return self._class_of if isinstance(self._class_of, str) else self._class_of(scope)


class _Exchange:
    """One request and its response."""

    def __init__(
        self, controller: Controller, token: Token, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._clock = controller.clock
        self._token = token
        self._scope = {**scope, "bywash.token": token}
        self._from_client = receive
        self._to_client = send
        self._inbox: "asyncio.Queue[Union[Message, BaseException]]" = asyncio.Queue(1)
        self._has_left = False
        self._has_begun = False
        self._timer: Optional[asyncio.TimerHandle] = None

    async def run(self, app: App) -> None:
        token = self._token
        # Who comes with nothing left need not begin.
        if token.look():
            await self._refuse()
            return
        was = _current.set(token)
        # Both tasks take the token along.
        self._handler = asyncio.ensure_future(app(self._scope, self._receive, self._send))
        watch = asyncio.ensure_future(self._watch())
        _current.reset(was)
        self._arm()
        try:
            await asyncio.wait({self._handler})
        finally:
            self._disarm()
            watch.cancel()
            # The server cancels this task: nothing of it stays behind.
            if not self._handler.done():
                self._handler.cancel()
                await asyncio.wait({self._handler})
        await self._conclude()

    async def _conclude(self) -> None:
        """The handler is done: hands on its error, or answers in its place if it was terminated."""
        if self._token.reason is None:
            self._handler.result()
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
        if self._has_left and self._inbox.empty():
            return {"type": "http.disconnect"}
        message = await self._inbox.get()
        if isinstance(message, BaseException):
            raise message
        return message

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            # Also of a request that is over: what its handler has to say comes before our answer.
            self._token.settle()
            self._has_begun = True
            self._disarm()
        await self._to_client(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            # What the handler does behind its response is nobody's request.
            self._token.end()


def _values(scope: Scope, field: str) -> List[bytes]:
    name = field.encode()
    return [value for key, value in scope["headers"] if key.lower() == name]
