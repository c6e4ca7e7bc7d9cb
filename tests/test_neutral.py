"""Not one line of agent, tools, policies or compaction knows which provider it is: words, imports and types say so."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import layout_rules
import pytest
from layout_rules import Module

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = layout_rules.read_package(ROOT / "agentkit")

NEUTRAL = ("agent", "tools", "policies", "compaction", "recovery", "log", "ledger", "settle", "budget", "events", "messages")
"""Modules and packages that any provider must be able to stand behind."""

NAMES = re.compile(
    r"anthropic|claude|openai|\bgpt\b|deepseek|gemini|mistral|ollama|llama|moonshot|qwen|bedrock"
    r"|cache_control|tool_use|tool_result_block|stop_reason|finish_reason|reasoning_content|input_schema|x-api-key|\bdialect\b",
    re.IGNORECASE,
)
"""A company, its model, or a word of one wire format."""

ALLOWED_IMPORTS = {"providers.base", "providers"}

STORIES = re.compile(r"^policies\.(?:server_|registry$|cost_aware$)|^recovery\.overflow$")
"""A policy that plays what a named server does is named after it, a price list's cache rule has a name, and overflows have
the shapes of servers. None of them asks which provider is there, and the other rules hold for them as well."""


def belongs(name: str) -> bool:
    return any(name == n or name.startswith(n + ".") for n in NEUTRAL)


def words(module: Module) -> list[str]:
    """Return every name, attribute and text of a module that says who the provider is; prose is left out."""
    prose = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(module.tree):
        said = [getattr(node, field, None) for field in ("id", "attr", "arg", "name", "module")]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            said.append(node.value)
        found += [text for text in said if isinstance(text, str) and NAMES.search(text)]
    return found


def imported(module: Module) -> list[str]:
    """Return what a module imports of providers, simulator and caches beyond the interface."""
    own = layout_rules.own_imports(module, set(PACKAGE))
    return sorted(
        name
        for name in own
        if name.split(".")[0] in ("providers", "simulator", "caching", "connect") and name not in ALLOWED_IMPORTS
    )


def asks_for_a_class(module: Module) -> list[str]:
    """Return where code asks what kind of provider it has. An optional attribute with a default is no such question."""
    calls = (n for n in ast.walk(module.tree) if isinstance(n, ast.Call) and n.args)
    asked = (c for c in calls if getattr(c.func, "id", "") in ("isinstance", "type", "hasattr"))
    return [ast.unparse(c) for c in asked if re.search(r"\bprovider\b", ast.unparse(c.args[0]))]


MODULES = sorted(name for name in PACKAGE if belongs(name))


def test_there_is_something_to_look_at() -> None:
    assert len(MODULES) > 20 and {"agent", "tools.base", "policies.base", "compaction.compactor"} <= set(MODULES)


@pytest.mark.parametrize("name", [name for name in MODULES if not STORIES.search(name)])
def test_no_word_says_which_provider_it_is(name: str) -> None:
    assert words(PACKAGE[name]) == []


@pytest.mark.parametrize("name", MODULES)
def test_nothing_but_the_interface_is_imported(name: str) -> None:
    assert imported(PACKAGE[name]) == []


@pytest.mark.parametrize("name", MODULES)
def test_nobody_asks_what_kind_of_provider_it_is(name: str) -> None:
    assert asks_for_a_class(PACKAGE[name]) == []


LEAKS = [
    "if provider.name == 'anthropic':\n    pass",
    "body = {'cache_control': 1}",
    "def f(message):\n    return message.reasoning_content",
    "from agentkit.providers.openai import OpenAI",
    "import agentkit.caching.anthropic",
    "if dialect: pass",
]


@pytest.mark.parametrize("text", LEAKS)
def test_a_leak_is_found(text: str) -> None:
    module = Module("agent", text)
    assert words(module) or imported(module)


def test_a_question_for_the_class_is_found() -> None:
    for text in ("isinstance(self.provider, OpenAI)", "hasattr(provider, 'count_tokens')"):
        assert asks_for_a_class(Module("agent", text))


def test_prose_may_name_its_source() -> None:
    assert words(Module("agent", '"""As Anthropic tells it."""\n\n\nX = 1\n"""Claude\'s default."""  # openai')) == []
