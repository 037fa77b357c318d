"""Device buffers between guard zones, so that writes outside the buffers are detected."""

from __future__ import annotations

import math

import torch

from evoengine.evaluate.worker.inputs import Tensors

GUARD_BYTES = 4096
ALIGN_BYTES = 512  # what cudaMalloc gives
GUARD = 0xA5
POISON = 0xFF  # NaN in every floating type, -1 in every signed integer

Layout = dict[str, tuple[torch.dtype, tuple[int, ...]]]  # name -> dtype and shape of a buffer


class Arena:
    """Named buffers in one allocation, each with a guard zone on both sides.

    `tensors` are views of the buffers by name: contiguous, on the device, with the dtypes and
    shapes of the layout.
    """

    def __init__(self, layout: Layout, device: torch.device) -> None:
        """The buffers hold the guard's bytes until they are filled or poisoned."""
        self._spans: dict[str, tuple[int, int]] = {}
        offset = GUARD_BYTES
        for name, (dtype, shape) in layout.items():
            size = math.prod(shape) * dtype.itemsize
            self._spans[name] = (offset, size)
            offset += -(-size // ALIGN_BYTES) * ALIGN_BYTES + GUARD_BYTES
        self._bytes = torch.full((offset,), GUARD, dtype=torch.uint8, device=device)
        self.tensors: Tensors = {
            name: self._span(name).view(dtype).view(shape)
            for name, (dtype, shape) in layout.items()
        }

    def poison(self, names: list[str], pattern: int = POISON) -> None:
        """Fills whole buffers with the byte `pattern`, so that missing elements are detected."""
        for name in names:
            self._span(name).fill_(pattern)

    def fill(self, values: Tensors) -> None:
        """Copies `values`, of the buffers' shapes and dtypes, into the buffers of their names."""
        for name, value in values.items():
            self.tensors[name].copy_(value)

    def pointer(self, name: str) -> int:
        """The device address of a buffer, in bytes."""
        return self.tensors[name].data_ptr()

    def differs(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Whether any bit of a buffer differs from `value`; a bool tensor of shape ().

        `value` is contiguous and has the buffer's shape and dtype.
        """
        return (self._span(name) != value.view(-1).view(torch.uint8)).any()

    def guards_broken(self) -> torch.Tensor:
        """Whether any byte between the buffers changed; a bool tensor of shape () on the device."""
        edges = [0]
        for offset, size in self._spans.values():
            edges += [offset, offset + size]
        edges.append(self._bytes.numel())
        zones = [self._bytes[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
        return torch.cat(zones).ne(GUARD).any()

    def _span(self, name: str) -> torch.Tensor:
        offset, size = self._spans[name]
        return self._bytes[offset : offset + size]
