"""All that the grader uses of one GPU: our kernels, addresses, slots, marks and the state of L2."""

from __future__ import annotations

import cupy
import torch

from evoengine.evaluate.worker.cuda.harness.device_table import DeviceTable
from evoengine.evaluate.worker.cuda.harness.gpu_token import GpuToken
from evoengine.evaluate.worker.cuda.harness.harness_kernels import HarnessKernels
from evoengine.evaluate.worker.cuda.harness.l2_state import L2State
from evoengine.evaluate.worker.cuda.harness.time_marks import TimeMarks
from evoengine.evaluate.worker.cuda.harness.virtual_memory import (
    PAGE_BYTES,
    AddressRange,
)
from evoengine.evaluate.worker.cuda.slots import SlotPool

# Of the device's memory, for slots that no replay needs now.
SLOT_SHARE, HIDDEN_SLOT_SHARE = 1 / 8, 1 / 16


class GpuHarness:
    """The grader's side of the current device; all its work is in the order of one stream."""

    def __init__(self, ordinal: int, stream: torch.cuda.Stream) -> None:
        self.ordinal = ordinal
        self.token = GpuToken(ordinal)
        self.stream = as_cupy(stream)
        properties = torch.cuda.get_device_properties(ordinal)
        self.l2_bytes = int(properties.L2_cache_size)
        # the threads that can run at once, each of which has a stack of its own
        self.resident_threads = (
            properties.multi_processor_count * properties.max_threads_per_multi_processor
        )
        self.kernels = HarnessKernels(self.stream)
        self.addresses = AddressRange(ordinal)
        shares = [int(properties.total_memory * it) for it in (SLOT_SHARE, HIDDEN_SLOT_SHARE)]
        # of shown and of hidden cases: through a slot of both, one could leave word for the other
        self.slots, self.hidden_slots = (
            SlotPool(ordinal, self.addresses, it, self.token.taking_memory) for it in shares
        )
        self.slot_table = DeviceTable(self.stream.ptr)
        self.flags = DeviceTable(self.stream.ptr)
        self.comparisons = DeviceTable(self.stream.ptr)
        self.figures = DeviceTable(self.stream.ptr)
        self.marks = TimeMarks(self.kernels, self.addresses.allocate(PAGE_BYTES))
        self.l2 = L2State(self.kernels, self.addresses, self.stream.ptr)

    def slots_of(self, hidden: bool) -> SlotPool:
        """The slots of hidden cases, or of shown ones."""
        return self.hidden_slots if hidden else self.slots

    def own_bytes(self) -> int:
        """The device memory that this process has taken for buffers, in bytes."""
        return torch.cuda.memory_reserved() + self.addresses.mapped_bytes


class _Handle:
    """A stream's handle in the CUDA stream protocol, which not all torch streams have."""

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self._stream = stream  # kept alive with the handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, int(self._stream.cuda_stream)


def as_cupy(stream: torch.cuda.Stream) -> cupy.cuda.Stream | cupy.cuda.ExternalStream:
    """torch's stream for CuPy; CuPy 14 replaced ExternalStream."""
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(_Handle(stream))
    return cupy.cuda.ExternalStream(stream.cuda_stream)
