"""The resolved settings of a run; stored with it, so that a resume needs no options."""

from __future__ import annotations

import math
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from evoengine.records import Frozen, Lesson

CheckName = Literal["races", "bounds", "init", "async"]
CHECKS: tuple[CheckName, ...] = get_args(CheckName)


class ModelSettings(Frozen):
    """The settings of the model endpoint; the key is never stored."""

    model: str = "gpt-4.1"  # EvoEngineer reports its best pass rate with this model
    # at the start of the run, without user, password and query; only a record: a resume takes the
    # address from the environment
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int = 16384
    timeout_s: float = 300.0
    retries: int = 6  # of one request while others succeed
    patience_s: float = 1800.0  # without any answer from the endpoint, before the run stops
    replies_without_kernel: int = 10  # in a row, before the run stops
    usd_per_million_prompt: float | None = None  # None: from the price table, or unknown
    usd_per_million_completion: float | None = None
    cost_cap_usd: float | None = None
    token_cap: int | None = None  # of all prompts and replies together


# The default budget of a prompt, without the kernels that it is about. What a reply needs to know
# of a packaged task takes 2,400 to 3,300, the history of a run the rest;
# docs/measurements/prompts.md
PROMPT_TOKENS = 3700


class PromptSettings(Frozen):
    """How prompts are made."""

    # beyond it optional parts are left out; without the kernels that a prompt is about
    tokens: Annotated[int, Field(gt=0)] = PROMPT_TOKENS
    # absolute path of templates that replace those of the package; None: none do
    folder: str | None = None
    # of the templates in the folder: name -> digest; None: no folder, or not recorded
    templates: dict[str, str] | None = None


def _carried(lessons: tuple[Lesson, ...]) -> tuple[Lesson, ...]:
    """`lessons`, if they can be counted and ranked."""
    for number, lesson in enumerate(lessons, start=1):
        if lesson.number != number:
            raise ValueError(f"expected lesson {number}, got number {lesson.number}")
        ratio = lesson.effect.value if lesson.effect else 1.0
        if not 0 < ratio < math.inf:
            raise ValueError(f"lesson {number}: expected an effect above 0, got {ratio!r}")
    return lessons


class RunConfig(Frozen):
    """All settings of one run."""

    task: str  # absolute path of the task file
    seed: int = 0
    trials: Annotated[int, Field(gt=0)]
    # trial n is proposed once trial n - in_flight is settled
    in_flight: Annotated[int, Field(gt=0)] = 8
    places: Annotated[int, Field(gt=0)] = 3  # elites per tier
    generator: str  # its name in generate/registry.py
    model: ModelSettings = ModelSettings()
    # of the search, by its name in generate/method_registry.py; runs stored without it are `full`
    method: str = "full"
    # tier -> its share of the trials; empty: as in generate/tier_shares.py
    tiers: dict[str, Annotated[float, Field(gt=0, le=1)]] = {}
    prompts: PromptSettings = PromptSettings()
    replay_from: str | None = None
    # of the trials after the starting kernels, those that tune between a model's replies; a run
    # that was stored without it tunes in none
    tune_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    device: str = "auto"
    # the checks of checked mode, on the emulator or beside a GPU; empty: no checked mode
    checks: tuple[CheckName, ...] = CHECKS
    kernels: tuple[str, ...] = ()  # absolute paths of the starting kernels
    plateau: Annotated[int, Field(gt=0)] | None = None  # trials without gain that end the run
    # the share of the device's least time for the objective that ends the run
    stop_at_roofline: Annotated[float, Field(gt=0, le=1)] | None = None
    # of earlier runs, numbered from 1
    lessons: Annotated[tuple[Lesson, ...], AfterValidator(_carried)] = ()
