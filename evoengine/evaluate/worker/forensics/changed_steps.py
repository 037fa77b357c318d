"""The reference with one step left out, done twice, or done as kernels do it wrongly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.reference_steps import Place, ReferenceStep
from evoengine.records import DiagnosisKind

UNARY = {
    "exp", "sqrt", "rsqrt", "gelu", "relu", "tanh", "sigmoid", "silu", "softplus", "log", "abs",
    "neg", "square", "exp2", "log2", "log1p", "expm1", "erf", "sin", "cos", "reciprocal", "sign",
    "elu", "leaky_relu", "mish", "hardswish", "clamp", "clamp_min", "clamp_max", "round", "floor",
    "relu_", "exp_", "sqrt_", "softmax", "log_softmax", "cumsum", "cumprod", "flip", "normalize",
    "layer_norm", "rms_norm", "group_norm", "pow", "dropout", "nan_to_num", "tril", "triu",
    "masked_fill", "masked_fill_", "where", "transpose", "permute", "roll",
}  # fmt: skip
BINARY = {"mul", "div", "add", "sub", "rsub", "rdiv", "maximum", "minimum"}
REDUCTIONS = {
    "mean", "sum", "amax", "amin", "max", "min", "var", "std", "logsumexp", "norm", "vector_norm",
    "prod", "var_mean",
}  # fmt: skip
EXTREMES = {"amax", "amin", "max", "min"}
CONTRACTIONS = {"matmul", "einsum", "linear", "baddbmm", "addmm", "conv2d", "conv1d"}
HALVES = (("bf16", torch.bfloat16), ("fp16", torch.float16))
E4M3 = ("e4m3", torch.float8_e4m3fn)
MMA_K = 16  # products that a tensor instruction adds at once
MOST_CHUNKS = 256
MOST_TILES = 4

Instead = Callable[..., Any]  # (func, args, kwargs) -> the step's result


@dataclass(frozen=True, eq=False)
class ChangedStep:
    """A change of one step, or of two that belong together."""

    kind: DiagnosisKind
    words: str  # "the reference ..."
    instead: Mapping[Place, Instead]
    weight: float = 1.0
    # whether values can only come near those of a kernel that errs so, as sums in another order do
    is_rough: bool = False


def changed_steps(
    steps: Sequence[ReferenceStep], feeds: Mapping[Place, Place], tiles: Sequence[int]
) -> Iterator[ChangedStep]:
    """All changes of all steps, the likelier ones first."""
    by_place = {step.place: step for step in steps}
    for step in steps:
        yield from _masks(step)
    for step in steps:
        yield from _left_out(step)
    for step in steps:
        yield from _roots(step, by_place, feeds)
        yield from _reductions(step, tiles)
        yield from _softmax(step, tiles)
        yield from _variants(step)
    for step in steps:
        yield from _twice(step)
        yield from _contractions(step, tiles)


def imprecise_steps(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """Sums in narrow accumulators, and results rounded to narrow types."""
    for step in steps:
        if step.name == "matmul":
            for name, dtype in HALVES:
                yield _precision(
                    step, f"summed in {name} in {step.words}", _narrow_matmul(dtype), rough=True
                )
        elif step.name in ("sum", "mean", "var", "cumsum"):
            for name, dtype in HALVES:
                yield _precision(
                    step, f"summed in {name} in {step.words}", _narrow_sum(dtype), rough=True
                )
    for step in steps:
        if step.name in UNARY | BINARY | REDUCTIONS | CONTRACTIONS:
            for name, dtype in (*HALVES, E4M3):
                words = f"with the result of {step.words} rounded to {name}"
                yield _precision(step, words, _rounded_result(dtype), rough=False)


def _precision(step: ReferenceStep, words: str, instead: Instead, rough: bool) -> ChangedStep:
    return ChangedStep(DiagnosisKind.low_precision, words, {step.place: instead}, 1.0, rough)


def _change(step: ReferenceStep, words: str, instead: Instead, weight: float = 1.0) -> ChangedStep:
    return ChangedStep(DiagnosisKind.changed_step, words, {step.place: instead}, weight)


def _first(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
    return args[0]


def _second(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
    """The second operand, as large as the result."""
    first, second = args[0], args[1]
    return (
        torch.as_tensor(second, dtype=torch.float64, device=first.device).expand_as(first)
        if isinstance(first, torch.Tensor) and not isinstance(second, torch.Tensor)
        else second
    )


def _left_out(step: ReferenceStep) -> Iterator[ChangedStep]:
    if step.name in UNARY and not step.name.startswith(("masked_fill", "triu", "tril")):
        yield _change(step, f"without {step.name} ({step.words})", _first, 1.02)
    if step.name == "where":
        yield _change(
            step, f"with the condition always true in {step.words}", lambda f, a, k: a[1] + 0 * a[2]
        )
        yield _change(
            step,
            f"with the condition inverted in {step.words}",
            lambda f, a, k: f(~a[0], *a[1:], **k),
        )
    if step.name in BINARY:
        words = {"mul": "multiplying", "div": "dividing", "add": "adding", "sub": "subtracting"}
        doing = words.get(step.name, step.name)
        weight = 1.02
        if step.name in ("rsub", "rdiv"):
            yield _change(step, f"with {step.words} left out", _first, weight)
            return
        yield _change(step, f"without {doing} the second operand of {step.words}", _first, weight)
        yield _change(step, f"with the second operand alone in {step.words}", _second, 0.99)
    if step.name in ("sub", "rsub"):
        yield _change(step, f"with + in place of - in {step.words}", _plus)
        yield _change(
            step, f"with the operands of {step.words} exchanged", lambda f, a, k: -f(*a, **k)
        )
    if step.name == "add":
        yield _change(step, f"with - in place of + in {step.words}", lambda f, a, k: a[0] - a[1])
        yield _change(
            step,
            f"with the second operand minus the first in {step.words}",
            lambda f, a, k: a[1] - a[0],
            0.98,
        )
    if step.name == "mul":
        yield _change(
            step, f"with / in place of * in {step.words}", lambda f, a, k: a[0] / a[1], 0.98
        )
    if step.name == "div":
        yield _change(
            step, f"with * in place of / in {step.words}", lambda f, a, k: a[0] * a[1], 0.98
        )
    if step.name in ("mean", "sum", "amax", "logsumexp", "norm"):
        neutral = 0.0
        yield _change(
            step,
            f"with 0 in place of {step.words}",
            lambda f, a, k: torch.full_like(f(*a, **k), neutral),
        )


def _plus(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
    return args[0] + args[1]


def _twice(step: ReferenceStep) -> Iterator[ChangedStep]:
    if step.name in UNARY - {"neg", "abs", "relu", "transpose", "permute", "where"}:
        yield _change(
            step,
            f"with {step.name} applied twice ({step.words})",
            lambda f, a, k: f(f(*a, **k), *a[1:], **k),
        )
    if step.name in ("mul", "div", "add", "sub"):
        doing = {"mul": "multiplied", "div": "divided", "add": "added", "sub": "subtracted"}
        yield _change(
            step,
            f"with the second operand {doing[step.name]} twice in {step.words}",
            lambda f, a, k: f(f(*a, **k), a[1], **k),
        )
        yield _change(
            step,
            f"with half the second operand in {step.words}",
            lambda f, a, k: f(a[0], a[1] / 2, **k),
            0.97,
        )


def _masks(step: ReferenceStep) -> Iterator[ChangedStep]:
    """A mask that is missing, inverted or shifted by one."""

    def mask(words: str, instead: Instead) -> ChangedStep:
        return ChangedStep(DiagnosisKind.mask, words, {step.place: instead}, 1.06)

    if step.name in ("masked_fill", "masked_fill_"):
        yield mask(f"without the mask ({step.words})", _first)
        yield mask(
            f"with the mask inverted ({step.words})",
            lambda f, a, k: f(a[0], ~a[1], *a[2:], **k),
        )
        yield mask(
            f"with 0 in place of the masked value ({step.words})",
            lambda f, a, k: f(a[0], a[1], 0.0),
        )
        yield mask(
            f"with the mask transposed ({step.words})",
            lambda f, a, k: f(a[0], a[1].transpose(-1, -2), *a[2:], **k),
        )
    if step.name in ("triu", "tril"):
        yield mask(f"without the triangle ({step.words})", _first)
        for shift in (1, -1):
            hidden = "more" if (shift < 0) == (step.name == "triu") else "fewer"
            yield mask(
                f"with the mask off by one, {hidden} elements kept by {step.name} ({step.words})",
                lambda f, a, k, s=shift: f(a[0], _diagonal(a, k) + s),
            )
        other = torch.tril if step.name == "triu" else torch.triu
        yield mask(
            f"with the mask inverted ({step.words})",
            lambda f, a, k: other(a[0], _diagonal(a, k)),
        )


def _diagonal(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    return int(args[1] if len(args) > 1 else kwargs.get("diagonal", 0))


def _roots(
    step: ReferenceStep, by_place: Mapping[Place, ReferenceStep], feeds: Mapping[Place, Place]
) -> Iterator[ChangedStep]:
    """An eps that is added before a root and not behind it, or the reverse."""
    before = by_place.get(feeds.get(step.place, (step.place[0], -1)))
    if before is None:
        return
    held: list[Any] = []

    def take(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
        held[:] = [args[1]]
        return args[0]

    if before.name == "add" and step.name in ("sqrt", "rsqrt"):

        def outside(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
            root = args[0].sqrt() + held[0]
            return root if step.name == "sqrt" else 1 / root

        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"with the term of {before.words} added outside of the root, not inside",
            {before.place: take, step.place: outside},
            1.03,
        )
    if before.name == "sqrt" and step.name == "add":

        def skip(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
            return args[0]

        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"with the term of {step.words} added inside of the root, not outside",
            {before.place: skip, step.place: lambda f, a, k: (a[0] + a[1]).sqrt()},
            1.03,
        )
    if before.name in ("max", "amax") and step.name in ("sub",):
        return


def _dims(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
    """The dimensions that a reduction reduces."""
    given = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
    whole = tuple(range(args[0].dim()))
    if given is None:
        return whole
    chosen = (given,) if isinstance(given, int) else tuple(given)
    return tuple(axis % args[0].dim() for axis in chosen)


def _reductions(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    if step.name not in REDUCTIONS:
        return

    def count(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
        return math.prod(args[0].shape[axis] for axis in _dims(args, kwargs))

    if step.name == "mean":
        yield _change(
            step,
            f"without dividing by the count in {step.words}",
            lambda f, a, k: f(*a, **k) * count(a, k),
            1.03,
        )
    if step.name in ("mean", "var"):
        yield _change(
            step,
            f"dividing by the count minus 1 in {step.words}",
            lambda f, a, k: f(*a, **k) * (count(a, k) / max(1, count(a, k) - 1)),
            1.03,
        )
    if step.name in ("var", "std"):
        yield _change(
            step,
            f"dividing by the count in {step.words}",
            lambda f, a, k: (
                f(*a, **k)
                * ((max(1, count(a, k) - 1) / count(a, k)) ** (1.0 if step.name == "var" else 0.5))
            ),
            1.03,
        )
    if step.name == "sum":
        yield _change(
            step, f"dividing by the count in {step.words}", lambda f, a, k: f(*a, **k) / count(a, k)
        )
    sizes = [("the last one", 1), ("the first one", -1)]
    for tile in tiles[:MOST_TILES]:
        sizes += [(f"the last {tile}", tile), (f"all but the first {tile}", 0 - 10_000_000 - tile)]
    sizes += [("the second half", 0)]
    for words, size in sizes:
        yield _change(step, f"with {words} left out of {step.words}", _partial(size), 0.99)
    yield _change(step, f"over the whole in place of one row in {step.words}", _over_all, 0.97)


def _partial(size: int) -> Instead:
    """A reduction over a part: without the last `size`, the first one (-1), the second half (0), or
    over the first tile alone (below -10_000_000).
    """

    def change(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        axis = _dims(args, kwargs)[-1]
        extent = args[0].shape[axis]
        if size < -10_000_000:
            span = (0, min(extent, -size - 10_000_000))
        else:
            span = (1, extent) if size == -1 else (0, extent - (size or extent // 2))
        if span[1] <= span[0]:
            return func(*args, **kwargs)
        part = args[0].narrow(axis, span[0], span[1] - span[0])
        found = func(part, *args[1:], **kwargs)
        if getattr(func, "__name__", "") == "mean":  # the count is the whole one
            found = found * ((span[1] - span[0]) / extent)
        return found

    return change


def _over_all(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    found = func(*args, **kwargs)
    name = getattr(func, "__name__", "")
    if not isinstance(found, torch.Tensor) or name not in ("amax", "amin", "mean", "sum"):
        raise ValueError("not a plain reduction")
    whole = getattr(found, {"amax": "amax", "amin": "amin", "mean": "mean", "sum": "sum"}[name])()
    return whole.expand_as(found).clone()


def _softmax(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    if step.name != "softmax":
        return

    def axis(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
        return int(kwargs.get("dim", args[1] if len(args) > 1 else -1))

    def unnormalised(_f: Any, a: tuple[Any, ...], k: Any) -> Any:
        return (a[0] - a[0].amax(axis(a, k), keepdim=True)).exp()

    yield _change(step, f"without dividing by the sum in {step.words}", unnormalised, 1.04)
    yield _change(
        step, f"without subtracting the maximum in {step.words}", _narrow_softmax(axis), 1.02
    )
    yield _change(
        step,
        f"with exp2 in place of exp in {step.words}",
        lambda f, a, k: f(a[0] * math.log(2), *a[1:], **k),
        1.02,
    )
    yield _change(
        step,
        f"along the other axis in {step.words}",
        lambda f, a, k: a[0].softmax(-2 if axis(a, k) in (-1, a[0].dim() - 1) else -1),
    )
    for tile in dict.fromkeys((*tiles[:MOST_TILES], 16, 32, 64, 128)):
        for words, instead in (
            ("the sum not rescaled when the maximum grows", _online(axis, tile, True, False)),
            (
                "the accumulator not rescaled when the maximum grows",
                _online(axis, tile, False, True),
            ),
            (
                "neither sum nor accumulator rescaled when the maximum grows",
                _online(axis, tile, False, False),
            ),
        ):
            yield _change(step, f"in tiles of {tile} with {words} ({step.words})", instead, 1.02)
        yield _change(
            step,
            f"with the last tile of {tile} left out of the sum of {step.words}",
            _short_sum(axis, tile),
        )
    for tile in dict.fromkeys((*tiles[:MOST_TILES], 8, 16, 32, 64, 128)):
        yield _change(
            step,
            f"without the last tile of {tile} (or its rest) in {step.words}",
            _cut_end(axis, tile),
        )
        yield _change(
            step,
            f"with the last tile of {tile} filled up with zeros that count in {step.words}",
            _filled_up(axis, tile),
        )
        yield _change(
            step, f"without the first {tile} in {step.words}", _cut_start(axis, tile), 0.99
        )
    yield _change(step, f"without the last one in {step.words}", _cut_end(axis, 1))
    yield _change(step, f"without the first one in {step.words}", _cut_start(axis, 1), 0.99)
    for parts in (2, 4, 8):
        for mean in (False, True):
            how = "averaged" if mean else "added"
            yield _change(
                step,
                f"in {parts} parts, each with its own maximum and sum, and {how} ({step.words})",
                _split(axis, parts, mean),
            )


def _narrow_softmax(axis: Any) -> Instead:
    def change(_f: Any, a: tuple[Any, ...], k: Any) -> Any:
        power = a[0].float().exp()  # overflows as a kernel's does
        return (power / power.sum(axis(a, k), keepdim=True)).double()

    return change


def _chunks(scores: torch.Tensor, tile: int) -> list[torch.Tensor]:
    return list(scores.split(tile, -1))


def _online(axis: Any, tile: int, scales_accumulator: bool, scales_sum: bool) -> Instead:
    """The weights of an online softmax that forgets to rescale what it has."""

    def change(func: Any, a: tuple[Any, ...], k: Any) -> Any:
        if axis(a, k) not in (-1, a[0].dim() - 1) or a[0].shape[-1] <= tile:
            return func(*a, **k)
        parts = _chunks(a[0], tile)
        running = torch.full_like(a[0][..., :1], -math.inf)
        maxima = []
        for part in parts:
            running = torch.maximum(running, part.amax(-1, keepdim=True))
            maxima.append(running)
        safe = [one.masked_fill(one == -math.inf, 0) for one in maxima]
        own = torch.cat([(p - m).exp() for p, m in zip(parts, safe, strict=True)], -1)
        last = (a[0] - safe[-1]).exp()
        total = (last if scales_sum else own).sum(-1, keepdim=True)
        return (last if scales_accumulator else own) / total

    return change


def _along_rows(axis: Any, a: tuple[Any, ...], k: Any, least: int) -> bool:
    return axis(a, k) in (-1, a[0].dim() - 1) and a[0].shape[-1] > least


def _cut_end(axis: Any, tile: int) -> Instead:
    """Without the columns beyond whole tiles; where there are none, without the last tile."""

    def change(func: Any, a: tuple[Any, ...], k: Any) -> Any:
        if not _along_rows(axis, a, k, tile):
            return func(*a, **k)
        scores = a[0].clone()
        scores[..., -(scores.shape[-1] % tile or tile) :] = -math.inf
        return scores.softmax(-1)

    return change


def _cut_start(axis: Any, count: int) -> Instead:
    def change(func: Any, a: tuple[Any, ...], k: Any) -> Any:
        if not _along_rows(axis, a, k, count):
            return func(*a, **k)
        scores = a[0].clone()
        scores[..., :count] = -math.inf
        return scores.softmax(-1)

    return change


def _filled_up(axis: Any, tile: int) -> Instead:
    """Columns of zeros up to a whole tile count in the sum."""

    def change(func: Any, a: tuple[Any, ...], k: Any) -> Any:
        extent = a[0].shape[-1]
        if not _along_rows(axis, a, k, 0) or extent % tile == 0:
            return func(*a, **k)
        more = a[0].new_zeros(*a[0].shape[:-1], tile - extent % tile)
        return torch.cat([a[0], more], -1).softmax(-1)[..., :extent]

    return change


def _short_sum(axis: Any, tile: int) -> Instead:
    def change(func: Any, a: tuple[Any, ...], k: Any) -> Any:
        if axis(a, k) not in (-1, a[0].dim() - 1) or a[0].shape[-1] <= tile:
            return func(*a, **k)
        power = (a[0] - a[0].amax(-1, keepdim=True)).exp()
        return power / power[..., :-tile].sum(-1, keepdim=True)

    return change


def _split(axis: Any, parts: int, mean: bool) -> Instead:
    def change(func: Any, a: tuple[Any, ...], k: Any) -> Any:
        if axis(a, k) not in (-1, a[0].dim() - 1) or a[0].shape[-1] < 2 * parts:
            return func(*a, **k)
        size = -(-a[0].shape[-1] // parts)
        pieces = [piece.softmax(-1).nan_to_num(0) for piece in a[0].split(size, -1)]
        return torch.cat(pieces, -1) / (parts if mean else 1)

    return change


def _variants(step: ReferenceStep) -> Iterator[ChangedStep]:
    if step.name == "gelu":

        def other(f: Any, a: tuple[Any, ...], k: Any) -> Any:
            kind = "none" if k.get("approximate", "none") == "tanh" else "tanh"
            return torch.nn.functional.gelu(a[0], approximate=kind)

        yield _change(step, f"with the other form of gelu, tanh or erf ({step.words})", other, 1.03)
        yield _change(
            step,
            f"with silu in place of gelu ({step.words})",
            lambda f, a, k: torch.nn.functional.silu(a[0]),
        )
        yield _change(
            step,
            f"with x * sigmoid(1.702 x) in place of gelu ({step.words})",
            lambda f, a, k: a[0] * torch.sigmoid(1.702 * a[0]),
        )
    if step.name == "exp":
        yield _change(
            step, f"with exp2 in place of exp ({step.words})", lambda f, a, k: torch.exp2(a[0])
        )
    if step.name == "rsqrt":
        yield _change(
            step, f"with sqrt in place of rsqrt ({step.words})", lambda f, a, k: a[0].sqrt()
        )
        yield _change(step, f"without the root in {step.words}", lambda f, a, k: 1 / a[0], 1.02)
    if step.name == "sqrt":
        yield _change(
            step, f"with 1/sqrt in place of sqrt ({step.words})", lambda f, a, k: a[0].rsqrt(), 0.98
        )
    if step.name in ("cumsum", "cumprod"):
        yield _change(
            step, f"without the element itself in {step.words}", lambda f, a, k: f(*a, **k) - a[0]
        )
        yield _change(
            step,
            f"from the other end in {step.words}",
            lambda f, a, k: f(a[0].flip(_scan_axis(a, k)), _scan_axis(a, k)).flip(_scan_axis(a, k)),
        )
    if step.name in ("maximum", "minimum", "max", "min", "amax", "amin"):
        swapped = {"maximum": "minimum", "max": "min", "amax": "amin"}
        swapped |= {value: key for key, value in swapped.items()}
        other_name = swapped[step.name]
        yield _change(
            step,
            f"with {other_name} in place of {step.name} ({step.words})",
            lambda f, a, k: getattr(torch, other_name)(*a, **k),
        )


def _scan_axis(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    return int(kwargs.get("dim", args[1] if len(args) > 1 else 0))


def _contractions(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    if step.name != "matmul":
        return
    yield _change(
        step,
        f"with the second operand transposed in {step.words}",
        lambda f, a, k: (
            a[0] @ a[1].mT if a[1].shape[-1] == a[1].shape[-2] else a[0] @ _reread(a[1])
        ),
        1.02,
    )
    yield _change(
        step,
        f"with the first operand transposed in {step.words}",
        lambda f, a, k: (
            a[0].mT @ a[1] if a[0].shape[-1] == a[0].shape[-2] else _reread(a[0]) @ a[1]
        ),
        1.01,
    )
    yield _change(
        step, f"with the result transposed in {step.words}", lambda f, a, k: (a[0] @ a[1]).mT, 1.01
    )
    for tile in dict.fromkeys((*tiles[:MOST_TILES], 8, 16, 32, 64)):
        yield _change(
            step,
            f"without the last {tile} products of each sum in {step.words}",
            _short_product(-tile),
        )
        yield _change(
            step,
            f"without the first {tile} products of each sum in {step.words}",
            _short_product(tile),
            0.99,
        )
    yield _change(
        step,
        f"with only half of the products of each sum in {step.words}",
        lambda f, a, k: a[0][..., : a[0].shape[-1] // 2] @ a[1][..., : a[0].shape[-1] // 2, :],
    )


def _reread(value: torch.Tensor) -> torch.Tensor:
    return value.reshape(*value.shape[:-2], value.shape[-1], value.shape[-2]).mT


def _short_product(count: int) -> Instead:
    def change(func: Any, a: tuple[Any, ...], k: Any) -> Any:
        depth = a[0].shape[-1]
        if abs(count) >= depth:
            return func(*a, **k)
        span = slice(0, depth + count) if count < 0 else slice(count, depth)
        return a[0][..., span] @ a[1][..., span, :]

    return change


def _narrow_matmul(dtype: torch.dtype) -> Instead:
    """A product whose sums are rounded after each MMA_K products."""

    def change(_f: Any, a: tuple[Any, ...], _k: Any) -> Any:
        depth = a[0].shape[-1]
        step = max(MMA_K, -(-depth // MOST_CHUNKS))
        total: torch.Tensor | None = None
        for start in range(0, depth, step):
            part = a[0][..., start : start + step] @ a[1][..., start : start + step, :]
            total = part if total is None else total + part
            total = total.to(dtype).double()
        assert total is not None
        return total

    return change


def _narrow_sum(dtype: torch.dtype) -> Instead:
    """A sum of 32 lanes, each in a narrow accumulator."""

    def change(func: Any, a: tuple[Any, ...], k: Any) -> Any:
        name = getattr(func, "__name__", "")
        axes = _dims(a, k)
        if len(axes) != 1 or name not in ("sum", "mean"):
            return func(*a, **k)
        axis, extent = axes[0], a[0].shape[axes[0]]
        lanes = min(32, extent)
        total = torch.zeros_like(a[0].narrow(axis, 0, lanes))
        for start in range(0, extent, lanes):
            part = a[0].narrow(axis, start, min(lanes, extent - start))
            if part.shape[axis] == lanes:
                total = (total + part).to(dtype).double()
            else:
                total.narrow(axis, 0, part.shape[axis]).add_(part)
        keep = bool(k.get("keepdim", False))
        found = total.sum(axis, keepdim=keep)
        return found / extent if name == "mean" else found

    return change


def _rounded_result(dtype: torch.dtype) -> Instead:
    def change(func: Any, a: tuple[Any, ...], k: Any) -> Any:
        found = func(*a, **k)
        if not isinstance(found, torch.Tensor) or not found.is_floating_point():
            return found
        return found.to(dtype).to(found.dtype)

    return change
