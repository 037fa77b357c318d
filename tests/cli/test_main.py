from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evoengine import __version__
from evoengine.errors import (
    DeviceError,
    GeneratorError,
    NewerSchema,
    OutputError,
    RunLocked,
    StoreError,
    ToolchainError,
    WorkerError,
)
from evoengine.search import choose_run
from tests.cli.conftest import Call

HEAVY = ("torch", "cupy", "numpy", "optuna", "openai", "pydantic", "rich", "yaml", "jinja2")


def python(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, cwd=cwd
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from evoengine.cli.main import answer; assert answer(['--help']) == 0;"
        f"print('heavy:', [name for name in {HEAVY} if name in sys.modules])"
    )
    done = python("-c", code)
    assert done.stdout.endswith("heavy: []\n"), done
    for command in (
        "run",
        "resume",
        "runs",
        "show",
        "evaluate",
        "prompt",
        "init",
        "export",
        "rm",
        "cache",
        "tasks",
        "doctor",
    ):
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize("arguments", [["show", "nothing"], ["tasks"]])
def test_commands_that_only_read_load_neither_torch_nor_any_generator(arguments: list[str]) -> None:
    code = (
        f"import sys; from evoengine.cli.main import answer; answer({arguments});print('heavy:',"
        " [name for name in ('torch', 'cupy', 'numpy', 'optuna', 'openai') if name in"
        " sys.modules])"
    )
    assert python("-c", code).stdout.endswith("heavy: []\n")


def test_module_and_console_script_are_the_same(tmp_path: Path) -> None:
    done = python("-m", "evoengine", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"evoengine {__version__}\n", "")


def test_no_command_shows_the_help(call: Call) -> None:
    found = call()
    assert found.code == 0 and "Usage: evoengine" in found.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["shwo"], "No such command 'shwo'. Did you mean 'show'?; see `evoengine --help`"),
        (["run"], "Missing argument 'task'; see `evoengine run --help`"),
        (["run", "x", "--trails", "3"], "No such option: --trails"),
        (
            ["run", "x", "--trials", "0"],
            (
                "Invalid value for '--trials': Input should be greater than or equal to 1, got"
                " '0'; see"
            ),
        ),
        (["run", "x", "--seed", "two"], "unable to parse string as an integer, got 'two'; see"),
        (
            ["show", "x", "--trial", "-1"],
            (
                "Invalid value for '--trial': Input should be greater than or equal to 0, got"
                " '-1'; see"
            ),
        ),
        (["run", "x", "--generator", "magic"], "no generator 'magic'; known: openai, tune, replay"),
        (["evaluate", "x.cu"], "Missing option '--task'"),
    ],
)
def test_command_line_that_does_not_fit_is_one_line_and_code_2(
    call: Call, arguments: list[str], words: str
) -> None:
    found = call(*arguments)
    assert found.code == 2 and found.out == ""
    assert found.err.count("\n") == 1 and found.err.startswith("evoengine: ") and words in found.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DeviceError, 5),
        (ToolchainError, 6),
        (StoreError, 7),
        (NewerSchema, 7),
        (RunLocked, 7),
        (GeneratorError, 8),
        (WorkerError, 9),
    ],
)
def test_known_fault_is_one_line_with_its_code(
    call: Call, monkeypatch: pytest.MonkeyPatch, task: Path, error: type, code: int
) -> None:
    def fail(device: str, task: object) -> int:
        raise error("first line\nsecond line")

    monkeypatch.setattr(choose_run, "find_device", fail)
    found = call("run", task)
    assert (found.code, found.err) == (code, "evoengine: first line second line\n")


def test_unknown_fault_is_one_line_and_debug_shows_the_traceback(
    call: Call, monkeypatch: pytest.MonkeyPatch, task: Path
) -> None:
    def fail(device: str, task: object) -> int:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(choose_run, "find_device", fail)
    found = call("run", task)
    assert (found.code, found.err) == (
        1,
        (
            "evoengine: internal error: ZeroDivisionError: oops (run again with --debug for the"
            " traceback)\n"
        ),
    )
    for arguments in (["--debug", "run", task], ["run", task, "--debug"]):
        found = call(*arguments)
        assert found.code == 1 and "Traceback" in found.err and "in fail" in found.err


def test_reader_that_goes_away_is_no_fault() -> None:
    line = f"{sys.executable} -m evoengine tasks --json | head -c 1"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=60)


PROGRAM = f"{shlex.quote(sys.executable)} -m evoengine"


@pytest.mark.parametrize("command", ["tasks", "tasks --json", "--help", "doctor --help"])
def test_a_full_disk_behind_stdout_is_one_line_and_code_10(command: str) -> None:
    done = shell(f"{PROGRAM} {command} > /dev/full")
    assert (done.returncode, done.stderr) == (
        OutputError.exit_code,
        (
            "evoengine: stdout cannot be written: No space left on device; the output is not whole:"
            " send it elsewhere\n"
        ),
    )


@pytest.mark.parametrize("others", ["", "<&-"])
def test_a_closed_stdout_is_one_line_and_code_10(others: str) -> None:
    done = shell(f"{PROGRAM} tasks >&- {others}")
    assert (done.returncode, done.stderr) == (
        OutputError.exit_code,
        (
            "evoengine: stdout is closed: the result would be lost; send it to a file, or to"
            " /dev/null\n"
        ),
    )


@pytest.mark.parametrize("lost", ["2>&-", "2>/dev/full"])
def test_messages_that_cannot_be_said_change_neither_result_nor_code(lost: str) -> None:
    whole, done = shell(f"{PROGRAM} tasks --json"), shell(f"{PROGRAM} tasks --json {lost}")
    assert (done.returncode, done.stdout) == (0, whole.stdout)
    failed = shell(f"{PROGRAM} show nope {lost}")
    assert (failed.returncode, failed.stdout) == (StoreError.exit_code, "")
