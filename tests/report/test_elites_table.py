from __future__ import annotations

from evoengine.records import Interval, Status
from evoengine.report.elites_table import elites_table
from evoengine.report.rows import EliteRow
from evoengine.report.run_list import RunListRow, RunState, runs_table
from tests.report.test_views import show


def interval(value: float) -> Interval:
    return Interval(value=value, low=value - 0.02, high=value + 0.02)


def row(place: int, **figures: object) -> EliteRow:
    about = {"tier": "fp16", "trial": 40 + place, "name": "sdpa", "operator": "tune"}
    known = {
        "speedup": interval(1.38),
        "latency_us": interval(7.02),
        "selected_speedup": interval(1.43),
        "selected_latency_us": interval(6.8),
        "registers": 170,
        "shared_bytes": 0,
        "keeps_target": True,
        "tunables": {},
        "changed": {},
    }
    return EliteRow.model_validate({**about, **known, "place": place, **figures})


MEASURED = row(1, final_status=Status.correct)
WAITING = row(2, speedup=interval(1.43), awaits_final=True)
WRONG = row(
    3,
    speedup=None,
    latency_us=None,
    final_status=Status.wrong_result,
    final_reason="case large: NaN",
)
EARLIER = row(1, speedup=interval(1.43), latency_us=interval(6.8))  # of a run without races


def test_the_figure_of_an_elite_is_that_of_the_runs_end_with_what_selection_saw_beside_it() -> None:
    assert show(elites_table([MEASURED, WAITING, WRONG]), 120).splitlines() == [
        "elites",
        "tier  place  trial  name  tunables  speed-up             selected at    us  regs",
        "─" * 80,
        "fp16      1     41  sdpa  -         1.38x [1.36, 1.40]         1.43x  7.02   170",
        "fp16      2     42  sdpa  -         1.43x [1.41, 1.45]^               7.02   170",
        "fp16      3     43  sdpa  -         wrong_result               1.43x     -   170",
        "speed-up: time of the fastest baseline / time of the kernel, with its 95 % interval; below 1"
        " the kernel is slower",
        "elites are measured once more at the end of a run, which decides nothing; selected at: what"
        " the search saw",
        "^: what the search saw; not measured at the end of the run yet",
        "fp16, place 3: measured once more at the end, it was wrong_result: case large: NaN",
    ]


def test_a_time_that_the_gpu_may_have_made_longer_is_marked_and_one_that_is_missing_is_not() -> (
    None
):
    remarks = {"gpu_remarks": ("throttled: power limit",)}
    marked = show(elites_table([MEASURED.model_copy(update=remarks)]), 120)
    assert "1.43x  7.02*   170" in marked and "*: timed while the GPU was throttled" in marked
    assert "*" not in show(elites_table([WRONG.model_copy(update=remarks)]), 120)


def test_the_table_of_a_run_without_races_says_nothing_of_its_end() -> None:
    assert show(elites_table([EARLIER]), 120).splitlines()[1:4] == [
        "tier  place  trial  name  tunables  speed-up              us  regs",
        "─" * 66,
        "fp16      1     41  sdpa  -         1.43x [1.41, 1.45]  6.80   170",
    ]
    assert "measured once more" not in show(elites_table([EARLIER]), 120)


def test_the_list_of_runs_marks_what_the_end_of_a_run_has_not_measured() -> None:
    def listed(best: EliteRow) -> str:
        run = RunListRow(name="one", folder="runs/one", state=RunState.stopped, best=(best,))
        return show(runs_table([run]), 120)

    assert "fp16 1.38x  " in listed(MEASURED) and "^" not in listed(MEASURED)
    assert "fp16 1.43x^" in listed(WAITING) and "^: what the search saw" in listed(WAITING)
    assert "fp16 wrong_result" in listed(WRONG)
