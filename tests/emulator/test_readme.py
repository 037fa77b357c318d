"""The emulator's README: its example runs, and its table of files matches the package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import evoengine.emulator

PACKAGE = Path(evoengine.emulator.__file__).parent
README = (PACKAGE / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_and_finds_the_accesses_out_of_bounds():
    [example] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result, *findings = done.stdout.splitlines()
    assert result == "[0. 2. 4. 6.]"
    assert len(findings) == 2
    assert all(
        f" {name}" in line and "line 1" in line
        for name, line in zip("xy", sorted(findings, key=_buffer), strict=True)
    ), findings


def _buffer(line: str) -> str:
    return next(name for name in "xy" if re.search(rf"\b{name}\b", line))


def test_every_file_of_the_table_exists_and_every_folder_is_in_it():
    named = set(re.findall(r"^\| `([\w./]+)`", README, re.MULTILINE))
    assert all((PACKAGE / name).exists() for name in named)
    folders = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= named
