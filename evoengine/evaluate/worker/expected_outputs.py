"""The expected outputs of each input set, and the error that each tier allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.gate import (
    Errors,
    Gate,
    all_pass,
    compare,
    gate_of,
    nearest_to_limit,
)
from evoengine.evaluate.worker.inputs import Tensors, make_inputs
from evoengine.evaluate.worker.returned_values import refuse_values
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.schema import Input, Output, Task, Tier, shape_of


@dataclass(frozen=True)
class ExpectedOutput:
    """The expected outputs of one input set.

    `reference` holds a float64 tensor for each output by name, in the output's shape, on the
    device of the inputs. `trusted` holds the errors of each tier's trusted implementation,
    `gates` each tier's limits, both by tier and output.
    """

    reference: Tensors
    trusted: dict[str, dict[str, Errors]]
    gates: dict[str, dict[str, Gate]]


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

    def inputs(self, case: str, distribution: str, seed: int) -> Tensors:
        """The tensors of one input set by name, on the device; as make_inputs returns them."""
        return self._input_cache(
            (case, distribution, seed),
            lambda: make_inputs(self.task, case, distribution, seed, self.device),
        )

    def get(self, case: str, distribution: str, seed: int) -> ExpectedOutput:
        """The expected outputs of one input set; raises TaskError if a function of the task
        returns unusable ones.
        """

        def make() -> ExpectedOutput:
            return self.compute(case, distribution, seed, self.inputs(case, distribution, seed))

        return self._output_cache((case, distribution, seed), make)

    def compute(self, case: str, distribution: str, seed: int, tensors: Tensors) -> ExpectedOutput:
        """The expected outputs for `tensors`, the inputs of one set, without any cache."""
        self._refuse_nondeterminism()
        reference = self._reference(case, distribution, seed, tensors)
        trusted, gates = dict[str, dict[str, Errors]](), {}
        for tier_name, tier in self.task.tiers.items():
            if tier.trusted is not None:
                raw = self.functions.call(tier.trusted, tensors, case)
                outputs = {
                    name: value.to(getattr(torch, self.task.outputs[name].dtype))
                    for name, value in raw.items()
                }
                asked = self._gates(tier, {})
                trusted[tier_name] = compare(outputs, reference, asked, zero_slices=False)
            gates[tier_name] = self._gates(tier, trusted.get(tier_name, {}))
        return ExpectedOutput(reference, trusted, gates)

    def _gates(self, tier: Tier, trusted: Mapping[str, Errors]) -> dict[str, Gate]:
        """The gate of each output under `tier`, widened by the errors in `trusted`, by output."""
        return {
            name: gate_of(tier.tolerances(name), trusted.get(name)) for name in self.task.outputs
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
        tensors = make_inputs(self.task, case, distribution, seed, self.device)
        first, second = (self._reference(case, distribution, seed, tensors) for _ in range(2))
        if any(first[name].data_ptr() == second[name].data_ptr() for name in first):
            raise TaskError(
                f"{self.task.reference} returns the same memory twice for case {case}; expected a"
                " new tensor from every call"
            )
        # the order of sums may differ from call to call: outputs count as equal within the gates
        for tier in self.task.tiers.values():
            gates = self._gates(tier, {})
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
