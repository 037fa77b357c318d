"""Deals input sets to the calls of a replay: at random, to random places, between guards."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy
import torch
from cupy.cuda import runtime

from evoengine.evaluate.worker.arena import GUARD, POISON, Layout
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.evaluate.worker.cuda.slots import Place, Slot, SlotPool, slot_size

FLAG = numpy.dtype(numpy.uint32)


@dataclass(frozen=True)
class DealtCall:
    """One call of a replay: its input set, and the place of each buffer by name."""

    given: PoolSet
    places: Mapping[str, Place]
    keys: Mapping[str, int]  # of the inputs, which are masked with them; 0: they are not

    @property
    def reads(self) -> list[tuple[Place, int]]:
        """The places of its inputs, each with its key."""
        return [(self.places[name], self.keys[name]) for name in self.given.inputs]


class Dealer:
    """Deals the buffers of one case."""

    def __init__(self, harness: GpuHarness, slots: SlotPool, layout: Layout) -> None:
        """`layout` holds every buffer of a call: inputs, outputs and scratch."""
        self._harness = harness
        self._slots = slots
        self._sizes = {
            name: math.prod(shape) * dtype.itemsize for name, (dtype, shape) in layout.items()
        }
        self._dealt = 0

    @property
    def bytes_of(self) -> dict[str, int]:
        """The bytes of every buffer of a call, by name."""
        return dict(self._sizes)

    @property
    def sizes(self) -> list[int]:
        """The bytes of every buffer of a call."""
        return list(self._sizes.values())

    @property
    def slot_bytes(self) -> int:
        """The bytes of the slots of one call."""
        return sum(slot_size(size) for size in self._sizes.values())

    def slots_for(self, calls: int) -> list[Slot]:
        """All slots that the buffers of so many calls are drawn from; raises VirtualMemoryError."""
        return self._slots.reserve([*self._sizes.values()] * calls)

    def deal(self, sets: Sequence[PoolSet], unmasked: int) -> list[DealtCall]:
        """A call for each of `sets`; its inputs are copied, all other buffers poisoned. Waits.

        Inputs are masked but for those of the first `unmasked` calls. Slots that hold no buffer are
        overwritten: what earlier replays left there, no candidate finds. Raises VirtualMemoryError
        where the device has no memory for the buffers.
        """
        names = list(self._sizes)
        places = self._slots.place(list(self._sizes.values()) * len(sets))
        keys = iter(_new_keys(sum(len(one.inputs) for one in sets[unmasked:])))
        calls = [
            DealtCall(
                one,
                dict(zip(names, places[number * len(names) :], strict=False)),
                {name: next(keys) if number >= unmasked else 0 for name in one.inputs},
            )
            for number, one in enumerate(sets)
        ]
        rows = [
            slot_row(place, call.given.inputs.get(name), call.keys.get(name, 0))
            for call in calls
            for name, place in call.places.items()
        ]
        rows += [_empty_row(slot) for slot in self._slots.idle]
        self._dealt = len(rows)
        deal_rows(self._harness, rows)
        runtime.streamSynchronize(self._harness.stream.ptr)
        return calls

    def begin_audit(self) -> None:
        """Begins to compare inputs and guards with what was dealt last."""
        harness = self._harness
        flags = harness.flags.clear(FLAG.itemsize * self._dealt)
        harness.kernels.audit(harness.slot_table.address, self._dealt, flags)

    def flags(self) -> list[int]:
        """The results of the audit by buffer, in the order of calls and names, then by idle slot: 1
        for a changed input, 2 for a changed guard.
        """
        found = self._harness.flags.read(numpy.zeros(self._dealt, dtype=FLAG))
        return [int(flag) for flag in found]

    def named(self, position: int) -> str:
        """The name of the buffer at a position of the flags."""
        return list(self._sizes)[position % len(self._sizes)]


def deal_rows(harness: GpuHarness, rows: Sequence[Sequence[int]]) -> None:
    """Begins to write the slots of `rows`, each a Slot of kernels.cu."""
    address = harness.slot_table.write(numpy.array(rows, dtype=numpy.uint64))
    harness.kernels.deal(address, len(rows))


def slot_row(place: Place, source: torch.Tensor | None, key: int = 0) -> list[int]:
    """One Slot of kernels.cu: a buffer that is a copy of `source`, or poison without one."""
    return [
        place.slot.address,
        place.slot.size,
        place.offset,
        place.size,
        source.data_ptr() if source is not None else 0,
        GUARD,
        POISON,
        key,
    ]


def _empty_row(slot: Slot) -> list[int]:
    return [slot.address, slot.size, 0, 0, 0, GUARD, POISON, 0]


def _new_keys(count: int) -> list[int]:
    """As many keys, none of them 0."""
    drawn = numpy.frombuffer(secrets.token_bytes(8 * count), dtype=numpy.uint64)
    return [int(key) or 1 for key in drawn]


T = TypeVar("T")


def drawn(items: Sequence[T], count: int) -> list[T]:
    """`count` different ones of `items`, drawn at random, in a random order."""
    return secrets.SystemRandom().sample(items, count)
