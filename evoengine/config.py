"""The resolved settings of a run; stored with it, so that a resume needs none."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from evoengine.records import Frozen

CheckName = Literal["races", "bounds", "init", "async"]
CHECKS: tuple[CheckName, ...] = get_args(CheckName)


class ModelSettings(Frozen):
    """How the model endpoint is asked; the key itself is never stored."""

    model: str = "gpt-4.1"  # the model that EvoEngineer reports its best pass rate with
    # that the run was begun with, without a user, a password or a query: for the record, the
    # environment decides
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int = 16384
    timeout_s: float = 300.0
    retries: int = 6  # of one request while others are answered
    patience_s: float = 1800.0  # how long the endpoint may answer nobody before the run stops
    replies_without_kernel: int = 10  # in a row, before the run stops
    usd_per_million_prompt: float | None = None  # None: taken from the price table, or unknown
    usd_per_million_completion: float | None = None
    cost_cap_usd: float | None = None


class RunConfig(Frozen):
    """One run, fully said."""

    task: str  # absolute path of the task file
    seed: int = 0
    trials: Annotated[int, Field(gt=0)]
    # trial n is proposed when trial n - in_flight is settled
    in_flight: Annotated[int, Field(gt=0)] = 8
    places: Annotated[int, Field(gt=0)] = 3  # elites per tier
    generator: str  # its name in generate/registry.py
    model: ModelSettings = ModelSettings()
    replay_from: str | None = None
    device: str = "auto"
    # what checked mode looks for on the emulator; none: it is left out
    checks: tuple[CheckName, ...] = CHECKS
    kernels: tuple[str, ...] = ()  # absolute paths of the starting kernels
