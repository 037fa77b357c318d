"""CUDA errors while a candidate runs, and what they say about the candidate."""

from __future__ import annotations

import cupy
import torch

from evoengine.evaluate.worker.candidate_failures import CannotLaunch, Crashed

# Names of errors after which the context is broken, as the driver's and the runtime's names have
# them once all but their letters is gone.
_STICKY = (
    "ILLEGALADDRESS",
    "MISALIGNEDADDRESS",
    "INVALIDADDRESSSPACE",
    "INVALIDPC",
    "ILLEGALINSTRUCTION",
    "HARDWARESTACKERROR",
    "LAUNCHFAIL",
    "LAUNCHTIMEOUT",
    "ASSERT",
    "ECCUNCORRECTABLE",
    "CONTAINED",
)
_CUPY_ERRORS = (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError)
# torch before 2.8 has no type of its own for device errors.
CUDA_ERRORS = (
    *_CUPY_ERRORS,
    cupy.cuda.memory.OutOfMemoryError,
    getattr(torch, "AcceleratorError", RuntimeError),
    torch.cuda.OutOfMemoryError,
)
NO_MEMORY = (cupy.cuda.memory.OutOfMemoryError, torch.cuda.OutOfMemoryError)


def translate(error: Exception) -> Crashed | CannotLaunch:
    """A CUDA error that was raised while a candidate ran, as a failure of the candidate."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in text:
        return CannotLaunch(text)
    # torch's own kernels load: its other errors mean that the context is broken
    if not isinstance(error, _CUPY_ERRORS):
        return Crashed(text)
    letters = "".join(letter for letter in str(error).upper() if letter.isalpha())
    return Crashed(text) if any(name in letters for name in _STICKY) else CannotLaunch(text)
