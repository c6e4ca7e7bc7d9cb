"""What holds for every policy of the registry, on any history."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from fakes import DOWN, FAILURES, SUMMARY, Scripted
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import TOOLS, conversations, histories

from agentkit.log import Log
from agentkit.messages import Message, Request, user
from agentkit.policies.registry import CLASSES, POLICIES, describe, make_policy
from agentkit.protocol import DIALECTS, violations
from policies.support import SMALL, log_of, situation, step, worked

names = st.sampled_from(sorted(SMALL))
ANSWERS = st.sampled_from([SUMMARY, SUMMARY, SUMMARY, *FAILURES.values()])
many = settings(max_examples=250, deadline=None)


def refused(messages: tuple[Message, ...]) -> list[str]:
    return [f"{d}: {v.text}" for d in DIALECTS for v in violations(Request(messages, TOOLS), d)]


def test_the_small_ones_are_all_there_are() -> None:
    assert SMALL.keys() <= POLICIES.keys()
    assert {kind.name for kind in CLASSES} == set(POLICIES) & {kind.name for kind in CLASSES} >= SMALL.keys()
    assert {name: make(Scripted()).name for name, make in SMALL.items()} == {name: name for name in SMALL}


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_table_can_say_of_each_when_where_from_and_what(name: str) -> None:
    if name != "summarise the middle":  # the settable one, of no single source
        assert all(describe(name).values()), describe(name)
    with pytest.raises(KeyError):
        describe("magic")


@many
@given(name=names, history=histories(), more=histories(), answers=st.lists(ANSWERS, min_size=2, max_size=2), data=st.data())
def test_any_history_gives_a_view_that_every_api_takes(
    name: str, history: list[Message], more: list[Message], answers: list[str], data: st.DataObject
) -> None:
    """Also after a second decision, a forced one and a harsher one, and with messages that came in between."""
    policy, log = SMALL[name](Scripted(*answers)), Log([*history, user("first question")])
    for addition in ([], [*more, user("second question")]):
        for message in addition:
            log.append(Message(**{**message.__dict__, "id": ""}))
        forced, harsher = data.draw(st.booleans()), data.draw(st.integers(0, 3))
        entries, messages = tuple(log), log.messages()
        step(policy, log, situation(forced=forced, harsher=harsher))
        assert refused(policy.view(log)) == []
        assert tuple(log)[: len(entries)] == entries and log.messages() == messages
        assert policy.view(log) == SMALL[name](Scripted("another")).view(log)


@many
@given(name=names, conversation=conversations(min_turns=2), failure=st.sampled_from([*FAILURES.values()]))
def test_a_failed_call_changes_nothing(name: str, conversation: list[Message], failure: str) -> None:
    if name == "Goose as told":  # it truncates then, on purpose
        return
    policy, log = SMALL[name](Scripted(failure)), Log([*conversation, user("go on")])
    if name in ("MemGPT", "MemGPT 2023-10 code", "Aider repo map"):
        step(policy, log)  # the warning, the map: what is no answer of the model
    before = policy.view(log)
    assert step(policy, log) is None
    assert policy.view(log) == before


WITH_TAIL = ("jai", "pi", "M4", "MemGPT", "notes file", "server-side compaction", "OpenHands", "summarise the middle")


def test_the_tail_is_the_log_s_to_the_byte() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=200, deadline=None)
    @given(name=st.sampled_from(WITH_TAIL), conversation=conversations(min_turns=3))
    def check(name: str, conversation: list[Message]) -> None:
        log, policy = Log([*conversation, user("go on")]), SMALL[name](Scripted("ok"))
        record = step(policy, log)
        if record is None:
            return
        seen[name] += 1
        messages, view = log.messages(), policy.view(log)
        tail = messages[next(i for i, m in enumerate(messages) if m.id == record.first_kept) :]
        shown = [m for m in view if m.id in {t.id for t in tail}]
        first = 1 if record.placement == "user" and tail[0].role == "user" and len(shown) == len(tail) else 0
        assert view[-(len(tail) - first) :] == tail[first:] if len(tail) > first else True
        assert view[-1].content.endswith("go on")

    check()
    assert set(seen) == set(WITH_TAIL), seen


@pytest.mark.parametrize("name", sorted(SMALL))
def test_after_a_failed_call_the_next_request_does_not_call_again(name: str) -> None:
    provider, log = Scripted(DOWN), log_of(worked(12), worked(1, question="t1"), [user("go on")])
    policy = SMALL[name](provider)
    step(policy, log)
    calls = len(provider.requests)
    step(policy, log)
    exempt = (
        "AutoGPT 2023-05",
        "AutoGPT 2023-06",
        "Goose",
        "Goose as told",
    )  # steps, pairs and truncation have rules of their own
    assert len(provider.requests) == calls or name in exempt


_PROGRAM = """
import hashlib, json, sys
sys.path.insert(0, sys.argv[1])
from fakes import SUMMARY, Scripted
from policies.support import SMALL
from agentkit.log import Compaction, Log
from agentkit.messages import Message, ToolCall
for name, lines in json.load(open(sys.argv[2], encoding="utf-8")).items():
    log = Log()
    for kind, data in lines:
        if kind == "message":
            calls = tuple(ToolCall(**c) for c in data.pop("tool_calls"))
            log.append(Message(**data, tool_calls=calls))
        elif kind == "compaction":
            log.compact(Compaction(**data))
        else:
            log.note(data)
    print(name + "|" + hashlib.sha256(repr(SMALL[name](Scripted()).view(log)).encode()).hexdigest())
"""


def test_the_same_log_gives_the_same_view_in_a_new_process(tmp_path: Path) -> None:
    import hashlib

    kept = ("role", "content", "id", "tool_call_id", "reasoning", "is_error")
    logs: dict[str, list[tuple[str, object]]] = {}
    wanted: dict[str, str] = {}
    for name, make in SMALL.items():
        log = log_of(worked(12), worked(4, question="t1"), worked(2, question="t2"))
        policy = make(Scripted("ok"))
        for question in ("go on", "and on"):
            log.append(user(question))
            step(policy, log)
        lines: list[tuple[str, object]] = []
        for entry in log.branch():
            if entry.message:
                calls = [c.__dict__ for c in entry.message.tool_calls]
                lines.append(("message", {**{k: getattr(entry.message, k) for k in kept}, "tool_calls": calls}))
            elif entry.compaction:
                lines.append(("compaction", {**entry.compaction.__dict__, "usage": None}))
            else:
                lines.append(("note", entry.text))
        logs[name] = lines
        wanted[name] = hashlib.sha256(repr(policy.view(log)).encode()).hexdigest()
    (tmp_path / "logs.json").write_text(json.dumps(logs), encoding="utf-8")
    tests = str(Path(__file__).resolve().parent.parent)
    command = [sys.executable, "-c", _PROGRAM, tests, str(tmp_path / "logs.json")]
    done = subprocess.run(
        command, capture_output=True, cwd=Path(tests).parent, timeout=120, encoding="utf-8", errors="replace"
    )
    assert done.returncode == 0, done.stderr
    assert dict(line.split("|") for line in done.stdout.splitlines()) == wanted
    assert sum(kind != "message" for lines in logs.values() for kind, _ in lines) > 12, "the policies have to do something"


def test_the_registry_makes_all_of_them() -> None:
    from agentkit.compaction import Compactor

    assert all(make_policy(name, Compactor(Scripted())).name == name for name in POLICIES)
