"""Which index of an input each index of the output really reads: found by trial of every index.

The reference is computed with one index of an axis in place of all, for each; where a head of the
output then equals what was written, that is the one it has read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from evoengine.evaluate.worker.forensics.axis_words import axis_noun, plural
from evoengine.evaluate.worker.forensics.changed_input import input_axes
from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.evaluate.worker.forensics.reference_window import ReferenceWindow
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind
from evoengine.task.schema import Task

MOST_INDICES = 48
MOST_S = 0.6  # of calls of the reference, for one input
HELD = 0.95  # of the elements of an index
HIT = 0.2  # of the elements of an index: with fewer wrong ones it is right
SHOWN = 4


class IndexMaps:
    """Looks for inputs of which the output reads other indices than it should."""

    def __init__(
        self, task: Task, window: ReferenceWindow, worst: ComparedOutput, inputs: Tensors
    ) -> None:
        """`window` is the whole case."""
        self._task = task
        self._window = window
        self._worst = worst
        self._inputs = inputs

    def leads(self) -> Iterator[Lead]:
        """One lead for each input and axis that explains all wrong indices. Raises TimeUp."""
        for name, value in self._inputs.items():
            if not value.is_floating_point() or value.dim() < 2:
                continue
            for axis in range(value.dim() - 1):
                count = value.shape[axis]
                if 2 <= count <= MOST_INDICES and count * self._window.call_s <= MOST_S:
                    yield from self._of(name, axis)

    def _of(self, name: str, axis: int) -> Iterator[Lead]:
        value = self._inputs[name]
        dims = self._worst.value.dim()
        written = [list[torch.Tensor]() for _ in range(dims)]
        expected = [list[torch.Tensor]() for _ in range(dims)]
        for number in range(value.shape[axis]):
            one = value.narrow(axis, number, 1).expand_as(value).contiguous()
            found = self._window.compute({**self._inputs, name: one})
            if found is None:
                return
            made = found[self._worst.name]
            self._note(written, self._worst.matches(made))
            right = (made - self._worst.reference).abs() <= 1e-9 * made.abs().max()
            self._note(expected, right)
        for number in range(dims):
            lead = self._lead(
                name, axis, number, torch.stack(written[number]), torch.stack(expected[number])
            )
            if lead is not None:
                yield lead
                return

    @staticmethod
    def _note(shares: Sequence[list[torch.Tensor]], held: torch.Tensor) -> None:
        for number, own in enumerate(shares):
            others = [axis for axis in range(held.dim()) if axis != number]
            own.append(held.double().mean(others) if others else held.double())

    def _lead(
        self, name: str, axis: int, out_axis: int, written: torch.Tensor, expected: torch.Tensor
    ) -> Lead | None:
        """`written` and `expected` (indices of the input, of the output): shares that match."""
        bad = self._worst.bad.double()
        others = [one for one in range(bad.dim()) if one != out_axis]
        hit = (bad.mean(others) if others else bad) > HIT
        read, right = written.argmax(0), expected.argmax(0)
        at = torch.arange(len(read))
        if not bool((expected[right, at] > HELD).all()) or not bool(hit.any()):
            return None
        if not bool((written[read, at] > HELD)[hit].all()) or bool((read == right)[hit].any()):
            return None
        read = torch.where(hit, read, right)
        own = axis_noun(self._worst.axes, out_axis)
        noun = axis_noun(input_axes(self._task, name), axis)
        places = hit.nonzero().flatten()[:SHOWN].tolist()
        shown = ", ".join(
            f"{own} {place} reads {noun} {int(read[place])}, not {int(right[place])}"
            for place in places
        )
        rule = _rule(read, right, noun)
        return Lead(
            DiagnosisKind.changed_input,
            f"{name} is read from the wrong {noun}{rule}: {shown}"
            f"{', and so on' if int(hit.sum()) > SHOWN else ''}; the output equals the reference"
            f" with these {plural(noun)} of {name}.",
            1.0,
            1.02,
            {"input": name, "read": read.tolist(), "right": right.tolist()},
        )


def _rule(read: torch.Tensor, right: torch.Tensor, noun: str) -> str:
    """The rule in words, where there is one."""
    count = len(read)
    at = torch.arange(count)
    most = max(int(read.max()), int(right.max())) + 1
    if bool((read == read[0]).all()):
        return f" ({noun} {int(read[0])} for all: its index is not used)"
    if bool(((read - right) % most == (read[0] - right[0]) % most).all()):
        step = int((read[0] - right[0]) % most)
        return f" (the next {noun}, off by one)" if step == 1 else f" (shifted by {step}, modulo)"
    if bool((read == most - 1 - right).all()):
        return f" ({plural(noun)} in reverse order)"
    for size in range(1, count):
        if bool((read == at % size).all()):
            return f" (index i % {size}, modulo, in place of another mapping)"
        if size > 1 and bool((read == at // size).all()):
            return f" (index i // {size}, a wrong size of the group)"
        if size > 1 and bool((read == at // size * size).all()):
            return f" (that of the first of every {size})"
        if size > 1 and bool((read == right // size * size).all()):
            return f" (the first of every {size})"
    return ""
