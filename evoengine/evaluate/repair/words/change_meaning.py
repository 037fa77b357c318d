"""What a change says of the kernel before it: in words, by the kind of the change."""

from __future__ import annotations

import re
from collections.abc import Callable

from evoengine.evaluate.repair.kinds.difference_changes import AS_A_LIKE_KERNEL
from evoengine.evaluate.repair.words.change_hints import hints, named
from evoengine.evaluate.repair.words.changed_text import ChangedText
from evoengine.evaluate.repair.words.conversion_meanings import CONVERSION_MEANINGS
from evoengine.evaluate.repair.words.expression_meanings import EXPRESSION_MEANINGS
from evoengine.evaluate.repair.words.number_words import number_words
from evoengine.evaluate.repair.words.part_meanings import PART_MEANINGS, scaled
from evoengine.evaluate.repair.words.place_meanings import PLACE_MEANINGS, fixed, shown
from evoengine.evaluate.repair.words.statement_meanings import STATEMENT_MEANINGS

_ARRAY = re.compile(r"reinterpret_cast<\w+\*>\((\w+)\)\[evo_i\]")
_OPERATOR = re.compile(r"[-+*/]?=")
_IN_FIRST_ROUND = re.compile(r"(\w+) == 0")
_OF_THREADS = re.compile(r"(?i)lane|thread|tid|warp|block")
_NARROW = re.compile(r"half|bfloat|fp8|e4m3|e5m2|0xffff")


def meaning(text: ChangedText) -> str:
    """What was wrong; empty where the kind of the change does not say."""
    kind = text.change.kind
    # the words of asm are no variables: row and col in a name of an instruction say nothing
    of_asm = "of an instruction" in kind
    more = "" if of_asm else hints(((text.old, text.new), text.whole), text.place)
    for beginning, words in _MEANINGS:
        if kind.startswith(beginning):
            return f"{words(text)}{more}"
    return f"in {text.where}{more}"


def _name(text: ChangedText) -> str:
    moved = ", so that it is shifted" if text.change.kind == "name for a number" else ""
    return f"{text.old} is taken in place of {text.new} in {text.where}{moved}"


def _too_many(text: ChangedText) -> str:
    removed = " ".join(text.old.split())
    if text.new:
        removed = text.removed
    bare = removed.strip("+-*/% ")
    if bare == "1":
        return f"off by one: {shown(removed)} is too many in {text.where}"
    if bare in ("1.0f", "1.f", "1.0") and removed.endswith("/"):
        return f"{shown(removed)} is too many: the reciprocal is taken, in {text.where}"
    if text.change.kind.startswith("factor"):
        return (
            f"{shown(removed)} is too many (the factor {bare} is applied once too often, or must"
            f" not be there) in {text.where}"
        )
    return f"{shown(removed)} is too many (shifted by {bare}, or it must not count) in {text.where}"


def _missing(text: ChangedText) -> str:
    sign = text.added[:1]
    rest = text.added[1:].strip()
    if sign in "*/%":
        word = {"*": "multiplied by", "/": "divided by", "%": "taken modulo"}[sign]
        return (
            f"the factor {named(rest)} is missing, it is not {word} {rest}{scaled(rest)}, in"
            f" {text.where}"
        )
    if sign == "-":
        square = re.fullmatch(r"(\w+) \* \1", rest)
        what = f"the square of {named(square[1])}" if square else named(rest)
        moved = ", so that it is shifted" if rest.isdigit() else ""
        return f"{what} is missing, it is not subtracted{moved}, in {text.where}"
    moved = ", so that it is shifted or takes the same again" if "int" in text.change.kind else ""
    what = named(text.added.lstrip("+ "))
    return f"{what} is missing, it is not added{moved}, in {text.where}"


def _call_missing(text: ChangedText) -> str:
    name = text.new.partition("(")[0].strip()
    return f"{name} is missing, it is not applied, in {text.where}"


def _call_too_many(text: ChangedText) -> str:
    name = text.old.partition("(")[0].strip()
    if _NARROW.search(name):
        return f"values are rounded to lower precision by {name} in {text.where}"
    return f"{name} is applied where it must not be, or twice, in {text.where}"


def _exchanged(text: ChangedText) -> str:
    return f"two of them are exchanged (swapped, in the wrong order) in {text.where}"


def _grid(text: ChangedText) -> str:
    return (
        f"the grid is rounded down in {text.old}: no block takes the last, incomplete tile, whose"
        " elements are never written"
    )


def _plan_value(text: ChangedText) -> str:
    return (
        f"{text.old} is rounded down: where it leaves a rest, the last ones (the incomplete part,"
        " the tail) belong to none and are left out, neither read, counted nor written"
    )


def _whole_tiles(text: ChangedText) -> str:
    what = "left out"
    is_quotient = text.change.kind == "quotient rounded down"
    rounded = "the quotient is rounded down and must be rounded up: " if is_quotient else ""
    if text.place.in_condition and not text.place.loop_variable:
        what = "left out, so that the last rows or columns are never written or read"
    return (
        f"{rounded}only whole tiles are taken: the last, incomplete tile (the tail) is {what},"
        f" in {text.where}"
    )


def _condition_negated(text: ChangedText) -> str:
    return f"the condition {shown(text.old)} is the wrong way round (inverted) in {text.where}"


def _condition_dropped(text: ChangedText) -> str:
    words = "a condition is too many, so that some are left out"
    first = _IN_FIRST_ROUND.fullmatch(text.old.strip())
    if first and not _OF_THREADS.search(first[1]):
        words += (
            f": it is done only where {first[0]}, in the first round, so that later ones find what"
            " earlier ones left (stale, not cleared or set again)"
        )
    return f"{words}, in {text.where}"


def _comparison(text: ChangedText) -> str:
    other = "off by one, or the other way"
    if "bound of the loop" in text.where and text.new.strip() == f"{text.old.strip()}=":
        other = f"off by one: the last one is left out; {other}"
    if "bound of the loop" in text.where and text.old.strip() == f"{text.new.strip()}=":
        other = f"off by one: one too many is counted; {other}"
    return f"{text.old} is used in place of {text.new} ({other}) in {text.where}"


def _sign(text: ChangedText) -> str:
    words = {
        "+": "the sign is wrong, it is added in place of subtracted",
        "-": "the sign is wrong, it is subtracted in place of added",
    }
    return f"{words.get(text.old.strip(), 'it has the wrong sign')} in {text.where}"


def _mask(text: ChangedText) -> str:
    return (
        f"the mask is wrong or missing ({shown(text.new)}): positions that it must hide are"
        f" seen, or others are hidden, in {text.where}"
    )


def _begins(text: ChangedText) -> str:
    return f"it begins with {text.old} in place of minus infinity in {text.where}"


# what it means that the first is used in place of the second
_CONFUSED = (
    ("exp2f?|ex2", "exp|__expf", "powers of two are computed in place of those of e"),
    ("exp|__expf", "exp2f?", "powers of e are computed in place of those of two"),
    ("log2f?", "log|__logf", "the logarithm has base two in place of e"),
    ("log10f?", "log|__logf", "the logarithm has base ten in place of e"),
    ("rsqrt", "sqrt", "it is divided by the root in place of multiplied"),
    ("sqrt", "rsqrt", "it is multiplied by the root in place of divided"),
    ("fmin|min", "fmax|max", "the minimum is taken in place of the maximum"),
    ("fmax|max", "fmin|min", "the maximum is taken in place of the minimum"),
    (
        "atomicExch",
        "atomicAdd",
        "a value overwrites what was there, it is not added: the last wins",
    ),
    ("__shfl_down_sync", "__shfl_xor_sync", "only the first lane gets the result of all lanes"),
    ("__shfl_up_sync", "__shfl_xor_sync", "only the last lane gets the result of all lanes"),
    (".*trunc|.*_rz", ".*", "values are truncated in place of rounded to nearest"),
    ("floor", ".*", "values are rounded down in place of to nearest"),
    (".*row_major", ".*col_major", "the tile is read row-major: it is transposed"),
    (".*col_major", ".*row_major", "the tile is read column-major: it is transposed"),
    ("(?!.*trans).*", ".*trans.*", "the tile or fragment is not transposed"),
    (".*trans.*", "(?!.*trans).*", "the tile or fragment is transposed"),
    ("[xyzw]", "[xyzw]", "one element of a vector is taken for another one"),
)


def _function(text: ChangedText) -> str:
    said = f"{text.old} is used in place of {text.new} in {text.where}"
    for one, other, words in _CONFUSED:
        if re.match(one, text.old) and re.match(other, text.new):
            return f"{words}: {said}"
    return said


def _operator(text: ChangedText) -> str:
    return f"{text.old} is used in place of {text.new} in {text.where}"


def _statement_missing(text: ChangedText) -> str:
    lanes = ""
    if "__shfl" in text.new:
        lanes = ": the sum or maximum is taken over only a part, such as half, of the lanes"
    return f"a statement is missing, left out: {shown(text.new)}{lanes}, for {text.where}"


def _rescaling(text: ChangedText) -> str:
    target = text.new.partition("*=")[0].strip()
    return f"{target} is not rescaled when the maximum rises: {shown(text.new)} is missing"


def _reset(text: ChangedText) -> str:
    array = _ARRAY.search(text.new)
    if array is not None:
        return (
            f"{named(array[1])} is not set back to zero in each round of a loop (all elements of"
            f" {array[1]}[]): what earlier rounds left is added again"
        )
    target = text.new.partition("=")[0].strip()
    return f"{named(target)} is not set back to zero in each round of a loop: {shown(text.new)}"


def _index(text: ChangedText) -> str:
    array = text.place.array or "it"
    how = f"is read at {shown(text.old)}, not at {shown(text.new)}"
    return f"{array} {how}: wrong is {text.where}"


def _assignment(text: ChangedText) -> str:
    words = {
        ("=", "+="): "is overwritten, not added up",
        ("+=", "="): "is added up, not overwritten",
        ("-=", "+="): "has the wrong sign: it is subtracted in place of added",
        ("+=", "-="): "has the wrong sign: it is added in place of subtracted",
    }
    target = text.place.target or "it"
    one, other = _OPERATOR.search(text.old), _OPERATOR.search(text.new)
    pair = (one[0], other[0]) if one and other else ("", "")
    said = words.get(pair, f"is changed by {text.old}, not by {text.new}")
    return f"{target} {said} in {text.where}"


def _unread(text: ChangedText) -> str:
    name = re.search(r"[A-Za-z_]\w*(?=\[|\.|->)", text.added or text.new)
    what = name[0] if name else text.added
    how = "multiplied" if text.added.startswith("*") else "added"
    return f"{what} is missing, it is not {how}, nothing reads it, in {text.where}"


def _row(text: ChangedText) -> str:
    row = re.search(r"size_t\((\w+)\)", text.new)
    what = named(row[1]) if row else "a row"
    return f"{what} is missing: all take those of the first one ({what} = 0), in {text.where}"


def _case(text: ChangedText) -> str:
    flag, _, value = text.new.partition("?")
    limit = value.partition(":")[0].strip()
    return (
        f"the case of {flag.strip()} is missing (a mask): where it holds, only up to {limit} must"
        f" count, in {text.where}"
    )


def _moved(text: ChangedText) -> str:
    return (
        f"{shown(text.old)} is at the wrong place, applied before or behind what it must not be:"
        f" too early or too late, in {text.where}"
    )


def _layout_of_two(text: ChangedText) -> str:
    array = text.place.array or "it"
    return (
        f"{array} is read in the wrong layout, interleaved in pairs or as two planes one behind the"
        f" other, so that those of other rows or elements are taken, in {text.where}"
    )


def _square(text: ChangedText) -> str:
    return (
        f"the squares are those of {shown(text.old)}, not of {shown(text.new)}: what was added to"
        f" it or subtracted from it (such as a residual or a mean) is missing, in {text.where}"
    )


def _precision(text: ChangedText) -> str:
    return (
        f"values are rounded to lower precision, such as half or bfloat16 ({shown(text.old)}), in"
        f" {text.where}"
    )


_MEANINGS: tuple[tuple[str, Callable[[ChangedText], str]], ...] = (
    *EXPRESSION_MEANINGS,
    *STATEMENT_MEANINGS,
    *PART_MEANINGS,
    *CONVERSION_MEANINGS,
    (AS_A_LIKE_KERNEL, fixed("there the edit of that kernel is wrong, in")),
    ("number of the plan", fixed("a number of the launch plan is wrong:")),
    ("number for a name", _name),
    ("number", number_words),
    ("power of two", fixed("a number of the launch plan must be a power of two:")),
    ("float zero", _begins),
    ("float", fixed("the constant is wrong in")),
    ("name for a number", _name),
    ("name for a float", _name),
    ("name for zero", _name),
    ("names exchanged", _exchanged),
    ("name", _name),
    ("parameter", _name),
    ("array", _name),
    ("pointer", _name),
    ("grid rounded down", _grid),
    ("plan rounded down", _plan_value),
    (
        "grid by one",
        fixed("the grid is off by one: blocks are missing, whose elements are never written, in"),
    ),
    (
        "grid without",
        fixed("the grid is wrong, such as too small, so that blocks are missing, in"),
    ),
    ("grid for", _name),
    ("grid", fixed("the grid is wrong in")),
    ("axis of the grid", _name),
    ("block for thread", _name),
    ("expression for a name", _name),
    ("args exchanged", _exchanged),
    ("arguments exchanged", _exchanged),
    ("statements exchanged", _exchanged),
    ("function", _function),
    ("type", _function),
    ("member that", _function),
    ("member of a type", _function),
    ("member of a vector", _function),
    ("operator", _operator),
    ("factor too many", _too_many),
    ("term too many", _too_many),
    ("condition too many", fixed("a condition is too many, so that some are left out, in")),
    ("condition dropped", _condition_dropped),
    ("condition negated", _condition_negated),
    ("factor of another", _missing),
    ("factor of too many", fixed("the factor is applied to one term too many in")),
    ("factor missing", _missing),
    ("divisor missing", _missing),
    ("summand missing", _missing),
    ("square missing", _missing),
    ("term of another", _missing),
    ("times", _missing),
    ("one less", _missing),
    ("one more", _missing),
    ("quotient rounded down", _whole_tiles),
    ("bound of whole tiles", _whole_tiles),
    ("bound of the mask", _mask),
    ("mask", _mask),
    ("case of a mask", _mask),
    ("comparison", _comparison),
    ("sign", _sign),
    ("negation", fixed("the sign or the negation is too many in")),
    ("value negated", fixed("the sign is wrong, a minus is missing, in")),
    ("assignment", _assignment),
    ("call missing", _call_missing),
    ("limit missing", _call_missing),
    (
        "conversions with bits",
        fixed("values, such as sums, are cut to lower precision (half, bfloat16) in"),
    ),
    ("conversion", _call_too_many),
    ("two conversions", _precision),
    ("unread", _unread),
    ("factor that is read", _unread),
    ("summand that is read", _unread),
    ("layout of two", _layout_of_two),
    ("square of another", _square),
    ("square not centred", _square),
    ("condition of a value", fixed("what must not count is counted (a guard is missing) in")),
    ("condition", fixed("the condition is wrong in")),
    ("bound of a condition", fixed("a bound is missing: what is beyond the end counts too, in")),
    ("bound missing", fixed("a bound is missing (min or max), so that it runs over the end, in")),
    ("clamp missing", fixed("a limit is missing, the value is not clamped, in")),
    ("reset", _reset),
    ("row of an index", _missing),
    ("begin of a row", _row),
    ("range of a loop", fixed("the loop runs over the wrong ones, shifted or too many, in")),
    ("case of a flag", _case),
    ("index that", fixed("the index comes back, so that some count more than once, in")),
    ("term moved", _moved),
    ("terms exchanged", _exchanged),
    ("exchanged with", _exchanged),
    ("indices exchanged", _exchanged),
    *PLACE_MEANINGS,
    (
        "coordinates",
        fixed("the lanes are numbered wrongly (rows and columns of a fragment are mixed up) in"),
    ),
    ("stride of", fixed("the places are in another order, interleaved, rows are mixed up, in")),
    ("operand negated", fixed("the sign is wrong, a minus is missing, in")),
    ("call dropped", _call_too_many),
    ("cast", fixed("a cast (to unsigned, or to another type) is too many in")),
    ("brackets", fixed("the brackets are wrong: what is in them is applied to too much, in")),
    ("bracket moved", fixed("the brackets are wrong: a term is on the wrong side of them, in")),
    ("swizzle", fixed("the XOR swizzle is missing in")),
    ("index", _index),
    (
        "barrier",
        fixed(
            "a barrier is missing: threads read shared memory before others have written it, or"
            " overwrite what they still read, at"
        ),
    ),
    ("statement missing", _statement_missing),
    ("rescaling", _rescaling),
    ("statement dropped", fixed("a statement is too many:")),
    ("return", fixed("threads return too early, so that their elements are never written:")),
    ("guard", fixed("every thread does what one of them should: a condition is missing for")),
)
