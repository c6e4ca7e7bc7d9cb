"""Real sessions, where they lie beside the checkout, and small made-up ones."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from agentkit.messages import Message, ToolCall, Usage, assistant, system, tool_result, user
from agentkit.replay import Counted, count
from agentkit.sessions import Item, Session, load

REAL = Path(__file__).resolve().parent.parent.parent / "shared" / "sessions"
NAMES = sorted(path.stem for path in REAL.glob("*.jsonl"))
LONG = "pi-refactor-compacted"

needs_sessions = pytest.mark.skipif(not NAMES, reason="the real sessions do not lie beside this checkout")


def real(name: str) -> Path:
    """Return the file of a real session."""
    return REAL / f"{name}.jsonl"


@functools.cache
def counted_real(name: str) -> Counted:
    """Return a real session, counted once for all tests of a file."""
    return count(load(real(name)))


def line(*messages: dict[str, Any], **more: Any) -> str:
    """Return a session as a line of JSON."""
    return json.dumps({"id": "made up", "messages": list(messages), **more})


ASKED = {"role": "user", "content": "read a.py"}
CALLED = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "read", "arguments": {"path": "a.py"}}]}
RESULT = {"role": "tool", "content": "x = 1", "tool_call_id": "c1"}
ANSWERED = {"role": "assistant", "content": "It sets x."}


def made_up(
    rounds: int = 40, *, every: int = 4, words: int = 300, pause: float = 10.0, usage: Usage | None = None
) -> Session:
    """Return a session of `rounds` calls that read one file each, some of them again; every few rounds the user speaks."""
    messages: list[Message] = [system("You are a coding agent. " * 40)]
    for n in range(rounds):
        if n % every == 0:
            messages.append(user(f"Please look at src/part_{n}.py."))
        call = ToolCall(f"c{n}", "read_file", json.dumps({"path": f"src/part_{n if n % 3 else n // 2}.py"}))
        text = " ".join(f"value_{n}_{i}" for i in range(words // 6))
        messages += [assistant("", call), tool_result(call.id, f"src/part_{n}.py\n{text}")]
    messages.append(assistant("Done."))
    items = tuple(Item(message, 1_780_000_000.0 + pause * i) for i, message in enumerate(messages))
    calls = sum(m.role == "assistant" for m in messages)
    return Session("made up", items, (usage,) * calls)
