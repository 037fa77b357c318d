"""Times of configurations that were measured on a GPU, and their file: one line for each
configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

# registers of a thread; static and dynamic shared memory of a block
LAUNCH = (
    "grid",
    "block",
    "registers",
    "shared_bytes",
)


@dataclass(frozen=True)
class MeasuredLaunch:
    """One launch of a configuration, and what the compiler for the GPU gave it."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    registers: int
    shared_bytes: int


@dataclass(frozen=True)
class Measured:
    """One configuration of a seed on one case: the median of its times, of all launches together,
    with a hot cache.
    """

    seed: str
    task: str
    case: str
    tunables: Mapping[str, int]
    median_us: float
    launches: tuple[MeasuredLaunch, ...]


def write(path: Path, where: Mapping[str, Any], measured: Sequence[Measured]) -> None:
    """Writes what was measured, with `where`: the machine, the versions, the date, the command."""
    seeds = {item.seed: {"task": item.task, "tunables": list(item.tunables)} for item in measured}
    lines = [json.dumps(_line(group)) for group in _grouped(measured)]
    head = json.dumps({**where, "launch": LAUNCH, "seeds": seeds}, indent=1).removesuffix("\n}")
    path.write_text(
        f'{head},\n "configurations": [\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8"
    )


def read(path: Path) -> list[Measured]:
    """What `write` wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    found = []
    for line in document["configurations"]:
        of_seed = document["seeds"][line["seed"]]
        tunables = dict(zip(of_seed["tunables"], line["tunables"], strict=True))
        for case, (median_us, *launches) in line["cases"].items():
            shapes = tuple(
                MeasuredLaunch(tuple(grid), tuple(block), registers, shared)
                for grid, block, registers, shared in launches
            )
            found.append(Measured(line["seed"], of_seed["task"], case, tunables, median_us, shapes))
    return found


def _grouped(measured: Sequence[Measured]) -> Iterable[list[Measured]]:
    def key(item: Measured) -> tuple[str, list[int]]:
        return item.seed, list(item.tunables.values())

    return (list(group) for _, group in groupby(sorted(measured, key=key), key))


def _line(group: Sequence[Measured]) -> dict[str, Any]:
    """All cases of one configuration: median_us, then each launch."""
    cases = {
        item.case: [
            float(f"{item.median_us:.5g}"),
            *(
                [list(launch.grid), list(launch.block), launch.registers, launch.shared_bytes]
                for launch in item.launches
            ),
        ]
        for item in group
    }
    return {"seed": group[0].seed, "tunables": list(group[0].tunables.values()), "cases": cases}
