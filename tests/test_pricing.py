"""Prices and bills: every part is paid once, tiers and peak hours count, and an unknown name gets a helpful line."""

from __future__ import annotations

import socket
from datetime import UTC, date, datetime

import pytest

from agentkit import pricing
from agentkit.cache_rules import cache_rule, table
from agentkit.messages import Usage
from agentkit.pricing import EXAMPLE, Bill, Prices, UnknownModel, plain, prices

OFF_PEAK = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)  # a Monday


def test_e13_a_cache_write_is_paid() -> None:
    bill = prices("claude-sonnet-4-6").bill(Usage(fresh=1_000, cache_write=100_000))
    assert bill.total == pytest.approx(0.378)
    assert (bill.fresh, bill.written) == (pytest.approx(0.003), pytest.approx(0.375))


def test_e14_writes_for_an_hour_cost_more() -> None:
    listed = prices("claude-sonnet-4-6")
    assert listed.bill(Usage(cache_write=500_000), written_long=200_000).total == pytest.approx(2.325)
    assert listed.bill(Usage(cache_write=500_000)).total == pytest.approx(1.875)


def test_e12_cached_tokens_are_paid_once() -> None:
    listed = plain("x", fresh=2.5, read=1.25, output=10)
    assert listed.bill(Usage(fresh=200, cache_read=800)).total == pytest.approx(0.0015)


def test_e11_fresh_tokens_do_not_vanish() -> None:
    usage = Usage(fresh=50, cache_read=100_000)
    assert usage.prompt == 100_050
    assert plain("x", fresh=1e6, read=1e5, output=1e6).bill(usage).total == pytest.approx(10_050)


def test_a_bill_adds_up_to_the_tokens() -> None:
    listed = plain("x", fresh=1e6, read=1e6, write=1e6, output=1e6)
    assert listed.bill(Usage(1, 20, 300, 4_000)).total == pytest.approx(4_321)
    both = listed.bill(Usage(1, 2, 3, 4)) + listed.bill(Usage(10, 20, 30, 40))
    assert both == Bill(*(pytest.approx(n) for n in (11, 22, 33, 44)))  # type: ignore[arg-type]
    assert both.input + both.output == both.total == pytest.approx(110)


def test_above_a_tier_the_whole_request_is_dearer() -> None:
    listed = prices("claude-haiku-5-5")
    assert listed.rates_at(100_000).fresh == pytest.approx(0.1)
    assert listed.rates_at(100_001).fresh == pytest.approx(0.5)
    assert listed.rates_at(100_001).output == pytest.approx(2.5)
    assert "100,000" in listed.label()


@pytest.mark.parametrize(
    ("when", "factor"),
    [
        (OFF_PEAK, 1),
        (datetime(2026, 11, 30, 0, 59, 59, tzinfo=UTC), 1),
        (datetime(2026, 11, 30, 1, 0, tzinfo=UTC), 2),
        (datetime(2026, 11, 30, 3, 59, 59, tzinfo=UTC), 2),
        (datetime(2026, 11, 30, 4, 0, tzinfo=UTC), 1),
        (datetime(2026, 11, 30, 9, 30, tzinfo=UTC), 2),
        (datetime(2026, 11, 28, 9, 30, tzinfo=UTC), 1),  # a Saturday
        (datetime(2026, 11, 30, 9, 30, tzinfo=UTC).timestamp(), 2),
        (datetime(2026, 11, 30, 9, 30), 2),  # no zone: UTC
        (None, 1),
    ],
)
def test_deepseek_costs_double_at_peak_hours(when: datetime | float | None, factor: int) -> None:
    rates = prices("deepseek-flash").rates_at(1_000, when)
    assert (rates.fresh, rates.read, rates.output) == pytest.approx((0.15 * factor, 0.003 * factor, 0.6 * factor))


def test_a_peak_over_midnight() -> None:
    peak = pricing.Peak(datetime(1970, 1, 1, 22).time(), datetime(1970, 1, 1, 2).time(), ())
    assert [peak.active(OFF_PEAK.replace(hour=h)) for h in (21, 22, 0, 1, 2)] == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("model", "fresh", "read", "write", "output"),
    [
        ("claude-opus-5", 5, 0.5, 6.25, 25),
        ("claude-opus-4-5-20251101", 5, 0.5, 6.25, 25),
        ("claude-opus-4-6", 5, 0.5, 6.25, 25),  # no premium for long prompts since 2026-03-13
        ("gpt-6.1-sol", 2, 0.1, 2.5, 10),
        ("gpt-5.4", 2.5, 0.25, 2.5, 15),  # no fee for writing: as a fresh token
        ("GLM-5.3", 1.4, 0.26, 1.4, 4.4),
        ("gemini-4-argon", 2, 0.1, 2, 10),  # the doubled price starts a day later
        ("groq/openai/gpt-oss-120b", 0.15, 0.075, 0.15, 0.6),
        ("claude-mythos-5-1", 10, 0.25, 12.5, 50),  # from our own table
        ("dashscope/qwen3.8-flash", 0.15, 0.016, 0.2, 0.47),
    ],
)
def test_known_prices(model: str, fresh: float, read: float, write: float, output: float) -> None:
    rates = prices(model).rates
    assert (rates.fresh, rates.read, rates.write, rates.output) == pytest.approx((fresh, read, write, output))


def test_the_day_decides_which_price_holds() -> None:
    assert prices("gemini-4-argon", date(2026, 12, 1)).rates.fresh == pytest.approx(4)
    assert prices("claude-opus-4-6", date(2026, 3, 12)).rates_at(200_001).fresh == pytest.approx(10)


@pytest.mark.parametrize("model", ["claude-opus-5", "deepseek-flash", "gpt-6.1-sol", "claude-mythos-5", "mimo-v2.6-pro"])
def test_every_price_says_that_it_is_an_example_with_source_and_date(model: str) -> None:
    label = prices(model).label()
    assert label.startswith(EXAMPLE) and "2026-" in label and prices(model).source


@pytest.mark.parametrize(
    ("model", "near"),
    [
        ("gpt5", "gpt-5"),
        ("claude-opus5", "claude-opus-5"),
        ("openai/gpt-5.44", "gpt-5.4"),
        ("deepsek-flash", "deepseek-flash"),
    ],
)
def test_an_unknown_model_gets_the_near_names(model: str, near: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        prices(model)
    text = str(caught.value)
    assert repr(model) in text and near in text and "\n" not in text
    names = text.rpartition("near names: ")[2].split(", ")
    assert len(names) == len(set(names)) <= 5


@pytest.mark.parametrize("model", ["", "  ", "zz", "\ud800"])
def test_a_name_like_no_other_gets_examples_that_exist(model: str) -> None:
    with pytest.raises(UnknownModel, match="for example"):
        prices(model)
    assert [prices(name).model for name in table()["examples"]] == table()["examples"]


def test_without_the_package_our_own_table_still_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing, "_catalogue", lambda: ())
    prices.cache_clear()
    try:
        assert prices("claude-mythos-5").rates.read == 1
        with pytest.raises(UnknownModel, match="pip install genai-prices"):
            prices("claude-opus-5")
    finally:
        prices.cache_clear()


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a price was looked up over the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    pricing._catalogue.cache_clear()
    prices.cache_clear()
    assert prices("claude-opus-5").rates.fresh == 5


def test_every_row_of_the_table_has_source_and_date() -> None:
    rows = [*table()["prices"], *table()["rules"].values()]
    assert len(rows) > 10
    assert [row for row in rows if not row.get("source") or not isinstance(row.get("date"), date)] == []
    assert max(row["date"] for row in rows) <= table()["read"]


@pytest.mark.parametrize(
    ("model", "kind", "minimum", "charged"),
    [
        ("claude-opus-5", "anthropic", 512, False),
        ("claude-opus-4-8", "anthropic", 1_024, False),
        ("claude-opus-4-7", "anthropic", 2_048, False),
        ("claude-haiku-4-5", "anthropic", 4_096, False),
        ("claude-sonnet-5", "anthropic", 1_024, False),
        ("claude-sonnet-5-5", "anthropic", 512, False),
        ("aws/global.anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic", 4_096, False),
        ("gpt-5.4", "openai", 1_024, False),
        ("gpt-5.6-sol", "openai", 1_024, True),
        ("gpt-6.1-sol", "openai", 1_024, True),
        ("deepseek-flash", "deepseek", 64, False),
        ("glm-5.3", "openai", 1_024, False),
    ],
)
def test_the_cache_rule_goes_with_the_model(model: str, kind: str, minimum: int, charged: bool) -> None:
    listed: Prices = prices(model)
    rule = cache_rule(listed.provider, listed.model)
    assert (rule.kind, rule.minimum, rule.charged) == (kind, minimum, charged)
    assert rule.source and rule.life > 0
