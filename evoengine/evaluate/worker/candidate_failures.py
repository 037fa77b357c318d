"""The ways in which a candidate can fail while it runs: each ends its job with a status."""

from __future__ import annotations

from evoengine.records import Status


class CandidateFailure(Exception):  # noqa: N818 - about a candidate, not a fault of ours
    """A fault of the candidate that ends its job.

    `healthy` says whether this process may judge the next candidate.
    """

    status: Status
    healthy = True

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail


class CannotLaunch(CandidateFailure):
    """The device could not load or launch the candidate."""

    status = Status.launch_error


class Crashed(CandidateFailure):
    """The candidate broke the CUDA context."""

    status = Status.crash
    healthy = False


class DeviceTrap(CandidateFailure):
    """The candidate trapped, or the emulator ended it where a GPU would have faulted."""

    status = Status.crash


class LaunchTimeout(CandidateFailure):
    """The candidate ran more loop rounds on the emulator than a launch may; `strays` as of
    KernelFault.
    """

    status = Status.timeout

    def __init__(self, reason: str, strays: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.strays = strays


class BlockDeadlock(LaunchTimeout):
    """All threads of a block wait at barriers that nobody else reaches."""


class UnsupportedKernel(CandidateFailure):
    """The candidate uses something that the emulator does not support."""

    status = Status.unsupported


class EmulatorFailure(UnsupportedKernel):
    """The emulator itself failed on the candidate's code; its state is unknown."""

    healthy = False


class Cheated(CandidateFailure):
    """The candidate wrote where it must not; it may have written elsewhere, too."""

    status = Status.cheat
    healthy = False


class VoidTiming(CandidateFailure):
    """The baseline took another time beside the candidate than alone, or something else used the
    GPU: no figure can be trusted.
    """

    status = Status.unstable


class BelowFloor(CandidateFailure):
    """The candidate's time is below what the device can do, so it was not measured or not spent."""

    status = Status.cheat
    healthy = False


class WrongInRace(CandidateFailure):
    """An output of the candidate was wrong in a race."""

    status = Status.wrong_result
