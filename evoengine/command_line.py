"""The commands in messages, ready to paste: with the program as it was called and the run's
folder.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def command(verb: str, root: Path) -> str:
    """The shell command, from the current folder, for `evoengine VERB` on the run in `root`."""
    return f"{program()} {verb} {shlex.quote(root.name)} --runs-dir {shlex.quote(str(root.parent))}"


def program() -> str:
    """The shell words that this program was called with."""
    called = Path(sys.argv[0])
    if called.name == "evoengine" and called.is_file():
        on_path = shutil.which("evoengine")
        if on_path and called.samefile(on_path):
            return "evoengine"
        return shlex.quote(sys.argv[0])
    return (
        f"{shlex.quote(sys.executable)} -m evoengine"
        if called.parts[-2:] == ("evoengine", "__main__.py")
        else "evoengine"
    )
