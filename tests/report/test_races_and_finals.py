"""What people see of a run with measured times: races, coarse verdicts, the measurements of its end."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from evoengine.events import TrialMoved, TrialSettled
from evoengine.protocols import FINAL, FIRST, VERIFY, RaceRow, VerdictRow
from evoengine.records import Interval, Race, RaceResult, Status
from evoengine.report import as_json
from evoengine.report.board import Board
from evoengine.report.files import RunFolderFiles
from evoengine.report.live_view import screen
from evoengine.report.plain_view import PlainView
from evoengine.report.rows import RunRows
from evoengine.report.rows_from_store import race_figures, speedup_of, verdict_row
from evoengine.report.run_report import run_report
from evoengine.report.trial_report import race_line, trial_report
from evoengine.search import prompt_request
from evoengine.search.run_reader import RunReader, rewrite_files
from evoengine.store.run_folder import open_run
from tests.report.searched_run import ACTIVITY, LUCK, THROTTLED, SearchedRun, searched_run
from tests.report.test_views import show

WIDTH = 160


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> SearchedRun:
    return searched_run(tmp_path_factory.mktemp("complete"))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> SearchedRun:
    return searched_run(tmp_path_factory.mktemp("stopped"), stop_before_finals=True)


def rows_of(run: SearchedRun) -> RunRows:
    with RunReader(run.paths) as reader:
        return reader.rows()


def test_an_elite_is_reported_by_the_verdict_that_had_no_part_in_choosing_it(complete) -> None:
    assert complete.ended.complete
    with RunReader(complete.paths) as reader:
        store, elites = reader.folder.store, reader.rows().elites
        assert len(elites) > 3
        for elite in elites:
            final = store.get(VerdictRow, elite.trial, FINAL).verdict
            verification = store.get(VerdictRow, elite.trial, VERIFY).verdict
            assert elite.speedup == speedup_of(final.score)
            assert elite.latency_us == final.latency_us
            assert elite.selected_speedup == speedup_of(verification.score)
            assert elite.selected_latency_us == verification.latency_us
            assert elite.speedup.value == pytest.approx(elite.selected_speedup.value * LUCK, 0.03)
            assert elite.final_status is Status.correct and not elite.awaits_final
        text = show(run_report(reader.rows()), WIDTH)
    for elite in elites:
        selected = f"{elite.selected_speedup.value:.2f}x"
        assert f"{elite.speedup.value:.2f}x [" in text and f"  {selected}  " in text
    assert "elites are measured once more at the end of a run, which decides nothing" in text
    assert "speed-ups of trials are those that the search saw" in text
    assert "^" not in text


def test_before_the_end_what_selection_saw_is_shown_as_such(stopped) -> None:
    assert not stopped.ended.complete
    with RunReader(stopped.paths) as reader:
        rows, store = reader.rows(), reader.folder.store
        text = show(run_report(rows), WIDTH)
        waiting = [elite for elite in rows.elites if elite.awaits_final]
        assert waiting
        for elite in rows.elites:
            assert elite.awaits_final is (store.get(VerdictRow, elite.trial, FINAL) is None)
        detail = reader.trial(waiting[0].trial)
    for elite in waiting:
        assert elite.speedup == elite.selected_speedup and elite.final_status is None
        assert f"{elite.speedup.value:.2f}x [" in text
    assert text.count("]^") == len(waiting)
    assert "^: what the search saw; not measured at the end of the run yet" in text
    assert detail.awaits_final
    assert "not measured at the end of the run yet" in show(trial_report(detail), WIDTH)


def test_an_elite_that_is_wrong_at_the_end_keeps_its_place_and_has_no_speed_up(
    complete, tmp_path: Path
) -> None:
    with RunReader(complete.paths) as reader:
        before = reader.settled().elites
    wrong = before[0].outcome
    run = searched_run(tmp_path, wrong_at_the_end=(wrong.code_digest,))
    with RunReader(run.paths) as reader:
        rows = reader.rows()
        text, detail = show(run_report(rows), WIDTH), reader.trial(wrong.trial)
    assert [(elite.tier, elite.place, elite.trial) for elite in rows.elites] == [
        (elite.tier, elite.place, elite.outcome.trial) for elite in before
    ]
    elite = rows.elites[0]
    assert elite.speedup is None and elite.latency_us is None
    assert elite.selected_speedup == speedup_of(wrong.score)
    assert elite.final_status is Status.wrong_result
    assert (
        f"{elite.tier}, place 1: measured once more at the end, it was wrong_result: case large:"
        " NaN in y"
    ) in text
    assert "wrong_result at the end of the run: case large: NaN in y" in show(
        trial_report(detail), WIDTH
    )
    rewrite_files(run.paths)
    exported = json.loads((run.paths.elite(elite.tier, 1) / "verdict.json").read_text())
    assert exported["status"] == "wrong_result" and exported["speedup"] is None
    assert exported["selected_speedup"] == elite.selected_speedup.model_dump()


def test_a_race_is_one_line() -> None:
    ratio = Interval(value=0.981, low=0.975, high=0.987)

    def line(result: RaceResult, reason: str, ratio: Interval | None = ratio) -> str:
        race = Race(result=result, reason=reason, ratio=ratio)
        return race_line(race_figures(RaceRow(40, 0, 12, race)))

    assert line(RaceResult.won, "faster") == (
        "race against trial 12: won, 0.981 [0.975, 0.987] of its time"
    )
    assert line(RaceResult.lost, "no difference was shown") == (
        "race against trial 12: lost, 0.981 [0.975, 0.987] of its time: no difference was shown"
    )
    assert line(RaceResult.lost, "wrong_result in case large", None) == (
        "race against trial 12: lost: wrong_result in case large"
    )
    assert line(RaceResult.void, "the baseline was disturbed") == (
        "race against trial 12: void: the baseline was disturbed"
    )


def test_a_trial_is_shown_with_its_races_and_its_final_verdict(complete) -> None:
    with RunReader(complete.paths) as reader:
        raced = {
            trial: races
            for trial in range(reader.rows().settled)
            if (races := reader.stored.races_of(trial))
        }
        details = {trial: reader.trial(trial) for trial in raced}
    results = {race.race.result for races in raced.values() for race in races}
    assert results >= {RaceResult.won, RaceResult.void}, "the script has such races"
    for trial, races in raced.items():
        lines = show(trial_report(details[trial]), WIDTH).splitlines()
        shown = [line for line in lines if line.startswith("race against trial ")]
        assert shown == [race_line(race_figures(race)) for race in races]
        as_rows = json.loads(as_json.dumps(details[trial]))["races"]
        assert [race["holder_trial"] for race in as_rows] == [race.holder for race in races]
        assert [race["result"] for race in as_rows] == [race.race.result for race in races]
    with_final = [detail for detail in details.values() if detail.final is not None]
    assert with_final
    for detail in with_final:
        assert detail.row.place is not None, "elites are measured, and no other trial"
        final = f"final verdict  correct, {detail.final.speedup.value:.2f}x ["
        text = show(trial_report(detail), WIDTH)
        assert final in text
        times = text.partition("\nmeasured once more at the end of the run\n")[2]
        for case in detail.final.cases:
            if case.hot_us is not None:
                assert f"{case.case}  " in times and f"{case.hot_us.value:.2f} [" in times


def test_the_gpu_and_the_kernel_activity_of_the_runs_end_are_shown_with_its_verdict(
    complete, stopped
) -> None:
    with RunReader(complete.paths) as reader:
        rows = reader.rows()
        details = [reader.trial(elite.trial) for elite in rows.elites]
    for detail in details:
        assert detail.verdict.gpu_state is None, "the verification has no remarks"
        before, _, end = show(trial_report(detail), WIDTH).partition(
            "\nmeasured once more at the end of the run\n"
        )
        assert "kernel activity" not in before and "GPU" not in before.split()
        assert "GPU  1755-1980 MHz; throttled: power limit" in end
        replayed = next(case for case in detail.final.cases if case.case == ACTIVITY.case).hot_us
        assert (
            f"large: kernel activity 5.10 us (baseline 7.20 us) of {replayed.value:.2f} us replayed"
            " hot: scale 5.10"
        ) in end
    table = show(run_report(rows), WIDTH)
    for elite in rows.elites:
        assert elite.gpu_remarks == THROTTLED.remarks
        assert f"  {elite.latency_us.value:.2f}*  " in table
    assert "*: timed while the GPU was throttled" in table
    assert all(elite.gpu_remarks == () for elite in rows_of(stopped).elites)
    assert "*" not in show(run_report(rows_of(stopped)), WIDTH)


def test_where_kernel_activity_is_unknown_the_report_of_the_runs_end_says_why(complete) -> None:
    with RunReader(complete.paths) as reader:
        detail = reader.trial(reader.rows().elites[0].trial)
        refused = reader.stored.final_of(detail.row.trial).model_copy(
            update={"activity": (), "activity_problem": "CUPTI is not permitted"}
        )
    final = verdict_row(refused, detail.final.name, {}, None)
    text = show(trial_report(detail.model_copy(update={"final": final})), WIDTH)
    assert "kernel activity: unknown: CUPTI is not permitted" in text


def test_a_trial_without_a_place_says_which_holder_it_did_not_beat(complete) -> None:
    beaten = [row for row in rows_of(complete).trials if row.lost_to is not None]
    assert any(row.place is None for row in beaten)
    with RunReader(complete.paths) as reader:
        text = show(run_report(reader.rows()), WIDTH)
        for row in beaten:
            last = reader.stored.races_of(row.trial)[-1]
            assert (last.holder, last.race.result is RaceResult.won) == (row.lost_to, False)
            if row.place is None:
                assert f"did not beat trial {row.lost_to} in a race" in text


def test_a_coarse_verdict_claims_no_precision(complete) -> None:
    with RunReader(complete.paths) as reader:
        rows = reader.rows()
        coarse = [row for row in rows.trials if row.is_coarse]
        assert coarse
        for row in rows.trials:
            assert row.is_coarse is reader.stored.first_verdict_of(row.trial).is_coarse
        table = show(run_report(rows), WIDTH).splitlines()
        detail = reader.trial(coarse[0].trial)
    line = next(line for line in table if line.startswith(f"{coarse[0].trial:>5}  mutate"))
    assert "stopped early: it cannot take a place" in line
    assert f"~{float(f'{coarse[0].speedup.value:.2g}'):g}x" in line
    assert f"{coarse[0].latency_us.value:.2f}" not in line
    assert detail.verdict.is_coarse
    assert "timing    stopped early: it cannot take a place" in show(trial_report(detail), WIDTH)


def test_the_plain_view_says_why_a_correct_trial_takes_no_place_and_when_elites_are_measured(
    complete,
) -> None:
    lines: list[str] = []
    with RunReader(complete.paths) as reader:
        stored, rows = reader.stored, reader.rows()
        clock = datetime(2025, 11, 21, 14, 3, 7)
        plain = PlainView(
            lines.append, lambda: 0.0, lambda: clock, stored.changed_of, stored.marks_of
        )
        for event in complete.events:
            plain(event)
    settled = [line for line in lines if line.startswith("[")]
    for row, line in zip(rows.trials, settled, strict=True):
        assert row.is_coarse is line.endswith("  stopped early: it cannot take a place")
        assert (row.lost_to is not None and "takes place" not in line) is line.endswith(
            f"did not beat trial {row.lost_to} in a race"
        )
    assert lines[-2:] == [
        "measuring each elite once more, which decides nothing",
        "ended 2025-11-21 14:03:07: the budget of trials is spent; 40 of 40 trials are settled",
    ]


def test_the_live_view_shows_each_elite_as_it_is_measured_and_all_at_the_end(complete) -> None:
    steps = set()
    with RunReader(complete.paths) as reader:
        board, rows = Board(lambda: 0.0, reader.stored.evidence_of), reader.rows()
        for event in complete.events:
            board(event)
            now = board.snapshot()
            if isinstance(event, TrialMoved):
                steps.add(event.step.partition(" against")[0].partition(":")[0])
            if isinstance(event, TrialMoved) and event.step.startswith("final: "):
                text = show(screen(now))
                assert "40/40 trials, 0s, measuring each elite once more" in text
                assert [item.trial for item in now.doing] == [event.trial]
                assert f"trial {event.trial:>4}  final: judging by the script" in text
            if isinstance(event, TrialSettled):
                assert not now.measures_elites
            if isinstance(event, TrialMoved) and event.step.startswith("kernel activity: "):
                assert "measuring each elite once more" in show(screen(now))
                assert [item.trial for item in now.doing] == [event.trial]
    assert steps == {
        "asking",
        "judging by the script",
        "verify",
        "race",
        "final",
        "kernel activity",
    }
    assert [(row.trial, row.place, row.speedup) for row in now.elites] == [
        (row.trial, row.place, row.speedup) for row in rows.elites
    ]
    assert "selected at" in show(screen(now), 100)


def test_the_files_of_an_elite_hold_its_races_and_all_its_verdicts(complete) -> None:
    rewrite_files(complete.paths)
    with RunReader(complete.paths) as reader:
        elites, stored = reader.rows().elites, reader.stored
        raced = 0
        for elite in elites:
            folder = complete.paths.elite(elite.tier, elite.place)
            files = {path.name: path.read_text() for path in folder.iterdir()}
            evidence, races = stored.evidence_of(elite.trial), stored.races_of(elite.trial)
            verdict, verification = (
                json.loads(files[name]) for name in ("verdict.json", "verification.json")
            )
            assert verdict["speedup"] == elite.speedup.model_dump()
            assert verdict["latency_us"] == elite.latency_us.model_dump()
            assert verdict["selected_speedup"] == elite.selected_speedup.model_dump()
            assert verification["speedup"] == elite.selected_speedup.model_dump()
            assert verdict["gpu_state"] == THROTTLED.model_dump(mode="json")
            assert verification["gpu_state"] is None
            activities = {case["case"]: case["activity_us"] for case in verdict["cases"]}
            assert activities[ACTIVITY.case] == ACTIVITY.candidate_us
            for name, found in (("samples.json", evidence.final), ("verification.json", None)):
                expected = found or evidence.selected
                assert json.loads(files[name])["timings"] == [
                    timing.model_dump(mode="json") for timing in expected.timings
                ]
            assert ("races.json" in files) is bool(races)
            if races:
                raced += 1
                exported = json.loads(files["races.json"])["races"]
                assert [Race.model_validate({name: race[name] for name in Race.model_fields})
                        for race in exported] == [row.race for row in races]  # fmt: skip
                assert [race["holder_trial"] for race in exported] == [row.holder for row in races]
                of_the_trial = complete.paths.trial(elite.trial) / "races.json"
                assert json.loads(of_the_trial.read_text())["races"] == exported
        assert raced


def test_the_files_of_a_place_are_written_again_when_its_elite_is_measured(tmp_path: Path) -> None:
    run = searched_run(tmp_path, stop_before_finals=True)
    with RunReader(run.paths) as reader:
        info, elites = reader.info, reader.settled().elites
        held = next(row for row in reader.rows().elites if row.awaits_final)
    exported = run.paths.elite(held.tier, held.place) / "verdict.json"
    with open_run(run.paths) as folder:
        files = RunFolderFiles(run.paths, folder.store, info)
        files.write_elites(elites)
        before = json.loads(exported.read_text())
        assert before["awaits_final"] is True
        assert before["speedup"] == before["selected_speedup"] == held.speedup.model_dump()
        assert not (exported.parent / "verification.json").exists()
        final = folder.store.get(VerdictRow, held.trial, FIRST).verdict
        folder.store.append(VerdictRow(held.trial, FINAL, final))
        files.write_elites(elites)
    after = json.loads(exported.read_text())
    assert after["awaits_final"] is False
    assert after["speedup"] == speedup_of(final.score).model_dump() != before["speedup"]
    assert (exported.parent / "verification.json").is_file()


def test_what_the_end_of_a_run_found_is_in_no_request(complete) -> None:
    """A run that goes on after its end must not select by the figures that select nothing."""
    asked = prompt_request.request_of_run(complete.paths)
    text = prompt_request.render(asked, None, None).prompt.text
    rows = {row.trial: row for row in rows_of(complete).elites}
    assert {item.outcome.trial for _, item in asked.request.elites} == set(rows)
    selected, final = set[str](), set[str]()
    for _, item in asked.request.elites:
        row = rows[item.outcome.trial]
        assert speedup_of(item.verdict.score) == row.selected_speedup != row.speedup
        selected.add(f"{row.selected_speedup.value:.3f}x the fastest baseline's speed")
        final.add(f"{row.speedup.value:.3f}x the fastest baseline's speed")
    # a prompt has room for some of the elites
    assert any(figure in text for figure in selected)
    assert not any(figure in text for figure in final - selected)
    coarse = [item.verdict for item in asked.request.recent if item.verdict.is_coarse]
    assert coarse
    for verdict in coarse:
        value = f"{float(f'{verdict.speedup:.2g}'):g}x"
        assert f"correct, not among the best: about {value}" in text
        assert f"{verdict.speedup:.3f}x" not in text
