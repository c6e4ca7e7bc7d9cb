"""One answer of the OpenAI dialect, put together from its pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.messages import FinishReason, Message, Opaque, Reply
from agentkit.providers import usage
from agentkit.providers.base import ProviderError, ReasoningDelta, TextDelta
from agentkit.providers.openai_wire import EXTRA
from agentkit.providers.text import Pieces
from agentkit.providers.tool_calls import ToolCalls

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "refused",
    "model_context_window_exceeded": "overflow",
}

_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""A server may send the same thinking in two of them; the first that is not empty counts."""


class Assembly:
    """Takes in the chunks of one answer and turns them into deltas and, at the end, into a `Reply`.

    `started`: a piece of the answer has come. `finish` is None until the server gave a reason. `ended` is set by whoever
    sees the end marker.
    """

    def __init__(self, issuer: str) -> None:
        self.finish: FinishReason | None = None
        self.started = self.ended = False
        self._issuer = issuer
        self._refused = False
        self._text, self._reasoning = Pieces(), Pieces()
        self._calls = ToolCalls()
        self._usage: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """Return the text that has arrived."""
        return str(self._text)

    def feed(self, data: object) -> Iterator[TextDelta | ReasoningDelta]:
        """Take in one chunk, or one whole answer that was not streamed."""
        if not isinstance(data, Mapping):
            return
        self._usage = usage.update(self._usage, data.get("usage"))
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping) and choice.get("index") in (0, None):
                yield from self._choice(choice)

    def reply(self) -> Reply:
        """Return the whole answer. In one that ended with `length` the last call may be cut off: do not run it.

        Raises `ProviderError` (`broken_stream`, with the partial text) when the end is missing, nothing came at all, or a
        call has no name.
        """
        if not self.started:
            raise self._broken("the server sent no answer")
        if self.finish is None and not self.ended:
            raise self._broken("the answer broke off before its end")
        try:
            calls, extras = self._calls.finished(cut=self.finish == "length")
        except ValueError as fault:
            raise self._broken(f"the server sent {fault}") from None
        opaque = (Opaque(self._issuer, {EXTRA: extras}),) if extras else ()
        message = Message("assistant", self.text, tool_calls=calls, reasoning=str(self._reasoning), opaque=opaque)
        return Reply(message, usage.settled(self._usage), self._reason(bool(calls)))

    def _choice(self, choice: Mapping[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        self._usage = usage.update(self._usage, choice.get("usage"))  # Moonshot puts it here
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, Mapping):
            yield from self._delta(delta, whole=False)
        elif isinstance(message, Mapping):
            yield from self._delta(message, whole=True)
        if reason := choice.get("finish_reason"):
            self.started = True
            self.finish = _FINISH.get(str(reason), "other")

    def _delta(self, delta: Mapping[str, Any], *, whole: bool) -> Iterator[TextDelta | ReasoningDelta]:
        self.started = True
        text, thinking = _split(delta.get("content"))
        named = (delta[f] for f in _REASONING_FIELDS if isinstance(delta.get(f), str) and delta[f])
        if shown := self._reasoning.add(next(named, "") or thinking):
            yield ReasoningDelta(shown)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused, text = True, text + refusal
        if shown := self._text.add(text):
            yield TextDelta(shown)
        if isinstance(delta.get("tool_calls"), list):
            self._calls.add(delta["tool_calls"], whole=whole)
        elif isinstance(delta.get("function_call"), Mapping):  # the old form: one call, no id
            self._calls.add([{"index": 0, "function": delta["function_call"]}])

    def _reason(self, has_calls: bool) -> FinishReason:
        """Settle the reason: many servers say `stop` when they call a tool, or only mark the end."""
        if self.finish not in (None, "stop", "tool_calls"):
            return self.finish
        if has_calls:
            return "tool_calls"
        return "refused" if self._refused else "stop"

    def _broken(self, text: str) -> ProviderError:
        return ProviderError(f"{text}; try again", kind="broken_stream", partial=self.text)


def _split(content: object) -> tuple[str, str]:
    """Return text and thinking of a `content`: a string, null, or a list of parts (Mistral's thinking models)."""
    if isinstance(content, str):
        return content, ""
    text = thinking = ""
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and part.get("type") == "thinking":
            thinking += _split(part.get("thinking"))[0]
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            text += part["text"]
    return text, thinking
