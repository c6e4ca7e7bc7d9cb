"""The module that every other one of the made-up project imports, and its tests."""

from __future__ import annotations

BASE = '''"""What every other module of the depot needs: amounts as text, checks, dates as numbers."""

from __future__ import annotations

CENTS = 100
"""Cents in one unit of money."""

LONGEST_NAME = 40


def fmt(amount: int) -> str:
    """Return an amount of cents as text with two places, such as "12.50"."""
    sign = "-" if amount < 0 else ""
    whole, cents = divmod(abs(amount), CENTS)
    return f"{sign}{whole}.{cents:02d}"


def chk_pos(amount: int, name: str) -> int:
    if amount < 0:
        raise ValueError(f"{name} is {amount}, and must not be negative")
    return amount


def short(name: str) -> str:
    """Return a name that fits into one column."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "~"


def day_number(year: int, month: int, day: int) -> int:
    """Return a number that grows by one a day; only differences of it mean anything."""
    shifted = year - 1 if month < 3 else year
    moved = month + 9 if month < 3 else month - 3
    days = 365 * shifted + shifted // 4 - shifted // 100 + shifted // 400
    return days + (moved * 306 + 5) // 10 + day - 1


def week_day(number: int) -> int:
    return (number + 2) % 7


def steps(amount: int, size: int) -> int:
    whole = amount // size
    return whole if whole * size == amount else whole + 1
'''

BASE_TEST = """import pytest

from depot.base import chk_pos, day_number, fmt, short, steps


def test_fmt():
    assert fmt(1_250) == "12.50"
    assert fmt(-5) == "-0.05"


def test_chk_pos():
    assert chk_pos(4, "price") == 4
    with pytest.raises(ValueError, match="price is -4"):
        chk_pos(-4, "price")


def test_day_number():
    assert day_number(2024, 3, 1) - day_number(2024, 2, 28) == 2


def test_short():
    assert len(short("x" * 90)) == 40


def test_steps():
    assert (steps(10, 5), steps(11, 5)) == (2, 3)
"""
