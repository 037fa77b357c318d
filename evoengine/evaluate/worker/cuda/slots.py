"""Slots: pieces of device memory that grader and runner map, each at addresses of its own.

A buffer lies somewhere in its slot; the rest of the slot is guard. Slots are made once and used
again and again, for another buffer in every replay.
"""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from evoengine.evaluate.worker.cuda.harness.virtual_memory import (
    AddressRange,
    PhysicalMemory,
    pages,
)

ALIGN_BYTES = 512  # of the address of a buffer, as cudaMalloc gives it
# Guard on both sides: a vector load that reaches a few bytes too far always does the same, wherever
# the buffer lies.
GUARD_BYTES = 4096
SLACK_BYTES = 64 * 1024  # the least room that a buffer has in its slot


@dataclass(frozen=True, eq=False)
class Slot:
    """One slot; `address` is where this process maps it."""

    number: int
    size: int  # in bytes, whole pages
    address: int
    memory: PhysicalMemory


class Place(NamedTuple):  # a replay has some fifty, and is held up by their making
    """A buffer of `size` bytes in a slot, from `offset` bytes on."""

    slot: Slot
    offset: int
    size: int

    @property
    def address(self) -> int:
        """The buffer's address in this process."""
        return self.slot.address + self.offset


class SlotPool:
    """Slots on one device; raises VirtualMemoryError where there is no memory for more."""

    def __init__(
        self,
        ordinal: int,
        addresses: AddressRange,
        limit_bytes: int,
        changing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Slots that are not in use are freed once all together would take `limit_bytes`. Memory is
        taken and freed inside of `changing`: another grader must not take it for its candidate's.
        """
        self._ordinal = ordinal
        self._changing = changing
        self._addresses = addresses
        self._limit = limit_bytes
        self._slots: dict[int, list[Slot]] = {}  # by size
        self._count = 0
        self._placed: set[Slot] = set()  # by the last call of `place`
        self.idle: list[Slot] = []  # those that hold no buffer now, and may hold what they had
        # seeded by the system in this process: no device code can know its state
        self._random = random.Random(secrets.randbits(256))  # noqa: S311

    @property
    def total_bytes(self) -> int:
        """The device memory of all slots."""
        return sum(size * len(slots) for size, slots in self._slots.items())

    @property
    def all(self) -> list[Slot]:
        """Every slot, of all sizes."""
        return [slot for slots in self._slots.values() for slot in slots]

    def place(self, sizes: Sequence[int]) -> list[Place]:
        """A slot for each buffer, of `sizes` bytes, drawn at random, and a random place in it."""
        wanted = [slot_size(size) for size in sizes]
        self.reserve(sizes)
        found = {size: self._shuffled(self._slots[size]) for size in set(wanted)}
        places = [
            somewhere(found[whole].pop(), size, self._random)
            for whole, size in zip(wanted, sizes, strict=True)
        ]
        self._note_idle({place.slot for place in places}, set(wanted))
        return places

    def reserve(self, sizes: Sequence[int]) -> list[Slot]:
        """All slots that buffers of `sizes` bytes are drawn from."""
        reserved = list[Slot]()
        for size, count in Counter(map(slot_size, sizes)).items():
            have = self._slots.setdefault(size, [])
            # a quarter more than are needed: an address of one replay is often not one of the next
            enough = count + max(1, count // 4)
            if len(have) < enough:
                with self._changing():
                    while len(have) < enough:
                        have.append(self._make(size))
            reserved += have
        return reserved

    def shrink(self, sizes: Sequence[int]) -> list[int]:
        """Frees slots of other sizes than buffers of `sizes` need, if the limit is exceeded; the
        numbers of those that are gone, for the runner to unmap first.
        """
        keep = {slot_size(size) for size in sizes}
        if self.total_bytes <= self._limit:
            return []
        unused = [size for size in self._slots if size not in keep]
        gone = [slot for size in unused for slot in self._slots.pop(size)]
        self._placed.difference_update(gone)
        with self._changing():
            for slot in gone:
                self._addresses.unmap(slot.address)
                slot.memory.release()
        return [slot.number for slot in gone]

    def _shuffled(self, slots: Sequence[Slot]) -> list[Slot]:
        """In a random order; takes a third of the time of random.sample."""
        chance = self._random.random
        return sorted(slots, key=lambda _: chance())

    def _note_idle(self, placed: set[Slot], sizes: set[int]) -> None:
        others = [slot for size in sizes for slot in self._slots[size] if slot not in placed]
        self.idle = others + [slot for slot in self._placed if slot.size not in sizes]
        self._placed = placed

    def _make(self, size: int) -> Slot:
        memory = PhysicalMemory.create(self._ordinal, size)
        self._count += 1
        return Slot(self._count, size, self._addresses.map(memory), memory)


@lru_cache(maxsize=1024)  # a replay asks for the sizes of some fifty buffers
def slot_size(size: int) -> int:
    """The bytes of the slot for a buffer of `size` bytes."""
    return pages(size + SLACK_BYTES)


def somewhere(slot: Slot, size: int, chance: random.Random) -> Place:
    """A random place for a buffer of `size` bytes in `slot`."""
    room = (slot.size - size - 2 * GUARD_BYTES) // ALIGN_BYTES
    return Place(slot, GUARD_BYTES + int(chance.random() * (room + 1)) * ALIGN_BYTES, size)
