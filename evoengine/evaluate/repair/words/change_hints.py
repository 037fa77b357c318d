"""What the names and numbers in a change say besides its kind: what is not read, ends early, is
turned round.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from evoengine.evaluate.repair.name_roles import role_of
from evoengine.evaluate.repair.words.change_place import ChangePlace

_NAME = re.compile(r"[A-Za-z_]\w*(?!\w*\s*\()")
_POSITIONS = frozenset(("keys", "queries", "rows", "positions", "columns"))
_INVERSES = re.compile(r"\w*(inv|inverse|rcp|reciprocal)\w*", re.IGNORECASE)


def hints(texts: Iterable[tuple[str, str]], place: ChangePlace) -> str:
    """More about a change, in words that follow a comma; may be empty. `texts` are what stands
    there before and after, by itself and with what is around it.
    """
    said: list[str] = []
    for old, new in texts:
        if " ".join(old.split()) != " ".join(new.split()):
            said += [words for hint in _HINTS for words in hint(old, new, place)]
    return "".join(f", {words}" for words in dict.fromkeys(said))


def named(name: str) -> str:
    """A name with what it stands for: highest (maximum)."""
    found = re.fullmatch(r"[-+*/ ]*([A-Za-z_]\w*)", name.strip())
    role = role_of(found[1]) if found else ""
    return f"{name} ({role})" if role and role not in name.lower() else name


def _names(text: str) -> set[str]:
    return set(_NAME.findall(text)) - {"size_t", "float", "int", "unsigned", "f"}


def _index(old: str, new: str, place: ChangePlace) -> Iterator[str]:
    """An index that lacks a variable, or has one too many."""
    if not place.array:
        return
    missing = sorted(name for name in _names(new) - _names(old) if not name.isupper())
    if missing and _names(old) < _names(new):
        one = named(missing[0])
        yield f"so that {one} is ignored: all take those of the first one (of {missing[0]} = 0)"
    elif re.sub(r"\s*[-+]\s*1\b", "", old).strip() == re.sub(r"\s*[-+]\s*1\b", "", new).strip():
        yield "so that the neighbour, the element before or after it, is taken"
    else:
        yield f"so that another element, row or column of {place.array} is taken"


def _bound(old: str, new: str, place: ChangePlace) -> Iterator[str]:
    """The bound or begin of a loop, written out in names."""
    if place.loop_part == "begin":
        if new.strip() == "0" and old.strip() != "0":
            yield "so that the loop begins too late and the first ones are left out"
        elif _names(old) != _names(new):
            yield "so that the loop begins at the wrong one: too late, with the first ones left out"
            yield "or too early"
    if place.loop_part == "bound" and re.search(r"[/\-]", old) and not re.search(r"[/\-]", new):
        yield "so that the loop ends too early: the last ones, or a half, are left out"


def _limit(old: str, new: str, place: ChangePlace) -> Iterator[str]:
    """A condition under which too few take part."""
    if not place.in_condition or place.loop_variable:
        return
    one, other = old.strip(), new.strip()
    if one.isdigit() and other.isdigit() and place.sign_before in ("/", ">>") and place.is_upper:
        if int(one) > int(other):
            yield "so that only a part of them, such as half, takes part"
        else:
            yield "so that more take part than there are"
    elif re.search(r"\+\s*\w+\s*(>=|<|<=|>)", old) or one.endswith("+ 1"):
        yield "so that the last ones (the tail) are left out or never written, or one too many"


def _turned(old: str, new: str, place: ChangePlace) -> Iterator[str]:
    """A place that is counted backwards."""
    del place
    for text, rest in ((old, new), (new, old)):
        found = re.search(r"\b[\w.]+\s*-\s*(?=[A-Za-z_(])", text)
        if found is None or not found[0].strip(" -"):
            continue
        without = text[: found.start()] + text[found.end() :]
        if "".join(without.split()) == "".join(rest.split()):
            yield "counted backwards: the order is reversed, neighbours are exchanged"
            return


def _reciprocal(old: str, new: str, place: ChangePlace) -> Iterator[str]:
    """A value in place of its reciprocal."""
    one = re.compile(r"\b1(\.0?)?f?\s*/")
    if bool(one.search(old)) != bool(one.search(new)):
        yield f"so that the reciprocal (inverse) of {place.target or 'it'} is confused with itself"
    added = _names(new) - _names(old)
    if any(_INVERSES.fullmatch(name) or role_of(name) == "denominator" for name in added):
        yield "so that it is not normalised, not divided by its sum or norm"


def _compared(old: str, new: str, place: ChangePlace) -> Iterator[str]:
    """A mask, where two positions are compared."""
    names = _names(old) | _names(new)
    if not (place.in_condition and re.search(r"[<>]=?|\+ 1", old + new)):
        return
    roles = {role_of(name) for name in names | set(place.names)} & _POSITIONS
    if "keys" in roles and len(roles) > 1 and not place.loop_variable:
        yield "so that the mask is wrong: later (future) keys are seen or some are hidden"


def _layout(old: str, new: str, place: ChangePlace) -> Iterator[str]:
    """Names that say row in place of column."""
    del place
    if _names(old) == _names(new):
        return
    if "row" in old.lower() and "col" in new.lower():
        yield "rows in place of columns: the layout is transposed"
    elif "col" in old.lower() and "row" in new.lower():
        yield "columns in place of rows: the layout is transposed"


def _rows(old: str, new: str, place: ChangePlace) -> Iterator[str]:
    """The next block or row of the grid."""
    del place
    base = re.search(r"\b(blockIdx\.\w|row|head|batch)\b", new)
    if base and re.search(rf"{re.escape(base[0])}\s*[-+]\s*1", old):
        yield "so that those of the next row, or of another head or block, are taken"


_HINTS: tuple[Callable[[str, str, ChangePlace], Iterator[str]], ...] = (
    _index,
    _bound,
    _limit,
    _turned,
    _reciprocal,
    _compared,
    _layout,
    _rows,
)
