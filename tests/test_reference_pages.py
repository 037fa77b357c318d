"""docs/tasks.md and docs/kernels.md: every example is loaded as a user's file would be, and no key
goes without one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from evoengine.candidate import binding, header, kernel_file
from evoengine.candidate.arch import DeviceLimits, limits_of_arch
from evoengine.candidate.header import LaunchSpec, Plan, ScratchSpec, TypedArgument
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.worker.drawing_functions import DrawingFunctions
from evoengine.evaluate.worker.inputs import make_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task import domain, draw, expression, schema
from evoengine.task.distributions import DISTRIBUTIONS, STRUCTURES
from evoengine.task.domain import Domain
from evoengine.task.draw import Draw
from evoengine.task.expression import FUNCTIONS
from evoengine.task.load import load_task
from evoengine.task.schema import (
    DTYPES,
    UNITS,
    Budget,
    Input,
    Limits,
    Objective,
    Output,
    OutputTolerances,
    Target,
    Task,
    Tier,
    Work,
)
from tests.evaluate.worker.shrunken import CPU
from tests.test_docs import BLOCK

DOCS = Path(__file__).resolve().parent.parent / "docs"
OF_A_TASK = (
    Task,
    Domain,
    Input,
    Draw,
    Output,
    Tier,
    OutputTolerances,
    Objective,
    Target,
    Work,
    Budget,
    Limits,
)
OF_A_KERNEL = (Plan, ScratchSpec, LaunchSpec, TypedArgument)
ROWS_TASK = """\
name: rows
reference: rows.py:forward
dims: {N: int, C: int}
inputs:
  x: {shape: [N, C], dtype: float32}
  weight: {shape: [C], dtype: float32}
  eps: {value: 1e-6, dtype: float32}
outputs:
  out: {shape: [N, C], dtype: float32}
cases: {rows: {N: 64, C: 1024}}
hidden_cases: {odd: {N: 7, C: 333}}
tiers: {fp32: {atol: 1e-5, rel_rmse: 1e-6}}
objective: {cases: [rows]}
baselines: {torch: rows.py:forward}
budget: {trials: 1}
"""


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return [block["text"] for block in BLOCK.finditer(text) if block["language"] == language]


def loaded_tasks(folder: Path) -> list[Task]:
    """The page's first block is a whole task; each later one replaces keys of it. All go through
    the real loader.
    """
    text = page("tasks.md")
    for name, code in zip(("attention.py", "draws.py"), blocks(text, "python"), strict=True):
        (folder / name).write_text(code)
    whole, *parts = blocks(text, "yaml")
    found = []
    for number, part in enumerate(["", *parts]):
        path = folder / f"{number}.yaml"
        keys = set(yaml.safe_load(part) or {})
        kept = [
            piece
            for piece in re.split(r"^(?=\w)", whole, flags=re.MULTILINE)
            if piece and piece.partition(":")[0] not in keys
        ]
        path.write_text("".join(kept) + part)
        found.append(load_task(path))
    assert len(found) > 5
    return found


def loaded_kernels() -> list[Candidate]:
    text = page("kernels.md")
    files = blocks(text, "cuda") + [
        f"/* evoengine\n{header}*/\n" for header in blocks(text, "yaml")
    ]
    return [kernel_file.parse(file, "kernels.md") for file in files]


def said(value: Any) -> Iterator[tuple[type[BaseModel], str]]:
    """Model and key of everything that an example states."""
    if isinstance(value, BaseModel):
        for key in value.model_fields_set:
            yield type(value), key
            yield from said(getattr(value, key))
    elif isinstance(value, dict):
        for item in value.values():
            yield from said(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from said(item)


def all_keys(models: tuple[type[BaseModel], ...]) -> set[tuple[type[BaseModel], str]]:
    return {(model, key) for model in models for key in model.model_fields}


def models_below(model: type[BaseModel]) -> set[type[BaseModel]]:
    """Every model that a field of `model` can hold."""
    found = set()
    queue = [model]
    while queue:
        for key, field in queue.pop().model_fields.items():
            assert field.annotation is not None, key
            for name in re.findall(
                r"evoengine\.\w+\.\w+\.(\w+)", repr(field.annotation) + repr(field.metadata)
            ):
                for module in (schema, domain, draw, header):
                    inner = getattr(module, name, None)
                    if not isinstance(inner, type) or not issubclass(inner, BaseModel):
                        continue
                    if inner not in found:
                        found.add(inner)
                        queue.append(inner)
    return found


def test_the_models_of_both_pages_are_all_there_are() -> None:
    assert models_below(Task) | {Task} == set(OF_A_TASK)
    assert models_below(Plan) | {Plan} == set(OF_A_KERNEL)


def test_every_example_of_a_task_loads_and_together_they_state_every_key(tmp_path: Path) -> None:
    assert {pair for loaded in loaded_tasks(tmp_path) for pair in said(loaded)} == all_keys(
        OF_A_TASK
    )


def test_every_example_of_a_kernel_loads_and_together_they_state_every_key() -> None:
    assert {pair for parsed in loaded_kernels() for pair in said(parsed.plan)} == all_keys(
        OF_A_KERNEL
    )


def test_every_example_of_a_kernel_binds_to_the_task_of_its_page(tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text("def forward(x, weight, eps): ...\n")
    (tmp_path / "rows.yaml").write_text(ROWS_TASK)
    rows = load_task(tmp_path / "rows.yaml")
    for parsed in loaded_kernels():
        found = list(binding.configurations(parsed, rows, limits_of_arch("sm_89")))
        assert found and parsed.tunables in found, parsed.plan.name


@pytest.mark.parametrize(("name", "models"), [("tasks.md", OF_A_TASK), ("kernels.md", OF_A_KERNEL)])
def test_every_key_is_explained_in_words(name: str, models: tuple[type[BaseModel], ...]) -> None:
    words = BLOCK.sub("", page(name))
    written = [model.model_fields[key].alias or key for model, key in all_keys(models)]
    assert not [key for key in written if f"`{key}`" not in words]


def test_the_pages_name_every_dtype_unit_function_and_name_of_a_device() -> None:
    words = BLOCK.sub("", page("tasks.md"))
    assert not [item for item in (*DTYPES, *UNITS) if f"`{item}`" not in words]
    words = BLOCK.sub("", page("kernels.md"))
    assert not [item for item in DeviceLimits("", 0, 0).scope() if f"`{item}`" not in words]
    assert not [item for item in FUNCTIONS if f"`{item}(" not in words]


def test_the_table_of_distributions_has_a_row_for_each() -> None:
    table = page("tasks.md").partition("| distribution | |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \| \S", table, re.M) == list(DISTRIBUTIONS)


def test_the_table_of_structures_has_a_row_for_each() -> None:
    table = page("tasks.md").partition("| `dist` | takes |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\| \S", table, re.M)
    assert [name for name, _ in rows] == list(STRUCTURES)
    for name, takes in rows:
        own = [key for key in draw.TAKES[name] if key not in draw.OF_SETS]
        assert re.findall(r"`(\w+)`", takes) == own


def test_every_example_of_inputs_can_be_drawn(tmp_path: Path) -> None:
    for loaded in loaded_tasks(tmp_path):
        functions = TaskFunctions(loaded, tmp_path / "t.yaml")
        case = min(loaded.all_cases, key=lambda name: math.prod(loaded.all_cases[name].values()))
        by_function = DrawingFunctions(loaded, functions)
        for distribution in loaded.distributions:
            found = make_inputs(loaded, case, distribution, 0, CPU, by_function=by_function)
            assert list(found) == [name for name, spec in loaded.inputs.items() if spec.shape]


def test_the_defaults_of_the_limits_are_the_real_ones() -> None:
    rows = dict(
        re.findall(
            r"^\| (`\w+`(?:, `\w+`)?) \| ([^|]+) \|",
            page("tasks.md").partition("key of `limits`")[2],
            re.MULTILINE,
        )
    )
    shown = {}
    for names, values in rows.items():
        for name, value in zip(re.findall(r"`(\w+)`", names), values.split(", "), strict=True):
            number, _, unit = value.partition(" ")
            shown[name] = float(number) * UNITS.get(unit, 1)
    assert shown == {key: float(getattr(Limits(), key)) for key in Limits.model_fields}


def test_the_examples_of_functions_give_what_the_page_says() -> None:
    rows = re.findall(r"\| `([^`|]+)` \| ([\d.]+) \|$", page("kernels.md"), re.MULTILINE)
    assert {text.partition("(")[0] for text, _ in rows} == set(FUNCTIONS)
    assert [(text, str(expression.parse(text).evaluate({}))) for text, _ in rows] == rows
