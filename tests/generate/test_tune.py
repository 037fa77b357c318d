"""The tuner: no configuration twice, none invalid, and the same ones after a resume."""

from __future__ import annotations

import asyncio
import dataclasses
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evoengine.candidate.arch import limits_of
from evoengine.candidate.binding import configurations, is_valid
from evoengine.candidate.kernel_file import parse
from evoengine.digest import derived_seed, digest
from evoengine.generate.search_space import ENUMERATED, Point, SearchSpace
from evoengine.generate.tpe import HISTORY, STARTUP, _best_and_latest
from evoengine.generate.tune import WARM_UP, TuneGenerator
from evoengine.protocols import Evaluated, Exhausted, Generator, Request
from evoengine.records import (
    Elite,
    Environment,
    Interval,
    Outcome,
    Proposal,
    Reply,
    Status,
    Verdict,
)
from evoengine.task.load import load_task
from evoengine.task.schema import Task

WINDOW = 8

TASK = """
name: scale
reference: scale.py:forward
dims: {N: int}
inputs: {x: {shape: [N], dtype: float32}}
outputs: {out: {shape: [N], dtype: float32}}
cases: {small: {N: 100}, large: {N: 4096}}
hidden_cases: {odd: {N: 77}}
tiers: {fp32: {atol: 1.0e-5, rel_rmse: 1.0e-5}, fp16: {atol: 1.0e-2, rel_rmse: 1.0e-2}}
objective: {cases: [large]}
baselines: {torch: scale.py:forward}
budget: {trials: 45}
"""


def kernel(
    name: str,
    precision: str = "fp32",
    tunables: str = "{THREADS: [128, 32, 64, 2048], UNROLL: [4, 1, 2], STAGES: [2, 1]}",
) -> str:
    return f"""/* evoengine
name: {name}
precision: {precision}
tunables: {tunables}
require: ["THREADS * UNROLL <= 512 or STAGES == 1"]
launches:
  - {{kernel: scale, grid: ["ceil_div(N, THREADS)"], block: [THREADS], args: [x, out, N]}}
*/
__global__ void scale(const float* x, float* out, int n) {{}}
"""


ENVIRONMENT = Environment(
    device="cuda:0 test",
    kind="cuda",
    arch="sm_90",
    sm_count=132,
    max_shared_bytes=232448,
    l2_bytes=1,
    memory_bytes=1,
    versions={},
)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("task")
    (folder / "scale.py").write_text("def forward(x):\n    return x\n")
    (folder / "scale.yaml").write_text(TASK)
    return load_task(folder / "scale.yaml")


class NoReplies:
    """A tuner asks no model."""

    has_reply = False

    async def get_or_ask(self, turn: int, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        raise AssertionError


def known(*proposals: Proposal) -> Callable[[object], Awaitable[tuple[Proposal, ...]]]:
    """Pending proposals that need not be waited for."""

    async def wait(wanted: object) -> tuple[Proposal, ...]:
        return proposals

    return wait


class Search:
    """What an engine does with a generator: a window of trials in flight, settled in order."""

    def __init__(self, task: Task, sources: Iterable[str], seed: int = 0) -> None:
        self.task, self.seed = task, seed
        self.generator: Generator = TuneGenerator()
        self.proposals: list[Proposal] = [
            Proposal(operator="seed", source=source, label=parse(source).plan.name)
            for source in sources
        ]
        self.seeds = len(self.proposals)
        self.outcomes: list[Outcome] = []

    def outcome(self, trial: int) -> Outcome:
        """A smooth valley in the tunables' values; a third of the points fails."""
        proposal = self.proposals[trial]
        assert proposal.source is not None
        candidate = parse(proposal.source).tuned(proposal.tunables)
        cost = (
            1.0
            + sum((value - 64) ** 2 / 4096 for value in candidate.tunables.values())
            + len(candidate.plan.name) / 10
        )
        fails = (
            derived_seed(proposal.source, sorted(candidate.tunables.items())) % 3 == 0
            and proposal.operator == "tune"
        )
        score = None if fails else Interval(value=cost, low=cost, high=cost)
        return Outcome(
            trial=trial,
            operator=proposal.operator,
            parents=proposal.parents,
            source_digest=digest(proposal.source),
            tunables=proposal.tunables,
            label=proposal.label,
            status=Status.crash if fails else Status.correct,
            reason="",
            tier=candidate.plan.precision,
            code_digest=candidate.digest,
            score=score,
            latency_us=score,
        )

    def evaluated(self, outcome: Outcome) -> Evaluated:
        verdict = Verdict(status=outcome.status, reason="", tier=outcome.tier, score=outcome.score)
        return Evaluated(outcome, self.proposals[outcome.trial].source or "", verdict)

    def request(self, trial: int) -> Request:
        correct = [outcome for outcome in self.outcomes if outcome.score]
        best = sorted(correct, key=lambda outcome: outcome.score.value if outcome.score else 0.0)[
            :3
        ]
        return Request(
            trial=trial,
            seed=derived_seed(self.seed, trial),
            task=self.task,
            environment=ENVIRONMENT,
            seeds=tuple(
                self.evaluated(outcome) for outcome in self.outcomes if outcome.operator == "seed"
            ),
            elites=tuple(
                (Elite(tier=each.tier, place=place, outcome=each), self.evaluated(each))
                for place, each in enumerate(best, 1)
            ),
            recent=(),
            pending=known(*self.proposals[len(self.outcomes) : trial]),
            settled=len(self.outcomes),
        )

    def settle(self) -> None:
        outcome = self.outcome(len(self.outcomes))
        self.outcomes.append(outcome)
        self.generator.tell(outcome)

    def propose(self) -> Proposal:
        return asyncio.run(self.generator.propose(self.request(len(self.proposals)), NoReplies()))

    def horizon(self, trial: int) -> int:
        return max(trial - WINDOW, self.seeds - 1)

    def run(self, trials: int) -> None:
        for trial in range(len(self.proposals), trials):
            while len(self.outcomes) <= self.horizon(trial):
                self.settle()
            self.proposals.append(self.propose())

    def killed_and_resumed(self, lost: int) -> None:
        """Forgets all that a store does not keep, and the last `lost` proposals."""
        del self.proposals[max(len(self.proposals) - lost, self.seeds) :]
        del self.outcomes[self.horizon(len(self.proposals)) + 1 :]
        self.generator = TuneGenerator()
        for outcome in self.outcomes:
            self.generator.tell(outcome)

    @property
    def points(self) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
        """Source and full configuration of every trial."""
        return [
            (
                p.source or "",
                tuple(sorted(parse(p.source or "").tuned(p.tunables).tunables.items())),
            )
            for p in self.proposals
        ]


def test_no_configuration_is_tried_twice_defaults_and_those_in_flight_included(task: Task) -> None:
    search = Search(task, [kernel("a"), kernel("bb")])
    search.run(30)
    assert len(set(search.points)) == 30


def test_every_proposal_is_valid_on_all_cases_and_says_what_it_is(task: Task) -> None:
    search = Search(task, [kernel("a")])
    search.run(14)
    for proposal in search.proposals[1:]:
        candidate = parse(proposal.source or "").tuned(proposal.tunables)
        assert is_valid(candidate, task, limits_of(ENVIRONMENT))
        assert list(proposal.tunables) == ["THREADS", "UNROLL", "STAGES"]
        assert (proposal.operator, proposal.label) == ("tune", "a")
    later = search.proposals[-1]
    parent = search.proposals[later.parents[0]]
    before = parse(parent.source or "").tuned(parent.tunables).tunables
    assert later.insight == ", ".join(
        f"{name} {before[name]} -> {value}"
        for name, value in later.tunables.items()
        if value != before[name]
    )


def test_the_search_ends_when_every_valid_configuration_was_tried(task: Task) -> None:
    search = Search(task, [kernel("a"), kernel("bb")])
    valid = len(list(configurations(parse(kernel("a")), task, limits_of(ENVIRONMENT))))
    with pytest.raises(Exhausted, match="every valid configuration of 2 kernels was tried"):
        search.run(1000)
    assert len(search.proposals) == len(set(search.points)) == 2 * valid


@pytest.mark.parametrize(
    "source",
    [
        "no header",
        kernel("a", tunables="{}")
        .replace("THREADS", "32")
        .replace("UNROLL", "1")
        .replace("STAGES", "1"),
    ],
)
def test_a_kernel_without_choices_ends_the_search_at_once(task: Task, source: str) -> None:
    search = Search(task, [kernel("a")])
    search.settle()
    seed = search.evaluated(search.outcomes[0])
    search.generator = TuneGenerator()
    outcome = seed.outcome.model_copy(update={"source_digest": digest(source)})
    search.generator.tell(outcome)
    request = Request(
        1, 0, task, ENVIRONMENT, (Evaluated(outcome, source, seed.verdict),), (), (), known(), 1
    )
    with pytest.raises(
        Exhausted,
        match=r"there is no kernel whose tunables|every valid configuration of 1 kernel was tried",
    ):
        asyncio.run(search.generator.propose(request, NoReplies()))


def test_without_a_kernel_the_search_ends_at_once(task: Task) -> None:
    with pytest.raises(Exhausted, match="there is no kernel whose tunables could be searched"):
        Search(task, []).run(1)


def test_a_resumed_search_proposes_what_the_killed_one_would_have(task: Task) -> None:
    sources = [kernel("a"), kernel("bb", "fp16")]
    whole = Search(task, sources)
    whole.run(26)
    rng = Random(1)  # noqa: S311
    killed = Search(task, sources)
    for target in range(3, 26):  # every length that a killed search can have
        killed.run(target)
        killed.killed_and_resumed(lost=rng.randrange(WINDOW))
    killed.run(26)
    assert killed.proposals == whole.proposals


def test_what_is_told_while_a_proposal_waits_for_those_before_it_changes_nothing(
    task: Task,
) -> None:
    def searched() -> Search:
        search = Search(task, [kernel("a"), kernel("bb")])
        search.run(20)
        return search

    quiet, busy = searched(), searched()

    async def told_meanwhile() -> Proposal:
        request = busy.request(20)

        async def wait(wanted: object) -> tuple[Proposal, ...]:
            pending = await request.pending(lambda trial: True)
            while len(busy.outcomes) < 20:
                busy.settle()
            return pending

        return await busy.generator.propose(dataclasses.replace(request, pending=wait), NoReplies())

    assert asyncio.run(told_meanwhile()) == quiet.propose()


def test_another_seed_searches_elsewhere(task: Task) -> None:
    one, two = Search(task, [kernel("a")], seed=0), Search(task, [kernel("a")], seed=1)
    one.run(12)
    two.run(12)
    assert one.points != two.points


def test_the_choice_does_not_depend_on_the_process(task: Task, tmp_path: Path) -> None:
    """Python's string hashes differ from process to process; proposals must not."""
    script = (
        "import sys; from pathlib import Path; from evoengine.task.load import load_task\nfrom"
        " tests.generate.test_tune import Search, kernel\nsearch = Search(load_task(Path(sys.argv[1])),"
        " [kernel('a'), kernel('bb', 'fp16')]); search.run(20)\nprint(*(proposal.model_dump_json()"
        " for proposal in search.proposals), sep='\\n')\n"
    )
    (tmp_path / "scale.py").write_text("def forward(x): return 2 * x\n")
    (tmp_path / "scale.yaml").write_text(TASK)
    command = [sys.executable, "-c", script, str(tmp_path / "scale.yaml")]
    root, environ = Path(__file__).parents[2], {"PYTHONHASHSEED": "12345"}
    answer = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=root, env=environ
    )
    here = Search(task, [kernel("a"), kernel("bb", "fp16")])
    here.run(20)
    assert answer.stdout.splitlines() == [proposal.model_dump_json() for proposal in here.proposals]


def test_every_starting_kernel_gets_its_warm_up_before_better_ones_are_preferred(
    task: Task,
) -> None:
    names = ["a", "bb", "ccc"]
    search = Search(task, [kernel(name) for name in names])
    search.run(3 * WARM_UP)
    assert [sum(proposal.label == name for proposal in search.proposals) for name in names] == [
        WARM_UP
    ] * 3


def test_better_kernels_are_tuned_more_often(task: Task) -> None:
    wide = "{THREADS: [128, 32, 64, 96, 160], UNROLL: [4, 1, 2, 3], STAGES: [2, 1, 3, 4]}"
    search = Search(
        task,
        [
            kernel("good", tunables=wide),
            kernel("far_too_long_a_name_to_be_any_good", tunables=wide),
        ],
    )
    search.run(40)
    counts = [
        sum(proposal.label == name for proposal in search.proposals)
        for name in ("good", "far_too_long_a_name_to_be_any_good")
    ]
    assert counts[0] > 2 * counts[1]


def test_a_source_that_became_an_elite_is_tuned_from_there(task: Task) -> None:
    search = Search(task, [kernel("a")])
    search.proposals.append(
        Proposal(operator="mutate", parents=(0,), source=kernel("mutant"), label="mutant")
    )
    search.settle()
    search.settle()
    search.run(6)
    mutants = [proposal for proposal in search.proposals[2:] if proposal.label == "mutant"]
    assert mutants
    assert all(proposal.parents == (1,) for proposal in mutants[:1])


def test_before_any_verdict_the_kernels_in_flight_are_tuned(task: Task) -> None:
    search = Search(task, [kernel("a"), kernel("bb")])
    for _ in range(2):
        search.proposals.append(search.propose())
    assert not search.outcomes
    assert [(proposal.label, proposal.parents) for proposal in search.proposals[2:]] == [
        ("a", ()),
        ("bb", ()),
    ]


def test_what_cannot_be_parsed_is_left_alone(task: Task) -> None:
    search = Search(task, [kernel("a")])
    search.settle()
    broken = search.outcomes[0].model_copy(
        update={
            "trial": 1,
            "source_digest": digest("broken"),
            "status": Status.rejected,
            "score": None,
        }
    )
    search.generator.tell(broken)
    search.generator.tell(broken.model_copy(update={"source_digest": ""}))
    assert search.propose().label == "a"


def test_tpe_finds_the_valley_of_a_large_space(task: Task) -> None:
    """More configurations than a search could try; the cost falls towards 64 for every tunable."""
    many = ", ".join(str(value) for value in range(4, 257, 4) if value != 256)
    source = kernel(
        "a",
        tunables=(
            f"{{THREADS: [252, {many.replace(', 252', '')}], UNROLL: [1, {many}], STAGES: [1,"
            f" {many}]}}"
        ),
    )
    source = source.replace("THREADS * UNROLL <= 512 or STAGES == 1", "THREADS <= 252")
    assert SearchSpace(parse(source), task, limits_of(ENVIRONMENT)).size > ENUMERATED
    search = Search(task, [source])
    search.run(60)
    costs = [outcome.score.value for outcome in search.outcomes if outcome.score]
    half = len(costs) // 2
    assert sum(costs[half:]) / len(costs[half:]) < sum(costs[STARTUP:half]) / len(
        costs[STARTUP:half]
    )


def test_twenty_thousand_outcomes_do_not_slow_a_resume_down(task: Task) -> None:
    values = ", ".join(str(value) for value in range(1, 151))
    source = kernel("a", tunables=f"{{THREADS: [{values}], UNROLL: [{values}], STAGES: [1]}}")
    search = Search(task, [source])
    search.settle()
    first = search.outcomes[0]
    for trial in range(1, 20_001):
        tunables = {"THREADS": (trial - 1) // 150 + 1, "UNROLL": (trial - 1) % 150 + 1}
        search.generator.tell(first.model_copy(update={"trial": trial, "tunables": tunables}))
    request = dataclasses.replace(search.request(1), trial=20_001, settled=20_001)
    proposal = asyncio.run(search.generator.propose(request, NoReplies()))
    assert (proposal.tunables["THREADS"] - 1) * 150 + proposal.tunables["UNROLL"] > 20_000


def test_tpe_sees_the_best_and_the_latest_in_their_order() -> None:
    points: list[tuple[Point, float]] = [
        ((number,), float(number)) for number in range(3 * HISTORY)
    ]
    kept = [point[0] for point, _ in _best_and_latest(points)]
    assert kept == [*range(HISTORY // 2), *range(3 * HISTORY - HISTORY // 2, 3 * HISTORY)]


@settings(deadline=None)
@given(
    chosen=st.dictionaries(
        st.sampled_from(["THREADS", "UNROLL", "STAGES", "OTHER"]),
        st.sampled_from([1, 2, 4, 32, 64, 128, 2048]),
    )
)
def test_a_point_names_the_full_configuration(task: Task, chosen: dict[str, int]) -> None:
    space = SearchSpace(parse(kernel("a")), task, limits_of(ENVIRONMENT))
    declared = {"THREADS": [128, 32, 64, 2048], "UNROLL": [4, 1, 2], "STAGES": [2, 1]}
    point = space.point(chosen)
    if any(value not in declared.get(name, []) for name, value in chosen.items()):
        assert point is None
    else:
        assert point is not None
        assert space.tunables(point) == {"THREADS": 128, "UNROLL": 4, "STAGES": 2} | chosen


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_any_untried_point_is_found_until_none_is_left(task: Task, seed: int) -> None:
    space = SearchSpace(parse(kernel("a")), task, limits_of(ENVIRONMENT))
    tried: set[Point] = set()
    rng = Random(seed)  # noqa: S311
    while (point := space.any_untried(tried, rng)) is not None:
        assert point not in tried
        tried.add(point)
    assert [space.tunables(point) for point in sorted(tried)] == sorted(
        configurations(space.candidate, task, limits_of(ENVIRONMENT)),
        key=lambda chosen: space.point(chosen) or (),
    )


def test_a_long_plan_has_fewer_of_its_configurations_tried_at_once(task: Task) -> None:
    comparisons = "<=".join(["THREADS"] * 40)
    lets = "\n".join(f"  X{number}: {comparisons}" for number in range(80))
    choices = list(range(1, 142))
    source = kernel("long", tunables=f"{{THREADS: {choices}, UNROLL: {choices}}}")
    for text, most in (
        (source, ENUMERATED),
        (source.replace("require:", f"let:\n{lets}\nrequire:"), 400),
    ):
        never = text.replace('["THREADS', '["THREADS * UNROLL == 0 and THREADS')
        space = SearchSpace(parse(never), task, limits_of(ENVIRONMENT))
        assert space.any_untried(set(), Random(0)) is None  # noqa: S311
        assert len(space._validity) <= min(most, space.size)
