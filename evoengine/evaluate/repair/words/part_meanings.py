"""What changes say that add a part which an expression lacks: a term, a factor, a bound, a step."""

from __future__ import annotations

import re
from collections.abc import Callable

from evoengine.evaluate.repair.name_roles import role_of
from evoengine.evaluate.repair.words.change_hints import named
from evoengine.evaluate.repair.words.changed_text import ChangedText
from evoengine.evaluate.repair.words.place_meanings import fixed, shown

_LIMIT = re.compile(r"\b(max|min|fmaxf|fminf)\s*\(")
_NAME = re.compile(r"[A-Za-z_]\w*")
_RESCALES = ("rescaling", "scale")


def scaled(factor: str) -> str:
    """What follows for sums whose factor is missing, where its name says that it rescales them."""
    roles = {role_of(name) for name in _NAME.findall(factor)}
    if "rescaling" in roles or {"maximum", "scale"} <= roles or "exp" in factor:
        return " (it is not rescaled to the new or common maximum)"
    return " (it is not scaled)" if "scale" in roles else ""


def _part(text: ChangedText) -> str:
    """A part that the like expression beside it has."""
    old, new = " ".join(text.old.split()), " ".join(text.new.split())
    like = "as its like beside it has"
    said = f"{shown(old)} is used where {shown(new)} is meant, {like}"
    added = new.replace(old, " ", 1) if old in new else new
    if _LIMIT.search(added) and not _LIMIT.search(old):
        return f"{_limited(added)}: {said}, in {text.where}"
    if "&&" in added or "||" in added:
        return (
            "a condition is missing (a bound or a mask), so that what lies beyond the end or must"
            f" not count is taken: {said}, in {text.where}"
        )
    part = added.strip(" ()")
    if part.startswith("-"):
        rest = part[1:].strip()
        return (
            f"{named(rest)} is missing, it is not subtracted, so that places are shifted by {rest}:"
            f" {said}, in {text.where}"
        )
    if part.startswith("+") or part.endswith("+"):
        rest = part.strip("+ ")
        return f"{named(rest)} is missing, it is not added: {said}, in {text.where}"
    if part.startswith(("*", "/")) or part.endswith("*"):
        rest = part.strip("*/ ")
        return f"the factor {named(rest)} is missing{scaled(rest)}: {said}, in {text.where}"
    return f"a part is missing ({shown(part)}): {said}, in {text.where}"


def _limited(added: str) -> str:
    found = _LIMIT.search(added)
    if found is not None and found[1] in ("max", "fmaxf") and re.search(r"\b0\b", added):
        return (
            "a limit is missing: what lies before the first one (outside of the edge, above or left"
            " of it, at negative places such as padding) is counted, not clamped to 0"
        )
    return "a limit is missing (min or max), so that what lies beyond the end is counted"


def _factor(text: ChangedText) -> str:
    old, new = text.old.strip(), text.new
    factor = new.partition("*")[0].strip() if not new.startswith(old) else text.added.lstrip("* ")
    return (
        f"the factor {named(factor)} is missing{scaled(factor)}: {shown(old)} is used where"
        f" {shown(new)} is meant, as beside it, in {text.where}"
    )


def _pitch(text: ChangedText) -> str:
    factor = text.new.rpartition("*")[2].strip()
    return (
        f"the factor {named(factor)} (a stride or pitch) is missing: {shown(text.old)} is used"
        f" where {shown(text.new)} is meant, so that neighbouring elements or the same rows are"
        f" taken again (they overlap), in {text.where}"
    )


def _running(text: ChangedText) -> str:
    factor = text.new.rpartition("*")[2].strip()
    return (
        f"the factor {named(factor)} is missing: the running value {shown(text.old)} is not"
        f" rescaled (not multiplied by {factor}) before more is added, in {text.where}"
    )


def _of_call(text: ChangedText) -> str:
    factor = text.new.rpartition("*")[2].strip()
    return (
        f"the factor {named(factor)} is missing, it is not multiplied by {factor} as in other calls"
        f"{scaled(factor)}: {shown(text.old)} is used where {shown(text.new)} is meant, in"
        f" {text.where}"
    )


def _of_block(text: ChangedText) -> str:
    factor = text.added.lstrip("* ")
    return (
        f"the factor {named(factor)} is missing: the block's number is not multiplied by how many"
        f" rows or elements each block takes, so that blocks overlap and the last ones are never"
        f" reached, in {text.where}"
    )


def _compared(text: ChangedText) -> str:
    return (
        f"{named(text.added.lstrip('+ '))} is missing in a comparison (bound), it is not added: the"
        " last, partial tile (the tail, or the one that a mask cuts) is taken for a whole one or"
        f" left out, in {text.where}"
    )


def _beginning(text: ChangedText) -> str:
    return (
        f"a part of the place is missing (an offset is not added): {shown(text.old)} is used where"
        f" {shown(text.new)}, which begins with it, is meant, in {text.where}"
    )


def _of_lanes(text: ChangedText) -> str:
    return (
        "lanes that have no result are counted: a condition is missing, so that values that were"
        f" never written (uninitialised) are added, in {text.where}"
    )


def _step(text: ChangedText) -> str:
    factor = text.new.rpartition("*")[2].strip()
    return (
        f"the loop steps too little: by {shown(text.old)} where {shown(text.new)} is meant, so that"
        f" all {named(factor)} take the same ones and these are counted several times (twice or"
        f" more), in {text.where}"
    )


def _quotient(text: ChangedText) -> str:
    words = ("remainder", "quotient")
    one, other = words if text.old.strip().startswith("%") else words[::-1]
    return (
        f"the {one} ({text.old.strip()}) is taken where the {other} ({text.new}) is meant: rows and"
        " columns (registers or elements) are mixed up, so that half of them take what belongs to"
        f" another row or column, in {text.where}"
    )


def _register(text: ChangedText) -> str:
    part = text.added.lstrip("+ ")
    of_row = "8" in part
    what = (
        "half of a fragment's rows (the lower or second eight of sixteen) take the place of the"
        " rows eight above or below"
        if of_row
        else "every second column of a fragment takes the place of its neighbour"
    )
    return (
        f"{shown(part)} is missing, it is not added: {what} (offset, mask or index of another row),"
        f" in {text.where}"
    )


def _bound(text: ChangedText) -> str:
    return (
        f"{_limited(text.new)}: {shown(text.old)} is used where {shown(text.new)} is meant, in"
        f" {text.where}"
    )


def _code(text: ChangedText) -> str:
    return (
        "values are not clamped (not saturated) to the range of the codes"
        f" ({shown(text.new)}), so that large ones overflow and wrap around, in {text.where}"
    )


def _flag(text: ChangedText) -> str:
    old = text.old.strip()
    meant = old[1:].strip() if old.startswith("!") else f"!{old}"
    name = old.lstrip("! ")
    return (
        f"the condition is inverted: the flag {named(name)} is read the wrong way round,"
        f" {shown(old)} where {shown(meant)} is meant, so that what belongs to one case is"
        f" done in the other, in {text.where}"
    )


def _argument(text: ChangedText) -> str:
    return (
        f"the launch plan gives {shown(text.old)} where {shown(text.new)} is meant: a factor is"
        " applied twice, once too often, or must not be there"
    )


def _argument_of_another(text: ChangedText) -> str:
    return (
        f"the launch plan gives {shown(text.old)} where {shown(text.new)} is meant, as another"
        " launch is given: a pitch (leading dimension) or another size is wrong"
    )


def _argument_scaled(text: ChangedText) -> str:
    return (
        f"the launch plan gives {shown(text.old)} where {shown(text.new)} is meant: the factor for"
        " powers of two in place of e (log2(e) or ln(2)) is missing"
    )


def _of_factor(text: ChangedText) -> str:
    how = "one step behind: the same one is taken again" if "+" in text.new else "one step ahead"
    return (
        f"{shown(text.old)} is used where {shown(text.new)} is meant, off by one: it is {how}, in"
        f" {text.where}"
    )


def _guard_of_scan(text: ChangedText) -> str:
    condition = text.new.partition("(")[2].partition(")")[0]
    return (
        f"a condition is missing in a step of a scan or reduction ({shown(condition)}): lanes that"
        f" have no earlier one join themselves or another one again, for {text.where}"
    )


# the begin of a kind, and what it means
PART_MEANINGS: tuple[tuple[str, Callable[[ChangedText], str]], ...] = (
    ("part missing", _part),
    ("factor missing, beside", _factor),
    ("factor missing, of a like sum", _pitch),
    ("factor missing, of a running", _running),
    ("factor missing, of a like call", _of_call),
    ("factor missing, of a block", _of_block),
    ("summand missing, compared", _compared),
    ("one off, in an argument", _of_factor),
    ("name for its beginning", _beginning),
    ("condition of a lane", _of_lanes),
    (
        "registers of the other half",
        fixed(
            "the registers of one half of a fragment are used where those of the other half are"
            " meant, so that a half repeats and the other is never used, in"
        ),
    ),
    ("step of a loop", _step),
    ("quotient for", _quotient),
    ("coordinate of a register", _register),
    ("bound of a term", _bound),
    ("clamp of a code", _code),
    ("flag negated", _flag),
    ("argument of the plan without", _argument),
    ("argument of the plan times", _argument_scaled),
    ("argument of another launch", _argument_of_another),
    ("one more, of a factor", _of_factor),
    ("one less, of a factor", _of_factor),
    ("guard of a scan", _guard_of_scan),
    (
        "index of the same",
        fixed("the index of another operand or row is used (wrong index), in"),
    ),
    ("indices exchanged, of two", fixed("two indices are exchanged (swapped, wrong index) in")),
    (
        "name for a coordinate",
        fixed("a lane's place is computed wrongly: another row, column or depth of a fragment, in"),
    ),
)
