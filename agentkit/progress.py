"""How far long work has got: a bar in the terminal, or whoever wants to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = bool | Callable[[int], Any]
"""True shows a bar; a function is called with how many pieces are done; False says nothing."""


@contextmanager
def bar(progress: Progress, total: int, name: str, unit: str = "replays") -> Iterator[Callable[[int], Any]]:
    """Give a function that is called with how many pieces more are done, of `total`."""
    if progress is True:
        from tqdm import tqdm

        with tqdm(total=total, unit=f" {unit}", desc=name) as shown:
            yield shown.update
        return
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        if callable(progress):
            progress(done)

    yield advance
