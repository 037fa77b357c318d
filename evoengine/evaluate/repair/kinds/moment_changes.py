"""Where two sets of moments (counts, means, squares) become one: what their means differ by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evoengine.evaluate.repair.expression_extents import PRECEDENCE
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.first_value_changes import first_values
from evoengine.evaluate.repair.source_change import SourceChange

_OPERAND = r"[A-Za-z_]\w*(?:(?:\.|->)\w+|\[\w+\])*"
_WHOLE = re.compile(_OPERAND)
_DIFFERENCE = re.compile(rf"({_OPERAND}) - ({_OPERAND})")
_WORD = re.compile(r"[a-z]+\d*|[A-Z][a-z]*\d*")
_MOST_SHARES = 3  # the nearest

Range = tuple[int, int]


@dataclass(frozen=True)
class _Share:
    """A quotient of a part by the whole, and how it is written."""

    tokens: Range
    part: str
    whole: str
    written: str


def moment_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`squares += other.squares` made `squares += other.squares + delta * delta * count * share`,
    where a function has the difference of two means and the share of one of the counts.
    """
    shares = _shares(code)
    for item, value in first_values(code):
        means = _DIFFERENCE.fullmatch(code.tokens.source(*value))
        if item.sort != "float" or means is None or not _are_namesakes(means[1], means[2]):
            continue
        for end in _sums(code, item.position, item.last):
            there = [share for share in shares if code.can_stand(*share.tokens, end)]
            nearest = sorted(there, key=lambda share: abs(share.tokens[0] - end))
            for share in nearest[:_MOST_SHARES]:
                of_other = f"({share.whole} - {share.part})"
                new = f" + {item.name} * {item.name} * {of_other} * {share.written}"
                yield code.inserted(end, new, "distance of the means missing")


def _shares(code: KernelCode) -> list[_Share]:
    """The quotients of two variables or members."""
    tokens = code.tokens
    names = {value: item.name for item, value in first_values(code)}
    found = []
    for place in range(len(tokens)):
        if tokens.text(place) != "/" or not code.function_places[place]:
            continue
        above, below = code.extents.operand_before(place), code.extents.operand_behind(place)
        # of `delta * n / all` the share is n / all
        part = tokens.source(*above).rpartition(" * ")[2]
        whole = tokens.source(*below)
        if _WHOLE.fullmatch(part) and _WHOLE.fullmatch(whole):
            written = names.get((above[0], below[1]), f"{part} / {whole}")
            found.append(_Share((above[0], below[1]), part, whole, written))
    return found


def _sums(code: KernelCode, first: int, last: int) -> Iterator[int]:
    """The last tokens of sums of two namesakes, `a.squares + b.squares` and
    `squares += other.squares`, between two places.
    """
    tokens = code.tokens
    for place in range(first, min(last, len(tokens) - 1)):
        if tokens.text(place) not in ("+", "+="):
            continue
        begin = code.extents.first_of(place, PRECEDENCE["+"])
        end = code.extents.last_of(place, PRECEDENCE["+"])
        texts = tokens.source(begin, place - 1), tokens.source(place + 1, end)
        if all(map(_WHOLE.fullmatch, texts)) and _are_namesakes(*texts):
            yield end


def _are_namesakes(one: str, other: str) -> bool:
    """Whether two variables or members are of the same kind, by their names: `mean` and
    `other.mean`, `otherMean`, `mean_b`.
    """
    words = [
        {word.lower() for word in _WORD.findall(text) if len(word) > 1} for text in (one, other)
    ]
    return one != other and not words[0].isdisjoint(words[1])
