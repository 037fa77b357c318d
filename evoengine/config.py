"""The resolved settings of a run; stored with it, so that a resume needs no options."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from evoengine.records import Frozen

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
    replay_from: str | None = None
    device: str = "auto"
    # the checks of checked mode, on the emulator or beside a GPU; empty: no checked mode
    checks: tuple[CheckName, ...] = CHECKS
    kernels: tuple[str, ...] = ()  # absolute paths of the starting kernels
