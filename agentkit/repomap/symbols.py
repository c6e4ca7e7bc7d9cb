"""Symbols of a source text: what it defines and what it refers to. By tree-sitter, or without it by Python's own parser."""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

_QUERY = """
(class_definition name: (identifier) @def)
(function_definition name: (identifier) @def)
(module (expression_statement (assignment left: (identifier) @def)))
(call function: (identifier) @ref)
(call function: (attribute attribute: (identifier) @ref))
"""


@dataclass(frozen=True, order=True)
class Tag:
    """A name in a file: defined (`def`) or referred to (`ref`) at `line`, counted from 1."""

    path: str
    line: int
    name: str
    kind: Literal["def", "ref"]


def parser_name() -> str:
    """Return what reads the sources on this machine."""
    return "tree-sitter" if _has_tree_sitter() else "ast (tree-sitter is not installed)"


@functools.lru_cache(maxsize=2048)
def tags(path: str, text: str) -> tuple[Tag, ...]:
    """Return the tags of a Python file, in order. Another language has none: its grammar is not installed."""
    if not path.endswith((".py", ".pyi")):
        return ()
    found = _by_tree_sitter(path, text) if _has_tree_sitter() else _by_ast(path, text)
    return tuple(sorted(set(found)))


@functools.cache
def _has_tree_sitter() -> bool:
    return find_spec("tree_sitter") is not None and find_spec("tree_sitter_python") is not None


@functools.cache
def _grammar() -> tuple[Any, Any]:
    import tree_sitter
    import tree_sitter_python

    language = tree_sitter.Language(tree_sitter_python.language())
    return tree_sitter.Parser(language), tree_sitter.Query(language, _QUERY)


def _by_tree_sitter(path: str, text: str) -> Iterator[Tag]:
    from tree_sitter import QueryCursor

    parser, query = _grammar()
    tree = parser.parse(text.encode("utf-8", "replace"))
    for kind, nodes in QueryCursor(query).captures(tree.root_node).items():
        for node in nodes:
            yield Tag(path, node.start_point[0] + 1, node.text.decode("utf-8", "replace"), kind)  # type: ignore[arg-type]


def _by_ast(path: str, text: str) -> Iterator[Tag]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an old escape in somebody's string is no business of ours
            tree = ast.parse(text.replace("\0", " "))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        yield from (Tag(path, node.lineno, t.id, "def") for t in targets if isinstance(t, ast.Name))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield Tag(path, node.lineno, node.name, "def")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield Tag(path, node.func.lineno, node.func.id, "ref")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield Tag(path, node.func.end_lineno or node.func.lineno, node.func.attr, "ref")
