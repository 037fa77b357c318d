"""Deals input sets to the calls of a replay: at random, to random places, between guards."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cupy
import numpy
import torch

from evoengine.evaluate.worker.arena import GUARD, POISON, Layout
from evoengine.evaluate.worker.cuda.harness.harness_kernels import HarnessKernels
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.evaluate.worker.cuda.slots import Place, SlotPool, slot_size


@dataclass(frozen=True)
class DealtCall:
    """One call of a replay: its input set, and the place of each buffer by name."""

    given: PoolSet
    places: Mapping[str, Place]

    @property
    def reads(self) -> list[Place]:
        """The places of its inputs."""
        return [self.places[name] for name in self.given.inputs]


class Dealer:
    """Deals the buffers of one case."""

    def __init__(self, kernels: HarnessKernels, slots: SlotPool, layout: Layout) -> None:
        """`layout` holds every buffer of a call: inputs, outputs and scratch."""
        self._kernels = kernels
        self._slots = slots
        self._sizes = {
            name: math.prod(shape) * dtype.itemsize for name, (dtype, shape) in layout.items()
        }
        self._table: cupy.ndarray | None = None

    @property
    def sizes(self) -> list[int]:
        """The bytes of every buffer of a call."""
        return list(self._sizes.values())

    @property
    def slot_bytes(self) -> int:
        """The bytes of the slots of one call."""
        return sum(slot_size(size) for size in self._sizes.values())

    def deal(self, sets: Sequence[PoolSet]) -> list[DealtCall]:
        """A call for each of `sets`; its inputs are copied, all other buffers poisoned. Waits.

        Raises VirtualMemoryError where the device has no memory for the buffers.
        """
        names = list(self._sizes)
        places = self._slots.place([self._sizes[name] for _ in sets for name in names])
        calls = [
            DealtCall(one, dict(zip(names, places[number * len(names) :], strict=False)))
            for number, one in enumerate(sets)
        ]
        rows = [
            _row(place, call.given.inputs.get(name))
            for call in calls
            for name, place in call.places.items()
        ]
        self._table = cupy.asarray(numpy.array(rows, dtype=numpy.uint64))
        self._kernels.deal(self._table)
        torch.cuda.current_stream().synchronize()
        return calls

    def audit(self) -> cupy.ndarray:
        """Begins to compare inputs and guards with what was dealt last; flags by buffer, in the
        order of calls and names: 1 for a changed input, 2 for a changed guard.
        """
        assert self._table is not None
        flags = cupy.zeros(len(self._table), dtype=numpy.uint32)
        self._kernels.audit(self._table, flags)
        return flags

    def named(self, position: int) -> str:
        """The name of the buffer at a position of the flags."""
        return list(self._sizes)[position % len(self._sizes)]


def _row(place: Place, source: torch.Tensor | None) -> list[int]:
    """One Slot of kernels.cu."""
    return [
        place.slot.address,
        place.slot.size,
        place.offset,
        place.size,
        source.data_ptr() if source is not None else 0,
        GUARD,
        POISON,
    ]


def draw_sets(sets: Sequence[PoolSet], count: int) -> list[PoolSet]:
    """`count` different sets, drawn at random."""
    return secrets.SystemRandom().sample(sets, count)
