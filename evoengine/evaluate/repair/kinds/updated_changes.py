"""A value as it was before its update, where the updated one was meant."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.first_value_changes import first_values
from evoengine.evaluate.repair.source_change import SourceChange

_FLOATS = ("float", "array", "pointer")


def updated_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`sqrtf(v)` made `sqrtf(new_v)` behind `float new_v = beta * v + rest * g * g;`."""
    for item, (first, last) in first_values(code):
        if item.sort != "float" or first == last:
            continue
        read = {code.tokens.source(*part) for part in _parts(code, first, last)}
        for begin, end in _parts(code, last + 1, item.last):
            if code.tokens.source(begin, end) in read and not _is_set(code, end):
                yield code.replaced(begin, end, item.name, "value before its update")


def _parts(code: KernelCode, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Floating-point variables, elements, members and what pointers point to, as it is read."""
    for begin, _, sort in code.atoms_between(first, last):
        end = code.extents.postfix(begin)
        is_read_through = sort == "pointer" and code.tokens.text(begin - 1) == "*"
        if is_read_through and end == begin and not code.extents.is_binary(begin - 1):
            yield begin - 1, end
        if (sort == "float" and end == begin) or (sort in _FLOATS and end > begin and end <= last):
            yield begin, end


def _is_set(code: KernelCode, end: int) -> bool:
    return code.tokens.text(end + 1) in ("=", "+=", "-=", "*=", "/=")
