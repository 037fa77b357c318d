"""The causes of wrong matrix products, from what they must have been."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.explained_share import ExplainedShare
from evoengine.evaluate.worker.forensics.implied_keys import are_weights
from evoengine.evaluate.worker.forensics.implied_values import ImpliedValue, ImpliedValues, Site
from evoengine.evaluate.worker.forensics.lead import WHOLE, Lead, step_lead
from evoengine.evaluate.worker.forensics.moved_output import moved_leads
from evoengine.evaluate.worker.forensics.product_pairing import (
    counted_products,
    pairings,
    sampled_product,
)
from evoengine.evaluate.worker.forensics.reference_steps import (
    ReferenceStep,
    StepRecorder,
    steps_in_order,
)
from evoengine.evaluate.worker.forensics.swizzled_products import swizzled

FITTED = 0.6  # of the squared error: products behind an activation are not all found
LEAST = 0.4  # of the wrong elements
SPOILED = 0.05
MOST_PRODUCTS = 6
LEAST_SLOPE = 0.3  # of the usual one
UNSETTLED = 0.01  # of the RMS of a product: a step of more is of one that nothing fits
Made = tuple[str, torch.Tensor]  # words, and the product as it is then


class ImpliedProducts:
    """Looks for products that explain a wrong output where everything else is right."""

    def __init__(
        self,
        implied: ImpliedValues,
        explained: ExplainedShare,
        recorder: StepRecorder,
        tiles: Sequence[int],
        compared: ComparedOutput,
    ) -> None:
        """`recorder` has seen the reference of the window of `implied`; `compared` is the output
        that is most wrong.
        """
        self._implied = implied
        self._explained = explained
        self._recorder = recorder
        self._tiles = tiles
        self._compared = compared

    def leads(self) -> Iterator[Lead]:
        """One lead for each product that explains the output. Raises TimeUp."""
        steps = [one for one in steps_in_order(self._recorder) if one.name == "matmul"]
        for step in steps[-MOST_PRODUCTS:][::-1]:
            lead = self._of(step)
            if lead is not None:
                yield lead

    def _of(self, step: ReferenceStep) -> Lead | None:
        fit = self._implied.fitted([Site(step.place)])
        if fit is None or self._explained.of(fit.outputs).reduction < FITTED:
            return None
        best: tuple[float, str] | None = None
        for words, product in self._guesses(step, fit.values[0]):
            outputs = self._implied.with_values({Site(step.place): product})
            if outputs is None:
                continue
            found = self._explained.of(outputs)
            share = max(found.share, 0.85 * found.reduction if found.reduction > 0.9 else 0.0)
            if found.spoiled < SPOILED and share > (best[0] if best else LEAST):
                best = share, words
                if share >= WHOLE:
                    break
        if best is None:
            return None
        return step_lead(best[1], best[0], step.words)

    def _guesses(self, step: ReferenceStep, value: ImpliedValue) -> Iterator[Made]:
        a, b = (one.cpu() for one in value.args[:2])
        first, second = (
            step.operand(number) or f"the {('first', 'second')[number]} operand"
            for number in (0, 1)
        )
        inner = "the inner dimension (K)"
        if are_weights(a):
            first, inner = "the weights of the softmax", "the keys (the inner dimension, K)"
        implied, right = value.implied, value.right
        sample = sampled_product(a, b, right, implied, is_known(value))
        if sample is None or not sample.power:
            return
        counted = counted_products(sample, self._tiles)
        if counted is not None:
            weights = counted.weights()
            what = f"products along the inner dimension (K) of {step.result}"
            if are_weights(a):
                what = f"values along the keys (the inner dimension, K) of {step.result}"
            noun = "product"
            if step.function.startswith("conv"):
                noun = "tap"
                what = "taps of the filter (counted along channel, row and column)"
            words = f"the sum of {what} {counted.words(noun)}"
            yield words, (a * weights) @ b
        for moved in self._moved(right, implied):
            yield f"{step.result} holds {moved[0]}", moved[1]
        for row_words, mixed in swizzled(sample, a, b):
            words = f"{first if mixed[0] is not a else second} is read {row_words}"
            yield words, mixed[0] @ mixed[1]
        for one in pairings(sample, self._tiles):
            words = (
                f"the elements of {first} and {second} meet wrongly along {inner},"
                f" {one.words(first, second)}, as with a wrong fragment layout, register or address"
            )
            yield words, one.of(a) @ b

    def _moved(self, right: torch.Tensor, implied: torch.Tensor) -> Iterator[Made]:
        """Products that are right and in the wrong place."""
        size = float(right.square().mean().sqrt())
        limit = max(0.02 * size, 1e-300)
        wrong = (implied - right).abs() > limit
        gate = replace(self._compared.gate, atol=limit, rtol=0.02)
        names = tuple(f"axis {axis}" for axis in range(right.dim()))
        compared = replace(
            self._compared,
            name="",
            axes=names,
            dtype=torch.float32,
            value=implied,
            reference=right,
            wrong=wrong,
            unwritten=torch.zeros_like(wrong),
            gate=gate,
        )
        if not bool(wrong.any()):
            return
        for lead in moved_leads(compared, self._tiles):
            words = lead.sentence.strip().removeprefix("holds ").removesuffix(".")
            yield words, torch.where(wrong, implied, right)


def is_known(value: ImpliedValue) -> torch.Tensor:
    """Where a product shows in the output, and on the rising side of an activation: on its flat
    side any product gives the same, on the falling one another.
    """
    slope = value.slope
    side = 1.0 if float(slope.sum()) >= 0 else -1.0
    usual = float(slope.abs().flatten()[:: max(1, slope.numel() // 4096)].quantile(0.9))
    rising = side * slope >= LEAST_SLOPE * usual
    settled = value.step.abs() <= UNSETTLED * float(value.own.square().mean().sqrt())
    return rising & settled
