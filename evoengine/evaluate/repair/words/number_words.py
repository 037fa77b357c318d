"""What it means that a number is wrong, in words."""

from __future__ import annotations

from evoengine.evaluate.repair.words.change_place import ChangePlace
from evoengine.evaluate.repair.words.changed_text import ChangedText


def number_words(text: ChangedText) -> str:
    """What a wrong number means: a loop that ends too early, a distance that is too small."""
    place = text.place
    old, new = _value(text.old), _value(text.new)
    if old is None or new is None:
        return f"the number {text.old} is wrong in {text.where}"
    if place.loop_variable:
        return _loop(text, _takes_fewer(place, old, new))
    if place.sign_before == "%":
        return (
            f"the index comes back after {text.old} in place of {text.new}, so that the same ones"
            f" are taken twice and others never, in {text.where}"
            if old < new
            else f"the index comes back after {text.old}, not after {text.new}, in {text.where}"
        )
    if place.sign_before == "*" and "." not in text.old:
        return (
            f"the distance {text.old} is too small, so that they overlap, some are counted twice,"
            f" in {text.where}"
            if old < new
            else f"the distance {text.old} is too large, so that some between are left out, in"
            f" {text.where}"
        )
    how = " (off by one)" if abs(old - new) == 1 else ""
    return f"the number {text.old} is wrong{how}, it should be {text.new}, in {text.where}"


def _takes_fewer(place: ChangePlace, old: float, new: float) -> bool:
    """Whether a loop takes fewer rounds with the number `old` than with `new`."""
    low = old < new
    if place.sign_before in ("/", ">>", "-"):
        low = not low
    if place.loop_part == "begin":
        return low != place.ascends
    return low == place.ascends if place.loop_part == "bound" else not low


def _value(text: str) -> float | None:
    try:
        return float(text.strip().rstrip("uUlLfF"))
    except ValueError:
        return None


def _loop(text: ChangedText, fewer: bool) -> str:
    """What a loop leaves out, or takes too many of."""
    place = text.place
    what = place.target or place.loop_variable
    if place.is_reduction and place.multiplies:
        return (
            f"{what} is reduced over only a part of the lanes, such as half of them: the partial"
            f" results of the other lanes are missing, in {text.where}"
            if fewer
            else f"{what} is reduced over too many lanes, so that neighbouring rows are mixed, in"
            f" {text.where}"
        )
    words = {
        ("begin", True): "begins too late: the first ones are left out",
        ("begin", False): "begins too early: ones that do not belong to it are counted",
        ("bound", True): "ends too early: the last ones, or a half, are left out",
        ("bound", False): "ends too late: too many are taken",
        ("step", True): "steps too far: some, such as every other one, are skipped",
        ("step", False): "steps too little: some are taken twice, they overlap",
    }
    return f"the loop {words[place.loop_part, fewer]}; wrong is {text.where}"
