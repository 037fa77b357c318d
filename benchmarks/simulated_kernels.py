"""Kernels whose speed is simulated: the packaged layernorm kernel, with a line that says how fast
it is.

Nothing is compiled or run. A kernel's time follows from its quality, which its source states, and
from how far its tunables are from the best values, which its source states too. A model that is
shown the source can build on it; one that is not shown it cannot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from random import Random

from evoengine.paths import find_kernel

TASK = "layernorm"  # one tier and one starting kernel
STEP = 1.05  # the slow-down for each step of a tunable from its best value
# those of the packaged kernel
VALUES = {"THREADS": (128, 256, 512, 1024), "VECTOR": (1, 2, 4), "ROWS_PER_BLOCK": (1, 2, 4)}
# Of a new design: each tunable is first guessed one step off. It is what tuning can gain.
FIRST_GUESS_SLOWDOWN = STEP ** len(VALUES)

_HEADER = "/* evoengine"
_FACTS = re.compile(
    r"^// simulated: quality=([0-9.]+) floor=([0-9.]+) optimum=([0-9,]+) fault=([a-z_]+)$", re.M
)
_TUNABLE = re.compile(r"^  ([A-Z_]+): \[([0-9]+)", re.M)
_REPLACED = re.compile(rf"^(name|summary|  (?:{'|'.join(VALUES)})): .*$", re.M)


@dataclass(frozen=True)
class SimulatedKernel:
    """What the source of a kernel says of its speed, and the first values of its tunables."""

    quality: float  # the candidate's time / the baseline's, with the best values of its tunables
    floor: float  # no change to this design makes its quality less
    optimum: tuple[int, ...]  # the best values, in the order of VALUES
    first: tuple[int, ...]  # the values that it declares first
    fault: str = "none"  # or the name of a status

    def source(self, design: int) -> str:
        """Its file; files of different `design` (32 bits) differ for the compiler too."""
        lines = {"name": f"simulated_{design:08x}", "summary": f"simulated design {design:08x}"}
        for (name, values), first in zip(VALUES.items(), self.first, strict=True):
            others = [value for value in values if value != first]
            lines[f"  {name}"] = str([first, *others])
        text = _REPLACED.sub(lambda match: f"{match[1]}: {lines[match[1]]}", _packaged())
        optimum = ",".join(map(str, self.optimum))
        facts = (
            f"// simulated: quality={self.quality:.6f} floor={self.floor:.6f} optimum={optimum}"
            f" fault={self.fault}\nconstexpr unsigned design = 0x{design:08x}u;"
        )
        return text.replace("*/\n", f"*/\n{facts}\n", 1)

    def score(self, tunables: dict[str, int]) -> float:
        """Its time / the baseline's time with these tunables, without noise."""
        steps = sum(
            abs(values.index(tunables[name]) - values.index(best))
            for (name, values), best in zip(VALUES.items(), self.optimum, strict=True)
        )
        return float(self.quality * STEP**steps)


def shown_kernels(text: str) -> list[SimulatedKernel]:
    """The simulated kernels whose source is in `text`, in its order."""
    return [_kernel(text, match) for match in _FACTS.finditer(text)]


def _kernel(text: str, match: re.Match[str]) -> SimulatedKernel:
    header = text[max(text.rfind(_HEADER, 0, match.start()), 0) : match.start()]
    first = {name: int(value) for name, value in _TUNABLE.findall(header)}
    return SimulatedKernel(
        quality=float(match[1]),
        floor=float(match[2]),
        optimum=tuple(map(int, match[3].split(","))),
        first=tuple(first[name] for name in VALUES),
        fault=match[4],
    )


def drawn_values(luck: Random) -> tuple[int, ...]:
    """The best values of a design's tunables."""
    return tuple(luck.choice(values) for values in VALUES.values())


def first_guess(optimum: tuple[int, ...], luck: Random) -> tuple[int, ...]:
    """Values that are each one step from the best."""
    return tuple(
        _neighbour(values, best, luck)
        for values, best in zip(VALUES.values(), optimum, strict=True)
    )


def _neighbour(values: tuple[int, ...], value: int, luck: Random) -> int:
    index = values.index(value)
    return luck.choice([values[it] for it in (index - 1, index + 1) if 0 <= it < len(values)])


@cache
def _packaged() -> str:
    return find_kernel(f"{TASK}.cu").read_text(encoding="utf-8")
