"""How far apart rows are where a fragment is read or written: the leading dimension of WMMA."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_CALLS = ("load_matrix_sync", "store_matrix_sync")
_LEADING = 2  # the place of the argument in both
_PADDING = ("8", "4")  # elements that rows in shared memory are longer by


def pitch_changes(code: KernelCode) -> Iterator[SourceChange]:
    """The leading dimension of a call made another size of the kernel, one with padding, or one
    without.
    """
    tokens, kind = code.tokens, "leading dimension of another"
    for place in range(len(tokens)):
        if tokens.text(place) not in _CALLS or tokens.text(place + 1) != "(":
            continue
        arguments = code.extents.arguments(place + 1)
        if len(arguments) <= _LEADING:
            continue
        first, last = arguments[_LEADING]
        own = tokens.source(first, last)
        others = [*code.sizes(place), *(f"{own} + {more}" for more in _PADDING)]
        if tokens.text(last - 1) == "+" and first < last - 1:
            others.append(tokens.source(first, last - 2))
        for other in others:
            if other != own:
                yield code.replaced(first, last, other, kind)
