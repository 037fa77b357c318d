"""Variables that keep what they had in the round before: set before a loop, not in each round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.statement_blocks import BlockStatement, Loop, StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_BEFORE = 6  # statements before a loop that are looked at
_OF_ALL_ROUNDS = {"const", "constexpr", "static", "__shared__", "extern"}


def kept_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`float sum = 0; for (...) {` made `for (...) { float sum = 0;` where sum is used in the loop
    alone and changed there.
    """
    blocks = StatementBlocks(code)
    for loop in blocks.loops():
        if code.tokens.text(loop.first) != "{":
            continue
        moved = [item for item in _before(blocks, loop) if _is_of_a_round(blocks, loop, item)]
        for chosen in {tuple(moved), *((item,) for item in moved)}:
            if chosen:
                yield _moved(code, loop, sorted(chosen, key=lambda item: item.first))


def _moved(code: KernelCode, loop: Loop, items: Sequence[BlockStatement]) -> SourceChange:
    texts = " ".join(code.tokens.source(item.first, item.last) for item in items)
    into = code.inserted(loop.first, f" {texts}", "")
    away = [code.replaced(item.first, item.last, "", "") for item in items]
    return together([into, *away], "begin of each round missing, of a declaration")


def _before(blocks: StatementBlocks, loop: Loop) -> list[BlockStatement]:
    """The simple statements right before a loop, in its block."""
    opening = blocks.tokens.enclosing[loop.place]
    if opening < 0 or blocks.tokens.text(opening) != "{":
        return []
    before = [item for item in blocks.items(opening) if item.last < loop.place]
    return [item for item in before[-_BEFORE:] if item.is_simple]


def _is_of_a_round(blocks: StatementBlocks, loop: Loop, item: BlockStatement) -> bool:
    """Whether a statement declares variables that the body of the loop alone uses and changes."""
    names = [one for one in blocks.code.names.all if item.first < one.position <= item.last]
    if not names or any(one.sort == "pointer" for one in names):
        return False
    if blocks.tokens.has_any(item.first, item.last, _OF_ALL_ROUNDS):
        return False
    changed = blocks.changed(loop.first, loop.last)
    return all(_is_in_body_alone(blocks, loop, item, one) for one in names) and any(
        one.name in changed or _is_called_on(blocks, loop, one) for one in names
    )


def _is_in_body_alone(
    blocks: StatementBlocks, loop: Loop, item: BlockStatement, name: DeclaredName
) -> bool:
    uses = [
        place
        for place in range(item.last + 1, name.last + 1)
        if blocks.tokens.text(place) == name.name and blocks.code.names.at(place) == name
    ]
    return bool(uses) and all(loop.first < place < loop.last for place in uses)


def _is_called_on(blocks: StatementBlocks, loop: Loop, name: DeclaredName) -> bool:
    """Whether a function of the variable, or one that takes it, may change it."""
    tokens = blocks.tokens
    return any(
        tokens.text(place) == name.name
        and (tokens.text(place + 1) in (".", "[") or tokens.text(place - 1) in ("(", ","))
        for place in range(loop.first, loop.last)
    )
