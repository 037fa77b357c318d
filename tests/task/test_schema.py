from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evoengine.candidate.moved_bytes import tensor_bytes
from evoengine.errors import TaskError
from evoengine.paths import packaged_tasks
from evoengine.task import load, yaml_source
from evoengine.task.load import load_task
from evoengine.task.schema import Task, Tier, Tolerances, shape_of
from tests.small import TASK_DATA, small_task

PACKAGED = list(packaged_tasks())

TEXT = """\
name: scale_rows
reference: scale_rows.py:forward
dims: {N: int, flip: bool}
inputs:
  x: {shape: [N, 4], dtype: float32}
  factor: {value: 1/N, dtype: float32}
outputs:
  out: {shape: [N, 4], dtype: float32}
cases:
  plain: {N: 64, flip: false}
hidden_cases:
  odd: {N: 7, flip: true}
seeds: [0, 1, 2]
tiers:
  fp32: {atol: 1e-6, rel_rmse: 1e-6}
objective: {cases: [plain]}
baselines:
  torch.mul: scale_rows.py:forward
target: {arch: sm_89, shared: 99KiB}
budget: {trials: 10}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scale_rows.py").write_text("def forward(x, factor):\n    return x * factor\n")
    return tmp_path


def written(folder: Path, text: str) -> Task:
    path = folder / "t.yaml"
    path.write_bytes(text.encode())
    return load_task(path)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_task_file_loads_with_any_line_end_and_byte_order_mark(
    folder: Path, newline: str, start: str
) -> None:
    task = written(folder, start + TEXT.replace("\n", newline))
    assert task.name == "scale_rows"
    assert task.target is not None
    assert task.target.shared == 99 * 1024
    assert task.scope("odd") == {"N": 7, "flip": True}
    assert shape_of(task.outputs["out"].shape, task.scope("odd")) == (7, 4)
    assert list(task.all_cases) == ["plain", "odd"]
    assert Task.model_validate_json(task.model_dump_json()) == task


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "name: scale_rows",
            "nam: scale_rows",
            "t.yaml:1:6: nam: unknown key; did you mean 'name'[?] known: name, summary, reference",
        ),
        (
            "rel_rmse: 1e-6",
            "relrmse: 1e-6",
            (
                "t.yaml:15:31: tiers.fp32.relrmse: unknown key; did you mean 'rel_rmse'[?] known:"
                " atol, rtol"
            ),
        ),
        (
            "budget: {trials: 10}\n",
            "",
            "t.yaml:1:1: budget: this key is required",
        ),
        (
            "budget: {trials: 10}",
            "budget: {trials: 0}",
            "t.yaml:20:18: budget.trials: expected a number > 0, got 0",
        ),
        (
            "budget: {trials: 10}",
            "budget: {trials: 10, tiers: {fp99: 1}}",
            "t.yaml:20:36: budget.tiers: no tier 'fp99'",
        ),
        (
            "budget: {trials: 10}",
            "budget: {trials: 10, tiers: {fp32: 0.5}}",
            "t.yaml:20:29: budget.tiers: the shares add up to 0.5, expected 1",
        ),
        ("atol: 1e-6", "atol: -1", "t.yaml:15:16: tiers.fp32.atol: expected a number >= 0, got -1"),
        (
            "atol: 1e-6",
            "atol: .inf",
            "t.yaml:15:16: tiers.fp32.atol: expected a number, got '.inf'",
        ),
        (
            "atol: 1e-6",
            "atol: inf",
            "t.yaml:15:16: tiers.fp32.atol: expected a finite number, got 'inf'",
        ),
        (
            "atol: 1e-6",
            "atol: nan",
            "t.yaml:15:16: tiers.fp32.atol: expected a finite number, got 'nan'",
        ),
        (
            "shape: [N, 4], dtype: float32}\n  f",
            "shape: [N, 4], dtype: fp32}\n  f",
            "t.yaml:5:29: inputs.x.dtype: expected 'float16', .* got 'fp32'",
        ),
        (
            "shape: [N, 4], dtype: float32}\n  f",
            "shape: [1, 1, 1, 1, 1, 1, 1, 1, 1], dtype: float32}\n  f",
            "t.yaml:5:14: inputs.x.shape: expected at most 8 in the list",
        ),
        (
            "shape: [N, 4], dtype: float32}\n  f",
            "dtype: float32}\n  f",
            "t.yaml:5:6: inputs.x: expected either shape .* or value",
        ),
        (
            "shape: [N, 4], dtype: float32}\n  f",
            "shape: [N, M], dtype: float32}\n  f",
            "t.yaml:5:18: x: unknown name 'M'; known: N, flip in 'M'",
        ),
        (
            "shape: [N, 4], dtype: float32}\n  f",
            "shape: [N, N/7], dtype: float32}\n  f",
            "t.yaml:5:18: x: N/7 is 9.1.* for case plain, expected a positive",
        ),
        (
            "value: 1/N",
            "value: 1/(N - 64)",
            "t.yaml:6:19: factor: division by zero in '1/.N - 64.', column 1 for case plain",
        ),
        (
            "value: 1/N",
            "value: [1]",
            "t.yaml:6:19: inputs.factor.value: expected an expression, got .1.",
        ),
        (
            "plain: {N: 64, flip: false}",
            "plain: {N: 0, flip: false}",
            "t.yaml:10:14: case plain: N must be a positive integer, got 0",
        ),
        (
            "plain: {N: 64, flip: false}",
            "plain: {N: true, flip: false}",
            "t.yaml:10:14: case plain: N must be a positive integer, got True",
        ),
        (
            "plain: {N: 64, flip: false}",
            "plain: {N: 64, flip: 0}",
            "t.yaml:10:24: case plain: flip must be true or false, got 0",
        ),
        (
            "plain: {N: 64, flip: false}",
            "plain: {N: 64}",
            "t.yaml:10:10: case plain: expected values for N, flip, got N",
        ),
        (
            "odd: {N: 7",
            "plain: {N: 7",
            "t.yaml:12:10: 'plain' is the name of both a case and a hidden case",
        ),
        (
            "{cases: [plain]}",
            "{cases: [plan]}",
            "t.yaml:16:21: objective.cases: no case 'plan'; did you mean 'plain'\\? known: plain",
        ),
        (
            "{cases: [plain]}",
            "{cases: []}",
            "t.yaml:16:20: objective.cases: expected at least 1 in the list",
        ),
        (
            "seeds: [0, 1, 2]",
            "seeds: [0, 1]",
            "t.yaml:13:8: seeds: expected at least 3 different ones, got .0, 1.",
        ),
        (
            "seeds: [0, 1, 2]",
            "seeds: [0, 1, 1]",
            "t.yaml:13:8: seeds: expected at least 3 different ones",
        ),
        (
            "  fp32: {atol: 1e-6, rel_rmse: 1e-6}",
            "  {}",
            "t.yaml:15:3: tiers: expected at least one",
        ),
        ("  out: {shape", "  x: {shape", "t.yaml:8:6: 'x' is in both inputs and outputs"),
        ("  out: {shape", "  N: {shape", "t.yaml:8:6: 'N' is in both dims and outputs"),
        (
            "shared: 99KiB",
            "shared: 99kb",
            (
                "t.yaml:19:31: target.shared: expected a number of bytes such as 4096, 99KiB, .*"
                " got '99kb'"
            ),
        ),
        (
            "reference: scale_rows.py:forward",
            "reference: scale_rows.py",
            "t.yaml:2:12: reference: expected FILE.py:FUNCTION, e.g. .* got 'scale_rows.py'",
        ),
        (
            "torch.mul: scale_rows.py:forward",
            "torch.mul: scale_rows.py:fast",
            "t.yaml:18:14: no function 'fast' in '.*scale_rows.py'; it has: forward",
        ),
        ("target:", "seeds_from: [gone.cu]\ntarget:", "t.yaml:19:14: no kernel 'gone.cu'"),
        (
            "arch: sm_89",
            "arch: ada",
            (
                "t.yaml:19:16: target.arch: expected an architecture such as sm_89 or sm_90a, got"
                " 'ada'"
            ),
        ),
        (
            "reference: scale_rows.py:forward",
            "reference: other.py:forward",
            "t.yaml:2:12: no file '.*other.py'",
        ),
        (
            "torch.mul: scale_rows.py:forward",
            "torch.mul: other.py:forward",
            "t.yaml:18:14: no file '.*other.py'",
        ),
        (
            "seeds: [0, 1, 2]",
            "seeds: [0, 1, 2]\ndistributions: [normal, uniform]",
            "t.yaml:14:25: distributions.1: expected 'normal', .* or '[a-z]+', got 'uniform'",
        ),
        (
            "rel_rmse: 1e-6",
            "rel_rmse: 1e-6, uses: [fp8]",
            (
                "t.yaml:15:[0-9]+: tiers.fp32.uses.0: no instructions are known as 'fp8';.* known:"
                " e4m3, e5m2, f16, bf16, tf32, int8, fp64"
            ),
        ),
        (
            "rel_rmse: 1e-6}",
            "rel_rmse: 1e-6, outputs: {oat: {atol: 1}}}",
            "t.yaml:15:53: tiers.fp32.outputs: no output 'oat'; did you mean 'out'\\? known: out",
        ),
        (
            "rel_rmse: 1e-6}",
            "rel_rmse: 1e-6, outputs: {out: {}}}",
            "t.yaml:15:53: tiers.fp32.outputs.out: expected at least one of atol, rtol, rel_rmse,",
        ),
        (
            "rel_rmse: 1e-6}",
            "rel_rmse: 1e-6, outputs: {out: {atol: -1}}}",
            "t.yaml:15:60: tiers.fp32.outputs.out.atol: expected a number >= 0, got -1",
        ),
        (
            "rel_rmse: 1e-6}",
            "rel_rmse: 1e-6, outputs: {out: {trusted: scale_rows.py:forward}}}",
            "t.yaml:15:[0-9]+: tiers.fp32.outputs.out.trusted: .*atol, rtol, rel_rmse",
        ),
        (
            "seeds: [0, 1, 2]",
            "seeds: [0, 1, 2]\nwork: {flops: 2*N}",
            "t.yaml:14:7: work: expected both flops and unit, or neither",
        ),
        (
            "seeds: [0, 1, 2]",
            "seeds: [0, 1, 2]\nwork: {flops: 0*N, unit: f16}",
            "t.yaml:14:15: flops: 0[*]N is 0 for case plain, expected a positive number",
        ),
        (
            "seeds: [0, 1, 2]",
            "seeds: [0, 1, 2]\nwork: {flops: 2*N, unit: hmma}",
            "t.yaml:14:26: work.unit: expected 'f16', .*, got 'hmma'",
        ),
        ("seeds: [0, 1, 2]", "seeds: [0, 1, 2", "t.yaml:14:6: not YAML"),
    ],
)
def test_a_wrong_task_is_explained(folder: Path, old: str, new: str, says: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(TaskError, match=says) as caught:
        written(folder, TEXT.replace(old, new))
    assert "\n" not in str(caught.value)


def test_files_that_are_not_tasks_are_explained(folder: Path) -> None:
    with pytest.raises(TaskError, match=r"no task file '.*none.yaml'; `evoengine tasks` lists"):
        load_task(folder / "none.yaml")
    with pytest.raises(TaskError, match="cannot be read"):
        load_task(folder)
    with pytest.raises(
        TaskError, match=r"t.yaml: expected a mapping with name, reference, dims, ..., got NoneType"
    ):
        written(folder, "")
    (folder / "t.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskError, match="cannot be read: 'utf-8' codec"):
        load_task(folder / "t.yaml")


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["N", "float32", "a.py:f", "1/0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["N", "C", "x", "dtype", "shape", "a b"]), inner, max_size=3
        )
    ),
    max_leaves=5,
)


@given(st.sampled_from(sorted(TASK_DATA)), st.data())
def test_any_value_anywhere_is_accepted_or_refused_in_one_line(
    key: str, data: st.DataObject
) -> None:
    changed: dict[str, Any] = copy.deepcopy(TASK_DATA)
    place, name = changed, key
    while isinstance(place[name], dict) and place[name] and data.draw(st.booleans()):
        place, name = place[name], data.draw(st.sampled_from(sorted(place[name])))
    place[name] = data.draw(anything)
    try:
        load.validated(yaml_source.load(json.dumps(changed, ensure_ascii=False), "t.yaml"))
    except yaml_source.YamlError as error:
        assert str(error).startswith("t.yaml:")
        assert "\n" not in str(error)


def test_the_packaged_tasks_are_these() -> None:
    assert [path.stem for path in PACKAGED] == [
        "adamw",
        "embedding_bag",
        "layernorm",
        "matmul_fp16",
        "sdpa_h200",
        "sdpa_l4",
    ]


@pytest.mark.parametrize("path", PACKAGED, ids=lambda path: path.stem)
def test_packaged_tasks_load_and_name_existing_files(path: Path) -> None:
    task = load_task(path)
    assert task.name == path.stem
    assert task.hidden_cases
    assert all((path.parent.parent / "seeds" / seed).is_file() for seed in task.seeds_from)
    assert all(tier.trusted for tier in task.tiers.values())


def test_attention_tasks_differ_in_target_and_starting_kernels_only() -> None:
    l4, h200 = (load_task(path) for path in PACKAGED if path.stem.startswith("sdpa"))
    own = {"name", "summary", "target", "seeds_from", "budget"}
    assert l4.model_dump(exclude=own) == h200.model_dump(exclude=own)


def test_small_task_of_the_tests_is_valid() -> None:
    assert small_task().all_cases


def test_an_output_has_its_own_tolerances_and_those_of_its_tier_otherwise() -> None:
    own = {"lse": {"atol": 1e-4, "rtol": 0, "trusted_factor": 1}}
    tier = Tier(atol=1e-5, rtol=1e-3, rel_rmse=1e-6, trusted_factor=3, outputs=own)
    assert tier.tolerances("out") == Tolerances(
        atol=1e-5, rtol=1e-3, rel_rmse=1e-6, trusted_factor=3
    )
    assert tier.tolerances("lse") == Tolerances(atol=1e-4, rtol=0, rel_rmse=1e-6, trusted_factor=1)


def test_tensors_of_a_task_may_have_no_dimensions(folder: Path) -> None:
    task = written(folder, TEXT.replace("out: {shape: [N, 4]", "out: {shape: []"))
    assert shape_of(task.outputs["out"].shape, task.scope("odd")) == ()
    assert tensor_bytes(task, "odd") == (4 * 7 * 4, 4)
