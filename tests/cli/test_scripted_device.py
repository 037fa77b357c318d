"""`--device scripted`: a whole run without compiler or device, to try a generator with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Call


def test_a_run_on_no_device_settles_every_trial_and_claims_no_speed_up(
    call: Call, task: Path
) -> None:
    found = call("run", task, "--device", "scripted", "--trials", "12", "--run", "one", "--json")
    assert found.code == 0
    assert "note: no kernel is compiled or run: verdicts and times are drawn at random" in found.err
    rows = json.loads(found.out)
    assert rows["settled"] == 12 and rows["elites"]
    assert rows["device"] == "scripted (no kernel is run, verdicts are drawn at random)"
    assert rows["modelled"] and rows["baselines"] == {}
    assert all(elite["speedup"] is None for elite in rows["elites"])


def test_a_run_on_no_device_goes_on_where_it_stopped(call: Call, task: Path) -> None:
    whole = call("run", task, "--device", "scripted", "--trials", "12", "--run", "whole", "--json")
    assert call("run", task, "--device", "scripted", "--trials", "6", "--run", "part").code == 0
    rest = call("resume", "part", "--trials", "12", "--json")
    assert json.loads(rest.out)["elites"] == json.loads(whole.out)["elites"]


def test_it_judges_no_kernel_for_a_person(call: Call, task: Path) -> None:
    kernel = next(task.parent.glob("*.cu"))
    found = call("evaluate", kernel, "--task", task, "--device", "scripted")
    assert found.code == 2
    assert "--device scripted judges no kernel: its verdicts are drawn at random" in found.err


def test_it_needs_neither_torch_nor_llvm(task: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from evoengine.cli.main import answer;"
        f" assert answer(['run', {str(task)!r}, '--device', 'scripted', '--trials', '4', '--run',"
        f" 'one', '--runs-dir', {str(tmp_path / 'runs')!r}]) == 0;"
        " print('heavy:', {'torch', 'cupy', 'llvmlite'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip().endswith("heavy: set()"), done.stderr
