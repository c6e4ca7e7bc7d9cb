"""The figures of the weekly report: small statistics over a list of prices."""

import math


def mean(values: list[float]) -> float:
    if not values:
        raise ValueError("mean of no values")
    return sum(values) / len(values)


def median(values: list[float]) -> float:
    if not values:
        raise ValueError("median of no values")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 0:
        return (ordered[middle] + ordered[middle + 1]) / 2
    return ordered[middle]


def spread(values: list[float]) -> float:
    return max(values) - min(values)


def percentile(values: list[float], percent: float) -> float:
    """Nearest rank: the smallest value that at least `percent` % of all values do not exceed."""
    if not 0 < percent <= 100:
        raise ValueError(f"percent must be above 0 and at most 100, got {percent}")
    ordered = sorted(values)
    rank = math.ceil(percent / 100 * len(ordered))
    return ordered[rank - 1]


def running_total(values: list[float]) -> list[float]:
    totals, total = [], 0.0
    for value in values:
        total += value
        totals.append(total)
    return totals
