"""Statements that are missing beside their like, written with the names of another pair of them.

Where a kernel has `load(a, p)` and `load(b, q)`, and `store(a, p)` alone, `store(b, q)` is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_LONGEST = 60  # tokens of a statement
_MOST_NAMES = 4  # that differ between two like statements
_MOST_RENAMINGS = 40  # of a kernel

Renaming = tuple[tuple[str, str], ...]


def sibling_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Each statement once more with other names, where the names follow from like statements."""
    known = {_squeezed(code.tokens.source(*pair)) for pair in code.statements}
    renamings = _renamings(code)
    for first, last in code.statements:
        if last - first > _LONGEST or code.declares(first, last):
            continue
        for renaming in renamings:
            again = _renamed(code, first, last, dict(renaming))
            if again is not None and _squeezed(again) not in known:
                yield code.inserted(last, f" {again}", "statement missing, beside its like")


def _renamings(code: KernelCode) -> list[Renaming]:
    """Which names take turns in statements that are alike but for them."""
    families: dict[tuple[str, ...], list[list[str]]] = {}
    for first, last in code.statements:
        if last - first <= _LONGEST:
            shape, names = _shape(code, first, last)
            families.setdefault(shape, []).append(names)
    found: dict[Renaming, None] = {}
    for family in families.values():
        for one in family[:8]:
            for other in family[:8]:
                renaming = {
                    before: after
                    for before, after in zip(one, other, strict=True)
                    if before != after
                }
                is_whole = all(renaming.get(a, a) == b for a, b in zip(one, other, strict=True))
                if is_whole and 0 < len(renaming) <= _MOST_NAMES:
                    found[tuple(sorted(renaming.items()))] = None
    return list(found)[:_MOST_RENAMINGS]


def _shape(code: KernelCode, first: int, last: int) -> tuple[tuple[str, ...], list[str]]:
    """A statement without the names of its variables, and these names."""
    shape, names = [], []
    for place in range(first, last + 1):
        if _is_variable(code, place):
            shape.append("")
            names.append(code.tokens.text(place))
        else:
            shape.append(code.tokens.text(place))
    return tuple(shape), names


def _is_variable(code: KernelCode, place: int) -> bool:
    if code.tokens.kind(place) != "name":
        return False
    own = code.names.at(place)
    return own is not None or any(
        item.position == place for item in code.names.by_name.get(code.tokens.text(place), ())
    )


def _renamed(code: KernelCode, first: int, last: int, renaming: dict[str, str]) -> str | None:
    """The statement with the other names; None where it has none of them, or they mean nothing at
    its place.
    """
    pieces = [
        (place, place, renaming[code.tokens.text(place)])
        for place in range(first, last + 1)
        if code.tokens.text(place) in renaming and _is_variable(code, place)
    ]
    visible = {item.name for item in code.names.visible(last)}
    if not pieces or not visible.issuperset(new for _, _, new in pieces):
        return None
    return code.tokens.rewritten(first, last, pieces)


def _squeezed(text: str) -> str:
    return "".join(text.split())
