"""What the axes of a tensor are called: rows and columns, heads and batches; names in a row."""

from __future__ import annotations

from collections.abc import Sequence

# dimensions that have these names in most tasks; H is a height where there is a width, too
CONVENTIONS = {"B": "batch", "BATCH": "batch", "H": "head", "HEADS": "head"}
CHANNELS = {"C", "CH", "CHANNELS", "C_IN", "C_OUT", "CIN", "COUT"}  # of more than two axes
WIDTHS = {"W", "WIDTH", "OW"}
PLURALS = {"batch": "batches", "index": "indices"}


def axis_noun(axes: Sequence[str], axis: int) -> str:
    """What one index of an axis is called; `axes` are the names of its tensor's dimensions."""
    name = axes[axis]
    known = CONVENTIONS.get(name.upper(), "")
    if known and not (known == "head" and WIDTHS & {one.upper() for one in axes}):
        return known
    if name.upper() in CHANNELS and len(axes) > 2:
        return "channel"
    if len(axes) == 1:
        return "element"
    if axis == len(axes) - 1:
        return "column"
    return "row" if axis == len(axes) - 2 else "plane"


def plural(noun: str) -> str:
    """`rows`, `batches`."""
    return PLURALS.get(noun, f"{noun}s")


def amount(count: int, noun: str) -> str:
    """`1 row`, `3 rows`."""
    return f"{count} {noun if count == 1 else plural(noun)}"


def listed(names: Sequence[str]) -> str:
    """`q`, `q and k`, `q, k and v`."""
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
