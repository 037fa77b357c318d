"""Sizes of a launch plan that lack a factor, or have one too many."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kinds.header_changes import LISTS, entries_of
from evoengine.evaluate.repair.source_change import SourceChange

_SIZE = re.compile(r"(?<![\w.])[A-Z]\w*(?![\w.(:])")
_PRODUCT = re.compile(r"(?<![\w.)])[A-Z]\w*(?:\s*\*\s*[A-Z]\w*)*(?![\w.(:])")
_LET = re.compile(r"^[ \t]+[A-Z]\w*:[ \t]*([^\n\[{#]+?)[ \t]*(?:#[^\n]*)?$", re.MULTILINE)
_SHAPE = re.compile(r"\bshape:[ \t]*\[([^\]\n]*)\]")
_FACTOR = re.compile(r"(?<![\w.])[A-Z0-9]\w* ?\* ?(?=[A-Z0-9(])| ?\* ?[A-Z0-9]\w*(?![\w.(])")
_RECIPROCAL = re.compile(r"\bvalue:\s*1 / (\w+)\s*(?=[,}])")
_PADDED = re.compile(r"\b[A-Z]\w* \+ (\d+)\)")
_FACTOR_NAME = re.compile(r"(?<=\* )[A-Z]\w*(?![\w.(])|(?<![\w.(])[A-Z]\w*(?= \*)")
_MOST_PADDINGS = 3
_BARE = re.compile(r"[A-Z]\w*")
_SHARED = re.compile(r"\bshared(?:_bytes)?:[ \t]*([A-Z]\w*)[ \t]*(?=[#\n])")
_ROOMS = (16, 32, 64, 128, 256, 512, 1024)  # bytes
_MOST_SIZES = 12
_NUMBERS = (2, 3, 4, 8, 16)
_KINDS = {
    "grid": "grid that lacks a factor",
    "args": "argument of the plan that lacks a factor",
}


def plan_factor_changes(header: str) -> Iterator[SourceChange]:
    """`grid: ["ceil_div(BAGS, 256)"]` made one for each of `BAGS * D`, `H` in args `H * B`."""
    sizes = list(dict.fromkeys(_SIZE.findall(header)))[:_MOST_SIZES]
    texts = [
        (found.start(2), found[2], _KINDS[found[1]])
        for found in LISTS.finditer(header)
        if found[1] in _KINDS
    ]
    kind = "size of the plan that lacks a factor"
    texts += [(found.start(1), found[1], kind) for found in _SHAPE.finditer(header)]
    # of a choice between sizes another branch may be right by chance
    lets = [found for found in _LET.finditer(header) if " if " not in found[1]]
    texts += [(found.start(1), found[1], kind) for found in lets]
    for start, text, kind in texts:
        for product in _PRODUCT.finditer(text):
            end = start + product.end()
            for size in sizes:
                if size not in _SIZE.findall(product[0]):
                    yield SourceChange(end, end, f" * {size}", kind)
            for number in _NUMBERS:
                yield SourceChange(
                    start + product.start(), start + product.start(), f"{number} * ", kind
                )
        for factor in _FACTOR.finditer(text):
            span = start + factor.start(), start + factor.end()
            yield SourceChange(*span, "", "factor of the plan too many")
    yield from _without_padding(header)
    yield from _of_one_part(header, sizes)
    for found in LISTS.finditer(header):
        entries = [found[2][begin:end] for begin, end in entries_of(found[2])]
        if found[1] == "args" and len(entries) > 2:
            for moved in ([*entries[1:], entries[0]], [entries[-1], *entries[:-1]]):
                yield SourceChange(*found.span(2), ", ".join(moved), "arguments of the plan moved")
    for found in _RECIPROCAL.finditer(header):
        yield SourceChange(*found.span(1), f"sqrt({found[1]})", "root in the plan missing")


def _of_one_part(header: str, sizes: list[str]) -> Iterator[SourceChange]:
    """`PATH: T` made `PATH: T + BAGS`, and `shared: STRIP` made `shared: STRIP + 64`."""
    for found in _LET.finditer(header):
        for size in sizes if _BARE.fullmatch(found[1]) else ():
            if size != found[1] and f"{size}:" not in found[0]:
                kind = "size of the plan without a part"
                yield SourceChange(found.end(1), found.end(1), f" + {size}", kind)
    for found in _SHARED.finditer(header):
        for size in (*map(str, _ROOMS), *(size for size in sizes if size != found[1])):
            kind = "shared memory without a part"
            yield SourceChange(found.end(1), found.end(1), f" + {size}", kind)


def _without_padding(header: str) -> Iterator[SourceChange]:
    """`V_BYTES: 2 * TK * D` made `2 * TK * (D + 8)`, by the paddings that other sizes have."""
    paddings = list(dict.fromkeys(_PADDED.findall(header)))[:_MOST_PADDINGS]
    for found in _LET.finditer(header):
        for size in _FACTOR_NAME.finditer(found[1]):
            start = found.start(1) + size.start()
            for padding in paddings:
                new = f"({size[0]} + {padding})"
                yield SourceChange(start, start + len(size[0]), new, "size of the plan unpadded")
