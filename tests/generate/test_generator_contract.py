"""The contract of protocols.Generator, run over all generators."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from evoengine.config import ModelSettings, RunConfig
from evoengine.digest import digest
from evoengine.evaluate.compile.includes import check_includes
from evoengine.generate.llm import ModelGenerator
from evoengine.generate.registry import MODULES, GeneratorContext, kind_of
from evoengine.generate.replay import ReplayGenerator
from evoengine.generate.tuned_model import TunedModelGenerator
from evoengine.protocols import Evaluated, Exhausted, Generator, ProposalRow, ReplyRow, Request
from evoengine.records import Proposal, Reply, Status
from evoengine.store.memory_store import MemoryStore
from tests.generate.chat_server import ChatServer, Step, chat_server, completion
from tests.generate.memory_replies import MemoryReplies
from tests.generate.row_sums_task import evaluated, kernel, request

T = TypeVar("T")
Maker = Callable[[Path, str | None], AbstractAsyncContextManager[Generator]]

FIRST_TRIAL, LAST_TRIAL = 20, 40  # of the recorded run
SETTLED = (
    evaluated(0, "seed"),
    evaluated(1, "seed", tunables={"THREADS": 256, "ROWS": 2}),
    evaluated(2, status=Status.wrong_result, reason="case main: NaN"),
    evaluated(3),
    evaluated(4, tier="fp16"),
)


def fenced(name: str) -> str:
    return f"```cuda\n{kernel(name)}```\n\n## Thoughts\n- fewer barriers\n"


@asynccontextmanager
async def plain(name: str, task_path: Path, text: str | None) -> AsyncIterator[Generator]:
    """A generator as a run makes it; one that reads no replies."""
    config = RunConfig(task=str(task_path), trials=LAST_TRIAL, generator=name)
    context = GeneratorContext(config, MemoryStore(), None, print, check_includes, {})
    yield kind_of(name).make(context)


@asynccontextmanager
async def model(
    task_path: Path, text: str | None, cost_cap_usd: float | None = None
) -> AsyncIterator[Generator]:
    """A model that replies `text`, None: a kernel that names the prompt's digest."""
    async with chat_server() as server:
        server.script.append(_answering(server, text))
        yield ModelGenerator(
            ModelSettings(
                model="scripted",
                cost_cap_usd=cost_cap_usd,
                usd_per_million_prompt=2.0,
                usd_per_million_completion=8.0,
                replies_without_kernel=1000,
            ),
            task_path,
            refuse=check_includes,
            environ={"OPENAI_BASE_URL": server.url},
        )


def _answering(server: ChatServer, text: str | None) -> Step:
    async def answer(writer: asyncio.StreamWriter) -> None:
        prompt = server.requests[-1]["messages"][0]["content"]
        writer.write(completion(fenced(f"k_{digest(prompt)[:8]}") if text is None else text))

    return answer


@asynccontextmanager
async def replay(task_path: Path, text: str | None) -> AsyncIterator[Generator]:
    """A replay of a run with replies in all trials but every fourth, which was tuned."""
    recorded = MemoryStore()
    for trial in range(FIRST_TRIAL, LAST_TRIAL):
        source = kernel(f"k_{trial}")
        if trial % 4 == 3 and text is None:
            recorded.append(ProposalRow(trial, Proposal(operator="tune", source=source)))
        else:
            said = fenced(f"k_{trial}") if text is None else text
            recorded.append(ReplyRow(trial, 0, Reply(model="m", prompt="p", text=said)))
    yield ReplayGenerator(recorded, check_includes)


@asynccontextmanager
async def tuning(maker: Maker, task_path: Path, text: str | None) -> AsyncIterator[Generator]:
    """The generator of `maker`, with a tuner beside it; of the trials asked here 21 and 24 tune."""
    async with maker(task_path, text) as asking:
        assert isinstance(asking, (ModelGenerator, ReplayGenerator))
        yield TunedModelGenerator(asking, 1 / 3)


@asynccontextmanager
async def nothing_recorded(task_path: Path, text: str | None) -> AsyncIterator[Generator]:
    yield ReplayGenerator(MemoryStore())


# A generator that answers from replies needs something that replies; the others need nothing.
GENERATORS: dict[str, Maker] = {name: partial(plain, name) for name in MODULES}
READING: dict[str, Maker] = {
    "openai": model,
    "replay": replay,
    "openai and tuner": partial(tuning, model),
    "replay and tuner": partial(tuning, replay),
}
GENERATORS |= READING
# each with nothing left for `nothing_to_try`
EXHAUSTED: dict[str, Maker] = GENERATORS | {
    "openai": partial(model, cost_cap_usd=1e-6),
    "openai and tuner": partial(tuning, partial(model, cost_cap_usd=1e-6)),
    "replay and tuner": partial(tuning, nothing_recorded),
}

every_generator = pytest.mark.parametrize("name", GENERATORS)


def play(
    maker: Maker,
    task_path: Path,
    act: Callable[[Generator], Awaitable[T]],
    text: str | None = None,
) -> T:
    """The result of `act` with a new generator that was told the settled trials."""

    async def run() -> T:
        async with maker(task_path, text) as generator:
            for item in SETTLED:
                generator.tell(item.outcome)
            try:
                return await act(generator)
            finally:
                await generator.close()

    return asyncio.run(run())


async def none_pending(wanted: object) -> tuple[Proposal, ...]:
    return ()


def asked(task_path: Path, trial: int, settled: tuple[Evaluated, ...] = SETTLED) -> Request:
    """The request for `trial`, each with a seed of its own."""
    correct = tuple(item for item in settled if item.outcome.status is Status.correct)
    built = request(
        task_path, trial=trial, seed=trial, elites=correct, recent=settled, seeds=settled[:1]
    )
    return dataclasses.replace(built, pending=none_pending, structures=correct)


def nothing_to_try(task_path: Path) -> Request:
    """A request without any kernel, beyond the end of the recorded run."""
    built = request(task_path, trial=LAST_TRIAL, seed=1)
    return dataclasses.replace(built, pending=none_pending)


async def propose(generator: Generator, asked: Request) -> Proposal:
    return await generator.propose(asked, MemoryReplies())


@every_generator
def test_the_same_inputs_give_the_same_proposal_whatever_was_asked_between(
    name: str, task_path: Path
) -> None:
    async def act(generator: Generator) -> list[Proposal]:
        trials = (FIRST_TRIAL, FIRST_TRIAL + 1, FIRST_TRIAL + 3, FIRST_TRIAL)
        return [await propose(generator, asked(task_path, trial)) for trial in trials]

    first, *_, again = play(GENERATORS[name], task_path, act)
    assert first == again
    assert first.source is not None


@every_generator
def test_another_generator_proposes_the_same_from_the_same_inputs(
    name: str, task_path: Path
) -> None:
    async def act(generator: Generator) -> list[Proposal]:
        return [
            await propose(generator, asked(task_path, trial))
            for trial in range(FIRST_TRIAL, FIRST_TRIAL + 6)
        ]

    assert play(GENERATORS[name], task_path, act) == play(GENERATORS[name], task_path, act)


@every_generator
def test_a_generator_told_on_resume_proposes_what_one_told_live_does(
    name: str, task_path: Path
) -> None:
    later = tuple(
        evaluated(trial, "seed", tunables={"THREADS": 128, "ROWS": trial - 4}) for trial in (5, 6)
    )

    async def live(generator: Generator) -> Proposal:
        for count, item in enumerate(later):
            known = SETTLED + later[:count]
            await propose(generator, asked(task_path, FIRST_TRIAL + count, known))
            generator.tell(item.outcome)
        return await propose(generator, asked(task_path, FIRST_TRIAL + 2, SETTLED + later))

    async def resumed(generator: Generator) -> Proposal:
        for item in later:
            generator.tell(item.outcome)
        return await propose(generator, asked(task_path, FIRST_TRIAL + 2, SETTLED + later))

    assert play(GENERATORS[name], task_path, live) == play(GENERATORS[name], task_path, resumed)


@every_generator
def test_several_proposals_in_flight_are_those_of_one_after_another(
    name: str, task_path: Path
) -> None:
    requests = [asked(task_path, trial) for trial in range(FIRST_TRIAL, FIRST_TRIAL + 8)]

    async def together(generator: Generator) -> list[Proposal]:
        return await asyncio.gather(*(propose(generator, item) for item in requests))

    async def in_turn(generator: Generator) -> list[Proposal]:
        return [await propose(generator, item) for item in requests]

    assert play(GENERATORS[name], task_path, together) == play(GENERATORS[name], task_path, in_turn)


@every_generator
def test_a_resumed_trial_is_proposed_from_its_stored_replies(name: str, task_path: Path) -> None:
    """Its replies are there from before the kill: the same proposal, and nothing is asked."""
    replies = MemoryReplies()

    async def act(generator: Generator) -> Proposal:
        return await generator.propose(asked(task_path, FIRST_TRIAL), replies)

    before = play(GENERATORS[name], task_path, act)
    replies.events.clear()
    replies.sent.clear()
    assert play(GENERATORS[name], task_path, act) == before
    assert not replies.sent
    assert not [event for event in replies.events if not event.startswith("found")]


UNUSABLE = {
    "empty": "",
    "no kernel": "I would rather talk about the weather.",
    "no header": "```cuda\n__global__ void row_sums(float* x) {}\n```",
    "header never closed": "```cuda\n/* evoengine\nname: cut\n",
    "unknown tier": f"```cuda\n{kernel('wanted', 'fp64')}```",
    "include that is not allowed": f'```cuda\n{kernel()}#include "/etc/passwd"\n```',
    "half a character": "\ud800",
}


@every_generator
@pytest.mark.parametrize("text", UNUSABLE.values(), ids=UNUSABLE)
def test_a_reply_without_a_usable_kernel_is_a_proposal_with_a_problem(
    name: str, text: str, task_path: Path
) -> None:
    async def act(generator: Generator) -> Proposal:
        return await propose(generator, asked(task_path, FIRST_TRIAL))

    proposal = play(GENERATORS[name], task_path, act, text)
    assert (proposal.source is None) == bool(proposal.problem)
    assert (proposal.source is None) == (name in READING), "the others read no replies"


@every_generator
def test_where_nothing_is_left_it_is_exhausted_and_says_why(name: str, task_path: Path) -> None:
    async def act(generator: Generator) -> list[str]:
        found = []
        for _ in range(2):
            with pytest.raises(Exhausted) as caught:
                await propose(generator, nothing_to_try(task_path))
            found.append(str(caught.value))
        await generator.close()
        return found

    first, again = play(EXHAUSTED[name], task_path, act)
    assert first and first == again


@every_generator
def test_closing_is_safe_more_than_once(name: str, task_path: Path) -> None:
    async def unused(generator: Generator) -> None:
        await generator.close()

    async def used(generator: Generator) -> None:
        await propose(generator, asked(task_path, FIRST_TRIAL))
        await generator.close()
        await generator.close()

    play(GENERATORS[name], task_path, unused)
    play(GENERATORS[name], task_path, used)
