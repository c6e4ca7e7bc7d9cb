"""Work out what a small Python function returns by reading its source: a tiny interpreter, so that nothing is ever run.

It knows assignments, arithmetic, bit operations, comparisons, if/else and return. A counter on the object
(`self.calls += 1`) changes no result and is passed over. Anything else is refused by name: calls, loops, attributes.
"""

from __future__ import annotations

import ast
import operator
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Value = int | float | bool
MOST_BITS = 4_096
"""Whole numbers beyond this many bits are refused: a power or a shift could otherwise take all memory."""


class Unsupported(ValueError):
    """The source uses something that this interpreter does not know; the text names it."""


@dataclass(frozen=True)
class Worked:
    """The steps (`base = 21` …) and the value returned; None is the value of a function without a return."""

    steps: tuple[str, ...]
    value: Value | None


def parameters(source: str) -> list[str]:
    """Return the names of the parameters, without `self`. Raises `Unsupported`."""
    names = [a.arg for a in _function(source).args.args]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def evaluate(source: str, numbers: Sequence[int | float], constants: Mapping[str, Value] | None = None) -> Worked:
    """Return how the function in `source` works out for `numbers`. Raises `Unsupported`.

    `constants` are the names of the module that the function may read.
    """
    function, names = _function(source), parameters(source)
    if len(names) != len(numbers):
        raise Unsupported(f"it takes {len(names)} value{'s' * (len(names) != 1)} ({', '.join(names)}), not {len(numbers)}")
    frame = _Frame(dict(constants or {}) | dict(zip(names, numbers, strict=True)))
    try:
        frame.run(function.body)
    except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
        raise error if isinstance(error, Unsupported) else Unsupported(f"it ends in {type(error).__name__}") from None
    return Worked(tuple(frame.steps), frame.value)


def _function(source: str) -> ast.FunctionDef:
    try:
        body = ast.parse(textwrap.dedent(source)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unsupported("its source is no valid Python") from None
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        raise Unsupported("its source is no single function")
    return body[0]


_BINARY: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,  # type: ignore[dict-item]
    ast.RShift: operator.rshift,  # type: ignore[dict-item]
    ast.BitAnd: operator.and_,  # type: ignore[dict-item]
    ast.BitOr: operator.or_,  # type: ignore[dict-item]
    ast.BitXor: operator.xor,  # type: ignore[dict-item]
}
_UNARY: dict[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,  # type: ignore[dict-item]
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class _Frame:
    """The names of one function call, its steps so far and its value."""

    def __init__(self, names: dict[str, Value]) -> None:
        self.names = names
        self.steps: list[str] = []
        self.value: Value | None = None

    def run(self, body: Sequence[ast.stmt]) -> bool:
        """Run statements; True when a return was reached."""
        return any(self._statement(statement) for statement in body)

    def _statement(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Return):
            self.value = self._value(node.value) if node.value else None
            return True
        if isinstance(node, ast.If):
            return self.run(node.body if self._value(node.test) else node.orelse)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            self._assign(node)
        elif not (isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))):
            raise Unsupported(f"it uses {_name(node)}")
        return False

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        target = targets[0]
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            return  # what the object remembers; reading it back is refused
        if len(targets) > 1 or not isinstance(target, ast.Name) or node.value is None:
            raise Unsupported("it assigns to something other than one name")
        value = self._value(node.value)
        if isinstance(node, ast.AugAssign):
            value = self._binary(node.op, self._look_up(target.id), value)
        self.names[target.id] = value
        self.steps.append(f"{target.id} = {value}")

    def _value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.Name):
            return self._look_up(node.id)
        if isinstance(node, ast.BinOp):
            return self._binary(node.op, self._value(node.left), self._value(node.right))
        if isinstance(node, ast.UnaryOp):
            return _UNARY[type(node.op)](self._value(node.operand))
        if isinstance(node, ast.IfExp):
            return self._value(node.body if self._value(node.test) else node.orelse)
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.BoolOp):
            return self._bool(node)
        raise Unsupported(f"it uses {_name(node)}")

    def _look_up(self, name: str) -> Value:
        if name not in self.names:
            raise Unsupported(f"{name} is not set in it")
        return self.names[name]

    def _compare(self, node: ast.Compare) -> bool:
        left = self._value(node.left)
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self._value(other)
            if type(op) not in _COMPARE:
                raise Unsupported(f"it uses {_name(op)}")
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def _bool(self, node: ast.BoolOp) -> Value:
        stop = isinstance(node.op, ast.Or)
        value: Value = not stop
        for part in node.values:
            value = self._value(part)
            if bool(value) == stop:
                break
        return value

    def _binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        if type(op) not in _BINARY:
            raise Unsupported(f"it uses {_name(op)}")
        bits = int(left).bit_length()
        size = {ast.LShift: bits + right, ast.Pow: bits * right, ast.Mult: bits + int(right).bit_length()}.get(type(op), 0)
        if size > MOST_BITS:
            raise Unsupported("a number in it grows too large")
        value = _BINARY[type(op)](left, right)
        if isinstance(value, complex):
            raise Unsupported("a number in it is no longer real")
        return value


def _name(node: ast.AST) -> str:
    """Return what a piece of syntax is called, in plain words."""
    words = {ast.Call: "a call", ast.For: "a loop", ast.While: "a loop", ast.Attribute: "an attribute", ast.Raise: "raise"}
    return words.get(type(node), f"{type(node).__name__} (syntax)")
