"""Statements that are missing, too many or in the wrong order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def statement_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Barriers inserted; statements dropped, exchanged, repeated with another number or name;
    conditions taken from other places.
    """
    yield from _barriers(code)
    yield from _dropped(code)
    yield from _exchanged(code)
    yield from _repeated(code)
    yield from _rescaled(code)
    yield from _guarded(code)


def _barriers(code: KernelCode) -> Iterator[SourceChange]:
    """A barrier at each place between statements of a kernel."""
    tokens = code.tokens
    for position in range(len(tokens)):
        text = tokens.text(position)
        ends = text in (";", "{", "}") and code.function_places[min(position + 1, len(tokens) - 1)]
        around = tokens.enclosing[position]
        in_head = around >= 0 and tokens.text(around) in ("(", "[")
        if ends and not in_head and tokens.text(position + 1) not in (")", ",", "else", ";"):
            closes = text == "}" or tokens.text(position + 1) in ("}", "for")
            kind = "barrier missing, beside a loop" if closes else "barrier missing"
            yield code.inserted(position, " __syncthreads();", kind)


def _dropped(code: KernelCode) -> Iterator[SourceChange]:
    for first, last in code.statements:
        if code.tokens.text(first) == "return" and last == first + 1:
            yield code.replaced(first, last, ";", "return dropped")
        elif code.names.at(first) is not None or code.tokens.text(first + 1) == "(":
            yield code.replaced(first, last, ";", "statement dropped")


def _exchanged(code: KernelCode) -> Iterator[SourceChange]:
    for (first, last), (begin, end) in zip(code.statements, code.statements[1:], strict=False):
        if begin == last + 1:
            one, other = code.tokens.source(first, last), code.tokens.source(begin, end)
            yield code.replaced(first, end, f"{other} {one}", "statements exchanged")


def _repeated(code: KernelCode) -> Iterator[SourceChange]:
    """A statement once more behind itself, with one number doubled, halved or one more."""
    for first, last in code.statements:
        text = code.tokens.source(first, last)
        has_effect = code.names.at(first) is not None or code.tokens.text(first + 1) == "("
        if not has_effect or ("sync" in text and "shfl" not in text):
            continue
        for found in _NUMBER.finditer(text):
            value = int(found[0])
            for other in dict.fromkeys((2 * value, value // 2, value + 1)):
                if other != value and (other or "[" in text):
                    again = f"{text[: found.start()]}{other}{text[found.end() :]}"
                    kind = "other lanes" if "__shfl" in text else "other number"
                    yield code.inserted(last, f" {again}", f"statement missing, {kind}")
        yield from _repeated_with_names(code, first, last)


def _repeated_with_names(code: KernelCode, first: int, last: int) -> Iterator[SourceChange]:
    tokens = code.tokens
    if last - first > 40:
        return
    for place in range(first, last):
        own = code.names.at(place) if tokens.kind(place) == "name" else None
        if own is None or own.sort not in ("pointer", "array", "float"):
            continue
        for item in code.visible(place, own.sort):
            if item.name != own.name:
                new = "".join(
                    (
                        tokens.code[tokens.tokens[first].start : tokens.tokens[place].start],
                        item.name,
                        tokens.code[tokens.tokens[place].end : tokens.tokens[last].end],
                    )
                )
                yield code.inserted(last, f" {new}", "statement missing, other name")


def _rescaled(code: KernelCode) -> Iterator[SourceChange]:
    """A running value multiplied by a factor that was computed before."""
    declared = {item.position: item for item in code.names.all if item.sort == "float"}
    for first, last in code.statements:
        factors = [item for place, item in declared.items() if first <= place <= last]
        if not factors or not code.function_places[first]:
            continue
        running = [
            item
            for item in code.visible(last, "float")
            if item.name not in {f.name for f in factors}
        ]
        declared_together: dict[int, list[str]] = {}
        for item in running:
            if not item.is_parameter:
                declared_together.setdefault(item.declaration, []).append(item.name)
        for factor in factors:
            for names in declared_together.values():
                for name in names:
                    yield code.inserted(last, f" {name} *= {factor.name};", "rescaling missing")
                for several in (names, *_alike(names)):
                    new = "".join(f" {name} *= {factor.name};" for name in several)
                    if len(several) > 1:
                        yield code.inserted(last, new, "rescaling missing")


def _alike(names: list[str]) -> list[list[str]]:
    """The names that differ in a number at the end alone: sum0 and sum1."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(name.rstrip("0123456789"), []).append(name)
    return [like for like in found.values() if len(like) < len(names)]


def _guarded(code: KernelCode) -> Iterator[SourceChange]:
    """A condition of another place in front of a statement, added to another or in its place."""
    tokens = code.tokens
    known: dict[str, tuple[int, int]] = {}
    for first, last in code.conditions:
        if last - first < 24:
            known.setdefault(tokens.source(first, last), (first, last))
    for first, last in code.conditions:
        own = tokens.source(first, last)
        for text, pair in known.items():
            if text != own and code.can_stand(*pair, first):
                yield code.replaced(first, last, text, "condition of another place")
                yield code.replaced(first, last, f"({own}) && ({text})", "condition added")
    guards = {
        text: pair
        for text, pair in known.items()
        if ("==" in text or "<" in text) and not code.is_left_where(pair[1])
    }
    single = {"threadIdx.x == 0": None, **guards}
    lanes = [item for item in code.names.all if item.name in ("lane", "lane_id", "laneId", "tid")]
    single |= {f"{item.name} == 0": (item.position, item.position) for item in lanes}
    for first, last in code.statements:
        if code.names.at(first) is None and tokens.text(first + 1) != "(":
            continue
        for text, pair_or_none in single.items():
            if pair_or_none is None or code.can_stand(*pair_or_none, first):
                new = f"if ({text}) {tokens.source(first, last)}"
                yield code.replaced(first, last, new, "guard missing")
