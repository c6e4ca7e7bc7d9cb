"""One answer of the Messages API, put together from its events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agentkit.messages import FinishReason, Message, Opaque, Reply, ToolCall, Usage
from agentkit.providers import usage
from agentkit.providers.anthropic_blocks import PARAGRAPH, kept_of
from agentkit.providers.base import ProviderError, ReasoningDelta, TextDelta
from agentkit.providers.text import Pieces, paired
from agentkit.providers.tool_calls import distinct_ids

_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "overflow",
    "refusal": "refused",
}

PAUSED = "pause_turn"
_JOINED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""A kind of delta, and the field of its block that it adds to."""


class Assembly:
    """Takes in the events of one answer and turns them into deltas and, at the end, into a `Reply`.

    `prefix` names what the answer stands behind. An answer may pause (`paused`); after `resume` what comes is more of it.
    """

    def __init__(self, issuer: str, prefix: str = "") -> None:
        self.finish: FinishReason | None = None
        self.started = self.ended = self.paused = False
        self._issuer, self._prefix = issuer, prefix
        self._text, self._reasoning = Pieces(), Pieces()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._json: dict[int, str] = {}
        self._unknown: list[Any] = []
        self._usage: dict[str, Any] = {}
        self._paid: Usage | None = None
        self._first = 0

    @property
    def text(self) -> str:
        """Return the text that has arrived."""
        return str(self._text)

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """Return the blocks so far, in order; the input of a call that is cut off is an empty object."""
        return [self._whole(i) for i in sorted(self._blocks)]

    def feed(self, data: object) -> Iterator[TextDelta | ReasoningDelta]:
        """Take in one event, or one whole answer that was not streamed. Events of unknown types are passed over."""
        if not isinstance(data, Mapping):
            return
        kind = data.get("type")
        if kind == "message_start":
            self._take_usage(data.get("message"))
            self.started = True
        elif kind == "message_delta":
            self._take_usage(data)
            self._stop(data.get("delta"))
        elif kind == "message_stop":
            self.ended = True
        elif kind == "message":
            yield from self._whole_answer(data)
        elif kind in ("content_block_start", "content_block_delta"):
            yield from self._piece(data)

    def reply(self) -> Reply:
        """Return the whole answer. In one that ended with `length` the last call may be cut off: do not run it.

        Raises `ProviderError` (`broken_stream`, with the partial text) when the end is missing, nothing came at all, or a
        call has no name.
        """
        if not self.started:
            raise self._broken("the server sent no answer")
        if self.finish is None and not self.ended:
            raise self._broken("the answer broke off before its end")
        calls = tuple(self._calls())
        message = Message("assistant", self.text, tool_calls=calls, reasoning=str(self._reasoning))
        kept = kept_of(message, self.blocks, self._prefix, self._unknown)
        finish = self.finish or "stop"
        return Reply(
            replace(message, opaque=(Opaque(self._issuer, kept),) if kept else ()),
            self._bill(),
            "tool_calls" if calls and finish == "stop" else finish,
        )

    def resume(self) -> None:
        """Go on with an answer that paused: the next events belong to it, and the next bill is added."""
        self._paid, self._usage = self._bill(), {}
        self._first = max(self._blocks, default=-1) + 1
        self.finish, self.ended, self.paused = None, False, False

    def _whole_answer(self, data: Mapping[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        self._take_usage(data)
        self.started = self.ended = True
        content = data.get("content")
        for i, block in enumerate(content if isinstance(content, list) else ()):
            yield from self._piece({"type": "content_block_start", "index": i, "content_block": block})
        self._stop(data)

    def _take_usage(self, holder: object) -> None:
        fields = holder.get("usage") if isinstance(holder, Mapping) else None
        self._usage = usage.update(self._usage, fields)

    def _stop(self, delta: object) -> None:
        reason = delta.get("stop_reason") if isinstance(delta, Mapping) else None
        if reason:
            self.started, self.paused = True, reason == PAUSED
            self.finish = _FINISH.get(str(reason), "other")

    def _piece(self, data: Mapping[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        self.started = True
        index = data.get("index")
        i = self._first + (index if isinstance(index, int) else max(0, len(self._blocks) - 1 - self._first))
        if isinstance(block := data.get("content_block"), Mapping):
            yield from self._open(i, {field: value for field, value in block.items() if value is not None})
        elif isinstance(delta := data.get("delta"), Mapping):
            yield from self._grow(i, delta)

    def _open(self, i: int, block: dict[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        self._blocks[i] = block
        for field in ("text", "thinking"):
            if block.get("type") == field:
                first, block[field] = block.get(field), ""
                yield from self._joined(i, field, first if isinstance(first, str) else "")

    def _grow(self, i: int, delta: Mapping[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        kind = str(delta.get("type"))
        field = _JOINED.get(kind, "")
        if field and isinstance(delta.get(field), str):
            self._blocks.setdefault(i, {"type": "text" if field == "text" else "thinking"})
            yield from self._joined(i, field, delta[field])
        elif kind == "input_json_delta" and isinstance(delta.get("partial_json"), str):
            self._json[i] = self._json.get(i, "") + delta["partial_json"]
        else:
            self._unknown.append(dict(delta))

    def _joined(self, i: int, field: str, piece: str) -> Iterator[TextDelta | ReasoningDelta]:
        """Add `piece` to a field of block `i`. The first piece of a further block starts a paragraph."""
        block = self._blocks[i]
        new = bool(piece) and not block.get(field)
        block[field] = str(block.get(field) or "") + piece
        if field == "signature":
            return
        shown, event = (self._text, TextDelta) if field == "text" else (self._reasoning, ReasoningDelta)
        if visible := shown.add((PARAGRAPH if new and str(shown) else "") + piece):
            yield event(visible)

    def _calls(self) -> Iterator[ToolCall]:
        found = [(i, b) for i, b in sorted(self._blocks.items()) if b.get("type") == "tool_use"]
        if not all(block.get("name") for _, block in found):
            raise self._broken("the server sent a tool call without a name")
        ids = distinct_ids([str(block.get("id") or "") for _, block in found])
        for call_id, (i, block) in zip(ids, found, strict=True):
            yield ToolCall(call_id, str(block["name"]), self._arguments(i, block))

    def _arguments(self, i: int, block: Mapping[str, Any]) -> str:
        """Return the arguments as they came; a call without pieces has those of its start, which are none: `{}`."""
        pieces = self._json.get(i, "")
        return paired(pieces) if pieces.strip() else json.dumps(block.get("input") or {}, ensure_ascii=False)

    def _whole(self, i: int) -> dict[str, Any]:
        block = self._blocks[i]
        if block.get("type") in ("text", "thinking"):
            return {field: paired(v) if isinstance(v, str) else v for field, v in block.items()}
        if i not in self._json:
            return block
        try:
            return {**block, "input": json.loads(self._json[i] or "{}")}
        except (ValueError, RecursionError):
            return {**block, "input": {}}

    def _bill(self) -> Usage | None:
        new = usage.settled_apart(self._usage)
        return self._paid + new if self._paid and new else new or self._paid

    def _broken(self, text: str) -> ProviderError:
        return ProviderError(f"{text}; try again", kind="broken_stream", partial=self.text)
