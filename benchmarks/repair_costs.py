"""What the search for the change that makes a wrong kernel right costs: time per change.

    python -m benchmarks.repair_costs [--device emulated|cuda] [--seconds S] [--only NAME ...]

Of planted bugs of the half that may be looked at (benchmarks.bug_halves): how many changes the
kernel has, how many were compiled together and launched within the limit, milliseconds of each,
and whether one was found, in the planted lines or elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bug_halves import open_half
from benchmarks.bugs import DEVICES, sentences_of
from benchmarks.planted_bugs import PlantedBug, bug_manifest, bug_task, bug_task_path
from benchmarks.table import Row, machine, table
from evoengine.candidate.arch import limits_of
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.repair.repair_search import FoundRepairs, RepairSearch
from evoengine.evaluate.repair.repaired_verdict import wrong_inputs
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.search.make_executor import find_device, make_executor

USUAL = (
    "softmax_base_two",
    "scan_last_step_missing",
    "transpose_bias_of_other_axis",
    "lanes_sum_over_two_rows",
    "tiles_scores_of_half_the_columns",
)


async def searched(
    bug: PlantedBug, folder: Path, device: str, seconds: float
) -> FoundRepairs | None:
    """What the search found in at most `seconds`; None where the verdict has nothing to repair."""
    choice = find_device(DEVICES[device], bug_task(bug.task, folder=folder))
    task = bug_task(bug.task, choice.is_emulator, folder)
    executor = make_executor(task, bug_task_path(bug.task, folder), choice, ())
    assert isinstance(executor, LocalExecutor)
    try:
        started = await executor.start()
        candidate = bug.candidate(folder)
        verdict = await executor.evaluate(candidate, lambda _: None)
        wrong = wrong_inputs(verdict)
        if wrong is None:
            return None
        limits = limits_of(started.environment)
        search = RepairSearch(Workbench(executor.compiler, executor.device), limits)
        return await search.find(candidate, wrong, seconds, lambda _: None, sentences_of(verdict))
    finally:
        await executor.close()


def row(name: str, bug: PlantedBug, folder: Path, found: FoundRepairs | None) -> Row:
    """The row of one bug."""
    if found is None:
        return {"name": name, "repaired": "nothing is looked for"}
    source = bug.candidate(folder).source
    lines = [change.line(source) for change in found.changes]
    where = "no"
    if lines:
        where = "at its place" if lines[0] in bug.planted_lines(folder) else f"line {lines[0]}"
    return {
        "name": name,
        "changes": found.known,
        "launched": found.launched,
        "compilations": found.compilations,
        "refuted": found.refuted,
        "seconds": round(found.seconds, 1),
        "ms a change": round(1000 * found.seconds / max(1, found.launched), 1),
        "repaired": where,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.repair_costs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", choices=tuple(DEVICES), default="emulated")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--only", nargs="+", default=USUAL, metavar="NAME")
    options = parser.parse_args(arguments)
    chosen = [(folder, name) for folder, name in open_half() if name in options.only]
    rows = []
    for folder, name in chosen:
        bug = bug_manifest(folder).bugs[name]
        found = asyncio.run(searched(bug, folder, options.device, options.seconds))
        rows.append(row(name, bug, folder, found))
    print(", ".join(f"{key}: {value}" for key, value in machine(device=options.device).items()))
    print(table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
