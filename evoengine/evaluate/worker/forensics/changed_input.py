"""One change of the inputs of the reference, as a kernel's mistake would be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind
from evoengine.task.expression import Value
from evoengine.task.schema import Task

MOST_TILES = 4  # of the sizes that a plan names
Change = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class ChangedInputs:
    """The reference's inputs with one change.

    `change` maps the whole inputs to others, before they are cut; `cut_change` those of a window.
    """

    kind: DiagnosisKind
    words: str  # "the reference with ..."
    change: Callable[[Tensors], Tensors] | None = None
    cut_change: Callable[[Tensors], Tensors] | None = None
    scalars: Mapping[str, Value] = field(default_factory=dict)
    weight: float = 1.0
    mistake: str = ""  # in the words of an engineer: "scale is missing"
    least: float = 0.0  # share that it must explain, where it explains a part by chance
    # what is done with the outputs as well; such a change is tried on the whole case
    after: Callable[[Tensors], Tensors] | None = None
    is_repeated: bool = False  # whether the reference is applied again to what it updated in place


def each_input(names: Sequence[str], change: Change) -> Callable[[Tensors], Tensors]:
    """A change of some inputs, each by itself."""
    return lambda given: {**given, **{name: change(given[name]) for name in names}}


def one_input(
    name: str, words: str, change: Change, weight: float = 1.0, mistake: str = ""
) -> ChangedInputs:
    """A change of one input."""
    made = each_input((name,), change)
    return ChangedInputs(DiagnosisKind.changed_input, words, made, weight=weight, mistake=mistake)


def input_axes(task: Task, name: str) -> tuple[str, ...]:
    """The formulas of an input's extents, as in the task file."""
    return tuple(task.inputs[name].shape or ())


def ends_of(extent: int, tiles: Sequence[int]) -> list[int]:
    """How many may be missing at an end: one, a tile, the rest beyond whole tiles, half."""
    counts = [1]
    for tile in (*tiles, 8, 16, 32, 64, 128):
        counts += [extent % tile] if 0 < extent % tile < extent else []
        counts += [tile] if tile < extent else []
    counts += [extent // 2]
    counts += [extent - tile for tile in tiles[:MOST_TILES] if tile < extent]
    return [count for count in dict.fromkeys(counts) if 0 < count < extent]
