"""What changes say that add a statement which a loop, a stage or a counter needs."""

from __future__ import annotations

from collections.abc import Callable

from evoengine.evaluate.repair.words.changed_text import ChangedText
from evoengine.evaluate.repair.words.place_meanings import shown


def _missing(words: str) -> Callable[[ChangedText], str]:
    """What is wrong without a statement, with the statement and its place behind."""
    return lambda text: f"{words}: {shown(text.new)} is missing, in {text.where}"


def _for_all(text: ChangedText) -> str:
    return (
        "the last statement of a branch must be done always (an empty group is committed too, a"
        f" counter goes on), not under the condition alone, in {text.where}"
    )


def _overwritten(text: ChangedText) -> str:
    return (
        "blocks overwrite one another's shares of a sum, which must be added up (atomicAdd), in"
        f" {text.where}"
    )


def _behind_wait(text: ChangedText) -> str:
    return (
        "each thread waits for its own copies only behind the barrier (in the wrong order): what"
        f" others have copied is read before it has come, in {text.where}"
    )


def _barrier_for_all(text: ChangedText) -> str:
    return (
        "a barrier is missing where its condition does not hold: threads go on (the last round, or"
        f" a part of them) before others are done, in {text.where}"
    )


FORGOTTEN_MEANINGS: tuple[tuple[str, Callable[[ChangedText], str]], ...] = (
    (
        "rescaling of an element",
        _missing("a running sum is not rescaled when the maximum grows, which others are"),
    ),
    (
        "new maximum not kept",
        _missing(
            "the running maximum is not updated, though sums are rescaled to the new one, so that"
            " later weights refer to the old one"
        ),
    ),
    ("scores that nothing scales", _missing("the scores are not scaled (by one by the root of D)")),
    (
        "sum not set back behind",
        _missing(
            "the sum is not set back to zero when it has been stored: what earlier tiles left is"
            " added to the next one"
        ),
    ),
    (
        "part of shared memory",
        _missing(
            "a part of shared memory is added to and never cleared (not initialised, not zero):"
            " what was left there counts"
        ),
    ),
    (
        "wait for an emptied",
        _missing(
            "a stage is filled again before its readers are done: none of the writers waits until"
            " it is empty"
        ),
    ),
    (
        "stage never given back",
        _missing("no reader says that a stage is empty again, for which its writers wait"),
    ),
    ("last statement of a branch", _for_all),
    ("barrier for all", _barrier_for_all),
    ("barrier before the wait", _behind_wait),
    (
        "lanes of a shared loop",
        _missing(
            "the value is not reduced over the lanes that share a row: each has only what its own"
            " elements give"
        ),
    ),
    (
        "counter of the last",
        _missing(
            "the counter is not reset (not set back to zero) by the last block: the next launch"
            " goes on from its value and has no last one"
        ),
    ),
    ("share that overwrites", _overwritten),
)
