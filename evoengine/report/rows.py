"""The rows that a person sees. Tables print them, `--json` dumps them, files hold them.

Every figure is recomputed from the stored verdicts; a row holds no words of a table.
"""

from __future__ import annotations

from typing import Literal

from evoengine.records import (
    Environment,
    Frozen,
    Interval,
    Status,
    Unanswered,
    Usage,
)


class EliteRow(Frozen):
    """One place of a tier."""

    tier: str
    place: int
    trial: int
    name: str
    operator: str
    tunables: dict[str, int]
    changed: dict[str, int]  # of the tunables: those that differ from the kernel's defaults
    speedup: Interval | None
    latency_us: Interval | None
    modelled: bool = False  # whether latency_us is modelled; then there is no speed-up
    # of modelled times: the first correct trial of the tier / this one
    vs_first: float | None = None
    limiter: str = ""  # what the modelled time of the first timed case is limited by
    registers: int | None  # the most that one of its kernels takes on the device
    shared_bytes: int | None  # static and dynamic of one block, the most over its kernels
    keeps_target: bool | None


class TrialRow(Frozen):
    """One settled trial."""

    trial: int
    operator: str
    parents: tuple[int, ...]
    name: str
    tunables: dict[str, int]
    changed: dict[str, int]  # of the tunables: those that differ from the kernel's defaults
    status: Status
    tier: str
    speedup: Interval | None
    latency_us: Interval | None
    modelled: bool = False
    vs_first: float | None = None
    place: int | None  # that it holds now
    reason: str


class CaseRow(Frozen):
    """What was found on one case: its worst input set, and its times where it was timed."""

    case: str
    hidden: bool
    ok: bool | None  # None: not checked
    input_sets: int
    failing_sets: int
    worst_set: str  # distribution and seed
    worst_at: str  # output and index
    max_abs: float | None
    limit_abs: float | None
    rel_rmse: float | None
    limit_rel_rmse: float | None
    failing_share: float | None
    nan_count: int
    baseline: str
    hot_us: Interval | None
    hot_baseline_us: Interval | None
    hot_speedup: Interval | None
    cold_us: Interval | None
    cold_baseline_us: Interval | None
    cold_speedup: Interval | None
    modelled_us: float | None = None  # in place of all times above
    limiter: str = ""
    bounds_us: dict[
        str, float
    ] = {}  # what each part of the modelled device would take alone, over all launches
    checked_for: tuple[str, ...] = ()  # what checked mode looked for; empty: it did not run
    checked_blocks: int = 0
    total_blocks: int = 0
    # of shared memory, in the blocks followed; None without any
    wavefronts_per_request: float | None = None
    sectors_per_request: float | None = None  # of global memory
    findings: tuple[str, ...] = ()


class ResourceRow(Frozen):
    """One compiled kernel against the limits of the task's target, which hold for its architecture
    only.
    """

    kernel: str
    arch: str
    registers: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    local_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    cubin_bytes: int
    target_registers: int | None
    target_shared_bytes: int | None

    @property
    def shared_bytes(self) -> int:
        """All that one block takes."""
        return self.static_shared_bytes + self.dynamic_shared_bytes

    @property
    def over(self) -> tuple[str, ...]:
        """The limits of the target that it does not keep."""
        found = [
            ("registers", self.registers, self.target_registers),
            ("shared", self.shared_bytes, self.target_shared_bytes),
        ]
        return tuple(name for name, taken, limit in found if limit is not None and taken > limit)


class VerdictFigures(Frozen):
    """One verdict whole, without raw samples."""

    name: str
    status: Status
    reason: str
    detail: str
    tier: str
    tunables: dict[str, int]
    speedup: Interval | None
    latency_us: Interval | None
    modelled: bool = False
    cases: tuple[CaseRow, ...]
    resources: tuple[ResourceRow, ...]
    target_exceeds: tuple[str, ...]
    code_digest: str
    phases_s: dict[str, float]
    environment: Environment | None


class TrialDetail(Frozen):
    """One trial whole. `first` is the verdict before it was verified; None where it was not."""

    row: TrialRow
    problem: str
    insight: str
    replies: int
    usage: Usage
    began: str = ""  # ISO 8601, UTC; empty where an earlier version did not write it down
    ended: str = ""
    cost_known: bool = True  # whether usage.cost_usd is a cost; without a price it is 0
    verdict: VerdictFigures
    first: VerdictFigures | None
    source: str | None


class RunRows(Frozen):
    """One run: what `show` prints and what `run` ends with."""

    name: str
    folder: str
    task: str
    generator: str
    model: str = ""  # that is asked; empty for a generator that asks none
    device: str
    modelled: bool = False  # whether its times are modelled
    created: str
    version: str
    budget: int
    settled: int
    ended: str  # why it ended; empty for a run that was only looked at
    counts: dict[str, int]  # status -> trials, best first
    usage: Usage
    # requests to a model that may have been paid for; in a live run those under way, too
    unanswered: Unanswered = Unanswered()
    changes: tuple[str, ...] = ()  # settings that a resume changed
    cost_known: bool = True  # whether usage.cost_usd is a cost; without a price it is 0
    baselines: dict[str, str]  # case -> the one that speed-ups are counted against
    baseline_us: dict[str, dict[str, float]]  # case -> baseline -> its time at the start
    baseline_problems: dict[str, str]  # baseline -> why it does not work here
    elites: tuple[EliteRow, ...]
    trials: tuple[TrialRow, ...]


class TaskRow(Frozen):
    """One packaged task; `problem` says why one cannot be read."""

    name: str
    file: str
    summary: str = ""
    tiers: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    target: str | None = None
    trials: int = 0
    kernels: tuple[str, ...] = ()
    problem: str = ""


class DoctorFinding(Frozen):
    """One thing that a run needs, or may use."""

    name: str
    state: Literal["ok", "missing", "absent"]  # absent: a run works without it
    found: str
    remedy: str = ""
    exit_code: int = 0  # what a run would end with for want of it
