"""What is worked out step by step is what would be worked out anew: the branch of a growing log, and the newest texts."""

from __future__ import annotations

import random

import pytest

from agentkit.log import Compaction, Log
from agentkit.messages import ToolCall, assistant, tool_result, user
from agentkit.policies.branch import Reader, read, write_note
from agentkit.policies.ranking import Newest


def _step(log: Log, chance: random.Random) -> None:
    """Append something: a message, a record with or without `clip`, a note, or a rewind."""
    number = len(log)
    body = [m for m in log.messages() if m.role != "system"]
    kind = chance.choice(["user", "call", "call", "result", "result", "late", "note", "compact", "clip", "rewind"])
    calls = [c.id for m in body for c in m.tool_calls]
    if kind == "result" and calls:
        log.append(tool_result(chance.choice(calls[-2:]), "r" * chance.randrange(1, 60)))
    elif kind == "call":
        log.append(assistant("a", ToolCall(f"c{number}", "read"), ToolCall(f"d{number}", "read")))
    elif kind == "note":
        write_note(log, "mine", number=number)
    elif kind in ("compact", "clip") and body:
        log.compact(Compaction("s", chance.choice(body).id, clip=10 if kind == "clip" else 0))
    elif kind == "rewind" and number > 4 and chance.random() < 0.3:
        log.rewind(chance.randrange(2, number))
    else:
        log.append(user(f"u{number}"))


@pytest.mark.parametrize("seed", range(40))
def test_a_branch_read_step_by_step_is_the_branch(seed: int) -> None:
    chance, log, reader = random.Random(seed), Log(), Reader()
    for _ in range(60):
        _step(log, chance)
        if chance.random() < 0.7:
            grown, anew = reader.read(log), read(log)
            assert grown == anew and grown.newest == anew.newest and reader.read(log) is grown
            if chance.random() < 0.7:
                assert grown.rounds == anew.rounds
    other = log.fork(len(log) - 1)
    assert reader.read(other) == read(other)


@pytest.mark.parametrize("seed", range(5))
def test_the_newest_texts_have_the_very_scores_of_bm25s(seed: int) -> None:
    bm25s = pytest.importorskip("bm25s")
    chance, newest = random.Random(seed), Newest()
    documents: list[list[str]] = []
    for number in range(31):
        documents.append([f"w{int(chance.expovariate(0.03))}" for _ in range(chance.randrange(1, 200))])
        newest.add(str(number), documents[-1])
        whole = bm25s.BM25()
        whole.index(documents, show_progress=False)
        wanted = list(dict.fromkeys(f"w{int(chance.expovariate(0.03))}" for _ in range(60)))
        known = [word for word in wanted if word in whole.vocab_dict]
        assert newest.scores(wanted) == (whole.get_scores(known).tolist() if known else [0.0] * (number + 1))
    assert newest.scores(["never"]) == [0.0] * 31
