"""What the right answer is, and how far from it is allowed: one entry for each input set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.arena import wipe
from evoengine.evaluate.worker.gate import Errors, Gate, compare, gate_of
from evoengine.evaluate.worker.inputs import Tensors, make_inputs
from evoengine.evaluate.worker.reference import HostCache, TaskFunctions
from evoengine.task import Task


@dataclass(frozen=True)
class Answer:
    """The float64 reference of one input set, on the host, with each tier's trusted errors."""

    reference: Tensors
    trusted: dict[str, Errors]
    gates: dict[str, Gate]


Key = tuple[str, str, int]  # case, distribution, seed
Keep = Callable[[Key, Callable[[], Answer]], Answer]
KeepInputs = Callable[[Key, Callable[[], Tensors]], Tensors]


class Answers:
    """Computes each answer once and keeps it where no candidate can read it."""

    def __init__(
        self,
        task: Task,
        functions: TaskFunctions,
        device: torch.device,
        keep: Keep | None = None,
        keep_inputs: KeepInputs = lambda _, make: make(),
    ) -> None:
        """`keep` gives the answer of a key, made where it is not kept; left out, this process's memory keeps them.

        `keep_inputs` does so for inputs; left out, they are made anew every time.
        """
        self.task = task
        self.functions = functions
        self.device = device
        self._keep = keep or _in_memory()
        self._keep_inputs = keep_inputs

    def inputs(self, case: str, distribution: str, seed: int) -> Tensors:
        """The tensors of one input set, on the device."""
        return self._keep_inputs((case, distribution, seed), lambda: make_inputs(self.task, case, distribution, seed, self.device))

    def get(self, case: str, distribution: str, seed: int) -> Answer:
        """The answer for one input set; raises TaskError when the reference is not finite."""

        def make() -> Answer:
            return self._compute(case, distribution, seed, self.inputs(case, distribution, seed))

        return self._keep((case, distribution, seed), make)

    def one_off(self, case: str, distribution: str, seed: int) -> Answer:
        """The same for an input set that will not be asked for again."""
        return self._compute(case, distribution, seed, make_inputs(self.task, case, distribution, seed, self.device))

    def _compute(self, case: str, distribution: str, seed: int, tensors: Tensors) -> Answer:
        reference = self.functions.reference(tensors, case)
        for name, value in reference.items():
            if not bool(torch.isfinite(value).all()):
                raise TaskError(f"{self.task.reference}: {name} is not finite for case {case}, distribution {distribution}, seed {seed}")
        trusted, on_device = {}, [*reference.values()]
        for tier_name, tier in self.task.tiers.items():
            if tier.trusted is not None:
                outputs = self.functions.call(tier.trusted, tensors, case)
                outputs = {name: value.to(getattr(torch, self.task.outputs[name].dtype)) for name, value in outputs.items()}
                on_device += outputs.values()
                trusted[tier_name] = compare(outputs, reference, tier.atol, tier.rtol)
        gates = {name: gate_of(tier, trusted.get(name)) for name, tier in self.task.tiers.items()}
        kept = {name: _to_host(value) for name, value in reference.items()}
        wipe(on_device)
        return Answer(kept, trusted, gates)


def _to_host(value: torch.Tensor) -> torch.Tensor:
    host = torch.empty(value.shape, dtype=value.dtype, pin_memory=value.is_cuda)
    return host.copy_(value)


def _in_memory() -> Keep:
    cache = HostCache()

    def keep(key: Key, make: Callable[[], Answer]) -> Answer:
        found: Answer = cache.get(key, make, _size)
        return found

    return keep


def _size(answer: Answer) -> int:
    return sum(value.numel() * value.element_size() for value in answer.reference.values())
