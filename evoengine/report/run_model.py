"""Which model a run asks, and whether what it costs is known: read from the run's stored
settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evoengine.records import Usage

MODEL_GENERATOR = "openai"  # the generator that sends requests


def model_name(config: Mapping[str, Any]) -> str:
    """The name of the model that is asked; empty for a generator that asks none."""
    return (
        str(_settings(config).get("model", ""))
        if config.get("generator") == MODEL_GENERATOR
        else ""
    )


def generator_label(config: Mapping[str, Any]) -> str:
    """The generator as it is shown, with its model where it asks one."""
    generator, model = str(config.get("generator", "")), model_name(config)
    return f"{generator}, model {model}" if model else generator


def cost_is_known(config: Mapping[str, Any], spent: Usage) -> bool:
    """Whether the cost of `spent` is a sum of prices: a run without a price stores 0.

    A run that an earlier evoengine began has no price in its settings even where it knew
    one; then its cost is above 0.
    """
    settings = _settings(config)
    unpriced = None in (
        settings.get("usd_per_million_prompt"),
        settings.get("usd_per_million_completion"),
    )
    return not (config.get("generator") == MODEL_GENERATOR and unpriced and spent.cost_usd == 0)


def _settings(config: Mapping[str, Any]) -> Mapping[str, Any]:
    found = config.get("model")
    return found if isinstance(found, Mapping) else {}
