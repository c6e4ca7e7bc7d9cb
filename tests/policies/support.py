"""What the tests of the policies share: small logs with known sizes, and every policy set so small that it acts on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentkit.budget import Budget
from agentkit.compaction import Compactor
from agentkit.compaction.compactor import Outcome
from agentkit.log import Compaction, Log
from agentkit.messages import Message, ToolCall, ToolSpec, assistant, system, tool_result, user
from agentkit.policies.aider import AiderRepoMap
from agentkit.policies.autogpt import AutoGpt
from agentkit.policies.autogpt_as_told import AutoGptAsTold
from agentkit.policies.autogpt_summary import AutoGptBatches, AutoGptEveryStep
from agentkit.policies.base import Policy, Situation
from agentkit.policies.codex import Codex
from agentkit.policies.goose import Goose
from agentkit.policies.goose_as_told import GooseAsTold
from agentkit.policies.jai import Jai
from agentkit.policies.keep_everything import KeepEverything
from agentkit.policies.m4 import M4
from agentkit.policies.memgpt import MemGpt
from agentkit.policies.memgpt_code import MemGptCode
from agentkit.policies.notes_file import NotesFile
from agentkit.policies.openhands import OpenHands
from agentkit.policies.pi import Pi
from agentkit.policies.server_compaction import ServerSideCompaction
from agentkit.policies.server_editing import ServerSideEditing
from agentkit.policies.summarise_middle import SummariseMiddle
from agentkit.policies.swe_agent import SweAgent
from agentkit.providers.base import Provider
from agentkit.tokens import TextEstimator

WINDOW = 1_000
BUDGET = Budget(WINDOW, 500, "for the test")


class Words(TextEstimator):
    """One token for each word: sizes that a reader can count."""

    name = "words"

    def _plain(self, text: str) -> int:
        return len(text.split())


def compactor(provider: Provider, **options: object) -> Compactor:
    return Compactor(provider, **options)  # type: ignore[arg-type]


def _compaction(provider: Provider) -> Policy:
    made = ServerSideCompaction(compactor(provider))
    made.trigger = 500  # under the server's minimum: for small histories
    return made


Maker = Callable[[Provider], Policy]
SMALL: dict[str, Maker] = {
    "keep everything": lambda p: KeepEverything(),
    "summarise the middle": lambda p: SummariseMiddle(compactor(p)),
    "AutoGPT 2023-04 as told": lambda p: AutoGptAsTold(last=3, top=2),
    "AutoGPT 2023-04": lambda p: AutoGpt(token_limit=1_200),
    "AutoGPT 2023-05": lambda p: AutoGptEveryStep(compactor(p), token_limit=1_700),
    "AutoGPT 2023-06": lambda p: AutoGptBatches(compactor(p), token_limit=2_200),
    "MemGPT": lambda p: MemGpt(compactor(p), evict=0.05),
    "MemGPT 2023-10 code": lambda p: MemGptCode(compactor(p)),
    "Aider repo map": lambda p: AiderRepoMap(),
    "SWE-agent": lambda p: SweAgent(n=2),
    "jai": lambda p: Jai(compactor(p)),
    "M4": lambda p: M4(compactor(p), keep=2),
    "Goose as told": lambda p: GooseAsTold(compactor(p), tail=2),
    "Goose": lambda p: Goose(compactor(p), batch=1),
    "server-side editing": lambda p: ServerSideEditing(trigger=100, keep=1, clear_inputs=True),
    "server-side compaction": _compaction,
    "Codex": lambda p: Codex(compactor(p), user_tokens=20),
    "OpenHands": lambda p: OpenHands(compactor(p), max_size=8),
    "pi": lambda p: Pi(compactor(p), keep_recent=60),
    "notes file": lambda p: NotesFile(compactor(p)),
}
"""Every policy, so small that short histories make it act."""


def situation(
    estimate: int = 10**6,
    *,
    window: int = WINDOW,
    forced: bool = False,
    harsher: int = 0,
    reports: list[str | Outcome] | None = None,
    tools: tuple[ToolSpec, ...] = (),
) -> Situation:
    budget = Budget(window, max(1, window // 2), "for the test")
    news = [] if reports is None else reports
    return Situation(estimate, 0, budget, tools, news.append, forced, harsher)


def step(policy: Policy, log: Log, now: Situation | None = None) -> Compaction | None:
    """Do what the agent does before a request."""
    record = policy.decide(log, now or situation())
    if record is not None:
        log.compact(record)
    return record


def worked(rounds: int, *, lines: int = 3, question: str = "the task", text: str = "line") -> list[Message]:
    """Return a turn of `rounds` calls, each with an output of `lines` lines."""
    messages = [user(question)]
    for n in range(rounds):
        call = ToolCall(f"c{question[-1:]}{n}", "read_file", f'{{"path": "f{n}.py"}}')
        output = "\n".join(f"{text} {n}.{i}" for i in range(lines))
        messages += [assistant(f"step {n}", call), tool_result(call.id, output)]
    return messages


def log_of(*turns: Sequence[Message]) -> Log:
    """Return a log with a system prompt and these turns, each but the last one answered."""
    messages = [system("rules")]
    for i, turn in enumerate(turns):
        messages += [*turn, assistant(f"answer {i}")] if i + 1 < len(turns) else turn
    return Log(messages)


def texts(messages: Sequence[Message]) -> list[str]:
    return [m.content for m in messages]
