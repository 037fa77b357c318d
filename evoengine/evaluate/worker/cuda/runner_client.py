"""The grader's side of a runner: requests, answers, and the slots that the runner knows."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from evoengine.evaluate.device.worker_protocol import RUNNER_ENDED
from evoengine.evaluate.worker.candidate_failures import CandidateFailure, CannotLaunch, Crashed
from evoengine.evaluate.worker.cuda.harness.runner_messages import (
    MAX_DESCRIPTORS,
    RUNNER_ANSWER,
    AnyRequest,
    DropSlots,
    Fault,
    Load,
    MapSlots,
    PlacedCall,
    Profile,
    Profiled,
    Replay,
    Replayed,
    Result,
    Served,
    Unload,
)
from evoengine.evaluate.worker.cuda.harness.virtual_memory import VirtualMemoryError
from evoengine.evaluate.worker.cuda.slots import Place, Slot
from evoengine.protocols import CompiledCase

Places = Mapping[str, Place]  # of one call, by buffer, in the order given to `load`


@dataclass(frozen=True)
class MemoryLeft:
    """The device memory that is free without a case, but for the buffers of the grader."""

    free_bytes: int
    starts: int | None  # of processes so far, as GpuToken.starts; None where one started meanwhile


class RunnerGone(Crashed):
    """The runner ended before it answered; the parent knows how."""


class RunnerClient:
    """One runner; a request waits for its answer, unless it says otherwise."""

    is_new = True  # whether it has loaded no candidate yet
    left: MemoryLeft | None = None  # by the last case, until the next one is loaded

    def __init__(self, connection: socket.socket) -> None:
        """The runner may still be starting: `wait` returns when it is ready."""
        self._connection = connection
        self._answers = connection.makefile("rb")
        self._known: set[int] = set()
        self._is_due = True  # whether an answer is to come that nobody has waited for

    def load(
        self, compiled: CompiledCase, buffers: Mapping[str, int], written: Iterable[str]
    ) -> None:
        """Loads one case, whose calls have these buffers, by name and bytes; raises
        CandidateFailure.
        """
        self.is_new = False
        self.left = None
        self._ask(
            Load(
                code_path=compiled.code_path,
                functions=compiled.functions,
                launches=compiled.plan.launches,
                fills=compiled.plan.fills,
                buffers=dict(buffers),
                written=frozenset(written),
                silent=compiled.plan.hidden,
            )
        )

    def unload(self) -> int:
        """Forgets the case; free device memory afterwards, in bytes."""
        answer = self._ask(Unload())
        assert isinstance(answer, Served)
        return answer.free_bytes

    def replay(
        self,
        warm_up: Sequence[Places],
        calls: Sequence[Places],
        reads: Iterable[tuple[Place, int]],
        cold: bool,
    ) -> Replayed:
        """One replay; `reads` are the inputs of `calls`, with keys. Raises CandidateFailure.

        The runner loads the code anew afterwards, until `wait` returns.
        """
        self.map(place.slot for call in (*warm_up, *calls) for place in call.values())
        answer = self._ask(
            Replay(
                warm_up=tuple(_placed(call) for call in warm_up),
                calls=tuple(_placed(call) for call in calls),
                reads=tuple(
                    (place.slot.number, place.offset, place.size, key) for place, key in reads
                ),
                cold=cold,
            )
        )
        assert isinstance(answer, Replayed)
        self._is_due = True
        return answer

    def profile(
        self, warm_up: Sequence[Places], calls: Sequence[Places], reads: Iterable[Place]
    ) -> Profiled:
        """What `calls` run on the device, by CUPTI; `reads` are their inputs. Raises
        CandidateFailure. As for `replay`, `wait` follows.
        """
        self.map(place.slot for call in (*warm_up, *calls) for place in call.values())
        answer = self._ask(
            Profile(
                warm_up=tuple(_placed(call) for call in warm_up),
                calls=tuple(_placed(call) for call in calls),
                reads=tuple((place.slot.number, place.offset, place.size) for place in reads),
            )
        )
        assert isinstance(answer, Profiled)
        self._is_due = True
        return answer

    def wait(self) -> None:
        """Waits until the runner uses the device no more; raises CandidateFailure."""
        if self._is_due:
            self._is_due = False
            self._answer()

    def drop(self, numbers: Sequence[int]) -> None:
        """Unmaps slots that are about to be freed."""
        known = tuple(number for number in numbers if number in self._known)
        if known:
            self._ask(DropSlots(numbers=known))
            self._known.difference_update(known)

    def close(self) -> None:
        """Closes the connection; the runner ends."""
        self._answers.close()
        self._connection.close()

    def map(self, slots: Iterable[Slot]) -> None:
        """Maps slots that it does not know yet."""
        new = self._unknown(slots)
        for start in range(0, len(new), MAX_DESCRIPTORS):
            self._begin_to_map(new[start : start + MAX_DESCRIPTORS])
            self.wait()

    def map_ahead(self, slots: Iterable[Slot]) -> None:
        """Lets it begin to map slots that it does not know yet, if it has nothing else to do: as
        many as one message takes. Waits for nothing; what fails is found by who uses the runner.
        """
        if self._is_due and not select.select([self._connection], [], [], 0)[0]:
            return  # it starts, or maps what the last message had
        try:
            self.wait()
            if new := self._unknown(slots):
                self._begin_to_map(new[:MAX_DESCRIPTORS])
        except VirtualMemoryError:
            pass  # no descriptor for a slot: whoever needs that one asks again
        except CandidateFailure:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            self._is_due = True  # which never comes

    def _unknown(self, slots: Iterable[Slot]) -> list[Slot]:
        return list({it.number: it for it in slots if it.number not in self._known}.values())

    def _begin_to_map(self, slots: Sequence[Slot]) -> None:
        message = MapSlots(
            numbers=tuple(slot.number for slot in slots),
            sizes=tuple(slot.size for slot in slots),
        )
        descriptors = list[int]()
        try:
            for slot in slots:
                descriptors.append(slot.memory.export())
            self._send(message, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self._is_due = True
        self._known.update(slot.number for slot in slots)

    def _ask(self, message: AnyRequest) -> Result:
        self._send(message)
        return self._answer()

    def _send(self, message: AnyRequest, descriptors: Sequence[int] = ()) -> None:
        self.wait()
        data = message.model_dump_json().encode() + b"\n"
        try:
            if descriptors:
                sent = socket.send_fds(self._connection, [data], list(descriptors))
                data = data[sent:]
            self._connection.sendall(data)
        except OSError:
            raise RunnerGone(RUNNER_ENDED) from None

    def _answer(self) -> Result:
        try:
            line = self._answers.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise RunnerGone(RUNNER_ENDED)
        answer = RUNNER_ANSWER.validate_json(line)
        if isinstance(answer, Fault):
            raise _failure(answer)
        return answer


def _failure(fault: Fault) -> CandidateFailure:
    return Crashed(fault.reason) if fault.broken else CannotLaunch(fault.reason)


def _placed(call: Places) -> PlacedCall:
    return tuple((place.slot.number, place.offset) for place in call.values())
