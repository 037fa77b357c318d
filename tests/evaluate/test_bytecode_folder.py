"""Compiled Python modules are kept where Python itself keeps none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evoengine.errors import DeviceError
from evoengine.evaluate.bytecode_folder import bytecode_variables
from evoengine.evaluate.child_environment import child_environment

MODULE = "kept_nowhere"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module in a Python that may not keep compiled ones."""
    file = tmp_path / "site" / f"{MODULE}.py"
    file.parent.mkdir()
    file.write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(file.parent))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    return file


def test_a_child_keeps_what_it_compiles_in_the_folder(module: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "bytecode"
    variables = bytecode_variables(folder, MODULE)
    path = os.pathsep.join([str(module.parent), *filter(None, sys.path)])
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path}
    # the child gets them as a fork server does
    subprocess.run(
        [sys.executable, "-c", f"import {MODULE}"],
        check=True,
        env={**child_environment(environ), **variables},
    )
    kept = [file.name for file in folder.rglob("*.pyc")]
    assert [name for name in kept if name.startswith(MODULE)], kept
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(module.parent.iterdir()) == [module], "nothing is written beside the module"


def test_python_keeps_modules_itself_where_it_may_or_has_them(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bytecode"
    assert bytecode_variables(folder, "no_such_module") == {}
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert bytecode_variables(folder, MODULE) == {}
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", str(module)],
        check=True,
        env={**os.environ, "PYTHONPYCACHEPREFIX": ""},
    )
    assert bytecode_variables(folder, MODULE) == {}
    assert not folder.exists()


def test_a_folder_that_others_may_write_is_refused(module: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bytecode"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(DeviceError, match=r"can be written by other users.*Python runs the code"):
        bytecode_variables(folder, MODULE)
