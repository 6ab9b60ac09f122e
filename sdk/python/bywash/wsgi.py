"""WSGI: a thread cannot be cancelled, so only a checkpoint ends it.

The response has begun with its first byte that is not empty (PEP 3333): before, even a handler that has
called `start_response` can be answered for. That a client has left nobody tells a WSGI application; it shows
when the server gives up the response and closes it.
"""

import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Union

from .controller import Controller
from .http import HEADER, answer, seconds_left
from .token import Terminated, Token, _current

Environ = Dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class TerminateWsgi:
    """Terminates overdue requests of `app` at their checkpoints.

    `class_of` is the name of a class, or a function from the environ to one, or to None: such a request
    passes untouched. The token is `environ["bywash.token"]`, and `current()`.
    """

    def __init__(
        self,
        app: App,
        controller: Controller,
        class_of: Union[str, Callable[[Environ], Optional[str]]],
        *,
        trust_deadline: bool = True,
    ) -> None:
        if isinstance(class_of, str):
            controller.knows([class_of])
        self._app = app
        self._controller = controller
        self._class_of = class_of
        self._trust_deadline = trust_deadline

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        name = self._class_of if isinstance(self._class_of, str) else self._class_of(environ)
        if name is None:
            return self._app(environ, start_response)
        left = None
        if self._trust_deadline:
            left = seconds_left(_values(environ, HEADER))
        token = self._controller.begin(name, left)
        environ["bywash.token"] = token
        return _Response(token, environ, start_response).of(self._app)


class _Response:
    """What the server iterates over: the handler's body, or our answer if it is terminated."""

    def __init__(self, token: Token, environ: Environ, start_response: StartResponse) -> None:
        self._token = token
        self._environ = environ
        self._start_response = start_response
        self._body: Iterable[bytes] = ()
        self._chunks: Iterator[bytes] = iter(())
        self._has_begun = False

    def of(self, app: App) -> "_Response":
        try:
            # Who comes with nothing left need not begin.
            self._body = self._ask(lambda: app(self._environ, self._start)) if self._may_begin() else ()
            self._chunks = iter(self._body)
        except Terminated as terminated:
            self._chunks = iter(self._refuse(terminated))
        except BaseException:
            self._token.end()
            raise
        return self

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            chunk = self._ask(lambda: next(self._chunks))
            # Some servers send the head with the first chunk, even if it is empty.
            while not (chunk or self._has_begun):
                chunk = self._ask(lambda: next(self._chunks))
        except StopIteration:
            self._token.end()
            raise
        except Terminated as terminated:
            # Too late for an answer: the server breaks off.
            if self._has_begun:
                raise
            self._chunks = iter(self._refuse(terminated))
            return next(self._chunks)
        except BaseException:
            self._token.end()
            raise
        if chunk:
            self._begins()
        return chunk

    def close(self) -> None:
        # A body that nobody has read to its end: its reader is gone. One that has ended cannot be left.
        self._token.leave()
        self._token.end()
        close = getattr(self._body, "close", None)
        if close is not None:
            close()

    def _may_begin(self) -> bool:
        self._token.checkpoint()
        return True

    def _ask(self, what: Callable[[], Any]) -> Any:
        """Does a piece of the handler's work, with its token at hand."""
        was = _current.set(self._token)
        try:
            return what()
        finally:
            _current.reset(was)

    def _begins(self) -> None:
        self._token.settle()
        self._has_begun = True

    def _start(self, *args: Any) -> Callable[[bytes], Any]:
        write = self._start_response(*args)

        def written(chunk: bytes) -> Any:
            self._begins()
            return write(chunk)

        return written

    def _refuse(self, terminated: Terminated) -> List[bytes]:
        self._token.settle()
        head, body = answer(terminated, self._environ.get("HTTP_ACCEPT", ""))
        # The handler may have started a response of which nothing has been sent.
        self._start_response("504 Gateway Timeout", head, sys.exc_info())
        return [body]


def _values(environ: Environ, field: str) -> List[bytes]:
    value = environ.get("HTTP_" + field.upper().replace("-", "_"))
    return [] if value is None else [value.encode("latin-1")]
