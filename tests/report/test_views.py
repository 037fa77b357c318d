from __future__ import annotations

import io
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from rich.console import Console

from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU
from evoengine.events import Event, Notice, RunEnded, RunStarted, Spent, TrialMoved, TrialSettled
from evoengine.records import (
    Elite,
    EndKind,
    GpuState,
    KernelActivity,
    LaunchActivity,
    Usage,
    Verdict,
)
from evoengine.report import as_json, format
from evoengine.report.board import Board
from evoengine.report.elite_evidence import EliteEvidence
from evoengine.report.elites_table import elites_table
from evoengine.report.live_view import LiveView, screen
from evoengine.report.plain_view import QUIET_S, PlainView
from evoengine.report.rows_from_store import (
    case_rows,
    elite_row,
    speedup_of,
    trial_row,
    verdict_row,
)
from evoengine.report.stored_trials import StoredTrials
from evoengine.report.trials_table import trials_table
from evoengine.report.verdict_report import verdict_report
from evoengine.store.memory_store import MemoryStore
from tests.report.stored_run import fill, input_set, proposals, run_info
from tests.scale_task import load_scale_task, write_task


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def moment() -> datetime:
    return datetime(2025, 11, 21, 14, 3, 7, tzinfo=timezone(timedelta(hours=1)))


@pytest.fixture
def stored(tmp_path: Path) -> tuple[MemoryStore, tuple[Elite, ...], list[Event]]:
    task = load_scale_task(tmp_path)
    store, info = MemoryStore(), run_info(task, write_task(tmp_path))
    elites = fill(store, info, proposals())
    events: list[Event] = [
        Notice("no key: the tuner searches"),
        RunStarted(info, SCRIPTED_GPU, 8, 0, False),
    ]
    for trial, summary in store.trials():
        final = summary.outcome.after(summary.verified)
        held = tuple(elite for elite in elites if elite.outcome.trial <= trial)
        place = next((elite.place for elite in held if elite.outcome.trial == trial), None)
        events += [TrialMoved(trial, "compiling", "k"), TrialSettled(final, place, held)]
    return store, elites, events


def show(renderable, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(renderable)
    return console.file.getvalue()


def test_screen_shows_progress_elites_counts_doing_and_cost_in_80_columns(stored) -> None:
    store, elites, events = stored
    clock = Clock()
    board = Board(clock, StoredTrials(store).evidence_of)
    for event in events:
        clock.now += 2
        board(event)
    board(TrialMoved(7, "checking small", "scale_a"))
    board(Spent(Usage(prompt_tokens=1200, completion_tokens=340, cost_usd=0.0123)))
    text = show(screen(board.snapshot()))
    assert max(map(len, text.splitlines())) <= 80
    assert "7/8 trials" in text and "left" in text
    assert "1,200 prompt + 340 completion tokens, 0.0123 USD" in text
    assert "trial    7  checking small  scale_a" in text
    assert "note    no key: the tuner searches" in text
    assert "rejected" in text and "correct" in text
    for elite in elites:
        assert f"{1 / elite.outcome.score.value:.2f}x [" in text
    assert "40!" in text  # registers, and over the target's limit


def test_time_left_follows_from_the_trials_of_this_process(stored) -> None:
    _, _, events = stored
    clock = Clock()
    board = Board(clock)
    for event in events:
        clock.now += 3 if isinstance(event, TrialSettled) else 0
        board(event)
    assert board.snapshot().left_s == pytest.approx(3.0)
    clock.now += 1
    assert board.snapshot().left_s == pytest.approx(2.0)


def asking(events: list[Event], model: str = "home-made", **price: float) -> RunStarted:
    started = next(event for event in events if isinstance(event, RunStarted))
    config = {**started.info.config, "generator": "openai", "model": {"model": model, **price}}
    return RunStarted(started.info.model_copy(update={"config": config}), SCRIPTED_GPU, 8, 0, False)


SPENT = Usage(prompt_tokens=1200, completion_tokens=340)


@pytest.mark.parametrize(("price", "spent", "cost"), [
    ({}, SPENT, "cost unknown (set --price to the cost of a million tokens)"),
    ({"usd_per_million_prompt": 0.0, "usd_per_million_completion": 0.0}, SPENT, "0.0000 USD"),
    # a run of a version that did not store the price it knew
    ({}, SPENT.model_copy(update={"cost_usd": 0.5}), "0.5000 USD"),
])  # fmt: skip
def test_a_cost_is_shown_if_there_is_a_price_and_is_unknown_otherwise(
    stored, price, spent: Usage, cost: str
) -> None:
    _, _, events = stored
    board, lines = Board(Clock()), []
    plain = PlainView(lines.append, Clock(), moment)
    for event in (asking(events, **price), Spent(spent)):
        board(event)
        plain(event)
    assert lines[-1] == f"spent: 1,200 prompt + 340 completion tokens, {cost}"
    text = " ".join(show(screen(board.snapshot())).split())
    assert f"spent 1,200 prompt + 340 completion tokens, {cost}" in text


def test_the_model_is_in_the_first_line_and_on_the_screen(stored) -> None:
    _, _, events = stored
    board, lines = Board(Clock()), []
    plain = PlainView(lines.append, Clock(), moment)
    board(asking(events))
    plain(asking(events))
    assert "8 trials, generator openai, model home-made, device cuda:0 Scripted" in lines[0]
    assert "openai, model home-made" in show(screen(board.snapshot()))


def test_a_run_without_a_model_names_none_and_its_cost_is_known(stored) -> None:
    _, _, events = stored
    board, lines = Board(Clock()), []
    plain = PlainView(lines.append, Clock(), moment)
    board(events[1])
    plain(events[1])
    assert "generator tune, device" in lines[0] and board.snapshot().cost_known


def test_a_line_of_the_plain_view_counts_settled_trials_and_names_its_trial_as_show_does(
    stored,
) -> None:
    lines: list[str] = []
    plain = PlainView(lines.append, Clock(), moment)
    for event in stored[2]:
        plain(event)
    settled = [line for line in lines if line.startswith("[")]
    assert len(settled) == 7
    for number, line in enumerate(settled):
        assert line.startswith(f"[{number + 1}/8 ") and f"]  trial {number}  " in line


def test_where_no_trial_settles_for_a_while_the_plain_view_says_what_is_under_way(stored) -> None:
    clock, lines = Clock(), []
    plain = PlainView(lines.append, clock, moment)
    plain(stored[2][0])
    del lines[:]
    for step in ("compiling", "checking long", "checking odd", "timing long"):
        clock.now += 0.6 * QUIET_S
        plain(TrialMoved(0, step))
    assert lines == ["14:03:07  trial 0: checking long", "14:03:07  trial 0: timing long"]


def test_what_is_shown_of_a_trial_is_what_differs_from_the_defaults(stored) -> None:
    store, _, events = stored
    changed_of, lines = StoredTrials(store).changed_of, []
    plain, board = (
        PlainView(lines.append, Clock(), moment, changed_of),
        Board(Clock(), changed_of=changed_of),
    )
    for event in events:
        plain(event)
        board(event)
    tuned = [line for line in lines if line.startswith("[4/8")]  # BLOCK=32 UNROLL=1, of 128 and 4
    assert len(tuned) == 1 and "BLOCK=32 UNROLL=1" in tuned[0]
    assert "BLOCK=" not in next(line for line in lines if line.startswith("[1/8"))
    outcome = next(
        event.outcome
        for event in events
        if isinstance(event, TrialSettled) and event.outcome.trial == 3
    )
    assert changed_of(outcome.model_copy(update={"tunables": {"BLOCK": 128, "UNROLL": 1}})) == {
        "UNROLL": 1
    }


def test_a_case_that_ended_before_anything_was_compared_has_no_row_of_a_comparison() -> None:
    from evoengine.records import CaseCheck, CheckedRun, Status

    checked = CheckedRun(
        checks=("races", "bounds"), blocks=4, total_blocks=8, findings=("out of bounds: thread 0",)
    )
    check = CaseCheck(case="rows", hidden=False, ok=False, sets=(), checked=checked)
    text = show(
        verdict_report(
            verdict_row(
                Verdict(status=Status.fault, reason="out of bounds", checks=(check,)), "k", {}, None
            )
        ),
        120,
    )
    assert "0/0" not in text and "worst input set" not in text
    assert "checked mode" in text and "4 of 8" in text


def test_the_change_that_mends_a_fault_is_shown_and_the_reason_is_not_repeated() -> None:
    from evoengine.records import CaseCheck, Diagnosis, DiagnosisKind, Forensics, Status

    check = CaseCheck(case="rows", hidden=False, ok=False, sets=())
    fault = Diagnosis(kind=DiagnosisKind.fault, sentence="race: no barrier", share=0.0)
    change = Diagnosis(kind=DiagnosisKind.changed_source, sentence="Line 7: with it", share=1.0)

    def shown(*diagnoses: Diagnosis) -> str:
        found = Forensics(case="rows", diagnoses=diagnoses)
        verdict = Verdict(
            status=Status.fault, reason="race: no barrier", checks=(check,), forensics=found
        )
        return show(verdict_report(verdict_row(verdict, "k", {}, None)), 120)

    text = shown(change, fault)
    assert "what is wrong in rows\n" in text and "Line 7: with it" in text
    assert text.count("race: no barrier") == 1 and "%" not in text
    assert "what is wrong" not in shown(fault)


def test_before_the_start_the_screen_says_what_is_starting() -> None:
    clock = Clock()
    board = Board(clock)
    clock.now += 65
    assert "starting compilers and device ... 1m05s" in show(screen(board.snapshot()))


def test_live_view_draws_on_a_terminal_and_leaves_the_last_picture(stored) -> None:
    store, _, events = stored
    console = Console(
        file=io.StringIO(), width=80, height=40, force_terminal=True, color_system=None
    )
    with LiveView(console, Clock(), StoredTrials(store).evidence_of) as view:
        for event in [*events, RunEnded("the budget of trials is spent", EndKind.trials)]:
            view(event)
    last = console.file.getvalue()
    assert "7/8 trials, the budget of trials is spent" in last
    assert "scale_a" in last


def test_plain_view_prints_one_line_for_each_settled_trial(stored) -> None:
    _, _, events = stored
    lines: list[str] = []
    view = PlainView(lines.append, Clock(), moment)
    for event in [*events, RunEnded("interrupted", EndKind.interrupted)]:
        view(event)
    assert lines[0] == "note: no key: the tuner searches"
    assert (
        lines[1]
        == "run one started 2025-11-21 14:03:07+01:00: task scale, 8 trials, generator tune, device"
        " cuda:0 Scripted"
    )
    settled = [line for line in lines if line.startswith("[")]
    assert [line.split("]")[0].split(",")[0] for line in settled] == [
        f"[{number}/8 14:03:07" for number in range(1, 8)
    ]
    assert "rejected" in settled[5] and "the reply holds no kernel" in settled[5]
    assert lines[-1] == "ended 2025-11-21 14:03:07+01:00: interrupted; 7 of 8 trials are settled"
    assert all("\x1b" not in line and "\n" not in line for line in lines)


def test_plain_view_of_a_resumed_run_does_not_repeat_settled_trials(stored) -> None:
    _, _, events = stored
    lines: list[str] = []
    view = PlainView(lines.append, Clock(), moment)
    started = events[1]
    view(RunStarted(started.info, SCRIPTED_GPU, 8, 5, True))
    for event in events[2:]:
        view(event)
    assert lines[0].startswith("run one resumed after 5 trials")
    assert [line.split("/")[0] for line in lines[1:]] == ["[6", "[7"]


def test_what_a_model_wrote_moves_no_cursor_and_is_no_markup(stored) -> None:
    store, _, _ = stored
    text = show(
        trials_table([trial_row(summary.outcome) for _, summary in store.trials()]), width=160
    )
    assert "\x1b" not in text and "�[2J[red]better" in text


def test_numbers_stay_whole_in_a_narrow_window(stored) -> None:
    store, elites, _ = stored
    rows = [
        elite_row(elite, StoredTrials(store).evidence_of(elite.outcome.trial)) for elite in elites
    ]
    for width in (60, 80, 120):
        text = show(elites_table(rows), width)
        assert max(map(len, text.splitlines())) <= max(width, 60)
        for row in rows:
            assert (
                f"{row.speedup.value:.2f}x [{row.speedup.low:.2f}, {row.speedup.high:.2f}]" in text
            )


def test_a_more_exact_kernel_that_leads_a_looser_tier_is_named(stored, tmp_path: Path) -> None:
    store, elites, _ = stored
    elite = elites[0].model_copy(update={"tier": "fp16", "place": 1})
    verdict = StoredTrials(store).verdict_of(elite.outcome.trial)
    tiers = load_scale_task(tmp_path).tiers
    for rel_rmse, expected in ((1e-7, "fp32"), (1e-4, "")):
        sets = (input_set(True, rel_rmse * 10),)
        checks = tuple(check.model_copy(update={"sets": sets}) for check in verdict.checks)
        row = elite_row(
            elite, EliteEvidence(verdict.model_copy(update={"checks": checks})), tiers=tiers
        )
        assert row.exact_as == expected
        note = "fp16: a more exact kernel leads, its errors keep the limit of tier fp32"
        assert (note in show(elites_table([row]), 120)) is bool(expected)


QUIET = GpuState(
    sm_clock_mhz=(1755, 1980),
    most_sm_clock_mhz=1980,
    temperature_c=41,
    power_w=301.7,
    power_limit_w=700.0,
    throttled=(),
    other_processes=0,
)


@pytest.mark.parametrize(("changes", "line"), [
    ({}, "1755-1980 of 1980 MHz, 41 C, 302 of 700 W"),
    ({"sm_clock_mhz": (1980, 1980)}, "1980 of 1980 MHz, 41 C, 302 of 700 W"),
    ({"power_limit_w": None, "temperature_c": None}, "1755-1980 of 1980 MHz, 302 W"),
    ({"throttled": ("power limit", "temperature limit")},
     "302 of 700 W; throttled: power limit, temperature limit"),
    ({"sm_clock_mhz": (1200, 1980)}, "302 of 700 W; below its usual clock"),
    ({"sm_clock_mhz": (345, 345), "idle": True}, "345 of 1980 MHz while idle, 41 C, 302 of 700 W"),
    ({"other_processes": 1}, "302 of 700 W; shared with 1 other process"),
    ({"other_processes": 2, "throttled": ("power brake",)},
     "302 of 700 W; throttled: power brake; shared with 2 other processes"),
])  # fmt: skip
def test_the_gpu_is_shown_in_one_line_with_what_may_have_slowed_it(
    stored, tmp_path: Path, changes: dict[str, object], line: str
) -> None:
    assert format.gpu_state(QUIET.model_copy(update=changes)).endswith(line)
    verdict = StoredTrials(stored[0]).verdict_of(0).model_copy(
        update={"gpu_state": QUIET.model_copy(update=changes)}
    )  # fmt: skip
    row = verdict_row(verdict, "k", {}, None)
    assert line in show(verdict_report(row), 160)
    assert json.loads(as_json.dumps(row))["gpu_state"]["temperature_c"] == (
        changes.get("temperature_c", 41)
    )


def test_a_gpu_of_which_nothing_is_known_is_said_to_be_unknown() -> None:
    assert format.gpu_state(GpuState()) == "NVML gives no figures of it"
    assert GpuState().remarks == ()


def test_an_elite_that_was_timed_on_a_throttled_or_shared_gpu_is_marked(stored) -> None:
    store, elites, _ = stored
    verdict = StoredTrials(store).verdict_of(elites[0].outcome.trial)
    for changes, marked in (({}, False), ({"throttled": ("power limit",)}, True),
                            ({"other_processes": 1}, True), ({"other_processes": None}, False)):  # fmt: skip
        state = QUIET.model_copy(update=changes)
        timed = verdict.model_copy(update={"gpu_state": state})
        row = elite_row(elites[0], EliteEvidence(selected=timed))
        assert row.gpu_remarks == state.remarks and bool(row.gpu_remarks) is marked
        text = show(elites_table([row]), 120)
        assert (f"{format.micros(row.latency_us)}*" in text) is marked
        assert ("*: timed while the GPU was throttled" in text) is marked


def test_a_verdict_that_was_stored_without_a_gpu_state_is_read_and_shown_as_before(stored) -> None:
    verdict = StoredTrials(stored[0]).verdict_of(0)
    old = verdict.model_dump(mode="json")
    del old["gpu_state"]
    assert Verdict.model_validate(old) == verdict
    assert "GPU" not in show(verdict_report(verdict_row(verdict, "k", {}, None)), 160).split()


def test_verdict_shows_every_case_with_its_worst_set(stored, tmp_path: Path) -> None:
    store, _, _ = stored
    task = load_scale_task(tmp_path)
    verdicts = [StoredTrials(store).verdict_of(number) for number in range(7)]
    correct = next(item for item in verdicts if item.status == "correct")
    text = show(verdict_report(verdict_row(correct, "k", {"BLOCK": 64}, task.target)), 160)
    for words in (
        "small",
        "large",
        "odd (hidden)",
        " set ",
        "y[",
        "12/12",
        "torch.mul",
        "80/72",
        "over",
        "BLOCK=64",
        "torch 2.11",
    ):
        assert words in text


def test_every_number_of_a_case_is_recomputed_from_raw_samples(stored) -> None:
    store, elites, _ = stored
    verdict = StoredTrials(store).verdict_of(elites[0].outcome.trial)
    row = next(item for item in case_rows(verdict) if item.case == "large")
    assert row.hot_us.value == pytest.approx(verdict.latency_us.value)
    assert row.hot_speedup.value == pytest.approx(speedup_of(verdict.score).value)


def test_kernel_activity_stands_beside_the_replayed_time_or_the_reason_why_it_is_unknown(
    stored,
) -> None:
    store, elites, _ = stored
    verdict = StoredTrials(store).verdict_of(elites[0].outcome.trial)
    launches = (
        LaunchActivity(name="Memset (Device)", us=0.6),
        LaunchActivity(name="scale", us=4.5),
    )
    found = KernelActivity(
        case="large",
        baseline="torch.mul",
        candidate_us=5.1,
        baseline_us=7.2,
        candidate_launches=launches,
    )
    row = verdict_row(verdict.model_copy(update={"activity": (found,)}), "k", {}, None)
    text = " ".join(show(verdict_report(row), 160).split())
    replayed = next(case.hot_us.value for case in row.cases if case.case == "large")
    assert (
        f"large: kernel activity 5.10 us (baseline 7.20 us) of {replayed:.2f} us replayed hot:"
        " Memset (Device) 0.60, scale 4.50"
    ) in text
    assert "small: kernel activity" not in text
    (case,) = (case for case in json.loads(as_json.dumps(row))["cases"] if case["case"] == "large")
    assert (case["activity_us"], case["baseline_activity_us"]) == (5.1, 7.2)
    assert case["activity_launches"][1] == {"name": "scale", "us": 4.5}
    refused = verdict.model_copy(update={"activity_problem": "CUPTI is not permitted"})
    told = show(verdict_report(verdict_row(refused, "k", {}, None)), 160)
    assert "kernel activity: unknown: CUPTI is not permitted" in told
    assert "kernel activity" not in show(verdict_report(verdict_row(verdict, "k", {}, None)), 160)


def test_a_verdict_of_a_version_without_activity_is_read(stored) -> None:
    store, elites, _ = stored
    verdict = StoredTrials(store).verdict_of(elites[0].outcome.trial)
    old = verdict.model_dump(mode="json", exclude={"activity", "activity_problem"})
    assert Verdict.model_validate(old) == verdict


def test_json_is_strict_where_an_error_is_not_a_number(stored) -> None:
    row = verdict_row(_wrong(), "k", {}, None)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    parsed = json.loads(as_json.dumps(row), parse_constant=refuse)
    assert parsed["cases"][0]["max_abs"] == "NaN"
    assert parsed["cases"][0]["nan_count"] == 5
    assert "NO" in show(verdict_report(row), 160)


def _wrong() -> Verdict:
    from evoengine.records import CaseCheck, Status

    check = CaseCheck(
        case="small",
        hidden=False,
        ok=False,
        sets=(input_set(True, 1e-5), input_set(False, float("nan"))),
    )
    return Verdict(status=Status.wrong_result, reason="case small fails", checks=(check,))
