"""Who refers to whom, and what matters: a graph of files, PageRank personalised by the files at hand, rank per symbol."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from agentkit.repomap.symbols import Tag

DAMPING = 0.85
Edge = tuple[str, str, str, float]
"""(file that refers, file that defines, name, weight)"""

_LONG_NAME = 8
_MANY_DEFINERS = 5


@dataclass(frozen=True)
class Weights:
    """What makes a reference count more or less; the numbers are Aider's.

    `root_again`: the root of the number of references is taken once more for each further file that defines the name, as a
    variable is used twice there. Files are in alphabetical order here; there the order is arbitrary.
    """

    mentioned: float = 10.0
    telling: float = 10.0
    private: float = 0.1
    common: float = 0.1
    from_chat: float = 50.0
    unused: float = 0.1
    root_again: bool = True


@dataclass(frozen=True)
class Ranked:
    """Symbols by rank, the highest first, as (file, name), and the rank of every file."""

    symbols: list[tuple[str, str]]
    files: dict[str, float] = field(default_factory=dict)


def rank(
    tags: Mapping[str, Sequence[Tag]],
    chat: Collection[str] = (),
    mentioned_files: Collection[str] = (),
    mentioned: Collection[str] = (),
    weights: Weights | None = None,
) -> Ranked:
    """Rank the symbols of the files in `tags`. `chat` are the files at hand, `mentioned` the words of the user."""
    edges = list(_edges(tags, chat, mentioned, weights or Weights()))
    start = personalisation(list(tags), chat, mentioned_files, mentioned)
    ranks = pagerank(sorted(tags), edges, start)
    spread: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    for source, _, _, weight in edges:
        total[source] += weight
    for source, definer, name, weight in edges:
        spread[definer, name] += ranks[source] * weight / total[source]
    ordered = sorted(spread, key=lambda key: (spread[key], key), reverse=True)
    return Ranked(ordered, ranks)


def personalisation(
    paths: Sequence[str], chat: Collection[str], mentioned_files: Collection[str], mentioned: Collection[str]
) -> dict[str, float]:
    """Return where the random walk starts: files at hand, files mentioned, files whose name has a word of the user."""
    share = 100 / max(1, len(paths))
    found: dict[str, float] = {}
    for path in paths:
        value = share if path in chat else 0.0
        if path in mentioned_files:
            value = max(value, share)
        parts = {*path.split("/"), path.rpartition("/")[2].partition(".")[0]}
        value += share if parts & set(mentioned) else 0.0
        if value:
            found[path] = value
    return found


def _edges(
    tags: Mapping[str, Sequence[Tag]], chat: Collection[str], mentioned: Collection[str], weights: Weights
) -> list[Edge]:
    definers: dict[str, set[str]] = defaultdict(set)
    references: dict[str, list[str]] = defaultdict(list)
    for path, found in tags.items():
        for tag in found:
            if tag.kind == "def":
                definers[tag.name].add(path)
            else:
                references[tag.name].append(path)
    if not references:  # then every definition counts as a reference to itself
        references = defaultdict(list, {name: sorted(paths) for name, paths in definers.items()})
    edges: list[Edge] = []
    for name in sorted(definers):
        if name not in references:
            edges += [(path, path, name, weights.unused) for path in sorted(definers[name])]
            continue
        factor = _factor(name, len(definers[name]), mentioned, weights)
        for source, count in sorted(Counter(references[name]).items()):
            use, number = factor * (weights.from_chat if source in chat else 1.0), float(count)
            for definer in sorted(definers[name]):
                number = number**0.5 if weights.root_again else count**0.5
                edges.append((source, definer, name, use * number))
    return edges


def _factor(name: str, definers: int, mentioned: Collection[str], weights: Weights) -> float:
    factor = weights.mentioned if name in mentioned else 1.0
    cased = "_" in name or "-" in name or re.search(r"[a-z][A-Z]", name) is not None
    if cased and any(c.isalpha() for c in name) and len(name) >= _LONG_NAME:
        factor *= weights.telling
    if name.startswith("_"):
        factor *= weights.private
    return factor * weights.common if definers > _MANY_DEFINERS else factor


# ----------------------------------------------------------------------------------------------------------------- PageRank


def pagerank(nodes: Sequence[str], edges: Sequence[Edge], start: Mapping[str, float]) -> dict[str, float]:
    """Return the rank of every node: by rustworkx, or without it by the same rule in plain Python."""
    if not nodes:
        return {}
    by: Callable[..., dict[str, float]] = _by_rustworkx if find_spec("rustworkx") else by_iteration
    return by(nodes, edges, start)


def _by_rustworkx(nodes: Sequence[str], edges: Sequence[Edge], start: Mapping[str, float]) -> dict[str, float]:
    import rustworkx

    graph = rustworkx.PyDiGraph()
    number = dict(zip(nodes, graph.add_nodes_from(list(nodes)), strict=True))
    graph.add_edges_from([(number[a], number[b], weight) for a, b, _, weight in edges])
    walk = {number[path]: value for path, value in start.items()} or None
    ranks = rustworkx.pagerank(graph, alpha=DAMPING, weight_fn=float, personalization=walk, dangling=walk, max_iter=500)
    return {path: ranks[i] for path, i in number.items()}


def by_iteration(nodes: Sequence[str], edges: Sequence[Edge], start: Mapping[str, float]) -> dict[str, float]:
    """Return the rank of every node by repeating the walk until nothing changes any more."""
    whole = sum(start.values())
    begin = {n: start.get(n, 0.0) / whole if whole else 1 / len(nodes) for n in nodes}
    out: Counter[str] = Counter()
    for source, _, _, weight in edges:
        out[source] += weight
    ranks = dict.fromkeys(nodes, 1 / len(nodes))
    for _ in range(500):
        lost = sum(ranks[n] for n in nodes if not out[n])
        new = {n: (1 - DAMPING) * begin[n] + DAMPING * lost * begin[n] for n in nodes}
        for source, target, _, weight in edges:
            new[target] += DAMPING * ranks[source] * weight / out[source]
        change = sum(abs(new[n] - ranks[n]) for n in nodes)
        ranks = new
        if change < 1e-6 * len(nodes):
            break
    return ranks
