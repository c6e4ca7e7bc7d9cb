"""One session under many policies: the requests are those of the replay, the record is what a replay says, the pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit.checks.chapter_10 import by_the_package, newest_first
from agentkit.figures.strategies import filmstrip, in_short, point_in_words, policy_strip, recall_points, rows_of
from agentkit.log import Log
from agentkit.policies.keep_everything import KeepEverything
from agentkit.policies.registry import POLICIES
from agentkit.policies.swe_agent import SweAgent
from agentkit.replay.counted import Counted, count
from agentkit.sessions.course import course_session
from agentkit.strategies import RECORDED, SESSION, Played, against, beginning, play, record, recorded
from agentkit.u_curve import PROFILES

TODAY, BEFORE = PROFILES[0], PROFILES[-1]
SMALL = 16_000


@pytest.fixture(scope="module")
def few() -> Counted:
    return count(beginning(course_session(SESSION), 24)).prepare(blocks=True)


@pytest.fixture(scope="module")
def played(few: Counted) -> dict[str, Played]:
    names = ("keep everything", "AutoGPT 2023-04 as told", "jai", "Codex", "SWE-agent")
    return {name: play(few, name, TODAY, SMALL) for name in names}


# ------------------------------------------------------------------------------------------------------------ the record


def test_the_record_has_every_policy_under_every_price_list() -> None:
    for profile in PROFILES:
        scores = recorded(profile.name)
        assert [score.policy for score in scores] == list(POLICIES)
        assert len({score.optimum for score in scores}) == 1 and scores[0].optimum > 0


def test_a_replay_says_what_is_recorded() -> None:
    """Some of it: all would take a minute. `python -m agentkit.strategies` makes it again after a change."""
    some = ("keep everything", "jai", "SWE-agent", "Goose", "cost-aware")
    for profile, scores in record(some).items():
        known = {score.policy: score for score in recorded(profile)}
        for score in scores:
            assert replace(score, usd=0, optimum=0) == replace(known[score.policy], usd=0, optimum=0)
            assert score.usd == pytest.approx(known[score.policy].usd)
            assert score.optimum == pytest.approx(known[score.policy].optimum)


def test_what_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no price profile 'gold'.*Anthropic, 5 minutes"):
        recorded("gold")
    (broken := tmp_path / "x.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="x.json is no record of strategies.*python -m agentkit.strategies"):
        recorded("no cache", broken)
    assert RECORDED.is_file()


# ------------------------------------------------------------------------------------------------------- one policy, seen


def test_the_beginning_of_a_session_has_so_many_requests(few: Counted) -> None:
    whole = course_session(SESSION)
    assert len(few.points) == few.session.calls == 24 < whole.calls
    assert few.session.items == whole.items[: len(few.session.items)]
    with pytest.raises(ValueError, match="no request"):
        beginning(replace(whole, items=whole.items[:1]), 5)


def test_the_requests_are_those_that_were_replayed(few: Counted, played: dict[str, Played]) -> None:
    for name, one in played.items():
        assert [bill.usage.prompt for bill in one.bills if bill.usage] == [row.sent for row in one.replay.requests], name
        newest = [few.body[point.end - 1].content for point in few.points]
        shown = [any(text in m.content for m in b.request.messages) for text, b in zip(newest, one.bills, strict=True)]
        assert all(shown) or name == "Codex"  # which summarises the newest too
    for name, policy in (("keep everything", KeepEverything()), ("SWE-agent", SweAgent())):
        views = [policy.view(Log((*few.system, *few.body[: point.end]))) for point in few.points]
        assert [bill.request.messages for bill in played[name].bills] == views
    assert len(played["jai"].compactions) == played["jai"].replay.compactions > 1


def test_a_maker_of_one_s_own_is_played_like_a_named_one(few: Counted, played: dict[str, Played]) -> None:
    assert play(few, POLICIES["jai"], TODAY, SMALL).score == played["jai"].score
    with pytest.raises(ValueError, match="unknown policy 'magic'"):
        play(few, "magic", TODAY)


def test_a_policy_that_decides_by_prices_is_told_them(few: Counted) -> None:
    with_cache, without = (play(few, "cost-aware", profile, 10 * SMALL) for profile in (TODAY, BEFORE))
    assert without.score.compactions > with_cache.score.compactions


def test_a_score_gets_the_optimum_of_its_price_list(played: dict[str, Played]) -> None:
    assert against(played["jai"].score, TODAY).optimum == recorded(TODAY.name)[0].optimum


# ------------------------------------------------------------------------------------------------------------- pictures


def test_a_film_has_a_strip_for_each_and_a_mark_for_each_compaction(played: dict[str, Played]) -> None:
    film = filmstrip(list(played.values()))
    texts = ["".join(e.itertext()) for e in ET.fromstring(film.svg).iter() if e.tag.endswith("text")]
    assert all(any(text.startswith(name) for text in texts) for name in played)
    assert all(in_short(one) in texts and in_short(one) in film.alt for one in played.values())
    marks = film.svg.count('fill="#b42318"')
    assert marks == 1 + sum(one.replay.compactions for one in played.values())
    assert "open loop" in film.caption
    with pytest.raises(ValueError, match="no policy"):
        filmstrip([])


def test_films_share_a_scale_when_they_are_told_to(played: dict[str, Played]) -> None:
    one = played["jai"]
    assert filmstrip([one]).svg != filmstrip([one], top=25_000).svg
    assert filmstrip([one, played["keep everything"]]).svg == filmstrip([one, played["keep everything"]], top=20_000).svg


def test_a_compaction_is_marked_also_where_the_summary_looks_like_a_user(played: dict[str, Played]) -> None:
    for name in ("jai", "Codex"):
        rows = rows_of(played[name])
        assert sum("compaction" in row.marks for row in rows) == played[name].replay.compactions > 0
    strip = policy_strip(played["Codex"])
    assert "▼ compaction" in strip.svg and "Open loop" in strip.caption and strip.alt.startswith("Codex:")


def test_the_point_says_who_is_cheaper() -> None:
    scores = recorded(TODAY.name)
    cheapest = min(scores, key=lambda s: s.usd).policy
    assert "no other policy is cheaper at that recall" in point_in_words(scores, cheapest)
    assert "cheaper at equal or better recall" in point_in_words(scores, "Aider repo map")
    picture = recall_points(scores, "jai")
    ET.fromstring(picture.svg)
    assert picture.svg.count("<circle") == len(POLICIES) and ">jai<" in picture.svg
    with pytest.raises(ValueError, match="no policy 'magic'"):
        recall_points(scores, "magic")


# ------------------------------------------------------------------------------------------------------------ exercises


def test_newest_first_is_the_package_s_filling() -> None:
    sizes = [(n * 7_919) % 900 + 10 for n in range(40)]
    for end in range(1, 40):
        for room in (200, 1_000, 3_000):
            assert newest_first(sizes[:end], room) == by_the_package(sizes[:end], room)
