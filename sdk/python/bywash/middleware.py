"""The common part of the ASGI and WSGI middleware: which requests get a token."""

from typing import Any, Callable, Dict, List, Optional, Union

from .controller import Controller
from .http import HEADER, REQUEST, name_of, new_name, passed_on, seconds_left
from .token import Token

#: The key of a request's token in its scope or environ.
TOKEN = "bywash.token"

#: The server's error for a `Terminated` that is not of this request: the handler has raised another
#: token's.
NOT_ITS_OWN = "the handler raised Terminated of another request's token"


class Middleware:
    """Terminate overdue requests of `app`.

    `class_of` is the name of a class, or a function from the scope or environ to one or to None. A
    request without a class passes untouched, as does one with a token of an outer middleware. If
    clients can reach the server without passing a gateway of ours, `trust_request=False` ignores
    names of requests. A request without a name gets a random one.
    """

    def __init__(
        self,
        app: Callable[..., Any],
        controller: Controller,
        class_of: Union[str, Callable[[Dict[str, Any]], Optional[str]]],
        *,
        trust_deadline: bool = True,
        trust_request: bool = True,
    ) -> None:
        if isinstance(class_of, str):
            controller.knows(class_of)
        self._app = app
        self._controller = controller
        self._class_of = class_of
        self._trust_deadline = trust_deadline
        self._trust_request = trust_request

    def _begin(
        self, request: Dict[str, Any], values: Callable[[Dict[str, Any], str], List[bytes]]
    ) -> Optional[Token]:
        """Return the token of a request, or None if the request passes untouched.

        `values` returns the values of a header field.
        """
        if TOKEN in request:
            return None
        name = self._class_of if isinstance(self._class_of, str) else self._class_of(request)
        if name is None:
            return None
        left = seconds_left(values(request, HEADER)) if self._trust_deadline else None
        called = (name_of(values(request, REQUEST)) if self._trust_request else None) or new_name()
        return self._controller.begin(name, left, called, passed_on(lambda field: values(request, field), called))
