"""Turns a failed compilation into a refusal of the candidate."""

from __future__ import annotations

from pydantic import ValidationError

from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.compile.compile_unit import CompileResult
from evoengine.records import Status
from evoengine.task.yaml_source import shown

TOO_MUCH_SHARED = "uses too much shared data"  # what ptxas says of static arrays beyond 48 KiB


def refuse_failed(result: CompileResult, nvrtc_accepts: bool) -> None:
    """Raise CandidateRefused unless `result` is machine code.

    `nvrtc_accepts`: NVRTC has compiled this source, so a failure of clang or of our headers is not
    the candidate's fault.
    """
    if result.status == "ok":
        return
    if result.status == "unsupported" or nvrtc_accepts:
        raise CandidateRefused(Status.unsupported, _unsupported(result), result.log)
    if result.status == "refused":
        raise CandidateRefused(Status.rejected, result.log)
    if result.status == "timeout":
        reason = f"compiling took longer than {result.seconds:.0f} s"
        raise CandidateRefused(Status.timeout, reason, result.log)
    if result.status == "out_of_memory":
        reason = "compiling took more memory than allowed"
        raise CandidateRefused(Status.compile_error, reason, result.log)
    status = Status.over_limits if TOO_MUCH_SHARED in result.log else Status.compile_error
    raise CandidateRefused(status, first_error(result.log), result.log)


def _unsupported(result: CompileResult) -> str:
    reason = result.log.strip() or f"the emulator's compiler ended with {result.status}"
    return reason if result.status == "unsupported" else f"not for the emulator: {reason}"


def first_error(log: str) -> str:
    """The first line of a compiler's log that reports an error."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next(
        (line for line in lines if "error" in line.lower()),
        lines[0] if lines else "the compiler failed and printed nothing",
    )


def compile_unit_problem(error: ValidationError) -> str:
    """Why a candidate does not make a CompileUnit, in one line."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"the compiler cannot take its {place}: {first['msg']}, got {shown(first['input'])}"
