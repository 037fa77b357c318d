"""Examines one candidate on one case: every launch is part of a replay that is examined whole.

A replay has an unpredictable number of calls, each on an input set of its own, dealt at random to
random places. Before the candidate's code runs again, all outputs of all calls are compared, inputs
and guards too. Checked and timed replays are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.arena import POISON
from evoengine.evaluate.worker.candidate_failures import CannotLaunch, Cheated
from evoengine.evaluate.worker.check import checked_set, compare_outputs, layout_of, poisoned_for
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS
from evoengine.evaluate.worker.cuda.dealing import Dealer, DealtCall
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.harness.runner_messages import Profiled, Replayed
from evoengine.evaluate.worker.cuda.harness.time_marks import clock_gaps_us
from evoengine.evaluate.worker.cuda.harness.virtual_memory import VirtualMemoryError
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.evaluate.worker.cuda.output_comparison import begin_comparison
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.runner_client import MemoryLeft
from evoengine.evaluate.worker.cuda.slots import Slot
from evoengine.evaluate.worker.forensics.launch_facts import Relaunch
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall, plainness
from evoengine.evaluate.worker.gate import all_pass, largest_share
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.protocols import CompiledCase
from evoengine.records import InputSetCheck
from evoengine.task.schema import Task

# Our stamps lie outside of the events; both clocks of an honest replay differ by less than this.
CLOCK_SHARE, CLOCK_US = 0.1, 20.0


UnmapSlots = Callable[[bool, Sequence[int]], None]
Meanwhile = Callable[[], None]  # work of the host while the device has some


@dataclass(frozen=True)
class Examined:
    """One replay: its times in microseconds, one for all calls of a hot one, one for each call of
    a cold one, none if two clocks disagree about them; and the sets on which an output was wrong.
    """

    times_us: tuple[float, ...]
    wrong: tuple[InputSetCheck, ...]
    # by how much the stamps, which lie outside of the events, exceed them, in microseconds
    gaps_us: tuple[float, ...] = ()
    # by how much the host's clock exceeds the events of a hot replay; a launch and a wait are in it
    host_gap_us: float = 0.0


class Examination:
    """One candidate on one case, loaded by a runner."""

    def __init__(
        self,
        harness: GpuHarness,
        runners: PairClient,
        task: Task,
        compiled: CompiledCase,
        tier: str,
        unmap_slots: UnmapSlots | None = None,
    ) -> None:
        """Loads the candidate; raises CandidateFailure.

        `unmap_slots` has slots of hidden cases, or of shown ones, unmapped by all runners; by
        default by these alone.
        """
        self._harness = harness
        self._runner = runners.runner_of(compiled)
        self._task = task
        self._case = compiled.plan.case
        self._tier = tier
        self._layout = layout_of(task, compiled.plan)
        slots = harness.slots_of(compiled.plan.hidden)
        self._dealer = Dealer(harness, slots, self._layout)
        stack = max((one.local_bytes for one in compiled.resources), default=0)
        self._stack_bytes = stack * harness.resident_threads
        self._worst: dict[int, InputSetCheck] = {}
        # of the first replay with a wrong output, the call with the plainest inputs, and its set
        self.wrong_call: WrongCall | None = None
        self.wrong_set: PoolSet | None = None
        self.keeps_wrong_call = True  # to the CPU, which takes longer than a replay
        drop = unmap_slots or runners.drop
        for hidden in (False, True):
            needed = self._dealer.sizes if hidden == compiled.plan.hidden else []
            drop(hidden, harness.slots_of(hidden).shrink(needed))
        # The driver takes milliseconds to say what is free: what the case before has left is that.
        self._before = self._runner.left or self._unload()
        self._runner.load(compiled, self._dealer.bytes_of, poisoned_for(task, compiled.plan))

    @property
    def slot_bytes(self) -> int:
        """The bytes of the slots of one call."""
        return self._dealer.slot_bytes

    def map_slots(self, calls: int) -> None:
        """Maps all that replays of so many calls may use, which takes a new runner a while: the
        driver's work, not the device's. Raises CandidateFailure.
        """
        self._runner.map(self._slots_for(calls))

    def _slots_for(self, calls: int) -> list[Slot]:
        try:
            return self._dealer.slots_for(calls)
        except VirtualMemoryError as error:
            raise _no_memory(error) from None

    @property
    def checks(self) -> tuple[InputSetCheck, ...]:
        """The worst comparison of each set that was given to it so far."""
        return tuple(self._worst[number] for number in sorted(self._worst))

    def close(self) -> int:
        """Unloads the candidate; the device memory that it has left in use, in bytes.

        Where another process has started meanwhile, that cannot be told from the memory of its
        context: then it is the most that the driver keeps for the candidate's stack.
        """
        before, left = self._before, self._unload()
        self._runner.left = left
        if before.starts is not None and before.starts == left.starts:
            return before.free_bytes - left.free_bytes
        return self._stack_bytes

    def _unload(self) -> MemoryLeft:
        starts = self._harness.token.starts()
        free_bytes = self._runner.unload() + self._harness.own_bytes()
        same = starts == self._harness.token.starts()
        return MemoryLeft(free_bytes, starts if same else None)

    def replay(
        self, sets: Sequence[PoolSet], cold: bool, meanwhile: Meanwhile = lambda: None
    ) -> Examined:
        """One replay: WARM_UP_CALLS of `sets` for its first graph, the rest for the timed one;
        raises CandidateFailure.

        `meanwhile` is called once, after the replay, while the device compares its outputs.
        """
        dealt, replayed = self._replayed(sets, cold)
        wrong = self._compare(dealt, meanwhile)
        self._runner.wait()
        if not _clocks_agree(replayed):
            return Examined((), wrong)
        host_gap_us = 0.0 if cold else replayed.host_us - sum(replayed.event_us)
        gaps_us = clock_gaps_us(replayed.event_us, replayed.stamp_us)
        return Examined(replayed.event_us, wrong, gaps_us, host_gap_us)

    def relaunch(self, given: PoolSet, calls: int) -> Relaunch:
        """One replay of so many calls, all on the inputs of `given`; raises CandidateFailure."""
        dealt, _ = self._replayed([given] * calls, cold=False)
        self._dealer.begin_audit()
        self._refuse_stray_writes(self._dealer.flags())
        outputs = tuple(_on_cpu(self._outputs(call)) for call in dealt)
        self._runner.wait()
        return Relaunch(outputs, POISON)

    def _replayed(self, sets: Sequence[PoolSet], cold: bool) -> tuple[list[DealtCall], Replayed]:
        dealt = self._deal(sets, WARM_UP_CALLS)
        warm_up, calls = dealt[:WARM_UP_CALLS], dealt[WARM_UP_CALLS:]
        replayed = self._runner.replay(
            [call.places for call in warm_up],
            [call.places for call in calls],
            [read for call in calls for read in call.reads],
            cold,
        )
        return dealt, replayed

    def profile(self, sets: Sequence[PoolSet]) -> tuple[Profiled, tuple[InputSetCheck, ...]]:
        """What a call on each of `sets` but the first WARM_UP_CALLS runs on the device, and the
        sets on which an output was wrong; raises CandidateFailure.
        """
        dealt = self._deal(sets, len(sets))
        calls = dealt[WARM_UP_CALLS:]
        profiled = self._runner.profile(
            [call.places for call in dealt[:WARM_UP_CALLS]],
            [call.places for call in calls],
            [place for call in calls for place, _ in call.reads],
        )
        wrong = () if profiled.problem else self._compare(dealt, lambda: None)
        self._runner.wait()
        return profiled, wrong

    def _deal(self, sets: Sequence[PoolSet], unmasked: int) -> list[DealtCall]:
        try:
            return self._dealer.deal(sets, unmasked)
        except VirtualMemoryError as error:
            raise _no_memory(error) from None

    def _compare(
        self, dealt: Sequence[DealtCall], meanwhile: Meanwhile
    ) -> tuple[InputSetCheck, ...]:
        self._dealer.begin_audit()
        comparison = begin_comparison(self._harness, self._task, dealt, self._tier)
        meanwhile()
        self._refuse_stray_writes(self._dealer.flags())
        wrong: list[InputSetCheck] = []
        wrong_calls: list[DealtCall] = []
        for call, errors in zip(dealt, comparison.errors(), strict=True):
            given = call.given
            gates = given.expected.gates[self._tier]
            before = self._worst.get(given.number)
            is_right = all_pass(errors, gates)
            if is_right and before and largest_share(errors, gates) <= (before.share_of_limit or 0):
                continue
            check = checked_set(
                given.expected, self._tier, errors, given.distribution, given.number
            )
            if is_right:
                self._worst[given.number] = check
            else:
                wrong.append(check)
                wrong_calls.append(call)
        if wrong:
            self._explain_worst(wrong, wrong_calls)
        self._keep_plainest(wrong_calls)
        return tuple(wrong)

    def _explain_worst(self, wrong: list[InputSetCheck], calls: Sequence[DealtCall]) -> None:
        """Compares the wrongest call once more, for the place of its worst element, which takes
        milliseconds; where that comparison differs, the stricter one holds.
        """
        worst = max(range(len(wrong)), key=lambda number: wrong[number].clearness)
        explained = self._explained(calls[worst])
        if not explained.ok:
            wrong[worst] = explained

    def _keep_plainest(self, wrong: Sequence[DealtCall]) -> None:
        """Copies the wrong call with the plainest inputs, of the first replay that has any."""
        order = self._task.distributions
        if self.wrong_set is not None or not wrong or not self.keeps_wrong_call:
            return
        call = min(wrong, key=lambda one: plainness(one.given.distribution, order))
        given = self.wrong_set = call.given
        self.wrong_call = WrongCall(
            case=self._case,
            distribution=given.distribution,
            number=given.number,
            inputs=_on_cpu(given.inputs),
            outputs=_on_cpu(self._outputs(call)),
            reference=_on_cpu(given.expected.reference),
            gates=given.expected.gates[self._tier],
            poison=POISON,
        )

    def _refuse_stray_writes(self, flags: Sequence[int]) -> None:
        for position, flag in enumerate(flags):
            # an idle slot has no source, and so no such flag
            if flag & 1 and (name := self._dealer.named(position)) not in self._task.outputs:
                raise Cheated(f"input {name!r} was overwritten")
        if any(flag & 2 for flag in flags):
            raise Cheated("memory outside the buffers was written")

    def _explained(self, call: DealtCall) -> InputSetCheck:
        """The comparison of one call once more, with the place of its worst element."""
        given = call.given
        return compare_outputs(
            self._outputs(call), given.expected, self._tier, given.distribution, given.number
        )

    def _outputs(self, call: DealtCall) -> Tensors:
        """Views of the outputs of one call, on the device."""
        outputs = {}
        for name in self._task.outputs:
            dtype, shape = self._layout[name]
            place = call.places[name]
            outputs[name] = device_bytes(place.address, place.size).view(dtype).view(shape)
        return outputs


def _on_cpu(tensors: Tensors) -> Tensors:
    """Copies on the CPU."""
    return {name: value.cpu() for name, value in tensors.items()}


def _no_memory(error: VirtualMemoryError) -> CannotLaunch:
    return CannotLaunch(f"no device memory for its buffers: {error}")


def device_bytes(address: int, size: int) -> torch.Tensor:
    """A view of device memory that torch did not allocate: uint8 of shape (size,)."""
    return torch.as_tensor(_Memory(address, size), device="cuda")


class _Memory:
    """Device memory in the CUDA array interface."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def _clocks_agree(replayed: Replayed) -> bool:
    """Whether the events say roughly the same time as the stamps.

    They do not if the GPU was given to another process between the two, or if a candidate found the
    events' memory and changed it.
    """
    return all(
        abs(stamp_us - event_us) <= CLOCK_US + CLOCK_SHARE * max(stamp_us, event_us)
        for event_us, stamp_us in zip(replayed.event_us, replayed.stamp_us, strict=True)
    )
