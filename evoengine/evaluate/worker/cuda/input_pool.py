"""The secret pool: for each case, input sets of unpredictable seeds, with their expected outputs.

All distributions are mixed in it. It lies in the grader's own memory; replays get copies.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType

import torch

from evoengine.evaluate.worker.expected_outputs import ExpectedOutput, ExpectedOutputs
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.task.schema import Task

LEAST_SETS, MOST_SETS = 12, 32
MEMORY_SHARE = 0.25  # of the device's memory
Alone = Callable[[], AbstractContextManager[None]]  # a turn at the device


@dataclass(frozen=True, eq=False)
class PoolSet:
    """One input set of a case; `number` counts within the case.

    Its seed is never stored or shown: nobody may know what a kernel will be given.
    """

    number: int
    distribution: str
    inputs: Tensors  # on the device, contiguous
    expected: ExpectedOutput  # on the device

    @property
    def bytes(self) -> int:
        """The device memory of inputs and references."""
        tensors = [*self.inputs.values(), *self.expected.reference.values()]
        return sum(value.numel() * value.element_size() for value in tensors)


NO_SETS: Mapping[int, PoolSet] = MappingProxyType({})


class InputPool:
    """The input sets of all cases, made when a case is first needed."""

    def __init__(
        self, task: Task, expected_outputs: ExpectedOutputs, work: Callable[[], None]
    ) -> None:
        """`work` is called before each set is computed: a sign of life."""
        self._task = task
        self._expected = expected_outputs
        self._work = work
        self._seeds: dict[tuple[str, int], int] = {}
        self._cases: OrderedDict[str, tuple[PoolSet, ...]] = OrderedDict()
        total = torch.cuda.get_device_properties(expected_outputs.device).total_memory
        self._limit = int(total * MEMORY_SHARE)

    def holds(self, case: str) -> bool:
        """Whether the sets of a case are there."""
        return case in self._cases

    def sets(self, case: str, alone: Alone = nullcontext) -> tuple[PoolSet, ...]:
        """The sets of a case, at least LEAST_SETS, each distribution among them; raises TaskError
        as ExpectedOutputs does. Where they are made, each is made within `alone`, so that others
        get the device between two.
        """
        if case not in self._cases:
            self._keep(case, self._make(case, alone))
        self._cases.move_to_end(case)
        return self._cases[case]

    def renew(self, case: str, alone: Alone = nullcontext) -> tuple[PoolSet, ...]:
        """New sets for a case, in place of those that times are measured on; as `sets`. The others
        take several references each, and what a candidate keeps of them makes nothing faster.
        """
        old = self._cases.pop(case, ())
        timed = timed_sets(old)
        kept = {item.number: item for item in old if item not in timed}
        for key in [key for key in self._seeds if key[0] == case and key[1] not in kept]:
            del self._seeds[key]
        self._keep(case, self._make(case, alone, kept))
        return self._cases[case]

    def _keep(self, case: str, sets: tuple[PoolSet, ...]) -> None:
        """Holds the sets of a case that was not held; others go where memory is short."""
        self._cases[case] = sets
        while len(self._cases) > 1 and self._bytes() > self._limit:
            self._cases.popitem(last=False)

    def _make(
        self, case: str, alone: Alone, kept: Mapping[int, PoolSet] = NO_SETS
    ) -> tuple[PoolSet, ...]:
        wanted = len(self._task.distributions) * len(self._task.seeds)
        made = []
        for number in range(min(MOST_SETS, max(LEAST_SETS, wanted))):
            if number in kept:
                made.append(kept[number])
                continue
            with alone():
                made.append(self._make_set(case, number))
        return tuple(made)

    def _make_set(self, case: str, number: int) -> PoolSet:
        self._work()
        distributions = self._task.distributions
        distribution = distributions[number % len(distributions)]
        # a case that was dropped for lack of memory comes back with the same inputs
        seed = self._seeds.setdefault((case, number), secrets.randbits(62))
        inputs, expected = self._expected.draw(case, distribution, seed)
        return PoolSet(number, distribution, inputs, expected)

    def _bytes(self) -> int:
        return sum(item.bytes for sets in self._cases.values() for item in sets)


def timed_sets(sets: Sequence[PoolSet]) -> tuple[PoolSet, ...]:
    """Those of `sets` that a measurement of times is given: all but those of the distribution
    `extreme`, or all where there is no other.

    Gates are wide on large inputs, and a kernel can tell these from others: what it leaves out
    there must not make it faster.
    """
    return tuple(item for item in sets if item.distribution != "extreme") or tuple(sets)


def one_of_each_distribution(sets: Sequence[PoolSet]) -> list[PoolSet]:
    """The first set of each distribution."""
    return list({item.distribution: item for item in reversed(sets)}.values())
