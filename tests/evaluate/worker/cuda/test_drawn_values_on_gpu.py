"""Inputs are drawn on a GPU as they are on a CPU: other values, of the same kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.worker.drawing_functions import DrawingFunctions
from evoengine.evaluate.worker.inputs import make_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.distributions import DISTRIBUTIONS
from evoengine.task.schema import Task
from tests.small import small_task

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device"),
]

INPUTS: dict[str, tuple[str, Any]] = {
    "integers": ("int32", {"dist": "uniform", "low": -5, "high": 50257}),
    "floats": ("float16", {"dist": "uniform", "low": 0.1, "high": 0.7}),
    "probabilities": ("bfloat16", {"dist": "probabilities"}),
    "offsets": ("int64", {"dist": "offsets", "high": 1000}),
    "permutation": ("int32", {"dist": "permutation"}),
    "mask": ("bool", {"dist": "mask", "density": 0.3}),
    "one_hot": ("float32", {"dist": "one_hot"}),
    "triangle": ("float32", {"dist": "triangular", "scale": 2, "shift": 1}),
    "by_function": ("float32", "draws.py:make"),
    "from_cpu": ("float32", "draws.py:make_on_cpu"),
}
DRAWS = """
import torch

def make(generator, shape):
    return torch.rand(shape, generator=generator, device=generator.device)

def make_on_cpu(generator, shape):
    seeded = torch.Generator().manual_seed(generator.initial_seed())
    return torch.rand(shape, generator=seeded)
"""


def task() -> Task:
    return small_task(
        inputs={
            name: {"shape": ["N", "C"], "dtype": dtype, "draw": draw}
            for name, (dtype, draw) in INPUTS.items()
        }
    )


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_draw_keeps_to_its_kind_and_comes_again_with_its_seed(
    tmp_path: Path, distribution: str
) -> None:
    (tmp_path / "draws.py").write_text(DRAWS)
    by_function = DrawingFunctions(task(), TaskFunctions(task(), tmp_path / "t.yaml"))
    device = torch.device("cuda", 0)
    found, again = (
        make_inputs(task(), "plain", distribution, 2**61 + 1, device, by_function=by_function)
        for _ in range(2)
    )
    for name, (dtype, _) in INPUTS.items():
        value = found[name]
        assert value.device == device and value.dtype is getattr(torch, dtype), name
        assert value.shape == (64, 96) and value.is_contiguous(), name
        assert torch.equal(value, again[name]), name
    host = {name: value.cpu().double() for name, value in found.items()}
    assert host["integers"].min() == -5 and host["integers"].max() == 50256
    assert host["floats"].min() >= 0.1 and host["floats"].max() < 0.7
    assert bool(((host["probabilities"].sum(-1) - 1).abs() < 0.02).all())
    assert host["probabilities"].min() > 0
    assert bool((host["offsets"].diff(dim=-1) >= 0).all())
    assert bool((host["offsets"][:, [0, -1]] == torch.tensor([0, 1000])).all())
    assert bool((host["permutation"].sort(-1).values == torch.arange(96)).all())
    assert 0.25 < float(host["mask"].mean()) < 0.35
    assert bool((host["one_hot"].sum(-1) == 1).all())
    assert torch.equal(host["triangle"].tril(), host["triangle"])
