"""Questions about source text, answered from its syntax tree: imports, docstrings, hints, sizes, files and processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One module of the package: its name below the package (`providers.base`; a package has its folder's), and its text."""

    name: str
    text: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        """Return the package that relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def read_package(folder: Path) -> dict[str, Module]:
    """Read every module below `folder`, by name; the package itself has the empty name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(name, path.read_text(encoding="utf-8"), is_package)
    return found


def imports(tree: ast.AST, package: str = "", root: str = "agentkit") -> list[tuple[str, tuple[str, ...]]]:
    """Return every import as (absolute module, names taken from it), also those inside functions.

    What stands under `if TYPE_CHECKING:` is never imported and left out. `package` is where relative imports start.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [root, *package.split(".")] if package else [root]
            start = base[: len(base) - node.level + 1] if node.level else []
            found.append((".".join([*start, *filter(None, [node.module])]), tuple(a.name for a in node.names)))
        waiting += ast.iter_child_nodes(node)
    return found


def own_imports(module: Module, known: set[str], root: str = "agentkit") -> set[str]:
    """Return the modules of the package that `module` imports. `from package import x` is x where that is a module."""
    found = set()
    for name, taken in imports(module.tree, module.package, root):
        if name.split(".")[0] != root:
            continue
        inner = name.partition(".")[2]
        below = {f"{inner}.{x}".lstrip(".") for x in taken} & known
        found |= below
        if not taken or len(below) < len(taken):
            found.add(inner)
    return found - {module.name}


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return the names along one cycle, or an empty list."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for after in sorted(graph.get(name, ())):
            if cycle := visit(after, [*path, name]):
                return cycle
        done.add(name)
        return []

    return next((cycle for name in graph if (cycle := visit(name, []))), [])


def functions(tree: ast.Module) -> Iterator[Function]:
    """Yield every function and method, also nested ones."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def public(tree: ast.Module) -> Iterator[tuple[str, Function | ast.ClassDef | ast.Module]]:
    """Yield the module, its public classes and functions, and their public methods."""
    yield "module", tree
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, Function) and not inner.name.startswith("_"):
                    yield f"{node.name}.{inner.name}", inner


def without_docstring(tree: ast.Module) -> list[str]:
    """Return what is public and has no docstring whose first line is a whole sentence."""
    docs = ((name, ast.get_docstring(node) or "\n") for name, node in public(tree))
    return [name for name, doc in docs if not doc.splitlines()[0].endswith(".")]


def without_hints(tree: ast.Module) -> list[str]:
    """Return the functions with a parameter or a result that has no type."""
    found = []
    for node in functions(tree):
        a = node.args
        every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, [a.vararg, a.kwarg])]
        bare = [x.arg for x in every if x.annotation is None and x.arg not in ("self", "cls")]
        if bare or node.returns is None:
            found.append(f"{node.name}({', '.join(bare)})")
    return found


def longer_than(tree: ast.Module, lines: int) -> list[str]:
    """Return the functions of more than `lines` lines."""
    sizes = ((node.name, (node.end_lineno or 0) - node.lineno + 1) for node in functions(tree))
    return [f"{name}: {size} lines" for name, size in sizes if size > lines]


# --------------------------------------------------------------------------------------------------- files and processes

_TEXT_FILES = {"open", "read_text", "write_text", "fdopen", "NamedTemporaryFile", "TemporaryFile"}
_BINARY_UNLESS_SAID = {"NamedTemporaryFile", "TemporaryFile"}
_PROCESSES = {"run", "call", "check_call", "check_output"}
_CONNECTIONS = {
    "httpx": {"Client", "AsyncClient", "get", "post", "put", "delete", "request", "stream"},
    "socket": {"create_connection"},
    "request": {"urlopen"},
    "urllib.request": {"urlopen"},
}


def careless_calls(tree: ast.Module) -> list[str]:
    """Return the calls that leave the encoding to the system, or that may wait for ever."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [f"line {call.lineno}: {fault}" for call in calls for fault in _faults(call)]


def _faults(call: ast.Call) -> Iterator[str]:
    owner, name = _called(call)
    keywords = {k.arg: ast.unparse(k.value) for k in call.keywords}
    if name in _TEXT_FILES and "encoding" not in keywords and not _binary(call, owner, name):
        yield f"{name} without encoding"
    if owner == "subprocess":
        if name in _PROCESSES and "timeout" not in keywords:
            yield f"subprocess.{name} without timeout"
        if _exchanges_text(name, keywords) and not {"encoding", "errors"} <= keywords.keys():
            yield f"subprocess.{name} without encoding and errors"
    if name in ("wait", "communicate") and not call.args and "timeout" not in keywords and not keywords:
        yield f".{name}() without a limit"
    if name in _CONNECTIONS.get(owner, ()) and "timeout" not in keywords:
        yield f"{owner}.{name} without timeout"


def _called(call: ast.Call) -> tuple[str, str]:
    if isinstance(call.func, ast.Attribute):
        return ast.unparse(call.func.value), call.func.attr
    return "", getattr(call.func, "id", "")


def _binary(call: ast.Call, owner: str, name: str) -> bool:
    given = [k.value for k in call.keywords if k.arg == "mode"]
    if name in _TEXT_FILES - {"read_text", "write_text"}:
        # open(path, mode), but path.open(mode) and NamedTemporaryFile(mode)
        given += call.args[1:2] if owner in ("", "io", "os", "gzip") else call.args[:1]
    modes = [value.value for value in given if isinstance(value, ast.Constant)]
    return any("b" in str(mode) for mode in modes) or (name in _BINARY_UNLESS_SAID and not modes)


def _exchanges_text(name: str, keywords: dict[str, str]) -> bool:
    pipes = any(keywords.get(stream, "").endswith("PIPE") for stream in ("stdin", "stdout", "stderr"))
    return pipes or name == "check_output" or bool({"capture_output", "input", "text"} & keywords.keys())
