"""The building parts of the made-up project: functions in many forms, each with a test of its own.

`$thing`, `$things` and `$unit` are filled in from `subjects.py`; `$LOW`, `$HIGH` and `$LIMIT` are constants of the module.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One function (or class) as source, and the body of a test for it."""

    source: str
    test: str = ""


PARTS: tuple[Part, ...] = (
    Part(
        '''
def total_$things(amounts: list[int]) -> int:
    """Add up the $things, in $unit."""
    total = 0
    for amount in amounts:
        total += chk_pos(amount, "$thing")
    return total
''',
        "assert total_$things([3, 4, 5]) == 12",
    ),
    Part(
        '''
def average_$thing(amounts: list[int]) -> int:
    """Return the mean of the $things in whole $unit, 0 without any."""
    if not amounts:
        return 0
    return round(sum(amounts) / len(amounts))
''',
        "assert average_$thing([10, 20, 60]) == 30\n    assert average_$thing([]) == 0",
    ),
    Part(
        '''
def spread_of_$things(amounts: list[int]) -> int:
    """Return the difference between the largest and the smallest of the $things, in $unit."""
    return max(amounts) - min(amounts)
''',
        "assert spread_of_$things([4, 19, 7]) == 15",
    ),
    Part(
        '''
def capped_$thing(amount: int, used: int) -> int:
    """Return how much of `amount` still fits under the limit for ${things}, in $unit."""
    left = $LIMIT - used
    if left < 0:
        return 0
    return amount if amount < left else left
''',
        "assert capped_$thing(5, 0) == 5\n    assert capped_$thing(5, 10_000_000) == 0",
    ),
    Part(
        '''
def ${thing}_rate(amount: int) -> int:
    """Return the rate for one $thing in percent: small, middle or large."""
    if amount < $LOW:
        return 12
    if amount < $HIGH:
        return 9
    # Above the upper bound the rate no longer depends on the amount.
    return 5
''',
        "assert ${thing}_rate(0) == 12\n    assert ${thing}_rate(10_000_000) == 5",
    ),
    Part(
        '''
def ${thing}_after_discount(price: int, percent: int) -> int:
    """Return the price of a $thing when `percent` of it is taken off, rounded down for the customer."""
    discount = price * percent // 100
    return price - discount
''',
        "assert ${thing}_after_discount(1_000, 15) == 850",
    ),
    Part(
        '''
def late_fee_for_$thing(days: int, amount: int) -> int:
    """Return the fee in $unit when a $thing is `days` late; the first two days are free."""
    if days <= 2:
        return 0
    charged = days - 2
    fee = charged * amount // 50
    return fee if fee < $LIMIT else $LIMIT
''',
        "assert late_fee_for_$thing(2, 500) == 0\n    assert late_fee_for_$thing(4, 100) == 4",
    ),
    Part(
        '''
def ${thing}_check_digit(number: int) -> int:
    """Return the digit that is printed behind the number of a $thing, so that a slip of the pen is noticed."""
    mixed = (number * 7 + number // 10 * 3) ^ 21
    return mixed % 10
''',
        "assert 0 <= ${thing}_check_digit(1_234) <= 9",
    ),
    Part(
        '''
def parse_$thing(line: str) -> dict[str, object]:
    """Read one $thing from a line such as "name; 1200; owner". Raises `ValueError` for anything else."""
    parts = [part.strip() for part in line.strip().split(";")]
    if len(parts) != 3:
        raise ValueError(f"a $thing has 3 parts, not {len(parts)}: {line!r}")
    name, amount, owner = parts
    if not amount.isdigit():
        raise ValueError(f"the amount of a $thing is a whole number of $unit, not {amount!r}")
    return {"name": name, "amount": int(amount), "owner": owner}
''',
        'assert parse_$thing("north; 1200; depot")["amount"] == 1_200\n'
        '    with pytest.raises(ValueError, match="3 parts"):\n        parse_$thing("north; 1200")',
    ),
    Part(
        '''
def ${thing}_line(row: dict[str, object]) -> str:
    """Return one $thing as a line of a table: name, amount, owner."""
    name, owner = str(row["name"]), str(row["owner"])
    amount = fmt(int(row["amount"]))
    return f"{name:<24}{amount:>14}  {owner}"
''',
        'row = {"name": "north", "amount": 1_200, "owner": "depot"}\n    assert ${thing}_line(row).endswith("12.00  depot")',
    ),
    Part(
        '''
def ${things}_by_owner(rows: list[dict[str, object]]) -> dict[str, list[dict[str, object]]]:
    """Group the $things by their owner; the owners come sorted, the rows in the order given."""
    groups: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        groups.setdefault(str(row["owner"]), []).append(row)
    return {owner: groups[owner] for owner in sorted(groups)}
''',
        'rows = [{"owner": "b"}, {"owner": "a"}, {"owner": "b"}]\n'
        "    assert [len(group) for group in ${things}_by_owner(rows).values()] == [1, 2]",
    ),
    Part(
        '''
def largest_$things(rows: list[dict[str, object]], count: int = 3) -> list[str]:
    """Return the names of the largest $things, the largest first; equal ones by name."""
    ranked = sorted(rows, key=lambda row: (-int(row["amount"]), str(row["name"])))
    return [f"{row['name']} ({fmt(int(row['amount']))})" for row in ranked[:count]]
''',
        'rows = [{"name": "a", "amount": 100}, {"name": "b", "amount": 250}]\n'
        '    assert largest_$things(rows, 1) == ["b (2.50)"]',
    ),
    Part(
        '''
def shares_of_$thing(amount: int, weights: list[int]) -> list[int]:
    """Split a $thing by weight, in $unit; what rounding leaves over goes to the first shares, so nothing is lost."""
    whole = sum(weights)
    if whole <= 0:
        raise ValueError("the weights of a $thing add up to nothing")
    shares = [amount * weight // whole for weight in weights]
    for i in range(amount - sum(shares)):
        shares[i % len(shares)] += 1
    return shares
''',
        "assert shares_of_$thing(100, [1, 1, 1]) == [34, 33, 33]",
    ),
    Part(
        '''
def running_$things(amounts: list[int]) -> list[int]:
    """Return the sum of the $things after each of them, in $unit."""
    sums: list[int] = []
    for amount in amounts:
        before = sums[-1] if sums else 0
        sums.append(before + amount)
    return sums
''',
        "assert running_$things([1, 2, 3]) == [1, 3, 6]",
    ),
    Part(
        '''
def page_of_$things(rows: list[str], number: int) -> list[str]:
    """Return page `number` of the $things, counted from 1. Raises `ValueError` below that."""
    if number < 1:
        raise ValueError(f"pages are counted from 1, not {number}")
    start = (number - 1) * PAGE
    return rows[start : start + PAGE]
''',
        "assert page_of_$things([str(n) for n in range(99)], 2)[0] == str(PAGE)",
    ),
    Part(
        '''
def changed_$things(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """Say which $things are new, gone or different, one line each."""
    lines = []
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            lines.append(f"new: {name}, {fmt(after[name])}")
        elif name not in after:
            lines.append(f"gone: {name}")
        elif before[name] != after[name]:
            lines.append(f"{name}: {fmt(before[name])} -> {fmt(after[name])}")
    return lines
''',
        'assert changed_$things({"a": 1, "b": 2}, {"b": 2, "c": 5}) == ["gone: a", "new: c, 0.05"]',
    ),
    Part(
        '''
def ${thing}_histogram(amounts: list[int], width: int = $LOW) -> dict[int, int]:
    """Count the $things in steps of `width` $unit; a step without any is left out."""
    chk_pos(width, "width")
    counts: dict[int, int] = {}
    for amount in amounts:
        step = amount // width * width
        counts[step] = counts.get(step, 0) + 1
    return dict(sorted(counts.items()))
''',
        "assert ${thing}_histogram([1, 9, 12], 10) == {0: 2, 10: 1}",
    ),
    Part(
        '''
class ${Thing}Book:
    """The $things by name, with their amounts in $unit."""

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}
        self.closed = False

    def enter(self, name: str, amount: int) -> None:
        """Add `amount` to what is entered under `name`."""
        if self.closed:
            raise ValueError(f"the book is closed; {name} came too late")
        self.amounts[name] = self.amounts.get(name, 0) + chk_pos(amount, name)

    def strike(self, name: str) -> int:
        """Take out what is entered under `name` and return it; 0 when there is nothing."""
        return self.amounts.pop(name, 0)

    def balance(self) -> int:
        """Return the sum of everything, in $unit."""
        return sum(self.amounts.values())

    def close(self) -> list[str]:
        """Close the book and return its lines."""
        self.closed = True
        return [f"{name}: {fmt(amount)}" for name, amount in sorted(self.amounts.items())]
''',
        'book = ${Thing}Book()\n    book.enter("a", 250)\n    book.enter("a", 50)\n'
        '    assert book.balance() == 300\n    assert book.close() == ["a: 3.00"]',
    ),
)

SUMMARY = Part(
    '''
def summary(rows: list[dict[str, object]]) -> list[str]:
    """Return the $things in short: one line each, and the sum below."""
    lines = [f"{row['name']}: {fmt(int(row['amount']))}" for row in rows]
    whole = sum(int(row["amount"]) for row in rows)
    return [*lines, f"all $things: {fmt(whole)}"]
''',
    'assert summary([{"name": "a", "amount": 150}])[-1] == "all $things: 1.50"',
)
"""In every module under the same name."""
