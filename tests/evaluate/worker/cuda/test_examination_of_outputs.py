"""Several outputs of one replay, each under a gate of its own: compared on the device, explained
with torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from evoengine.candidate.binding import CasePlan
from evoengine.evaluate.worker.cuda.dealing import drawn
from evoengine.evaluate.worker.cuda.examination import Examination
from evoengine.evaluate.worker.cuda.input_pool import InputPool
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.runner_client import RunnerClient
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase
from evoengine.records import InputSetCheck
from tests.evaluate.worker.cuda.host_device import (
    HostHarness,
    HostReplayer,
    connected_runner,
    host_bytes,
    install,
)
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

FUNCTIONS = """\
import torch

def forward(x, shift):
    return 1000 * x, 1e-6 * x, torch.log(x.clamp(min=0)), x.square().mean() + shift

def trusted(x, shift):
    loud, *others = forward(x, shift)
    return loud + 5, *others
"""
N, C, CALLS = 64, 96, 5
MATRIX, NUMBER = {"shape": ["N", "C"], "dtype": "float32"}, {"shape": [], "dtype": "float32"}
NAMES = ("loud", "quiet", "logs", "loss")
TASK = small_task(
    distributions=["normal", "outliers", "wide"],  # large inputs would widen the gates
    inputs={"x": MATRIX, "shift": NUMBER},
    outputs={"loud": MATRIX, "quiet": MATRIX, "logs": MATRIX, "loss": NUMBER},
    tiers={
        "fp32": {
            "atol": 1e-3,
            "rel_rmse": 1e-5,
            "trusted": "scale_rows.py:trusted",
            "outputs": {"loss": {"atol": 1e-5}},
        }
    },
)
Spoil = Callable[[dict[str, torch.Tensor]], object]


def honest(call: dict[str, int]) -> dict[str, torch.Tensor]:
    """Writes all outputs of a call; returns them by name."""
    at = {
        name: host_bytes(call[name], 4 if name in ("shift", "loss") else 4 * N * C).view(
            torch.float32
        )
        for name in ("x", "shift", *NAMES)
    }
    at["loud"].copy_(1000 * at["x"])
    at["quiet"].copy_(1e-6 * at["x"])
    at["logs"].copy_(torch.log(at["x"].clamp(min=0)))
    at["loss"].copy_(at["x"].square().mean() + at["shift"])
    return at


Replay = Callable[[Spoil], tuple[tuple[InputSetCheck, ...], tuple[InputSetCheck, ...]]]


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replay]:
    """Replays an honest candidate whose second call is spoiled; its wrong sets and all checks."""
    install(monkeypatch)
    (tmp_path / "scale_rows.py").write_text(FUNCTIONS)
    expected = ExpectedOutputs(TASK, TaskFunctions(TASK, tmp_path / "t.yaml"), CPU)
    harness, pool = HostHarness(), InputPool(TASK, expected, lambda: None)

    def run(client: RunnerClient, spoil: Spoil) -> Examination:
        def behave(call: dict[str, int], number: int) -> None:
            outputs = honest(call)
            if number == 1:
                spoil(outputs)

        HostReplayer.behaviours["candidate"] = behave
        plan = CasePlan(case="plain", hidden=False, macros={}, scratch={}, launches=())
        compiled = CompiledCase(plan=plan, code_path="candidate", functions={})
        return Examination(harness, PairClient(client, None), TASK, compiled, "fp32")

    with connected_runner(monkeypatch) as client:

        def replayed(
            spoil: Spoil,
        ) -> tuple[tuple[InputSetCheck, ...], tuple[InputSetCheck, ...]]:
            examination = run(client, spoil)
            found = examination.replay(drawn(pool.sets("plain"), CALLS), cold=False)
            return found.wrong, examination.checks

        yield replayed


def test_right_outputs_pass_and_the_one_nearest_to_a_limit_is_recorded(replay: Replay) -> None:
    wrong, checks = replay(lambda _: None)
    assert wrong == () and len(checks) == CALLS and all(check.ok for check in checks)
    assert all(check.worst_output in NAMES and check.worst_index == () for check in checks)
    assert all(0 <= check.share_of_limit <= 1 for check in checks if check.share_of_limit)
    shown = {check.worst_output for check in replay(lambda at: at["loss"].add_(5e-6))[1]}
    assert "loss" in shown


def largest_of(name: str) -> Spoil:
    def spoil(at: dict[str, torch.Tensor]) -> None:
        at[name][int(at["x"].argmin())] = math.inf

    return spoil


SPOILS: dict[str, tuple[str, Spoil]] = {
    "quiet left out": ("quiet", lambda at: at["quiet"].zero_()),
    "loss left out": ("loss", lambda at: at["loss"].fill_(math.nan)),
    "loss beyond its own atol": ("loss", lambda at: at["loss"].add_(1e-4)),
    "finite for -inf": ("logs", lambda at: at["logs"].clamp_(min=-3e38)),
    "+inf for -inf": ("logs", largest_of("logs")),
    "loud beyond what is trusted": ("loud", lambda at: at["loud"].add_(20)),
}


@pytest.mark.parametrize("name", SPOILS)
def test_one_wrong_output_is_found_and_named(replay: Replay, name: str) -> None:
    output, spoil = SPOILS[name]
    (wrong,), checks = replay(spoil)
    assert (wrong.ok, wrong.worst_output) == (False, output)
    assert wrong.share_of_limit is not None and wrong.share_of_limit > 1
    assert len(checks) == CALLS - 1


def test_an_error_that_the_trusted_implementation_has_too_is_right_there_alone(
    replay: Replay,
) -> None:
    # a row of zeros, as in the distribution wide, is no place where errors are trusted
    for name, wrong in (("loud", 0), ("logs", 1)):
        assert len(replay(lambda at, name=name: at[name].add_(4 * (at["x"] != 0)))[0]) == wrong
