"""Matrix products with an operand transposed, fragments exchanged, or terms left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    ChangedStep,
    Instead,
    change,
)
from evoengine.evaluate.worker.forensics.exchanged_places import (
    axis_exchanges,
    axis_repeats,
    tile_mixes,
)
from evoengine.evaluate.worker.forensics.fragment_lanes import wrong_lanes
from evoengine.evaluate.worker.forensics.own_lanes import own_lanes
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.summed_terms import Times, term_choices
from evoengine.evaluate.worker.forensics.swizzles import swizzles

ORDINALS = ("first", "second")
Remade = Callable[[torch.Tensor], torch.Tensor]


def plain_products(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The likeliest changes of a step that is a matrix product: a transposed operand, terms."""
    if step.name == "matmul":
        yield from _transposed(step)
        yield from _terms(step, tiles)


def changed_products(
    step: ReferenceStep, tiles: Sequence[int], is_last: bool = False
) -> Iterator[ChangedStep]:
    """The other changes of a step that is a matrix product, the likelier ones first; of the last
    one a window may leave out rows and columns.
    """
    if step.name != "matmul":
        return
    yield from _repeats(step, tiles)
    yield from _fragments(step, tiles)
    yield from _lanes(step)
    yield from own_lanes(step)
    yield from _swizzles(step, is_last)


def _transposed(step: ReferenceStep) -> Iterator[ChangedStep]:
    for number, weight in ((1, 1.02), (0, 1.01)):
        named = _operand(step, number)
        yield change(
            step,
            f"with {named} transposed in {step.words}",
            _with_operand(number, _read_transposed),
            weight,
            f"{named} is read as transposed (row-major and column-major exchanged)",
        )
    yield change(
        step,
        f"with the result transposed in {step.words}",
        lambda f, a, k: (a[0] @ a[1]).mT,
        1.01,
        f"the result of {step.result} is transposed",
    )


def _terms(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    for choice in term_choices(tiles[:MOST_TILES], "product"):
        yield change(
            step,
            f"where each sum {choice.words} in {step.words}",
            _with_terms(choice.times),
            choice.weight,
            f"each sum of products along the inner dimension (K) {choice.words}",
        )


def _fragments(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    mixed = "as a fragment with another layout"
    for number in (1, 0):
        named = _operand(step, number)
        for mix in tile_mixes(tiles[:MOST_TILES]):
            yield change(
                step,
                f"with {named} {mix.words.removeprefix('with ')} in {step.words}",
                _with_operand(number, mix.mix),
                1.0,
                f"{named} is loaded {mix.words}, {mixed}",
            )
    for axis, number, what in (
        (-2, 1, "products along the inner dimension (K)"),
        (-1, 1, "columns"),
        (-2, 0, "rows"),
    ):
        named = _operand(step, number)
        for exchange in axis_exchanges(tiles[:MOST_TILES]):
            yield change(
                step,
                f"with {what} of {named} in another order, {exchange.words}, in {step.words}",
                _with_operand(number, _ordered(axis, exchange.source)),
                1.0,
                f"the {what} of {named} are in the wrong order, {exchange.words}, {mixed}"
                f"{_meeting(step, number, axis)}",
            )


def _lanes(step: ReferenceStep) -> Iterator[ChangedStep]:
    for number in (1, 0):
        named = _operand(step, number)
        for wrong in wrong_lanes(number):
            yield change(
                step,
                f"with {named} in fragments of other lanes, {wrong.words}, in {step.words}",
                _with_operand(number, wrong.mix),
                1.0,
                f"the fragments of {named} are loaded for other lanes: {wrong.words}, so that"
                " columns, rows and depths belong to another lane of mma",
            )


def _repeats(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    for axis, number, what in (
        (-2, 1, "rows (along the inner dimension, K)"),
        (-1, 1, "columns"),
        (-2, 0, "rows"),
        (-1, 0, "columns (along the inner dimension, K)"),
    ):
        named = _operand(step, number)
        if step.function.startswith("conv") and "inner" in what:
            what = "taps of the filter"
        for repeat in axis_repeats(tiles[:MOST_TILES]):
            yield change(
                step,
                f"with {what} of {named} read {repeat.words}, in {step.words}",
                _with_operand(number, _ordered(axis, repeat.source)),
                1.0,
                f"{what} of {named} are read {repeat.words}{_meeting(step, number, axis)}",
            )


def _swizzles(step: ReferenceStep, is_last: bool) -> Iterator[ChangedStep]:
    """An operand that is stored with one XOR swizzle and read with another, or with none."""
    for number, axis in ((1, -1), (0, -1), (1, -2), (0, -2)):
        named = _operand(step, number)
        rows = "row" if axis == -1 else "column"
        for swizzle in swizzles():
            changed = change(
                step,
                f"with chunks of {swizzle.width} in every {rows} of {named} in another order,"
                f" {swizzle.words}, in {step.words}",
                _with_operand(number, lambda x, s=swizzle, a=axis: s.of(x, a)),  # type: ignore[misc]
                1.0,
                f"{named} is read with another XOR swizzle than it is stored with: chunks of"
                f" {swizzle.width} elements of every {rows} are in the wrong order,"
                f" {swizzle.words}",
            )
            yield replace(changed, of_whole=is_last)


def _operand(step: ReferenceStep, number: int) -> str:
    named = step.operand(number)
    if named == "the softmax" or (not named and number == 0 and "softmax(" in step.source.text):
        return "the weights of the softmax"
    return named or f"the {ORDINALS[number]} operand"


def _meeting(step: ReferenceStep, number: int, axis: int) -> str:
    """What the places of the inner dimension meet, for an order of them that is wrong."""
    is_inner = axis == (-1 if number == 0 else -2)
    other = _operand(step, 1 - number)
    return f", so that each meets another place of {other}" if is_inner else ""


def _with_operand(number: int, remade: Remade) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        made = remade(args[number])
        if made.shape == args[number].shape and torch.equal(made, args[number]):
            raise ValueError("no change")
        given = list(args)
        given[number] = made
        return func(*given, **kwargs)

    return instead


def _ordered(axis: int, source: Callable[[int], torch.Tensor]) -> Remade:
    def ordered(value: torch.Tensor) -> torch.Tensor:
        along = -1 if value.dim() == 1 else axis  # a vector has the inner dimension alone
        return value.index_select(along, source(value.shape[along]).to(value.device))

    return ordered


def _read_transposed(value: torch.Tensor) -> torch.Tensor:
    if value.shape[-1] == value.shape[-2]:
        return value.mT
    return value.reshape(*value.shape[:-2], value.shape[-1], value.shape[-2]).mT


def _with_terms(times: Times) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        depth = args[0].shape[-1]
        at = torch.arange(depth, device=args[0].device)
        taken = times(at, torch.tensor(depth, device=at.device)).to(args[0].dtype)
        if bool((taken == 1).all()):
            raise ValueError("no change")
        return func(args[0] * taken, *args[1:], **kwargs)

    return instead
