"""What crosses a process or the disk: frozen, and no unknown keys.

Lengths are bytes, times microseconds unless a name says otherwise.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from evoengine.digest import digest


class Frozen(BaseModel):
    """A value that never changes and that refuses keys it does not know."""

    # NaN and infinity stay themselves in JSON: an error of a wrong result can be either
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Status(StrEnum):
    """How far a candidate came, from worst to best."""

    rejected = "rejected"  # refused before compiling: header, include, plan, or a duplicate
    compile_error = "compile_error"
    # compiled, but the emulator lacks an instruction or a function; nothing is known against the
    # kernel
    unsupported = "unsupported"
    over_limits = "over_limits"  # asks for more than the device has
    launch_error = "launch_error"  # the driver refused to load or launch it
    crash = "crash"  # illegal access, trap, assert, a worker that died under it
    timeout = "timeout"
    wrong_result = "wrong_result"
    # checked mode found a race, a stray or misaligned access, an uninitialised read, a copy read
    # too early
    fault = "fault"
    cheat = "cheat"  # wrote to its inputs or outside its buffers
    unstable = "unstable"  # correct at first, not when it was verified in another process
    correct = "correct"

    @property
    def rank(self) -> int:
        """0 for the worst status; a higher rank came further."""
        return list(Status).index(self)

    def after(self, verified: Status | None) -> Status:
        """The status that counts: this one, or what the verification made of it."""
        return self if verified is None or self is verified is Status.correct else Status.unstable


class KernelResources(Frozen):
    """What one compiled kernel needs; from the cubin, spills from the assembler's report."""

    kernel: str  # as the plan names it, with its template arguments
    arch: str
    registers: int
    # what the kernel declares; what the system reserves from sm_90 on is not in it
    static_shared_bytes: int
    dynamic_shared_bytes: int  # the largest that the plan asks for over the cases
    local_bytes: int  # stack frame per thread
    spill_store_bytes: int
    spill_load_bytes: int
    cubin_bytes: int = 0


class InputSetCheck(Frozen):
    """One launch compared with the float64 reference, every element of every output."""

    distribution: str
    seed: int
    ok: bool
    max_abs: float
    rel_rmse: float  # ||out - ref|| / ||ref||
    failing_share: float  # of all elements
    worst_index: tuple[int, ...]
    worst_output: str
    limit_abs: float  # the absolute part of the gate that held here
    limit_rel_rmse: float
    trusted_max_abs: float  # the trusted implementation on the same inputs
    trusted_rel_rmse: float
    nan_count: int = 0


class CheckedRun(Frozen):
    """One case run in checked mode, which follows every access of every thread."""

    checks: tuple[str, ...]  # what was looked for: races, bounds, init, async
    blocks: int  # that were followed, over all launches of the plan
    total_blocks: int  # that the launches have
    findings: tuple[str, ...] = ()  # one line each, the first of their kind first
    shared_requests: int = 0  # of the blocks followed: warp instructions that reach shared memory
    # passes that they take: more than the requests where lanes meet in a bank, or ask for 8 or 16
    # bytes
    shared_wavefronts: int = 0
    global_requests: int = 0
    # of 32 bytes, distinct within a request: 4 for 4 bytes a lane side by side
    global_sectors: int = 0

    @property
    def sampled(self) -> bool:
        """Whether blocks were left out."""
        return self.blocks < self.total_blocks


class CaseCheck(Frozen):
    """All input sets of one case that were launched."""

    case: str
    hidden: bool
    ok: bool
    sets: tuple[InputSetCheck, ...]
    checked: CheckedRun | None = None  # on the emulator, for a first verdict

    @property
    def worst(self) -> InputSetCheck:
        """The failing set with the largest error, else the passing one."""
        return max(self.sets, key=lambda item: (not item.ok, item.nan_count > 0, item.max_abs))


class Samples(Frozen):
    """Paired raw samples: the i-th of both sides were taken one after the other."""

    candidate_calls: int  # calls in one sample: one replay of a CUDA graph of so many
    baseline_calls: int
    candidate_us: tuple[float, ...]  # per call
    baseline_us: tuple[float, ...]  # per call


class CaseTiming(Frozen):
    """Raw times of one case; every figure shown is recomputed from them."""

    case: str
    baseline: str
    hot: Samples
    cold: Samples | None  # L2 flushed before every call


class LaunchModel(Frozen):
    """The modelled time of one launch."""

    kernel: str
    us: float
    limiter: str  # the bound that decides, e.g. "tensor", "shared memory"
    bounds_us: dict[str, float]  # what each part of the device would take alone


class CaseModel(Frozen):
    """The modelled time of one case on a GPU that is not here: counted and computed, no clock was
    read.
    """

    case: str
    target: str  # e.g. "l4"
    launches: tuple[LaunchModel, ...]

    @property
    def us(self) -> float:
        """All launches, one after the other."""
        return sum(launch.us for launch in self.launches)

    @property
    def limiter(self) -> str:
        """What limits the longest launch."""
        return max(self.launches, key=lambda launch: launch.us).limiter


class Interval(Frozen):
    """A median with its 95 % interval; of a modelled time, the same figure three times."""

    value: float
    low: float
    high: float


class Environment(Frozen):
    """The machine and the programs that a verdict was found with."""

    device: str  # e.g. "cuda:0 NVIDIA H200", "emulator:l4 NVIDIA L4 (modelled on 2 cores)"
    kind: str  # "cuda", "emulator", "none"
    arch: str  # e.g. "sm_90"
    sm_count: int
    max_shared_bytes: int  # per block, opt-in
    l2_bytes: int
    memory_bytes: int
    versions: dict[str, str]  # driver, nvrtc, torch, cupy, clang, llvmlite, python, evoengine

    @property
    def is_modelled(self) -> bool:
        """Whether times are modelled: then no clock was read, and they are compared with no
        measured time.
        """
        return self.kind == "emulator"


class Verdict(Frozen):
    """What the harness found about one candidate."""

    status: Status
    reason: str  # one line
    detail: str = ""  # the compiler's or checker's own words, cut to a few kilobytes
    tier: str = ""
    # What candidates are ordered by, lower is better: candidate time / baseline time, the geomean
    # of the objective's cases; where times are modelled there is no baseline, and it is the
    # modelled time itself in microseconds.
    score: Interval | None = None
    latency_us: Interval | None = None  # geomean of the objective's cases
    resources: tuple[KernelResources, ...] = ()
    target_exceeds: tuple[str, ...] = ()  # limits of the task's target that it does not keep
    checks: tuple[CaseCheck, ...] = ()
    timings: tuple[CaseTiming, ...] = ()
    modelled: tuple[CaseModel, ...] = ()  # in place of timings, on the emulator
    code_digest: str = ""  # of machine code and plan; equal means the same candidate
    phases_s: dict[str, float] = {}  # compile, check, timing, total
    environment: Environment | None = None

    @property
    def is_modelled(self) -> bool:
        """Whether its times are modelled."""
        return bool(self.modelled)

    @property
    def speedup(self) -> float | None:
        """Against the fastest baseline, in the same process; None without a measured time."""
        return 1.0 / self.score.value if self.score and not self.is_modelled else None


class Usage(Frozen):
    """What replies cost."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


class Unanswered(Frozen):
    """Requests that brought no reply and for which the endpoint may charge all the same."""

    requests: int = 0
    most_usd: float = 0.0  # that they can have cost; those of an unknown price are not in it
    unpriced: int = 0  # requests whose price was unknown


class Reply(Frozen):
    """One answer of a model, as it came; stored before anything is made of it."""

    model: str
    prompt: str
    text: str
    usage: Usage = Usage()
    finish_reason: str = ""


class Proposal(Frozen):
    """What a generator returned for one trial: a candidate, or why there is none."""

    operator: str  # seed, first, mutate, crossover, repair or tune
    parents: tuple[int, ...] = ()  # trial numbers
    source: str | None  # the .cu file; None when there is no usable candidate
    tunables: dict[str, int] = {}  # chosen values; those left out keep their default
    problem: str = ""  # why source is None
    insight: str = ""  # the generator's own words on what it tried
    label: str = ""  # a short name, e.g. the file of a seed


class Outcome(Frozen):
    """One settled trial, reduced to what a population or a generator needs to remember."""

    trial: int
    operator: str
    parents: tuple[int, ...]
    source_digest: str  # "" when there was no candidate
    tunables: dict[str, int]
    label: str
    status: Status
    reason: str
    tier: str
    code_digest: str
    score: Interval | None
    latency_us: Interval | None

    def after(self, verified: Outcome | None) -> Outcome:
        """The outcome that counts: this one, or what the verification made of it: its times, or
        `unstable`.
        """
        if verified is None:
            return self
        status = self.status.after(verified.status)
        if status is Status.correct:
            return verified
        return verified.model_copy(update={"status": status, "score": None, "latency_us": None})


def outcome_of(trial: int, proposal: Proposal, verdict: Verdict) -> Outcome:
    """A trial without its bulk; the same live and read from a store."""
    return Outcome(
        trial=trial,
        operator=proposal.operator,
        parents=proposal.parents,
        source_digest="" if proposal.source is None else digest(proposal.source),
        tunables=proposal.tunables,
        label=proposal.label,
        status=verdict.status,
        reason=verdict.reason,
        tier=verdict.tier,
        code_digest=verdict.code_digest,
        score=numbers_only(verdict.score),
        latency_us=numbers_only(verdict.latency_us),
    )


def numbers_only(interval: Interval | None) -> Interval | None:
    """None for an interval with a NaN in it: SQLite has no NaN, and nothing can be ordered by
    one.
    """
    if interval is None or any(
        math.isnan(figure) for figure in (interval.value, interval.low, interval.high)
    ):
        return None
    return interval


class Elite(Frozen):
    """A candidate that holds a place of its tier; place counts from 1."""

    tier: str
    place: int
    outcome: Outcome


class RunInfo(Frozen):
    """What a run was started with; never changes."""

    name: str
    task_path: str
    config: dict[str, Any]  # RunConfig as JSON
    task: dict[str, Any]  # the Task as JSON
    environment: dict[str, Any] | None
    baselines: dict[str, str]  # case -> the fastest baseline found at the start
    baseline_us: dict[
        str, dict[str, float]
    ] = {}  # case -> every baseline that works here -> its median time a call
    baseline_problems: dict[str, str] = {}  # baseline -> why it does not work here
    references: dict[
        str, str
    ] = {}  # Python file beside the task -> digest of its text at the start
    created: str  # ISO 8601, UTC
    version: str


class SettingsChange(Frozen):
    """Settings that a resume changed, from one trial on."""

    made: str  # ISO 8601, UTC
    trial: int  # the first that was not settled then
    config: dict[str, Any]  # the whole RunConfig as JSON, as it holds from now on
    words: tuple[str, ...]  # what changed, e.g. "--trials 45 -> 90"
