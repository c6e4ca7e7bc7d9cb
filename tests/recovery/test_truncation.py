"""Truncation: recorded, harshest last, valid everywhere, and the same for every policy."""

from __future__ import annotations

from hypothesis import given, settings
from strategies import TOOLS, conversations, histories

from agentkit.log import Log, project
from agentkit.messages import Message, Request, ToolCall, assistant, system, tool_result, user
from agentkit.policies import KeepEverything, SummariseMiddle
from agentkit.protocol import DIALECTS, violations
from agentkit.recovery.truncation import CLIPS, TRUNCATION, shown, smallest, truncate, truncations
from agentkit.tokens import PerScript

BIG = "a line of a file\n" * 2_000
BATCH = [assistant("", ToolCall("c1", "f"), ToolCall("c2", "f")), tool_result("c1", BIG), tool_result("c2", "small")]
POLICIES = (KeepEverything(), SummariseMiddle(None))  # type: ignore[arg-type]


def size(log: Log) -> int:
    return PerScript().messages(shown(POLICIES[0].view(log), log))


def long_log() -> Log:
    turns = [m for n in range(6) for m in (user(f"question {n} " * 20), assistant(f"answer {n}"))]
    return Log([system("rules"), *turns, user("now read both"), *BATCH])


def test_the_ways_get_ever_harsher_and_each_is_smaller_than_the_whole() -> None:
    whole, sizes = size(long_log()), []
    for record in truncations(long_log(), 4):
        log = long_log()
        log.compact(record)
        sizes.append(size(log))
        assert record.policy == TRUNCATION
        view = shown(POLICIES[0].view(log), log)
        assert view[0].content == "rules" and any(m.content == "now read both" for m in view)
    assert max(sizes) < whole and sizes[-1] == min(sizes)


def test_what_is_left_out_and_what_is_cut_is_said() -> None:
    record = truncate(long_log(), 1, CLIPS[0])
    assert record is not None
    assert "12 more messages were left out" in record.summary and "their first 16,000 characters" in record.summary
    only_cut = truncate(long_log(), 0, 200)
    assert only_cut is not None and only_cut.messages == 0 and "left out here" not in only_cut.summary


def test_only_results_over_the_limit_are_cut_and_new_ones_are_whole() -> None:
    log = long_log()
    record = truncate(log, 0, 200)
    assert record is not None
    log.compact(record)
    log.append(assistant("", ToolCall("c3", "f")))
    log.append(tool_result("c3", BIG))
    for policy in POLICIES:
        results = [m.content for m in shown(policy.view(log), log) if m.role == "tool"]
        assert results[0].startswith(BIG[:200]) and len(results[0]) < 300
        assert results[1:] == ["small", BIG]
    assert sum(len(m.content) == len(BIG) for m in log.messages()) == 2


def test_an_earlier_summary_is_kept_and_in_the_end_cut_as_well() -> None:
    log = long_log()
    first = truncate(log, 8)
    assert first is not None
    log.compact(first)
    second = truncate(log, 1)
    assert second is not None and second.summary.startswith(first.summary)
    log.compact(second)
    assert truncate(log, 4) is None and smallest(log, clipped=False) is None


def test_without_a_truncation_a_view_is_the_very_same() -> None:
    log = long_log()
    view = POLICIES[0].view(log)
    assert shown(view, log) is view


@settings(max_examples=150)
@given(histories() | conversations())
def test_any_history_truncated_in_any_way_is_valid_everywhere(history: list[Message]) -> None:
    log = Log([*history, user("go on")])
    for record in [*truncations(log, 4)][::3]:
        trial = Log([*history, user("go on")])
        trial.compact(record)
        views = [shown(policy.view(trial), trial) for policy in POLICIES]
        for view in views:
            assert [v for d in DIALECTS for v in violations(Request(view, TOOLS), d)] == []
            assert view[-1].content.endswith("go on")
        assert trial.messages() == log.messages()
        assert project(trial).head == project(log).head
