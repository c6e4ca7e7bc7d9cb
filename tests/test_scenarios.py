"""The scenarios: their work can be done, is judged by the truth, and is not done when too much was forgotten."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit.budget import Budget
from agentkit.compaction import Compactor, Keep
from agentkit.compaction.prompts import ONLY_OPEN_TASKS
from agentkit.messages import ToolCall
from agentkit.policies import KeepEverything, SummariseMiddle
from agentkit.policies.registry import make_policy
from agentkit.providers.base import Provider
from agentkit.scenarios import judging
from agentkit.scenarios.library import (
    BIG_FILE,
    LONG_REFACTOR,
    NEEDLE,
    NEEDLE_SCENARIO,
    SCENARIOS,
    Scenario,
    course_copy,
    scenario,
)
from agentkit.scenarios.playing import Played, play
from agentkit.scenarios.project import MODULES, make_project, project_files
from agentkit.scenarios.record import SESSIONS, Pauses, main, record
from agentkit.sessions import dumps, load
from agentkit.tools import workspace_tools

COMMITTED = Path(__file__).resolve().parent.parent / "chapters" / "sessions"
LARGE = Budget.ratio(900_000, 0.9)


def keep_everything(provider: Provider) -> KeepEverything:
    return KeepEverything()


def forgetful(provider: Provider) -> SummariseMiddle:
    """Summaries that hold nothing but open tasks."""
    return SummariseMiddle(Compactor(provider, Keep(6, "messages"), keep_list=ONLY_OPEN_TASKS))


def shortened(of: Scenario, turns: int) -> Scenario:
    return replace(of, tasks=of.tasks[:turns])


# ----------------------------------------------------------------------------------------------------------------- playing


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != LONG_REFACTOR.name])
def test_the_work_is_done_under_keep_everything(name: str) -> None:
    played = play(scenario(name), keep_everything, budget=LARGE)
    assert [turn.question for turn in played.turns if not turn.done] == []
    assert played.answered and not played.problem and played.done == played.asked
    assert not played.compactions and played.read_again == 0


def test_the_long_refactor_begins_well_under_keep_everything() -> None:
    """The first half; all of it is played in tests/bench, and recorded in chapters/sessions."""
    played = play(shortened(LONG_REFACTOR, 5), keep_everything, budget=LARGE)
    assert played.answered and len(played.bills) > 50


def test_the_needle_is_lost_by_a_policy_that_forgets_and_by_no_other() -> None:
    lost, kept = play(NEEDLE_SCENARIO, forgetful), play(NEEDLE_SCENARIO, lambda p: SummariseMiddle(Compactor(p)))
    for played in (lost, kept):
        assert len(played.compactions) > 2, "the beginning was compacted away"
    assert not lost.answered and NEEDLE not in lost.turns[-1].answer
    assert [turn.done for turn in lost.turns[:-1]] == [True] * 9, "files can be read again, what was said cannot"
    assert kept.answered and NEEDLE in kept.turns[-1].answer


def test_the_wording_is_lost_by_a_summary() -> None:
    played = play(BIG_FILE, lambda provider: SummariseMiddle(Compactor(provider, Keep(4, "messages"))))
    assert [turn.done for turn in played.turns] == [True, True, True, False] and not played.answered


def test_forgetting_costs_rounds_and_files_are_read_again() -> None:
    tight = Budget.ratio(16_000, 0.8)
    part = shortened(LONG_REFACTOR, 5)
    left = play(part, keep_everything, budget=LARGE)
    right = play(part, lambda p: SummariseMiddle(Compactor(p, Keep(6, "messages"), "pair")), budget=tight)
    assert right.answered and right.compactions
    assert right.read_again > left.read_again == 0 and len(right.bills) > len(left.bills)
    assert right.usage.prompt < left.usage.prompt and right.summaries.prompt > 0 == left.summaries.prompt


def test_a_policy_brings_its_own_tools() -> None:
    played = play(shortened(BIG_FILE, 1), lambda p: make_policy("MemGPT", Compactor(p)), budget=LARGE)
    assert played.answered
    names = [tool.name for tool in played.bills[0].request.tools]
    assert len(names) == len(set(names)) > 6


def test_the_same_scenario_is_the_same_run() -> None:
    one, two = (play(NEEDLE_SCENARIO, forgetful) for _ in range(2))
    assert [b.usage for b in one.bills] == [b.usage for b in two.bills]
    assert [b.request for b in one.bills] == [b.request for b in two.bills]


def test_a_budget_that_cannot_work_is_the_problem_of_the_run() -> None:
    played = play(BIG_FILE, keep_everything, budget=Budget.ratio(1_000, 0.5))
    assert "system prompt and tools alone need" in played.problem and not played.answered and played.turns == []


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown scenario 'x'; there are short chat, big file, fix the bug, long refactor"):
        scenario("x")


def test_nothing_played_is_nothing_answered() -> None:
    assert not Played("x", "y", asked=1).answered


# ------------------------------------------------------------------------------------------------------------ the project


def test_the_project_is_the_same_every_time_and_of_real_size(tmp_path: Path) -> None:
    assert project_files() == project_files() != project_files(seed=3)
    make_project(tmp_path / "one")
    files = {p.relative_to(tmp_path / "one").as_posix(): p for p in (tmp_path / "one").rglob("*") if p.is_file()}
    assert {name: path.read_text(encoding="utf-8") for name, path in files.items()} == project_files()
    lengths = [project_files()[name].count("\n") for name in MODULES]
    assert len(MODULES) == 15 and sum(lengths) > 1_500 and max(lengths) > 250 and max(lengths) < 400
    with pytest.raises(FileExistsError):
        make_project(tmp_path / "one")


def test_no_function_of_the_project_hides_another() -> None:
    for name, text in project_files().items():
        if name.endswith(".py"):
            names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
            assert len(names) == len(set(names)), name


def test_two_tests_of_the_project_fail_and_no_more(tmp_path: Path) -> None:
    make_project(tmp_path / "depot")
    result = workspace_tools(tmp_path / "depot").run(ToolCall("c", "run_tests"))
    assert "2 failed, 264 passed" in result.content


# ---------------------------------------------------------------------------------------------------------------- judging


def test_checks_look_at_the_files_and_not_at_the_claim(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    course_copy(folder)
    assert judging.counted("big_service.py", "methods")(folder, "it has `40 methods`")
    assert not judging.counted("big_service.py", "methods")(folder, "it has 140 methods")
    assert judging.counted("big_service.py", "lines")(folder, "285 lines") and judging.returned(
        "big_service.py", "compute7", 3
    )(folder, "so it returns 91.")
    assert not judging.returned("big_service.py", "compute7", 3)(folder, "so it returns 90.")
    assert not judging.tests_pass()(folder, "The tests pass: 14 passed.")
    stats = folder / "stats.py"
    text = stats.read_text(encoding="utf-8")
    stats.write_text(text.replace("ordered[middle] + ordered[middle + 1]", "ordered[middle - 1] + ordered[middle]"), "utf-8")
    assert judging.tests_pass()(folder, "I have no idea.")
    assert not judging.tests_pass("tests/test_none.py")(folder, "")


def test_checks_of_changes_can_fail(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("LOW = 4_0\n\n\ndef f(x, limit=20):\n    return old(x)\n", encoding="utf-8")
    (tmp_path / "b.py").write_text('def f(limit=20):\n    """Do."""\n\n\ndef new():\n    """Do."""\n', encoding="utf-8")
    assert judging.has_parameter("f", "limit", 20)(tmp_path, "")
    assert not judging.has_parameter("f", "limit", 21)(tmp_path, "") and not judging.has_parameter("g", "x", 1)(tmp_path, "")
    assert judging.documented("b.py")(tmp_path, "") and not judging.documented("a.py", "b.py")(tmp_path, "")
    assert not judging.renamed("old", "new")(tmp_path, ""), "a.py still has the old name"
    (tmp_path / "a.py").write_text("new = 1\n", encoding="utf-8")
    assert judging.renamed("old", "new")(tmp_path, "") and not judging.renamed("old", "newer")(tmp_path, "")
    (tmp_path / "c.py").write_text("LOW = 4_0\n", encoding="utf-8")
    assert judging.constants_of("c.py")(tmp_path, "`LOW = 4_0`") and not judging.constants_of("c.py")(tmp_path, "`LOW = 4`")
    assert judging.both(judging.says("1000"), judging.says("x"))(tmp_path, "`x` 1,000") and not judging.says("y")(
        tmp_path, "x"
    )


# --------------------------------------------------------------------------------------------------------------- recording


def test_the_small_session_is_recorded_again_byte_for_byte(tmp_path: Path) -> None:
    assert main(["four-questions", "--to", str(tmp_path)]) == 0
    made, kept = tmp_path / "four-questions.jsonl", COMMITTED / "four-questions.jsonl"
    assert made.read_bytes() == kept.read_bytes(), "make it again with: python -m agentkit.scenarios.record"


def test_the_long_session_begins_again_byte_for_byte() -> None:
    """A few turns here, as all of it takes long; tests/bench records it whole."""
    session, _ = record(shortened(LONG_REFACTOR, 4), "long-refactor", "A long refactor of 15 modules")
    made, kept = json.loads(dumps(session)), json.loads((COMMITTED / "long-refactor.jsonl").read_text(encoding="utf-8"))
    count = len(made["messages"])
    assert count > 30 and made["messages"] == kept["messages"][:count]
    assert made["usage"] == kept["usage"][: len(made["usage"])] and made["tools"] == kept["tools"]
    assert {key: made[key] for key in ("id", "title", "format", "model", "notes")} == {
        key: kept[key] for key in ("id", "title", "format", "model", "notes")
    }


def test_the_long_session_is_of_real_size_and_says_what_it_is() -> None:
    path = COMMITTED / "long-refactor.jsonl"
    session = load(path)
    assert path.stat().st_size < 1_500_000 and not session.warnings
    assert 150 <= session.calls <= 400 and session.billed == session.calls
    last = session.usage[-1]
    assert last is not None and last.prompt > 100_000
    runs = [c for item in session.items for c in item.message.tool_calls if c.name == "run_tests"]
    assert len(runs) == 6
    assert "simulator" in session.notes and "no language model" in session.notes and "made up by the seed" in session.notes
    times = [item.at for item in session.items if item.at is not None]
    pauses = sorted((b - a for a, b in zip(times, times[1:], strict=False)), reverse=True)
    assert times == sorted(times) and pauses[0] > 3_600 and sum(pause > 300 for pause in pauses) >= 5


def test_pauses_come_from_the_seed_alone() -> None:
    def pauses(seed: int) -> list[float]:
        clock = Pauses(seed)
        return [(clock.turn(number), clock())[1] for number in range(1, 9)]

    assert pauses(6) == pauses(6) != pauses(7)


def test_what_cannot_be_recorded_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit):
        main(["five-questions"])
    assert "unknown session 'five-questions'; there are four-questions, long-refactor" in capsys.readouterr().err
    failed = (load(COMMITTED / "four-questions.jsonl"), Played("big file", "x", asked=4))
    monkeypatch.setitem(SESSIONS, "four-questions", lambda: failed)
    with pytest.raises(ValueError, match="four-questions: only 0 of 4 turns did their work; nothing was written"):
        main(["four-questions", "--to", "nowhere"])
