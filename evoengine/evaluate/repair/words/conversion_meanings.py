"""What changes of conversions and constants say."""

from __future__ import annotations

from collections.abc import Callable

from evoengine.evaluate.repair.kinds.instruction_changes import TYPE
from evoengine.evaluate.repair.words.change_hints import named
from evoengine.evaluate.repair.words.changed_text import ChangedText
from evoengine.evaluate.repair.words.place_meanings import fixed, shown


def _constant(text: ChangedText) -> str:
    return (
        f"the constant is wrong, {text.old} in place of {text.new} (its digits are mistyped, or too"
        f" few) in {text.where}"
    )


def _type(text: ChangedText) -> str:
    pairs = zip(TYPE.findall(text.old), TYPE.findall(text.new), strict=True)
    one, other = next((old, new) for old, new in pairs if old != new)
    return (
        f"the instruction takes its operands for {one}, but they are {other}: their bits are read"
        f" as other numbers (wrong type), in {text.where}"
    )


def _never_taken(text: ChangedText) -> str:
    one, _, other = text.new.rstrip("; ").partition(" = ")
    return (
        f"{named(one)} never takes the value {other}, which was read ahead (the assignment is"
        f" missing, {other} is not used): the same one is taken again and again, in {text.where}"
    )


def _divided(text: ChangedText) -> str:
    return (
        f"{shown(text.old)} is a division of whole numbers (integers), which cuts the fraction off"
        f" (1 / n is 0): in {text.where}"
    )


CONVERSION_MEANINGS: tuple[tuple[str, Callable[[ChangedText], str]], ...] = (
    ("known constant", _constant),
    (
        "rounding missing",
        fixed(
            "rounding is missing: values are cut towards zero (truncated), not rounded to the"
            " nearest, in"
        ),
    ),
    (
        "byte not cut",
        fixed(
            "a value is not cut to its byte (the mask is missing): the sign bits of a negative"
            " one overwrite the later ones of the word, in"
        ),
    ),
    ("whole numbers divided", _divided),
    (
        "type of a sum",
        fixed("sums are accumulated in half precision (low precision, not in float) in"),
    ),
    (
        "width of a shuffle",
        fixed(
            "the shuffle stays within parts of the warp (its width is too small): values of other"
            " lanes are taken, in"
        ),
    ),
    ("value never taken", _never_taken),
    ("type of an instruction", _type),
    (
        "transposition of an instruction missing",
        fixed("ldmatrix loads matrices untransposed (.trans is missing): rows for columns, in"),
    ),
    (
        "transposition of an instruction too many",
        fixed("ldmatrix transposes matrices that must stay as they are (.trans is too many), in"),
    ),
    (
        "loop over the rest",
        fixed(
            "each thread takes one element alone: those beyond the number of threads are left out,"
            " never written (a loop in steps of all threads is missing), in"
        ),
    ),
)
