"""One input set of an audit, with what its stand-ins are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evoengine.evaluate.worker.expected_outputs import ExpectedOutput
from evoengine.evaluate.worker.inputs import Tensors

# The reference's outputs for other inputs or other flags of the same case.
Recompute = Callable[[Tensors, Mapping[str, bool]], Tensors]


@dataclass(frozen=True, eq=False)
class AuditedSet:
    """One input set of one case.

    `inputs` are its tensors by name; `other` returns the set of another seed, of the same case and
    distribution.
    """

    case: str
    distribution: str
    inputs: Tensors
    expected: ExpectedOutput
    recompute: Recompute
    other: Callable[[], AuditedSet]

    @property
    def reference(self) -> Tensors:
        """The right outputs by name, float64."""
        return self.expected.reference
