from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evoengine.candidate import binding, kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.evaluate.device_choice import missing_for_emulator
from evoengine.task import schema
from evoengine.task.load import load_task
from tests.cli.conftest import Call
from tests.cli.test_run import ROOT

FILES = ("my_norm.yaml", "my_norm.py", "my_norm.cu")
needs_emulator = pytest.mark.skipif(
    bool(missing_for_emulator()), reason=f"needs {missing_for_emulator()}"
)


def test_init_writes_a_task_that_loads_with_its_reference_and_kernel(
    call: Call, tmp_path: Path
) -> None:
    found = call("init", "my_norm")
    assert found.code == 0, found.err
    assert found.out.splitlines()[:3] == [f"wrote {name}" for name in FILES]
    loaded = load_task(tmp_path / "my_norm.yaml")
    assert (
        loaded.name == "my_norm"
        and loaded.reference == "my_norm.py:forward"
        and loaded.seeds_from == ("my_norm.cu",)
    )
    assert len(loaded.distributions) == 3 and loaded.hidden_cases
    parsed = kernel_file.parse((tmp_path / "my_norm.cu").read_text())
    assert (
        parsed.plan.name == "my_norm"
        and len(list(binding.configurations(parsed, loaded, limits_of_arch("sm_89")))) > 1
    )
    assert not [name for name in FILES if "starter" in (tmp_path / name).read_text()]


def test_every_key_of_a_new_task_is_explained_by_a_comment(call: Call, tmp_path: Path) -> None:
    call("init", "my_norm")
    lines = (tmp_path / "my_norm.yaml").read_text().splitlines()
    keys = {
        line.split(":")[0].lstrip("# "): number
        for number, line in enumerate(lines)
        if line.lstrip("# ").split(":")[0].isidentifier()
    }
    assert set(keys) >= set(schema.Task.model_fields) - {"limits"}


@needs_emulator
def test_what_init_prints_next_works(call: Call, tmp_path: Path) -> None:
    """The commands as they are printed, in a real process, on the emulator."""
    printed = call("init", "my_norm", "--dir", "a folder").out
    commands = [
        shlex.split(line, comments=True) for line in printed.partition("next:\n")[2].splitlines()
    ]
    arguments = {
        command[command.index("evoengine") + 1]: command[command.index("evoengine") + 2 :]
        for command in commands
    }
    assert set(arguments) == {"evaluate", "prompt", "run"}
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")} | {
        "PYTHONPATH": str(ROOT)
    }
    for name, more in (("evaluate", []), ("run", ["--trials", "2", "--run", "one"])):
        command = [
            sys.executable,
            "-m",
            "evoengine",
            name,
            *arguments[name],
            "--device",
            "emulator",
            *more,
        ]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=110
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "runs" / "one" / "elites" / "fp32" / "1" / "kernel.cu").is_file()


@pytest.mark.parametrize("taken", FILES)
def test_init_overwrites_nothing(call: Call, tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("mine")
    found = call("init", "my_norm")
    assert found.code == 2 and f"{taken} already exists and would be overwritten" in found.err
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [taken] and (
        tmp_path / taken
    ).read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["", "../up", "a/b", "1st", "my-norm", "a b", "ünicode", "x" * 65, "a.yaml"]
)
def test_init_takes_plain_names_only(call: Call, tmp_path: Path, name: str) -> None:
    found = call("init", "--", name)
    assert found.code == 2 and f"got {name!r}" in found.err
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


def test_init_in_a_read_only_folder_leaves_nothing(call: Call, tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("mine")
    found = call("init", "my_norm", "--dir", "afile")
    assert found.code == 2 and "the files cannot be written" in found.err
    assert (tmp_path / "afile").read_text() == "mine"
