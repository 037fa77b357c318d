"""Small versions of a task's shown cases, on which it is found out what is wrong with a candidate.

A reference takes milliseconds there, and a mistake that a large case shows in millions of elements
is seen in some thousands. Odd ones show in the open what a hidden case shows only to us: tails.
Their sizes lie between those of the task's own cases and have the divisors that these have in
common, so that a candidate that is right on all of them is expected to be right here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evoengine.task.schema import Case, Task

MOST_ELEMENTS = 1 << 17  # of a tensor
TILE = 128  # a large dimension stays a multiple of what it is: regular cases have no tails
KEPT = 32  # dimensions up to this, e.g. heads, often stand in some relation to one another
MOST_ODD = 3
WITH = " with "  # in a name, which no case of a task file can have
ODD_SHARE = 5 / 8  # of the regular size
VECTOR = 8  # elements: 16 bytes of halves, more of others
# Of a tiny case, on which hundreds of launches take a second on an emulator.
MOST_TINY = 1 << 12  # elements of a tensor, where all large dimensions are cut alike
MOST_ALONG = 1 << 14  # where one of them keeps its size
LEAST = 40  # of a dimension that is cut
LITTLE = (1, 2, 4, 8, 16, 32)  # of one for which a plan alone is built
FEW = 9  # of one that is cut while another keeps its size


def small_case(task: Task, case: str) -> tuple[str, Case] | None:
    """The smaller version of a shown case, with its name; None where it is small already, or no
    smaller one is allowed.
    """
    return _named(task, case, _smaller(task, task.cases[case]))


def odd_case(task: Task, case: str) -> tuple[str, Case] | None:
    """One that is smaller still, and whose sizes are as odd as those of the task's cases may be;
    no size of it is that of a hidden case.
    """
    return _named(task, case, _odd(task, _smaller(task, task.cases[case])))


def vector_case(task: Task, case: str) -> tuple[str, Case] | None:
    """As an odd one, with rows of whole vectors that are no whole tiles: a candidate that copies
    vectors where it can meets its edges here, which at odd sizes it does element by element.
    """
    smaller = _smaller(task, task.cases[case])
    sizes = _odd(task, smaller, VECTOR)
    return None if sizes == _odd(task, smaller) else _named(task, case, sizes)


def _tiny_cases(task: Task, case: str) -> Iterator[tuple[str, Case] | None]:
    """Odd ones that are smaller still: one with all large dimensions cut alike, and for each of
    them one that has little else, so that its tiles and steps are as many as may be.
    """
    odd = _odd(task, _smaller(task, task.cases[case]))
    yield _named(task, case, _cut(task, odd, [*_large(task, odd)], MOST_TINY))
    whole = _odd(task, task.cases[case])
    for kept in _large(task, whole):
        if int(whole[kept]) < TILE:
            continue
        sizes = whole
        for name in _large(task, whole):
            if name != kept:
                sizes = _with(task, sizes, name, FEW)
        yield _named(task, case, _cut(task, sizes, [kept], MOST_ALONG))


def smaller_versions(task: Task, case: str) -> list[str]:
    """The small cases on which a candidate that is wrong in `case` may be wrong as well, by name.

    For a hidden case they are a few odd ones, always the same: which one is wrong, they do not
    tell. Of a shown one the odd version comes first: it has half the elements, and among whole
    tiles that are alike a mistake has several explanations.
    """
    if case in task.hidden_cases:
        return _odd_cases(task)
    if case not in task.cases:
        return []
    small = small_case(task, case)
    return [] if small is None else [item[0] for item in (odd_case(task, case), small) if item]


def tiny_versions(task: Task, case: str) -> list[str]:
    """Those that are smaller still, by name; the same for all hidden cases."""
    shown = case if case in task.cases else next(iter(task.cases))
    return [item[0] for item in _tiny_cases(task, shown) if item is not None]


def _odd_cases(task: Task) -> list[str]:
    """The names of those that differ in their sizes, and of one with rows of whole vectors."""
    found: dict[str, Case] = {}
    for case in task.cases:
        named = odd_case(task, case)
        if named is not None and named[1] not in found.values():
            found[named[0]] = named[1]
    vectors = next(filter(None, (vector_case(task, case) for case in task.cases)), None)
    return [*list(found)[:MOST_ODD], *([vectors[0]] if vectors else [])]


def versions(task: Task, case: str) -> dict[str, Case]:
    """The small versions of a shown case by name, such as `long with S=256`."""
    usual = small_case(task, case), odd_case(task, case)
    return dict(filter(None, (*usual, *_tiny_cases(task, case), vector_case(task, case))))


def least_versions(task: Task) -> Iterator[tuple[str, Case]]:
    """The shown cases with one dimension as small as the task allows, whatever its other cases are,
    and with all of them: a plan can be built for them, a candidate need not be right on them.
    """
    for case, sizes in task.cases.items():
        found = [_least(task, sizes, name) for name in _large(task, sizes)]
        all_least = sizes
        for name in _counts(task, sizes):
            all_least = _least(task, all_least, name)
        named = (_named(task, case, least) for least in (*found, all_least))
        yield from dict(filter(None, named)).items()  # a task of one size has them twice


def sizes_of(task: Task, name: str) -> Case:
    """The sizes of a small case; raises KeyError where `name` is none."""
    return _known_versions(_Same(task), name.partition(WITH)[0])[name]


class _Same:
    """A task that is equal to itself alone: to compare whole tasks takes longer than to look for
    their small cases.
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    def __hash__(self) -> int:
        return id(self.task)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.task is self.task


@lru_cache(maxsize=64)  # a worker asks for the sizes of a case some ten times in each launch
def _known_versions(same: _Same, case: str) -> dict[str, Case]:
    return versions(same.task, case)


def is_small(case: str) -> bool:
    """Whether this is the name of a small case."""
    return WITH in case


def _named(task: Task, case: str, sizes: Case) -> tuple[str, Case] | None:
    before = task.cases[case]
    changed = ", ".join(f"{name}={value}" for name, value in sizes.items() if value != before[name])
    if not changed or not task.allows_case(sizes):
        return None
    return f"{case}{WITH}{changed}", sizes


def _smaller(task: Task, case: Case) -> Case:
    sizes = dict(case)
    while task.most_elements(sizes) > MOST_ELEMENTS:
        halved = _halved(task, sizes)
        if halved is None:
            break
        sizes = halved
    return _told_apart(task, sizes, case)


def _halved(task: Task, sizes: Case) -> Case | None:
    """With the largest dimension that can be halved; None where there is none."""
    for name in sorted(_large(task, sizes), key=lambda name: sizes[name], reverse=True):
        value = int(sizes[name])
        half = max(TILE, value // 2 // TILE * TILE) + value % TILE
        if half < value and _is_usual(task, name, half):
            return {**sizes, name: half}
    return None


def _told_apart(task: Task, sizes: Case, before: Case) -> Case:
    """With different sizes for dimensions that were made equal: what is exchanged is seen then."""
    found = dict(sizes)
    for name in _large(task, sizes):
        others = {value for other, value in found.items() if other != name}
        value = int(found[name])
        while value in others and value > TILE and sizes[name] != before[name]:
            value -= TILE
        if value not in others and _is_usual(task, name, value):
            found[name] = value
    return found


def _odd(task: Task, sizes: Case, multiple_of: int = 1) -> Case:
    found = sizes
    for name in _large(task, sizes):
        found = _with(task, found, name, int(int(sizes[name]) * ODD_SHARE), multiple_of)
    return found


def _least(task: Task, sizes: Case, name: str) -> Case:
    """With one dimension as small as the task allows, whatever its cases are."""
    smaller = ({**sizes, name: value} for value in LITTLE if value < int(sizes[name]))
    return next((it for it in smaller if task.allows_case(it)), sizes)


def _cut(task: Task, sizes: Case, names: Sequence[str], most: int) -> Case:
    """With the largest dimensions of `names` halved until no tensor has more than `most` elements,
    as far as may be.
    """
    found = sizes
    while task.most_elements(found) > most:
        ordered = sorted(names, key=lambda name: found[name], reverse=True)
        halves = (
            _with(task, found, name, int(found[name]) // 2)
            for name in ordered
            if int(found[name]) // 2 >= LEAST
        )
        smaller = next((half for half in halves if half != found), None)
        if smaller is None:
            break
        found = smaller
    return found


def _with(task: Task, sizes: Case, name: str, value: int, multiple_of: int = 1) -> Case:
    """With about `value` of one dimension, an odd multiple of what all its sizes have in common
    and of `multiple_of`, that no other dimension has and no hidden case; unchanged where there is
    no usual one. A size next to the least of all cases would tell a hidden one.
    """
    divisor = math.lcm(_divisor(task, name), multiple_of)
    quotient = value // divisor | 1
    taken = {case[name] for case in task.hidden_cases.values()}
    taken |= {other for key, other in sizes.items() if key != name}
    while quotient * divisor in taken:
        quotient += 2
    if not _is_usual(task, name, quotient * divisor):
        return sizes
    return {**sizes, name: quotient * divisor}


def _large(task: Task, sizes: Case) -> Iterator[str]:
    """The dimensions that may be made smaller."""
    return (name for name in _counts(task, sizes) if int(sizes[name]) > KEPT)


def _counts(task: Task, sizes: Case) -> Iterator[str]:
    """The dimensions that are numbers."""
    return (
        name
        for name, value in sizes.items()
        if not isinstance(value, bool) and task.dims[name] != "bool"
    )


def _is_usual(task: Task, name: str, value: int) -> bool:
    known = _values(task.all_cases, name)
    return min(known) <= value <= max(known) and value % _divisor(task, name) == 0


def _divisor(task: Task, name: str) -> int:
    """What all cases' sizes of a dimension are multiples of."""
    return math.gcd(*_values(task.all_cases, name))


def _values(cases: Mapping[str, Case], name: str) -> list[int]:
    return [int(case[name]) for case in cases.values()]
