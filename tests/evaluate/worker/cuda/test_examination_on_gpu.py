"""What a replay leaves behind and how long it takes, with real kernels on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS, CallRange
from evoengine.evaluate.worker.cuda.examination import Examined, Meanwhile
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.evaluate.worker.cuda.paired_timing import SCORED, PairedTiming
from evoengine.records import CaseTiming, Samples
from evoengine.statistics import median, ratio_interval
from tests.evaluate.worker.cuda.gpu_candidates import COUNTERS, FRAMELESS, LEFTOVERS, SPIN_US
from tests.evaluate.worker.cuda.gpu_lab import Lab

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device"),
]

MOST_CALLS = 12  # of a replay: a variable that was not reset would be counted beyond
FEW = CallRange(2, 4)
IN_PLACES = [name for name in LEFTOVERS if name != FRAMELESS]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("case", ["small", "large"])
def test_an_honest_kernel_is_right_in_every_call(lab: Lab, case: str, cold: bool) -> None:
    examination = lab.examine("honest", case)
    for count in (1, 2, 5):
        found = examination.replay(lab.drawn(1 + count, case), cold)
        assert found.wrong == ()
        assert len(found.times_us) == (count if cold else 1) and min(found.times_us) > 0
    assert all(check.ok for check in examination.checks)


@pytest.mark.parametrize("name", COUNTERS)
def test_every_variable_has_its_first_value_when_a_graph_begins(lab: Lab, name: str) -> None:
    examination = lab.examine(f"counter: {name}", "small")
    for cold in (False, True, False):
        # with the untimed call before, the last call would count to 13
        assert examination.replay(lab.drawn(1 + MOST_CALLS, "small"), cold).wrong == ()


@pytest.mark.parametrize("name", IN_PLACES)
def test_no_graph_finds_what_an_earlier_one_left(lab: Lab, name: str) -> None:
    control = lab.replay(f"leftovers of any launch: {name}", False, 4)
    if not control.wrong and name == "registers":
        pytest.skip("registers keep nothing from one launch to the next here")
    assert control.wrong, "between the launches of one graph nothing is overwritten"
    examination = lab.examine(f"leftovers: {name}")
    for cold in (False, True, False):
        assert examination.replay(lab.drawn(3), cold).wrong == ()


def test_nothing_is_left_between_two_candidates(lab: Lab) -> None:
    for name in IN_PLACES:
        lab.replay(f"leftovers of any launch: {name}", False, 2)
        assert lab.replay(f"leftovers: {name}", False, 1).wrong == (), name


@pytest.mark.parametrize("cold", [False, True])
def test_a_kernel_that_spins_reads_the_time_that_it_spins(lab: Lab, cold: bool) -> None:
    examination = lab.examine("spins", "small")
    taken = []
    for _ in range(5):
        count = 2 if cold else 4
        found = examination.replay(lab.drawn(1 + count, "small"), cold)
        assert found.wrong == () and found.times_us, "both clocks agree"
        taken += found.times_us if cold else [found.times_us[0] / count]
    assert 0.99 * SPIN_US < median(taken) < 1.05 * SPIN_US + 10


def medians_us(lab: Lab, name: str, replays: int = 10) -> tuple[float, float]:
    """The hot and the cold time of a call on the large case."""
    hot, cold = list[float](), list[float]()
    examination = lab.examine(name)
    for _ in range(replays):
        hot += [time_us / 3 for time_us in examination.replay(lab.drawn(4), False).times_us]
        cold += examination.replay(lab.drawn(3), True).times_us
    return median(hot), median(cold)


def test_hints_keep_nothing_in_l2_across_a_flush(lab: Lab) -> None:
    _, plain = medians_us(lab, "honest")
    _, hinted = medians_us(lab, "keeps its inputs in L2")
    _, again = medians_us(lab, "honest")
    plain = (plain + again) / 2
    assert hinted == pytest.approx(plain, rel=0.1), f"{hinted:.2f} us against {plain:.2f} us"


def test_a_flush_makes_calls_slower(lab: Lab) -> None:
    hot, cold = medians_us(lab, "honest")
    assert cold > hot, f"{cold:.2f} us cold, {hot:.2f} us hot"


def timed(lab: Lab, candidate: Any, baseline: BaselineReplays, cold: bool) -> Samples:
    pair = PairedTiming(candidate, baseline, lab.pool.sets("large"), FEW, cold)
    found = pair.run(1.0, SCORED, lambda: None)
    assert pair.wrong == ()
    return found


def replays_of(lab: Lab, function: str) -> BaselineReplays:
    first = lab.pool.sets("large")[0]
    return BaselineReplays(lab.harness, lab.functions, function, "large", first, FEW.most)


def test_a_baseline_against_itself_reads_one(lab: Lab) -> None:
    one, other = (replays_of(lab, "scale.py:forward") for _ in range(2))

    def replay(
        sets: Sequence[PoolSet], cold: bool, meanwhile: Meanwhile = lambda: None
    ) -> Examined:
        times_us = one.replay(sets[WARM_UP_CALLS:], cold)
        meanwhile()
        return Examined(times_us, (), one.gaps_us)

    candidate = SimpleNamespace(replay=replay)
    hot, cold = (timed(lab, candidate, other, cold) for cold in (False, True))
    timing = CaseTiming(case="large", baseline="itself", hot=hot, cold=cold)
    for interval in (ratio_interval(timing), ratio_interval(timing, cold=True)):
        assert interval.low * 0.985 <= 1.0 <= interval.high * 1.015, interval
    one.close()
    other.close()


def test_a_candidate_against_the_same_kernel_as_a_baseline_reads_one(lab: Lab) -> None:
    """The way through module, slots and graphs of a runner costs nothing that a baseline is spared,
    and saves nothing that it pays.
    """
    twin = replays_of(lab, "scale.py:twin")
    examination = lab.examine("honest")
    hot, cold = (timed(lab, examination, twin, cold) for cold in (False, True))
    timing = CaseTiming(case="large", baseline="twin", hot=hot, cold=cold)
    for interval in (ratio_interval(timing), ratio_interval(timing, cold=True)):
        assert 0.92 < interval.value < 1.08, interval
    twin.close()


def test_closing_leaves_no_memory_in_use(lab: Lab) -> None:
    examination = lab.examine("honest")
    examination.replay(lab.drawn(3), False)
    assert abs(examination.close()) < 64 * 1024**2
    torch.cuda.synchronize()
