"""Records that are stored or sent between processes: frozen, without unknown keys.

Sizes are in bytes and times in microseconds unless a name says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue

from evoengine.digest import digest


class Frozen(BaseModel):
    """A record that cannot change and refuses unknown keys."""

    # JSON keeps NaN and infinity, because the error of a wrong result can be either
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Status(StrEnum):
    """The result of a candidate, from worst to best."""

    rejected = "rejected"  # refused before compiling: header, include, plan, or a duplicate
    compile_error = "compile_error"
    # compiled, but the emulator lacks an instruction or a function; the kernel may be correct
    unsupported = "unsupported"
    over_limits = "over_limits"  # asks for more than the device allows
    launch_error = "launch_error"  # the driver refused to load or launch it
    crash = "crash"  # illegal access, trap, assert, or its worker died
    timeout = "timeout"
    wrong_result = "wrong_result"
    # checked mode found a race, a stray or misaligned access, an uninitialised read, a copy read
    # too early
    fault = "fault"
    cheat = "cheat"  # wrote to its inputs or outside its buffers
    unstable = "unstable"  # correct at first, but not when verified in another process
    correct = "correct"

    @property
    def rank(self) -> int:
        """0 for the worst status; a higher rank is better."""
        return list(Status).index(self)

    def after(self, verified: Status | None) -> Status:
        """The final status of a first verdict with this status and of its verification."""
        if verified is None or self is verified is Status.correct:
            return self
        found = self is Status.correct and verified is Status.fault  # by checked mode beside a GPU
        return Status.fault if found else Status.unstable


def best_first(counts: Mapping[Status, int]) -> dict[Status, int]:
    """The counts that are not 0, those of the best status first."""
    return {status: counts[status] for status in reversed(Status) if counts.get(status)}


class MachineCode(Frozen):
    """The instructions in a kernel's machine code, each counted once however often it runs;
    functions that were not inlined and what only fills up are left out.
    """

    instructions: int
    kinds: tuple[tuple[str, int], ...]  # (tensor, fma, fp64, alu, ..., count)
    # the same of those in a loop
    loop_kinds: tuple[tuple[str, int], ...] = ()
    # not where a branch takes its target from a register, and not in very long kernels
    loops_known: bool = True
    # (global load, global store, asynchronous copy, shared load, ..., bytes a thread, count)
    accesses: tuple[tuple[str, int, int], ...] = ()
    loop_accesses: tuple[tuple[str, int, int], ...] = ()  # those in a loop
    tensor_shapes: tuple[tuple[str, int], ...] = ()  # e.g. (mma m16n8k16, 64)
    # in a loop: divisions and remainders of integers by a variable, and exact float divisions
    loop_integer_divisions: int = 0
    loop_float_divisions: int = 0
    loop_barriers: int = 0  # of the whole block or a part of it, in a loop


class KernelResources(Frozen):
    """The resources of one compiled kernel, from the cubin; spills from ptxas's report."""

    kernel: str  # as the plan names it, with its template arguments
    arch: str
    registers: int
    # declared by the kernel; without what the system reserves from sm_90 on
    static_shared_bytes: int
    dynamic_shared_bytes: int  # the most that the plan asks for in any case, hidden ones aside
    local_bytes: int  # stack of a thread, callees included; recursion counts as 64 calls
    spill_store_bytes: int
    spill_load_bytes: int
    cubin_bytes: int = 0
    # number formats of its tensor instructions, and 8-bit ones that it converts: e.g. f16, e4m3
    formats: tuple[str, ...] = ()
    # the largest block that the plan launches it with, hidden cases aside; 0: not stored
    block_threads: int = 0
    machine_code: MachineCode | None = None  # None: made by an earlier version


class KernelProfile(Frozen):
    """One launch as Nsight Compute measured it; None: it gave no such figure. Shares are in percent
    of what the device can sustain.
    """

    case: str
    kernel: str  # as the profiler names it
    us: float | None
    compute_percent: float | None
    memory_percent: float | None  # of the busiest part of the memory system
    dram_percent: float | None
    dram_bytes_per_s: float | None
    l1_hit_percent: float | None
    l2_hit_percent: float | None
    occupancy_percent: float | None  # warps that were active, of those that an SM can hold
    pipes: tuple[tuple[str, float], ...]  # (pipe, percent of the time it was in use), busiest first
    # (why warps could not issue, how many warps waited for it a cycle with an instruction issued),
    # most first
    stalls: tuple[tuple[str, float], ...]


class SanitizerFinding(Frozen):
    """One kind of error at one place, as compute-sanitizer reports it."""

    case: str
    error: str  # e.g. Invalid __global__ write of size 4 bytes
    places: tuple[str, ...]  # e.g. kernel.cu:12; of a race: of both accesses
    details: tuple[str, ...]  # what else it says of the first time
    times: int


class InputSetCheck(Frozen):
    """One launch compared with the float64 reference, every element of every output.

    `ok` is of all outputs. All else is of `worst_output`: the one that fails most clearly, or that
    is nearest to one of its limits where all pass. In 0.1.0, errors are the largest of any output.
    """

    distribution: str
    seed: int  # the number of the set within its case; its seed is secret. In 0.1.0: the seed
    ok: bool
    max_abs: float
    rel_rmse: float  # ||out - ref|| / ||ref||
    failing_share: float  # of all elements
    worst_index: tuple[int, ...]  # of the largest error; () if it is not known
    worst_output: str
    limit_abs: float  # the absolute part of the gate that was applied
    limit_rel_rmse: float
    trusted_max_abs: float  # of the trusted implementation on the same inputs
    trusted_rel_rmse: float
    nan_count: int = 0
    # The largest relative RMSE of a slice (of a row, as a rule), and where it is; 0, "" and () for
    # outputs without slices and in rows that version 0.1.0 stored, which had no limit for slices.
    slice_rel_rmse: float = 0.0
    worst_slice_output: str = ""
    worst_slice: tuple[int, ...] = ()  # its index in the leading dimensions of that output
    limit_slice_rel_rmse: float = math.inf
    # the largest of the errors in units of its limit; None in rows of version 0.1.0
    share_of_limit: float | None = None

    @property
    def clearness(self) -> tuple[bool, bool, float, float]:
        """How clearly it fails, or how near it is to a limit: greater is worse."""
        return not self.ok, self.nan_count > 0, self.share_of_limit or 0.0, self.max_abs

    @property
    def worst_place(self) -> str:
        """The output and the index of its largest error, as far as known: `out[5, 7]`, `out`."""
        return f"{self.worst_output}{list(self.worst_index) if self.worst_index else ''}"


class CheckedRun(Frozen):
    """One case in checked mode, which follows every memory access of every thread."""

    checks: tuple[str, ...]  # the checks made: races, bounds, init, async
    blocks: int  # blocks followed, over all launches of the plan
    total_blocks: int  # blocks of all launches
    findings: tuple[str, ...] = ()  # one line each
    shared_requests: int = 0  # warp instructions that access shared memory, in blocks followed
    # passes of these requests: more than one each for bank conflicts and for 8- or 16-byte
    # accesses
    shared_wavefronts: int = 0
    global_requests: int = 0
    # 32-byte sectors, distinct within a request: 4 if the lanes read 4 consecutive bytes each
    global_sectors: int = 0

    @property
    def sampled(self) -> bool:
        """Whether only some of the blocks were followed."""
        return self.blocks < self.total_blocks


class EmulatedWork(Frozen):
    """The instructions that warps ran in the launches of a call, as an emulator counted them."""

    instructions: int
    of_longest_warps: int  # of the warp of each launch that ran most
    lines: tuple[int, ...] = ()  # of the source, in which one of them stands


class CaseCheck(Frozen):
    """All input sets of one case that were launched."""

    case: str
    hidden: bool
    ok: bool
    sets: tuple[InputSetCheck, ...]
    # of a first verdict on the emulator; of a verdict on a GPU that may give a place
    checked: CheckedRun | None = None
    work: EmulatedWork | None = None  # of a job that compares one input set, on the emulator

    @property
    def worst(self) -> InputSetCheck:
        """The set that fails most clearly; without failures, the one nearest to a limit."""
        return max(self.sets, key=lambda item: item.clearness)


class Samples(Frozen):
    """Paired raw samples: the i-th samples of both sides were taken one after the other, on the
    same inputs.
    """

    # The most calls per sample, which is one replay of a CUDA graph of these calls.
    candidate_calls: int
    baseline_calls: int
    candidate_us: tuple[float, ...]  # per call
    baseline_us: tuple[float, ...]  # per call
    # Calls of each sample, drawn anew for each pair; () in rows that version 0.1.0 stored.
    calls: tuple[int, ...] = ()
    # The number of the group of samples, taken one after the other, that each belongs to. For each
    # sample both sides have new buffers and are captured again. () in rows of timing versions 1, 2.
    groups: tuple[int, ...] = ()
    sittings: int = 1  # in which the groups were taken, some time apart


class CaseTiming(Frozen):
    """Raw times of one case; all numbers that are shown are recomputed from them."""

    case: str
    baseline: str
    hot: Samples  # what the calls of a replay read lay in L2 when it began, as far as it fits
    cold: Samples | None  # L2 flushed before every call
    call_bytes: int = 0  # of inputs and outputs of one call; 0 in rows of version 0.1.0
    # the least time of a call on this device, hot or cold as the objective scores it; None in rows
    # of earlier versions
    floor_us: float | None = None


class LaunchActivity(Frozen):
    """The time of one kernel, fill or copy of a call, as CUPTI records it."""

    name: str  # of a kernel as the plan has it, of a fill or copy as CUPTI has it
    us: float


class KernelActivity(Frozen):
    """How long the kernels, fills and copies of one call of a case ran, without what lies between
    them: what profilers show. No score and no place depends on it.
    """

    case: str
    baseline: str
    candidate_us: float  # the sum over one call, the median over calls
    baseline_us: float
    candidate_launches: tuple[LaunchActivity, ...]  # in the order of a call, medians over calls


class RaceTiming(Frozen):
    """Raw times of a race on one case, in microseconds a call: the i-th samples of all three were
    taken one after the other, on the same inputs.
    """

    case: str
    baseline: str
    newcomer_us: tuple[float, ...]
    holder_us: tuple[float, ...]
    baseline_us: tuple[float, ...]
    calls: tuple[int, ...]  # of each sample
    groups: tuple[int, ...]  # as in Samples


class RaceResult(StrEnum):
    """The result of a race, as the newcomer has it."""

    won = "won"
    lost = "lost"  # it is slower, or no difference was shown
    void = "void"  # the holder took another time than it holds its place by, or a clock was wrong


class Race(Frozen):
    """A newcomer against the holder of a place, in turn, each in a process of its own."""

    result: RaceResult
    reason: str  # one line
    ratio: Interval | None = None  # the newcomer's time / the holder's, geomean over the objective
    newcomer: Interval | None = None  # its score in this race: time / the baseline's time
    holder: Interval | None = None  # the holder's score in this race
    timings: tuple[RaceTiming, ...] = ()
    phases_s: dict[str, float] = {}


class LaunchModel(Frozen):
    """The modelled time of one launch."""

    kernel: str
    us: float
    limiter: str  # the largest bound, e.g. "tensor", "shared memory"
    bounds_us: dict[str, float]  # the time that each part of the device would take alone
    # what the bound `latency` is spent on, as shares, the largest first; empty in earlier rows
    latency_shares: dict[str, float] = {}


class CaseModel(Frozen):
    """The modelled time of one case on a GPU that is not here: computed, not measured."""

    case: str
    target: str  # e.g. "l4"
    launches: tuple[LaunchModel, ...]
    # the least time of a call on the target, as modelled; None in rows of earlier versions
    floor_us: float | None = None

    @property
    def us(self) -> float:
        """The sum over all launches."""
        return sum(launch.us for launch in self.launches)

    @property
    def limiter(self) -> str:
        """The limiter of the longest launch."""
        return max(self.launches, key=lambda launch: launch.us).limiter


class Interval(Frozen):
    """A median with its 95 % interval; for a modelled time all three are equal."""

    value: float
    low: float
    high: float


class Environment(Frozen):
    """The device and the software versions that a verdict was made with."""

    device: str  # e.g. "cuda:0 NVIDIA H200", "emulator:l4 NVIDIA L4 (modelled on 2 cores)"
    kind: str  # "cuda", "emulator", "scripted", "none"
    arch: str  # e.g. "sm_90"
    sm_count: int
    max_shared_bytes: int  # per block, opt-in
    l2_bytes: int
    memory_bytes: int
    # driver, nvrtc, torch, cupy, triton, clang, llvmlite, python, evoengine
    versions: dict[str, str]

    @property
    def is_modelled(self) -> bool:
        """Whether times are modelled; they are never compared with measured times."""
        return self.kind in ("emulator", "scripted")


# Our choice: under load, an unhindered GPU keeps a larger share of its highest clock.
USUAL_CLOCK_SHARE = 0.75


class GpuState(Frozen):
    """The GPU as NVML described it right before and right after the timing of each case.

    A figure that NVML does not give here is None. Clocks are the lowest and the highest found,
    without those of an idle GPU unless it was idle each time; temperature, power and processes are
    the most found.
    """

    sm_clock_mhz: tuple[int, int] | None = None
    memory_clock_mhz: tuple[int, int] | None = None
    most_sm_clock_mhz: int | None = None  # the highest clock of this GPU
    idle: bool = False  # whether it was idle each time, so that its clocks say little
    temperature_c: int | None = None
    power_w: float | None = None  # the average over the last second, on most GPUs since Ampere
    power_limit_w: float | None = None
    throttled: tuple[str, ...] | None = None  # each reason that was active, in words
    other_processes: int | None = None  # that compute on this GPU and are not ours

    @property
    def remarks(self) -> tuple[str, ...]:
        """What may have made its times longer, one phrase each."""
        found = [f"throttled: {', '.join(self.throttled)}"] if self.throttled else []
        if self._is_below_usual_clock:
            found.append("below its usual clock")
        if self.other_processes:
            plural = "es" if self.other_processes > 1 else ""
            found.append(f"shared with {self.other_processes} other process{plural}")
        return tuple(found)

    @property
    def _is_below_usual_clock(self) -> bool:
        if self.idle or self.sm_clock_mhz is None or self.most_sm_clock_mhz is None:
            return False
        return self.sm_clock_mhz[0] < USUAL_CLOCK_SHARE * self.most_sm_clock_mhz


class DiagnosisKind(StrEnum):
    """What kind of thing a diagnosis says of a wrong output."""

    fault = "fault"  # of checked mode, with lines; a GPU shows what it causes
    plan = "plan"  # the launch plan cannot be built for some sizes
    race = "race"  # two launches on the same input differ
    state = "state"  # the first launch is right, a later one is not
    reads_old_values = "reads old values"  # it depends on what the output held before the call
    never_written = "never written"
    constant = "constant"  # wrong elements all hold one value
    not_finite = "not finite"
    overflow = "overflow"
    sign = "sign"
    ratio = "ratio"  # one factor for all
    offset = "offset"
    group_ratio = "factor of each row"  # or of each column, each head
    group_offset = "offset of each row"
    copied = "copied"  # an input, or another output
    input_multiple = "multiple of an input"  # is the error
    moved = "moved"  # right values in the wrong place
    fragment_layout = "fragment layout"
    changed_scalar = "scalar"  # the reference with another value of a scalar or a dimension
    changed_flag = "flag"  # such as causal
    changed_input = "input"  # the reference with an input read wrongly
    mask = "mask"  # missing, shifted, inverted
    changed_step = "step"  # the reference with a step left out, done twice or done otherwise
    changed_source = "change"  # one change of the kernel's source makes every output right
    low_precision = "low precision"
    region = "where"  # the indices that are wrong
    period = "period"  # wrong at a regular distance
    sizes = "sizes"  # only sizes that are no multiple of a tile
    inputs = "inputs"  # only some distributions fail
    unknown = "unknown"


class Diagnosis(Frozen):
    """One thing that was found out about a wrong output."""

    kind: DiagnosisKind
    sentence: str
    share: float  # of the wrong elements that it explains; of a fault 0, because nobody knows it
    evidence: dict[str, JsonValue] = {}


class ErrorMap(Frozen):
    """The error over one output, all its leading axes side by side in rows, in at most some
    thousand cells.

    A cell has one character, of the worst element in it: `.` within the gate, `0` to `9` an error
    of up to 2, 4, ... 1024 times the gate (`9`: or more), `!` not finite, `x` never written.
    """

    output: str
    row_axes: tuple[str, ...]
    column_axis: str
    rows: int  # of the output, all leading axes together
    columns: int
    cells: tuple[str, ...]  # one string a row of cells
    # Where cells stand for several elements: a window of single ones, and where it begins in the
    # output.
    detail: tuple[str, ...] = ()
    detail_row: int = 0
    detail_column: int = 0


class Forensics(Frozen):
    """What was found out about one wrong call of a candidate, or its fault, most telling first."""

    case: str  # of the verdict, or a small version of one (task/small_cases.py)
    distribution: str = ""
    output: str = ""  # empty where no wrong call was looked at
    number: int | None = None  # of the input set within the case
    diagnoses: tuple[Diagnosis, ...] = ()
    error_map: ErrorMap | None = None
    # what was left out: one line, e.g. because time was up
    problem: str = ""
    seconds: float = 0.0

    def reworded(self, words: Callable[[str], str]) -> Forensics:
        """These findings with each sentence put through `words`."""
        changed = tuple(
            item.model_copy(update={"sentence": words(item.sentence)}) for item in self.diagnoses
        )
        return self.model_copy(update={"diagnoses": changed})

    def behind(self, first: Diagnosis) -> Forensics:
        """These findings with `first` in front of them."""
        return self.model_copy(update={"diagnoses": (first, *self.diagnoses)})

    def around(self, second: Diagnosis) -> Forensics:
        """These findings with `second` behind the first of them."""
        return self.model_copy(
            update={"diagnoses": (*self.diagnoses[:1], second, *self.diagnoses[1:])}
        )


class Verdict(Frozen):
    """The result of evaluating one candidate."""

    status: Status
    reason: str  # one line
    detail: str = ""  # the output of the compiler or checker, cut to a few kilobytes
    tier: str = ""
    # Candidates are ordered by it, lower is better: candidate time / baseline time, the geomean
    # over the objective's cases; if times are modelled there is no baseline, and it is the
    # modelled time in microseconds.
    score: Interval | None = None
    latency_us: Interval | None = None  # geomean of the objective's cases
    resources: tuple[KernelResources, ...] = ()
    target_exceeds: tuple[str, ...] = ()  # limits of the task's target that it exceeds
    checks: tuple[CaseCheck, ...] = ()
    timings: tuple[CaseTiming, ...] = ()
    modelled: tuple[CaseModel, ...] = ()  # in place of timings, on the emulator
    # of elites at the end of a run; () where it was not measured
    activity: tuple[KernelActivity, ...] = ()
    activity_problem: str = ""  # why it could not be measured
    # On a GPU: why checked mode did not follow it on every case; such cases have no `checked`.
    checked_problem: str = ""
    code_digest: str = ""  # of machine code and plan; equal means the same candidate
    # Whether its timing stopped early, because it cannot take a place: then its interval is wide,
    # and cases outside of the objective are not timed.
    is_coarse: bool = False
    phases_s: dict[str, float] = {}  # compile, check, timing, forensics, total
    environment: Environment | None = None
    # while it was timed; None where nothing was timed on a GPU, or NVML cannot be read
    gpu_state: GpuState | None = None
    forensics: Forensics | None = None  # of a wrong result, or a fault

    @property
    def is_modelled(self) -> bool:
        """Whether its times are modelled."""
        return bool(self.modelled)

    @property
    def speedup(self) -> float | None:
        """Against the fastest baseline in the same process; None without a measured time."""
        return 1.0 / self.score.value if self.score and not self.is_modelled else None


class Usage(Frozen):
    """The tokens and cost of replies."""

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
    """Requests without a reply for which the endpoint may still charge."""

    requests: int = 0
    most_usd: float = 0.0  # the most that they can have cost, without those of unknown price
    unpriced: int = 0  # requests whose price was unknown
    most_tokens: int = 0  # of prompts and replies, the most that they can have used
    uncounted: int = 0  # requests of an earlier version, which did not store that


class Reply(Frozen):
    """One reply of a model, unchanged; stored before it is parsed."""

    model: str
    prompt: str
    text: str
    usage: Usage = Usage()
    finish_reason: str = ""


class Proposal(Frozen):
    """The proposal of a generator for one trial: a candidate, or why there is none."""

    operator: str  # seed, first, mutate, crossover, repair or tune
    parents: tuple[int, ...] = ()  # trial numbers
    source: str | None  # the .cu file; None when there is no usable candidate
    tunables: dict[str, int] = {}  # chosen values; others keep their defaults
    problem: str = ""  # why source is None
    insight: str = ""  # the generator's explanation of what it tried
    label: str = ""  # a short name, e.g. the file of a seed


class Outcome(Frozen):
    """One settled trial, reduced to what populations and generators need."""

    trial: int
    operator: str
    parents: tuple[int, ...]
    source_digest: str  # "" if there was no candidate
    tunables: dict[str, int]
    label: str
    status: Status
    reason: str
    tier: str
    code_digest: str
    score: Interval | None
    latency_us: Interval | None

    def after(self, verified: Outcome | None) -> Outcome:
        """The final outcome: this one if it was not verified, else the verification's, which is
        `unstable` unless both are correct, or a correct one has a fault.
        """
        if verified is None:
            return self
        status = self.status.after(verified.status)
        if status is Status.correct:
            return verified
        return verified.model_copy(update={"status": status, "score": None, "latency_us": None})


def outcome_of(trial: int, proposal: Proposal, verdict: Verdict) -> Outcome:
    """The outcome of a trial; the same live and read from a store."""
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
    """`interval`, or None if it holds a NaN: SQLite has no NaN, and NaN cannot be ordered."""
    if interval is None or any(
        math.isnan(figure) for figure in (interval.value, interval.low, interval.high)
    ):
        return None
    return interval


class Lesson(Frozen):
    """A claim of a model about one change of a kernel, and what verdicts say of it."""

    number: int  # in its run, from 1
    claim: str
    # that states it or, if that has no sure effect, the first with one that applies it
    trial: int
    tier: str
    status: Status  # of that trial
    # its speed over its best parent's; None without a correct parent of its tier, or of a failure
    effect: Interval | None
    is_rough: bool  # the timing of one of them stopped early
    sign: int  # 1: surely faster than its parent, -1: surely slower, 0: neither
    device: str  # e.g. NVIDIA H200
    is_modelled: bool
    # later trials that apply the lesson, with an effect of the same sign and of the other
    confirmed: int = 0
    contradicted: int = 0
    struck: bool = False  # contradicted more often than confirmed
    trials: tuple[int, ...] = ()  # of this run: all that state or apply it
    run: str = ""  # the earlier run that it was carried over from, and its task
    task: str = ""

    @property
    def effect_words(self) -> str:
        """The change of the speed in percent, with its interval if it is measured; or the
        failure.
        """
        if self.effect is None:
            without = {Status.correct: "not compared", Status.rejected: "not judged"}
            return without.get(self.status, f"failed: {self.status}")
        low, value, high = (
            100 * (ratio - 1) for ratio in (self.effect.low, self.effect.value, self.effect.high)
        )
        if self.is_modelled:
            return f"{value:+.1f} % modelled"
        if self.is_rough:
            return f"about {value:+.0f} %"
        return f"{value:+.1f} % [{low:.1f}, {high:.1f}]"


class Elite(Frozen):
    """A candidate that holds a place in its tier; places count from 1."""

    tier: str
    place: int
    outcome: Outcome


# A new one when the same kernel gets other times or another status, on a GPU or on the emulator:
# verdicts of two versions cannot be compared. Runs of version 0.1.0 do not state theirs: it is 1.
TIMING_VERSION = 3


class AuditRow(Frozen):
    """One bound of a tier, tried with outputs that are plainly wrong.

    `refused` says whether the bound refuses the stand-in on some input set. `error` and `limit` are
    those of the set on which it refuses it, or comes closest to that.
    """

    tier: str
    output: str
    stand_in: str  # e.g. "zeros", "a copy of q"
    bound: str  # "each element", "the whole output" or "any bound"
    refused: bool
    case: str
    distribution: str
    error: float
    limit: float

    @property
    def finding(self) -> str:
        """What is wrong with the task, in one line, where the stand-in is let through."""
        what = (
            "every bound lets" if self.bound == "any bound" else f"the bound of {self.bound} lets"
        )
        return (
            f"tier {self.tier}, case {self.case}: {what} {self.stand_in} through as {self.output};"
            f" closest to refusal is {self.distribution}, error {self.error:.3g}, allowed"
            f" {self.limit:.3g}"
        )


class AuditReport(Frozen):
    """The result of an audit of a task."""

    rows: tuple[AuditRow, ...]

    @property
    def findings(self) -> tuple[str, ...]:
        """One line for each stand-in that the task lets through."""
        return tuple(row.finding for row in self.rows if not row.refused)


class RunInfo(Frozen):
    """The settings and facts at the start of a run; never changed."""

    name: str
    task_path: str
    config: dict[str, Any]  # RunConfig as JSON
    task: dict[str, Any]  # the Task as JSON
    environment: dict[str, Any] | None
    baselines: dict[str, str]  # case -> the fastest baseline at the start
    # case -> every baseline that works here -> its median time per call
    baseline_us: dict[str, dict[str, float]] = {}
    baseline_problems: dict[str, str] = {}  # baseline -> why it does not work here
    # Python file that the task names or that such a file imports from beside it -> digest of its
    # text at the start
    references: dict[str, str] = {}
    created: str  # ISO 8601, UTC
    version: str
    timing_version: int = 1  # TIMING_VERSION of its verdicts
    audit_findings: tuple[str, ...] = ()  # what the task lets through; the user started it anyway


class EndKind(StrEnum):
    """What ended a run, or stopped it."""

    trials = "trials"  # the budget is spent
    tokens = "tokens"  # the cap on the tokens of a model
    cost = "cost"  # the cap on the cost of a model
    plateau = "plateau"  # so many trials without gain
    roofline = "roofline"  # a kernel comes as near to the device's limit as was wished
    exhausted = "exhausted"  # nothing is left to try
    time = "time"  # the time limit of the process: the run can be resumed as it is
    interrupted = "interrupted"  # by a signal: the run can be resumed as it is

    @property
    def is_complete(self) -> bool:
        """Whether the run is complete with it: its elites are measured once more."""
        return self not in (EndKind.time, EndKind.interrupted)


class RunEnd(Frozen):
    """How one process ended its part of a run; a later one may have gone on."""

    kind: EndKind
    reason: str  # one line, with its figures
    settled: int  # trials that were settled then
    changes: int  # of settings that were stored then
    made: str  # ISO 8601, UTC


class SettingsChange(Frozen):
    """The settings from one trial on, after a resume changed them."""

    made: str  # ISO 8601, UTC
    trial: int  # the first trial that was not settled then
    config: dict[str, Any]  # the whole new RunConfig as JSON
    words: tuple[str, ...]  # what changed, e.g. "--trials 45 -> 90"
