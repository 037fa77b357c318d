"""The parts of benchmarks.truth against executors whose truth is known."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from benchmarks import truth
from benchmarks.baseline_itself import ItselfMeasured
from benchmarks.baseline_series import BaselineSeries
from benchmarks.configurations import compile_all
from benchmarks.equal_search import EqualKernels, EqualSearch
from benchmarks.holding_kernel import RACES_OF_A_VERDICT, HoldingKernel
from benchmarks.idling import MOST_CLOCKS, ROUNDS, SHARE, IdleCalibration, idling
from benchmarks.repeated_races import EqualRaces, FasterRaces, has_won, same_code
from benchmarks.truth import SUBJECTS, main, shared_out
from benchmarks.verdict_pairs import VerdictPairs
from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.compile.compile_unit import CompileUnit
from evoengine.evaluate.compile.elf_sections import sections_of
from evoengine.evaluate.cuda_driver import CudaDevices, cuda_devices
from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU, ScriptedExecutor
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule
from evoengine.paths import find_kernel, find_task
from evoengine.records import Interval, Race, RaceResult, Status, Verdict
from evoengine.statistics import exact
from evoengine.task.load import load_task

TASK = load_task(find_task("layernorm"))
SOURCE = find_kernel("layernorm").read_text(encoding="utf-8")
# Every kernel is correct and takes the baseline's time.
EQUAL = VerdictRule(correct_share=1, unstable_share=0, void_share=0, scores=(1, 1))
IDLED = re.compile(r"evoengine_idle_clocks = (\d+);")
KERNEL_US, CLOCKS_PER_US, HIDDEN_CLOCKS = 12.0, 1500.0, 60


class IdleAware(ScriptedExecutor):
    """Races in which a kernel is slower by what it idles; some of it is hidden behind others."""

    def __init__(self, voids: int = 0, share_for_clock: float = 1.0) -> None:
        super().__init__(TASK, rule=EQUAL)
        self.voids = voids  # the first races, which are void
        self.share_for_clock = share_for_clock

    async def race(self, newcomer: Candidate, holder: Candidate, score, progress) -> Race:
        await super().race(newcomer, holder, score, progress)
        if len(self.raced) <= self.voids:
            return Race(result=RaceResult.void, reason="scripted void")
        ratio = self._us(newcomer) / self._us(holder)
        interval = Interval(value=ratio, low=ratio - 0.004, high=ratio + 0.004)
        won = interval.high < 1
        return Race(
            result=RaceResult.won if won else RaceResult.lost, reason="scripted", ratio=interval
        )

    def _us(self, candidate: Candidate) -> float:
        found = IDLED.search(candidate.source)
        idle = max(0, int(found[1]) - HIDDEN_CLOCKS) if found else 0
        return KERNEL_US + self.share_for_clock * idle / CLOCKS_PER_US


def started(executor: ScriptedExecutor) -> ScriptedExecutor:
    asyncio.run(executor.start())
    return executor


def noisy(sd: float, half: float) -> ScriptedExecutor:
    """Verdicts that spread by `sd` and claim intervals of `half` on each side."""
    luck = Random(3)  # noqa: S311 - not secret

    def verdict_of(candidate: Candidate, verify: bool) -> Verdict:
        value = 2.0 * (1 + luck.gauss(0, sd))
        score = Interval(value=value, low=value * (1 - half), high=value * (1 + half))
        return Verdict(status=Status.correct, reason="", score=score, latency_us=score)

    return started(ScriptedExecutor(TASK, verdict_of=verdict_of))


# ---------------------------------------------------------------- pairs


@pytest.mark.parametrize(("half", "kept"), [(0.0196, True), (0.005, False)])
def test_true_intervals_keep_the_goal_of_pairs_and_narrow_ones_do_not(
    half: float, kept: bool
) -> None:
    pairs = VerdictPairs(noisy(0.01, half), SOURCE)
    asyncio.run(pairs.take(400))
    share, width, spread = VerdictPairs.rows("layernorm", [pairs], "", True)
    assert share["kept"] is kept and share["counted"].endswith("of 400")
    assert len(share["samples"]) == 400
    assert width["value %"] == pytest.approx(100 * half, rel=0.01)
    assert spread["value %"] == pytest.approx(1.41, rel=0.1), "of two verdicts that spread by 1 %"


def test_a_verdict_that_is_not_correct_is_a_problem_and_the_next_pair_is_taken() -> None:
    verdicts = iter([Status.correct, Status.unstable, *[Status.correct] * 4])

    def verdict_of(candidate: Candidate, verify: bool) -> Verdict:
        assert verify, "each in a process of its own"
        return Verdict(status=next(verdicts), reason="disturbed", score=exact(1.0))

    pairs = VerdictPairs(started(ScriptedExecutor(TASK, verdict_of=verdict_of)), SOURCE)
    asyncio.run(pairs.take(3))
    assert pairs.problems == ["layernorm: unstable: disturbed"] and len(pairs.found) == 2


# ---------------------------------------------------------------- races


def test_equal_newcomers_differ_in_their_digest_alone() -> None:
    candidates = [kernel_file.parse(same_code(SOURCE, number)) for number in range(3)]
    assert len({it.digest for it in candidates} | {kernel_file.parse(SOURCE).digest}) == 4
    assert {it.source.partition("\n// newcomer")[0] for it in candidates} == {SOURCE}


def test_equal_newcomers_that_lose_are_no_promotions() -> None:
    executor = started(ScriptedExecutor(TASK, rule=EQUAL))
    races = EqualRaces(executor, SOURCE)
    asyncio.run(races.take(25))
    share, apart = EqualRaces.rows("layernorm", [races], "", True)
    assert (share["counted"], share["kept"], apart["value %"]) == ("0 of 25", True, 0.0)
    assert len({newcomer for newcomer, _ in executor.raced}) == 25
    holder = kernel_file.parse(SOURCE).digest
    assert {digest for _, digest in executor.raced} == {holder}
    assert Counter(executor.evaluated) == {holder: -(-25 // RACES_OF_A_VERDICT)}


def test_equal_newcomers_that_win_by_chance_are_counted() -> None:
    class Lucky(ScriptedExecutor):
        async def race(self, newcomer: Candidate, holder: Candidate, score, progress) -> Race:
            await super().race(newcomer, holder, score, progress)
            wins = len(self.raced) % 10 == 0
            return Race(result=RaceResult.won if wins else RaceResult.lost, reason="chance")

    races = EqualRaces(started(Lucky(TASK, rule=EQUAL)), SOURCE)
    asyncio.run(races.take(40))
    share = EqualRaces.rows("layernorm", [races], "", True)[0]
    assert (share["counted"], share["value %"], share["kept"]) == ("4 of 40", 10.0, False)


@pytest.mark.parametrize(("voids", "raced", "wins"), [(0, 1, True), (2, 3, True), (3, 3, False)])
def test_a_void_race_is_run_again_as_often_as_in_a_search(
    voids: int, raced: int, wins: bool
) -> None:
    executor = started(IdleAware(voids))
    holder = HoldingKernel(executor, kernel_file.parse(idling(SOURCE, 5000)))
    found = asyncio.run(holder.races(kernel_file.parse(idling(SOURCE, 0))))
    assert (len(found), has_won(found)) == (raced, wins)


@pytest.mark.parametrize("kernel", SUBJECTS)
def test_of_every_subject_the_last_block_idles_at_its_end(kernel: str) -> None:
    source = find_kernel(kernel).read_text(encoding="utf-8")
    one, other = idling(source, 0), idling(source, 300)
    assert IDLED.findall(one) == ["0"] and IDLED.findall(other) == ["300"]
    assert one.replace("idle_clocks = 0;", "idle_clocks = 300;") == other
    assert one.rstrip().endswith("while (clock64() < evoengine_end) {}\n    }\n}")
    kernel_file.parse(one)


def test_the_instructions_are_the_same_however_long_it_idles(tmp_path: Path) -> None:
    candidates = [kernel_file.parse(idling(SOURCE, clocks)) for clocks in (0, 300)]
    plans = [bind(it, TASK, "rows", limits_of_arch("sm_90")) for it in candidates]
    units = [
        CompileUnit(
            code=candidate.code,
            name="idling.cu",
            arch="sm_90",
            macros=plan.macros,
            kernels=tuple(launch.kernel for launch in plan.launches),
            timeout_s=100.0,
        )
        for candidate, plan in zip(candidates, plans, strict=True)
    ]
    one, other = (
        {
            name: section.data
            for name, section in sections_of(Path(result.code_path).read_bytes()).items()
            if name.startswith(".text.")
        }
        for result in asyncio.run(compile_all(units, tmp_path))
    )
    assert one and one == other


def test_a_kernel_that_cannot_idle_as_a_whole_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a kernel without return"):
        idling(find_kernel("embedding_bag").read_text(encoding="utf-8"), 10)
    with pytest.raises(ValueError, match="expected one kernel to let idle, found 2"):
        idling(find_kernel("sdpa_fp8").read_text(encoding="utf-8"), 10)


def test_calibration_finds_the_idle_time_whatever_clock_and_overlap() -> None:
    found = IdleCalibration(started(IdleAware()), SOURCE)
    asyncio.run(found.run())
    clocks, share = found.best
    assert found.reached and share == pytest.approx(SHARE, abs=0.002)
    assert clocks == pytest.approx(SHARE * KERNEL_US * CLOCKS_PER_US + HIDDEN_CLOCKS, rel=0.1)


def test_the_faster_kernel_wins_against_the_one_that_idles() -> None:
    races = FasterRaces(started(IdleAware()), SOURCE)
    asyncio.run(races.take(12))
    share, measured, calibrated = FasterRaces.rows("layernorm", [races], "", True)
    assert (share["counted"], share["kept"]) == ("12 of 12", True)
    assert measured["value %"] == pytest.approx(calibrated["value %"]) == pytest.approx(2, abs=0.2)
    assert not races.problems
    assert len(FasterRaces.rows("all", [races, races], "", True)) == 2, "no calibration of all"


def test_a_share_that_no_idling_reaches_is_said() -> None:
    executor = started(IdleAware(share_for_clock=0.0))
    races = FasterRaces(executor, SOURCE)
    asyncio.run(races.take(2))
    assert races.calibration is not None and len(races.calibration.tried) == ROUNDS
    assert races.calibration.best[0] <= MOST_CLOCKS
    assert races.problems[0].endswith("makes it 0.00 % slower")
    assert FasterRaces.rows("layernorm", [races], "", True)[0]["kept"] is False


# ---------------------------------------------------------------- a search among equals


def search_with(executor: ScriptedExecutor) -> EqualSearch:
    search = EqualSearch(executor, SOURCE, TASK, SCRIPTED_GPU)
    asyncio.run(search.take(20))
    return search


def test_a_search_among_equal_kernels_is_held_against_separate_verdicts() -> None:
    """Selection sees luck, the final figure does not."""
    luck = Random(5)  # noqa: S311 - not secret

    def verdict_of(candidate: Candidate, verify: bool) -> Verdict:
        value = 1 + luck.gauss(0, 0.002) if verify else 0.9
        score = Interval(value=value, low=value * 0.98, high=value * 1.02)
        return Verdict(
            status=Status.correct,
            reason="",
            tier="fp32",
            code_digest=candidate.digest,
            score=score,
            latency_us=score,
        )

    search = search_with(started(ScriptedExecutor(TASK, rule=EQUAL, verdict_of=verdict_of)))
    final, held_by, first = EqualSearch.rows("layernorm", [search], "", True)
    assert final["kept"] is True and final["value %"] == pytest.approx(100, abs=1)
    assert held_by["kept"] is None and held_by["value %"] == pytest.approx(100, abs=1)
    assert first["value %"] == pytest.approx(90, abs=1)
    assert search.races and re.fullmatch(r"trial \d+; 0 of \d+ races won", final["note"])
    assert len(search.known) == 10 and not search.problems


def test_a_final_figure_beside_the_truth_keeps_no_goal() -> None:
    search = search_with(started(ScriptedExecutor(TASK, rule=EQUAL)))
    assert search.final is not None
    search.final = exact(search.known[0] * 0.95)
    assert EqualSearch.rows("layernorm", [search], "", True)[0]["kept"] is False


def test_equal_kernels_have_different_code() -> None:
    class Given:
        seeds = (type("Seed", (), {"source": SOURCE})(),)

    kernels = EqualKernels()
    proposals = [asyncio.run(kernels.propose(Given(), None)) for _ in range(3)]
    assert len({kernel_file.parse(it.source).digest for it in proposals}) == 3


# ---------------------------------------------------------------- the baseline against itself


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def lines_of(*measured: ItselfMeasured) -> str:
    return "".join(f"print({it.model_dump_json()!r}, flush=True)\n" for it in measured)


TRUE = ItselfMeasured(case="rows", ratio=Interval(value=1.001, low=0.998, high=1.004))
FALSE = ItselfMeasured(case="rows", ratio=Interval(value=1.005, low=1.002, high=1.008))
VOID = ItselfMeasured(case="few", problem="unstable: the baseline takes another time")


def test_intervals_of_the_baseline_that_hold_1_are_counted() -> None:
    series = BaselineSeries("layernorm", script(lines_of(*[TRUE] * 14, FALSE, VOID)))
    asyncio.run(series.take(16))
    share, width = BaselineSeries.rows("layernorm", [series], "", True)
    assert (share["counted"], share["kept"]) == ("14 of 15", True)
    assert width["value %"] == pytest.approx(0.3, rel=0.01)
    assert series.problems == ["few: unstable: the baseline takes another time"]


def test_what_a_process_measured_before_it_failed_stays(capsys) -> None:
    failing = lines_of(TRUE) + "raise RuntimeError('no device memory')"
    series = BaselineSeries("layernorm", script(failing))
    asyncio.run(series.take(5))
    assert len(series.found) == 1
    assert series.problems == ["RuntimeError: no device memory"]


def test_a_silent_process_is_ended() -> None:
    endless = lines_of(TRUE) + "import time\ntime.sleep(1000)"
    series = BaselineSeries("layernorm", script(endless), silence_s=3.0)
    asyncio.run(series.take(5))
    assert len(series.found) == 1 and series.problems == ["no measurement for 3 s"]


# ---------------------------------------------------------------- the whole


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedExecutor]:
    """A GPU that is not there, and executors that are scripted; those that were made."""
    made: list[ScriptedExecutor] = []

    def make(task, *_: object) -> ScriptedExecutor:
        made.append(ScriptedExecutor(task, rule=EQUAL))
        return made[-1]

    monkeypatch.setattr(truth, "cuda_devices", lambda: CudaDevices(("Scripted",)))
    monkeypatch.setattr(truth, "find_device", lambda *_: DeviceChoice(0))
    monkeypatch.setattr(truth, "make_executor", make)
    return made


def test_every_part_that_needs_an_executor_prints_its_rows_and_writes_them(
    scripted, tmp_path: Path, capsys
) -> None:
    file = tmp_path / "rows.json"
    options = ["--count", "6", "--only", "layernorm", "matmul_fp16", "--json", str(file)]
    main(["pairs", "equal", "faster", "searched", *options])
    rows = json.loads(file.read_text())["rows"]
    found = {(row["measured"], row["subject"]): row for row in rows}
    assert {subject for _, subject in found} == {"layernorm", "matmul_fp16", "all"}
    assert found["equal newcomers that win", "all"]["counted"] == "0 of 6"
    assert found["equal newcomers that win", "layernorm"]["counted"] == "0 of 3"
    assert found["newcomers that win against a holder that idles 2 %", "all"]["kept"] is False
    assert len(scripted) == 8, "an executor for each part and kernel"
    output = capsys.readouterr().out
    last = output.strip().splitlines()[-1]
    assert last.startswith("| ") and rows[-1]["measured"] in last, "the table comes last"


def test_one_subject_that_fails_is_a_row_and_the_rest_goes_on(
    scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make = truth.make_executor

    def broken(task, *rest: object) -> ScriptedExecutor:
        if task.name == "layernorm":
            raise RuntimeError("no compiler")
        return make(task, *rest)

    monkeypatch.setattr(truth, "make_executor", broken)
    file = tmp_path / "rows.json"
    options = ["--count", "4", "--only", "layernorm", "matmul_fp16", "--json", str(file)]
    main(["pairs", *options])
    rows = json.loads(file.read_text())["rows"]
    assert rows[0]["note"] == "RuntimeError: no compiler" and rows[0]["kept"] is False
    whole = next(row for row in rows if row["subject"] == "all")
    assert (whole["counted"], whole["note"]) == ("2 of 2", "1 of 2 subjects failed")


def test_what_was_measured_before_an_exception_is_in_the_rows(scripted, monkeypatch) -> None:
    class Breaking(ScriptedExecutor):
        async def race(self, newcomer: Candidate, holder: Candidate, score, progress) -> Race:
            if len(self.raced) == 3:
                raise RuntimeError("the device\nis gone")
            return await super().race(newcomer, holder, score, progress)

    monkeypatch.setattr(truth, "make_executor", lambda task, *_: Breaking(task, rule=EQUAL))
    options = truth.parse_arguments(["equal", "--count", "9", "--only", "layernorm"])
    rows = asyncio.run(truth.measure(options, {}))
    assert rows[0]["counted"] == "0 of 3"
    assert rows[0]["note"] == "RuntimeError: the device is gone"


def test_counts_are_shared_out_evenly() -> None:
    assert shared_out(10, 4) == [3, 3, 2, 2] and shared_out(2, 3) == [1, 1, 0]


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "cuda_devices", lambda: CudaDevices((), problem="no driver"))
    with pytest.raises(SystemExit, match="needs a CUDA device: no driver"):
        main(["pairs"])


def test_an_unknown_part_is_answered_with_the_known_ones(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["nil"])
    assert (
        "no part 'nil'; known: pairs, equal, faster, searched, baseline" in capsys.readouterr().err
    )


@pytest.mark.gpu
@pytest.mark.timeout(600)
def test_on_a_gpu_every_part_measures_something(tmp_path: Path) -> None:
    if not cuda_devices().names:
        pytest.skip("needs a CUDA device")
    file = tmp_path / "rows.json"
    main(["--count", "2", "--only", "layernorm", "--json", str(file)])
    rows = json.loads(file.read_text())["rows"]
    assert not [row["note"] for row in rows if "Error" in row["note"]]
    counted = [row["counted"] for row in rows if row["counted"].endswith("of 2")]
    assert len(counted) == 4, "pairs, equal, faster, baseline"
