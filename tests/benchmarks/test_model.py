"""What is said about the model of time: rank correlation, cross-validation, worst pairs, the
plot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.measured import Measured, MeasuredLaunch, read, write
from benchmarks.model import Config, cross_validated, judged, spearman, with_counts, worst_pairs
from benchmarks.scatter import Point, scatter
from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.targets import find
from evoengine.emulator.timing_model.counts import Counts

H200 = find("h200")


def _config(seed: str, work: float, measured_us: float) -> Config:
    counts = Counts(
        blocks=64, warps=256, instructions={"fma": work, "alu": work / 3}, delays={"fixed": work}
    )
    return Config(
        Measured(
            seed,
            "task",
            "mission",
            {"N": int(work)},
            measured_us,
            (MeasuredLaunch((64,), (128,), 32, 0),),
        ),
        (counts,),
    )


CONFIGS = [_config(seed, work, work / 1e5) for seed in ("a", "b", "c") for work in (1e6, 2e6, 5e6)]


def test_spearman_is_one_for_the_same_order_and_minus_one_for_the_opposite() -> None:
    assert spearman([1, 2, 3, 40], [10, 20, 21, 22]) == pytest.approx(1)
    assert spearman([1, 2, 3, 40], [4, 3, 2, 1]) == pytest.approx(-1)


def test_spearman_gives_equal_values_their_mean_rank() -> None:
    assert spearman([1, 2, 3, 4], [1, 2, 2, 4]) == pytest.approx(4.5 / math.sqrt(5 * 4.5))
    assert math.isnan(spearman([1, 2], [3, 3]))


def test_configurations_in_the_right_order_agree_whole_and_cross_validated() -> None:
    rows = judged(CONFIGS, "mission", H200, cross_validated(CONFIGS, H200))
    assert [row["seed"] for row in rows] == [
        "all",
        "all, each seed's constants from the others",
        "a",
        "b",
        "c",
    ]
    assert all(row["spearman"] == pytest.approx(1) for row in rows)
    assert all(row["modelled best / measured best"] == 1 for row in rows)


def test_a_seed_does_not_choose_its_own_constants() -> None:
    before = cross_validated(CONFIGS, H200)
    renamed = [
        _config("a", work, 1 / work) if item.seed == "a" else item
        for item in CONFIGS
        for work in [item.measured.tunables["N"]]
    ]
    after = cross_validated(renamed, H200)
    assert [time for time, item in zip(after, CONFIGS, strict=True) if item.seed == "a"] == [
        time for time, item in zip(before, CONFIGS, strict=True) if item.seed == "a"
    ]


def test_the_worst_pairs_are_those_in_the_wrong_order() -> None:
    assert not list(worst_pairs(CONFIGS, H200))
    (line,) = worst_pairs([_config("slow", 1e6, 99.0), _config("fast", 2e6, 11.0)], H200)
    assert line.index("fast") < line.index("slow")


def test_counts_that_were_kept_are_not_counted_again_and_failures_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "counts.json"
    counts = Counts(blocks=2, warps=4, instructions={"fma": 3.0})
    asked = []

    def count(seed: str, task: str, case: str, tunables: Mapping[str, int]) -> list[Counts]:
        asked.append((seed, task, case, tunables["N"]))
        if tunables["N"] > 1:
            raise Unsupported("tex.2d")
        return [counts]

    launch = MeasuredLaunch((2, 1), (64,), 40, 128)
    measured = [Measured("s", "t", "mission", {"N": n}, 5.0, (launch,)) for n in (1, 2)]
    expected = [Config(measured[0], (counts,))]
    assert with_counts(measured, count, file) == expected
    assert with_counts(measured, count, file) == expected
    assert asked == [("s", "t", "mission", 1), ("s", "t", "mission", 2), ("s", "t", "mission", 2)]
    assert "Unsupported: the emulator does not support `tex.2d`" in capsys.readouterr().err


def test_the_plot_is_well_formed_and_has_a_mark_for_every_point() -> None:
    text = scatter(
        [Point(1, 2, "a<b", "one & two"), Point(100, 50, "c", "three")], title="t", x="x", y="y"
    )
    root = ElementTree.fromstring(text)  # noqa: S314 - our own text
    assert (
        len(
            [
                mark
                for mark in root.iter("{http://www.w3.org/2000/svg}circle")
                if mark.get("r") == "3.5"
            ]
        )
        == 2
    )
    assert "one & two: 1.00, 2.00" in [
        title.text for title in root.iter("{http://www.w3.org/2000/svg}title")
    ]


def test_a_plot_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one point"):
        scatter([], title="t", x="x", y="y")


def test_measured_times_are_read_as_they_were_written(tmp_path: Path) -> None:
    launches = (MeasuredLaunch((8, 16), (256,), 125, 69632), MeasuredLaunch((1,), (32,), 16, 0))
    measured = [
        Measured(seed, "task", case, {"M": m, "N": 2}, us, launches)
        for seed, m, case, us in (
            ("a", 16, "mission", 6.378),
            ("a", 16, "long", 120.25),
            ("a", 32, "mission", 7.0),
            ("b", 16, "long", 8.5),
        )
    ]
    write(tmp_path / "file.json", {"device": "GPU", "date": "2026-11-21"}, measured)
    assert read(tmp_path / "file.json") == measured


def test_the_measured_times_of_the_repository_can_be_read() -> None:
    measured = read(
        Path(__file__).parents[2] / "docs" / "measurements" / "h200-configurations.json"
    )
    assert len(measured) >= 400
    assert {item.case for item in measured} >= {"mission", "mission_causal", "long"}
    assert all(item.median_us > 0 and item.launches for item in measured)
