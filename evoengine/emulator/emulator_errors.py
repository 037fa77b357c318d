"""What can go wrong in the emulator.

EmulatorError
├── CompilerMissing     no clang on this machine that can compile CUDA
├── CompileFailed       clang refused the source; the log has the lines
├── PtxError            the text is not valid PTX
├── Unsupported         an instruction or feature that the emulator lacks; the kernel may be correct
├── LaunchRefused       the launch exceeds the device's limits, or does not fit the kernel
└── KernelFault         the kernel was stopped before it finished
    ├── Trapped         trap, a failed assert, an access outside of memory
    └── OutOfFuel       it ran longer than its budget of loop iterations
        └── Deadlock    threads of a block wait at barriers that nobody else reaches
"""

from __future__ import annotations


class EmulatorError(Exception):
    """The base class of all errors of the emulator."""


class CompilerMissing(EmulatorError):  # noqa: N818 - reads better without a suffix
    """There is no clang that can compile CUDA for NVPTX."""


class CompileFailed(EmulatorError):  # noqa: N818
    """clang refused the source. `lacking`: something is missing from the emulator's headers; the
    kernel may be correct.
    """

    def __init__(self, log: str, lacking: bool = False) -> None:
        super().__init__(
            log.strip().splitlines()[0] if log.strip() else "the compiler failed without a message"
        )
        self.log = log
        self.lacking = lacking


class PtxError(EmulatorError):
    """The text is not valid PTX; `line` is the line of the PTX, 0 if unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"PTX line {line}: {message}" if line else message)
        self.line = line


class Unsupported(EmulatorError):  # noqa: N818
    """Something that the emulator does not support; `line` is the candidate's, 0 if unknown."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(
            f"the emulator does not support `{what}`" + (f" (line {line})" if line else "")
        )
        self.what = what
        self.line = line


class LaunchRefused(EmulatorError):  # noqa: N818
    """The launch does not fit the kernel or the device."""


class KernelFault(EmulatorError):  # noqa: N818
    """The kernel was stopped before it finished. `strays`: what checked mode found until then of
    accesses out of bounds and misaligned ones, a line each.
    """

    def __init__(self, message: str, strays: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.strays = strays


class Trapped(KernelFault):
    """The kernel stopped itself: trap, a failed assert, or an access outside of memory."""


class OutOfFuel(KernelFault):
    """The kernel ran longer than its budget: an endless loop, or blocks that wait for one
    another.
    """


class Deadlock(OutOfFuel):
    """All threads of a block wait at barriers: whatever other blocks do, it never ends."""
