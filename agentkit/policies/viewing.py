"""What the policies share: a view made once for each state of the log, sizes counted once, summary calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from agentkit.log import Log
from agentkit.messages import Message, Reply, Request, Usage
from agentkit.policies.branch import Branch, Reader
from agentkit.providers.base import Provider, ProviderError, complete
from agentkit.settle import Settler
from agentkit.tokens import PerScript, TextEstimator


class Viewing:
    """A policy whose view is `settle(self.messages(branch))`.

    The last view is kept: a log only grows, so the same log of the same length has the same view. `year`, `source` and
    `note` are for tables: when the strategy was current, where it was read, what it does in one sentence.
    """

    name: str = ""
    year: ClassVar[str] = ""
    source: ClassVar[str] = ""
    note: ClassVar[str] = ""

    def __init__(self, estimator: TextEstimator | None = None) -> None:
        self.sizes = Sizes(estimator or PerScript())
        self._settler = Settler()
        self._reader = Reader()
        self._seen: tuple[Log, int, tuple[Message, ...]] | None = None

    def branch(self, log: Log) -> Branch:
        """Return the present branch of `log`."""
        return self._reader.read(log)

    def view(self, log: Log) -> tuple[Message, ...]:
        """Return the messages that the model sees."""
        if self._seen is None or self._seen[0] is not log or self._seen[1] != len(log):
            branch = self.branch(log)
            self._seen = log, len(log), self._settler.settle(self.messages(branch))
        return self._seen[2]

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return the messages of the view, before they are settled."""
        raise NotImplementedError


class Sizes:
    """Tokens of messages, each counted once (the very same object is not counted again)."""

    def __init__(self, estimator: TextEstimator) -> None:
        self.estimator = estimator
        self._known: dict[int, tuple[Message, int]] = {}

    def __call__(self, message: Message) -> int:
        known = self._known.get(id(message))
        if known is None or known[0] is not message:
            known = self._known[id(message)] = message, self.estimator.message(message)
        return known[1]

    def sum(self, messages: Sequence[Message]) -> int:
        """Return the tokens of `messages`."""
        return sum([self(m) for m in messages])


@dataclass(frozen=True)
class Answer:
    """What a call came to: the text, or why it cannot be used (`fault`). It is paid in either case.

    `overflow`: what was to be read does not fit into the model's window.
    """

    text: str = ""
    usage: Usage | None = None
    fault: str = ""
    overflow: bool = False


def ask(provider: Provider, request: Request) -> Answer:
    """Send `request` and return its answer. Never raises for a failed call."""
    try:
        reply = complete(provider, request)
    except ProviderError as error:
        return Answer(fault=f"the summary call failed: {error}", overflow=error.kind == "overflow")
    except OSError as error:  # a provider that forgot to translate a broken connection
        return Answer(fault=f"the summary call failed: {error}")
    fault = _fault(reply, request.max_output)
    return Answer("" if fault else reply.message.content.strip(), reply.usage, fault, reply.finish == "overflow")


def _fault(reply: Reply, most: int | None) -> str:
    if reply.message.tool_calls:
        return "the model called a tool instead of writing"
    if reply.finish not in ("stop", "other"):
        return f"the answer is not whole ({reply.finish})"
    # An estimate, so there is room for its error; a summary of twice the length that was allowed is none.
    if most is not None and (size := PerScript().text(reply.message.content)) > 2 * most:
        return f"the answer is too long: about {size:,} tokens, {most:,} were allowed"
    return "" if reply.message.content.strip() else "the answer is empty"


def added(usages: Sequence[Usage | None]) -> Usage | None:
    """Return the sum of the bills; None when there is none."""
    known = [usage for usage in usages if usage is not None]
    return sum(known[1:], known[0]) if known else None
