"""torch.compile in a task's own file costs nothing until what it returns is called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from evoengine.evaluate.worker.deferred_compile import deferred_compile

READS_THE_FILE = """
import sys, torch
from pathlib import Path
from evoengine.evaluate.worker.task_functions import TaskFunctions
from tests.small import small_task

functions = TaskFunctions(small_task(), Path(sys.argv[1]))
functions.load("scale_rows.py:compiled")
print("torch._dynamo" in sys.modules)
functions.import_compiler("scale_rows.py:compiled", "plain")
print("torch._dynamo" in sys.modules)
"""


def test_the_back_end_is_imported_when_it_is_asked_for_and_not_by_reading_a_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "scale_rows.py").write_text(
        "import torch\ndef forward(x):\n    return x * 2\ncompiled = torch.compile(forward)\n"
    )
    read = subprocess.run(
        [sys.executable, "-c", READS_THE_FILE, str(tmp_path / "t.yaml")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert read.stdout.split() == ["False", "True"]


def test_the_first_call_compiles_with_the_settings_and_later_ones_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = list[dict[str, object]]()

    def real(model: object, **settings: object) -> object:
        compiled.append(settings)
        return model

    monkeypatch.setattr(torch, "compile", real)
    with deferred_compile():

        @torch.compile(dynamic=False)
        def double(x: int) -> int:
            return 2 * x

        triple = torch.compile(lambda x: 3 * x, mode="max-autotune")
    assert compiled == [] and double.__name__ == "double"
    assert [double(2), double(3), triple(2)] == [4, 6, 6]
    assert compiled == [{"dynamic": False}, {"mode": "max-autotune"}]
    assert torch.compile is real


def test_a_module_is_compiled_at_once_because_its_attributes_are_the_compiled_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "compile", lambda model, **_: ("compiled", model))
    module = torch.nn.Identity()
    with deferred_compile():
        assert torch.compile(module) == ("compiled", module)


def test_an_error_in_the_file_leaves_torch_as_it_was() -> None:
    real = torch.compile
    with pytest.raises(ValueError, match="of the file"), deferred_compile():
        raise ValueError("of the file")
    assert torch.compile is real
