"""The Python files that a task depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.paths import packaged_tasks
from evoengine.search.references import reference_digests
from evoengine.task.load import load_task
from evoengine.task.python_files import python_files
from tests.scale_task import write_task


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_task(tmp_path)
    for name in ("helper", "deeper", "unused", "random"):
        (tmp_path / f"{name}.py").touch()
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    for name in ("__init__", "one", "two", "inner/__init__", "inner/three"):
        (package / f"{name}.py").touch()
    return tmp_path


def found(folder: Path, code: str) -> list[str]:
    (folder / "scale.py").write_text(f"{code}\ndef forward(x):\n    return 2 * x\n")
    return list(python_files(load_task(folder / "scale.yaml"), folder / "scale.yaml"))


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("import torch, os", []),
        ("import helper", ["helper.py"]),
        ("import random", ["random.py"]),
        ("from helper import deeper", ["helper.py"]),
        ("def f():\n    import helper as h", ["helper.py"]),
        ("import package", ["package/__init__.py"]),
        ("import package.one", ["package/__init__.py", "package/one.py"]),
        ("from package import one, name", ["package/__init__.py", "package/one.py"]),
        (
            "from package.inner.three import name",
            ["package/__init__.py", "package/inner/__init__.py", "package/inner/three.py"],
        ),
        ("from package import *", ["package/__init__.py"]),
    ],
)
def test_an_import_from_beside_the_tasks_file_is_one_of_its_files(
    folder: Path, code: str, files: list[str]
) -> None:
    assert found(folder, code) == sorted([*files, "scale.py"])


def test_imports_of_imports_count_relative_ones_too_and_circles_end(folder: Path) -> None:
    (folder / "helper.py").write_text("import deeper, package.inner\n")
    (folder / "deeper.py").write_text("import helper\n")
    (folder / "package" / "inner" / "__init__.py").write_text("from .. import two\n")
    (folder / "package" / "two.py").write_text("from .inner.three import name\n")
    assert found(folder, "import helper") == [
        "deeper.py",
        "helper.py",
        "package/__init__.py",
        "package/inner/__init__.py",
        "package/inner/three.py",
        "package/two.py",
        "scale.py",
    ]


@pytest.mark.parametrize("text", ["def (", "\0", "# coding: unknown\n"])
def test_a_module_that_is_not_python_counts_itself(folder: Path, text: str) -> None:
    (folder / "helper.py").write_text(text)
    assert found(folder, "import helper") == ["helper.py", "scale.py"]


def test_a_change_of_an_imported_module_changes_its_digest(folder: Path) -> None:
    (folder / "scale.py").write_text("import helper\ndef forward(x):\n    return 2 * x\n")
    path = folder / "scale.yaml"
    before = reference_digests(load_task(path), path)
    (folder / "helper.py").write_text("changed = True\n")
    after = reference_digests(load_task(path), path)
    assert before.keys() == after.keys() == {"helper.py", "scale.py"}
    assert before["scale.py"] == after["scale.py"] and before["helper.py"] != after["helper.py"]


@pytest.mark.parametrize("path", [*packaged_tasks()], ids=lambda path: path.stem)
def test_packaged_tasks_depend_on_the_files_that_they_name(path: Path) -> None:
    task = load_task(path)
    named = {name.partition(":")[0] for name in task.functions.values()}
    assert {*python_files(task, path)} == named
