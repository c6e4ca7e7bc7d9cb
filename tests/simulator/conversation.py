"""Helpers for the tests of the reader: talk to it with real tools, and compact a conversation by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from agentkit.compaction import KEEP_LIST, flatten, summary_prompt
from agentkit.compaction.compactor import summary_message
from agentkit.log import Compaction, Placement
from agentkit.messages import Message, Request, ToolCall, assistant, system, tool_result, user
from agentkit.protocol import DIALECTS, violations
from agentkit.simulator.reader import read
from agentkit.tools import Toolbox, workspace_tools

PROMPT = system("You are a coding agent.")
MOST_ROUNDS = 30


def box(folder: Path) -> Toolbox:
    """Return the real tools for a small project in `folder`: forty methods in 285 lines, a config, a log."""
    methods = [
        f"\n    # step {n}\n    def compute{n}(self, x: int) -> int:\n        self.calls += 1\n"
        f"        base = x * {n}\n        shifted = base << {n % 3 + 1}\n        return shifted + {n}\n"
        for n in range(1, 41)
    ]
    (folder / "big_service.py").write_text(
        '"""Steps."""\n\n\nclass BigService:\n    calls = 0\n' + "".join(methods), "utf-8"
    )
    (folder / "config.json").write_text('{\n  "rate": 31.5,\n  "retry_limit": 4\n}\n', encoding="utf-8")
    (folder / "build.log").write_text("INFO start\nINFO compile\nERROR zone has no rate\nINFO end\n", encoding="utf-8")
    return workspace_tools(folder)


def ask(tools: Toolbox, messages: Sequence[Message], question: str) -> list[Message]:
    """Run one turn to its end and return all messages. Every request must be valid, and the turn must end."""
    talk = [*messages, user(question)]
    for _ in range(MOST_ROUNDS):
        request = Request(tuple(talk), tools.specs)
        assert not [v for dialect in DIALECTS for v in violations(request, dialect)]
        answer = read(request)
        talk.append(answer)
        if not answer.tool_calls:
            return talk
        talk += [tools.run(call) for call in answer.tool_calls]
    raise AssertionError(f"the turn did not end within {MOST_ROUNDS} rounds")


def calls(messages: Sequence[Message]) -> list[str]:
    """Return every call as `name argument …`, in order."""
    return [" ".join([c.name, *map(str, c.parsed().values())]) for m in messages for c in m.tool_calls]


def reading(path: str, text: str, call_id: str = "c1") -> list[Message]:
    """Return a call of `read_file` and its result, numbered as the tool does it."""
    rows = "\n".join(f"{n}\t{line}" for n, line in enumerate(text.split("\n"), 1))
    return [assistant("", ToolCall(call_id, "read_file", json.dumps({"path": path}))), tool_result(call_id, rows)]


def summarised(messages: Sequence[Message], keep: Sequence[str] = KEEP_LIST, previous: str = "", clip: int = 4_000) -> str:
    """Return the reader's summary of `messages`."""
    prompt = summary_prompt(flatten(messages, clip), keep, previous)
    return read(Request((user(prompt),), thinking=False)).content


def remembering(summary: str, placement: Placement = "system") -> list[Message]:
    """Return the head of a conversation of which only a summary is left."""
    return [PROMPT, summary_message(Compaction(summary, "m1", placement=placement))]
