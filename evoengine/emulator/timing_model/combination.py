"""What the bounds of a modelled launch are, and how they become its time: words for people and for
prompts.
"""

from __future__ import annotations

from collections.abc import Mapping

from evoengine.emulator.targets import LAUNCH_US, SCHEDULERS
from evoengine.emulator.timing_model.launch_time import (
    ATOMICS_ON_LINE_PER_CLOCK,
    ATOMICS_PER_CLOCK,
    DEFAULT,
    LATENCY_LIMITS_FROM,
)

_P, _Q = f"{DEFAULT.latency:g}", f"{DEFAULT.pipes:g}"

IN_FULL = (
    f"a launch takes {LAUNCH_US:g} us launch gap + (T^{_P} - (T/R)^{_P} + latency^{_P})^(1/{_P}),"
    f" with T = (sum of all other bounds^{_Q})^(1/{_Q}) and R the blocks that run at once on the"
    " busiest SM, and no less than any of the bounds; a call takes the sum of its launches, memsets"
    " and copies"
)
IN_SHORT = (
    f"A launch takes {LAUNCH_US:g} us launch gap plus a smooth maximum of its bounds: at least"
    " the largest, at most their sum. Every bound but `latency` is what one unit would take alone,"
    " on the busiest SM or on the whole device. Shorten the largest bounds; small ones hardly"
    " count. Launches add up, each with its gap. `limited by` names the largest bound but"
    f" `latency`, or `latency` where it is more than {LATENCY_LIMITS_FROM} times as long."
)
SMALL_SHARE = 0.1  # of a latency; smaller ones are not named


def spent_on(shares: Mapping[str, float]) -> str:
    """What the latency of a block is spent on, from shares by the names of LATENCY_PARTS, the
    largest first: "41 % barriers, 20 % shuffles".
    """
    large = (item for item in shares.items() if item[1] >= SMALL_SHARE)
    return ", ".join(f"{100 * share:.0f} % {name}" for name, share in large)


# name of a bound -> what it is the time of, if the device did nothing else
BOUNDS: Mapping[str, str] = {
    "latency": "blocks one after the other on the busiest SM, as many at once as fit there, each"
    " as slow as its dependent instructions, barriers and waits for loads make it, which have the"
    " shares named (`pipes`: busy units); and, where each block waits for a flag of the one before,"
    " two round trips to L2 for each of them",
    "issue": f"instructions of every kind, {SCHEDULERS} warp instructions a clock on an SM",
    "fma": "float32 additions and multiplications",
    "imad": "integer multiplications, and additions beyond `alu`",
    "alu": "other integer and logical instructions, comparisons, most conversions",
    "half": "arithmetic on half and bfloat16",
    "mufu": "exponentials, logarithms, roots, reciprocals, sines, float to integer",
    "fp64": "float64 arithmetic",
    "tensor": "operations of tensor instructions",
    "shuffle": "exchanges between the lanes of a warp",
    "lsu": "instructions that access memory, whichever",
    "shared": "the data path that shared memory and L1 have in common: wavefronts of shared memory"
    " (bank conflicts make more), shuffles, and a clock for each line of 128 bytes that a request"
    " of global or local memory touches, whether or not it is in L1",
    "l2_port": "what L1 does not hold, between L2 and one SM: loads that miss L1, stores,"
    " asynchronous copies, local memory beyond L1",
    "l2": "the same, between L2 and all SMs; a load that hits L1 is in neither",
    "dram": "every byte of the launch's buffers once; nothing where they fit in a hot L2",
    "atomic": f"atomics on global memory, {ATOMICS_PER_CLOCK:g} a clock from an SM,"
    f" {ATOMICS_ON_LINE_PER_CLOCK:g} on one line of 128 bytes, where lanes of"
    " a warp count once for each of a sector that has the same address; a compare-and-swap that"
    " fails counts, and tries again",
    "dispatch": "starting the blocks",
}
