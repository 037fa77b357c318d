"""The search over deterministic parts."""

import asyncio
import gc
from datetime import datetime
from pathlib import Path

import pytest

from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import GeneratorError
from evoengine.evaluate.scripted.scripted_executor import (
    SCRIPTED_EMULATOR,
    SCRIPTED_GPU,
    ScriptedExecutor,
)
from evoengine.events import RunEnded, TrialSettled
from evoengine.protocols import (
    FINAL,
    ActivityReport,
    Exhausted,
    Progress,
    ProposalRow,
    Replies,
    ReplyRow,
    Request,
    SearchBar,
    VerdictRow,
)
from evoengine.records import (
    EndKind,
    KernelActivity,
    LaunchActivity,
    Outcome,
    Proposal,
    Status,
    Verdict,
)
from evoengine.search.engine import Engine
from evoengine.search.trial_candidate import stored_first_verdict, stored_proposal
from evoengine.store.memory_store import MemoryStore
from tests.scale_task import kernel, load_scale_task
from tests.search.scripted_generator import (
    SEEDS,
    STABLE,
    ScriptedGenerator,
    content_of,
    make_engine,
    run_engine,
)


def search(
    folder: Path,
    store: MemoryStore,
    generator: ScriptedGenerator,
    delay_s: float = 0.0,
    **options,
):
    engine = make_engine(load_scale_task(folder), store, generator, delay_s, **options)
    engine.restore()
    return engine, asyncio.run(run_engine(engine))


def test_a_run_settles_every_trial_in_the_order_of_numbers(tmp_path):
    settled: list[int] = []

    def observe(event: object) -> None:
        if isinstance(event, TrialSettled):
            settled.append(event.outcome.trial)

    _, ended = search(tmp_path, MemoryStore(), ScriptedGenerator(0.002), 0.002, observe=observe)
    assert settled == list(range(40))
    assert ended == RunEnded("the budget of trials is spent", EndKind.trials)


def test_what_a_run_decides_does_not_depend_on_timing(tmp_path):
    slow, fast = MemoryStore(), MemoryStore()
    search(tmp_path, slow, ScriptedGenerator(0.01), 0.001)
    search(tmp_path, fast, ScriptedGenerator())
    assert content_of(slow) == content_of(fast)


def test_the_starting_kernels_are_the_first_trials_and_settled_before_anything_is_asked(tmp_path):
    store, generator = MemoryStore(), ScriptedGenerator()
    search(tmp_path, store, generator)
    assert [store.get(ProposalRow, trial).proposal for trial in range(3)] == SEEDS
    assert min(trial for trial, _ in generator.asked) == 3


def test_only_a_candidate_that_a_fresh_process_confirms_takes_a_place(tmp_path):
    store = MemoryStore()
    engine, _ = search(tmp_path, store, ScriptedGenerator(), trials=80)
    for elite in engine.population.elites:
        again = store.get(VerdictRow, elite.outcome.trial, 1)
        assert again.verdict.status is Status.correct
        assert elite.outcome.score == again.verdict.score
    assert any(
        summary.verified and summary.verified.status is not Status.correct
        for _, summary in store.trials()
    ), "the script has such cases"


def test_a_proposal_without_a_kernel_is_a_rejected_trial_with_its_problem(tmp_path):
    store = MemoryStore()
    search(tmp_path, store, ScriptedGenerator())
    problems = [
        summary.outcome.reason
        for _, summary in store.trials()
        if summary.outcome.source_digest == ""
    ]
    assert problems and all(problem.startswith("no kernel in") for problem in problems)


class Repeating(ScriptedGenerator):
    """Proposes the first starting kernel again and again."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        return Proposal(operator="mutate", source=SEEDS[0].source)


def test_a_candidate_that_was_judged_before_is_not_judged_again(tmp_path):
    store = MemoryStore()
    engine, _ = search(tmp_path, store, Repeating(), trials=10)
    reasons = [summary.outcome.reason for number, summary in store.trials() if number >= 3]
    assert reasons == ["the same as trial 0"] * 7
    assert len(set(engine.executor.evaluated)) == 3


class Reformatting(ScriptedGenerator):
    """Proposes the first starting kernel with another name, another comment and other blanks."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        source = (SEEDS[0].source or "").replace("name: seed0", f"name: other{request.trial}")
        code = source.replace("y[0] = 2", f"y[0]={' ' * request.trial}2 /* {request.trial} */")
        return Proposal(operator="mutate", source=code)


def test_a_candidate_that_differs_in_layout_alone_is_not_judged_again(tmp_path):
    store = MemoryStore()
    engine, _ = search(tmp_path, store, Reformatting(), trials=10)
    rows = [store.get(ProposalRow, trial) for trial in range(10)]
    assert len({row.proposal.source for row in rows}) == 10
    reasons = [summary.outcome.reason for number, summary in store.trials() if number >= 3]
    assert (
        reasons
        == ["the same as trial 0, but for comments, layout, the header's order or its names"] * 7
    )
    assert len(set(engine.executor.evaluated)) == 3


class Reordering(ScriptedGenerator):
    """Tunes the first starting kernel, then sends it again as prompts show it: with the values that
    were measured first, here in two more orders of the others.
    """

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        source, tuned = SEEDS[0].source or "", {"BLOCK": 256, "UNROLL": 2}
        if request.trial < 11:
            return Proposal(operator="tune", source=source, tunables=tuned)
        values = "[256, 32, 64, 128]" if request.trial % 2 else "[256, 128, 64, 32]"
        source = source.replace("[128, 64, 32, 256]", values).replace("[4, 2, 1]", "[2, 4, 1]")
        return Proposal(operator="mutate", source=source)


def test_a_parent_that_is_sent_again_with_the_values_of_its_tunables_reordered_is_not_judged_again(
    tmp_path,
):
    store = MemoryStore()
    engine, _ = search(tmp_path, store, Reordering(), trials=20)
    reasons = [summary.outcome.reason for number, summary in store.trials() if number >= 11]
    assert (
        reasons
        == ["the same as trial 3, but for comments, layout, the header's order or its names"] * 9
    )
    assert len(set(engine.executor.evaluated)) == 4


class Copying(ScriptedGenerator):
    """Gives all trials in flight together the same kernel, some of them later than others."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        await asyncio.sleep(0.003 * (request.trial % 4) * self.delay_s)
        return Proposal(operator="mutate", source=kernel(f"copy_{(request.trial - 3) // 4}"))


@pytest.mark.parametrize("slowness", [0.0, 1.0, -1.0], ids=["at once", "in order", "last first"])
def test_identical_candidates_in_flight_are_judged_once_and_all_have_the_verdict(
    tmp_path, slowness
):
    class Late(Copying):
        async def propose(self, request, replies):
            await asyncio.sleep(0.02 * (3 - request.trial % 4) if slowness < 0 else 0)
            return await super().propose(request, replies)

    store = MemoryStore()
    engine, _ = search(tmp_path, store, Late(max(slowness, 0.0)), 0.01, trials=23, rule=STABLE)
    first_of_four = [number for number in range(3, 23, 4)]
    evaluated = engine.executor.evaluated
    finals = [number for number in range(23) if store.get(VerdictRow, number, FINAL)]
    elites = {elite.outcome.code_digest for elite in engine.population.elites}
    assert len(finals) == len(elites)
    judged = [
        digest for digest in evaluated if evaluated.count(digest) > (3 if digest in elites else 2)
    ]
    assert judged == [], "once, once more to verify it, and an elite at the end of the run"
    for first in first_of_four:
        verdicts = [store.get(VerdictRow, first + more, 0).verdict for more in range(4)]
        assert all(verdict == verdicts[0] for verdict in verdicts), first


def test_verdicts_tell_when_trials_were_begun_and_found(tmp_path):
    store = MemoryStore()
    search(tmp_path, store, ScriptedGenerator(), trials=6)
    rows = [store.get(VerdictRow, trial) for trial in range(6)]
    assert all(row.began <= row.ended and datetime.fromisoformat(row.ended).tzinfo for row in rows)


def test_what_stopped_a_run_stands_in_its_reason(tmp_path):
    async def stopped_run():
        stop = asyncio.Event()
        stop.set()
        engine = make_engine(load_scale_task(tmp_path), MemoryStore(), ScriptedGenerator())
        return await run_engine(engine, stop, stopped=lambda: timed_out)

    timed_out = RunEnded("the time limit of 2 h is reached", EndKind.time)
    assert asyncio.run(stopped_run()) == timed_out
    assert not timed_out.complete


class Stopping(ScriptedGenerator):
    """Sets the stop event while its reply to trial 10 is being written."""

    def __init__(self, stop: asyncio.Event) -> None:
        super().__init__()
        self.stop = stop

    async def _ask(self, trial, text):
        reply = await super()._ask(trial, text)
        if trial == 10:
            self.stop.set()
            await asyncio.sleep(0.05)
        return reply


def test_a_reply_that_is_being_written_when_the_run_is_stopped_is_still_stored(tmp_path):
    async def stopped_run():
        stop, store = asyncio.Event(), MemoryStore()
        engine = make_engine(load_scale_task(tmp_path), store, Stopping(stop))
        ended = await run_engine(engine, stop)
        return ended, store

    ended, store = asyncio.run(stopped_run())
    assert not ended.complete
    assert store.get(ReplyRow, 10, 0) is not None
    whole = MemoryStore()
    search(tmp_path, whole, ScriptedGenerator())
    generator = ScriptedGenerator()
    search(tmp_path, store, generator)
    assert content_of(store) == content_of(whole)
    assert (10, 0) not in generator.asked, "it was paid for once"


class Ending(ScriptedGenerator):
    async def propose(self, request: Request, replies: Replies) -> Proposal:
        if request.trial >= 12:
            raise Exhausted("nothing is left")
        return await super().propose(request, replies)


def test_a_run_with_nothing_left_to_try_ends_with_the_trials_before(tmp_path):
    store = MemoryStore()
    engine, ended = search(tmp_path, store, Ending())
    assert ended == RunEnded("nothing is left", EndKind.exhausted)
    assert engine.settled == 12
    assert [number for number, summary in store.trials() if summary.outcome] == list(range(12))


class Refused(ScriptedGenerator):
    async def propose(self, request: Request, replies: Replies) -> Proposal:
        if request.trial >= 8:
            raise GeneratorError("the key is refused")
        return await super().propose(request, replies)


def test_a_generator_that_cannot_go_on_ends_the_run_and_loses_nothing(tmp_path):
    store = MemoryStore()
    with pytest.raises(GeneratorError, match="the key is refused"):
        search(tmp_path, store, Refused())
    whole = MemoryStore()
    search(tmp_path, whole, ScriptedGenerator())
    search(tmp_path, store, ScriptedGenerator())
    assert content_of(store) == content_of(whole)


def test_a_generator_is_told_every_trial_once_also_after_a_resume(tmp_path):
    store = MemoryStore()
    search(tmp_path, store, ScriptedGenerator(), trials=20)
    generator = ScriptedGenerator()
    search(tmp_path, store, generator, trials=40)
    assert generator.told == list(range(40))


def test_what_a_request_shows_ends_at_the_horizon(tmp_path):
    class Watching(ScriptedGenerator):
        seen: dict[int, list[Outcome]] = {}

        async def propose(self, request: Request, replies: Replies) -> Proposal:
            self.seen[request.trial] = [item.outcome for item in request.recent]
            pending = await request.pending(lambda trial: True)
            assert len(pending) == request.trial - 1 - engine.horizon(request.trial)
            assert request.settled == engine.horizon(request.trial) + 1
            return await super().propose(request, replies)

    generator = Watching(0.002)
    engine = make_engine(load_scale_task(tmp_path), MemoryStore(), generator, 0.002)
    asyncio.run(run_engine(engine))
    for trial, outcomes in generator.seen.items():
        assert outcomes[-1].trial == engine.horizon(trial) == max(trial - 4, 2)


class AllRefused(ScriptedGenerator):
    """Every request fails a moment after it was sent, several of them at once."""

    async def _ask(self, trial, text):
        await asyncio.sleep(0.01)
        raise GeneratorError(f"the key is refused (trial {trial})")


def test_several_requests_that_fail_at_once_are_one_error_and_no_noise(tmp_path):
    noise: list[dict[str, object]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
        engine = make_engine(load_scale_task(tmp_path), MemoryStore(), AllRefused())
        with pytest.raises(GeneratorError, match="the key is refused"):
            await run_engine(engine)

    asyncio.run(run())
    gc.collect()
    assert noise == []


@pytest.mark.parametrize("environment", [SCRIPTED_EMULATOR, SCRIPTED_GPU])
def test_a_run_that_is_stopped_after_its_last_trial_is_complete_unless_elites_must_be_measured(
    tmp_path, environment
):
    async def stopped_run():
        stop = asyncio.Event()

        def observe(event):
            if isinstance(event, TrialSettled) and event.outcome.trial == 11:
                stop.set()

        engine = make_engine(
            load_scale_task(tmp_path),
            MemoryStore(),
            ScriptedGenerator(),
            trials=12,
            observe=observe,
            environment=environment,
        )
        return await run_engine(engine, stop)

    assert asyncio.run(stopped_run()) == (
        RunEnded("the budget of trials is spent", EndKind.trials)
        if environment.is_modelled
        else RunEnded("interrupted", EndKind.interrupted)
    )


def test_a_first_verdict_knows_the_parents_that_were_correct(tmp_path: Path) -> None:
    asked: list[tuple[Candidate, SearchBar]] = []

    class OfRecentOnes(ScriptedGenerator):
        async def propose(self, request: Request, replies: Replies) -> Proposal:
            found = await super().propose(request, replies)
            recent = tuple(item.outcome.trial for item in request.recent)
            replayed = request.trial + 1000  # a trial of another run
            return found.model_copy(update={"parents": (*found.parents, *recent, replayed)})

    class Noting(ScriptedExecutor):
        async def evaluate(
            self,
            candidate: Candidate,
            progress: Progress,
            verify: bool = False,
            search: SearchBar | None = None,
            sittings: int = 1,
        ) -> Verdict:
            if search is not None and not verify:
                asked.append((candidate, search))
            return await super().evaluate(candidate, progress, verify, search, sittings)

    store, task = MemoryStore(), load_scale_task(tmp_path)
    engine = make_engine(task, store, OfRecentOnes(), executor=Noting(task, rule=STABLE))
    engine.restore()
    asyncio.run(run_engine(engine))
    of_wrong_ones = 0
    for candidate, search in asked:
        trial = int(candidate.header.name.removeprefix("trial "))
        named = dict.fromkeys(stored_proposal(store, trial).parents)
        parents = [parent for parent in named if parent < 1000]
        right = [
            f"trial {parent}"
            for parent in parents
            if stored_first_verdict(store, parent).status is Status.correct
        ]
        assert [parent.header.name for parent in search.parents] == right
        of_wrong_ones += len(right) < len(parents)
    assert of_wrong_ones


class ProfilingExecutor(ScriptedExecutor):
    """Measures kernel activity, whose launch it names after the candidate; notes what it does.

    With `stop`, it is set in the second profile, which does not end. The verdicts of the run's end
    on `wrong` candidates are `unstable`.
    """

    def __init__(self, folder: Path, stop: asyncio.Event | None = None, wrong: str = "") -> None:
        super().__init__(load_scale_task(folder), rule=STABLE)
        self.stop, self.wrong = stop, wrong
        self.judged: list[str] = []  # the candidates of all verdicts
        self.profiled: list[str] = []

    async def evaluate(self, candidate: Candidate, *arguments, **options) -> Verdict:
        assert not self.profiled, "a process that a profiler was in judges nothing"
        self.judged.append(candidate.digest)
        verdict = await super().evaluate(candidate, *arguments, **options)
        if candidate.digest == self.wrong and self.judged.count(self.wrong) >= 3:
            return Verdict(status=Status.unstable, reason="another output each time")
        return verdict

    async def activity(self, candidate: Candidate, progress: Progress) -> ActivityReport:
        self.profiled.append(candidate.digest)
        if self.stop is not None and len(self.profiled) == 2:
            self.stop.set()
            await asyncio.sleep(3600)
        if len(self.profiled) == 3:
            return ActivityReport(problem="CUPTI lost records")
        launches = (LaunchActivity(name=candidate.digest, us=2.5),)
        return ActivityReport(
            cases=(
                KernelActivity(
                    case="large",
                    baseline="torch",
                    candidate_us=2.5,
                    baseline_us=3.0,
                    candidate_launches=launches,
                ),
            )
        )


def profiled_run(
    folder: Path, store: MemoryStore, executor: ProfilingExecutor
) -> tuple[Engine, RunEnded]:
    engine = make_engine(load_scale_task(folder), store, ScriptedGenerator(), executor=executor)
    engine.restore()
    return engine, asyncio.run(run_engine(engine, executor.stop))


def finals_of(engine: Engine) -> list[VerdictRow | None]:
    """Of the elites, by place."""
    return [
        engine.store.get(VerdictRow, elite.outcome.trial, FINAL)
        for elite in engine.population.elites
    ]


def test_the_measurement_at_a_runs_end_has_the_kernel_activity_of_each_elite(tmp_path):
    executor = ProfilingExecutor(tmp_path)
    engine, ended = profiled_run(tmp_path, MemoryStore(), executor)
    finals = [row.verdict for row in finals_of(engine)]
    assert ended.complete and len(finals) > 3
    assert executor.profiled == [verdict.code_digest for verdict in finals]
    for place, verdict in enumerate(finals):
        if place == 2:
            assert (verdict.activity, verdict.activity_problem) == ((), "CUPTI lost records")
            continue
        (case,) = verdict.activity
        assert case.candidate_launches == (LaunchActivity(name=verdict.code_digest, us=2.5),)
        assert verdict.activity_problem == "" and verdict.score is not None


def test_an_elite_that_is_not_correct_at_a_runs_end_is_not_profiled(tmp_path):
    engine, _ = profiled_run(tmp_path, MemoryStore(), ProfilingExecutor(tmp_path))
    wrong = engine.population.elites[0].outcome.code_digest
    executor = ProfilingExecutor(tmp_path, wrong=wrong)
    engine, _ = profiled_run(tmp_path, MemoryStore(), executor)
    first, *others = [row.verdict for row in finals_of(engine)]
    assert first.status is Status.unstable and first.activity == ()
    assert executor.profiled == [verdict.code_digest for verdict in others] and others


def test_a_run_that_is_stopped_while_elites_are_profiled_measures_only_the_others_again(tmp_path):
    whole, store = MemoryStore(), MemoryStore()
    profiled_run(tmp_path, whole, ProfilingExecutor(tmp_path))
    engine, ended = profiled_run(tmp_path, store, ProfilingExecutor(tmp_path, asyncio.Event()))
    first, *others = finals_of(engine)
    assert not ended.complete and first is not None and others and not any(others)
    executor = ProfilingExecutor(tmp_path)
    engine, ended = profiled_run(tmp_path, store, executor)
    elites = [elite.outcome.code_digest for elite in engine.population.elites]
    assert ended.complete and executor.judged == executor.profiled == elites[1:]
    assert finals_of(engine)[0] == first and all(finals_of(engine))
    assert content_of(store) == content_of(whole)
