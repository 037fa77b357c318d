"""Limits that are missing: a value that counts only under a condition, a minimum, a reset."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.term_changes import sorts_between

_LONGEST = 12  # tokens of a condition that is repeated
_MOST_CONDITIONS = 10  # of a kernel


def condition_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Values limited, left out under conditions, and set back in each round of a loop."""
    yield from _conditional(code)
    yield from _limited(code)
    yield from _reset(code)


def _conditional(code: KernelCode) -> Iterator[SourceChange]:
    """A value that counts only where a comparison of the kernel holds."""
    tokens = code.tokens
    known: dict[str, tuple[int, int]] = {}
    for first, last in code.conditions:
        if last - first < _LONGEST:
            known.setdefault(tokens.source(first, last), (first, last))
    for first, last in code.values:
        sorts = sorts_between(code, first, last)
        if not sorts & {"float", "array"} or "?" in tokens.source(first, last):
            continue
        for text, pair in list(known.items())[:_MOST_CONDITIONS]:
            if code.can_stand(*pair, first):
                new = f"(({text}) ? {tokens.source(first, last)} : 0.0f)"
                yield code.replaced(first, last, new, "condition of a value missing")


def _limited(code: KernelCode) -> Iterator[SourceChange]:
    """A whole number kept within bounds, a variance above zero."""
    tokens = code.tokens
    for first, last in code.values:
        text = tokens.source(first, last)
        sorts = sorts_between(code, first, last)
        if sorts == {"int"}:
            for item in code.visible(first, "int"):
                if item.is_parameter and item.name not in text:
                    yield code.replaced(first, last, f"min({text}, {item.name})", "bound missing")
                    new = f"min({text}, {item.name} - 1)"
                    yield code.replaced(first, last, new, "bound missing")
            yield code.replaced(first, last, f"max({text}, 0)", "bound missing")
        elif sorts & {"float", "array"}:
            yield code.replaced(first, last, f"fmaxf({text}, 0.0f)", "clamp missing")
            for limit in ("127.0f", "448.0f"):
                if limit in tokens.code:
                    new = f"fminf(fmaxf({text}, -{limit}), {limit})"
                    yield code.replaced(first, last, new, "clamp missing")


def _reset(code: KernelCode) -> Iterator[SourceChange]:
    """A sum that begins anew in each round of a loop around it."""
    tokens = code.tokens
    for position in range(len(tokens)):
        if tokens.text(position) != "for" or position + 1 not in tokens.partners:
            continue
        body = tokens.partners[position + 1] + 1
        if tokens.text(body) != "{" or not code.function_places[position]:
            continue
        inside = {tokens.text(place) for place in range(body, tokens.partners.get(body, body))}
        for item in code.visible(body, "float"):
            if not item.is_parameter and item.name in inside:
                yield code.inserted(body, f" {item.name} = 0.0f;", "reset missing")
