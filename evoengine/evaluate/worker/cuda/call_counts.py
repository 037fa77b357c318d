"""How many calls a replay has: drawn anew for each, from a range that no candidate influences."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

SAMPLE_US = 200.0  # of a hot sample of the baseline: far above the resolution of marks
MOST_CALLS = 12
# Of L2, for all buffers of a hot replay: what its calls read lies there when it begins.
L2_SHARE = 0.5
REPLAY_BYTES = 2 * 1024**3  # of slots, for all calls of a replay
# Where the number is always the same, the last call is known; of one call or two, the time of a
# replay's beginning is too large a part, unless they are long.
LEAST_OF_MOST = 3
LEAST_OF_MOST_LONG, LONG_CALL_US = 2, 100.0
MOST_COLD_CALLS = 2
WARM_UP_CALLS = 1


@dataclass(frozen=True)
class CallRange:
    """The least and the most calls of a hot replay of one case."""

    least: int
    most: int

    def draw(self) -> int:
        """A number of calls of a replay that is timed, unpredictable."""
        return self.least + secrets.randbelow(self.most - self.least + 1)

    def draw_fewer(self) -> int:
        """A number of calls of a replay that is compared and not timed, below the least of a timed
        one: any call may be the last, so none can leave its work to a later one.
        """
        return 1 + secrets.randbelow(max(1, self.least - 1))

    def draw_any(self) -> int:
        """A number of calls of a replay that is compared and not timed: from one to the most."""
        return 1 + secrets.randbelow(self.most)


def call_range(
    call_bytes: int, slot_bytes: int, l2_bytes: int, baseline_us: float | None, sets: int
) -> CallRange:
    """The range for a case.

    `call_bytes` are those of inputs and outputs of one call, `slot_bytes` those of its slots,
    `baseline_us` is the time of one call of the baseline, where there is one, and `sets` the
    number of sets in the pool: the calls of a replay all have different ones.
    """
    most = min(MOST_CALLS, sets - WARM_UP_CALLS, int(L2_SHARE * l2_bytes / call_bytes))
    if baseline_us is not None:
        most = min(most, round(SAMPLE_US / baseline_us))
    long = baseline_us is not None and baseline_us >= LONG_CALL_US
    most = max(LEAST_OF_MOST_LONG if long else LEAST_OF_MOST, most)
    if slot_bytes * (most + WARM_UP_CALLS) > REPLAY_BYTES:
        most = max(1, REPLAY_BYTES // slot_bytes - WARM_UP_CALLS)
    least = max(1 if long else LEAST_OF_MOST - 1, -(-most // 3))
    return CallRange(max(1, min(most - 1, least)), most)


def draw_cold() -> int:
    """The number of calls of a cold replay."""
    return 1 + secrets.randbelow(MOST_COLD_CALLS)
