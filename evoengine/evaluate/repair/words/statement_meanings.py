"""What changes of statements say: of rounds of loops, orders, updates that are missing, and of who
does a statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from evoengine.evaluate.repair.words.change_hints import named
from evoengine.evaluate.repair.words.changed_text import ChangedText
from evoengine.evaluate.repair.words.forgotten_meanings import FORGOTTEN_MEANINGS
from evoengine.evaluate.repair.words.place_meanings import fixed, shown

_TARGET = re.compile(r"([A-Za-z_]\w*)(?:\[[^=]*\]|\.\w+)*\s*[-+*/^]?=")
_GUARD = re.compile(r"if \(\w+ == [\w.]+\) continue;")
_VALUE = re.compile(r"=\s*([A-Za-z_]\w*)")


def _targets(text: str) -> str:
    """The variables that statements give a value, in words."""
    names = [named(name) for name in dict.fromkeys(_TARGET.findall(text))]
    return " and ".join(names) or "it"


def _begun(text: ChangedText) -> str:
    return (
        f"{_targets(text.new)}: not set back (not reset, not begun anew) in each round of a loop,"
        f" {shown(text.new)} is missing, so that later rounds (rows, tiles) go on from what earlier"
        f" ones left, in {text.where}"
    )


def _summed(text: ChangedText) -> str:
    return (
        f"{_targets(text.new)}: not set back before it is added up again, {shown(text.new)} is"
        f" missing, so that what it held already is counted twice, in {text.where}"
    )


def _unchecked(text: ChangedText) -> str:
    condition = text.new.partition("(")[2].partition(")")[0]
    return (
        f"the check of the second one of a pair is missing ({condition}): where the size is odd it"
        f" is written although it lies outside, over the first element of the next row, or beyond"
        f" the end, in {text.where}"
    )


def _own_again(text: ChangedText) -> str:
    guard = _GUARD.search(text.new)
    assert guard is not None
    return (
        "the own part is added twice: it is in the sum already and must be left out (skipped) where"
        f" the parts of all are added, {shown(guard[0])} is missing, in {text.where}"
    )


def _kept(text: ChangedText) -> str:
    return (
        f"{shown(text.old)} is done in each round of a loop and belongs before it: the running"
        " state begins anew in each round (tile, row) and is lost, not carried on from the one"
        f" before, in {text.where}"
    )


def _cleared(text: ChangedText) -> str:
    array = re.search(r"sizeof\((\w+)\)", text.new)
    return (
        f"{array[1] if array else 'an array'} in shared memory is not cleared (not initialised, not"
        " set to zero) before it is used, at the begin of the kernel or of each round, so that what"
        f" was left there counts, in {text.where}"
    )


def _written_back(text: ChangedText) -> str:
    return (
        f"the changed value is not written back (not stored, not carried on): {shown(text.new)} is"
        f" missing, so that the next round begins with the old one again, in {text.where}"
    )


def _turned(text: ChangedText) -> str:
    target = re.search(r"[A-Za-z_]\w*", text.new)
    name = named(target[0]) if target else "a variable"
    return (
        f"{name} is never changed (not updated, advanced or toggled): {shown(text.new)} is missing,"
        f" so that every round of the loop uses its first value, in {text.where}"
    )


def _ordered(text: ChangedText) -> str:
    return (
        "two statements are in the wrong order (exchanged), of which one changes or waits for what"
        f" the other uses: {shown(text.new)} is meant, in {text.where}"
    )


def _parts(text: ChangedText) -> str:
    return (
        f"parts of a statement are in the wrong order, {shown(text.old)} where {shown(text.new)} is"
        " meant: a value is overwritten before it is used, or used before it is updated, in"
        f" {text.where}"
    )


def _moved(text: ChangedText) -> str:
    is_late = any(piece.start < text.change.start for piece in text.change.others)
    how = "too late (behind" if is_late else "too early (before"
    return (
        f"{shown(text.old)} is in the wrong order, {how} statements that use or change the same),"
        f" in {text.where}"
    )


def _each_round(text: ChangedText) -> str:
    return (
        f"{shown(text.old)} is done once before a loop and must be done in each of its rounds"
        " (steps, columns), which else find what earlier ones left (not cleared, not waited for),"
        f" in {text.where}"
    )


def _in_block(text: ChangedText) -> str:
    is_late = any(piece.start < text.change.start for piece in text.change.others)
    where = "before" if is_late else "behind"
    return (
        f"{shown(text.old)} is in a loop or under a condition and belongs {where} it: it must be"
        f" done always, and once, in {text.where}"
    )


def _ended(text: ChangedText) -> str:
    if "return" in text.new:
        return f"threads go on that must not: {shown(text.new)} is missing, in {text.where}"
    return (
        f"the loop does not end where it must: {shown(text.new)} is missing, so that it goes on and"
        f" takes what must not count, or counts twice, in {text.where}"
    )


def _updated(text: ChangedText) -> str:
    value = _VALUE.search(text.new)
    return (
        f"{_targets(text.new)} is not updated: {shown(text.new)} is missing, nothing reads"
        f" {value[1] if value else 'the new value'}, so that it goes on with the old value, in"
        f" {text.where}"
    )


def _rescaled(text: ChangedText) -> str:
    return (
        f"{_targets(text.new)} is not rescaled (not corrected) when the maximum grows:"
        f" {shown(text.new)} is missing, in {text.where}"
    )


def _reduced(text: ChangedText) -> str:
    return (
        f"{_targets(text.new)} is not reduced over the lanes or threads: {shown(text.new)} is"
        " missing, so that each of them has only what its own elements give, in"
        f" {text.where}"
    )


def _mean(text: ChangedText) -> str:
    return (
        f"{_targets(text.new)}: sums are used in place of means, they are not divided by the number"
        f" of elements, {shown(text.new)} is missing, in {text.where}"
    )


def _neighbour(text: ChangedText) -> str:
    return (
        f"the neighbour is left out, only every second element (such as the even columns) is done:"
        f" {shown(text.new)} is missing, in {text.where}"
    )


def _commit(text: ChangedText) -> str:
    return (
        "a group of copies is not committed in every round (an empty one too): the wait counts"
        " groups and leaves the copies of this round pending, so that they are read before they"
        f" have come, {shown(text.new)} is missing, in {text.where}"
    )


def _wait(text: ChangedText) -> str:
    return (
        f"asynchronous copies are not waited for, {shown(text.new)} is missing: they are read"
        f" before they are complete, in {text.where}"
    )


def _of_warp(text: ChangedText) -> str:
    if re.search(r"% 32|& 31", text.new):
        return (
            f"only one thread of the block does it ({shown(text.old)}) where one of each warp"
            f" (lane 0) must: what the other warps have is lost, in {text.where}"
        )
    return (
        f"one thread of each warp does it ({shown(text.old)}) where one of the block should: it is"
        f" counted several times, in {text.where}"
    )


def _alone(text: ChangedText) -> str:
    return (
        f"every lane (thread) does what one of them should: the condition in {shown(text.new)} is"
        f" missing, so that it is counted several times, in {text.where}"
    )


def _companion(text: ChangedText) -> str:
    found = re.search(r"__shfl\w*\([^,]+, (\w+),", text.new)
    name = named(found[1]) if found else "a value"
    return (
        f"{name} is not exchanged along (not shuffled): the value of another lane is taken together"
        f" with this lane's own {name}, in {text.where}"
    )


def _last_ones(text: ChangedText) -> str:
    return (
        "the last ones are left out: what is left over (the rest, the remainder, an odd one) after"
        f" a loop that takes several at once is never added, {shown(text.new)} is missing, in"
        f" {text.where}"
    )


def _compared(text: ChangedText) -> str:
    return (
        f"an exchange overwrites what another thread may have stored in between, so that its value"
        f" (update) is lost: {shown(text.new)} is meant, in {text.where}"
    )


# the begin of a kind, and what it means
STATEMENT_MEANINGS: tuple[tuple[str, Callable[[ChangedText], str]], ...] = (
    ("begin of each round", _begun),
    ("begin of a sum", _summed),
    ("second of a pair", _unchecked),
    ("own part counted", _own_again),
    (
        "sum begun",
        fixed(
            "the sum begins with a part that is added in the loop as well, which counts twice: it"
            " must begin with zero, in"
        ),
    ),
    (
        "statement before its guard",
        fixed(
            "it stands before the condition (guard) that leaves out what lies beyond the end, so"
            " that those are counted as well, in"
        ),
    ),
    (
        "begin missing",
        fixed("sums begin with any value: they are not initialised (not set to zero), in"),
    ),
    ("state begun", _kept),
    ("array not cleared", _cleared),
    ("value not written back", _written_back),
    ("value that never changes", _turned),
    ("statements in the wrong order", _ordered),
    ("parts in the wrong order", _parts),
    ("statement moved", _moved),
    ("statement before or behind", _moved),
    ("statement of each round", _each_round),
    ("statement in a block", _in_block),
    ("statement of the neighbour", _neighbour),
    ("flag that ends", _ended),
    ("update by what", _updated),
    ("rescaling by", _rescaled),
    ("rescaling of a sum", _rescaled),
    ("reduction", _reduced),
    ("mean not taken", _mean),
    (
        "fence",
        fixed(
            "a fence (__threadfence) is missing: other blocks may see the counter or flag before"
            " what was written for them (not visible, stale), in"
        ),
    ),
    (
        "barrier missing, of a warp",
        fixed(
            "__syncwarp() is missing: lanes of a warp read shared memory before other lanes have"
            " written it, or overwrite what these still read, at"
        ),
    ),
    ("commit", _commit),
    ("wait for copies", _wait),
    ("one of each warp", _of_warp),
    ("one of them alone", _alone),
    (
        "atomic operation missing",
        fixed(
            "it is not atomic: blocks or threads overwrite one another's updates, which are lost"
            " (a race), atomicAdd or the like is missing, in"
        ),
    ),
    ("atomic operation of another", _compared),
    ("companion", _companion),
    ("last ones", _last_ones),
    *FORGOTTEN_MEANINGS,
)
