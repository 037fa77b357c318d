"""The case on which changes of a wrong kernel are launched: the smallest on which it is wrong.

On an emulator a launch takes as long as the case is large, so that on a small one several times as
many changes are tried. Only cases that may be shown are looked at, and small versions of them.
"""

from __future__ import annotations

import math

from evoengine.records import CaseCheck
from evoengine.task.schema import Task
from evoengine.task.small_cases import MOST_ELEMENTS, is_small, versions

MOST_CASES = 12  # that are looked at, the smallest first
MUCH_SMALLER = 0.7  # of the size: with less to gain nothing is looked for


def smaller_cases(task: Task, case: str) -> list[str]:
    """The cases, by name, that are much smaller than `case`, the smallest first."""
    known = [name for shown in task.cases for name in (shown, *versions(task, shown))]
    most = MUCH_SMALLER * _size(task, case)
    smaller = {
        tuple(task.scope(name).items()): name
        for name in reversed(known)
        if name != case and _size(task, name) < most
    }
    return sorted(smaller.values(), key=lambda name: _size(task, name))[:MOST_CASES]


def is_small_enough(task: Task, case: str) -> bool:
    """Whether `case`, a shown one, is as small as the small versions of cases are."""
    return is_small(case) or task.most_elements(task.cases[case]) <= MOST_ELEMENTS


def is_wrong(check: CaseCheck) -> bool:
    """Whether a case has a wrong output, or a finding of checked mode; one that could not be
    compared has not.
    """
    has_findings = check.checked is not None and bool(check.checked.findings)
    return not check.ok and (bool(check.sets) or has_findings)


def _size(task: Task, case: str) -> float:
    """What a launch costs, roughly: the product of the dimensions."""
    scope = task.scope(case)
    sizes = [max(1, value) for name, value in scope.items() if _counts(task, name, value)]
    return float(math.prod(sizes))


def _counts(task: Task, name: str, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and task.dims.get(name) != "bool"
