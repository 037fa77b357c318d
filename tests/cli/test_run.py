from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from evoengine.protocols import Executor
from evoengine.records import Status
from evoengine.search import run_engine, start_run
from tests.cli.conftest import Call
from tests.scale_task import kernel

ROOT = Path(__file__).parents[2]


def test_run_without_a_terminal_prints_each_settled_trial_and_ends_with_the_elites(
    scripted: Call, task: Path
) -> None:
    found = scripted("run", task, "--run", "one", "--trials", "6", "--seed", "3")
    assert found.code == 0, found.err
    lines = found.err.splitlines()
    assert lines[0].startswith("note: no OPENAI_API_KEY")
    assert (
        lines[1]
        == "note: baseline torch.broken does not work here and is left out: no kernel image"
    )
    assert lines[2].startswith("note: auditing the task, once")
    assert re.fullmatch(
        r"run one started \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d: task scale, 6 trials,"
        r" generator tune, device cuda:0 Scripted",
        lines[3],
    )
    assert all(
        re.match(r"\[\d/6 \d\d:\d\d:\d\d[,\]]", line) for line in lines if line.startswith("[")
    )
    assert "small: torch.mul 12 us, torch.other 13.5 us; large: torch.mul 12 us" in found.out
    assert [line.split("/")[0] for line in lines if line.startswith("[")] == [
        f"[{number}" for number in range(1, 7)
    ]
    assert "files: runs/one" in found.err and "show one --runs-dir runs" in found.err
    assert "elites" in found.out and "speed-up" in found.out and "6 of 6 settled" in found.out
    assert "\x1b" not in found.out + found.err
    assert {"config.yaml", "elites", "run.db", "trials"} <= {
        path.name for path in Path("runs/one").iterdir()
    }
    assert len(list(Path("runs/one/trials").iterdir())) == 6


@pytest.mark.parametrize("options", [[], ["--measure-baselines"]])
def test_measure_baselines_reaches_the_executor_of_the_run(
    scripted: Call, task: Path, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, given = start_run.make_executor, list[object]()

    def watched(*arguments: Any, **named: Any) -> Executor:
        given.append(named["measure_baselines"])
        return make(*arguments, **named)

    monkeypatch.setattr(start_run, "make_executor", watched)
    assert scripted("run", task, "--trials", "1", *options).code == 0
    assert given == [bool(options)]


@pytest.mark.parametrize("device", ["emulator", "scripted"])
def test_without_a_gpu_there_are_no_baselines_to_measure(
    call: Call, task: Path, device: str
) -> None:
    found = call("run", task, "--device", device, "--measure-baselines")
    assert found.code == 2
    assert "--measure-baselines needs a GPU: without one times are modelled" in found.err
    assert not Path("runs").exists()


def test_json_of_run_and_of_show_is_the_same_rows(scripted: Call, task: Path) -> None:
    found = scripted("run", task, "--run", "one", "--trials", "6", "--json")
    ran, shown = json.loads(found.out), json.loads(scripted("show", "one", "--json").out)
    assert ran["ended"] == "the budget of trials is spent"
    assert ran == shown and ran["ended_by"] == "trials"
    assert len(shown["trials"]) == shown["settled"] == 6
    for elite in shown["elites"]:
        row = shown["trials"][elite["trial"]]
        assert row["place"] == elite["place"] and row["speedup"] == elite["speedup"]
        exported = json.loads(
            Path(f"runs/one/elites/{elite['tier']}/{elite['place']}/verdict.json").read_text()
        )
        assert exported["trial"] == elite["trial"] and exported["speedup"] == elite["speedup"]


def test_show_prints_run_trial_and_source(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "one", "--trials", "5")
    shown = scripted("show", "one")
    assert shown.code == 0 and shown.err == ""
    assert all(
        words in shown.out for words in ("scale_a", "scale_b", "elites", "trials", "torch.mul")
    )
    assert [line.rstrip() for line in scripted("show", "runs/one").out.splitlines()[1:]] == [
        line.rstrip() for line in shown.out.splitlines()[1:]
    ]
    trial = scripted("show", "one", "--trial", "0")
    assert all(
        words in trial.out
        for words in ("seed", "checks", "odd (hidden)", "resources", "cuda:0 Scripted")
    )
    detail = json.loads(scripted("show", "one", "--trial", "0", "--json").out)
    assert detail["row"]["trial"] == 0 and detail["verdict"]["cases"][0]["limit_abs"] == 0.001
    assert (
        detail["began"] < detail["ended"]
        and detail["began"] in trial.out
        and detail["ended"] in trial.out
    )
    assert (
        scripted("show", "one", "--trial", "0", "--source").out
        == (task.parent / "scale_a.cu").read_text()
    )
    refused = scripted("show", "one", "--source")
    assert refused.code == 2 and "--source is that of one trial: add --trial N" in refused.err


def test_show_of_many_trials_names_what_it_leaves_out(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "one", "--trials", "18", "--in-flight", "2")
    text = scripted("show", "one").out
    assert "earlier trials" not in text
    from evoengine.cli import show

    assert show.TRIALS_SHOWN > 18  # else the claim above would say nothing


def test_deleted_files_are_rebuilt_the_same(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "one", "--trials", "6")
    root = Path("runs/one")

    def files() -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and not path.name.startswith("run.")
        }

    before = files()
    assert any("elites" in name for name in before)
    for path in [*root.rglob("*")]:
        if path.is_file() and not path.name.startswith("run."):
            path.unlink()
    assert scripted("export", "one").code == 0
    assert files() == before


def test_resume_of_a_run_that_is_complete_changes_nothing(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "one", "--trials", "5")
    before = scripted("show", "one", "--json").out
    found = scripted("resume", "one")
    assert found.code == 0 and "resumed after 5 trials" in found.err and "[1/" not in found.err
    assert scripted("show", "one", "--json").out == before


def test_replay_of_a_run_gives_the_same_trials(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "one", "--trials", "6")
    assert scripted("run", task, "--run", "two", "--trials", "6", "--replay-from", "one").code == 0
    one, two = (json.loads(scripted("show", name, "--json").out) for name in ("one", "two"))
    assert two["generator"] == "replay" and one["elites"] == two["elites"]


def test_error_in_a_run_is_one_line_after_the_command_that_resumes(
    scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evoengine.errors import GeneratorError

    def fail(*_: object) -> None:
        raise GeneratorError("the endpoint refused the key")

    monkeypatch.setattr(run_engine, "open_generator", fail)
    found = scripted("run", task, "--run", "one", "--trials", "6")
    assert found.code == 8
    resume, fault = found.err.splitlines()[-2:]
    assert resume.startswith("resume with: ") and resume.endswith(
        "evoengine resume one --runs-dir runs"
    )
    assert fault == "evoengine: the endpoint refused the key"


# ---------------------------------------------------------------- real processes


def start(
    folder: Path, *arguments: str, delay_s: float = 0.2, stdout: str = ""
) -> subprocess.Popen[str]:
    """`stdout`: the file behind it; a pipe without one."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    environ |= {"PYTHONPATH": str(ROOT), "SCRIPTED_DELAY_S": str(delay_s)}
    command = [sys.executable, "-m", "tests.cli.scripted_main", *arguments]
    with Path(stdout or os.devnull).open("w") as file:
        out = file if stdout else subprocess.PIPE
        return subprocess.Popen(
            command, cwd=folder, env=environ, stdout=out, stderr=subprocess.PIPE, text=True
        )


def wait_for_line(process: subprocess.Popen[str], beginning: str) -> list[str]:
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line.rstrip("\n"))
        if line.startswith(beginning):
            return seen
    raise AssertionError(f"no line begins with {beginning!r}: {seen}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_prints_the_command_that_resumes_it_to_the_same_end(
    tmp_path: Path, task: Path, call: Call, number: signal.Signals
) -> None:
    shape = ["run", str(task), "--trials", "12", "--in-flight", "2"]
    process = start(tmp_path, *shape, "--run", "it's", "--runs-dir", "my runs")
    wait_for_line(process, "[3/12")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "stopping after the outstanding replies; press again to discard them" in err
    assert "interrupted" in out
    command = err.splitlines()[-1].removeprefix("resume with: ")
    assert shlex.split(command)[-4:] == ["resume", "it's", "--runs-dir", "my runs"]
    resumed = start(tmp_path, *shlex.split(command)[-4:], delay_s=0.0)
    assert resumed.wait(timeout=30) == 0, resumed.stderr.read()
    resumed.communicate()
    whole = start(tmp_path, *shape, "--run", "whole", delay_s=0.0)
    whole.communicate(timeout=30)
    rows = [
        json.loads(call("show", name, "--runs-dir", folder, "--json").out)
        for name, folder in (("it's", "my runs"), ("whole", "runs"))
    ]
    assert rows[0]["trials"] == rows[1]["trials"] and rows[0]["elites"] == rows[1]["elites"]


def test_killed_run_continues_and_its_files_are_completed(
    tmp_path: Path, task: Path, call: Call
) -> None:
    process = start(
        tmp_path,
        "run",
        str(task),
        "--trials",
        "10",
        "--run",
        "one",
        "--in-flight",
        "2",
        delay_s=0.1,
    )
    wait_for_line(process, "[4/10")
    process.kill()
    process.communicate(timeout=30)
    resumed = start(tmp_path, "resume", "one", delay_s=0.0)
    _, err = resumed.communicate(timeout=30)
    assert resumed.returncode == 0, err
    assert len(list((tmp_path / "runs" / "one" / "trials").iterdir())) == 10
    shown = json.loads(call("show", "one", "--json").out)
    held = {(elite["tier"], str(elite["place"])) for elite in shown["elites"]}
    assert {
        (path.parent.name, path.name) for path in (tmp_path / "runs" / "one" / "elites").glob("*/*")
    } == held


def test_second_resume_of_a_live_run_is_refused_and_show_works(
    tmp_path: Path, task: Path, call: Call
) -> None:
    process = start(tmp_path, "run", str(task), "--trials", "200", "--run", "one")
    wait_for_line(process, "[2/200")
    try:
        found = call("resume", "one")
        assert found.code == 7 and f"process {process.pid} is working on this run" in found.err
        shown = call("show", "one", "--json")
        assert shown.code == 0 and json.loads(shown.out)["settled"] >= 2
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "stopping after the outstanding replies" in err


# ---------------------------------------------------------------- widths


def test_piped_output_is_never_cut_or_wrapped_and_has_no_trailing_spaces(
    scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    long = "k" * 150
    (task.parent / f"{long}.cu").write_text(kernel("wide_c"))
    ran = scripted(
        "run", task, "--run", "one", "--trials", "6", "--kernel", task.parent / f"{long}.cu"
    )
    for text in (
        ran.out,
        scripted("show", "one").out,
        scripted("show", "one", "--trial", "2").out,
        scripted("tasks").out,
    ):
        assert "\N{HORIZONTAL ELLIPSIS}" not in text
        assert all(line == line.rstrip() for line in text.splitlines())
    rows = [line for line in scripted("show", "one").out.splitlines() if long in line]
    # name and figures stand in one line
    assert any(re.search(r"\d\.\d\d$", line) and "  seed  " in line for line in rows)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_trial_shows_its_name_and_what_it_changed_at_any_width(
    scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    scripted("run", task, "--run", "one", "--trials", "8", "--seed", "3")
    monkeypatch.setenv("COLUMNS", str(width))
    found = scripted("show", "one").out
    assert max(map(len, found.splitlines())) <= width and all(
        line == line.rstrip() for line in found.splitlines()
    )
    words = found.partition("\ntrials\n")[2].split()
    rows = json.loads(scripted("show", "one", "--json").out)["trials"]
    assert words.count("scale_a") + words.count("scale_b") == len(rows)
    for row in rows:
        assert row["changed"].items() <= row["tunables"].items()
        default = {"BLOCK": 128, "UNROLL": 4}
        assert row["changed"] == {
            name: value for name, value in row["tunables"].items() if default[name] != value
        }
    shown = sorted(word for word in words if re.fullmatch(r"[A-Z]+=\d+", word))
    assert shown == sorted(
        f"{name}={value}" for row in rows for name, value in row["changed"].items()
    )


# ---------------------------------------------------------------- one verdict


def test_evaluate_of_a_correct_kernel_exits_with_0_and_of_another_with_1(
    scripted: Call, task: Path
) -> None:
    codes = set()
    for block in (128, 64, 32, 256):
        found = scripted(
            "evaluate", "scale_a.cu", "--task", task, "--set", f"BLOCK={block}", "--json"
        )
        row = json.loads(found.out)
        assert row["tunables"]["BLOCK"] == block
        assert found.code == (0 if row["status"] == Status.correct else 1)
        codes.add(found.code)
        text = scripted("evaluate", "scale_a.cu", "--task", task, "--set", f"BLOCK={block}")
        assert (
            text.code == found.code
            and row["status"] in text.out
            and "starting the device" in text.err
        )
    assert codes == {0, 1}


def test_evaluate_takes_a_value_that_is_not_declared_and_warns(scripted: Call, task: Path) -> None:
    found = scripted(
        "evaluate", "scale_a.cu", "--task", task, "--set", "BLOCK=96", "--set", "UNROLL=2", "--json"
    )
    row = json.loads(found.out)
    assert row["tunables"] == {"BLOCK": 96, "UNROLL": 2} and found.code in (0, 1)
    warnings = [line for line in found.err.splitlines() if line.startswith("warning: ")]
    assert warnings == [
        "warning: BLOCK=96 is not one of the declared values [128, 64, 32, 256], so no search would"
        " try it"
    ]


# ---------------------------------------------------------------- a terminal


class Terminal:
    """A program on a terminal of 80 columns: what it drew, and what stays on the screen."""

    def __init__(self, folder: Path, *arguments: str, stdout: int | None = None) -> None:
        self.parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 80, 0, 0))
        environ = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("OPENAI_") and key != "COLUMNS"
        }
        environ |= {
            "PYTHONPATH": str(ROOT),
            "SCRIPTED_DELAY_S": "0.2",
            "TERM": "xterm",
            "NO_COLOR": "1",
        }
        command = [sys.executable, "-m", "tests.cli.scripted_main", *arguments]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environ, stdout=stdout or child, stderr=child, text=True
        )
        os.close(child)
        self.seen = b""

    def read_until(self, *words: bytes) -> None:
        """Reads until one of `words` was drawn."""
        while not any(word in self.seen for word in words):
            self.seen += os.read(self.parent, 65536)

    def text(self) -> str:
        """All that was drawn until the program ended."""
        while True:
            try:
                self.seen += os.read(self.parent, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
        os.close(self.parent)
        return self.seen.decode()


def test_run_on_a_terminal_draws_the_live_view_and_stops_cleanly(
    tmp_path: Path, task: Path
) -> None:
    terminal = Terminal(
        tmp_path,
        "run",
        str(task),
        "--trials",
        "60",
        "--run",
        "one",
        "--json",
        stdout=subprocess.PIPE,
    )
    terminal.read_until(b"3/60 trials", b"4/60 trials")
    terminal.process.send_signal(signal.SIGINT)
    text = terminal.text()
    out, _ = terminal.process.communicate(timeout=30)
    assert terminal.process.returncode == 130
    assert json.loads(out)["ended"] == "interrupted"
    assert (
        "scale_a" in text
        and "judging by the script" in text
        and "press again to discard them" in text
        and "resume with: " in text
    )
    assert "trials, interrupted, after" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h")  # the cursor is shown again


def test_at_the_end_of_a_live_run_the_elites_are_on_the_screen_once(
    tmp_path: Path, task: Path
) -> None:
    terminal = Terminal(tmp_path, "run", str(task), "--trials", "4", "--run", "one")
    text = terminal.text()
    assert terminal.process.wait(timeout=30) == 0
    last = text.rpartition("\x1b[2K")[2]  # what was drawn after the last erasing
    assert "trials, the budget of trials is spent, after" in last and "counts " in last
    assert len(re.findall(r"tier +place +trial", last)) == 1
    assert "settled " in text and "the last one " in text


def test_the_elites_stay_on_the_screen_when_the_result_goes_elsewhere(
    tmp_path: Path, task: Path
) -> None:
    terminal = Terminal(
        tmp_path,
        "run",
        str(task),
        "--trials",
        "4",
        "--run",
        "one",
        "--json",
        stdout=subprocess.PIPE,
    )
    last = terminal.text().rpartition("\x1b[2K")[2]
    terminal.process.communicate(timeout=30)
    assert len(re.findall(r"tier +place +trial", last)) == 1 and "counts " not in last
