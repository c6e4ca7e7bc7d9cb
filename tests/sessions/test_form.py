"""Reading and writing sessions: nothing is lost on the way, what is odd is counted, what is broken is one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_support import ANSWERED, ASKED, CALLED, NAMES, RESULT, line, needs_sessions, real
from strategies import histories

from agentkit.messages import ToolSpec, Usage
from agentkit.sessions import Item, RecordedCut, Session, SessionError, dumps, load, loads, save

BILL = {"prompt_tokens": 100, "completion_tokens": 7, "cached_tokens": 60, "cache_write_tokens": 30}


def test_a_session_is_read_with_times_calls_and_bills() -> None:
    text = line(
        ASKED | {"ts": "2026-01-02T03:04:05.5Z"},
        CALLED,
        RESULT | {"is_error": True},
        ANSWERED,
        usage=[BILL, None],
        model="m",
    )
    session = loads(text)
    assert session.warnings == () and session.model == "m" and (session.calls, session.billed) == (2, 1)
    assert session.items[0].at == 1767323045.5
    assert session.items[1].message.tool_calls[0].parsed() == {"path": "a.py"}
    assert session.items[2].message.is_error and session.items[2].message.tool_call_id == "c1"
    assert session.usage == (Usage(10, 60, 30, 7), None)


_USAGE = st.builds(Usage, *[st.integers(0, 10_000)] * 5)
_TIME = st.none() | st.integers(0, 4_000_000_000_000).map(lambda ms: ms / 1000)


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Return any session that the form can hold."""
    plain = [replace(m, id="", images=(), opaque=()) for m in draw(histories())]
    plain = [replace(m, tool_calls=m.tool_calls if m.role == "assistant" else ()) for m in plain]
    plain = [replace(m, tool_call_id=m.tool_call_id if m.role == "tool" else "") for m in plain]
    items = [Item(m, draw(_TIME), draw(st.sampled_from(["", "injected"]))) for m in plain]
    if items:
        cut = RecordedCut(
            draw(st.integers(0, len(items) - 1)), draw(st.none() | st.integers(0, 9)), draw(st.none() | _USAGE)
        )
        items[-1] = replace(items[-1], cut=cut)
    calls = sum(m.role == "assistant" for m in plain)
    usage = tuple(draw(st.lists(st.none() | _USAGE, min_size=calls, max_size=calls)))
    tools = (ToolSpec("read_file", "Read.", {"type": "object"}),) if draw(st.booleans()) else ()
    return Session("any", tuple(items), usage, tools, title="T", format="f", model="m", notes="n")


@given(sessions())
def test_what_is_written_is_read_again(session: Session) -> None:
    again = loads(dumps(session))
    ids = [c.id for i in session.items for c in i.message.tool_calls]
    answered = [i.message.tool_call_id for i in session.items if i.message.role == "tool"]
    if all(ids) and all(answered):  # an empty id is odd, and gets one
        assert again.items == session.items
    assert [i.message.content for i in again.items] == [i.message.content for i in session.items]
    assert (again.usage, again.tools, again.title, again.notes) == (session.usage, session.tools, "T", "n")


def test_a_file_holds_one_line_in_utf_8(tmp_path: Path) -> None:
    session = loads(line(ASKED | {"content": "你好\nnaïve"}, ANSWERED))
    save(session, tmp_path / "s.jsonl")
    text = (tmp_path / "s.jsonl").read_text(encoding="utf-8")
    assert text.count("\n") == 1 and "你好" in text
    assert load(tmp_path / "s.jsonl") == session


# ------------------------------------------------------------------------------------------------------ odd, counted, read


@pytest.mark.parametrize(
    ("text", "warning", "calls"),
    [
        (line(ASKED, {"role": "oracle", "content": "hm"}, ANSWERED), "unknown role 'oracle'", 1),
        (line(ASKED, "hello", ANSWERED), "no object", 1),  # type: ignore[arg-type]
        (line({"content": "hm"}, ANSWERED), "unknown role 'None'", 1),
        (line(ASKED, {**CALLED, "tool_calls": [{"name": "read"}]}, RESULT), "tool call without an id", 1),
        (line(ASKED, CALLED, {"role": "tool", "content": "x"}), "tool result without an id", 1),
        (line(ASKED, {**CALLED, "tool_calls": ["read"]}), "tool call left out", 1),
        (line(ASKED, {"role": "assistant", "content": {"a": 1}}), "content that is no text", 1),
        (line(ASKED | {"ts": "yesterday"}, ANSWERED), "time that is no time", 1),
        (line(ASKED | {"ts": True}, ANSWERED), "time that is no time", 1),
        (line(ASKED | {"ts": -5}, ANSWERED), "time that is no time", 1),
        (line(ASKED, ANSWERED, usage=[BILL | {"prompt_tokens": -3}]), "negative or absurd", 1),
        (line(ASKED, ANSWERED, usage=[BILL | {"completion_tokens": 10**12}]), "negative or absurd", 1),
        (line(ASKED, ANSWERED, usage=[BILL | {"cached_tokens": "many"}]), "negative or absurd", 1),
        (line(ASKED, ANSWERED, usage=[BILL | {"cached_tokens": 1.5}]), "negative or absurd", 1),
        (line(ASKED, ANSWERED, usage=[[1, 2]]), "negative or absurd", 1),
        (line(ASKED, ANSWERED, usage=[BILL | {"cached_tokens": 500}]), "more cached than prompt", 1),
        (line(ASKED, ANSWERED, usage=[BILL, BILL]), "2 usage entries for 1 model calls", 1),
        (line(ASKED, ANSWERED, usage={}), "`usage` is no list", 1),
        (line(ASKED, ANSWERED, tools=[{"description": "?"}]), "tool left out", 1),
        (line(ASKED | {"compaction": {"kept_from": 99}}, ANSWERED), "without a usable `kept_from`", 1),
        (line(ASKED | {"compaction": {"kept_from": -1}}, ANSWERED), "without a usable `kept_from`", 1),
        (line(ASKED), "no model calls", 0),
        (line(), "no model calls", 0),
    ],
)
def test_what_is_odd_is_counted_and_the_rest_is_read(text: str, warning: str, calls: int) -> None:
    session = loads(text)
    assert warning in session.report() and session.calls == calls
    assert len(session.usage) == calls


def test_odd_usage_leaves_the_good_one() -> None:
    session = loads(line(ASKED, ANSWERED, ASKED, ANSWERED, usage=[{"prompt_tokens": -1}, BILL]))
    assert session.usage == (None, Usage(10, 60, 30, 7))
    assert dict(session.warnings) == {"usage with a negative or absurd counter left out": 1}


def test_a_count_for_each_kind_of_oddity() -> None:
    odd = {"role": "oracle", "content": "hm"}
    assert loads(line(odd, odd, odd, ANSWERED)).report().endswith("left out (3 x)")


def test_missing_ids_still_pair_calls_with_results() -> None:
    two = {"role": "assistant", "content": "", "tool_calls": [{"name": "a"}, {"name": "b"}]}
    none = {"role": "tool", "content": "x"}
    session = loads(line(ASKED, two, none, none))
    calls, first, second = session.items[1].message.tool_calls, session.items[2].message, session.items[3].message
    assert [first.tool_call_id, second.tool_call_id] == [c.id for c in calls] == ["call-1", "call-2"]


def test_a_message_left_out_does_not_move_where_a_compaction_keeps_from() -> None:
    odd: dict[str, Any] = {"role": "oracle", "content": "hm"}
    made = {"role": "user", "content": "summary", "kind": "compaction_summary", "compaction": {"kept_from": 2}}
    session = loads(line(ASKED, odd, CALLED, RESULT, made, ANSWERED))
    cut = session.items[3].cut
    assert cut is not None and session.items[cut.kept_from].message.tool_calls


# ------------------------------------------------------------------------------------------------------------ one clear line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"messages": [', ":1: broken JSON at column"),
        (b'\n\n{"messages": [}', ":3: broken JSON at column 15"),
        (b"[1, 2]", ":1: not a session"),
        (b'{"messages": "none"}', ":1: not a session"),
        (b'{"messages": [], "x": ' + b"[" * 100_000, ":1: "),
        (b"", ": the file is empty"),
        (b"  \n \n", ": the file is empty"),
        (b'{"messages": ["\xff"]}', ":1: not UTF-8 at byte 16"),
    ],
)
def test_what_is_broken_is_one_line_with_file_and_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(content)
    with pytest.raises(SessionError) as caught:
        load(path)
    assert f"{path}{words}" in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.jsonl", tmp_path):
        with pytest.raises(SessionError, match="(?i)no such file|directory|denied"):
            load(path)


def test_two_gigabytes_of_one_line_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.write(b'{"messages": [')
        file.truncate(2 * 1024**3)  # a file with a hole: it takes no room on the disc
    with pytest.raises(SessionError, match=r"huge\.jsonl:1: the line is longer than 64 MB"):
        load(path)


def test_the_limit_is_a_parameter(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(line(ASKED, ANSWERED), encoding="utf-8")
    assert load(path, most_bytes=path.stat().st_size).calls == 1
    with pytest.raises(SessionError, match="longer than"):
        load(path, most_bytes=path.stat().st_size - 1)


def test_a_second_session_in_the_file_is_not_read_silently(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(line(ASKED, ANSWERED) + "\n" + line(ASKED) + "\n\n", encoding="utf-8")
    assert "further lines" in load(path).report()


# ------------------------------------------------------------------------------------------------------------- real sessions


@needs_sessions
@pytest.mark.parametrize("name", NAMES)
def test_a_real_session_comes_through_whole(name: str) -> None:
    session = load(real(name))
    data = json.loads(real(name).read_text(encoding="utf-8"))
    assert session.warnings == () and len(session.items) == len(data["messages"])
    assert session.calls == sum(m["role"] == "assistant" for m in data["messages"])
    assert sum(u.prompt for u in session.usage if u) == sum(u["prompt_tokens"] for u in data["usage"] if u)
    again = loads(dumps(session))
    assert [i.message for i in again.items] == [i.message for i in session.items] and again.usage == session.usage
