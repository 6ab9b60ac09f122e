"""Summary figures of several values. For a single median, use `statistics.median`."""

import statistics
from collections.abc import Iterable


def quantile(values: Iterable[float], share: float) -> float:
    """Returns the value below which a share `share` of the values lies, or the largest value."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def medians(rows: Iterable[Iterable[float]]) -> list[float]:
    """Returns the median of each column."""
    return [statistics.median(column) for column in zip(*rows, strict=True)]
