"""Small tables: HTML for the notebook, aligned columns for a terminal, the same cells in both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from agentkit.events import Billed
from agentkit.figures.picture import columns as text_columns
from agentkit.figures.rows import HasBills, bills_of
from agentkit.messages import Usage
from agentkit.tokens import relative_error

Value = str | int | float | None
_NUMBER = re.compile(r"[+−-]?[\d,]+(\.\d+)?[%×]?|–")


@dataclass(frozen=True)
class Table:
    """A table of finished texts. `right` says for each column whether it is set to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]
    caption: str = ""
    total: bool = False
    """The last row is a sum and is set apart."""

    @property
    def html(self) -> str:
        """Return a `<table>` with inline styles only, which JupyterLab's sanitiser keeps."""
        caption = f'<caption style="text-align:left">{escape(self.caption)}</caption>' if self.caption else ""
        head = "".join(self._cell("th", name, i) for i, name in enumerate(self.columns))
        rows = "".join(f"<tr>{self._row(number)}</tr>" for number in range(len(self.rows)))
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    @property
    def text(self) -> str:
        """Return the table in aligned columns."""
        lines = [self.columns, *self.rows]
        wide = [max(text_columns(line[i]) for line in lines) for i in range(len(self.columns))]
        rule = "  ".join("-" * w for w in wide)
        body = [self._line(line, wide) for line in lines]
        body.insert(1, rule)
        if self.total:
            body.insert(len(body) - 1, rule)
        return "\n".join([self.caption, *body] if self.caption else body)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}

    def __repr__(self) -> str:
        return self.text

    def _row(self, number: int) -> str:
        sum_up = self.total and number == len(self.rows) - 1
        return "".join(self._cell("td", value, i, sum_up) for i, value in enumerate(self.rows[number]))

    def _cell(self, tag: str, value: str, column: int, bold: bool = False) -> str:
        side = "right" if self.right[column] else "left"
        scope = ' scope="col"' if tag == "th" else ""
        text = f"<b>{escape(value)}</b>" if bold else escape(value)
        return f'<{tag}{scope} style="text-align:{side}">{text}</{tag}>'

    def _line(self, cells: Sequence[str], wide: Sequence[int]) -> str:
        gaps = [" " * (width - text_columns(cell)) for cell, width in zip(cells, wide, strict=True)]
        parts = zip(cells, gaps, self.right, strict=True)
        return "  ".join(gap + cell if right else cell + gap for cell, gap, right in parts).rstrip()


def table(rows: Sequence[Sequence[Value]], columns: Sequence[str], *, caption: str = "", total: bool = False) -> Table:
    """Return a table of `rows`.

    Whole numbers get thousands separators, others one decimal, None becomes a dash; a column of numbers is set to the right.
    With `total` the last row is a sum. Raises `ValueError` when a row has not one value for each column.
    """
    for number, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(
                f"row {number} has {len(row)} values, there are {len(columns)} columns; give one value for each"
            )
    cells = tuple(tuple(_shown(value) for value in row) for row in rows)
    judged = cells[:-1] if total else cells  # the label of the sum says nothing about its column
    right = tuple(_is_number_column([row[i] for row in judged]) for i in range(len(columns)))
    return Table(tuple(columns), cells, right, caption, total)


def _shown(value: Value) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return (f"{value:,}" if isinstance(value, int) else f"{value:,.1f}").replace("-", "−")


def _is_number_column(cells: Sequence[str]) -> bool:
    return bool(cells) and all(_NUMBER.fullmatch(cell) for cell in cells if cell)


def bill_table(source: HasBills | Sequence[Billed], *, caption: str = "") -> Table:
    """Return estimate and bill of every request, in tokens, and their sums. `error` is estimate against bill."""
    bills = bills_of(source)
    written = any(b.usage and b.usage.cache_write for b in bills)
    names = ["request", "estimate", "bill", "error", "cache read", *(["cache write"] if written else []), "fresh", "output"]
    rows = [[_bill_row(b)[name] for name in names] for b in bills]
    total = sum(b.usage is not None for b in bills) > 1
    if total:
        rows.append([_sum(bills)[name] for name in names])
    return table(rows, names, caption=caption, total=total)


def _bill_row(bill: Billed) -> dict[str, Value]:
    row: dict[str, Value] = dict.fromkeys(("bill", "error", "cache read", "cache write", "fresh", "output"))
    if usage := bill.usage:
        row = {"bill": usage.prompt, "error": percent(relative_error(bill.estimate, usage.prompt))}
        row |= {"cache read": usage.cache_read, "cache write": usage.cache_write}
        row |= {"fresh": usage.fresh, "output": usage.output}
    return {"request": bill.number, "estimate": bill.estimate, **row}


def _sum(bills: Sequence[Billed]) -> dict[str, Value]:
    """Sum the requests that have both an estimate and a bill, as if they were one."""
    billed = [b for b in bills if b.usage]
    usage = sum((b.usage for b in billed if b.usage), Usage())
    whole = replace(billed[0], estimate=sum(b.estimate for b in billed), usage=usage)
    return {**_bill_row(whole), "request": "sum"}


def percent(share: float) -> str:
    """Return a signed share as whole per cent, such as `+12%`."""
    text = f"{share:+.0%}".replace("-", "−")
    return text if text[1:] != "0%" else "0%"
