"""The packaged tasks with cases small enough for a CPU."""

from __future__ import annotations

from functools import cache

import torch

from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.paths import find_task
from evoengine.task.load import load_task
from evoengine.task.schema import Task

CPU = torch.device("cpu")

ATTENTION = {
    "full": {"B": 1, "H": 3, "S": 128, "D": 64, "causal": False},
    "causal": {"B": 2, "H": 2, "S": 77, "D": 64, "causal": True},
    "wide_head": {"B": 1, "H": 2, "S": 96, "D": 128, "causal": False},
}
CASES = {
    "sdpa_l4": ATTENTION,
    "sdpa_h200": ATTENTION,
    "layernorm": {"rows": {"N": 33, "C": 1024}, "odd": {"N": 7, "C": 333}},
    "embedding_bag": {"bags": {"V": 300, "D": 36, "T": 1111, "BAGS": 97}},
    "adamw": {"odd": {"N": 5003, "STEP": 3}},
    "matmul_fp16": {"square": {"M": 48, "N": 48, "K": 48}, "ragged": {"M": 33, "N": 65, "K": 257}},
}


@cache
def shrunken(name: str) -> Task:
    """The packaged task `name`, with its gates, on small cases."""
    whole = load_task(find_task(name))
    small = {"cases": CASES[name], "hidden_cases": {}, "objective": {"cases": list(CASES[name])}}
    return Task.model_validate({**whole.model_dump(), **small})


@cache
def expected_outputs(name: str) -> ExpectedOutputs:
    """Its expected outputs, on the CPU."""
    return ExpectedOutputs(shrunken(name), TaskFunctions(shrunken(name), find_task(name)), CPU)
