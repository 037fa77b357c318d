"""The rows of reports: tables print them, `--json` dumps them, files hold them.

Every number is recomputed from the stored verdicts; formatting is left to the tables.
"""

from __future__ import annotations

from typing import Literal

from evoengine.records import (
    EndKind,
    Environment,
    Forensics,
    Frozen,
    GpuState,
    Interval,
    LaunchActivity,
    MachineCode,
    RaceResult,
    Status,
    Unanswered,
    Usage,
)


class EliteRow(Frozen):
    """One place of a tier.

    `speedup` and `latency_us` are those of the measurement at the end of the run, which decided
    nothing: None if it was not correct then. Without that measurement they are what selection saw.
    """

    tier: str
    place: int
    trial: int
    name: str
    operator: str
    tunables: dict[str, int]
    changed: dict[str, int]  # the tunables that differ from the kernel's defaults
    speedup: Interval | None
    latency_us: Interval | None
    # what selection saw: the verification that gave it its place
    selected_speedup: Interval | None = None
    selected_latency_us: Interval | None = None
    final_status: Status | None = None  # at the end of the run; None if it was not measured then
    final_reason: str = ""
    awaits_final: bool = False  # whether the end of the run will measure it, and has not yet
    modelled: bool = False  # whether latency_us is modelled; then there is no speed-up
    # modelled time of the tier's first correct trial / modelled time of this one
    vs_first: float | None = None
    limiter: str = ""  # what limits the modelled time of the first timed case
    registers: int | None  # per thread, the most over its kernels
    shared_bytes: int | None  # static and dynamic, per block, the most over its kernels
    keeps_target: bool | None
    formats: tuple[str, ...] = ()  # number formats of its kernels' instructions
    # a stricter tier whose limit of the relative RMSE it keeps on every input set; "" if none
    exact_as: str = ""
    # what may have made its times longer: throttled, below its usual clock, shared
    gpu_remarks: tuple[str, ...] = ()


class TrialRow(Frozen):
    """One settled trial; its figures are those that selection saw."""

    trial: int
    operator: str
    parents: tuple[int, ...]
    name: str
    tunables: dict[str, int]
    changed: dict[str, int]  # the tunables that differ from the kernel's defaults
    status: Status
    tier: str
    speedup: Interval | None
    latency_us: Interval | None
    modelled: bool = False
    vs_first: float | None = None
    is_coarse: bool = False  # whether its timing stopped early, because it cannot take a place
    lost_to: int | None = None  # the trial that it did not beat in its last race
    place: int | None  # the place that it holds now
    reason: str


class CaseRow(Frozen):
    """The result of one case: its worst input set, and its times if it was timed."""

    case: str
    hidden: bool
    ok: bool | None  # None: not checked
    input_sets: int
    failing_sets: int
    worst_set: str  # distribution and number
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
    least_calls: int = 0  # of a hot sample; 0 without times
    most_calls: int = 0
    call_bytes: int = 0  # of inputs and outputs of one call; 0 if it is not stored
    # of the kernels, fills and copies of one call, without the gaps between launches, which the
    # times above include; None where it was not measured
    activity_us: float | None = None
    baseline_activity_us: float | None = None
    activity_launches: tuple[LaunchActivity, ...] = ()
    modelled_us: float | None = None  # in place of all times above
    limiter: str = ""
    # the time that each part of the modelled device would take alone, over all launches
    bounds_us: dict[str, float] = {}
    # what the bound `latency` is spent on, as shares over all launches, the largest first
    latency_shares: dict[str, float] = {}
    checked_for: tuple[str, ...] = ()  # the checks of checked mode; empty if it did not run
    checked_blocks: int = 0
    total_blocks: int = 0
    # of shared memory, over the blocks followed; None without requests
    wavefronts_per_request: float | None = None
    sectors_per_request: float | None = None  # of global memory
    findings: tuple[str, ...] = ()


class ResourceRow(Frozen):
    """One compiled kernel and the limits of the task's target, if it was compiled for that."""

    kernel: str
    arch: str
    registers: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    local_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    cubin_bytes: int
    formats: tuple[str, ...]  # number formats of its instructions
    block_threads: int = 0  # of its largest block; 0: not stored
    machine_code: MachineCode | None = None  # counts of its instructions; None: not stored
    facts: tuple[str, ...] = ()  # the same in words, with the occupancy
    target_registers: int | None
    target_shared_bytes: int | None

    @property
    def shared_bytes(self) -> int:
        """Static and dynamic shared memory of one block."""
        return self.static_shared_bytes + self.dynamic_shared_bytes

    @property
    def over(self) -> tuple[str, ...]:
        """The limits of the target that it exceeds."""
        found = [
            ("registers", self.registers, self.target_registers),
            ("shared", self.shared_bytes, self.target_shared_bytes),
        ]
        return tuple(name for name, taken, limit in found if limit is not None and taken > limit)


class VerdictFigures(Frozen):
    """One verdict in full, without raw samples."""

    name: str
    status: Status
    reason: str
    detail: str
    tier: str
    tunables: dict[str, int]
    speedup: Interval | None
    latency_us: Interval | None
    modelled: bool = False
    is_coarse: bool = False  # whether its timing stopped early, because it cannot take a place
    activity_problem: str = ""  # why kernel activity could not be measured
    checked_problem: str = ""  # why checked mode beside a GPU did not follow all cases
    cases: tuple[CaseRow, ...]
    resources: tuple[ResourceRow, ...]
    target_exceeds: tuple[str, ...]
    code_digest: str
    phases_s: dict[str, float]
    environment: Environment | None
    gpu_state: GpuState | None = None  # while it was timed
    forensics: Forensics | None = None  # of a wrong result, or a fault


class RaceFigures(Frozen):
    """One race of a trial against the holder of a place, without raw samples."""

    holder_trial: int
    result: RaceResult  # as the trial has it
    reason: str
    ratio: Interval | None  # the trial's time / the holder's
    speedup: Interval | None  # the trial's, in this race
    holder_speedup: Interval | None
    began: str = ""  # ISO 8601, UTC
    ended: str = ""


class TrialDetail(Frozen):
    """One trial in full. `first` is its first verdict if it was verified, else None; `final` is its
    measurement at the end of the run, if it was an elite then.
    """

    row: TrialRow
    problem: str
    insight: str
    replies: int
    usage: Usage
    began: str = ""  # ISO 8601, UTC; empty if an earlier version did not store it
    ended: str = ""
    cost_known: bool = True  # whether usage.cost_usd is a cost; without a price it is 0
    verdict: VerdictFigures
    first: VerdictFigures | None
    races: tuple[RaceFigures, ...] = ()
    final: VerdictFigures | None = None
    awaits_final: bool = False  # whether it holds a place and the end of the run will measure it
    source: str | None


class RunRows(Frozen):
    """One run, as `show` and the end of `run` print it."""

    name: str
    folder: str
    task: str
    generator: str
    model: str = ""  # empty for a generator that asks no model
    method: str = ""  # of the search; empty for a generator that reads no replies
    # tier -> its share of the trials that a model is asked for; empty as `method`
    tier_shares: dict[str, float] = {}
    device: str
    modelled: bool = False  # whether its times are modelled
    created: str
    version: str
    timing_version: int = 1  # of its verdicts; a run of another version cannot be resumed
    budget: int
    settled: int
    tuned: int = 0  # of the settled ones: by the tuner, without asking a model
    tune_share: float = 0.0  # of a run whose generator asks: the share that may be
    ended: str  # why it ended; empty while it may go on by itself
    ended_by: EndKind | None = None  # None if that is not known
    counts: dict[str, int]  # status -> trials, best first
    usage: Usage
    # requests without a reply that may have been paid for; in a live run also those under way
    unanswered: Unanswered = Unanswered()
    changes: tuple[str, ...] = ()  # settings that a resume changed
    audit_findings: tuple[str, ...] = ()  # plainly wrong outputs that the task lets through
    cost_known: bool = True  # whether usage.cost_usd is a cost; without a price it is 0
    baselines: dict[str, str]  # case -> the baseline of its speed-ups
    baseline_us: dict[str, dict[str, float]]  # case -> baseline -> its time when the run began
    baseline_problems: dict[str, str]  # baseline -> why it does not work here
    elites: tuple[EliteRow, ...]
    trials: tuple[TrialRow, ...]


class TaskRow(Frozen):
    """One packaged task; `problem` says why it cannot be read."""

    name: str
    file: str
    summary: str = ""
    dims: dict[str, str] = {}  # the type of each dimension and flag, or its domain
    tiers: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    target: str | None = None
    trials: int = 0
    kernels: tuple[str, ...] = ()
    problem: str = ""


class DoctorFinding(Frozen):
    """The state of one thing that a run needs or can use."""

    name: str
    state: Literal["ok", "missing", "absent"]  # absent: a run works without it
    found: str
    remedy: str = ""
    exit_code: int = 0  # of a run that lacks it
