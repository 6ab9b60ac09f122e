"""The declaration of a class of requests, and the errors of a wrong declaration.

Names, ranges and defaults are the gateway's (`run_min`, `run_max`; `alpha`, `low`, `high` and
`interval` of the policy `loss`), so that a class means the same inside the application as in front
of it. A wrong setting is an error when the class is created, because a wrong threshold would show
only under overload.
"""

from dataclasses import dataclass
from typing import Optional

# One hour, which is the gateway's limit as well.
HOUR = 3600.0


class SettingError(ValueError):
    """An invalid setting. It names the field and the values."""


@dataclass(frozen=True)
class Class:
    """A class of requests that can be terminated. Times are in seconds."""

    name: str
    #: The time for which every request may run: none is terminated earlier (LB).
    run_min: float
    #: The maximum run time. The answer to a longer request is useless to its client (UB).
    run_max: float
    #: The exponent of the curve by which the threshold falls with the loss: 1 is a straight line.
    alpha: float = 4.0
    #: The loss up to which a request may run for `run_max`.
    low: float = 0.05
    #: The loss from which on a request may only run for `run_min`.
    high: float = 0.15
    #: The period over which the loss is counted.
    interval: float = 10.0
    #: The time after which clients of terminated requests may retry; None means `interval`.
    retry_after: Optional[float] = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SettingError(f"name is {self.name!r}, and must be a text that is not empty")
        self._lies("run_min", 0.001, HOUR)
        self._lies("run_max", 0.001, HOUR)
        self._lies("alpha", 0, 100)
        self._lies("low", 0, 1)
        self._lies("high", 0, 1)
        self._lies("interval", 0.1, HOUR)
        if self.retry_after is not None:
            self._lies("retry_after", 0, HOUR)
        if self.run_min > self.run_max:
            raise self._error(f"run_min {self.run_min} must not be above run_max {self.run_max}")
        if self.low >= self.high:
            raise self._error(f"low {self.low} must be below high {self.high}")

    def granted(self, p: float) -> float:
        """Return the threshold in seconds for the loss `p`: LB + F(p)(UB - LB), paper 2, SERT §3.2.
        """
        if p <= self.low:
            return self.run_max
        if p >= self.high:
            return self.run_min
        part = ((self.high - p) / (self.high - self.low)) ** self.alpha
        return self.run_min + part * (self.run_max - self.run_min)

    def come_again(self) -> float:
        """Return the number of seconds after which the client of a terminated request may retry."""
        return self.interval if self.retry_after is None else self.retry_after

    def _lies(self, field: str, least: float, most: float) -> None:
        value = getattr(self, field)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # This condition also rejects NaN.
        if not is_number or not least <= value <= most:
            raise self._error(f"{field} is {value!r}, and must be from {least} to {most}")

    def _error(self, text: str) -> SettingError:
        return SettingError(f"class {self.name}: {text}")
