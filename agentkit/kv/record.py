"""Record a run of chapter 05 on this machine: `python -m agentkit.kv.record FILE [REPEATS]`.

It needs all optional packages and some minutes.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import httpx

from agentkit.kv.changes import Change, changes, chat_text
from agentkit.kv.opened import editings, real_layers
from agentkit.kv.optional import NotInstalled, versions
from agentkit.kv.recorded import ChangeRow, Ratio, RecordedRun
from agentkit.kv.server import Measured, measure, smollm2_server, tokens_of
from agentkit.kv.smollm2 import SmolLM2, smollm2
from agentkit.kv.work import kept, shared_prefix
from agentkit.scenarios import Settings, ask, start

QUESTIONS = (
    "Read stats.py and say how many functions it has.",
    "How many lines is it?",
    "Read README.md and say how many lines it has.",
    "What was the very first question I asked you?",
)
_ANSWERED, _LAYER_TOKENS, _LAYER_POSITION = 24, 400, 40


def conversation(questions: Sequence[str] = QUESTIONS) -> list[Change]:
    """Return the changes to a conversation of the simulated agent, just before its last answer."""
    run = ask(start(Settings(compact=False, budget=1_000_000)), questions)
    return changes(run.agent.log.messages()[:-1], run.agent.tools.specs)


def record(repeats: int = 3) -> RecordedRun:
    """Measure everything; times become ratios, since a machine's speed is its own business. Raises `NotInstalled`."""
    real, wanted = smollm2(), conversation()
    tokens = real.encode(chat_text(wanted[0].after))
    with smollm2_server() as client:
        same = same_tokens(real, client, "Write a Python function that reverses a string.")
        served = _repeat(repeats, "llama.cpp", lambda: measure(client, wanted))
    counted = _repeat(repeats, "numpy", lambda: prefills(real, wanted))
    return RecordedRun(
        date=date.today().isoformat(),
        machine=f"{os.cpu_count()} cores",
        model="SmolLM2-135M-Instruct, Q4_1",
        packages=versions(),
        repeats=repeats,
        changes=tuple(_row(real, change, n, served, counted) for n, change in enumerate(wanted)),
        layers=tuple(real_layers(real, tokens[:_LAYER_TOKENS], _LAYER_POSITION)),
        editing=tuple(editings(real)),
        same_tokens=same,
    )


def _repeat(times: int, name: str, once: Callable[[], list[Measured]]) -> list[list[Measured]]:
    found = []
    for number in range(1, times + 1):
        found.append(once())
        print(f"{name}: {number} of {times}", file=sys.stderr, flush=True)
    return found


def prefills(real: SmolLM2, wanted: Sequence[Change]) -> list[Measured]:
    """Do with numpy what `measure` does with the server."""
    found, cache = [], real.model.cache()
    for change in wanted:
        before, after = (real.encode(chat_text(chat)) for chat in (change.before, change.after))
        real.model.prefill(before, cache)
        cached = kept(cache.tokens, after)
        started = time.perf_counter()
        real.model.prefill(after, cache)
        found.append(Measured(change.name, len(after), cached, (time.perf_counter() - started) * 1000))
    return found


def same_tokens(real: SmolLM2, client: httpx.Client, question: str) -> tuple[int, int]:
    """Return how many first tokens of an answer numpy and llama.cpp agree on, and how many were compared.

    llama.cpp rounds more, so where two tokens are nearly equally likely the two may part.
    """
    asked = {"messages": [{"role": "user", "content": question}]}
    prompt = tokens_of(client, client.post("/apply-template", json=asked).raise_for_status().json()["prompt"])
    body = {"prompt": prompt, "n_predict": _ANSWERED, "temperature": 0, "top_k": 1, "return_tokens": True}
    theirs = client.post("/completion", json=body).raise_for_status().json()["tokens"]
    ours = real.model.generate(prompt, len(theirs), real.model.cache())
    return shared_prefix(ours, theirs), len(theirs)


def _row(
    real: SmolLM2, change: Change, number: int, served: Sequence[Sequence[Measured]], counted: Sequence[Sequence[Measured]]
) -> ChangeRow:
    before, after = (real.encode(chat_text(chat)) for chat in (change.before, change.after))
    server, ours = served[0][number], counted[0][number]
    times = [_ratio([run[number].ms / run[0].ms for run in runs]) for runs in (served, counted)]
    return ChangeRow(change.name, server.prompt, kept(before, after), server.cached, times[0], ours.cached, times[1])


def _ratio(values: Sequence[float]) -> Ratio:
    return Ratio(*(round(v, 4) for v in (statistics.median(values), min(values), max(values))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Record a run and write it to the named file."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not 1 <= len(given) <= 2 or not (given[1:] or ["1"])[0].isdecimal() or given[1:] == ["0"]:
        print("usage: python -m agentkit.kv.record FILE [REPEATS]", file=sys.stderr)
        return 2
    try:
        record(int((given[1:] or ["3"])[0])).save(Path(given[0]))
    except NotInstalled as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
