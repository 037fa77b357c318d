"""The settings that a resume may change, and the current settings of a run.

Settings on which stored proposals and verdicts depend cannot change; every change of the others
is stored as a row of the run.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from evoengine.config import PromptSettings, RunConfig
from evoengine.duration import duration
from evoengine.errors import UsageError
from evoengine.generate.template_folder import template_digests
from evoengine.protocols import ChangeRow, Store
from evoengine.records import RunInfo
from evoengine.search.run_options import RunOptions

# Options that a resume refuses, and why.
FIXED_OPTIONS = {
    "--seed": "the proposals so far follow from it",
    "--in-flight": "which trials a proposal has seen follows from it",
    "--kernel": "the starting kernels are the first trials",
    "--device": "verdicts of two devices are not comparable",
    "--check": "verdicts found with other checks are not comparable",
    "--tier": "the tiers that the proposals so far were meant for follow from it",
    "--method": "the proposals so far follow from it",
    "--lessons-from": "the numbers by which replies name lessons so far follow from it",
}

# Settings of RunConfig that a fold over settled trials compares with what it finds.
DECIDED_LIMITS = ("plateau", "stop_at_roofline")


def changed_config(config: RunConfig, options: RunOptions, proposed: int) -> RunConfig:
    """`config` changed by `options`; raises UsageError if they do not fit a run with `proposed`
    stored trials.
    """
    if options.trials is not None and options.trials < proposed:
        raise UsageError(
            f"--trials {options.trials}: {proposed} trials are already proposed; expected at least"
            f" {proposed}"
        )
    model = config.model
    # the price belonged to the other model
    if options.model not in (None, model.model) and not options.price_usd:
        model = model.model_copy(
            update={"usd_per_million_prompt": None, "usd_per_million_completion": None}
        )
    if options.generator == "replay" and not (options.replay_from or config.replay_from):
        raise UsageError("--generator replay needs the run to replay: --replay-from RUN")
    updates: dict[str, Any] = {
        "model": model.model_copy(update=options.model_settings),
        "prompts": config.prompts.model_copy(update=options.prompt_settings),
    }
    updates |= {
        name: getattr(options, name)
        for name in (
            "trials",
            "plateau",
            "stop_at_roofline",
            "generator",
            "replay_from",
            "tune_share",
        )
        if getattr(options, name) is not None
    }
    return RunConfig.model_validate(config.model_copy(update=updates).model_dump())


def differences(before: RunConfig, after: RunConfig) -> tuple[str, ...]:
    """The changed settings, one line each, named by their options, e.g. `--trials 45 -> 90`."""
    old, new = _options(before), _options(after)
    words = [f"{name} {old[name]} -> {new[name]}" for name in new if new[name] != old[name]]
    if before.prompts.folder == after.prompts.folder:
        words += template_changes(before.prompts, after.prompts)
    return tuple(words)


def with_templates(settings: PromptSettings) -> PromptSettings:
    """`settings` with the digests of the templates in their folder; raises UsageError."""
    if settings.folder is None:
        return settings
    return settings.model_copy(update={"templates": template_digests(Path(settings.folder))})


def template_changes(before: PromptSettings, after: PromptSettings) -> list[str]:
    """Which templates of the same folder differ, in one line; nothing where none does, or where it
    is not known.
    """
    old, new = before.templates, after.templates
    if old is None or new is None or old == new:
        return []
    found = [f"{name} changed" for name in new if name in old and old[name] != new[name]]
    found += [f"{name} added" for name in new if name not in old]
    found += [f"{name} removed" for name in old if name not in new]
    return [f"templates in {after.folder}: {', '.join(found)}"]


def current_info(store: Store) -> RunInfo | None:
    """The info of a stored run with its current settings; None if the run has not started."""
    info = store.get(RunInfo)
    changes = changes_of(store)
    return (
        info.model_copy(update={"config": changes[-1].change.config}) if info and changes else info
    )


def changes_of(store: Store) -> list[ChangeRow]:
    """All changes of settings, oldest first."""
    found: list[ChangeRow] = []
    while (row := store.get(ChangeRow, 0, len(found))) is not None:
        found.append(row)
    return found


def limits_from(store: Store) -> int:
    """The trial from which on the present limits of the search hold that its settled trials decide:
    with earlier ones it went on. 0 if they are those of the start.
    """
    info = store.get(RunInfo)
    configs = [(0, info.config if info else {})]
    configs += [(row.change.trial, row.change.config) for row in changes_of(store)]
    limits = [(trial, [config.get(name) for name in DECIDED_LIMITS]) for trial, config in configs]
    changed = [now[0] for before, now in pairwise(limits) if before[1] != now[1]]
    return changed[-1] if changed else 0


def _options(config: RunConfig) -> dict[str, str]:
    """The settings that may change, by command-line option or environment variable."""
    model = config.model
    prices = model.usd_per_million_prompt, model.usd_per_million_completion
    found = {
        "--trials": config.trials,
        "--plateau": config.plateau,
        "--stop-at-roofline": config.stop_at_roofline,
        "--generator": config.generator,
        "--replay-from": config.replay_from,
        "--tune-share": f"{config.tune_share:g}",
        "--model": model.model,
        "--price": None if None in prices else f"{prices[0]:g}/{prices[1]:g}",
        "--cost-cap": model.cost_cap_usd,
        "--token-cap": model.token_cap,
        "--temperature": model.temperature,
        "--max-tokens": model.max_tokens,
        "--timeout": duration(model.timeout_s),
        "--retries": model.retries,
        "--patience": duration(model.patience_s),
        "--prompt-tokens": config.prompts.tokens,
        "--prompts": config.prompts.folder or "the package's",
        "OPENAI_BASE_URL": model.base_url or "OpenAI's",
    }
    return {name: "none" if value is None else str(value) for name, value in found.items()}
