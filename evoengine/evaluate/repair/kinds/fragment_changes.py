"""Addresses of fragments of mma: the two columns that a lane has, the step along the inner loop."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.call_changes import neighbours_exchanged
from evoengine.evaluate.repair.kinds.first_value_changes import first_values
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_LANES_OF_A_ROW = {("%", "4"), ("&", "3")}
_LANE = re.compile(r"\blane|\btid\b|threadIdx")
_FRAGMENTS = re.compile(r"mma|m16n8|ldmatrix")
_SCALED = ("*", "<<")
_REGISTERS = (2, 4, 8)  # of a fragment


def fragment_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Columns of pairs, and rows of the step of a loop that goes along fragments."""
    if _FRAGMENTS.search(code.tokens.code):
        yield from _pairs(code)
        yield from _pairs_of_names(code)
        yield from _steps(code)
        yield from _registers(code)


def _pairs(code: KernelCode) -> Iterator[SourceChange]:
    """`lane % 4` made `lane % 4 * 2`: a lane has pairs of a fragment."""
    tokens = code.tokens
    for place in range(1, len(tokens) - 1):
        sign = (tokens.text(place), tokens.text(place + 1).rstrip("uU"))
        if sign not in _LANES_OF_A_ROW or not code.extents.is_binary(place):
            continue
        first, _ = code.extents.operand_before(place)
        if not _LANE.search(tokens.source(first, place)):
            continue
        last = place + 1
        if tokens.text(place) == "&":
            if tokens.text(first - 1) != "(" or tokens.text(last + 1) != ")":
                continue
            last += 1
        is_named = tokens.text(first - 1) == "="  # and is scaled where its name is used
        if tokens.text(last + 1) not in _SCALED and not is_named:
            yield code.inserted(last, " * 2", "pair of a lane's columns")


def _pairs_of_names(code: KernelCode) -> Iterator[SourceChange]:
    """`k + quad` made `k + quad * 2`, where `quad = lane % 4`."""
    tokens = code.tokens
    quads = [
        item
        for item, value in first_values(code)
        if tokens.text(value[1]) == "4" and tokens.text(value[1] - 1) == "%"
    ]
    for item in quads:
        for place in range(item.position + 2, item.last):
            if tokens.text(place) != item.name or code.names.at(place) != item:
                continue
            near = tokens.text(place - 1), tokens.text(place + 1)
            if "+" in near and "*" not in near:
                new = f"{item.name} * 2"
                yield code.replaced(place, place, new, "pair of a lane's columns")


def _steps(code: KernelCode) -> Iterator[SourceChange]:
    """`lane % 16 * PITCH` made `(k + lane % 16) * PITCH` in a loop of k."""
    tokens = code.tokens
    loops = [(loop, code.loop_variable(loop.opening + 1)) for loop in StatementBlocks(code).loops()]
    for place in range(1, len(tokens) - 1):
        if tokens.text(place) != "*" or not code.extents.is_binary(place):
            continue
        first, last = code.extents.operand_before(place)
        row = tokens.source(first, last)
        begin, end = code.extents.statement(place)
        if first > last or not _LANE.search(row):
            continue
        for loop, name in loops:
            if not name or not loop.first <= place <= loop.last:
                continue
            if not re.search(rf"\b{name}\b", tokens.source(max(begin, loop.first), end)):
                bare = tokens.text(first) == "(" and tokens.partners.get(first) == last
                inner = tokens.source(first + 1, last - 1) if bare else row
                kind = "row of the step of a loop"
                yield code.replaced(first, last, f"({name} + {inner})", kind)


def _registers(code: KernelCode) -> Iterator[SourceChange]:
    """`unsigned a[4] = {x, y, z, w}` made `{y, x, z, w}`: registers in another order."""
    tokens = code.tokens
    for place in range(1, len(tokens)):
        is_list = tokens.text(place) == "{" and tokens.text(place - 1) == "="
        if not is_list or place not in tokens.partners:
            continue
        entries = code.extents.arguments(place)
        for one, other in pairwise(entries) if len(entries) in _REGISTERS else ():
            if tokens.text(one[0]) == tokens.text(other[0]):
                kind = "registers of a fragment exchanged"
                yield from neighbours_exchanged(code, (one, other), kind)
