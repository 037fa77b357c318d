"""Changes of one input or scalar of the reference that are mistakes of real kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from evoengine.evaluate.worker.inputs import Tensors, scalar_inputs
from evoengine.records import DiagnosisKind
from evoengine.task import expression
from evoengine.task.expression import Value
from evoengine.task.schema import Task

MOST_TILES = 4  # sizes of a missing tile that are tried
PRECISIONS = (
    ("bf16", torch.bfloat16),
    ("e4m3", torch.float8_e4m3fn),
    ("e5m2", torch.float8_e5m2),
    ("fp16", torch.float16),
)
TF32_BITS = 13  # of a float32 that tf32 drops
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


def changed_scalars(task: Task, case: str) -> Iterator[ChangedInputs]:
    """Flags inverted; scalars left out, applied twice, inverted, negated; dimensions off by one."""
    scope = task.scope(case)
    for name, value in scope.items():
        if isinstance(value, bool):
            words = f"{name} = {str(not value).lower()}"
            yield ChangedInputs(
                DiagnosisKind.changed_flag, words, scalars={name: not value}, weight=1.08
            )
    for name, spec in task.inputs.items():
        if spec.value is None:
            continue
        value = scalar_inputs(task, case)[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        yield from _other_values(name, float(value))
    yield from _other_dims(task, case)
    yield from _pairs_left_out(task, case)


def _pairs_left_out(task: Task, case: str) -> Iterator[ChangedInputs]:
    """Two scalars that are left out together, as both corrections of a bias."""
    known = scalar_inputs(task, case)
    names = [name for name, spec in task.inputs.items() if spec.value is not None]
    names = [name for name in names if isinstance(known[name], float)]
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            words = f"{first} and {second} left out (as if 1)"
            yield ChangedInputs(
                DiagnosisKind.changed_scalar, words, scalars={first: 1.0, second: 1.0}
            )


def _other_values(name: str, value: float) -> Iterator[ChangedInputs]:
    named: dict[str, float] = {
        f"{name} left out (as if 1)": 1.0,
        f"{name} left out (as if 0)": 0.0,
        f"{name} applied twice ({name} squared)": value * value,
        f"-{name}": -value,
        f"2 {name}": 2 * value,
        f"{name}/2": value / 2,
        f"1 - {name}": 1 - value,
    }
    if value > 0:
        named |= {
            f"sqrt({name})": value**0.5,
            f"1/{name}": 1 / value,
            f"log2(e) {name}": 1.4426950408889634 * value,
            f"ln(2) {name}": 0.6931471805599453 * value,
        }
    for words, other in named.items():
        plain = words.startswith(f"{name} ")
        if other != value:
            yield ChangedInputs(
                DiagnosisKind.changed_scalar,
                words if plain else f"{words} in place of {name}",
                scalars={name: other},
                weight=1.05 if plain or words.startswith("-") else 0.985,
            )


def _other_dims(task: Task, case: str) -> Iterator[ChangedInputs]:
    """The scalars and dimensions that follow where one whole number is off by one."""
    scope = task.scope(case)
    for name, value in scope.items():
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        for step in (-1, 1):
            other = {**scope, name: value + step}
            try:
                scalars = {
                    key: expression.parse(spec.value).evaluate(other)
                    for key, spec in task.inputs.items()
                    if spec.value is not None
                }
            except (ArithmeticError, ValueError):
                continue
            sign = "+" if step > 0 else "-"
            yield ChangedInputs(
                DiagnosisKind.changed_scalar,
                f"{name} {sign} 1 in place of {name} in its scalars",
                scalars={**scalars, name: value + step},
            )


def exchanged_inputs(task: Task, inputs: Tensors) -> Iterator[ChangedInputs]:
    """Inputs taken for one another, other layouts of one, and one that is off by one index."""
    yield from _exchanged(inputs)
    for name, value in inputs.items():
        yield from _layouts(task, name, value)
    for name, value in inputs.items():
        for axis, dim in enumerate(_axes(task, name)):
            for shift in (1, -1) if value.shape[axis] > 2 else ():
                words = f"{name} shifted by {shift} along {dim}"
                yield _one(name, words, lambda x, a=axis, s=shift: x.roll(-s, a))  # type: ignore[misc]


def changed_inputs(task: Task, inputs: Tensors, tiles: Sequence[int]) -> Iterator[ChangedInputs]:
    """One input read wrongly, the likelier mistakes first; `tiles` are sizes of the plan."""
    for name in inputs:
        yield from _missing_ends(task, inputs, name, tiles)
    yield from _shared_indices(task, inputs)
    yield from _shortened(task, inputs, tiles)
    for name, value in inputs.items():
        yield from _indexed(task, name, value, tiles)
    for name, value in inputs.items():
        yield from _valued(name, value)


def rounded_inputs(inputs: Tensors) -> Iterator[ChangedInputs]:
    """One input, and all of them, in a narrower type."""
    floating = [name for name, value in inputs.items() if value.is_floating_point()]
    for words, dtype in PRECISIONS:
        whole = [name for name in floating if inputs[name].dtype != dtype]
        for names in dict.fromkeys([tuple(whole), *((name,) for name in whole)]):
            if names:
                yield ChangedInputs(
                    DiagnosisKind.low_precision,
                    f"{_listed(names)} rounded to {words}",
                    cut_change=_each(names, lambda x, dtype=dtype: x.float().to(dtype).float()),  # type: ignore[misc]
                )
                if dtype == torch.float8_e4m3fn:
                    yield ChangedInputs(
                        DiagnosisKind.low_precision,
                        f"{_listed(names)} rounded to {words} with a scale",
                        cut_change=_each(names, _scaled_e4m3),
                    )
    single = tuple(name for name in floating if inputs[name].dtype == torch.float32)
    if single:
        words = f"{_listed(single)} rounded to tf32"
        yield ChangedInputs(DiagnosisKind.low_precision, words, cut_change=_each(single, to_tf32))


def to_tf32(value: torch.Tensor) -> torch.Tensor:
    """float32 values with 10 bits of fraction, rounded to nearest."""
    bits = value.float().contiguous().view(torch.int32)
    return ((bits + (1 << (TF32_BITS - 1))) & -(1 << TF32_BITS)).view(torch.float32)


def _scaled_e4m3(value: torch.Tensor) -> torch.Tensor:
    largest = (
        value.float()
        .abs()
        .amax(dim=tuple(range(max(0, value.dim() - 2), value.dim())), keepdim=True)
    )
    scale = torch.where(largest > 0, largest / 448.0, torch.ones_like(largest))
    return (value.float() / scale).to(torch.float8_e4m3fn).float() * scale


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


def _each(names: Sequence[str], change: Change) -> Callable[[Tensors], Tensors]:
    return lambda given: {**given, **{name: change(given[name]) for name in names}}


def _one(name: str, words: str, change: Change, weight: float = 1.0) -> ChangedInputs:
    return ChangedInputs(DiagnosisKind.changed_input, words, _each((name,), change), weight=weight)


def _axes(task: Task, name: str) -> tuple[str, ...]:
    return tuple(task.inputs[name].shape or ())


def _missing_ends(
    task: Task, inputs: Tensors, name: str, tiles: Sequence[int]
) -> Iterator[ChangedInputs]:
    """The end or the beginning of an axis of an input left out: as if zero."""
    value = inputs[name]
    if not value.is_floating_point():
        return
    for axis, dim in enumerate(_axes(task, name)):
        for count in _ends(value.shape[axis], tiles):
            what = f"the last {count}" if count > 1 else "the last one"
            yield _one(name, f"{what} along {dim} of {name} left out", _zeroed(axis, -count))
        for count in _ends(value.shape[axis], tiles)[:2]:
            what = f"the first {count}" if count > 1 else "the first one"
            yield _one(name, f"{what} along {dim} of {name} left out", _zeroed(axis, count), 0.99)


def _ends(extent: int, tiles: Sequence[int]) -> list[int]:
    """How many may be missing at an end: one, a tile, the rest beyond whole tiles, half."""
    counts = [1]
    for tile in (*tiles, 8, 16, 32, 64, 128):
        counts += [extent % tile] if 0 < extent % tile < extent else []
        counts += [tile] if tile < extent else []
    counts += [extent // 2]
    counts += [extent - tile for tile in tiles[:MOST_TILES] if tile < extent]
    return [count for count in dict.fromkeys(counts) if 0 < count < extent]


def _zeroed(axis: int, count: int) -> Change:
    def change(value: torch.Tensor) -> torch.Tensor:
        made = value.clone()
        start = 0 if count > 0 else value.shape[axis] + count
        made.narrow(axis, start, abs(count)).zero_()
        return made

    return change


def _layouts(task: Task, name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """Two axes swapped, or the memory read as if they were."""
    axes, shape = _axes(task, name), value.shape
    for first in range(value.dim()):
        for second in range(first + 1, value.dim()):
            if min(shape[first], shape[second]) < 2:
                continue

            def swap(given: torch.Tensor, first: int = first, second: int = second) -> torch.Tensor:
                return given.transpose(first, second).reshape(given.shape)

            def back(given: torch.Tensor, first: int = first, second: int = second) -> torch.Tensor:
                order = list(given.shape)
                order[first], order[second] = order[second], order[first]
                return given.reshape(order).transpose(first, second).contiguous()

            words = f"{name} transposed ({axes[first]} and {axes[second]} swapped)"
            yield _one(name, words, back, 1.02)
            if shape[first] != shape[second]:
                yield _one(name, f"{words}, read the other way", swap)
    if value.dim() == 1 or not value.is_floating_point():
        return
    columns = shape[-1]
    for more in (-8, -1, 1, 8):
        stride = columns + more
        if stride > 0:
            words = f"{name} read with a leading dimension of {stride} in place of {columns}"
            yield _one(name, words, _restrided(stride), 0.99)


def _restrided(stride: int) -> Change:
    def change(value: torch.Tensor) -> torch.Tensor:
        rows, columns = value.shape[-2:]
        place = torch.arange(rows).view(-1, 1) * stride + torch.arange(columns)
        planes = value.reshape(-1, rows * columns)
        return planes[:, place.flatten() % (rows * columns)].reshape(value.shape)

    return change


def _exchanged(inputs: Tensors) -> Iterator[ChangedInputs]:
    """Two inputs of one shape swapped, or one read in place of another."""
    names = list(inputs)
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            one, other = inputs[first], inputs[second]
            if one.shape != other.shape or one.dtype != other.dtype:
                continue
            yield ChangedInputs(
                DiagnosisKind.changed_input,
                f"{first} and {second} exchanged",
                cut_change=lambda given, a=first, b=second: {**given, a: given[b], b: given[a]},  # type: ignore[misc]
            )
            for target, source in ((first, second), (second, first)):
                yield ChangedInputs(
                    DiagnosisKind.changed_input,
                    f"{source} read in place of {target}",
                    cut_change=lambda given, a=target, b=source: {**given, a: given[b]},  # type: ignore[misc]
                )


def _shared_indices(task: Task, inputs: Tensors) -> Iterator[ChangedInputs]:
    """Two inputs read at the same wrong index of a dimension, as keys and values of a head."""
    dims = dict.fromkeys(dim for name in inputs for dim in _axes(task, name))
    for dim in dims:
        axis = {
            name: _axes(task, name).index(dim)
            for name in inputs
            if _axes(task, name).count(dim) == 1
        }
        holders = list(axis)
        pairs = [(a, b) for place, a in enumerate(holders) for b in holders[place + 1 :]]
        for pair in reversed(pairs):
            extent = inputs[pair[0]].shape[axis[pair[0]]]
            at = torch.arange(extent)
            named = {
                f"{dim} = 0": 0 * at,
                f"{dim} i + 1": (at + 1) % extent,
                f"{dim} i - 1": (at - 1) % extent,
            }
            for small in (2, 3, 4, 8) if extent <= 128 else ():
                if small < extent:
                    named |= {f"{dim} i // {small}": at // small, f"{dim} i % {small}": at % small}
                    named[f"{dim} i % {extent // small}"] = at % (extent // small)
            for words, places in named.items():
                if torch.equal(places, at):
                    continue

                def change(
                    given: Tensors,
                    pair: tuple[str, str] = pair,
                    places: torch.Tensor = places,
                    axis: Mapping[str, int] = axis,
                ) -> Tensors:
                    moved = {name: given[name].index_select(axis[name], places) for name in pair}
                    return {**given, **moved}

                yield ChangedInputs(
                    DiagnosisKind.changed_input,
                    f"{' and '.join(pair)} read at {words} where {dim} i is meant",
                    change,
                )


def _shortened(task: Task, inputs: Tensors, tiles: Sequence[int]) -> Iterator[ChangedInputs]:
    """A part of a dimension left out in several inputs at once, as of keys and values."""
    dims = dict.fromkeys(dim for name in inputs for dim in _axes(task, name))
    for dim in dims:
        holders = [name for name in inputs if _axes(task, name).count(dim) == 1]
        if len(holders) < 2:
            continue
        axis = {name: _axes(task, name).index(dim) for name in holders}
        extent = inputs[holders[0]].shape[axis[holders[0]]]
        pairs = [
            (first, second)
            for place, first in enumerate(holders)
            for second in holders[place + 1 :]
        ]
        for pair in reversed(pairs):
            for count in _ends(extent, tiles)[:8]:
                what = f"the last {count}" if count > 1 else "the last one"
                yield _short(pair, axis, f"{what} along {dim}", 0, count)
            for count in _ends(extent, tiles)[:3]:
                what = f"the first {count}" if count > 1 else "the first one"
                yield _short(pair, axis, f"{what} along {dim}", count, 0)


def _short(
    pair: tuple[str, str], axis: Mapping[str, int], what: str, before: int, behind: int
) -> ChangedInputs:
    """Both inputs without so many indices at the beginning and at the end."""

    def change(given: Tensors) -> Tensors:
        found = dict(given)
        for name in pair:
            kept = given[name].shape[axis[name]] - before - behind
            if kept > 0:
                found[name] = given[name].narrow(axis[name], before, kept)
        return found

    words = f"{what} of {' and '.join(pair)} left out"
    return ChangedInputs(DiagnosisKind.changed_input, words, cut_change=change)


def _indexed(
    task: Task, name: str, value: torch.Tensor, tiles: Sequence[int]
) -> Iterator[ChangedInputs]:
    """Indices of an axis off by one or by a tile, reversed, broadcast, shared."""
    for axis, dim in enumerate(_axes(task, name)):
        extent = value.shape[axis]
        if extent < 2:
            continue
        for shift in dict.fromkeys((*tiles[:MOST_TILES], *(-tile for tile in tiles[:2]))):
            if abs(shift) < extent:
                words = f"{name} shifted by {shift} along {dim}"
                yield _one(name, words, lambda x, a=axis, s=shift: x.roll(-s, a))  # type: ignore[misc]
        at = torch.arange(extent)
        named = {
            f"{name} reversed along {dim}": extent - 1 - at,
            f"{dim} = 0 of {name} everywhere": torch.zeros_like(at),
            f"pairs of {name} swapped along {dim}": (at ^ 1).clamp_max(extent - 1),
            f"the halves of {name} swapped along {dim}": (at + extent // 2) % extent,
        }
        if extent <= 64:
            for small in (2, 4, 8):
                if small < extent:
                    named[f"{dim} i // {small} of {name} at {dim} i"] = at // small
                    named[f"{dim} i % {small} of {name} at {dim} i"] = at % small
                    named[f"{dim} i % {extent // small} of {name} at {dim} i"] = at % (
                        extent // small
                    )
        for tile in tiles[:MOST_TILES]:
            if tile < extent:
                named[f"the first {tile} along {dim} of {name} for every tile"] = at % tile
        for words, places in named.items():
            if not torch.equal(places, at):
                yield _one(name, words, _picked(axis, places), 0.99)


def _picked(axis: int, places: torch.Tensor) -> Change:
    return lambda value: value.index_select(axis, places)


def _valued(name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    if value.dtype == torch.bool:
        words = f"{name} inverted"
        yield ChangedInputs(DiagnosisKind.mask, words, _each((name,), torch.logical_not))
        words = f"{name} left out"
        yield ChangedInputs(DiagnosisKind.mask, words, _each((name,), torch.ones_like))
        yield ChangedInputs(
            DiagnosisKind.mask, f"nothing of {name}", _each((name,), torch.zeros_like)
        )
        return
    if not value.is_floating_point():
        most, least = int(value.max()), int(value.min())
        for step in (1, -1):
            words = f"{name} {'+' if step > 0 else '-'} 1 in place of {name}"
            yield _one(name, words, lambda x, s=step: (x + s).clamp(least, most))  # type: ignore[misc]
        yield _one(name, f"{name} as if all 0", torch.zeros_like)
        return
    named: dict[str, Change] = {
        f"{name} as if 0": torch.zeros_like,
        f"{name} as if 1": torch.ones_like,
        f"-{name} in place of {name}": torch.neg,
        f"{name} squared": lambda x: x.double() * x.double(),
        f"2 {name} in place of {name}": lambda x: 2 * x.double(),
        f"1 + {name} in place of {name}": lambda x: 1 + x.double(),
        f"1/{name} in place of {name}": lambda x: 1 / x.double(),
        f"|{name}| in place of {name}": torch.abs,
    }
    for words, change in named.items():
        yield ChangedInputs(
            DiagnosisKind.changed_input, words, cut_change=_each((name,), change), weight=0.99
        )
