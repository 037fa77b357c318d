"""A value that is to be combined with another one: a running value with the next, a part of one
variable with the same part of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_FUNCTION = re.compile(
    r"\b(\w+)\s*\(\s*(?:const\s+)?(\w+)\s*&?\s*\w+,\s*(?:const\s+)?\2\s*&?\s*\w+\s*\)\s*\{"
)
_OPERATORS = ("|", "||", "&&", "+", "*")
_BUILT_IN = {"float": ("fmaxf", "fminf"), "int": ("max", "min")}


def combined_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`running = next` made `running = joined(running, next)`; `right.marked` made
    `left.marked | right.marked`.
    """
    yield from _running(code)
    yield from _members(code)


def _running(code: KernelCode) -> Iterator[SourceChange]:
    tokens, kind = code.tokens, "combination with the value before missing"
    own = _FUNCTION.findall(tokens.code)
    for first, last in code.statements:
        item = code.names.at(first)
        if item is None or item.position == first or tokens.text(first + 1) != "=":
            continue
        if last < first + 3 or tokens.kind(first) != "name":
            continue
        value, name = tokens.source(first + 2, last - 1), tokens.text(first)
        names = {tokens.text(place) for place in range(first + 2, last)}
        if name in names:
            continue
        functions = [function for function, sort in own if sort == item.sort]
        functions += [one for one in _BUILT_IN.get(item.sort, ()) if one in tokens.code]
        for function in functions:
            for pair in (f"{name}, {value}", f"{value}, {name}"):
                yield code.replaced(first + 2, last - 1, f"{function}({pair})", kind)


def _members(code: KernelCode) -> Iterator[SourceChange]:
    tokens, kind = code.tokens, "same member of the other missing"
    for place in range(len(tokens) - 2):
        item = code.names.at(place) if tokens.kind(place) == "name" else None
        is_member = tokens.text(place + 1) == "." and tokens.kind(place + 2) == "name"
        if item is None or item.position == place or not is_member:
            continue
        if not code.function_places[place] or tokens.text(place + 3) in ("=", "("):
            continue
        text, member = tokens.source(place, place + 2), tokens.text(place + 2)
        for other in code.visible(place, item.sort):
            if other.name == item.name:
                continue
            for operator in _OPERATORS:
                new = f"({other.name}.{member} {operator} {text})"
                yield code.replaced(place, place + 2, new, kind)
