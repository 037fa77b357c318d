from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from evoengine.evaluate.scripted.scripted_verdict import VerdictRule
from evoengine.generate.directions import DirectionDraw, directions_in, drawn
from evoengine.generate.method_registry import method_of
from evoengine.generate.prompt_templates import Prompts
from evoengine.paths import find_task
from evoengine.protocols import Replies, Request
from evoengine.records import Proposal
from evoengine.store.memory_store import MemoryStore
from tests.generate.row_sums_task import evaluated, request
from tests.scale_task import load_scale_task
from tests.search.scripted_generator import ScriptedGenerator, make_engine, run_engine, tuning

KNOWN = [f"direction {number}" for number in range(7)]


def test_no_direction_comes_again_before_all_were_drawn() -> None:
    for run_seed in range(5):
        for first in (0, 7, 14):
            found = [drawn(KNOWN, run_seed, number) for number in range(first, first + 7)]
            assert sorted(found) == KNOWN


def test_runs_with_other_seeds_draw_in_another_order() -> None:
    orders = {tuple(drawn(KNOWN, run_seed, number) for number in range(7)) for run_seed in range(5)}
    assert len(orders) == 5


def test_siblings_are_named_once_and_never_with_ones_own_direction() -> None:
    draw = DirectionDraw(run_seed=1, own=9, siblings=(0, 1, 2, 3, 4, 5, 6, 7, 8))
    assert sorted(draw.of_siblings(KNOWN)) == sorted(set(KNOWN) - {draw.of(KNOWN)})


def prompts_of_first_samples(task_path: Path, method: str) -> list[str]:
    """The prompts of five first samples in flight together, in a run with one starting kernel."""
    seeds = (evaluated(0),)
    begun = replace(
        request(task_path, elites=seeds, recent=seeds, seeds=seeds), tiers={"fp32": 1.0}
    )
    found = []
    for trial in range(1, 6):
        asked = replace(begun, trial=trial, seed=trial, asking=trial - 1, asking_settled=0)
        choice = method_of(method).choose(asked)
        shown = method_of(method).visible(asked, choice)
        found.append(Prompts(task_path).render(choice, shown).text)
    return found


def direction_in(prompt: str) -> str:
    return prompt.partition("Take this direction: ")[2].partition("\n")[0]


@pytest.mark.parametrize("method", ["full", "best_of_n", "islands"])
def test_first_samples_in_flight_have_different_directions_and_know_them(
    task_path: Path, method: str
) -> None:
    prompts = prompts_of_first_samples(task_path, method)
    own = [direction_in(prompt) for prompt in prompts]
    assert len(set(own)) == 5 and all(own)
    for number, prompt in enumerate(prompts):
        assert [text in prompt for text in own] == [True] * (number + 1) + [False] * (4 - number)


class Drawing(ScriptedGenerator):
    """Keeps the direction of each first sample."""

    def __init__(self) -> None:
        super().__init__()
        self.directions: dict[int, str] = {}

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        draw = method_of("full").choose(request).direction
        self.directions[request.trial] = draw.of(KNOWN) if draw else ""
        return await super().propose(request, replies)


def test_a_tuning_trial_that_asks_takes_another_direction_than_those_beside_it(
    tmp_path: Path,
) -> None:
    """It does where nothing can be tuned, as before the first correct kernel."""
    wrong = VerdictRule(correct_share=0.0, unstable_share=0.0, samples=0)
    model = Drawing()
    engine = make_engine(
        load_scale_task(tmp_path), MemoryStore(), tuning(model), trials=17, rule=wrong
    )
    asyncio.run(run_engine(engine))
    found = [model.directions[trial] for trial in range(3, 17)]
    assert all(found) and all(len({*found[at : at + 4]}) == 4 for at in range(0, 6))


def test_a_prompt_with_parents_has_no_direction(task_path: Path) -> None:
    asked = replace(request(task_path, elites=(evaluated(0), evaluated(1))), tiers={"fp32": 1.0})
    choice = method_of("full").choose(asked, "mutate")
    assert "Take this direction" not in Prompts(task_path).render(choice, asked).text


def directions_of(task: str) -> set[str]:
    """All directions that first samples of a packaged task can have."""
    path = find_task(task)
    bare = request(path)
    found = set()
    for trial in range(60):
        asked = replace(bare, trial=trial, seed=trial, asking=trial)
        choice = method_of("full").choose(asked, "first")
        found.add(direction_in(Prompts(path).render(choice, asked).text))
    return found


@pytest.mark.sampled("task", one_in=2)
@pytest.mark.parametrize(
    ("task", "suits", "unfit"),
    [
        ("layernorm", ["one warp for a whole reduction"], ["mma", "wgmma", "ex2"]),
        ("adamw", ["exactly one vector a thread"], ["mma", "reduction", "ex2"]),
        ("sdpa_l4", ["mma.sync", "ex2.approx", "half2"], ["exactly one vector"]),
        ("matmul_fp16", ["mma.sync", "half2"], ["ex2", "exactly one vector"]),
    ],
)
def test_directions_suit_the_operations_of_the_task(
    task: str, suits: list[str], unfit: list[str]
) -> None:
    found = directions_of(task)
    assert "" not in found and len(found) >= 7
    for words in suits:
        assert any(words in text for text in found), words
    for words in unfit:
        assert not [text for text in found if words in text], words


def test_only_lines_with_a_dash_are_directions() -> None:
    assert directions_in("# A title\n\n- one\n  - two\nno\n") == ["one", "two"]
