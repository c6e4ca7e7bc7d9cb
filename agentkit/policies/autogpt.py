"""AutoGPT of April 2023 as in its source: a small window filled newest first, a clock and ten memories in the head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentkit.messages import Message, system
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch, Round
from agentkit.policies.filling import FOR_THE_ANSWER, TOKEN_LIMIT, clock, fill, time_message
from agentkit.policies.ranking import Ranker, ranker
from agentkit.policies.viewing import Viewing
from agentkit.tokens import TextEstimator

QUERY, TOP = 9, 10
MOST_BASE = 2_500
PRIMING = 3


@dataclass(frozen=True)
class Quirks:
    """What the source does and hardly anybody wants; all of it happens unless switched off.

    `stops`: the first message that is too large ends the filling, even if older ones would fit. `priming`: each message is
    counted with the 3 tokens that a whole request has once. `no_errors`: rounds with an error are never remembered.
    `time`: the time stands behind the system prompt, another one in every request.
    """

    stops: bool = True
    priming: bool = True
    no_errors: bool = True
    time: bool = True


class AutoGpt(Viewing):
    """Fill the window newest first up to limit − 1,000; put the time and the 10 most similar rounds into the head.

    Source: AutoGPT v0.2.1 (97d62cc1, 2023-04-16), autogpt/chat.py, memory/local.py. Every round is remembered, not only what
    left the window; the last 9 messages are only the query. While system prompt, time and memories have more than 2,500
    tokens the least similar memory goes. There a longer system prompt makes that loop endless; here it ends.

    Simplified: `ranking` (BM25) stands in for ada-002; the newest user message is the user input that is sent in any case,
    and stays at its place; so does what waits for an answer. `tell_time` invents a time from the length of the log.
    """

    name = "AutoGPT 2023-04"
    year, source = "2023-04", "AutoGPT v0.2.1 (97d62cc1)"
    note = "filled newest first to 3,000 tokens; a clock and 10 memories in the head"

    def __init__(
        self,
        token_limit: int = TOKEN_LIMIT,
        ranking: Ranker | None = None,
        quirks: Quirks | None = None,
        *,
        tell_time: Callable[[int], str] = clock,
        estimator: TextEstimator | None = None,
    ) -> None:
        super().__init__(estimator)
        self.token_limit, self.ranking, self.quirks = token_limit, ranking or ranker(), quirks or Quirks()
        self.tell_time = tell_time
        self._memories: dict[tuple[str, ...], str] = {}
        self._counted: dict[str, int] = {}

    def decide(self, log: object, situation: Situation) -> None:
        """Record nothing: the view follows from the messages alone."""

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return head, time, memories, and what fits."""
        first = [*branch.head]
        if self.quirks.time:
            first.append(time_message(len(branch.body), self.tell_time))
        memories = self._relevant(branch)
        used = self._count(first) + self._size("")
        while memories and used + sum(self._size(text) for text in memories) > MOST_BASE:
            memories.pop()
        base = [*first, _reminder(memories)] if memories else first
        room = self.token_limit - FOR_THE_ANSWER - self._count(base)
        chosen = fill(branch.body, self._one, room, stops=self.quirks.stops)
        return [*base, *(branch.body[i] for i in chosen)]

    def _relevant(self, branch: Branch) -> list[str]:
        texts = [text for part in branch.rounds if (text := self._memory(branch.body, part))]
        query = "\n".join(m.content for m in branch.body[-QUERY:])
        return [texts[i] for i in self.ranking.best(query, texts, TOP)]

    def _memory(self, body: Sequence[Message], part: Round) -> str:
        """Return what is remembered of a round: reply, result, and what the user said to it."""
        reply, results = body[part.start], body[part.start + 1 : part.stop]
        after = body[part.stop] if part.stop < len(body) else None
        if reply.role != "assistant" or after is None:
            return ""
        if self.quirks.no_errors and any(m.is_error for m in results):
            return ""
        heard = after if after.role == "user" else None
        key = (*(m.id for m in body[part.start : part.stop]), heard.id if heard else "")
        if key not in self._memories:
            calls = "".join(f" {c.name}({c.arguments})" for c in reply.tool_calls)
            result = "\n".join(m.content for m in results)
            feedback = heard.content if heard else ""
            text = f"Assistant Reply: {reply.content}{calls}\nResult: {result}\nHuman Feedback: {feedback}"
            self._memories[key] = text
        return self._memories[key]

    def _size(self, memory: str) -> int:
        """Return the tokens of a memory as it is written into the list, counted once; of nothing: the frame around them."""
        if memory not in self._counted:
            text = repr(memory) + ", " if memory else _reminder([]).content
            self._counted[memory] = self.sizes.estimator.text(text)
        return self._counted[memory]

    def _one(self, message: Message) -> int:
        return self.sizes(message) + (PRIMING if self.quirks.priming else 0)

    def _count(self, messages: Sequence[Message]) -> int:
        return self.sizes.sum(messages) + PRIMING


def _reminder(memories: Sequence[str]) -> Message:
    return system(f"This reminds you of these events from your past:\n{list(memories)}\n\n")
