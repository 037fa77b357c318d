"""The expected outputs of each input set, and the error that each tier allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.drawing_functions import DrawingFunctions
from evoengine.evaluate.worker.gate import (
    Errors,
    Gate,
    all_pass,
    compare,
    gate_of,
    nearest_to_limit,
)
from evoengine.evaluate.worker.input_rounding import errors_of_few, rounding_errors
from evoengine.evaluate.worker.inputs import Tensors, make_inputs
from evoengine.evaluate.worker.largest_factor import (
    growth_of,
    has_new_infinities,
    largest_that_works,
    overflows,
)
from evoengine.evaluate.worker.returned_values import refuse_values
from evoengine.evaluate.worker.rmse_chance import chance_of
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.distributions import LARGEST_FACTOR
from evoengine.task.schema import Input, Output, Task, Tier, shape_of


@dataclass(frozen=True)
class ExpectedOutput:
    """The expected outputs of one input set.

    `reference` holds a float64 tensor for each output by name, in the output's shape, on the
    device of the inputs. `trusted` holds the errors of each tier's trusted implementation,
    `gates` each tier's limits, both by tier and output. `factor` is that of inputs of the
    distribution `extreme`.
    """

    reference: Tensors
    trusted: dict[str, dict[str, Errors]]
    gates: dict[str, dict[str, Gate]]
    factor: float = 1.0


# of inputs and outputs; a reference of more may take seconds without a GPU
PROBED_ELEMENTS = 1 << 22
NO_ERRORS: Mapping[str, Errors] = MappingProxyType({})
NO_GROWTH: Mapping[str, float] = MappingProxyType({})
NO_CHANCE: Mapping[str, float] = MappingProxyType({})
Key = tuple[str, str, int]  # case, distribution, seed
# Return the value of a key, made by the callable on a miss.
OutputCache = Callable[[Key, Callable[[], ExpectedOutput]], ExpectedOutput]
InputCache = Callable[[Key, Callable[[], Tensors]], Tensors]


class ExpectedOutputs:
    """Computes each expected output once; no candidate runs in this process, or none on a GPU."""

    def __init__(
        self,
        task: Task,
        functions: TaskFunctions,
        device: torch.device,
        output_cache: OutputCache = lambda _, make: make(),
        input_cache: InputCache = lambda _, make: make(),
    ) -> None:
        """Without `output_cache` and `input_cache`, both are made anew every time."""
        self.task = task
        self.functions = functions
        self.device = device
        self._output_cache = output_cache
        self._input_cache = input_cache
        self._probed = False
        self._by_function = DrawingFunctions(task, functions)
        self._factors: dict[Key, float] = {}  # of the extreme sets that were drawn

    def inputs(self, case: str, distribution: str, seed: int) -> Tensors:
        """The tensors of one input set by name, on the device; as make_inputs returns them."""
        key = (case, distribution, seed)
        return self._input_cache(key, lambda: self._drawn(key, self._factor(key)))

    def get(self, case: str, distribution: str, seed: int) -> ExpectedOutput:
        """The expected outputs of one input set; raises TaskError if a function of the task
        returns unusable ones.
        """
        key = (case, distribution, seed)
        return self._output_cache(key, lambda: self.draw(*key)[1])

    def draw(self, case: str, distribution: str, seed: int) -> tuple[Tensors, ExpectedOutput]:
        """The inputs of one set with their expected outputs, which no cache of outputs holds."""
        if distribution != "extreme":
            tensors = self.inputs(case, distribution, seed)
            return tensors, self.compute(case, distribution, seed, tensors)
        # before the search, which takes an error for a factor that is too large
        self._refuse_nondeterminism()
        key = (case, distribution, seed)
        found = largest_that_works(
            lambda factor: self._attempt(key, factor), self._factors.get(key) or self._first(key)
        )
        self._factors[key] = found[1].factor
        return found

    def _first(self, key: Key) -> float:
        """The factor that is tried first for an extreme set: that of one set of a case that is
        large, because a large factor leaves so few ties in a small one that none may be seen.
        """
        cases = sorted(self.task.all_cases, key=self.elements)
        quick = [case for case in cases if self.elements(case) <= PROBED_ELEMENTS]
        probe = ([cases[0], *quick][-1], key[1], self.task.seeds[0])
        return LARGEST_FACTOR if key == probe else self._factor(probe)

    def _attempt(self, key: Key, factor: float) -> tuple[Tensors, ExpectedOutput] | None:
        """The inputs with this factor and their expected outputs; None where the factor is above 1
        and the reference or a trusted implementation overflows, or the inputs do not decide the
        outputs.
        """
        tensors = self._drawn(key, factor)
        reference = self._reference(*key, tensors)
        if factor <= 1:
            return tensors, self._usual(key, tensors, reference)
        plain = cache(lambda: self._reference(*key, self._drawn(key, 1.0)))
        if has_new_infinities(reference, plain):
            return None
        rounding = rounding_errors(
            self.task, key, tensors, reference, lambda moved: self._reference(*key, moved)
        )
        if rounding is None:
            return None
        trusted = self._trusted(tensors, key[0])
        if any(overflows(outputs, reference) for outputs in trusted.values()):
            return None
        growth = growth_of(self.task, reference, plain())
        found = self._compared(reference, trusted, rounding, growth)
        return tensors, replace(found, factor=factor)

    def _factor(self, key: Key) -> float:
        if key[1] != "extreme" or key in self._factors:
            return self._factors.get(key, LARGEST_FACTOR)
        return self.get(*key).factor

    def _drawn(self, key: Key, factor: float) -> Tensors:
        return make_inputs(self.task, *key, self.device, factor, self._by_function)

    def compute(self, case: str, distribution: str, seed: int, tensors: Tensors) -> ExpectedOutput:
        """The expected outputs for `tensors`, the inputs of one set, without any cache."""
        self._refuse_nondeterminism()
        key = (case, distribution, seed)
        return self._usual(key, tensors, self._reference(*key, tensors))

    def _usual(self, key: Key, tensors: Tensors, reference: Tensors) -> ExpectedOutput:
        """What is expected of inputs that are no larger than usual."""
        few = errors_of_few(
            self.task, key, tensors, reference, lambda moved: self._reference(*key, moved)
        )
        return self._compared(reference, self._trusted(tensors, key[0]), few)

    def _trusted(self, tensors: Tensors, case: str) -> dict[str, Tensors]:
        """The outputs of each tier's trusted implementation, in the dtypes of the task."""
        found = {}
        for name, tier in self.task.tiers.items():
            if tier.trusted is not None:
                raw = self.functions.call(tier.trusted, tensors, case)
                found[name] = {
                    key: value.to(getattr(torch, self.task.outputs[key].dtype))
                    for key, value in raw.items()
                }
        return found

    def _compared(
        self,
        reference: Tensors,
        outputs: dict[str, Tensors],
        rounding: Mapping[str, Errors] = NO_ERRORS,
        growth: Mapping[str, float] = NO_GROWTH,
    ) -> ExpectedOutput:
        """What is expected of a candidate, given the trusted `outputs` by tier and, by output, what
        another rounding of the inputs does and how much larger than usual the reference is.
        """
        trusted = {
            name: compare(found, reference, self._gates(self.task.tiers[name]), False)
            for name, found in outputs.items()
        }
        chance = {
            name: chance_of(value)
            for name, value in reference.items()
            if getattr(torch, self.task.outputs[name].dtype).is_floating_point
        }
        gates = {
            name: self._gates(tier, trusted.get(name, NO_ERRORS), rounding, growth, chance)
            for name, tier in self.task.tiers.items()
        }
        return ExpectedOutput(reference, trusted, gates)

    def _gates(
        self,
        tier: Tier,
        trusted: Mapping[str, Errors] = NO_ERRORS,
        rounding: Mapping[str, Errors] = NO_ERRORS,
        growth: Mapping[str, float] = NO_GROWTH,
        chance: Mapping[str, float] = NO_CHANCE,
    ) -> dict[str, Gate]:
        """The gate of each output under `tier`, widened by the errors, the growth and the chance of
        each, by output.
        """
        return {
            name: gate_of(
                tier.tolerances(name),
                trusted.get(name),
                rounding.get(name),
                growth.get(name, 1.0),
                chance.get(name, 1.0),
            )
            for name in self.task.outputs
        }

    def _reference(self, case: str, distribution: str, seed: int, tensors: Tensors) -> Tensors:
        """The reference's float64 outputs on the device; raises TaskError if no kernel can write
        them.
        """
        reference = self.functions.reference(tensors, case)
        for name, value in [*reference.items()]:
            where = f"case {case}, distribution {distribution}, seed {seed}"
            # the comparison on a GPU reads them in order
            reference[name] = value.contiguous()
            refuse_values(
                f"{self.task.reference}: {name}", value, self.task.outputs[name].dtype, where
            )
        return reference

    def _refuse_nondeterminism(self) -> None:
        """Raises TaskError if two calls of the reference differ; called once, on the smallest
        case.
        """
        if self._probed:
            return
        self._probed = True
        case = min(self.task.all_cases, key=self.elements)
        distribution, seed = self.task.distributions[0], self.task.seeds[0]
        tensors = self._drawn((case, distribution, seed), 1.0)
        first, second = (self._reference(case, distribution, seed, tensors) for _ in range(2))
        if any(first[name].data_ptr() == second[name].data_ptr() for name in first):
            raise TaskError(
                f"{self.task.reference} returns the same memory twice for case {case}; expected a"
                " new tensor from every call"
            )
        # the order of sums may differ from call to call: outputs count as equal within the gates
        for tier in self.task.tiers.values():
            gates = self._gates(tier)
            found = compare(second, first, gates)
            if not all_pass(found, gates):
                worst = nearest_to_limit(found, gates)
                raise TaskError(
                    f"{self.task.reference} returns two results for the same inputs:"
                    f" {worst} differs by up to {found[worst].max_abs:.3g} between two calls"
                    f" for case {case}; expected one result: remove randomness, and state that it"
                    " keeps from call to call"
                )

    def elements(self, case: str) -> int:
        """The elements of all inputs and outputs of a case."""
        scope = self.task.scope(case)
        tensors: list[Input | Output] = [*self.task.inputs.values(), *self.task.outputs.values()]
        return sum(
            math.prod(shape_of(spec.shape, scope)) for spec in tensors if spec.shape is not None
        )
