"""Where parts can be exchanged: the protocols, their contracts written once.

Each has at most three methods and at least two implementations; one contract suite in
the tests runs over all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from evoengine.candidate.binding import CasePlan
from evoengine.candidate.kernel_file import Candidate
from evoengine.records import (
    CaseCheck,
    CaseModel,
    CaseTiming,
    Elite,
    Environment,
    Frozen,
    KernelResources,
    Outcome,
    Proposal,
    Reply,
    RunInfo,
    SettingsChange,
    Status,
    Unanswered,
    Usage,
    Verdict,
)
from evoengine.task.schema import Task

Progress = Callable[[str], None]  # told what is going on now, e.g. "checking mission"


# ---------------------------------------------------------------- generating


@dataclass(frozen=True)
class Evaluated:
    """A candidate that a generator may learn from or build upon."""

    outcome: Outcome
    source: str
    verdict: Verdict


@dataclass(frozen=True)
class Request:
    """What a generator may know when it proposes trial number `trial`.

    All of it follows from the settled trials and from the proposals of those in flight
    (`pending`: the engine gives the same ones live and on resume), so a resumed run asks
    the same again.
    `seed` is derived from the run's seed and the trial's number.
    """

    trial: int
    seed: int
    task: Task
    environment: Environment
    seeds: tuple[Evaluated, ...]  # the starting kernels, by trial number
    elites: tuple[tuple[Elite, Evaluated], ...]  # by tier and place
    recent: tuple[Evaluated, ...]  # the last settled trials, oldest first, failures included
    # proposals before `trial` that are not settled yet; waits until they are known
    pending: Callable[[], Awaitable[tuple[Proposal, ...]]]


class Replies(Protocol):
    """The stored replies of one trial, and the requests that were sent for them."""

    async def get_or_ask(self, turn: int, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """The stored reply of `turn`; where there is none, `ask()` is awaited and its reply
        committed before it is returned.
        """
        ...

    def send(self, turn: int, most_usd: float | None) -> int:
        """Commits that a request is about to leave, whose answer costs `most_usd` at most (None:
        unknown); its number.

        Until a reply of its turn or a failure follows, it counts as possibly paid, also after a
        kill.
        """
        ...

    def fail(self, number: int, reason: str, maybe_paid: bool) -> None:
        """Commits that request `number` brought no reply, and whether the endpoint may charge for
        it.
        """
        ...


class Exhausted(Exception):  # noqa: N818 - not an error: there is nothing left to propose
    """The generator has nothing more to propose; the run ends early and says why."""


class Generator(Protocol):
    """Proposes candidates.

    `tell` is called once for every settled trial in the order of their numbers, also on
    resume; `propose` must depend on its request, its replies and what was told, and on
    nothing else. Several `propose` may be in flight. A reply without a usable kernel is
    a Proposal with a problem, never an exception; GeneratorError means that no further
    trial can succeed; Exhausted that there is nothing left to try.
    """

    def tell(self, outcome: Outcome) -> None: ...

    async def propose(self, request: Request, replies: Replies) -> Proposal: ...

    async def close(self) -> None: ...


# ---------------------------------------------------------------- evaluating


class CompiledCase(Frozen):
    """One case's plan with the machine code that it needs."""

    plan: CasePlan
    code_path: str  # of the cubin; on the emulator, of clang's PTX
    functions: dict[str, str]  # the plan's kernel -> its name in that file
    resources: tuple[
        KernelResources, ...
    ] = ()  # of its kernels on the device; empty where no NVRTC told them


class BaselineTimes(Frozen):
    """The baselines of one case, in microseconds a call; those that do not work here say why."""

    median_us: dict[str, float]
    problems: dict[str, str] = {}

    @property
    def fastest(self) -> str | None:
        """The one that speed-ups are counted against; None when none works."""
        return min(self.median_us, key=lambda name: self.median_us[name], default=None)


class Job(Frozen):
    """What a device is asked to judge."""

    cases: tuple[CompiledCase, ...]  # checked in this order; the first wrong case ends the job
    tier: str
    baselines: dict[str, str] = {}  # case -> baseline to time against; cases left out are not timed
    # whether an emulator runs it in checked mode first; a verification does not need that
    checked: bool = True


class Report(Frozen):
    """What a device found. `status` is correct, or why the job ended early."""

    status: Status
    reason: str = ""
    detail: str = ""
    checks: tuple[CaseCheck, ...] = ()
    timings: tuple[CaseTiming, ...] = ()
    modelled: tuple[CaseModel, ...] = ()  # of an emulator, which times nothing
    phases_s: dict[str, float] = {}
    baselines: dict[str, BaselineTimes] = {}  # case -> what was found, for a Job without cases


class Device(Protocol):
    """Runs compiled candidates. Closing is safe at any time and more than once.

    `start` brings the device up for a task and returns what it is. `run` judges one job;
    whatever the candidate does, it returns a Report within the task's limits, and the
    next job finds a healthy device. With `verify`, no other candidate has run before in
    the process that judges. `baselines` are measured by `run` of a Job without cases.
    """

    async def start(self, task: Task, task_path: str) -> Environment: ...

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report: ...

    async def close(self) -> None: ...


class ExecutorStart(Frozen):
    """What an executor found when it started."""

    environment: Environment  # what verdicts are found with
    baselines: dict[str, str] = {}  # case -> the fastest baseline; none where times are modelled
    # case -> baseline that works here -> its median time; empty where nothing was timed
    baseline_us: dict[str, dict[str, float]] = {}
    baseline_problems: dict[str, str] = {}  # baseline -> why it does not work here
    notices: tuple[str, ...] = ()  # what the user should know, e.g. what is missing here


class Executor(Protocol):
    """Compiles candidates and has a device judge them."""

    async def start(self) -> ExecutorStart:
        """Brings up compilers and device; raises EvoError where they cannot work."""
        ...

    async def evaluate(
        self, candidate: Candidate, progress: Progress, verify: bool = False
    ) -> Verdict: ...

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


# The verdicts of a trial: the first one, and the one of a process that has run no other candidate.
FIRST, VERIFY = 0, 1


@dataclass(frozen=True)
class VerdictRow:
    """One stored verdict: the first one of a trial, or its verification before it takes a place.

    Of a first verdict, `began` is when the trial began; of a verification, when that began.
    """

    trial: int
    part: int  # FIRST or VERIFY
    verdict: Verdict
    began: str = field(default="", compare=False)  # ISO 8601, UTC; "" where nobody wrote it down
    ended: str = field(default="", compare=False)


@dataclass(frozen=True)
class RequestRow:
    """One request to a model, stored before it is sent; `number` counts those of a trial from 0,
    over all turns.
    """

    trial: int
    number: int
    turn: int
    most_usd: float | None  # that its answer can cost; None where the price is unknown
    sent: str = field(default="", compare=False)  # ISO 8601, UTC


@dataclass(frozen=True)
class FailureRow:
    """Why a request brought no reply, and whether the endpoint may charge for it."""

    trial: int
    number: int
    reason: str
    maybe_paid: bool


@dataclass(frozen=True)
class ChangeRow:
    """Settings that a resume changed; `number` counts from 0."""

    number: int
    change: SettingsChange


Row = RunInfo | ReplyRow | ProposalRow | VerdictRow | RequestRow | FailureRow | ChangeRow


@dataclass(frozen=True)
class TrialSummary:
    """One trial without its bulk: what the fold over a stored run needs."""

    proposed: bool
    outcome: Outcome | None  # of the first verdict
    verified: Outcome | None  # of the verification


@dataclass(frozen=True)
class Spending:
    """What the requests of a run have cost so far, or may have."""

    usage: Usage = Usage()  # noqa: RUF009 - frozen; of all stored replies
    unpriced: Usage = Usage()  # noqa: RUF009 - frozen; tokens of those without a known price
    unanswered: Unanswered = Unanswered()  # noqa: RUF009 - frozen; those under way among them
    longest_reply: int = 0  # completion tokens


R = TypeVar("R", RunInfo, ReplyRow, ProposalRow, VerdictRow, RequestRow, FailureRow, ChangeRow)


class Store(Protocol):
    """Keeps a run. What `append` has returned from is on disk, whole, whatever happens next."""

    def append(self, *rows: Row) -> None:
        """Commits `rows` in one transaction.

        A row whose key is already there raises StoreError: nothing is ever overwritten.
        """
        ...

    def get(self, kind: type[R], trial: int = 0, part: int = 0) -> R | None:
        """One row whole, None where there is none.

        `part` is the turn of a reply, FIRST or VERIFY of a verdict, the number of a request, a
        failure or a change.
        """
        ...

    def trials(self, start: int = 0) -> Iterator[tuple[int, TrialSummary]]:
        """The stored trials from number `start` on, in order, without their bulk."""
        ...

    def spent(self) -> Spending:
        """What all requests have cost, or may have."""
        ...

    def counts(self) -> dict[Status, int]:
        """How many judged trials ended in each status, best first; of verified ones that counts."""
        ...
