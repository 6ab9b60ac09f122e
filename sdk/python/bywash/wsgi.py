"""WSGI middleware: a thread cannot be cancelled, so only a checkpoint ends it.

The response has begun with its first byte (PEP 3333). Before that, the middleware can replace the
answer even of a handler that has called `start_response`. A WSGI application is not told that a
client has left: it shows when the server abandons the response and closes it. `Terminated` never
reaches the server, because it is not an `Exception`, and such an error may end a server's worker.
"""

import contextlib
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Sized

from .http import answer
from .middleware import NOT_ITS_OWN, TOKEN, Middleware
from .token import Terminated, Token, _current

Environ = Dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class TerminateWsgi(Middleware):
    """The middleware for WSGI. The token is `environ["bywash.token"]`, and `current()`."""

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        token = self._begin(environ, _values)
        if token is None:
            return self._app(environ, start_response)
        environ[TOKEN] = token
        return _Response(token, environ, start_response).of(self._app)


class _Sized:
    """A response with a length, for a body that has one.

    Some servers read the length to set `Content-Length`.
    """

    def __init__(self, response: "_Response", body: Sized) -> None:
        self._response = response
        self._body = body
        self.close = response.close

    def __iter__(self) -> Iterator[bytes]:
        return self._response

    def __len__(self) -> int:
        return len(self._body)


class _Response:
    """The iterator for the server: the handler's body, or our answer if the request is terminated.
    """

    def __init__(self, token: Token, environ: Environ, start_response: StartResponse) -> None:
        self._token = token
        self._environ = environ
        self._start_response = start_response
        self._body: Iterable[bytes] = ()
        self._chunks: Iterator[bytes] = iter(())
        self._has_begun = False

    def of(self, app: App) -> Iterable[bytes]:
        try:
            try:
                # A request that arrives with no time left does not begin.
                self._token.checkpoint()
                self._body = self._ask(lambda: app(self._environ, self._start))
                self._chunks = self._ask(lambda: iter(self._body))
                if isinstance(self._body, Sized):
                    return _Sized(self, self._body)
            except Terminated as terminated:
                self._refuse(terminated)
        except BaseException:
            # The server gets no iterator that it could close.
            self._token.end()
            self.close()
            raise
        return self

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            try:
                chunk = self._ask(self._next)
            except Terminated as terminated:
                self._refuse(terminated)
                chunk = next(self._chunks)
        except BaseException:
            # This includes `StopIteration`.
            self._token.end()
            raise
        if chunk:
            self._begins()
        return chunk

    def close(self) -> None:
        # If the body was not read to its end, its reader has left. A request that has ended cannot
        # be left.
        self._token.leave()
        self._token.end()
        close = getattr(self._body, "close", None)
        if close is not None:
            # A checkpoint in the handler's clean-up concerns only the handler.
            with contextlib.suppress(Terminated):
                self._ask(close)

    def _next(self) -> bytes:
        chunk = next(self._chunks)
        # Some servers send the head with the first chunk, even if it is empty.
        while not (chunk or self._has_begun):
            chunk = next(self._chunks)
        return chunk

    def _ask(self, what: Callable[[], Any]) -> Any:
        """Call `what`, a part of the handler's work, with the token as the current one."""
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

    def _refuse(self, terminated: Terminated) -> None:
        """Replace the handler's answer by the one for terminated requests."""
        if self._token.reason is None:
            raise RuntimeError(NOT_ITS_OWN) from terminated
        if self._has_begun:
            raise RuntimeError("the response ended early, because its request is over") from terminated
        head, body = answer(self._token.terminated(), self._environ.get("HTTP_ACCEPT", ""))
        # The handler may have started a response of which nothing has been sent.
        self._start_response("504 Gateway Timeout", head, sys.exc_info())
        self._chunks = iter([] if self._environ.get("REQUEST_METHOD") == "HEAD" else [body])


def _values(environ: Environ, field: str) -> List[bytes]:
    value = environ.get("HTTP_" + field.upper().replace("-", "_"))
    return [] if value is None else [value.encode("latin-1")]
