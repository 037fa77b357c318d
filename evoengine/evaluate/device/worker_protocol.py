"""The messages between parent and device worker: one JSON document a line, with a request's id."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from evoengine.protocols import Job, RaceReport, Report
from evoengine.records import Environment, Frozen
from evoengine.task.schema import Task

# Begins the reason of a report one of whose runners ended before it answered.
RUNNER_ENDED = "its process ended"
# The reason of a report one of whose runners ended before it had run any candidate.
RUNNER_NOT_STARTED = "its process did not start"
# The sides of a race, in reports and in the names of steps.
NEWCOMER, HOLDER = "newcomer", "holder"
RACING = "racing the"  # begins a step in which the side that it names may run
FaultKind = Literal["task", "device", "worker"]  # at fault for a failed request


class Start(Frozen):
    """Parent to worker: start the device for this task."""

    kind: Literal["start"] = "start"
    id: int
    task: Task
    task_path: str
    # where torch and Triton keep the code that they compile; "": in their own folders
    code_folder: str = ""


class Runners(Frozen):
    """Which runners a grader uses, by the numbers of their pairs."""

    used: tuple[int, ...]  # one for each candidate of the request
    new: tuple[int, ...] = ()  # whose connections were sent to the grader, in this order
    gone: tuple[int, ...] = ()  # those that have ended since


class Run(Frozen):
    """Parent to worker: judge this job."""

    kind: Literal["run"] = "run"
    id: int
    job: Job
    runners: Runners = Runners(used=())  # none where the worker itself runs candidates


class RunRace(Frozen):
    """Parent to worker: race these two candidates."""

    kind: Literal["race"] = "race"
    id: int
    newcomer: Job
    holder: Job
    runners: Runners


class Ready(Frozen):
    """Worker to parent: the device is started."""

    kind: Literal["ready"] = "ready"
    id: int
    environment: Environment


class StepBegun(Frozen):
    """Worker to parent: the step that begins, and what is at fault if it does not end.

    `candidate` is true while the candidate's code may run: the step's time limit is then the
    task's, and a death of the worker is the candidate's crash. `function` names the task's own
    function that runs, and its case, for the user; a timeout or death is then its fault.
    """

    kind: Literal["doing"] = "doing"
    id: int
    what: str
    candidate: bool
    function: str = ""


class Done(Frozen):
    """Worker to parent: the job's report. `healthy` is false when the process that ran the
    candidate must be replaced, `is_last` true when the worker ends itself after it.
    """

    kind: Literal["done"] = "done"
    id: int
    report: Report
    healthy: bool
    is_last: bool = False


class RaceDone(Frozen):
    """Worker to parent: the race's report."""

    kind: Literal["race_done"] = "race_done"
    id: int
    report: RaceReport


class Failed(Frozen):
    """Worker to parent: a fault of ours or of the task, with the user's message."""

    kind: Literal["failed"] = "failed"
    id: int
    error: FaultKind
    message: str
    traceback: str


Request = Annotated[Start | Run | RunRace, Field(discriminator="kind")]
Answer = Annotated[Ready | StepBegun | Done | RaceDone | Failed, Field(discriminator="kind")]

REQUEST: TypeAdapter[Start | Run | RunRace] = TypeAdapter(Request)
ANSWER: TypeAdapter[Ready | StepBegun | Done | RaceDone | Failed] = TypeAdapter(Answer)

MAX_LINE_BYTES = 64 * 1024 * 1024  # a report with raw samples has some hundred kilobytes
