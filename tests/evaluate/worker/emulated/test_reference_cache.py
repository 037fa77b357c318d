"""Inputs and references on disk: computed once, for all workers, and only while they mean the
same.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from evoengine.errors import DeviceError
from evoengine.evaluate.worker import expected_outputs as answers_module
from evoengine.evaluate.worker.emulated import array_cache
from evoengine.evaluate.worker.emulated.array_cache import ArrayCache
from evoengine.evaluate.worker.emulated.reference_cache import DiskInputCache, DiskOutputCache
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.inputs import make_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.schema import Task
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

# the reference twice on the smallest case, to compare two calls; the reference; the
# trusted implementation
FOUND_ANEW = 4
COUNTING = "calls = []\ndef forward(x):\n    calls.append(1)\n    return x * 2\n"


def expected_outputs_of(
    folder: Path, task: Task | None = None
) -> tuple[ExpectedOutputs, TaskFunctions]:
    """As a new worker would make them."""
    task = task or small_task(
        tiers={"fp32": {"atol": 1e-6, "rel_rmse": 1e-6, "trusted": "scale_rows.py:forward"}}
    )
    functions = TaskFunctions(task, folder / "t.yaml")
    arrays = ArrayCache(folder / "cache")
    return (
        ExpectedOutputs(
            task,
            functions,
            CPU,
            DiskOutputCache(arrays, task, folder / "t.yaml"),
            DiskInputCache(arrays, task, folder / "t.yaml"),
        ),
        functions,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scale_rows.py").write_text(COUNTING)
    return tmp_path


def calls(functions: TaskFunctions) -> int:
    return len(functions._modules["scale_rows.py"].calls) if functions._modules else 0


def test_a_new_worker_finds_the_same_expected_output_without_computing_it(folder: Path) -> None:
    first, _ = expected_outputs_of(folder)
    second, functions = expected_outputs_of(folder)
    before, after = first.get("plain", "wide", 2), second.get("plain", "wide", 2)
    assert (
        torch.equal(before.reference["out"], after.reference["out"])
        and after.reference["out"].dtype is torch.float64
    )
    assert (before.gates, before.trusted) == (after.gates, after.trusted)
    assert calls(functions) == 0


@pytest.mark.parametrize("change", ["scale_rows.py", "helper.py"])
def test_a_change_of_any_python_file_beside_the_task_computes_all_references_anew(
    folder: Path, change: str
) -> None:
    expected_outputs_of(folder)[0].get("plain", "normal", 0)
    (folder / change).write_text(COUNTING + "# changed\n")
    again, functions = expected_outputs_of(folder)
    again.get("plain", "normal", 0)
    assert calls(functions) == FOUND_ANEW


def test_another_gate_or_another_size_is_another_entry(folder: Path) -> None:
    expected_outputs_of(folder)[0].get("plain", "normal", 0)
    for changes in (
        {"tiers": {"fp32": {"atol": 1e-5, "rel_rmse": 1e-6}}},
        {"tiers": {"fp32": {"atol": 1e-6, "rel_rmse": 1e-6, "outputs": {"out": {"rtol": 1e-5}}}}},
        {"cases": {"plain": {"N": 8, "C": 96, "flip": False}}},
    ):
        again, functions = expected_outputs_of(folder, small_task(**changes))
        again.get("plain", "normal", 0)
        assert calls(functions) >= 1


def test_the_first_seed_which_decides_on_factors_is_a_part_of_every_name(folder: Path) -> None:
    assert len(names(folder, small_task(seeds=[0, 1, 2]))) == 2
    assert len(names(folder, small_task(seeds=[3, 1, 2]))) == 2
    assert not names(folder, small_task(seeds=[0, 1, 2]))


def names(folder: Path, task: Task) -> set[str]:
    """The files that the inputs and expected outputs of one set have on disk."""
    made, _ = expected_outputs_of(folder, task)
    before = set((folder / "cache").glob("*.json"))
    made.inputs("plain", "normal", 0)
    made.get("plain", "normal", 0)
    return {path.name for path in set((folder / "cache").glob("*.json")) - before}


def test_another_draw_and_another_function_that_draws_have_other_names(folder: Path) -> None:
    def task_with(draw: object) -> Task:
        return small_task(inputs={"x": {"shape": ["N", "C"], "dtype": "float32", "draw": draw}})

    code = (
        "import torch\ndef make(generator, shape):\n"
        "    return torch.rand(shape, generator=generator)\n"
    )
    (folder / "draws").mkdir()  # the digest of the files beside the task does not hold it
    (folder / "draws" / "made.py").write_text(code)
    assert len(names(folder, task_with(None))) == 2
    assert not names(folder, task_with(None))
    for draw in ({"dist": "normal"}, {"scale": 2}, {"scale": 3}, "draws/made.py:make"):
        assert len(names(folder, task_with(draw))) == 2
        assert not names(folder, task_with(draw))
    (folder / "draws" / "made.py").write_text(code.replace("rand(", "randn("))
    assert len(names(folder, task_with("draws/made.py:make"))) == 2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
def test_cached_inputs_are_those_that_were_drawn(
    folder: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = small_task(inputs={"x": {"shape": ["N", "C"], "dtype": dtype}})
    drawn = make_inputs(task, "plain", "wide", 1, CPU)
    for _ in range(2):
        found = expected_outputs_of(folder, task)[0].inputs("plain", "wide", 1)
        assert (
            list(found) == ["x"]
            and found["x"].dtype is drawn["x"].dtype
            and torch.equal(found["x"], drawn["x"])
        )
        monkeypatch.setattr(answers_module, "make_inputs", None)  # the second time nothing is drawn


def test_tensors_without_dimensions_and_infinities_come_back_as_they_were(folder: Path) -> None:
    (folder / "scale_rows.py").write_text(
        "import torch\n"
        "def forward(x, y): return y.sum(), torch.log(x * 0)\n"
        "def overflows(x, y): return y.sum() / 0, torch.log(x * 0)\n"
    )
    number = {"shape": [], "dtype": "float32"}
    task = small_task(
        inputs={"x": number, "y": {"shape": ["N"], "dtype": "float32"}},
        outputs={"sum": number, "log": number},
        tiers={"fp32": {"atol": 0, "rel_rmse": 1e-6, "trusted": "scale_rows.py:overflows"}},
    )
    before, after = (expected_outputs_of(folder, task)[0].get("plain", "wide", 0) for _ in range(2))
    assert (before.gates, before.trusted) == (after.gates, after.trusted)
    assert after.trusted["fp32"]["sum"].max_abs == math.inf
    assert after.gates["fp32"]["sum"].atol == 0
    assert (after.reference["sum"].shape, float(after.reference["log"])) == ((), -math.inf)
    assert torch.equal(before.reference["sum"], after.reference["sum"])
    for _ in range(2):
        x = expected_outputs_of(folder, task)[0].inputs("plain", "wide", 0)["x"]
        assert x.shape == () and torch.equal(x, make_inputs(task, "plain", "wide", 0, CPU)["x"])


@pytest.mark.parametrize("suffix", ["*.json", "*.npy"])
def test_a_damaged_entry_is_as_if_it_were_not_there(folder: Path, suffix: str) -> None:
    # what is mapped must not be cut
    before = expected_outputs_of(folder)[0].get("plain", "normal", 0).reference["out"].clone()
    for path in (folder / "cache").glob(suffix):
        path.write_bytes(path.read_bytes()[:50])
    again, functions = expected_outputs_of(folder)
    assert torch.equal(again.get("plain", "normal", 0).reference["out"], before)
    assert calls(functions) == FOUND_ANEW


def test_the_oldest_entries_are_deleted_when_there_are_too_many(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_cache, "LIMIT_BYTES", 3 * 64 * 96 * 8)
    expected_outputs, _ = expected_outputs_of(folder)
    found = [expected_outputs.get("plain", "normal", seed) for seed in range(6)]
    assert len(list((folder / "cache").glob("*.npy"))) <= 3
    assert all(bool(expected.reference["out"].isfinite().all()) for expected in found), (
        "what is mapped stays"
    )


def test_a_folder_that_cannot_be_written_says_what_to_do(folder: Path) -> None:
    (folder / "cache").write_text("a file")
    with pytest.raises(
        DeviceError, match=r"inputs and references cannot be kept in .*; set EVOENGINE_CACHE_DIR"
    ):
        expected_outputs_of(folder)[0].get("plain", "normal", 0)
