from os import PathLike
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Type, TypeVar, Union

I = TypeVar("I")
O = TypeVar("O")

class Refused(Exception):
    """The error of a request that gets no turn."""

class UnknownLevel(Refused):
    """The pool has no level of this name."""

class QueueFull(Refused):
    """The queue of the level is full."""

class TimedOut(Refused):
    """The request got no turn within its timeout."""

class Closed(Refused):
    """The pool is closed."""

class NotBelieved(Exception):
    """The field is not a currently valid statement of the gateway."""

class Gateway:
    """The keys of the gateway in front, which signs a request's level.

    It is safe for use by several threads.
    """

    def __init__(self, key_file: Union[str, PathLike[str]]) -> None:
        """Read the gateway's `levels.key_file`, and again after a key rotation.

        Raise OSError if it cannot be read, or if every user may read it; ValueError if it holds no
        keys.
        """

    def level(self, field: Union[str, bytes]) -> str:
        """Return the level that the field names.

        Raise NotBelieved, with the reason, if it is not valid. Treat such a request as one without
        the field.
        """

class Request:
    """A turn in a pool. One thread at a time may use it, and it may be another each time."""

    @property
    def level(self) -> str:
        """The name of its level."""

    def map(self, fn: Callable[[I], O], items: Iterable[I]) -> List[O]:
        """Return `[fn(item) for item in items]`, computed in parallel.

        If calls raise, the others run to their end; then the first exception is raised, and the
        request has failed. Raise RuntimeError if its tasks run already, or if it has ended.
        """

    def parallel_for(self, n: int, fn: Callable[[int], object]) -> None:
        """Call `fn` with every number below `n`, in parallel.

        Exceptions are handled as in `map`.
        """

    def fail(self) -> None:
        """Count the request as failed when it ends."""

    def end(self) -> None:
        """Give the slot to the next request.

        `with` does it as well; further calls have no effect.
        """

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
