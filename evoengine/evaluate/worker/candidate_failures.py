"""What can show while a candidate runs: each ends its job with a status."""

from __future__ import annotations

from evoengine.records import Status


class CandidateFailure(Exception):  # noqa: N818 - about a candidate, not a fault of ours
    """Something about a candidate that ends its job; `healthy` tells whether this process may judge
    the next one.
    """

    status: Status
    healthy = True

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail


class CannotLaunch(CandidateFailure):
    """The device would not load or launch the candidate."""

    status = Status.launch_error


class Crashed(CandidateFailure):
    """The candidate broke the device's context."""

    status = Status.crash
    healthy = False


class DeviceTrap(CandidateFailure):
    """The candidate ended itself, or the emulator ended it where a GPU would have broken down."""

    status = Status.crash


class LaunchTimeout(CandidateFailure):
    """It ran further than any honest kernel does."""

    status = Status.timeout


class UnsupportedKernel(CandidateFailure):
    """The emulator cannot do what the candidate asks for."""

    status = Status.unsupported


class EmulatorFailure(UnsupportedKernel):
    """The emulator itself failed on the candidate's code; nobody knows what state that left it
    in.
    """

    healthy = False


class Faulty(CandidateFailure):
    """Checked mode has found faults; `detail` holds all of them, one a line."""

    status = Status.fault


class Cheated(CandidateFailure):
    """The candidate wrote where it must not; where else it has written, nobody knows."""

    status = Status.cheat
    healthy = False
