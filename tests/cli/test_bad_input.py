from __future__ import annotations

import json
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Call


def line(found, code: int) -> str:
    """The only line on stderr."""
    assert found.code == code, found
    assert found.out == "" and found.err.count("\n") == 1 and found.err.startswith("evoengine: "), (
        found
    )
    return found.err


def test_missing_task_is_answered_with_a_similar_name(call: Call) -> None:
    assert "no task 'sdpa_l5'; did you mean 'sdpa_l4'? known: " in line(call("run", "sdpa_l5"), 3)
    assert "no task 'sdpa_l5'" in line(call("evaluate", "sdpa_v2b", "--task", "sdpa_l5"), 3)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("dims: {N: int}", "dims: {N: int", r"scale.yaml:\d+:\d+: not YAML"),
        (
            "budget: {trials: 8}",
            "budget: {trails: 8}",
            r"scale.yaml:20:\d+: budget.trails: unknown key",
        ),
        ("dtype: float32}", "dtype: float31}", r"scale.yaml:5:\d+: .*float31"),
        (
            "scale.py:forward\ndims",
            "scole.py:forward\ndims",
            r"scale.yaml:2:\d+: no file '.*scole.py'",
        ),
        (
            "scale.py:forward\ndims",
            "scale.py:forwad\ndims",
            r"scale.yaml:2:\d+: no function 'forwad' in '.*scale.py'; did you mean 'forward'",
        ),
        ("[scale_a.cu,", "[scale_x.cu,", r"scale.yaml:19:\d+: no kernel 'scale_x.cu'"),
    ],
)
def test_malformed_task_names_file_and_line(
    call: Call, task: Path, old: str, new: str, words: str
) -> None:
    text = task.read_text()
    assert old in text
    task.write_text(text.replace(old, new, 1))
    assert re.search(words, line(call("run", task), 3))


def test_reference_that_is_not_python_names_its_line(call: Call, task: Path) -> None:
    (task.parent / "scale.py").write_text("def forward(x):\n    return 2 x\n")
    assert re.search(r"scale.py:2:\d+: not Python: ", line(call("run", task), 3))


def test_missing_kernel_is_answered_with_a_similar_name(call: Call, task: Path) -> None:
    assert "no kernel 'sdpa_v2d'; did you mean 'sdpa_v2" in line(
        call("run", task, "--kernel", "sdpa_v2d"), 4
    )
    assert "no kernel 'sdpa_v2d'" in line(call("evaluate", "sdpa_v2d", "--task", task), 4)


def test_kernel_that_is_not_utf8_is_refused_with_its_place(
    call: Call, task: Path, tmp_path: Path
) -> None:
    (tmp_path / "latin.cu").write_bytes(
        (task.parent / "scale_a.cu").read_bytes().replace(b"// scale_a", b"// caf\xe9")
    )
    for arguments in (
        ["run", task, "--kernel", tmp_path / "latin.cu"],
        ["evaluate", tmp_path / "latin.cu", "--task", task],
    ):
        assert "latin.cu:13:7: expected UTF-8 text, got byte 0xe9; save the file as UTF-8" in line(
            call(*arguments), 4
        )
    (task.parent / "scale_a.cu").write_bytes((tmp_path / "latin.cu").read_bytes())
    assert "scale_a.cu:13:7: expected UTF-8 text, got byte 0xe9" in line(call("run", task), 4)


def test_kernel_without_a_plan_is_refused_with_its_place(
    call: Call, task: Path, tmp_path: Path
) -> None:
    (tmp_path / "bare.cu").write_text("__global__ void f() {}\n")
    for arguments in (
        ["run", task, "--kernel", tmp_path / "bare.cu"],
        ["evaluate", tmp_path / "bare.cu", "--task", task],
    ):
        assert "bare.cu:1:1: expected the launch plan first" in line(call(*arguments), 4)


@pytest.mark.parametrize(("text", "words", "code"), [
    ("BLOCK", "expected --set NAME=VALUE with a whole number, got 'BLOCK'", 2),
    ("BLOCK=big", "got 'BLOCK=big'", 2),
    (f"BLOCK={2**63}", "expected one of [128, 64, 32, 256]", 4),
    ("BLOK=64", "expected a tunable among BLOCK, UNROLL", 4),
])  # fmt: skip
def test_tunable_that_is_not_declared_is_refused(
    call: Call, task: Path, text: str, words: str, code: int
) -> None:
    assert words in line(call("evaluate", "scale_a.cu", "--task", task, "--set", text), code)


def test_replay_needs_a_run_to_replay(call: Call, task: Path) -> None:
    assert "--replay-from RUN" in line(call("run", task, "--generator", "replay"), 2)


def test_replay_of_a_missing_run_leaves_no_folder(scripted: Call, task: Path) -> None:
    assert "no run 'gone'" in line(scripted("run", task, "--replay-from", "gone"), 7)
    assert not Path("runs").exists()


def test_endpoint_that_cannot_be_asked_is_refused_before_a_device_is_up(
    scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no key: set OPENAI_API_KEY" in line(scripted("run", task, "--generator", "openai"), 8)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    found = line(scripted("run", task, "--model", "home-made", "--cost-cap", "1"), 2)
    assert "the price of model 'home-made' is unknown; give it with --price" in found
    monkeypatch.setenv("OPENAI_BASE_URL", "ftp://x")
    assert "must begin with http:// or https:// and name a host, got 'ftp://x'" in line(
        scripted("run", task), 8
    )
    assert not Path("runs").exists()


@pytest.mark.parametrize("text", ["2", "2/", "two/8", "-2/8", "2/8/1"])
def test_price_that_is_not_a_pair_is_refused(call: Call, task: Path, text: str) -> None:
    assert (
        "expected --price USD/USD, for a million prompt and a million completion tokens, got"
        f" {text!r}" in line(call("run", task, "--price", text), 2)
    )


def test_missing_endpoint_keeps_the_run_and_says_how_to_resume(
    scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    # the discard port: nobody listens
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    found = scripted(
        "run", task, "--run", "one", "--model", "home-made", "--price", "2/8", "--cost-cap", "1"
    )
    assert found.code == 8 and "no model endpoint at http://127.0.0.1:9/v1" in found.err
    assert "resume with: " in found.err and "sk-secret" not in found.err
    assert "generator openai, model home-made, device" in found.err
    shown = scripted("show", "one").out
    assert "2 of 8 settled" in shown and re.search(r"generator +openai, model home-made\n", shown)
    assert json.loads(scripted("show", "one", "--json").out)["model"] == "home-made"
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert scripted("resume", "one").code == 8
    assert "2 of 8 settled" in scripted("show", "one").out


def test_missing_device_is_refused(call: Call, task: Path) -> None:
    assert (
        "expected --device auto, cuda, cuda:N, emulator, emulator:TARGET or scripted, got 'tpu'"
        in line(call("run", task, "--device", "tpu"), 2)
    )
    assert "no device 'cuda:93'" in line(call("run", task, "--device", "cuda:93"), 5)


def test_run_name_that_is_not_a_folder_name_is_refused(scripted: Call, task: Path) -> None:
    assert "expected a plain folder name for --run, got '../x'" in line(
        scripted("run", task, "--run", "../x"), 2
    )


def test_run_that_exists_is_not_started_again(scripted: Call, task: Path) -> None:
    assert scripted("run", task, "--run", "one", "--trials", "2").code == 0
    found = scripted("run", task, "--run", "one", "--trials", "2")
    assert found.code == 7 and found.out == ""
    assert (
        "run 'one' already exists" in found.err
        and "evoengine resume one" in found.err
        and "resume with" not in found.err
    )


def test_unknown_run_is_answered_with_a_similar_name(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "attention", "--trials", "2")
    for command in ("show", "resume", "export"):
        assert "no run 'atention' in runs; did you mean 'attention'?" in line(
            scripted(command, "atention"), 7
        )
    assert "no run 'nope'" in line(scripted("show", "/somewhere/nope"), 7)
    assert "expected the name of a run" in line(scripted("show", ""), 2)


def test_trial_that_is_not_settled_is_refused(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "one", "--trials", "2")
    assert "no trial 7 in run one: 0 to 1 are settled" in line(
        scripted("show", "one", "--trial", "7"), 2
    )


def test_run_of_a_later_evoengine_is_refused(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "one", "--trials", "2")
    with sqlite3.connect("runs/one/run.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    for command in ("show", "export"):
        assert "schema version 99" in line(scripted(command, "one"), 7)
    assert "schema version 99" in scripted("resume", "one").err.splitlines()[-1]


def test_folder_without_our_database_is_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "runs" / "junk").mkdir(parents=True)
    (tmp_path / "runs" / "junk" / "run.db").write_text("this is no database" * 100)
    assert "runs/junk/run.db" in line(call("show", "junk"), 7)


def test_runs_folder_that_cannot_be_written_is_reported(scripted: Call, task: Path) -> None:
    # refused to root as well
    assert "/proc/runs" in line(scripted("run", task, "--runs-dir", "/proc/runs"), 7)


def test_runs_folder_that_is_a_file_is_reported(scripted: Call, task: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    assert "runs" in line(scripted("run", task), 7)


def test_runs_folder_that_is_a_file_says_what_was_expected(scripted: Call, task: Path) -> None:
    Path("afile").write_text("")
    for arguments in (["run", task], ["show", "x"], ["resume", "x"], ["export", "x"]):
        found = line(scripted(*arguments, "--runs-dir", "afile"), 7)
        assert (
            "afile: expected a folder that holds runs, found a file; choose another folder with"
            " --runs-dir" in found
        )


def test_run_with_an_emptied_database_keeps_its_files_under_every_command(
    scripted: Call, task: Path
) -> None:
    scripted("run", task, "--run", "one", "--trials", "4")
    database = Path("runs/one/run.db")
    database.write_bytes(b"")
    kept = {
        path: path.read_bytes()
        for folder in ("elites", "trials")
        for path in Path("runs/one", folder).rglob("*.*")
    }
    assert kept
    for arguments in (
        ["show", "one"],
        ["export", "one"],
        ["resume", "one"],
        ["run", task, "--run", "one"],
    ):
        found = scripted(*arguments)
        assert found.code == 7 and found.out == ""
        assert (
            "run.db is empty (0 bytes), but elites/ holds" in found.err
            and "start it again" not in found.err
        )
    assert {path: path.read_bytes() for path in kept} == kept


def test_garbage_in_the_log_is_reported_before_sqlite_drops_it(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "one", "--trials", "4")
    log = Path("runs/one/run.db-wal")
    log.write_bytes(b"no log at all " * 100)
    for command in ("show", "resume", "export"):
        found = scripted(command, "one")
        assert (
            found.code == 7
            and "run.db-wal: expected SQLite's write-ahead log" in found.err
            and "mv runs/one/run.db-wal" in found.err
        )
    assert log.read_bytes() == b"no log at all " * 100


@pytest.mark.parametrize("folder", ["my runs", "elsewhere"])
def test_commands_in_hints_name_the_folder_of_the_run(
    scripted: Call, task: Path, folder: str
) -> None:
    scripted("run", task, "--run", "one", "--trials", "2", "--runs-dir", folder)
    taken = scripted("run", task, "--run", "one", "--trials", "2", "--runs-dir", folder).err
    near = scripted("show", "ome", "--runs-dir", folder).err
    for text, verb in ((taken, "resume"), (near, "show")):
        words = shlex.split(re.search(r"`([^`]+)`", text)[1])
        assert words == ["evoengine", verb, "one", "--runs-dir", folder]
        assert scripted(*words[1:]).code == 0
