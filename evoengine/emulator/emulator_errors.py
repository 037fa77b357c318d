"""What can go wrong in the emulator.

EmulatorError ├── CompilerMissing     no clang on this machine that can compile CUDA ├──
CompileFailed       clang refused the source: the log names its lines ├── PtxError            text
that is not PTX as we know it ├── Unsupported         an instruction or feature that the emulator
lacks; nothing is known against the kernel ├── LaunchRefused       the launch asks for what the
device has not, or does not fit the kernel └── KernelFault         the kernel ended itself or was
ended
    ├── Trapped         trap, a failed assert, a stray access
    └── OutOfFuel       it ran further than it was allowed to
"""

from __future__ import annotations


class EmulatorError(Exception):
    """Everything that this package raises on purpose."""


class CompilerMissing(EmulatorError):  # noqa: N818 - reads better without a suffix
    """There is no clang that can compile CUDA for NVPTX."""


class CompileFailed(EmulatorError):  # noqa: N818
    """The compiler refused; `lacking` tells that the emulator's headers lack something, not that
    the kernel is wrong.
    """

    def __init__(self, log: str, lacking: bool = False) -> None:
        super().__init__(
            log.strip().splitlines()[0] if log.strip() else "the compiler failed and said nothing"
        )
        self.log = log
        self.lacking = lacking


class PtxError(EmulatorError):
    """The text is not PTX as we know it; `line` is the line of the PTX."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"PTX line {line}: {message}" if line else message)
        self.line = line


class Unsupported(EmulatorError):  # noqa: N818
    """Something that the emulator cannot do; `line` is the candidate's, 0 where unknown."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(f"the emulator cannot do `{what}`" + (f" (line {line})" if line else ""))
        self.what = what
        self.line = line


class LaunchRefused(EmulatorError):  # noqa: N818
    """The launch does not fit the kernel or the device."""


class KernelFault(EmulatorError):  # noqa: N818
    """The kernel ended before its end."""


class Trapped(KernelFault):
    """trap, a failed assert, or a stray access."""


class OutOfFuel(KernelFault):
    """It ran further than it was allowed to: an endless loop, or blocks that wait for one
    another.
    """
