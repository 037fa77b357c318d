"""Modelled against measured times of kernels that use a GPU in different ways
(tests/structures/manifest.yaml), most of which the time model was never fitted to.

    python -m benchmarks.structures [FILE.json] [--target h200] [--counts FILE] [--json FILE]
        [--only NAME ...]

On a machine with a GPU (and CuPy) every structure is timed, replays of CUDA graphs with a hot
cache, and FILE.json is written: less than a minute. Without a GPU the times are modelled and
compared with those in FILE.json, where it exists: some minutes, of which `--counts` keeps what
was counted, as long as neither the kernels nor the emulator change.

The groups were drawn before the model was fitted to any of them: `fit` may be looked at when the
model changes, `measure` only judges it, `seen` was known before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import yaml

from benchmarks.configurations import REPLAYS, TIMEOUT_S, compile_all, launches_of
from benchmarks.corpora import ROOT, parsed, path_of
from benchmarks.measured import Measured, MeasuredLaunch, read, write
from benchmarks.model import spearman
from benchmarks.table import Row, machine, publish
from benchmarks.table import table as markdown
from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import CasePlan, bind
from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.emulator.targets import TargetGpu, find
from evoengine.emulator.timing_model.counts import Counts
from evoengine.emulator.timing_model.launch_time import ModelledLaunch, model_launch
from evoengine.evaluate.compile.compile_unit import CompileUnit
from evoengine.evaluate.compile.pool import CompileResult
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.paths import find_task
from evoengine.records import Frozen
from evoengine.task.load import load_task

STRUCTURES = ROOT / "tests" / "structures"
MEASURED = ROOT / "docs" / "measurements" / "h200-structures.json"
GROUPS = ("fit", "measure", "seen")
FITTED_SHARE = 1 / 3  # of each task's structures

# the structure's file, its task, the case -> the counts of each launch
Count = Callable[[Path, str, str], Sequence[Counts]]


class Structure(Frozen):
    """One entry of the manifest of tests/structures."""

    task: str
    cases: tuple[str, ...]
    group: Literal["fit", "measure", "seen"]


class Structures(Frozen):
    """The manifest of tests/structures: entries by file name, and the seed of their groups."""

    draw_seed: int
    structures: dict[str, Structure]


@dataclass(frozen=True)
class StructureCase:
    """One structure on one case, bound for a device."""

    name: str  # its file's, without the folder
    path: Path
    structure: Structure
    plan: CasePlan
    unit: CompileUnit

    @property
    def key(self) -> str:
        """What names it in a file of counts."""
        return f"{self.name} {self.plan.case}"


@dataclass(frozen=True)
class StructureTime:
    """The modelled time of a structure on one case, in microseconds, and the measured one."""

    item: StructureCase
    us: float
    limiter: str  # of its longest launch
    measured_us: float | None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, nargs="?", default=MEASURED)
    parser.add_argument("--target", default="h200", help="the GPU that is modelled")
    parser.add_argument("--counts", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="files' names without .cu")
    options = parser.parse_args()
    found = cuda_devices()
    if found.names:
        measure(options.file, options.only)
        return
    print(f"no GPU ({found.problem}): times are modelled", file=sys.stderr)
    target = find(options.target)
    limits = DeviceLimits(target.arch, target.shared_per_block, target.sms)
    times = modelled(
        bound(limits, options.only), target, options.counts, measured_times(options.file)
    )
    publish(machine(target=target.title, times="modelled, microseconds"), rows(times), options.json)
    print(f"\n{markdown(agreement(times))}")


def manifest(folder: Path = STRUCTURES) -> Structures:
    """The manifest of a folder of structures."""
    text = (folder / "manifest.yaml").read_text(encoding="utf-8")
    return Structures.model_validate(yaml.safe_load(text))


def drawn(names: Iterable[str], task: str, seed: int) -> set[str]:
    """Which of a task's structures may be fitted."""
    ordered = sorted(names)
    count = round(len(ordered) * FITTED_SHARE)
    return set(random.Random(f"{seed} {task}").sample(ordered, count))  # noqa: S311


def bound(limits: DeviceLimits, only: Sequence[str] | None = None) -> list[StructureCase]:
    """Every structure on each of its cases, or those of the names in `only`."""
    entries = manifest().structures
    known = {Path(name).stem for name in entries}
    if unknown := set(only or ()) - known:
        sys.exit(f"no structure {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
    return [
        _bound(path_of(name, STRUCTURES), entry, case, limits)
        for name, entry in entries.items()
        if not only or Path(name).stem in only
        for case in entry.cases
    ]


def _bound(path: Path, entry: Structure, case: str, limits: DeviceLimits) -> StructureCase:
    candidate = parsed(path)
    plan = bind(candidate, load_task(find_task(entry.task)), case, limits)
    unit = CompileUnit(
        code=candidate.code,
        name=path.name,
        arch=limits.arch,
        macros=plan.macros,
        kernels=tuple(sorted({launch.kernel for launch in plan.launches})),
        timeout_s=TIMEOUT_S,
    )
    return StructureCase(path.stem, path, entry, plan, unit)


def measure(file: Path, only: Sequence[str] | None) -> None:
    """Times every structure on the present GPU and writes what was measured, also before an
    error.
    """
    from benchmarks.replay import Bench, present  # CuPy and a device

    device, limits = present()
    items = bound(limits, only)
    with tempfile.TemporaryDirectory() as folder:
        compiled = asyncio.run(compile_all([item.unit for item in items], Path(folder)))
        bench = Bench(REPLAYS)
        measured: list[Measured] = []
        try:
            for item, result in zip(items, compiled, strict=True):
                if result.status != "ok":
                    problem = f"{result.status}: {result.log[:300]}"
                    print(f"left out: {item.key}: {problem}", file=sys.stderr)
                    continue
                median_us = bench.median_us(item.structure.task, item.plan, result)
                print(f"{item.key}: {median_us:.2f} us", file=sys.stderr)
                measured.append(_measured(item, median_us, result))
        finally:
            command = f"python -m benchmarks.structures {file.name}"
            write(file, machine(**device, command=command), measured)
    print(json.dumps({"file": str(file), "times": len(measured)}))


def _measured(item: StructureCase, median_us: float, result: CompileResult) -> Measured:
    return Measured(
        item.name,
        item.structure.task,
        item.plan.case,
        {},  # defaults
        median_us,
        launches_of(item.plan, result),
    )


def measured_times(file: Path) -> dict[tuple[str, str], float]:
    """Microseconds by structure and case; empty where there is no such file."""
    if not file.is_file():
        print(f"nothing was measured yet: there is no {file}", file=sys.stderr)
        return {}
    return {(item.seed, item.case): item.median_us for item in read(file)}


def modelled(
    items: Sequence[StructureCase],
    target: TargetGpu,
    kept: Path | None,
    measured_us: Mapping[tuple[str, str], float],
) -> list[StructureTime]:
    """The modelled time of every item, with registers from NVRTC; failures are told and left
    out.
    """
    from benchmarks.emulate import Bench  # torch and the emulator

    with tempfile.TemporaryDirectory() as folder:
        units = [item.unit for item in items]
        compiled = asyncio.run(compile_all(units, Path(folder)))
    bench = Bench(target.name)
    counts = counted(items, lambda *names: bench.counts(str(names[0]), *names[1:], {}), kept)
    times = []
    for item, result in zip(items, compiled, strict=True):
        if result.status != "ok":
            problem = f"{result.status}: {result.log[:300]}"
            print(f"left out: {item.key}: {problem}", file=sys.stderr)
        elif item.key in counts:
            us, limiter = model_plan(
                item.plan, counts[item.key], launches_of(item.plan, result), target
            )
            times.append(
                StructureTime(item, us, limiter, measured_us.get((item.name, item.plan.case)))
            )
    return times


def counted(
    items: Sequence[StructureCase], count: Count, kept: Path | None
) -> dict[str, tuple[Counts, ...]]:
    """The counts of every item by its key, from the file `kept` or else counted now; failures are
    told and left out.
    """
    stored = json.loads(kept.read_text()) if kept and kept.is_file() else {}
    try:
        for item in items:
            if item.key in stored:
                continue
            print(f"counting {item.key}", file=sys.stderr)
            try:
                found = count(item.path, item.structure.task, item.plan.case)
                stored[item.key] = [asdict(counts) for counts in found]
            except EmulatorError as error:
                print(f"left out: {item.key}: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        if kept:
            kept.write_text(json.dumps(stored))
    return {
        item.key: tuple(Counts.from_dict(counts) for counts in stored[item.key])
        for item in items
        if item.key in stored
    }


def model_plan(
    plan: CasePlan,
    counts: Sequence[Counts],
    launches: Sequence[MeasuredLaunch],
    target: TargetGpu,
) -> tuple[float, str]:
    """The modelled microseconds of a whole plan, and the limiter of its longest launch."""
    from evoengine.evaluate.worker.emulated.modelled_time import model_fill  # torch

    found: list[ModelledLaunch] = [
        model_launch(
            of,
            target=target,
            grid=launch.grid,
            block=launch.block,
            registers=launch.registers,
            shared_bytes=launch.shared_bytes,
        )
        for of, launch in zip(counts, launches, strict=True)
    ]
    fills_us = sum(model_fill(fill, target).us for fill in plan.fills)
    return fills_us + sum(item.us for item in found), max(found, key=lambda item: item.us).limiter


def rows(times: Sequence[StructureTime]) -> list[Row]:
    """One row for each structure and case; `factor` is modelled / measured."""
    return [
        {
            "structure": time.item.name,
            "task": time.item.structure.task,
            "case": time.item.plan.case,
            "group": time.item.structure.group,
            "modelled us": time.us,
            "limited by": time.limiter,
            "measured us": time.measured_us,
            "factor": time.us / time.measured_us if time.measured_us else None,
        }
        for time in times
    ]


def agreement(times: Sequence[StructureTime]) -> list[Row]:
    """How well modelled times agree with measured ones: a row for each group, and one for all."""
    groups = [
        (group, [time for time in times if time.item.structure.group == group]) for group in GROUPS
    ]
    return [_agreement(group, own) for group, own in (*groups, ("all", times))]


def _agreement(group: str, times: Sequence[StructureTime]) -> Row:
    pairs = [(time.us, time.measured_us) for time in times if time.measured_us]
    off = sorted(abs(math.log(us / truth)) for us, truth in pairs)
    return {
        "group": group,
        "modelled": len(times),
        "measured": len(pairs),
        "Spearman": _spearman(pairs),
        "Spearman within a task, mean": _within_tasks(times),
        "median factor off": math.exp(off[len(off) // 2]) if off else None,
        "worst factor off": math.exp(off[-1]) if off else None,
    }


def _within_tasks(times: Sequence[StructureTime]) -> float | None:
    """The mean of the correlations over the cases that have enough structures for one."""
    cases: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for time in times:
        if time.measured_us:
            own = cases.setdefault((time.item.structure.task, time.item.plan.case), [])
            own.append((time.us, time.measured_us))
    found = [value for own in cases.values() if (value := _spearman(own)) is not None]
    return math.fsum(found) / len(found) if found else None


def _spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < 3:  # of two, it is 1 or -1 whatever they are
        return None
    found = spearman([truth for _, truth in pairs], [us for us, _ in pairs])
    return None if math.isnan(found) else found


if __name__ == "__main__":
    main()
