"""`evoengine audit`, and the audit before a run, on the emulator's own worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.scale_task import write_task

EMULATOR = ("--device", "emulator")


@pytest.fixture
def loose(tmp_path: Path) -> Path:
    """The task `scale`, y = 2 x, with a tolerance that lets zeros through."""
    path = write_task(tmp_path / "loose")
    text = path.read_text().replace("{atol: 1e-3, rel_rmse: 1e-3}", "{atol: 1e3, rel_rmse: 2}")
    path.write_text(text)
    return path


def test_a_sound_task_passes_and_every_row_is_in_the_json(call: Call, task: Path) -> None:
    found = call("audit", task, *EMULATOR, "--json")
    assert found.code == 0, found.err
    rows = json.loads(found.out)
    assert rows and all(row["refused"] for row in rows)
    assert {row["tier"] for row in rows} == {"fp32", "fp16"}
    assert {row["case"] for row in rows} == {"large"}, "the case that is scored"


def test_a_loose_task_is_refused_with_tier_case_distribution_and_bound(
    call: Call, loose: Path
) -> None:
    found = call("audit", loose, *EMULATOR)
    assert found.code == 3, found.err
    line = next(line for line in found.out.splitlines() if "lets zeros through as y" in line)
    assert line.startswith("let through: tier fp16, case large: the bound of each element")
    assert "closest to refusal is" in line and "allowed 1e+03" in line
    assert "fp32, case" not in found.out


def test_a_fault_of_the_reference_is_named(call: Call, task: Path) -> None:
    (task.parent / "scale.py").write_text("def forward(x):\n    return x * float('nan')\n")
    found = call("audit", task, *EMULATOR)
    assert found.code == 3
    assert "scale.py:forward: y" in found.err and "NaN" in found.err


def test_the_scripted_device_audits_nothing_and_says_so(call: Call, task: Path) -> None:
    found = call("audit", task, "--device", "scripted")
    assert found.code == 2
    assert "it cannot audit a task" in found.err


def test_a_run_starts_on_a_loose_task_only_when_it_is_told_to(call: Call, loose: Path) -> None:
    refused = call("run", loose, "--run", "first", "--trials", "1", *EMULATOR)
    assert refused.code == 3
    assert "lets " in refused.err and "--despite-audit starts all the same" in refused.err
    assert "note: the audit found: tier fp16, case large: " in refused.err
    started = call("run", loose, "--run", "second", "--trials", "1", *EMULATOR, "--despite-audit")
    assert started.code == 0, started.err
    assert "auditing the task" not in started.err, "the stored audit is used"
    assert "note: the audit found: tier fp16" in started.err
    shown = call("show", "second")
    assert "audit" in shown.out and "the task lets wrong outputs through: tier fp16" in shown.out
    findings = json.loads(call("show", "second", "--json").out)["audit_findings"]
    assert len(findings) > 3
    assert f"and {len(findings) - 3} more: `evoengine audit` lists them" in " ".join(
        shown.out.split()
    )


def test_a_run_audits_a_sound_task_once(call: Call, task: Path) -> None:
    first = call("run", task, "--run", "one", "--trials", "1", *EMULATOR)
    again = call("run", task, "--run", "two", "--trials", "1", *EMULATOR)
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert "note: auditing the task, once" in first.err
    assert "auditing" not in again.err
    (task.parent / "scale.py").write_text("def forward(x):\n    return x + x\n")
    changed = call("run", task, "--run", "three", "--trials", "1", *EMULATOR)
    assert "note: auditing the task, once" in changed.err
