"""What ASGI's and WSGI's middleware have in common: which requests get a token."""

from typing import Any, Callable, Dict, List, Optional, Union

from .controller import Controller
from .http import HEADER, REQUEST, name_of, new_name, passed_on, seconds_left
from .token import Token

#: The key of a request's token in its scope or environ.
TOKEN = "bywash.token"

#: What the server gets for a `Terminated` that says nothing of the request: the handler has made it of another.
NOT_ITS_OWN = "a token is over that is not its request's"


class Middleware:
    """Terminates overdue requests of `app`.

    `class_of` is the name of a class, or a function from the scope or environ to one, or to None: such a request
    passes untouched, as does one that has a token of a middleware around this one. Where others than a gateway of ours
    can reach it, `trust_request=False` takes no names of requests. A request that brings none gets a random one.
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
        """The token of a request, unless it passes untouched. `values` are those of a field of its head."""
        if TOKEN in request:
            return None
        name = self._class_of if isinstance(self._class_of, str) else self._class_of(request)
        if name is None:
            return None
        left = seconds_left(values(request, HEADER)) if self._trust_deadline else None
        called = (name_of(values(request, REQUEST)) if self._trust_request else None) or new_name()
        return self._controller.begin(name, left, called, passed_on(lambda field: values(request, field), called))
