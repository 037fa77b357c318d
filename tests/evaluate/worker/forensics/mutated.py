"""Wrong outputs of packaged tasks at small sizes, as a kernel with one mistake would write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from evoengine.candidate.binding import BoundLaunch, CasePlan, ScalarArgument, ScratchBuffer
from evoengine.evaluate.worker.check import compare_outputs
from evoengine.evaluate.worker.expected_outputs import ExpectedOutput, ExpectedOutputs
from evoengine.evaluate.worker.forensics.investigation import Circumstances, investigate
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall
from evoengine.evaluate.worker.inputs import Tensors, scalar_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.paths import find_task
from evoengine.records import CaseCheck, Forensics
from evoengine.task.load import load_task
from evoengine.task.schema import Task

CPU = torch.device("cpu")
CASES = {
    "sdpa_l4": {
        "full": {"B": 2, "H": 4, "S": 128, "D": 64, "causal": False},
        "causal": {"B": 2, "H": 2, "S": 96, "D": 64, "causal": True},
        "odd": {"B": 1, "H": 2, "S": 77, "D": 64, "causal": False},
    },
    "layernorm": {
        "rows": {"N": 64, "C": 512},
        "odd": {"N": 33, "C": 333},
        "large": {"N": 1100, "C": 2048},
    },
    "embedding_bag": {"bags": {"V": 300, "D": 36, "T": 1111, "BAGS": 97}},
    "adamw": {"odd": {"N": 5003, "STEP": 3}, "large": {"N": 600_007, "STEP": 3}},
    "matmul_fp16": {
        "square": {"M": 128, "N": 128, "K": 128},
        "flat": {"M": 64, "N": 192, "K": 512},
    },
}
Scalars = Mapping[str, Any]
# Float64 outputs by name, or the only one, of inputs in float64 and scalars.
Mutant = Callable[[Tensors, Scalars], Any]


@cache
def small(name: str) -> Task:
    """A packaged task on small cases."""
    whole = load_task(find_task(name))
    cases = {"cases": CASES[name], "hidden_cases": {}, "objective": {"cases": list(CASES[name])}}
    return Task.model_validate({**whole.model_dump(), **cases})


@cache
def functions(name: str) -> TaskFunctions:
    return TaskFunctions(small(name), find_task(name))


@cache
def drawn(name: str, case: str, distribution: str) -> tuple[Tensors, ExpectedOutput]:
    """One input set with its expected outputs."""
    return ExpectedOutputs(small(name), functions(name), CPU).draw(case, distribution, 7)


def wide(name: str, case: str, distribution: str = "normal") -> tuple[Tensors, Scalars]:
    """What a mutant is given."""
    tensors = drawn(name, case, distribution)[0]
    wide_tensors = {
        key: value.double() if value.is_floating_point() else value.clone()
        for key, value in tensors.items()
    }
    return wide_tensors, scalar_inputs(small(name), case)


def wrong_call(
    name: str, case: str, mutant: Mutant, tier: str = "", distribution: str = "normal"
) -> tuple[WrongCall, CaseCheck]:
    """The call of a mutant; its outputs are in the task's dtypes. A NaN is left as a NaN that was
    computed; `UNWRITTEN` as poison.
    """
    task = small(name)
    tensors, expected = drawn(name, case, distribution)
    tier = tier or next(iter(task.tiers))
    found = mutant(*wide(name, case, distribution))
    if isinstance(found, torch.Tensor):
        found = {next(iter(task.outputs)): found}
    outputs = {}
    for key, value in found.items():
        dtype = getattr(torch, task.outputs[key].dtype)
        outputs[key] = _poisoned(value.to(dtype).contiguous(), value == UNWRITTEN)
    check = compare_outputs(outputs, expected, tier, distribution, 0)
    call = WrongCall(
        case=case,
        distribution=distribution,
        number=0,
        inputs=tensors,
        outputs=outputs,
        reference=expected.reference,
        gates=expected.gates[tier],
        poison=0xFF,
    )
    return call, CaseCheck(case=case, hidden=False, ok=check.ok, sets=(check,))


UNWRITTEN = -12345.678


def _poisoned(value: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
    size = value.element_size()
    flat = value.clone().view(torch.uint8).view(*value.shape, size)
    flat[where] = 0xFF
    return value if not bool(where.any()) else flat.view(value.dtype).view(value.shape)


def plan_of(
    case: str,
    macros: Mapping[str, int] | None = None,
    threads: int = 256,
    scratch: Mapping[str, ScratchBuffer] | None = None,
    numbers: Sequence[int] = (),
) -> CasePlan:
    """A plan of one launch that is given the numbers `numbers`."""
    args = tuple(ScalarArgument(scalar=number, dtype="int32") for number in numbers)
    launch = BoundLaunch(kernel="k", grid=(8,), block=(threads,), shared_bytes=0, args=args)
    return CasePlan(
        case=case,
        hidden=False,
        macros={key: str(value) for key, value in (macros or {}).items()},
        scratch=dict(scratch or {}),
        launches=(launch,),
    )


def diagnosed(
    name: str,
    case: str,
    mutant: Mutant,
    tier: str = "",
    distribution: str = "normal",
    macros: Mapping[str, int] | None = None,
    numbers: Sequence[int] = (),
    threads: int = 256,
    seconds: float = 60.0,
    **known: Any,
) -> Forensics:
    """What forensics finds out about a mutant; it must fail its check."""
    call, check = wrong_call(name, case, mutant, tier, distribution)
    assert not check.ok
    circumstances = Circumstances(
        plan=plan_of(case, macros, threads, numbers=numbers), check=check, **known
    )
    return investigate(small(name), functions(name), call, circumstances, seconds)
