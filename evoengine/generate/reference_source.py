"""What a prompt shows of a task's Python file: one function with all that it needs, and which kinds
of operation it consists of.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

PRODUCTS = "products"
REDUCTIONS = "reductions"
EXPONENTIALS = "exponentials"
ALL_OPERATIONS = frozenset({PRODUCTS, REDUCTIONS, EXPONENTIALS})

# names of functions and methods of torch, without what only begins or ends like them
_NAMES = {
    PRODUCTS: {
        "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "linear", "bilinear", "tensordot",
        "conv1d", "conv2d", "conv3d", "scaled_dot_product_attention",
    },
    EXPONENTIALS: {
        "exp", "exp2", "expm1", "log", "log2", "log1p", "sigmoid", "silu", "tanh", "gelu", "erf",
        "softmax", "log_softmax", "logsumexp", "cross_entropy", "softplus", "sin", "cos",
        "scaled_dot_product_attention",
    },
    REDUCTIONS: {
        "sum", "mean", "var", "std", "norm", "amax", "amin", "max", "min", "argmax", "argmin",
        "prod", "cumsum", "cumprod", "softmax", "log_softmax", "logsumexp", "layer_norm",
        "batch_norm", "group_norm", "rms_norm", "normalize", "cross_entropy", "bincount",
        "index_add", "index_add_", "scatter_add", "scatter_add_", "segment_reduce",
        "scaled_dot_product_attention", "embedding_bag", "median", "topk", "sort",
    },
}  # fmt: skip


def excerpt(text: str, function: str, without: Collection[str] = ()) -> str:
    """The part of a Python file that `function` needs, in the file's order and with its comments:
    definitions, assignments and imports, but for those named in `without`; the file's docstring
    where nothing is left out by name. The whole `text` where it cannot be parsed or has no such
    function.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text
    needed = _needed(tree, function)
    if not needed:
        return text
    lines = text.splitlines()
    kept = [node for node in tree.body if _defined(node) & needed - set(without)]
    if not without and tree.body and _is_text(tree.body[0]):
        kept.insert(0, tree.body[0])
    return "\n".join(_joined(kept, lines)).strip("\n")


def summary_of(text: str, function: str) -> str:
    """The first line of the docstring of `function`, "" where it has none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ""
    found = [
        ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    return found[-1].partition("\n")[0].strip() if found else ""


def operations_of(text: str, function: str) -> frozenset[str]:
    """The kinds of operation in `function` and in what it needs; all where that is unknown."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ALL_OPERATIONS
    needed = _needed(tree, function)
    found = {kind for node in tree.body if _defined(node) & needed for kind in _kinds(node)}
    return frozenset(found) if needed else ALL_OPERATIONS


def names_defined(text: str, function: str) -> frozenset[str]:
    """The names that `excerpt` shows for `function`."""
    try:
        return frozenset(_needed(ast.parse(text), function))
    except (SyntaxError, ValueError):
        return frozenset()


def functions_used(text: str, function: str) -> frozenset[str]:
    """The other functions of the file that `function` needs."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return frozenset()
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return frozenset(_needed(tree, function) & defined - {function})


def _needed(tree: ast.Module, function: str) -> set[str]:
    """The top-level names that `function` uses, directly or not; empty without such a function."""
    by_name = {name: node for node in tree.body for name in _defined(node)}
    if function not in by_name:
        return set()
    needed, waiting = set[str](), [function]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [used for used in _used(by_name[name]) if used in by_name]
    return needed


def _defined(node: ast.stmt) -> set[str]:
    """The names that a top-level statement defines."""
    match node:
        case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
            return {node.name}
        case ast.Import() | ast.ImportFrom():
            return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        case ast.Assign():
            return {
                item.id for target in node.targets for item in ast.walk(target)
                if isinstance(item, ast.Name)
            }  # fmt: skip
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def _used(node: ast.stmt) -> Iterator[str]:
    return (item.id for item in ast.walk(node) if isinstance(item, ast.Name))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _joined(nodes: list[ast.stmt], lines: list[str]) -> Iterator[str]:
    """The lines of `nodes` with the comments right above them; a blank line between two that are
    not neighbours.
    """
    end = 0
    for node in nodes:
        decorators = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(item.lineno for item in decorators)]) - 1
        while start > end and lines[start - 1].startswith("#"):
            start -= 1
        if end and start > end:
            yield ""
        yield from lines[start : node.end_lineno]
        end = node.end_lineno or start


def _kinds(node: ast.stmt) -> Iterator[str]:
    for item in ast.walk(node):
        if isinstance(item, ast.BinOp | ast.AugAssign) and isinstance(item.op, ast.MatMult):
            yield PRODUCTS
        name = item.attr if isinstance(item, ast.Attribute) else getattr(item, "id", "")
        for kind, names in _NAMES.items():
            if name in names:
                yield kind
