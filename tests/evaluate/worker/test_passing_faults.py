"""Which faults of a baseline are kept for later runs, and which may be gone by then."""

from __future__ import annotations

import pytest
import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.cuda.harness.virtual_memory import VirtualMemoryError
from evoengine.evaluate.worker.passing_faults import may_pass

OUT_OF_MEMORY, INVALID_VALUE = 2, 1  # cuda.h


def raised(error: Exception, cause: Exception) -> TaskError:
    """A task's error that was raised from `error`, which came up while `cause` was handled."""
    outer = TaskError("f.py:compiled raised it")
    outer.__cause__, error.__context__ = error, cause
    return outer


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        VirtualMemoryError("cuMemCreate", OUT_OF_MEMORY),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"),
        MemoryError(),
        OSError(28, "No space left on device"),
    ],
    ids=repr,
)
def test_a_lack_of_memory_or_room_may_pass_however_deep_it_lies(error: Exception) -> None:
    assert may_pass(error)
    assert may_pass(raised(error, ValueError()))
    assert may_pass(raised(RuntimeError("backend failed"), error))


@pytest.mark.parametrize(
    "error",
    [
        TaskError("f.py:forward is wrong: out has a max abs error of 1, allowed 0.1"),
        RuntimeError("no kernel image is available for execution on the device"),
        VirtualMemoryError("cuMemCreate", INVALID_VALUE),
        ImportError("no module named flash_attn"),
    ],
    ids=repr,
)
def test_what_does_not_work_here_stays_so(error: Exception) -> None:
    assert not may_pass(error)
    assert not may_pass(raised(error, ValueError()))


def test_errors_in_a_circle_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert not may_pass(one)
