"""Arrays and elements that are written and never read, or read and never written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.expression_extents import ASSIGNMENTS
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.kinds.visible_names import has_meaning
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_USES = 8  # of a stored value
_LARGEST = 8  # number of an element

Range = tuple[int, int]


@dataclass(frozen=True)
class _Element:
    """An element of an array: the array's name, the number in its first index, and whether it is
    given a value there.
    """

    place: int
    number: int
    is_write: bool


def unwritten_changes(code: KernelCode) -> Iterator[SourceChange]:
    """What nothing reads taken, elements that nothing has made those that are used twice."""
    blocks = StatementBlocks(code)
    yield from _stored(code, blocks)
    yield from _numbers(code)


def _stored(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`total` made `(total + totals[row])`, where totals are stored and none reads them."""
    tokens = code.tokens
    for item in code.names.all:
        if item.sort != "array" or item.is_parameter or not blocks.is_shared(item):
            continue
        uses = [at for at in range(item.position + 1, len(tokens)) if code.names.at(at) == item]
        ends = [code.extents.postfix(at) for at in uses]
        if not uses or any(tokens.text(end + 1) != "=" for end in ends):
            continue
        value = ends[0] + 2, code.extents.last_of(ends[0] + 1, 0)
        name = tokens.text(value[0])
        if code.extents.postfix(value[0]) != value[1] or code.names.at(value[0]) is None:
            continue
        element, text = (uses[0], ends[0]), tokens.source(*value)
        behind = [
            at
            for at in range(value[1] + 1, len(tokens))
            if tokens.text(at) == name and tokens.source(at, code.extents.postfix(at)) == text
        ]
        for at in behind[:_MOST_USES]:
            end = code.extents.postfix(at)
            if tokens.text(end + 1) in ASSIGNMENTS or not has_meaning(code, element, at):
                continue
            stored = tokens.source(*element)
            for new in (f"({text} + {stored})", f"fmaxf({text}, {stored})", stored):
                yield code.replaced(at, end, new, "what is stored and read nowhere")


def _numbers(code: KernelCode) -> Iterator[SourceChange]:
    """y[0], y[1], y[1], y[3] with y[2] for one of the two; and the row of an array that is read
    and never written, for the one that is written twice.
    """
    elements: dict[DeclaredName, list[_Element]] = {}
    for name, first, last in code.indices:
        own = code.names.at(name)
        text = code.tokens.text(first)
        is_first = code.tokens.text(first - 2) != "]"
        if own is None or not is_first or own.sort not in ("array", "pointer"):
            continue
        number = int(text) if first == last and text.isdigit() and len(text) < 3 else -1
        behind = code.tokens.text(code.extents.postfix(name) + 1)
        elements.setdefault(own, []).append(_Element(first, number, behind in ASSIGNMENTS))
    for found in elements.values():
        if any(item.number < 0 or item.number > _LARGEST for item in found):
            continue
        yield from _of_array(code, found)


def _of_array(code: KernelCode, found: list[_Element]) -> Iterator[SourceChange]:
    written = [item.number for item in found if item.is_write]
    read = [item.number for item in found if not item.is_write]
    kind = "element that nothing has"
    largest = max(item.number for item in found)
    unread = set(range(largest + 1)) - set(read)
    unwritten = set(read) - set(written) if written else set()
    for item in found:
        own = written if item.is_write else read
        missing = unwritten if item.is_write else unread
        if own.count(item.number) > 1:
            for number in sorted(missing):
                yield code.replaced(item.place, item.place, str(number), kind)
