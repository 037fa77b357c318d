"""What changes of places say: of strides, of what is exchanged, of what blocks share."""

from __future__ import annotations

import re
from collections.abc import Callable

from evoengine.evaluate.repair.words.changed_text import ChangedText, quoted

_LONGEST = 70  # characters of a text that is shown


def fixed(words: str) -> Callable[[ChangedText], str]:
    return lambda text: f"{words} {text.where}"


def shown(text: str) -> str:
    return quoted(text, _LONGEST)


def _part(text: ChangedText) -> str:
    return (
        f"{shown(text.old)} is computed where {shown(text.new)} alone was meant (wrapped, clamped,"
        f" shifted or rounded) in {text.where}"
    )


def _same_place(text: ChangedText) -> str:
    by = text.added.lstrip("+ ")
    return (
        f"the same place is read twice, the one {by} behind it never: a half of it repeats, in"
        f" {text.where}"
    )


def _block_row(text: ChangedText) -> str:
    row = re.search(r"blockIdx\.\w", text.new)
    return (
        f"{row[0] if row else 'the block'} is ignored: all blocks take the rows of the first one"
        f" (such as the first batch or head), in {text.where}"
    )


# the begin of a kind, and what it means
PLACE_MEANINGS: tuple[tuple[str, Callable[[ChangedText], str]], ...] = (
    (
        "coordinates exchanged",
        fixed("two coordinates are exchanged: rows and columns of a fragment are mixed up, in"),
    ),
    (
        "tiles of a fragment",
        fixed("two 8x8 tiles of a fragment are exchanged (the addresses of ldmatrix) in"),
    ),
    ("value of", fixed("a value that the launch plan computes is wrong:")),
    ("atomic", fixed("blocks or threads overwrite one another's sums, atomicAdd is missing, in")),
    (
        "counter",
        fixed("a counter is not reset: it keeps its value for the next launch, and begins wrong,"),
    ),
    ("too many copies", fixed("a copy is read before it is complete: the wait is too weak, in")),
    ("two operations", _part),
    ("square of it", fixed("it is not squared: the magnitude or root is taken, in")),
    (
        "index transposed",
        fixed("the matrix is read transposed, rows for columns, or with the wrong pitch, in"),
    ),
    (
        "groups for turns",
        fixed(
            "index i % n and i / (size of a group) are confused (heads in turns or in groups) in"
        ),
    ),
    ("same place twice", _same_place),
    ("offset of another", fixed("the pointer is moved to the place of another tensor, in")),
    (
        "axes of an index",
        fixed(
            "two axes of the index are in the wrong order (another layout, such as rows before"
            " heads, transposed): elements of another row or head are taken, in"
        ),
    ),
    (
        "indices of an array",
        fixed("the two indices of an array are exchanged (rows for columns, transposed) in"),
    ),
    (
        "bits for a quotient",
        fixed("the remainder is taken for the quotient, or the reverse (>> for &), in"),
    ),
    (
        "bits of a lane",
        fixed("the mask of bits is wrong, so that places repeat or are left out, in"),
    ),
    (
        "rest of a loop",
        fixed(
            "a whole step is taken where less is left: the last, incomplete part (the tail) is"
            " read beyond its end, in"
        ),
    ),
    (
        "end of a part",
        fixed("a part reaches to the end of all, over those of the other parts, in"),
    ),
    (
        "count for a number",
        fixed("the loop has a fixed number of rounds, too many or too few for what there is, in"),
    ),
    (
        "value computed anew",
        fixed(
            "an old value is used, computed before what it is made of was changed (updated): the"
            " new one is meant, in"
        ),
    ),
    (
        "combination",
        fixed(
            "what was there before is overwritten and forgotten, not combined with the new value"
            " (only the last one counts), in"
        ),
    ),
    (
        "same member",
        fixed("the same part of the other operand is left out (forgotten, lost), in"),
    ),
    (
        "member of another object",
        lambda text: (
            f"{text.old} is taken where {text.new} is meant: the member of the wrong object (set,"
            f" part, side), in {text.where}"
        ),
    ),
    (
        "lanes of another",
        fixed(
            "the shuffles reach other lanes than those that belong together (distances too small"
            " or too large): values of other rows are mixed in, in"
        ),
    ),
    (
        "factors of two",
        fixed("the factors of two terms are exchanged (swapped, each has the other's), in"),
    ),
    (
        "whole vectors",
        fixed(
            "several elements are taken at once where the row length is no multiple of them (odd,"
            " misaligned): the condition is missing, in"
        ),
    ),
    (
        "row of another",
        fixed(
            "the row (batch, head) is left out of the index, so that all take that of the first"
            " one, in"
        ),
    ),
    (
        "whole tiles",
        fixed(
            "the last, incomplete tile is taken for a whole one: the end is not checked, and"
            " elements beyond it are read or written, in"
        ),
    ),
    (
        "launch missing",
        fixed(
            "a kernel is not launched, so that what it clears or computes (zeros before sums, an"
            " intermediate result) is missing, in"
        ),
    ),
    ("launches exchanged", fixed("two launches are in the wrong order, in")),
    (
        "scratch",
        fixed(
            "a scratch buffer is not initialised, or with the wrong value (not zero before sums,"
            " not -inf before a maximum), in"
        ),
    ),
    (
        "leading dimension",
        fixed(
            "the pitch is wrong: rows of a fragment are read or written another number of elements"
            " apart (leading dimension, stride) than they lie, in"
        ),
    ),
    (
        "other stage",
        fixed(
            "the wrong stage of a double buffer is used: the one that is still read, or not yet"
            " filled, in"
        ),
    ),
    ("end of a loop", fixed("the loop ends too early or too late: some are left out, in")),
    ("row of the block", _block_row),
    (
        "table",
        fixed("a table of places (indices, positions) is ignored, nothing reads it, in"),
    ),
    ("reciprocal for", fixed("it is not divided by its sum or norm, not normalised, in")),
)
