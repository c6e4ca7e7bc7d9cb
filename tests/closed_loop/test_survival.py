"""Planted facts: what a list keeps, what the user's own words keep, and what a receipt with recall brings back."""

from __future__ import annotations

import pytest

from agentkit.closed_loop.survival import FACTS, LISTS, WITHOUT_RECALL, Survived, survival
from agentkit.scenarios.project import project_files

KINDS = {fact.kind for fact in FACTS}


@pytest.fixture(scope="module")
def seen() -> list[Survived]:
    names = ("jai", "Codex", "cost-aware", WITHOUT_RECALL)
    return survival(names, ("full list", "only open tasks"), most=2, processes=1)


def left(seen: list[Survived], policy: str, keep_list: str, compactions: int) -> set[str]:
    return {
        one.kind
        for one in seen
        if (one.policy, one.keep_list, one.compactions) == (policy, keep_list, compactions) and one.answered
    }


def test_no_needle_stands_in_the_workspace() -> None:
    texts = project_files().values()
    assert not [fact.kind for fact in FACTS if any(fact.needle in text for text in texts)]
    assert all(fact.needle in fact.told and fact.needle not in fact.question for fact in FACTS)


def test_before_a_compaction_everything_is_in_view_and_told(seen: list[Survived]) -> None:
    first = [one for one in seen if one.compactions == 0]
    assert len(first) == 4 * 2 * len(FACTS) and all(one.in_view and one.answered for one in first)


def test_a_list_keeps_what_it_names_and_nothing_else(seen: list[Survived]) -> None:
    assert left(seen, "jai", "full list", 1) == {"constraint", "wish"}
    assert left(seen, "jai", "only open tasks", 1) == set()


def test_the_user_s_own_words_outlast_any_list(seen: list[Survived]) -> None:
    assert all(left(seen, "Codex", keep_list, 2) == KINDS for keep_list in ("full list", "only open tasks"))


def test_recall_brings_back_what_the_receipt_only_begins(seen: list[Survived]) -> None:
    for keep_list in ("full list", "only open tasks"):
        assert left(seen, "cost-aware", keep_list, 2) == KINDS
        assert left(seen, WITHOUT_RECALL, keep_list, 2) < KINDS
    gone = [s for s in seen if (s.policy, s.keep_list, s.compactions) == ("cost-aware", "only open tasks", 2)]
    assert not any(one.in_view for one in gone)


def test_an_unknown_list_is_named() -> None:
    with pytest.raises(ValueError, match="unknown list 'none'; there are full list, only open tasks"):
        survival(("jai",), ("none",))
    assert list(LISTS)[:2] == ["full list", "only open tasks"]
