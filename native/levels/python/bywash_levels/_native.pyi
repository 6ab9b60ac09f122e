from os import PathLike
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Type, TypeVar, Union

I = TypeVar("I")
O = TypeVar("O")

class Refused(Exception):
    """A request gets no turn."""

class UnknownLevel(Refused):
    """There is no such level."""

class QueueFull(Refused):
    """As many of the level wait as may."""

class TimedOut(Refused):
    """No turn came in time."""

class Closed(Refused):
    """The pool is closed."""

class NotBelieved(Exception):
    """The gateway has not said that now."""

class Gateway:
    """The keys of the gateway in front, which signs what level a request has. Any threads may use it at once."""

    def __init__(self, key_file: Union[str, PathLike[str]]) -> None:
        """Reads the gateway's `levels.key_file`, and again when its keys were exchanged.

        OSError: it cannot be read, or every user may. ValueError: it holds no keys.
        """

    def level(self, field: Union[str, bytes]) -> str:
        """The level that the field names; NotBelieved, and why. Treat such a request as one without the field."""

class Request:
    """A turn in a pool. One thread at a time may use it, whichever that is."""

    @property
    def level(self) -> str:
        """The name of its level."""

    def map(self, fn: Callable[[I], O], items: Iterable[I]) -> List[O]:
        """`[fn(item) for item in items]`, side by side.

        If calls raise, the others run to their end; then the first's exception is raised, and the request has
        failed. RuntimeError: its tasks run already, or it has ended.
        """

    def parallel_for(self, n: int, fn: Callable[[int], object]) -> None:
        """Calls `fn` with every number below `n`, side by side. Else as `map`."""

    def fail(self) -> None:
        """Counts it as failed when it ends."""

    def end(self) -> None:
        """Its slot goes to the next. Once is enough, and `with` does it."""

    def __enter__(self) -> Request: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...

class Pool:
    def __init__(
        self,
        threads: Optional[int],
        levels: List[Tuple[str, int, int, float, float, int]],
        ratio: Optional[Tuple[str, str, float]],
        percentile: Optional[Tuple[str, float, float]],
        parity: Optional[int],
    ) -> None: ...
    def request(self, level: str, timeout: Optional[float], signals: bool) -> Request: ...
    def submit(self, level: str, run: Callable[[Optional[Request]], bool]) -> None: ...
    def close(self) -> None: ...
    def wait_until_empty(self) -> None: ...
    def stats(self) -> Tuple[List[Dict[str, Any]], Optional[Tuple[str, Optional[float], float]]]: ...

def leave() -> None: ...
