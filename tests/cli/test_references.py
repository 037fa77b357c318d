"""A reference that cannot be used ends `evaluate` and `run` with exit 3 and one line, on a real
emulator.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.evaluate.device.kernels import source

TASK = """\
name: scale
reference: scale.py:forward
dims: {N: int}
inputs: {x: {shape: [N], dtype: float32}}
outputs: {out: {shape: [N], dtype: float32}}
distributions: [normal]
cases: {small: {N: 256}}
hidden_cases: {odd: {N: 389}}
tiers: {fp32: {atol: 1e-6, rel_rmse: 1e-6}}
objective: {cases: [small]}
baselines: {torch: scale.py:forward}
seeds_from: [scale.cu]
limits: {reference_s: 2}
budget: {trials: 2}
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "scale.yaml").write_text(TASK)
    (tmp_path / "scale.cu").write_text(source("correct"))
    return tmp_path / "scale.yaml"


HIDDEN = (
    "import time\ndef forward(x):\n    time.sleep(3600 * (x.numel() == 389))\n    return x * 2\n"
)
NARROW = "def forward(x):\n    return x.half() * 2\n"
WRITES = "def forward(x):\n    return x.mul_(2)\n"
ENDED = (
    "scale.py:forward for case odd (hidden) has not ended after 2 s, which is all that the task's"
    " limits.reference_s allows: "
)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (NARROW, "scale.py:forward: out must be torch.float64 for case small, "),
        (WRITES, "scale.py:forward writes into its input x for case small: "),
        (HIDDEN, ENDED),
    ],
    ids=["type", "writes", "endless for a hidden case"],
)
def test_an_unusable_reference_gives_no_verdict_on_a_kernel(
    call: Call, task: Path, code: str, says: str
) -> None:
    (task.parent / "scale.py").write_text(code)
    found = call("evaluate", task.parent / "scale.cu", "--task", task, "--device", "emulator")
    assert (found.code, found.out) == (3, ""), found
    assert [line for line in found.err.splitlines() if says in line] == [found.err.splitlines()[-1]]
    assert found.err.splitlines()[-1].startswith(f"evoengine: {says}")


def test_an_endless_reference_ends_the_run_and_settles_nothing(call: Call, task: Path) -> None:
    (task.parent / "scale.py").write_text(HIDDEN)
    found = call("run", task, "--device", "emulator", "--run", "one")
    assert found.code == 3 and f"evoengine: {ENDED}" in found.err, found
    assert found.err.count("odd") == 1 and "389" not in found.err, (
        "the case is named once, to the user"
    )
    assert json.loads(call("show", "one", "--json").out)["settled"] == 0


def test_an_endless_function_that_draws_inputs_is_ended_and_named(call: Call, task: Path) -> None:
    task.write_text(
        TASK.replace("dtype: float32}}\noutputs", "dtype: float32, draw: scale.py:make}}\noutputs")
    )
    (task.parent / "scale.py").write_text(
        "import time\ndef forward(x):\n    return x * 2\ndef make(shape):\n    time.sleep(3600)\n"
    )
    found = call("evaluate", task.parent / "scale.cu", "--task", task, "--device", "emulator")
    assert found.code == 3, found
    assert found.err.splitlines()[-1].startswith(
        "evoengine: scale.py:make for case small has not ended after 2 s, which is all that"
    )
