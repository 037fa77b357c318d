"""How well modelled times order configurations that were measured on a GPU: Spearman's rank
correlation.

    python -m benchmarks.model FILE.json [--target h200] [--case NAME ...] [--counts FILE]
        [--json FILE] [--svg FILE]

FILE.json is what `python -m benchmarks.configurations` wrote. Every configuration is run on the
emulator, a sample of its blocks in checked mode: minutes; `--counts` keeps what was counted, so
that the next run need not emulate again. The constants of the model that can be calibrated are
judged by leaving out one seed at a time.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.measured import Measured, read
from benchmarks.scatter import Point, scatter
from benchmarks.table import Row, machine, publish
from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.emulator.targets import TargetGpu, find
from evoengine.emulator.timing_model.counts import Counts
from evoengine.emulator.timing_model.launch_time import DEFAULT, Calibration, model_launch

PIPES = (1.5, 2.0, 2.5, 3.0, 4.0)  # what is tried for each constant
LATENCY = (1.0, 1.25, 1.5, 2.0, 3.0)
PIECES = (1.0, 1.25, 1.5, 2.0, 3.0)
WORST = 10

# seed, task, case, tunables -> the counts of each launch
Count = Callable[[str, str, str, Mapping[str, int]], Sequence[Counts]]


@dataclass(frozen=True)
class Config:
    """A configuration that was measured and counted."""

    measured: Measured
    counts: tuple[Counts, ...]  # of each launch

    @property
    def seed(self) -> str:
        """The seed's name."""
        return self.measured.seed

    @property
    def case(self) -> str:
        """The case's name."""
        return self.measured.case

    @property
    def measured_us(self) -> float:
        """The median of the measured times."""
        return self.measured.median_us

    @property
    def label(self) -> str:
        """Seed and tunables, short."""
        return (
            f"{self.seed}"
            f" {' '.join(f'{name}={value}' for name, value in self.measured.tunables.items())}"
        )

    def modelled_us(self, target: TargetGpu, calibration: Calibration = DEFAULT) -> float:
        """The modelled time of all launches."""
        return sum(
            model_launch(
                counts,
                target=target,
                grid=launch.grid,
                block=launch.block,
                registers=launch.registers,
                shared_bytes=launch.shared_bytes,
                calibration=calibration,
            ).us
            for counts, launch in zip(self.counts, self.measured.launches, strict=True)
        )


def main() -> None:
    # torch and the emulator: seconds, which those do not need who read this module
    from benchmarks.emulate import (
        Bench,
    )

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--case", nargs="*", help="all of them unless some are named")
    parser.add_argument("--counts", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    measured = read(options.file)
    known = list(dict.fromkeys(item.case for item in measured))
    cases = options.case or known
    if unknown := set(cases) - set(known):
        sys.exit(
            f"{options.file} has no case {', '.join(sorted(unknown))}; it has {', '.join(known)}"
        )
    target = find(options.target)
    configs = with_counts(
        [item for item in measured if item.case in cases],
        Bench(options.target).counts,
        options.counts,
    )
    held_out = cross_validated(configs, target)
    rows: list[Row] = []
    for case in cases:
        own = [position for position, item in enumerate(configs) if item.case == case]
        rows += judged(
            [configs[position] for position in own],
            case,
            target,
            [held_out[position] for position in own],
        )
    publish(
        machine(target=target.title, times="modelled, against measured ones"), rows, options.json
    )
    for case in cases:
        print(f"\nworst pairs of {case}: measured | modelled us")
        for line in worst_pairs([item for item in configs if item.case == case], target):
            print(line)
    if options.svg:
        points = [
            Point(
                item.measured_us, item.modelled_us(target), item.seed, f"{item.case} {item.label}"
            )
            for item in configs
        ]
        title = (
            f"{target.title}: modelled against measured times, {len(points)} configurations and"
            " cases"
        )
        options.svg.write_text(
            scatter(points, title=title, x="measured, us", y="modelled, us"), encoding="utf-8"
        )


def judged(
    configs: Sequence[Config], case: str, target: TargetGpu, held_out: Sequence[float]
) -> list[Row]:
    """One row for all configurations of a case, with constants as they are and as cross-validated,
    and one for each seed.

    `held_out`: the times that `cross_validated` gave for them.
    """
    seeds = sorted({item.seed for item in configs})
    rows: list[Row] = [
        {
            "case": case,
            "seed": "all",
            **_agreement(configs, [item.modelled_us(target) for item in configs]),
        }
    ]
    if len(seeds) > 1:
        rows.append(
            {
                "case": case,
                "seed": "all, each seed's constants from the others",
                **_agreement(configs, held_out),
            }
        )
    for seed in seeds:
        own = [item for item in configs if item.seed == seed]
        found = _agreement(own, [item.modelled_us(target) for item in own])
        kept = [time for time, item in zip(held_out, configs, strict=True) if item.seed == seed]
        rows.append(
            {
                "case": case,
                "seed": seed,
                **found,
                "spearman, constants from the others": _agreement(own, kept)["spearman"],
            }
        )
    return rows


def _agreement(configs: Sequence[Config], times: Sequence[float]) -> Row:
    measured = [item.measured_us for item in configs]
    off = sorted(abs(math.log(time / truth)) for time, truth in zip(times, measured, strict=True))
    best = min(range(len(times)), key=times.__getitem__)
    return {
        "configurations": len(configs),
        "spearman": spearman(measured, times),
        "median factor off": math.exp(off[len(off) // 2]),
        "modelled best / measured best": measured[best] / min(measured),
    }


def cross_validated(configs: Sequence[Config], target: TargetGpu) -> list[float]:
    """Modelled times, those of each seed with the constants that order the other seeds best."""
    candidates = [Calibration(*constants) for constants in product(PIPES, LATENCY, PIECES)]
    times = {
        calibration: [item.modelled_us(target, calibration) for item in configs]
        for calibration in candidates
    }
    chosen = {seed: _best(configs, times, seed) for seed in {item.seed for item in configs}}
    return [times[chosen[item.seed]][position] for position, item in enumerate(configs)]


def _best(
    configs: Sequence[Config], times: Mapping[Calibration, Sequence[float]], left_out: str
) -> Calibration:
    """The constants with the highest mean over the other seeds' cases: the configurations of one
    are what a tuner orders.
    """
    of_seed: dict[tuple[str, str], list[int]] = {}
    for position, item in enumerate(configs):
        if item.seed != left_out:
            of_seed.setdefault((item.seed, item.case), []).append(position)

    def order(calibration: Calibration) -> float:
        found = times[calibration]
        return math.fsum(
            spearman(
                [configs[position].measured_us for position in own],
                [found[position] for position in own],
            )
            for own in of_seed.values()
        )

    return max(times, key=order)


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation, equal values with their mean rank; NaN where one of the two
    never changes.
    """
    ranks = [_ranks(values) for values in (one, other)]
    mean = (len(one) + 1) / 2
    products = [
        sum((a - mean) * (b - mean) for a, b in zip(x, y, strict=True))
        for x, y in product(ranks, ranks)
    ]
    return (
        products[1] / math.sqrt(products[0] * products[3])
        if products[0] and products[3]
        else math.nan
    )


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] != values[order[start]]:
            for position in order[start:end]:
                ranks[position] = (start + 1 + end) / 2
            start = end
    return ranks


def worst_pairs(configs: Sequence[Config], target: TargetGpu) -> Iterable[str]:
    """The pairs that the model orders wrongly although they differ most, once for each
    configuration.
    """
    times = [item.modelled_us(target) for item in configs]
    pairs = []
    for i, j in product(range(len(configs)), repeat=2):
        truth, model = (
            math.log(configs[i].measured_us / configs[j].measured_us),
            math.log(times[i] / times[j]),
        )
        if truth < 0 < model:
            pairs.append((min(-truth, model), i, j))
    seen: set[int] = set()
    for _, i, j in sorted(pairs, reverse=True):
        if not {i, j} & seen and len(seen) < 2 * WORST:
            seen |= {i, j}
            a, b = configs[i], configs[j]
            yield (
                f"{a.measured_us:9.2f} {b.measured_us:9.2f} | {times[i]:9.2f} {times[j]:9.2f} "
                f" {a.label}  |  {b.label}"
            )


def with_counts(measured: Sequence[Measured], count: Count, kept: Path | None) -> list[Config]:
    """Every measured configuration with its counts, from the file `kept` or else counted now;
    failures are told and left out.
    """
    stored: dict[str, Any] = json.loads(kept.read_text()) if kept and kept.is_file() else {}
    configs = []
    try:
        for item in measured:
            key = json.dumps([item.seed, item.case, item.tunables])
            if key not in stored:
                try:
                    stored[key] = [
                        asdict(counts)
                        for counts in count(item.seed, item.task, item.case, item.tunables)
                    ]
                except EmulatorError as error:
                    print(f"left out: {key}: {type(error).__name__}: {error}", file=sys.stderr)
                    continue
            configs.append(Config(item, tuple(Counts.from_dict(counts) for counts in stored[key])))
    finally:
        if kept:
            kept.write_text(json.dumps(stored))
    return configs


if __name__ == "__main__":
    main()
