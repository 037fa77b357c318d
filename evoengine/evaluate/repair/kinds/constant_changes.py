"""Constants that are made of the wrong size: the pitch of one tile of the length of another one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Z]\w*)[ \t]+([^\n]*)$", re.MULTILINE)
_CONSTANT = re.compile(r"\bconstexpr (?:int|unsigned|size_t) ([^;]*);")
_VALUE = re.compile(r"\b([A-Z]\w*) = ((?:[^,(]|\([^()]*\))+)")
_NAME = re.compile(r"(?<![\w.])[A-Z]\w*(?![\w(])")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_MOST_SIZES = 6

Value = tuple[str, int, str]  # the name of a constant, where its value begins, and this


def constant_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Sizes in the values of constants made other ones that were given before them, numbers of
    two values of one declaration exchanged.
    """
    groups = list(_groups(code))
    known: list[str] = []
    for group in groups:
        for name, start, text in group:
            yield from _of_another(start, text, known, name)
            known.append(name)
        for one, other in combinations(group, 2):
            yield from _exchanged(one, other)


def _groups(code: KernelCode) -> Iterator[list[Value]]:
    """The constants that are declared together, in the order in which they stand."""
    found: list[tuple[int, list[Value]]] = []
    begin = code.offset
    text = code.source
    for macro in _MACRO.finditer(text, begin):
        found.append((macro.start(), [(macro[1], macro.start(2), macro[2])]))
    for declared in _CONSTANT.finditer(text, begin):
        values = [
            (value[1], value.start(2), value[2])
            for value in _VALUE.finditer(text, declared.start(1), declared.end(1))
        ]
        found.append((declared.start(), values))
    yield from (values for _, values in sorted(found, key=lambda item: item[0]))


def _of_another(start: int, text: str, known: list[str], name: str) -> Iterator[SourceChange]:
    """`LDB = BK + 8` made `BN + 8`."""
    for found in _NAME.finditer(text):
        others = [other for other in reversed(known) if other not in (found[0], name)]
        for other in list(dict.fromkeys(others))[:_MOST_SIZES]:
            span = start + found.start(), start + found.end()
            yield SourceChange(*span, other, "constant of another size")


def _exchanged(one: Value, other: Value) -> Iterator[SourceChange]:
    """`WM = BM / 4, WN = BN / 2` made `WM = BM / 2, WN = BN / 4`."""
    numbers = [_NUMBER.search(value) for _, _, value in (one, other)]
    if numbers[0] is None or numbers[1] is None or numbers[0][0] == numbers[1][0]:
        return
    if _NUMBER.sub("", one[2]).strip().isdigit() or one[2].strip().isdigit():
        return
    pair = [
        SourceChange(value[1] + own.start(), value[1] + own.end(), new[0], "")
        for value, own, new in (
            (one, numbers[0], numbers[1]),
            (other, numbers[1], numbers[0]),
        )
    ]
    yield together(pair, "numbers of two constants exchanged")
