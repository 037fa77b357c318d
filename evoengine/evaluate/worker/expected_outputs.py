"""The expected outputs of each input set, and the error that each tier allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.arena import wipe
from evoengine.evaluate.worker.gate import Errors, Gate, compare, gate_of
from evoengine.evaluate.worker.inputs import Tensors, make_inputs
from evoengine.evaluate.worker.returned_values import refuse_values
from evoengine.evaluate.worker.task_functions import HostCache, TaskFunctions
from evoengine.task.schema import Input, Output, Task, shape_of


@dataclass(frozen=True)
class ExpectedOutput:
    """The expected outputs of one input set.

    `reference` holds a float64 tensor for each output by name, in the output's shape, on the
    host. `trusted` holds the errors of each tier's trusted implementation, `gates` each
    tier's limits.
    """

    reference: Tensors
    trusted: dict[str, Errors]
    gates: dict[str, Gate]


Key = tuple[str, str, int]  # case, distribution, seed
# Return the value of a key, made by the callable on a miss.
OutputCache = Callable[[Key, Callable[[], ExpectedOutput]], ExpectedOutput]
InputCache = Callable[[Key, Callable[[], Tensors]], Tensors]


class ExpectedOutputs:
    """Computes each expected output once and caches it where no candidate can read it."""

    def __init__(
        self,
        task: Task,
        functions: TaskFunctions,
        device: torch.device,
        output_cache: OutputCache | None = None,
        input_cache: InputCache = lambda _, make: make(),
    ) -> None:
        """Without `output_cache`, expected outputs are cached in this process's memory; without
        `input_cache`, inputs are made anew every time.
        """
        self.task = task
        self.functions = functions
        self.device = device
        self._output_cache = output_cache or _in_memory()
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
            return self._compute(case, distribution, seed, self.inputs(case, distribution, seed))

        return self._output_cache((case, distribution, seed), make)

    def get_uncached(self, case: str, distribution: str, seed: int) -> ExpectedOutput:
        """As `get`, for an input set that is used only once: the outputs are not cached."""
        return self._compute(
            case, distribution, seed, make_inputs(self.task, case, distribution, seed, self.device)
        )

    def _compute(self, case: str, distribution: str, seed: int, tensors: Tensors) -> ExpectedOutput:
        self._refuse_nondeterminism()
        reference = self._reference(case, distribution, seed, tensors)
        trusted, on_device = {}, [*reference.values()]
        for tier_name, tier in self.task.tiers.items():
            if tier.trusted is not None:
                raw = self.functions.call(tier.trusted, tensors, case)
                outputs = {
                    name: value.to(getattr(torch, self.task.outputs[name].dtype))
                    for name, value in raw.items()
                }
                on_device += [*raw.values(), *outputs.values()]
                trusted[tier_name] = compare(
                    outputs, reference, tier.atol, tier.rtol, zero_slices=False
                )
        gates = {name: gate_of(tier, trusted.get(name)) for name, tier in self.task.tiers.items()}
        on_host = {name: _to_host(value) for name, value in reference.items()}
        wipe(on_device)
        return ExpectedOutput(on_host, trusted, gates)

    def _reference(self, case: str, distribution: str, seed: int, tensors: Tensors) -> Tensors:
        """The reference's float64 outputs on the device; raises TaskError if no kernel can write
        them.
        """
        reference = self.functions.reference(tensors, case)
        for name, value in reference.items():
            where = f"case {case}, distribution {distribution}, seed {seed}"
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
        case = min(self.task.all_cases, key=self._elements)
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
            found = compare(second, first, tier.atol, tier.rtol)
            if not gate_of(tier, None).passes(found):
                raise TaskError(
                    f"{self.task.reference} returns two results for the same inputs:"
                    f" {found.worst_output} differs by up to {found.max_abs:.3g} between two calls"
                    f" for case {case}; expected one result: remove randomness, and state that it"
                    " keeps from call to call"
                )
        wipe([*first.values(), *second.values()])

    def _elements(self, case: str) -> int:
        scope = self.task.scope(case)
        tensors: list[Input | Output] = [*self.task.inputs.values(), *self.task.outputs.values()]
        return sum(
            math.prod(shape_of(spec.shape, scope)) for spec in tensors if spec.shape is not None
        )


def _to_host(value: torch.Tensor) -> torch.Tensor:
    host = torch.empty(value.shape, dtype=value.dtype, device="cpu", pin_memory=value.is_cuda)
    return host.copy_(value)


def _in_memory() -> OutputCache:
    cache = HostCache()

    def keep(key: Key, make: Callable[[], ExpectedOutput]) -> ExpectedOutput:
        found: ExpectedOutput = cache.get(key, make, _size)
        return found

    return keep


def _size(expected: ExpectedOutput) -> int:
    return sum(value.numel() * value.element_size() for value in expected.reference.values())
