"""What a replay sends for a summary, and what then stands there. No model is asked: a stand-in has only a length."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import Literal

from agentkit.caching.prefix import Segment
from agentkit.compaction.compactor import summary_message
from agentkit.compaction.prompts import KEEP_LIST, summary_prompt
from agentkit.log import Compaction
from agentkit.messages import user
from agentkit.references import identifiers, said
from agentkit.replay.counted import Counted

STAND_IN = 1_000
"""Tokens of a stand-in summary. Real ones at hand have 951 to 2,812 tokens for 175,000 to 372,000 tokens of history."""

SummaryCall = Literal["flatten", "shared"]


def stand_in(number: int, tokens: int) -> str:
    """Return a text in place of summary `number`. It says nothing; only its length counts."""
    return f"Stand-in for summary {number}." + " word" * max(0, tokens - 6)


def question_before(counted: Counted, cut: int, end: int) -> int | None:
    """Return the position of the running turn's question, which stays in view, when it stands before `cut`; else None."""
    starts = counted.turn_starts
    newest = bisect_left(starts, end) - 1
    return starts[newest] if newest >= 0 and starts[newest] < cut else None


def summary_segment(counted: Counted, text: str, question: int | None = None) -> Segment:
    """Return what shows the summary `text`, and behind it the question that stays."""
    shown = counted.texts.counter.message(summary_message(Compaction(text, "")))
    if question is None:
        return replace(shown, kind="system")
    kept = counted.segments[question]
    return Segment(shown.data + kept.data, shown.tokens + kept.tokens, "system")


def names_in(counted: Counted, question: int | None) -> frozenset[str]:
    """Return the identifiers in the question that stays: a stand-in summary itself names nothing."""
    return frozenset() if question is None else identifiers(said(counted.body[question]))


def flattened(counted: Counted, start: int, cut: int, previous: str, question: int | None = None) -> tuple[Segment, ...]:
    """Return the prompt of a summary call that shows the history as text: instructions, transcript, end.

    `question` is one that an earlier compaction left standing before `start`; it is told first.
    """
    before, _, after = summary_prompt("\0", KEEP_LIST, previous).partition("\0")
    stayed = () if question is None else (counted.transcript[question],)
    return (counted.texts.text(before), *stayed, *counted.transcript[start:cut], counted.texts.text(after))


def instruction(counted: Counted) -> Segment:
    """Return what a summary call says behind the conversation when it shares that prefix."""
    return counted.texts.counter.message(user(summary_prompt("(the conversation above)", KEEP_LIST)))
