"""Changes of the values that a launch plan computes, and of its lists with one entry a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from evoengine.evaluate.repair.kinds.header_changes import LISTS, entries_of
from evoengine.evaluate.repair.source_change import SourceChange

_VALUE = re.compile(r"\bvalue:\s*([^,{}\n]+?)\s*(?=[,}])")
_ENTRY = re.compile(r"^([ \t]*-[ \t]+)([^#\n]*[^#\s])", re.MULTILINE)
_LAUNCH = re.compile(r"kernel:")
_ARGUMENT = re.compile(r"(?<![\w.])[a-z]\w*(?![\w.(:])")
_NO_NAMES = frozenset(
    ("args", "block", "dtype", "float16", "float32", "float64", "grid", "int32", "int64", "kernel")
)
_SIGN = re.compile(r" ([-+]) ")
_MOST_NAMES = 10


def plan_value_changes(header: str) -> Iterator[SourceChange]:
    """Factors, roots and terms of computed values; neighbours of a list exchanged."""
    names = _names(header)
    for found in _VALUE.finditer(header):
        text = found[1]
        root = f"{text} ** 0.5" if text.isidentifier() else f"({text}) ** 0.5"
        for new in (root, f"1 / ({text})", f"1 - ({text})", f"-({text})"):
            yield SourceChange(*found.span(1), new, "value of the plan")
        for sign in _SIGN.finditer(text):
            start = found.start(1) + sign.start(1)
            other = {"+": "-", "-": "+"}[sign[1]]
            yield SourceChange(start, start + 1, other, "sign in a value of the plan")
        for name in names:
            if name in re.findall(r"\w+", text):
                continue
            for new in _with(text, name):
                yield SourceChange(*found.span(1), new, "value of the plan, with another")
    for name in names:
        for found in re.finditer(rf"(?<![\w.]){name}(?![\w.(:])", header):
            if _is_entry(header, found.start()):
                for other in names:
                    if other != name:
                        new = f"{{value: {name} / {other}, dtype: float32}}"
                        yield SourceChange(*found.span(), new, "value of the plan, with another")
    yield from _neighbours(header)
    yield from _of_other_launches(header)


def _of_other_launches(header: str) -> Iterator[SourceChange]:
    """Each number of a launch's arguments replaced by one that another launch is given: a pitch of
    memory that it has filled.
    """
    lists = [
        [(found.start(2) + begin, found[2][begin:end]) for begin, end in entries_of(found[2])]
        for found in LISTS.finditer(header)
        if found[1] == "args"
    ]
    for own in lists:
        given = dict.fromkeys(text for other in lists if other is not own for _, text in other)
        for start, text in own:
            if not _is_computed(text):
                continue
            for new in given:
                if _is_computed(new) and new not in {it for _, it in own}:
                    kind = "argument of another launch"
                    yield SourceChange(start, start + len(text), new, kind)


def _is_computed(text: str) -> bool:
    """Whether an argument is an expression of sizes, or named by one."""
    return text.startswith('"') or text.isupper()


def _with(text: str, name: str) -> Iterator[str]:
    """A value with one more factor, divisor or term."""
    if text == "1":
        yield f"1 / {name}"
        yield f"1 - {name}"
        yield name
        return
    bare = text if re.fullmatch(r"[\w./ ]+", text) else f"({text})"
    yield f"{bare} * {name}"
    yield f"{bare} / {name}"


def _names(header: str) -> list[str]:
    """The scalars that stand in the plan's values."""
    values = " ".join(found[1] for found in _VALUE.finditer(header))
    return list(dict.fromkeys(_ARGUMENT.findall(values)))[:_MOST_NAMES]


def _is_entry(header: str, place: int) -> bool:
    """Whether a name is an argument by itself, and no part of a value."""
    line = header[header.rfind("\n", 0, place) + 1 : place]
    return ("args:" in line or line.strip() == "-") and line.count("{") == line.count("}")


def _neighbours(header: str) -> Iterator[SourceChange]:
    """Two entries of a list that stand in lines one after the other, exchanged."""
    entries = [item for item in _ENTRY.finditer(header) if not _LAUNCH.search(item[2])]
    for one, other in pairwise(entries):
        between = header[one.end(2) : other.start(2)]
        if between.count("\n") == 1 and len(one[1]) == len(other[1]) and one[2] != other[2]:
            new = f"{other[2]}{between}{one[2]}"
            yield SourceChange(one.start(2), other.end(2), new, "args exchanged")
