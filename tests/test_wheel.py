"""An installed wheel has all that a checkout has: tasks, seeds, prompts and the headers of the
compile stage.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("prompts", "seeds", "tasks")
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "evoengine", *SHIPPED)
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info")


def _python(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command, environment = [sys.executable, *arguments], {**os.environ, **variables}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the sources so that the checkout stays as it is."""
    copy, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=IGNORED)
        else:
            shutil.copy(source, copy / name)
    left_over = copy / "build" / "lib" / "evoengine" / "shipped" / "tasks"
    left_over.mkdir(parents=True)
    (left_over / "of_an_earlier_build.yaml").touch()
    (copy / "tasks" / "__pycache__").mkdir()
    (copy / "tasks" / "__pycache__" / "sdpa.pyc").touch()
    done = _python("-c", BUILD, str(out), cwd=copy)
    assert done.returncode == 0, done.stderr
    return next(out.glob("evoengine-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files in a folder that Python can import from."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def _files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("kind", SHIPPED)
def test_wheel_carries_what_is_beside_the_package(installed: Path, kind: str) -> None:
    assert _files(installed / "evoengine" / "shipped" / kind) == _files(ROOT / kind) != set()


def test_wheel_carries_each_file_of_the_package(installed: Path) -> None:
    packed = {name for name in _files(installed / "evoengine") if not name.startswith("shipped/")}
    assert packed == _files(ROOT / "evoengine")


def test_wheel_holds_only_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"evoengine"}


def test_installed_command_knows_the_packaged_tasks_outside_a_checkout(
    installed: Path, tmp_path: Path
) -> None:
    where = (
        "import evoengine.paths as p; print(*(f() for f in (p.prompts_dir, p.seeds_dir,"
        " p.starter_dir, p.tasks_dir)), sep='\\n')"
    )
    found = _python("-c", where, cwd=tmp_path, PYTHONPATH=str(installed))
    shown = ("prompts", "seeds", "tasks/starter", "tasks")
    assert found.stdout.split() == [
        str(installed / "evoengine" / "shipped" / kind) for kind in shown
    ]
    listed = _python("-m", "evoengine", "tasks", cwd=tmp_path, PYTHONPATH=str(installed))
    assert listed.returncode == 0, listed.stderr
    assert [
        task.stem
        for task in sorted((ROOT / "tasks").glob("*.yaml"))
        if task.stem not in listed.stdout
    ] == []
