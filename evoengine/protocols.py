"""The protocols of exchangeable parts, with their contracts.

Each has at least two implementations; one contract suite in the tests runs over all of
them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

from evoengine.candidate.binding import CasePlan
from evoengine.candidate.kernel_file import Candidate
from evoengine.records import (
    AuditReport,
    CaseCheck,
    CaseModel,
    CaseTiming,
    Elite,
    EndKind,
    Environment,
    Forensics,
    Frozen,
    GpuState,
    Interval,
    KernelActivity,
    KernelResources,
    Lesson,
    Outcome,
    Proposal,
    Race,
    RaceResult,
    RaceTiming,
    Reply,
    RunEnd,
    RunInfo,
    SettingsChange,
    Status,
    Unanswered,
    Usage,
    Verdict,
)
from evoengine.task.schema import Task

Progress = Callable[[str], None]  # called with each new step, e.g. "checking mission"


def no_progress(_: str) -> None:
    """A Progress that tells nobody."""


# ---------------------------------------------------------------- generating


@dataclass(frozen=True)
class Evaluated:
    """A candidate with its outcome and verdict, for generators to learn from or build on."""

    outcome: Outcome
    source: str
    verdict: Verdict


def nothing_tried(source_digest: str) -> tuple[Outcome, ...]:
    """No outcome: of a request without a run."""
    return ()


@dataclass(frozen=True)
class Island:
    """The elites of one lineage in one tier, which need no place in the population."""

    tier: str
    founder: int  # the trial that all others descend from
    elites: tuple[tuple[Elite, Evaluated], ...]  # by place on this island
    recent: tuple[Evaluated, ...]  # its last settled trials, oldest first, failures included
    trials_without_gain: int  # settled ones since its best score; those that tune do not count


@dataclass(frozen=True)
class Request:
    """All that a generator may use to propose trial number `trial`.

    It depends only on the settled trials and on the proposals of those in flight (`pending`:
    the same live and on resume), so a resumed run makes the same requests again.
    `seed` is derived from the run's seed and the trial's number.
    """

    trial: int
    seed: int
    task: Task
    environment: Environment
    seeds: tuple[Evaluated, ...]  # the starting kernels, by trial number
    elites: tuple[tuple[Elite, Evaluated], ...]  # by tier and place
    recent: tuple[Evaluated, ...]  # the last settled trials, oldest first, failures included
    # Returns those proposals that are not settled yet of the trials before this one whose numbers
    # it is given a rule for; waits until they are known.
    pending: Callable[[Callable[[int], bool]], Awaitable[tuple[Proposal, ...]]]
    settled: int  # trials that this request knows: what `tell` says of later ones is not for it
    # Of a run that tunes between replies; else empty: the best trial of each promising source, by
    # tier and score. Some of them hold a place.
    structures: tuple[Evaluated, ...] = ()
    tuning_trials: int = 0  # of the whole budget; 0: no tunable is searched
    # returns the outcomes of the settled trials of a source, by its digest, oldest first
    tried: Callable[[str], tuple[Outcome, ...]] = nothing_tried
    # tier -> its share of the trials, where the run has its own; see generate/tier_shares.py
    tiers: Mapping[str, float] = field(default_factory=dict)
    run_seed: int = 0
    # Of the trials before this one those that ask a model, as their numbers tell (one that finds
    # nothing to tune asks, too, and is not counted); and how many of them are settled.
    asking: int = 0
    asking_settled: int = 0
    nothing_to_tune: bool = False  # whether this one is such a tuning trial
    islands: tuple[Island, ...] = ()  # of a run with the method islands, by tier and best score
    # settled trials since the starting kernels and since the first place of any tier became faster
    # by more than its interval
    trials_without_gain: int = 0
    lessons: tuple[Lesson, ...] = ()  # that are not struck, the most useful first


class Replies(Protocol):
    """The stored replies of one trial, and the requests that were sent for them."""

    async def get_or_ask(self, turn: int, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """The stored reply of `turn`; if there is none, awaits `ask()` and commits its reply
        before returning it.
        """
        ...

    @property
    def has_reply(self) -> bool:
        """Whether a reply is stored already: this trial asked before a resume."""
        ...

    def send(self, turn: int, most_usd: float | None, most_tokens: int) -> int:
        """Commits that a request is about to be sent that costs at most `most_usd` (None: unknown)
        and has at most `most_tokens`, its reply included; returns its number.

        Until a reply of its turn or a failure is stored, it counts as possibly paid, also after a
        kill.
        """
        ...

    def fail(self, number: int, reason: str, maybe_paid: bool) -> None:
        """Commits that request `number` failed, and whether the endpoint may charge for it."""
        ...


class Exhausted(Exception):  # noqa: N818 - not an error: there is nothing left to propose
    """The generator has nothing more to propose; the run ends early and says why."""

    def __init__(self, reason: str, kind: EndKind = EndKind.exhausted) -> None:
        """`kind` says what keeps it from proposing more: nothing is left, or a cap is reached."""
        super().__init__(reason)
        self.kind = kind


class Generator(Protocol):
    """Proposes candidates.

    `tell` is called once for every settled trial in the order of their numbers, also on
    resume; `propose` must depend only on its request, its replies and the outcomes passed to
    `tell`. Several `propose` may be in flight. A reply without a usable kernel is a Proposal
    with a problem, never an exception; GeneratorError means that no further trial can
    succeed, Exhausted that there is nothing left to try.
    """

    def tell(self, outcome: Outcome) -> None: ...

    async def propose(self, request: Request, replies: Replies) -> Proposal: ...

    async def close(self) -> None: ...


# ---------------------------------------------------------------- evaluating


class CompiledCase(Frozen):
    """The plan of one case with its machine code."""

    plan: CasePlan
    code_path: str  # of the cubin; on the emulator, of clang's PTX
    functions: dict[str, str]  # the plan's kernel -> its name in that file
    # of its kernels on the device; empty without NVRTC
    resources: tuple[KernelResources, ...] = ()


# Baselines are timed once, and their times wander by 0.7 % (standard deviation, H200): chance does
# not choose between two that differ by less, of which the second one may have to be compiled first.
SAME_TIME = 1.015


class BaselineTimes(Frozen):
    """The times per call of the baselines of one case, and why others do not work here."""

    median_us: dict[str, float]
    problems: dict[str, str] = {}
    # of the baselines with problems: those whose problem may pass, e.g. a lack of device memory
    may_work_later: tuple[str, ...] = ()

    @property
    def fastest(self) -> str | None:
        """The baseline of speed-ups: the fastest, or the first of the task's among those that take
        as long but for SAME_TIME; None if none works.
        """
        longest_us = SAME_TIME * min(self.median_us.values(), default=0.0)
        return next((name for name, us in self.median_us.items() if us <= longest_us), None)


class Purpose(StrEnum):
    """What is done with the cases of a job."""

    verdict = "verdict"  # they are checked and timed, and a wrong output is examined
    # the same, but a wrong output of a check ends the job at once; those of timed launches, which
    # may not come again, are examined
    quick_verdict = "quick_verdict"
    # they are checked until an output is wrong, and that is examined; nothing is timed
    diagnosis = "diagnosis"
    # outputs are all that matters: nothing is timed, and nobody asks why one is wrong
    outputs = "outputs"
    checked_mode = "checked_mode"  # on an emulator: checked mode is all that is done
    # only what any candidate needs is made: expected outputs, baselines; nothing is judged
    preparation = "preparation"
    # kernel activity alone is measured, of cases with a baseline: nothing is judged or timed
    activity = "activity"
    audit = "audit"  # without cases: the task is audited, in place of timing baselines


class Job(Frozen):
    """The compiled cases of one candidate, for a device to judge."""

    cases: tuple[CompiledCase, ...]  # checked in this order, up to the first wrong case
    tier: str
    purpose: Purpose = Purpose.verdict
    baselines: dict[str, str] = {}  # case -> baseline to time against; other cases are not timed
    # Timing may stop once the score is surely above it; the report is coarse then.
    limit: float | None = None
    scored_only: bool = False  # times of the other kind, hot or cold, are taken for elites alone
    sittings: int = 1  # in which the objective's cases are timed, some time apart
    candidate: str = ""  # the digest of its machine code and plan
    number: int = 0  # of jobs that wait for a device alike the one with the lowest comes first
    # whether an emulator also runs it in checked mode; a verification does not
    checked: bool = True
    # cases of later jobs on the same candidate, or on further changes of it, whose code an emulator
    # begins to compile
    upcoming: tuple[CompiledCase, ...] = ()
    # whether a wrong output of a check is left to a diagnosis where its case has a smaller version,
    # on which an emulator launches in no time
    smaller_first: bool = False
    passed: tuple[str, ...] = ()  # of a diagnosis: the cases that were right before this one
    # of `outputs`: all cases are checked, also behind a wrong one, each until one input set
    # was given, of this number; on an emulator a fault counts as a wrong output
    only_set: int | None = None
    # on a GPU the longest time without a message while the candidate's code may run, where that is
    # less than the task allows, and on an emulator some times as long: of many changed kernels some
    # loop for ever
    launch_s: float | None = None


class Report(Frozen):
    """The result of a job. `status` is correct, or why the job ended early."""

    status: Status
    reason: str = ""
    detail: str = ""
    checks: tuple[CaseCheck, ...] = ()
    timings: tuple[CaseTiming, ...] = ()
    modelled: tuple[CaseModel, ...] = ()  # from an emulator, instead of timings
    is_coarse: bool = False  # see Verdict
    phases_s: dict[str, float] = {}
    baselines: dict[str, BaselineTimes] = {}  # by case; only for a Job without cases
    audit: AuditReport | None = None  # only for an audit
    gpu_state: GpuState | None = None  # of a GPU on which it was timed
    activity: tuple[KernelActivity, ...] = ()  # only for a Job of that purpose
    activity_problem: str = ""  # why there is none, where no candidate is at fault
    forensics: Forensics | None = None  # of a wrong result


class RaceReport(Frozen):
    """The result of a race on a device. `status` is correct, or why it ended early.

    `at_fault` names the side whose status it is: "newcomer", "holder", or "" where it is neither's.
    """

    status: Status
    reason: str = ""
    at_fault: str = ""
    timings: tuple[RaceTiming, ...] = ()
    phases_s: dict[str, float] = {}


class Device(Protocol):
    """Runs compiled candidates. Closing is safe at any time and more than once.

    `start` starts the device for a task and returns its environment. `run` judges one job;
    whatever the candidate does, it returns a Report within the task's limits, and the next
    job finds a working device. With `verify`, the process that judges has run no other
    candidate. `run` of a Job without cases measures the baselines, or audits the task. One for
    `activity` runs in processes of its own, and no later job is judged or raced by a process that
    a profiler was in; where there is no profiler, the Report says so in `activity_problem`.
    A diagnosis begins when no verdict or race waits for its process; its Report is `correct` where
    no output was wrong this time.

    `race` times two correct candidates in turn, with the baseline beside them; each runs in a
    process that has run no other. A device whose times are modelled raises DeviceError.
    """

    async def start(self, task: Task, task_path: str) -> Environment: ...

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report: ...

    async def race(self, newcomer: Job, holder: Job, progress: Progress) -> RaceReport: ...

    async def close(self) -> None: ...


class ExecutorStart(Frozen):
    """The result of starting an executor."""

    environment: Environment  # of the verdicts to come
    baselines: dict[str, str] = {}  # case -> the fastest baseline; empty if times are modelled
    # case -> baseline that works here -> its median time; empty if nothing was timed
    baseline_us: dict[str, dict[str, float]] = {}
    baseline_problems: dict[str, str] = {}  # baseline -> why it does not work here
    notices: tuple[str, ...] = ()  # messages for the user, e.g. what is missing here


@dataclass(frozen=True)
class SearchBar:
    """What a verdict of a search is for: to find out whether a candidate takes a place.

    `score` is that of the last elite of a tier all of whose places are held; without it the verdict
    is never coarse. `parents` are kernels that are right and that the candidate was made from: in a
    wrong one, the place where it differs from them that makes it wrong is looked for.
    """

    score: float | None = None
    parents: tuple[Candidate, ...] = ()


class ActivityReport(Frozen):
    """The kernel activity of a candidate by case, or why there is none."""

    cases: tuple[KernelActivity, ...] = ()
    problem: str = ""


class Executor(Protocol):
    """Compiles candidates and judges them on a device."""

    async def start(self) -> ExecutorStart:
        """Starts compilers and device; raises EvoError if they cannot work."""
        ...

    async def audit(self, progress: Progress) -> AuditReport:
        """Tries whether the task's gates refuse what is plainly wrong; raises EvoError."""
        ...

    async def evaluate(
        self,
        candidate: Candidate,
        progress: Progress,
        verify: bool = False,
        search: SearchBar | None = None,
        sittings: int = 1,
    ) -> Verdict:
        """The verdict on `candidate`; whatever is wrong with it becomes a status.

        With `verify`, the process that judges has run no other candidate. With `search`, only what
        the search needs is timed. With more `sittings`, times are taken as often, some time apart,
        and are known better.
        """
        ...

    async def race(
        self, newcomer: Candidate, holder: Candidate, score: Interval, progress: Progress
    ) -> Race:
        """`newcomer` against `holder`, which holds its place by `score`; where times are modelled
        there is nothing to race, and DeviceError is raised.
        """
        ...

    async def activity(self, candidate: Candidate, progress: Progress) -> ActivityReport:
        """The kernel activity of a candidate that was judged correct, in some seconds; meant for
        elites at the end of a run. Whatever prevents it is the report's problem.
        """
        ...

    async def close(self) -> None: ...


# ---------------------------------------------------------------- storing


@dataclass(frozen=True)
class ReplyRow:
    """One stored reply."""

    trial: int
    turn: int
    reply: Reply


@dataclass(frozen=True)
class ProposalRow:
    """One stored proposal."""

    trial: int
    proposal: Proposal


# The verdicts of a trial: the first one, the verification, and that of an elite at a run's end.
FIRST, VERIFY, FINAL = 0, 1, 2


@dataclass(frozen=True)
class VerdictRow:
    """One stored verdict: the first one of a trial, its verification before it takes a place, or
    the measurement of an elite at a run's end, which decides nothing.

    `began` is when the trial began or, for a later verdict, when that began. `promising`, of a
    first verdict, says whether the trial would take a place among the elites up to its horizon.
    None in runs of timing versions 1 and 2.
    """

    trial: int
    part: int  # FIRST, VERIFY or FINAL
    verdict: Verdict
    began: str = field(default="", compare=False)  # ISO 8601, UTC; "" if not stored
    ended: str = field(default="", compare=False)
    promising: bool | None = None


@dataclass(frozen=True)
class RaceRow:
    """One stored race of a trial against the holder of a place; `number` counts from 0."""

    trial: int
    number: int
    holder: int  # the trial that held the place
    race: Race
    began: str = field(default="", compare=False)  # ISO 8601, UTC
    ended: str = field(default="", compare=False)


@dataclass(frozen=True)
class RequestRow:
    """One request to a model, stored before it is sent; `number` counts a trial's requests from
    0, over all turns.
    """

    trial: int
    number: int
    turn: int
    most_usd: float | None  # the most that its reply can cost; None if the price is unknown
    # the most that prompt and reply can have together; None in rows of schema versions 2 and 3
    most_tokens: int | None = None
    sent: str = field(default="", compare=False)  # ISO 8601, UTC


@dataclass(frozen=True)
class FailureRow:
    """Why a request failed, and whether the endpoint may charge for it."""

    trial: int
    number: int
    reason: str
    maybe_paid: bool


@dataclass(frozen=True)
class ChangeRow:
    """A change of settings by a resume; `number` counts from 0."""

    number: int
    change: SettingsChange


@dataclass(frozen=True)
class EndRow:
    """How one process of a run ended; `number` counts from 0. A killed process leaves none."""

    number: int
    end: RunEnd


Row = (
    RunInfo
    | ReplyRow
    | ProposalRow
    | VerdictRow
    | RaceRow
    | RequestRow
    | FailureRow
    | ChangeRow
    | EndRow
)


@dataclass(frozen=True)
class PastRace:
    """One race reduced to what the order of elites needs."""

    holder: int
    result: RaceResult


@dataclass(frozen=True)
class TrialSummary:
    """One trial reduced to what a fold over a stored run needs."""

    proposed: bool
    outcome: Outcome | None  # of the first verdict
    verified: Outcome | None  # of the verification
    promising: bool | None = None  # as in VerdictRow, of the first verdict
    races: tuple[PastRace, ...] = ()  # in the order in which they were run


@dataclass(frozen=True)
class Spending:
    """The cost of a run's requests so far, certain and possible."""

    usage: Usage = Usage()  # noqa: RUF009 - frozen; of all stored replies
    unpriced: Usage = Usage()  # noqa: RUF009 - frozen; tokens of those without a known price
    unanswered: Unanswered = Unanswered()  # noqa: RUF009 - frozen; includes requests under way
    longest_reply: int = 0  # completion tokens


R = TypeVar(
    "R",
    RunInfo,
    ReplyRow,
    ProposalRow,
    VerdictRow,
    RaceRow,
    RequestRow,
    FailureRow,
    ChangeRow,
    EndRow,
)


class Store(Protocol):
    """Stores a run. Rows are safely on disk once `append` has returned."""

    def append(self, *rows: Row) -> None:
        """Commits `rows` in one transaction.

        A row whose key is already stored raises StoreError: rows are never overwritten.
        """
        ...

    def get(self, kind: type[R], trial: int = 0, part: int = 0) -> R | None:
        """One row in full; None if there is none.

        `part` is the turn of a reply, FIRST, VERIFY or FINAL of a verdict, the number of a race, a
        request, a failure, a change or an end.
        """
        ...

    def trials(self, start: int = 0) -> Iterator[tuple[int, TrialSummary]]:
        """The summaries of the stored trials from number `start` on, in order."""
        ...

    def spent(self) -> Spending:
        """The cost of all requests, certain and possible."""
        ...

    def counts(self) -> dict[Status, int]:
        """The number of judged trials in each final status, best first."""
        ...
