"""A part of a case on which the reference can be computed quickly, many times.

Where the reference treats the indices of an axis alike (heads, rows of a product), it is enough to
look at a few of them. Which axes these are is found by trial: the reference of the cut inputs must
be the cut reference.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.recomputed_reference import (
    Deadline,
    RecomputedReference,
    is_same,
)
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.task.expression import Value
from evoengine.task.schema import Task

RUN = 32  # neighbouring indices that are kept together, so that whole tiles are among them
LEAST_PREFIX = 64
# A beginning of an axis hides what comes from behind it, so it is kept only where the reference of
# the whole case takes longer.
QUICK_S = 0.005
LONG_S = 1.0  # a call that takes more is not measured twice
LEADING_SHARE = 0.3


@dataclass(frozen=True)
class WindowSize:
    """How many indices are kept of the last two axes of an output, of the one before, and of an
    output of one axis; of axes further ahead one is kept.
    """

    last: int
    before: int
    alone: int


EVERYTHING = WindowSize(1 << 30, 1 << 30, 1 << 30)
WHOLE_WINDOW = WindowSize(2 * RUN, 3, 8192)
ONE_PLANE = WindowSize(4 * RUN, 1, 8192)  # of a reference that takes one head after the other
PROBE = WindowSize(RUN, 1, 1024)  # where most changes are found to explain nothing


@dataclass(frozen=True, eq=False)
class Cut:
    """The indices of one dimension that are kept, in some inputs and in the outputs."""

    dim: str
    places: torch.Tensor
    inputs: tuple[tuple[str, int], ...]  # name and axis
    outputs: tuple[tuple[str, int], ...]
    extent: int = 0  # of the dimension, where what is left out may not count for what is kept

    @property
    def at_the_end(self) -> Cut | None:
        """As many of the last indices, where the first ones are kept; None where others are."""
        count = len(self.places)
        if count >= self.extent or not torch.equal(self.places, torch.arange(count)):
            return None
        return replace(self, places=torch.arange(self.extent - count, self.extent))


class ReferenceWindow:
    """The cut reference of one wrong call."""

    def __init__(
        self,
        task: Task,
        recompute: RecomputedReference,
        call: WrongCall,
        worst: ComparedOutput,
        size: WindowSize = WHOLE_WINDOW,
        whole_s: float | None = None,
    ) -> None:
        """`whole_s` is that of another window on the same call that works. Raises TimeUp."""
        self._size = size
        self._task = task
        self._recompute = recompute
        self._call = call
        self.worst = worst
        self.cuts: list[Cut] = []
        self._is_quick = True
        self.call_s = 0.0  # of one call of the reference
        self.whole_s = 0.0 if whole_s is None else whole_s  # of one call for the whole case
        # whether the reference gives on the CPU what is expected
        self.works = self._find(whole_s is not None)

        self.inputs = self.cut_inputs(call.inputs)  # in the dtypes of the task

    def resized(self, size: WindowSize) -> ReferenceWindow:
        """Another window on the same call, where this one works. Raises TimeUp."""
        return ReferenceWindow(
            self._task, self._recompute, self._call, self.worst, size, self.whole_s
        )

    @property
    def is_scattered(self) -> bool:
        """Whether indices of the output are not those of the whole case."""
        return any(not torch.equal(cut.places, torch.arange(len(cut.places))) for cut in self.cuts)

    def cut_inputs(self, tensors: Tensors) -> Tensors:
        """The window's part of inputs of the whole case."""
        found = dict(tensors)
        for cut in self.cuts:
            for name, axis in cut.inputs:
                found[name] = found[name].index_select(axis, cut.places)
        return found

    def cut_output(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """The window's part of output `name`, or of a mask over it."""
        for cut in self.cuts:
            for output, axis in cut.outputs:
                if output == name:
                    value = value.index_select(axis, cut.places)
        return value

    def compute(
        self,
        tensors: Tensors,
        scalars: Mapping[str, Value] | None = None,
        mode: Deadline | None = None,
    ) -> Tensors | None:
        """The reference for cut inputs; None where it fails or has other shapes."""
        extents = {cut.dim: len(cut.places) for cut in self.cuts}
        found = self._recompute(tensors, {**extents, **(scalars or {})}, mode)
        if found is None:
            return None
        for name, value in self._call.reference.items():
            if found[name].shape != self._shape(name, value):
                return None
        return found

    def _shape(self, name: str, value: torch.Tensor) -> torch.Size:
        shape = list(value.shape)
        for cut in self.cuts:
            for output, axis in cut.outputs:
                if output == name:
                    shape[axis] = len(cut.places)
        return torch.Size(shape)

    def _find(self, whole_is_known: bool) -> bool:
        if not whole_is_known:
            if not self._holds([]):
                return False
            self.whole_s = self.call_s
        self.call_s = self.whole_s
        self._is_quick = self.whole_s < QUICK_S
        dims = self._cuttable()
        quick = [next(self._options(dim)) for dim in dims]
        if quick and self._holds_anywhere(quick):
            self.cuts = quick
            return True
        for dim in dims:
            for option in self._options(dim):
                if self._holds_anywhere([*self.cuts, option]):
                    self.cuts.append(option)
                    break
        if not self.cuts:
            self.call_s = self.whole_s
            return True
        return self._holds(self.cuts)

    def _timed(self, tensors: Tensors) -> Tensors | None:
        """The reference for cut inputs; notes how long it takes this thread, which other processes
        make no longer. One that is not quick is repeated, because the very first one loads code.
        """
        self.call_s = math.inf
        for _ in range(2):
            start = time.thread_time()
            found = self.compute(tensors)
            self.call_s = min(self.call_s, time.thread_time() - start)
            if not QUICK_S <= self.call_s < LONG_S:
                break
        return found

    def _holds(self, cuts: list[Cut]) -> bool:
        """Whether the reference of the cut inputs is the cut reference."""
        before, self.cuts = self.cuts, cuts
        try:
            found = self._timed(self.cut_inputs(self._call.inputs))
            return found is not None and all(
                is_same(found[name], self.cut_output(name, value))
                for name, value in self._call.reference.items()
            )
        finally:
            self.cuts = before

    def _holds_anywhere(self, cuts: list[Cut]) -> bool:
        """Whether cuts hold, and not only because they keep the beginning of an axis: behind a
        causal mask that hides what a mistake may have seen.
        """
        if not self._holds(cuts):
            return False
        ends = [cut.at_the_end or cut for cut in cuts]
        if all(one is other for one, other in zip(ends, cuts, strict=True)):
            return True
        call_s = self.call_s
        holds = self._holds(ends)
        self.call_s = call_s
        return holds

    def _cuttable(self) -> list[str]:
        """The dimensions of the worst output that are worth cutting."""
        axes = self.worst.axes
        return [
            name
            for axis, name in enumerate(axes)
            if axes.count(name) == 1 and self.worst.value.shape[axis] > self._kept(axis)
        ]

    def _kept(self, axis: int) -> int:
        dims = len(self.worst.axes)
        if dims == 1:
            return self._size.alone
        if axis >= dims - 2:
            return self._size.last
        return 1 if axis < dims - 3 and self._size is not EVERYTHING else self._size.before

    def _options(self, dim: str) -> Iterator[Cut]:
        outputs = tuple(
            (name, list(spec.shape).index(dim))
            for name, spec in self._task.outputs.items()
            if spec.shape.count(dim) == 1
        )
        inputs = tuple(
            (name, list(spec.shape).index(dim))
            for name, spec in self._task.inputs.items()
            if spec.shape is not None and spec.shape.count(dim) == 1
        )
        axis = self.worst.axes.index(dim)
        groups = [inputs, *((one,) for one in inputs if len(inputs) > 1)]
        chosen = self._places(axis)
        for group in groups:
            yield Cut(dim, chosen, group, outputs, self.worst.value.shape[axis])
        for prefix in () if self._is_quick else self._prefixes(axis):
            for group in groups:
                yield Cut(dim, prefix, group, outputs)

    def _places(self, axis: int) -> torch.Tensor:
        """Runs of indices that are hit most, and some in between."""
        shares = self._shares(axis)
        kept = self._kept(axis)
        run = RUN if kept >= RUN else 1
        lacking = -shares.numel() % run
        hit = torch.nn.functional.pad(shares, (0, lacking)).view(-1, run).sum(1)
        count = min(kept // run, len(hit))
        most = hit.topk(max(1, (count + 1) // 2)).indices
        between = torch.linspace(len(hit) - 1, 0, count - len(most)).long()
        starts = torch.cat([most, between]).unique() * run
        places = (starts.view(-1, 1) + torch.arange(run)).flatten()
        inside: torch.Tensor = places[places < shares.numel()]
        return inside

    def _prefixes(self, axis: int) -> Iterator[torch.Tensor]:
        shares = self._shares(axis)
        extent = shares.numel()
        for divisor in (8, 4, 2):
            count = extent // divisor
            if count >= LEAST_PREFIX and float(shares[:count].max()) > LEADING_SHARE * float(
                shares.max()
            ):
                yield torch.arange(count)
                return

    def _shares(self, axis: int) -> torch.Tensor:
        bad = self.worst.bad
        others = [other for other in range(bad.dim()) if other != axis]
        if not others:
            return bad.double()
        counts = bad.view(torch.uint8).sum(dim=others, dtype=torch.int32)
        shares: torch.Tensor = counts.double() * counts.numel() / max(1, bad.numel())
        return shares
