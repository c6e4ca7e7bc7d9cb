"""Any history, any policy, any dialect, any fault, any recovery: what goes out must be valid, whatever goes wrong."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from strategies import PICTURE

from agentkit.budget import Budget, BudgetError
from agentkit.compaction import Compactor, Keep
from agentkit.events import Recovered
from agentkit.messages import Message, Opaque, ToolCall, assistant, system, tool_result, user
from agentkit.policies.registry import POLICIES, make_policy
from agentkit.recovery.steps import RECOVERIES
from agentkit.simulator import KINDS, PROFILES, Fault
from recovery.support import Ran, ask, assert_sound, read_tool, start

_PLAIN = ("", " ", "hello", "Read a.py and say what it does.", "</history>")
_TEXTS = (*_PLAIN, "数据库连接失败 " * 9, "🔥👩‍👩‍👧", "half \ud800 a pair")
_LONG = ("def f(x):\n    return x\n" * 30, "word " * 400, "错误:连接失败 " * 90)
_IDS = ("", "a", "c1", "two words", "ключ", "z" * 65, "c1-2", "call_7")
_HITS = ("any", "turn", "summary")
_ARGUMENTS = ("", "{}", "[]", '{"path": "a.py"}', '{"path": "a', "NaN", '{"x": "测试"}')


class Maker:
    """Make histories from a seed: mostly whole turns, with results that are missing, doubled or late, and strange ids."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def history(self) -> list[Message]:
        """Return a list of messages of any order and length."""
        messages = [system("rules")] if self.draw.random() < 0.6 else []
        for _ in range(self.draw.randint(0, 9)):
            messages += self._part()
        return messages

    def text(self) -> str:
        """Return any text."""
        return self.draw.choice(_LONG if self.draw.random() < 0.3 else _TEXTS)

    def _part(self) -> list[Message]:
        kind = self.draw.choice(("turn", "turn", "turn", "batch", "message"))
        if kind == "turn":
            rounds = [m for _ in range(self.draw.randint(0, 2)) for m in self._batch()]
            return [user(self.text()), *rounds, assistant(self.text())]
        return self._batch() if kind == "batch" else [self._message()]

    def _batch(self) -> list[Message]:
        ids = [self.draw.choice(_IDS) for _ in range(self.draw.randint(1, 3))]
        called = assistant(self.text(), *(ToolCall(i, "read_file", self.draw.choice(_ARGUMENTS)) for i in ids))
        results = [tool_result(i, self.text(), is_error=self.draw.random() < 0.2) for i in ids]
        if self.draw.random() < 0.3:
            results = [r for r in results if self.draw.random() < 0.7]
        if self.draw.random() < 0.2:
            results.insert(self.draw.randint(0, len(results)), self._message())
        self.draw.shuffle(results)
        if self.draw.random() < 0.2:
            called = replace(called, opaque=(Opaque("somebody", {"signature": "s"}),), reasoning="hm, 🤔")
        return [called, *results]

    def _message(self) -> Message:
        role = self.draw.choice(("system", "user", "assistant", "tool"))
        more = {"images": (PICTURE,)} if self.draw.random() < 0.2 else {}
        return Message(role, self.text(), tool_call_id=self.draw.choice(_IDS), **more)


def run_one(seed: int) -> Ran | None:
    """Run one agent on what `seed` draws: two questions, up to two faults, a small budget and a small window.

    None: the system prompt that was drawn alone is too long for the budget, which is said before anything is sent.
    """
    maker = Maker(seed)
    draw = maker.draw
    profile, recovery, name = draw.choice(list(PROFILES)), draw.choice(list(RECOVERIES)), draw.choice(list(POLICIES))
    faults = [
        Fault(draw.choice(KINDS), draw.choice((1, 1, 3)), after=draw.randint(0, 3), hits=draw.choice(_HITS))
        for _ in range(draw.randint(0, 2))
    ]
    history = maker.history()
    keep, boundary = Keep(draw.randint(1, 6), draw.choice(("messages", "turns"))), draw.choice(("user", "pair"))
    placement = draw.choice(("system", "user"))
    options: dict[str, Any] = dict(
        history=history or [system("rules")],
        budget=Budget.ratio(draw.choice((700, 1_500, 6_000))),
        tools=read_tool("def f(x):\n    return x\n" * draw.choice((3, 60))),
        policy=lambda provider: make_policy(
            name, Compactor(provider, keep, boundary, placement=placement, max_summary=draw.choice((100, 2_000)))
        ),
        simulator={"window": draw.choice((900, 2_500, 50_000))},
        max_rounds=4,
    )
    try:
        ran = start(profile, recovery, faults, **options)
    except BudgetError:
        return None
    ask(ran, draw.choice(("Read a.py.", "How many lines is a.py?", "Thanks.")), maker.text() or "Read b.py.")
    assert_sound(ran, 2, history or [system("rules")], exact=False)
    return ran


def run_many(seeds: range) -> Counter[str]:
    """Run an agent for each seed and count what came out. Raises with the seed when a run is not sound."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        try:
            ran = run_one(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        if ran is None:
            seen["refused at the start"] += 1
            continue
        seen["runs"] += 1
        seen["requests"] += len(ran.answered)
        seen["invalid"] += len(ran.refused)
        seen["ended in an error" if ran.error else "answered"] += 1
        seen["compactions"] += len(ran.agent.log.compactions())
        seen["recovered"] += ran.count(Recovered)
    return seen
