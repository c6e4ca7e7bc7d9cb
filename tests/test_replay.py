"""Replay: rows add up, pauses and compactions show, schedules are the policies they stand for, real bills are met."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_support import ANSWERED, ASKED, LONG, NAMES, counted_real, line, made_up, needs_sessions
from strategies import conversations

from agentkit import replay_cli
from agentkit.budget import Budget
from agentkit.compaction import Compactor, Keep
from agentkit.compaction.cut import Boundary, Unit, find_cut
from agentkit.messages import Message, ToolCall, Usage, assistant, system, tool_result, user
from agentkit.policies import KeepEverything, SummariseMiddle
from agentkit.pricing import plain, prices
from agentkit.replay import (
    CACHES,
    OPEN_LOOP,
    AsRecorded,
    Comparison,
    Counted,
    KeepAll,
    Middle,
    NothingToReplay,
    Replay,
    Schedule,
    cache_for,
    compare,
    count,
    replay,
    replay_policy,
)
from agentkit.replay.caches import Charged, Forgets
from agentkit.replay.exact import Exact
from agentkit.replay.references import find_references, identifiers
from agentkit.replay.schedules import View
from agentkit.replay.summaries import question_before, stand_in
from agentkit.sessions import Item, Session, loads, save
from agentkit.tokens import relative_error

FLASH, GPT, OPUS = "deepseek-flash", "gpt-5.4", "claude-opus-4-5"
PLAIN = plain("plain", fresh=1.0, read=0.1, write=1.25, output=5.0)


@pytest.fixture(scope="module")
def counted() -> Counted:
    return count(made_up())


def run(counted: Counted, schedule: Schedule, cache: str = "openai") -> Replay:
    return replay(counted, schedule, PLAIN, cache_for(PLAIN, cache))


# ----------------------------------------------------------------------------------------------------------- the rows add up


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("schedule", [KeepAll(), AsRecorded(), Middle(6_000), Middle(6_000, call="shared")])
def test_rows_add_up(counted: Counted, cache: str, schedule: Schedule) -> None:
    result = run(counted, schedule, cache)
    assert len(result.requests) == counted.session.calls
    assert all(
        row.read + row.written + row.fresh == row.sent and min(row.read, row.written, row.fresh) >= 0 for row in result.rows
    )
    assert result.usd == pytest.approx(sum(row.usd for row in result.rows)) == pytest.approx(result.rows[-1].cumulative)
    assert result.summaries.total == pytest.approx(sum(r.usd for r in result.rows if r.kind == "summary"))
    for row in result.rows:
        bill = PLAIN.bill(Usage(row.fresh, row.read, row.written, row.output), written_long=row.written_1h)
        assert row.usd == pytest.approx(bill.total)


def test_a_request_sends_head_and_body(counted: Counted) -> None:
    texts = counted.texts.counter
    sizes = [len(texts.message(item.message).tokens) for item in counted.session.items]
    first = next(i for i, item in enumerate(counted.session.items) if item.message.role == "assistant")
    rows = run(counted, KeepAll()).rows
    assert rows[0].sent == sum(sizes[:first]) and rows[-1].sent == sum(sizes[:-1])


def test_what_the_log_does_not_show_is_sent_too() -> None:
    bare = count(made_up())
    session = made_up(usage=Usage(fresh=run(bare, KeepAll()).rows[0].sent + 500, output=9))
    learned = count(session)
    assert learned.fixed == 500 and count(session, fixed=0).fixed == 0
    assert [a.sent - b.sent for a, b in zip(run(learned, KeepAll()).rows, run(bare, KeepAll()).rows, strict=True)] == [
        500
    ] * 41


def test_the_cheapest_order_of_caches_is_the_expected_one(counted: Counted) -> None:
    usd = {cache: run(counted, KeepAll(), cache).usd for cache in CACHES}
    assert usd["none"] == max(usd.values())
    assert usd["tree"] <= usd["openai"] < usd["none"] / 3


def test_appending_reads_the_whole_request_before(counted: Counted) -> None:
    rows = run(counted, KeepAll(), "tree").rows
    for before, after in zip(rows, rows[1:], strict=False):
        assert before.sent <= after.read <= before.sent + before.output  # the answer stays in the tree as well


# --------------------------------------------------------------------------------------------------------------- compactions


def test_a_compaction_has_a_row_of_its_own_and_a_miss_after_it(counted: Counted) -> None:
    result = run(counted, Middle(6_000, Keep(4, "messages"), "pair"))
    assert result.compactions >= 2
    for i, row in enumerate(result.rows):
        if row.kind == "summary":
            assert row.events[0].startswith("compacted: ") and row.output == 1_000
            after, before = result.rows[i + 1], result.rows[i - 1]
            assert after.number == row.number and after.sent < before.sent and "miss" in after.events
    assert any("stand-in" in note for note in result.notes) and result.notes[0] == OPEN_LOOP


def test_e17_a_summary_call_that_shares_the_prefix_reads_it(counted: Counted) -> None:
    flat, shared = (run(counted, Middle(8_000, call=call)) for call in ("flatten", "shared"))
    first = [next(r for r in result.rows if r.kind == "summary") for result in (flat, shared)]
    assert first[0].read == 0 and first[1].read > 0.9 * first[1].sent
    assert first[1].usd < first[0].usd
    assert [r.sent for r in flat.requests] == [r.sent for r in shared.requests]


def test_a_threshold_never_reached_is_keep_everything(counted: Counted) -> None:
    assert run(counted, Middle(10**9)).rows == run(counted, KeepAll()).rows


def test_a_summary_longer_than_what_it_replaces_is_paid_and_refused(counted: Counted) -> None:
    result = run(counted, Middle(3_000, Keep(4, "messages"), "pair", summary=100_000))
    refused = [row for row in result.rows if row.kind == "summary"]
    assert refused and result.compactions == 0
    assert all(row.events == ("failed: the summary is longer than what it replaces",) for row in refused)
    assert [r.sent for r in result.requests] == [r.sent for r in run(counted, KeepAll()).requests]
    assert result.summaries.total > 0


@pytest.mark.parametrize("tokens", [1, 10, 500, 1_000, 2_000])
def test_a_stand_in_has_about_the_tokens_it_says(counted: Counted, tokens: int) -> None:
    assert abs(len(counted.texts.text(stand_in(3, tokens)).tokens) - tokens) <= 8


@pytest.mark.parametrize(
    ("amount", "unit"),
    [(1, "messages"), (6, "messages"), (23, "messages"), (1, "turns"), (3, "turns"), (900, "tokens"), (4_000, "tokens")],
)
@pytest.mark.parametrize("boundary", ["user", "pair"])
def test_a_schedule_cuts_where_the_compactor_cuts(counted: Counted, amount: int, unit: Unit, boundary: Boundary) -> None:
    policy = Middle(5_000, Keep(amount, unit), boundary)
    sizes = {m.id: len(s.tokens) for m, s in zip(counted.body, counted.segments, strict=True)}
    view, decide, checked = View(counted), policy.begin(counted), 0
    stayed: list[Message] = []  # the question of a turn that was cut in the middle
    for request, point in enumerate(counted.points):
        step = decide(view, request)
        tail = [*stayed, *counted.body[view.start : point.end]]
        wanted = find_cut(tail, policy.keep, boundary, lambda m: sizes[m.id])
        if step is not None:
            assert step.start == view.start + wanted - len(stayed) and step.messages == wanted
            checked += 1
            if not step.failed:
                view.change(step)
                asked = question_before(counted, step.start, point.end)
                stayed = [] if asked is None else [counted.body[asked]]
        elif view.size(point.end) >= policy.threshold:
            assert wanted == 0 or checked
    assert checked or unit != "messages"


@given(conversations(min_turns=2, max_turns=6), st.integers(1, 6), st.sampled_from(["user", "pair"]), st.integers(100, 400))
def test_a_schedule_is_the_policy_it_stands_for(
    messages: list[Message], keep: int, boundary: Boundary, threshold: int
) -> None:
    if not any(m.role == "assistant" for m in messages):
        return
    counted = count(Session("any", tuple(Item(m) for m in messages)))
    schedule = Middle(threshold, Keep(keep, "messages"), boundary, summary=60, limit=10**6)
    fast = run(counted, schedule)
    slow = replay_policy(
        counted,
        lambda provider: SummariseMiddle(Compactor(provider, schedule.keep, boundary, estimator=Exact(counted))),
        Budget(10**6, threshold, ""),
        PLAIN,
        cache_for(PLAIN, "openai"),
        summary=60,
    )
    assert [(r.sent, r.read, r.in_view, r.used) for r in fast.requests] == [
        (r.sent, r.read, r.in_view, r.used) for r in slow.requests
    ]
    assert [(r.number, r.kind) for r in fast.rows] == [(r.number, r.kind) for r in slow.rows]


@pytest.mark.parametrize("cache", ["openai", "deepseek", "tree", "none"])
def test_any_policy_can_be_replayed(counted: Counted, cache: str) -> None:
    slow = replay_policy(
        counted, lambda provider: KeepEverything(), Budget(10**6, 10**6, ""), PLAIN, cache_for(PLAIN, cache)
    )
    assert [replace(r, events=()) for r in slow.rows] == [replace(r, events=()) for r in run(counted, KeepAll(), cache).rows]


def test_a_recorded_compaction_is_used_by_as_recorded_only() -> None:
    made = {"role": "user", "content": "what was: a.py", "kind": "compaction_summary", "compaction": {"kept_from": 2}}
    session = loads(line(ASKED, ANSWERED, ASKED | {"content": "and now?"}, made, ANSWERED | {"content": "now"}))
    counted = count(session)
    recorded, all_of_it = run(counted, AsRecorded()), run(counted, KeepAll())
    assert [row.kind for row in recorded.rows] == ["request", "summary", "request"]
    assert len(all_of_it.rows) == 2 and all("what was" not in m.content for m in counted.body)


# --------------------------------------------------------------------------------------------------------- pauses and prices


def test_e18_a_pause_ends_an_entry_and_a_hit_keeps_it() -> None:
    session = made_up(12, words=900, pause=5)
    late = [replace(item, at=(item.at or 0) + (400 if i >= 14 else 0)) for i, item in enumerate(session.items)]
    result = replay(count(replace(session, items=tuple(late))), KeepAll(), prices("claude-sonnet-4-6"))
    hit = [row.read > 0 for row in result.rows]
    paused = next(i for i, row in enumerate(result.rows) if any(e.startswith("pause: 4") for e in row.events))
    assert any(hit[:paused]) and not hit[paused] and all(hit[paused + 1 :])
    assert "miss: expired" in result.rows[paused].events
    hour = replay(
        count(replace(session, items=tuple(late))),
        KeepAll(),
        prices("claude-sonnet-4-6"),
        cache_for(prices("claude-sonnet-4-6"), life="1h"),
    )
    assert hour.rows[paused].read > 0 and hour.rows[paused].written_1h == hour.rows[paused].written > 0


def test_e20_which_life_is_cheaper_depends_on_the_pauses() -> None:
    listed = prices("claude-sonnet-4-6")
    for pause, cheaper in ((2.0, "5m"), (400.0, "1h")):
        counted = count(made_up(12, pause=pause))
        usd = {life: replay(counted, KeepAll(), listed, cache_for(listed, life=life)).usd for life in ("5m", "1h")}  # type: ignore[arg-type]
        assert min(usd, key=usd.__getitem__) == cheaper


def test_an_automatic_cache_forgets_after_a_pause(counted: Counted) -> None:
    segments = list(counted.segments[:20])
    cache = Forgets(lambda: cache_for(PLAIN, "tree").make(), 600)
    results = [cache.observe(segments, at).read for at in (0, 599, 1_198, 1_798)]
    assert [read > 0 for read in results] == [False, True, True, False]


def test_charged_writes_move_fresh_tokens_to_written(counted: Counted) -> None:
    listed = prices("gpt-6.1-sol")
    charged, free = (replay(counted, KeepAll(), p, cache_for(p, pauses=False)) for p in (listed, prices(GPT)))
    assert [row.sent for row in charged.rows] == [row.sent for row in free.rows]
    long = [(a, b) for a, b in zip(charged.rows, free.rows, strict=True) if a.sent >= 1_024]
    assert long and all((a.written, a.fresh, a.read) == (b.fresh, 0, b.read) for a, b in long)
    small = Charged(cache_for(PLAIN, "none").make(), 10**6).observe(counted.segments)
    assert small.written == 0 and small.fresh > 0


def test_peak_hours_are_paid() -> None:
    session = made_up(4)
    night = tuple(
        replace(item, at=1_780_279_200.0 + i) for i, item in enumerate(session.items)
    )  # Monday, 2026-06-01, 02:00 UTC
    noon = tuple(replace(item, at=(item.at or 0) + 36_000) for item in night)
    usd = [replay(count(replace(session, items=items)), KeepAll(), prices(FLASH)).usd for items in (night, noon)]
    assert usd[0] == pytest.approx(2 * usd[1])


def test_time_never_runs_backwards_and_may_be_missing() -> None:
    session = made_up(30)
    odd = tuple(replace(item, at=None if i % 3 else 1e9 - i) for i, item in enumerate(session.items))
    times = [p.at for p in count(replace(session, items=odd)).points if p.at is not None]
    assert times and times == sorted(times)
    none = count(replace(session, items=tuple(replace(item, at=None) for item in session.items)))
    result = replay(none, KeepAll(), prices("claude-opus-5"))
    assert "no times" in " ".join(result.notes) and result.read_share > 0.5


def test_output_counters_that_are_too_small_are_not_believed() -> None:
    session = made_up(8, usage=Usage(fresh=5_000, output=1))
    assert count(session).points[0].output > 1 and "too small" in count(session).output_from
    assert [p.output for p in count(made_up(8, usage=Usage(fresh=5_000, output=90))).points] == [90] * 9


def test_no_calls_is_one_line() -> None:
    with pytest.raises(NothingToReplay, match="^made up: no model calls"):
        count(loads(line(ASKED)))


@pytest.mark.parametrize(("name", "words"), [("gemini", "anthropic, openai"), ("", "anthropic, openai")])
def test_an_unknown_cache_lists_the_known_ones(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cache_for(PLAIN, name or "?")
    with pytest.raises(ValueError, match="recommended"):
        cache_for(prices(OPUS), placement="everywhere")


# -------------------------------------------------------------------------------------------------------------------- recall


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("open src/app/main.py now", {"src/app/main.py"}),
        ("cat ./main.py:12", {"main.py"}),
        ("see /etc/passwd and ~/x.toml", {"/etc/passwd", "~/x.toml"}),
        ("call parse_line or readFile, raise ValueError", {"parse_line", "readFile", "ValueError"}),
        ("either/or is prose, and so is </button>", set()),
        ("https://example.org/a/b?c=d is one", {"https://example.org/a/b?c=d"}),
        ("plain words only, e.g. these", set()),
        ("Look at README.md.", {"README.md"}),
    ],
)
def test_what_counts_as_an_identifier(text: str, found: set[str]) -> None:
    assert identifiers(text) == found


def _calling(path: str, n: int) -> list[Message]:
    call = assistant("", ToolCall(f"c{n}", "read", json.dumps({"path": path})))
    return [call, tool_result(f"c{n}", "ok")]


def test_a_reference_is_in_view_as_long_as_a_message_has_it() -> None:
    body = [
        user("look at a_b.py"),
        *_calling("a_b.py", 1),
        user("and c_d.py"),
        *_calling("c_d.py", 2),
        *_calling("a_b.py", 3),
        *_calling("new_one.py", 4),
    ]
    found = find_references(body, [i for i, m in enumerate(body) if m.role == "assistant"])
    assert found.names == (("a_b.py",), ("c_d.py",), ("a_b.py",), ())
    assert found.places == ((0,), (3,), (1,), ())
    assert [found.in_view(2, start) for start in (0, 1, 2, 3)] == [1, 1, 0, 0]
    assert found.in_view(2, 3, frozenset({"a_b.py"})) == 1 and found.missing(2, 3) == ("a_b.py",)


def test_what_the_system_prompt_names_is_always_in_view() -> None:
    body = [user("go"), *_calling("notes.md", 1)]
    assert find_references(body, [1], "Keep notes.md up to date.").in_view(0, 1) == 1


def test_a_quoted_error_is_a_reference() -> None:
    message = "cannot open the file: no such thing"
    body = [user("go"), *_calling("a_b.py", 1), tool_result("c1", f"E: {message}"), *_calling(f"'{message}'", 2)]
    found = find_references(body, [1, 4])
    assert found.names[1] == (message,) and found.places[1] == (3,)


def test_recall_falls_when_more_is_forgotten(counted: Counted) -> None:
    recalls = [
        run(counted, s).recall for s in (KeepAll(), Middle(8_000), Middle(3_000, Keep(2, "messages"), "pair", summary=50))
    ]
    assert recalls[0] == 1.0 and recalls == sorted(recalls, reverse=True) and recalls[-1] < 0.7  # type: ignore[type-var,operator]


def test_without_references_there_is_no_recall() -> None:
    assert run(count(Session("x", (Item(user("hi")), Item(assistant("hello"))))), KeepAll()).recall is None


# ------------------------------------------------------------------------------------------------------------- real sessions


@pytest.fixture(scope="module")
def comparisons() -> dict[str, Comparison]:
    found: dict[str, Comparison] = {}
    for name in NAMES:
        if counted_real(name).session.billed:
            found[name] = compare(counted_real(name))
    return found


@needs_sessions
def test_real_bills_are_met_where_nothing_is_hidden(comparisons: dict[str, Comparison]) -> None:
    assert len(comparisons) >= 20
    hidden = {"aider-history-slice", "cc-skills-long", "gjc-dashboard-pr-compacted", "cc-sdk-todo"}
    off = {name: c.calibrated for name, c in comparisons.items() if name not in hidden}
    assert {name: error for name, error in off.items() if error > 0.03} == {}


@needs_sessions
def test_the_read_share_is_met_or_explained(comparisons: dict[str, Comparison]) -> None:
    for name, c in comparisons.items():
        if abs(c.read_error) > 0.03:
            words = ("no cache", "misses without a cause", "warm start", "read more than modelled")
            assert any(word in reason for reason in c.reasons for word in words), name


@needs_sessions
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gjc-dashboard-pr-compacted", "is in the bills 2 requests later"),
        ("gjc-dashboard-pr-compacted", "67 tool results were evicted"),
        ("codex-two-requests", "hidden reasoning"),
        ("codex-two-requests", "42,564 -> 37,208"),
        ("oh-ponylang-ponyc-4588", "no cache"),
        ("cline-ui-edit", "more than one model answered"),
        ("cc-skills-long", "output counters of the log are not to be believed"),
        ("cc-small-three", "fixed overhead: 14,565 tokens"),
        ("aider-history-slice", "several sessions"),
    ],
)
def test_outliers_are_explained(comparisons: dict[str, Comparison], name: str, reason: str) -> None:
    assert any(reason in text for text in comparisons[name].reasons)


@needs_sessions
def test_both_compactions_of_the_long_session_are_in_its_bills(comparisons: dict[str, Comparison]) -> None:
    session = counted_real(LONG).session
    result = replay(counted_real(LONG), AsRecorded(), prices(OPUS))
    places = [row.number - 1 for row in result.rows if row.kind == "summary"]
    assert places == [171, 294]
    for place in places:
        before, after = session.usage[place - 1], session.usage[place]
        assert before and after and after.prompt < before.prompt / 5
        assert relative_error(result.requests[place].sent, after.prompt) > -0.35
    reasons = comparisons[LONG].reasons
    assert not any("compaction before request" in reason for reason in reasons)


def test_without_bills_there_is_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="no real usage"):
        compare(count(made_up(4)))


# ------------------------------------------------------------------------------------------------------------ command line


def cli(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="agentkit")
    replay_cli.add_parsers(parser.add_subparsers(required=True))
    options = parser.parse_args(list(arguments))
    return options.handler(options)


@pytest.fixture
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sessions") / "made-up.jsonl"
    save(replace(made_up(30), model="deepseek-flash"), path)
    return str(path)


def test_the_command_line_prints_the_bill(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("replay", file, file, "--policy", "summarise-middle", "--threshold", "5000", "--keep", "6", "--rows") == 0
    out = capsys.readouterr().out
    assert out.count("example prices: deepseek deepseek-flash") == 2 and out.count(OPEN_LOOP) == 2
    assert out.count("compacted: ") >= 2 and "recall of references" in out


def test_json_has_every_row(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("replay", file, "--prices", OPUS, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["rows"]) == 31 and data["rows"][-1]["cumulative"] == pytest.approx(data["usd"])
    assert data["notes"][0] == OPEN_LOOP and data["prices"].startswith("example prices: anthropic claude-opus-4-5")


def test_a_threshold_is_tokens_or_a_share(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for threshold, more in (("5000", []), ("0.25", ["--budget", "20000"])):
        cli("replay", file, "--policy", "summarise-middle", "--threshold", threshold, "--json", *more)
        results.append(json.loads(capsys.readouterr().out))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prices", "gpt-99"], "near names"),
        (["--threshold", "0", "--policy", "summarise-middle"], "a threshold is tokens"),
        (["--threshold", "nan", "--policy", "summarise-middle"], "a threshold is tokens"),
        (["--keep", "0", "--policy", "summarise-middle"], "keep must be at least 1"),
    ],
)
def test_wrong_input_is_one_line(file: str, arguments: Sequence[str], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        cli("replay", file, *arguments)
    assert "\n" not in str(caught.value)


def test_a_session_of_an_unknown_model_asks_for_prices(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(line(ASKED, ANSWERED), encoding="utf-8")
    with pytest.raises(ValueError, match="name a model with --prices"):
        cli("replay", str(path))


def test_warnings_go_to_the_error_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(line({"role": "oracle"}, ASKED, ANSWERED), encoding="utf-8")
    assert cli("replay", str(path), "--prices", FLASH) == 0
    assert "unknown role" in capsys.readouterr().err


def test_a_system_prompt_comes_first_whatever_the_cache() -> None:
    counted = count(Session("x", (Item(system("s" * 50)), Item(user("u")), Item(assistant("a")))))
    assert [s.kind for s in counted.head] == ["system"] and len(counted.body) == 2
