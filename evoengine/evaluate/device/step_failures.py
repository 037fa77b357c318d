"""What becomes of a job whose process was too slow or ended: the same words on every device."""

from __future__ import annotations

from evoengine.errors import TaskError
from evoengine.evaluate.device.worker_process import StepTimeout, WorkerDied
from evoengine.protocols import Report
from evoengine.records import Status

# device code cannot send it: the system does when short of memory, or a person
KILLED = "signal SIGKILL"


def timed_out(error: StepTimeout) -> Report:
    """The report on a candidate whose step took too long."""
    return Report(
        status=Status.timeout, reason=f"{error.step.what} took longer than {error.seconds:.3g} s"
    )


def killed_twice() -> Report:
    """The report on a candidate under which two processes were killed from outside."""
    reason = (
        "its process was killed twice (SIGKILL) while it ran: it may take more memory than the"
        " system has"
    )
    return Report(status=Status.crash, reason=reason)


def killed_from_outside(error: WorkerDied) -> str:
    """The message about a process that another one, perhaps the system, killed."""
    return f"{error}, sent from outside: check whether the machine is short of memory"


def function_too_slow(error: StepTimeout, task_path: str) -> TaskError:
    """One of the task's own functions took too long."""
    return TaskError(
        f"{error.step.function} has not ended after {error.seconds:g} s, which is all that the"
        " task's limits.reference_s allows: make the function faster, or raise"
        f" limits.reference_s in {task_path}"
    )


def function_ended_process(error: WorkerDied) -> TaskError:
    """One of the task's own functions ended its process."""
    last = next(iter(error.log.strip().splitlines()[-1:]), "it printed nothing")
    return TaskError(f"{error.step.function} ended its process with {error.how}: {last[:500]}")
