"""The arithmetic of task files and launch plans.

An expression is parsed with Python's own parser, checked against a whitelist of syntax
and evaluated by walking the tree: what a model wrote is data and never runs as code.
Numbers are limited to 64 bits, texts are short and trees are shallow, so no expression can
take long or overflow the stack.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from evoengine.errors import hint

Value = int | float | bool

MAX_LENGTH = 400  # characters; the longest expression of the shipped seeds has 90
MAX_MAGNITUDE = 2**63 - 1  # what a kernel argument can hold
MAX_EXPONENT = 64
MAX_DEPTH = 100  # levels; a walk takes three Python frames for each of the 1000 that Python allows

# as C++ and YAML spell them; Python's own spelling is a constant of its grammar
_CONSTANTS = {"true": True, "false": False}
_FOREIGN = re.compile(r"[^A-Za-z0-9_.+\-*/%()<>=!, ]")  # characters that arithmetic does not use


class ExpressionError(ValueError):
    """The expression cannot be used; `column` counts from 1 within its text."""

    def __init__(self, message: str, text: str, column: int = 1) -> None:
        super().__init__(f"{message} in {text!r}, column {column}")
        self.message = message
        self.text = text
        self.column = column


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _round_up(a: int, b: int) -> int:
    return _ceil_div(a, b) * b


def _power(a: Value, b: Value) -> Value:
    # these messages hold no values, because they may be sizes of a hidden case
    if abs(b) > MAX_EXPONENT:
        raise ValueError(f"an exponent is beyond {MAX_EXPONENT}")
    result: Value | complex = a**b
    if isinstance(result, complex):
        raise ValueError("a power of a negative number is not a real number")
    return result


def _fits(number: Value) -> bool:
    """Whether `number` fits 64 bits; NaN and infinity do not."""
    return -MAX_MAGNITUDE <= number <= MAX_MAGNITUDE


# name -> (function, fewest arguments, most arguments)
FUNCTIONS: dict[str, tuple[Callable[..., Value], int, int]] = {
    "ceil_div": (_ceil_div, 2, 2),
    "round_up": (_round_up, 2, 2),
    "min": (min, 2, 8),
    "max": (max, 2, 8),
    "abs": (abs, 1, 1),
    "sqrt": (math.sqrt, 1, 1),
    "log2": (math.log2, 1, 1),
}

_ALLOWED = (
    "allowed are numbers, names, + - * / // % **, comparisons, and/or/not (not && || !), `a if c"
    f" else b` and {', '.join(FUNCTIONS)}"
)

_BINARY: dict[type[ast.AST], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_COMPARE: dict[type[ast.AST], Callable[[Value, Value], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: dict[type[ast.AST], Callable[[Value], Value]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}


@dataclass(frozen=True)
class Expression:
    """A checked expression over named numbers."""

    text: str
    names: frozenset[str]
    _tree: ast.expr

    def evaluate(self, scope: Mapping[str, Value]) -> Value:
        """The value of the expression with the values of names in `scope`.

        Raises ExpressionError for an unknown name, a division by zero, a domain error
        or a number beyond 64 bits.
        """
        return _Evaluation(self.text, scope).value(self._tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=4096, typed=True)  # a tuner binds the same few formulas thousands of times
def parse(text: str | int | float) -> Expression:
    """The expression that `text` spells; raises ExpressionError naming the column."""
    source = " ".join(str(text).split())  # one line, so that a column is a place in it
    if not source:
        raise ExpressionError("expected an expression, got nothing", source)
    if len(source) > MAX_LENGTH:
        raise ExpressionError(
            f"expected at most {MAX_LENGTH} characters, got {len(source)}", source[:40] + "..."
        )
    if foreign := _FOREIGN.search(source):
        raise ExpressionError(
            f"{foreign[0]!r} is not arithmetic; {_ALLOWED}", source, foreign.start() + 1
        )
    names: set[str] = set()
    tree = _tree(source)
    _check(tree, source, names)
    return Expression(source, frozenset(names), tree)


def _tree(source: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            # Python's warnings, e.g. for "1if x else 2", would reach the terminal
            warnings.simplefilter("ignore")
            return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        column = getattr(error, "offset", None) or 1
        raise ExpressionError(
            f"not an arithmetic expression{_quote_hint(source)}", source, column
        ) from None


def _quote_hint(source: str) -> str:
    if source.count("(") == source.count(")"):
        return ""
    return (
        " (unbalanced parentheses: YAML splits a list at bare commas, so put quotes around the"
        " whole expression)"
    )


def _check(node: ast.expr, text: str, names: set[str], depth: int = 1) -> None:
    """Refuses syntax outside the whitelist and collects the names used."""
    if depth > MAX_DEPTH:
        raise ExpressionError(
            f"expected at most {MAX_DEPTH} levels of nesting", text, node.col_offset + 1
        )
    children: list[ast.expr] = []
    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            if not _fits(number):
                raise ExpressionError("number is beyond 64 bits", text, node.col_offset + 1)
        case ast.Name():
            if node.id not in _CONSTANTS:
                names.add(node.id)
        case ast.BinOp() if type(node.op) in _BINARY:
            children = [node.left, node.right]
        case ast.UnaryOp() if type(node.op) in _UNARY:
            children = [node.operand]
        case ast.BoolOp():
            children = node.values
        case ast.Compare() if all(type(op) in _COMPARE for op in node.ops):
            children = [node.left, *node.comparators]
        case ast.IfExp():
            children = [node.test, node.body, node.orelse]
        case ast.Call(func=ast.Name(id=function), keywords=[]):
            _check_call(node, function, text)
            children = node.args
        case _:
            raise ExpressionError(
                f"{type(node).__name__} is not arithmetic; {_ALLOWED}", text, node.col_offset + 1
            )
    for child in children:
        _check(child, text, names, depth + 1)


def _check_call(node: ast.Call, function: str, text: str) -> None:
    if function not in FUNCTIONS:
        raise ExpressionError(
            f"no function {function!r}{hint(function, FUNCTIONS)}", text, node.col_offset + 1
        )
    _, fewest, most = FUNCTIONS[function]
    if not fewest <= len(node.args) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise ExpressionError(
            f"{function} takes {wanted} arguments, got {len(node.args)}", text, node.col_offset + 1
        )


class _Evaluation:
    """One walk over a checked tree."""

    def __init__(self, text: str, scope: Mapping[str, Value]) -> None:
        self.text = text
        self.scope = scope

    def value(self, node: ast.expr) -> Value:
        try:
            result = self._compute(node)
        except (ArithmeticError, ValueError, TypeError) as error:
            if isinstance(error, ExpressionError):
                raise
            raise ExpressionError(str(error), self.text, node.col_offset + 1) from None
        if not _fits(result):
            raise ExpressionError("value is beyond 64 bits", self.text, node.col_offset + 1)
        return result

    def _compute(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant():
                return node.value  # type: ignore[return-value]  # _check let only numbers through
            case ast.Name():
                return self._name(node)
            case ast.BinOp():
                return _BINARY[type(node.op)](self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                return _UNARY[type(node.op)](self.value(node.operand))
            case ast.BoolOp():
                return self._bool(node)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self.value(node.body) if self.value(node.test) else self.value(node.orelse)
            case ast.Call(func=ast.Name(id=function)):
                return FUNCTIONS[function][0](*(self.value(argument) for argument in node.args))
        raise AssertionError(f"_check let {type(node).__name__} through")

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.scope:
            return self.scope[node.id]
        if node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        raise ExpressionError(
            f"unknown name {node.id!r}{hint(node.id, sorted(self.scope))}",
            self.text,
            node.col_offset + 1,
        )

    def _bool(self, node: ast.BoolOp) -> bool:
        if isinstance(node.op, ast.And):
            return all(self.value(value) for value in node.values)
        return any(self.value(value) for value in node.values)

    def _compare(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True
