"""What changes of conversions and constants say."""

from __future__ import annotations

from collections.abc import Callable

from evoengine.evaluate.repair.changed_text import ChangedText
from evoengine.evaluate.repair.place_meanings import fixed


def _constant(text: ChangedText) -> str:
    return (
        f"the constant is wrong, {text.old} in place of {text.new} (its digits are mistyped, or too"
        f" few) in {text.where}"
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
)
