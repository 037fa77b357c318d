"""How a candidate is checked and timed on a GPU, with the runner's loop in a thread and shared
memory files for device memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evoengine.candidate.binding import CasePlan
from evoengine.evaluate.floor import DevicePeaks
from evoengine.evaluate.nvml import Nvml
from evoengine.evaluate.worker.candidate_failures import VoidTiming
from evoengine.evaluate.worker.cuda import paired_cases
from evoengine.evaluate.worker.cuda.cuda_backend import GROWTH_BYTES, CudaBackend
from evoengine.evaluate.worker.cuda.examination import Examination, Examined
from evoengine.evaluate.worker.cuda.first_sight import FirstSight
from evoengine.evaluate.worker.cuda.gpu_monitor import GpuMonitor
from evoengine.evaluate.worker.cuda.harness.runner_messages import Replay, Replayed
from evoengine.evaluate.worker.cuda.input_pool import LEAST_SETS, InputPool
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.paired_cases import PAUSE_S
from evoengine.evaluate.worker.cuda.paired_timing import (
    ATTEMPTED,
    BRIEF,
    FIRST_LOOK,
    GLANCE,
    SCORED,
    SEARCHED,
    SITTING,
    Effort,
)
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.judge import Judge
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase, Job, Purpose, Report
from evoengine.records import Status
from tests.evaluate.fake_pynvml import BUS_ID, FakePynvml
from tests.evaluate.worker.cuda.host_device import (
    TOTAL_BYTES,
    Behaviour,
    HostHarness,
    HostReplayer,
    connected_pair,
    host_bytes,
    install,
)
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

ELEMENTS = {"plain": 64 * 96, "flipped": 3 * 40, "odd": 7 * 33}
PEAKS = DevicePeaks(l2_bytes=1, l2_bytes_per_s=1e12, dram_bytes_per_s=1e12, launch_us=1.0)


def honest(call: dict[str, int], elements: int) -> None:
    x, out = (host_bytes(call[name], 4 * elements).view(torch.float32) for name in ("x", "out"))
    torch.mul(x, 2, out=out)


class Desk:
    """A judge over the backend, and what it announced."""

    def __init__(self, folder: Path, runners: PairClient, **fields: Any) -> None:
        (folder / "scale_rows.py").write_text("def forward(x):\n    return x * 2\n")
        self.task = small_task(
            **fields,
            cases={
                "plain": {"N": 64, "C": 96, "flip": False},
                "flipped": {"N": 3, "C": 40, "flip": True},
            },
            hidden_cases={"odd": {"N": 7, "C": 33, "flip": True}},
        )
        expected = ExpectedOutputs(self.task, TaskFunctions(self.task, folder / "t.yaml"), CPU)
        self.harness = HostHarness()
        self.imports = list[bool]()  # of a compiler: whether it had the GPU to itself
        self.turns_of_sets = list[int]()  # in which turn at the GPU each input set was begun
        self.pool = InputPool(self.task, expected, self.begin_set)
        baselines: Any = SimpleNamespace(
            is_known=lambda _case, _name: False,
            import_compiler=lambda _case, _name: self.imports.append(self.is_alone),
            rough_us=lambda _case, _name: 20.0,
            replays=lambda _case, _name, _most: SimpleNamespace(
                replay=self.replay_baseline,
                gaps_us=(1.0,),
                host_gap_us=50.0,
                prepare=lambda _calls, _cold: None,
            ),
        )
        self.pynvml = FakePynvml(processes=())
        monitor = GpuMonitor(Nvml(self.pynvml).gpu(BUS_ID))
        self.backend = CudaBackend(self.task, self.harness, self.pool, baselines, monitor)
        self.backend.begin_job(runners)
        self.backend._peaks = PEAKS
        self.announced: list[tuple[str, bool]] = []

    @property
    def is_alone(self) -> bool:
        """Whether it has the GPU to itself now."""
        return bool(self.harness.token.is_held)  # type: ignore[attr-defined]  # a HostToken

    def begin_set(self) -> None:
        self.turns_of_sets.append(self.harness.token.turns)  # type: ignore[attr-defined]

    def replay_baseline(self, sets: Sequence[Any], cold: bool) -> tuple[float, ...]:
        assert self.harness.token.is_held  # type: ignore[attr-defined]  # a HostToken
        return (20.0,) * len(sets) if cold else (20.0 * len(sets),)

    def judge_case(
        self,
        case: str,
        behaviour: Behaviour,
        purpose: Purpose = Purpose.verdict,
        **baselines: str,
    ) -> Report:
        """The report on a candidate that has one case."""
        HostReplayer.behaviours[case] = behaviour
        plan = CasePlan(case=case, hidden=case == "odd", macros={}, scratch={}, launches=())
        compiled = CompiledCase(plan=plan, code_path=case, functions={})
        job = Job(cases=(compiled,), tier="fp32", purpose=purpose, baselines=baselines)
        return Judge(self.task, self.backend, lambda *_: None).run(job)

    def judge(self, **baselines: str) -> Report:
        """The report on an honest candidate."""
        cases = []
        for name, elements in ELEMENTS.items():

            def run(call: dict[str, int], _: int, elements: int = elements) -> None:
                assert self.harness.token.is_held  # type: ignore[attr-defined]
                honest(call, elements)

            HostReplayer.behaviours[name] = run
            plan = CasePlan(case=name, hidden=name == "odd", macros={}, scratch={}, launches=())
            cases.append(CompiledCase(plan=plan, code_path=name, functions={}))
        job = Job(cases=tuple(cases), tier="fp32", baselines=baselines)
        judge = Judge(
            self.task, self.backend, lambda step, may_run: self.announced.append((step, may_run))
        )
        return judge.run(job)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    install(monkeypatch)
    with connected_pair(monkeypatch) as runners:
        yield Desk(tmp_path, runners)


def test_others_get_the_gpu_between_two_input_sets_and_while_a_compiler_is_imported(
    desk: Desk,
) -> None:
    """A second grader takes seconds to have its own; the first one must not wait for all of it."""
    report = desk.judge(plain="torch", flipped="torch")
    assert report.status is Status.correct
    assert desk.imports == [False, False]
    first = desk.turns_of_sets[: 3 * LEAST_SETS]  # of the three cases; a few are renewed later
    assert len(set(first)) == 3 * LEAST_SETS


def test_a_baseline_is_built_in_a_step_that_no_candidate_is_charged_for(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time may come from an earlier run: then nothing has built it before the first candidate."""
    asked: list[tuple[str, str, str, bool]] = []

    def rough_us(case: str, name: str) -> float:
        held = desk.harness.token.is_held  # type: ignore[attr-defined]
        assert held or asked, "it is built when it is asked for first"
        asked.append((case, name, *desk.announced[-1]))
        return 20.0

    monkeypatch.setattr(desk.backend.all_baselines, "rough_us", rough_us)
    desk.judge(flipped="torch")
    assert asked[0] == ("flipped", "torch", "preparing flipped", False)
    assert {case for case, *_ in asked} == {"flipped"}


def test_a_case_that_is_not_timed_is_checked_on_every_set_hot_and_cold(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[bool] = []
    replay = HostReplayer.replay

    def watched(self: HostReplayer, request: Replay) -> Replayed:
        kinds.append(request.cold)
        return replay(self, request)

    monkeypatch.setattr(HostReplayer, "replay", watched)
    for _ in range(5):
        kinds.clear()
        report = desk.judge()
        assert report.status is Status.correct, report
        sets = [[check.seed for check in case.sets] for case in report.checks]
        assert sets == [list(range(len(desk.pool.sets(case)))) for case in ELEMENTS]
        assert {False, True} <= set(kinds)


def test_the_gpu_is_read_before_and_after_each_timed_case_while_the_token_is_held(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments: list[str] = []
    desk.pynvml.on_power = lambda: moments.append(
        f"read, {'held' if desk.harness.token.is_held else 'not held'}"  # type: ignore[attr-defined]
    )
    run = paired_cases.PairedTiming.run

    def watched(self: Any, *arguments: Any) -> Any:
        moments.append("samples")
        return run(self, *arguments)

    monkeypatch.setattr(paired_cases.PairedTiming, "run", watched)
    report = desk.judge(plain="torch", flipped="torch")
    assert moments == ["read, held", "samples", "samples", "read, held"] * 2
    assert report.gpu_state is not None and report.gpu_state.sm_clock_mhz == (1980, 1980)
    moments.clear()
    desk.backend.begin_job(desk.backend.runners)
    assert desk.judge().gpu_state is None and not moments, "nothing was timed"


def test_the_gpu_is_read_after_a_timing_that_fails(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise VoidTiming("the baseline takes another time")

    monkeypatch.setattr(paired_cases.PairedTiming, "run", fail)
    desk.pynvml.reasons = [0x1, 0x4]  # idle before, held back by its power limit after
    report = desk.judge(plain="torch")
    assert report.status is Status.unstable and report.gpu_state is not None
    assert report.gpu_state.throttled == ("power limit",)


def test_waiting_for_the_gpu_is_not_the_candidates_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run, or the start of a process that stands by, may have it for seconds."""
    held, waited = desk.harness.token.held, list[tuple[str, bool]]()

    def watched() -> Any:
        waited.append(desk.announced[-1])
        return held()

    monkeypatch.setattr(desk.harness.token, "held", watched)
    assert desk.judge(plain="torch.mul").status is Status.correct
    assert len(waited) > 2 * len(ELEMENTS)
    assert not [step for step, may_run in waited if may_run]


def test_others_that_want_the_gpu_have_it_between_two_groups_which_is_nobodys_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    token: Any = desk.harness.token
    assert desk.judge(plain="torch.mul").status is Status.correct
    assert token.offers == 0, "nobody waits"
    token.is_wanted, offer, offered = True, token.offer, list[tuple[str, bool]]()

    def watched() -> None:
        offered.append(desk.announced[-1])
        offer()

    monkeypatch.setattr(token, "offer", watched)
    assert desk.judge(plain="torch.mul").status is Status.correct
    assert len(offered) >= SCORED.groups - 1
    assert not [step for step, may_run in offered if may_run]


def test_sittings_go_round_the_cases_and_the_gpu_is_free_in_their_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    now = [0.0]
    with connected_pair(monkeypatch) as runners:
        desk = Desk(tmp_path, runners, objective={"cases": ["plain", "flipped"]})
        limited = Limited(desk, monkeypatch)
        moments, sit = list[str](), paired_cases.PairedTiming.sit

        def watched(pair: Any, *arguments: Any) -> Any:
            moments.append(f"sat down at {now[0]:g}")
            return sit(pair, *arguments)

        def sleep(seconds: float) -> None:
            assert not desk.is_alone
            now[0] += seconds

        clock = SimpleNamespace(sleep=sleep, monotonic=lambda: now[0])
        monkeypatch.setattr(paired_cases, "time", clock)
        monkeypatch.setattr(paired_cases.PairedTiming, "sit", watched)
        report = limited.judge(None, sittings=3, plain="torch.mul", flipped="torch.mul")
    assert report.status is Status.correct
    at = [f"sat down at {sitting * PAUSE_S:g}" for sitting in range(3)]
    assert moments == [moment for moment in at for _ in ("plain", "flipped")]
    for timing in report.timings:
        assert timing.hot.sittings == 3 and len(set(timing.hot.groups)) == 3 * SITTING.groups


def test_a_wrong_output_in_a_sitting_is_a_wrong_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    with connected_pair(monkeypatch) as runners:
        desk = Desk(tmp_path, runners, objective={"cases": ["plain"]})

        def tires(call: dict[str, int], _: int) -> None:
            if not desk.backend._monitor._readings:  # no timing has begun
                honest(call, ELEMENTS["plain"])

        HostReplayer.behaviours["plain"] = tires
        plan = CasePlan(case="plain", hidden=False, macros={}, scratch={}, launches=())
        compiled = CompiledCase(plan=plan, code_path="plain", functions={})
        baselines = {"plain": "torch.mul"}
        job = Job(cases=(compiled,), tier="fp32", baselines=baselines, sittings=2)
        report = Judge(desk.task, desk.backend, lambda *_: None).run(job)
    assert report.status is Status.wrong_result


def test_a_timed_case_has_the_sets_of_its_check_and_of_all_its_timed_replays(desk: Desk) -> None:
    report = desk.judge(plain="torch.mul", flipped="torch.mul")
    assert report.status is Status.correct, report
    plain, _, odd = report.checks
    assert len(plain.sets) == len(desk.pool.sets("plain")) == len(odd.sets)
    assert {check.distribution for check in plain.sets} == set(desk.task.distributions)
    first, brief = report.timings
    assert (first.case, brief.case) == ("plain", "flipped")
    assert len(first.hot.calls) >= SCORED.least and first.cold is not None
    assert len(brief.hot.calls) >= BRIEF.least, "its time does not count"
    assert first.call_bytes == 8 * ELEMENTS["plain"]


def test_large_inputs_are_all_checked_and_never_timed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gates are wide there: what a kernel leaves out must not make it faster."""
    replay, given, timed = Examination.replay, list[set[str]](), set[str]()

    def watched(
        examination: Examination, sets: Sequence[Any], cold: bool, *others: Any
    ) -> Examined:
        given.append({item.distribution for item in sets})
        return replay(examination, sets, cold, *others)

    def replay_baseline(sets: Sequence[Any], cold: bool) -> tuple[float, ...]:
        timed.update(item.distribution for item in sets)
        return desk.replay_baseline(sets, cold)

    monkeypatch.setattr(Examination, "replay", watched)
    replays = SimpleNamespace(
        replay=replay_baseline, gaps_us=(1.0,), host_gap_us=50.0, prepare=lambda _calls, _cold: None
    )
    monkeypatch.setattr(desk.backend.all_baselines, "replays", lambda *_: replays)
    report = desk.judge(plain="torch.mul")
    assert report.status is Status.correct, report
    assert timed == {*desk.task.distributions} - {"extreme"}
    assert "extreme" not in given[0], "its time is compared with timed ones"
    large = {item.number for item in desk.pool.sets("plain") if item.distribution == "extreme"}
    assert large and large <= {check.seed for check in report.checks[0].sets}


def test_the_number_of_calls_is_the_same_for_a_candidate_that_is_slow_or_fast(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paired_cases, "refuse_below_floor", lambda *_: None)
    ranges = []
    for us in (5.0, 500.0):
        times = lambda samples, us=us: Replayed(  # noqa: E731
            event_us=(us,) * samples, stamp_us=(us,) * samples, host_us=us
        )
        monkeypatch.setattr(HostReplayer, "times", staticmethod(times))
        report = desk.judge(plain="torch.mul")
        assert report.status is Status.correct, report
        counts = report.timings[0].hot.calls
        ranges.append((min(counts), max(counts)))
    for least, most in ranges:
        assert 3 <= least < most <= 8, "nine sets are timed, one of them warms up"


@pytest.mark.parametrize("case", ELEMENTS)
def test_one_wrong_set_of_any_case_is_a_wrong_result(desk: Desk, case: str) -> None:
    wanted = desk.pool.sets(case)[5].inputs["x"].flatten()

    def spoils_one_set(call: dict[str, int], _: int) -> None:
        honest(call, ELEMENTS[case])
        x, out = (
            host_bytes(call[name], 4 * ELEMENTS[case]).view(torch.float32) for name in ("x", "out")
        )
        if torch.equal(x, wanted):
            out[0] += 1.0

    report = desk.judge_case(case, spoils_one_set)
    assert report.status is Status.wrong_result
    (check,) = report.checks
    assert [item.seed for item in check.sets] == [5]
    if case == "odd":
        assert report.reason == "wrong in a hidden case"
    else:
        assert report.reason.startswith(f"case {case}: 1 of 1 input sets fail")


def test_a_diagnosis_of_a_timed_case_is_given_every_set_and_times_nothing(desk: Desk) -> None:
    """An output that was wrong now and then is looked for longer than a check looks."""
    report = desk.judge_case(
        "plain", lambda call, _: honest(call, ELEMENTS["plain"]), Purpose.diagnosis, plain="torch"
    )
    assert report.status is Status.correct and report.timings == ()
    (check,) = report.checks
    assert [item.seed for item in check.sets] == list(range(len(desk.pool.sets("plain"))))


@pytest.mark.parametrize(
    ("purpose", "is_kept"),
    [
        (Purpose.verdict, True),
        (Purpose.diagnosis, True),
        (Purpose.quick_verdict, False),
        (Purpose.outputs, False),
    ],
)
def test_a_wrong_call_is_copied_for_its_examination_alone(
    desk: Desk, purpose: Purpose, is_kept: bool
) -> None:
    report = desk.judge_case("plain", lambda *_: None, purpose, plain="torch")
    assert report.status is Status.wrong_result and report.checks[0].sets
    assert (desk.backend.wrong_call() is not None) == is_kept


def test_a_wrong_call_of_a_timed_launch_is_kept_in_a_quick_verdict(desk: Desk) -> None:
    calls = list[object]()

    def tires(call: dict[str, int], _: int) -> None:
        calls.append(call)
        if len(calls) < 60:  # by then it is timed
            honest(call, ELEMENTS["plain"])

    report = desk.judge_case("plain", tires, Purpose.quick_verdict, plain="torch")
    assert report.reason.startswith("right when checked, wrong when timed")
    assert desk.backend.wrong_call() is not None


def test_a_candidate_that_is_right_until_it_is_timed_is_wrong_when_timed(desk: Desk) -> None:
    calls = []

    def tires(call: dict[str, int], _: int) -> None:
        calls.append(call)
        # by then it is timed: a check has fewer calls
        if len(calls) < 60:
            honest(call, ELEMENTS["plain"])

    report = desk.judge_case("plain", tires, plain="torch.mul")
    assert report.status is Status.wrong_result and report.timings == ()
    assert report.reason.startswith("right when checked, wrong when timed: case plain")
    assert not desk.harness.token.is_held  # type: ignore[attr-defined]


@pytest.mark.parametrize("cache", ["hot", "cold"])
def test_the_first_replay_is_of_the_kind_that_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    """None of its sets was seen then; a candidate that keeps results and forgets them once sets are
    new is as slow on these as it was in its first replay.
    """
    install(monkeypatch)
    with connected_pair(monkeypatch) as runners:
        desk = Desk(tmp_path, runners, objective={"cases": ["plain"], "cache": cache})
        kinds: list[bool] = []
        replay, renew = HostReplayer.replay, desk.pool.renew
        forgets = False

        def watched(self: HostReplayer, request: Replay) -> Replayed:
            kinds.append(request.cold)
            found = replay(self, request)
            call_us = 130.0 if forgets or len(kinds) == 1 else 100.0
            samples, calls = len(found.event_us), 1 if request.cold else len(request.calls)
            times_us = (call_us * calls,) * samples
            return Replayed(event_us=times_us, stamp_us=times_us, host_us=call_us * len(times_us))

        def renewed(case: str) -> Any:
            nonlocal forgets
            forgets = True
            return renew(case)

        monkeypatch.setattr(HostReplayer, "replay", watched)
        monkeypatch.setattr(desk.pool, "renew", renewed)
        report = desk.judge(plain="torch.mul")
    assert kinds[0] == (cache == "cold")
    assert report.status is Status.cheat, report
    assert "slower on inputs that it has not seen, 1.18x" in report.reason


def test_hidden_cases_run_in_a_runner_of_their_own_which_shares_no_slot_with_the_other(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: dict[HostReplayer, set[str]] = {}
    replay = HostReplayer.replay

    def watched(self: HostReplayer, request: Replay) -> Replayed:
        assert self._loaded is not None
        ran.setdefault(self, set()).add(self._loaded.code_path)
        return replay(self, request)

    def inodes(runner: HostReplayer) -> set[int]:
        return {os.fstat(memory.handle).st_ino for _, memory in runner._slots.values()}

    monkeypatch.setattr(HostReplayer, "replay", watched)
    for _ in range(2):
        assert desk.judge(plain="torch.mul").status is Status.correct
    assert sorted(map(sorted, ran.values())) == [["flipped", "plain"], ["odd"]]
    first, second = map(inodes, ran)
    assert first and second and not first & second


def test_a_time_below_what_the_device_can_do_is_a_cheat(desk: Desk) -> None:
    desk.backend._peaks = PEAKS.model_copy(update={"launch_us": 1000.0})
    report = desk.judge(plain="torch.mul")
    assert report.status is Status.cheat and "which cannot be: one launch" in report.reason
    assert desk.announced[-1][1] is False, "the comparison is not the candidate's time"


def test_every_replay_is_the_candidates_time_also_on_new_sets(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay, made = Examination.replay, list[bool]()

    def watched(examination: Examination, *arguments: Any) -> Examined:
        assert desk.announced[-1][1], (
            "a candidate that hangs would look like a grader that is stuck"
        )
        return replay(examination, *arguments)

    def work() -> None:
        made.append(bool(desk.announced) and desk.announced[-1] == (said, False))
        desk.announced.append(("computing expected outputs", False))

    said = "computing expected outputs of plain"

    monkeypatch.setattr(Examination, "replay", watched)
    monkeypatch.setattr(FirstSight, "is_slow", lambda *_: True)
    desk.pool._work = work
    assert desk.judge(plain="torch.mul").status is Status.correct
    assert any(made), "new sets were made while it was timed"


def test_a_runner_that_has_grown_is_reported(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert desk.judge().status is Status.correct
    taken = iter(range(1000))
    monkeypatch.setattr(
        HostReplayer, "unload", lambda _: TOTAL_BYTES - 2 * GROWTH_BYTES * next(taken)
    )
    assert desk.judge().status is Status.correct
    assert desk.backend.runner_has_grown


class Limited:
    """A job with a limit, whose candidate takes 10 us a call where the baseline takes 20."""

    def __init__(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.desk = desk
        self.efforts: list[Effort] = []
        run = paired_cases.PairedTiming.run

        def watched(pair: Any, budget_s: float, effort: Effort, alive: Any) -> Any:
            self.efforts.append(effort)
            assert desk.harness.token.is_held  # type: ignore[attr-defined]  # a HostToken
            return run(pair, budget_s, effort, alive)

        replay = HostReplayer.replay

        def timed(replayer: HostReplayer, request: Replay) -> Replayed:
            replay(replayer, request)
            us, samples = 10.0, len(request.calls)
            if not request.cold:
                us, samples = us * samples, 1
            times_us = (us,) * samples
            return Replayed(event_us=times_us, stamp_us=times_us, host_us=us * samples)

        monkeypatch.setattr(paired_cases.PairedTiming, "run", watched)
        monkeypatch.setattr(HostReplayer, "replay", timed)

    def judge(
        self,
        limit: float | None,
        sittings: int = 1,
        scored_only: bool = False,
        purpose: Purpose = Purpose.verdict,
        **baselines: str,
    ) -> Report:
        """The report on all cases."""
        cases = []
        for name, elements in ELEMENTS.items():
            HostReplayer.behaviours[name] = partial(_doubles, elements)
            plan = CasePlan(case=name, hidden=name == "odd", macros={}, scratch={}, launches=())
            cases.append(CompiledCase(plan=plan, code_path=name, functions={}))
        job = Job(
            cases=tuple(cases),
            tier="fp32",
            baselines=baselines,
            limit=limit,
            sittings=sittings,
            scored_only=scored_only,
            purpose=purpose,
        )
        return Judge(self.desk.task, self.desk.backend, lambda *_: None).run(job)


def _doubles(elements: int, call: dict[str, int], _: int) -> None:
    honest(call, elements)


@pytest.fixture(params=["hot", "cold"])
def limited(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Limited]:
    install(monkeypatch)
    with connected_pair(monkeypatch) as runners:
        objective = {"cases": ["plain"], "cache": request.param}
        yield Limited(Desk(tmp_path, runners, objective=objective), monkeypatch)


def test_a_candidate_that_is_surely_too_slow_is_timed_no_further_than_its_first_look(
    limited: Limited,
) -> None:
    report = limited.judge(0.4, plain="torch.mul", flipped="torch.mul")
    assert report.status is Status.correct and report.is_coarse
    cold = limited.desk.backend.scores_cold
    assert limited.efforts == ([FIRST_LOOK, GLANCE] if cold else [FIRST_LOOK])
    (timing,) = report.timings
    assert timing.case == "plain", "the objective's alone"
    scored = timing.cold if cold else timing.hot
    assert scored is not None and len(set(scored.groups)) == FIRST_LOOK.groups
    assert timing.hot.candidate_us and (timing.cold is None) is not cold
    for check in report.checks:
        assert {item.distribution for item in check.sets} == {*limited.desk.task.distributions}


@pytest.mark.parametrize("limit", [None, 0.5, 0.6])
def test_a_candidate_that_may_be_below_the_limit_is_timed_in_full(
    limited: Limited, limit: float | None
) -> None:
    report = limited.judge(limit, plain="torch.mul", flipped="torch.mul")
    assert report.status is Status.correct and not report.is_coarse
    assert SCORED in limited.efforts
    assert (FIRST_LOOK in limited.efforts) is (limit is not None)
    assert [timing.case for timing in report.timings] == ["plain", "flipped"]
    timing = report.timings[0]
    scored = timing.cold if limited.desk.backend.scores_cold else timing.hot
    # the first look's are among them
    assert scored is not None and len(set(scored.groups)) == SCORED.groups


def test_a_search_takes_no_more_groups_than_say_who_may_race(limited: Limited) -> None:
    report = limited.judge(None, scored_only=True, plain="torch.mul")
    assert report.status is Status.correct
    assert SEARCHED in limited.efforts and SCORED not in limited.efforts


def test_the_first_verdict_of_a_search_takes_no_more_groups_than_say_what_to_verify(
    limited: Limited,
) -> None:
    purpose = Purpose.quick_verdict
    report = limited.judge(None, scored_only=True, purpose=purpose, plain="torch.mul")
    assert report.status is Status.correct
    assert ATTEMPTED in limited.efforts and SEARCHED not in limited.efforts


def test_the_limit_is_that_of_the_geometric_mean_over_the_objectives_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    with connected_pair(monkeypatch) as runners:
        desk = Desk(tmp_path, runners, objective={"cases": ["plain", "flipped"], "cache": "hot"})
        limited, slow = Limited(desk, monkeypatch), HostReplayer.replay

        def slower(replayer: HostReplayer, request: Replay) -> Replayed:
            found = slow(replayer, request)
            assert replayer._loaded is not None
            factor = 4.0 if replayer._loaded.code_path == "flipped" else 1.0
            times_us = tuple(factor * us for us in found.event_us)
            return Replayed(event_us=times_us, stamp_us=times_us, host_us=sum(times_us))

        monkeypatch.setattr(HostReplayer, "replay", slower)
        # 0.5 and 2.0: 1.0 in the mean
        baselines: dict[str, Any] = {"plain": "torch.mul", "flipped": "torch.mul"}
        assert limited.judge(0.9, **baselines).is_coarse
        assert not limited.judge(1.1, **baselines).is_coarse


def test_a_first_look_that_finds_a_wrong_output_is_a_wrong_result(limited: Limited) -> None:
    looked = lambda: FIRST_LOOK in limited.efforts  # noqa: E731

    def tires(call: dict[str, int], _: int) -> None:
        if not looked():
            honest(call, ELEMENTS["plain"])

    HostReplayer.behaviours["plain"] = tires
    plan = CasePlan(case="plain", hidden=False, macros={}, scratch={}, launches=())
    compiled = CompiledCase(plan=plan, code_path="plain", functions={})
    job = Job(cases=(compiled,), tier="fp32", baselines={"plain": "torch.mul"}, limit=0.4)
    report = Judge(limited.desk.task, limited.desk.backend, lambda *_: None).run(job)
    assert report.status is Status.wrong_result and not report.is_coarse
    assert report.reason.startswith("right when checked, wrong when timed: case plain")
    assert report.timings == () and limited.efforts == [FIRST_LOOK]
