"""2025 and 2026: jai, M4, pi, Codex, OpenHands, Goose, the server-side rules, the notes file, with the sources' numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import DOWN, Scripted

from agentkit.agent import Agent
from agentkit.log import Log
from agentkit.messages import Message, Opaque, Reply, ToolCall, assistant, tool_result, user
from agentkit.policies.codex import PREFIX, Codex
from agentkit.policies.goose import Goose, cutoff, without_results
from agentkit.policies.goose import Quirks as GooseQuirks
from agentkit.policies.goose_as_told import DROPPED, GooseAsTold
from agentkit.policies.goose_as_told import Quirks as ToldQuirks
from agentkit.policies.jai import Jai
from agentkit.policies.m4 import M4
from agentkit.policies.notes_file import NotesFile
from agentkit.policies.openhands import OpenHands
from agentkit.policies.pi import Pi
from agentkit.policies.server_compaction import ServerSideCompaction
from agentkit.policies.server_editing import PLACEHOLDER, ServerSideEditing
from agentkit.providers.base import ProviderError
from policies.support import SMALL, Words, compactor, log_of, situation, step, texts, worked

TOO_LONG = ProviderError("prompt is too long", kind="overflow", status=400)


def first_kept(log: Log, record: object) -> int:
    return next(i for i, m in enumerate(log.messages()) if m.id == record.first_kept)  # type: ignore[attr-defined]


# -------------------------------------------------------------------------------------------------------------- jai, M4, pi


def test_jai_compacts_above_window_minus_reserve_and_keeps_two_turns() -> None:
    log = log_of(worked(2), worked(2, question="t1"), worked(2, question="t2"), [user("now")])
    policy = Jai(compactor(Scripted("S1"), estimator=Words()))
    threshold = 200_000 - 12_288
    assert step(policy, log, situation(threshold, window=200_000)) is None
    assert policy.preserved(situation(window=200_000).budget) == 8_000
    record = step(policy, log, situation(threshold + 1, window=200_000))
    assert record is not None and log.messages()[first_kept(log, record)].content == "t2"
    assert policy.view(log)[1].role == "user" and policy.view(log)[1].content.endswith("t2"), (
        "merged into the first kept one"
    )


def test_jai_keeps_as_much_of_the_newest_turn_as_fits() -> None:
    log = log_of(worked(1), worked(40, lines=1, text="w " * 298, question="long"))
    record = step(Jai(compactor(Scripted("S1"), estimator=Words())), log, situation(window=200_000))
    assert record is not None
    tail = log.messages()[first_kept(log, record) :]
    assert tail[0].role == "assistant" and 7_600 < Words().messages(tail) <= 8_000
    assert record.messages > 0


def test_jai_clips_results_at_2000_characters_and_folds() -> None:
    provider = Scripted("S1", "S2")
    log = log_of([user("read"), assistant("x" * 5_000)], worked(1, question="t1"), worked(1, question="t2"), [user("now")])
    policy = Jai(compactor(provider))
    step(policy, log, situation(window=200_000))
    assert "(3,000 characters left out)" in provider.asked()
    for message in [assistant("a"), *worked(1, question="t3"), assistant("b"), *worked(1, question="t4"), assistant("c")]:
        log.append(message)
    log.append(user("and"))
    step(policy, log, situation(window=200_000))
    assert (
        "<earlier-summary>\nS1" in provider.asked() and "read" not in provider.asked().split("<history>")[1].split("\n")[1]
    )


def test_m4_compacts_at_14_400_whatever_the_window() -> None:
    turns = [worked(1, question=f"t{n}", text="w " * 40) for n in range(6)]
    log, provider = log_of(*turns, [user("now")]), Scripted("S1")
    policy = M4(compactor(provider))
    assert step(policy, log, situation(14_399, window=200_000)) is None
    record = step(policy, log, situation(14_400, window=200_000))
    assert record is not None and record.placement == "system" and policy.view(log)[1].role == "system"
    kept = log.messages()[first_kept(log, record) :]
    assert kept[0].role == "user" and 8 <= len(kept) <= 11


def test_m4_never_compacts_one_long_loop() -> None:
    provider = Scripted("S1")
    assert step(M4(compactor(provider)), log_of(worked(40)), situation(100_000, window=200_000)) is None
    assert provider.requests == []


def test_pi_keeps_the_latest_20_000_and_carries_the_lists_of_files() -> None:
    log, provider = log_of(worked(1), worked(60, lines=1, text="w " * 498, question="t1"), [user("now")]), Scripted("H", "P")
    log.append(assistant("", ToolCall("e", "edit_file", '{"path": "f2.py"}')))
    log.append(tool_result("e", "ok"))
    policy = Pi(compactor(provider, estimator=Words()))
    assert step(policy, log, situation(200_000 - 16_384, window=200_000)) is None
    record = step(policy, log, situation(200_000 - 16_383, window=200_000))
    assert record is not None
    tail = log.messages()[first_kept(log, record) :]
    assert 19_500 <= Words().messages(tail) <= 20_600 and tail[0].role == "assistant"
    assert len(provider.requests) == 2 and "Turn Context (split turn):\n\nP" in record.summary
    assert "<read-files>\nf0.py\nf1.py" in record.summary and "f59.py" not in record.summary
    for message in [*worked(60, lines=1, text="w " * 498, question="t2"), assistant("x"), user("on")]:
        log.append(message)
    second = step(policy, log, situation(200_000, window=200_000))
    assert second is not None and second.summary.count("<read-files>") == 1
    assert (
        "<modified-files>\nf2.py\n</modified-files>" in second.summary and "\nf2.py" not in second.summary.split("<mod")[0]
    )
    assert "<read-files>" not in provider.asked(2)


def test_pi_writes_one_summary_when_no_turn_is_split() -> None:
    log, provider = log_of(worked(1), worked(60, lines=1, text="w " * 498, question="t1")), Scripted("H")
    step(Pi(compactor(provider, estimator=Words()), splits=False), log, situation(window=200_000))
    assert len(provider.requests) == 1


# ------------------------------------------------------------------------------------------------------------------- Codex


def test_codex_keeps_user_messages_up_to_20_000_tokens_and_a_summary() -> None:
    big = "u" * 60_000
    log = log_of([user("first")], [user(big)], worked(2, question="x" * 30_000), [user("now")])
    policy, provider = Codex(compactor(Scripted("S1"))), Scripted("S1")
    policy.provider = provider
    assert step(policy, log, situation(179_999, window=200_000)) is None
    assert step(policy, log, situation(180_000, window=200_000)) is not None
    shown = texts(policy.view(log))
    # 80,000 bytes: "now", 30,000, and 49,997 of the 60,000; "first" has no room left.
    assert shown[0] == "rules" and shown[2:] == ["x" * 30_000, "now", f"{PREFIX}\n\nS1"]
    assert "characters left out" in shown[1] and 49_900 < shown[1].count("u") - 1 < 50_001
    log.append(assistant("done"))
    log.append(user("next"))
    assert texts(policy.view(log))[-2:] == ["done", "next"]


def test_codex_drops_the_oldest_round_when_the_call_does_not_fit() -> None:
    provider = Scripted(TOO_LONG, TOO_LONG, "S1")
    log = log_of(worked(4), [user("now")])
    assert step(Codex(compactor(provider)), log) is not None
    assert ["the task" in provider.asked(i).split("<history>")[1] for i in range(3)] == [True, False, False]
    assert ["step 0" in provider.asked(i) for i in range(3)] == [True, True, False]


# --------------------------------------------------------------------------------------------------------------- OpenHands


def test_openhands_forgets_the_middle_above_240_events() -> None:
    log, provider = log_of(worked(119), [user("now")]), Scripted("S1", "S2")
    policy = OpenHands(compactor(provider))
    small = situation(1_000, window=200_000)
    assert len(policy.view(log)) == 1 + 241 and step(policy, log_of(worked(118), [user("now")]), small) is None
    record = step(policy, log, small)
    view = policy.view(log)
    assert record is not None and 119 <= len(view) - 1 <= 121
    assert view[1:2] == log.messages()[1:2] and "S1" in view[2].content and view[2].role == "user"
    for message in [assistant("a"), *worked(60, question="t1"), assistant("b"), user("on")]:
        log.append(message)
    assert step(policy, log, small) is not None
    view = policy.view(log)
    assert "S2" in view[2].content and not any("S1" in text for text in texts(view)) and "S1" in provider.asked()


def test_openhands_leaves_a_loop_with_thinking_whole() -> None:
    def cut(opaque: tuple[Opaque, ...]) -> Message | None:
        turn = worked(20, question="t1")
        turn[1] = Message("assistant", "step", tool_calls=turn[1].tool_calls, opaque=opaque)
        log = log_of(worked(3), turn, [user("now")])
        record = step(OpenHands(compactor(Scripted("S1")), max_size=30), log, situation(1, window=200_000))
        return log.messages()[first_kept(log, record)] if record else None

    inside, whole = cut(()), cut((Opaque("x", {}),))
    assert inside is not None and inside.role == "assistant"
    assert whole is not None and whole.content == "now"


def test_openhands_resets_when_it_has_to_and_too_little_would_go() -> None:
    overflow, provider = situation(1_001, window=1_000), Scripted(TOO_LONG, TOO_LONG, "S1")
    log = log_of([user("task")], [user("x " * 9_000)], [user("now")])
    policy = OpenHands(compactor(provider), keep_first=2)
    assert step(policy, log, situation(999, window=1_000)) is None and provider.requests == []
    record = step(policy, log, overflow)
    assert record is not None and record.reason == "hard reset" and len(provider.requests) == 3
    assert [provider.asked(i).count("[user] task") for i in range(3)] == [0, 1, 1]
    assert len(provider.asked(1)) - len(provider.asked(2)) == pytest.approx(800, abs=20)
    assert policy.view(log)[-1].content == "now" and "task" not in texts(policy.view(log))
    with pytest.raises(ValueError, match="leaves no middle"):
        OpenHands(compactor(provider), max_size=4)


# ------------------------------------------------------------------------------------------------------------------- Goose


def test_goose_makes_one_summary_and_adds_only_the_last_text_of_the_user() -> None:
    log, provider = log_of(worked(3), [user("now do Y")]), Scripted("S1", "S2")
    policy = Goose(compactor(provider))
    assert step(policy, log, situation(800)) is None
    assert step(policy, log, situation(801)) is not None
    view = policy.view(log)
    assert [m.role for m in view] == ["system", "user", "assistant", "user"] and view[-1].content == "now do Y"
    assert "S1" in view[1].content
    for message in [*worked(2, question="x")[1:], assistant("done"), user("more")]:
        log.append(message)
    assert policy.view(log)[:4] == view
    step(policy, log, situation(801))
    assert "S1" in provider.asked(), "the older summary is among what is read again"


def test_goose_looks_once_a_turn_unless_forced() -> None:
    log = log_of(worked(3))
    assert step(Goose(compactor(Scripted("S"))), log, situation(999)) is None
    assert step(Goose(compactor(Scripted("S")), quirks=GooseQuirks(once_a_turn=False)), log_of(worked(3)), situation(999))
    policy = Goose(compactor(Scripted("S")))
    assert step(policy, log, situation(1, forced=True)) is not None
    assert [m.role for m in policy.view(log)] == ["system", "user", "assistant", "user"]


def test_goose_takes_results_out_of_the_call_from_the_middle_outwards() -> None:
    messages = worked(10)
    left = [[m.content[:6] for m in without_results(messages, p) if m.role == "tool"] for p in (0, 10, 20, 100)]
    assert [len(x) for x in left] == [10, 9, 8, 0]
    assert "line 4" not in left[1] and "line 5" not in left[2] and "line 0" in left[2]
    provider = Scripted(TOO_LONG, TOO_LONG, "S1")
    step(Goose(compactor(provider)), log_of(worked(10), [user("now")]), situation(999))
    assert [provider.asked(i).count("[tool]") for i in range(3)] == [10, 9, 8]


def test_goose_s_cutoff_grows_with_the_window() -> None:
    assert [cutoff(n) for n in (32_000, 128_000, 200_000, 1_000_000, 10_000_000)] == [10, 15, 24, 120, 500]


def test_goose_summarises_the_ten_oldest_pairs_in_the_background() -> None:
    log, provider = log_of(worked(21), [user("now")]), Scripted(*(f"P{n}" for n in range(10)))
    policy = Goose(compactor(provider))
    step(policy, log_of(worked(20), [user("now")]), situation(1))
    assert provider.requests == [], "20 calls: cutoff 10 + 10 are not exceeded"
    before = policy.view(log)
    step(policy, log, situation(1))
    assert len(provider.requests) == 10 and policy.view(log) == before, "made beside the request, so not yet in it"
    log.append(assistant("ok"))
    log.append(user("on"))
    view = policy.view(log)
    assert texts(view)[2:12] == [f"P{n}" for n in range(10)] and view[12].content == "step 10"
    assert view[1].content == "the task" and len(view) == len(before) + 2 - 10


def test_goose_leaves_a_pair_alone_whose_summary_failed() -> None:
    log, provider = log_of(worked(21), [user("now")]), Scripted(DOWN, *(f"P{n}" for n in range(1, 10)))
    policy = Goose(compactor(provider))
    step(policy, log, situation(1))
    log.append(assistant("ok"))
    log.append(user("on"))
    assert texts(policy.view(log))[2:6] == ["step 0", "line 0.0\nline 0.1\nline 0.2", "P1", "P2"]


def test_goose_hides_the_other_calls_of_a_batch_too() -> None:
    def shown(whole: bool) -> list[Message]:
        calls = [ToolCall(c, "read_file") for c in "ab"]
        batch = [user("t"), assistant("both", *calls), tool_result("a", "A"), tool_result("b", "B")]
        log, provider = log_of([*batch, *worked(21)[1:]], [user("now")]), Scripted("P")
        policy = Goose(compactor(provider), quirks=GooseQuirks(whole_messages=whole), batch=1)
        step(policy, log, situation(1))
        log.append(assistant("ok"))
        log.append(user("on"))
        return [*policy.view(log)]

    assert texts(shown(True))[2:4] == ["P", "step 0"]
    assert texts(shown(False))[2:5] == ["both", "B", "P"] and [c.id for c in shown(False)[2].tool_calls] == ["b"]


# ---------------------------------------------------------------------------------------------------------- Goose, as told


def test_as_told_each_pair_becomes_a_line_and_one_failure_spoils_no_other() -> None:
    log, provider = log_of(worked(6), [user("now")]), Scripted("P0", DOWN, "P2", "P3")
    policy = GooseAsTold(compactor(provider), tail=5, workers=1)
    record = step(policy, log, situation(801))
    assert record is not None and record.summary.split("\n")[:1] == ["P0"] and "P2" in record.summary
    assert "not summarised" in record.summary.split("\n")[1]
    view = policy.view(log)
    assert view[1].role == "assistant" and view[1].content.startswith("SUMMARY:\nP0") and "the task" not in view[1].content
    assert 5 <= len(view) - 2 <= 6
    keeping = GooseAsTold(compactor(Scripted("P")), tail=5, quirks=ToldQuirks(pairs_only=False, as_assistant=False))
    again = log_of(worked(6), [user("now")])
    step(keeping, again, situation(801))
    assert "the task" in keeping.view(again)[1].content and keeping.view(again)[1].role != "assistant"


def test_as_told_pairs_are_asked_for_in_parallel_and_come_back_in_order() -> None:
    class ByContent(Scripted):
        def stream(self, request):  # type: ignore[no-untyped-def]
            number = request.messages[0].content.split('"f')[1].split(".")[0]
            self.answers = (f"pair {number}",)
            return super().stream(request)

    log = log_of(worked(12), [user("now")])
    record = step(GooseAsTold(compactor(ByContent()), workers=1), log, situation(801))
    assert record is not None and record.summary.split("\n") == [f"pair {n}" for n in range(len(record.summary.split("\n")))]


def test_as_told_recoveries_are_harsher_and_end_in_truncation() -> None:
    def kept(harsher: int) -> tuple[int, str]:
        log, provider = log_of(worked(8), [user("now")]), Scripted("P")
        record = step(GooseAsTold(compactor(provider)), log, situation(1, forced=True, harsher=harsher))
        assert record is not None
        return len(log.messages()) - first_kept(log, record), record.reason

    sizes = [kept(h) for h in range(4)]
    assert [size for size, _ in sizes] == sorted((size for size, _ in sizes[:3]), reverse=True) + [sizes[3][0]]
    assert sizes[0][0] >= 8 > sizes[1][0] >= 6 > sizes[2][0] >= 4 and sizes[3] == (sizes[3][0], "truncated")


def test_as_told_when_every_call_fails_the_middle_is_cut_away() -> None:
    log, reports = log_of(worked(8), [user("now")]), []
    policy = GooseAsTold(compactor(Scripted(DOWN)))
    record = step(policy, log, situation(801, reports=reports))
    assert record is not None and (record.summary, record.reason, record.usage) == (DROPPED, "truncated", None)
    assert any("truncating" in str(r) for r in reports) and policy.view(log)[-1].content == "now"


# ------------------------------------------------------------------------------------------------------------- server side


def cleared(policy: ServerSideEditing, log: Log) -> list[int]:
    outputs = [m.content for m in policy.view(log) if m.role == "tool"]
    return [i for i, text in enumerate(outputs) if text == PLACEHOLDER]


def test_the_server_clears_all_but_three_above_100_000_tokens() -> None:
    at, above = (log_of(worked(6, lines=1, text="w " * n)) for n in (16_000, 17_000))
    assert cleared(ServerSideEditing(estimator=Words()), at) == []
    assert cleared(ServerSideEditing(estimator=Words()), above) == [0, 1, 2]
    assert cleared(ServerSideEditing(estimator=Words(), fixed=5_000), at) == [0, 1, 2], "the tools count too"


def test_the_server_clears_enough_or_nothing_and_no_excluded_tool() -> None:
    log = log_of(worked(6, lines=1, text="w " * 17_000))
    assert cleared(ServerSideEditing(clear_at_least=50_000, estimator=Words()), log) == [0, 1, 2]
    assert cleared(ServerSideEditing(clear_at_least=52_000, estimator=Words()), log) == []
    assert cleared(ServerSideEditing(exclude_tools=["read_file"], estimator=Words()), log) == []
    view = ServerSideEditing(clear_inputs=True, estimator=Words()).view(log)
    assert [c.arguments for m in view for c in m.tool_calls] == ["{}"] * 3 + [f'{{"path": "f{n}.py"}}' for n in (3, 4, 5)]


def test_in_batches_the_server_clears_again_only_when_the_rest_is_large() -> None:
    def places(batches: bool) -> list[int]:
        policy = ServerSideEditing(1_000, 3, batches=batches, estimator=Words())
        return [len(cleared(policy, log_of(worked(n, lines=1, text="w " * 100)))) for n in range(8, 18)]

    assert places(False) == [0, 0, 7, 8, 9, 10, 11, 12, 13, 14]
    assert places(True) == [0, 0, 7, 7, 7, 7, 7, 7, 13, 13]


def test_the_server_compacts_above_150_000_and_keeps_what_waits() -> None:
    log, provider = log_of(worked(3), [user("now")]), Scripted("S1")
    policy = ServerSideCompaction(compactor(provider))
    assert step(policy, log, situation(150_000)) is None
    assert step(policy, log, situation(150_001)) is not None
    assert policy.view(log)[1].content.endswith("now") and "S1" in policy.view(log)[1].content and len(policy.view(log)) == 2
    assert provider.requests[0].messages[:-1] == log.messages(), "behind the cached conversation"
    with pytest.raises(ValueError, match="50,000"):
        ServerSideCompaction(compactor(provider), 49_999)
    alone = Scripted("S1")
    step(ServerSideCompaction(compactor(alone), shares_prefix=False), log_of(worked(3), [user("now")]), situation(150_001))
    assert len(alone.requests[0].messages) == 1


# -------------------------------------------------------------------------------------------------------------- notes file


def test_notes_are_written_the_context_cleared_and_read_back(tmp_path: Path) -> None:
    log, provider = log_of(worked(3), [user("now")]), Scripted("the port is 8080", "the name is Ada")
    policy = NotesFile(compactor(provider), tmp_path)
    assert step(policy, log, situation(499)) is None
    assert step(policy, log, situation(500)) is not None
    view = policy.view(log)
    assert len(view) == 3 and view[-1].content == "now" and "NOTES.md (1 lines)" in view[1].content
    assert "8080" not in "".join(texts(view))
    read, add = sorted(policy.tools(log), key=lambda t: t.spec.name, reverse=True)
    assert read.run({}) == "the port is 8080"
    add.run({"text": "tests are slow"})
    for message in [*worked(3, question="x")[1:], assistant("done"), user("more")]:
        log.append(message)
    step(policy, log, situation(500))
    assert read.run({}) == "the port is 8080\n\ntests are slow\n\nthe name is Ada"
    assert (tmp_path / "NOTES.md").read_text(encoding="utf-8") == read.run({}) + "\n"
    assert NotesFile(compactor(provider)).notes(log) == read.run({}), "the log alone has them"


def test_in_a_loop_the_question_stays_with_the_results_that_wait() -> None:
    log = log_of(worked(3))
    policy = SMALL["notes file"](Scripted("noted"))
    step(policy, log)
    assert [m.role for m in policy.view(log)] == ["system", "user", "user", "assistant", "tool"]
    assert policy.view(log)[2].content == "the task" and policy.view(log)[3].content == "step 2"


# ------------------------------------------------------------------------------------------------------- tools in the agent


def test_the_agent_gives_the_model_the_tools_of_its_policy() -> None:
    asks = Reply(assistant("", ToolCall("r", "read_notes")), finish="tool_calls")
    provider = Scripted(asks, "I have read them.")
    log = log_of(worked(1), [user("earlier")])
    policy = NotesFile(compactor(Scripted("the port is 8080")))
    step(policy, log)
    log.append(assistant("fine"))
    agent = Agent(provider, policy=policy, log=log)
    assert [spec.name for spec in agent.tools.specs] == ["add_note", "read_notes"]
    agent.run("which port?")
    assert log.messages()[-2].content == "the port is 8080" and log.messages()[-1].content == "I have read them."
