from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.errors import TaskError
from evoengine.task.functions import check_defines


def check(folder: Path, text: str, name: str = "forward") -> None:
    (folder / "ref.py").write_text(text)
    check_defines(folder / "ref.py", name, "t.yaml:2:12")


@pytest.mark.parametrize(
    "text",
    [
        "def forward(x): return x",
        "async def forward(x): return x",
        "class forward: pass",
        "forward = lambda x: x",
        "a, forward = 1, abs",
        "from math import sin as forward",
        "import forward.inner",
        "try:\n    import nothing\nexcept ImportError:\n    def forward(x): return x",
        "if True:\n    forward = abs",
        "from math import *",
        "def __getattr__(name): return abs",
        "# an odd escape: the compiler warns\nforward = '\\d'",
    ],
)
def test_a_name_that_may_be_defined_passes_and_nothing_is_run(tmp_path: Path, text: str) -> None:
    check(tmp_path, f"{text}\nraise SystemExit\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "def foward(x): return x",
            (
                r"^t.yaml:2:12: no function 'forward' in '.*ref.py'; did you mean 'foward'[?] it"
                r" has: foward$"
            ),
        ),
        ("x = 1\ndef f(): forward", "no function 'forward' in '.*'; it has: f$"),
        ("import math.forward", "it has: none$"),
        ("", "it has: none$"),
        ("x = 1\ndef forward(x) return x", r"ref.py:2:\d+: not Python: "),
        ("x = (", r"ref.py:1:\d+: not Python: "),
        ("x = '\0'", "ref.py.*: not Python: .*null bytes"),
    ],
)
def test_a_name_that_cannot_be_defined_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(TaskError, match=says):
        check(tmp_path, text)


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"gone\.py: cannot be read"):
        check_defines(tmp_path / "gone.py", "forward", "t.yaml:2:12")
