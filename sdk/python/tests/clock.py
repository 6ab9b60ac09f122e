"""A clock that the test advances."""

import threading


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self.now

    def go(self, seconds: float) -> None:
        with self._lock:
            self.now += seconds
