"""A kernel that idles for a known time, and how long makes it slower by a given share.

Only the last block of a grid idles, at its end: it starts last, so the kernel takes longer by what
it idles, less the little by which others end after it. If every block idled, much of it would be
hidden where several share a multiprocessor; a second launch would add a microsecond of its own.
"""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass, field

from benchmarks.holding_kernel import HoldingKernel, UnusableVerdict
from evoengine.candidate import kernel_file
from evoengine.protocols import Executor

SHARE = 0.02  # of the kernel's time
CLOSE_ENOUGH = 0.002
ROUNDS = 5
RACES_IN_A_ROUND = 3
# H100 and H200 boost to 1.98 GHz and run heavy kernels somewhat below. Calibration corrects it.
CLOCKS_PER_US = 1800.0
MOST_CLOCKS = 10_000_000  # 5 ms: a share that is not reached by then never will be

_KERNEL = re.compile(r"\b__global__\b.*?^\}", re.DOTALL | re.MULTILINE)
# A variable: of different numbers the compiler makes different code.
_CLOCKS = "\n__constant__ long long evoengine_idle_clocks = {};\n"
_IDLE = """    // the last block idles
    if (blockIdx.x + 1 == gridDim.x && blockIdx.y + 1 == gridDim.y && blockIdx.z + 1 == gridDim.z) {
        const long long evoengine_end = clock64() + evoengine_idle_clocks;
        while (clock64() < evoengine_end) {}
    }
"""


def idling(source: str, clocks: int) -> str:
    """The kernel whose last block idles for `clocks` cycles before it ends.

    Instructions are the same for all `clocks`. Raises ValueError unless `source` has one kernel, no
    thread of which returns early, and a brace at the beginning of a line ends it.
    """
    found = list(_KERNEL.finditer(source))
    if len(found) != 1 or source.count("__global__") != 1:
        raise ValueError(f"expected one kernel to let idle, found {source.count('__global__')}")
    if re.search(r"\breturn\b", found[0][0]):
        raise ValueError("expected a kernel without return: a thread that leaves does not idle")
    end = found[0].end() - 1  # before its closing brace
    header = source.index("*/") + 2
    return source[:header] + _CLOCKS.format(clocks) + source[header:end] + _IDLE + source[end:]


@dataclass
class IdleCalibration:
    """A search for the clocks that make a kernel `share` slower, by races against itself."""

    executor: Executor
    source: str
    share: float = SHARE
    tried: list[tuple[int, float]] = field(default_factory=list)  # clocks, share that was measured

    @property
    def best(self) -> tuple[int, float]:
        """Clocks and measured share of the trial that came closest."""
        return min(self.tried, key=lambda item: abs(item[1] - self.share))

    @property
    def reached(self) -> bool:
        """Whether it came close enough."""
        return bool(self.tried) and abs(self.best[1] - self.share) <= CLOSE_ENOUGH

    async def run(self) -> None:
        """Tries clocks until one is close enough; raises UnusableVerdict where a verdict is
        not correct, or no race has a ratio.
        """
        unchanged = HoldingKernel(self.executor, kernel_file.parse(idling(self.source, 0)))
        latency = (await unchanged.judged()).latency_us
        if latency is None:
            raise UnusableVerdict("a correct verdict without a latency")
        clocks = 0.0
        missing = self.share
        while len(self.tried) < ROUNDS and not self.reached:
            # a clock more is a clock longer, whatever is hidden behind the others' end
            clocks += missing * latency.value * CLOCKS_PER_US
            clocks = min(max(clocks, 1.0), MOST_CLOCKS)
            measured = await self._measured(round(clocks))
            self.tried.append((round(clocks), measured))
            missing = self.share - measured

    async def _measured(self, clocks: int) -> float:
        """By which share of its time the kernel is slower that idles for so many clocks."""
        holder = HoldingKernel(self.executor, kernel_file.parse(idling(self.source, clocks)))
        newcomer = kernel_file.parse(idling(self.source, 0))
        shares = []
        for _ in range(RACES_IN_A_ROUND):
            race = await holder.race(newcomer)
            if race.ratio is not None:
                shares.append(1 / race.ratio.value - 1)
        if not shares:
            raise UnusableVerdict(
                f"no race has a ratio against a holder that idles {clocks} clocks"
            )
        return statistics.median(shares)
