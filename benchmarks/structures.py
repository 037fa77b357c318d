"""Modelled against measured times of kernels that use a GPU in different ways
(tests/structures/manifest.yaml), most of which the time model was never fitted to.

    python -m benchmarks.structures [FILE.json ...] [--target h200] [--counts FILE] [--json FILE]
        [--group GROUP ...] [--only NAME ...] [--modelled FILE]

On a machine with a GPU (and CuPy) the structures are timed, replays of CUDA graphs with a hot
cache, and the one FILE.json is written: less than a minute. Without a GPU the times are modelled
and compared with those in all FILE.json that exist: some minutes, of which `--counts` keeps what
was counted, as long as neither the kernels nor the emulator change; or, with `--modelled`, times
that were modelled before, from a file that `--json` wrote.

The manifest says what each group is: `fit` may be looked at when the model changes, `seen` was
known before, each of the others judged the model until its times were looked at to change it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.configurations import REPLAYS, compile_all, launches_of
from benchmarks.corpora import ROOT
from benchmarks.measured import Measured, MeasuredLaunch, read, write
from benchmarks.model import spearman
from benchmarks.structure_cases import GROUPS, StructureCase, bound
from benchmarks.table import Row, machine, publish
from benchmarks.table import table as markdown
from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import CasePlan
from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.emulator.targets import TargetGpu, find
from evoengine.emulator.timing_model.counts import Counts
from evoengine.emulator.timing_model.launch_time import ModelledLaunch, model_launch
from evoengine.evaluate.compile.pool import CompileResult
from evoengine.evaluate.cuda_driver import cuda_devices

_MEASUREMENTS = ROOT / "docs" / "measurements"
MEASURED = (
    _MEASUREMENTS / "h200-structures.json",
    _MEASUREMENTS / "h200-structures-blind.json",
)

# the structure's file, that of its task, the case -> the counts of each launch
Count = Callable[[Path, str, str], Sequence[Counts]]


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
    parser.add_argument("files", type=Path, nargs="*", default=MEASURED, metavar="FILE.json")
    parser.add_argument("--target", default="h200", help="the GPU that is modelled")
    parser.add_argument("--counts", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--modelled", type=Path, help="modelled times, as --json wrote them")
    parser.add_argument("--group", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="files' names without .cu")
    options = parser.parse_args()
    found = cuda_devices()
    if found.names and not options.modelled:
        if len(options.files) != 1:
            parser.error("on a GPU, give the one FILE.json that is to be written")
        measure(options.files[0], options.only, options.group)
        return
    if not options.modelled:
        print(f"no GPU ({found.problem}): times are modelled", file=sys.stderr)
    target = find(options.target)
    limits = DeviceLimits(target.arch, target.shared_per_block, target.sms)
    measured_us: dict[tuple[str, str], float] = {}
    for file in options.files:
        measured_us |= measured_times(file)
    items = bound(limits, options.only, options.group)
    times = (
        modelled_before(items, options.modelled, measured_us)
        if options.modelled
        else modelled(items, target, options.counts, measured_us)
    )
    publish(machine(target=target.title, times="modelled, microseconds"), rows(times), options.json)
    print(f"\n{markdown(agreement(times))}")


def measure(file: Path, only: Sequence[str] | None, groups: Sequence[str] = GROUPS) -> None:
    """Times every structure of these groups on the present GPU and writes what was measured, also
    before an error.
    """
    from benchmarks.replay import Bench, present  # CuPy and a device

    device, limits = present()
    items = bound(limits, only, groups)
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
                median_us = bench.median_us(str(item.structure.task_path), item.plan, result)
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


def modelled_before(
    items: Sequence[StructureCase], file: Path, measured_us: Mapping[tuple[str, str], float]
) -> list[StructureTime]:
    """The times of the items that are in a file that `--json` wrote."""
    found = {
        (row["structure"], row["case"]): (row["modelled us"], row["limited by"])
        for row in json.loads(file.read_text(encoding="utf-8"))["rows"]
    }
    return [
        StructureTime(item, *found[key], measured_us.get(key))
        for item in items
        if (key := (item.name, item.plan.case)) in found
    ]


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
                found = count(item.path, str(item.structure.task_path), item.plan.case)
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
