"""Constants of a type of the kernel, `Shape::kKeys`, in place of one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_MOST_CONSTANTS = 12  # of a type, those that are read most often


def scoped_constant_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`block < Shape::kWidth / 8` made `block < Shape::kBlocks`: each constant that is read of the
    same type, in place of the bound of a condition, or of one divided by a number.
    """
    tokens = code.tokens
    read = [
        place
        for place in range(1, len(tokens) - 1)
        if tokens.text(place) == "::"
        and tokens.kind(place - 1) == tokens.kind(place + 1) == "name"
        and tokens.text(place + 2) not in ("(", "::", "<")
        and code.function_places[place]
    ]
    bounds = [
        place
        for place in read
        if tokens.text(place - 2) in _COMPARED and code.loop_of(place) is None
    ]
    counts = Counter((tokens.text(place - 1), tokens.text(place + 1)) for place in read)
    for place in bounds:
        scope, own = tokens.text(place - 1), tokens.text(place + 1)
        others = [name for (of, name), _ in counts.most_common() if of == scope and name != own]
        is_divided = tokens.text(place + 2) == "/" and tokens.text(place + 3).isdigit()
        for name in others[:_MOST_CONSTANTS]:
            new = f"{scope}::{name}"
            yield code.replaced(place - 1, place + 1, new, "constant of the same type")
            if is_divided:
                yield code.replaced(place - 1, place + 3, new, "constant of the same type")
