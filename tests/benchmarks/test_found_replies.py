"""Kernels that models have written, played back as replies; what it measures here means nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import found_replies
from benchmarks.corpora import honest


def test_every_kernel_that_is_played_back_is_an_honest_one_of_its_task() -> None:
    for task, names in found_replies.FOUND.items():
        assert {honest()[name].task for name in names} == {task}
        assert len(found_replies.replies(task, everything=True)) > len(names)


def test_it_shows_trials_tuned_ones_elites_and_what_tuning_gained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.json"
    found_replies.main(
        ["--device", "scripted", "--task", "matmul_fp16", "--trials", "13", "--json", str(file)]
    )
    out = capsys.readouterr().out
    assert "tuned 6 of 13 trials; 6 requests to the endpoint" in out
    assert "| elite " in out and "| structure " in out
    rows = {row["structure"]: row for row in json.loads(file.read_text())["rows"]}
    assert set(rows) >= {"matmul_sliced_k", "matmul_big_warp_tiles_sliced_k"}
    assert sum(row["configurations"] for row in rows.values()) == 13 - 4, "four are copies"
    for row in rows.values():
        assert row["best us"] is None or row["gain"] is None or row["gain"] >= 1


def test_replies_of_a_folder_are_played_back_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = (found_replies.HONEST / "adamw_tiles_in_shared.cu").read_text(encoding="utf-8")
    (tmp_path / "adamw-mutate.reply.txt").write_text(
        f"It is bound by DRAM.\n```cuda\n{kernel}```\n"
    )
    (tmp_path / "adamw-repair.reply.txt").write_text("I cannot help with that.")
    (tmp_path / "layernorm-mutate.reply.txt").write_text("of another task")
    arguments = ["--device", "scripted", "--task", "adamw", "--replies", str(tmp_path)]
    found_replies.main(
        [*arguments, "--kernel", "adamw", "--trials", "3", "--tune-share", "0", "--json",
         str(tmp_path / "rows.json")]
    )  # fmt: skip
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert "adamw_tiles_in_shared" in {row["structure"] for row in rows}
    assert "tuned 0 of 3 trials" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="matmul_fp16-"):
        found_replies.replies("matmul_fp16", False, tmp_path)


def test_a_tuned_trial_counts_for_the_structure_that_its_parents_lead_to() -> None:
    def trial(
        number: int, operator: str, parents: list[int], us: float | None
    ) -> dict[str, object]:
        return {
            "trial": number,
            "operator": operator,
            "parents": parents,
            "name": f"k{number}",
            "tier": "fp16",
            "status": "correct" if us else "crash",
            "latency_us": {"value": us} if us else None,
        }

    rows = list(
        found_replies.structures(
            [
                trial(0, "seed", [], 8.0),
                trial(1, "tune", [0], 4.0),
                trial(2, "mutate", [1], 6.0),
                trial(3, "tune", [1], None),
                trial(4, "tune", [2], 5.0),
            ]
        )
    )
    assert [(row["structure"], row["configurations"], row["correct"]) for row in rows] == [
        ("k0", 3, 2),
        ("k2", 2, 2),
    ]
    assert [row["gain"] for row in rows] == [2.0, 1.2]
