"""A program that writes to a ledger together with others: `writer.py FILE SESSION NAME COUNT`."""

from __future__ import annotations

import sys

from agentkit.ledger import Ledger, LedgerError
from agentkit.messages import user


def main(path: str, session: str, name: str, count: int) -> int:
    """Append `count` messages; who has been overtaken reads on and tries again. Return how often that was."""
    overtaken = 0
    with Ledger(path, session, wait=30) as ledger:
        for n in range(count):
            while True:
                try:
                    ledger.append(user(f"{name} {n}"))
                    break
                except LedgerError as error:
                    if error.kind != "conflict":
                        raise
                    overtaken += 1
                    ledger.refresh()
    return overtaken


if __name__ == "__main__":
    file, session, name, count = sys.argv[1:]
    print(main(file, session, name, int(count)))
