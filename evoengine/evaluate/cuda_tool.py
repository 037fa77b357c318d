"""NVIDIA's command-line tools: where they are, and one run of one, with a time limit."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evoengine.errors import ToolchainError, WorkerError
from evoengine.evaluate.child_environment import child_environment

NCU, SANITIZER = "ncu", "compute-sanitizer"
# Of one run: a profiler repeats a kernel some forty times, a checker slows it down a hundredfold.
LIMIT_S = 600.0
_INSTALL = {
    NCU: "install Nsight Compute (https://developer.nvidia.com/nsight-compute) and put ncu on PATH",
    SANITIZER: (
        "pip install nvidia-cuda-sanitizer-api, or install the CUDA toolkit, and put"
        " compute-sanitizer on PATH"
    ),
}
_OPT = Path("/opt/nvidia/nsight-compute")


@dataclass(frozen=True)
class ToolRun:
    """What a run of a tool left: its own messages, and what the program under it printed."""

    exit_code: int
    log: str  # the tool's log file
    printed: str  # standard output and errors

    @property
    def everything(self) -> str:
        """Both texts."""
        return f"{self.log}\n{self.printed}"

    @property
    def last_line(self) -> str:
        """The last line that says anything, for an error message."""
        lines = [line.strip("= ") for line in self.everything.splitlines()]
        return next((line for line in reversed(lines) if line), "it printed nothing")


def find_tool(
    name: str,
    environ: Mapping[str, str] = os.environ,
    installed: Sequence[Path] | None = None,
) -> str:
    """The path of `name`: on PATH, of the toolkit that CUDA_HOME or CUDA_PATH names, or in one of
    the folders `installed`, by default those of installers and wheels; raises ToolchainError.
    """
    toolkits = [Path(environ[key]) / "bin" for key in ("CUDA_HOME", "CUDA_PATH") if key in environ]
    others = _installed() if installed is None else installed
    for folder in (environ.get("PATH", os.defpath), *map(str, (*toolkits, *others))):
        if found := shutil.which(name, path=folder):
            return found
    raise ToolchainError(f"no {name} on this machine; {_INSTALL[name]}")


def _installed() -> list[Path]:
    folders = [Path("/usr/local/cuda/bin")]
    if _OPT.is_dir():
        folders += sorted(_OPT.iterdir(), reverse=True)  # one folder a version
    package = importlib.util.find_spec("nvidia")
    for place in (package.submodule_search_locations or ()) if package else ():
        folders += sorted(Path(place).glob("*/compute-sanitizer"))
    return folders


def run_tool(command: Sequence[str], log: Path, limit_s: float = LIMIT_S) -> ToolRun:
    """Runs a tool that writes `log`; it and what it started get the environment of children and are
    killed after `limit_s`. Raises WorkerError then, ToolchainError where it does not start.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - our own list of arguments
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=child_environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise ToolchainError(f"{command[0]} does not start: {error.strerror}") from None
    try:
        printed, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise WorkerError(
            f"{Path(command[0]).name} did not end within {limit_s:g} s; try one case with --case"
        ) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout:
            process.stdout.close()
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return ToolRun(process.returncode, text, printed.decode("utf-8", "replace"))
