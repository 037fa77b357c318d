"""The inputs on which a candidate is wrong, and the job that tells how kernels do on them."""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.candidate.kernel_file import Candidate
from evoengine.protocols import CompiledCase, Job, Purpose


@dataclass(frozen=True)
class WrongInputs:
    """The inputs on which a candidate was wrong: a case, and the number of the set within it.

    With `is_fault` an access of it is at fault, as checked mode on an emulator found: there the
    outputs may be right, and elsewhere it may end the process, so that `has_outputs` is false.
    """

    case: str
    number: int
    is_fault: bool = False
    has_outputs: bool = True  # that are wrong


def comparison(
    candidate: Candidate,
    cases: tuple[CompiledCase, ...],
    wrong: WrongInputs,
    code_digest: str = "",
    launch_s: float | None = None,
    upcoming: tuple[CompiledCase, ...] = (),
) -> Job:
    """The job that compares what each of `cases` writes for one input set; after a fault, of those
    in which checked mode finds nothing. An emulator begins to compile `upcoming`.
    """
    return Job(
        cases=cases,
        tier=candidate.plan.precision,
        candidate=code_digest,
        checked=wrong.is_fault,
        purpose=Purpose.outputs,
        only_set=wrong.number,
        launch_s=launch_s,
        upcoming=upcoming,
    )
