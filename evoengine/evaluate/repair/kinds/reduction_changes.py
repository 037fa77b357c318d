"""Sums that lanes, warps or rows must share and do not: reductions and means that are missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.statement_blocks import BlockStatement, StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_OF_ONE = re.compile(r"\b(float|int|double)\s+(\w+)\s*\(\s*(?:const\s+)?\1\s+\w+\s*\)\s*\{")
_SHUFFLE = re.compile(r"__shfl_(?:xor|down)_sync\s*\(([^,]+), (\w+), ([^;()]+)\)")
_MOST_SIZES = 4
_MOST_WAYS = 4  # in which the kernel reduces


def reduction_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Reductions behind the loops that add up, and means of what they have added."""
    blocks = StatementBlocks(code)
    yield from _reduced(code, blocks)
    yield from _divided(code, blocks)


def _summing(
    code: KernelCode, blocks: StatementBlocks
) -> Iterator[tuple[BlockStatement, DeclaredName]]:
    """Each loop with a running value that it changes and that was declared before."""
    for _, items in blocks.blocks():
        for loop in items:
            if code.tokens.text(loop.first) != "for":
                continue
            changed = blocks.changed(loop.first, loop.last)
            for item in code.names.visible(loop.first):
                is_sum = item.name in changed and item.sort in ("int", "float")
                if (
                    is_sum
                    and not item.is_parameter
                    and item.position > code.function_of(loop.first)
                ):
                    yield loop, item


def _reduced(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`sum = warp_sum(sum)` behind the loop that adds up, or the shuffles of another sum, where no
    function and no shuffle gets it.
    """
    tokens = code.tokens
    functions = [
        (sort, name)
        for sort, name in _OF_ONE.findall(tokens.code)
        if re.search(rf"\b{name}\((\w|[\[\]. ])+\)", tokens.code)
    ]
    names = {name for _, name in functions}
    reduced = {name for _, name, _ in _SHUFFLE.findall(tokens.code)}
    reduced |= {
        tokens.text(place + 2)
        for place in range(len(tokens) - 2)
        if tokens.text(place) in names and tokens.text(place + 1) == "("
    }
    ways = list(dict.fromkeys(_ways(code)))[:_MOST_WAYS]
    for loop, item in _summing(code, blocks):
        text = tokens.source(loop.first, loop.last)
        if item.name in reduced or "shfl" in text:
            continue
        for sort, name in functions:
            if sort == tokens.text(item.declaration):
                new = f" {item.name} = {name}({item.name});"
                yield code.inserted(loop.last, new, "reduction missing")
        greatest = re.search(rf"\b{item.name} = (f?m(?:ax|in)f?)\(", text)
        if item.sort == "float" or greatest:
            for head, mask, distance in ways:
                call = f"__shfl_xor_sync({mask}, {item.name}, {distance})"
                update = f"= {greatest[1]}({item.name}, {call});" if greatest else f"+= {call};"
                new = f" {head}{item.name} {update}"
                yield code.inserted(loop.last, new, "reduction missing")


def _ways(code: KernelCode) -> Iterator[tuple[str, str, str]]:
    """How the kernel reduces over lanes: the head of the loop, the mask and the distance."""
    tokens = code.tokens
    for first, last in code.statements:
        text = tokens.source(first, last)
        found = _SHUFFLE.search(text)
        if found is None or "xor" not in text:
            continue
        mask, _, distance = found.groups()
        if tokens.kind(first - 1) == "sign" and tokens.text(first - 1) == ")":
            opening = tokens.partners.get(first - 1, -1)
            if tokens.text(opening - 1) == "for":
                yield f"{tokens.source(opening - 1, first - 1)} ", mask, distance
        elif re.fullmatch(r"\d+", distance.strip()):
            yield "", mask, distance


def _divided(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`sum.x /= N, sum.y /= N` behind the loop that adds up in a vector."""
    tokens = code.tokens
    for _, items in blocks.blocks():
        for loop in items:
            if tokens.text(loop.first) != "for" or "shfl" in tokens.source(loop.first, loop.last):
                continue
            members: dict[str, list[str]] = {}
            for place in blocks.changes(loop.first, loop.last):
                own = code.names.at(place)
                is_member = tokens.text(place + 1) == "." and tokens.text(place + 3) == "+="
                if own is not None and is_member and own.position < loop.first:
                    found = members.setdefault(own.name, [])
                    found += {tokens.text(place + 2)} - set(found)
            for name, parts in members.items():
                for size in code.sizes(loop.last)[:_MOST_SIZES] if len(parts) > 1 else ():
                    new = ", ".join(f"{name}.{part} /= {size}" for part in parts)
                    yield code.inserted(loop.last, f" {new};", "mean not taken")
