"""Further trials of a change that is right in every case: other sizes, and other tunables.

A change that is right by chance is often right for the cases' sizes and the kernel's own tunables
alone: a step that happens to be one, a width that divides. What was meant is right for all that the
kernel declares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.cheap_case import is_wrong, smaller_cases
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.repair.wrong_inputs import WrongInputs, comparison
from evoengine.protocols import no_progress

MOST_SIZES = 8  # small cases that are tried with the tunables as they are
MOST_TUNABLES = 6  # other values, one at a time
SIZES_OF_EACH = 2  # small cases for each of these


async def fails_further(
    changed: Candidate, wrong: WrongInputs, bench: Workbench, limits: DeviceLimits
) -> bool:
    """Whether a changed kernel is wrong on a small case, or with another declared value of a
    tunable. Raises EvoError where a process fails.
    """
    task = bench.compiler.task
    known = [wrong.case] if wrong.case in task.cases else []
    names = [*known, *(name for case in task.cases for name in smaller_cases(task, case))]
    sizes = list(dict.fromkeys(names))[:MOST_SIZES]
    trials = [(changed, sizes)]
    trials += [(other, sizes[:SIZES_OF_EACH]) for other in _other_tunables(changed)]
    found = await asyncio.gather(
        *(bench.compiler.compile_small(item, cases, limits) for item, cases in trials)
    )
    for (item, _), cases in zip(trials, found, strict=True):
        if cases:
            report = await bench.device.run(comparison(item, cases, wrong), no_progress)
            if any(map(is_wrong, report.checks)):
                return True
    return False


def _other_tunables(candidate: Candidate) -> Iterator[Candidate]:
    """The candidate with other values, one tunable at a time: of each the first, then more."""
    others = {
        name: [value for value in values if value != candidate.tunables[name]]
        for name, values in candidate.plan.tunables.items()
    }
    ordered = [
        (name, values[number])
        for number in range(max(map(len, others.values()), default=0))
        for name, values in others.items()
        if number < len(values)
    ]
    for name, value in ordered[:MOST_TUNABLES]:
        yield candidate.tuned({name: value})
