"""Names and addresses become providers; what is missing is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkit.cli import main
from agentkit.connect import connect, simulated
from agentkit.providers.base import ProviderError
from agentkit.simulator import PROFILES, Simulator
from agentkit.simulator.server import Server

KEYS = ("ANTHROPIC_API_KEY", "AGENTKIT_API_KEY", "OPENAI_API_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_the_simulator_by_profile(profile: str) -> None:
    provider = connect("simulator", profile=profile)
    assert (provider.model, provider.name) == (PROFILES[profile].model, f"simulator ({profile} rules)")
    assert type(simulated(profile)) is type(provider)


def test_the_dialect_alone_chooses_the_simulators_rules() -> None:
    assert connect(dialect="anthropic").model == "simulated-anthropic"


@pytest.mark.parametrize(
    ("target", "dialect", "kind"),
    [
        ("anthropic", None, "Anthropic"),
        ("anthropic", "anthropic", "Anthropic"),
        ("https://api.anthropic.com", None, "Anthropic"),
        ("https://api.anthropic.com/v1", None, "Anthropic"),
        ("http://127.0.0.1:8080", "anthropic", "Anthropic"),
        ("https://api.anthropic.com/v1", "openai", "OpenAI"),
        ("http://127.0.0.1:8080/v1", None, "OpenAI"),
        ("https://notanthropic.com/v1", None, "OpenAI"),
    ],
)
def test_who_speaks_what(target: str, dialect: str | None, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "TEST-KEY-0001")
    provider = connect(target, "m", dialect=dialect)  # type: ignore[arg-type]
    assert type(provider).__name__ == kind


def test_a_missing_key_is_said_before_the_first_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ProviderError, match="ANTHROPIC_API_KEY"):
        connect("anthropic", "claude-opus-5")
    script = tmp_path / "q.txt"
    script.write_text("hello\n", encoding="utf-8")
    status = main(["run", "--provider", "anthropic", "--model", "claude-opus-5", "--script", str(script)])
    captured = capsys.readouterr()
    assert status == 1 and captured.out == ""
    assert captured.err.startswith("agentkit: no API key") and captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"target": "anthropic"}, "which model of anthropic"),
        ({"target": "claude", "model": "m"}, "nor 'anthropic'"),
        ({"target": "anthropic", "model": "m", "dialect": "openai"}, "leave --dialect out"),
        ({"target": "simulator", "model": "m", "dialect": "anthropic"}, "only 'simulated-anthropic'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(options: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "TEST-KEY-0001")
    with pytest.raises(ProviderError, match=says) as caught:
        connect(**options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_the_command_line_talks_to_a_server_of_the_messages_api(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTKIT_API_KEY", "TEST-KEY-0001")
    script = tmp_path / "q.txt"
    script.write_text("How many lines is stats.py?\n", encoding="utf-8")
    with Server(Simulator("anthropic", key="TEST-KEY-0001")) as server:
        where = ["--provider", server.root, "--dialect", "anthropic", "--model", "simulated-anthropic"]
        assert main(["run", *where, "--script", str(script)]) == 0
        out = capsys.readouterr().out
        assert "`stats.py` has 40 lines" in out
        monkeypatch.setenv("AGENTKIT_API_KEY", "TEST-KEY-0002")
        assert main(["run", *where, "--script", str(script)]) == 1
        error = capsys.readouterr().err
    assert "AGENTKIT_API_KEY" in error and error.count("\n") == 1
    assert "TEST-KEY" not in out + error


def test_the_command_line_plays_anthropics_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "q.txt"
    script.write_text("How many lines is stats.py?\nRead the big file and say how many methods it has.\n", encoding="utf-8")
    assert main(["run", "--profile", "anthropic", "--script", str(script)]) == 0
    out = capsys.readouterr().out
    assert "simulator (anthropic rules)" in out and "`big_service.py` has 40 methods" in out
