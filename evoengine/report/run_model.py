"""The model that a run asks, and whether its cost is known, from the run's stored settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evoengine.records import Usage

MODEL_GENERATOR = "openai"  # the generator that sends requests

ASKING = (MODEL_GENERATOR, "replay")  # generators that tune between replies


def model_name(config: Mapping[str, Any]) -> str:
    """The name of the model; empty for a generator that asks no model."""
    return (
        str(_settings(config).get("model", ""))
        if config.get("generator") == MODEL_GENERATOR
        else ""
    )


def method_name(config: Mapping[str, Any]) -> str:
    """The method of the search; empty for a generator that reads no replies."""
    reads = config.get("generator") in ASKING
    return str(config.get("method", "full")) if reads else ""


def tune_share(config: Mapping[str, Any]) -> float:
    """The share of the trials that tune between replies; 0 for a generator that never asks."""
    return float(config.get("tune_share", 0)) if config.get("generator") in ASKING else 0.0


def generator_label(config: Mapping[str, Any]) -> str:
    """The generator as it is shown, with the name of its model if it asks one."""
    generator, model = str(config.get("generator", "")), model_name(config)
    return f"{generator}, model {model}" if model else generator


def cost_is_known(config: Mapping[str, Any], spent: Usage) -> bool:
    """Whether the cost of `spent` is known: a run without a price stores 0.

    A run begun by an earlier evoengine has no price in its settings even if it knew one;
    then its cost is above 0.
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
