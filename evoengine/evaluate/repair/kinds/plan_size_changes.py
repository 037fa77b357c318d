"""Sizes and buffers of a launch plan: shared memory, scratch, grids, what a launch is given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, islice

from evoengine.evaluate.repair.kinds.header_changes import LISTS, TUNABLE, entries_of
from evoengine.evaluate.repair.source_change import SourceChange

_SHARED = re.compile(r"\bshared(?:_bytes)?:[ \t]*([^\n,}]+(?:\([^\n]*\))?[^\n,}]*)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_SIZE = re.compile(r"(?<![\w.])[A-Z]\w*(?![\w.(])")
_SCALAR = re.compile(r"(?<![\w.])[a-z]\w*(?![\w.(:])")
_LET = re.compile(r"^[ \t]+([A-Z]\w*):[ \t]*([^\n\[{]+?)[ \t]*$", re.MULTILINE)
_BUFFER = re.compile(r"\b(\w+):[ \t]*\{[^{}\n]*\bshape:[ \t]*\[([^\]\n]*)\]")
_VALUE = re.compile(r"\bvalue:\s*([^,{}\n]+?)\s*(?=[,}])")
_LAUNCHED = re.compile(r"kernel:\s*\"?(\w+)")
_AXES = "xyz"
_MOST_NAMES = 4
_MOST_LEVELS = 3
_MOST_SHARED = 60  # changes of a plan

Entries = list[tuple[int, int, str]]


def plan_size_changes(header: str, code: str) -> Iterator[SourceChange]:
    """Changes of the sizes and buffers that a plan gives the kernels of `code`."""
    yield from islice(_shared(header), _MOST_SHARED)
    yield from _larger(header, code)
    yield from _grids(header, code)
    yield from _shapes(header)
    yield from _buffers(header)
    yield from _copied(header)
    yield from _scalars(header)


def _shared(header: str) -> Iterator[SourceChange]:
    """The bytes of shared memory: for more numbers, or for larger ones."""
    kind = "shared memory of another size"
    texts = list(_SHARED.finditer(header))
    values = {found[1]: found[2] for found in _LET.finditer(header)}
    names = {name for found in texts for name in _SIZE.findall(found[1])}
    for _ in range(_MOST_LEVELS):  # sizes that are made of others
        names |= {other for name in names for other in _SIZE.findall(values.get(name, ""))}
    for found in texts:
        numbers = list(_NUMBER.finditer(found[1]))
        for factor in (2.0, 4.0, 3.0, 0.5, 0.25):  # the likeliest first, of every number
            for number in numbers:
                start = found.start(1) + number.start()
                other = int(factor * int(number[0]))
                if other:
                    yield SourceChange(start, start + len(number[0]), str(other), kind)
        quote = '"' if found[1].startswith('"') else ""
        bare = found[1].strip().strip('"')
        for name in [*TUNABLE.findall(header), *values][:_MOST_NAMES]:
            if name not in _SIZE.findall(bare):
                whole = f"({bare})" if re.search(r"[-+]", bare) else bare
                new = f"{quote}{whole} * {name}{quote}"
                yield SourceChange(*found.span(1), new, kind)
        if not numbers:
            start = found.start(1) + len(quote)
            for factor in (2, 4):
                yield SourceChange(start, start, f"{factor} * ", kind)
    for found in _LET.finditer(header):
        if found[1] in names:
            for number in _NUMBER.finditer(found[2]):
                start = found.start(2) + number.start()
                for other in (2 * int(number[0]), 3 * int(number[0]), int(number[0]) // 2):
                    if other:
                        yield SourceChange(start, start + len(number[0]), str(other), kind)


def _larger(header: str, code: str) -> Iterator[SourceChange]:
    """A size that nothing reads, as one of two of which the larger counts."""
    values = list(_LET.finditer(header))
    for own in values:
        uses = len(re.findall(rf"\b{own[1]}\b", header)) + len(re.findall(rf"\b{own[1]}\b", code))
        if uses > 1:
            continue
        for other in values:
            if other is not own and _SIZE.fullmatch(other[2]):
                for new in (f"max({other[2]}, {own[1]})", f"{other[2]} + {own[1]}"):
                    yield SourceChange(*other.span(2), new, "size of the plan that nothing reads")


def _lists(header: str, name: str) -> list[Entries]:
    """The entries of each list of this name, with their places in the header."""
    return [
        [
            (found.start(2) + begin, found.start(2) + end, found[2][begin:end])
            for begin, end in entries_of(found[2])
        ]
        for found in LISTS.finditer(header)
        if found[1] == name
    ]


def _grids(header: str, code: str) -> Iterator[SourceChange]:
    """An axis of the grid whose number a kernel divides by another one, times that."""
    names = _LAUNCHED.findall(header)
    for name, entries in zip(names, _lists(header, "grid"), strict=False):
        for (start, end, text), axis in zip(entries, _AXES, strict=False):
            for factor in divisors_of(code, name, axis):
                if not re.search(rf"\* *{factor}\b|\b{factor} *\*", text):
                    quote = '"' if text.endswith('"') else ""
                    new = f"{text.removesuffix(quote)} * {factor}{quote}"
                    yield SourceChange(start, end, new, "grid without a factor")


def divisors_of(code: str, kernel: str, axis: str) -> list[str]:
    """By what a kernel divides the number of its block along an axis."""
    begin = re.search(rf"__global__[^;{{}}]*\b{kernel}\s*\(", code)
    if begin is None:
        return []
    end = code.find("__global__", begin.end())
    body = code[begin.end() : end if end >= 0 else len(code)]
    found = re.findall(rf"blockIdx\.{axis}\)?\s*[/%]\s*(\d+|[A-Z]\w*)\b", body)
    return list(dict.fromkeys(found))


def _shapes(header: str) -> Iterator[SourceChange]:
    """Scratch with another axis, or with a factor that the grid has."""
    grids = [text for entries in _lists(header, "grid") for _, _, text in entries]
    sizes = [text for text in dict.fromkeys(grids) if _SIZE.fullmatch(text)]
    for found in _BUFFER.finditer(header):
        entries = entries_of(found[2])
        own = {found[2][begin:end] for begin, end in entries}
        for size in sizes[:_MOST_NAMES]:
            if size not in own:
                kind = "axis of scratch missing"
                yield SourceChange(found.start(2), found.start(2), f"{size}, ", kind)
        for begin, end in entries:
            text = found[2][begin:end]
            span = found.start(2) + begin, found.start(2) + end
            for grid in dict.fromkeys(grids):
                if grid != text and re.fullmatch(rf"{re.escape(text)} \* \w+", grid):
                    yield SourceChange(*span, grid, "scratch without a factor")


def _buffers(header: str) -> Iterator[SourceChange]:
    """Scratch in place of other scratch: buffers that launches write and read in turn."""
    names = [found[1] for found in _BUFFER.finditer(header)]
    for entries in _lists(header, "args"):
        given = {text for _, _, text in entries}
        for start, end, text in entries:
            for other in names if text in names else ():
                if other not in given:
                    yield SourceChange(start, end, other, "buffer of another launch")


def _copied(header: str) -> Iterator[SourceChange]:
    """Sizes that a launch has at the places of an earlier one: one of the plan's own for them."""
    lists = _lists(header, "args")
    grids = " ".join(text for entries in _lists(header, "grid") for _, _, text in entries)
    given = {text for entries in lists for _, _, text in entries}
    sizes = list(dict.fromkeys([*_SIZE.findall(grids), *(it[1] for it in _LET.finditer(header))]))
    kind = "sizes of the launch before"
    for number, entries in enumerate(lists[1:], 1):
        copied = [
            entry
            for place, entry in enumerate(entries)
            if _SIZE.fullmatch(entry[2])
            and any(entry[2] in [it[2] for it in old[place : place + 1]] for old in lists[:number])
        ]
        for size in [name for name in sizes if name not in given][:_MOST_NAMES]:
            for start, end, _ in copied:
                yield SourceChange(start, end, size, kind)
            for one, other in combinations(copied, 2):
                second = SourceChange(other[0], other[1], size, kind)
                yield SourceChange(one[0], one[1], size, kind, (second,))


def _scalars(header: str) -> Iterator[SourceChange]:
    """A name of a computed value made one that is alike, which its launch or another is given."""
    values = " ".join(found[1] for found in _VALUE.finditer(header))
    arguments = " ".join(text for entries in _lists(header, "args") for _, _, text in entries)
    names = list(dict.fromkeys(_SCALAR.findall(f"{values} {arguments}")))
    for found in _VALUE.finditer(header):
        for own in _SCALAR.finditer(found[1]):
            for other in names:
                if other != own[0] and other.rstrip("0123456789") == own[0].rstrip("0123456789"):
                    start = found.start(1) + own.start()
                    kind = "scalar of the plan that is alike"
                    yield SourceChange(start, start + len(own[0]), other, kind)
