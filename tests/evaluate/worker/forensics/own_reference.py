"""Wrong outputs of a reference that a test writes itself, as a kernel with one mistake leaves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml

from evoengine.candidate.binding import ScratchBuffer
from evoengine.evaluate.worker.check import compare_outputs
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.forensics.investigation import Circumstances, investigate
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.records import CaseCheck, Forensics
from evoengine.task.load import load_task
from tests.evaluate.worker.forensics.mutated import CPU, plan_of

TIER = {"atol": 2e-5, "rtol": 2e-5, "rel_rmse": 1e-5}
Mutant = Callable[..., torch.Tensor]  # of the inputs and scalars of the reference, by name


@dataclass(frozen=True)
class OwnReference:
    """A reference with one output, `out`; its inputs are float32 unless they are given whole."""

    body: str  # of a function of the inputs' names, after `import torch`
    dims: Mapping[str, int]
    inputs: Mapping[str, Sequence[str] | Mapping[str, Any]]
    out: Sequence[str]
    tier: Mapping[str, float] = field(default_factory=lambda: TIER)

    def write(self, folder: Path) -> Path:
        """Writes the task's files; returns the path of its YAML."""
        inputs = {
            name: dict(spec) if isinstance(spec, Mapping) else _float32(spec)
            for name, spec in self.inputs.items()
        }
        given = ", ".join(inputs)
        lines = "\n".join(f"    {line}" for line in self.body.splitlines())
        (folder / "own.py").write_text(f"import torch\n\n\ndef own({given}):\n{lines}\n")
        content = {
            "name": "own",
            "reference": "own.py:own",
            "dims": dict.fromkeys(self.dims, "int"),
            "inputs": inputs,
            "outputs": {"out": _float32(self.out)},
            "cases": {"plain": dict(self.dims)},
            "tiers": {"fp32": dict(self.tier)},
            "objective": {"cases": ["plain"]},
            "baselines": {"torch": "own.py:own"},
            "budget": {"trials": 1},
        }
        path = folder / "own.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def diagnosed(
        self,
        path: Path,
        mutant: Mutant,
        macros: Mapping[str, int] | None = None,
        scratch: Mapping[str, ScratchBuffer] | None = None,
    ) -> Forensics:
        """What forensics finds out about an output that `mutant` computes in float64 from what the
        reference is given; the output must fail its check.
        """
        task = load_task(path)
        functions = TaskFunctions(task, path)
        drawn = ExpectedOutputs(task, functions, CPU).draw("plain", "normal", 7)
        tensors, expected = drawn
        wide = {
            name: value.double() if value.is_floating_point() else value.clone()
            for name, value in tensors.items()
        }
        outputs = {"out": mutant(**wide).float().contiguous()}
        check = compare_outputs(outputs, expected, "fp32", "normal", 0)
        assert not check.ok
        call = WrongCall(
            case="plain",
            distribution="normal",
            number=0,
            inputs=tensors,
            outputs=outputs,
            reference=expected.reference,
            gates=expected.gates["fp32"],
            poison=0xFF,
        )
        known = CaseCheck(case="plain", hidden=False, ok=False, sets=(check,))
        circumstances = Circumstances(plan=plan_of("plain", macros, scratch=scratch), check=known)
        return investigate(task, functions, call, circumstances, 60.0)


def _float32(shape: Sequence[str]) -> dict[str, Any]:
    return {"shape": list(shape), "dtype": "float32"}


def first_words(found: Forensics) -> str:
    """The first two findings, which are all that counts."""
    return " | ".join(one.sentence for one in found.diagnoses[:2])
