"""Changes of the launch plan: grids rounded up, arguments exchanged, values of tunables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.source_change import SourceChange

_FLOORED = re.compile(r"([\w.]+(?:\s*\*\s*[\w.]+)*|\([^()]*\))\s*//\s*([\w.]+|\([^()]*\))")
_CEILED = re.compile(r"ceil_div\(([^(),]+),\s*([^(),]+)\)")
_LIMITED = re.compile(r"max\(1,\s*((?:[^()]|\([^()]*\))+)\)")
_LESS = re.compile(r"\s*[-+]\s*1\b")
LISTS = re.compile(r"\b(args|grid|block):[ \t]*\[([^\]\n]*)\]")
TUNABLE = re.compile(r"^[ \t]+([A-Z]\w*):[ \t]*\[", re.MULTILINE)
_NAMED = re.compile(r"\s*(?:-\s*)?(\w+):")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_NAME = re.compile(r"(?<![\w.\"])[A-Za-z_]\w*")
_PLAN_LINE = re.compile(
    r"^[ \t]*(?:- )?(?:grid|block|args|shared_bytes|scalars|let|[A-Z]\w*):.*$", re.MULTILINE
)
_SCALED = re.compile(r"[a-z]\w*scale\w*|scale\w*|softmax_scale|factor")  # by name a number
_NO_NAMES = frozenset(
    ["grid", "block", "args", "kernel", "ceil_div", "max", "min", "if", "else", "launches"]
)


def header_changes(header: str) -> Iterator[SourceChange]:
    """Every change of the launch plan's text."""
    yield from _rounded(header)
    for found in _LIMITED.finditer(header):
        yield SourceChange(*found.span(), found[1], "grid without a limit")
        yield SourceChange(*found.span(), _LESS.sub("", found[1]), "grid without a limit")
    for found in _LESS.finditer(header):
        yield SourceChange(*found.span(), "", "grid by one")
    for found in LISTS.finditer(header):
        yield from _exchanged(found)
        if found[1] == "args":
            yield from _factors(found)
    for line in _PLAN_LINE.finditer(header):
        yield from _line_changes(line)


def _rounded(header: str) -> Iterator[SourceChange]:
    for found in _LIMITED.finditer(header):
        inside = _FLOORED.fullmatch(found[1].strip())
        if inside:
            new = f"ceil_div({inside[1]}, {inside[2]})"
            yield SourceChange(*found.span(), new, _of_what(header, found.start()))
    for found in _FLOORED.finditer(header):
        new = f"ceil_div({found[1]}, {found[2]})"
        yield SourceChange(*found.span(), new, _of_what(header, found.start()))
    for found in _CEILED.finditer(header):
        yield SourceChange(*found.span(), f"{found[1]} // {found[2]}", "grid rounded up")


def _of_what(header: str, place: int) -> str:
    """What is rounded down at `place`: a value of its own, whose line has its name, or the grid."""
    line = header[header.rfind("\n", 0, place) + 1 : place]
    named = _NAMED.match(line)
    return "plan rounded down" if named and named[1] != "grid" else "grid rounded down"


def _exchanged(found: re.Match[str]) -> Iterator[SourceChange]:
    """Each two entries of a list exchanged."""
    entries = entries_of(found[2])
    start = found.start(2)
    for place, (begin, end) in enumerate(entries):
        for first, last in entries[place + 1 :]:
            text = found[2]
            one, other = text[begin:end], text[first:last]
            if one != other:
                new = f"{other}{text[end:first]}{one}"
                neighbours = (
                    "exchanged" if (first, last) == entries[place + 1] else "exchanged, far"
                )
                yield SourceChange(start + begin, start + last, new, f"{found[1]} {neighbours}")


def _factors(found: re.Match[str]) -> Iterator[SourceChange]:
    """Numbers that the launch plan gives a kernel, without one of their factors, or with one."""
    start = found.start(2)
    entries = [(begin, end, found[2][begin:end]) for begin, end in entries_of(found[2])]
    for begin, end, text in entries:
        span = start + begin, start + end
        kind = "argument of the plan without a factor"
        factors = [factor.strip() for factor in text.split("*")]
        if len(factors) > 1 and not set(text) & set('"(){}[]'):
            for place in range(len(factors)):
                left = " * ".join(factors[:place] + factors[place + 1 :])
                yield SourceChange(*span, left, kind)
        if _SCALED.fullmatch(text):
            for number in ("1.4426950408889634", "0.6931471805599453"):
                new = f"{text} * {number}"
                yield SourceChange(*span, new, "argument of the plan times a number")


def grid_sizes(header: str) -> Iterator[tuple[str, str]]:
    """The axis and the text of each entry of the grids of a plan."""
    for found in LISTS.finditer(header):
        if found[1] == "grid":
            for (begin, end), axis in zip(entries_of(found[2]), "xyz", strict=False):
                yield axis, found[2][begin:end]


def entries_of(text: str) -> list[tuple[int, int]]:
    """Begin and end of each entry of a list, commas in brackets and quotes left out."""
    found, depth, begin, quoted = [], 0, 0, False
    for place, sign in enumerate(text + ","):
        quoted ^= sign == '"'
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0 and not quoted:
            stripped = text[begin:place]
            lead = len(stripped) - len(stripped.lstrip())
            found.append((begin + lead, begin + len(stripped.rstrip())))
            begin = place + 1
    return [pair for pair in found if pair[0] < pair[1]]


def _line_changes(line: re.Match[str]) -> Iterator[SourceChange]:
    """Numbers and names of one line of the plan, changed."""
    names = set(_NAME.findall(line.string)) - _NO_NAMES
    for found in _NUMBER.finditer(line[0]):
        value = int(found[0])
        span = line.start() + found.start(), line.start() + found.end()
        for other in dict.fromkeys((2 * value, value // 2, value + 1, value - 1)):
            if other != value and other > 0:
                yield SourceChange(*span, str(other), "number of the plan")
        powers = (
            {1 << (value.bit_length() - 1), 1 << value.bit_length()} - {value} if value else set()
        )
        for other in sorted(powers):
            yield SourceChange(*span, str(other), "power of two in the plan")
    for found in _NAME.finditer(line[0]):
        if found[0] in _NO_NAMES or not found[0].isupper():
            continue
        span = line.start() + found.start(), line.start() + found.end()
        if line[0][found.end() : found.end() + 1] == ":":
            continue
        for other in sorted(names):
            if other != found[0] and other.isupper():
                yield SourceChange(*span, other, "name of the plan")
