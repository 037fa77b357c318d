"""The scripted race: drawn from both candidates, the same each time, of the shares of its rule."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.scripted.scripted_executor import ScriptedExecutor
from evoengine.evaluate.scripted.scripted_race import scripted_race
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule, drawn_score
from evoengine.protocols import SearchBar
from evoengine.records import Race, RaceResult
from tests.scale_task import kernel, load_scale_task

RULE = VerdictRule(1.0, unstable_share=0.0, scores=(0.9, 1.1), void_share=0.0)
VARIANTS = [kernel_file.parse(kernel(f"variant_{number}")) for number in range(20)]
PAIRS = [(one, other) for one in VARIANTS for other in VARIANTS if one is not other]


def test_the_same_candidates_race_the_same_each_time() -> None:
    rule = replace(RULE, void_share=0.5)
    first, again = ([scripted_race(*pair, rule) for pair in PAIRS] for _ in range(2))
    assert first == again
    assert {race.result for race in first} == set(RaceResult)


@pytest.mark.parametrize("pair", PAIRS[:40:7])
def test_the_scores_of_both_sides_are_those_that_their_verdicts_are_drawn_around(
    pair: tuple[Candidate, Candidate],
) -> None:
    race = scripted_race(*pair, RULE)
    newcomer, holder = (drawn_score(candidate, RULE) for candidate in pair)
    assert race.newcomer and race.holder and race.ratio
    assert (race.newcomer.value, race.holder.value) == (newcomer, holder)
    assert race.ratio.value == pytest.approx(newcomer / holder)
    assert race.ratio.low < race.ratio.value < race.ratio.high


def test_it_is_won_where_the_whole_interval_is_below_one_and_never_both_ways() -> None:
    found = [scripted_race(*pair, RULE) for pair in PAIRS]
    for (newcomer, holder), race in zip(PAIRS, found, strict=True):
        assert race.ratio and (race.result is RaceResult.won) == (race.ratio.high < 1)
        back = scripted_race(holder, newcomer, RULE)
        assert not race.result is back.result is RaceResult.won
    near = [race for race in found if race.ratio and race.ratio.value < 1 <= race.ratio.high]
    assert near and {race.result for race in near} == {RaceResult.lost}, "a tie is lost"


def test_as_many_are_void_as_the_rule_says_whichever_side_is_faster() -> None:
    rule = replace(RULE, void_share=0.3)
    results = Counter(scripted_race(*pair, rule).result for pair in PAIRS)
    assert 0.2 < results[RaceResult.void] / len(PAIRS) < 0.4
    assert results[RaceResult.won] and results[RaceResult.lost]


def test_nobody_wins_against_itself() -> None:
    assert {scripted_race(one, one, RULE).result for one in VARIANTS} == {RaceResult.lost}


def test_the_executor_notes_who_raced_whom_and_races_by_its_rule(tmp_path: Path) -> None:
    executor, (one, other) = ScriptedExecutor(load_scale_task(tmp_path), rule=RULE), PAIRS[0]

    async def raced() -> Race:
        await executor.start()
        verdict = await executor.evaluate(other, lambda _: None, verify=True)
        assert verdict.score
        return await executor.race(one, other, verdict.score, lambda _: None)

    assert asyncio.run(raced()) == scripted_race(one, other, RULE)
    assert executor.raced == [(one.digest, other.digest)]


@pytest.mark.parametrize(("factor", "coarse"), [(None, False), (2.0, False), (0.5, True)])
def test_a_first_verdict_is_coarse_where_its_score_is_surely_above_the_bar(
    tmp_path: Path, factor: float | None, coarse: bool
) -> None:
    executor = ScriptedExecutor(load_scale_task(tmp_path), rule=RULE)
    bar = SearchBar(factor and factor * drawn_score(VARIANTS[0], RULE))

    async def judged() -> bool:
        await executor.start()
        verdict = await executor.evaluate(VARIANTS[0], lambda _: None, search=bar)
        return verdict.is_coarse

    assert asyncio.run(judged()) is coarse
