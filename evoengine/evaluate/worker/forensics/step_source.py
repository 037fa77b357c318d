"""Where a step of the reference stands in its source: its text, its operands, its variable."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from functools import lru_cache

MOST_TEXT = 60  # characters of a step's source
MOST_OPERAND = 30  # of an operand that is named in a sentence
Span = tuple[int | None, int | None, int | None, int | None]  # as of code.co_positions


@dataclass(frozen=True)
class StepSource:
    """The source of one step: `(x - mean) / root`."""

    line: int
    text: str  # shortened, without backticks
    operands: tuple[str, ...] = ()  # ("(x - mean)", "root"); "" for one too long to name
    variable: str = ""  # what the statement assigns to
    is_value: bool = False  # whether the step's result is what is assigned


def step_source(filename: str, span: Span, first_line: int) -> StepSource:
    """The source at `span` of a file; `first_line` of the function, where the span has no line."""
    line, last, start, stop = span
    line = line or first_line
    source = linecache.getline(filename, line)
    if last == line and start is not None and stop is not None:
        text = source.encode()[start:stop].decode(errors="replace")  # columns count bytes
    else:
        text = source.strip()
    found = _node(filename, span)
    if found is None:
        return StepSource(line, _short(text, MOST_TEXT))
    node, statement = found
    variable, value = _assigned(statement)
    operands = tuple(_short_or_none(one) for one in _operands(node, _modules(filename)))
    return StepSource(line, _short(text, MOST_TEXT), operands, variable, node is value)


@lru_cache(maxsize=16)
def _tree(filename: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return None


@lru_cache(maxsize=16)
def _modules(filename: str) -> frozenset[str]:
    """The names that the file gives to modules, such as torch and F."""
    tree = _tree(filename)
    imports = [
        node
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    found = {name.asname or name.name.split(".")[0] for node in imports for name in node.names}
    return frozenset(found)


def _node(filename: str, span: Span) -> tuple[ast.AST, ast.stmt] | None:
    """The expression at `span` and the innermost statement around it."""
    tree = _tree(filename)
    if tree is None:
        return None
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Return | ast.Expr):
            continue
        for node in ast.walk(statement):
            if _span(node) == span:
                return node, statement
    return None


def _span(node: ast.AST) -> Span:
    return (
        getattr(node, "lineno", None),
        getattr(node, "end_lineno", None),
        getattr(node, "col_offset", None),
        getattr(node, "end_col_offset", None),
    )


def _assigned(statement: ast.stmt) -> tuple[str, ast.AST | None]:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id, statement.value
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id, statement
    return "", None


def _operands(node: ast.AST, modules: frozenset[str]) -> list[ast.AST]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if not isinstance(node, ast.Call):
        return []
    function = node.func
    if isinstance(function, ast.Attribute):
        root: ast.AST = function.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if not (isinstance(root, ast.Name) and root.id in modules):
            return [function.value, *node.args]
    return list(node.args)


def _short_or_none(node: ast.AST) -> str:
    """The operand, or `the mean` where it is a long call of that name; "" where it has none."""
    text = ast.unparse(node)
    if len(text) <= MOST_OPERAND:
        return text
    called = node.func if isinstance(node, ast.Call) else None
    return f"the {called.attr}" if isinstance(called, ast.Attribute) else ""


def _short(text: str, most: int) -> str:
    text = " ".join(text.split()).replace("`", "'")
    return text if len(text) <= most else text[: most - 3] + "..."
